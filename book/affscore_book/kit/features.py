"""Records the inputs and outputs of a network's modules during a forward pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from affscore.forward import evaluating

__all__ = ["Feature", "features", "layer_outputs"]


class Feature(NamedTuple):
    """The input and the output of one run of a module. The output is a copy, since a later module may work in place."""

    input: Tensor
    output: Tensor


@contextmanager
def features(network: nn.Module, layers: Iterable[str]) -> Iterator[dict[str, Feature]]:
    """Yield a dictionary into which a forward pass in the block writes the input and output of each named module.

    The dictionary has one entry for each name: empty it (``seen.clear()``) before another pass.

    Raises
    ------
    ValueError
        If there is no module with a given name, or if a module runs again before the dictionary is emptied.

    >>> network = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
    >>> with torch.no_grad(), evaluating(network), features(network, ["1"]) as seen:
    ...     _ = network(torch.zeros(4, 2))
    ...     {name: (tuple(feature.input.shape), tuple(feature.output.shape)) for name, feature in seen.items()}
    {'1': ((4, 3), (4, 3))}
    """
    modules = dict(network.named_modules())
    seen: dict[str, Feature] = {}

    def keep(name: str) -> Any:
        def hook(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            if name in seen:
                raise ValueError(f"layers: module {name!r} runs more than once for an image.")
            seen[name] = Feature(inputs[0], output.clone())

        return hook

    handles = []
    try:
        for name in layers:
            if name not in modules:
                raise ValueError(f"layers: there is no module {name!r}; there are {', '.join(filter(None, modules))}.")
            handles.append(modules[name].register_forward_hook(keep(name)))
        yield seen
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def layer_outputs(
    network: nn.Module, layers: Iterable[str], images: Tensor, *, batch_size: int = 500
) -> dict[str, Tensor]:
    """The outputs of the named modules of a network for a stack of images, float32 on the CPU, n along the first axis.

    The network runs in evaluation mode on the device of its parameters; afterwards its modes are restored.

    Raises
    ------
    ValueError
        If a name is unknown, or a module does not run exactly once for an image.

    >>> from affscore_book.kit.networks import myrtle
    >>> outputs = layer_outputs(myrtle(width=4, channels=1), ["relu3", "relu4"], torch.zeros(3, 1, 32, 32))
    >>> {name: tuple(value.shape) for name, value in outputs.items()}
    {'relu3': (3, 16, 16, 16), 'relu4': (3, 32, 8, 8)}
    """
    parts: dict[str, list[Tensor]] = {name: [] for name in layers}
    device = next((parameter.device for parameter in network.parameters()), torch.device("cpu"))
    with evaluating(network), features(network, parts) as seen:
        for some in images.split(batch_size):
            seen.clear()
            network(some.to(device))
            for name, values in parts.items():
                if name not in seen:
                    raise ValueError(f"layers: module {name!r} did not run.")
                values.append(seen[name].output.to("cpu", torch.float32))
    return {name: torch.cat(values) for name, values in parts.items()}
