"""Benchmarks run, and operations are counted instead of times."""

from contextlib import nullcontext
from functools import partial

import numpy as np
import pytest
import torch
from torch.utils.flop_counter import FlopCounterMode

from benchmarks import attack_table, compact, growth, paper_network, previous, waiting
from benchmarks.capacity import Assumptions, Plan, format_plan, parse_assumptions
from benchmarks.measuring import ratios
from benchmarks.published import Published, multiplications
from benchmarks.training import measure_steps
from ecgquorum.members import CompactMember, DilatedMember, freeze


def test_ratios_divide_times_by_the_first_variant(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("benchmarks.measuring.time.perf_counter", lambda: clock[0])

    def take(seconds):
        clock[0] += seconds

    assert ratios({"one": lambda: take(1), "three": lambda: take(3)}, 5) == {"one": 1.0, "three": 3.0}


def operations(run):
    with FlopCounterMode(display=False) as counter:
        run()
    return counter.get_total_flops()


def test_multiplications_of_the_published_network_are_counted():
    network = Published(1, 4).eval()
    counted = operations(lambda: network(torch.zeros(1, 1, 1000)))
    assert counted == pytest.approx(2 * multiplications(1000), rel=1e-3)


def test_dilated_needs_a_fraction_of_the_published_operations():
    """The guard of the speed: operations, which do not depend on the machine."""
    n_samples = 4500
    theirs, ours = Published(1, 4).eval(), DilatedMember(1, 4).eval()
    x = torch.randn(1, 1, n_samples)

    def inference(network):
        with torch.inference_mode():
            network(x)

    def input_gradient(network, freezing):
        z = x.clone().requires_grad_()
        with freezing:
            answer = network(z)
            (answer[0] if isinstance(answer, tuple) else answer).sum().backward()

    inference(ours)  # transforms of the weights are kept
    assert operations(lambda: inference(theirs)) / operations(lambda: inference(ours)) > 6
    with freeze(ours):
        input_gradient(ours, nullcontext())
    published_step = operations(lambda: input_gradient(theirs, nullcontext()))
    assert published_step / operations(lambda: input_gradient(ours, freeze(ours))) > 9


def test_padding_is_not_computed():
    """A recording of 10 s in a window of 60 s takes compact a fraction of what one of 60 s does."""
    member = CompactMember(1, 4, 300.0, width=0.25).eval()
    whole, short = torch.randn(1, 1, 18000), torch.zeros(1, 1, 18000)
    short[..., 7500:10500] = whole[..., 7500:10500]
    counts = []
    for x in (whole, short):
        with torch.inference_mode():
            counts.append(operations(lambda x=x: member(x)))
    assert counts[1] < counts[0] / 4


def test_recordings_of_mixed_lengths_are_not_padded_to_the_longest():
    """The guard of prediction: by length, samples that are computed are nearly those that there are."""
    ensemble, random = compact.make_ensemble(1, 60.0), np.random.default_rng(0)
    lengths = [60, 10, 10, 10] * 32
    signals = [random.normal(size=(1, seconds * 300)).astype(np.float32) for seconds in lengths]
    ids = [str(i) for i in range(len(signals))]
    ensemble.predict_prepared(ids[:2], signals[:2])  # folds the weights
    one = operations(lambda: ensemble.predict_prepared(["60 s"], signals[:1]))
    in_order = operations(lambda: previous.predict_in_order(ensemble, signals))
    by_length = operations(lambda: ensemble.predict_prepared(ids, signals))
    assert in_order / one == pytest.approx(128, rel=0.01)
    assert by_length / one < 1.1 * sum(lengths) / 60


def test_the_path_of_the_previous_release_gives_what_the_present_one_gives():
    ensemble, random = compact.make_ensemble(2), np.random.default_rng(0)
    signals = [random.normal(size=(1, n)).astype(np.float32) * 100 for n in (9000, 3000, 6000)]
    expected = ensemble.predict_prepared(["a", "b", "c"], signals).member_probs
    assert previous.predict_in_order(ensemble, signals) == pytest.approx(expected, abs=1e-5)


@pytest.mark.long
def test_the_comparison_with_the_published_network_runs(monkeypatch, capsys):
    monkeypatch.setattr(paper_network, "N_SAMPLES", 600)
    paper_network.compare_networks(rounds=1, peak=1e11)
    paper_network.compare_small_parts(rounds=1)
    assert capsys.readouterr().out.count("\n") == 12


def test_the_attack_table_is_timed_by_some_recordings(monkeypatch, capsys):
    monkeypatch.setattr(attack_table, "_RECORDS", 1)
    monkeypatch.setattr(attack_table, "PGD", partial(attack_table.PGD, n_steps=1))
    monkeypatch.setattr(attack_table, "SAP", partial(attack_table.SAP, n_steps=1))
    attack_table.measure()
    assert "853 recordings, from 32 (min)" in capsys.readouterr().out


@pytest.mark.slow
def test_commands_are_timed(monkeypatch, capsys):
    monkeypatch.setattr(waiting, "N_FEW", 3)
    monkeypatch.setattr(waiting, "N_MANY", 40)
    monkeypatch.setattr(waiting, "_MIXED", 4)
    waiting.measure(rounds=1)
    assert capsys.readouterr().out.count("files a second between 3 and 40") == 2


@pytest.mark.slow
def test_growth_is_drawn(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(growth, "FILES", (2, 4))
    monkeypatch.setattr(growth, "LENGTHS_S", (2, 4))
    monkeypatch.setattr(growth, "MEMBERS", (1, 2))
    growth.measure(tmp_path / "plots" / "growth.png")
    assert (tmp_path / "plots" / "growth.png").read_bytes()[:4] == b"\x89PNG"
    assert "triage of 2, 4 files, 1 of the cores" in capsys.readouterr().out


def test_a_training_step_of_every_strategy_can_be_timed(tiny_cohort, monkeypatch):
    monkeypatch.setattr("benchmarks.training.BATCH", 36)
    monkeypatch.setattr("benchmarks.training.SECONDS", {"compact": 2.0})
    found = measure_steps("compact", tiny_cohort, 1)
    assert list(found) == ["baseline", "dec", "dec by logits", "part", "dec+part"]
    assert all(ratio > 0 for ratio in found.values())


def test_the_plan_of_a_fleet_follows_from_its_assumptions():
    year_s = 365.25 * 86400
    given = Assumptions(
        recordings=year_s,  # one a second
        cpu_ms=500,
        bytes=1000,
        result_bytes=250,
        files=2,
        reads=3,
        peak=4,
        utilisation=0.5,
        deferred=0.5,
        reader_s=1,
        reader_hours=8766 / 4,
        core_hour=2,
        gb_month=1,
        kilo_reads=1,
        kilo_writes=10,
        person_hour=3,
    )
    plan = Plan(given)
    assert plan.peak_rate == pytest.approx(4)
    assert plan.cores == pytest.approx(4)
    assert plan.core_hours == pytest.approx(8766 / 2)
    assert plan.stored_gb == pytest.approx(year_s * 1250 / 1e9)
    assert plan.peak_mbit == pytest.approx(0.04)
    assert plan.people == pytest.approx(2)
    assert plan.costs() == pytest.approx(
        {
            "computing": 8766 * 2,
            "storage": year_s * 1250 / 1e9 * 12,
            "requests to read": year_s * 6 / 1000,
            "requests of the devices to write": year_s * 2 / 1000 * 10,
            "people": 8766 / 2 * 3,
        }
    )
    loads = [limit.load for limit in plan.limits()]
    assert loads == sorted(loads, reverse=True)
    by_name = {limit.name: limit.load for limit in plan.limits()}
    assert by_name["people who read"] == pytest.approx(2 / given.people)
    assert by_name["cores"] == pytest.approx(4 / given.cores)
    assert by_name["names in one command"] == pytest.approx(year_s / 365 * 400 / 1e9 / given.names_gb)


def test_the_plan_says_what_breaks_first(capsys):
    few = parse_assumptions(["--recordings", "1e6", "--deferred", "1%", "--people", "1", "--commands", "1"])
    assert few.deferred == 0.01
    assert format_plan(Plan(few)).endswith("First: people who read, which lasts up to 9.6 times as many recordings.")
    slow = parse_assumptions(["--cpu-ms", "1e6", "--deferred", "0"])
    assert format_plan(Plan(slow)).endswith("First: cores, which is not enough.")
    with pytest.raises(SystemExit):
        parse_assumptions(["--cores", "0"])
    assert "--cores: expected a number above 0" in capsys.readouterr().err
