"""The graph of a network: which operation reads what, and the shapes of all values, from one symbolic run."""

from __future__ import annotations

import io
from contextlib import redirect_stderr
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.fx.passes.shape_prop import ShapeProp

from affscore.forward import evaluating

__all__ = ["function_name", "node_name", "traced_graph"]


class _Tracer(fx.Tracer):
    """Remembers the module that it is in, so that an error can name it."""

    def __init__(self) -> None:
        super().__init__()
        self.inside: list[str] = []

    def is_leaf_module(self, m: nn.Module, module_qualified_name: str) -> bool:
        return isinstance(m, nn.PReLU) or super().is_leaf_module(m, module_qualified_name)

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


def node_name(node: fx.Node) -> str:
    """Name of a node for an error: its module, or its function and where that is called."""
    if node.op == "call_module":
        return f"module {node.target}"
    inside = next((path for path, _ in reversed((node.meta.get("nn_module_stack") or {}).values())), "")
    return f"{function_name(node)} (node {node.name}{inside and f' in module {inside}'})"


def function_name(node: fx.Node) -> str:
    """Name of the function or method that a node calls."""
    return node.target if isinstance(node.target, str) else getattr(node.target, "__name__", str(node.target))


def traced_graph(network: nn.Module, inputs: Tensor) -> fx.GraphModule:
    """The graph of a network in evaluation mode, every node with its shape (``node.meta["tensor_meta"].shape``).

    The modules are those of ``network``, not copies.

    Parameters
    ----------
    network
        A module on any device.
    inputs
        A batch of examples; only its shape matters.

    Raises
    ------
    TypeError
        If ``network`` is no module or ``inputs`` no tensor.
    ValueError
        If the path through the network depends on values, or if it does not accept ``inputs``; the sentence names
        the module.

    Examples
    --------
    >>> graph = traced_graph(nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()), torch.zeros(1, 3, 9, 9)).graph
    >>> [(node.name, tuple(node.meta["tensor_meta"].shape)) for node in graph.nodes if node.op == "call_module"]
    [('_0', (1, 8, 7, 7)), ('_1', (1, 8, 7, 7))]
    """
    for name, value, kind in (("network", network, nn.Module), ("inputs", inputs, Tensor)):
        if not isinstance(value, kind):
            raise TypeError(f"{name} is a {type(value).__name__}; it should be a {kind.__name__}.")
    tracer = _Tracer()
    with evaluating(network):
        try:
            graph = tracer.trace(network)
        except Exception as error:  # whatever a forward method does with a proxy
            where = f"module {tracer.inside[-1]}" if tracer.inside else "the forward method"
            raise ValueError(
                f"network: {type(network).__name__} cannot be traced: {where} fails on symbolic values ({error})."
            ) from error
        traced = fx.GraphModule(network, graph)
        shapes = _Shapes(traced)
        shapes.extra_traceback = False
        try:
            with torch.no_grad():
                shapes.propagate(inputs.detach().clone())  # an in-place activation may overwrite them
        except Exception as error:  # whatever an operation says to a wrong shape
            cause = " ".join(str(error.__cause__ or error).split()).rstrip(".")
            raise ValueError(
                f"inputs: {node_name(shapes.node)} fails for inputs of shape {tuple(inputs.shape)}: {cause}."
            ) from error
    return traced
