"""Decorrelation on a quarter of the real recordings: what each form does to two members, and to their accuracy."""

import numpy as np
import pytest

from ecgquorum import build_cohort, open_source, train_ensemble
from ecgquorum.cohorts import SplitOptions
from ecgquorum.cohorts.sources.source import Source
from ecgquorum.recipes import parse_recipe

pytestmark = [pytest.mark.slow, pytest.mark.data, pytest.mark.timeout(3600)]

RECIPE = """
name = "slice"
members = 2
[member]
width = 0.5
dropout = 0.1
pooling = "mean"
dilation = 1
[input]
window_s = 20.0
[training]
epochs = 8
crop_s = 10.0
repeat = { A = 2, "~" = 6 }
"""
AUGMENTED = "gain = 1.5\nflip = 0.5\n"


@pytest.fixture(scope="module")
def train_slice(real_data, tmp_path_factory):
    """Train two members on every fourth recording; (pair, accuracy and share of the gain of the second member)."""
    folder = tmp_path_factory.mktemp("slice")
    whole = open_source(str(real_data / "physionet2017/training2017.zip"))
    records = {record: whole.records[record] for record in sorted(whole.records)[::4]}
    part = Source(whole.name, whole.classes, whole.class_names, records, whole.leads, whole.rate_hz)
    cohort, _ = build_cohort(part, folder / "cohort", split=SplitOptions(tune_share=0.3))

    def train_slice(text, strategy, name):
        recipe = parse_recipe(text).with_strategy(strategy)
        ensemble = train_ensemble(recipe, cohort, folder / name, device="cpu", store=folder / "store")
        report = ensemble.card["diversity"]
        (pair,) = report["pairs"]
        found = pair | {"accuracy": report["member_accuracy"][1], "gain": report["augmentation_share"]["gain"][1]}
        print(name, found, ensemble.card["tune_accuracy"])
        return found

    return train_slice


def test_the_papers_form_lowers_the_adjusted_r2_of_features(train_slice):
    found = {}
    for strategy in ("baseline", "dec"):
        pair = train_slice(RECIPE + '[strategies.dec]\nform = "paper"\n', strategy, strategy)
        found[strategy] = np.array([pair["adjusted_r2"], pair["adjusted_r2_back"]])
    assert found["dec"].mean() < found["baseline"].mean() - 0.1
    assert (found["dec"] < found["baseline"]).all()


def test_with_flips_and_gains_only_logits_make_answers_differ_at_equal_accuracy(train_slice):
    """The paper's form encodes the gain at the same weight; at its own weight the second member learns little."""
    plain = train_slice(RECIPE + AUGMENTED, "baseline", "augmented")
    logits, paper, heavy = (
        train_slice(
            RECIPE + AUGMENTED + f'[strategies.dec]\nform = "{form}"\nweight = {weight}\n', "dec", f"{form}-{weight}"
        )
        for form, weight in (("logits", 0.05), ("paper", 0.05), ("paper", 0.2))
    )
    assert logits["class_logit_r2"] < plain["class_logit_r2"] - 0.12
    assert logits["accuracy"] > plain["accuracy"] - 0.03
    assert paper["adjusted_r2"] < plain["adjusted_r2"] - 0.05, "by its own measure the paper's form works"
    assert paper["gain"] > plain["gain"] + 0.08 > logits["gain"]
    assert paper["class_logit_r2"] > logits["class_logit_r2"] + 0.08
    assert heavy["accuracy"] < plain["accuracy"] - 0.05, "it answers normal, always"
