"""What a reader sees of an answer."""

import pytest

from affscore_book.kit.checks import report


@pytest.mark.parametrize(("right", "says"), [(True, "Right: well done.\n"), (False, "Not yet: think again.\n")])
def test_the_verdict_comes_with_its_reason(capsys, right, says):
    report(right, "well done.", "think again.")
    assert capsys.readouterr().out == says
