"""The notebooks of the book as they are committed: run from top to bottom, stored, readable without a picture.

Each rule is a function from a notebook to the sentences of what breaks it, shown failing once on a planted
notebook. That the stored outputs are the ones a new run gives is nbval's part (make test).
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import chapter_minutes
import execute
import ledger
import nbformat
import plain_markdown
import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
PICTURES = ("image/png", "image/jpeg", "image/svg+xml")
CAPTION = re.compile(r"\*\*Figure \d+\.\*\* ")

SITE = yaml.safe_load((ROOT / "_config.yml").read_text())["html"]["baseurl"]
# What the first code cell of a chapter, which installs it on Colab, says for itself: extras, and folders to fetch.
OWN = re.compile(r'(?<=, )"(?:\[pretrained\])?"$|(?<=^    data = )"[^"]*"$', re.MULTILINE)
# A folder of stored results, as a chapter names it.
DATA = re.compile(r"[\"']data/(\w+)")
# What myst-nb, nbval and .ci/execute.py read; plain_markdown reads the others.
TAGS = {
    "hide-input", "hide-output", "hide-cell", "remove-input", "remove-output", "remove-cell", "not-in-page",
    "nbval-ignore-output",
}  # fmt: skip


def toc_files(entry) -> Iterator[str]:
    """Every `file` and `root` of a table of contents, at any depth."""
    if isinstance(entry, list):
        for item in entry:
            yield from toc_files(item)
    elif isinstance(entry, dict):
        yield from (entry[key] for key in ("root", "file") if key in entry)
        for value in entry.values():
            yield from toc_files(value)


TOC = yaml.safe_load((ROOT / "_toc.yml").read_text())
PAGES = list(toc_files(TOC))
NOTEBOOKS = [page for page in PAGES if (ROOT / f"{page}.ipynb").exists()]
# The numbered pages; the other notebooks are for looking up, and have no exercises.
CHAPTERS = [page for part in TOC["parts"] if part.get("numbered") for page in toc_files(part)]
AUDITS = [page for page in NOTEBOOKS if page.startswith("book/audit_")]


#: Lines of a code cell that a reader sees.
VISIBLE_LINES = 25


def code_cells(notebook) -> list[tuple[int, dict]]:
    """(index, cell) of every code cell that holds something."""
    return [
        (index, cell)
        for index, cell in enumerate(notebook["cells"])
        if cell["cell_type"] == "code" and cell["source"].strip()
    ]


#: The cell that installs a chapter on Colab, which all have alike; weekly one runs as on Colab (test_colab.py).
COLAB = OWN.sub('""', code_cells(nbformat.read(ROOT / f"{NOTEBOOKS[0]}.ipynb", as_version=4))[0][1]["source"])


def not_run_in_order(notebook) -> list[str]:
    counts = [(index, cell.get("execution_count")) for index, cell in code_cells(notebook)]
    return [
        f"cell {index} has execution count {count} and should have {expected}: run the notebook from the top"
        for expected, (index, count) in enumerate(counts, start=1)
        if count != expected
    ]


def alt_text(cell) -> str:
    """The only alt text that the book uses; one in the output's metadata it does not."""
    return cell["metadata"].get("mystnb", {}).get("image", {}).get("alt", "")


#: What no code cell may hold: the pattern, whether it is looked for in code, outputs or alt text, and what it is.
FORBIDDEN = [
    (r'"output_type": "error"|"name": "stderr"', "outputs", "a traceback or a warning"),
    (r"(?<![\w./])/(?:home|root|tmp|work|Users|usr|opt|mnt|var)/[\w.-]+", "code and outputs", "a path of the machine"),
    ("Not yet: ", "outputs", "a hint before a reader has tried"),
    (r"(?m)^.{89,}$", "code", "a line that a page of 1280 pixels, or Colab's, would cut: 88 characters fit"),
    (r";\s*\Z", "code", "a last ';', which hides a value when the notebook is stored, but not when nbval runs it"),
    (r"\*\*|\]\(|\$|`|\n|[A-Z]{2,}_", "alt text", "mark-up, which is read aloud as it stands"),
]  # fmt: skip


def forbidden(notebook) -> list[str]:
    """See FORBIDDEN."""
    found = []
    for index, cell in code_cells(notebook):
        parts = {"code": cell["source"], "outputs": json.dumps(cell["outputs"]), "alt text": alt_text(cell)}
        parts["code and outputs"] = parts["code"] + parts["outputs"]
        matches = ((re.search(pattern, parts[where]), what) for pattern, where, what in FORBIDDEN)
        found += [f"cell {index} holds {what}: {match.group()}" for match, what in matches if match]
    return found


def figures_without_alt_text(notebook) -> list[str]:
    return [
        f"cell {index} stores a picture and has no alt text in its metadata (mystnb.image.alt)"
        for index, cell in code_cells(notebook)
        if any(kind in output.get("data", {}) for output in cell["outputs"] for kind in PICTURES)
        and not alt_text(cell).strip()
    ]


def long_cells(notebook) -> list[str]:
    """Code cells that a reader sees and that are too long to be read in one piece; what is folded may be longer."""
    folded = {"hide-cell", "hide-input", "remove-cell", "remove-input"}
    return [
        f"cell {index} has {lines} lines; {VISIBLE_LINES} are enough for one that is not folded"
        for index, cell in code_cells(notebook)
        if not folded & set(cell["metadata"].get("tags", []))
        and (lines := len(cell["source"].splitlines())) > VISIBLE_LINES
    ]


def metadata_of_the_run(notebook) -> list[str]:
    """What changes with every run and says nothing to a reader: times, widget state, another kernel's name."""
    timed = [index for index, cell in code_cells(notebook) if "execution" in cell["metadata"]]
    found = [f"cell {index} stores times of its execution" for index in timed]
    if "widgets" in notebook["metadata"]:
        found.append("the notebook stores widget state")
    if notebook["metadata"].get("kernelspec", {}).get("name") != "python3":
        found.append("the kernel's name is not python3")
    return found


def unknown_tags(notebook) -> list[str]:
    """A tag that nothing reads says nothing."""
    return [
        f"cell {index} has the tag {tag!r}, which nothing reads"
        for index, cell in enumerate(notebook["cells"])
        for tag in cell["metadata"].get("tags", [])
        if tag not in TAGS and plain_markdown.kind_and_label(cell)[0] != tag.partition(":")[0]
    ]


def raw_directives(notebook) -> list[str]:
    """Directives and roles, which Colab shows as they are written: three lines at most."""
    raw = re.compile(r"\s*(`{3,}\{|:{3,}|:[\w-]+: )|.*\{[\w:-]+\}`")
    lines = [
        line
        for cell in notebook["cells"]
        if cell["cell_type"] == "markdown"
        for line in cell["source"].splitlines()
        if raw.match(line)
    ]
    return [f"{len(lines)} raw lines: {lines[0]}"] if len(lines) > 3 else []


def links_that_colab_cannot_open(notebook) -> list[str]:
    """Links to files: on Colab only addresses open."""
    return [
        f"cell {index} links to {target}: it should be {SITE}book/PAGE.html"
        for index, cell in enumerate(notebook["cells"])
        if cell["cell_type"] == "markdown"
        for target in re.findall(r"\]\(([^)\s]+)\)", cell["source"])
        if not target.startswith("https://")
    ]


def first_cell_is_not_colabs(notebook) -> list[str]:
    """The first code cell installs what the chapter needs, on Colab only."""
    cell = code_cells(notebook)[0][1]
    if OWN.sub('""', cell["source"]) != COLAB or cell["metadata"].get("tags") != ["remove-cell"]:
        return ["the first code cell is not the one of the other chapters that installs the package on Colab"]
    read = {f"/book/data/{name}" for _, cell in code_cells(notebook) for name in DATA.findall(cell["source"])}
    fetched = re.search(r'data = "(.*)"', cell["source"])[1].split()
    return [f"the first code cell does not fetch {folder}" for folder in sorted(read - set(fetched))]


def exercises_without_their_line(notebook) -> list[str]:
    """Every exercise says how hard it is, what it is worth and how long it takes, in one form."""
    form = r"### Exercise: [^\n]+\n\n\*(Easy|Medium|Hard), importance [1-5] of 5, \d+ minutes\.\*\s\S"
    return [
        f"cell {index} does not begin with a heading and '*Easy, importance 3 of 5, 5 minutes.*'"
        for index, cell in enumerate(notebook["cells"])
        if plain_markdown.kind_and_label(cell)[0] == "exercise" and not re.match(form, cell["source"])
    ]


def exercises_without_solutions(notebook) -> list[str]:
    kinds = [plain_markdown.kind_and_label(cell) for cell in notebook["cells"]]
    exercises, solutions = ({label for kind, label in kinds if kind == name} for name in ("exercise", "solution"))
    return [f"{label} has no exercise, or no solution" for label in sorted(exercises ^ solutions)]


def unfolded_solutions(notebook) -> list[str]:
    folded = nbformat.from_dict(json.loads(json.dumps(notebook)))
    execute.fold_solutions(folded)
    return [] if folded == notebook else ["a solution is not folded: store the notebook with .ci/execute.py"]


def invalid(notebook) -> list[str]:
    try:
        nbformat.validate(notebook)
    except nbformat.ValidationError as error:
        return [str(error).splitlines()[0]]
    return []


def too_many_verdicts(notebook) -> list[str]:
    """Five verdicts carry a chapter's story; the others are in folded cells and in the ledger."""
    open_cells = [cell for _, cell in code_cells(notebook) if "hide-cell" not in cell["metadata"].get("tags", [])]
    rows = sum(len(output.get("data", {}).get(ledger.CLAIMS, [])) for cell in open_cells for output in cell["outputs"])
    return [f"{rows} verdicts are in sight; five are enough"] if rows > 5 else []


def too_many_words(notebook) -> list[str]:
    """A student reads 2,900 words in the half hour that a chapter has for its prose. A figure has its own minute."""
    aside = ("solution", "proof", "folded")
    texts = [cell["source"] for cell in notebook["cells"] if cell["cell_type"] == "markdown"
             and plain_markdown.kind_and_label(cell)[0] not in aside and not CAPTION.match(cell["source"])]  # fmt: skip
    words = sum(map(chapter_minutes.words, texts))
    return [f"{words} words; 2900 are enough"] if words > 2900 else []


def widgets_without_a_question(notebook) -> list[str]:
    """A reader who has made a guess sees more: the text right before a moving picture asks for one.

    How to move it may stand between the two, since it is of no use before the picture is shown.
    """
    before = [{"source": ""}, {"source": ""}, *notebook["cells"]]
    return [
        f"cell {index} shows a widget, and the text before it has no paragraph '**Predict first.** ...'"
        for index, cell in code_cells(notebook)
        if "affscore-widget" in json.dumps(cell["outputs"])
        and not any(
            re.search(r"^\*\*Predict first\.\*\* .*\?", text["source"], re.MULTILINE | re.DOTALL)
            for text in before[index : index + 2]
        )
    ]


def shows_a_figure(cell) -> bool:
    """Whether a code cell that is in sight shows a picture that does not move."""
    if (
        cell["cell_type"] != "code"
        or plain_markdown.kind_and_label(cell)[0]
        or "hide-cell" in cell["metadata"].get("tags", [])
    ):
        return False
    outputs = json.dumps(cell["outputs"])
    return "affscore-widget" not in outputs and ("<svg" in outputs or any(kind in outputs for kind in PICTURES))


def figures_without_their_caption(notebook) -> list[str]:
    """Each figure has its caption in the next cell, and their numbers are 1, 2, 3."""
    cells = [*notebook["cells"], {"source": ""}]
    captions = [index for index, cell in enumerate(cells) if CAPTION.match(cell["source"])]
    figures = [index for index, cell in enumerate(cells[:-1]) if shows_a_figure(cell)]
    numbers = [f"**Figure {number}.** " for number in range(1, len(figures) + 1)]
    wrong = [f"cell {index + 1} should begin with {number!r}" for index, number in zip(figures, numbers, strict=True)
             if not cells[index + 1]["source"].startswith(number) or "\n\n" in cells[index + 1]["source"]]  # fmt: skip
    return wrong + [f"cell {index} is a caption of no figure" for index in captions if index - 1 not in figures]


RULES = [
    not_run_in_order, forbidden, figures_without_alt_text, long_cells, metadata_of_the_run, invalid, unknown_tags,
    raw_directives, links_that_colab_cannot_open, first_cell_is_not_colabs, exercises_without_their_line,
    exercises_without_solutions, unfolded_solutions, too_many_verdicts, too_many_words, widgets_without_a_question,
    figures_without_their_caption,
]  # fmt: skip


@pytest.mark.parametrize("page", NOTEBOOKS)
def test_committed_notebook(page):
    notebook = nbformat.read(ROOT / f"{page}.ipynb", as_version=4)
    of_lessons = (too_many_verdicts, figures_without_their_caption)
    rules = [rule for rule in RULES if page not in AUDITS or rule not in of_lessons]
    assert {rule.__name__: found for rule in rules if (found := rule(notebook))} == {}


@pytest.mark.parametrize("audit", AUDITS)
def test_lesson_with_an_audit_page_links_to_it(audit):
    """A lesson whose audit is a page of its own shows no verdict and links to that page."""
    lesson = nbformat.read(ROOT / f"{audit.replace('audit_', '')}.ipynb", as_version=4)
    outputs = [output for _, cell in code_cells(lesson) for output in cell["outputs"]]
    assert not [output for output in outputs if ledger.CLAIMS in output.get("data", {})]
    assert any(f"{audit}.html" in cell["source"] for cell in lesson["cells"] if cell["cell_type"] == "markdown")


def test_every_notebook_is_in_the_contents():
    assert {f"book/{path.stem}" for path in (ROOT / "book").glob("*.ipynb")} == set(NOTEBOOKS)


def markdown(source: str, *tags: str, **metadata) -> dict:
    cell = {"cell_type": "markdown", "source": source, "metadata": metadata | ({"tags": list(tags)} if tags else {})}
    return cell | {"id": f"text-{len(source)}"}


EXERCISE = markdown("### Exercise: Half\n\n*Easy, importance 3 of 5, 5 minutes.* Halve it.", "exercise:half")
SOLUTION = markdown("#### Solution", "solution:half")
FOLDED = {"id": "solution-half", "jp-MarkdownHeadingCollapsed": True}


def planted(*more: dict, colab: str = COLAB, **changes) -> dict:
    """A notebook of Colab's cell, one good cell with some of its fields changed, and more cells."""
    first = {
        "id": "first", "cell_type": "code", "source": colab, "execution_count": 1, "outputs": [],
        "metadata": {"tags": ["remove-cell"]},
    }  # fmt: skip
    cell = {
        "id": "a", "cell_type": "code", "source": "%matplotlib inline\nlines = plt.plot(x)", "execution_count": 2,
        "outputs": [output({"image/png": "iVBORw0KGgo="})], "metadata": {"mystnb": {"image": {"alt": "A line."}}},
    }  # fmt: skip
    metadata = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
    notebook = {"cells": [first, cell | changes, *more], "metadata": metadata}
    return nbformat.from_dict(notebook | {"nbformat": 4, "nbformat_minor": 5})


def printing(text: str, name: str = "stdout") -> dict:
    return {"outputs": [{"output_type": "stream", "name": name, "text": text}]}


def output(data: dict) -> dict:
    return {"output_type": "display_data", "data": data, "metadata": {}}


def test_each_rule_sees_its_mistakes_and_none_in_a_good_notebook():
    link, proof = markdown(f"[a]({SITE}book/theory.html)"), markdown("a " * 4000, "proof")
    good = planted(markdown("**Figure 1.** A line."), EXERCISE, SOLUTION, link, proof)
    execute.fold_solutions(good)
    assert [rule.__name__ for rule in RULES if rule(good)] == []
    assert good.cells[4].metadata == {"tags": ["solution:half"]} | FOLDED  # for JupyterLab, and for Colab
    assert good.metadata.colab == {"collapsed_sections": ["solution-half"]}
    wrong = {
        "source": "x = 0\n" * 25 + f"x = load('data/networks'){' + 1' * 21};",
        "execution_count": 3,
        "outputs": [
            *printing("saved /home/someone/x.json\nNot yet: try the root.", "stderr")["outputs"],
            output({ledger.CLAIMS: [{}] * 6, "text/html": '<div class="affscore-widget">'}),
            {"output_type": "stream"},
        ],
        "metadata": {"tags": ["hide-inputs"], "execution": {}, "mystnb": {"image": {"alt": "It **rises**."}}},
    }
    picture = {"cell_type": "code", "source": "plot()", "outputs": [output({"image/png": ""})], "metadata": {}}
    texts = [
        EXERCISE | {"source": "### Exercise: Half\n\nHalve it."}, markdown("#### Solution", "solution:other"),
        markdown("```{note}\nA.\n```\n:::{tip}\nB.\n:::\n{term}`ReLU`"), markdown("[a](theory.ipynb)"),
        markdown("**Figure 2.** A line."),
        markdown("a $x + y$ " * 1501), picture | {"id": "b", "execution_count": 2},
    ]  # fmt: skip
    bad = planted(*texts, colab="import affscore", **wrong)
    assert [rule.__name__ for rule in RULES if not rule(bad)] == []
    assert len(forbidden(bad)) == len(FORBIDDEN) and len(exercises_without_solutions(bad)) == 2
    assert "data/networks" in first_cell_is_not_colabs(planted(source="load('data/networks')"))[0]
    source = "def relu(x):\n    return max(x, 0)\n" + "x = 1\n" * 30
    assert len(long_cells(planted(source=source))) == 1
    assert long_cells(planted(source=source, metadata={"tags": ["hide-cell"]})) == []


def test_the_right_answer_of_a_prediction_stands_at_any_place():
    """A reader who has noticed that it is always the last one predicts nothing."""
    notebooks = (nbformat.read(ROOT / f"{page}.ipynb", as_version=4) for page in NOTEBOOKS)
    found = (plain_markdown.PREDICTION.fullmatch(cell["source"]) for book in notebooks for cell in book["cells"])
    pages = [plain_markdown.prediction("x", **match.groupdict()) for match in found if match]
    right = Counter(re.search(r'data-right="(\d+)"', page)[1] for page in pages)
    assert len(pages) > 30 and max(right.values()) < len(pages) / 2
