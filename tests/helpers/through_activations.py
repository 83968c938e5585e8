"""What the tests of groups share: inputs of every size, and how far a matrix is from passing through a function."""

import numpy as np
import torch


def wide(n, points=400, reach=1e3, seed=0):
    """Columns with coordinates of either sign from 1e-4 to ``reach``, uniform in the logarithm, (n, points)."""
    random = np.random.default_rng(seed)
    size = np.exp(random.uniform(np.log(1e-4), np.log(reach), (n, points)))
    return torch.from_numpy(size * random.choice([-1.0, 1.0], (n, points)))


def gap(function, a, b, x):
    """Largest relative difference of function(a x) and b function(x), entry by entry."""
    image, value = function(a @ x), function(x)
    difference = (image - b @ value).abs()
    scale = image.abs() + b.abs() @ value.abs()
    return float((difference / scale.clamp(min=1e-300)).max())
