"""An independent count of activation calls, which shares no code with :mod:`affscore`.

PyTorch's profiler records every operator that runs, also those inside fused kernels, in a tree of callers. Activation
functions in this tree count by their names. Only the outermost function of a nest counts, because ``relu6``, for
instance, calls ``hardtanh``, which calls ``clamp``. Activations that a library writes out in arithmetic are recognised
by the class of their module, which is entered into the same tree.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.profiler import ProfilerActivity, profile, record_function

__all__ = ["SPELLED_OUT", "count_activations"]

os.environ.setdefault("KINETO_LOG_LEVEL", "99")  # the profiler reports its own start and stop otherwise

# mkldnn_rnn_layer is one layer of an LSTM or GRU in one direction, including its sigmoids and tanhs.
OPERATORS = """
    relu relu6 hardtanh leaky_relu rrelu prelu threshold elu selu celu gelu silu mish hardswish softplus log_sigmoid
    tanh hardshrink softshrink sigmoid hardsigmoid mkldnn_rnn_layer
"""
#: The names of the activations that classes of modules write out in arithmetic.
SPELLED_OUT = {
    "NewGELUActivation": "gelu", "FastGELUActivation": "gelu", "AccurateGELUActivation": "gelu", "BloomGelu": "gelu",
    "QuickGELUActivation": "quick_gelu", "QuickGELU": "quick_gelu", "ReLUSquaredActivation": "relu_squared",
    "SquaredReLU": "relu_squared", "StarReLU": "relu_squared", "Swish": "silu", "Mish": "mish",
    "HardSwish": "hardswish", "HardSigmoid": "hardsigmoid",
}  # fmt: skip


def count_activations(model: nn.Module, inputs: Tensor | dict[str, Tensor]) -> list[str]:
    """The names of the activation calls of one forward pass, in the order in which they ran.

    >>> model = nn.Sequential(nn.Linear(4, 4), nn.ReLU6(), nn.Linear(4, 4), nn.GELU())
    >>> count_activations(model, torch.randn(3, 4))
    ['relu6', 'gelu']
    """
    with torch.no_grad(), _marked(model), profile(activities=[ProfilerActivity.CPU], record_shapes=True) as record:
        model(inputs) if isinstance(inputs, Tensor) else model(**inputs)
    events = [event for event in record.events() if _name(event) and not any(map(_name, _callers(event)))]
    return [_name(event) for event in sorted(events, key=lambda event: event.time_range.start)]


@contextmanager
def _marked(model: nn.Module) -> Iterator[None]:
    """A context in which modules that write out an activation appear in the profile by the names of their classes."""
    running: list[Any] = []

    def enter(module: nn.Module, _: Any) -> None:
        running.append(record_function(type(module).__name__))
        running[-1].__enter__()

    def leave(module: nn.Module, *_: Any) -> None:
        running.pop().__exit__(None, None, None)

    with ExitStack() as stack:
        for module in model.modules():
            if type(module).__name__ in SPELLED_OUT:
                stack.callback(module.register_forward_pre_hook(enter).remove)
                stack.callback(module.register_forward_hook(leave).remove)
        yield


def _name(event: Any) -> str:
    """The name of the activation that an event records, or "" for any other event."""
    operator = event.name.removeprefix("aten::").removesuffix("_")
    if not event.name.startswith("aten::") or operator not in OPERATORS.split():
        return SPELLED_OUT.get(event.name, "")
    relu6 = operator == "hardtanh" and event.concrete_inputs[1:3] == [0, 6]
    return "relu6" if relu6 else operator.replace("log_", "log")


def _callers(event: Any) -> Iterator[Any]:
    while (event := event.cpu_parent) is not None:
        yield event
