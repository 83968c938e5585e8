"""Small commands, and what an error on standard error looks like."""

NET = ["signature", "squeezenet1_1", "--weights", "random"]
NOISE = [*NET, "--dataset", "random", "--batch-size", "8"]


def one_sentence(text):
    """The only line on standard error."""
    lines = text.splitlines()
    assert len(lines) == 1, text
    assert lines[0].startswith("affscore") and "error: " in lines[0] and lines[0].endswith((".", "?"))
    assert "Traceback" not in text
    return lines[0]
