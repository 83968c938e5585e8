"""Small commands, and what an error on standard error looks like."""

from affscore.cli.main import main

NET = ["signature", "squeezenet1_1", "--weights", "random"]
NOISE = [*NET, "--dataset", "random", "--batch-size", "8"]


def refused(arguments, capsys, command=main):
    """The sentence with which the command refuses these arguments."""
    try:
        status = command(arguments)
    except SystemExit as leaving:  # argparse leaves by itself
        status = leaving.code
    out, err = capsys.readouterr()
    assert status == 2 and out == ""
    return one_sentence(err)


def one_sentence(text):
    """The only line on standard error."""
    lines = text.splitlines()
    assert len(lines) == 1, text
    assert lines[0].startswith("affscore") and "error: " in lines[0] and lines[0].endswith((".", "?"))
    assert "Traceback" not in text
    return lines[0]
