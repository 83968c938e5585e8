"""What depends on the batch, and what does not."""

import torch
from torch import nn

from affscore.calls import Operator
from affscore.fixed import Fixed, all_dense

aten = torch.ops.aten


def run(fixed, func, *args):
    """Run an operator and follow it."""
    operator = Operator(func, args, {})
    of, out = fixed.of(operator), func(*args)
    fixed.follow(operator, out, of)
    return out


def test_tensor_is_fixed_until_data_are_written_into_it():
    """A tensor computed from parameters alone is fixed until data are written into it."""
    layer, x = nn.Linear(3, 3), torch.randn(3, 3)
    fixed = Fixed(layer)
    with torch.no_grad():
        table, mixed = run(fixed, aten.tanh.default, layer.weight), run(fixed, aten.mul.Tensor, layer.weight, x)
        blank = run(fixed, aten.zeros_like.default, x)
        assert fixed(layer.weight) and fixed(table) and not fixed(mixed) and not fixed(x)
        assert fixed.constant(blank) and not fixed(blank)
        assert fixed.origin(run(fixed, aten.arange.default, 3)) == "nothing"
        for noise in (run(fixed, aten.rand_like.default, x), run(fixed, aten.rand.default, [3])):
            assert fixed.origin(noise) is None
        assert fixed.learned(table) and not fixed.learned(blank) and not fixed.learned(x)
        for tensor in (table, blank):
            run(fixed, aten.copy_.default, tensor, x)
            assert not fixed.constant(tensor)
        page = run(fixed, aten.zeros.default, [3])
        run(fixed, aten.normal_.default, page)
        assert not fixed.constant(page)


def test_sparse_and_nested_tensors_are_not_dense():
    x = torch.eye(3)
    assert all_dense([x, [x, 2], "x"]) and not all_dense([x, x.to_sparse()])
