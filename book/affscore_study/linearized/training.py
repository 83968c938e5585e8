"""The training of networks under the linearising prior, early or late, with measurements of their channels.

The source compares a prior that acts from the beginning with one that acts at the end. The two differ in the time for
which they act and in the training that follows. Here every run has the same budget: training has four cycles of equal
length, the learning rate falls to 0 in each cycle, and the prior acts during exactly one of them, but never in the
last. A *late* run is therefore linearised after two cycles of training in which the learning rate fell to 0.

``book/data/linearized/make.py`` makes the runs; :mod:`affscore_book.linearized.results` reads and describes them.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from affscore.arguments import check_choice
from affscore.forward import evaluating
from affscore_book.kit.features import features
from affscore_book.kit.training import ImageData, Images, accuracy
from affscore_book.linearized.results import STARTS, TASKS
from affscore_book.linearized.slopes import channel_prelus
from affscore_book.relu_1d.exact import monotone_score
from affscore_study.kit.training import fit

__all__ = ["CYCLES", "freeze", "measure_channels", "prior", "task_data", "train"]

CYCLES = 4


def learning_rate_factor(progress: float) -> float:
    """The factor of the learning rate, which is 1 in the first half of each cycle and then falls linearly to 0."""
    return min(1.0, 2 * (1 - CYCLES * progress % 1))


def prior(network: nn.Module, strength: float) -> Tensor:
    """The scalar tensor strength * sum sqrt(|1 - a|) over all slopes a that differ from 1.

    Because of the square root, the gradient is larger if a slope is closer to 1, so that slopes end at 1 or stay away.
    """
    # A slope that is 1 and not yet fixed adds 0, and the gradient of its term is not a number.
    moving = [layer.weight[layer.weight != 1] for layer in channel_prelus(network).values()]
    return strength * (1 - torch.cat(moving)).abs().sqrt().sum()


def freeze(network: nn.Module) -> None:
    """Set every slope within 0.01 of 1 to 1 and fix it permanently."""
    for layer in channel_prelus(network).values():
        layer.set_linear((layer.weight.detach() - 1).abs() <= 0.01)


def train(
    network: nn.Module,
    data: ImageData,
    *,
    seed: int,
    start: str | None = None,
    strength: float = 0.0,
    epochs: int = 8,
    learning_rate: float = 0.008,
    batch_size: int = 64,
    probe: Tensor | None = None,
) -> dict[str, Any]:
    """Train a network of :class:`~affscore_book.linearized.slopes.ChannelPReLU` in place, with the prior in one cycle.

    Parameters
    ----------
    network
        A network from :func:`affscore_book.linearized.slopes.linearize`. Slopes change only while the prior acts. They
        are 0 before and keep their values afterwards.
    seed
        The seed of the order of the images and of their augmentation.
    start, strength
        ``"early"``, ``"middle"`` or ``"late"``, and the factor of the prior; None for no prior.
    epochs
        A multiple of 4.
    probe
        Images, uint8 (n, channels, 32, 32), on which :func:`measure_channels` measures just before the prior acts.

    Returns
    -------
    ``history`` (loss, validation accuracy and linear channels by layer, for each epoch), ``accuracy`` on the test
    images, ``slopes`` and number of ``linear`` channels by layer and, with a probe, the measurements ``before``.

    Raises
    ------
    ValueError
        If ``start`` is unknown, ``epochs`` is no multiple of 4, or the strength is negative or not finite.
    """
    if start is not None:
        check_choice("start", start, STARTS)
    if epochs < CYCLES or epochs % CYCLES:
        raise ValueError(f"epochs is {epochs}; it should be a positive multiple of {CYCLES}, the number of cycles.")
    if not 0 <= strength < float("inf"):
        raise ValueError(f"strength is {strength}; it should be a finite number, 0 or more.")
    layers = channel_prelus(network)
    each = epochs // CYCLES
    first = None if start is None else STARTS[start] * each
    record: dict[str, Any] = {}
    linear: list[list[int]] = []
    moving = False

    def between(epoch: int) -> None:
        """Measure the channels after an epoch, and decide whether the slopes learn in the next one."""
        nonlocal moving
        if epoch:
            linear.append([int(layer.linear.sum()) for layer in layers.values()])
        if probe is not None and epoch == first:
            record["before"] = measure_channels(network, data.standardise(probe))
        moving = first is not None and first <= epoch < first + each
        for layer in layers.values():
            layer.weight.requires_grad_(moving)
            layer.weight.grad = None  # Adam skips parameters without a gradient

    between(0)
    history = fit(
        network, data, epochs=epochs, seed=seed, learning_rate=learning_rate, batch_size=batch_size,
        penalty=lambda _: moving * prior(network, strength),
        after_step=lambda _: freeze(network) if moving else None, after_epoch=between, schedule=learning_rate_factor,
    )  # fmt: skip
    return {
        "accuracy": accuracy(network, data, data.test),
        "history": [epoch | {"linear": counts} for epoch, counts in zip(history, linear, strict=True)],
        "linear": dict(zip(layers, linear[-1], strict=True)),
        "slopes": {name: layer.weight.detach().tolist() for name, layer in layers.items()},
        **record,
    }


def measure_channels(network: nn.Module, images: Tensor) -> dict[str, dict[str, list[float]]]:
    """The non-linearity of a ReLU for the inputs of every channel, by layer, on standardised images.

    ``score`` is the one-dimensional affinity score of max(x, 0) over images and about 16 pixels (NaN if the channel is
    never positive or x is constant), and ``positive`` is the share of positive values.
    """
    with torch.no_grad(), evaluating(network), features(network, channel_prelus(network)) as seen:
        network(images)
    result = {}
    for name, (before, _) in seen.items():
        values = before.double().reshape(*before.shape[:2], -1)
        step = max(1, values.shape[-1] // 16)
        columns = values[..., step // 2 :: step].transpose(0, 1).flatten(1)
        scores = [
            float(monotone_score(column, column.clamp_min(0))) if column.min() < column.max() else float("nan")
            for column in columns
        ]
        result[name] = {"score": scores, "positive": (columns > 0).double().mean(1).tolist()}
    return result


def task_data(data: ImageData, task: str, *, images: int = 10_000) -> ImageData:
    """An easier or harder task made from a data set.

    ``base`` has the first ``images`` training images. ``three classes`` has as many of classes 0, 1 and 2, and only
    these classes for validation and test. ``label noise`` is base with 30 % of the training labels drawn anew,
    uniformly over all classes. ``less data`` is a tenth of base. Raises ValueError if there are too few images.
    """
    check_choice("task", task, TASKS)
    parts = [data.train, data.validation, data.test]
    if task == "three classes":
        parts = [part.take(part.labels < 3) for part in parts]
    count = images // 10 if task == "less data" else images
    train = parts[0].take(slice(count))
    if len(train.labels) < count:
        raise ValueError(f"images is {images}; there are {len(train.labels)} training images for the task {task!r}.")
    if task == "label noise":
        generator = torch.Generator().manual_seed(0)
        noisy = torch.rand(count, generator=generator) < 0.3
        drawn = torch.randint(0, int(data.train.labels.max()) + 1, (count,), generator=generator)
        train = Images(train.images, torch.where(noisy, drawn, train.labels))
    return replace(data, train=train, validation=parts[1], test=parts[2])
