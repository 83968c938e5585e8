"""The request of a run: all facts that determine its numbers, in words and checksums.

A run resumes only if its request is unchanged.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import scipy
import torch
from torch import nn

from affscore.errors import AffscoreError
from affscore.measuring import circumstances, versions
from affscore.settings import Settings
from affscore.signatures import TOTAL, Signature
from affscore.zoo.batches import Batches
from affscore_study.suite.checksums import checksum, network_checksum

__all__ = ["RunError", "check_same", "differences", "is_finished", "request", "request_of"]


class RunError(AffscoreError, ValueError):
    """A run could not continue, or a file belongs to another run. Finished batches are kept."""


def _data(batches: Any) -> dict[str, Any]:
    """The identity of the data: the provenance of :class:`Batches`, or the checksum of a list's first batch."""
    if isinstance(batches, Batches):
        return {key: value for key, value in batches.provenance.items() if key != "skipped"}
    return {"first_batch_sha256": checksum(batches[0])}


def request(
    model: nn.Module, batches: Any, device: torch.device, settings: Settings, provenance: Mapping[str, Any]
) -> dict[str, Any]:
    """All facts on which the bits of a result may depend: weights, data, settings, device and versions.

    The dictionary has the types that JSON returns.
    """
    facts: dict[str, Any] = {
        "model": type(model).__name__,
        **provenance,
        "weights_sha256": checksum(model.state_dict()),
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


def is_finished(signature: Signature) -> bool:
    """Whether a signature has all its batches. The name of its file does not count, because a file can be renamed."""
    return TOTAL not in signature.provenance


def differences(old: Any, new: Any, name: str = "") -> list[str]:
    """The differences of two nested values that JSON can hold, such as ``a.b is 1 there and 3 here``."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        keys = [*old, *(key for key in new if key not in old)]
        parts = (differences(old.get(key), new.get(key), f"{name}.{key}" if name else str(key)) for key in keys)
        return [text for part in parts for text in part]
    return [] if old == new else [f"{name} is {old!r} there and {new!r} here"]


def check_same(path: Path, different: list[str]) -> None:
    """Raise RunError if there are differences, because ``path`` is then the file of another run."""
    if different:
        raise RunError(
            f"{path} is of another run: {'; '.join(different)}. With --restart it is renamed and measured again."
        )
