"""Each claim on MiniLM holds where the numbers are as it says, fails where they are not, and is open in between."""

from collections.abc import Callable
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import spearmanr

from affscore_book.transformers.measured import LAYERS, START_SEEDS, Job, LayerInputs, MiniLMScores, attention_effect
from affscore_book.transformers.vits import BLOCKS, VIT_BATCHES, VIT_POOLS, VitScores
from affscore_study.transformers import claims
from affscore_study.transformers.laws import score_from_means_and_spreads


def layer(seed: int, mean: float = -0.5) -> LayerInputs:
    draw = np.random.default_rng(seed)
    edges = np.linspace(-6, 4, 101)
    shares = np.full(100, 0.01)
    return LayerInputs(mean + 0.1 * draw.normal(size=30), 0.5 + draw.random(30), edges, shares)


def planted(rule: Callable[[Job, int], float], noise: float = 0.002, mean: float = -0.5) -> MiniLMScores:
    """Scores by a rule of job and layer, with a little noise."""

    class Planted(MiniLMScores):
        def of(self, **fields):
            job = Job(**fields)
            draws = [np.random.default_rng([*map(ord, job.name), number]).normal() for number in range(LAYERS)]
            return np.array([rule(job, number) + noise * draw for number, draw in enumerate(draws)])

    layers = [layer(number, mean) for number in range(LAYERS)]
    every = {f"{weights} 0": layers for weights in ("trained", "random", "rearranged")}
    return Planted({}, {}, every, {})


def explained(number: int) -> float:
    """What the planted layer's means and spreads say."""
    return score_from_means_and_spreads(layer(number))


TABLES = [claims.minilm_claims, claims.minilm_weight_claims, claims.minilm_pool_claims, claims.minilm_text_claims]
HELD, FAILED = {"agrees", "held"}, {"disagrees", "failed"}


def as_expected(job: Job, number: int) -> float:
    """The laws explain the trained scores, attention lowers them, and nothing else matters."""
    # The planted layers' own scores, put in the order of depth.
    score = explained(number) + (0 if job.weights == "trained" else 0.2)
    if job.change.startswith("without") and int(job.change.split()[1]) == number and job.weights == "trained":
        return score + 0.1
    return score


def contrary(job: Job, number: int) -> float:
    """Each row the other way."""
    if job.weights != "trained":
        return 0.3 + 0.1 * (job.change != "") * (job.change == f"without {number}") + 0.1 * (job.kind != "english")
    score = 0.9 - 0.02 * number - 0.1 * (job.kind != "english") - 0.1 * (job.change == f"without {number}")
    score -= 0.1 * (job.change == "padding counted")
    score -= {"spatial": 0.0, "trailing": 0.15, "first": 0.1, "tokens": 0.1}[job.pool]
    return score - 0.1 * (job.length == 96)


def test_rules_hold_and_fail():
    for scores, verdicts in ((planted(as_expected), HELD), (planted(contrary, mean=-4.0), FAILED)):
        for claim in (claim for table in TABLES for claim in table(scores)):
            assert claim.verdict in verdicts or claim.what.startswith("rank correlation"), claim.what


#: Of planted scores, by weights and kind of text.
SHIFTS = {("random", "code"): -0.05, ("trained", "code"): 0.03}


def test_code_and_random_tokens_are_two_rows_at_random_weights():
    """Planted: at random weights code scores .05 lower than English, and random tokens as English does."""
    found = planted(lambda job, number: 0.9 + SHIFTS.get((job.weights, job.kind), 0.0), noise=0.0005)
    every = {row.what: row for row in claims.minilm_text_claims(found)}
    assert every["mean score: code − English"].ours == pytest.approx(0.03, abs=2e-3)
    rows = {what: row for what, row in every.items() if "random weights" in what}
    code, tokens = (
        rows[f"mean score, random weights, batch 0: {kind} − English"] for kind in ("code", "random tokens")
    )
    assert (code.ours, code.verdict) == (pytest.approx(-0.05, abs=2e-3), "failed")
    assert (tokens.ours, tokens.verdict) == (pytest.approx(0, abs=2e-3), "held")


def test_layers_of_one_network_decide_nothing_however_they_rise():
    """Four batches through one network are not four networks: the orders of its layers give a p, and no interval."""
    rising = planted(lambda job, number: 0.5 + 0.05 * number)
    rows = [claim for claim in claims.minilm_weight_claims(rising) if claim.what.startswith("rank correlation")]
    assert [claim.verdict for claim in rows] == ["not shown", "not shown"]
    assert all(claim.ours == pytest.approx(1) and np.isnan(claim.interval).all() for claim in rows)
    assert all("p = 0.001" in claim.what for claim in rows)  # one order of 720


def test_the_p_is_the_share_of_orders_that_rise_as_much():
    values = np.array([1.0, 0.0, 3.0, 1.0, 2.0, 2.0])  # with ties
    found = spearmanr(values, range(6)).statistic
    as_much = [spearmanr(order, range(6)).statistic >= found - 1e-9 for order in permutations(values)]
    assert claims.permutation_p(values) == pytest.approx(np.mean(as_much))
    assert claims.permutation_p(np.arange(6.0)) == pytest.approx(1 / 720) and claims.permutation_p(-np.arange(6.0)) == 1


def vits(effects: dict[str, float], start: float = 0.0) -> VitScores:
    """Vision transformers whose every block scores so much higher without its attention."""
    draw, scores = np.random.default_rng(0), {}
    for network, blocks in BLOCKS.items():
        for pool in VIT_POOLS:
            states = {f"trained|{pool}|{batch}": effects[network] for batch in range(VIT_BATCHES)}
            states |= {f"start {seed}|{pool}|0": start for seed in START_SEEDS}
            for state, effect in states.items():
                both = 0.6 + 0.001 * draw.normal(size=(2, blocks))
                scores[f"{network}|{state}"] = both + np.array([[0.0], [effect]])
    return VitScores(scores)


@pytest.mark.parametrize("pool", VIT_POOLS)
def test_batches_of_one_training_show_nothing_of_other_trainings(pool):
    for a, b in ((0.05, 0.05), (0, 0), (0.05, 0)):
        rows = claims.vit_lens_claims(vits({"vit_4": a, "vit_8": b}), pool)
        assert [row.ours for row in rows] == [pytest.approx(a, abs=0.002), pytest.approx(b, abs=0.002)]
        assert {row.verdict for row in rows} == {"not shown"}


def test_a_lens_at_the_start_is_no_change_or_one():
    still, bent = (claims.vit_start_claims(vits(dict.fromkeys(BLOCKS, 0.0), start)) for start in (0.0, 0.05))
    assert {row.verdict for row in still} == {"held"} and {row.verdict for row in bent} == {"failed"}


def test_noise_leaves_rows_open_and_never_decides_a_difference():
    noisy = planted(lambda job, number: 0.6, noise=0.15)
    for table in TABLES:
        rows = [claim for claim in table(noisy) if claim.interval is not None and "rank" not in claim.what]
        assert {claim.verdict for claim in rows} & {"undecided", *FAILED}
        assert not any(claim.verdict == "held" and claim.accept[0] == 0.02 for claim in rows)


def test_the_effect_of_attention_is_that_of_the_layers_own():
    def own(job: Job, number: int) -> float:
        return 0.5 + (0.01 * (number + 1) if job.change == f"without {number}" else 0.3 * bool(job.change))

    for trained, rows in ((True, 4), (False, 3)):
        found = attention_effect(planted(own, noise=0), trained)
        assert found.shape == (rows, 6)
        assert found == pytest.approx(np.tile(0.01 * np.arange(1, 7), (rows, 1)))
