"""Numbers in every form that they may have, and a sentence for what is none."""

from collections import namedtuple
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import mpmath
import numpy as np
import pytest
import scipy.optimize
import scipy.stats
import sympy
import torch

from affscore_book.kit.answers import Unfit, function, instance, mapping, numbers, one_number, whole, wholes
from affscore_book.kit.statistics import Interval

FORMS = {
    "float": float,
    "float64": np.float64,
    "float32": np.float32,
    "float16": np.float16,
    "array": np.array,
    "array of one": lambda x: np.array([x]),
    "array of one in one": lambda x: np.array([[x]], dtype=np.float32),
    "array of objects": lambda x: np.array([Fraction(x)], dtype=object),
    "list": lambda x: [x],
    "tuple": lambda x: (x,),
    "tensor": torch.tensor,
    "tensor of one": lambda x: torch.tensor([x], requires_grad=True),
    "half a tensor": lambda x: torch.tensor(x, dtype=torch.bfloat16),
    "list of tensors": lambda x: [torch.tensor(x)],
    "fraction": Fraction,
    "decimal": Decimal,
    "mpmath": mpmath.mpf,
    "sympy": sympy.Float,
    "rational of sympy": sympy.Rational,
    "list of fractions": lambda x: [Fraction(x)],
    "result": lambda x: SimpleNamespace(statistic=x, pvalue=0.1),
    "result of an optimisation": lambda x: SimpleNamespace(x=np.array([x]), fun=9.0),
    "interval": lambda x: Interval(x, x - 1, x + 1),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_number_is_taken_in_every_form(form):
    assert one_number(FORMS[form](0.25)) == 0.25 and whole(FORMS[form](2.0)) == 2


@pytest.mark.parametrize("form", FORMS)
def test_numbers_are_taken_in_every_form(form):
    assert numbers([FORMS[form](0.25)]).ravel().tolist() == [0.25]


def test_results_of_scipy_are_numbers():
    assert one_number(scipy.stats.spearmanr([1, 2, 3], [1, 2, 3])) == pytest.approx(1)
    assert one_number(scipy.optimize.root_scalar(lambda x: x - 2, bracket=(0, 5))) == pytest.approx(2)
    assert one_number(scipy.optimize.minimize_scalar(lambda x: (x - 2) ** 2)) == pytest.approx(2)


NOT_NUMBERS = [
    "0.25", b"0.25", "", None, ..., {}, {"a": 1}, print, object(), 1j, np.array(1j), torch.tensor(1j), np.array("1"),
    ["1"], [], [1, 2], np.zeros(2), torch.zeros(2), [[1], [1, 2]], np.array([None]), sympy.Symbol("x"), [None],
    namedtuple("Two", "a b")(1, 2),
]  # fmt: skip


@pytest.mark.parametrize("answer", NOT_NUMBERS, ids=[str(place) for place in range(len(NOT_NUMBERS))])
def test_what_is_no_number_gets_a_sentence(answer):
    with pytest.raises(Unfit, match=r"^your answer .*; it should be (a|one) number\.$"):
        one_number(answer)


def test_a_number_that_is_not_whole_is_none():
    for answer in (2.5, float("nan"), float("inf"), Fraction(1, 2)):
        with pytest.raises(Unfit, match=r"it should be a whole number\.$"):
            whole(answer)
    assert wholes(np.array([[1.0, 2.0]])) == (1, 2)


def test_answer_forms_tell_functions_and_dictionaries_apart():
    """Functions, objects and dictionaries are told apart from other answers, and errors describe the answer."""
    assert function(print) is print and instance(int)(3) == 3 and mapping(whole)({"a": 2.0}) == {"a": 2}
    for form, answer, says in (
        (function, "relu", "the text 'relu'; it should be a function"),
        (instance(int), "a", "it should be of type int"),
        (mapping(whole), [1], "of type list; it should be a dictionary"),
        (mapping(whole), {"a": "b"}, "for 'a' your answer is the text 'b'; it should be a number"),
    ):
        with pytest.raises(Unfit, match=says):
            form(answer)
