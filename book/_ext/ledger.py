"""Sphinx extension: the directive ``ledger``, every claim of the sources and of the chapters in one table.

A chapter's tables of claims carry their rows a second time, as JSON, in the notebook's stored output
(``affscore_book.kit.claims``). They are read from there. ``data/claims/sources.json`` lists each source place by place,
and says of a place that no chapter's claim is about what a test of it needs, that it only explains, or where it is
proved. While a chapter is read, a target is put before each of its tables, and the ledger links to it. The rows are
plain table rows; ``ledger.js`` puts menus above them that show some of the rows only.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

CLAIMS = "application/vnd.affscore.claims+json"
HEADINGS = ("Source", "Claim", "Ours", "Holds if", "Verdict", "Where")
OWN = "ours"


def claims_of(cell: dict) -> list[dict]:
    """The rows of the claim tables that a code cell has stored."""
    return [row for output in cell.get("outputs", []) for row in output.get("data", {}).get(CLAIMS, [])]


def marked(docname: str, cells: list[dict]) -> Iterator[dict]:
    """The cells of a page with a target before each that has claims; the JSON goes, since no page shows it."""
    number = 0
    for cell in cells:
        if claims_of(cell):
            number += 1
            yield {"cell_type": "markdown", "metadata": {}, "source": f"({target(docname, number)})="}
            for output in cell["outputs"]:
                output.get("data", {}).pop(CLAIMS, None)
        yield cell


def target(docname: str, number: int) -> str:
    return f"claims-{Path(docname).name}-{number}".replace("_", "-")


def read(app: Sphinx, docname: str, source: list[str]) -> None:
    if app.env.doc2path(docname).endswith(".ipynb"):
        content = json.loads(source[0])
        source[0] = json.dumps(content | {"cells": list(marked(docname, content["cells"]))})


def chapter_rows(name: str, notebook: dict, title: str) -> Iterator[dict]:
    """The claims of a chapter, each with where it is decided: the chapter's title and the address of the cell."""
    tables = [rows for rows in map(claims_of, notebook["cells"]) if rows]
    for number, rows in enumerate(tables, start=1):
        for row in rows:
            yield row | {"chapter": title, "address": f"{name}.html#{target(name, number)}"}


def mentions(row: dict, name: str, place: str) -> bool:
    """Whether a claim is about this place of a source: "Figure 9, top" is about Figure 9, "Figure 19" is not."""
    source, _, where = row["source"].partition(", ")
    return source == name and re.search(rf"\b{re.escape(place)}(?!\w)", where) is not None


def other_rows(sources: dict, tested: list[dict], titles: dict[str, str]) -> Iterator[dict]:
    """What stands at the places of the sources that no chapter's claim is about; ``titles`` has those of the pages."""
    for name, source in sources.items():
        for entry in source["places"]:
            if any(mentions(row, name, entry["place"]) for row in tested):
                continue
            row = {"source": f"{name}, {entry['place']}", "what": entry["claim"], "theirs": "", "ours": "-"}
            row |= {"holds if": "-", "kind": "source", "chapter": "", "address": ""}
            if needs := entry.get("needs"):
                yield row | {"holds if": f"needs {needs}", "verdict": "not run here"}
            elif page := entry.get("proved"):
                yield row | {"verdict": "proved", "chapter": titles[page], "address": f"{page}.html"}
            elif entry.get("illustrates"):
                yield row | {"verdict": "no claim"}
            else:
                raise ExtensionError(
                    f"{name}, {entry['place']} has no row in a chapter; sources.json should say what a test needs."
                )


def order(row: dict, names: list[str]) -> tuple:
    """By source, then by place, where Figure 2 comes before Figure 10."""
    name, _, place = row["source"].partition(", ")
    if name not in names:
        raise ExtensionError(f"{row['what']!r} names the source {name!r}; there are {', '.join(names)}.")
    return names.index(name), [
        (part.isdigit(), int(part) if part.isdigit() else part) for part in re.split(r"(\d+)", place)
    ]


def every_row(folder: Path) -> list[dict]:
    """All claims, in the order of the ledger. ``folder`` has the notebooks and ``data``."""
    sources = json.loads((folder / "data" / "claims" / "sources.json").read_text(encoding="utf-8"))
    notebooks = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.ipynb"))}
    titles = {
        name: "".join(notebook["cells"][0]["source"]).splitlines()[0].removeprefix("# ")
        for name, notebook in notebooks.items()
    }
    rows = [row for name, notebook in notebooks.items() for row in chapter_rows(name, notebook, titles[name])]
    return sorted([*rows, *other_rows(sources, rows, titles)], key=lambda row: order(row, [*sources, OWN]))


def line(row: dict) -> list[nodes.Node]:
    """The cells of one claim."""
    claim = f"{row['what']}: {row['theirs']}" if row["theirs"] else row["what"]
    texts = [nodes.Text(text) for text in (row["source"], claim, row["ours"], row["holds if"], row["verdict"])]
    link = (
        nodes.reference("", row["chapter"], internal=True, refuri=row["address"]) if row["address"] else nodes.Text("")
    )
    return [*texts, link]


def table(rows: list[dict]) -> nodes.table:
    group = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in HEADINGS), cols=len(HEADINGS))
    head, body = nodes.thead(), nodes.tbody()
    group += [head, body]
    for part, lines in ((head, [[nodes.Text(text) for text in HEADINGS]]), (body, map(line, rows))):
        part += [nodes.row("", *(nodes.entry("", nodes.paragraph("", "", cell)) for cell in cells)) for cells in lines]
    return nodes.table("", group, classes=["table", "compact", "ledger"])


class Ledger(Directive):
    """The counts of verdicts, and the table."""

    def run(self) -> list[nodes.Node]:
        env = self.state.document.settings.env
        folder = Path(env.srcdir) / "book"
        for path in (*folder.glob("*.ipynb"), folder / "data" / "claims" / "sources.json"):
            env.note_dependency(str(path))
        rows = every_row(folder)
        counts = nodes.bullet_list()
        for heading, own in (("Claims of the sources", False), ("Our own hypotheses", True)):
            some = Counter(row["verdict"] for row in rows if (row["kind"] == "own") == own)
            text = ", ".join(f"{count} {verdict}" for verdict, count in some.most_common())
            counts += nodes.list_item("", nodes.paragraph("", f"{heading}: {text}."))
        return [counts, table(rows)]


def load_filter(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """The menus' script goes on the ledger's page only."""
    if doctree is not None and any("ledger" in node["classes"] for node in doctree.findall(nodes.table)):
        app.add_js_file("ledger.js", loading_method="defer")


def setup(app: Sphinx) -> dict:
    app.add_directive("ledger", Ledger)
    app.connect("source-read", read)
    app.connect("html-page-context", load_filter)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
