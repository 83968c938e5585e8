"""conf.py tells plain Sphinx what Jupyter Book tells it, so that the way out is open on the day it is needed."""

import runpy
from pathlib import Path

from jupyter_book.config import get_final_config

ROOT = Path(__file__).resolve().parents[2]
# Jupyter Book itself, whose extension wants an old Sphinx; what it says of services that this book has not; a default.
ITS_OWN = {"jupyter_book"}
UNUSED = ("comments_config", "html_logo", "latex_engine", "use_jupyterbook_latex", "nb_output_stderr")


def told(value: object) -> object:
    """A setting without its empty parts, and lists of names without an order."""
    if isinstance(value, dict):
        parts = {key: told(part) for key, part in value.items()}
        return {key: part for key, part in parts.items() if part not in ("", {}, None)}
    return sorted(map(str, value)) if isinstance(value, list) else value


def test_plain_sphinx_is_told_the_same():
    plain = runpy.run_path(str(ROOT / "conf.py"))
    command_line = {"latex_individualpages": False}
    jupyter_book = get_final_config(user_yaml=ROOT / "_config.yml", cli_config=command_line, sourcedir=ROOT)[0]
    assert set(plain["extensions"]) | {"sphinxcontrib.bibtex"} == set(jupyter_book["extensions"]) - ITS_OWN

    left_out = (*UNUSED, "extensions", "html_theme_options")
    keys = [key for key in jupyter_book if key not in left_out and not key.startswith("nb_execution_")]
    ours, theirs = ({key: told(settings.get(key)) for key in keys} for settings in (plain, jupyter_book))
    assert ours == theirs and plain["nb_execution_mode"] == jupyter_book["nb_execution_mode"] == "off"

    ours, theirs = (told(settings["html_theme_options"]) for settings in (plain, jupyter_book))
    # The one address that Jupyter Book gives of a service for counting visitors, which has no name to count for.
    assert theirs.pop("analytics") == {"plausible_analytics_url": "https://plausible.io/js/script.js"}
    assert ours == {key: value for key, value in theirs.items() if key != "home_page_in_toc"}
