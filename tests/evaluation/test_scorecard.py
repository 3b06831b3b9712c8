import numpy as np
import pytest

from ecgquorum import Cohort, Scorecard, build_cohort, evaluate, open_source, write_report
from ecgquorum.errors import CohortError


def test_a_scorecard_holds_what_the_ensemble_said_and_survives_the_disk(tiny_ensemble, tiny_cohort, tmp_path):
    card = evaluate(tiny_ensemble, tiny_cohort, "train")
    prediction = tiny_ensemble.predict_part(tiny_cohort, "train")
    truth = tiny_cohort.labels[tiny_cohort.part("train")]
    assert card.accuracy.value == pytest.approx((prediction.label_index == truth).mean())
    assert np.trace(card.confusion) == len(card.uncertainty_right)
    assert sum(card.n_recordings.values()) == len(truth) == len(card.uncertainty_right) + len(card.uncertainty_wrong)
    assert card.errors_left[-1] == pytest.approx(1 - card.accuracy.value)
    assert len(card.examples) == 6
    assert Scorecard.load(card.save(tmp_path / "card.json")) == card


def test_another_split_of_the_same_data_is_pointed_out(tiny_ensemble, tiny_cohort, tmp_path):
    source = open_source("synthetic:physionet2017", records=60, seconds=5.0)
    other, _ = build_cohort(source, tmp_path / "c", split_seed=7)
    card = evaluate(tiny_ensemble, other)
    assert not card.same_cohort
    assert "may have" in write_report(card, tmp_path / "r").read_text()
    assert evaluate(tiny_ensemble, tiny_cohort).same_cohort


def test_a_cohort_of_another_kind_is_refused(tiny_ensemble, tmp_path):
    other, _ = build_cohort(open_source("synthetic:cpsc2018", records=20, seconds=2.0), tmp_path / "c")
    with pytest.raises(CohortError, match="classes, leads and rate"):
        evaluate(tiny_ensemble, other)


def test_an_empty_part_is_refused(tiny_ensemble, tmp_path):
    build_cohort(open_source("synthetic:physionet2017", records=20, seconds=2.0), tmp_path / "c", test_share=0.0)
    with pytest.raises(CohortError, match="test part, found none"):
        evaluate(tiny_ensemble, Cohort(tmp_path / "c"))
