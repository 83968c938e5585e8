"""What the modules of a network take and give, while it runs as it is evaluated."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from torch import Tensor, nn

from affscore.forward import evaluating

__all__ = ["Feature", "evaluating", "features"]


class Feature(NamedTuple):
    """What one run of a module took and gave. Clone what a later module may overwrite in place."""

    input: Tensor
    output: Tensor


@contextmanager
def features(network: nn.Module, layers: Iterable[str]) -> Iterator[dict[str, Feature]]:
    """Keep input and output of the named modules; the dictionary is filled anew by every forward pass in the block.

    Empty it between passes (``seen.clear()``) where the same batch size does not follow: a module that runs a second
    time before that is an error, since a name has one place.

    Raises
    ------
    ValueError
        If there is no module of a name, or one runs twice.

    >>> import torch
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
            seen[name] = Feature(inputs[0], output)

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
