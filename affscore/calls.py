"""What counts as an activation, and what is known of the calls of one.

What counts is an element-wise operator of the registry :data:`ACTIVATIONS`, and element-wise arithmetic that equals one
of the functions :data:`affscore.chains.KNOWN` up to a positive factor and a constant: ``x.clamp(min=0)`` is a ReLU,
``x * torch.sigmoid(x)`` a SiLU. Sigmoids and hard sigmoids count and are marked as gates, because networks use them to
scale other activations. Other mathematics that bends (``sin``, ``exp``, ``x * x.sign()``) is excluded with that reason,
unless all that is taken of it are sums, means and the like, or it is done to one of these: statistics. Softmax,
normalisation, pooling and gated linear units are not element-wise, and do not count.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from affscore.torch_internals import schema

__all__ = [
    "ACTIVATIONS", "FUSED", "Activation", "Call", "Excluded", "Observation", "Operator", "Trace", "Undecided",
    "tensors_in",
]  # fmt: skip

aten = torch.ops.aten


def tensors_in(args: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors among the arguments of an operator, those in lists too."""
    for argument in args:
        if isinstance(argument, Tensor):
            yield argument
        elif isinstance(argument, list | tuple):
            yield from (item for item in argument if isinstance(item, Tensor))


class Operator:
    """An operator that a network runs, and what it is given. In place or not it has the same ``name``."""

    def __init__(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs
        self.name: str = func.overloadpacket.__name__.rstrip("_")
        self.inputs = list(tensors_in([*args, *kwargs.values()]))
        self.writes: bool = schema(func).is_mutable  # into one of them

    @property
    def written(self) -> Iterator[Tensor]:
        """The tensors that it writes into."""
        arguments = [a for a in schema(self.func).arguments if a.alias_info and a.alias_info.is_write]
        return tensors_in(self.argument(a.name) for a in arguments)

    def argument(self, name: str) -> Any:
        """An argument by its name, or its default; None if there is none of this name."""
        for place, argument in enumerate(schema(self.func).arguments):
            if argument.name == name:
                return self.args[place] if place < len(self.args) else self.kwargs.get(name, argument.default_value)
        return None

    @property
    def elementwise(self) -> bool:
        """Whether it works entry by entry; of some PyTorch does not say so."""
        return torch.Tag.pointwise in self.func.tags or self.name in _POINTWISE or self._masks

    @property
    def _masks(self) -> bool:
        """Whether it makes numbers of truth values, or writes one number where such a mask of its input says."""
        if self.name == "_to_copy":
            return bool(self.args[0].dtype == torch.bool)
        places = self.args[1] if self.name == "index_put" else [None]
        return len(places) == 1 and places[0] is not None and places[0].shape == self.args[0].shape


_POINTWISE = ("hardswish", "where", "pow", "square", "masked_fill")


def _name_hardtanh(operator: Operator) -> str:
    return "relu6" if (operator.argument("min_val"), operator.argument("max_val")) == (0, 6) else "hardtanh"


def _name_elu(operator: Operator) -> str:
    """SELU and CELU reach the kernel of ELU with other constants."""
    if operator.argument("scale") != 1:
        return "selu"
    return "celu" if operator.argument("input_scale") != 1 else "elu"


class Activation(NamedTuple):
    """What the registry knows of one operator: its name (or how the arguments name it) and if it is a gate."""

    name: str | Callable[[Operator], str]
    gate: bool = False


#: The operators that count as activations, by ATen packet. Add an entry to have one more operator traced.
ACTIVATIONS: dict[Any, Activation] = {
    getattr(aten, operator): activation
    for operators, activation in {
        "relu relu_": Activation("relu"),
        "relu6 relu6_": Activation("relu6"),
        "hardtanh hardtanh_": Activation(_name_hardtanh),
        "leaky_relu leaky_relu_": Activation("leaky_relu"),
        "rrelu rrelu_ rrelu_with_noise rrelu_with_noise_": Activation("rrelu"),
        "prelu _prelu_kernel": Activation("prelu"),
        "threshold threshold_": Activation("threshold"),
        "elu elu_": Activation(_name_elu),
        "selu selu_": Activation("selu"),
        "celu celu_": Activation("celu"),
        "gelu gelu_": Activation("gelu"),
        "silu silu_": Activation("silu"),
        "mish mish_": Activation("mish"),
        "hardswish hardswish_": Activation("hardswish"),
        "softplus": Activation("softplus"),
        "log_sigmoid log_sigmoid_forward": Activation("logsigmoid"),
        "tanh tanh_": Activation("tanh"),
        "hardshrink": Activation("hardshrink"),
        "softshrink": Activation("softshrink"),
        "sigmoid sigmoid_": Activation("sigmoid", gate=True),
        "hardsigmoid hardsigmoid_": Activation("hardsigmoid", gate=True),
    }.items()
    for operator in operators.split()
}

#: Operators outside the registry that contain an activation, by their names; not gradients, nor repacked weights.
FUSED = re.compile(
    r"(?!.*(backward|weight))(.*_)?"
    r"([a-z]*elu6?|silu|mish|(hard)?(swish|sigmoid|tanh)|activation|lstm|gru|rnn|transformer_encoder)(_.*)?"
)


@dataclass(frozen=True)
class Call:
    """One activation call of a forward pass.

    Attributes
    ----------
    name
        ``path:function[ordinal]``, unique within a forward pass.
    module
        Path of the innermost module that was running, ``""`` for the network itself.
    function
        Name of the activation in the registry.
    ordinal
        How many calls of this function this module had made before in the same forward pass.
    gate
        True for sigmoids and hard sigmoids.
    shape
        Shape of the input without its batch axis.
    channel_axis
        The axis that pooling kept, counted with the batch axis as 0; -1 for the pool ``"trailing"``, which keeps
        all axes but the last.
    masked
        Whether padding was left out: tokens that the input's ``attention_mask`` says are none.
    """

    name: str
    module: str
    function: str
    ordinal: int
    gate: bool
    shape: tuple[int, ...]
    channel_axis: int
    masked: bool = False


@dataclass(frozen=True)
class Excluded:
    """An activation call that was seen but not scored, and why."""

    name: str
    reason: str


class Unknown(Excluded):
    """Element-wise mathematics that bends and is no known activation."""


class Undecided(Excluded):
    """An activation call that is not scored because it cannot be known how; a warning names it."""


class Observation(NamedTuple):
    """A call with its pooled input and output, both of shape (n, channels), float32 or float64, on the device.

    ``sparsity``, if asked for, holds the fractions of entries with ``|x| <= 1e-3`` of the input and of the output
    before pooling: two tensors of shape (), float64, on the device. ``weight`` is the number of samples that these are
    of, or of tokens where padding was left out. ``rounding`` holds for each channel of the input and of the output how
    far rounding alone may spread it (:func:`affscore.pooling.rounding`).
    """

    call: Call
    before: Tensor
    after: Tensor
    rounding: tuple[Tensor, Tensor]
    sparsity: tuple[Tensor, Tensor] | None = None
    weight: int = 1


@dataclass
class Trace:
    """What one forward pass showed, in execution order; complete when the block of :func:`trace` is left."""

    observations: list[Observation] = field(default_factory=list)
    excluded: list[Excluded] = field(default_factory=list)
