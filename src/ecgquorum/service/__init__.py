"""The review desk: web pages and an HTTP API where people review recordings that the ensemble is uncertain about.

upload -> classified by the worker -> certain or deferred -> review -> confirmed or amended

settings    options of the administrator
files       uploaded files, stored by their SHA-256
store/      the database (SQLite or PostgreSQL): recordings, results, verdicts, tokens, audit log
worker      process that classifies waiting recordings
middleware  access control of every request, before api/ (for programs) and pages (for browsers)
"""
