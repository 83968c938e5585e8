"""Training under the linearising prior: when slopes move, what is measured, and the script that makes the runs."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scripts import load_script
from striped import stripes

from affscore_book.kit.networks import mlp
from affscore_book.kit.training import ImageData, Images, accuracy, image_data, load_weights
from affscore_book.linearized.paths import path_lengths
from affscore_book.linearized.results import STARTS, load_runs
from affscore_book.linearized.slopes import channel_prelus, linearize
from affscore_study.linearized.training import measure_channels, task_data, train
from affscore_study.linearized.trunks import load_trunks

SCRIPT = Path(__file__).parents[2] / "book" / "data" / "linearized" / "make.py"


@pytest.fixture(scope="module")
def data() -> ImageData:
    return ImageData(
        "stripes", stripes(160, 0), stripes(40, 1), stripes(40, 2), torch.tensor([0.2]), torch.tensor([0.2])
    )


def slopes_of(network: Any) -> dict[str, torch.Tensor]:
    return {name: layer.weight.detach() for name, layer in channel_prelus(network).items()}


def trained(data: ImageData, seed: int = 0, **options: Any) -> tuple[Any, dict[str, Any]]:
    torch.manual_seed(seed)
    network = linearize(mlp(8, 2, classes=2), torch.zeros(1, 1, 32, 32))
    return network, train(network, data, seed=seed, batch_size=8, epochs=4, learning_rate=0.1, **options)


@pytest.mark.parametrize(("start", "cycle"), STARTS.items())
def test_slopes_move_while_the_prior_acts_and_at_no_other_time(data, start, cycle):
    network, record = trained(data, start=start, strength=0.05, probe=data.validation.images)
    totals = [sum(epoch["linear"]) for epoch in record["history"]]
    assert totals[:cycle] == [0] * cycle and totals[cycle] > 0
    assert totals[cycle:] == [totals[cycle]] * (4 - cycle)
    assert record["linear"] == {name: int((values == 1).sum()) for name, values in slopes_of(network).items()}
    assert set(record["before"]) == {"relu1", "relu2"}


def test_a_run_is_the_one_without_a_prior_until_the_prior_acts(data):
    network, record = trained(data)
    assert not any(bool(values.any()) for values in slopes_of(network).values()) and "before" not in record
    none, late = record["history"], trained(data, start="late", strength=0.05)[1]["history"]
    assert none[-1]["loss"] < none[0]["loss"] and sum(none[-1]["linear"]) == 0
    assert late[:2] == none[:2] and late[2] != none[2]
    assert trained(data, start="late", strength=100.0)[1]["linear"] == {"relu1": 8, "relu2": 8}


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"start": "last"}, "start is 'last'; it should be one of 'early', 'middle', 'late'"),
        ({"epochs": 6}, "epochs is 6; it should be a positive multiple of 4"),
        ({"start": "late", "strength": math.nan}, "strength is nan"),
    ],
)
def test_training_refuses_what_makes_no_sense(data, options, says):
    network = linearize(mlp(8, 2, classes=2), torch.zeros(1, 1, 32, 32))
    with pytest.raises(ValueError, match=says):
        train(network, data, seed=0, **options)


def test_a_channel_is_measured_by_the_values_that_reach_it(data):
    torch.manual_seed(0)
    network = linearize(mlp(8, 1, classes=2), torch.zeros(1, 1, 32, 32)).eval()
    norm = network.get_submodule("norm1")
    with torch.no_grad():
        norm.bias.copy_(torch.tensor([100.0, -100.0, 0, 0, 0, 0, 0, 0]))
    images = data.standardise(data.test.images)
    network.train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    found = measure_channels(network, images)["relu1"]
    assert network.training and all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    network.eval()
    assert found["score"][0] == pytest.approx(1) and found["positive"][0] == 1
    assert math.isnan(found["score"][1]) and found["positive"][1] == 0
    with torch.no_grad():
        reached = network.norm1(network.linear1(images.flatten(1)))[:, 3].double()
    expected = 1 - (1 - np.corrcoef(reached, reached.clamp_min(0))[0, 1]) ** 0.5
    assert found["score"][3] == pytest.approx(expected, abs=1e-6)


def test_tasks_are_made_as_they_say():
    labels = torch.arange(4000) % 10
    part = Images((labels[:, None, None, None] * torch.ones(1, 1, 32, 32)).to(torch.uint8), labels)
    source = ImageData("digits", part, part, part, torch.tensor([0.2]), torch.tensor([0.2]))
    three = task_data(source, "three classes", images=1000)
    for some in (three.train, three.validation, three.test):
        assert set(some.labels.tolist()) == {0, 1, 2} and torch.equal(some.images[:, 0, 0, 0].long(), some.labels)
    assert [len(task_data(source, t, images=1000).train.labels) for t in ("base", "label noise", "less data")] == [
        1000, 1000, 100,
    ]  # fmt: skip
    noisy = task_data(source, "label noise", images=4000)
    wrong = (noisy.train.labels != labels).double().mean()
    assert wrong == pytest.approx(0.3 * 0.9, abs=0.04) and torch.equal(noisy.test.labels, labels)
    with pytest.raises(ValueError, match="task is 'hard'"):
        task_data(source, "hard")
    with pytest.raises(ValueError, match="images is 5000; there are 4000 training images"):
        task_data(source, "base", images=5000)


@pytest.mark.weekly  # what it calls is tested above, and the decade's script trains every time
def test_the_script_trains_stores_and_does_nothing_twice(tmp_path, capsys):
    script = load_script(SCRIPT)

    def printed() -> list[str]:
        networks = ["--network", "residual", "--network", "trunks"]
        script.main(["--smoke", "--epochs", "4", "--out", str(tmp_path), *networks])
        return capsys.readouterr().out.splitlines()

    assert len(printed()) == 4  # a late run and a baseline of the network, and of a trunk
    study = load_runs(tmp_path)
    test = image_data().test.take(slice(300))
    assert all(run["history"][-1]["loss"] < run["history"][0]["loss"] for run in study.runs["residual"])
    (late,) = study.select("residual", start="late")
    network = script.build("residual", 7, True)  # other weights, to be overwritten
    path = tmp_path / f"residual_late_{late['strength']:g}.safetensors"
    assert load_weights(network, path)["seed"] == late["seed"]
    assert accuracy(network, image_data(), test) == pytest.approx(late["accuracy_stored"], abs=1e-6)
    assert abs(late["accuracy_stored"] - late["accuracy"]) < 0.02  # stored as float16
    assert any(value != 0 for values in late["slopes"].values() for value in values)
    for layer, values in slopes_of(network).items():
        assert torch.allclose(values, torch.tensor(late["slopes"][layer]), atol=1e-3)
        assert int((values == 1).sum()) == late["linear"][layer]
    lengths = path_lengths(network, torch.zeros(1, 1, 32, 32))
    assert late["napl"] == pytest.approx(lengths.napl, abs=1e-5)
    ((trunk, sizes),) = load_trunks(tmp_path).items()
    assert trunk == (32, 6) and sizes[0].shape == (1, 3) and 0 < sizes[0][0, 1] <= 6 and abs(sizes[0][0, 2]) < 100
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    assert printed() == []
    assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
