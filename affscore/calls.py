"""The operators that count as activations, and the record of each activation call.

Element-wise operators in the registry :data:`ACTIVATIONS` count, and so does any other element-wise arithmetic that is
fixed and not affine. If it equals one of the functions :data:`affscore.grid.KNOWN` up to a positive factor and a
constant, it is named after that function: ``x.clamp(min=0)`` is a ReLU, and ``x * torch.sigmoid(x)`` is a SiLU.
Otherwise it is named after its operators, such as ``sin``. Sigmoids and hard sigmoids are marked as gates, because
networks use them to scale other activations. Arithmetic that is part of a statistic does not count
(:mod:`affscore.chains`). Softmax, normalisation, pooling and gated linear units do not count either, because they are
not element-wise.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import torch
from torch import Tensor

from affscore.torch_internals import schema

__all__ = [
    "ACTIVATIONS", "FUSED", "Activation", "Call", "Constant", "Excluded", "Observation", "Operator", "Trace",
    "Undecided", "name_pattern", "tensors_in",
]  # fmt: skip

aten = torch.ops.aten


def name_pattern(pattern: str) -> re.Pattern[str]:
    """A pattern for the names of calls: ``*`` matches any text, ``?`` one character, and brackets match literally.

    >>> bool(name_pattern("layer3.*").match("layer3.0:relu[0]")), bool(name_pattern("*:relu[1]").match("a:relu[0]"))
    (True, False)
    """
    return re.compile(fnmatch.translate(pattern.replace("[", "[[]")))


def tensors_in(args: Iterable[Any]) -> Iterator[Tensor]:
    """The tensors among the arguments of an operator, including those in lists."""
    for argument in args:
        if isinstance(argument, Tensor):
            yield argument
        elif isinstance(argument, list | tuple):
            yield from (item for item in argument if isinstance(item, Tensor))


class Operator:
    """An operator of a forward pass, with its arguments. Its in-place variant has the same ``name``."""

    def __init__(self, func: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> None:
        self.func, self.args, self.kwargs = func, args, kwargs
        self.name: str = func.overloadpacket.__name__.rstrip("_")
        self.inputs = list(tensors_in([*args, *kwargs.values()]))
        self.writes: bool = schema(func).is_mutable  # whether it writes into one of its inputs

    @property
    def written(self) -> Iterator[Tensor]:
        """The tensors that the operator writes into."""
        arguments = [a for a in schema(self.func).arguments if a.alias_info and a.alias_info.is_write]
        return tensors_in(self.argument(a.name) for a in arguments)

    def argument(self, name: str) -> Any:
        """The value of the argument of this name, or its default; None if there is no such argument."""
        for place, argument in enumerate(schema(self.func).arguments):
            if argument.name == name:
                return self.args[place] if place < len(self.args) else self.kwargs.get(name, argument.default_value)
        return None

    @property
    def elementwise(self) -> bool:
        """Whether the operator is element-wise; PyTorch tags most of these operators, but not all."""
        return torch.Tag.pointwise in self.func.tags or self.name in _POINTWISE or self._masks

    @property
    def _masks(self) -> bool:
        """Whether the operator casts booleans to numbers, or writes one number wherever a mask of its input is True."""
        if self.name == "_to_copy":
            return bool(self.args[0].dtype == torch.bool)
        places = self.args[1] if self.name == "index_put" else [None]
        return len(places) == 1 and places[0] is not None and places[0].shape == self.args[0].shape


_POINTWISE = ("hardswish", "where", "pow", "square", "masked_fill")


def _name_hardtanh(operator: Operator) -> str:
    return "relu6" if (operator.argument("min_val"), operator.argument("max_val")) == (0, 6) else "hardtanh"


def _name_elu(operator: Operator) -> str:
    """The name of an ELU: SELU and CELU run the same kernel with other constants."""
    if operator.argument("scale") != 1:
        return "selu"
    return "celu" if operator.argument("input_scale") != 1 else "elu"


class Activation(NamedTuple):
    """An entry of the registry: a name, or a function that maps an operator to a name, and whether it is a gate."""

    name: str | Callable[[Operator], str]
    gate: bool = False


#: The operators that count as activations, by ATen operator packet. Add an entry to trace another operator.
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

#: Names of operators outside the registry that contain an activation, except gradients and repacked weights.
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
        Path of the innermost module that makes the call, ``""`` for the network itself.
    function
        Name of the activation in the registry.
    ordinal
        The number of earlier calls of this function by this module in the same forward pass.
    gate
        True for sigmoids and hard sigmoids.
    shape
        Shape of the input without its batch axis.
    channel_axis
        The axis that pooling kept, where axis 0 is the batch; -1 for the pool ``"trailing"``, which keeps all axes
        but the last.
    masked
        Whether padding, the positions where the input's ``attention_mask`` is 0, was left out.
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
    """An activation call that was recorded but not scored, with the reason."""

    name: str
    reason: str

    @property
    def function(self) -> str:
        """The name of the function, which is part of the name of the call.

        >>> Excluded("blocks.0.mlp:elementwise[relu, pow][1]", "").function
        'elementwise[relu, pow]'
        """
        return self.name.rpartition(":")[2].rpartition("[")[0]


class Constant(Excluded):
    """An activation call on parameters and buffers alone, which is the same for every batch."""


class Undecided(Excluded):
    """An activation call that is skipped because its samples or channels are ambiguous; a warning names it."""


class Observation(NamedTuple):
    """A call with its pooled input and output, both of shape (n, channels), float32 or float64, on the device.

    ``sparsity``, if requested, holds the fractions of entries with ``|x| <= 1e-3`` in the input and in the output
    before pooling: two tensors of shape (), float64, on the device. ``weight`` is the number of samples that these
    fractions cover, or of tokens if padding was left out. ``rounding`` holds the size of rounding errors in each
    channel of the input and of the output (:func:`affscore.pooling.rounding`). ``entries`` is the number of entries
    averaged in each value.
    """

    call: Call
    before: Tensor
    after: Tensor
    rounding: tuple[Tensor, Tensor]
    sparsity: tuple[Tensor, Tensor] | None = None
    weight: int = 1
    entries: float = 1.0


@dataclass
class Trace:
    """The calls of one forward pass in execution order, which are complete when the block of :func:`trace` ends."""

    observations: list[Observation] = field(default_factory=list)
    excluded: list[Excluded] = field(default_factory=list)
