"""The options that the commands share: the data, the measurement and the device."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from affscore.affine import COVARIANCES
from affscore.companions import MEASURES, check_names
from affscore.settings import POOLS, PRECISIONS, Settings
from affscore.zoo.names import DATASETS

if TYPE_CHECKING:
    import torch

__all__ = ["add_measuring", "device_of", "settings_of"]


def add_measuring(command: argparse.ArgumentParser, dataset: str, batch_size: int) -> None:
    """Add the options of data and measurement, which the commands share, to a command."""
    add = command.add_argument
    known = ", ".join(DATASETS)
    add("--dataset", default=dataset,
        help=f"{known}, a folder of images, or text:FILE with one text per line (default: {dataset})")  # fmt: skip
    add("--weights", help="IMAGENET1K_V1 (default), another name from torchvision, a tag from timm, random, or a file")
    add("--root", help="folder that holds the data, or to download it to (default: ~/.cache/affscore)")
    add("--batch-size", type=int, default=batch_size, help=f"images or texts in a batch (default: {batch_size})")
    add("--batches", type=int, help="number of batches (default: all full batches; 1 for photographs and random)")
    add("--seed", type=int, default=0, help="seed of order, crops, noise and random weights (default: 0)")
    add("--workers", type=int, default=0, help="processes that read images ahead (default: 0, read on demand)")
    add("--pool", choices=POOLS, default="spatial", help="axes to average over, or tokens to keep (default: spatial)")
    add("--covariance", choices=COVARIANCES, default="ledoit_wolf",
        help="estimate of the covariances (default: ledoit_wolf)")  # fmt: skip
    add("--companions", nargs="?", const="all", type=_companions, metavar="A,B",
        help="companion measures (default: twin, the score of linear layers), none, "
        f"or all: {', '.join(MEASURES)}")  # fmt: skip
    add("--calls", metavar="PATTERN", help="score only the calls whose names match, such as 'layer3.*' (default: all)")
    add("--precision", choices=PRECISIONS, default="full", help="precision of the forward pass (default: full)")
    add("--channels-last", action="store_true", help="give the network its images in channels-last memory format")
    add("--micro-batch", type=int, default=32, help="samples in one forward pass (default: 32)")
    add("--device", help="cpu, cuda, cuda:1, ... (default: cuda if there is one)")
    add("--quiet", action="store_true", help="no progress bar")


def _companions(text: str) -> tuple[str, ...]:
    """The measures of ``--companions``, checked while parsing: the option might have consumed the network's name."""
    try:
        return check_names(text == "all" or [name for name in text.split(",") if name not in ("", "none")])
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings that the options describe, with the linear twins if ``--companions`` is not given."""
    return Settings(
        companions=("twin",) if options.companions is None else options.companions,
        **{name: getattr(options, name) for name in (
            "pool", "covariance", "precision", "channels_last", "micro_batch", "calls",
        )},
    )  # fmt: skip


def device_of(options: argparse.Namespace) -> torch.device:
    """The device that the options name, after a check; the default is a GPU if there is one."""
    from torch import nn

    from affscore.measuring import resolve_device

    return resolve_device(nn.Module(), options.device or "auto")
