"""The twins of calls that only shift and scale score what these calls score, and the stored ones fit the chapter."""

from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from affscore import affinity_score, paired_affinity_score
from affscore_study.first_signature.twins import measure_twins

STORED = Path(__file__).resolve().parents[2] / "book" / "data" / "first_signature" / "twins.json"


class Scaled(nn.Module):
    """Two calls of one ReLU6: on inputs that it passes whole, and on inputs that it bends."""

    def __init__(self):
        super().__init__()
        self.norm, self.act = nn.BatchNorm2d(8, eps=0), nn.ReLU6()  # the norm changes nothing, and names the channels

    def forward(self, x):
        x = self.norm(x)
        return torch.cat([self.act(0.1 * x + 3), self.act(x)])


def test_a_call_that_passes_everything_is_its_own_twin():
    noise = torch.Generator().manual_seed(0)
    images = 3 * torch.randn(60, 8, 1, 1, generator=noise) + 0.1 * torch.randn(60, 8, 4, 4, generator=noise)
    others = images.flip(1)  # the same clouds, in which no channel meets its own
    found = {kind: np.array(values) for kind, values in measure_twins(Scaled().eval(), images, others).items()}
    assert found["score"][0] == pytest.approx(found["twin"][0]) == pytest.approx(1)
    assert found["score"][1] < found["twin"][1] - 0.05
    pooled = images.mean((2, 3)), images.clamp(0, 6).mean((2, 3))
    assert found["plain"][1] == pytest.approx(affinity_score(*pooled, covariance="empirical").item(), abs=1e-5)
    assert found["paired"][1] == pytest.approx(paired_affinity_score(*pooled).item(), abs=1e-5)
    assert found["paired"][1] <= found["score"][1]  # the best pairing is no worse than the own one
    assert found["own"][0] == 1 and found["own"][1] > 0.9
    strangers = affinity_score(pooled[0], pooled[1].flip(1)).item()
    assert found["strangers"][1] == pytest.approx(strangers, abs=1e-5) and strangers < found["score"][1]
