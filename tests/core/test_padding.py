"""Padding is not data: a padded batch gives what its sentences give one by one, whatever stands in the padding."""

import numpy as np
import pytest
import torch
from small_network import Made
from torch import nn

from affscore import SignatureError, affinity_score, signature
from affscore.companions import measure

LENGTHS = (7, 3, 1, 5, 2, 4)
TOKENS = {"vocab_size": 50, "bos_token_id": 0, "eos_token_id": 1, "pad_token_id": 2}
POOLED = {
    "spatial": lambda x: x.mean(0, keepdim=True),
    "first": lambda x: x[:1],
    "last": lambda x: x[-1:],
    "tokens": lambda x: x,
}


class Named(Made):
    """A module whose input and mask have names."""

    def forward(self, x, attention_mask):
        return super().forward(x, attention_mask=attention_mask)


def bert(seed):
    """A small one with ReLU, whose zeros can be counted."""
    from transformers import BertConfig, BertModel

    torch.manual_seed(seed)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
    model = BertModel(BertConfig(hidden_act="relu", **sizes, **TOKENS), add_pooling_layer=False).eval()
    return model, [layer.intermediate.intermediate_act_fn for layer in model.encoder.layer]


def gpt(seed):
    """A small one; its GELU is written in arithmetic."""
    from transformers import GPT2Config, GPT2Model

    torch.manual_seed(seed)
    model = GPT2Model(GPT2Config(n_positions=16, n_embd=32, n_layer=2, n_head=4, **TOKENS)).eval()
    return model, [block.mlp.act for block in model.h]


def sentences(seed):
    generator = torch.Generator().manual_seed(seed)
    return [torch.randint(3, 50, (length,), generator=generator) for length in LENGTHS]


def padded(texts, side, seed=0):
    """A batch of sentences with arbitrary tokens in the padding, each sentence at its own positions from 0."""
    longest = max(map(len, texts))
    numbers = torch.randint(3, 50, (len(texts), longest), generator=torch.Generator().manual_seed(seed))
    mask = torch.zeros_like(numbers)
    for i, text in enumerate(texts):
        place = slice(0, len(text)) if side == "right" else slice(longest - len(text), longest)
        numbers[i, place], mask[i, place] = text, 1
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    return {"input_ids": numbers, "attention_mask": mask, "position_ids": positions}


@torch.no_grad()
def alone(model, activations, texts):
    """Inputs and outputs of every activation, (tokens, channels) for each sentence by itself."""
    seen = [[] for _ in activations]
    hooks = [
        module.register_forward_hook(lambda _, args, out, place=place: place.append((args[0][0].clone(), out[0])))
        for module, place in zip(activations, seen, strict=True)
    ]
    for text in texts:
        model(text[None])
    for hook in hooks:
        hook.remove()
    return seen


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize(("make", "pool", "micro_batch"), [
    (bert, "spatial", 1), (bert, "tokens", 4), (gpt, "first", None), (gpt, "last", 4), (bert, "last", None),
])  # fmt: skip
def test_padded_batch_scores_as_its_sentences_alone(make, pool, micro_batch, side):
    """A padded batch has the scores and companions of its sentences run alone, for every micro-batch."""
    model, activations = make(2)
    texts = sentences(2)
    result = signature(model, [padded(texts, side)], pool=pool, companions=True, micro_batch=micro_batch)
    assert result.batch_sizes == [len(texts)] and [call.masked for call in result.calls] == [True, True]
    assert not result.excluded
    for i, pairs in enumerate(alone(model, activations, texts)):
        before, after = (torch.cat([POOLED[pool](pair[at]) for pair in pairs]) for at in (0, 1))
        assert result.scores[0, i] == pytest.approx(affinity_score(before, after).item(), abs=1e-5)
        expected = measure(before, after)
        for at, name in enumerate(["sparsity_before", "sparsity_after"]):
            expected[name] = (torch.cat([pair[at] for pair in pairs]).abs() <= 1e-3).double().mean().item()
        for name, value in expected.items():
            tolerance = 2e-2 if "entropy" in name else 2e-3  # a value on the edge of a bin may change sides
            np.testing.assert_allclose(result.companions[name][0, i], value, atol=tolerance, err_msg=name)


@pytest.mark.parametrize("pool", POOLED)
@pytest.mark.parametrize("precision", ["full", "bf16"])
@pytest.mark.parametrize("value", [300.0, 1e9, torch.inf, torch.nan])
def test_values_in_padding_change_nothing(value, precision, pool):
    """The values in the padding change neither the scores and companions of the tokens nor the limits of rounding."""
    torch.manual_seed(0)
    model = Named(lambda x, linear, attention_mask: torch.relu(linear(x)), nn.Linear(4, 4))
    x, mask = torch.randn(16, 5, 4), torch.ones(16, 5)
    mask[:, 3:] = 0
    padded = {"x": x.masked_fill(mask[..., None] == 0, value), "attention_mask": mask}
    short = {"x": x[:, :3], "attention_mask": mask[:, :3]}
    found, alone = (
        signature(model, [batch], pool=pool, precision=precision, companions=["cka", "sparsity_after"])
        for batch in (padded, short)
    )
    np.testing.assert_allclose(found.scores, alone.scores, atol=1e-6)
    for name, values in found.companions.items():
        np.testing.assert_allclose(values, alone.companions[name], atol=1e-6)


@pytest.mark.parametrize(("shape", "reason"), [
    (lambda x: x[:, 1:], "has no unique axis for the 5 tokens"),
    (lambda x: x.unsqueeze(2).expand(-1, -1, 5, -1), "has no unique axis for the 5 tokens"),
    (lambda x: x.mean(2), "axis 1 of its input of shape (6, 5) may hold channels or tokens"),
    (lambda x: x.unflatten(2, (2, 2)).transpose(1, 2).flatten(0, 1), "shape (6, 2, 5, 2) on axes 1, 3"),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore::UserWarning")  # that a call is not scored
def test_where_the_tokens_cannot_be_known_nothing_is_guessed(shape, reason):
    batch = {"x": torch.randn(6, 5, 2), "attention_mask": torch.ones(6, 5)}
    model = Named(lambda x, linear, attention_mask: torch.relu(shape(linear(x))), nn.Linear(2, 4))
    result = signature(model, [batch])
    assert not result.calls and len(result.excluded) == 1
    assert reason in result.excluded[0].reason


@pytest.mark.parametrize("micro_batch", [None, 2])
def test_vector_is_not_masked_if_channels_match_tokens(micro_batch):
    """A vector of one token is not masked, even if it has as many channels as the sequence has tokens."""

    def both(x, one, two, attention_mask):
        return torch.tanh(two(torch.tanh(one(x))[:, 0]))

    model = Named(both, nn.Linear(5, 5), nn.Linear(5, 5))
    x, mask = torch.randn(6, 5, 5), torch.ones(6, 5)
    mask[0, 3:] = 0
    result = signature(model, [{"x": x, "attention_mask": mask}], micro_batch=micro_batch)
    assert [(call.shape, call.masked) for call in result.calls] == [((5, 5), True), ((5,), False)]
    plain = signature(model, [{"x": x, "attention_mask": torch.ones(6, 5)}])
    assert result.scores[0, 1] == pytest.approx(plain.scores[0, 1]) != plain.scores[0, 0]


def test_a_decoder_has_tokens_of_its_own():
    """As many as the encoder's: by their shapes alone its calls would lose tokens that are no padding."""
    from transformers import T5Config, T5Model

    torch.manual_seed(0)
    sizes = {"d_model": 32, "d_kv": 8, "d_ff": 24, "num_layers": 1, "num_heads": 4}
    model = T5Model(T5Config(vocab_size=50, pad_token_id=2, decoder_start_token_id=2, **sizes)).eval()
    batch = padded(sentences(0), "right")
    batch["decoder_input_ids"] = batch["input_ids"].flip(1)
    del batch["position_ids"]
    pairs = []
    for part in model.modules():
        if isinstance(part, nn.ReLU):
            part.register_forward_hook(lambda _, args, out: pairs.append((args[0].clone(), out.clone())))
    result = signature(model, [batch])
    assert [(call.module.split(".")[0], call.masked) for call in result.calls] == [
        ("encoder", True),
        ("decoder", False),
    ]
    keep = batch["attention_mask"].bool()
    encoder = [torch.stack([x[at].mean(0) for x, at in zip(side, keep, strict=True)]) for side in pairs[0]]
    decoder = [side.mean(1) for side in pairs[1]]
    expected = [affinity_score(*sides).item() for sides in (encoder, decoder)]
    np.testing.assert_allclose(result.scores[0], expected, atol=1e-6)


def test_trailing_pool_needs_samples_of_one_length():
    """The trailing pool is refused for padded samples and allowed for samples of one length."""
    model, _ = bert(0)
    with pytest.raises(SignatureError, match="pool is 'trailing', which keeps positions apart"):
        signature(model, [padded(sentences(0), "right")], pool="trailing")
    batch = padded(sentences(0), "right")
    batch |= {"attention_mask": torch.ones(6, 7), "position_ids": torch.arange(7).expand(6, 7)}
    one = signature(model, [batch], pool="trailing")
    np.testing.assert_allclose(one.scores, signature(model, [batch["input_ids"]], pool="trailing").scores, atol=1e-6)
