"""What may be compared: settings that differ, folders, bad files, dead networks."""

import math

import numpy as np
import pytest
from grids import each
from made_signatures import made, published, random_scores

from affscore.suite.comparable import conditions, load_signatures, sequence
from affscore.suite.compare import (
    accuracy_correlations,
    companion_correlations,
    densities,
    history,
    statistics,
)
from affscore.suite.distances import distances


@each(
    ("change", "key"),
    [
        ({"pool": "trailing"}, "pool"),
        ({"covariance": "empirical"}, "covariance"),
        ({"size": 128}, "batch size"),
        ({"data": {"dataset": "cifar10"}}, "data"),
        ({"data": "cifar10"}, "data"),
        ({"calls": "layer3.*"}, "calls"),
    ],
)
@each(
    "function", [distances, statistics, history, densities, companion_correlations, accuracy_correlations]
)
def test_signatures_of_different_settings_are_refused(change, key, function):
    companions = {"cka": random_scores(2, 1, 5)}
    plain = published("resnet18", random_scores(0, 1, 5), companions=companions)
    other = published("resnet50", random_scores(1, 1, 5), companions=companions, **change)
    assert conditions(plain)[key] != conditions(other)[key]
    with pytest.raises(
        ValueError, match=f"signatures differ in their {key}: .*not comparable; pick those of one {key}"
    ):
        function({"a": plain, "b": other})


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
    (tmp_path / "3.json").write_text((tmp_path / "1.json").read_text()[:-40])
    found, unreadable = load_signatures(tmp_path)
    assert list(found) == ["alexnet", "vgg11"] and found["vgg11"].scores.tolist() == two.scores.tolist()
    assert [item["file"] for item in unreadable] == ["3.json"] and "not complete JSON" in unreadable[0]["reason"]


def test_a_network_without_live_calls_is_named():
    dead = {"a": made([[0.5, 0.6]]), "b": made([[math.nan, math.nan]], model="deadnet")}
    with pytest.raises(ValueError, match="signature of deadnet has 2 activation calls, all dead"):
        distances(dead)
    with pytest.raises(ValueError, match="signature of network has no activation call"):
        sequence(made([[]]))
