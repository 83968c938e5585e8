"""Loads networks of timm and of Hugging Face's transformers, which their libraries build and whose input they prepare.

``timm:NAME`` uses timm's transforms, and ``hf:FOLDER`` or ``hf:ID`` uses the image processor or tokenizer stored with
the weights. Weights are safetensors, which hold no code, and no code of a repository is ever run. Missing files are
downloaded once from the Hugging Face hub.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch

from affscore.arguments import did_you_mean, expanded, line_of
from affscore.zoo.text import Tokens
from affscore.zoo.weights import read_state_dict, require, sha256

__all__ = ["HUBS", "HuggingFace", "Timm"]

LOCAL = {"local_files_only": True, "trust_remote_code": False}
DESCRIPTIONS = ["*.json", "*.txt", "*.model"]  # the files that describe a network and its tokenizer
WEIGHTS = "model*.safetensors"


class Timm:
    """A network of timm, with or without the tag of a set of weights: ``vit_tiny_patch16_224.augreg_in21k``."""

    def __init__(self, name: str) -> None:
        timm = self.timm = require("timm", "timm")
        self.name, self.code = f"timm:{name}", f"timm {version('timm')}"
        self.architecture, _, tag = name.partition(".")
        if not timm.is_model(self.architecture):
            hint = did_you_mean(self.architecture, timm.list_models(), "timm.list_models() lists all.")
            raise ValueError(f"name: timm has no model {name!r}. {hint}")
        self.sets = tuple(each.partition(".")[2] for each in timm.list_pretrained(f"{self.architecture}.*"))
        if tag and tag not in self.sets:
            raise ValueError(f"name: {self.architecture} has no weights {tag!r}; timm has {', '.join(self.sets)}.")
        usual = timm.get_pretrained_cfg(self.architecture)
        self.default = tag or (usual.tag if usual else "")

    def _tagged(self, weights: str | None) -> tuple[str, Any]:
        """Timm's name for a set of weights, by default its usual set, and the configuration if there is one."""
        name = ".".join(filter(None, [self.architecture, weights or self.default]))
        return name, self.timm.get_pretrained_cfg(name)

    def preprocessing(self, weights: str | None) -> tuple[Callable[[Any], torch.Tensor], int]:
        _, config = self._tagged(weights)
        options = self.timm.data.resolve_data_config(pretrained_cfg=config.to_dict() if config else {})
        return self.timm.data.create_transform(**options), options["input_size"][-1]

    def official(self, weights: str) -> tuple[dict[str, Any], None]:
        self.default = weights  # each set of weights has its own head
        folder = _downloaded(self._repository(weights), [WEIGHTS])
        states = {"state_dict": read_state_dict(folder / "model.safetensors")}
        name, _ = self._tagged(weights)
        return self.timm.create_model(name, pretrained=True, pretrained_cfg_overlay=states).state_dict(), None

    def facts(self, weights: str) -> dict[str, Any]:
        repository = self._repository(weights)
        found = require("huggingface_hub", "timm").try_to_load_from_cache(repository, "model.safetensors")
        files = [Path(found)] if isinstance(found, str) else []
        source, licence = f"https://huggingface.co/{repository}", self._tagged(weights)[1].license
        return _facts(source, licence, files, f"pretrained, {repository}")

    def _repository(self, weights: str) -> str:
        """The repository of a set of weights; ValueError if it is not on the hub."""
        _, config = self._tagged(weights)
        if not config.hf_hub_id:
            raise ValueError(
                f"weights: {self.name} has {weights!r} only at {config.url}, not as safetensors; give the path of that "
                "file, or weights='random'."
            )
        return config.hf_hub_id

    def build(self, image_size: int | None, initialise: bool) -> torch.nn.Module:
        return self.timm.create_model(self._tagged(None)[0], pretrained=False)


class HuggingFace:
    """A network of transformers for images or text, from a folder or a repository of the Hugging Face hub."""

    sets, default = ("safetensors",), "safetensors"

    def __init__(self, name: str) -> None:
        self.transformers = require("transformers", "text")
        folder = expanded("name", name)
        self.repository = "" if folder.is_dir() else name
        self.folder = _downloaded(name, DESCRIPTIONS) if self.repository else folder.resolve()
        self.name = f"hf:{name if self.repository else self.folder.name}"
        self.code = f"transformers {version('transformers')}"
        self.config = self._read(self.transformers.AutoConfig)
        if "/" in str(getattr(self.config, "_attn_implementation", "")):  # compiled kernels of a repository
            raise ValueError(
                f"name: the configuration of {self.name} asks for the kernels {self.config._attn_implementation!r}, "
                "which are code from a repository; remove that entry from config.json."
            )
        network = self.transformers.MODEL_MAPPING.get(type(self.config), None)
        self.takes = getattr(network[0] if isinstance(network, tuple) else network, "main_input_name", "nothing known")
        if self.takes not in ("input_ids", "pixel_values") or self.config.is_encoder_decoder:
            what = "two texts" if self.config.is_encoder_decoder else self.takes
            raise ValueError(
                f"name: {self.name} takes {what} as its input, not images or one text; pass the network and your own "
                "batches to affscore.signature."
            )
        self.without_pooler = False

    def _read(self, kind: Any, **options: Any) -> Any:
        try:
            with self._quiet():
                return kind.from_pretrained(self.folder, **LOCAL, **options)
        except ImportError:
            raise
        except Exception as error:  # transformers raises nearly every kind for damaged or missing files
            text = f"{kind.__name__} cannot read it ({line_of(error)})"
            raise ValueError(f"name: {self.name} is not a network that transformers can load: {text}.") from error

    @contextmanager
    def _quiet(self) -> Iterator[None]:
        """Silence the reports and progress bars of transformers; its settings are restored afterwards."""
        log = self.transformers.utils.logging
        before = log.get_verbosity(), log.is_progress_bar_enabled()
        log.set_verbosity_error()
        log.disable_progress_bar()
        try:
            yield
        finally:
            log.set_verbosity(before[0])
            if before[1]:
                log.enable_progress_bar()

    def preprocessing(self, weights: str | None) -> tuple[Callable[[Any], Any], int | None]:
        if self.takes == "input_ids":
            tokenizer = self._read(self.transformers.AutoTokenizer)
            if not set(tokenizer.get_vocab()) - set(tokenizer.all_special_tokens):  # transformers made it up
                raise ValueError(f"name: {self.name} has no tokenizer; put the tokenizer's files into that folder.")
            return Tokens(tokenizer, getattr(self.config.get_text_config(), "max_position_embeddings", None)), None
        pixels = _Pixels(self._read(self.transformers.AutoImageProcessor))
        return pixels, pixels(require("PIL.Image").new("RGB", (256, 256))).shape[-1]

    def official(self, weights: str) -> tuple[dict[str, Any], None]:
        if self.repository:
            _downloaded(self.repository, [WEIGHTS])
        self.facts(weights)  # raises if there are none
        model, found = self._read(self.transformers.AutoModel, use_safetensors=True, output_loading_info=True)
        initialised = set(found["missing_keys"])
        # Many are stored without a pooler, which AutoModel would initialise at random.
        self.without_pooler = any(name.startswith("pooler.") for name in initialised)
        if missing := sorted(name for name in initialised if not name.startswith("pooler.")):
            raise ValueError(f"weights: {self.name} lacks {len(missing)} tensors, first {missing[0]}.")
        # The file may hold the head of a task as well, but no further layer of a kind that the network has.
        kinds = {_numberless(name) for name in model.state_dict()}
        unused = (name.removeprefix(f"{model.base_model_prefix}.") for name in found["unexpected_keys"])
        if more := sorted(name for name in unused if _numberless(name) in kinds):
            raise ValueError(
                f"weights: {self.name} has {len(more)} tensors for which its config.json has no layer, first {more[0]}."
            )
        return {name: value for name, value in model.state_dict().items() if name not in initialised}, None

    def description(self) -> dict[str, Any]:
        """The checksum of all files except the weights: configuration, tokenizer, image processor."""
        digest = hashlib.sha256()
        for file in sorted({file for pattern in DESCRIPTIONS for file in self.folder.glob(pattern) if file.is_file()}):
            digest.update(f"{file.name} {sha256(file)}\n".encode())
        return {"description_sha256": digest.hexdigest()}

    def facts(self, weights: str) -> dict[str, Any]:
        files = list(self.folder.glob(WEIGHTS))
        if self.repository:
            source = f"https://huggingface.co/{self.repository}"
            return _facts(source, None, files, f"pretrained, {self.repository}")
        if not files:
            raise FileNotFoundError(f"weights: there is no {WEIGHTS} in {self.folder}; other formats may hold code.")
        return _facts(self.folder.name, "as given with that folder", files, f"from {self.folder.name}")

    def build(self, image_size: int | None, initialise: bool) -> torch.nn.Module:
        model = self.transformers.AutoModel.from_config(self.config, trust_remote_code=False).float()
        if self.without_pooler:
            model.pooler = None
        return model


HUBS: dict[str, type[Timm] | type[HuggingFace]] = {"timm": Timm, "hf": HuggingFace}


@dataclass(frozen=True)
class _Pixels:
    """Maps a PIL image to the input tensor of a network of transformers."""

    processor: Any

    def __call__(self, image: Any) -> torch.Tensor:
        return self.processor(image, return_tensors="pt")["pixel_values"][0]


def _numberless(name: str) -> str:
    """The name of a tensor, with # in place of the numbers of layers."""
    return re.sub(r"\d+", "#", name)


def _downloaded(repository: str, patterns: list[str]) -> Path:
    """The local folder of a repository of the hub, into which these files were downloaded."""
    try:
        return Path(require("huggingface_hub", "text").snapshot_download(repository, allow_patterns=patterns))
    except ImportError:
        raise
    except Exception as error:  # no network, no such repository, no such name
        raise OSError(
            f"name: {repository!r} is not a folder and cannot be downloaded from huggingface.co ({line_of(error)})."
        ) from error


def _facts(source: str, licence: str | None, files: Iterable[Path], weights: str) -> dict[str, Any]:
    """The identity of weights, with the SHA-256 of each of their files if the files have already been downloaded."""
    sums = [sha256(path) for path in sorted(files)]
    checksum = {"sha256": ",".join(sums)} if sums else {}
    return {"source": source, "licence": licence or "as that page says", **checksum, "weights": weights}
