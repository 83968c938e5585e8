"""What the tests of the decade share; :mod:`planted` has the networks."""

import pytest
import torch
from striped import stripes

from affscore_book.decade.training import ColourData


@pytest.fixture(scope="session")
def data() -> ColourData:
    """Stripes that a network learns in seconds; an epoch has two steps."""
    parts = [stripes(n, seed) for seed, n in enumerate((140, 40, 40))]
    return ColourData("stripes", *parts, torch.tensor([0.2]), torch.tensor([0.2]))
