"""The checks of the exercises."""

import itertools

import numpy as np
import pytest
import torch

from affscore_book.kit.statistics import student_interval
from affscore_book.similarity import exercises
from affscore_book.similarity.concepts import Concepts
from affscore_book.similarity.dissection import Dissection
from affscore_book.similarity.kernels import cka
from affscore_book.similarity.procrustes import procrustes


@pytest.fixture(scope="module")
def tables():
    random = np.random.default_rng(0)
    return exercises.two_tables(*(torch.from_numpy(np.maximum(random.normal(size=(112, 32, 2, 2)), 0)) for _ in "xy"))


def null(x, y, group, count, seed):
    random = np.random.default_rng(seed)
    return [procrustes(x, y[random.permutation(len(y))], group, null=0).value for _ in range(count)]


def test_any_null_of_the_right_measure_is_accepted_and_wrong_ones_are_told_why(capsys, tables):
    x, y = tables
    value = procrustes(x, y, "orthogonal", null=0).value
    cases = (
        (null(x, y, "orthogonal", 50, 1), "Right: "),
        (np.array(null(y, x, "orthogonal", 210, 7)), "Right: "),  # x shuffled in place of y
        ([], "there are 0 values"),
        (null(x, y, "relu", 99, 0), "this is the null of G_ReLU"),
        (np.add(null(x, y, "orthogonal", 99, 0), 0.05), "not values of orthogonal Procrustes"),
        ([value] * 99, "not values of orthogonal Procrustes"),  # the rows were not shuffled
        ([procrustes(x, y.roll(1, 0), "orthogonal", null=0).value] * 99, "not values of"),  # one order, many times
    )
    for answer, said in cases:
        exercises.check_null(x, y, answer)
        assert said in capsys.readouterr().out


def test_the_jackknife_leaves_out_networks(capsys):
    values = np.array([0.19, 0.12, 0.19, 0.09, 0.21, 0.07])
    pairs = list(itertools.combinations(range(4), 2))
    without = np.array([np.mean([v for v, pair in zip(values, pairs, strict=True) if i not in pair]) for i in range(4)])
    half = 3.182 * np.sqrt(3 / 4 * ((without - without.mean()) ** 2).sum())
    naive = student_interval(values)
    cases = (
        ((values.mean() - half, values.mean() + half), "Right"),
        (naive[1:], "takes six pairs for six results"),
        (naive, "takes six pairs for six results"),
        (list(naive), "it should be two, the lower end and the upper end"),
        ((0.0, 1.0), "Put the four v_i into the formula"),
        ((values.mean() - half / 2, values.mean() + half / 2), "Put the four"),
    )
    for answer, said in cases:
        exercises.check_jackknife(values, answer)
        assert said in capsys.readouterr().out


def right(x, y):
    return cka(x, y, null=0).value


def biased(x, y):
    """The diagonal is still in: the cosine of tables without the means of rows and columns."""
    return np.corrcoef(*((rows @ rows.T).ravel() for rows in (x - x.mean(0), y - y.mean(0))))[0, 1]


def shuffled(x, y, count=40):
    random = np.random.default_rng(3)
    return [right(x, y[random.permutation(len(y))]) for _ in range(count)]


@pytest.mark.parametrize(
    ("cka_of", "null_of", "said"),
    [
        (right, shuffled, "Right: "),
        (biased, shuffled, "the diagonal is still in"),
        (lambda x, y: np.corrcoef((x @ x.T).ravel(), (y @ y.T).ravel())[0, 1], shuffled, "take n - 2"),
        (lambda x, y: 0.9 * right(x, y), shuffled, "take n - 2"),
        (lambda x, y: np.sum((x @ x.T) * (y @ y.T)) / np.linalg.norm(x @ x.T) / np.linalg.norm(y @ y.T), shuffled,
         "the cosine of the tables as they are"),
        (right, lambda x, y: shuffled(x, y, 5), "gives 5 values"),
        (right, lambda x, y: [right(x, y)] * 40, "another order each time"),
    ],
)  # fmt: skip
def test_cka_that_was_built(capsys, cka_of, null_of, said):
    exercises.check_build(cka_of, null_of)
    assert said in capsys.readouterr().out


def test_units_without_a_category(capsys):
    masks = torch.zeros(1, 3, 2, 2, dtype=torch.bool)
    concepts = Concepts(torch.zeros(1, 1, 2, 2, dtype=torch.uint8), masks, tuple("abc"), ("object", "edge", "object"))
    iou = np.array([[0.5, 0.0, 0.0], [0.0, 0.1, 0.2], [0.03, 0.3, 0.04], [0.0, 0.01, 0.0]])
    found = Dissection(iou, (), 0.04, concepts.names)
    cases = (
        ({"object": 2, "edge": 2}, "Right: 2 of 4 units without 'object'"),
        ({"object": 2, "edge": 3}, "without 'edge' another number"),
        ({"edge": 2}, "no number for 'object'"),
        ({}, "no number for 'object', 'edge'"),
    )
    for counts, said in cases:
        exercises.check_left_out(found, concepts, counts)
        assert said in capsys.readouterr().out
    found = Dissection(np.vstack([iou, [[0.0, 0.2, 0.0]]]), (), 0.04, concepts.names)
    exercises.check_left_out(found, concepts, {"object": 2, "edge": 3})
    assert "what each category finds alone" in capsys.readouterr().out
