"""Sphinx extension: how long a chapter takes, counted while the book is built.

In a notebook the line on its run time points to the page. There it says how long reading, what is folded,
the exercises and a run take: 100 words a minute, a minute a figure or table outside solutions, the
minutes that the exercises state, and the seconds that ``.ci/execute.py`` measured last.
"""

import csv
import json
import re
from pathlib import Path

from plain_markdown import kind_and_label
from run_cells import CHAPTERS
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

WORDS_A_MINUTE, MINUTES_TO_LOOK = 100, 1
PLACE = re.compile(
    r"\*\*Run time:\*\* (?:in the table of the \[introduction\]|at the head of \[this page\])\([^)]*\)\."
)
PICTURES = {"image/png", "application/vnd.jupyter.widget-view+json"}


def words(text: str) -> int:
    """The number of words of a Markdown text. A formula counts as one word, and an address does not count."""
    text = re.sub(r"\$\$.*?\$\$|\$[^$]*\$", " formula ", text, flags=re.DOTALL)
    return len(re.findall(r"\w[\w'’-]*", re.sub(r"\]\([^)]*\)", " ", text)))


def to_look_at(output: dict) -> bool:
    """Whether an output is a picture or a table."""
    data = output.get("data", {})
    shown = "".join(data.get("text/html", ""))
    return bool(PICTURES & set(data)) or "<table" in shown or "affscore-drawing" in shown


def is_folded(cell: dict) -> bool:
    """Whether a Markdown cell is a box that is closed at first."""
    return kind_and_label(cell)[0] == "folded" or "folded" in cell["metadata"].get("tags", [])


def hidden(cell: dict) -> bool:
    """Whether a code cell is folded with its outputs."""
    return "hide-cell" in cell["metadata"].get("tags", [])


def minutes(cells: list[dict]) -> tuple[int, int, int]:
    """Minutes to read a notebook without its solutions, to read what is folded, and to solve its exercises."""
    shown = [cell for cell in cells if kind_and_label(cell)[0] != "solution"]
    texts, boxes = (
        ["".join(cell["source"]) for cell in shown if cell["cell_type"] == "markdown" and is_folded(cell) == folded]
        for folded in (False, True)
    )
    looks = [
        sum(to_look_at(output) for cell in shown if hidden(cell) == folded for output in cell.get("outputs", []))
        for folded in (False, True)
    ]
    exercises = sum(int(number) for text in texts for number in re.findall(r"\*.*?of 5, (\d+) minutes\.\*", text))
    reading, folded = (
        round(sum(map(words, part)) / WORDS_A_MINUTE + MINUTES_TO_LOOK * look)
        for part, look in zip((texts, boxes), looks, strict=True)
    )
    return reading, folded, exercises


COLAB = "To change the code and run it, open the page on Colab: the rocket at the top."


def seconds(folder: Path) -> dict[str, str]:
    """Maps a chapter's title to the seconds of its last run."""
    with (folder / "data" / "run_times.csv").open(newline="", encoding="utf-8") as file:
        return dict(list(csv.reader(file))[1:])


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    path = Path(app.env.doc2path(docname))
    if path.suffix != ".ipynb":
        return
    content = json.loads(source[0])
    first = content["cells"][0]
    text = "".join(first["source"])
    title = text.splitlines()[0].removeprefix("# ")
    # As the guide for teachers counts: from the file, since other extensions have changed what is in source by now.
    reading, folded, exercises = minutes(json.loads(path.read_text(encoding="utf-8"))["cells"])
    parts = [f"{folded} for what is folded"] * bool(folded) + [f"{exercises} for the exercises"] * bool(exercises)
    time = f"**Time:** about {reading} minutes to read" + "".join(f", {part}" for part in parts)
    run = seconds(path.parent).get(title)
    if run is None or not PLACE.search(text):
        raise ExtensionError(f"{docname}: its first cell, or run_times.csv, does not say how long a run takes.")
    here = "Most cells can be changed and run in this page." if path.stem in CHAPTERS else COLAB
    first["source"] = PLACE.sub(f"{time}; every cell runs in {run} seconds on two cores. {here}", text)
    source[0] = json.dumps(content)


def setup(app: Sphinx) -> dict:
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
