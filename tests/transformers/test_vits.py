"""Attention is taken out of the block that is measured, and out of no other; what is stored is whole."""

from pathlib import Path

import pytest
import torch
from torchvision.models import VisionTransformer

from affscore import signature
from affscore_book.decade.collection import END, load_decade
from affscore_book.transformers.vits import BLOCKS, VIT_POOLS, load_vits
from affscore_study.transformers.attention import attention_scores

BOOK = Path(__file__).parents[2] / "book" / "data"
FILE = BOOK / "transformers" / "vits.json"


@pytest.fixture(scope="module")
def tiny() -> VisionTransformer:
    torch.manual_seed(0)
    network = VisionTransformer(8, 4, 3, 2, 8, 16, num_classes=3)
    for parameter in network.parameters():  # torchvision starts with zeros where attention would matter
        torch.nn.init.normal_(parameter, std=0.4)
    return network.eval()


@pytest.mark.parametrize("pool", VIT_POOLS)
def test_scores_match_the_network_with_and_without_attention(tiny, pool):
    """Both scores are those of the whole network, with and without the attention of the block."""
    images = torch.randn(60, 3, 8, 8, generator=torch.Generator().manual_seed(1))
    found = attention_scores(tiny, images, pool)
    assert found[0] == pytest.approx(signature(tiny, [images], pool=pool).mean, abs=1e-5)
    for i, block in enumerate(tiny.encoder.layers):
        hook = block.self_attention.register_forward_hook(lambda module, args, out: (torch.zeros_like(out[0]), out[1]))
        expected = signature(tiny, [images], pool=pool).mean[i]
        hook.remove()
        assert found[1][i] == pytest.approx(expected, abs=1e-5)
        assert abs(found[1][i] - found[0][i]) > 1e-4
    assert not any(module._forward_pre_hooks for module in tiny.modules())


def test_stored_scores_with_attention_are_the_decades():
    """The stored scores with attention are those of the chapter on the decade."""
    decade, vits = load_decade(BOOK / "decade"), load_vits(FILE)
    for name in BLOCKS:
        expected = decade[name][0].signatures[END, "spatial"].mean
        assert vits.scores[f"{name}|trained|spatial|0"][0] == pytest.approx(expected, abs=1e-3)
