"""Sphinx extension: the tables and the map of the teacher's guide, which the build makes from the notebooks.

=================  =================================================================================================
``chapters``       a row for each chapter: minutes to read, seconds to run, core and optional exercises
``syllabus``       a row for each session; the content is a list in YAML with ``title``, ``read`` (chapter: ``all``
                   or a list of its sections) and ``do`` (labels of exercises)
``chapter-map``    which chapters build on which, from the links in the chapters' lines on prerequisites: a drawing,
                   and a table with the same content
=================  =================================================================================================

Minutes are counted as at the head of a chapter (``chapter_minutes.py``). An exercise is core if no other of its chapter
is more important. The tables are Markdown, so the build warns of a section or an exercise that no longer exists.
"""

import json
import re
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path

import yaml
from chapter_minutes import minutes, seconds
from docutils import nodes
from docutils.parsers.rst import Directive
from docutils.statemachine import StringList
from plain_markdown import EXERCISE, kind_and_label
from sphinx.application import Sphinx

RATING = re.compile(r"\*(?P<level>\w+), importance (?P<importance>\d) of 5, (?P<minutes>\d+) minutes\.\*")
PREREQUISITES = re.compile(r"^\*\*Prerequisites:\*\*(.*?)(?=^\*\*Run time|\Z)", re.DOTALL | re.MULTILINE)
PAGE = re.compile(r"/book/(\w+)\.html")
#: Marks an exercise whose numbers change with the student's name.
OWN_NUMBERS = " ◆"
#: A sentence with one of these words says that a chapter helps, or that the later chapter repeats what it needs.
SOFT = re.compile(r"\b(helps?|example|trust|repeated|last section)\b")


@dataclass(frozen=True)
class Exercise:
    label: str
    title: str
    importance: int
    minutes: int
    own_numbers: bool

    def __str__(self) -> str:
        return f"{{ref}}`{self.title} <{self.label}>` ({self.minutes}{OWN_NUMBERS * self.own_numbers})"


@dataclass
class Chapter:
    """A notebook as the guide sees it."""

    name: str
    cells: list[dict]

    @property
    def head(self) -> str:
        return "".join(self.cells[0]["source"])

    @property
    def title(self) -> str:
        return self.head.splitlines()[0].removeprefix("# ")

    @property
    def short_title(self) -> str:
        return self.title.partition(":")[0]

    @cached_property
    def exercises(self) -> dict[str, Exercise]:
        """By label."""
        found = {}
        for cell, answer in pairwise(self.cells):
            kind, label = kind_and_label(cell)
            text = "".join(cell["source"]).strip()
            if kind == "exercise" and (match := EXERCISE.fullmatch(text)) and (rating := RATING.search(text)):
                own = "= variant(" in "".join(answer["source"])
                found[label] = Exercise(label, match["title"], int(rating["importance"]), int(rating["minutes"]), own)
        return found

    def core(self) -> list[Exercise]:
        """The most important exercises of the chapter."""
        most = max((exercise.importance for exercise in self.exercises.values()), default=0)
        return [exercise for exercise in self.exercises.values() if exercise.importance == most]

    @cached_property
    def sections(self) -> dict[str, list[dict]]:
        """The cells under each heading of the second level; the key "" has the cells before the first heading."""
        found: dict[str, list[dict]] = {"": []}
        for cell in self.cells:
            parts = re.split(r"^## (.+)\n?", "".join(cell["source"]), flags=re.MULTILINE)
            if cell["cell_type"] != "markdown" or len(parts) == 1:
                found[list(found)[-1]].append(cell)
                continue
            found[list(found)[-1]].append(cell | {"source": parts[0]})
            for heading, text in zip(parts[1::2], parts[2::2], strict=True):
                found[heading] = [cell | {"source": text}]
        return found

    def prerequisites(self) -> dict[str, bool]:
        """The chapters to which the line on prerequisites links, each with whether it is needed as a whole."""
        match = PREREQUISITES.search(self.head)
        sentences = re.split(r"(?<=[.;:])\s", match[1]) if match else []
        return {page: not SOFT.search(text) for text in sentences for page in PAGE.findall(text)}


def read_chapters(folder: Path, order: list[str]) -> dict[str, Chapter]:
    """The chapters (notebooks with exercises) by name, in the order of the contents."""
    notebooks = (
        Chapter(name, json.loads((folder / f"{name}.ipynb").read_text(encoding="utf-8"))["cells"])
        for name in order
        if (folder / f"{name}.ipynb").exists()
    )
    return {each.name: each for each in notebooks if each.exercises}


# ----------------------------------------------------------------------------------------------- the tables


def slug(heading: str) -> str:
    """The anchor of a heading, as MyST makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def table(heads: list[str], rows: list[list[object]]) -> list[str]:
    """Lines of a Markdown table."""
    lines = [heads, ["---"] * len(heads), *rows]
    return ["| " + " | ".join(map(str, line)) + " |" for line in lines]


def listed(exercises: list[Exercise]) -> str:
    return ", ".join(map(str, exercises)) or "–"


def chapter_lines(chapters: dict[str, Chapter], runs: dict[str, str]) -> list[str]:
    rows = []
    for chapter in chapters.values():
        core = chapter.core()
        others = [exercise for exercise in chapter.exercises.values() if exercise not in core]
        reading, folded, _ = minutes(chapter.cells)
        more = f" + {folded}" if folded else ""
        link = f"[{chapter.short_title}]({chapter.name}.ipynb)"
        rows.append([link, f"{reading}{more}", runs[chapter.title], listed(core), listed(others)])
    return table(["Chapter", "Read", "Run, s", "Core exercises", "Optional exercises"], rows)


def reading(chapter: Chapter, sections: str | list[str]) -> tuple[str, int]:
    """Links to the sections of a chapter to read, and their minutes. Raises KeyError for a section that is missing."""
    link = f"[{chapter.short_title}]({chapter.name}.ipynb)"
    if sections == "all":
        return link, minutes(chapter.cells)[0]
    links = [f"[{heading}]({chapter.name}.ipynb#{slug(heading)})" for heading in sections]
    return f"{link}: {', '.join(links)}", minutes([cell for name in sections for cell in chapter.sections[name]])[0]


def syllabus_lines(sessions: list[dict], chapters: dict[str, Chapter]) -> list[str]:
    """The rows of a syllabus. Raises KeyError for a chapter, a section or an exercise that does not exist."""
    known = {label: exercise for chapter in chapters.values() for label, exercise in chapter.exercises.items()}
    rows, totals = [], [0, 0]
    for session in sessions:
        texts, counts = zip(*(reading(chapters[name], parts) for name, parts in session["read"].items()), strict=True)
        exercises = [known[label] for label in session.get("do", [])]
        work = sum(exercise.minutes for exercise in exercises)
        rows.append([session["title"], "; ".join(texts), sum(counts), listed(exercises), work])
        totals = [totals[0] + sum(counts), totals[1] + work]
    if len(rows) > 1:
        rows.append(["**Total**", "", f"**{totals[0]}**", "", f"**{totals[1]}**"])
    return table(["Session", "Read or show", "Minutes", "Exercises", "Minutes"], rows)


# -------------------------------------------------------------------------------------------------- the map

WIDTH, HEIGHT, BESIDE, BELOW = 216, 38, 36, 20


def reduced(edges: dict[str, dict[str, bool]]) -> dict[str, dict[str, bool]]:
    """The edges without those that a longer path implies."""

    def reach(name: str) -> set[str]:
        return set(edges[name]).union(*map(reach, edges[name]))

    return {
        name: {one: hard for one, hard in before.items() if not any(one in reach(other) for other in before)}
        for name, before in edges.items()
    }


def ways(edges: dict[str, dict[str, bool]]) -> tuple[dict[str, int], dict[tuple[str, str], list[str]]]:
    """The column of each chapter, to the right of all chapters on which it builds, and the path of each edge.

    An edge over several columns passes through a separate place in each column between, which has a name and a column.
    """

    def depth(name: str) -> int:
        return 1 + max(map(depth, edges[name]), default=-1)

    column, found = {name: depth(name) for name in edges}, {}
    for name, before in edges.items():
        for other in before:
            between = {f"{other} to {name}, {c}": c for c in range(column[other] + 1, column[name])}
            column |= between
            found[other, name] = [other, *between, name]
    return column, found


def places(column: dict[str, int], ways: dict[tuple[str, str], list[str]]) -> dict[str, tuple[int, int]]:
    """The upper left corner of each chapter and each place between, at about the height of the places before it."""
    row: dict[str, int] = {}
    before = {name: [way[way.index(name) - 1] for way in ways.values() if name in way[1:]] for name in column}
    for number in range(max(column.values()) + 1):
        wish = {n: sum(row[b] for b in before[n]) / max(1, len(before[n])) for n in column if column[n] == number}
        row |= {name: place for place, name in enumerate(sorted(wish, key=wish.__getitem__))}
    return {name: (column[name] * (WIDTH + BESIDE), row[name] * (HEIGHT + BELOW)) for name in column}


def curve(points: list[tuple[int, int]]) -> str:
    """The path of an edge, horizontal at the box where it starts, in places between, and at the box where it ends."""
    path = ""
    for (x1, y1), (x2, y2) in pairwise(points):
        start, end, middle = x1 + WIDTH, x2 - 6 * ((x2, y2) == points[-1]), HEIGHT / 2
        bow = (end - start) / 2
        path += f"L{start},{y1 + middle} C{start + bow},{y1 + middle} {end - bow},{y2 + middle} {end},{y2 + middle} "
    return "M" + path[1:].strip()


def chapter_map(chapters: dict[str, Chapter]) -> str:
    """The map as SVG."""
    edges = reduced({
        name: {page: hard for page, hard in chapter.prerequisites().items() if page in chapters}
        for name, chapter in chapters.items()
    })  # fmt: skip
    column, edge_ways = ways(edges)
    at = places(column, edge_ways)
    width, height = max(x for x, _ in at.values()) + WIDTH, max(y for _, y in at.values()) + HEIGHT
    parts = [
        f'<path class="{"needs" if edges[name][other] else "helps"}" marker-end="url(#arrow)" '
        f'd="{curve([at[place] for place in way])}"/>'
        for (other, name), way in edge_ways.items()
    ]
    for name, chapter in chapters.items():
        x, y = at[name]
        parts.append(
            f'<a href="{name}.html"><rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6"/>'
            f'<text x="{x + WIDTH / 2:g}" y="{y + HEIGHT / 2 + 5:g}">{chapter.short_title}</text></a>'
        )
    arrow = (
        '<marker id="arrow" viewBox="0 0 8 8" refX="2" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
        '<path d="M0,0 L8,4 L0,8 z"/></marker>'
    )
    return (
        f'<div class="chapter-map"><svg viewBox="-2 -2 {width + 4} {height + 4}" role="group" '
        f'aria-label="Which chapters build on which"><defs>{arrow}</defs>{"".join(parts)}</svg></div>'
    )


def needs_lines(chapters: dict[str, Chapter]) -> list[str]:
    """The map in words: for each chapter, the chapters that its line on prerequisites names."""
    rows = []
    for chapter in chapters.values():
        before = {page: hard for page, hard in chapter.prerequisites().items() if page in chapters}
        links = {page: f"[{chapters[page].short_title}]({page}.ipynb)" for page in before}
        needs, helps = (", ".join(links[page] for page in before if before[page] == hard) for hard in (True, False))
        rows.append([chapter.short_title, needs or "–", helps or "–"])
    return table(["Chapter", "Builds on", "Helped by"], rows)


# ------------------------------------------------------------------------------------------- the directives


class FromNotebooks(Directive):
    """The base of the directives: it reads the chapters and replaces a directive by Markdown."""

    def chapters(self) -> dict[str, Chapter]:
        env = self.state.document.settings.env
        folder = Path(env.srcdir) / "book"
        for path in (*folder.glob("*.ipynb"), folder / "data" / "run_times.csv"):
            env.note_dependency(str(path))
        return read_chapters(folder, [Path(page).name for page in env.external_site_map])

    def markdown(self, lines: list[str]) -> list[nodes.Node]:
        box = nodes.container(classes=["course"])
        self.state.nested_parse(StringList(lines, self.state.document["source"]), self.content_offset, box)
        return [box]


class Chapters(FromNotebooks):
    def run(self) -> list[nodes.Node]:
        chapters = self.chapters()
        return self.markdown(chapter_lines(chapters, seconds(Path(self.state.document.settings.env.srcdir) / "book")))


class Syllabus(FromNotebooks):
    has_content = True

    def run(self) -> list[nodes.Node]:
        try:
            return self.markdown(syllabus_lines(yaml.safe_load("\n".join(self.content)), self.chapters()))
        except KeyError as error:
            raise self.error(f"a syllabus names {error}, which is not a chapter, a section or an exercise.") from error


class ChapterMap(FromNotebooks):
    def run(self) -> list[nodes.Node]:
        chapters = self.chapters()
        return [nodes.raw("", chapter_map(chapters), format="html"), *self.markdown(needs_lines(chapters))]


def setup(app: Sphinx) -> dict:
    app.add_directive("chapters", Chapters)
    app.add_directive("syllabus", Syllabus)
    app.add_directive("chapter-map", ChapterMap)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
