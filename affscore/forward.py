"""One pass of a network over a batch, watched: whole or in pieces, on the network's device, and with no trace left.

What the caller set (training modes of modules, TF32) is as before afterwards, also after an error.
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

# Training modes and TF32 are settings of networks and of the process, not of a thread.
_TURN = threading.RLock()

#: What a network is called with: one tensor, or tensors by the names of arguments.
Inputs = Tensor | dict[str, Tensor]


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
        raise ValueError(f"batch {index} holds a sparse, nested or meta tensor; it should hold all its numbers.")
    lengths = {value.shape[0] if value.ndim else 0 for value in tensors}
    if len(lengths) > 1 or min(lengths) < 2:
        raise ValueError(
            f"batch {index} has {' and '.join(map(str, sorted(lengths)))} samples; it is the statistical sample and "
            "should have at least 2, the same number in each tensor."
        )
    if not isinstance(batch, Mapping):
        return batch
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
        raise ValueError(f"attention_mask of batch {index} leaves sample {without[0].item()} no token.")


def length(inputs: Inputs) -> int:
    """Number of samples."""
    return len(inputs) if isinstance(inputs, Tensor) else len(next(iter(inputs.values())))


@contextmanager
def evaluating(model: nn.Module) -> Iterator[None]:
    """Evaluation mode in the block; every module's own training flag comes back after it.

    Modules whose own ``train`` does more, such as merging weights, are put back by that, and their weights to the bit:
    what was added and taken away again is rounded.
    """
    before = {module: module.training for module in model.modules()}
    own = [module for module in before if type(module).train is not nn.Module.train]
    held = [x for module in own for x in (*module.parameters(recurse=False), *module.buffers(recurse=False))]
    kept = [x.detach().clone() for x in held]
    model.eval()
    try:
        yield
    finally:
        for module in own:
            module.train(before[module])
        for x, was in zip(held, kept, strict=True):
            if x.shape == was.shape:
                x.data.copy_(was)
        for module, training in before.items():
            module.training = training


@contextmanager
def tf32(allowed: bool) -> Iterator[None]:
    """TF32 or not in the block: its ten bits of mantissa show in the second decimal of some scores.

    Of PyTorch's two interfaces the older one is used, so that a network may read either, and both are as before
    afterwards. Processors multiply in float32.
    """
    backends: Any = torch.backends
    older: list[tuple[Any, ...]] = []
    # Where the caller mixed both interfaces the older one cannot be read, and stays so.
    with suppress(RuntimeError):
        older.append((setattr, backends.cudnn, "allow_tf32", backends.cudnn.allow_tf32))
    with suppress(RuntimeError):
        older.append((torch.set_float32_matmul_precision, torch.get_float32_matmul_precision()))
    with ExitStack() as stack:
        if hasattr(backends, "fp32_precision"):  # since torch 2.9
            # The first three stand for those without a setting of their own, which shows only when they are off.
            processor = backends.mkldnn.conv, backends.mkldnn.rnn, backends.mkldnn.matmul
            gpu = backends.cudnn.conv, backends.cudnn.rnn, backends.cuda.matmul
            for place in (backends, backends.cudnn, backends.mkldnn, *processor, *gpu):
                stack.callback(setattr, place, "fp32_precision", place.fp32_precision)
                place.fp32_precision = "none"
        for setting in older:
            stack.callback(*setting)
        backends.cudnn.allow_tf32 = allowed
        torch.set_float32_matmul_precision("high" if allowed else "highest")
        yield


@contextmanager
def undisturbed(model: nn.Module) -> Iterator[None]:
    """One pass at a time in this process; ValueError if another thread changed the network in the meantime."""

    def state() -> list[Any]:
        weights = [(p.data_ptr(), version(p)) for p in model.parameters()]
        return [weights, [module.training for module in model.modules()]]

    with _TURN, evaluating(model):
        before = state()
        yield
        if state() != before:
            raise ValueError(CHANGED)


@dataclass
class Forward:
    """Runs the network on a batch and returns what its activation calls showed."""

    model: nn.Module
    device: torch.device
    settings: Settings

    def __call__(self, inputs: Inputs) -> Trace:
        with ExitStack() as stack:
            stack.enter_context(torch.no_grad())
            stack.enter_context(undisturbed(self.model))
            stack.enter_context(tf32(self.settings.precision == "tf32"))
            if torch.amp.is_autocast_available(self.device.type):  # the caller's, if there is one, does not count
                bf16 = self.settings.precision == "bf16"
                # Without its cache: of weights that an earlier piece cast the trace of this one would know nothing.
                cast = torch.autocast(self.device.type, dtype=torch.bfloat16, enabled=bf16, cache_enabled=False)
                stack.enter_context(cast)
            return _joined([self._run(part) for part in _parts(inputs, self.settings.micro_batch)])

    def _run(self, part: Inputs) -> Trace:
        how, given = self.settings, part if isinstance(part, dict) else {"": part}
        given = {name: self._there(value) for name, value in given.items()}
        mask = given["attention_mask"].bool() if "attention_mask" in given else None
        if mask is not None and how.pool == "trailing":
            if not bool(mask.all()):
                raise ValueError(
                    "pool is 'trailing', which keeps positions apart, but some of them are padding; take another pool, "
                    "or samples of one length."
                )
            mask = None
        with trace(
            self.model, length(part), how.pool, sparsity=how.sparsity, channel_axis=how.channel_axis, calls=how.calls,
            mask=mask,
            unmasked=[value for name, value in given.items() if name.startswith("decoder_")],
        ) as found:  # fmt: skip
            if isinstance(part, Tensor):
                self.model(given[""])
            else:
                self.model(**given)
        return found

    def _there(self, value: Tensor) -> Tensor:
        there = value.to(self.device, non_blocking=True)
        # Only the input: convolutions keep its layout, and the network's weights stay as they are.
        if self.settings.channels_last and value.ndim == 4:
            there = there.contiguous(memory_format=torch.channels_last)
        # The caller's own batch is not for operations in place.
        return there.clone() if there.data_ptr() == value.data_ptr() else there


def _parts(inputs: Inputs, micro_batch: int | None) -> list[Inputs]:
    """Nearly equal pieces of at most ``micro_batch`` samples."""
    count = 1 if micro_batch is None else math.ceil(length(inputs) / micro_batch)
    if isinstance(inputs, Tensor):
        return list(inputs.tensor_split(count))
    pieces = {name: value.tensor_split(count) for name, value in inputs.items()}
    return [{name: value[i] for name, value in pieces.items()} for i in range(count)]


def _joined(pieces: list[Trace]) -> Trace:
    """What the pieces of a batch showed, as if it had been one."""
    if len(pieces) == 1:
        return pieces[0]
    # A table whose length happens to be that of one piece is given away by a piece of another length.
    excluded = {item.name: item for found in pieces for item in found.excluded}
    kept = [[o for o in found.observations if o.call.name not in excluded] for found in pieces]
    if len({tuple(o.call.name for o in observations) for observations in kept}) > 1:
        raise ValueError("the activation calls differ between pieces of the same batch; run it without micro_batch.")

    def mean(same: tuple[Observation, ...], side: int) -> Tensor:
        total = sum(o.weight for o in same)
        return torch.stack([o.weight / total * o.sparsity[side] for o in same if o.sparsity]).sum()

    def most(same: tuple[Observation, ...], side: int) -> Tensor:
        return torch.stack([o.rounding[side] for o in same]).amax(0)

    joined = [
        Observation(
            same[0].call,
            torch.cat([o.before for o in same]),
            torch.cat([o.after for o in same]),
            (most(same, 0), most(same, 1)),
            (mean(same, 0), mean(same, 1)) if same[0].sparsity else None,
        )
        for same in zip(*kept, strict=True)
    ]
    return Trace(joined, list(excluded.values()))
