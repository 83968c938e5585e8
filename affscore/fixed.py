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
    """The tensors computed only from a network's parameters, buffers and other attributes, not from the batch.

    An operator's output is fixed if it has tensors among its inputs and these are all fixed. A tensor made from nothing
    (``arange``, ``zeros``) is constant as well, until data is written into it.
    """

    def __init__(self, model: nn.Module) -> None:
        attributes = [tensor for module in model.modules() for tensor in tensors_in(vars(module).values())]
        self.weights = {storage_key(p) for p in model.parameters() if all_dense([p])}
        self.learned = WeakTensorKeyDictionary(dict.fromkeys([*attributes, *model.buffers()], False))
        self.learned.update(dict.fromkeys(model.parameters(), True))  # and whatever is computed with them
        self.made = WeakTensorKeyDictionary()
        self.written: dict[int, Any] = {}  # storages that data was written into, kept alive

    def __call__(self, tensor: Tensor) -> bool:
        return tensor in self.learned and not self._overwritten(tensor)

    def constant(self, tensor: Tensor) -> bool:
        """Whether a tensor is fixed or made from nothing."""
        return (tensor in self.learned or tensor in self.made) and not self._overwritten(tensor)

    def _overwritten(self, tensor: Tensor) -> bool:
        return bool(self.written) and storage_key(tensor) in self.written

    def follow(self, operator: Operator, out: Any, fixed: bool) -> None:
        """Record an operator's outputs; ``fixed`` says that all its inputs are fixed."""
        if fixed:
            for result in tensors_in([out]):
                self.learned[result] = any(self.learned[each] for each in operator.inputs)
        elif self._from_nothing(operator):
            for result in tensors_in([out]):
                self.made[result] = True
        elif operator.writes:
            # From now on every tensor on this storage depends on the batch: one of them may be a view.
            for result in filter(self.constant, tensors_in([out])):
                self.written[storage_key(result)] = result.untyped_storage()

    def _from_nothing(self, operator: Operator) -> bool:
        name = operator.name
        blank = name.endswith("_like") or name.startswith("new_") or all(map(self.constant, operator.inputs))
        return blank and torch.Tag.nondeterministic_seeded not in operator.func.tags


def all_dense(args: Iterable[Any]) -> bool:
    """Whether all tensors among the arguments are dense: neither sparse nor nested."""
    return all(x.layout is torch.strided and not x.is_nested for x in tensors_in(args))
