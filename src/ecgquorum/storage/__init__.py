"""Files in buckets and on servers, by URL: fetched to this machine before use, put when they are complete."""

from ecgquorum.storage.cache import cache_folder, download, fetch, fetch_to_mirror, mirror_path
from ecgquorum.storage.file_store import FileStore, LocalStore, RemoteStore, open_store
from ecgquorum.storage.retries import FileMissingError, FileRefusedError
from ecgquorum.storage.urls import is_url, join_url, parse_location

__all__ = [
    "FileMissingError",
    "FileRefusedError",
    "FileStore",
    "LocalStore",
    "RemoteStore",
    "cache_folder",
    "download",
    "fetch",
    "fetch_to_mirror",
    "is_url",
    "join_url",
    "mirror_path",
    "open_store",
    "parse_location",
]
