"""The paper's tables: statistics, history, densities and correlations against NumPy, and planted relations."""

import math

import numpy as np
import pytest
from made_signatures import made, published, random_scores

from affscore.companions import MEASURES
from affscore_book.kit.architectures import facts
from affscore_study.suite.compare import (
    PREDICTORS,
    accuracy_correlations,
    companion_correlations,
    density_curves,
    history,
    statistics,
)

SEEDS = range(5)


def test_statistics_are_those_of_the_live_calls():
    rows = random_scores(0, 4, 7)
    rows[:, 3] = math.nan
    table = statistics({"net": made(rows)})
    values = np.delete(rows.mean(axis=0), 3)
    (row,) = table.rows()
    assert row["calls"] == 7 and row["dead"] == 1 and row["model"] == "net" and row["weights"] == "unknown"
    expected = [values.mean(), np.median(values), values.min(), values.max(), np.ptp(values), values.std(), values[-1]]
    np.testing.assert_allclose([row[k] for k in ("mean", "median", "min", "max", "spread", "std", "last")], expected)
    assert row["batch_std"] == pytest.approx(np.delete(rows.std(axis=0), 3).mean())
    assert math.isnan(statistics({"net": made(rows[:1])})["batch_std"][0])


def test_history_is_by_year_with_unknown_networks_last():
    """The history is in the order of publication, and unknown networks come last."""
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
    signatures = {"a": made(rows), "b": made(rows[:, :2])}
    grid, curves = density_curves(signatures)
    sample = rows[0]
    width = sample.std(ddof=1) * len(sample) ** (-1 / 5)
    z = (grid[:, None] - sample) / width
    expected = np.exp(-(z**2) / 2).mean(axis=1) / (width * math.sqrt(2 * math.pi))
    np.testing.assert_allclose(curves["a"], expected, rtol=1e-9)
    assert np.trapezoid(curves["a"], grid) == pytest.approx(1, abs=0.01)


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


def test_dead_calls_are_left_out_of_correlations():
    rows, cka = random_scores(0, 2, 9), random_scores(1, 2, 9)
    rows[:, 4] = math.nan
    cka[:, 7] = math.nan
    table = companion_correlations({"a": made(rows, companions={"cka": cka})})
    kept = [0, 1, 2, 3, 5, 6, 8]
    expected = np.corrcoef(rows.mean(axis=0)[kept], cka.mean(axis=0)[kept])[0, 1]
    assert table["CKA"][0] == pytest.approx(expected) and table["calls"][0] == 8
    assert "norm" not in table.columns


def test_signatures_without_companions_are_named():
    plain, full = made(random_scores(0, 1, 4)), made(random_scores(0, 1, 4), companions={"cka": random_scores(1, 1, 4)})
    with pytest.raises(ValueError, match=r"none of the companion measures CKA, .*; take them with companions=True"):
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
    # Few networks have no correlation.
    seven = accuracy_correlations(signatures, least=7)
    assert [math.isnan(value) for value in seven["median"]] == [True, True, False]
    assert "Groups of fewer than 7 networks have no correlation." in seven.notes
    with pytest.raises(ValueError, match="a published ImageNet accuracy for 7; a correlation needs at least 8"):
        accuracy_correlations(signatures, least=8)


def test_a_planted_relation_with_accuracy_is_the_strongest():
    names = [f"efficientnet_b{i}" for i in range(8)]
    table = accuracy_correlations({
        name: published(name, [0.1, 0.5, facts(name).accuracy / 100], "pretrained") for name in names
    })  # fmt: skip
    row = table.row("NAS-based")
    assert row["max"] == pytest.approx(1) and row["strongest"] in ("max", "mean", "spread", "std")
    assert math.isnan(row["min"]) and table.notes == []  # the least scores are constant
