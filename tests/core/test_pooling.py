"""Two pools, and how many entries are zero."""

import pytest
import torch
from torch import nn

from affscore.pooling import pool
from affscore.tracing import trace

LAYOUTS = {
    "conv": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()), (3, 9, 9), 1, 8),
    "tokens": (nn.Sequential(nn.Linear(3, 8), nn.GELU()), (9, 3), 2, 8),
    "channels last": (nn.Sequential(nn.Linear(3, 8), nn.GELU()), (5, 6, 3), 3, 8),
}


def test_the_two_pools_differ_on_tokens_as_documented():
    tokens = torch.randn(4, 5, 6)
    torch.testing.assert_close(pool(tokens, "spatial", 2), tokens.mean(dim=1))
    torch.testing.assert_close(pool(tokens, "trailing", 2), tokens.mean(dim=2))
    images = torch.randn(4, 5, 6, 7)
    torch.testing.assert_close(pool(images, "spatial", 3), images.mean(dim=(1, 2)))
    torch.testing.assert_close(pool(images, "trailing", 3), images.mean(dim=(2, 3)))
    assert pool(images.half(), "spatial", 1).dtype == torch.float32


@pytest.mark.parametrize("layout", LAYOUTS)
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


@pytest.mark.parametrize("seed", range(3))
def test_sparsity_counts_the_zeros_before_pooling(seed):
    x = torch.randn(6, 4, 5, 5, generator=torch.Generator().manual_seed(seed))
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
