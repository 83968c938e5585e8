"""Make activation calls of a network affine, channel by channel, whatever module or function makes them.

A call ``y = a(x)`` is replaced by ``y_c = slope_c x_c + offset_c``, the least-squares line of each channel c over
samples and positions. Calls are numbered from 0 in the order of execution, as in a signature. They are caught below
modules and functions, where the tracer sees them too, so a module that runs twice makes two calls.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from affscore.calls import ACTIVATIONS, Call
from affscore.forward import evaluating
from affscore.tracing import trace

__all__ = ["AT_ONCE", "ChannelLine", "calls_of", "channel_line", "fit_lines", "run_replaced", "run_watched"]

#: Images that run at once where nothing is fitted: more would not fit the processor's cache.
AT_ONCE = 125
Watch = Callable[[int, Tensor, Tensor], Tensor | None]


class ChannelLine(NamedTuple):
    """``y_c = slope_c x_c + offset_c``: both float32 (channels,), along ``axis`` of a tensor with its batch axis."""

    slope: Tensor
    offset: Tensor
    axis: int

    def __call__(self, x: Tensor) -> Tensor:
        shape = [1] * x.ndim
        shape[self.axis] = -1
        return self.slope.view(shape) * x + self.offset.view(shape)


def channel_line(x: Tensor, y: Tensor, axis: int) -> ChannelLine:
    """The line of each channel with the least squared error over all other axes; flat where x does not vary.

    >>> x = torch.tensor([[[0.0, 1.0]], [[2.0, 3.0]]])                                # (2, 1, 2)
    >>> [round(value.item(), 6) for value in channel_line(x, 3 * x - 1, 1)[:2]]
    [3.0, -1.0]
    """
    others = [i for i in range(x.ndim) if i != axis % x.ndim]
    mean_x, mean_y = (value.mean(others, keepdim=True) for value in (x, y))
    centred = x - mean_x
    spread = centred.square().mean(others)
    slope = torch.where(spread > 0, (centred * (y - mean_y)).mean(others) / torch.where(spread > 0, spread, 1.0), 0.0)
    return ChannelLine(slope, mean_y.flatten() - slope * mean_x.flatten(), axis % x.ndim)


class _Calls(TorchDispatchMode):
    """Gives ``watch`` the number, the input and the output of each call; what it returns takes the output's place."""

    def __init__(self, watch: Watch) -> None:
        super().__init__()
        self.watch, self.at = watch, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func.overloadpacket not in ACTIVATIONS:
            return func(*args, **(kwargs or {}))
        at, self.at = self.at, self.at + 1
        before = args[0].clone() if func._schema.is_mutable else args[0]
        out = func(*args, **(kwargs or {}))
        instead = self.watch(at, before, out)
        if instead is None:
            return out
        if func._schema.is_mutable:
            return out.copy_(instead)
        return instead


def calls_of(network: nn.Module, images: Tensor) -> list[Call]:
    """The activation calls of a network, in the order of execution, from a pass of some images.

    Raises
    ------
    ValueError
        If the tracer sees calls that are not single operators, so that their numbers would differ here.
    """
    counted: list[int] = []
    with torch.no_grad(), evaluating(network), trace(network, batch=len(images)) as found:
        network(images)
    run_watched(network, images, lambda at, x, y: counted.append(at))
    calls = [seen.call for seen in found.observations]
    if len(calls) != len(counted):
        raise ValueError(f"network has {len(calls)} scored calls and {len(counted)} activation operators; they differ.")
    return calls


@torch.no_grad()
def run_watched(network: nn.Module, images: Tensor, watch: Watch) -> Tensor:
    """The network's output in evaluation mode, with ``watch(number, input, output)`` called at each activation call.

    What ``watch`` returns takes the place of the call's output; None leaves it as it is.
    """
    with evaluating(network), _Calls(watch):
        return network(images)


def run_replaced(network: nn.Module, images: Tensor, lines: Mapping[int, ChannelLine]) -> Tensor:
    """The network's output with some calls replaced by lines, by their numbers.

    >>> network = nn.Sequential(nn.ReLU(), nn.Flatten())
    >>> line = ChannelLine(torch.tensor([1.0, 2.0]), torch.zeros(2), 1)
    >>> run_replaced(network, torch.tensor([[-1.0, 2.0]]), {0: line})
    tensor([[-1.,  4.]])
    """

    def watch(at: int, x: Tensor, y: Tensor) -> Tensor | None:
        return lines[at](x) if at in lines else None

    return torch.cat([run_watched(network, some, watch) for some in images.split(AT_ONCE)])


def fit_lines(
    network: nn.Module, images: Tensor, calls: Sequence[Call], replaced: Collection[int] = ()
) -> dict[int, ChannelLine]:
    """Lines of calls from one pass of images.

    Parameters
    ----------
    network
        Runs in evaluation mode.
    images
        All of them run at once.
    calls
        Of :func:`calls_of`.
    replaced
        Numbers of the calls that are to be replaced together: each line is fitted to what its call gets when the
        calls before it are replaced already. Empty: a line for every call of the network as it is.

    Returns
    -------
    By the number of the call.
    """
    lines: dict[int, ChannelLine] = {}

    def watch(at: int, x: Tensor, y: Tensor) -> Tensor | None:
        if replaced and at not in replaced:
            return None
        lines[at] = channel_line(x, y, calls[at].channel_axis)
        return lines[at](x) if replaced else None

    run_watched(network, images, watch)
    return lines
