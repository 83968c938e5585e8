"""Sphinx extension: the directive ``claims-that-matter``, the twenty claims of the sources that a reader asks about.

For each claim ``data/claims/matter.json`` holds a sentence in plain words, the networks that it was tested on
(``here``), and the rows of the ledger that measure it: all rows about one place of a source, or only those whose claim
fits the pattern ``only``. The verdict and the numbers come from these rows. A number is shown if all rows have the same
verdict, and the bar is shown if a claim is undecided. ``against`` names the row of the ledger with the strongest
evidence against the claim: the row's ``source``, or the beginning of it, and a pattern that its claim fits. If no
measurement speaks against a claim, ``against`` is null, and the page says so. The measurements are folded, and each has
a link to the cell that decides it.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from ledger import OPEN, every_row, shared, spans
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

NONE = ("", "-")  # what a row without a number has in its place
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


def evidence_against(claim: dict, rows: list[dict]) -> dict | None:
    """The row of the ledger that speaks most against a claim; None where matter.json says that none does."""
    if claim["against"] is None:
        return None
    source, pattern = claim["against"]["source"], claim["against"]["row"]
    found = [row for row in rows if row["source"].startswith(source) and re.search(pattern, row["what"])]
    if len(found) != 1:
        raise ExtensionError(f"matter.json: {len(found)} rows of {source!r} fit {pattern!r}; it should be one.")
    return found[0]


def verdict(rows: list[dict]) -> str:
    """The verdict of the rows if they agree, otherwise the number of times that each verdict occurs, commonest first.

    Rows that were not run do not count if another row was.

    >>> verdict([{"verdict": "agrees"}, {"verdict": "undecided"}, {"verdict": "depends on n"}])
    'mixed: agrees once, undecided once, depends on a setting once'
    >>> verdict([{"verdict": "agrees"}, {"verdict": "not run here"}])
    'agrees'
    """
    run = [row["verdict"] for row in rows if row["verdict"] != OPEN] or [OPEN]
    if (one := shared(run)) != "mixed":
        return one
    short = ("depends on a setting" if text.startswith("depends on") else text for text in run)
    often = {1: "once", 2: "twice"}
    counts = [f"{name} {often.get(count, f'{count} times')}" for name, count in Counter(short).most_common()]
    return f"mixed: {', '.join(counts)}"


def bars(rows: list[dict]) -> str:
    """The bar that lies inside the interval of an undecided claim; "" if the claim is decided.

    >>> bars([{"verdict": "undecided", "holds if": "at least 0.02 (set after a look)"}])
    'undecided: the interval holds both sides of the bar, at least 0.02'
    """
    found = dict.fromkeys(row["holds if"].partition(" (set")[0] for row in rows if row["verdict"] == "undecided")
    if not found:
        return ""
    word = "bar" if len(found) == 1 else "bars"
    return f"undecided: the interval holds both sides of the {word}, {' or '.join(found)}"


def measured(row: dict) -> list[nodes.Node]:
    """A row as a line of text, with the bar if the row is undecided, and a link to the cell that decides it."""
    ours = f": {row['ours']}" if row["ours"] not in NONE else ""
    bar = f" (the bar: {row['holds if'].partition(' (set')[0]})" if row["verdict"] == "undecided" else ""
    line = spans(f"{row['what']}{ours}, {row['verdict']}{bar}")
    if row["address"]:
        line += [nodes.Text(". "), nodes.reference("", row["chapter"], internal=True, refuri=row["address"])]
    return line


def item(claim: dict, rows: list[dict], against: dict | None = None) -> nodes.list_item:
    """The claim, its verdict, the networks it was tested on, the evidence against it, and the folded measurements."""
    said = verdict(rows)
    same = not said.startswith(("mixed", "depends on"))
    first = next((row for row in rows if same and row["ours"] not in NONE), None)
    number = f" ({first['what']}: {first['ours']})" if first else ""
    here = f", {claim['here']}" if "here" in claim else ""
    text = nodes.paragraph("", "", nodes.strong("", claim["says"]), nodes.Text(" "))
    text += [nodes.emphasis("", said[0].upper() + said[1:]), *spans(here + number), nodes.Text(".")]
    if bar := bars(rows):
        text += [nodes.Text(f" ({bar[0].upper() + bar[1:]}.)")]
    contrary = nodes.paragraph("", "", nodes.strong("", "Most against it: "))
    contrary += measured(against) if against else [nodes.Text("nothing that we measured")]
    contrary += [] if against and against["address"] else [nodes.Text(".")]
    found = nodes.bullet_list()
    found += [nodes.list_item("", nodes.paragraph("", "", *measured(row))) for row in rows]
    title = nodes.title("", "One measurement" if len(rows) == 1 else f"{len(rows)} measurements")
    return nodes.list_item("", text, contrary, nodes.admonition("", title, found, classes=["dropdown", "admonition"]))


class Matter(Directive):
    """One numbered list for each source; the numbers continue from list to list."""

    def run(self) -> list[nodes.Node]:
        env = self.state.document.settings.env
        folder = Path(env.srcdir) / "book"
        env.note_dependency(str(folder / "data" / "claims" / "matter.json"))
        out: list[nodes.Node] = []
        every = every_row(folder)
        numbered = enumerate(claims_that_matter(folder, every), start=1)
        for source, claims in groupby(numbered, key=lambda each: each[1][0]["source"]):
            some = list(claims)
            entries = nodes.enumerated_list(enumtype="arabic", prefix="", suffix=".", start=some[0][0])
            entries += [item(claim, rows, evidence_against(claim, every)) for _, (claim, rows) in some]
            out += [nodes.rubric("", PAPERS[source]), entries]
        return out


def setup(app: Sphinx) -> dict:
    app.add_directive("claims-that-matter", Matter)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
