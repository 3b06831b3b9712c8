"""Storage and triage against moto, an S3 server that other people wrote."""

import urllib.request

import boto3
import pytest
from moto.server import ThreadedMotoServer

from ecgquorum import Cohort, write
from ecgquorum.errors import StorageError
from ecgquorum.storage import RemoteStore, fetch, open_store
from ecgquorum.triage import Threshold, distributed, triage_files
from tests.conftest import Recorder, forget_machine, using
from tests.storage.s3_server import ACCESS_KEY, SECRET_KEY, S3Server
from tests.storage.test_storage import check_store

pytestmark = pytest.mark.long


class MotoServer:
    """moto on loopback, with the methods of `S3Server` that need no faults."""

    def __init__(self, bucket):
        self._server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        self._server.start()
        host, port = self._server.get_host_and_port()
        self.url, self.bucket = f"http://{host}:{port}", bucket
        keys = {"aws_access_key_id": ACCESS_KEY, "aws_secret_access_key": SECRET_KEY}
        self.client = boto3.client("s3", endpoint_url=self.url, region_name="us-east-1", **keys)
        urllib.request.urlopen(urllib.request.Request(f"{self.url}/moto-api/reset", method="POST")).close()  # noqa: S310
        self.client.create_bucket(Bucket=bucket)

    environment, put_folder = S3Server.environment, S3Server.put_folder

    def put(self, bucket, key, content):
        self.client.put_object(Bucket=bucket, Key=key, Body=content)

    def keys(self, bucket, prefix=""):
        pages = self.client.get_paginator("list_objects_v2").paginate(Bucket=bucket, Prefix=prefix)
        return sorted(one["Key"] for page in pages for one in page.get("Contents", ()))

    def content(self, bucket, key):
        return self.client.get_object(Bucket=bucket, Key=key)["Body"].read()

    def close(self):
        self._server.stop()


@pytest.fixture
def moto(monkeypatch, tmp_path):
    with using(MotoServer("bucket"), monkeypatch, tmp_path / "cache") as server:
        yield server


def test_a_store_keeps_what_was_written(moto):
    check_store(open_store("s3://bucket/some folder/"))
    assert moto.content("bucket", "some folder/a/b.bin") == b"other"
    with pytest.raises(StorageError, match="^s3://nowhere/x"):
        RemoteStore("s3://nowhere/x").write("f", b"")


def test_large_files_arrive_whole(moto):
    content = bytes(range(256)) * 50_000  # 12.8 MB: a multipart upload
    RemoteStore("s3://bucket/x").write("large", content)
    assert moto.content("bucket", "x/large") == content
    files = [key for key in moto.keys("bucket") if not key.endswith("/")]  # the client marks folders
    assert files == ["x/large"], "parts or copies of the upload are left"
    assert fetch("s3://bucket/x/large").read_bytes() == content


def test_a_cohort_is_read(moto, tiny_cohort):
    moto.put_folder("bucket", "cohort", tiny_cohort.path)
    cohort = Cohort("s3://bucket/cohort")
    cohort.verify()
    assert cohort.data_hash == tiny_cohort.data_hash


def test_an_interrupted_triage_resumes_on_another_machine(moto, tiny_ensemble, tiny_cohort, tmp_path, monkeypatch):
    monkeypatch.setattr(distributed, "SHARD", 5)
    (tmp_path / "in").mkdir()
    for i in range(12):
        write(tiny_cohort.recording(i), tmp_path / "in" / f"n{i:02d}.npz")
    (tmp_path / "in" / "broken.npz").write_bytes(b"this is no recording")
    moto.put_folder("bucket", "2026", tmp_path / "in")
    source, out, policy = "s3://bucket/2026", "s3://bucket/sorted", Threshold(0.5)

    class Stop(Recorder):
        def update(self, text, done, total):
            if done >= 5:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        triage_files(tiny_ensemble, policy, [source], out, progress=Stop())
    monkeypatch.setenv("ECGQUORUM_CACHE", str(tmp_path / "other machine"))
    forget_machine()
    recorder = Recorder()
    with triage_files(tiny_ensemble, policy, [source], out, progress=recorder) as journal:
        found = {entry.result.source.removeprefix(source): entry.result.decision for entry in journal.entries()}
    assert recorder.updates[0][1] >= 5, "what was answered before was answered again"
    with triage_files(tiny_ensemble, policy, [tmp_path / "in"], tmp_path / "here") as journal:
        expected = {e.result.source.removeprefix(f"{tmp_path / 'in'}"): e.result.decision for e in journal.entries()}
    assert len(found) == 13 and found == expected
