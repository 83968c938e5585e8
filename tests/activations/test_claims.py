"""The verdicts on single activations follow the sweep and the laws, and turn where these do."""

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

from affscore_book.activations import claims
from affscore_book.activations.laws import score_curve
from affscore_book.activations.sweeps import load_sweep

SWEEP = load_sweep(Path(__file__).resolve().parents[2] / "book" / "data" / "activations" / "figure_8.json")


def verdicts(table):
    return {row["what"]: row["verdict"] for row in table.rows()}


@pytest.fixture(scope="module")
def told():
    return verdicts(claims.story(SWEEP, ["relu"])) | verdicts(claims.others(SWEEP, seeds=1))


def test_a_reading_is_undecided_where_a_guess_decides_it(told):
    """The sigmoid's tail crosses 0.1 between the guesses of the largest standard deviation."""
    crossing = brentq(lambda std: score_curve("sigmoid", -20.0, std).item() - 0.1, 1, 5)
    assert min(claims.WIDEST) < crossing < max(claims.WIDEST)
    assert told["sigmoid, lowest"] == "undecided"


def test_lowering_silu_where_relu_is_dead_changes_no_verdict_on_the_same_inputs(told):
    row = "SiLU − ReLU, same inputs, d = 300"
    assert told[row] == "disagrees"
    silu = SWEEP.scores["silu"]
    for part, verdict in ((~SWEEP.alive("relu"), "disagrees"), (SWEEP.alive("relu"), "agrees")):
        lowered = replace(SWEEP, scores=SWEEP.scores | {"silu": np.where(part, silu - 0.5, silu)})
        assert verdicts(claims.story(lowered, ["relu"]))[row] == verdict


def test_means_count_only_where_both_have_a_score(told):
    """Lowering SiLU where ReLU is dead changes nothing; where ReLU is alive it makes SiLU the more non-linear."""
    row = "SiLU, non-linear means more than ReLU, d = 300"
    assert told[row] == told["gelu, non-linear means more than ReLU"] == "disagrees"
    silu = SWEEP.scores["silu"]
    for part, verdict in ((~SWEEP.alive("relu"), "disagrees"), (SWEEP.alive("relu"), "agrees")):
        lowered = replace(SWEEP, scores=SWEEP.scores | {"silu": np.where(part, silu - 0.9, silu)})
        assert verdicts(claims.story(lowered, ["relu"]))[row] == verdict


def test_pooling_keeps_the_score_of_many_channels_only(told):
    assert told["pooling, largest change, 64 channels"] == "agrees"
    assert told["pooling, largest change, 1 channel"] == "disagrees"


def test_numbers_of_the_slides_are_met_within_rounding_or_not(told, monkeypatch):
    row = "x^k, largest distance"
    assert told[row] == "agrees" and told["8 pooled scores, largest distance"] == "failed"
    monkeypatch.setitem(claims.SLIDES_POLYNOMIALS, 3, 0.72)
    assert verdicts(claims.others(SWEEP, seeds=1))[row] == "disagrees"


def test_what_the_slides_do_not_tell_is_not_run(told):
    assert [row for row, verdict in told.items() if verdict == "not run here"] == [
        "ReLU, tanh, sigmoid on one input", "ReLU on three ranges"
    ]  # fmt: skip


def test_tanh_is_the_sigmoid_at_twice_the_width():
    for mean, std in ((-3.0, 0.5), (0.7, 2.0)):
        wide = score_curve("sigmoid", 2 * mean, 2 * std).item()
        assert score_curve("tanh", mean, std).item() == pytest.approx(wide, abs=1e-8)


def test_the_largest_change_is_a_magnitude():
    assert claims.largest([-0.3, 0.1])[0] == 0.3
    assert claims.distance({"a": 1.0, "b": 2.0}, {"a": 1.5, "b": 1.8}) == 0.5
    assert math.isclose(claims.by_widest({1.0: 3.0, 2.0: 1.0, 3.0: 2.0})[0], 1.0)
