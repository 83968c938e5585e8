"""What a reader sees of an answer."""

import pytest

from affscore_book.kit.checks import hint_after, report


@pytest.mark.parametrize("allowed", [0, 2])
def test_hint_comes_after_the_allowed_failures(capsys, allowed):
    """The hint comes after the allowed number of failures, counted for each exercise."""
    hint_after(allowed)
    for exercise in ("one", "two"):
        for _ in range(allowed + 1):
            report(exercise, False, "well done.", "think again.")
        *failed, last = capsys.readouterr().out.splitlines()
        assert last == "Not yet: think again." and len(failed) == allowed
        soon = [line.partition("Not yet.")[2] for line in failed]
        assert soon == ["", " The next wrong answer brings a hint."][:allowed]
    report("one", True, "well done.", "think again.")
    assert capsys.readouterr().out == "Right: well done.\n"
    with pytest.raises(ValueError, match="failures is -1"):
        hint_after(-1)
