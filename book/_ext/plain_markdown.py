"""Sphinx extension: notebooks hold plain Markdown, and tags of their cells say what a passage is.

Colab and JupyterLab show directives as they are written, so a notebook has none. While a page is read, its tagged
cells become the directives of sphinx-exercise and sphinx-proof:

======================  ======================================  ===========================================
tag                     what the Markdown cell holds            what the page shows
======================  ======================================  ===========================================
``exercise:LABEL``      ``### Exercise: TITLE``, then text      a numbered exercise
``solution:LABEL``      ``#### Solution``; the cells after it,  the solution of that exercise, folded
                        code too, have the same tag
``theorem:LABEL``       ``**Theorem (TITLE).**``, then text     a numbered theorem; in the same way ``lemma``,
                                                                ``proposition`` and ``corollary``
``proof``               ``*Proof.*``, then text                 a proof; with the tag ``folded`` a folded box
``folded``              ``**TITLE.**``, then text               a folded box (a tag on its own)
``predict:LABEL``       ``**Predict first.**`` and a question,  choices to press, of which one opens the answer
                        a list of choices, ``<details>`` with   (``predict.js``); without JavaScript a list and
                        the answer, which begins with the       a fold
                        right choice in bold
``take-with-you``       ``**TITLE.**``, then text               a box
``hide-cell``           code, after a first line ``# TITLE``    a folded cell with this title
======================  ======================================  ===========================================

Links go to the published book (``html_baseurl``), since those open from everywhere. They become references within
this build: ``glossary.html#term-WORD`` a glossary word, ``bibliography.html#KEY`` a citation (``[Name (2025)](...)``
in the sentence, ``[Name, 2025](...)`` in brackets), ``PAGE.html#LABEL`` and ``PAGE.html`` a link to a label, an
anchor or a page.
"""

import json
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.nodes import _make_id

STATEMENTS = ("theorem", "lemma", "proposition", "corollary")
EXERCISE = re.compile(r"### Exercise: (?P<title>[^\n]+)\n+(?P<text>.+)", re.DOTALL)
STATEMENT = re.compile(r"\*\*(?P<kind>\w+)(?: \((?P<title>[^\n]+?)\))?\.\*\*\s+(?P<text>.+)", re.DOTALL)
PROOF = re.compile(r"\*Proof\.\*\s+(?P<text>.+)", re.DOTALL)
BOX = re.compile(r"\*\*(?P<title>[^\n]+?)\.\*\*\s+(?P<text>.+)", re.DOTALL)
PREDICTION = re.compile(
    r"(?P<question>\*\*Predict first\.\*\*.+?)\n\n(?P<choices>- .+?)\n\n"
    r"<details><summary>(?P<summary>[^<]+)</summary>\n\n(?P<answer>.+?)\n\n</details>",
    re.DOTALL,
)
SOLUTION = "#### Solution"
FOLD = ":class: dropdown"


def kind_and_label(cell: dict) -> tuple[str, str]:
    """What the tags of a cell make of it: ``("exercise", LABEL)``, ``("proof", "")``, ``("", "")`` for nothing."""
    for tag in cell["metadata"].get("tags", []):
        kind, _, label = tag.partition(":")
        if kind in ("exercise", "solution", "predict", *STATEMENTS) and label:
            return kind, label
        if kind in ("proof", "take-with-you") and not label:
            return kind, label
    return ("folded" if "folded" in cell["metadata"].get("tags", []) else ""), ""


def directive(name: str, title: str, text: str, *options: str) -> str:
    """A directive whose fence is longer than any in its text."""
    fence = "`" * (1 + max([2, *map(len, re.findall(r"`{3,}", text))]))
    lines = [f"{fence}{{{name}}} {title}".rstrip(), *options, "", text.strip(), fence]
    return "\n".join(lines)


def prediction(label: str, question: str, choices: str, summary: str, answer: str) -> str:
    """A question, its choices and the folded answer, marked for ``predict.js``.

    Raises ValueError unless the answer begins with one of the choices, in bold, which is the right one.
    """
    known = [" ".join(choice.split()) for choice in re.split(r"^- ", choices, flags=re.MULTILINE)[1:]]
    right = next((n for n, choice in enumerate(known) if answer.startswith(f"**{choice.rstrip('.')}.**")), None)
    if right is None:
        raise ValueError(f"the answer of the prediction {label} should begin with one of {known}, in bold.")
    parts = [
        f'<div class="predict" data-predict="{label}" data-right="{right}">',
        question,
        choices,
        f'<details class="predict-answer"><summary>{summary}</summary>',
        answer,
        "</details></div>",
    ]
    return "\n\n".join(directive("raw", "html", part) if part.startswith("<") else part for part in parts)


def converted(kind: str, label: str, text: str, folded: bool) -> str:
    """The Markdown of a tagged cell as a directive. Raises ValueError if the text has not the tag's form."""
    if kind == "exercise" and (match := EXERCISE.fullmatch(text)):
        return directive("exercise", match["title"], match["text"], f":label: {label}")
    if kind in STATEMENTS and (match := STATEMENT.fullmatch(text)) and match["kind"].lower() == kind:
        return directive(f"prf:{kind}", match["title"] or "", match["text"], f":label: {label}")
    if kind == "proof" and (match := PROOF.fullmatch(text)):
        # A folded proof of sphinx-proof stops the script that folds; a box folds.
        return (
            directive("admonition", "Proof", match["text"], FOLD)
            if folded
            else directive("prf:proof", "", match["text"])
        )
    if kind == "predict" and (match := PREDICTION.fullmatch(text)):
        return prediction(label, **match.groupdict())
    if kind == "take-with-you" and (match := BOX.fullmatch(text)):
        return directive("admonition", match["title"], match["text"], f":class: {kind}")
    if kind == "folded" and (match := BOX.fullmatch(text)):
        return directive("admonition", match["title"], match["text"], FOLD)
    raise ValueError(f"a cell tagged {kind} has not the form of one: {text[:60]!r}.")


def titled(cell: dict) -> dict:
    """A folded code cell with its first line, a comment, as its title. Raises ValueError if there is none."""
    first, _, code = "".join(cell["source"]).partition("\n")
    if not first.startswith("# ") or not code:
        raise ValueError(f"a folded cell should begin with a comment that is its title, not with {first!r}.")
    prompts = dict.fromkeys(("code_prompt_show", "code_prompt_hide"), first[2:])
    metadata = cell["metadata"] | {"mystnb": cell["metadata"].get("mystnb", {}) | prompts}
    return cell | {"metadata": metadata, "source": code}


def with_directives(cells: list[dict]) -> Iterator[dict]:
    """The cells with directives in place of tagged Markdown."""
    for (kind, label), group in groupby(cells, kind_and_label):
        if kind == "solution":
            heading, *rest = group
            if "".join(heading["source"]).strip() != SOLUTION:
                raise ValueError(f"the solution of {label} should begin with a cell that holds only {SOLUTION!r}.")
            start = f"````{{solution-start}} {label}\n{FOLD}\n````"
            yield heading | {"source": start}
            yield from rest
            yield {"cell_type": "markdown", "metadata": {}, "source": "````{solution-end}\n````"}
        elif kind:
            for cell in group:
                folded = "folded" in cell["metadata"]["tags"]
                yield cell | {"source": converted(kind, label, "".join(cell["source"]).strip(), folded)}
        else:
            for cell in group:
                yield titled(cell) if "hide-cell" in cell["metadata"].get("tags", []) else cell


def glossary_words(text: str) -> dict[str, str]:
    """Maps the anchor of each word of a glossary to the word: ``{"term-affine-map": "affine map"}``."""
    block = re.search(r"^`{3,}\{glossary\}\n(.*?)^`{3,}$", text, re.DOTALL | re.MULTILINE)
    words = re.findall(r"^(?![ :])(\S.*)$", block[1] if block else "", re.MULTILINE)
    return {f"term-{_make_id(word)}": word for word in words}


def kinds_of_labels(notebooks: Iterable[dict]) -> dict[str, str]:
    """Maps every label of the notebooks to what it is of: ``{"gelbrich": "theorem"}``."""
    marks = (kind_and_label(cell) for notebook in notebooks for cell in notebook["cells"])
    return {label: kind for kind, label in marks if label and kind != "solution"}


def linked(text: str, base: str, pages: dict[str, str], words: dict[str, str], labels: dict[str, str]) -> str:
    """Markdown whose links to the published book are references within this build.

    ``pages`` maps a page's name to its file, ``words`` an anchor of the glossary to its word, ``labels`` a label to its
    kind. Raises ValueError for a page or a word that is not there, and for emphasis inside a link to the glossary.
    """

    def reference(match: re.Match) -> str:
        name, page, anchor = " ".join(match["text"].split()), match["page"], match["anchor"]
        if page not in pages:
            raise ValueError(f"a link goes to the page {page!r}, which is not in the book.")
        if page == "bibliography" and anchor:
            return f"{{cite:{'t' if name.endswith(')') else 'p'}}}`{anchor}`"
        if page == "glossary" and anchor:
            if anchor not in words:
                raise ValueError(f"a link goes to {anchor!r}, which is no word of the glossary.")
            if re.search(r"[*_`]", name):
                raise ValueError(f"the text {name!r} of a link to the glossary has emphasis; put that outside.")
            return f"{{term}}`{name} <{words[anchor]}>`"
        if anchor in labels:
            return f"{{{'ref' if labels[anchor] == 'exercise' else 'prf:ref'}}}`{name} <{anchor}>`"
        # MyST knows only its own labels. Whether the page has the anchor, a test of the built pages says.
        return f'<a href="{page}.html#{anchor}">{name}</a>' if anchor else f"[{name}]({pages[page]})"

    address = re.escape(base.rstrip("/")) + r"/book/(?P<page>[\w-]+)\.html(?:#(?P<anchor>[^)\s]+))?"
    return re.sub(rf"\[(?P<text>[^\]]+)\]\({address}\)", reference, text)


def targets(folder: Path) -> tuple[dict[str, str], dict[str, str], dict[str, str]]:
    """What links may go to in a folder of pages: pages, words and labels, as :func:`linked` takes them."""
    pages = {file.stem: file.name for file in folder.iterdir() if file.suffix in (".md", ".ipynb")}
    words = glossary_words((folder / "glossary.md").read_text(encoding="utf-8"))
    notebooks = (json.loads(file.read_text(encoding="utf-8")) for file in sorted(folder.glob("*.ipynb")))
    return pages, words, kinds_of_labels(notebooks)


def look_around(app: Sphinx) -> None:
    """Once a build, before the pages are read."""
    app.env.plain_markdown_targets = targets(Path(app.srcdir) / "book")


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    if not app.env.doc2path(docname).endswith(".ipynb"):
        return
    content = json.loads(source[0])
    try:
        cells = list(with_directives(content["cells"]))
        for cell in cells:
            if cell["cell_type"] == "markdown":
                text = "".join(cell["source"])
                cell["source"] = linked(text, app.config.html_baseurl, *app.env.plain_markdown_targets)
    except ValueError as error:
        raise ExtensionError(f"{docname}: {error}") from error
    source[0] = json.dumps(content | {"cells": cells})


def setup(app: Sphinx) -> dict:
    app.connect("builder-inited", look_around)
    app.connect("source-read", read)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
