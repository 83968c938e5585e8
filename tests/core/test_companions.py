"""Companion measures against closed forms, invariances, and scikit-learn, SciPy and NumPy computing the same."""

import math

import numpy as np
import pytest
import scipy.stats
import torch
from sklearn.linear_model import LinearRegression
from sklearn.metrics import r2_score
from sklearn.model_selection import LeaveOneOut, cross_val_predict

from affscore import affinity_score
from affscore.companions import MEASURES, UNPOOLED, linear_twin, measure
from affscore.pooling import sparsity

POOLED = [name for name in MEASURES if name not in UNPOOLED]
SHAPES = [(40, 3), (40, 30), (40, 38), (40, 39), (40, 40), (40, 90), (5, 200), (2, 3)]


def samples(n, d, seed=0):
    """Correlated inputs with an offset, and their ReLU-like outputs; both (n, d)."""
    generator = np.random.default_rng(seed)
    x = generator.normal(size=(n, d)) @ generator.normal(size=(d, d)) / np.sqrt(d) + generator.normal(size=d)
    return x, np.maximum(x, 0.1 * x) + 0.3 * generator.normal(size=(n, d))


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_cka_is_hsic_with_the_centring_matrix(n, d):
    """Kornblith et al. 2019, equations 3 to 5, with H written out."""
    x, y = samples(n, d)
    h = np.eye(n) - 1 / n
    k, g = h @ x @ x.T @ h, h @ y @ y.T @ h
    expected = np.trace(k @ g) / np.sqrt(np.trace(k @ k) * np.trace(g @ g))
    assert measure(x, y)["cka"] == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("n", "d"), [(30, 2), (30, 50), (7, 400)])
def test_entropy_is_that_of_numpys_histogram(n, d, seed):
    def expected(value):
        return np.mean([scipy.stats.entropy(np.histogram(row, bins=d)[0]) + math.log(d) for row in value])

    x, y = samples(n, d, seed)
    found = measure(x, np.maximum(y, 0))
    assert found["entropy_before"] == pytest.approx(expected(x), abs=1e-12)
    assert found["entropy_after"] == pytest.approx(expected(np.maximum(y, 0)), abs=1e-12)
    assert found["entropy_change"] == found["entropy_after"] - found["entropy_before"]


def test_entropies_in_closed_form():
    """Evenly spaced values fill one bin each; values at both ends fill two bins; equal values fill one."""
    d = 8
    spaced = np.tile(np.arange(d) * 0.7 - 3, (4, 1))
    ends = np.tile(np.arange(d) % 2 * 2.0 + 1, (4, 1))
    equal = np.tile(np.arange(4.0)[:, None], (1, d))
    for values, bins in ((spaced, d), (ends, 2), (equal, 1)):
        assert measure(spaced, values)["entropy_after"] == pytest.approx(math.log(bins) + math.log(d))


def test_norm_and_its_growth_with_the_batch():
    x, y = samples(20, 6)
    one, four = measure(x, y), measure(np.tile(x, (4, 1)), np.tile(y, (4, 1)))
    norm = np.linalg.norm(x - y)
    assert [one["norm"], four["norm"]] == pytest.approx([norm, 2 * norm]) and measure(x, x)["norm"] == 0
    assert [each["norm_per_sample"] for each in (one, four)] == pytest.approx([norm / math.sqrt(20)] * 2)


@pytest.mark.parametrize("factor", [1e-300, 1e300])
def test_measures_follow_the_scale_without_overflow(factor):
    x, y = samples(20, 6)
    small, large = measure(x, y), measure(factor * x, factor * y)
    assert large["norm"] / factor == pytest.approx(small["norm"])
    for name in ("cka", "r2", "r2_held_out", "entropy_before", "entropy_after", "twin"):
        assert large[name] == pytest.approx(small[name], abs=1e-9), name


def leave_one_out(x, y):
    """One regression for each sample left out, each fitted by scikit-learn."""
    return r2_score(y, cross_val_predict(LinearRegression(), x, y, cv=LeaveOneOut()))


@pytest.mark.parametrize(("n", "d"), SHAPES)
def test_r2_is_that_of_scikit_learn(n, d):
    x, y = samples(n, d)
    found = measure(x, y)
    assert found["r2"] == pytest.approx(LinearRegression().fit(x, y).score(x, y), abs=1e-9)
    assert found["r2_held_out"] == pytest.approx(leave_one_out(x, y), rel=1e-6)


def write(place, value):
    """What replaces a part of an array of inputs."""
    return lambda x: x.__setitem__(place, value(x) if callable(value) else value)


DEFICIENT = {
    "copied channels": write((slice(None), slice(5, None)), lambda x: x[:, :5]),
    "combination": write((slice(None), 9), lambda x: x[:, 0] - 2 * x[:, 1]),
    "scales": lambda x: x.__imul__(10.0 ** -np.arange(10)),
    "one sample decides a channel": write((slice(None), 3), np.arange(40) == 7),
    "constant input": write(slice(None), 2),
}


@pytest.mark.parametrize("kind", DEFICIENT)
def test_r2_where_the_channels_do_not_determine_the_regression(kind):
    x, y = samples(40, 10)
    DEFICIENT[kind](x)
    found, tolerance = measure(x, y), 1e-2 if kind == "one sample decides a channel" else 1e-6
    if kind == "scales":  # scikit-learn leaves out what is below 1e-6
        x, y = samples(40, 10)
    assert found["r2"] == pytest.approx(LinearRegression().fit(x, y).score(x, y), abs=1e-6)
    assert found["r2_held_out"] == pytest.approx(leave_one_out(x, y), rel=tolerance)


def test_constant_outputs_are_left_out_of_r2():
    x, y = samples(40, 6)
    y[:, 2:] = 5
    assert measure(x, y)["r2"] == pytest.approx(measure(x, np.tile(y[:, :2], 3))["r2"], abs=1e-12)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 200_001), (4, 33, 40, 41)])
def test_sparsity_counts_every_entry_in_any_layout(shape, dtype):
    """More entries than fit one piece, and both edges of the interval."""
    value = (torch.randn(shape, generator=torch.Generator().manual_seed(0)) * 0.003).to(dtype)
    edge = torch.tensor(0.001, dtype=dtype).item()
    value[0] = 0.001
    value.view(-1)[1] = -0.001
    for layout in (value, value.transpose(0, -1), value[..., ::2], value[:1].expand(*shape), torch.relu(value)):
        expected = np.mean(np.abs(layout.double().numpy()) <= edge)
        assert sparsity(layout).item() == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("shape", [(60, 5), (20, 40)])
def test_twin_is_affine_with_the_moments_of_the_outputs(shape, seed):
    """Each channel of the linear twin is an increasing affine map with the outputs' mean and deviation."""
    x = samples(*shape, seed)[0]
    y = np.maximum(x, 0)
    y[:, 0] = 3  # a dead channel
    twin = linear_twin(x, y)
    np.testing.assert_allclose(twin.mean(axis=0), y.mean(axis=0))
    np.testing.assert_allclose(twin.std(axis=0), y.std(axis=0), atol=1e-12)
    slopes = (twin[1:] - twin[0]) / (x[1:] - x[0])
    np.testing.assert_allclose(slopes, np.broadcast_to(slopes[0], slopes.shape), atol=1e-9)
    assert (slopes >= 0).all() and (slopes[:, 0] == 0).all()
    assert measure(x, y, ["twin"], covariance="empirical")["twin"] == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_linear_layer_is_its_own_twin(seed):
    """A linear layer is its own twin, and with shrinkage both have the same score below 1."""
    x = samples(40, 80, seed)[0]
    y = x * np.linspace(0.1, 2, 80) - 1
    np.testing.assert_allclose(linear_twin(x, y), y)
    score = affinity_score(x, y).item()
    assert measure(x, y, ["twin"])["twin"] == pytest.approx(score, abs=1e-9) and score < 0.95
    bent = np.maximum(y, 0)
    assert measure(x, bent, ["twin"])["twin"] > affinity_score(x, bent).item() + 0.02


@pytest.mark.parametrize(("value", "dtype"), [(0.0, torch.float64), (0.1, torch.float32), (-7e6, torch.float32)])
def test_undefined_measures_are_nan(value, dtype):
    x = torch.randn(30, 5, dtype=dtype, generator=torch.Generator().manual_seed(0))
    constant = torch.full_like(x, value)
    dead, blind = measure(x, constant), measure(constant, x)
    assert {name for name in POOLED if math.isnan(dead[name])} == {"cka", "r2", "r2_held_out", "twin"}
    assert {name for name in POOLED if math.isnan(blind[name])} == {"cka", "twin"}
    # The mean alone predicts nothing; a mean without the sample itself does worse.
    assert blind["r2"] == pytest.approx(0, abs=1e-12)
    assert blind["r2_held_out"] == pytest.approx(1 - (30 / 29) ** 2)


def test_one_channel_has_no_histogram():
    x = np.linspace(-1, 1, 20)
    found = measure(x, x**3)
    assert {name for name in POOLED if math.isnan(found[name])} == {
        "entropy_before", "entropy_after", "entropy_change",
    }  # fmt: skip
    assert found["r2"] == pytest.approx(np.corrcoef(x, x**3)[0, 1] ** 2)
    assert found["cka"] == pytest.approx(found["r2"])


def test_order_and_choice_of_names_change_no_measure():
    """The measures come in the order of the table, and each one alone has the value that it has among all."""
    x, y = samples(20, 6)
    everything = measure(x, y)
    assert list(everything) == POOLED == list(measure(x, y, POOLED[::-1]))
    for name in POOLED:
        assert measure(x, y, [name]) == {name: everything[name]}
    assert measure(x, y, []) == measure(x, y, UNPOOLED) == {}


def test_bad_samples_are_named():
    with pytest.raises(ValueError, match=r"^before has shape .* they should be the same"):
        measure(np.zeros((3, 2)), np.zeros((2, 2)))
    for function in (measure, linear_twin):
        for pair in ((np.ones((1, 2)), np.ones((3, 2))), (np.ones((3, 2)), np.ones((1, 2)))):
            with pytest.raises(ValueError, match=f"^{'before' if len(pair[0]) == 1 else 'after'} has n = 1 samples"):
                function(*pair)
