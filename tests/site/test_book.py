"""Plain Markdown becomes directives."""

import re
from urllib.parse import unquote

import plain_markdown
import pytest

BASE = "https://example.org/book-of/"
PAGES = {"theory": "theory.ipynb", "glossary": "glossary.md", "bibliography": "bibliography.md"}


def cell(source: str, *tags: str, kind: str = "markdown") -> dict:
    return {"cell_type": kind, "source": source, "metadata": {"tags": list(tags)}}


def sources(cells) -> list[str]:
    return ["".join(cell["source"]) for cell in cells]


@pytest.mark.parametrize(
    ("source", "tags", "page"),
    [
        ("### Exercise: Half\n\nHow?", ["exercise:half"], "```{exercise} Half\n:label: half\n\nHow?\n```"),
        ("### Exercise: A\n\n````\nb\n````", ["exercise:a"],
         "`````{exercise} A\n:label: a\n\n````\nb\n````\n`````"),
        ("**Lemma (Both (a) and $b$).** Let $x$.", ["lemma:l"],
         "```{prf:lemma} Both (a) and $b$\n:label: l\n\nLet $x$.\n```"),
        ("**Theorem.** Let\n$x$.", ["theorem:t"], "```{prf:theorem}\n:label: t\n\nLet\n$x$.\n```"),
        ("*Proof.* Clear.", ["proof"], "```{prf:proof}\n\nClear.\n```"),
        ("*Proof.* Long.", ["proof", "folded"], "```{admonition} Proof\n:class: dropdown\n\nLong.\n```"),
        ("**Why not 2?** No.", [], "**Why not 2?** No."),
        ("**Derivation.**\n\nBy parts.", ["folded"], "```{admonition} Derivation\n:class: dropdown\n\nBy parts.\n```"),
        ("**Keep this.**\n\n- A.", ["take-with-you"], "```{admonition} Keep this\n:class: take-with-you\n\n- A.\n```"),
    ],
)  # fmt: skip
def test_a_tagged_cell_becomes_its_directive(source, tags, page):
    assert sources(plain_markdown.with_directives([cell(source, *tags)])) == [page]


PREDICTION = """**Predict first.** Up or down?

- Up
- Down, or
  level

<details><summary>Open</summary>

**Down, or level.** It falls.

</details>"""


@pytest.mark.parametrize(
    ("source", "tags"),
    [("Half", ["exercise:half"]), ("**Theorem.** Let.", ["lemma:l"]), ("Clear.", ["proof"]), ("By parts.", ["folded"]),
     ("It is 2.", ["solution:half"]), ("y = 1\nz = 2", ["hide-cell"]), ("# A table", ["hide-cell"]),
     (PREDICTION.replace("**Down, or level.**", "**Sideways.**"), ["predict:way"]),
     (PREDICTION.replace("- Up\n- Down, or\n  level\n\n", ""), ["predict:way"])],
)  # fmt: skip
def test_a_cell_without_the_form_of_its_tag_is_an_error(source, tags):
    with pytest.raises(ValueError, match=r"form of one|should begin|one of \["):
        list(plain_markdown.with_directives([cell(source, *tags)]))


def test_a_prediction_says_which_choice_is_right():
    (page,) = sources(plain_markdown.with_directives([cell(PREDICTION, "predict:way")]))
    assert '<div class="predict" data-predict="way" data-right="1">' in page
    assert page.index("- Down") < page.index('<details class="predict-answer">') < page.index("It falls.")


def test_the_first_line_of_a_folded_code_cell_is_its_title():
    picture = {"tags": ["hide-cell"], "mystnb": {"image": {"alt": "A curve."}}}
    (found,) = plain_markdown.with_directives(
        [{"cell_type": "code", "source": "# A table\ny = 1", "metadata": picture}]
    )
    assert found["source"] == "y = 1" and found["metadata"]["mystnb"] == {
        "image": {"alt": "A curve."}, "code_prompt_show": "A table", "code_prompt_hide": "A table",
    }  # fmt: skip


def test_a_solution_is_folded_from_its_heading_to_its_last_cell():
    cells = [
        cell("#### Solution", "solution:a"), cell("x", "solution:a"), cell("y = 1", "solution:a", kind="code"),
        cell("#### Solution", "solution:b"), cell("After."),
    ]  # fmt: skip
    start, end = "````{{solution-start}} {}\n:class: dropdown\n````", "````{solution-end}\n````"
    assert sources(plain_markdown.with_directives(cells)) == [
        start.format("a"), "x", "y = 1", end, start.format("b"), end, "After."
    ]  # fmt: skip


WORDS = plain_markdown.glossary_words("```{glossary}\naffine map\n  A map.\n```\n")
LABELS = plain_markdown.kinds_of_labels([{"cells": [cell("", "theorem:gelbrich"), cell("", "exercise:half")]}])


@pytest.mark.parametrize(
    ("text", "address", "reference"),
    [
        ("two\nwords", "book/theory.html", "[two words](theory.ipynb)"),
        ("a", "book/theory.html#ranges", '<a href="theory.html#ranges">a</a>'),
        ("a", "book/theory.html#gelbrich", "{prf:ref}`a <gelbrich>`"),
        ("a", "book/theory.html#half", "{ref}`a <half>`"),
        ("a", "book/glossary.html#term-affine-map", "{term}`a <affine map>`"),
        ("Smith, 2025", "book/bibliography.html#smith2025", "{cite:p}`smith2025`"),
        ("Smith (2025)", "book/bibliography.html#smith2025", "{cite:t}`smith2025`"),
        ("a", "other/theory.html", f"[a]({BASE}other/theory.html)"),
    ],
)
def test_a_link_to_the_book_becomes_a_reference(text, address, reference):
    link = f"[{text}]({BASE}{address})"
    assert plain_markdown.linked(f"a {link} b", BASE, PAGES, WORDS, LABELS) == f"a {reference} b"


@pytest.mark.parametrize("address", ["book/theories.html", "book/glossary.html#term-afine"])
def test_a_link_to_what_is_not_there_is_an_error(address):
    with pytest.raises(ValueError, match=r"theories|term-afine"):
        plain_markdown.linked(f"[a]({BASE}{address})", BASE, PAGES, WORDS, LABELS)


def test_emphasis_inside_a_link_to_the_glossary_is_an_error():
    """Sphinx would print its asterisks."""
    with pytest.raises(ValueError, match="has emphasis"):
        plain_markdown.linked(f"[*a*]({BASE}book/glossary.html#term-affine-map)", BASE, PAGES, WORDS, LABELS)


def test_every_link_within_the_book_leads_to_an_anchor(site):
    pages = {path.name: path.read_text(encoding="utf-8") for path in (site / "book").glob("*.html")}
    anchors = {name: set(re.findall(r'\bid="([^"]+)"', text)) for name, text in pages.items()}
    missing = [
        f"{name} to {page or name}#{anchor}"
        for name, text in pages.items()
        for page, anchor in re.findall(r'<a [^>]*href="([\w.]*)#([\w.-]+)"', text)
        if (page or name) in anchors and unquote(anchor) not in anchors[page or name]
    ]
    assert missing == []
