"""The catalogue against the formulas in multiple precision, and against torch."""

import math
import re

import mpmath as mp
import numpy as np
import pytest
import torch
from formulas import ORACLE

from affscore_book.activations.catalogue import CATALOGUE, lookup

NAMES = list(CATALOGUE)
POINTS = np.concatenate([np.linspace(-24, 24, 49), [-1e-3, 1e-3, -0.5, 0.5, -7.3, 7.3, -1.2, 0.7]])


def deviations(values, oracle, points, floor=lambda x: 0.0):
    """Errors of values relative to the oracle's, or to ``floor(x)`` if that is larger; none below 1e-290."""
    with mp.workdps(400):
        exact = [mp.mpf(oracle(mp.mpf(float(x)))) for x in points]
        return [
            float(abs(mp.mpf(value) - target) / max(abs(target), floor(x)))
            for value, target, x in zip(values.tolist(), exact, points, strict=True)
            if abs(target) > 1e-290 or floor(x)
        ]


def test_every_row_is_filled_in_and_unambiguous():
    assert len({row.title for row in CATALOGUE.values()}) == len(CATALOGUE) >= 40 and set(ORACLE) == set(CATALOGUE)
    for row in CATALOGUE.values():
        assert row.family and "x" in row.formula and re.search(r"\b(?:19|20)\d\d\b", row.reference)
        assert row.kinks == tuple(sorted(row.kinks))


@pytest.mark.parametrize("name", NAMES)
def test_values_keep_their_digits(name):
    x = torch.from_numpy(POINTS)
    values = CATALOGUE[name](x)
    assert values.dtype == torch.float64 and values.shape == x.shape
    # Relative to the value, but for functions that are differences by nature relative to the input.
    differences = ("tanhshrink", "sine", "cosine", "gcu", "snake", "ricker", "dsilu")
    floor = (lambda x: min(1.0, abs(x))) if name in differences else (lambda x: 0.0)
    assert max(deviations(values, ORACLE[name], POINTS, floor)) < 2e-12


@pytest.mark.parametrize("name", NAMES)
def test_tails_exist_where_needed_and_are_exact(name):
    """Tails are measured from a finite limit and exist where float64 cannot tell the function from it."""
    row = CATALOGUE[name]
    for tail, limit, side in zip(row.tails, row.limits, (-1, 1), strict=True):
        with mp.workdps(400):
            near, far = (ORACLE[name](mp.mpf(at * side)) for at in (18, 2000))
        needed = limit != 0 and math.isfinite(limit) and 0 < abs(near - far) < 1e-6
        assert (tail is not None) == needed or name == "cloglog"
        if tail is not None:
            assert float(far) == pytest.approx(limit, abs=1e-15)
            errors = deviations(tail(torch.from_numpy(POINTS)), lambda x, far=far: ORACLE[name](x) - far, POINTS)
            assert max(errors) < 2e-12


@pytest.mark.parametrize("name", [name for name, row in CATALOGUE.items() if row.torch])
def test_agrees_with_torch(name):
    row = CATALOGUE[name]
    x = torch.linspace(-12, 12, 481, dtype=torch.float64)
    if hasattr(torch.nn, row.torch):
        arguments = {"threshold": (1.0, 0.0)}.get(name, ())
        options = {"approximate": "tanh"} if name == "gelu_tanh" else {}
        theirs = getattr(torch.nn, row.torch)(*arguments, **options).double().eval()(x).detach()
    elif name == "heaviside":
        theirs = torch.heaviside(x, torch.zeros(1, dtype=torch.float64))
    else:
        theirs = getattr(torch, row.torch)(x)
    # torch's GELU, SELU and softplus round at 1e-15 or switch to an asymptote.
    torch.testing.assert_close(row(x), theirs, rtol=1e-9, atol=1e-8 if name == "softplus" else 1e-14)


@pytest.mark.parametrize("name", NAMES)
def test_limits(name):
    row = CATALOGUE[name]
    for limit, side in zip(row.limits, (-1, 1), strict=True):
        if math.isnan(limit):
            values = row(side * np.linspace(1e3, 1e3 + 20, 2001))
            assert values.max() - values.min() > 1.5
        elif math.isinf(limit):
            assert row(side * 1e5) * math.copysign(1, limit) > 10
        else:
            assert row(side * 1e5).item() == pytest.approx(limit, abs=2e-5)


@pytest.mark.parametrize("name", NAMES)
def test_monotone_flag(name):
    row = CATALOGUE[name]
    x = torch.cat([torch.linspace(-60, 60, 24001), torch.linspace(-3, 3, 24001)]).double().sort().values
    falls = row(x).diff() < -1e-13 * x.abs()[1:].clamp(min=1)
    assert row.monotone == (not bool(falls.any()))


def rough(function, at, width=1e-2):
    """How far the function is from a polynomial around a point: its sixth difference over its first scale."""
    x = at + width * torch.arange(-7, 8, dtype=torch.float64) / 2
    values = function(x)
    return float(values.diff(n=6).abs().max() / width)


@pytest.mark.parametrize("name", NAMES)
def test_kinks_are_where_they_are_said_to_be(name):
    row = CATALOGUE[name]
    elsewhere = [-6.7, -4.3, -2.6, -1.7, -0.71, -0.23, 0.31, 0.77, 1.9, 2.7, 4.4, 5.6]
    smooth = max(rough(row, at) for at in elsewhere)
    assert smooth < 2e-6
    for kink in row.kinks:
        assert rough(row, kink) > 1e-5
    for at in {-3.0, -2.0, -1.0, -0.5, 0.0, 0.5, 1.0, 2.0, 3.0, 6.0} - set(map(float, row.kinks)):
        assert rough(row, at) < 2e-6


def test_what_is_no_activation_is_named():
    with pytest.raises(ValueError, match="activation is 'swoosh'; it should be one of heaviside"):
        lookup("swoosh")
    with pytest.raises(TypeError, match="activation is 3; it should be a name"):
        lookup(3)
