"""Files in a bucket: whole or absent, in the version that is there, and one line for what goes wrong."""

import multiprocessing
import pickle
import subprocess
import sys

import pytest

from ecgquorum.errors import StorageError
from ecgquorum.storage import LocalStore, RemoteStore, fetch, is_url, open_store, parse_location, retries
from tests.storage.s3_server import SECRET_KEY


@pytest.fixture(params=["local", "s3", "memory"])
def store(request, tmp_path):
    if request.param == "s3":
        request.getfixturevalue("s3")
        return open_store("s3://bucket/some folder/")
    return open_store(tmp_path / "store" if request.param == "local" else f"memory://{tmp_path.name}")


def test_every_kind_of_store_keeps_what_was_written(store):
    check_store(store)


def check_store(store):
    """What every store must hold."""
    assert store.stamp("a/b.bin") == ""
    with pytest.raises(FileNotFoundError), store.open("a/b.bin") as path:
        path.read_bytes()
    stamps = set()
    for content in (b"", b"first", b"other"):
        store.write("a/b.bin", content)
        stamps.add(store.stamp("a/b.bin"))
        with store.open("a/b.bin") as path:
            assert path.read_bytes() == content
    assert len(stamps) == 3, "a change of the same size was not noticed"
    with store.join("a").open("b.bin") as path:
        assert path.read_bytes() == b"other"
    assert pickle.loads(pickle.dumps(store)).stamp("a/b.bin") == store.stamp("a/b.bin")


def test_urls_and_paths():
    assert open_store("file:///data/x%20y") == LocalStore(parse_location("/data/x y"))
    assert parse_location("s3://bucket/2026/") == "s3://bucket/2026"
    assert not is_url("C:/x") and not is_url("sample:af") and is_url("gs://b")
    for url in ("http://user:secret@host/x", "https://host/x?X-Amz-Signature=secret", "s3:///x", "ftp://host/x"):
        with pytest.raises(StorageError) as raised:
            parse_location(url)
        assert "secret" not in str(raised.value) and "\n" not in str(raised.value)


def test_large_files_arrive_whole(s3):
    content = bytes(range(256)) * 50_000  # 12.8 MB: a multipart upload
    RemoteStore("s3://bucket/x").write("large", content)
    assert s3.content("bucket", "x/large") == content
    assert fetch("s3://bucket/x/large").read_bytes() == content


def test_a_file_is_fetched_once_for_each_version(s3):
    s3.put("bucket", "f", b"one")
    first = fetch("s3://bucket/f")
    s3.requests.clear()
    assert fetch("s3://bucket/f") == first
    assert s3.requests == {"head": 1}
    s3.put("bucket", "f", b"two")
    assert fetch("s3://bucket/f").read_bytes() == b"two"
    assert first.read_bytes() == b"one"


def test_listing_takes_all_pages(s3):
    for number in range(2300):
        s3.put("bucket", f"many/{number:04d}/a.bin", b"x")
    assert len(RemoteStore("s3://bucket/many").list_files()) == 2300
    assert RemoteStore("s3://bucket/none").list_files() == {}


@pytest.mark.parametrize("operation", ["head", "get", "put", "list"])
def test_a_store_that_is_busy_for_a_while_is_asked_again(s3, operation):
    store = RemoteStore("s3://bucket/x")
    s3.put("bucket", "x/f", b"there")
    s3.fail_next[operation] = 3
    store.write("g", b"new")
    with store.open("f") as path:
        assert path.read_bytes() == b"there"
    assert set(store.list_files()) == {"f", "g"}
    assert s3.fail_next[operation] == 0


def test_a_store_that_stays_busy_gives_one_line(s3):
    s3.fail_next["*"] = 1000
    with pytest.raises(StorageError, match=r"^s3://bucket/x/f: no answer after 6 attempts \(slow down\); run the same"):
        RemoteStore("s3://bucket/x").write("f", b"1")
    assert sum(s3.requests.values()) == retries.TRIES


@pytest.mark.parametrize("size", [1_000_000, 12_000_000])
def test_an_interrupted_upload_leaves_no_half_file(s3, size):
    store = RemoteStore("s3://bucket/x")
    s3.cut = 2
    store.write("f", b"1" * size)  # the third attempt
    assert s3.content("bucket", "x/f") == b"1" * size
    s3.cut = 1000
    with pytest.raises(StorageError, match=r"^s3://bucket/x/f: no answer after"):
        store.write("f", b"2" * size)
    with pytest.raises(StorageError):
        store.write("g", b"2" * size)
    assert files(s3) == ["x/f"]
    assert s3.content("bucket", "x/f") == b"1" * size


def files(s3):
    return [key for key in s3.keys("bucket") if not key.endswith("/")]


def test_a_failed_part_leaves_the_old_file(s3):
    store = RemoteStore("s3://bucket/x")
    s3.put("bucket", "x/f", b"old")
    s3.deny = lambda operation, key, query: query.get("partNumber") == "2"
    with pytest.raises(StorageError, match=r"^s3://bucket/x/f: access denied"):
        store.write("f", b"2" * 25_000_000)
    assert files(s3) == ["x/f"] and s3.content("bucket", "x/f") == b"old"
    s3.deny = lambda operation, key, query: query.get("partNumber") == "2" or operation == "delete"
    with pytest.raises(StorageError, match="access denied"):
        store.write("f", b"2" * 25_000_000)
    assert len(files(s3)) == 2 and set(store.list_files()) == {"f"}, "what an upload left behind was listed"


@pytest.mark.parametrize("size", [10, 12_000_000])
def test_an_etag_need_not_be_a_hash(s3, size):
    s3.hide_md5 = True
    RemoteStore("s3://bucket/x").write("f", b"1" * size)
    assert s3.content("bucket", "x/f") == b"1" * size
    assert s3.requests["put"] - s3.requests["copy"] <= 1


def test_a_copy_that_was_cut_short_is_fetched_again(s3):
    s3.put("bucket", "f", b"whole")
    fetch("s3://bucket/f").write_bytes(b"who")
    assert fetch("s3://bucket/f").read_bytes() == b"whole"


def test_a_name_that_the_client_cannot_use_is_one_line(s3):
    with pytest.raises(StorageError, match="^s3://bucket/a//b: expected names that can be requested"):
        RemoteStore("s3://bucket/a//b").stamp("")


def _write(environment, size):
    import os

    os.environ.update(environment)
    RemoteStore("s3://bucket/x").write("f", b"2" * size)


def test_a_writer_that_is_killed_leaves_the_old_file(s3, tmp_path):
    s3.put("bucket", "x/f", b"old")
    s3.hold_after["upload_part"] = 1  # the second part is never answered
    arguments = (s3.environment(tmp_path / "other"), 25_000_000)
    process = multiprocessing.get_context("spawn").Process(target=_write, args=arguments)
    process.start()
    assert s3.held.wait(120)
    process.kill()
    process.join()
    s3.release.set()
    assert s3.keys("bucket") == ["x/f"] and s3.content("bucket", "x/f") == b"old"


def test_an_interrupted_download_leaves_nothing_behind(s3, tmp_path):
    s3.put("bucket", "f", b"x" * 100_000)
    s3.fail_next["get"] = 1000
    with pytest.raises(StorageError, match="no answer after"):
        fetch("s3://bucket/f")
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_what_is_wrong_is_one_line(s3, monkeypatch):
    with pytest.raises(StorageError, match=r"^s3://nobody/x: there is no such bucket; check its name$"):
        RemoteStore("s3://nobody/x").list_files()
    with pytest.raises(StorageError, match=r"^s3://bucket/nothing: no such file$"):
        fetch("s3://bucket/nothing")
    with pytest.raises(StorageError, match=r"^http://127.0.0.1:1/f: files can be read from a web server, not written"):
        RemoteStore("http://127.0.0.1:1").write("f", b"")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "somebody")
    from ecgquorum.storage import backends

    backends.open_backend.cache_clear()
    for attempt in (lambda one: one.list_files(), lambda one: one.write("f", b"")):
        with pytest.raises(StorageError, match="^s3://bucket/x(/f)?: access denied; check the credentials") as raised:
            attempt(RemoteStore("s3://bucket/x"))
        assert SECRET_KEY not in str(raised.value) and "somebody" not in str(raised.value)


def test_a_missing_package_is_one_line(s3, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(StorageError, match=r'^s3://bucket: needs further packages: pip install "ecgquorum\[cloud\]"$'):
        RemoteStore("s3://bucket/x").list_files()


def test_paths_load_no_client():
    code = "import sys, ecgquorum.cli, ecgquorum.storage as s; s.open_store('x').stamp('y'); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert not {"fsspec", "pyarrow", "aiohttp", "torch"} & set(loaded)
