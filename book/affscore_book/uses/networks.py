"""The trained networks of the three experiments, with the inputs that each is measured on."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor, nn

from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model
from affscore_book.decade.networks import build
from affscore_book.decade.training import colour_data
from affscore_book.kit.networks import load_network, mlp, resnet
from affscore_book.kit.training import ImageData, image_data, load_weights
from affscore_book.linearized.slopes import linearize
from affscore_book.transformers.gpt import build_gpt
from affscore_book.transformers.gpt_bytes import byte_parts, cut_windows, reference_bytes

__all__ = ["ALARMED", "FITTED", "HELD_OUT", "NETWORKS", "Case", "data_of", "load_case"]

#: Images on which lines are fitted, on which the cost is measured, and on which accuracy after removal is.
FITTED, HELD_OUT, JUDGED = 256, 500, 1000
CROPS, WINDOWS = 128, 32
#: Of E1, and of E2 where there are labels and six calls: by name, the family.
NETWORKS = {
    "resnet20_0": "resnet",
    "plain20_0": "plain",
    "alexnet-1": "alexnet",
    "mlp_late_0.002": "perceptron",
    "myrtle_0": "myrtle",
    "gelu-0": "gpt",
    "resnet20_without_last_relu_0": "resnet",
    "residual_late_0.003": "resnet",
    "plain_late_0.003": "plain",
    "efficientnet_lite0": "efficientnet",
    "vgg11-1": "vgg",
    "mlp_late_0.005": "perceptron",
    "myrtle_without_norm_1": "myrtle",
    "resnet20_slope0.1_0": "resnet",
    "plain20_1": "plain",
    "resnet20_2": "resnet",
    "myrtle_constant_width_0": "myrtle",
    "plain20_2": "plain",
    "resnet20_without_last_relu_1": "resnet",
    "mlp_late_0.01": "perceptron",
}
#: Of E5: seed 0 of the decade.
ALARMED = ("alexnet", "vgg11_bn", "resnet18", "mobilenet_v3", "vit_8")


class Case(NamedTuple):
    """A network with its inputs; labels are None where there are none."""

    network: nn.Module
    fitted: Tensor
    held_out: Tensor
    labels: Tensor | None
    judged: Tensor | None
    judged_labels: Tensor | None


class Windows(nn.Module):
    """A byte decoder that gives one row of logits a byte: int64 (n, tokens) to float32 (n * tokens, 256)."""

    def __init__(self, decoder: nn.Module) -> None:
        super().__init__()
        self.decoder = decoder

    def forward(self, windows: Tensor) -> Tensor:
        return self.decoder(windows).flatten(0, 1)  # type: ignore[no-any-return]


@cache
def data_of(colour: bool) -> ImageData:
    """Fashion-MNIST in one channel or three."""
    return colour_data() if colour else image_data()


def _images(network: nn.Module, data: ImageData) -> Case:
    def some(part: str, start: int, count: int) -> tuple[Tensor, Tensor]:
        found = getattr(data, part).take(slice(start, start + count))
        return data.standardise(found.images), found.labels

    return Case(network, some("train", 0, FITTED)[0], *some("test", 0, HELD_OUT), *some("test", HELD_OUT, JUDGED))


def _linearized(folder: Path, name: str) -> Case:
    kind = name.split("_")[0]
    convolutional = resnet(8, (2, 2, 2), stem_stride=2, channels=1, residual=kind == "residual")
    network = linearize(mlp(64, 6) if kind == "mlp" else convolutional, torch.zeros(1, 1, 32, 32))
    load_weights(network, folder / "linearized" / f"{name}.safetensors")
    return _images(network, data_of(False))


def _lite(folder: Path, name: str) -> Case:
    loaded = load_model(name)
    fitted, held_out = (
        load_dataset("photographs", preprocess=loaded.preprocess, batch_size=CROPS, batches=1, seed=seed)[0]
        for seed in (1, 2)
    )
    return Case(loaded.model.eval(), fitted, held_out, None, None, None)


def _gpt(folder: Path, name: str) -> Case:
    decoder = build_gpt("gelu")
    load_weights(decoder, folder / "transformers" / "gpt" / "weights" / f"{name}.safetensors")
    text = (folder / "transformers" / "gpt" / "held_out.txt").read_bytes()
    parts = byte_parts(reference_bytes()).train, torch.frombuffer(bytearray(text), dtype=torch.uint8).long()
    fitted, held_out = (cut_windows(part, WINDOWS)[:, :-1] for part in parts)
    return Case(Windows(decoder).eval(), fitted, held_out, None, None, None)


def load_case(folder: str | Path, name: str) -> Case:
    """One of :data:`NETWORKS`; ``folder`` is ``book/data``.

    Raises
    ------
    ValueError
        If there is no such network, or its file is damaged.
    """
    folder = Path(folder)
    if name not in NETWORKS:
        raise ValueError(f"name is {name!r}; it should be one of {', '.join(NETWORKS)}.")
    loaders: dict[str, Callable[[Path, str], Case]] = {"efficientnet": _lite, "gpt": _gpt}
    if loader := loaders.get(NETWORKS[name]):
        return loader(folder, name)
    if "late" in name:
        return _linearized(folder, name)
    if name.endswith("-1"):
        network = build(name.removesuffix("-1"))
        load_weights(network, folder / "uses" / "weights" / f"{name}.safetensors")
        return _images(network, data_of(True))
    return _images(load_network(folder / "networks" / f"{name}.safetensors")[0], data_of(False))
