"""Ten faults of a network's input, and the readings that monitors take of a batch (experiment E5)."""

from __future__ import annotations

import io
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from PIL import Image
from torch import Tensor, nn
from torch.nn import functional
from torchvision.transforms.functional import normalize

from affscore import affinity_score
from affscore.forward import evaluating
from affscore.tracing import trace
from affscore_book.kit.features import features
from affscore_book.uses.alarm import MONITORS

__all__ = ["FAULTS", "alarm_distances", "faulty", "in_distances", "ranked_above", "readings", "with_noise"]

Standardise = Callable[[Tensor], Tensor]


def _jpeg(images: Tensor, quality: int) -> Tensor:
    found = []
    for image in images:
        file = io.BytesIO()
        Image.fromarray(image[0].numpy()).save(file, "JPEG", quality=quality)
        found.append(torch.from_numpy(np.array(Image.open(file))))
    return torch.stack(found)[:, None]


def _coarse(images: Tensor) -> Tensor:
    small = functional.interpolate(images.float(), size=12, mode="bilinear", antialias=True)
    return functional.interpolate(small, size=images.shape[-1], mode="bilinear").round().to(torch.uint8)


def with_noise(images: Tensor, deviation: float) -> Tensor:
    """uint8 images with normal noise, which is the same at each call.

    ``deviation`` is the standard deviation of the noise as a share of the range 0 to 255.

    >>> with_noise(torch.full((1, 1, 1, 1), 7, dtype=torch.uint8), 0.0)
    tensor([[[[7]]]], dtype=torch.uint8)
    """
    noise = torch.randn(images.shape, generator=torch.Generator().manual_seed(0)) * deviation * 255
    return (images.float() + noise).clamp(0, 255).to(torch.uint8)


def _unit(images: Tensor) -> Tensor:
    return (images.float() / 255).expand(-1, 3, -1, -1)


#: The faults by name: functions of uint8 images (n, 1, H, W) and the network's own standardisation, which return the
#: network's input.
FAULTS: dict[str, Callable[[Tensor, Standardise], Tensor]] = {
    "inverted": lambda images, standardise: standardise(255 - images),
    "0 to 1, not standardised": lambda images, standardise: _unit(images),
    "0 to 255": lambda images, standardise: images.float().expand(-1, 3, -1, -1),
    "ImageNet's mean and deviation": lambda images, standardise: normalize(
        _unit(images), [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]
    ),
    "upside down": lambda images, standardise: standardise(images.flip(2)),
    "on its side": lambda images, standardise: standardise(images.transpose(2, 3)),
    "enlarged from 12 pixels": lambda images, standardise: standardise(_coarse(images)),
    "JPEG, quality 5": lambda images, standardise: standardise(_jpeg(images, 5)),
    "noise of .1": lambda images, standardise: standardise(with_noise(images, 0.1)),
    "6 pixels too far right": lambda images, standardise: standardise(images.roll(6, dims=3)),
}


def faulty(name: str, share: float, images: Tensor, standardise: Standardise) -> Tensor:
    """The network's input, float32 (n, 3, H, W), if the first ``share`` of the images of a batch has a fault."""
    touched = round(share * len(images))
    return torch.cat([FAULTS[name](images[:touched], standardise), standardise(images[touched:])])


@torch.no_grad()
def readings(network: nn.Module, inputs: Tensor) -> dict[str, list[float]]:
    """The readings of the monitors for one batch of the network's input, shape (n, channels, H, W).

    ``"score"`` is the score of each call (spatial pool, without gates). ``"means of calls"`` are the mean and the
    standard deviation of each call's input, and ``"channel means of calls"`` is its mean in each channel. ``"batch
    norm"`` is, for each norm, the distance of the batch's mean from the stored one in stored standard deviations,
    averaged over channels. ``"input"`` are the mean and the standard deviation of each channel of the input, and
    ``"confidence"`` is the mean of the largest probability.
    """
    norms: dict[str, Any] = {name: norm for name, norm in network.named_modules() if isinstance(norm, nn.BatchNorm2d)}
    with features(network, norms) as passed, evaluating(network), trace(network, batch=len(inputs)) as found:
        logits = network(inputs)
    away = [
        (given.mean((0, 2, 3)) - norms[name].running_mean) / (norms[name].running_var + norms[name].eps).sqrt()
        for name, (given, _) in passed.items()
    ]
    seen = [each for each in found.observations if not each.call.gate]
    scores = [affinity_score(each.before.double(), each.after.double()).item() for each in seen]
    return {
        "score": scores,
        "means of calls": [float(v) for each in seen for v in (each.before.mean(), each.before.std())],
        "channel means of calls": [float(v) for each in seen for v in each.before.mean(0)],
        "batch norm": [float(each.abs().mean()) for each in away],
        "input": [float(v) for v in (*inputs.mean((0, 2, 3)), *inputs.std((0, 2, 3)))],
        "confidence": [float(torch.softmax(logits, 1).amax(1).mean())],
        "answers": logits.argmax(1).tolist(),
    }


def alarm_distances(
    batches: Sequence[Mapping[str, Any]], reference: Sequence[Mapping[str, Any]], monitor: str
) -> np.ndarray:
    """The distance of each batch's readings from those of the reference batches, shape (batches,).

    It is the mean of |z| over the readings, with the mean and the standard deviation of each over the reference
    batches. Readings that are constant there, and NaN of dead calls, are left out. The distance is NaN if no reading is
    left.

    >>> reference = [{"input": [0.0, 1.0]}, {"input": [2.0, 1.0]}]
    >>> alarm_distances([{"input": [4.0, 5.0]}], reference, "input").round(2)
    array([2.12])
    """
    stored, new = (np.array([each[monitor] for each in some], dtype=np.float64) for some in (reference, batches))
    kept = np.isfinite(stored).all(axis=0) & (stored.std(axis=0) > 1e-12)
    if not kept.any():
        return np.full(len(new), math.nan)
    z = (new[:, kept] - stored[:, kept].mean(axis=0)) / stored[:, kept].std(axis=0, ddof=1)
    return np.where(np.isnan(z), 0.0, np.abs(z)).mean(axis=1)


def in_distances(record: Mapping[str, Any], monitors: Sequence[str] = MONITORS) -> dict[str, Any]:
    """A record of :func:`readings` in which each batch's distance from the reference replaces its readings.

    The reference batches are dropped. A distance is NaN if the network has nothing that the monitor reads. The readings
    of one network take up to 7 MB, and its distances 30 kB.

    >>> known, far = [{name: [0.0] for name in MONITORS}, {name: [2.0] for name in MONITORS}], {"fault": "far"}
    >>> far |= {name: [1.0] for name in MONITORS}
    >>> in_distances({"reference": known, "clean": known, "faulty": [far]})["faulty"][0]["input"]
    0.0
    """
    found = {key: value for key, value in record.items() if key != "reference"}
    for part in ("clean", "faulty"):
        by_monitor = {name: alarm_distances(record[part], record["reference"], name) for name in monitors}
        found[part] = [
            {key: value for key, value in batch.items() if key not in monitors}
            | {name: float(distances[at]) for name, distances in by_monitor.items()}
            for at, batch in enumerate(record[part])
        ]
    return found


def ranked_above(stored: Mapping[str, Any], monitor: str) -> float:
    """The share of pairs of a faulty and a clean batch in which the faulty one is farther away; ties count half.

    It is the area under the ROC curve, so it does not depend on a threshold. ``stored`` and NaN are as in
    :func:`sensitivity`.

    >>> some = {"clean": [{"input": 1.0}, {"input": 2.0}], "faulty": [{"input": 3.0}, {"input": 1.5}]}
    >>> ranked_above(some, "input")
    0.75
    """
    clean, wrong = (np.array([each[monitor] for each in stored[part]]) for part in ("clean", "faulty"))
    if np.isnan(clean).any():
        return math.nan
    gaps = wrong[:, None] - clean
    return float(((gaps > 0) + 0.5 * (gaps == 0)).mean())
