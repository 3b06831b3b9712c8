"""Atomic writes, checksums and seeds."""
