"""Sphinx extension: the directive ``claims-that-matter``, the twenty claims of the sources that a reader asks about.

``data/claims/matter.json`` has a sentence in plain words for each, ``here`` what it was asked of, and which rows of the
ledger measure it: those of a place of a source, or with ``only`` those among them whose claim fits this pattern.
Verdict and numbers are the rows' own; a number is shown where all rows say the same. The measurements are folded, each
with a link to the cell that decides it.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from ledger import every_row, shared, spans
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

NONE = ("", "-")  # of a row without a number
PAPERS = {
    "CVPR 2025": "Bouniot et al. (2025), From AlexNet to transformers",
    "Symmetries": "Godfrey et al. (2022), On the symmetries of deep learning models",
    "Nonlinear Advantage v1": "Mehmeti-Göpel and Disselhoff (2023), Nonlinear advantage: its first abstract",
}


def claims_that_matter(folder: Path, rows: list[dict]) -> Iterator[tuple[dict, list[dict]]]:
    """Each claim and its rows, in the order of the file; ``folder`` holds ``data``."""
    for claim in json.loads((folder / "data" / "claims" / "matter.json").read_text(encoding="utf-8")):
        place, only = f"{claim['source']}, {claim['place']}", claim.get("only", "")
        theirs = [row for row in rows if row["source"] == place and row["kind"] != "own"]
        found = [row for row in theirs if re.search(only, row["what"])]
        if not found:
            raise ExtensionError(f"matter.json: no row of the ledger is about {place!r} that fits {only!r}.")
        yield claim, found


def verdict(rows: list[dict]) -> str:
    """What the rows say: one verdict where they agree on it, else how often each, the most common first.

    >>> verdict([{"verdict": "agrees"}, {"verdict": "undecided"}, {"verdict": "depends on n"}])
    'mixed: agrees once, undecided once, depends on a setting once'
    """
    if (one := shared(row["verdict"] for row in rows)) != "mixed":
        return one
    short = ("depends on a setting" if row["verdict"].startswith("depends on") else row["verdict"] for row in rows)
    often = {1: "once", 2: "twice"}
    counts = [f"{name} {often.get(count, f'{count} times')}" for name, count in Counter(short).most_common()]
    return f"mixed: {', '.join(counts)}"


def item(claim: dict, rows: list[dict]) -> nodes.list_item:
    """The sentence, its verdict, what it was asked of, and the folded measurements."""
    said = verdict(rows)
    same = not said.startswith(("mixed", "depends on"))
    first = next((row for row in rows if same and row["ours"] not in NONE), None)
    number = f" ({first['what']}: {first['ours']})" if first else ""
    here = f", {claim['here']}" if "here" in claim else ""
    text = nodes.paragraph("", "", nodes.strong("", claim["says"]), nodes.Text(" "))
    text += [nodes.emphasis("", said[0].upper() + said[1:]), *spans(here + number), nodes.Text(".")]
    measured = nodes.bullet_list()
    for row in rows:
        ours = f": {row['ours']}" if row["ours"] not in NONE else ""
        line = nodes.paragraph("", "", *spans(f"{row['what']}{ours}, {row['verdict']}"))
        if row["address"]:
            line += [nodes.Text(". "), nodes.reference("", row["chapter"], internal=True, refuri=row["address"])]
        measured += nodes.list_item("", line)
    title = nodes.title("", "One measurement" if len(rows) == 1 else f"{len(rows)} measurements")
    return nodes.list_item("", text, nodes.admonition("", title, measured, classes=["dropdown", "admonition"]))


class Matter(Directive):
    """A numbered list a source, whose numbers go on."""

    def run(self) -> list[nodes.Node]:
        env = self.state.document.settings.env
        folder = Path(env.srcdir) / "book"
        env.note_dependency(str(folder / "data" / "claims" / "matter.json"))
        out: list[nodes.Node] = []
        numbered = enumerate(claims_that_matter(folder, every_row(folder)), start=1)
        for source, claims in groupby(numbered, key=lambda each: each[1][0]["source"]):
            some = list(claims)
            entries = nodes.enumerated_list(enumtype="arabic", prefix="", suffix=".", start=some[0][0])
            entries += [item(claim, rows) for _, (claim, rows) in some]
            out += [nodes.rubric("", PAPERS[source]), entries]
        return out


def setup(app: Sphinx) -> dict:
    app.add_directive("claims-that-matter", Matter)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
