"""The stored networks as they are read back."""

from __future__ import annotations

import json
import math
import shutil

import numpy as np
import pytest
from planted import FOLDER, stored
from scipy import stats

from affscore_book.decade.collection import END, START, course, load_clouds, load_decade, network_table
from affscore_book.decade.networks import SETTINGS


@pytest.fixture(scope="module")
def networks():
    return [network for seeds in stored().values() for network in seeds.values()]


def test_years_do_not_fall_and_every_result_is_there(networks):
    years = [network.year for network in networks]
    assert years == sorted(years) and len(networks) == len(list((FOLDER / "results").glob("*.json")))
    assert all(network.name.split()[0] in SETTINGS for network in networks)


def test_scores_are_those_of_the_file_and_of_the_first_batch(networks):
    for network in networks:
        file = FOLDER / "signatures" / f"{network.name}-{network.seed}.json".replace(" ", "-")
        states = json.loads(file.read_text(encoding="utf-8"))["states"]
        for pool in ("spatial", "trailing"):
            found = network.signatures[END, pool]
            np.testing.assert_array_equal(found.mean, np.array(states["trained"][pool]["scores"], dtype=float))
            assert found.companions["cka"].shape == (1, len(found.calls))
        norm = "start, norm measured"
        expected = states[norm if norm in states else "start"]["spatial"]["scores"]
        np.testing.assert_array_equal(network.signatures[START, "spatial"].mean, np.array(expected, dtype=float))
        assert (norm in states) == (("raw start", "spatial") in network.signatures)
        assert len(network.batches.scores) == 8
        np.testing.assert_allclose(network.batches.scores[0], network.end.mean, atol=2e-6, equal_nan=True)


def test_a_course_goes_from_the_start_to_the_trained_network(networks):
    followed = [network for network in networks if any(state.startswith("step ") for state in network.validation)]
    assert followed
    for network in followed:
        found = course(network)
        assert found.steps[0] == 0 and (np.diff(found.steps) > 0).all() and found.steps[-1] == network.steps == 3440
        np.testing.assert_array_equal(found.scores[0], network.signatures[START, "spatial"].mean)
        np.testing.assert_array_equal(found.scores[-1], network.end.mean)
        assert found.accuracy[-1] > 0.8 > 0.3 > found.accuracy[0]
        assert found.accuracy[-1] == pytest.approx(network.accuracy, abs=0.02)


def test_the_table_of_networks():
    decade = {name: seeds for name, seeds in stored().items() if name != "swin"} | {"swin": {0: stored()["swin"][0]}}
    for row in network_table(decade).rows():
        accuracies = [network.accuracy for network in decade[row["network"]].values()]
        count = len(accuracies)
        assert row["accuracy"] == pytest.approx(np.mean(accuracies)) and row["seeds"] == count
        half = stats.t.ppf(0.975, count - 1) * np.std(accuracies, ddof=1) / math.sqrt(count) if count > 1 else math.nan
        assert row["±"] == pytest.approx(half, nan_ok=True)


def test_a_damaged_or_missing_file_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="has no results"):
        load_decade(tmp_path)
    for folder in ("results", "signatures"):
        (tmp_path / folder).mkdir()
        file = tmp_path / folder / "vgg11-0.json"
        shutil.copy(FOLDER / folder / file.name, file)
    assert load_decade(tmp_path).keys() == {"vgg11"}
    file.write_text(file.read_text()[:-9], encoding="utf-8")
    with pytest.raises(ValueError, match=r"vgg11-0\.json is not a complete file"):
        load_decade(tmp_path)
    file.unlink()
    with pytest.raises(FileNotFoundError):
        load_decade(tmp_path)


def test_clouds_come_back_with_the_moments_of_the_course_and_damaged_ones_do_not(tmp_path):
    for name, found in load_clouds(FOLDER).items():
        network = stored()[name][0]
        assert len(found.moments) == len(course(network).steps) and 0 <= found.call < len(network.end.calls)
    with pytest.raises(FileNotFoundError, match="has no clouds"):
        load_clouds(tmp_path)
    file = tmp_path / "clouds" / "vgg11.json"
    file.parent.mkdir()
    file.write_text('{"call": 1, "moments": [')
    with pytest.raises(ValueError, match=r"vgg11\.json is not a complete file"):
        load_clouds(tmp_path)
