"""The stored networks as they are read back, and measured again."""

import json
import math
import shutil

import numpy as np
import pytest
from planted_decade import FOLDER, stored
from scipy import stats

from affscore import signature
from affscore_book.decade import again
from affscore_book.decade.collection import END, START, course, load_clouds, load_decade, load_further
from affscore_book.decade.equal import load_equal
from affscore_book.decade.rates import load_rates
from affscore_book.decade.training import colour_data
from affscore_book.kit.training import accuracy
from affscore_study.decade.shown import network_table


@pytest.fixture(scope="module")
def networks():
    return [network for seeds in stored().values() for network in seeds.values()]


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
    for row in network_table(stored()).rows():
        accuracies = [network.accuracy for network in stored()[row["network"]].values()]
        count = len(accuracies)
        assert row["accuracy"] == pytest.approx(np.mean(accuracies)) and row["seeds"] == count
        half = stats.t.ppf(0.975, count - 1) * np.std(accuracies, ddof=1) / math.sqrt(count)
        assert row["±"] == pytest.approx(half)


@pytest.mark.parametrize(("load", "folder", "what"), [
    (load_decade, "results", "results"), (load_clouds, "clouds", "clouds"),
    (load_equal, "equal", "scores with equally many numbers"), (load_further, "further", "further measures"),
    (lambda folder: load_rates(folder, {}, {}), "rates/results", "runs at other rates"),
])  # fmt: skip
def test_a_folder_without_files_and_a_damaged_file_are_named(load, folder, what, tmp_path):
    with pytest.raises(FileNotFoundError, match=f"has no {what}; .*py writes them"):
        load(tmp_path)
    file = tmp_path / folder / "vgg11-0.json"
    file.parent.mkdir(parents=True)
    file.write_text('{"moments": [')
    with pytest.raises(ValueError, match=r"vgg11-0\.json is not a complete file"):
        load(tmp_path)


def test_a_network_without_signatures_is_named(tmp_path):
    shutil.copytree(FOLDER / "results", tmp_path / "results")
    with pytest.raises(FileNotFoundError, match=r"signatures.alexnet-0\.json"):
        load_decade(tmp_path)


def test_clouds_come_back_with_the_moments_of_the_course():
    for name, found in load_clouds(FOLDER).items():
        network = stored()[name][0]
        assert len(found.moments) == len(course(network).steps) and 0 <= found.call < len(network.end.calls)


@pytest.mark.weekly  # the chapter measures a stored signature again every time
def test_stored_networks_give_what_was_stored():
    data = colour_data()
    images = data.standardise(data.validation.images[:512])
    for name in ("alexnet", "vgg11_bn"):
        network, stored_one = again.stored_network(FOLDER, name), stored()[name][0]
        assert accuracy(network, data, data.test) == pytest.approx(stored_one.accuracy, abs=1e-3)
        np.testing.assert_allclose(signature(network, [images]).mean, stored_one.end.mean, atol=1e-3)
