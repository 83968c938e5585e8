"""Functions of one variable on a grid of numbers: element-wise operators that run on the grid, and known functions.

The grid cannot represent operands that hold more than one number, such as a slope for each channel or a threshold for
each sample, or random operators: the functions of such operators are unknown. Differences beyond the grid go unnoticed.
The slope of a PReLU is learned, so a PReLU counts as unknown as well.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch
from torch import Tensor
from torch.nn import functional as F

from affscore.calls import Operator, tensors_in
from affscore.torch_internals import tree_map

__all__ = ["GRID", "KNOWN", "known_name", "on_grid"]

#: The known functions of one variable, with their names; other functions are compared with these.
KNOWN: tuple[tuple[str, Callable[[Tensor], Tensor]], ...] = (
    ("silu", F.silu),
    ("quick_gelu", lambda x: x * torch.sigmoid(1.702 * x)),
    ("gelu", F.gelu),
    ("gelu", lambda x: F.gelu(x, approximate="tanh")),
    ("relu_squared", lambda x: F.relu(x).square()),
    ("mish", F.mish),
    ("hardswish", F.hardswish),
    ("relu", F.relu),
    ("relu6", F.relu6),
    ("leaky_relu", F.leaky_relu),
    ("elu", F.elu),
    ("selu", F.selu),
    ("softplus", F.softplus),
    ("softsign", F.softsign),
    ("tanhshrink", F.tanhshrink),
    ("tanh", torch.tanh),
    ("sigmoid", torch.sigmoid),
    ("hardsigmoid", F.hardsigmoid),
)
_NEAR = slice(901)
_LEARNED = ("prelu", "_prelu_kernel")  # a name should not depend on the value of their slope
#: The grid: the numbers from -9 to 9 in steps of 0.02, and six numbers beyond this range.
GRID = torch.cat([torch.linspace(-9, 9, 901), torch.tensor([-200.0, -40, -15, 15, 40, 200])]).to(torch.float64)


def on_grid(
    operator: Operator, operands: Sequence[Tensor], filled: bool
) -> Callable[[Sequence[Tensor | None]], Tensor | None]:
    """An operator as a function of the values of its operands on the grid; if the result is unknown, it returns None.

    Each of the operator's other tensors has to hold one number. With ``filled`` it may also hold several equal numbers.

    >>> x = torch.ones(4, 3)
    >>> double = on_grid(Operator(torch.ops.aten.mul.Tensor, (x, torch.tensor(2.0)), {}), [x], filled=False)
    >>> torch.equal(double([GRID]), 2 * GRID), double([None]) is None
    (True, True)
    """
    places = {id(x): place for place, x in enumerate(operands)}
    kwargs = {name: value for name, value in operator.kwargs.items() if name not in ("out", "device")}
    others = [x for x in tensors_in([*operator.args, *kwargs.values()]) if id(x) not in places]
    numbers = {id(x): _number(x, filled) for x in others}
    random = torch.Tag.nondeterministic_seeded in operator.func.tags
    unknown = random or operator.name in _LEARNED or operator.func.namespace != "aten"

    def run(values: Sequence[Tensor | None]) -> Tensor | None:
        copies = [value.clone() for value in values if value is not None]  # an operator may overwrite its input
        if unknown or len(copies) < len(values) or any(number is None for number in numbers.values()):
            return None

        def stand_in(x: object) -> object:
            return copies[places[id(x)]] if id(x) in places else numbers.get(id(x), x)

        try:
            arguments, options = tree_map(stand_in, (operator.args, kwargs))
            out = operator.func.overloadpacket(*arguments, **options)
        except (RuntimeError, TypeError):
            return None
        out = out[0] if isinstance(out, tuple) else out
        return out if out.shape == GRID.shape else None

    return run


def _number(x: Tensor, filled: bool) -> Tensor | None:
    """The number that a tensor holds, of shape (); None if it holds several or none."""
    if x.numel() != 1 and not (filled and x.numel() and bool((x == x.flatten()[0]).all())):
        return None
    number = x.detach().flatten()[0].cpu()
    return number.double() if number.is_floating_point() else number


def known_name(values: Tensor) -> str | None:
    """The known function with these values on the grid, up to a positive factor and a constant; None if there is none.

    The name is empty if the values are affine with a positive slope.

    >>> known_name(3 * GRID.clamp(min=0) - 1), known_name(2 * GRID), known_name(GRID.sin())
    ('relu', '', None)
    """
    low, middle, high = values[0], values[450], values[900]  # at -9, 0 and 9
    slope = ((middle - low) / (high - middle)).item()
    leaky = [("leaky_relu", lambda x: F.leaky_relu(x, slope))] if 0 < slope < 1 else []
    functions = (("", lambda x: x), *KNOWN, *leaky)
    return next((name for name, function in functions if _affinely_equal(values, function(GRID))), None)


def _affinely_equal(values: Tensor, known: Tensor) -> bool:
    """Whether ``values`` is ``a * known + b`` with a positive ``a``."""
    a = (values - values.mean()).dot(known - known.mean()) / (known - known.mean()).square().sum()
    rest = values - values.mean() - a * (known - known.mean())
    # Far from 0 the values may be so large that they would hide a difference near 0.
    parts = ((rest[part].abs().max(), values[part].abs().max()) for part in (_NEAR, slice(None)))
    return bool(a > 0) and bool(all(difference < 1e-6 * size for difference, size in parts))
