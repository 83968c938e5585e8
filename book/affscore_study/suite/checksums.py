"""Checksums of weights, of data, and of the modules of a network without their weights.

A checksum is the same in every process, so nothing here depends on an address in memory or on the order of a set.
"""

from __future__ import annotations

import copyreg
import hashlib
from collections.abc import Iterable, Mapping
from enum import Enum
from types import BuiltinFunctionType, CellType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import torch
from torch import nn

__all__ = ["checksum", "network_checksum"]

#: The number of values that may lie inside each other. A value that lies deeper counts by its kind only, because a
#: list that links thousands of objects would use up the stack.
DEPTH = 50

_PLAIN = bool | int | float | complex | str | bytes | torch.dtype | torch.device | torch.layout | torch.memory_format
# The attributes that every module has: its mode, its registers of weights and modules, and its hooks.
_EVERY_MODULE = frozenset(vars(nn.Module()))


def checksum(values: Any) -> str:
    """The SHA-256, in hexadecimal, of all tensors in nested mappings and lists.

    The names or places of the tensors, their dtypes, shapes and values count. Everything else is ignored.
    """
    digest = hashlib.sha256()
    _feed(digest, "", values)
    return digest.hexdigest()


def _feed(digest: Any, name: str, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    elif isinstance(value, Mapping | list | tuple):
        for key, item in sorted(value.items()) if isinstance(value, Mapping) else enumerate(value):
            _feed(digest, f"{name}.{key}", item)


def network_checksum(model: nn.Module) -> str:
    """The SHA-256, in hexadecimal, of a network's modules without their weights.

    It covers the kind of each module, its description (``extra_repr``), its buffers, and its attributes: numbers, text,
    functions, tensors, modules that it has not registered, and all of these in lists, dictionaries, sets and other
    objects. A function counts by its name, its defaults and its enclosed values; a lambda or a function inside another
    one counts by its code too. The code of ``forward`` and hooks are not covered.

    An attribute that a pass changes, such as a stored output, makes another network: such a network has to be made
    anew before it is measured again.
    """
    walk = _Walk({id(module): name for name, module in model.named_modules()})
    digest = hashlib.sha256()
    for name, module in model.named_modules():
        digest.update(f"{name}\n".encode() + walk.of_module(module))
    return digest.hexdigest()


class _Walk:
    """Digests of the values in a network: the hash of a value's kind and of the digests of its parts."""

    def __init__(self, names: Mapping[int, str]) -> None:
        self._names = names  # of the network's modules, by identity
        self._inside: list[int] = []  # the identities of the values that are being described, from the outermost one
        self._known: dict[int, tuple[Any, bytes]] = {}  # holds the value, so that no other one takes its identity

    def of_module(self, module: nn.Module) -> bytes:
        own = {name: value for name, value in vars(module).items() if name not in _EVERY_MODULE}
        if type(module).__module__.startswith("torch._dynamo"):  # what torch.compile adds names places in memory
            own = {}
        buffers = dict(module.named_buffers(recurse=False))
        return self._joined(f"{_name(type(module))} {module.extra_repr()}", [own, buffers])

    def _joined(self, kind: str, parts: Iterable[Any] = ()) -> bytes:
        digest = hashlib.sha256(kind.encode(errors="backslashreplace"))
        for part in parts:
            digest.update(self._of(part))
        return digest.digest()

    def _of(self, value: Any) -> bytes:
        """The digest of a value. A value that is met inside itself counts by the number of steps outwards to it."""
        key = id(value)
        if key in self._known:
            return self._known[key][1]
        if key in self._inside:
            return self._joined(f"the value {len(self._inside) - self._inside.index(key)} steps outwards")
        if len(self._inside) == DEPTH:
            return self._joined(_name(type(value)))
        self._inside.append(key)
        try:
            found = self._joined(*self._described(value))
        finally:
            self._inside.pop()
        self._known[key] = value, found
        return found

    def _described(self, value: Any) -> tuple[str, Iterable[Any]]:
        """A description of a value, and its parts in an order that depends on nothing else."""
        kind = _name(type(value))
        match value:
            case _ if value is None or isinstance(value, _PLAIN):
                return f"{kind} {value!r}", ()
            case torch.Tensor() if type(value) in (torch.Tensor, nn.Parameter) and value.layout is torch.strided:
                if not (value.is_quantized or value.is_meta):
                    return f"{kind} {checksum(value.detach().resolve_conj().resolve_neg())}", ()
            case nn.Module() if id(value) in self._names:
                return f"the module {self._names[id(value)]}", ()
            case nn.Module():
                return f"{kind} {value.extra_repr()}", (vars(value),)
            case np.ndarray():
                content = value.tolist() if value.dtype.hasobject else value.tobytes()
                return f"{kind} {value.dtype} {value.shape}", (content,)
            case Mapping():
                return kind, [part for key in sorted(value, key=self._of) for part in (key, value[key])]
            case set() | frozenset():
                return kind, sorted(value, key=self._of)
            case list() | tuple():
                return kind, value
            case Enum():
                return f"{kind} {value.name}", ()
            case FunctionType():
                code = value.__code__
                inner = (code,) if "<" in code.co_qualname else ()
                enclosed = value.__closure__ or ()
                return f"function {_name(value)}", (*inner, enclosed, value.__defaults__, value.__kwdefaults__)
            case CellType():
                return kind, (value.cell_contents,)
            case CodeType():
                return f"{kind} {value.co_qualname}", (value.co_code, value.co_names, value.co_consts)
            case MethodType():
                return kind, (value.__func__, value.__self__)
            case BuiltinFunctionType():
                return f"{kind} {_name(value)}", (value.__self__,)
            case type() | ModuleType():
                return f"{kind} {_name(value)}", ()
        if callable(value) and isinstance(getattr(value, "__name__", None), str):  # an operator of PyTorch
            return f"{kind} {_name(value)}", ()
        if hasattr(value, "to_json_string"):  # a configuration of transformers leaves out its path
            return f"{kind} {value}", ()
        return kind, _as_pickled(value)


def _name(value: Any) -> str:
    return f"{getattr(value, '__module__', None)}.{getattr(value, '__qualname__', None) or value.__name__}"


def _as_pickled(value: Any) -> list[Any]:
    """The parts from which pickle would make an object again; an empty list if pickle cannot."""
    try:
        reduced = copyreg.dispatch_table.get(type(value), lambda this: this.__reduce_ex__(4))(value)
        head, tail = ([reduced], ()) if isinstance(reduced, str) else (list(reduced[:3]), reduced[3:5])
        return head + [list(items) for items in tail if items is not None]
    except Exception:  # an object may raise any error
        return []
