"""The review desk: a web page and an API where people read what the ensemble doubts.

upload -> classified by the worker -> certain or deferred -> review -> confirmed or amended

settings    what an administrator may choose
files       uploaded bytes, kept by what they are
store/      everything else, in SQLite or PostgreSQL
worker      classifies what waits
api/ pages  what programs and browsers see; gate.py stands before both
"""
