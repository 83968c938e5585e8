"""Distances of signatures: DTW against a plain dynamic programme, planted clusters, maps that can be drawn exactly."""

import itertools
import math

import numpy as np
import pytest
from grids import each
from made_signatures import made, programme, published, random_scores

from affscore.suite.comparable import sequence
from affscore.suite.distances import clusters, deviations, distances, dtw, groups, leaves, matrix, mds_map, tree
from affscore.suite.tables import Table

SEEDS = range(5)


@each("seed", SEEDS)
def test_dtw_is_the_least_cost_of_a_warping_path(seed):
    generator = np.random.default_rng(seed)
    n, m = generator.integers(1, 40, size=2)
    a, b = generator.normal(size=n), generator.normal(size=m)
    assert dtw(a, b) == pytest.approx(programme(a, b), rel=1e-12)


@each(
    ("a", "b", "message"),
    [
        ([], [1.0], r"a has shape \(0,\)"),
        ([1.0], [math.nan], r"b has shape \(1,\) and 1 values that are not finite"),
        ([1.0], [[1.0]], r"b has shape \(1, 1\)"),
    ],
)
def test_dtw_refuses_what_has_no_distance(a, b, message):
    with pytest.raises(ValueError, match=message):
        dtw(a, b)


def test_distances_are_those_of_the_means_of_live_calls():
    one, two = random_scores(0, 3, 6), random_scores(1, 2, 8)
    one[:, 2] = math.nan  # dead in every batch
    one[0, 4] = math.nan  # dead in one
    found = distances({"one": made(one), "two": made(two, gates=[0])})
    alive = [np.mean(column[~np.isnan(column)]) for column in one.T if not np.isnan(column).all()]
    np.testing.assert_allclose(sequence(made(one)), alive, rtol=1e-14)
    expected = programme(np.array(alive), two.mean(axis=0))
    np.testing.assert_allclose(matrix(found), [[0, expected], [expected, 0]], rtol=1e-12)


def euclidean(points):
    """The table of distances of points, shape (networks, dimension)."""
    points = np.asarray(points, dtype=np.float64)
    apart = np.linalg.norm(points[:, None] - points, axis=-1)
    names = [f"n{i}" for i in range(len(points))]
    return Table({"model": names, "weights": ["random"] * len(points)} | dict(zip(names, apart.tolist(), strict=True)))


def on_the_map(table):
    """The places, shape (networks, 2), and their distances."""
    points = np.column_stack([table["x"], table["y"]])
    return points, np.linalg.norm(points[:, None] - points, axis=-1)


@each("seed", SEEDS)
def test_planted_clusters_are_found(seed):
    generator = np.random.default_rng(seed)
    truth = generator.permutation(np.repeat([0, 1, 2], 6))
    signatures = {}
    for i, label in enumerate(truth):
        length = generator.integers(12, 30)
        base = np.interp(
            np.linspace(0, 1, length), [0, 0.5, 1], [(0.9, 0.9, 0.9), (0.3, 0.9, 0.3), (0.2, 0.4, 0.6)][label]
        )
        signatures[f"n{i}"] = made(base + generator.normal(0, 0.01, length))
    apart = distances(signatures)
    found = groups(apart, 3)
    labels = {(truth[i], found[f"n{i}"]) for i in range(len(truth))}
    assert len(labels) == 3  # a label each way
    assert sorted(leaves(apart)) == sorted(signatures)
    together = [truth[int(name[1:])] for name in leaves(apart)]
    assert len(list(itertools.groupby(together))) == 3  # neighbours in the dendrogram
    table = clusters(apart)
    assert 3 <= len(table) <= 4 and ", ".join(table["networks"]) == ", ".join(leaves(apart))
    assert table["size"].tolist() == [names.count(",") + 1 for names in table["networks"]]
    assert set(found.values()) == {1, 2, 3} and groups(apart, 1) == dict.fromkeys(leaves(apart), 1)


def test_average_linkage_merges_at_the_mean_distance():
    apart = euclidean([[0.0], [1.0], [5.0]])
    np.testing.assert_allclose(tree(apart)[:, 2], [1.0, 4.5], rtol=1e-12)
    assert set(groups(apart, 99).values()) == {1, 2, 3}  # no more clusters than networks


@each("dimension", [1, 2])
@each("seed", SEEDS)
def test_a_flat_arrangement_is_reproduced(dimension, seed):
    given = euclidean(np.random.default_rng(seed).normal(size=(9, dimension)))
    found = mds_map(given)
    points, apart = on_the_map(found)
    assert found.notes == ["Stress 0.00."] and list(found["model"]) == list(given["model"])
    np.testing.assert_allclose(apart, matrix(given), atol=1e-5)
    np.testing.assert_allclose(points.mean(axis=0), 0, atol=1e-9)
    assert points[:, 0].std() >= points[:, 1].std()
    assert (points.max(axis=0) >= -points.min(axis=0) - 1e-9).all()


@each("seed", SEEDS)
def test_a_map_reports_the_stress_that_it_has_and_lowers_it(seed):
    given = euclidean(np.random.default_rng(seed).normal(size=(12, 6)))
    points, apart = on_the_map(found := mds_map(given))
    stress = math.sqrt(((apart - matrix(given)) ** 2).sum() / (matrix(given) ** 2).sum())
    assert found.notes == [f"Stress {stress:.2f}."] and 0.05 < stress < 0.5
    # Moving any point a little does not help: a minimum.
    for i, direction in itertools.product(range(12), np.vstack([np.eye(2), -np.eye(2)]) * 0.02):
        moved = points.copy()
        moved[i] += direction
        other = np.linalg.norm(moved[:, None] - moved, axis=-1)
        assert ((other - matrix(given)) ** 2).sum() > ((apart - matrix(given)) ** 2).sum()
    np.testing.assert_array_equal(on_the_map(mds_map(given))[0], points)


def test_a_map_does_not_depend_on_the_order():
    points = np.random.default_rng(3).normal(size=(8, 2))
    order = np.random.default_rng(4).permutation(8)
    shuffled, straight = (on_the_map(mds_map(euclidean(each)))[0] for each in (points[order], points))
    np.testing.assert_allclose(shuffled, straight[order], atol=1e-5)


def test_equal_networks_stand_on_one_point():
    found = mds_map(euclidean(np.zeros((3, 1))))
    assert found.notes == ["Stress 0.00."] and np.all(found["x"] == 0) and np.all(found["y"] == 0)


def test_deviations_are_distances_to_the_reference():
    runs = {
        data: {name: published(name, random_scores(10 * i + j, 2, 12), data=data) for j, name in enumerate(names)}
        for i, (data, names) in enumerate(
            {"imagenet": ["alexnet", "vgg11"], "cifar10": ["alexnet", "vgg11"], "random": ["vgg11"]}.items()
        )
    }
    table = deviations(runs)
    for data in ("cifar10", "random"):
        expected = [
            programme(runs["imagenet"][name].mean, runs[data][name].mean) if name in runs[data] else math.nan
            for name in ("alexnet", "vgg11")
        ]
        np.testing.assert_allclose(table[data][:2], expected)
        np.testing.assert_allclose(table[data][2:], [np.nanmean(expected), np.nanstd(expected)])
    assert "imagenet" not in table.columns and table.notes == ["DTW distance to imagenet."]
    assert deviations({"cifar10": runs["cifar10"]} | runs)["imagenet"][0] == pytest.approx(table["cifar10"][0])


def test_deviations_refuse_what_cannot_be_compared():
    run = {"alexnet": published("alexnet", random_scores(0, 1, 5))}
    trailing = {"alexnet": published("alexnet", random_scores(0, 1, 5), pool="trailing")}
    with pytest.raises(ValueError, match="runs holds 1; it should hold at least 2"):
        deviations({"imagenet": run})
    with pytest.raises(ValueError, match="differ in their pool"):
        deviations({"a": run, "b": trailing})
