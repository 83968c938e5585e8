"""An estimate of the hours of a full run on devices that it has never run on, and a check of it on one GPU.

Two costs were measured on one core of a processor and stored. The first is the time of one image in each of the 36
networks (``forward_passes`` of the signatures before training). The second is the further time of a signature of 512
crops with all companion measures, in three of the networks (``cpu_seconds_an_image`` of the trained networks).

The estimate rests on four assumptions. Devices have the peaks of :data:`DEVICES`. A device reaches the same share of
its peak in a network as the core does, or a third of that share (:data:`WORSE`); the core's peak is the best rate that
any of the networks reached. The scores are divided evenly among the cores of the device. The cost of a network is
proportional to its published operations if its images are larger. The times to read the images and to download the
weights are not counted.

The check is one batch of noise through the networks that :data:`SCRIPT` timed on a GPU.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

from affscore.signatures import Signature
from affscore.zoo.names import WEIGHTS
from affscore_book.imagenet_signatures.finding import before_training
from affscore_book.imagenet_signatures.paper_networks import PAPER_NETWORKS
from affscore_book.kit.architectures import facts
from affscore_book.kit.stored import read_results
from affscore_book.kit.tables import Table
from affscore_study.imagenet_signatures.full_results import (
    BATCH_SIZE,
    EXPECTED,
    other_pool,
)

__all__ = ["DEVICES", "WORSE", "Device", "Measured", "Timed", "hours", "hours_table", "read_measured", "read_timed"]


class Device(NamedTuple):
    """A device: its name, the GPU's peak in 10^12 float32 operations a second (None without a GPU), and its cores."""

    name: str
    peak: float | None
    cores: int


#: The device on which the stored seconds (:func:`read_timed`) were measured.
TIMED = Device("H100, 16 cores", 67.0, 16)
#: Peaks of float32 without TF32, as NVIDIA's data sheets give them, and the cores that such machines usually have.
DEVICES = (
    Device("T4, 2 cores (Colab)", 8.1, 2),
    Device("A100, 12 cores", 19.5, 12),
    TIMED,
    Device("16 cores", None, 16),
)
SCRIPT = "book/data/imagenet_signatures/gpu_cost.py"
#: The factor by which the share of its peak that a device reaches may be smaller.
WORSE = 3


class Measured(NamedTuple):
    """The costs that were measured on one core, in seconds.

    Attributes
    ----------
    forward
        The time of one image in all passes of a full run; a network whose pools differ is run twice.
    rate
        The highest rate that a network reached, in 10^12 operations a second.
    calls
        The number of activation calls in these passes.
    beyond
        The least and the greatest time that a signature takes beyond the forward pass, for one image and one call.
    """

    forward: float
    rate: float
    calls: int
    beyond: tuple[float, float]

    def __repr__(self) -> str:
        least, most = (1000 * each for each in self.beyond)
        return (
            f"Measured on one core: {self.forward:.0f} s for one image in every forward pass, at best "
            f"{1000 * self.rate:.0f} * 10^9 operations a second;\n{least:.1f} to {most:.1f} ms for one image and one "
            f"of the {self.calls:,} calls."
        )


class Timed(NamedTuple):
    """Wall-clock seconds of one batch on a GPU, with the scores and without, and the estimated range of seconds."""

    device: str
    networks: int
    images: int
    seconds: float
    forward: float
    estimate: tuple[float, float]

    def __repr__(self) -> str:
        least, most = self.estimate
        return (
            f"{self.networks} networks, a batch of {self.images} images each, on one {self.device}:\n"
            f"{self.seconds:.0f} s, the forward passes alone {self.forward:.0f} s; the estimate for them is "
            f"{least:.0f} to {most:.0f} s."
        )


def read_timed(folder: str | os.PathLike[str]) -> Timed:
    """The seconds that ``gpu_cost.py`` stored, and the estimate for the same networks on :data:`TIMED`.

    Raises FileNotFoundError if there is no stored file, and ValueError if it is damaged.
    """
    found = read_results(Path(folder, "gpu", "cost.json"), dict, SCRIPT)
    networks, images = found["networks"], found["images"]
    seconds = sum(spent["spatial"] + spent.get("trailing", 0.0) for spent in networks.values())
    forward = sum(spent["forward"] * (2 if "trailing" in spent else 1) for spent in networks.values())
    least, most = (3600 * each for each in hours(read_measured(folder, networks), TIMED, images))
    return Timed(found["device"], len(networks), images, seconds, forward, (least, most))


def read_measured(folder: str | os.PathLike[str], names: Collection[str] | None = None) -> Measured:
    """The costs recorded with the stored signatures of ``book/data/imagenet_signatures``.

    ``names`` restricts the costs to some networks; the highest rate is always taken over all networks.
    """
    forward, rates, calls = 0.0, [], 0
    for name, found in before_training(folder).items():
        seconds = found.provenance["forward_passes"]["cpu_seconds"] / found.provenance["images"]
        operations, asked = (2e-3 * (facts(name, weights).gflops or 0.0) for weights in (None, WEIGHTS.get(name)))
        rates.append(operations / seconds)
        if names is None or name in names:
            passes = 1 + other_pool(found)
            forward += passes * seconds * asked / operations
            calls += passes * len(found.calls)
    beyond = []
    for name in PAPER_NETWORKS:
        found = Signature.load(Path(folder, "paper", f"{name}.trained.photographs.0.json"))
        spent = found.provenance["cpu_seconds_an_image"]
        beyond.append((spent["signature"] - spent["forward"]) / len(found.calls))
    return Measured(forward, max(rates), calls, (min(beyond), max(beyond)))


def hours(measured: Measured, device: Device, images: int) -> tuple[float, float]:
    """The least and the greatest number of hours for ``images`` images, by the assumptions of this module.

    A GPU runs the network while the cores compute scores, so the least time is the longer of the two times. The
    greatest time is their sum. Without a GPU, the cores do both.

    >>> hours(Measured(80.0, 0.1, 1000, (0.001, 0.002)), Device("four cores", None, 4), 3600)
    (20.25, 60.5)
    >>> hours(Measured(80.0, 0.1, 1000, (0.001, 0.002)), Device("a GPU, four cores", 8.0, 4), 3600)
    (1.0, 3.5)
    """
    network = measured.forward * (measured.rate / device.peak if device.peak else 1 / device.cores)
    scores, more = (each * measured.calls / device.cores for each in measured.beyond)
    least = max(network, scores) if device.peak else network + scores
    return images / 3600 * least, images / 3600 * (WORSE * network + more)


def hours_table(measured: Measured) -> Table:
    """The estimated ranges of hours of the full run on Imagenette and on ImageNet, for each of :data:`DEVICES`."""

    def span(device: Device, data: str) -> str:
        images = EXPECTED[data] // BATCH_SIZE * BATCH_SIZE  # full batches alone
        return " to ".join(map(_rounded, hours(measured, device, images)))

    names = {"imagenette": "Imagenette, hours (estimate)", "imagenet": "ImageNet, hours (estimate)"}
    return Table.from_rows([
        {"device": device.name, "peak, 10^12 operations a second": f"{device.peak or '-'}"}
        | {heading: span(device, data) for data, heading in names.items()}
        for device in DEVICES
    ])  # fmt: skip


def _rounded(number: float) -> str:
    """The number with two digits, because no estimate is more accurate."""
    return f"{float(f'{number:.2g}'):.{0 if number >= 10 else 1}f}"
