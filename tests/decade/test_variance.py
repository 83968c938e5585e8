"""Where differences between signatures come from: planted ones are found, each in its own row."""

import math

import numpy as np
import pytest
from planted_decade import signature

from affscore_book.decade.collection import END, START, Course, Trained
from affscore_study.decade.variance import (
    PLACES,
    known_at_start,
    moved_half,
    movers,
    profile,
)

CALLS = 200


def network(name, seed, trained, start=None, batches=None) -> Trained:
    parts = (trained, *(trained if part is None else part for part in (start, batches)))
    trained, start, batches = (signature(np.subtract(part, 10)) for part in parts)  # no score is above 1
    found = {(END, "spatial"): trained, (START, "spatial"): start}
    return Trained(name, seed, 2015, 1, 10, 1.0, 0.9, {}, found, batches)


def planted(architecture=0.0, seed=0.0, training=0.0, batch=0.0, architectures=5, seeds=3):
    """Networks whose scores are sums of independent parts with these standard deviations."""
    rng = np.random.default_rng(0)
    common = rng.normal(size=CALLS)
    decade = {}
    for a in range(architectures):
        base = common + architecture * rng.normal(size=CALLS)
        decade[f"a{a}"] = {}
        for s in range(seeds):
            trained = base + seed * rng.normal(size=CALLS)
            start = trained + training * rng.normal(size=CALLS)
            batches = trained + batch * rng.normal(size=(8, CALLS))
            decade[f"a{a}"][s] = network(f"a{a}", s, trained, start, batches)
    return decade


def test_what_is_known_at_the_start():
    networks = planted(architecture=1, seed=0.3, training=1)
    networks["short"] = {s: network("short", s, [0.1, 0.2]) for s in range(2)}  # of two calls nothing is said,
    networks["alone"] = {0: network("alone", 0, np.zeros(CALLS))}  # and of one seed
    table = known_at_start(networks)
    assert len(table.rows()) == 5
    for row in table.rows():
        assert row["ceiling"] == pytest.approx((2 / 2.09) ** 2, abs=0.05)
        assert row["start"] == pytest.approx(4 / (2.09 * 3.09), abs=0.12) and row["seeds"] == 3


@pytest.mark.parametrize("calls", [1, 2, 7, 30])
def test_a_profile_keeps_straight_lines_and_ends(calls):
    expected = np.linspace(0.3, 0.9, PLACES) if calls > 1 else np.full(PLACES, 0.3)
    np.testing.assert_allclose(profile(np.linspace(0.3, 0.9, calls)), expected)


@pytest.mark.parametrize("half", [3.0, 20.0, 700.0])
def test_a_call_that_moves_at_a_step_is_found_there(half):
    steps = np.unique(np.r_[0, np.geomspace(1, 3440, 400).round()])
    path = 1 / (1 + (half + 1) ** 4 / (steps + 1) ** 4)
    scores = np.stack([0.9 - 0.3 * path, np.full(len(steps), 0.5), 0.9 - 0.3 * path], axis=1)
    scores[-1], scores[5, 2] = [0.6, 0.51, 0.6], np.nan  # the third was dead once
    found = moved_half(Course(steps, scores, np.zeros(len(steps))))
    assert math.log(found[0] + 1) == pytest.approx(math.log(half + 1), abs=0.05) and np.isnan(found[1:]).all()


def test_later_calls_that_move_later():
    steps = np.r_[0, np.geomspace(1, 1000, 60)]
    halves = np.geomspace(3, 300, 8)
    scores = 0.5 + 0.4 / (1 + (halves / (steps[:, None] + 1e-9)) ** 3)
    courses = {"up": scores, "down": scores[:, ::-1], "few": scores[:, :3]}
    table = movers({name: Course(steps, found, steps) for name, found in courses.items()})
    assert table.row("up")["place and step"] == 1 and table.row("down")["place and step"] == -1
    assert math.isnan(table.row("few")["p"]) and table.row("few")["moved"] == 3
    assert table.row("up")["p"] < 0.05 and table.row("up")["rise"] == pytest.approx(np.ptp(scores.mean(axis=1)))
    assert table.row("up")["first"] == pytest.approx(3, rel=0.2) and table.row("up")["moved"] == 8
