"""The checks on one network: the signature accounts for every activation call, and the output is unchanged."""

from __future__ import annotations

import re
import statistics
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import Tensor, nn

from affscore import signature
from affscore.calls import ACTIVATIONS
from affscore.errors import AffscoreWarning
from affscore.grid import KNOWN
from affscore.tracing import trace
from affscore_study.verified_models.counting import count_activations
from affscore_study.verified_models.networks import output_of

__all__ = ["verify"]


def verify(model: nn.Module, inputs: Tensor | dict[str, Tensor], rounds: int = 0) -> dict[str, Any]:
    """Count the activation calls of a network twice, compare its output, and measure what a signature costs.

    Parameters
    ----------
    model
        A network in evaluation mode.
    inputs
        A batch of at least two samples: a tensor, or tensors by the names of arguments.
    rounds
        The number of times that the bare forward pass and a signature are timed, in turn.

    Returns
    -------
    dict of plain values
        ``parameters``, their number; ``counted``, the calls that the independent counter saw, by function; ``scored``,
        the calls that the signature scores, by function; ``arithmetic``, if there are any, the calls of functions that
        the counter cannot know, such as ``exp``; ``gates``, the number of gates among the scored calls; ``excluded``,
        the calls that it does not score, as [function, reason, calls]; ``constant``, if there are any, the scored calls
        whose score is NaN because their input or output does not vary, by function; ``identical``, whether the output
        has the same bits while the network is watched; ``time``, the processor time of a signature divided by that of
        the bare pass, as the median over the rounds (None without rounds).

    Raises
    ------
    ValueError
        If the output holds NaN or infinite values, or is the same for all samples, so that nothing would be verified.
    SignatureError
        If the network has no signature.

    >>> model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4), nn.Sigmoid()).eval()
    >>> found = verify(model, torch.randn(5, 4))
    >>> found["counted"] == found["scored"], found["gates"], found["excluded"], found["identical"]
    (True, 1, [], True)
    """
    with torch.no_grad():
        bare = list(_tensors(output_of(model, inputs)))
        if not torch.isfinite(bare[0]).all():
            raise ValueError("the output holds NaN or infinite values")
        if bare[0].std(dim=0).max() <= 1e-3 * bare[0].abs().max():
            raise ValueError("the output is nearly the same for all samples")
        samples = len(inputs if isinstance(inputs, Tensor) else next(iter(inputs.values())))
        with trace(model, samples):
            watched = list(_tensors(output_of(model, inputs)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", AffscoreWarning)  # the row has the same facts
        result = signature(model, [inputs])
    # Calls with the same reason are counted together, so the reason must not contain the shape of a call.
    reasons = Counter((item.function, re.sub(r" of shape \([^)]*\)", "", item.reason)) for item in result.excluded)
    arithmetic = Counter(call.function for call in result.calls if not _known(call.function))
    constant = Counter(call.function for call, none in zip(result.calls, result.dead[0], strict=True) if none)
    return {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "counted": dict(Counter(count_activations(model, inputs))),
        "scored": dict(Counter(call.function for call in result.calls if _known(call.function))),
        **({"arithmetic": dict(arithmetic)} if arithmetic else {}),
        "gates": sum(call.gate for call in result.calls),
        "excluded": [[function, reason, calls] for (function, reason), calls in sorted(reasons.items())],
        **({"constant": dict(constant)} if constant else {}),
        "identical": len(bare) == len(watched) and all(map(torch.equal, bare, watched)),
        "time": _time(model, inputs, rounds) if rounds else None,
    }


#: The names of activation functions, as the signature gives them.
_NAMES = {entry.name for entry in ACTIVATIONS.values()} | {name for name, _ in KNOWN} | {"hardtanh", "celu"}


def _known(function: str) -> bool:
    """Whether a call is that of an activation function, or of arithmetic that contains one."""
    return not _NAMES.isdisjoint(re.findall(r"\w+", function))


def _tensors(output: Any) -> Iterator[Tensor]:
    """The tensors in an output, which is a tensor or an object, a mapping or a sequence that holds some."""
    if isinstance(output, Tensor):
        yield output
    elif isinstance(output, Mapping | list | tuple):
        for value in output.values() if isinstance(output, Mapping) else output:
            yield from _tensors(value)


def _time(model: nn.Module, inputs: Tensor | dict[str, Tensor], rounds: int) -> float:
    with torch.no_grad(), warnings.catch_warnings(action="ignore"):
        pairs = [
            (_seconds(lambda: output_of(model, inputs)), _seconds(lambda: signature(model, [inputs])))
            for _ in range(rounds)
        ]
    return round(statistics.median(watched / bare for bare, watched in pairs), 2)


def _seconds(function: Callable[[], object]) -> float:
    """The processor time of a call in seconds, which other work on the machine changes least."""
    start = time.process_time()
    function()
    return time.process_time() - start
