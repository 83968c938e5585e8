"""All private interfaces of PyTorch that the package uses, in one place, because another version may break them.

The package is tested with version :data:`TESTED`; older and newer versions usually work. If an interface is missing,
``import affscore`` fails with a sentence that names it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

import torch
from torch import Tensor, nn

__all__ = [
    "TESTED", "TensorWeakRef", "TorchDispatchMode", "WeakTensorKeyDictionary", "compiled", "in_backward",
    "in_parts", "made_of_parts", "mapped", "schema", "storage_key", "tree_leaves", "tree_map", "version",
]  # fmt: skip

#: The tests pass with this version of PyTorch.
TESTED = "2.15.0"

try:
    from torch._functorch import vmap as _vmap
    from torch.utils._python_dispatch import TorchDispatchMode
    from torch.utils._pytree import tree_leaves, tree_map
    from torch.utils.weak import TensorWeakRef, WeakTensorKeyDictionary

    _PARTS = torch._C.DispatchKey.CompositeImplicitAutograd  # the key of operators composed of other operators
    _has_kernel = torch._C._dispatch_has_kernel_for_dispatch_key
    _graph_task = torch._C._current_graph_task_id
    _operator, _tensor = torch.ops.aten.relu.default, torch.empty(0)
    _ = _operator._schema.is_mutable, _operator._op_dk, _tensor.untyped_storage()._cdata, _tensor._version
    _NESTING = {name: getattr(_vmap, name) for name in ("_vmap_increment_nesting", "_vmap_decrement_nesting")}
except (ImportError, AttributeError) as error:
    raise ImportError(
        f"affscore was tested with PyTorch {TESTED}; version {torch.__version__} lacks something it needs ({error}). "
        f"Install PyTorch {TESTED}, or a newer affscore."
    ) from error


def schema(func: Any) -> Any:
    """The schema of an operator: its arguments, and which of them it overwrites."""
    return func._schema


def storage_key(tensor: Tensor) -> int:
    """A number that is equal for tensors that share memory, and valid while the memory is in use."""
    return tensor.untyped_storage()._cdata


def version(tensor: Tensor) -> int:
    """How often a tensor was written to; 0 for inference tensors, which do not count writes."""
    return 0 if tensor.is_inference() else tensor._version


def compiled(module: nn.Module) -> bool:
    """Whether ``torch.compile`` made this module, or was called on it."""
    return type(module).__name__ == "OptimizedModule" or getattr(module, "_compiled_call_impl", None) is not None


def in_backward() -> bool:
    """Whether autograd is running a backward pass, for instance to compute forces inside a forward pass."""
    return bool(_graph_task() != -1)


def made_of_parts(func: Any) -> bool:
    """Whether an operator is composed of other operators; only inference mode dispatches it as a whole."""
    return bool(_has_kernel(func.name(), _PARTS))


def in_parts(func: Any, args: Any, kwargs: Any) -> Any:
    """Run an operator as the operators that it is composed of."""
    return func._op_dk(_PARTS, *args, **kwargs)


@contextmanager
def mapped(count: Callable[[int], None]) -> Iterator[None]:
    """In the block, call ``count(1)`` when a ``torch.vmap`` begins in any thread, and ``count(-1)`` when it ends."""

    def counted(change: Callable[..., Any], by: int) -> Callable[..., Any]:
        def changed(*args: Any) -> Any:
            count(by)
            return change(*args)

        return changed

    up, down = _NESTING
    changed: dict[str, Any] = {up: counted(_NESTING[up], 1), down: counted(_NESTING[down], -1)}
    with patch.multiple(_vmap, **changed):
        yield
