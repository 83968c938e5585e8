"""The verdicts on single activations follow the sweep and the laws, and turn where these do."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import brentq

from affscore_book.activations.laws import score_curve
from affscore_book.activations.sweeps import load_sweep
from affscore_study.activations import claims
from affscore_study.kit.rules import judge, read_rules

SWEEP = load_sweep(Path(__file__).resolve().parents[2] / "book" / "data" / "activations" / "figure_8.json")


OUT, ONE = "(d = 300, dead left out)", "(d = 300, dead as 1)"


def verdicts(table):
    return {row["what"]: row["verdict"] for row in table.rows()}


def means(sweep):
    """By reading: the number and the verdict that the reading would have alone."""
    found = claims.more_means(["silu"], claims.conventions(sweep, "300"))
    rows = judge(read_rules("activations", "story")[:1], {"silu_means": found})
    return {row.what.partition("relu ")[2]: (row.ours, replace(row, depends_on="").verdict) for row in rows}


@pytest.fixture(scope="module")
def told():
    return verdicts(claims.story(SWEEP, ["relu"])) | verdicts(claims.others(SWEEP, seeds=1))


def test_a_reading_is_undecided_where_a_guess_decides_it(told):
    """The sigmoid's tail crosses 0.1 between the guesses of the largest standard deviation."""
    crossing = brentq(lambda std: score_curve("sigmoid", -20.0, std).item() - 0.1, 1, 5)
    assert min(claims.WIDEST) < crossing < max(claims.WIDEST)
    assert told["sigmoid, lowest"] == "undecided"


def test_verdict_names_the_convention_for_dead_calls(told):
    """Where the convention for dead calls decides, the verdict says so.

    SiLU is not the more non-linear where ReLU has a score, and clearly so where a dead ReLU counts as affine.
    """
    (few, no), (many, yes) = (means(SWEEP)[reading] for reading in (OUT, ONE))
    assert (no, yes) == ("disagrees", "agrees") and few < 4 <= many
    for name, d in (("silu", 300), ("gelu", 300), ("gelu", 1), ("silu and gelu", 300)):
        what = f"{name}, non-linear means more than relu (d = {d}, dead "
        assert told[f"{what}left out)"] == told[f"{what}as 1)"] == "depends on dead calls"
    for name in ("silu", "silu and gelu"):  # in one dimension by itself, whatever 300 say
        one = f"{name}, non-linear means more than relu (d = 1, dead "
        assert (told[f"{one}left out)"], told[f"{one}as 1)"]) == ("disagrees", "undecided")
    for name in ("silu", "hardswish"):
        assert told[f"{name} − relu {OUT}"] == told[f"{name} − relu {ONE}"] == "depends on dead calls"
    assert told[f"leaky_relu − relu6 {ONE}"] == "agrees"


def test_each_reading_counts_its_own_inputs():
    """Where ReLU is dead SiLU's scores decide one reading and not the other; where it is alive they decide both."""
    silu, alive = SWEEP.scores["silu"], SWEEP.alive("relu")
    straight, bent = (
        means(replace(SWEEP, scores=SWEEP.scores | {"silu": scores}))
        for scores in (np.where(alive, silu, 1.0), np.where(alive, silu - 0.9, silu))
    )
    assert straight[OUT] == means(SWEEP)[OUT] and straight[ONE][1] == "disagrees"
    assert bent[OUT][1] == bent[ONE][1] == "agrees"


def test_fewest_extra_means_count():
    """Of several activations the fewest extra means count, and may be none."""
    out, several = (
        claims.more_means(names, claims.conventions(SWEEP, "300"))["d = 300, dead left out"]
        for names in (["gelu"], ["gelu", "tanh"])
    )
    assert out == 0.0 == several


def test_relu_is_most_nonlinear_on_the_notebooks_input(told, monkeypatch):
    """On the input of the released notebook, ReLU is the most non-linear activation."""
    rows = [row for row in told if "on N(−1, 2²)" in row]
    assert len(rows) == 3 and {told[row] for row in rows} == {"agrees"}
    monkeypatch.setattr(claims, "NOTEBOOK_INPUT", (2.0, 1.0))
    found = claims.fixed_input()
    assert max(found["fixed_input"].values()) < 0.02 < found["notebook"]


def test_numbers_of_the_slides_are_met_within_rounding_or_not(told, monkeypatch):
    row = "x^k, largest distance"
    assert told[row] == "agrees"
    printed = [verdict for what, verdict in told.items() if "printed scores" in what]
    assert len(printed) == 3 and set(printed) <= {"reproduced with settings that we recovered", "undecided"}
    monkeypatch.setitem(claims.SLIDES_POLYNOMIALS, 3, 0.72)
    assert verdicts(claims.others(SWEEP, seeds=1))[row] == "disagrees"
