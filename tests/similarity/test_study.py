"""The stored comparisons of trained networks."""

import json
import math
import runpy
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy import stats

from affscore_book.kit.statistics import student_interval
from affscore_book.similarity.study import load_similarity

KINDS = ("resnet20", "resnet20_without_last_relu")

DATA = Path(__file__).resolve().parents[2] / "book" / "data" / "similarity"
STORED = DATA / "study.json"


def test_stored_results_are_strict_json_with_possible_values():
    json.loads(STORED.read_text(encoding="utf-8"), parse_constant=lambda name: pytest.fail(f"{name} is not JSON"))
    study = load_similarity(STORED)
    for kind, kernels in study.settings["kinds"].items():
        pairs = math.comb(study.networks(kind), 2)
        layers = len(study.layers(kind))
        for measure in study.settings["measures"][kind]:
            values = study.procrustes(kind, measure)
            assert values.shape == (pairs, layers, 2) and (values > 0.2).all() and (values < 1).all()
            # In the mean, networks are nearer to each other than to shuffled ones, at every layer.
            assert (study.heights(kind, measure).mean(0) > 0).all()
        for kernel in kernels:
            maps = study.maps(kind, kernel)
            assert maps.shape == (pairs, layers, layers) and (np.abs(maps) <= 1).all()
            assert np.abs(study.maps(kind, kernel, "null")).mean() < 0.05


def test_a_network_that_is_different_makes_the_interval_wide():
    """Planted: every pair with the first network is worse. Six values with a gap are not six independent results."""
    study = load_similarity(STORED)
    with_first = np.array([0.0, 0.0, 0.0, 1.0, 1.0, 1.0])  # pairs 01 02 03 12 13 23
    found = study.over_networks(with_first)
    # Without the first network the mean is 1, without another 1/3: the jackknife by hand, with 3 degrees of freedom.
    without = np.array([1, 1 / 3, 1 / 3, 1 / 3])
    half = stats.t.ppf(0.975, 3) * math.sqrt(3 / 4 * ((without - without.mean()) ** 2).sum())
    assert found.mean == 0.5 and found.low == pytest.approx(0.5 - half) and found.high == pytest.approx(0.5 + half)
    assert half > student_interval(with_first).high - 0.5
    even = study.over_networks(np.full(6, 0.3))
    assert even.mean == pytest.approx(0.3) and math.isnan(even.low) and math.isnan(even.high)
    planted = np.where(study.inside("resnet20"), 0.2, 0.5)[None] + np.zeros((6, 1))
    np.testing.assert_allclose(study.outside_minus_inside("resnet20", planted), 0.3)


@pytest.mark.parametrize("top_of", ["map", "pixels"])
def test_units_are_counted_once_by_category(top_of):
    """At alpha = 0 the shares of the categories add up to the fraction of interpretable units, network by network."""
    study = load_similarity(STORED)
    for kind in KINDS:
        shares = study.categories(kind, top_of=top_of)
        assert set(shares) <= {"object", "level", "edge", "part"}
        total = np.sum(list(shares.values()), axis=0)
        networks = 16 if kind == "resnet20" else 4
        assert total.shape == (networks, 3)
        np.testing.assert_allclose(total[:, 0], study.curves(kind, top_of=top_of)[:, 0], atol=1e-4)
        for layer in study.settings["dissection"]["residual"]:
            for first, second in study.best_units(f"{kind}_0", layer, top_of=top_of):
                assert first[0] != second[0] and 1 > first[2] >= second[2] > 0
        assert study.inside_rises(kind, top_of=top_of).shape == (networks,)


@pytest.mark.weekly  # what it calls is tested above, and the decade's script trains every time
def test_the_script_measures_in_small_and_goes_on(tmp_path, monkeypatch, capsys):
    """The stored study's script in small; a second call goes on from the file and repeats nothing."""
    out = tmp_path / "study.json"

    def run():
        monkeypatch.setattr(sys, "argv", ["make.py", "--smoke", "--out", str(out)])
        runpy.run_path(str(DATA / "make.py"), run_name="__main__")
        return capsys.readouterr().out.count("stored")

    threads = torch.get_num_threads()
    try:
        assert run() > 4 and run() == 0
        content = json.loads(out.read_text(encoding="utf-8"))
        del content["inside"]["map"]["resnet20_1"]
        out.write_text(json.dumps(content), encoding="utf-8")
        assert run() == 1
    finally:
        torch.set_num_threads(threads)
    study = load_similarity(out)
    assert study.procrustes("myrtle", "relu").shape == (1, 4, 2)
    for top_of in ("map", "pixels"):
        total = np.sum(list(study.categories("resnet20", top_of=top_of).values()), axis=0)
        np.testing.assert_allclose(total, study.curves("resnet20", top_of=top_of), atol=1e-4)  # both of one rotation
        ends = [np.diff(study._content["inside"][top_of][f"resnet20_{seed}"]["block9.a.0"][0])[0] for seed in (0, 1)]
        np.testing.assert_allclose(study.inside_rises("resnet20", top_of=top_of), ends, atol=1e-9)


@pytest.mark.parametrize("text", ["", "{}", "[1]", '{"settings": 1', "\xff"])
def test_damaged_results_are_refused(text, tmp_path):
    (tmp_path / "results.json").write_text(text, encoding="latin-1")
    with pytest.raises(ValueError, match="is not a complete file of book/data/similarity"):
        load_similarity(tmp_path / "results.json")
