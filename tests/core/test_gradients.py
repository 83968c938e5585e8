"""The derivative of the affine image, by which a score is differentiated."""

import numpy as np
import pytest
import torch
from clouds import cloud

from affscore.affine import map_factor, normal
from affscore.gradients import affine_image

kinds = pytest.mark.parametrize(
    ("n", "d", "covariance"), [(9, 3, "ledoit_wolf"), (5, 8, "ledoit_wolf"), (9, 3, "empirical")]
)


def pair(n, d):
    rng = np.random.default_rng([n, d])
    parts = (torch.tensor(cloud(rng, n, d)) for _ in "xy")
    return [(part - part.mean(0)).requires_grad_() for part in parts]


def images(x, y, covariance):
    """The images of x under the best map to y, differentiable, and the factor of the map, a constant."""
    z, sigma = map_factor(*(normal(part.detach(), x.shape[1], covariance) for part in (x, y)))
    return affine_image(*(normal(part, x.shape[1], covariance) for part in (x, y)), z, sigma), z


@kinds
def test_the_images_are_those_of_the_map(n, d, covariance):
    x, y = pair(n, d)
    found, z = images(x, y, covariance)
    torch.testing.assert_close(found, x @ z @ z.T)


@kinds
def test_their_derivative_equals_finite_differences(n, d, covariance):
    assert torch.autograd.gradcheck(lambda x, y: images(x, y, covariance)[0], pair(n, d), atol=1e-6, rtol=1e-5)


def test_gradient_holds_for_outputs_of_higher_rank():
    """The gradient is right where the outputs vary in more directions than the inputs."""
    x, y = pair(9, 3)
    flat = (x * torch.tensor([1.0, 1.0, 0.0])).detach()
    assert torch.autograd.gradcheck(lambda y: images(flat, y, "empirical")[0], [y], atol=1e-6, rtol=1e-5)
