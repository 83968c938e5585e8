"""The byte decoder: nothing flows back in time, attention is the textbook's, and every activation is seen and named."""

import cmath
import math

import numpy as np
import pytest
import torch
from torch import nn

from affscore import affinity_score, signature
from affscore.forward import evaluating
from affscore_book.kit.features import features
from affscore_book.transformers.gpt import CONTEXT, GPTS, MLPS, Attention, ByteGPT, build_gpt


def windows(n: int, tokens: int = CONTEXT, seed: int = 0) -> torch.Tensor:
    return torch.randint(0, 256, (n, tokens), generator=torch.Generator().manual_seed(seed))


@pytest.mark.parametrize("name", GPTS)
def test_a_later_byte_does_not_change_an_earlier_logit(name):
    network, text, place = build_gpt(name), windows(2), 40
    other = text.clone()
    other[:, place] = (text[:, place] + 1) % 256
    with torch.no_grad(), evaluating(network):
        one, two = network(text), network(other)
    torch.testing.assert_close(one[:, :place], two[:, :place], rtol=0, atol=1e-5)
    assert (one[:, place:] - two[:, place:]).abs().amax(dim=(0, 2)).min() > 1e-4  # every later one does change


def test_attention_is_textbook_attention_with_rotary_positions():
    """Attention is that of the textbook with rotated queries and keys.

    The oracle takes one token and one head at a time and rotates with complex numbers.
    """
    torch.manual_seed(0)
    width, heads, tokens = 12, 2, 7
    attention = Attention(width, heads).double()
    stream = torch.randn(1, tokens, width, dtype=torch.float64)
    query, key, value = (stream[0] @ w.T + b for w, b in zip(
        attention.into.weight.split(width), attention.into.bias.split(width), strict=True))  # fmt: skip
    half = width // heads // 2

    def plane(vector: torch.Tensor, head: int, place: int) -> list[complex]:
        part = vector[head * 2 * half : (head + 1) * 2 * half].tolist()
        pairs = zip(part[:half], part[half:], strict=True)
        return [complex(*pair) * cmath.exp(1j * place * CONTEXT ** (-i / half)) for i, pair in enumerate(pairs)]

    mixed = torch.zeros(tokens, width, dtype=torch.float64)
    for head in range(heads):
        channels = slice(head * 2 * half, (head + 1) * 2 * half)
        for place in range(tokens):
            asked = plane(query[place], head, place)
            logits = [
                sum((a * b.conjugate()).real for a, b in zip(asked, plane(key[other], head, other), strict=True))
                for other in range(place + 1)
            ]
            weights = np.exp(np.array(logits) / math.sqrt(2 * half))
            mixed[place, channels] = torch.from_numpy(weights / weights.sum()) @ value[: place + 1, channels]
    expected = mixed @ attention.out.weight.T + attention.out.bias
    torch.testing.assert_close(attention(stream)[0], expected, rtol=1e-5, atol=1e-6)


SEEN = {"gelu": ("gelu", 384), "relu": ("relu", 384), "silu": ("silu", 384), "relu2": ("relu_squared", 384),
        "swiglu": ("silu", 256)}  # fmt: skip


@pytest.mark.parametrize("name", GPTS)
def test_every_call_is_seen_and_networks_have_one_size(name):
    """Every activation call is seen and named, and all networks are of one size."""
    network = build_gpt(name)
    found = signature(network, [windows(8)])
    function, channels = SEEN[GPTS[name][0]]
    assert [call.name for call in found.calls] == [f"blocks.{i}.mlp:{function}[0]" for i in range(4)]
    assert {(call.shape, call.channel_axis, call.gate) for call in found.calls} == {((CONTEXT, channels), 2, False)}
    assert not found.excluded and np.isfinite(found.scores).all()
    norms = [module for module in network.modules() if isinstance(module, nn.LayerNorm)]
    assert len(norms) == (9 if GPTS[name][1] else 0)
    assert sum(each.numel() for each in network.parameters()) == pytest.approx(500_000, rel=0.01)


#: The function whose input and output the score compares, and the layer that gives that input.
COMPARED = {
    "gelu": ("up", lambda x: x * 0.5 * (1 + torch.erf(x / math.sqrt(2)))),
    "relu": ("up", lambda x: x.clamp(min=0)),
    "silu": ("up", lambda x: x / (1 + (-x).exp())),
    "relu2": ("up", lambda x: x.clamp(min=0) ** 2),
    "swiglu": ("gate", lambda x: x / (1 + (-x).exp())),
}


@pytest.mark.parametrize("activation", MLPS)
@pytest.mark.parametrize("pool", ["spatial", "last"])
def test_a_score_compares_what_the_table_says(activation, pool):
    network, text = build_gpt(activation, seed=3), windows(20, tokens=16)
    layer, function = COMPARED[activation]
    with torch.no_grad(), evaluating(network), features(network, [f"blocks.1.mlp.{layer}"]) as seen:
        network(text)
        before = seen[f"blocks.1.mlp.{layer}"].output
    pooled = {"spatial": lambda x: x.mean(1), "last": lambda x: x[:, -1]}[pool]
    expected = affinity_score(pooled(before), pooled(function(before))).item()
    assert signature(network, [text], pool=pool).scores[0, 1] == pytest.approx(expected, abs=1e-4)


def test_the_gated_unit_is_a_product():
    mlp = build_gpt("swiglu").blocks[0].mlp
    x = torch.randn(3, 5, 96)
    with torch.no_grad():
        gate = mlp.gate(x)
        torch.testing.assert_close(mlp(x), mlp.down(gate * torch.sigmoid(gate) * mlp.up(x)))


def test_a_seed_gives_one_start_and_leaves_the_generator():
    torch.manual_seed(5)
    expected = torch.rand(3)
    torch.manual_seed(5)
    one, two, other = build_gpt("relu", 1), build_gpt("relu", 1), build_gpt("relu", 2)
    assert torch.equal(torch.rand(3), expected)
    assert all(map(torch.equal, one.parameters(), two.parameters()))
    assert not torch.equal(one.head.weight, other.head.weight)


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="activation is 'tanh'; it should be one of 'gelu'"):
        ByteGPT("tanh")
    with pytest.raises(ValueError, match="name is 'gpt'"):
        build_gpt("gpt")
    with pytest.raises(ValueError, match="windows has 129 tokens a row; it should have at most 128"):
        build_gpt("gelu")(windows(1, CONTEXT + 1))
