"""The minutes at the head of a chapter."""

import csv
import json
import re

import chapter_minutes
from grids import each
from test_notebooks import CHAPTERS, EXERCISE, NOTEBOOKS, ROOT, SOLUTION, markdown, output, planted


@each(
    ("text", "count"),
    [
        ("Two words.", 2),
        ("A formula $a + b$ here", 4),
        ("$$\na\n+ b\n$$", 1),
        ("[one](https://a.b/c-d)", 1),
        ("it's", 1),
    ],
)
def test_formulas_count_once_and_addresses_never(text, count):
    assert chapter_minutes.words(text) == count


def test_solutions_are_not_read_and_exercises_count_what_they_state():
    long = "word " * 1500
    base = planted()["cells"]  # one figure
    assert chapter_minutes.minutes(base) == (1, 0, 0)
    assert chapter_minutes.minutes([*base, markdown(long), EXERCISE])[0] == 16
    with_solution = [*base, EXERCISE, SOLUTION, markdown(long, "solution:half"), EXERCISE | {"id": "twice"}]
    assert chapter_minutes.minutes(with_solution) == (1, 0, 10)


def test_what_is_folded_is_counted_by_itself():
    long = "word " * 700
    cells = [*planted()["cells"], markdown(long, "folded"), markdown(long, "proof"), markdown(long, "proof", "folded")]
    assert chapter_minutes.minutes(cells) == (8, 14, 0)
    # A table takes as long as a figure, and in a folded cell none.
    table = output({"text/html": ["<table>", "</table>"]})
    assert chapter_minutes.minutes(planted(outputs=[table, table])["cells"])[0] == 2
    assert chapter_minutes.minutes(planted(outputs=[output({"text/html": "<p>"})])["cells"])[0] == 0
    folded = planted(outputs=[table], metadata={"tags": ["hide-cell"]})
    assert chapter_minutes.minutes(folded["cells"])[0] == 0


# The full run is a tool and has no exercises.
@each("page", CHAPTERS)
def test_the_page_says_what_the_chapter_takes(site, page):
    shown = re.sub(r"<[^>]+>", "", (site / f"{page}.html").read_text(encoding="utf-8"))
    parts = r"read,(?: \d+ for what is folded,)? (\d+) for the exercises; every cell runs in (\d+) s"
    found = re.search(r"Time: about (\d+) minutes to " + parts, shown)
    assert found, "the exercises, the reading or the run have no minutes"
    reading, exercises, _ = map(int, found.groups())
    assert reading <= 60 and exercises > 0
    cells = json.loads((ROOT / f"{page}.ipynb").read_text(encoding="utf-8"))["cells"]
    assert (reading, exercises) == chapter_minutes.minutes(cells)[::2]  # as in the guide for teachers


def test_every_chapter_was_timed():
    with (ROOT / "book" / "data" / "run_times.csv").open(newline="", encoding="utf-8") as file:
        assert len(list(csv.reader(file))) == 1 + len(NOTEBOOKS)
