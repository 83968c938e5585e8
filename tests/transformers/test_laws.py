"""Laws of a layer's inputs: quadrature against the book's other quadrature, and the formula against large samples."""

import numpy as np
import pytest
import torch

from affscore import paired_affinity_score
from affscore.pooling import pool
from affscore_book.activations.laws import score_curve
from affscore_book.transformers.laws import channel_laws, score_from_correlations
from affscore_study.transformers.laws import inputs_of_layer, score_from_means_and_spreads, score_of_positions

EDGES = np.linspace(-6, 4, 101)


@pytest.mark.parametrize("spread", (0.1, 0.5, 1.0, 3.0))
def test_one_channel_has_the_score_of_the_chapter_on_activations(spread):
    means = np.linspace(-2, 2, 9)
    correlations, variances = channel_laws(means, spread)
    theirs = score_curve("gelu", means, spread, coupling="paired")
    mine = [score_from_correlations([r], [v]) for r, v in zip(correlations, variances, strict=True)]
    assert mine == pytest.approx(theirs.tolist(), abs=1e-5)


def test_variances_are_those_of_large_samples():
    generator = torch.Generator().manual_seed(0)
    means, spreads = torch.randn(6, generator=generator).double(), 0.2 + torch.rand(6, generator=generator).double()
    x = means + spreads * torch.randn(400_000, 6, generator=generator, dtype=torch.float64)
    y = torch.nn.functional.gelu(x)
    correlations, variances = channel_laws(means, spreads)
    assert variances == pytest.approx(y.var(dim=0).numpy(), rel=0.02)
    seen = [np.corrcoef(x[:, i], y[:, i])[0, 1] for i in range(6)]
    assert correlations == pytest.approx(seen, abs=0.01)


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("tokens", [1, 8])
def test_channels_apart_add_up_also_after_an_average_over_tokens(seed, tokens):
    """Four independent channels, the pairing kept: the score of a large sample, pooled over independent tokens."""
    generator = torch.Generator().manual_seed(seed)
    means, spreads = torch.tensor([-2.0, -0.5, 0.0, 1.0]), torch.tensor([1.0, 0.5, 2.0, 0.7])
    x = means + spreads * torch.randn(1500, tokens, 4, generator=generator)
    y = torch.nn.functional.gelu(x)
    pooled = paired_affinity_score(x.mean(dim=1), y.mean(dim=1), covariance="empirical").item()
    assert score_from_correlations(*channel_laws(means, spreads)) == pytest.approx(pooled, abs=0.03)


def test_the_laws_of_a_layer_are_those_of_its_channels():
    """Normal inputs are explained by their means and spreads, heavy tails are not: against the channels' true laws."""
    generator = torch.Generator().manual_seed(0)
    normal = torch.linspace(-3, 1, 12) + torch.linspace(0.2, 2, 12) * torch.randn(50_000, 12, generator=generator)
    heavy = torch.randn(50_000, 12, generator=generator).double() ** 3 - 1
    for before, explained in ((normal, True), (heavy, False)):
        layer, after = inputs_of_layer(before, EDGES), torch.nn.functional.gelu(before)
        assert layer.shares.sum() == pytest.approx(1)
        assert layer.means == pytest.approx(before.double().mean(dim=0).numpy())
        true = [np.corrcoef(before[:, i], after[:, i])[0, 1] for i in range(12)]
        gap = score_from_means_and_spreads(layer) - score_from_correlations(true, after.double().var(dim=0).numpy())
        assert (abs(gap) < 0.01) if explained else (abs(gap) > 0.03)


def test_channels_count_by_variance_and_bad_spreads_fail():
    """Channels count by their variance, and a spread that is not positive and finite is refused."""
    low, high = score_from_correlations([0.5, 1.0], [9.0, 1.0]), score_from_correlations([0.5, 1.0], [1.0, 9.0])
    assert (low, high) == pytest.approx((1 - np.sqrt(0.5 * 0.9), 1 - np.sqrt(0.5 * 0.1)))
    for spread in (0.0, -1.0, np.nan):
        with pytest.raises(ValueError, match="spreads should be finite"):
            channel_laws(0.0, spread)


@pytest.mark.parametrize("seed", range(2))
def test_positions_are_the_channels_of_the_trailing_pool(seed):
    """Texts of independent tokens: the paired score of a large sample, pooled as the public code does."""
    generator = torch.Generator().manual_seed(seed)
    before = torch.tensor([-2.0, 0.0, 1.0]).repeat(4) + torch.randn(4000, 5, 12, generator=generator)
    after = torch.nn.functional.gelu(before)
    pooled = paired_affinity_score(
        *(pool(value, "trailing", axis=2) for value in (before, after)), covariance="empirical"
    )
    found = score_of_positions(before, after)
    assert found == pytest.approx(pooled.item(), abs=0.01)
    flat = torch.ones(4000, 1, 12)  # a position that never varies counts nothing
    assert score_of_positions(torch.cat([before, flat], 1), torch.cat([after, flat], 1)) == pytest.approx(found)
