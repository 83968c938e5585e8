"""The pools, by hand."""

import pytest
import torch
from small_network import traced
from torch import nn

from affscore.pooling import pool, sparsity
from affscore.settings import POOLS

LAYOUTS = {
    "conv": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()), (3, 9, 9), 1),
    "tokens": (nn.Sequential(nn.Linear(3, 8), nn.GELU()), (9, 3), 2),
    "channels last": (nn.Sequential(nn.Linear(3, 8), nn.GELU()), (5, 6, 3), 3),
}


@pytest.mark.parametrize("kind", POOLS)
@pytest.mark.parametrize("layout", LAYOUTS)
def test_every_pool_on_every_layout(layout, kind):
    """Positions in their order; images have no one axis of tokens."""
    model, shape, axis = LAYOUTS[layout]
    kept = []
    hook = model[-1].register_forward_hook(lambda _, args, out: kept.extend([args[0], out]))
    found = traced(model.eval(), torch.randn(4, *shape), pool=kind)
    hook.remove()
    if kind in ("first", "last") and kept[0].ndim == 4:
        assert not found.observations and "no unique axis for the tokens" in found.excluded[0].reason
        return
    (seen,) = found.observations
    assert seen.call.channel_axis == (-1 if kind == "trailing" else axis) and not seen.call.masked
    for pooled, full in zip(seen[1:3], kept, strict=True):
        positions = full.movedim(axis, -1).reshape(4, -1, 8)
        expected = {
            "spatial": positions.mean(1),
            "trailing": (full.mean(-1) if full.ndim == 3 else full.mean((-2, -1))).reshape(4, -1),
            "first": positions[:, 0],
            "last": positions[:, -1],
            "tokens": positions.reshape(-1, 8),
        }[kind]
        torch.testing.assert_close(pooled, expected.to(pooled.dtype), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("seed", range(3))
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
        found = pool(x, kind, 3, mask, 2)
        assert found.dtype in (torch.float64, value.dtype)
        torch.testing.assert_close(found, value.to(found.dtype), rtol=1e-5, atol=1e-6)
    zeros = torch.where(x.abs() < 0.5, 0, x)
    counted = torch.cat([sample[:, keep].flatten() for sample, keep in zip(zeros, mask, strict=True)])
    assert sparsity(zeros, mask, 2).item() == pytest.approx((counted == 0).double().mean().item())
