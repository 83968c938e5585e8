"""Training: the loss falls, a stopped run ends like one that was not, data stay apart."""

from __future__ import annotations

import runpy
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
import torch
from striped import stripes
from torch import nn

from affscore.zoo.datasets import fashion_mnist_file, read_idx
from affscore_book.kit.networks import load_network, myrtle
from affscore_book.kit.training import ImageData, accuracy, image_data
from affscore_study.kit import training
from affscore_study.kit.training import augment, fit

SCRIPT = Path(__file__).parents[2] / "book" / "data" / "networks" / "make.py"


@pytest.fixture(scope="module")
def data() -> ImageData:
    parts = (stripes(n, seed) for seed, n in enumerate((192, 64, 64)))
    return ImageData("stripes", *parts, torch.tensor([0.2]), torch.tensor([0.2]))


def small(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return myrtle(width=3, channels=1)


def test_the_loss_falls_and_the_network_learns(data):
    network = small(0)
    history = fit(network, data, epochs=6, seed=0, batch_size=12, learning_rate=0.02, augmented=False)
    assert history[-1]["loss"] < 0.5 * history[0]["loss"]
    assert accuracy(network, data, data.test) > 0.9
    assert history[-1]["validation"] == accuracy(network, data, data.validation)


class Stopped(Exception):
    pass


def test_a_stopped_run_ends_like_one_that_was_not(data, tmp_path):
    whole, parts = small(0), small(0)
    history = fit(whole, data, epochs=3, seed=5, batch_size=64)

    def stop(progress: float) -> None:
        if progress >= 0.6:  # within the second epoch
            raise Stopped

    with pytest.raises(Stopped):
        fit(parts, data, epochs=3, seed=5, batch_size=64, checkpoint=tmp_path / "run", after_step=stop)
    with pytest.raises(ValueError, match="belongs to a run with"):
        fit(small(0), data, epochs=2, seed=5, batch_size=64, checkpoint=tmp_path / "run")
    other = small(9)  # what is there at the start is replaced by the checkpoint
    assert fit(other, data, epochs=3, seed=5, batch_size=64, checkpoint=tmp_path / "run") == history
    assert all(torch.equal(a, b) for a, b in zip(whole.state_dict().values(), other.state_dict().values(), strict=True))
    assert not list(tmp_path.iterdir())


def test_training_depends_on_seed_penalty_and_frozen_weights(data):
    """Training depends on the seed, the penalty and frozen parameters, but not on the caller's generator."""
    first, second, third, bound = (small(0) for _ in range(4))
    fit(first, data, epochs=1, seed=0)
    torch.manual_seed(12345)  # the caller's generator does not
    fit(second, data, epochs=1, seed=0)
    fit(third, data, epochs=1, seed=1)
    assert torch.equal(first.linear.weight, second.linear.weight)
    assert not torch.equal(first.linear.weight, third.linear.weight)
    before = bound.conv1.weight.requires_grad_(False).clone()
    fit(bound, data, epochs=1, seed=0, penalty=lambda progress: 100 * bound.linear.weight.square().sum())
    assert torch.equal(bound.conv1.weight, before)
    assert bound.linear.weight.square().sum() < first.linear.weight.square().sum()
    with pytest.raises(ValueError, match="loss of epoch 1 is not finite"):
        fit(bound, data, epochs=1, seed=0, penalty=lambda progress: bound.linear.weight.sum() * float("inf"))


def test_the_schedule_scales_every_step_and_epochs_are_told(data):
    network, told, steps = small(0), [], []
    first = network.conv1.weight.detach().clone()

    def after(progress: float) -> None:
        steps.append((network.conv1.weight.detach() - first).norm().item())

    half = lambda progress: float(progress < 0.5)  # noqa: E731, the second of two epochs does not move anything
    fit(network, data, epochs=2, seed=0, batch_size=64, schedule=half, after_step=after, after_epoch=told.append)
    assert told == [1, 2]
    assert 0 < steps[0] < steps[1] < steps[2] and steps[2:] == [steps[2]] * 4


def test_augmentation_moves_and_flips_and_loses_nothing_else():
    generator = torch.Generator().manual_seed(0)
    images = torch.zeros(64, 2, 32, 32, dtype=torch.uint8)
    images[:, :, 5:20, 4:15] = torch.randint(1, 255, (64, 2, 15, 11), generator=generator, dtype=torch.uint8)
    out = augment(images, generator)
    assert out.dtype == torch.uint8 and out.shape == images.shape
    flips, moves = 0, set()
    for before, after in zip(images, out, strict=True):
        candidates = {
            (dy, dx, flip): torch.roll(before.flip(-1) if flip else before, (dy, dx), (1, 2))
            for dy in range(-2, 3) for dx in range(-2, 3) for flip in (False, True)
        }  # fmt: skip
        (dy, dx, flip), *more = [key for key, value in candidates.items() if torch.equal(value, after)]
        assert not more
        flips, moves = flips + flip, moves | {(dy, dx)}
    assert 10 < flips < 54 and len(moves) > 15


def test_three_sets_are_disjoint_and_keep_their_labels():
    """The three sets are disjoint and complete, and each image keeps its label."""
    data = image_data("fashion-mnist")
    assert [len(part.labels) for part in (data.train, data.validation, data.test)] == [55_000, 5000, 10_000]
    images, labels = (
        read_idx(fashion_mnist_file(f"train-{kind}-ubyte", None)) for kind in ("images-idx3", "labels-idx1")
    )
    assert data.train.images.shape[1:] == (1, 32, 32) and not data.train.images[:, :, :2].any()
    inner = torch.cat([data.validation.images, data.train.images])[:, 0, 2:30, 2:30].numpy()
    both = torch.cat([data.validation.labels, data.train.labels]).numpy()
    ours, theirs = (
        Counter((image.tobytes(), int(label)) for image, label in zip(*pairs, strict=True))
        for pairs in ((inner, both), (images, labels))
    )
    assert ours == theirs and np.bincount(labels).tolist() == [6000] * 10
    values = data.standardise(data.train.images[:5000])
    assert abs(values.mean()) < 0.02 and abs(values.std() - 1) < 0.02
    with pytest.raises(ValueError, match="name is 'mnist'"):
        image_data("mnist")
    with pytest.raises(ValueError, match="train is 0; it should be between 1 and the 55000 training"):
        image_data(train=0)


@pytest.mark.weekly  # what it calls is tested above, and the decade's script trains every time
def test_the_script_trains_and_stores(tmp_path, monkeypatch):
    """The smoke mode: the loss falls, the saved weights reload to the same outputs, and nothing is done again."""
    monkeypatch.setattr(
        sys, "argv", [str(SCRIPT), "--smoke", "--out", str(tmp_path), "--kind", "myrtle", "--epochs", "2"]
    )
    exact, original = [], training.save_weights
    monkeypatch.setattr(training, "save_weights", lambda net, *rest: exact.append(net) or original(net, *rest))
    runpy.run_path(str(SCRIPT), run_name="__main__")
    (path,) = tmp_path.iterdir()
    network, about = load_network(path)
    x = torch.randn(8, 1, 32, 32, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        # The script loads what it stored. The layout in memory may differ, and with it the last bits.
        assert torch.allclose(network(x), exact[0].eval()(x), atol=1e-3)
    losses = [epoch["loss"] for epoch in about["history"]]
    assert path.name == "myrtle_0.safetensors" and losses[-1] < losses[0]
    assert about["seed"] == 0 and 0 <= about["accuracy"] <= 1
    stored = path.stat().st_mtime_ns
    runpy.run_path(str(SCRIPT), run_name="__main__")
    assert path.stat().st_mtime_ns == stored
