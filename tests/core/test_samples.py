"""Samples are checked, centred and scaled without losing a bit, and on one thread."""

import numpy as np
import pytest
import torch

from affscore import affinity_score
from affscore.arrays import on_one_thread
from affscore.samples import centre, check_samples, exponent


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("scale", [1e-200, 1.0, 3e150])
def test_centred_samples_give_the_samples_back(seed, offset, scale):
    x = torch.from_numpy(scale * (np.random.default_rng(seed).normal(size=(40, 3)) + offset))
    centred, mean, power = centre(x)
    assert 0.5 <= centred.abs().max() <= 1
    assert centred.mean(dim=0).abs().max() < 1e-15
    torch.testing.assert_close(torch.ldexp(centred, power) + mean, x, rtol=0, atol=1e-15 * x.abs().max().item())


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.int64])
def test_a_channel_that_varies_by_rounding_alone_is_constant(dtype):
    x = torch.full((10, 2), 3.0).to(dtype)
    x[:5, 1] += 1
    if dtype.is_floating_point:
        x[0, 0] = x[0, 0] * (1 + torch.finfo(dtype).eps)
    centred = centre(x)[0]
    assert not centred[:, 0].any() and centred[:, 1].all()


def test_given_limit_replaces_that_of_the_dtype():
    """A limit given for each channel replaces the limit of the dtype."""
    x = torch.tensor([[1.0, 1.0], [-1.0, -1.0]])
    centred = centre(x, torch.tensor([0.2, 0.1]))[0]
    assert not centred[:, 0].any() and centred[:, 1].all()
    assert not centre(3 + 2**-22 * x)[0].any() and centre((3 + 2**-22 * x).double())[0].all()


def test_the_power_of_two_is_just_above():
    for value in (1.0, 0.75, 1e-300, 5e300):
        power = exponent(torch.tensor([value, value / 7], dtype=torch.float64))
        assert 0.5 <= value * 2.0 ** -float(power) <= 1
    assert exponent(torch.zeros(3)) == 0
    for value in (5e-324, 1.7e308):  # where the power or its inverse would be none
        assert centre(torch.tensor([[value], [0.0]], dtype=torch.float64))[0].isfinite().all()


def test_threads_are_one_inside_and_as_before_outside():
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(3)
        assert on_one_thread(torch.get_num_threads)() == 1
        with pytest.raises(ZeroDivisionError):
            on_one_thread(lambda: 1 / 0)()
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize(
    "dtype", ["float16", "int8", "uint8", "int16", "uint16", "uint32", "uint64", "int64", ">f8", ">i2"]
)
def test_numbers_of_every_kind_are_samples(dtype):
    values = np.random.default_rng(0).integers(0, 11, size=(30, 2))
    exact = affinity_score(values.astype(float), values.astype(float) ** 2)
    x, y = values.astype(dtype), (values.astype(dtype) * (1.0)) ** 2
    found = [affinity_score(x, y)]
    if not dtype.startswith(">"):  # not the order of bytes of torch
        found.append(affinity_score(torch.from_numpy(x), torch.from_numpy(y)))
    x, y = (torch.from_numpy(v.astype(float)).bfloat16() for v in (x, y))
    for score in (*found, affinity_score(x, y)):
        assert score.item() == pytest.approx(exact, abs=1e-12)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (torch.ones(3, 2).to_sparse(), "sparse"),
        (torch.nested.nested_tensor([torch.ones(2), torch.ones(3)], layout=torch.jagged), "nested"),
        (torch.ones(3, 2, device="meta"), "meta"),
        (torch.ones(3, 2).to(torch.float8_e4m3fn), "float8"),
        (torch.ones(3, 2, dtype=torch.complex64), "complex64"),
        ([[1.0, 2.0], [3.0]], "real numbers"),
        ([torch.ones(2, requires_grad=True)] * 3, "real numbers"),
        (["a", "b"], "real numbers"),
    ],
)
def test_what_holds_no_real_numbers_is_named(value, words):
    with pytest.raises(TypeError, match=f"^x .*{words}"):
        check_samples(value, "x")


def test_masked_entries_are_not_taken_for_values():
    x = np.ma.masked_equal(np.arange(8.0).reshape(4, 2), 3.0)
    with pytest.raises(ValueError, match="y is a masked array with masked entries"):
        affinity_score(np.ones((4, 2)), x)
    whole = np.ma.masked_array(np.arange(8.0).reshape(4, 2))
    assert check_samples(whole, "x").tolist() == whole.tolist()
