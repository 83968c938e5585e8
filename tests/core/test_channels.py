"""The channel axis is followed through whatever moves it, against axes written by hand; where it is lost, it is not
guessed. Channels, positions and tokens have the same number, so that no length gives them away."""

import pytest
import torch
from small_network import Made, traced
from torch import nn
from torch.nn import functional as F

from affscore import signature
from affscore.calls import Operator, Undecided
from affscore.channels import Channels
from affscore.fixed import Fixed

D = 6  # channels, rows, columns, tokens
N = 4


def conv(dims=1, **options):
    return (nn.Conv1d, nn.Conv2d, nn.Conv3d)[dims - 1](D, D, 3, padding=1, **options)


def shuffled(x):
    n, c, *positions = x.shape
    return x.view(n, 2, c // 2, *positions).transpose(1, 2).reshape(n, c, *positions)


def windows(x, linear):
    """Swin: channels last, rolled, cut into windows that join the batch, and put together again."""
    n, h, w, c = x.shape
    x = x.roll((1, 1), (1, 2)).view(n, h // 2, 2, w // 2, 2, c).permute(0, 1, 3, 2, 4, 5).reshape(-1, 4, c)
    x = linear(x)
    return x.view(n, h // 2, w // 2, 2, 2, c).permute(0, 1, 3, 2, 4, 5).reshape(n, h, w, c)


def attention(x, project):
    n, t, c = x.shape
    q, k, v = project(x).view(n, t, 3, 2, c // 2).permute(2, 0, 3, 1, 4).unbind(0)
    return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(n, t, c)


def heads_in_the_batch(x, project, inside):
    """HaloNet: heads lie beside the samples on the first axis, where a layer adds something to them."""
    x = project(x).unflatten(2, (2, D // 2)).transpose(1, 2).flatten(0, 1)
    return (x + inside(x)).unflatten(0, (N, 2)).transpose(1, 2).flatten(2)


TWO = torch.tensor(2.0)
W = nn.Parameter(torch.randn(D, D, generator=torch.Generator().manual_seed(1)))

# What comes before the activation, and which axis of it then holds the channels. Sums, products of matrices and most
# moves of axes are in test_random_networks.
LAYOUTS = {
    # normalisations over other axes than the channels
    "conv2d, layer norm over all": ([conv(2), nn.LayerNorm([D, D, D])], 4, 1),
    "conv1d, instance norm": ([conv(), nn.InstanceNorm1d(D)], 3, 1),
    "linear, layer norm": ([nn.Linear(D, D), nn.LayerNorm(D)], 3, 2),
    "linear, batch norm over tokens and batch": (
        [nn.Linear(D, D), Made(lambda x, norm: norm(x.flatten(0, 1)).view_as(x), nn.BatchNorm1d(D))], 3, 2),
    "layer norm of ConvNeXt": ([conv(2), Made(lambda x, norm: norm(x.permute(0, 2, 3, 1)), nn.LayerNorm(D))], 4, 3),
    "ConvNeXt, and back": ([conv(2), Made(lambda x: x.permute(0, 2, 3, 1)), nn.Linear(D, D),
                            Made(lambda x: x.permute(0, 3, 1, 2))], 4, 1),
    # convolutions
    "conv2d, channels last in memory": (
        [conv(2), Made(lambda x: x.contiguous(memory_format=torch.channels_last))], 4, 1),
    "grouped conv1d, shuffled": ([conv(groups=2), Made(shuffled)], 3, 1),
    "pixel shuffle": ([nn.Conv2d(D, 4 * D, 1), nn.PixelShuffle(2)], 4, 1),
    "padded, pooled, enlarged": ([conv(2), nn.ZeroPad2d(1), nn.MaxPool2d(2), nn.Upsample(scale_factor=2)], 4, 1),
    "flattened, tokens first": ([conv(2), nn.Flatten(2), Made(lambda x: x.transpose(1, 2))], 4, 2),
    # sums, stacks and concatenations
    "class token": ([nn.Linear(D, D), Made(lambda x: torch.cat([W[:1].expand(N, 1, D), x], dim=1)[:, 1:])], 3, 2),
    "gated by a vector": ([Made(lambda x, a, b: a(x) * b(x.mean(-1))[:, :, None], conv(), nn.Linear(D, D))], 3, 1),
    # matrix products
    "attention": ([Made(attention, nn.Linear(D, 3 * D))], 3, 2),
    "heads in the batch": (
        [Made(heads_in_the_batch, nn.Linear(D, D), nn.Linear(D // 2, D // 2)), nn.Linear(D, D)], 3, 2),
    "nn.MultiheadAttention": ([Made(lambda x, a: a(x, x, x)[0], nn.MultiheadAttention(D, 2, batch_first=True))], 3, 2),
    "product with a weight for all": ([Made(lambda x: torch.baddbmm(W[:1], x, W.expand(N, D, D)))], 3, 2),
    "queries that are parameters": (
        [nn.Linear(D, D), Made(lambda x: F.scaled_dot_product_attention(W.expand(N, D, D), x, x))], 3, 2),
    # layouts
    "linear on channels-last images": ([nn.Linear(D, D)], 4, 3),
    "windows of Swin": ([nn.Linear(D, D), Made(windows, nn.Linear(D, D))], 4, 3),
    "convolution over frames": ([Made(lambda x, a: a(x.flatten(0, 1)).unflatten(0, (N, D)), conv())], 4, 2),
    "inside sequence first, and back": (
        [Made(lambda x, a: a(x.transpose(0, 1)).transpose(0, 1), nn.Linear(D, D))], 3, 2),
    "embedding": ([Made(lambda x, e: e(x.long().abs() % 9), nn.Embedding(9, D))], 2, 2),
    "lstm": ([Made(lambda x, a: a(x)[0], nn.LSTM(D, D, batch_first=True))], 3, 2),
    "rolled, flipped, sorted": ([conv(), Made(lambda x: x.roll(1, 2).flip(-1).sort(2)[0].cumsum(-1))], 3, 1),
    "repeated channels": ([conv(), Made(lambda x: x.repeat(1, 2, 1))], 3, 1),
    "chosen channels": ([conv(), Made(lambda x: x[:, torch.tensor([0, 2, 3])])], 3, 1),
    "rotated, channels to the last axis": ([conv(), Made(lambda x: torch.rot90(x, 1, (1, 2)))], 3, 2),
    "positions rotated": ([conv(2), Made(lambda x: torch.rot90(x, 1, (2, 3)).rot90(2, (1, 2)))], 4, 1),
    "linear, batch norm over tokens": ([nn.Linear(D, D), nn.BatchNorm1d(D)], 3, 1),
    "columns of windows": ([conv(2), Made(lambda x: F.unfold(x, 2).unflatten(1, (D, 4)).flatten(2))], 4, 1),
    "scaled by a number": ([conv(), Made(lambda x: x * TWO)], 3, 1),
    "distances, then a convolution": ([Made(lambda x, a: a(torch.cdist(x, x)), conv())], 3, 1),
    "layer norm before any layer": ([nn.LayerNorm(D)], 3, 2),
    "one channel, flattened": ([nn.Conv2d(D, 1, 1), nn.Flatten(2)], 4, 1),
    "positions in their first half": ([conv(), Made(lambda x: x.split(3, dim=2)[0])], 3, 1),
}  # fmt: skip


def by_hand(x, axis):
    """The average over everything but the batch and one axis, with no help of the package."""
    others = tuple(d for d in range(1, x.ndim) if d != axis)
    return x.numpy().mean(axis=others) if others else x.numpy()


@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])  # which take operators apart differently
@pytest.mark.parametrize("layout", LAYOUTS)
def test_channels_are_on_the_axis_written_by_hand(layout, mode):
    layers, ndim, axis = LAYOUTS[layout]
    torch.manual_seed(0)
    model = nn.Sequential(*layers, nn.ReLU()).eval()
    model.register_parameter("weight", W)
    kept = []
    model[-1].register_forward_hook(lambda _, args, out: kept.extend([args[0].clone(), out.clone()]))
    observation = traced(model, torch.randn(N, *[D] * (ndim - 1)), mode=mode).observations[-1]
    assert observation.call.channel_axis == axis
    for seen, full in zip((observation.before, observation.after), kept, strict=True):
        torch.testing.assert_close(seen, torch.from_numpy(by_hand(full, axis)).to(seen.dtype), atol=1e-6, rtol=1e-5)


LOST = {
    "nothing said": (nn.Identity(), 4, "the axis of the channels in"),
    "split over axes": (nn.Sequential(nn.Linear(D, D), nn.Unflatten(-1, (2, 3))), 2, "axes 1, 2"),
    "positions and channels on one axis": (nn.Sequential(conv(2), nn.Flatten(1, 2)), 4, "axis 1, with more"),
    "windows of channels": (Made(lambda x, a: a(x).unfold(1, 3, 1), conv()), 3, "axes 1, 3"),
    "a sum of unlike tensors": (Made(lambda x, a: a(x) + a(x).mT, conv()), 3, "axes 1, 2"),
    "moved as strides": (Made(lambda x, a: a(x).as_strided((N, D, D), (36, 1, 6)), conv()), 3, "of the channels in"),
    "summed away": (Made(lambda x, a: a(x).sum(1), conv(2)), 4, "the axis of the channels in"),
}  # fmt: skip


@pytest.mark.parametrize("layout", LOST)
def test_undecided_call_is_excluded_until_axis_is_given(layout):
    """A call whose channel axis is ambiguous is excluded until the caller gives the axis."""
    before, ndim, words = LOST[layout]
    torch.manual_seed(0)
    model, x = nn.Sequential(before, nn.ReLU()).eval(), torch.randn(N, *[D] * (ndim - 1))
    found = traced(model, x)
    (excluded,) = found.excluded
    assert not found.observations and isinstance(excluded, Undecided)
    assert excluded.name == "1:relu[0]" and words in excluded.reason
    for axis in (1, 2):
        found = traced(model, x, channel_axis={"1:relu[0]": axis})
        pooled = by_hand(before(x).detach(), axis)
        (seen,) = found.observations
        assert seen.call.channel_axis == axis and not found.excluded
        torch.testing.assert_close(seen.before, torch.from_numpy(pooled).to(seen.before.dtype), atol=1e-6, rtol=1e-5)


def scattered(x, layer):
    canvas = torch.zeros(N, D, D, D)
    canvas[torch.arange(N), :, 0, 1] = layer(x[:, 0])
    return canvas


@torch.library.custom_op("another_library::turned", mutates_args=())
def turned(x: torch.Tensor) -> torch.Tensor:
    return x.transpose(1, 2).clone()


FOUR = nn.Linear(D, 4)
NOT_KNOWN = {
    "an operator of another library": (Made(lambda x, a: turned(a(x)), conv()), 3),
    "scattered by index": (Made(scattered, nn.Linear(D, D)), 3),
    "distances": (Made(lambda x, a: torch.cdist(a(x), x), nn.Linear(D, D)), 3),
    "read by two indices": (Made(lambda x, a: a(x)[:, torch.arange(D)[None], torch.arange(D)[:, None]], conv()), 3),
    "normalised before any layer": (nn.LayerNorm([D, D]), 3),
    "split across channels": (Made(lambda x, a: a(x)[..., :4].reshape(N, 4, D), conv()), 3),
    "read as other numbers": (Made(lambda x, a: a(x).view(torch.float16).float(), conv()), 3),
    "one sample for all": (Made(lambda x, a: a(x[0]).expand(N, D, D), nn.Linear(D, D)), 3),
    "as many tokens as there are samples": (Made(lambda x, a: a((r := x.flatten(0, 1))[r[:, 0].topk(N)[1]]), FOUR), 3),
    "masked tokens": (Made(lambda x, a: a(x.flatten(0, 1)[torch.arange(N * D) < N]), FOUR), 3),
    "tokens of a slice": (Made(lambda x, a: a(x.flatten(0, 1)[N : 2 * N]), FOUR), 3),
}


@pytest.mark.parametrize("name", NOT_KNOWN)
def test_what_is_not_followed_is_not_scored(name):
    before, ndim = NOT_KNOWN[name]
    model = nn.Sequential(before, nn.ReLU())
    model.register_parameter("weight", W)
    found = traced(model, torch.randn(N, *[D] * (ndim - 1)))
    assert not found.observations and isinstance(found.excluded[-1], Undecided)


LAYER = nn.TransformerEncoderLayer(D, 2, 8, activation=nn.GELU(), batch_first=False).eval()
NO_BATCH = {
    "averaged over the batch": lambda x, a: a(x).mean(0),
    "averaged, then a layer": lambda x, a: a(a(x).mean(0)),
    "of the batch with itself": lambda x, a: a(x[:, 0]).t() @ a(x[:, 0]),
    "positions first": lambda x, a: a(x.transpose(0, 1)),
    "a sum of unlike tensors, positions first": lambda x, a: a(a(x) + a(x).mT).transpose(0, 1),
    "an encoder layer, positions first": lambda x, a: LAYER(a(x.transpose(0, 1))),
}


@pytest.mark.parametrize("name", NO_BATCH)
def test_axis_of_batch_length_is_not_the_batch(name):
    """An axis that merely has the length of the batch is not taken for the batch axis."""
    found = traced(nn.Sequential(Made(NO_BATCH[name], nn.Linear(D, D)), nn.ReLU()), torch.randn(D, D, D))
    assert not found.observations and "1:relu[0]" in [item.name for item in found.excluded]


def test_signature_warns_of_unknown_axis_and_takes_it():
    """The signature warns of an unknown channel axis and scores the call once the caller gives the axis."""
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv1d(3, 5, 1), nn.ReLU(), nn.Flatten(1), nn.Unflatten(1, (5, 7)), nn.Tanh()).eval()
    batches = [torch.randn(20, 3, 7)] * 2
    result = signature(model, batches)
    assert [call.channel_axis for call in result.calls] == [1, 1]  # split where it was merged
    split = nn.Sequential(nn.Linear(6, 12), nn.Unflatten(1, (4, 3)), nn.ReLU())
    with pytest.warns(UserWarning, match=r"2:relu\[0\] is not scored.*channel_axis") as caught:
        result = signature(split, [torch.randn(20, 6)] * 3)
    assert len(caught) == 1 and not result.calls and result.excluded[0].name == "2:relu[0]"
    result = signature(split, [torch.randn(20, 6)] * 3, channel_axis={"2:relu[0]": 1})
    assert result.scores.shape == (3, 1) and not result.excluded
    assert result.provenance["channel_axis"] == {"2:relu[0]": 1}


@pytest.mark.parametrize(
    ("axes", "words"),
    [
        ({"relu": 1}, "'relu', which is not a call"),
        ({"1:relu[0]": 4}, "channel_axis of 1:relu[0] is 4; it should be one of the axes 1 to 3"),
        ({"1:relu[0]": 0}, "channel_axis of 1:relu[0] is 0"),
    ],
)
def test_wrong_axes_are_named(axes, words):
    model = nn.Sequential(nn.Conv2d(3, 4, 1), nn.ReLU())
    with pytest.raises(ValueError) as error:
        signature(model, [torch.randn(5, 3, 2, 2)], channel_axis=axes)
    assert words in str(error.value)


def test_channels_are_followed_through_folded_frames():
    """Channels are followed through a batch that is folded into frames.

    The frames of a film form one long batch, in either order; it is unfolded, and positions in all frames are averaged.
    """
    layer, x = nn.Conv2d(2, 5, 3), torch.randn(4, 3, 2, 6, 6)  # n, frames, colours, height, width
    with torch.no_grad():
        expected = layer(x.flatten(0, 1)).view(4, 3, 5, 4, 4).double()
    for swap in (False, True):

        def folded(x, layer, swap=swap):
            frames = torch.relu(layer((x.transpose(0, 1) if swap else x).flatten(0, 1)))
            frames = frames.unflatten(0, (3, 4) if swap else (4, 3))
            return torch.relu(frames.transpose(0, 1) if swap else frames)

        found = traced(Made(folded, layer), x)
        assert [o.call.name for o in found.observations] == [":relu[0]", ":relu[1]"]
        for seen in found.observations:
            assert (seen.call.shape, seen.call.channel_axis) == ((3, 5, 4, 4), 2)
        before, after = found.observations[0][1:3]
        torch.testing.assert_close(before, expected.mean((1, 3, 4)), atol=1e-6, rtol=1e-5)
        torch.testing.assert_close(after, expected.relu().mean((1, 3, 4)), atol=1e-6, rtol=1e-5)


#: What rows do to samples: whether each sample is still there once, so that rows are samples.
ROWS = {
    "an index with repeats": (lambda x: x[torch.arange(N) // 2], False),
    "a permutation": (lambda x: x[torch.arange(N).flip(0)], True),
    "index_select": (lambda x: x.index_select(0, torch.zeros(N, dtype=torch.long)), False),
    "gather": (lambda x: x.gather(0, torch.zeros(N, D, dtype=torch.long)), False),
    "some repeated": (lambda x: x[: N // 2].repeat(2, 1), False),
    "half, twice": (lambda x: torch.cat([x[: N // 2]] * 2), False),
    "both halves": (lambda x: torch.cat([x[N // 2 :], x[: N // 2]]), True),
    "chunks joined": (lambda x: torch.cat(x.chunk(2)), True),
    "all, twice, of which the second": (lambda x: torch.cat([x, x]).chunk(2)[1], True),
    "a queue": (lambda x: torch.cat([torch.ones(N // 2, D), x[N // 2 :]]), False),
    "noise": (lambda x: torch.randn(N, D), False),
    "noise in place": (lambda x: torch.zeros(N, D).normal_(), False),
    "beside noise": (lambda x: x + torch.randn(N, D), True),
    "sorted in each column": (lambda x: x.sort(0).values, False),
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_are_samples_only_if_each_sample_is_there_once(name):
    pick, samples = ROWS[name]
    found = traced(Made(lambda x, a: torch.relu(a(pick(x))), nn.Linear(D, D)), torch.randn(N, D))
    assert bool(found.observations) is samples
    for item in found.excluded:
        assert isinstance(item, Undecided) and "may not be the samples" in item.reason


def test_gates_of_single_channels_keep_their_channels():
    """ECA: a convolution along the channels, with one output for each."""

    def attend(x, features, mix):
        return torch.sigmoid(mix(features(x).mean((2, 3))[:, None]))

    found = traced(Made(attend, nn.Conv2d(2, 7, 3), nn.Conv1d(1, 1, 3, padding=1)), torch.randn(N, 2, 6, 6))
    (seen,) = found.observations
    assert (seen.call.shape, seen.call.channel_axis, seen.before.shape) == ((1, 7), 2, (N, 7))


def test_tensor_with_replaced_data_has_no_layout():
    """A tensor whose data were replaced has no layout any more."""
    channels, x = Channels(Fixed(nn.Identity())), torch.zeros(N, D, 3)
    y = torch.relu(x)
    channels.follow(Operator(torch.ops.aten.relu.default, (x,), {}), y)
    assert channels.layout(y) == (((N, "N"),), ((D, "."),), ((3, "."),))
    y.data = torch.zeros(N, 2)
    assert channels.layout(y) is None
