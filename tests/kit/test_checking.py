"""Refusals name the argument, its value and what it should have been."""

import numpy as np
import pytest
import torch
from grids import each

from affscore_book.kit.checking import between, one_of, positive, square_matrix, whole


@each("call", [
    lambda: one_of("kind", "a", "ab"), lambda: whole("n", np.int64(3), 3), lambda: between("share", 0.5, 0, 1),
    lambda: positive("std", 0.1), lambda: square_matrix("a", torch.eye(2, requires_grad=True)),
])  # fmt: skip
def test_what_makes_sense_passes(call):
    found = call()
    assert found is None or not found.requires_grad


@each(
    ("call", "error", "sentence"),
    [
        (lambda: one_of("kind", "c", iter(("a", "b"))), ValueError, "kind is 'c'; it should be one of 'a', 'b'"),
        (lambda: whole("n", 2, 3), ValueError, "n is 2; it should be at least 3"),
        (lambda: whole("n", 2.5, 0), ValueError, "n is 2.5; it should be a whole number"),
        (lambda: whole("n", True, 0), ValueError, "n is True; it should be a whole number"),
        (lambda: between("share", 1.0, 0, 1), ValueError, "share is 1.0; it should be between 0 and 1"),
        (lambda: between("share", float("nan"), 0, 1), ValueError, "share is nan"),
        (lambda: positive("std", 0.0), ValueError, "std is 0.0; it should be a finite number greater than 0"),
        (lambda: positive("std", float("inf")), ValueError, "std is inf"),
        (lambda: positive("std", float("nan")), ValueError, "std is nan"),
        (lambda: square_matrix("a", torch.ones(2, 3)), ValueError, r"a has shape \(2, 3\); it should be \(n, n\)"),
        (lambda: square_matrix("a", torch.ones(2)), ValueError, r"a has shape \(2,\)"),
        (lambda: square_matrix("a", torch.ones(0, 0)), ValueError, "with n of at least 1"),
        (lambda: square_matrix("a", torch.tensor([[torch.nan]])), ValueError, "a holds nan; all entries should be"),
        (lambda: square_matrix("a", torch.eye(2, dtype=torch.int64)), TypeError, "a is of type torch.int64"),
        (lambda: square_matrix("a", [[1.0]]), TypeError, "a is of type list; it should be a real floating-point"),
    ],
)
def test_what_does_not_is_named(call, error, sentence):
    with pytest.raises(error, match=sentence):
        call()
