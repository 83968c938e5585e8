"""Tracks the tensors of a pass that do not depend on the batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from affscore.calls import Operator, tensors_in
from affscore.torch_internals import WeakTensorKeyDictionary, storage_key

__all__ = ["Fixed", "all_dense"]


class Fixed:
    """The origins of the tensors of a pass that do not depend on the batch.

    A tensor is *fixed* if it is computed only from a network's parameters, buffers and other attributes. Fixed tensors
    are *constant*, and so are tensors created without inputs (``arange``, ``zeros_like``) and not at random. Tensors
    created without inputs are not fixed, because kernels outside the dispatcher write their results into them. Once
    data is written into a tensor, no tensor on its storage is constant.
    """

    def __init__(self, model: nn.Module) -> None:
        attributes = [tensor for module in model.modules() for tensor in tensors_in(vars(module).values())]
        self.weights = {storage_key(p) for p in model.parameters() if all_dense([p])}
        self._origins = WeakTensorKeyDictionary(dict.fromkeys([*attributes, *model.buffers()], "buffer"))
        self._origins.update(dict.fromkeys(model.parameters(), "parameter"))
        self._written: dict[int, Any] = {}  # storages that data was written into, kept alive

    def origin(self, tensor: Tensor) -> str | None:
        """The origin of a tensor, ``parameter``, ``buffer`` or ``nothing``; None if it depends on the batch."""
        written = self._written and storage_key(tensor) in self._written
        return None if written else self._origins.get(tensor)

    def __call__(self, tensor: Tensor) -> bool:
        return self.origin(tensor) in ("parameter", "buffer")

    def constant(self, tensor: Tensor) -> bool:
        """Whether a tensor is fixed or created without inputs."""
        return self.origin(tensor) is not None

    def learned(self, tensor: Tensor) -> bool:
        """Whether a tensor is a parameter, or computed from a parameter and otherwise only fixed tensors."""
        return self.origin(tensor) == "parameter"

    def of(self, operator: Operator) -> bool:
        """Whether an operator has only fixed inputs and writes no random numbers into them."""
        random = torch.Tag.nondeterministic_seeded in operator.func.tags
        return bool(operator.inputs) and all(map(self, operator.inputs)) and not (random and operator.writes)

    def follow(self, operator: Operator, out: Any, fixed: bool) -> None:
        """Record an operator's outputs; ``fixed`` is the result of :meth:`of` before it ran."""
        blank = operator.name.endswith("_like") or operator.name.startswith("new_")
        random = torch.Tag.nondeterministic_seeded in operator.func.tags
        if fixed:
            learned = any(map(self.learned, operator.inputs))
            self._origins.update(dict.fromkeys(tensors_in([out]), "parameter" if learned else "buffer"))
        elif not random and (blank or all(map(self.constant, operator.inputs))):
            self._origins.update(dict.fromkeys(tensors_in([out]), "nothing"))
        elif operator.writes:
            # From now on every tensor on this storage depends on the batch, since views share the storage.
            for result in filter(self.constant, tensors_in([out])):
                self._written[storage_key(result)] = result.untyped_storage()


def all_dense(args: Iterable[Any]) -> bool:
    """Whether all tensors among the arguments are dense: neither sparse nor nested."""
    return all(x.layout is torch.strided and not x.is_nested for x in tensors_in(args))
