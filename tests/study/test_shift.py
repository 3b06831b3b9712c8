"""A study with corruptions and a class held out."""

import pytest

import ecgquorum as eq
from ecgquorum import Cohort, EvaluationOptions, LabelMap, MappedCohort, evaluate, load_ensemble, run_study
from ecgquorum.errors import CorruptionError, ScorecardError
from ecgquorum.recipes import parse_study
from ecgquorum.triage import fit_policy
from tests.conftest import TINY_RECIPE

STUDY = (
    """
compare = ["baseline"]
hold_out = "O"
"""
    + TINY_RECIPE
    + """
[cohort]
source = "synthetic:physionet2017"
records = 120
seconds = 5.0
[evaluation]
attacks = []
corruptions = "all"
severities = [3]
ood = ["flat", "unseen"]
shift_records = 4
"""
)


@pytest.mark.long
def test_a_study_trains_without_the_class_and_evaluates_it_as_unseen(tmp_path, no_figures):
    card, page = run_study(parse_study(STUDY), tmp_path / "study", device="cpu")
    assert card.data.classes == ("N", "A", "~")
    assert [one.attack for one in card.conditions if one.target == "out of distribution"] == ["flat", "unseen O"]
    assert sum(one.target == "corruption" for one in card.conditions) == 15
    assert card.ensembles[0].same_cohort
    assert "unseen O" in page.read_text()
    again, _ = run_study(parse_study(STUDY), tmp_path / "study", device="cpu")
    assert again.rows == card.rows

    ensemble = load_ensemble(tmp_path / "study" / "runs" / "baseline")
    policy = fit_policy(ensemble, Cohort(tmp_path / "study" / "cohort"), "budget", 0.1)
    assert policy.tune.n_records == len(
        eq.cohorts.hold_out_class(Cohort(tmp_path / "study" / "cohort"), "O").part("tune")
    )
    other = Cohort.from_arrays(
        [eq.simulate(label, seed=i, seconds=5, leads=("ECG",)).recording.signal for i, label in enumerate("NA" * 3)],
        ["Normal", "AF"] * 3,
        rate_hz=eq.simulate("N", seed=0, leads=("ECG",)).recording.rate_hz,
        parts="test",
    )
    mapped = MappedCohort(other, ensemble.classes, ensemble.input, LabelMap({"Normal": "N", "AF": "A"}))
    card = evaluate(ensemble, mapped, options=EvaluationOptions(ood=("flat",)))  # which has no class that is held out
    assert card.data.n_records == 6


@pytest.mark.parametrize(
    ("old", "new", "error"),
    [
        ('hold_out = "O"', "", CorruptionError),
        ("shift_records = 4", 'shift_records = 4\nreference = "x"', ScorecardError),
    ],
)
def test_what_cannot_be_evaluated_is_refused_before_training(tmp_path, old, new, error):
    with pytest.raises(error, match="class that the ensembles do not know|no ensemble 'x'"):
        run_study(parse_study(STUDY.replace(old, new)), tmp_path / "study", device="cpu")
    assert not (tmp_path / "study" / "runs").exists()
