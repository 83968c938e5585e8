"""Distances of signatures: DTW against a plain dynamic programme, planted clusters next to each other in the tree."""

import itertools
import math

import numpy as np
import pytest
from made_signatures import made, programme, published, random_scores
from scipy.cluster.hierarchy import fcluster, leaves_list

from affscore_book.kit.sequences import sequence
from affscore_book.kit.tables import Table
from affscore_study.suite.distances import deviations, distances, matrix, tree

SEEDS = range(5)


def test_distances_are_those_of_the_means_of_live_calls():
    """Of networks whose names are those of other columns, too."""
    one, two = random_scores(0, 3, 6), random_scores(1, 2, 8)
    one[:, 2] = math.nan  # dead in every batch
    one[0, 4] = math.nan  # dead in one
    found = distances({"model": made(one), "weights": made(two, gates=[0])})
    alive = [np.mean(column[~np.isnan(column)]) for column in one.T if not np.isnan(column).all()]
    np.testing.assert_allclose(sequence(made(one)), alive, rtol=1e-14)
    expected = programme(np.array(alive), two.mean(axis=0))
    np.testing.assert_allclose(matrix(found), [[0, expected], [expected, 0]], rtol=1e-12)


@pytest.mark.parametrize("seed", SEEDS)
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
    links = tree(distances(signatures))
    found = fcluster(links, 3, criterion="maxclust")
    assert len(set(zip(truth.tolist(), found.tolist(), strict=True))) == 3  # a label each way
    assert len(list(itertools.groupby(truth[leaves_list(links)]))) == 3  # neighbours among the leaves


def test_average_linkage_merges_at_the_mean_distance():
    apart = {"to a": [0.0, 1.0, 5.0], "to b": [1.0, 0.0, 4.0], "to c": [5.0, 4.0, 0.0]}
    links = tree(Table({"model": ["a", "b", "c"]} | apart))
    np.testing.assert_allclose(links[:, 2], [1.0, 4.5], rtol=1e-12)


def test_deviations_are_distances_to_the_reference():
    of_data = {"imagenet": ["alexnet", "vgg11"], "cifar10": ["alexnet", "vgg11"], "random": ["vgg11"]}
    runs = {
        data: {name: published(name, random_scores(10 * i + j, 2, 12), data=data) for j, name in enumerate(names)}
        for i, (data, names) in enumerate(of_data.items())
    }
    table = deviations(runs)
    for data in ("cifar10", "random"):
        expected = [
            programme(runs["imagenet"][name].mean, runs[data][name].mean) if name in runs[data] else math.nan
            for name in ("alexnet", "vgg11")
        ]
        np.testing.assert_allclose(table[f"on {data}"], [*expected, np.nanmean(expected), np.nanstd(expected)])
    assert list(table.columns)[2:] == ["on cifar10", "on random"] and table.notes == ["DTW distance to imagenet."]


def test_deviations_refuse_what_cannot_be_compared():
    run, trailing = ({"a": published("a", random_scores(0, 1, 5), pool=pool)} for pool in ("spatial", "trailing"))
    with pytest.raises(ValueError, match="runs holds 1; it should hold at least 2"):
        deviations({"imagenet": run})
    with pytest.raises(ValueError, match="differ in their pool"):
        deviations({"a": run, "b": trailing})
