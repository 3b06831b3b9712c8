"""Triage from a bucket into a bucket: the worklist of a folder, also after an interruption, on another machine."""

import json

import pytest

from ecgquorum.errors import RecordingError, StorageError, TriageError
from ecgquorum.recordings import read, write
from ecgquorum.recordings.discovery import RecordingPath, discover_recordings, open_cached
from ecgquorum.recordings.remote_files import fetch_recordings
from ecgquorum.storage import backends
from ecgquorum.triage import distributed, triage_files
from ecgquorum.triage.policies import Threshold
from ecgquorum.triage.remote_output import PARTS, output_folder, publish_output
from tests.conftest import Recorder, forget_machine
from tests.triage.worklists import read_worklist

pytestmark = pytest.mark.long

IN, OUT = "s3://bucket/2026", "s3://bucket/2026/sorted"
POLICY = Threshold(0.5)


@pytest.fixture
def folder(tmp_path, tiny_cohort, write_record, monkeypatch):
    """WFDB and NumPy files in folders, one header without its signal, a broken file and one that is no recording."""
    monkeypatch.setattr(distributed, "SHARD", 5)
    place = tmp_path / "in"
    for i in range(12):
        (place / "a b").mkdir(parents=True, exist_ok=True)
        write(tiny_cohort.recording(i), place / "a b" / f"n{i:02d}.npz")
        write_record(f"w{i:02d}", tiny_cohort.signal(i + 20), folder=place)
    (place / "w03.dat").unlink()
    (place / "broken.npz").write_bytes(b"this is no recording")
    (place / "notes.pdf").write_bytes(b"%PDF")
    return place


@pytest.fixture
def in_bucket(s3, folder):
    s3.put_folder("bucket", "2026", folder)
    return s3


def arguments(model, place, out, *more):
    return ("triage", place, "--model", model, "--out", out, "--budget", "20%", "--plots", 2, "--readers", 1, *more)


def download(s3, prefix, place):
    for key in s3.keys("bucket", prefix):
        if not key.endswith("/"):
            path = place / key.removeprefix(prefix)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(s3.content("bucket", key))
    return place


def plain(results, root):
    """Worklist rows with sources relative to the folder or bucket."""
    return {
        one["source"].removeprefix(f"{root}/"): (one["decision"], one["reason"].replace(str(root), ""))
        for one in results
    }


def test_triage_from_bucket_to_bucket(in_bucket, folder, tiny_run, ecgquorum, tmp_path):
    here = ecgquorum(*arguments(tiny_run, folder, tmp_path / "here"), code=3)
    ran = ecgquorum(*arguments(tiny_run, IN + "/", OUT), code=3)
    assert ran.stdout.replace("\n", "") == here.stdout.replace("\n", "").replace(str(tmp_path / "here"), OUT)
    keys = {key.removeprefix("2026/sorted/") for key in in_bucket.keys("bucket", "2026/sorted/") if key[-1] != "/"}
    pictures = {key for key in keys if key.startswith("plots/")}
    assert len(pictures) == 2
    assert keys - pictures == {
        "journal.sqlite",
        "triage.log",
        *(f"worklist.{kind}" for kind in ("csv", "jsonl", "html")),
    }
    expected = read_worklist(tmp_path / "here")
    found = read_worklist(download(in_bucket, "2026/sorted/", tmp_path / "there"))
    assert len(found) == 26 and plain(found, IN) == plain(expected, folder)
    kept = [path for ending in ("npz", "dat") for path in (tmp_path / "cache").rglob(f"*.{ending}")]
    assert not kept, "recordings stay in the cache"
    in_bucket.requests.clear()
    ecgquorum(*arguments(tiny_run, IN, OUT), code=3)
    again = read_worklist(download(in_bucket, "2026/sorted/", tmp_path / "again"))
    assert again == found, "the outputs inside of the source were taken for recordings, or something was read again"
    key = json.dumps([in_bucket.keys("bucket"), ran.stdout, ran.stderr])
    assert "test-secret-key" not in key and "test-access-key" not in key


def test_an_interrupted_triage_resumes_on_another_machine(in_bucket, folder, tiny_ensemble, tmp_path, monkeypatch):
    class Stop(Recorder):
        def update(self, text, done, total):
            if done >= 10:
                raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        triage_files(tiny_ensemble, POLICY, [IN], OUT, progress=Stop())
    parts = in_bucket.keys("bucket", f"2026/sorted/{PARTS}/")
    assert parts
    monkeypatch.setenv("ECGQUORUM_CACHE", str(tmp_path / "other machine"))
    forget_machine()
    with pytest.raises(TriageError, match=f"^{OUT}: holds results of another model"):
        triage_files(tiny_ensemble, Threshold(0.1), [IN], OUT)
    recorder = Recorder()
    with triage_files(tiny_ensemble, POLICY, [IN], OUT, progress=recorder) as journal:
        found = {entry.result.source: entry.result.decision for entry in journal.entries()}
    assert recorder.updates[0][1] >= 10, "what was answered before was answered again"
    with triage_files(tiny_ensemble, POLICY, [folder], tmp_path / "here") as journal:
        expected = {entry.result.source: entry.result.decision for entry in journal.entries()}
    assert {source.removeprefix(IN): one for source, one in found.items()} == {
        source.removeprefix(str(folder)): one for source, one in expected.items()
    }
    in_bucket.put("bucket", parts[0], in_bucket.content("bucket", parts[0])[:-20])
    with pytest.raises(TriageError, match="the content does not match its name"):
        triage_files(tiny_ensemble, POLICY, [IN], OUT)


def test_a_bucket_that_is_busy_for_a_while_changes_nothing(in_bucket, tiny_ensemble):
    for operation in ("list", "head", "get", "put"):
        in_bucket.fail_next[operation] = 2
    with triage_files(tiny_ensemble, POLICY, [IN], OUT) as journal:
        decisions = [entry.result.decision for entry in journal.entries()]
    assert decisions.count("unreadable") == 2 and decisions.count("skipped") == 1 and len(decisions) == 26
    in_bucket.put("bucket", "2026/new.npz", in_bucket.content("bucket", "2026/a b/n00.npz"))
    in_bucket.fail_next["get"] = 100_000
    with pytest.raises(StorageError, match=r"^s3://bucket/2026/.*: no answer after 6 attempts"):
        triage_files(tiny_ensemble, POLICY, [IN], OUT)


def test_changed_and_new_files_only(in_bucket, tiny_ensemble):
    triage_files(tiny_ensemble, POLICY, [IN], OUT).close()
    publish_output(OUT)
    assert not [key for key in in_bucket.keys("bucket") if PARTS in key and not key.endswith("/")]
    in_bucket.put("bucket", "2026/a b/n01.npz", b"shorter")
    in_bucket.put("bucket", "2026/new.npz", in_bucket.content("bucket", "2026/a b/n00.npz"))
    recorder = Recorder()
    with triage_files(tiny_ensemble, POLICY, [IN], OUT, progress=recorder) as journal:
        assert journal.n_added == 2 and len(journal) == 27
    assert [line.partition(":")[0] for line in recorder.lines] == ["unreadable"]


def test_odd_names_stop_nothing(in_bucket, tiny_ensemble):
    good, header = in_bucket.content("bucket", "2026/a b/n00.npz"), in_bucket.content("bucket", "2026/w00.hea")
    in_bucket.buckets["bucket"].clear()
    for name in ("é ü#?%20.npz", "x/../y.npz", f"{'n' * 250}.npz", "a.npz", "a.npz/inner.npz"):
        in_bucket.put("bucket", f"odd/{name}", good)
    in_bucket.put("bucket", "odd/w00.hea", header.replace(b"w00.dat", b".."))
    with triage_files(tiny_ensemble, POLICY, ["s3://bucket/odd"], OUT) as journal:
        found = {
            entry.result.source.removeprefix("s3://bucket/odd/"): entry.result.decision for entry in journal.entries()
        }
    skipped = {name for name, decision in found.items() if decision == "skipped"}
    assert skipped == {"x/../y.npz", f"{'n' * 250}.npz", "a.npz"} and found["w00.hea"] == "unreadable"
    assert found.keys() - skipped == {"é ü#?%20.npz", "a.npz/inner.npz", "w00.hea"}


def test_a_record_of_segments_that_is_refused_names_them(in_bucket, folder, tiny_ensemble, tmp_path):
    (folder / "multi.hea").write_text("multi/2 1 300 3000\nw00 1500\nw01 99\n")
    in_bucket.put_folder("bucket", "2026", folder)
    with triage_files(tiny_ensemble, POLICY, [folder], tmp_path / "here") as journal:
        expected = {entry.result.source.removeprefix(str(folder)): entry.result.decision for entry in journal.entries()}
    with triage_files(tiny_ensemble, POLICY, [IN], OUT) as journal:
        found = {entry.result.source.removeprefix(IN): entry.result.decision for entry in journal.entries()}
    assert found == expected


def test_archives_single_files_and_predict(in_bucket, folder, zipped, tiny_run, tiny_ensemble, ecgquorum):
    in_bucket.put("bucket", "z/all.zip", zipped(folder / "a b").read_bytes())
    with triage_files(tiny_ensemble, POLICY, ["s3://bucket/z/all.zip", f"{IN}/w00"], "s3://bucket/out") as journal:
        sources = sorted(entry.result.source for entry in journal.entries())
    assert sources[0] == f"{IN}/w00.hea" and len(sources) == 13
    assert all(one.startswith("s3://bucket/z/all.zip/") for one in sources[1:])
    assert read(f"{IN}/w00.dat").leads == read(folder / "w00").leads
    assert read(sources[1]).n_samples == read(folder / "a b" / "n00.npz").n_samples
    ran = ecgquorum("predict", f"{IN}/w00.hea", f"{IN}/w03", "--model", tiny_run, "--json", code=1)
    assert [one["source"] for one in json.loads(ran.stdout)] == [f"{IN}/w00.hea"]
    assert f"{IN}/w03" in ran.stderr.replace("\n", "")


@pytest.mark.parametrize(
    ("place", "out", "line"),
    [
        ("s3://nobody/x", OUT, "s3://nobody/x: there is no such bucket"),
        (IN, "s3://nobody/x", "s3://nobody/x: there is no such bucket"),
        (
            "s3://bucket/nothing",
            OUT,
            "s3://bucket/nothing: expected a recording, a folder or an archive, found no such",
        ),
        (IN, "http://127.0.0.1:9/x", "http://127.0.0.1:9/x"),
        ("https://host/x?Signature=secret", OUT, "https://host/x: the URL has a password or a query"),
        (IN, "ftp://host/x", "ftp://host/x: expected a URL that begins with s3"),
    ],
)
def test_wrong_places_are_one_line(in_bucket, tiny_run, ecgquorum, place, out, line):
    printed = ecgquorum(*arguments(tiny_run, place, out), code=1).stderr
    assert line in printed.replace("\n", " ") and "Traceback" not in printed and "secret" not in printed


def test_no_credentials_are_one_line(in_bucket, tiny_run, ecgquorum, monkeypatch):
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nowhere")
    backends.open_backend.cache_clear()
    printed = ecgquorum(*arguments(tiny_run, IN, OUT), code=1).stderr.replace("\n", " ").strip()
    assert printed.startswith(f"error: {OUT}: access denied; check the credentials")


def test_names_that_lead_elsewhere_are_skipped(in_bucket, tiny_ensemble, tmp_path):
    good, outside = in_bucket.content("bucket", "2026/a b/n00.npz"), tmp_path / "outside.npz"
    for key in (f"odd/{outside}", "odd/x//y.npz", "odd/good.npz"):
        in_bucket.put("bucket", key, good)
    with triage_files(tiny_ensemble, POLICY, ["s3://bucket/odd"], OUT) as journal:
        found = {entry.result.source: entry.result for entry in journal.entries()}
    skipped = {source for source, one in found.items() if one.decision == "skipped"}
    assert skipped == {f"s3://bucket/odd/{outside}", "s3://bucket/odd/x//y.npz"} and len(found) == 3
    assert all("cannot be stored on this machine" in found[source].reason for source in skipped)
    assert not outside.exists()
    paths = [RecordingPath("s3://bucket/odd", name) for name in (str(outside), "../y.npz", "good.npz")]
    with fetch_recordings(paths) as here:
        assert [bool(path.refused) for path in here] == [True, True, False]
    assert not outside.exists()


def test_a_file_that_is_refused_stops_nothing(in_bucket, tiny_ensemble):
    denied = ("2026/w00.hea", "2026/w01.dat", "2026/a b/n00.npz")
    in_bucket.deny = lambda operation, key, query: key in denied
    header = in_bucket.content("bucket", "2026/w02.hea")
    in_bucket.put("bucket", "2026/long.hea", header.replace(b"w02.dat", b"n" * 250))
    with triage_files(tiny_ensemble, POLICY, [IN], OUT) as journal:
        found = {entry.result.source.removeprefix(f"{IN}/"): entry.result for entry in journal.entries()}
    unreadable = {name for name, one in found.items() if one.decision == "unreadable"}
    assert unreadable == {"w00.hea", "w01.hea", "a b/n00.npz", "long.hea", "w03.hea", "broken.npz"}
    assert all("access denied" in found[name].reason for name in ("w00.hea", "w01.hea", "a b/n00.npz"))
    assert "cannot be stored on this machine" in found["long.hea"].reason


def test_an_archive_that_has_changed_is_fetched_again(in_bucket, folder, zipped):
    tree = "s3://bucket/z/all.zip"
    in_bucket.put("bucket", "z/all.zip", zipped(folder / "a b").read_bytes())
    paths = list(discover_recordings([tree]))
    with fetch_recordings(paths[:1]) as here:
        first = open_cached(here[0].tree, here[0].fetched).read(here[0].name, 1 << 30)
    (folder / "a b" / "n00.npz").write_bytes((folder / "a b" / "n01.npz").read_bytes())
    in_bucket.put("bucket", "z/all.zip", zipped(folder / "a b").read_bytes())
    with fetch_recordings(paths[:1]) as here:
        assert open_cached(here[0].tree, here[0].fetched).read(here[0].name, 1 << 30) != first
    assert next(iter(discover_recordings([tree]))).stamp != paths[0].stamp


def test_a_folder_is_no_recording(in_bucket):
    with pytest.raises(RecordingError, match=f"^{IN}: expected one recording, found a folder or an archive"):
        read(IN)


def test_output_that_was_erased_does_not_come_back(in_bucket, tiny_run, ecgquorum):
    ecgquorum(*arguments(tiny_run, IN, OUT), code=3)
    for key in in_bucket.keys("bucket", "2026/sorted/"):
        del in_bucket.buckets["bucket"][key]
    ecgquorum(*arguments(tiny_run, f"{IN}/w05.hea", OUT))
    kept = {
        key.removeprefix("2026/sorted/"): in_bucket.content("bucket", key)
        for key in in_bucket.keys("bucket", "2026/sorted/")
    }
    assert sum(name.startswith("plots/") and name != "plots/" for name in kept) <= 1
    assert b"w05" in kept["worklist.csv"] and not any(b"w06" in content for content in kept.values())


def test_the_folder_of_a_url_is_in_the_cache(s3, tmp_path):
    assert output_folder(tmp_path) == tmp_path and output_folder(f"file://{tmp_path}") == tmp_path
    assert tmp_path / "cache" in output_folder(OUT).parents
