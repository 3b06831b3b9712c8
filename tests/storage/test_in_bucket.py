"""Cohorts, checkpoints and attacked recordings in a bucket are those of a folder."""

import pickle

import pytest
import torch

from ecgquorum import Cohort, Scorecard, train_ensemble
from ecgquorum.errors import CohortError, StorageError
from ecgquorum.recipes import parse_recipe
from ecgquorum.training.checkpoint_store import CheckpointStore
from tests.conftest import TINY_RECIPE, Recorder

URL = "s3://bucket/cohort"


@pytest.fixture
def in_bucket(s3, tiny_cohort):
    s3.put_folder("bucket", "cohort", tiny_cohort.path)
    return s3


def test_a_cohort_in_a_bucket_is_fetched_once(in_bucket, tiny_cohort):
    cohort = Cohort(URL + "/")
    assert cohort.data_hash == tiny_cohort.data_hash and str(cohort.path) == URL
    cohort.verify()
    assert in_bucket.requests["get"] == 3
    again = pickle.loads(pickle.dumps(cohort))
    assert str(again.path) == URL and in_bucket.requests["get"] == 3
    changed = in_bucket.content("bucket", "cohort/records.csv").replace(b",train,", b",tune,")
    in_bucket.put("bucket", "cohort/records.csv", changed)
    with pytest.raises(CohortError, match=f"^{URL}: expected the cohort that the work is about"):
        pickle.loads(pickle.dumps(cohort))


def test_no_cohort_or_a_short_one_is_one_line(in_bucket):
    with pytest.raises(CohortError, match=r"^s3://bucket/nothing: expected a cohort \(cohort.json"):
        Cohort("s3://bucket/nothing")
    in_bucket.put("bucket", "cohort/signal.f32", in_bucket.content("bucket", "cohort/signal.f32")[:-4])
    with pytest.raises(CohortError, match=f"^{URL}/signal.f32: expected .* bytes, found .*; build the cohort again"):
        Cohort(URL)


def test_training_resumes_from_checkpoints_in_a_bucket(in_bucket, tiny_cohort, tmp_path, one_thread):
    recipe = parse_recipe(TINY_RECIPE)
    here = train_ensemble(recipe, tiny_cohort, tmp_path / "here", store=tmp_path / "store")

    class Stop(Recorder):
        def log(self, line):
            super().log(line)
            if "epoch" in line and len(self.lines) == 3:  # in the middle of the second member
                raise KeyboardInterrupt

    cohort, store = Cohort(URL), "s3://bucket/members"
    with pytest.raises(KeyboardInterrupt):
        train_ensemble(recipe, cohort, tmp_path / "killed", store=store, progress=Stop())
    kept = in_bucket.keys("bucket", "members/")
    assert kept and all(key.endswith("/checkpoint.safetensors") for key in kept)
    recorder = Recorder()
    there = train_ensemble(recipe, cohort, tmp_path / "other machine", store=store, progress=recorder)
    assert there.card["weights_sha256"] == here.card["weights_sha256"]
    assert "found in the store" in recorder.lines[0]
    assert sum("epoch" in line for line in recorder.lines) == 1, "only what was missing is trained"
    assert (tmp_path / "other machine" / "store.txt").read_text().strip() == store


def test_features_are_kept_in_a_bucket(s3, tiny_ensemble, tiny_cohort):
    store, member = CheckpointStore("s3://bucket/m"), tiny_ensemble.members[0]
    first = store.features("a" * 64, member, tiny_cohort, tiny_ensemble.input)
    s3.requests.clear()
    again = store.features("a" * 64, member, tiny_cohort, tiny_ensemble.input)
    assert torch.equal(first, again) and s3.requests["put"] == 0
    s3.put("bucket", f"m/{'a' * 16}/features.safetensors", b"damaged")
    assert torch.equal(store.features("a" * 64, member, tiny_cohort, tiny_ensemble.input), first)


def test_evaluate_with_cohort_and_attacks_in_a_bucket(in_bucket, ecgquorum, tiny_run, tiny_cohort, tmp_path):
    def evaluate(cohort, store, name, **options):
        asked = ("--attack", "pgd", "--epsilons", "50", "--part", "tune")
        return ecgquorum(
            "evaluate", tiny_run, "--cohort", cohort, "--store", store, "--out", tmp_path / name, *asked, **options
        )

    evaluate(tiny_cohort.path, tmp_path / "attacks", "here.json")
    evaluate(URL, "s3://bucket/attacks", "there.json")
    here, there = Scorecard.load(tmp_path / "here.json"), Scorecard.load(tmp_path / "there.json")
    assert [(row.metric, row.value) for row in here.rows] == [(row.metric, row.value) for row in there.rows]
    kept = in_bucket.keys("bucket", "attacks/")
    assert kept
    in_bucket.put("bucket", kept[0], in_bucket.content("bucket", kept[0])[:-8])
    in_bucket.requests.clear()
    evaluate(URL, "s3://bucket/attacks", "again.json")
    again = Scorecard.load(tmp_path / "again.json")
    assert [row.value for row in again.rows] == [row.value for row in there.rows]
    assert in_bucket.requests["put"] == 1, "only the damaged shard is crafted again"
    in_bucket.fail_next["*"] = 10_000
    line = evaluate(URL, "s3://bucket/attacks", "never.json", code=1).stderr
    assert line.replace("\n", " ").startswith("error: s3://bucket/cohort/cohort.json: no answer after 6 attempts")


def test_a_wrong_bucket_is_an_error_before_training(in_bucket, tmp_path):
    with pytest.raises(StorageError, match="^s3://nobody/m/.*: (there is no such bucket|no such file|access denied)"):
        train_ensemble(parse_recipe(TINY_RECIPE), Cohort(URL), tmp_path / "run", store="s3://nobody/m")
