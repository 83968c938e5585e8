"""The pools, and how many entries are zero."""

import pytest
import torch
from grids import each
from torch import nn

from affscore.pooling import pool, sparsity
from affscore.tracing import trace

LAYOUTS = {
    "conv": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()), (3, 9, 9), 1, 8),
    "tokens": (nn.Sequential(nn.Linear(3, 8), nn.GELU()), (9, 3), 2, 8),
    "channels last": (nn.Sequential(nn.Linear(3, 8), nn.GELU()), (5, 6, 3), 3, 8),
}


@each("layout", LAYOUTS)
def test_the_two_pools_on_every_layout(layout):
    """Named axes from the table above; the average by hand."""
    model, shape, axis, channels = LAYOUTS[layout]
    kept = []
    model[-1].register_forward_hook(lambda _, args, out: kept.extend([args[0].clone(), out.clone()]))
    x = torch.randn(4, *shape)
    try:
        with torch.no_grad(), trace(model.eval(), 4) as spatial:
            model(x)
        with torch.no_grad(), trace(model, 4, "trailing") as trailing:
            model(x)
    finally:
        model[-1]._forward_hooks.clear()
    (one,), (other,) = spatial.observations, trailing.observations
    assert (one.call.channel_axis, other.call.channel_axis) == (axis, -1)
    for seen, full in ((one.before, kept[0]), (one.after, kept[1])):
        torch.testing.assert_close(seen, full.movedim(axis, 1).reshape(4, channels, -1).mean(2))
    for seen, full in ((other.before, kept[0]), (other.after, kept[1])):
        expected = full.mean(-1) if full.ndim == 3 else full.mean((-2, -1))
        torch.testing.assert_close(seen, expected.reshape(4, -1))
    assert pool(kept[0].half(), "spatial", axis).dtype == torch.float32


def test_sparsity_counts_the_zeros_before_pooling():
    x = torch.randn(6, 4, 5, 5, generator=torch.Generator().manual_seed(0))
    x[:, 1] = 0
    x[0, 0, 0, :4] = torch.tensor([1e-3, -1e-3, 2e-3, -9e-4])
    model = nn.Sequential(nn.Identity(), nn.ReLU(inplace=True), nn.Sigmoid())
    axes = {"1:relu[0]": 1, "2:sigmoid[0]": 1}
    with torch.no_grad(), trace(model, 6, sparsity=True, channel_axis=axes) as found:
        model(x.clone())
    relu, sigmoid = (o.sparsity for o in found.observations)
    assert all(value.dtype == torch.float64 and value.shape == () for value in relu + sigmoid)
    counted = [sum(abs(v) <= torch.tensor(1e-3).item() for v in t.flatten().tolist()) for t in (x, x.clamp(min=0))]
    assert [value.item() * x.numel() for value in relu] == pytest.approx(counted)
    assert [value.item() for value in sigmoid] == pytest.approx([counted[1] / x.numel(), 0])
    with torch.no_grad(), trace(model, 6, channel_axis=axes) as found:
        model(x)
    assert found.observations[0].sparsity is None


@each("kind", ["first", "last", "tokens"])
@each("layout", LAYOUTS)
def test_pools_of_single_tokens_on_every_layout(layout, kind):
    """By hand: positions in their order, and no one axis of tokens on images."""
    model, shape, axis, channels = LAYOUTS[layout]
    x = torch.randn(4, *shape)
    with torch.no_grad(), trace(model.eval(), 4, kind) as found:
        full = model(x)
    if kind != "tokens" and full.ndim == 4:
        assert not found.observations and "no unique axis for the tokens" in found.excluded[0].reason
        return
    positions = full.movedim(axis, -1).reshape(4, -1, channels)
    expected = {"first": positions[:, 0], "last": positions[:, -1], "tokens": positions.reshape(-1, channels)}[kind]
    assert torch.equal(found.observations[0].after, expected)
    assert found.observations[0].call.channel_axis == axis and not found.observations[0].call.masked


@each("dtype", [torch.float64, torch.float32, torch.bfloat16])
@each("seed", range(3))
def test_masked_pools_by_hand(seed, dtype):
    """Tokens on the last axis but one of (n, heads, tokens, channels), beside positions that are no tokens."""
    generator = torch.Generator().manual_seed(seed)
    x = torch.randn(5, 3, 6, 4, generator=generator).to(dtype)
    mask = torch.rand(5, 6, generator=generator) < 0.5
    mask[torch.arange(5), torch.randint(6, (5,), generator=generator)] = True
    wide = x.to(torch.float64 if dtype == torch.float64 else torch.float32)
    kept = [sample[:, keep] for sample, keep in zip(wide, mask, strict=True)]  # (heads, its tokens, channels)
    expected = {
        "spatial": torch.stack([sample.mean((0, 1)) for sample in kept]),
        "first": torch.stack([sample[:, 0].mean(0) for sample in kept]),
        "last": torch.stack([sample[:, -1].mean(0) for sample in kept]),
        "tokens": torch.cat([sample.transpose(0, 1).reshape(-1, 4) for sample in kept]),
    }
    for kind, value in expected.items():
        torch.testing.assert_close(pool(x, kind, 3, mask, 2), value)
    for kind, place in (("first", 0), ("last", -1)):  # without the axis of the tokens, where there is only one
        assert torch.equal(pool(x[:, 0], kind, 2), wide[:, 0, place])
        with pytest.raises(ValueError, match=r"along is None; .* no unique axis for the tokens"):
            pool(x, kind, 3)
    zeros = torch.where(x.abs() < 0.5, 0, x)
    counted = torch.cat([sample[:, keep].flatten() for sample, keep in zip(zeros, mask, strict=True)])
    assert sparsity(zeros, mask, 2).item() == pytest.approx((counted == 0).double().mean().item())
