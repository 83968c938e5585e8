"""The recipe, trainings that are stopped and go on, and the script that makes the weights and signatures."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pytest
import torch
from grids import each
from planted import FOLDER
from scripts import load_script
from striped import stripes
from torch import nn

from affscore_book.decade import training
from affscore_book.decade.collection import load_clouds
from affscore_book.decade.equal import load_equal
from affscore_book.decade.networks import SETTINGS, build
from affscore_book.decade.pretext import PRETEXTS
from affscore_book.decade.robustness import load_further
from affscore_book.decade.training import (
    CANDIDATES,
    FLOORS,
    RECIPE,
    ColourData,
    Recipe,
    colour_data,
    fit_recipe,
    measure_norm,
    snapshot_steps,
)  # fmt: skip
from affscore_book.kit.training import Images, accuracy, load_weights


@pytest.fixture(scope="module")
def data() -> ColourData:
    parts = [stripes(n, seed) for seed, n in enumerate((140, 40, 40))]
    return ColourData("stripes", *parts, torch.tensor([0.2]), torch.tensor([0.2]))


def state_of(network: nn.Module) -> dict[str, Any]:
    return {name: value.clone() for name, value in network.state_dict().items()}


class Killed(Exception):
    pass


# ------------------------------------------------------------------------------------------------ the training


@pytest.mark.parametrize(("name", "stop"), [("vgg11_bn", 1), ("vgg11_bn", 4), ("vgg11_bn", 5)])
def test_a_stopped_training_goes_on_with_the_same_bits(data, tmp_path, name, stop):
    """Two steps an epoch: stopped in the first epoch, at the end of the second before its checkpoint, in the third."""
    unbroken, epochs = build(name), 3
    history = fit_recipe(unbroken, data, epochs=epochs, seed=4)

    def kill(step: int) -> None:
        if step == stop:
            raise Killed

    file = tmp_path / "run.checkpoint"
    with pytest.raises(Killed):
        fit_recipe(build(name), data, epochs=epochs, seed=4, checkpoint=file, after_step=kill)
    assert file.exists() == (stop > 2)
    resumed, steps = build(name), []
    again = fit_recipe(resumed, data, epochs=epochs, seed=4, checkpoint=file, after_step=steps.append)
    assert steps == list(range((stop - 1) // 2 * 2 + 1, 7))
    expected, found = state_of(unbroken), state_of(resumed)
    assert all(torch.equal(expected[key], found[key]) for key in expected)
    assert [epoch["loss"] for epoch in again] == [epoch["loss"] for epoch in history]


def test_a_finished_checkpoint_gives_the_network_without_a_step_and_refuses_other_runs(data, tmp_path):
    network, file = build("vit_8"), tmp_path / "run.checkpoint"
    settings: dict[str, Any] = {"recipe": RECIPE, "epochs": 1, "seed": 0}
    fit_recipe(network, data, **settings, checkpoint=file)
    loaded = build("vit_8", seed=1)
    fit_recipe(loaded, data, **settings, checkpoint=file, after_step=lambda step: pytest.fail("a step"))
    assert not loaded.training
    assert all(map(torch.equal, network.parameters(), loaded.parameters()))
    for other in ({"seed": 1}, {"epochs": 2}, {"recipe": Recipe(0.5, 0.0)}):
        with pytest.raises(ValueError, match="belongs to a run with"):
            fit_recipe(network, data, **settings | other, checkpoint=file)


def test_a_training_learns_and_its_order_and_augmentation_come_from_the_seed(data):
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


@each("name", ["mnasnet", "mobilenet_v3", "vgg11_bn"])
def test_batch_norm_statistics_leave_their_start(data, name):
    network = build(name)
    start = state_of(network)
    fit_recipe(network, data, epochs=1, seed=0)
    for key, value in state_of(network).items():
        if key.endswith("running_var"):
            assert not torch.equal(value, start[key]), key
            assert torch.equal(value, value.clamp(min=0.75 * start[key])), key  # two steps of .1 at most


def test_measured_norm_gives_activations_of_mean_0_and_variance_1(data):
    network = build("vgg11_bn").eval()
    parameters = [parameter.clone() for parameter in network.parameters()]
    for _ in range(2):  # whatever the statistics were before
        measure_norm(network, data)
        with torch.no_grad():
            first = network.features[:2](data.standardise(data.train.images))
        assert first.mean(dim=(0, 2, 3)).numpy() == pytest.approx(0, abs=1e-4)
        assert first.var(dim=(0, 2, 3)).numpy() == pytest.approx(1, abs=0.01)
    assert all(map(torch.equal, network.parameters(), parameters)) and not network.training


# -------------------------------------------------------------------------------------------- data and recipe


def test_the_data_are_fashion_mnist_in_three_equal_channels_with_validation_images_apart():
    everything = colour_data()
    parts = everything.train, everything.validation, everything.test
    assert [len(part.labels) for part in parts] == [55_000, 5_000, 10_000]
    images = everything.standardise(everything.train.images[:2000])
    assert images.shape == (2000, 3, 32, 32) and torch.equal(images, images[:, :1].expand_as(images))
    assert images.mean().item() == pytest.approx(0, abs=0.03) and images.std().item() == pytest.approx(1, abs=0.03)


@each("total", [1, 5, 100, 3440])
def test_snapshots_are_evenly_spaced_in_the_logarithm(total):
    steps = snapshot_steps(total)
    assert steps[0] == 1 and steps[-1] == total and len(steps) <= training.SNAPSHOTS
    if total == 3440:
        assert np.diff(np.log(steps[4:])) == pytest.approx(np.log(total) / 11, abs=0.03)


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


def test_the_script_trains_what_is_missing_and_measures_it(script, data, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(script, "colour_data", lambda root: data)
    monkeypatch.setattr(script, "OTHERS", 30)
    monkeypatch.setattr(script, "SIZES", (8, 20))
    options = ["--out", str(tmp_path), "--only", "vgg11_bn", "--seeds", "0", "1", "--smoke"]
    script.main(["equal", *options])
    assert not list(tmp_path.rglob("*.json"))  # there are no weights
    measured: list[list[str]] = []
    monkeypatch.setattr(script.subprocess, "run", lambda command, check: measured.append(command[2:]))
    script.main(["train", "--epochs", "2", *options])
    assert len(measured) == 2
    for command in measured:
        script.main(command)
    for seed, folder in enumerate(("weights", "work")):
        result = json.loads((tmp_path / "results" / f"vgg11_bn-{seed}.json").read_text())
        network = build("vgg11_bn", seed=5)
        about = load_weights(network, tmp_path / folder / f"vgg11_bn-{seed}.safetensors")
        assert (about["network"], about["seed"]) == ("vgg11_bn", seed) and len(result["history"]) == 2
        assert accuracy(network, data, data.test) == result["accuracy_stored"]
        signatures = json.loads((tmp_path / "signatures" / f"vgg11_bn-{seed}.json").read_text())
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
    capsys.readouterr()
    script.main(["list", "--out", str(tmp_path), "--only", "vgg11_bn", "swin", "--seeds", "0"])
    lines = capsys.readouterr().out.splitlines()
    assert "BELOW THE FLOOR, signatures" in lines[0] and lines[1].endswith("missing")
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


def test_the_work_is_done_in_the_order_of_the_seeds(script, tmp_path):
    arguments = script.argparse.Namespace(out=tmp_path, seeds=None, only=None)
    order = [(files.seed, files.name) for files in script.jobs(arguments)]
    assert len(order) == len(set(order)) == 3 * (len(SETTINGS) + len(PRETEXTS)) + 12
    assert [seed for seed, _ in order] == sorted(seed for seed, _ in order)
    assert [name for seed, name in order if seed == 1][: len(SETTINGS)] == list(SETTINGS)


def test_a_network_is_taught_without_labels_and_judged_by_its_last_layer(script, data, tmp_path, monkeypatch):
    images = data.train.images
    data = replace(data, train=Images(images, torch.arange(len(images)) % 10))  # one label for each output
    monkeypatch.setattr(script, "colour_data", lambda root: data)
    monkeypatch.setattr(script.subprocess, "run", lambda command, check: None)
    name = "resnet18 rotation"
    script.main(["train", "--out", str(tmp_path), "--only", name, "--seeds", "0", "--epochs", "1", "--smoke"])
    result = json.loads((tmp_path / "results" / "resnet18-rotation-0.json").read_text())
    assert (result["network"], result["family"]) == (name, "without labels")
    network = build("resnet18", seed=5)
    load_weights(network, tmp_path / "work" / "resnet18-rotation-0.safetensors")
    assert accuracy(network, data, data.test) == result["accuracy_stored"]


# ------------------------------------------------------------------------------------------- what is stored


def test_every_stored_network_reaches_the_floor_and_keeps_it_in_half_precision():
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
