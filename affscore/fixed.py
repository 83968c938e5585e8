"""Which tensors of a pass do not depend on the batch."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from affscore.calls import Operator, tensors_in
from affscore.torch_internals import WeakTensorKeyDictionary, storage_key

__all__ = ["Fixed", "all_dense"]


class Fixed:
    """The tensors computed only from a network's parameters, buffers, other attributes and constants.

    A constant is made from nothing (``arange``, ``zeros_like``), but not at random. Otherwise an operator's output is
    fixed if all its inputs are. Once data is written into a tensor, no tensor on its memory is fixed any more.
    """

    def __init__(self, model: nn.Module) -> None:
        attributes = [tensor for module in model.modules() for tensor in tensors_in(vars(module).values())]
        self.weights = {storage_key(p) for p in model.parameters() if all_dense([p])}
        self._learned = WeakTensorKeyDictionary(dict.fromkeys([*attributes, *model.buffers()], False))
        self._learned.update(dict.fromkeys(model.parameters(), True))
        self._written: dict[int, Any] = {}  # storages that data was written into, kept alive

    def __call__(self, tensor: Tensor) -> bool:
        return tensor in self._learned and not (self._written and storage_key(tensor) in self._written)

    def learned(self, tensor: Tensor) -> bool:
        """Whether a fixed tensor is a parameter or computed from one."""
        return bool(self(tensor) and self._learned[tensor])

    def of(self, operator: Operator) -> bool:
        """Whether an operator works on fixed tensors alone, and writes no random numbers into them."""
        random = torch.Tag.nondeterministic_seeded in operator.func.tags
        return bool(operator.inputs) and all(map(self, operator.inputs)) and not (random and operator.writes)

    def follow(self, operator: Operator, out: Any, fixed: bool) -> None:
        """Record an operator's outputs; ``fixed`` is what :meth:`of` said before it ran."""
        blank = not operator.inputs or operator.name.endswith("_like") or operator.name.startswith("new_")
        if fixed or (blank and torch.Tag.nondeterministic_seeded not in operator.func.tags):
            self._learned.update(dict.fromkeys(tensors_in([out]), any(map(self.learned, operator.inputs))))
        elif operator.writes:
            # From now on every tensor on this storage depends on the batch: one of them may be a view.
            for result in filter(self, tensors_in([out])):
                self._written[storage_key(result)] = result.untyped_storage()


def all_dense(args: Iterable[Any]) -> bool:
    """Whether all tensors among the arguments are dense: neither sparse nor nested."""
    return all(x.layout is torch.strided and not x.is_nested for x in tensors_in(args))
