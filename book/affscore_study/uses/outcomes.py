"""The outcomes that are measured of a network after training towards a mean score (experiment E4)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from affscore.forward import evaluating
from affscore_book.kit.training import ImageData
from affscore_book.uses.removal import area
from affscore_book.uses.replacing import calls_of
from affscore_study.uses.alarm import with_noise
from affscore_study.uses.penalty import mean_score, watched_pairs
from affscore_study.uses.removal import remove

__all__ = ["NOISES", "STRAIGHTENED_FIRST", "calibration_error", "measured_mean", "outcomes_of"]

#: Standard deviations of the noise, in the range of the image's values.
NOISES = (0.1, 0.2, 0.3)
#: The orders in which calls are made affine; the mean over the random ones is the outcome.
STRAIGHTENED_FIRST = ("latest first", "random 0", "random 1", "random 2", "random 3", "random 4")
#: The size and the number of the batches. The mean score is measured as it was penalised, with each map averaged to one
#: number.
BATCH, BATCHES = 128, 4
FITTED, JUDGED = 256, 1000


def calibration_error(logits: Tensor, labels: Tensor, bins: int = 15) -> float:
    """The expected calibration error: the mean over samples of |accuracy - confidence| in their bin of confidence.

    Parameters
    ----------
    logits
        Float tensor of shape (n, classes).
    labels
        int64 tensor of shape (n,).
    bins
        The number of bins of equal width from 0 to 1.

    >>> calibration_error(torch.tensor([[99.0, 0.0], [0.0, 99.0]]), torch.tensor([0, 0]))
    0.5
    """
    confidence, answer = logits.double().softmax(1).max(1)
    places = (confidence * bins).ceil().long() - 1
    gaps = torch.zeros(bins, dtype=torch.float64).index_add(0, places, (answer == labels).double() - confidence)
    return round(float(gaps.abs().sum()) / len(labels), 10)


@torch.no_grad()
def measured_mean(network: nn.Module, data: ImageData) -> float:
    """The mean score of the calls on validation images in evaluation mode, averaged over batches of 128 images."""
    images = data.standardise(data.validation.images[: BATCH * BATCHES]).split(BATCH)
    means = []
    with evaluating(network), watched_pairs(network) as pairs:
        for batch in images:
            network(batch)
            means.append(float(mean_score(pairs)))
    return sum(means) / len(means)


def outcomes_of(network: nn.Module, data: ImageData) -> dict[str, Any]:
    """All outcomes of a network on test images.

    Returns
    -------
    ``"accuracy"``; ``"cross_entropy"`` in nats; ``"calibration"``, the expected calibration error; ``"noise"``, the
    accuracies by the standard deviation of the noise; ``"straightened"``, by order, the mean accuracy in percent while
    up to half of the calls are made affine (:func:`affscore_book.uses.removal.area`).
    """

    def answers(images: Tensor) -> Tensor:
        with torch.no_grad(), evaluating(network):
            return torch.cat([network(data.standardise(some)) for some in images.split(500)])

    def right(logits: Tensor) -> float:
        return float((logits.argmax(1) == labels).double().mean())

    labels, logits = data.test.labels, answers(data.test.images)
    fitted = data.standardise(data.train.images[:FITTED])
    judged = data.standardise(data.test.images[:JUDGED])
    positions = [{"position": at} for at in range(len(calls_of(network, fitted[:4])))]
    removed = remove(network, positions, fitted, judged, labels[:JUDGED], STRAIGHTENED_FIRST)
    whole = float((logits[:JUDGED].argmax(1) == labels[:JUDGED]).double().mean())
    return {
        "accuracy": right(logits),
        "cross_entropy": float(functional.cross_entropy(logits.double(), labels)),
        "calibration": calibration_error(logits, labels),
        "noise": {str(deviation): right(answers(with_noise(data.test.images, deviation))) for deviation in NOISES},
        "straightened": {order: area(whole, found, len(positions)) for order, found in removed.items()},
    }
