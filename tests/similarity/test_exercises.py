"""The checks of the exercises."""

import itertools

import numpy as np
import pytest
import torch

from affscore_book.kit.statistics import student_interval
from affscore_book.similarity import exercises
from affscore_book.similarity.concepts import Concepts
from affscore_book.similarity.procrustes import procrustes


@pytest.fixture(scope="module")
def tables():
    random = np.random.default_rng(0)
    return exercises.two_tables(*(np.maximum(random.normal(size=(112, 32, 2, 2)), 0) for _ in "xy"))


def null(x, y, group, count, seed):
    random = np.random.default_rng(seed)
    return [procrustes(x, y[random.permutation(len(y))], group, null=0).value for _ in range(count)]


def test_any_null_of_the_right_measure_is_accepted(capsys, tables):
    """Any null of the right measure is accepted, and the error of a wrong one says what it is."""
    x, y = tables
    value = procrustes(x, y, "orthogonal", null=0).value
    cases = (
        (null(x, y, "orthogonal", 50, 1), "Right: "),
        (np.array(null(y, x, "orthogonal", 210, 7)), "Right: "),  # x shuffled in place of y
        ([], "there are 0 values"),
        (null(x, y, "relu", 99, 0), "this is the null of G_ReLU"),
        (np.add(null(x, y, "orthogonal", 99, 0), 0.05), "not values of orthogonal Procrustes"),
        ([value] * 99, "not values of orthogonal Procrustes"),  # the rows were not shuffled
        ([procrustes(x, np.roll(y, 1, 0), "orthogonal", null=0).value] * 99, "not values of"),  # one order, many times
    )
    for answer, said in cases:
        exercises.check_null(x, y, answer)
        assert said in capsys.readouterr().out


def missed(studies=4000, shared=True, seed=1):
    """The shares of intervals without 0: of pairs as six results, and of the jackknife."""
    random, pairs = np.random.default_rng(seed), list(itertools.combinations(range(4), 2))
    counts = np.zeros(2)
    for _ in range(studies):
        own = random.normal(size=4)
        pair_of = {pair: own[list(pair)].sum() + 0.3 * random.normal() for pair in pairs}
        values = np.array(list(pair_of.values())) if shared else random.normal(size=6)
        without = [values[[i not in pair for pair in pairs]].mean() for i in range(4)]
        half = 3.182 * np.sqrt(3 / 4 * ((without - np.mean(without)) ** 2).sum())
        counts += student_interval(values).low > 0 or student_interval(values).high < 0, abs(values.mean()) > half
    return counts / studies


def test_intervals_that_miss_are_counted(capsys):
    right = missed()
    cases = (
        (right, "Right: about 3"),
        (list(missed(1000, seed=2)), "Right: "),
        (1 - right, "the shares that hold the truth"),
        (right[::-1], "first the share for six results"),
        (missed(1000, shared=False), "six independent numbers would give this"),
        ((0.2, 0.2), "give every network one number"),
        ([0.3], "there are 1 numbers"),
    )
    for answer, said in cases:
        exercises.check_coverage(answer)
        assert said in capsys.readouterr().out


def centred(table):
    table, n = np.array(table), len(table)
    np.fill_diagonal(table, 0)
    sums = table.sum(0)
    table += sums.sum() / ((n - 1) * (n - 2)) - (sums + sums[:, None]) / (n - 2)
    np.fill_diagonal(table, 0)
    return table


def with_its_diagonal(table):
    return table - table.mean(0) - table.mean(0)[:, None] + table.mean()


def diagonal_out_at_the_start_only(table):
    found = centred(table)
    return found + np.eye(len(table))


def in_place(table):
    table[:] = centred(table)
    return table


@pytest.mark.parametrize(
    ("centred_of", "said"),
    [
        (centred, "Right: "),
        (lambda table: torch.from_numpy(centred(table)), "Right: "),
        (lambda table: centred(table).tolist(), "Right: "),
        (with_its_diagonal, "the diagonal is still in"),
        (diagonal_out_at_the_start_only, "only the diagonal is wrong"),
        (lambda table: with_its_diagonal(table * (1 - np.eye(len(table)))), "divide by n - 2, not by n"),
        (in_place, "copy it first"),
        (lambda table: centred(table)[0], "it should be (12, 12)"),
    ],
)
def test_tables_that_were_centred(capsys, centred_of, said):
    exercises.check_centred(centred_of)
    assert said in capsys.readouterr().out


def test_units_without_a_category(capsys):
    masks = torch.zeros(1, 3, 2, 2, dtype=torch.bool)
    concepts = Concepts(torch.zeros(1, 1, 2, 2, dtype=torch.uint8), masks, tuple("abc"), ("object", "edge", "object"))
    iou = np.array([[0.5, 0.0, 0.0], [0.0, 0.1, 0.2], [0.03, 0.3, 0.04], [0.0, 0.01, 0.0]])
    cases = (
        ({"object": 2, "edge": 2}, "Right: 2 of 4 units without 'object'"),
        ({"object": 2, "edge": 3}, "without 'edge' another number"),
        ({"edge": 2}, "no number for 'object'"),
        ({}, "no number for 'object', 'edge'"),
    )
    for counts, said in cases:
        exercises.check_left_out(iou, concepts, counts)
        assert said in capsys.readouterr().out
    exercises.check_left_out(np.vstack([iou, [[0.0, 0.2, 0.0]]]), concepts, {"object": 2, "edge": 3})
    assert "what each category finds alone" in capsys.readouterr().out
