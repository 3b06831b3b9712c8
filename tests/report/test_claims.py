"""The paper's claims are checked by paired comparisons, in its setting only, at every strength."""

from dataclasses import replace
from itertools import combinations

import pytest

from ecgquorum import Scorecard, write_results
from ecgquorum.evaluation.comparisons import Comparison
from ecgquorum.report.claims import FAILS, HOLDS, OPEN, check_claims

STRENGTHS = (10.0, 50.0, 75.0, 100.0)
HARDENED = ("harden: half of each batch",)


@pytest.fixture(scope="module")
def card(tiny_study):
    """A scorecard as if its recordings were real and its two ensembles trained in the paper's setting."""
    card = Scorecard.load(tiny_study / "scorecard.json", rows_only=True)
    return replace(
        card,
        data=replace(card.data, source="PhysioNet/CinC Challenge 2017"),
        ensembles=tuple(replace(one, deviations=()) for one in card.ensembles),
        comparisons=(),
    )


def compared(difference, first="dec+part", second="baseline", attack="pgd", epsilon=100.0, metric="accuracy", n=853):
    value, low, high = difference
    target = "" if attack == "natural" else "member 0"
    names = [(name,) if isinstance(name, str) else name for name in (first, second)]
    values, spreads = (0.5 + value, 0.5), tuple(0.01 if len(one) > 1 else None for one in names)
    return Comparison(*names, attack, target, epsilon, metric, values, spreads, (value, low, high), n)


def with_ensembles(card, *strategies, deviations=()):
    """The scorecard with these ensembles instead."""
    made = tuple(replace(card.ensembles[0], name=s, strategy=s, deviations=deviations) for s in strategies)
    return replace(card, ensembles=made, rows=())


def at_all_strengths(differences, **fields):
    return tuple(compared(d, epsilon=e, **fields) for d, e in zip(differences, STRENGTHS, strict=True))


@pytest.mark.parametrize(
    ("difference", "n", "verdict"),
    [
        ((0.1, 0.05, 0.15), 853, HOLDS),
        ((0.1, -0.01, 0.2), 853, OPEN),
        ((-0.1, -0.15, -0.05), 853, FAILS),
        ((0.0, 0.0, 0.0), 853, OPEN),
        ((0.1, 0.1, 0.1), 853, HOLDS),
        ((0.1, 0.1, 0.1), 20, OPEN),  # rule of three: 3/20 could have been missed
        ((-1.0, -1.0, -1.0), 20, FAILS),
    ],
)
def test_the_verdict_is_that_of_the_interval_of_the_difference(card, difference, n, verdict):
    for first, second, sign in (("dec+part", "baseline", 1), ("baseline", "dec+part", -1)):
        low, high = sorted(sign * bound for bound in difference[1:])
        turned = (sign * difference[0], low, high)
        one = compared(turned, first, second, metric="r_iu_authors", n=n)
        ((claim,), _) = check_claims(replace(card, comparisons=(one,)))
        assert claim.text == "`dec+part` is more often uncertain when wrong (R_iu) than `baseline` under PGD"
        assert claim.verdict == claim.summary == verdict
        (result,) = claim.results
        assert result.difference.value == pytest.approx(difference[0])
        assert result.condition == "100 µV" and result.paper[0] == pytest.approx(0.511, abs=0.001)


def test_every_strength_has_its_verdict_and_the_summary_says_where_it_differs(card):
    differences = [(0.01, -0.01, 0.03), (0.1, 0.05, 0.15), (0.2, 0.15, 0.25), (-0.1, -0.2, -0.05)]
    five = with_ensembles(card, "dec", "part", "baseline", "dec+part", "adv")
    comparisons = at_all_strengths(differences, first="dec")
    ((claim,), beyond) = check_claims(replace(five, comparisons=comparisons))
    assert [result.verdict for result in claim.results] == [OPEN, HOLDS, HOLDS, FAILS]
    assert claim.verdict == OPEN
    assert claim.summary == "undecided at 10 µV; holds at 50 µV, 75 µV; does not hold at 100 µV"
    assert [result.paper for result in claim.results][1] == pytest.approx((0.2661, 0.109))
    assert beyond == []
    ((always,), _) = check_claims(replace(five, comparisons=at_all_strengths([(0.1, 0.05, 0.2)] * 4, first="dec")))
    assert always.verdict == always.summary == HOLDS


def test_claims_are_of_the_papers_strengths_and_attacks_only(card):
    one = compared((0.1, 0.05, 0.2), first="dec", epsilon=33.0)
    assert check_claims(replace(with_ensembles(card, "dec", "baseline"), comparisons=(one,))) == ([], [])
    other = tuple(a | {"options": {"n_steps": 3}} for a in card.evaluation["attacks"])
    changed = replace(with_ensembles(card, "dec", "baseline"), evaluation=card.evaluation | {"attacks": other})
    assert check_claims(replace(changed, comparisons=(compared((0.1, 0.05, 0.2), first="dec"),))) == ([], [])
    simulated = replace(card, data=replace(card.data, source="simulated"))
    assert check_claims(replace(simulated, comparisons=(compared((0.1, 0.05, 0.2)),))) == ([], [])


def test_other_settings_are_never_called_the_papers(card, tmp_path):
    names = ("part+harden", "harden")
    hardened = with_ensembles(card, *names, deviations=HARDENED)
    paper, (claim,) = check_claims(replace(hardened, comparisons=(compared((0.2, 0.1, 0.3), *names),)))
    assert paper == [] and claim.text == "`part+harden` is more accurate than `harden` under PGD"
    assert claim.verdict == HOLDS and claim.results[0].paper is None
    mixed = replace(hardened, ensembles=(hardened.ensembles[0], *with_ensembles(card, "baseline").ensembles))
    assert check_claims(replace(mixed, comparisons=(compared((0.2, 0.1, 0.3), names[0]),))) == ([], [])
    text = write_results([replace(hardened, comparisons=(compared((0.2, 0.1, 0.3), *names),))], tmp_path / "r.md")
    paper, _, beyond = text.read_text().partition("Beyond the paper's setting;")
    assert "part+harden` is more" not in paper and "This was not tested" in paper
    assert "| **`part+harden` is more accurate than `harden` under PGD** | | | | **holds** |" in beyond
    assert "| 100 µV | 70.0, 50.0 | +20.0 (+10.0 to +30.0) | 853 | holds |" in beyond


def test_forms_of_decorrelation_are_separate_and_not_mixed_up(card):
    base, part, dec, own, both = with_ensembles(card, "baseline", "part", "dec", "dec", "dec+part").ensembles
    own, both = (replace(one, name=f"own {one.name}", deviations=("dec: form logits",)) for one in (own, both))
    pairs = [("dec", "baseline"), ("own dec", "baseline"), ("own dec+part", "dec"), ("own dec+part", "own dec")]
    comparisons = tuple(compared((0.1, 0.05, 0.2), *pair) for pair in pairs)
    several = replace(card, rows=(), ensembles=(base, part, dec, own, both), comparisons=comparisons)
    paper, beyond = check_claims(several)
    assert [claim.text for claim in paper] == ["`dec (as in the paper)` is more accurate than `baseline` under PGD"]
    assert [claim.text for claim in beyond] == [
        "`dec (dec: form logits)` is more accurate than `baseline` under PGD",
        "`dec+part` is more accurate than `dec (dec: form logits)` under PGD",
    ]


def test_ensembles_that_were_trained_otherwise_do_not_test_a_claim(card):
    hashes = ("input: a", "member: b", "training: c")
    base, dec, both = with_ensembles(card, "baseline", "dec", "dec+part").ensembles
    base, dec = replace(base, recipe_hashes=hashes), replace(dec, recipe_hashes=(*hashes, "dec: d"))
    slow = replace(dec, name="slow", recipe_hashes=(*hashes[:2], "training: slow", "dec: d"))
    both = replace(both, recipe_hashes=(*hashes, "dec: other", "part: e"))
    pairs = combinations(("dec+part", "slow", "dec", "baseline"), 2)
    comparisons = tuple(compared((0.1, 0.05, 0.2), *pair) for pair in pairs)
    paper, beyond = check_claims(replace(card, rows=(), ensembles=(base, dec, slow, both), comparisons=comparisons))
    assert [claim.text for claim in paper] == [
        "`dec (as in the paper; dec)` is more accurate than `baseline` under PGD"
    ]
    assert beyond == [], "dec+part has another decorrelation"


def test_seeds_are_compared_together_and_their_spread_is_shown(card, tmp_path):
    seeds = tuple(f"dec seed {seed}" for seed in range(3))
    base = with_ensembles(card, "baseline").ensembles
    dec = tuple(replace(base[0], name=name, strategy="dec", seed=i) for i, name in enumerate(seeds))
    one = compared((0.1, 0.05, 0.2), seeds, "baseline", epsilon=50.0)
    several = replace(card, rows=(), ensembles=(*base, *dec), comparisons=(one,))
    ((claim,), _) = check_claims(several)
    assert claim.text.startswith("`dec` is") and claim.results[0].spreads == (0.01, None)
    fewer = compared((-0.1, -0.2, -0.05), "baseline", seeds[:2], epsilon=75.0)
    ((both,), _) = check_claims(replace(several, comparisons=(one, fewer)))
    assert [result.verdict for result in both.results] == [HOLDS, HOLDS], "of the seeds that were evaluated"
    text = write_results([several], tmp_path / "r.md").read_text()
    assert "| 50 µV | 26.6, 10.9: +15.7 | 60.0 ± 1.0, 50.0 | +10.0 (+5.0 to +20.0) | 853 | holds |" in text
    assert "another seed may differ" not in text


def test_attacks_on_all_members_are_judged_at_every_strength(card):
    def judge(accuracy):
        rows = tuple(
            replace(row, value=v, low=v - 0.05, high=v + 0.05)
            for row in card.find(target="ensemble", attack="confident", metric="accuracy")
            for v in [accuracy[row.epsilon] - (0.01 if row.ensemble == "baseline" else 0.0)]
        )
        return check_claims(replace(card, rows=rows))

    strengths = sorted({row.epsilon for row in card.find(target="ensemble", attack="confident")})
    assert len(strengths) >= 1
    paper, (claim,) = judge(dict.fromkeys(strengths, 0.8) | {strengths[-1]: 0.2})
    assert paper == [] and "right more than half of the time" in claim.text
    assert [one.verdict for one in claim.results] == [HOLDS] * (len(strengths) - 1) + [FAILS]
    assert {one.note for one in claim.results} == {"dec+part"}
    assert check_claims(replace(card, rows=())) == ([], [])
