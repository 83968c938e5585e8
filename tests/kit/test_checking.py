"""Refusals name the argument, its value and what it should have been."""

import pytest
import torch

from affscore_book.kit.checking import positive, square_matrix


def test_numbers_above_zero_pass_and_others_are_named():
    positive("std", 0.1)
    for value in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match=f"std is {value}; it should be a finite number greater than 0"):
            positive("std", value)


def test_square_matrices_pass_and_others_are_named():
    assert not square_matrix("a", torch.eye(2, requires_grad=True)).requires_grad
    for value, error, sentence in (
        (torch.ones(2, 3), ValueError, r"a has shape \(2, 3\); it should be \(n, n\) with n of at least 1"),
        (torch.ones(2), ValueError, r"a has shape \(2,\)"),
        (torch.ones(0, 0), ValueError, r"a has shape \(0, 0\)"),
        (torch.tensor([[torch.nan]]), ValueError, "a holds nan; all entries should be"),
        (torch.eye(2, dtype=torch.int64), TypeError, "a is of type torch.int64"),
        ([[1.0]], TypeError, "a is of type list; it should be a real floating-point"),
    ):
        with pytest.raises(error, match=sentence):
            square_matrix("a", value)
