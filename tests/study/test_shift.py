"""A study with corruptions and a class held out."""

from ecgquorum import run_study
from ecgquorum.recipes import parse_study
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


def test_a_study_trains_without_the_class_and_evaluates_it_as_unseen(tmp_path):
    card, page = run_study(parse_study(STUDY), tmp_path / "study", device="cpu")
    assert card.data.classes == ("N", "A", "~")
    assert [one.attack for one in card.conditions if one.target == "out of distribution"] == ["flat", "unseen O"]
    assert sum(one.target == "corruption" for one in card.conditions) == 15
    assert card.ensembles[0].same_cohort
    assert "unseen O" in page.read_text()
    again, _ = run_study(parse_study(STUDY), tmp_path / "study", device="cpu")
    assert again.rows == card.rows
