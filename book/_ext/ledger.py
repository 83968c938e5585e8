"""Sphinx extension: the directive ``ledger``, a table with every claim of the sources and of the chapters.

The stored output of a notebook has the rows of each table of claims a second time, as JSON
(``affscore_study.kit.claims``), and the ledger reads this copy. ``data/claims/sources.json`` lists the places of each
source. A place that no claim of a chapter is about has one of these entries:

===============  =====================================================================================
``needs``        what a test of the statement needs
``read``         where the released code shows it to a reader; the code was not run here
``proved``       where its proof is, ``"PAGE#LABEL"`` of a statement or ``"PAGE#HEADING"`` of a section
``shown``        the section that demonstrates it by running code, ``"PAGE#HEADING"``
``cited``        the page that states it and names its author, without a proof
``illustrates``  true: the place only explains something
===============  =====================================================================================

While a chapter is read, a target is put before each of its tables, and the ledger links to it. The rows are plain
table rows. Where a place has several, one more stands before them, with what the source says there and the verdict that
they share; ``ledger.js`` folds them behind it, and puts menus above the table that show some of the rows only.
"""

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

CLAIMS = "application/vnd.affscore.claims+json"
HEADINGS = ("Source", "Claim", "Theirs", "Ours", "Holds if", "Verdict", "Where")
OWN, OPEN, READ = "ours", "not run here", "read, not run"
#: The verdicts of a measurement that is not undecided.
DECIDED = ("agrees", "disagrees", "there before training", "not there before training", "held", "failed")
#: The groups that are counted, by the kind of a source in sources.json; a source without a kind is a paper.
GROUPS = {
    "paper": "The papers and their slides",
    "code": "The released code (AffScoreDeep)",
    "summary": "A summary of a paper, written by a machine; the paper was not at hand (Nonlinear Advantage summary)",
    OWN: "Our own hypotheses",
}
#: The things that several rows wait for, each with a pattern for the names it has there; the first match counts.
MISSING = {
    "torchvision's trained weights, and pictures": "trained weights|of torchvision|, pretrained|trained networks:",
    "CIFAR-10, and networks trained on it": "CIFAR-10|published width|compact convolutional",
    "Broden, and ResNet-50s trained on ImageNet": "Broden|88 epochs",
}
#: A command of affscore, or a single option.
COMMAND = re.compile(
    r"affscore(?: signature|-study (?:suite|report))(?: [\w./]+)?(?: --[a-z-]+(?: (?!for )[\w,./]+)?)*|--[a-z_-]+"
)


def claims_of(cell: dict) -> list[dict]:
    """The rows of the claim tables that a code cell has stored."""
    return [row for output in cell.get("outputs", []) for row in output.get("data", {}).get(CLAIMS, [])]


def marked(docname: str, cells: list[dict]) -> Iterator[dict]:
    """The cells of a page, with a target before each cell with claims and without the JSON, which no page shows."""
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
    """The claims of a chapter, each with the chapter's title and the address of the cell that decides it."""
    tables = [rows for rows in map(claims_of, notebook["cells"]) if rows]
    for number, rows in enumerate(tables, start=1):
        for row in rows:
            yield row | {"chapter": title, "address": f"{name}.html#{target(name, number)}"}


def mentions(row: dict, name: str, place: str) -> bool:
    """Whether a claim is about this place of a source: "Figure 9, top" is about Figure 9, "Figure 19" is not."""
    source, _, where = row["source"].partition(", ")
    return source == name and re.search(rf"\b{re.escape(place)}(?!\w)", where) is not None


def other_rows(sources: dict, tested: list[dict], titles: dict[str, str]) -> Iterator[dict]:
    """A row for each place of the sources without a claim of a chapter; ``titles`` has the titles of the pages."""
    for name, source in sources.items():
        for entry in source["places"]:
            if any(row["kind"] != "own" and mentions(row, name, entry["place"]) for row in tested):
                continue
            row = {"source": f"{name}, {entry['place']}", "what": entry["claim"], "theirs": "", "ours": ""}
            row |= {"holds if": "", "kind": "source", "chapter": "", "address": ""}
            if needs := entry.get("needs"):
                yield row | {"holds if": f"needs {needs}", "verdict": OPEN}
            elif read := entry.get("read"):
                yield row | {"holds if": f"read: {read}", "verdict": READ}
            elif verdict := next((word for word in ("proved", "shown", "cited") if word in entry), ""):
                page, hash_, anchor = entry[verdict].partition("#")
                yield row | {"verdict": verdict, "chapter": titles[page], "address": f"{page}.html{hash_}{anchor}"}
            elif entry.get("illustrates"):
                yield row | {"verdict": "no claim"}
            else:
                raise ExtensionError(
                    f"{name}, {entry['place']} has no row in a chapter; sources.json should say what a test needs."
                )


def order(row: dict, names: list[str]) -> tuple:
    """The key that sorts rows by source, then by place, where Figure 2 comes before Figure 10."""
    name, _, place = row["source"].partition(", ")
    if name not in names:
        raise ExtensionError(f"{row['what']!r} names the source {name!r}; there are {', '.join(names)}.")
    return names.index(name), [
        (part.isdigit(), int(part) if part.isdigit() else part) for part in re.split(r"(\d+)", place)
    ]


def sources_of(folder: Path) -> dict:
    """The sources and their places, in the order of the ledger. ``folder`` has the notebooks and ``data``."""
    return json.loads((folder / "data" / "claims" / "sources.json").read_text(encoding="utf-8"))


def every_row(folder: Path) -> list[dict]:
    """All claims, in the order of the ledger."""
    sources = sources_of(folder)
    notebooks = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in sorted(folder.glob("*.ipynb"))}
    titles = {
        name: "".join(notebook["cells"][0]["source"]).splitlines()[0].removeprefix("# ")
        for name, notebook in notebooks.items()
    }
    rows = [row for name, notebook in notebooks.items() for row in chapter_rows(name, notebook, titles[name])]
    return sorted([*rows, *other_rows(sources, rows, titles)], key=lambda row: order(row, [*sources, OWN]))


# ------------------------------------------------------------------------------------------------ the counts


def group(row: dict, sources: dict) -> str:
    """Whose claim it is, one of :data:`GROUPS`."""
    name = row["source"].partition(", ")[0]
    return OWN if row["kind"] == "own" or name == OWN else sources[name].get("kind", "paper")


def place_of(row: dict, sources: dict) -> tuple[str, str]:
    """The source, and the longest of its places in sources.json that a row names: "Figure 9, top" beats "Figure 9"."""
    name, _, where = row["source"].partition(", ")
    entries = sources[name]["places"] if name in sources else []
    return name, max((e["place"] for e in entries if mentions(row, name, e["place"])), key=len, default=where)


def by_place(rows: list[dict], sources: dict) -> dict[tuple[str, str], str]:
    """For each place of a source the verdict that all its rows share, or "mixed"; our own rows have no place."""
    found = defaultdict(set)
    for row in rows:
        if group(row, sources) != OWN:
            found[place_of(row, sources)].add(row["verdict"])
    return {place: shared(verdicts) for place, verdicts in found.items()}


def shared(verdicts: Iterable[str]) -> str:
    different = set(verdicts)
    return min(different) if len(different) == 1 else "mixed"


def waiting(rows: list[dict]) -> dict[str, list[dict]]:
    """The rows that are not run here, by the thing that they wait for; "" if no other row waits for it."""
    found = defaultdict(list)
    for row in rows:
        if row["verdict"] == OPEN:
            found[next((what for what, words in MISSING.items() if re.search(words, row["holds if"])), "")].append(row)
    return dict(found)


def in_words(verdicts: Iterable[str]) -> str:
    """The number of each verdict in words, the most common verdict first."""
    counts = Counter("depends on a convention" if text.startswith("depends on") else text for text in verdicts)
    return ", ".join(f"{count} {verdict}" for verdict, count in counts.most_common())


def counted(rows: list[dict], sources: dict) -> Iterator[str]:
    """The sentences above the table."""
    places = by_place(rows, sources)
    for key, heading in GROUPS.items():
        some = [row["verdict"] for row in rows if group(row, sources) == key]
        here = [verdict for (name, _), verdict in places.items() if sources[name].get("kind", "paper") == key]
        if here and sorted(here) != sorted(some):
            yield f"{heading}, by place ({len(here)}): {in_words(here)}."
        if some:
            yield f"{heading}, by row ({len(some)}): {in_words(some)}."
    looked = [row for row in rows if row["holds if"].endswith("(set after a look)")]
    asked = [row for row in rows if row.get("bracket", "")[-1:] == "%" and "not estimable" not in row["ours"]]
    decided = [row for row in asked if row["verdict"] in DECIDED]
    levels = Counter(row["bracket"] for row in decided)
    convention = sum(row["verdict"].startswith("depends on") for row in asked)
    late = sum(row["holds if"].endswith("(set after a look)") for row in decided)
    yield (
        f"Rows with a confidence interval: {len(asked)}, of which the interval decides {len(decided)} ("
        + ", ".join(f"{count} at {level}" for level, count in levels.most_common())
        + f"); in {convention} more the verdict depends on a convention. An interval of 95 % that keeps its level "
        "decides wrongly in at most 2.5 % of the rows with one bar, and in at most 5 % of the rows with a range, if "
        f"the bar was set before the numbers were known. For {late} of the decided rows it was set later. The errors "
        "of rows that share data are not independent."
    )
    verdicts = in_words(row["verdict"] for row in looked)
    yield f"Rows whose rule was set after a look at the numbers: {len(looked)} ({verdicts})."


def missing(rows: list[dict]) -> nodes.admonition:
    """A folded list that names each missing thing once, with the rows that wait for it."""
    found = waiting(rows)
    alone = len(found.pop("", []))
    repeated = sum(map(len, found.values()))
    items = nodes.bullet_list()
    for what, some in found.items():
        places: dict[str, Counter] = defaultdict(Counter)
        for row in some:
            name, _, place = row["source"].partition(", ")
            places[name][place] += 1
        lists = (
            f"{name}: " + "; ".join(place + (f" ({count} rows)" if count > 1 else "") for place, count in found.items())
            for name, found in places.items()
        )
        items += nodes.list_item("", nodes.paragraph("", f"{what}, {len(some)} rows. ", *spans(". ".join(lists) + ".")))
    title = f"Not run here: {repeated} rows wait for {len(found)} things, {alone} for something that no other row needs"
    return nodes.admonition("", nodes.title("", title), items, classes=["dropdown", "admonition"])


# ------------------------------------------------------------------------------------------------- the table


def spans(text: str) -> list[nodes.Node]:
    """Text with its commands as code, in which no "--" becomes a dash."""
    parts, end = [], 0
    for match in COMMAND.finditer(text):
        parts += [nodes.Text(text[end : match.start()]), nodes.literal(match[0], match[0])]
        end = match.end()
    return [*parts, nodes.Text(text[end:])]


def line(row: dict) -> list[list[nodes.Node]]:
    """The cells of one claim."""
    link = [nodes.Text(row["chapter"])] if row["chapter"] else []
    if row["address"]:
        link = [nodes.reference("", row["chapter"], internal=True, refuri=row["address"])]
    ours = "" if row["ours"] == "-" else row["ours"]
    texts = (row["source"], row["what"], row["theirs"], ours, row["holds if"], row["verdict"])
    return [*(spans(text) if text else [] for text in texts), link]


def statements(rows: list[dict], sources: dict) -> Iterator[tuple[str, dict]]:
    """Each row with the class of its line; a place with several rows first has a row for the whole place."""
    places = defaultdict(list)  # in order of first appearance: other places may sort between the rows of a place
    for row in rows:
        places[place_of(row, sources)].append(row)
    for (name, place), measured in places.items():
        if len(measured) > 1:
            claims = {entry["place"]: entry["claim"] for entry in sources.get(name, {"places": []})["places"]}
            here = {"source": f"{name}, {place}", "what": claims.get(place, ""), "theirs": "", "ours": ""}
            here |= {"holds if": "", "verdict": shared(row["verdict"] for row in measured)}
            chapters = {row["chapter"] for row in measured} - {""}
            yield "statement", here | {"chapter": ", ".join(sorted(chapters)), "address": ""}
        yield from (("measured" if len(measured) > 1 else "", row) for row in measured)


def table(rows: list[dict], sources: dict) -> nodes.table:
    """The table. On a phone each row is a card, which hides empty cells and does not call a missing rule a rule."""
    columns = nodes.tgroup("", *(nodes.colspec(colwidth=1) for _ in HEADINGS), cols=len(HEADINGS))
    head, body = nodes.thead(), nodes.tbody()
    columns += [head, body]
    lines = [("", [[nodes.Text(text)] for text in HEADINGS])]
    for part, some in ((head, lines), (body, ((kind, line(row)) for kind, row in statements(rows, sources)))):
        for kind, cells in some:
            row = nodes.row("", *(nodes.entry("", nodes.paragraph("", "", *cell)) for cell in cells))
            row["classes"] += [kind] if kind else []
            for entry in row:
                text = entry.astext()
                entry["classes"] += ["why"] if text.startswith("needs ") else [] if text else ["empty"]
            part += row
    return nodes.table("", columns, classes=["table", "compact", "ledger"])


class Ledger(Directive):
    """The directive: the counts of verdicts, the list of missing things, and the table."""

    def run(self) -> list[nodes.Node]:
        env = self.state.document.settings.env
        folder = Path(env.srcdir) / "book"
        for path in (*folder.glob("*.ipynb"), folder / "data" / "claims" / "sources.json"):
            env.note_dependency(str(path))
        rows, sources = every_row(folder), sources_of(folder)
        counts = nodes.bullet_list()
        counts += [nodes.list_item("", nodes.paragraph("", text)) for text in counted(rows, sources)]
        return [counts, missing(rows), table(rows, sources)]


def load_filter(app: Sphinx, pagename: str, templatename: str, context: dict, doctree: nodes.document | None) -> None:
    """Adds the script of the menus to the page of the ledger only."""
    if doctree is not None and any("ledger" in node["classes"] for node in doctree.findall(nodes.table)):
        app.add_js_file("ledger.js", loading_method="defer")


def setup(app: Sphinx) -> dict:
    app.add_directive("ledger", Ledger)
    app.connect("source-read", read)
    app.connect("html-page-context", load_filter)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
