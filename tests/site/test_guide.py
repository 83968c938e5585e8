"""The teacher's guide: minutes, exercises and the map come from the notebooks, whatever is in them."""

import re

import guide
import pytest
from test_notebooks import CHAPTERS as PAGES
from test_notebooks import NOTEBOOKS, ROOT, markdown

CHAPTERS = guide.read_chapters(ROOT / "book", [page.removeprefix("book/") for page in NOTEBOOKS])


def exercise(label: str, importance: int, minutes: int) -> dict:
    text = f"### Exercise: Title of {label}\n\n*Easy, importance {importance} of 5, {minutes} minutes.* Do it."
    return markdown(text, f"exercise:{label}")


def chapter(*cells: dict, prerequisites: str = "none.") -> guide.Chapter:
    head = f"# One: two\n\n**Prerequisites:** {prerequisites}\n\n**Run time:** soon."
    return guide.Chapter("one", [markdown(head), *cells, markdown("The code of this chapter.")])


def test_sections_share_out_the_cells():
    one = chapter(markdown("## First\na\n## Second\nb"), exercise("half", 3, 5))
    assert list(one.sections) == ["", "First", "Second"]
    assert ["".join(cell["source"]) for cell in one.sections["First"]] == ["a\n"]
    assert [cell["metadata"].get("tags") for cell in one.sections["Second"]] == [None, ["exercise:half"], None]


def test_core_exercises_are_the_most_important():
    """The core exercises are the most important ones, and those with numbers of their own are marked."""
    own = markdown("seed = variant('seed', 0, [1])")
    one = chapter(exercise("a", 3, 5), exercise("b", 4, 6), own, exercise("c", 4, 7))
    assert [each.label for each in one.core()] == ["b", "c"] and chapter().core() == []
    assert [guide.OWN_NUMBERS in str(each) for each in one.exercises.values()] == [False, True, False]


@pytest.mark.parametrize(
    ("line", "needed"),
    [
        ("[One](https://x/book/one.html), in particular groups.", {"one": True}),
        ("[One](https://x/book/one.html). [Two](https://x/book/two.html) helps.", {"one": True, "two": False}),
        ("algebra; for the last section, [one](https://x/book/one.html).", {"one": False}),
        ("the theorem of [one](https://x/book/one.html), which is repeated below.", {"one": False}),
        ("algebra.", {}),
    ],
)
def test_the_line_on_prerequisites_is_read(line, needed):
    assert chapter(prerequisites=line).prerequisites() == needed


def test_map_is_reduced_and_its_lines_pass_between_chapters():
    """The map leaves out what a longer way implies, and its lines pass between the chapters."""
    assert guide.reduced({"a": {}, "b": {"a": True}, "c": {"a": True, "b": False}})["c"] == {"b": False}
    column, ways = guide.ways({"a": {}, "b": {}, "c": {"b": True}, "d": {"a": True, "c": True}})
    assert [column[name] for name in "abcd"] == [0, 0, 1, 2]
    assert [len(ways[edge]) for edge in (("b", "c"), ("a", "d"))] == [2, 3]
    at = guide.places(column, ways)
    assert len(set(at.values())) == len(at) == 5


def test_the_minutes_of_a_syllabus_add_up():
    book = {"one": chapter(markdown("## Long\n" + "word " * 700), markdown("## Short\n" + "word " * 200),
                           exercise("half", 3, 5))}  # fmt: skip
    sessions = [{"title": "A", "read": {"one": ["Long"]}, "do": ["half"]}, {"title": "B", "read": {"one": ["Short"]}}]
    rows = [re.findall(r"\d+", row.split("|", 3)[3]) for row in guide.syllabus_lines(sessions, book)[2:]]
    assert [(row[0], row[-1]) for row in rows] == [("7", "5"), ("2", "0"), ("9", "5")]
    for wrong in ({"read": {"two": "all"}}, {"read": {"one": ["Gone"]}}, {"read": {"one": "all"}, "do": ["gone"]}):
        with pytest.raises(KeyError):
            guide.syllabus_lines([{"title": "A"} | wrong], {"one": chapter()})


def test_teaching_page_has_every_chapter_and_exercise(site):
    """The page for teachers has every chapter in its map and every exercise in its table.

    So has the page on a few networks, which has exercises and no number.
    """
    page = (site / "book" / "teaching.html").read_text(encoding="utf-8")
    drawn, tables = re.search(r"<svg .*?</svg>", page, re.DOTALL)[0], re.findall(r"<table.*?</table>", page, re.DOTALL)
    assert sorted(re.findall(r'<a href="(\w+)\.html">', drawn)) == sorted(CHAPTERS)
    assert [f"book/{name}" for name in CHAPTERS] == [*PAGES, "book/few_networks"]
    for (name, chapter), row in zip(CHAPTERS.items(), guide.needs_lines(CHAPTERS)[2:], strict=True):
        # The map in words: what a chapter stands on, and what helps.
        needs, helps = (re.findall(r"\((\w+)\.ipynb\)", part) for part in row.split(" | ")[1:])
        expected = {page: needed for page, needed in chapter.prerequisites().items() if page in CHAPTERS}
        assert dict.fromkeys(needs, True) | dict.fromkeys(helps, False) == expected
        assert chapter.prerequisites() or name in ("first_signature", "theory", "few_networks")
        assert len(chapter.exercises) >= (4 if f"book/{name}" in PAGES else 2) and all(
            tables[1].count(f'href="{name}.html#{label}"') == 1 for label in chapter.exercises
        )
