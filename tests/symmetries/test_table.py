"""Which activation has which group, and how well a matrix passes through one."""

import pytest
import torch
from through_activations import gap, wide
from torch import nn

from affscore_book.activations.catalogue import CATALOGUE
from affscore_book.symmetries.table import intertwiner
from affscore_study.symmetries.lemmas import defect, passing


@pytest.mark.parametrize(
    ("module", "expected"),
    [
        (nn.ReLU(), "positive scalings times permutations"),
        (nn.LeakyReLU(0.0), "positive scalings times permutations"),
        (nn.LeakyReLU(0.2), "positive scalings times permutations"),
        (nn.LeakyReLU(1.0), "invertible matrices"),
        (nn.LeakyReLU(-1.0), "scalings times permutations"),
        (nn.PReLU(), "positive scalings times permutations"),
        (nn.Identity(), "invertible matrices"),
        (nn.Tanh(), "signed permutations"),
        (nn.GELU(), "permutations"),
        (nn.Hardtanh(-2.0, 2.0), "signed permutations"),
        (nn.Softplus(beta=3.0), "permutations"),
    ],
)
def test_modules_have_the_group_of_their_parameters(module, expected):
    with torch.no_grad():
        group = intertwiner(module)
        assert group.description == expected
        a = group.sample(3, 5)
        assert gap(module.double(), a, group.phi(a), wide(3)) < 1e-10


@pytest.mark.parametrize(
    ("activation", "error", "message"),
    [
        ("rleu", ValueError, "activation is 'rleu'"),
        (3, TypeError, "activation is 3"),
        (torch.sqrt, ValueError, "its group cannot be told from its values: the function is NaN"),
    ],
)
def test_what_has_no_group_is_named(activation, error, message):
    with pytest.raises(error, match=message):
        intertwiner(activation)


@pytest.mark.parametrize(
    "name", ["identity", "relu", "tanh", "gaussian", "cube", "gelu", "relu_squared", "heaviside", "abs", "sign"]
)
def test_group_passes_its_own_activation_only(name):
    """A group passes its own activation and no other, and a wrong phi is seen."""
    group = intertwiner(name)
    a = group.sample(4, 0)
    assert passing(name, group) == 10 and defect(name, a, group.phi(a)) < 1e-10
    if not torch.equal(group.phi(a), a):
        assert defect(name, a, a) > 0.1
    assert passing(lambda x: CATALOGUE[name](x) + 0.01 * x.clamp(0, 1), group) < 10 or name == "gelu"


def test_defects_of_matrices_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match="reach is"):
        defect("relu", torch.eye(2), torch.eye(2), reach=0.0)
    with pytest.raises(ValueError, match="b has shape"):
        defect("relu", torch.eye(2), torch.ones(2, 3))
