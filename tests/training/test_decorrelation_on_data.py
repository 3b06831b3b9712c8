"""Decorrelation on real recordings: at equal training, members of `dec` predict each other less than `baseline`'s."""

import numpy as np
import pytest

from ecgquorum import build_cohort, open_source, train_ensemble
from ecgquorum.cohorts import SplitOptions
from ecgquorum.cohorts.sources.source import Source
from ecgquorum.recipes import parse_recipe

RECIPE = """
name = "slice"
members = 2
[member]
width = 0.5
dropout = 0.1
[input]
window_s = 20.0
[training]
epochs = 8
crop_s = 10.0
repeat = { A = 2, "~" = 6 }
"""


@pytest.mark.slow
@pytest.mark.data
@pytest.mark.timeout(1800)
def test_dec_lowers_the_adjusted_r2_between_members(real_data, tmp_path):
    whole = open_source(str(real_data / "physionet2017/training2017.zip"))
    records = {record: whole.records[record] for record in sorted(whole.records)[::4]}
    part = Source(whole.name, whole.classes, whole.class_names, records, whole.leads, whole.rate_hz)
    cohort, _ = build_cohort(part, tmp_path / "cohort", split=SplitOptions(tune_share=0.3))
    recipe = parse_recipe(RECIPE + '[strategies.dec]\nform = "paper"\n')
    found = {}
    for strategy in ("baseline", "dec"):
        ensemble = train_ensemble(
            recipe.with_strategy(strategy), cohort, tmp_path / strategy, device="cpu", store=tmp_path / "store"
        )
        (pair,) = ensemble.card["diversity"]["pairs"]
        found[strategy] = np.array([pair["adjusted_r2"], pair["adjusted_r2_back"]])
        print(strategy, pair, ensemble.card["tune_accuracy"])
    assert found["dec"].mean() < found["baseline"].mean() - 0.1
    assert (found["dec"] < found["baseline"]).all()
