"""The score of NumPy arrays needs no torch, and is that of the same numbers as tensors."""

import itertools
import json
import subprocess
import sys

import numpy as np
import pytest
import torch
from clouds import cloud

import affscore
from affscore.affine import COVARIANCES, shrinkage
from affscore.arrays import constant_of, double, identity, is_tensor, namespace, needs_gradient, of_kind, to_numpy
from affscore.companions import linear_twin, measure
from affscore.coupling import partners

#: More samples than channels, fewer, and so few that the joint span is smaller than the space.
SHAPES = [(40, 6), (12, 1), (16, 20), (6, 30)]
both = pytest.mark.parametrize("covariance", COVARIANCES)
shapes = pytest.mark.parametrize(("n", "d"), SHAPES)


def pair(n, d):
    rng = np.random.default_rng([n, d])
    x = cloud(rng, n, d) + 1
    return x, np.tanh(2 * x) + 0.1 * cloud(rng, n, d)


def measured(x, y, covariance):
    """All that the library says of two clouds without a network, by name."""
    fitted = affscore.affine_map(x, y, covariance=covariance)
    return {
        "score": affscore.affinity_score(x, y, covariance=covariance),
        "paired": affscore.paired_affinity_score(x, y, covariance=covariance),
        "distance": affscore.wasserstein2(x, y),
        "shrinkage": shrinkage(x),
        "twin": linear_twin(x, y),
        "image": fitted(x),
        "matrix": fitted.matrix(),
        "product": fitted.matvec(x[0]),
        "offset": fitted.offset,
        "mean": fitted.mean_x,
    }


@both
@shapes
def test_arrays_and_tensors_of_the_same_numbers_agree(n, d, covariance):
    x, y = pair(n, d)
    arrays, tensors = measured(x, y, covariance), measured(torch.tensor(x), torch.tensor(y), covariance)
    for name, found in arrays.items():
        scale = abs(found).max() or 1.0
        np.testing.assert_allclose(found / scale, tensors[name].numpy() / scale, rtol=0, atol=1e-10, err_msg=name)
    for mine, theirs in zip(*(measure(*v, covariance=covariance).values() for v in ((x, y), map(torch.tensor, (x, y)))),
                            strict=True):  # fmt: skip
        assert mine == pytest.approx(
            theirs, rel=1e-8, abs=1e-10, nan_ok=True
        )  # held out, residuals are divided by little


@both
@shapes
def test_results_are_of_the_kind_of_the_samples(n, d, covariance):
    x, y = pair(n, d)
    for name, found in measured(x, y, covariance).items():
        assert type(found) is (np.ndarray if found.ndim else np.float64) and found.dtype == np.float64, name
    for name, found in measured(torch.tensor(x).float(), torch.tensor(y).float(), covariance).items():
        assert type(found) is torch.Tensor and found.dtype == torch.float64, name


@both
@shapes
def test_an_array_beside_a_tensor_counts_as_a_tensor(n, d, covariance):
    x, y = pair(n, d)
    expected = measured(torch.tensor(x), torch.tensor(y), covariance)
    for mixed in ((x, torch.tensor(y)), (torch.tensor(x), y), (np.flip(x[::-1].copy(), 0), torch.tensor(y))):
        for name, found in measured(*mixed, covariance).items():
            if name == "shrinkage":  # of x alone
                assert is_tensor(found) == is_tensor(mixed[0])
            else:
                torch.testing.assert_close(found, expected[name], rtol=1e-12, atol=1e-12)


def test_tensor_map_takes_lists_and_reversed_arrays():
    """A map fitted to tensors gives the same images for a list of numbers and for an array with negative strides."""
    x, y = pair(40, 2)
    fitted = affscore.affine_map(torch.tensor(x), torch.tensor(y))
    expected = fitted(torch.tensor(x))
    torch.testing.assert_close(fitted(x.tolist()), expected, rtol=0, atol=0)
    torch.testing.assert_close(fitted(x[::-1]), expected.flip(0), rtol=0, atol=1e-15)


def test_lists_are_arrays():
    for found in (affscore.affinity_score([0.0, 1.0, 4.0], [1, 0, 2]), affscore.wasserstein2([0, 1], [1, 3])):
        assert type(found) is np.float64


@shapes
def test_a_map_takes_points_of_either_kind(n, d):
    """A tensor gives a tensor, and so does a map that was fitted to tensors; gradients flow to the points."""
    x, y = pair(n, d)
    fitted, of_tensors = affscore.affine_map(x, y), affscore.affine_map(torch.tensor(x), torch.tensor(y))
    points = torch.tensor(x, requires_grad=True)
    images = [fitted(points), of_tensors(x), of_tensors(points)]
    for image in images:
        torch.testing.assert_close(image, torch.tensor(fitted(x)), rtol=1e-9, atol=1e-9)
    images[0].sum().backward()
    np.testing.assert_allclose(points.grad[0], fitted.matvec(np.ones(d)), rtol=1e-9, atol=1e-12)


@shapes
def test_partners_are_the_same_for_either_kind(n, d):
    x, y = pair(n, d)
    found = partners(x, y)
    assert type(found) is np.ndarray and found.tolist() == partners(torch.tensor(x), torch.tensor(y)).tolist()


@pytest.mark.parametrize("scale", list(itertools.product([1e-310, 1e-200, 1.0, 1e307], repeat=2)))
def test_arrays_warn_no_more_than_tensors(scale):
    """The smallest numbers there are have an infinite inverse; here every warning is an error."""
    x, y = (factor * part for factor, part in zip(scale, pair(20, 3), strict=True))
    found = affscore.affinity_score(x, y), affscore.affinity_score(torch.tensor(x), torch.tensor(y))
    assert found[0] == pytest.approx(found[1].item(), abs=1e-10)


def test_each_helper_keeps_the_kind_it_is_given():
    x, t = np.ones((2, 2), dtype=np.float32), torch.ones(2, 2, requires_grad=True)
    assert (namespace(x), namespace([1.0]), namespace(t)) == (np, np, torch)
    assert double(x).dtype == np.float64 and double(t).dtype == torch.float64 and double(t).requires_grad
    assert needs_gradient(x, t) and not needs_gradient(x, constant_of(t)) and constant_of(x) is x
    assert type(to_numpy(t)) is np.ndarray and to_numpy(x) is x
    assert of_kind(x.astype(int), t).dtype == t.dtype and of_kind(t, x).dtype == x.dtype
    assert type(identity(2, x)) is np.ndarray and identity(2, x).dtype == x.dtype
    assert is_tensor(identity(2, t)) and identity(2, t).dtype == t.dtype


WITHOUT = """
import json, sys
sys.modules["torch"] = None  # an import fails
import numpy as np, affscore
from affscore.affine import shrinkage
from affscore.companions import linear_twin, measure
found = []
for x, y, covariance in json.load(sys.stdin):
    x, y = np.array(x), np.array(y)
    fitted = affscore.affine_map(x, y, covariance=covariance)
    scores = [f(x, y, covariance=covariance) for f in (affscore.affinity_score, affscore.paired_affinity_score)]
    others = [affscore.wasserstein2(x, y), shrinkage(x), *measure(x, y, covariance=covariance).values()]
    found.append([*map(float, scores + others), *(v.tolist() for v in (linear_twin(x, y), fitted(x), fitted.offset))])
try:
    affscore.signature
except ImportError as error:
    assert "torch" in str(error), error
else:
    raise AssertionError("a signature without torch")
print(json.dumps(found))
"""


def test_without_torch_arrays_give_what_tensors_give():
    """And a signature is an error that names torch."""
    cases = [(*pair(n, d), covariance) for (n, d), covariance in itertools.product(SHAPES, COVARIANCES)]
    given = json.dumps([(x.tolist(), y.tolist(), covariance) for x, y, covariance in cases])
    done = subprocess.run([sys.executable, "-c", WITHOUT], input=given, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for (x, y, covariance), found in zip(cases, json.loads(done.stdout), strict=True):
        x, y = torch.tensor(x), torch.tensor(y)
        of_tensors = measured(x, y, covariance)
        names = ("score", "paired", "distance", "shrinkage", None, "twin", "image", "offset")
        expected = [of_tensors[name] for name in names if name]
        expected[4:4] = measure(x, y, covariance=covariance).values()
        for mine, theirs in zip(found, expected, strict=True):
            np.testing.assert_allclose(mine, np.asarray(theirs), rtol=1e-9, atol=1e-9)
