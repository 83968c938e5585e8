"""What the trained networks say: on planted signatures, where the answer is known."""

import math
from pathlib import Path

import numpy as np
import pytest

from affscore.calls import Call
from affscore.signatures import Signature
from affscore_book.imagenet_signatures.calls import TRAINED, places
from affscore_book.imagenet_signatures.finding import trained_networks
from affscore_book.kit.statistics import student_interval
from affscore_book.kit.tables import Table
from affscore_study.imagenet_signatures.seen import trained_correlations
from affscore_study.imagenet_signatures.trained import skip_gap, skip_table, strongest_measure, widening, widening_table

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "imagenet_signatures"


def test_last_call_of_a_block_is_found(block_network):
    """The last call of a block is found whether the block has several modules or one.

    The book's ResNet20 has a module for each call; torchvision's blocks call one module twice or three times.
    """
    assert [at.tolist() for at in places(block_network([0.5] * 5)).values()] == [
        [False, True, False, True, False], [False, False, True, False, True],
    ]  # fmt: skip
    modules = ["relu", "layer1.0.relu", "layer1.0.relu", "layer1.0.relu", "layer1.1.relu", "layer1.1.relu"]
    calls = [Call(f"{m}:relu[{i}]", m, "relu", i, False, (4,), 1) for i, m in enumerate(modules)]
    inside, last = places(Signature(calls, np.full((1, 6), 0.5), batch_sizes=[9])).values()
    assert inside.tolist() == [False, True, True, False, True, False]
    assert last.tolist() == [False, False, False, True, False, True]


def test_a_planted_gap_is_found_and_swapping_the_calls_turns_it(block_network):
    rows = {i: np.array([0.1, 0.5, 0.7, 0.5, 0.7 + 0.02 * i]) for i in range(3)}
    nets = {i: block_network(row, [0.9, 0.6, 0.3, 0.6, 0.3]) for i, row in rows.items()}
    assert skip_gap(nets) == pytest.approx(student_interval([0.2, 0.21, 0.22]))
    inside, last = skip_table({"net": nets}).rows()
    assert [inside["negative"], last["negative"]] == pytest.approx([0.6, 0.3])
    assert [inside["score"], last["score"]] == pytest.approx([0.5, 0.71])
    turned = {i: block_network(row[[0, 2, 1, 4, 3]]) for i, row in rows.items()}
    assert skip_gap(turned).mean == pytest.approx(-0.21)


def test_planted_widening_is_found_and_equal_gaps_have_none(block_network):
    """A planted widening is found, and a network that keeps its gap has none."""
    start = {i: block_network([0.1, 0.5, 0.7 + 0.02 * i]) for i in range(3)}
    wider = {i: block_network([0.1, 0.4, 0.7 + 0.03 * i]) for i in range(3)}
    assert widening(start, wider) == pytest.approx(student_interval([0.1, 0.11, 0.12]))
    row, same = widening_table({"net": {"wide": (start, wider), "same": (start, start | {})}}).rows()
    assert (row["seeds"], row["network"], row["before training"]) == (3, "net", "wide")
    assert [row[key] for key in ("there", "trained", "wider by")] == pytest.approx([0.22, 0.33, 0.11])
    assert same["wider by"] == 0 and math.isnan(same["low"])  # equal values have no interval


def test_relatives_are_counted_together():
    names = ["net, seed 0", "net, seed 1", "efficientnet_lite0", "efficientnet_lite1"]
    assert [len(set(map(group, names))) for group in TRAINED.values()] == [4, 3, 2]


def test_undefined_measure_is_left_out_and_sign_may_be_either():
    """A measure without a number is left out, and the strongest one may be negative."""
    columns = {"CKA": [0.15, 0.151, math.nan], "norm": [-0.4, -0.6, -0.5]}
    table = Table({"model": ["a, seed 0", "b, seed 0", "c, seed 0"]} | columns)
    assert strongest_measure(table, ["CKA"], TRAINED["kinds"])[1] == pytest.approx(student_interval([0.15, 0.151]))
    strongest, found = strongest_measure(table, columns, TRAINED["kinds"])
    ordinary = student_interval(columns["norm"])
    assert strongest == "norm" and found.mean == pytest.approx(-0.5)
    # Of two measures, one may be strong by chance: only the end towards 0 moves.
    assert found.low == pytest.approx(ordinary.low) and found.high > ordinary.high


def test_correlations_are_of_each_network_alone():
    table, found = trained_correlations(FOLDER), trained_networks(FOLDER)
    assert table["model"].tolist() == list(found)
    for row in table.rows()[::5]:
        each = found[row["model"]]
        expected = np.corrcoef(each.mean, each.companions["cka"].mean(axis=0))[0, 1]
        assert row["CKA"] == pytest.approx(expected)
