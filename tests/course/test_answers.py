"""Every check of every chapter: what readers answered, rightly and wrongly, and what is no answer at all."""

import importlib
import inspect
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.fft
import scipy.stats
import torch
from scipy.optimize import linear_sum_assignment
from torch import nn

from affscore import affinity_score
from affscore_book.kit import checks
from affscore_book.kit.checks import case, exercise, report

BOOK = Path(__file__).resolve().parents[2] / "book" / "affscore_book"
CHAPTERS = sorted(path.parent.name for path in BOOK.glob("*/exercises.py"))
MODULES = {name: importlib.import_module(f"affscore_book.{name}.exercises") for name in CHAPTERS}
CHECKS = {
    f"{chapter}.{name}": check for chapter, module in MODULES.items() for name, check in vars(module).items()
    if name.startswith("check_")
}  # fmt: skip


def test_every_check_takes_its_answers_by_the_kit():
    for name, check in CHECKS.items():
        assert check.forms, name
        assert check.forms.keys() <= inspect.signature(check).parameters.keys()


@pytest.mark.parametrize("name", CHECKS)
def test_text_as_answer_gets_a_sentence_and_no_verdict(name, capsys):
    """A text in place of any answer gets a sentence and no verdict."""
    check = CHECKS[name]
    for answer in check.forms:
        given = dict.fromkeys(inspect.signature(check).parameters)
        given |= {other: _of_form(form) for other, form in check.forms.items()} | {answer: "a third"}
        checks.verdicts.clear()
        check(**given)
        said = capsys.readouterr().out
        assert said.startswith("Not yet: your answer is the text 'a third'; it should be ") and said.endswith(".\n")
        assert checks.verdicts == {}


def _of_form(form):
    """Something that has this form."""
    from affscore_study.redshift.draws import random_network

    for answer in ([1.0], [1.0, 2.0], print, {}, nn.ReLU(), random_network(seed=0)):
        try:
            form(answer)
        except ValueError:
            continue
        return answer
    raise AssertionError(form)


# ------------------------------------------------------------------------------ what readers answered

X = np.random.default_rng(0).normal(size=(256, 8))
MIX = X @ np.cov(X[:, ::-1] @ np.diag(np.arange(1, 9)) + X, rowvar=False)
BEFORE = torch.randn(400, 3, 2, 2, generator=torch.Generator().manual_seed(0))
AFTER = (0.6 * BEFORE).exp()  # the two scores differ by less than 0.006
TRUTH, TURNED = (
    affinity_score(one.mean((2, 3)), other.mean((2, 3))).item() for one, other in ((BEFORE, AFTER), (AFTER, BEFORE))
)


def stitched(pairing):
    def stitch(x, y):
        matrix = np.zeros((6, 6))
        for row, column in enumerate(pairing(x, y)):
            matrix[row, column] = x[:, column] @ y[:, row] / (x[:, column] @ x[:, column])
        return matrix

    return stitch


def correlations(x, y):
    return np.corrcoef(y.T, x.T)[:6, 6:]


def best(x, y):
    return linear_sum_assignment(correlations(x, y), maximize=True)[1]


def greedy(x, y):
    table, order = correlations(x, y), [0] * 6
    for _ in range(6):
        row, column = np.unravel_index(table.argmax(), table.shape)
        order[row] = column
        table[row], table[:, column] = -9, -9
    return order


def row_by_row(x, y):
    table, order = correlations(x, y), []
    for row in table:
        row[order] = -9
        order.append(int(row.argmax()))
    return order


def cosines(x, y):
    return linear_sum_assignment((y / np.linalg.norm(y, axis=0)).T @ (x / np.linalg.norm(x, axis=0)), maximize=True)[1]


def covariances(x, y):
    return linear_sum_assignment((y - y.mean(0)).T @ (x - x.mean(0)), maximize=True)[1]


def moving_roots(slopes, strength):
    """The prior of the chapter on linearised networks, with the slopes that are 1 left out."""
    return strength * torch.sqrt(torch.abs(1 - slopes[slopes != 1])).sum()


def tamed_roots(slopes, strength):
    """The same with a gradient at 1 that is a number."""
    return strength * ((1 - slopes).abs() + 1e-10).sqrt().sum()


def entropy(x, tiny=0.0):
    p = (x > 0).mean(0)
    with np.errstate(divide="ignore", invalid="ignore"):
        parts = [-np.nan_to_num(q * np.log2(q + tiny)) for q in (p, 1 - p)]
    return np.sum(parts, axis=0).mean()


N = 10_000
ANSWERS = {
    # the chapter, the exercise, the answer and what stands beside it, whether it is right
    "1.1 as text": ("first_signature.check_dead_centre", ("-2",), False),
    "1.1 as a fraction": ("first_signature.check_dead_centre", (Fraction(-2),), True),
    "1.2 mixed": ("first_signature.check_score_one", (X, MIX), True),
    "1.2 mixed, in lists": ("first_signature.check_score_one", (torch.tensor(X), MIX.tolist()), True),
    "1.2 shuffled rows": ("first_signature.check_score_one", (X, X[np.random.default_rng(0).permutation(256)]), False),
    "1.2 shuffled rows of a mixture": ("first_signature.check_score_one", (X, MIX[::-1].copy()), False),
    "2.1 as an array": ("theory.check_by_hand", (np.array([0.866]), *np.array([[-2, 0, 1], [2, 0, 1]])), True),
    "3.3 the affinity score": ("blind_spots.check_formula", (affinity_score,), False),
    "3.3 by channels": ("blind_spots.check_formula", (lambda x, y: 1 - torch.tensor(np.average(
        [1 - np.corrcoef(*pair)[0, 1] for pair in zip(x.T, y.T, strict=True)], weights=y.var(0))).sqrt(),), True),
    "3.4 as a list": ("blind_spots.check_dark", (["dead"] * 5,), False),
    "4.2 as a tensor": ("relu_1d.check_half", (torch.tensor([0.3034703884]),), True),
    "7.2 as floats": ("imagenet_signatures.check_lengths", (
        np.float64(3072.0), torch.tensor(577), SimpleNamespace(calls=[SimpleNamespace(shape=(197, 3072))]), 384, 16,
    ), True),
    "8.2 as a result": ("decade.check_trend", (
        scipy.stats.spearmanr([1, 2, 3], [2, 3, 1]), [1, 2, 3, 9], [2, 3, 1, 0], [1, 1, 1, 0]), True),
    "8.3 as a fraction": ("decade.check_split", (Fraction(1, 20), [3, 4, 5], [0, 1, 2]), True),
    "9.2": ("uses.check_block", (TRUTH, BEFORE, AFTER), True),
    "9.2 to two digits": ("uses.check_block", (round(TRUTH, 2), BEFORE, AFTER), True),
    "9.2 as a tensor": ("uses.check_block", (torch.tensor(TRUTH), BEFORE, AFTER), True),
    "9.2 swapped": ("uses.check_block", (TURNED, BEFORE, AFTER), False),
    "9.4 without a case for 0": ("uses.check_entropy", (lambda x: entropy(x, 1e-9),), True),
    "9.4 as a tensor": ("uses.check_entropy", (lambda x: torch.tensor(entropy(x), dtype=torch.float32),), True),
    "10.1 as arrays": ("transformers.check_samples_of_pools", (
        np.array([512, 1536.0]), torch.tensor([512, 32]), [512 * 32, 1536]), True),
    "12.1": ("stitching.check_build", (stitched(best),), True),
    "12.1 as a tensor": ("stitching.check_build", (lambda x, y: torch.tensor(stitched(best)(x, y)),), True),
    "12.1 greedy": ("stitching.check_build", (stitched(greedy),), False),
    "12.1 row by row": ("stitching.check_build", (stitched(row_by_row),), False),
    "12.1 cosines": ("stitching.check_build", (stitched(cosines),), False),
    "12.1 covariances": ("stitching.check_build", (stitched(covariances),), False),
    "12.3 as an array": ("stitching.check_unseen", (np.kron(np.eye(2), [[3, -2], [-2, 3]]),), True),
    "14.1": ("linearized.check_build", (moving_roots,), True),
    "14.1 as an entry": ("linearized.check_build", (lambda a, w: moving_roots(a, w)[None],), True),
    "14.1 tamed at 1": ("linearized.check_build", (tamed_roots,), True),
    "14.1 in a loop": ("linearized.check_build", (
        lambda a, w: w * sum(((1 - x).abs().sqrt() for x in a if x != 1), 0 * a.sum()),), True),
    "14.1 with a NaN": ("linearized.check_build", (lambda a, w: w * (1 - a).abs().sqrt().sum(),), False),
    "14.1 without the strength": ("linearized.check_build", (lambda a, w: moving_roots(a, 1),), False),
    "14.1 as a number": ("linearized.check_build", (lambda a, w: moving_roots(a, w).item(),), False),
    "14.3 as an array": ("linearized.check_strength", (np.array([0.77]),), True),
    "14.4 as a float": ("linearized.check_count", (25.0,), True),
    "14.4 rounded up": ("linearized.check_count", (np.ceil(24.6),), True),
    "14.4 as a tensor": ("linearized.check_count", (torch.tensor([25]),), True),
}  # fmt: skip


@pytest.mark.parametrize("answer", ANSWERS)
def test_right_answers_are_right_and_wrong_ones_are_not(answer, capsys):
    name, given, right = ANSWERS[answer]
    CHECKS[name](*given)
    assert capsys.readouterr().out.startswith("Right: " if right else "Not yet: ")


# ------------------------------------------------------------------------------------- the first case that fails


def _wrong(*_, **__):
    return 0.5


def _failing(*_, **__):
    raise ZeroDivisionError("mine")


FUNCTIONS = [name for name, check in CHECKS.items() if name.endswith((".check_build", "check_affine", "check_entropy",
                                                                       "check_hooks", "check_watch"))]  # fmt: skip


def _beside(name):
    """The arguments of a check that are no answers."""
    from affscore_book.transformers.gpt import ByteGPT

    if name != "transformers.check_build":
        return {}
    torch.manual_seed(0)
    return {"network": ByteGPT(width=16, blocks=2).eval(), "windows": torch.randint(0, 9, (64, 16))}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_in_the_readers_function_names_the_case(name):
    """An error in the reader's function is raised as it is, with a note that names the case."""
    given = dict.fromkeys(CHECKS[name].forms, _failing) | _beside(name)
    with pytest.raises(ZeroDivisionError, match="mine") as caught:
        CHECKS[name](**given)
    assert any(note.startswith("The check called your function with ") for note in caught.value.__notes__)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_function_returning_text_gets_one_sentence(name, capsys):
    """A function that returns a text gets one sentence and no error."""
    CHECKS[name](**dict.fromkeys(CHECKS[name].forms, lambda *_: "0.5") | _beside(name))
    said = capsys.readouterr().out
    assert said.startswith("Not yet: ") and said.count("\n") == 1


def test_failures_name_the_case_and_the_third_gives_the_hint(capsys):
    """Each failure names the case, and the third one gives the hint."""
    checks.hint_after(2)
    for _ in range(3):
        CHECKS["relu_1d.check_build"](_wrong)
    assert capsys.readouterr().out.startswith(
        "Not yet, with ReLU.\nNot yet, with ReLU.\nNot yet: the score of ReLU is "
    )


# ------------------------------------------------------------------------------------------------- the decorator


def test_calls_of_checks_are_recorded_after_a_reload(capsys):
    """A check records the arguments of its call, also after its module is reloaded."""
    module = importlib.reload(MODULES["relu_1d"])
    checks.asked.clear()
    module.check_half("0.3")
    (name, given) = checks.asked[-1]
    assert (name, given.arguments) == ("check_half", {"share": "0.3"})


def test_a_case_within_a_case_is_the_inner_one(capsys):
    @exercise("cases", answer=float)
    def check(answer):
        with case("outer"):
            with case("inner"):
                report("cases", False, "", "no")
            report("cases", False, "", "no")

    checks.hint_after(3)
    check(1.0)
    check(1.0)
    expected = "Not yet, with inner.\nNot yet, with outer.\nNot yet, with inner.\nNot yet: no\n"
    assert capsys.readouterr().out == expected
