"""The affinity score of an activation on samples: one draw of inputs, and pooled feature maps.

Source: Bouniot et al., "From Alexnet to Transformers", CVPR 2025, section 3.2, Figures 8 and 9.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from affscore.score import affinity_score
from affscore_book.activations.catalogue import AnyActivation, lookup
from affscore_book.kit.checking import positive

__all__ = ["FIGURE_8", "pooled_score", "sample_score"]

#: The nine activations of the paper's Figure 8, in its order.
FIGURE_8 = ("sigmoid", "relu", "gelu", "relu6", "leaky_relu", "tanh", "hardtanh", "silu", "hardswish")


def sample_score(
    activation: AnyActivation, mean: float, std: float, n: int, d: int, seed: int = 0, covariance: str = "ledoit_wolf"
) -> float:
    """The score of a sample of n points in d independent coordinates, each N(mean, std^2): one cell of Figure 8.

    The draw depends on ``seed``, ``mean``, ``std``, n and d only, so that all activations have the same inputs. The
    score is NaN if the output is constant. Raises ValueError for wrong sizes or an unknown name.

    >>> round(sample_score("relu", 0.0, 1.0, n=200, d=20), 2)
    0.62
    """
    x = _normal(mean, std, (n, d), seed)
    return affinity_score(x, lookup(activation)(x), covariance=covariance).item()


def pooled_score(
    activation: AnyActivation, *, channels: int, positions: int, pool: int, n: int, common: float = 0.0
) -> float:
    """The score of feature maps after averaging input and output over groups of ``pool`` positions (Figure 9, top).

    A feature map has ``channels`` x ``positions`` standard normal inputs. The channels are independent; the positions
    of a channel have the share ``common`` of their variance in common. Each row of the sample is one map, with
    ``channels * positions / pool`` entries. ``pool = 1`` is the flattened map, and ``pool = positions`` gives one
    number for each channel. Raises ValueError if ``pool`` does not divide ``positions``, ``common`` is not between 0
    and 1, or a size or name is wrong.

    >>> round(pooled_score("relu", channels=32, positions=4, pool=4, n=100), 1)
    0.6
    """
    if pool < 1 or positions % pool:
        raise ValueError(f"pool is {pool}; it should divide positions = {positions}.")
    if not 0 <= common <= 1:
        raise ValueError(f"common is {common}; it should be between 0 and 1.")
    x = (1 - common) ** 0.5 * _normal(0.0, 1.0, (n, channels, positions), seed=0)
    x = x + common**0.5 * _normal(0.0, 1.0, (n, channels, 1), seed=1)
    x = x.reshape(n, -1, pool)
    y = lookup(activation)(x)
    return affinity_score(x.mean(dim=2), y.mean(dim=2)).item()


def _normal(mean: float, std: float, shape: tuple[int, ...], seed: int) -> Tensor:
    positive("std", std)
    # The bits of mean and std are part of the seed, so that no two cells of a sweep have the same noise.
    bits = np.array([mean, std], dtype=np.float64).view(np.uint32).tolist()
    noise = np.random.default_rng([seed, *bits]).standard_normal(shape)
    return mean + std * torch.from_numpy(noise)
