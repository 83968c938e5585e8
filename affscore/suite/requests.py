"""What determines the numbers of a run, in words and checksums: a run resumes only if all of it is unchanged."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import scipy
import torch
from torch import nn

from affscore.engine import circumstances, versions
from affscore.errors import AffscoreError
from affscore.settings import Settings
from affscore.signatures import Signature
from affscore.zoo.batches import Batches

__all__ = [
    "TOTAL", "RunError", "check_same", "differences", "in_words", "network_checksum", "request", "request_of",
    "weights_checksum",
]  # fmt: skip

TOTAL = "unfinished_of"  # in the provenance of an unfinished file: the total number of batches


class RunError(AffscoreError, ValueError):
    """A run could not continue, or a file belongs to another run. Finished batches are kept."""


def weights_checksum(model: nn.Module) -> str:
    """The SHA-256 of all parameters and buffers of a network, their names, dtypes and shapes."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        _feed(digest, name, value)
    return digest.hexdigest()


def network_checksum(model: nn.Module) -> str:
    """The SHA-256 of a network's modules without their weights.

    It covers the kind of each module, its description (``extra_repr``), and its attributes that are numbers or text:
    slopes, eps, the names of activations. It does not cover the code of ``forward``.
    """
    digest = hashlib.sha256()
    for name, module in model.named_modules():
        plain = {key: value for key, value in vars(module).items() if _is_plain(value) and key != "training"}
        facts = [name, type(module).__module__, type(module).__qualname__, module.extra_repr(), sorted(plain.items())]
        if hasattr(module, "config"):
            facts.append(str(module.config))
        digest.update(f"{facts}\n".encode())
    return digest.hexdigest()


def _is_plain(value: Any) -> bool:
    return (isinstance(value, tuple) and all(map(_is_plain, value))) or isinstance(value, int | float | str | None)


def _feed(digest: Any, name: str, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    elif isinstance(value, Mapping | list | tuple):
        for key, item in sorted(value.items()) if isinstance(value, Mapping) else enumerate(value):
            _feed(digest, f"{name}.{key}", item)


def _data(batches: Any) -> dict[str, Any]:
    """The identity of the data: the provenance of :class:`Batches`, or the checksum of a list's first batch."""
    if isinstance(batches, Batches):
        return {key: value for key, value in batches.provenance.items() if key != "skipped"}
    digest = hashlib.sha256()
    _feed(digest, "", batches[0])
    return {"first_batch_sha256": digest.hexdigest()}


def request(
    model: nn.Module, batches: Any, device: torch.device, settings: Settings, provenance: Mapping[str, Any]
) -> dict[str, Any]:
    """All that the bits of a result may depend on, as loaded from JSON: weights, data, settings, device, versions."""
    facts: dict[str, Any] = {
        "model": type(model).__name__,
        **provenance,
        "weights_sha256": weights_checksum(model),
        "network_sha256": network_checksum(model),
        "data": _data(batches),
        **circumstances(settings, device),
        "versions": versions() | {"scipy": scipy.__version__},
    }
    if device.type == "cpu":
        # On a CPU the order of some sums depends on the number of threads.
        facts["threads"] = torch.get_num_threads()
    else:
        facts["versions"] |= {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    measured = {key: getattr(settings, key) for key in ("pool", "covariance", "companions")}
    return json.loads(json.dumps({"batches": len(batches), **measured, "provenance": facts}))


def request_of(signature: Signature) -> dict[str, Any]:
    """The :func:`request` of a signature, finished or not."""
    facts = dict(signature.provenance)
    total = facts.pop(TOTAL, len(signature.batch_sizes))
    if isinstance(facts.get("data"), Mapping):
        facts["data"] = {key: value for key, value in facts["data"].items() if key != "skipped"}
    return {
        "batches": total, "pool": signature.pool, "covariance": signature.covariance,
        "companions": list(signature.companions), "provenance": facts,
    }  # fmt: skip


def differences(old: Any, new: Any, name: str = "") -> list[str]:
    """The differences of two nested values that JSON can hold, such as ``a.b is 1 there and 3 here``."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = [*old, *(key for key in new if key not in old)]
        parts = (differences(old.get(key), new.get(key), f"{name}.{key}" if name else str(key)) for key in keys)
        return [text for part in parts for text in part]
    return [] if old == new else [f"{name} is {old!r} there and {new!r} here"]


def check_same(path: Path, different: list[str]) -> None:
    """Raise RunError if there are differences: ``path`` is the file of another run."""
    if different:
        raise RunError(
            f"{path} is of another run: {'; '.join(different)}. With --restart it is renamed and measured again."
        )


def in_words(facts: Mapping[str, Any]) -> str:
    """Data or weights by their name and the beginning of their checksum."""
    name = [str(facts[key]) for key in ("dataset", "source") if key in facts][:1]
    sums = [f"{key} {str(facts[key])[:12]}" for key in ("sha256", "first_batch_sha256", "seed") if key in facts]
    return ", ".join(name + sums)
