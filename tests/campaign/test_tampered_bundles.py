"""Bundles whose files were changed after they were written: none loads."""

import json
import shutil

import numpy as np
import pytest

from ecgquorum import load_ensemble, simulate
from ecgquorum.ensemble.card import find_bundle
from ecgquorum.errors import BundleError
from ecgquorum.recordings import write

from ..commands import Command
from ..contracts.test_mutations import mutated

FILES = ("card.json", "weights.safetensors", "distance.safetensors")


def change_a_value(card, rng):
    """Another value at a random place of the card, which stays valid JSON."""
    node = card
    while True:
        keys = list(node) if isinstance(node, dict) else list(range(len(node)))
        key = keys[int(rng.integers(len(keys)))]
        if isinstance(node[key], dict | list) and node[key]:
            node = node[key]
            continue
        value = node[key]
        node[key] = (not value) if isinstance(value, bool) else value + 1 if isinstance(value, int | float) else "other"
        return


def tamper(bundle, others, rng):
    """Change a bundle in one of four ways; says how, or nothing if its content is the same as before."""
    name = FILES[int(rng.integers(len(FILES)))]
    before = (bundle / name).read_bytes()
    way = int(rng.integers(4))
    if way == 0:
        after = mutated(before, rng)
    elif way == 1:
        position = int(rng.integers(len(before)))
        after = before[:position] + bytes([before[position] ^ (1 << int(rng.integers(8)))]) + before[position + 1 :]
    elif way == 2:
        after = (others[int(rng.integers(len(others)))] / name).read_bytes()
    else:
        name = "card.json"
        before = (bundle / name).read_bytes()
        card = json.loads(before)
        change_a_value(card, rng)
        after = json.dumps(card).encode()
    (bundle / name).write_bytes(after)
    return "" if after == before or (name == "card.json" and _same_document(before, after)) else f"{name}, way {way}"


def _same_document(before, after):
    try:
        return json.loads(before) == json.loads(after)
    except ValueError:
        return False


@pytest.fixture(scope="module")
def sources():
    found = [find_bundle(name) for name in ("physionet2017", "physionet2017-robust", "cpsc2018")]
    found = [path for path in found if (path / "distance.safetensors").is_file()]
    assert len(found) >= 2
    return found


@pytest.mark.timeout(7200)
def test_no_tampered_bundle_loads(sources, tmp_path, count):
    bundles, skipped = count("TAMPERED", 40), 0
    rng = np.random.default_rng([3, bundles.seed])
    while bundles.goes_on:
        source = sources[bundles.done % len(sources)]
        copy = tmp_path / "bundle"
        shutil.copytree(source, copy)
        how = tamper(copy, [other for other in sources if other != source], rng)
        if how:
            with pytest.raises(BundleError) as caught:
                load_ensemble(copy)
            assert "\n" not in str(caught.value), how
            bundles.add()
        else:
            skipped += 1
        shutil.rmtree(copy)
    bundles.finish(same_content=skipped)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_no_tampered_bundle_is_taken_by_a_command(sources, tmp_path, record_property):
    """One of each way of `tamper`, in processes of their own."""
    write(simulate("N", seed=1, leads=("ECG",), seconds=10).recording, tmp_path / "one.npz")
    rng, seen = np.random.default_rng(4), set()
    while len(seen) < 4:
        copy = tmp_path / f"bundle{rng.integers(1 << 30)}"
        shutil.copytree(sources[0], copy)
        how = tamper(copy, sources[1:], rng)
        way = how[-1:]
        if not how or way in seen:
            continue
        command = Command("predict", tmp_path / "one.npz", "--model", copy, threads=1)
        assert command.wait(600) == 1, (how, command.stdout)
        assert "Traceback" not in command.stderr and command.stderr.count("error:") == 1, (how, command.stderr)
        assert command.stdout == "", how
        seen.add(way)
    record_property("done", len(seen))
