"""The channel axis is followed through whatever moves it, and the pools average over the others."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from affscore.channels import pool
from affscore.tracing import trace

LAYOUTS = {
    "conv": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU()), (3, 9, 9), 1, 8),
    "conv1d": (nn.Sequential(nn.Conv1d(3, 8, 3), nn.ReLU()), (3, 9), 1, 8),
    "conv3d": (nn.Sequential(nn.Conv3d(2, 8, 2), nn.ReLU()), (2, 5, 5, 5), 1, 8),
    "vectors": (nn.Sequential(nn.Linear(3, 8), nn.ReLU()), (3,), 1, 8),
    "tokens": (nn.Sequential(nn.Linear(3, 8), nn.GELU()), (9, 3), 2, 8),
    "channels last": (nn.Sequential(nn.Linear(3, 8), nn.GELU()), (5, 6, 3), 3, 8),
    "square tokens": (nn.Sequential(nn.LayerNorm(8), nn.GELU()), (8, 8, 8), 3, 8),
    "group norm": (nn.Sequential(nn.GroupNorm(2, 8), nn.SiLU()), (8, 4, 8), 1, 8),
    "flattened space": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(2), nn.ReLU()), (3, 9, 9), 1, 8),
    "padded": (nn.Sequential(nn.Conv2d(3, 8, 3), nn.ZeroPad2d(1), nn.MaxPool2d(2), nn.ReLU()), (3, 9, 9), 1, 8),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_channel_axis_is_found(layout):
    model, shape, axis, channels = LAYOUTS[layout]
    with torch.no_grad(), trace(model.eval(), 4) as found:
        model(torch.randn(4, *shape))
    (seen,) = found.observations
    assert seen.call.channel_axis == axis and seen.before.shape == (4, channels)


class Moves(nn.Module):
    """Permutations, transposes, splits and joins between the layer that makes channels and the activation."""

    def forward(self, x):
        x = F.conv2d(x, torch.ones(6, 3, 1, 1))
        a = torch.relu(x.permute(0, 2, 3, 1))
        b = torch.relu(x.flatten(2).transpose(1, 2))
        c = torch.relu(torch.cat(x.chunk(2, dim=1), dim=1).unsqueeze(1))
        d = torch.relu(x.mean(dim=(2, 3)))
        e = torch.relu(x.roll(1, dims=2)[:, :, 1:])
        return a.sum() + b.sum() + c.sum() + d.sum() + e.sum()


def test_the_channel_axis_is_followed_through_moves():
    model = Moves()
    with torch.no_grad(), trace(model, 5) as found:
        model(torch.randn(5, 3, 4, 4))
    assert [o.call.channel_axis for o in found.observations] == [3, 2, 2, 1, 1]
    assert all(o.before.shape == (5, 6) for o in found.observations)


def test_channels_are_followed_through_a_batch_folded_into_frames():
    """Frames of a film as one long batch: the call among them is excluded, the one after unfolding is not."""
    x = torch.randn(4, 3, 2, 6, 6)  # n, frames, colours, height, width
    with torch.no_grad(), trace(nn.Identity(), 4) as found:
        frames = torch.relu(F.conv2d(x.flatten(0, 1), torch.ones(5, 2, 3, 3)))
        torch.relu(frames.view(4, 3, 5, 4, 4))
    assert [item.name for item in found.excluded] == [":relu[0]"]
    (seen,) = found.observations
    assert (seen.call.name, seen.call.channel_axis) == (":relu[1]", 2)


def test_the_two_pools_differ_on_tokens_as_documented():
    tokens = torch.randn(4, 5, 6)
    torch.testing.assert_close(pool(tokens, "spatial", 2), tokens.mean(dim=1))
    torch.testing.assert_close(pool(tokens, "trailing", 2), tokens.mean(dim=2))
    images = torch.randn(4, 5, 6, 7)
    torch.testing.assert_close(pool(images, "spatial", 3), images.mean(dim=(1, 2)))
    torch.testing.assert_close(pool(images, "trailing", 3), images.mean(dim=(2, 3)))
    assert pool(images.half(), "spatial", 1).dtype == torch.float32


@pytest.mark.parametrize("layout", ["tokens", "channels last", "conv"])
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
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Sigmoid())
    with torch.no_grad(), trace(model, 6, sparsity=True) as found:
        model(x.clone())
    relu, sigmoid = (o.sparsity for o in found.observations)
    assert all(value.dtype == torch.float64 and value.shape == () for value in relu + sigmoid)
    counted = [sum(abs(v) <= torch.tensor(1e-3).item() for v in t.flatten().tolist()) for t in (x, x.clamp(min=0))]
    assert [value.item() * x.numel() for value in relu] == pytest.approx(counted)
    assert [value.item() for value in sigmoid] == pytest.approx([counted[1] / x.numel(), 0])
    with torch.no_grad(), trace(model, 6) as found:
        model(x)
    assert found.observations[0].sparsity is None
