"""How many non-linear units a path through a network meets: average path length (APL), and its normalised form (NAPL).

A path goes from an input channel to an output channel, from unit to unit along the edges of the network's graph. A
unit is a channel, and a path's length is the number of *non-linear* units on it. A ReLU makes its channel non-linear,
and so does every other element-wise activation; a PReLU or LeakyReLU does unless the channel's slope is 1.

*   APL is the mean length when all paths are equally likely. A skip then hardly counts: beside four layers of width
    4 it is one path in 257.
*   NAPL is the mean length on a random walk back from the output, which chooses one summand at every addition, then
    one unit of the layer below, each uniformly. A skip then counts as much as what it skips.

What the graph does to paths:

*   A linear layer or convolution joins every output channel to every input channel (of its group) by *one* edge: the
    taps of a kernel are not counted separately, nor do the values of weights matter.
*   An addition joins its summands. ``a + b + c`` is one addition of three, unless something else reads ``a + b``.
*   Concatenated channels lie side by side. In NAPL each input of a concatenation so weighs by its share of channels.
*   Flattening turns each position of a channel into a unit, with the channel's paths.
*   Pooling, means, normalisation, dropout, resizing, and arithmetic with constants leave the paths of a channel alone,
    also where they are not linear, such as max pooling.
*   Constants, such as the zeros that pad the channels of a shortcut, carry no path. They are none of the summands
    and units that NAPL chooses from.
*   A product of two paths (squeeze-and-excitation, attention) has no length, and is refused.

Reference: Mehmeti-Göpel and Disselhoff, Nonlinear Advantage, arXiv 2211.17180, figure 1. The rules for taps, for
three summands, for concatenation and for constants are our reading.
"""

from __future__ import annotations

import io
import re
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Sequence
from contextlib import redirect_stderr
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import torch
from torch import Tensor, fx, nn
from torch.fx.node import map_aggregate
from torch.fx.passes.shape_prop import ShapeProp
from torch.nn import functional

__all__ = ["PathLengths", "path_lengths", "trace"]

# ------------------------------------------------------------------------------------------------ the graph

_DROPOUT: dict[Any, type[nn.Module]] = {
    functional.dropout: nn.Dropout,
    functional.dropout1d: nn.Dropout1d,
    functional.dropout2d: nn.Dropout2d,
    functional.dropout3d: nn.Dropout3d,
    functional.alpha_dropout: nn.AlphaDropout,
    functional.feature_alpha_dropout: nn.FeatureAlphaDropout,
}


class _Tracer(fx.Tracer):
    """Remembers the module that it is in, so that an error can name it."""

    def __init__(self) -> None:
        super().__init__()
        self.inside: list[str] = []

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        named = type(m).__name__ in ("StochasticDepth", "DropPath")  # traced through, they would not follow train()
        return named or isinstance(m, nn.PReLU) or super().is_leaf_module(m, module_qualified_name)

    def call_module(self, m: nn.Module, forward: Any, args: Any, kwargs: Any) -> Any:
        self.inside.append(self.path_of_module(m))
        result = super().call_module(m, forward, args, kwargs)
        self.inside.pop()  # not after an error: then it says where that was
        return result


class _Shapes(ShapeProp):
    """Remembers the node that it runs, so that an error can name it."""

    def run_node(self, n: fx.Node) -> Any:
        self.node = n
        with redirect_stderr(io.StringIO()):  # ShapeProp prints a traceback before it raises
            return super().run_node(n)


def _where(node: fx.Node) -> str:
    """Name of a node for an error."""
    if node.op == "call_module":
        return f"module {node.target}"
    name = node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))
    stack = [path for path, _ in (node.meta.get("nn_module_stack") or {}).values() if path]
    return f"{name} (node {node.name}{f' in module {stack[-1]}' if stack else ''})"


def trace(network: nn.Module, inputs: Tensor | Sequence[Tensor]) -> fx.GraphModule:
    """The graph of a network in evaluation mode, every node with its shape (``node.meta["tensor_meta"].shape``).

    The modules are those of ``network``, not copies. Calls of ``functional.dropout`` become modules, so that they go
    on following ``train()`` and ``eval()``; other uses of ``self.training`` are fixed as in evaluation mode.

    Parameters
    ----------
    network
        A module on any device.
    inputs
        A batch of examples, or a sequence with one for each argument of ``forward``; only their shapes matter.

    Raises
    ------
    ValueError
        If the path through the network depends on values, or if it does not accept ``inputs``; the sentence names
        the module.

    Examples
    --------
    >>> graph = trace(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()), torch.zeros(1, 3, 9, 9)).graph
    >>> [(node.name, tuple(node.meta["tensor_meta"].shape)) for node in graph.nodes if node.op == "call_module"]
    [('_0', (1, 8, 7, 7)), ('_1', (1, 8, 7, 7))]
    """
    if not isinstance(network, nn.Module):
        raise ValueError(f"network: got {type(network).__name__}; it should be a torch.nn.Module.")
    examples = (inputs,) if isinstance(inputs, Tensor) else tuple(inputs)
    wrong = [type(x).__name__ for x in examples if not isinstance(x, Tensor)]
    if wrong:
        raise ValueError(f"inputs: got {wrong[0]}; it should be a tensor, or one tensor for each argument of forward.")
    modes = {module: module.training for module in network.modules()}
    network.eval()
    tracer = _Tracer()
    try:
        traced = fx.GraphModule(network, tracer.trace(network))
        _follow_training(traced)
        required = [n for n in traced.graph.nodes if n.op == "placeholder"]
        optional = sum(bool(n.args) for n in required)
        if not len(required) - optional <= len(examples) <= len(required):
            raise ValueError(f"inputs: got {len(examples)}; forward takes {', '.join(n.name for n in required)}.")
        shapes = _Shapes(traced)
        shapes.extra_traceback = False
        try:
            with torch.no_grad():
                shapes.propagate(*examples)
        except Exception as error:  # whatever an operation says to a wrong shape
            given = ", ".join(str(tuple(x.shape)) for x in examples)
            cause = str(error.__cause__ or error).strip().rstrip(".")
            raise ValueError(f"inputs: {_where(shapes.node)} fails for inputs of shape {given}: {cause}.") from error
    except ValueError as error:
        if str(error).startswith("inputs: "):
            raise
        raise _cannot_trace(network, tracer, error) from error
    except Exception as error:  # whatever a forward method does with a proxy
        raise _cannot_trace(network, tracer, error) from error
    finally:
        for module, mode in modes.items():
            module.training = mode
    for module in traced.modules():
        module.training = modes.get(module, network.training)
    return traced
