"""What varies by rounding alone is no signal: it has no score, it is named, and what does vary keeps its value."""

import warnings

import numpy as np
import pytest
import torch
from small_network import Made
from torch import nn
from torch.nn import functional as F

from affscore import affinity_score, signature
from affscore.errors import AffscoreWarning
from affscore.pooling import pool, rounding
from affscore.samples import constant
from affscore.score import TOLERANCE, score_and_error

N = 48


def normalised():
    layer = nn.Conv2d(3, 16, 3, padding=1, padding_mode="circular")
    return nn.Sequential(layer, nn.InstanceNorm2d(16, affine=True), nn.ReLU())


def attention(x, query, key, linear):
    return F.gelu(linear(torch.softmax(query(x) @ key(x).mT / 5, -1).mT))


def bags():
    tokens = torch.randn(10, 32)
    return torch.stack([tokens[torch.randperm(10)] for _ in range(N)])


def images():
    return torch.randn(N, 3, 12, 12)


def tokens():
    return torch.randn(N, 10, 32)


def opposites():
    return torch.arange(1.0, N + 1)[:, None, None] * torch.tensor([1.0, -1.0]).repeat(1, 3, 1)


#: Networks and inputs whose pooled activations do not vary in exact arithmetic, and the axes that they need.
CONSTANT = {
    "instance norm": (normalised, images, {}),
    "attention by keys": (
        lambda: Made(attention, nn.Linear(32, 8), nn.Linear(32, 8), nn.Linear(10, 24)), tokens, {":gelu[0]": 2}),
    "tokens in another order": (lambda: nn.Sequential(nn.Linear(32, 24), nn.GELU()), bags, {}),
    "a sum that cancels": (lambda: Made(torch.relu), opposites, {":relu[0]": 1}),
}  # fmt: skip
KINDS = {"float32": torch.float32, "float64": torch.float64, "bfloat16": torch.bfloat16, "autocast": torch.float32}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", CONSTANT)
def test_what_varies_by_rounding_alone_has_no_score_and_is_named(name, kind):
    torch.manual_seed(0)
    made, data, axes = CONSTANT[name]
    model, x = made().to(KINDS[kind]), data().to(KINDS[kind])
    options = {"precision": "bf16"} if kind == "autocast" else {"micro_batch": 20} if kind == "float64" else {}
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        result = signature(model, [x, x.flip(0)], channel_axis=axes, **options)
    assert result.scores.shape == (2, 1) and result.dead.all()
    # Half precision may round all samples to the same values, and then the output is as constant as a dead one.
    said = [str(each.message) for each in caught]
    assert all(each.startswith(f"{result.calls[0].name} is not scored: ") for each in said) and len(said) < 2
    # The mean of the same tokens in another order is the same to the last bits of float64, and looks it.
    assert said or kind in ("bfloat16", "autocast") or name == "tokens in another order"


def test_channel_that_varies_by_rounding_is_left_out():
    """A channel that varies by rounding alone is left out, and the other channels are scored.

    Half of the channels are normalised by image, half are not, as in IBN-Net. Without shrinkage a map fits both.
    """
    torch.manual_seed(0)
    half = Made(lambda x, norm: torch.cat([norm(x[:, :4]), x[:, 4:]], 1), nn.InstanceNorm2d(4, affine=True))
    model, x = nn.Sequential(nn.Conv2d(3, 8, 3), half, nn.ReLU()), images()
    with pytest.warns(AffscoreWarning, match=r"^4 of 8 channels of the input of 2:relu\[0\] vary only by rounding"):
        found = signature(model, [x], covariance="empirical")
    with torch.no_grad():
        before = model[:2](x)
    flat, after = before.mean((2, 3)), before.relu().mean((2, 3))
    flat[:, :4] = 0
    np.testing.assert_allclose(found.scores, affinity_score(flat, after, covariance="empirical").item(), atol=1e-6)


def test_of_a_channel_whose_filter_is_gone_nothing_is_said(recwarn):
    """Weight decay leaves some trained filters weights of 1e-8 and a bias: constant, as if they were exactly 0."""
    torch.manual_seed(0)
    model, x = nn.Sequential(nn.Conv2d(3, 8, 3), nn.ReLU()), images()
    model[0].weight.data[2], model[0].bias.data[2] = 3e-8, 1.0
    with torch.no_grad():
        pooled = model[0](x).mean((2, 3))
    assert 0 < pooled[:, 2].std() < 1e-6
    found = signature(model, [x]).scores
    model[0].weight.data[2] = 0
    assert not recwarn and found == pytest.approx(signature(model, [x]).scores, abs=1e-8)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_limit_depends_on_precision_and_pooled_length(dtype):
    """The limit of rounding depends on the precision and on the number of entries that are averaged.

    The mean of 2500 entries rounds by a fiftieth of what one of them does.
    """
    x = torch.randn(N, 4, 50, 50).to(dtype)
    pooled = pool(x, "spatial", axis=1)
    limit = rounding(x, pooled, "spatial", axis=1)
    half = torch.finfo(dtype).eps / 2 / 50 * x.double().square().mean().sqrt().item()
    np.testing.assert_allclose(limit, half, rtol=0.02)
    for size, still in ((7, True), (9, False)):
        assert constant(torch.full((4,), size * half), limit).all() == still
    assert not constant((pooled - pooled.mean(0)).abs().amax(0), limit).any()
    # A small channel beside a large one counts: its entries are small, and so is its rounding.
    scaled = x * torch.tensor([1e6, 1e-6, 1, 1]).to(dtype)[:, None, None]
    pooled = pool(scaled, "spatial", axis=1)
    limit = rounding(scaled, pooled, "spatial", axis=1)
    assert not constant((pooled - pooled.mean(0)).abs().amax(0), limit).any()


@pytest.mark.parametrize("seed", range(40))
def test_last_digits_cannot_make_a_map_fit(seed):
    """Three samples on a line: a unit in the last place adds a direction, which a map can stretch to the outputs."""
    rng = np.random.default_rng(seed)
    line, end = np.array([[0], [1], [1 / 3]]), rng.normal(size=5).astype(np.float32)
    x = (line * end).astype(np.float32)
    y = (line * end + rng.normal(size=(3, 5)) / 2).astype(np.float32)
    expected = affinity_score(line * end.astype(float), y.astype(float), covariance="empirical")
    for _ in range(3):
        x[2] = np.nextafter(x[2], np.float32(9) * rng.choice(np.float32([-1, 1]), 5))
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always")
            found = affinity_score(x, y, covariance="empirical")
        assert said or abs(found - expected) < TOLERANCE


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
@pytest.mark.parametrize("axis", [1, 2, 3])
def test_limit_of_a_channel_is_that_of_its_own_entries(axis, dtype):
    x = (torch.randn(4, 5, 6, 7, dtype=torch.float64) * 10.0 ** torch.arange(7)).to(dtype)
    rows = x.double().movedim(axis, 0).flatten(1)
    rms, entries = rows.square().mean(1).sqrt(), rows.shape[1] / 4
    limit = rounding(x, pool(x, "spatial", axis), "spatial", axis)
    np.testing.assert_allclose(limit, torch.finfo(dtype).eps / 2 * rms / entries**0.5, rtol=1e-12)


def sigmoids(scale):
    layers = [m for _ in range(3) for m in (nn.Linear(24, 24), nn.Sigmoid())]
    layers[4].weight.data.mul_(scale)
    return nn.Sequential(*layers)


def gate(scale):
    layer = nn.Conv2d(3, 2, 3)
    layer.weight.data.mul_(scale)
    return nn.Sequential(layer, nn.Hardsigmoid())


def expansion(scale):
    """More channels than the inputs have dimensions: without shrinkage rounding fills the directions that are left."""
    layers = [nn.Linear(32, 4), nn.Linear(4, 40), nn.ReLU()]
    layers[1].weight.data.mul_(scale)
    return nn.Sequential(*layers)


SHARP = {
    "sigmoids": (sigmoids, lambda: torch.randn(N, 24)),
    "gate of images": (gate, images),
    "expansion": (expansion, lambda: torch.randn(N, 32)),
}


@pytest.mark.parametrize("covariance", ["ledoit_wolf", "empirical"])
@pytest.mark.parametrize("scale", [1.0, 1e-2, 1e-4, 1e-5, 3e-6, 1e-6])
@pytest.mark.parametrize("name", SHARP)
def test_score_is_exact_or_left_out_with_a_warning(name, scale, covariance):
    """A score equals that of exact arithmetic, or it is left out with a warning.

    The oracle is the same network in float64.
    """
    torch.manual_seed(0)
    made, data = SHARP[name]
    model, x = made(scale), data()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        single = signature(model, [x], covariance=covariance)
    exact = signature(model.double(), [x.double()], covariance=covariance)
    assert not exact.dead.any() and (scale < 1e-3 or not single.dead.any())
    for call, one, other in zip(single.calls, single.scores[0], exact.scores[0], strict=True):
        told = any(str(each.message).startswith(f"{call.name} is not scored") for each in caught)
        assert np.isnan(one) if told else np.isnan(one) or one == pytest.approx(other, abs=0.005)
        assert name != "expansion" or scale < 1 or one == pytest.approx(other, abs=1e-4)


def test_a_score_of_arrays_whose_rounding_decides_it_warns():
    x = torch.randn(N, 3, generator=torch.Generator().manual_seed(0))
    near = 1 + 3e-6 * x.double()
    with pytest.warns(AffscoreWarning, match=r"rounding in float32 can have changed the score by 0\.0"):
        score = affinity_score(near.float(), (3 * near).float(), covariance="empirical")
    assert score < 0.999 < affinity_score(near, 3 * near, covariance="empirical")


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_average_is_as_exact_as_the_activations(dtype):
    x = (3 + torch.rand(4, 2, 40, 40, generator=torch.Generator().manual_seed(0))).to(dtype)
    for kind, mean in (("spatial", x.double().mean((2, 3))), ("trailing", x.double().mean((2, 3)))):
        torch.testing.assert_close(pool(x, kind, axis=1), mean, rtol=1e-15, atol=0)
    mask = torch.rand(4, 40, generator=torch.Generator().manual_seed(1)) < 0.7
    kept = torch.stack([one[:, keep].double().mean((1, 2)) for one, keep in zip(x, mask, strict=True)])
    torch.testing.assert_close(pool(x, "spatial", 1, mask, 2), kept, rtol=1e-14, atol=0)


@pytest.mark.parametrize("shape", [(N, 6), (N, 6, 5)])
def test_the_size_of_activations_changes_nothing(shape):
    """The square of 1e25 is too large for float32."""
    x = torch.randn(shape, generator=torch.Generator().manual_seed(0))
    small, large = (signature(nn.ReLU(), size * x, channel_axis={":relu[0]": 1}).scores for size in (1.0, 1e25))
    np.testing.assert_allclose(large, small, atol=1e-6)


@pytest.mark.parametrize(("kind", "kept"), [("first", 0), ("last", -1)])
def test_left_out_tokens_set_no_limit_for_kept_ones(kind, kept, recwarn):
    """The size of the tokens that a pool leaves out does not set the limit of rounding for those it keeps.

    A class token whose channel is small beside that of the words varies, however large the words are.
    """
    torch.manual_seed(0)
    x = torch.randn(N, 5, 4) * 1e6
    x[:, kept] = torch.randn(N, 4) * torch.tensor([1.0, 1.0, 1e-3, 1e-3])
    model = nn.Sequential(nn.Linear(4, 4, bias=False), nn.ReLU())
    model[0].weight.data[:] = torch.eye(4)
    found = signature(model, [x], pool=kind).scores
    assert not recwarn
    np.testing.assert_allclose(found, affinity_score(x[:, kept], x[:, kept].relu()).item(), rtol=1e-6)


@pytest.mark.parametrize("seed", range(6))
def test_rounding_that_a_background_shares_is_no_score(seed):
    """Means over 1024 entries, mostly of equal ones, whose rounding does not cancel; one direction is true."""
    generator = torch.Generator().manual_seed(seed)
    size, background = torch.randn(200, 1, generator=generator).double(), torch.rand(200, 1, generator=generator)
    exact = size * torch.linspace(-2, 2, 6, dtype=torch.float64)
    y = torch.relu(exact + torch.linspace(-1, 1, 6))
    grain = 2**-24 * exact.square().mean(0).sqrt()
    x = exact + background * grain * torch.tensor([1, -1, 1, 1, -1, 1])
    truth = affinity_score(exact, y, covariance="empirical").item()
    score, error = score_and_error(x, y, "empirical", (grain / 32, grain / 32), entries=1024)
    assert error > TOLERANCE or score.item() == pytest.approx(truth, abs=TOLERANCE)
    alone, unnoticed = score_and_error(x, y, "empirical", (grain / 32, grain / 32))
    assert unnoticed <= TOLERANCE < abs(alone.item() - truth)  # as if the rounding of all entries cancelled


def test_average_of_equal_entries_is_as_exact_as_one():
    """An average over equal entries is no more exact than one of them.

    Each picture is of one colour, so the rounding of its pixels is one and the same.
    """
    x = 1 + 1e-6 * torch.randn(200, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    pictures = x[:, :, None, None].expand(-1, -1, 16, 16)
    options = {"covariance": "empirical", "channel_axis": {":tanh[0]": 1}}
    exact = signature(nn.Tanh(), [pictures], **options).scores[0, 0]
    with pytest.warns(AffscoreWarning, match=r":tanh\[0\] is not scored: its variation is so small"):
        single = signature(nn.Tanh(), [pictures.float()], **options).scores[0, 0]
    assert np.isnan(single) and exact == pytest.approx(1, abs=1e-4)


def test_rounding_may_refuse_a_twin_too():
    """A twin whose score rounding decides is NaN, and the only warning names the call."""
    torch.manual_seed(0)
    layer, slopes = nn.Linear(8, 8), nn.PReLU(8)
    layer.weight.data *= 5
    layer.bias.data.fill_(-3e6)
    slopes.weight.data = torch.logspace(-1, 0, 8)
    with pytest.warns(AffscoreWarning) as caught:
        found = signature(nn.Sequential(layer, slopes), torch.randn(40, 8), companions=["twin"])
    assert np.isnan(found.scores).all() and np.isnan(found.companions["twin"]).all()
    assert all("1:prelu[0]" in str(warning.message) for warning in caught)
