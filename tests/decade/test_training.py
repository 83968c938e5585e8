"""The recipe, trainings that are stopped and go on, and the script that makes the weights and signatures."""

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
import torch
from planted_decade import FOLDER
from scripts import load_script
from torch import nn

from affscore_book.decade.collection import load_clouds, load_further
from affscore_book.decade.equal import load_equal
from affscore_book.decade.networks import SETTINGS, build
from affscore_book.decade.training import FLOORS, RECIPE, Recipe
from affscore_book.kit.training import Images, accuracy, load_weights
from affscore_study.decade.training import CANDIDATES, fit_recipe, snapshot_steps

# ------------------------------------------------------------------------------------------------ the training


def test_stopped_training_resumes_bit_for_bit(data, tmp_path):
    """A stopped training resumes bit for bit and refuses the checkpoint of another run.

    Of two steps an epoch it stops in the first epoch, at the end of the second before its checkpoint, and in the third.
    """
    unbroken, settings = build("vgg11_bn"), {"epochs": 3, "seed": 4}
    history = fit_recipe(unbroken, data, **settings)
    for stop in (1, 4, 5):

        def kill(step: int, stop: int = stop) -> None:
            if step == stop:
                raise InterruptedError

        file = tmp_path / f"{stop}.checkpoint"
        with pytest.raises(InterruptedError):
            fit_recipe(build("vgg11_bn"), data, **settings, checkpoint=file, after_step=kill)
        assert file.exists() == (stop > 2)
        resumed, steps = build("vgg11_bn"), []
        again = fit_recipe(resumed, data, **settings, checkpoint=file, after_step=steps.append)
        assert steps == list(range((stop - 1) // 2 * 2 + 1, 7))
        assert all(map(torch.equal, unbroken.state_dict().values(), resumed.state_dict().values()))
        assert [epoch["loss"] for epoch in again] == [epoch["loss"] for epoch in history]
    fit_recipe(build("vgg11_bn"), data, **settings, checkpoint=file, after_step=lambda step: pytest.fail("a step"))
    for other in ({"seed": 1}, {"epochs": 2}, {"recipe": Recipe(0.5, 0.0)}):
        with pytest.raises(ValueError, match="belongs to a run with"):
            fit_recipe(resumed, data, **settings | other, checkpoint=file)


def test_training_learns_and_depends_on_its_seed(data):
    """A training learns, and its order and augmentation come from the seed."""
    network = build("resnet18")
    losses = [epoch["loss"] for epoch in fit_recipe(network, data, epochs=4, seed=0)]
    assert losses[-1] < 0.5 * losses[0] and not network.training
    (other,) = fit_recipe(build("resnet18"), data, epochs=1, seed=1)
    assert other["loss"] != losses[0]


def test_a_loss_that_is_not_finite_stops_the_training(data):
    network = build("vit_8")
    nn.init.constant_(network.conv_proj.weight, torch.nan)
    with pytest.raises(ValueError, match="loss of epoch 1 is not finite"):
        fit_recipe(network, data, epochs=1, seed=0)


# -------------------------------------------------------------------------------------------- data and recipe


def test_the_recipe_is_what_the_rule_says_of_the_stored_trials():
    trials = json.loads((FOLDER / "recipe.json").read_text(encoding="utf-8"))["trials"]
    tried = [Recipe(**{key: trial[key] for key in asdict(RECIPE)}) for trial in next(iter(trials.values()))]
    assert tuple(tried) == CANDIDATES
    assert {SETTINGS[name].family for name in trials} == {"convolutional", "transformer"}
    means = np.mean([[trial["validation"] for trial in records] for records in trials.values()], axis=0)
    assert CANDIDATES[np.argmax(means)] == RECIPE


# ------------------------------------------------------------------------------------------------- the script


@pytest.fixture(scope="module")
def script() -> Any:
    return load_script(FOLDER / "make.py")


@pytest.mark.weekly  # trains; its parts are tested every time
def test_the_script_trains_what_is_missing_and_measures_it(script, data, tmp_path, monkeypatch):
    monkeypatch.setattr("affscore_study.decade.options.colour_data", lambda root: data)
    monkeypatch.setattr(script, "OTHERS", 30)
    monkeypatch.setattr(script, "SIZES", (8, 20))
    options = ["--out", str(tmp_path), "--only", "vgg11_bn", "--seeds", "0", "--smoke"]
    script.main(["equal", *options])
    assert not list(tmp_path.rglob("*.json"))  # there are no weights
    monkeypatch.setattr(script.subprocess, "run", lambda command, check: script.main(command[2:]))
    script.main(["train", "--epochs", "2", *options])
    result = json.loads((tmp_path / "results" / "vgg11_bn-0.json").read_text())
    network = build("vgg11_bn", seed=5)
    about = load_weights(network, tmp_path / "weights" / "vgg11_bn-0.safetensors")
    assert (about["network"], about["seed"]) == ("vgg11_bn", 0) and len(result["history"]) == 2
    assert accuracy(network, data, data.test) == result["accuracy_stored"]
    signatures = json.loads((tmp_path / "signatures" / "vgg11_bn-0.json").read_text())
    states = signatures["states"]
    steps = [f"step {step}, norm measured" for step in snapshot_steps(2 * 2)[:-1]]
    assert set(states) == {"start", "start, norm measured", "trained", *steps}
    calls = signatures["pools"]["spatial"]["calls"]
    assert all(len(values["scores"]) == len(calls) for state in states.values() for values in state.values())
    assert states["start"] != states["start, norm measured"] and "cka" in states["trained"]["spatial"]
    assert signatures["validation"].keys() == states.keys()
    (batch,) = states["trained"]["spatial"]["batches"]  # 40 images make one
    assert batch == states["trained"]["spatial"]["scores"]
    assert not list(tmp_path.rglob("*.checkpoint")) and not list(tmp_path.rglob("*.part"))
    before = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.json")}
    script.main(["train", "--epochs", "2", *options])
    script.main(["signatures", *options])
    assert {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.json")} == before
    script.main(["clouds", *options])
    clouds = load_clouds(tmp_path)["vgg11_bn"]
    assert len(clouds.moments) == len(states) - 1 and 0 <= clouds.call < len(calls)  # all but the raw start
    assert all(len(each["outputs"]) == len(each["image"]) == 2 * 40 for each in clouds.moments)
    assert clouds.moments[0]["outputs"] != clouds.moments[-1]["outputs"]
    script.main(["equal", *options])
    equal = load_equal(tmp_path)["vgg11_bn"]
    assert {state for state, _ in equal.channels} == {"raw start", "start", "trained"} and len(equal.positions) == 8
    assert all(len(scores) == len(calls) for scores in equal.channels.values())
    script.main(["further", *options])
    found = load_further(tmp_path)["vgg11_bn"]
    assert found["pictures"].keys() == set(script.PICTURES) and found["maps"].keys() == equal.positions.keys()
    assert all(rows.shape[1] == len(calls) for rows in found["pictures"].values())
    assert set(found["sizes"]) == {8, 20} and not np.isnan(found["sizes"][20]["std"]).any()


def test_network_without_labels_is_judged_by_its_last_layer(script, data, tmp_path, monkeypatch):
    """A network is trained without labels and judged by its last layer."""
    images = data.train.images
    data = replace(data, train=Images(images, torch.arange(len(images)) % 10))  # one label for each output
    monkeypatch.setattr("affscore_study.decade.options.colour_data", lambda root: data)
    monkeypatch.setattr(script.subprocess, "run", lambda command, check: None)
    name = "resnet18 rotation"
    script.main(["train", "--out", str(tmp_path), "--only", name, "--seeds", "0", "--epochs", "1", "--smoke"])
    result = json.loads((tmp_path / "results" / "resnet18-rotation-0.json").read_text())
    assert (result["network"], result["family"]) == (name, "without labels")
    network = build("resnet18", seed=5)
    load_weights(network, tmp_path / "work" / "resnet18-rotation-0.safetensors")
    assert accuracy(network, data, data.test) == result["accuracy_stored"]


# ------------------------------------------------------------------------------------------- what is stored


def test_stored_networks_reach_the_floor_in_half_precision():
    """Every stored network reaches the floor of its family and keeps its accuracy in half precision."""
    for file in sorted((FOLDER / "results").glob("*.json")):
        result = json.loads(file.read_text(encoding="utf-8"))
        assert file.stem == f"{result['network']}-{result['seed']}".replace(" ", "-")
        assert result["accuracy"] >= FLOORS[result["family"]], file.stem
        assert result["accuracy_stored"] == pytest.approx(result["accuracy"], abs=0.001), file.stem
        assert Recipe(**result["recipe"]) == RECIPE and len(result["history"]) == 8 and result["images"] == 55_000


def test_stored_weights_fit_their_networks_and_are_small():
    weights = sorted((FOLDER / "weights").glob("*.safetensors"))
    assert {file.stem for file in weights} == {f"{name}-0" for name in SETTINGS}
    for file in weights:
        assert file.stat().st_size < 1.2e6
        name = file.stem.removesuffix("-0").replace("-", " ")
        assert load_weights(build(name.split()[0]), file)["network"] == name
