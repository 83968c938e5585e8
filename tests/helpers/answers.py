"""The two tests of a chapter's exercises: each case calls a check, which prints its verdict."""

from collections.abc import Callable, Mapping

import pytest

Cases = Mapping[str, Callable[[], None]]


def said(cases: Cases, verdict: str) -> Callable[..., None]:
    """A test that the check begins with this verdict in every case."""

    @pytest.mark.parametrize("case", cases)
    def test(case: str, capsys: pytest.CaptureFixture[str]) -> None:
        cases[case]()
        assert capsys.readouterr().out.startswith(verdict)

    return test


def accepted(cases: Cases) -> Callable[..., None]:
    """Right answers."""
    return said(cases, "Right: ")


def refused(cases: Cases) -> Callable[..., None]:
    """Wrong answers, which get a hint."""
    return said(cases, "Not yet: ")
