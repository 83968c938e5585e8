"""One traced pass of a network over a batch, whole or in pieces, on the network's device.

The caller's settings (training modes of modules, TF32) are restored afterwards, even after an error.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from affscore.calls import Observation, Trace
from affscore.settings import Settings
from affscore.torch_internals import version
from affscore.tracing import CHANGED, trace

__all__ = ["Forward", "Inputs", "evaluating", "inputs_of", "length", "tf32"]

# Threads share training modes and TF32, so they take turns.
_ONE_PASS = threading.RLock()

#: A network's input: a mapping from argument names to tensors. A single positional tensor has the name "".
Inputs = dict[str, Tensor]


def inputs_of(batch: Any, index: int) -> Inputs:
    """The network's input in a batch: a tensor, the first of (input, target), or a mapping of keyword arguments."""
    kind, many = type(batch).__name__, 0
    if isinstance(batch, list | tuple) and batch:
        batch, many = batch[0], len(batch)
        kind = type(batch).__name__ if many < 3 else f"{kind} of {many}"
    tensors = list(batch.values()) if isinstance(batch, Mapping) else [batch]
    named = not isinstance(batch, Mapping) or all(isinstance(name, str) for name in batch)
    if not tensors or many > 2 or not all(isinstance(value, Tensor) for value in tensors) or not named:
        raise ValueError(
            f"batch {index} is a {kind}; it should be a tensor, a pair (inputs, targets), or a mapping from argument "
            "names to tensors."
        )
    if not all(value.layout is torch.strided and not value.is_nested and not value.is_meta for value in tensors):
        raise ValueError(f"batch {index} holds a sparse, nested or meta tensor; it should be dense and hold values.")
    lengths = {value.shape[0] if value.ndim else 0 for value in tensors}
    if len(lengths) > 1 or min(lengths) < 2:
        samples = f"{' and '.join(map(str, sorted(lengths)))} sample{'s' * (lengths != {1})}"
        raise ValueError(f"batch {index} has {samples}; a score needs at least 2, the same number in each tensor.")
    if not isinstance(batch, Mapping):
        return {"": batch}
    if "decoder_attention_mask" in batch:
        raise ValueError(f"batch {index} has a decoder_attention_mask; a decoder takes samples of one length.")
    if "attention_mask" in batch:
        _check_mask(batch["attention_mask"], index)
    return dict(batch)


def _check_mask(mask: Tensor, index: int) -> None:
    if mask.ndim != 2 or not bool(((mask == 0) | (mask == 1)).all()):
        raise ValueError(
            f"attention_mask of batch {index} has shape {tuple(mask.shape)}; it should be (n, tokens), 1 for each "
            "token and 0 for padding."
        )
    if len(without := (~mask.bool().any(1)).nonzero()):
        raise ValueError(f"attention_mask of batch {index} masks every token of sample {without[0].item()}.")


def length(inputs: Inputs) -> int:
    """The number of samples."""
    return len(next(iter(inputs.values())))


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Set evaluation mode within the block and restore each module's training flag afterwards.

    A module with its own ``train`` method, which may merge weights, is restored by that method. Its weights are then
    copied back, because adding and subtracting leaves rounding errors.
    """
    before = {module: module.training for module in model.modules()}
    special = [module for module in before if type(module).train is not nn.Module.train]
    tensors = [x for module in special for x in (*module.parameters(recurse=False), *module.buffers(recurse=False))]
    saved = [x.detach().clone() for x in tensors]
    model.eval()
    try:
        yield
    finally:
        for module in special:
            module.train(before[module])
        for x, old in zip(tensors, saved, strict=True):
            if x.shape == old.shape:
                x.data.copy_(old)
        for module, training in before.items():
            module.training = training


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """Allow or forbid TF32 within the block. Its ten bits of mantissa change the second decimal of some scores.

    PyTorch has two interfaces for this setting. The older one is set, so that a network may read either; both are
    restored at the end. CPUs multiply in float32.
    """
    backends: Any = torch.backends
    older: list[tuple[Any, ...]] = []
    # If the caller mixed both interfaces, the older one cannot be read and is left unchanged.
    with suppress(RuntimeError):
        older.append((setattr, backends.cudnn, "allow_tf32", backends.cudnn.allow_tf32))
    with suppress(RuntimeError):
        older.append((torch.set_float32_matmul_precision, torch.get_float32_matmul_precision()))
    with ExitStack() as stack:
        if hasattr(backends, "fp32_precision"):  # since torch 2.9
            # The first three are defaults for the others, whose own values can be read only once these are "none".
            cpu = backends.mkldnn.conv, backends.mkldnn.rnn, backends.mkldnn.matmul
            gpu = backends.cudnn.conv, backends.cudnn.rnn, backends.cuda.matmul
            for backend in (backends, backends.cudnn, backends.mkldnn, *cpu, *gpu):
                stack.callback(setattr, backend, "fp32_precision", backend.fp32_precision)
                backend.fp32_precision = "none"
        for setting in older:
            stack.callback(*setting)
        backends.cudnn.allow_tf32 = allowed
        torch.set_float32_matmul_precision("high" if allowed else "highest")
        yield


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """Allow one pass at a time in this process; raise ValueError if the block changes a weight or a training mode."""

    def state() -> list[Any]:
        weights = [(p.data_ptr(), version(p)) for p in model.parameters()]
        return [weights, [module.training for module in model.modules()]]

    with _ONE_PASS, evaluating(model):
        before = state()
        yield
        if state() != before:
            raise ValueError(CHANGED)


@dataclass
class Forward:
    """Runs the network on a batch and returns the observations of its activation calls."""

    model: nn.Module
    device: torch.device
    settings: Settings

    def __call__(self, inputs: Inputs) -> Trace:
        with ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            stack.enter_context(undisturbed(self.model))
            stack.enter_context(tf32(self.settings.precision == "tf32"))
            if torch.amp.is_autocast_available(self.device.type):  # the caller's autocast is overridden
                bf16 = self.settings.precision == "bf16"
                # The cache is off, because this trace could not track weights that an earlier piece had cast.
                cast = torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=bf16, cache_enabled=False)
                stack.enter_context(cast)
            return _joined([self._run(part) for part in _parts(inputs, self.settings.micro_batch)])

    def _run(self, part: Inputs) -> Trace:
        settings = self.settings
        given = {name: self._on_device(value) for name, value in part.items()}
        mask = given["attention_mask"].bool() if "attention_mask" in given else None
        if mask is not None and settings.pool == "trailing":
            if not bool(mask.all()):
                raise ValueError(
                    "pool is 'trailing', which keeps positions apart, but some of them are padding; take another pool, "
                    "or samples of one length."
                )
            mask = None
        with trace(
            self.model, length(part), settings.pool, sparsity=settings.sparsity,
            channel_axis=settings.channel_axis, calls=settings.calls, mask=mask,
            unmasked=[value for name, value in given.items() if name.startswith("decoder_")],
        ) as found:  # fmt: skip
            alone = [given.pop("")] if "" in given else []
            self.model(*alone, **given)
        return found

    def _on_device(self, value: Tensor) -> Tensor:
        moved = value.to(self.device, non_blocking=True)
        # Only the input is converted: convolutions keep its layout, so the weights need no change.
        if self.settings.channels_last and value.ndim == 4:
            moved = moved.contiguous(memory_format=torch.channels_last)
        # The network may overwrite its input, but not the caller's batch.
        return moved.clone() if moved.data_ptr() == value.data_ptr() else moved


def _parts(inputs: Inputs, micro_batch: int | None) -> list[Inputs]:
    """Nearly equal pieces of at most ``micro_batch`` samples."""
    count = 1 if micro_batch is None else math.ceil(length(inputs) / micro_batch)
    pieces = {name: value.tensor_split(count) for name, value in inputs.items()}
    return [{name: value[i] for name, value in pieces.items()} for i in range(count)]


def _joined(pieces: list[Trace]) -> Trace:
    """The traces of the pieces as one trace of the whole batch."""
    if len(pieces) == 1:
        return pieces[0]
    # A table may have the length of one piece by chance. A piece of another length excludes its call.
    excluded = {item.name: item for found in pieces for item in found.excluded}
    kept = [[o for o in found.observations if o.call.name not in excluded] for found in pieces]
    if len({tuple(o.call.name for o in observations) for observations in kept}) > 1:
        raise ValueError("the activation calls differ between pieces of the same batch; run it without micro_batch.")

    def mean(parts: tuple[Observation, ...], side: int) -> Tensor:
        total = sum(o.weight for o in parts)
        return torch.stack([o.weight / total * o.sparsity[side] for o in parts if o.sparsity]).sum()

    def largest(parts: tuple[Observation, ...], side: int) -> Tensor:
        return torch.stack([o.rounding[side] for o in parts]).amax(0)

    joined = [
        Observation(
            parts[0].call,
            torch.cat([o.before for o in parts]),
            torch.cat([o.after for o in parts]),
            (largest(parts, 0), largest(parts, 1)),
            (mean(parts, 0), mean(parts, 1)) if parts[0].sparsity else None,
            entries=max(o.entries for o in parts),
        )
        for parts in zip(*kept, strict=True)
    ]
    return Trace(joined, list(excluded.values()))
