"""The entropy of the sign, against the entropy of each channel by itself."""

import pytest
import scipy.stats
import torch

from affscore_book.uses.signs import sign_entropy


def test_sign_entropy_is_scipys_and_sees_only_signs():
    """The entropy of the sign is the mean of SciPy's entropies over channels and depends on signs alone."""
    x = torch.randn(200, 3, 4, 4, generator=torch.Generator().manual_seed(0)) + torch.tensor([0, 1, -2])[:, None, None]
    shares = (x > 0).double().mean((0, 2, 3))
    truth = sum(scipy.stats.entropy([p, 1 - p], base=2) for p in shares.tolist()) / 3
    assert sign_entropy(x) == pytest.approx(truth) == pytest.approx(sign_entropy(x.movedim(1, -1), axis=-1))
    assert sign_entropy(1e3 * x**3) == sign_entropy(x)
    assert sign_entropy(torch.ones(9, 2)) == 0 and sign_entropy(torch.tensor([[1.0], [-1.0]])) == 1


@pytest.mark.parametrize("wrong", [torch.ones(3), torch.ones(0, 2), torch.tensor([[float("nan")]])])
def test_what_has_no_entropy_is_refused(wrong):
    with pytest.raises(ValueError, match="before"):
        sign_entropy(wrong)
