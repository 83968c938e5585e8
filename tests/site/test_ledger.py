"""The ledger of claims: no chapter's claim is missing, each source's list is complete, and its menus work."""

import json
import re
import shlex

import draw
import ledger
import pytest
from docutils import nodes
from grids import each
from sphinx.errors import ExtensionError
from test_browser import opened
from test_notebooks import NOTEBOOKS, ROOT, output, planted

from affscore.cli.main import parser

SOURCES = ledger.sources_of(ROOT / "book")
ENTRIES = [(name, entry) for name, source in SOURCES.items() for entry in source["places"]]
VERDICTS = {
    *ledger.DECIDED, "undecided", "not run here", "proved", "shown", "cited", "no claim", "depends on a convention",
}  # fmt: skip

ROW = {
    "source": "CVPR 2025, Figure 9", "what": "gap", "theirs": "> 0", "ours": "0.71", "holds if": "at least 0",
    "verdict": "agrees", "kind": "source",
}  # fmt: skip


def test_every_claim_of_every_chapter_is_in_the_ledger():
    rows = ledger.every_row(ROOT / "book")
    assert {ledger.in_words([row["verdict"]]).removeprefix("1 ") for row in rows} <= VERDICTS
    for page in NOTEBOOKS:
        # A table of claims shows its verdicts as HTML too: as many rows there as in the ledger.
        shown = 0
        for cell in json.loads((ROOT / f"{page}.ipynb").read_text(encoding="utf-8"))["cells"]:
            for each_output in cell.get("outputs", []):
                table = "".join(each_output.get("data", {}).get("text/html", ""))
                if ">verdict</th>" in table:
                    shown += table.count("<tr>") - 1
        name = page.removeprefix("book/")
        assert sum(row["address"].startswith(f"{name}.html#claims-") for row in rows) == shown


@each(
    ("name", "kind", "count"),
    [("CVPR 2025", "Figure", 19), ("CVPR 2025", "Table", 3), ("Symmetries", "Figure", 28), ("Symmetries", "Table", 4)],
)
def test_the_lists_of_the_papers_are_complete(name, kind, count):
    places = [entry["place"] for entry in SOURCES[name]["places"]]
    found = {int(number) for place in places for number in re.findall(rf"\b{kind} (\d+)", place)}
    assert found == set(range(1, count + 1))
    assert len(places) == len(set(places))


def test_a_claim_stands_under_its_place_and_links_to_its_cell():
    data = {"text/plain": "a table", ledger.CLAIMS: [ROW, ROW | {"what": "other"}]}
    claims = planted(outputs=[output(data)])
    rows = list(ledger.chapter_rows("deep_part", claims, "Deep part"))
    assert [row["what"] for row in rows] == ["gap", "other"]
    assert {row["address"] for row in rows} == {"deep_part.html#claims-deep-part-1"}
    text, cell = list(ledger.marked("book/deep_part", claims["cells"]))[1:]
    assert text["source"] == "(claims-deep-part-1)=" and "text/plain" in cell["outputs"][0]["data"]
    assert ledger.claims_of(cell) == [], "the page would show the JSON"


@each(
    ("entry", "verdict"),
    [
        ({"needs": "a GPU"}, "not run here"),
        ({"proved": "theory#map"}, "proved"),
        ({"because": "1 < 2"}, "proved"),
        ({"shown": "theory#map"}, "shown"),
        ({"cited": "theory"}, "cited"),
        ({"illustrates": True}, "no claim"),
    ],
)
def test_a_place_without_a_chapters_claim_says_why(entry, verdict):
    sources = {"CVPR 2025": {"places": [{"place": "Figure 19", "claim": "rises"} | entry]}}
    (row,) = ledger.other_rows(sources, [ROW], {"theory": "Theory"})
    assert row["verdict"] == verdict and set(row) == {*ROW, "chapter", "address"}
    assert row["address"] in ("", "theory.html" + ("" if "cited" in entry else "#map"))
    tested = ROW | {"source": "CVPR 2025, Figure 19, left"}
    assert list(ledger.other_rows(sources, [tested], {})) == []
    assert len(list(ledger.other_rows(sources, [tested | {"kind": "own"}], {"theory": "Theory"}))) == 1
    with pytest.raises(ExtensionError, match="Figure 19 has no row"):
        list(ledger.other_rows({"CVPR 2025": {"places": [{"place": "Figure 19", "claim": "rises"}]}}, [ROW], {}))


# -------------------------------------------------------------------------------------------- what is counted


def test_a_place_counts_once_and_agrees_only_with_all_its_rows():
    sources = {"CVPR 2025": {"places": [{"place": "Figure 9"}, {"place": "Figure 9, top"}]}}
    rows = [ROW, ROW, ROW | {"source": "CVPR 2025, Figure 9, top", "verdict": "disagrees"}, ROW | {"kind": "own"}]
    expected = {("CVPR 2025", "Figure 9"): "agrees", ("CVPR 2025", "Figure 9, top"): "disagrees"}
    assert ledger.by_place(rows, sources) == expected
    rows += [ROW | {"verdict": "undecided"}, ROW | {"source": "ours, of Figure 9"}]
    assert ledger.by_place(rows, sources) == expected | {("CVPR 2025", "Figure 9"): "mixed"}
    verdicts = ["depends on the start", "agrees", "depends on dead calls"]
    assert ledger.in_words(verdicts) == "2 depends on a convention, 1 agrees"


def test_every_row_is_counted_in_one_group_and_what_no_person_wrote_is_not_among_papers():
    rows = ledger.every_row(ROOT / "book")
    groups = {row["source"].partition(", ")[0]: ledger.group(row, SOURCES) for row in rows if row["kind"] != "own"}
    assert groups["CVPR 2025"] == groups["slides"] == "paper" and groups["AffScoreDeep"] == "code"
    assert groups["Nonlinear Advantage summary"] == "summary" and set(groups.values()) <= set(ledger.GROUPS)
    by_row = [text for text in ledger.counted(rows, SOURCES) if ", by row (" in text]
    assert sum(int(re.search(r"\((\d+)\)", text)[1]) for text in by_row) == len(rows)
    assert sum(int(n) for text in by_row for n in re.findall(r"(\d+) [a-z]", text)) == len(rows)


def test_what_an_interval_decided_and_what_was_set_after_a_look():
    old, new = ROW | {"ours": "0.7 [0.6, 0.8]"}, ROW | {"interval": True}
    silent = [ROW, ROW | {"interval": False}, old | {"verdict": "undecided"}, new | {"verdict": "depends on n"}]
    assert ledger.by_interval([old, new, *silent]) == [old, new]
    seen = ROW | {"holds if": "at least 0 (set after a look)"}
    assert ledger.after_a_look([ROW, seen]) == [seen]
    *_, chance, look = ledger.counted([old] * 20 + [new] * 20 + [seen], SOURCES)
    assert "40 rows" in chance and "2 rows" in chance and "1 rows (1 agrees)" in look


def test_one_missing_download_counts_once_with_the_rows_that_wait_for_it():
    texts = ["4 networks, pretrained: full_run", "torchvision's trained weights and ImageNet", "the inputs"]
    rows = [ROW, *(ROW | {"verdict": "not run here", "holds if": f"needs {text}"} for text in texts)]
    found = ledger.waiting(rows)
    assert sorted(map(len, found.values())) == [1, 2] and found[""] == rows[3:]
    text = ledger.missing([*rows, rows[1] | {"source": "CVPR 2025, Table 1"}]).astext()
    assert "3 rows wait for 1 things, 1 for" in text and "CVPR 2025: Figure 9 (2 rows); Table 1." in text
    assert set(ledger.waiting(ledger.every_row(ROOT / "book"))) == {*ledger.MISSING, ""}


# -------------------------------------------------------------------------------------------- how it is printed


def test_commands_keep_their_dashes_and_run():
    """Typographic quotes make a dash of two hyphens in text, not in code."""
    commands = set()
    for row in ledger.every_row(ROOT / "book"):
        for node in (node for cell in ledger.line(row) for node in cell):
            if isinstance(node, nodes.literal):
                commands.add(node.astext())
            else:
                assert "--" not in node.astext()
    whole = [command for command in commands if command.startswith("affscore ") and "--" in command]
    assert len(whole) > 10
    for command in whole:
        parser().parse_args(shlex.split(command)[1:])  # exits where an option is unknown


@each(
    ("text", "code"),
    [
        ("36: affscore suite --models a,b; then affscore report", ["affscore suite --models a,b", "affscore report"]),
        ("affscore suite paper once for each --dataset of a, b", ["affscore suite paper", "--dataset"]),
        ("affscore signature a --root B --companions for each", ["affscore signature a --root B --companions"]),
        ("affscore gives .49 - .50", []),
    ],
)  # fmt: skip
def test_where_a_command_ends(text, code):
    spans = ledger.spans(text)
    assert [node.astext() for node in spans if isinstance(node, nodes.literal)] == code
    assert "".join(node.astext() for node in spans) == text


def test_a_card_on_a_phone_names_its_numbers_as_the_heading_does():
    css = (ROOT / "book" / "_static" / "affscore_book.css").read_text(encoding="utf-8")
    labels = re.findall(r'table\.ledger td:nth-child\((\d)\)(?::not\(\.why\))?::before \{\s*content: "([^"]*): "', css)
    assert [(int(number), label) for number, label in labels] == list(enumerate(ledger.HEADINGS, start=1))[2:6]
    rows = [ROW | {"ours": "-", "chapter": "", "address": "", "holds if": "needs a GPU"}]
    classes = [entry["classes"] for entry in ledger.table(rows, SOURCES).findall(nodes.entry)]
    assert classes[len(ledger.HEADINGS) :] == [[], [], [], ["empty"], ["why"], [], ["empty"]]


def leaning(row: dict) -> list[str]:
    """What a row says that a reader of this row alone would not understand, or take for something else."""
    ours = re.sub('["“][^"“”]*["”]', "", f"{row['what']} | {row['theirs']}")
    wrong = []
    if re.search(r" less (?!similar|than|so\b|pronounced|often|sharply|linear|non-linear|accura)", ours):
        wrong.append("less for minus")
    if re.match(r"(the same|that|this|those|these|it|its|such)\b", row["what"], re.IGNORECASE):
        wrong.append("it leans on another row")
    if row["source"].partition(", ")[0] == ledger.OWN and row["kind"] != "own":
        wrong.append("ours, and kind is not own")
    return wrong


def test_every_row_is_understood_alone():
    rows = ledger.every_row(ROOT / "book")
    assert [(row["source"], row["what"], wrong) for row in rows if (wrong := leaning(row))] == []
    ours = ROW | {"source": "ours, of Figure 16"}
    for text in ("ViT less ConvNeXt", "the same, untrained", "its size"):
        assert len(leaning(ours | {"what": text})) == 2, "the rule can fail"


def test_rows_are_in_the_order_of_the_source():
    places = ["section 3", "Figure 10", "Figure 9", "Table 1", "Figure 9, top"]
    rows = [ROW | {"source": f"CVPR 2025, {place}"} for place in places]
    ordered = sorted([ROW | {"source": "ours, a"}, *rows], key=lambda row: ledger.order(row, ["CVPR 2025", "ours"]))
    assert [row["source"].partition(", ")[2] for row in ordered] == [
        "Figure 9", "Figure 9, top", "Figure 10", "Table 1", "section 3", "a"
    ]  # fmt: skip
    with pytest.raises(ExtensionError, match="names the source 'CPVR'"):
        ledger.order(ROW | {"source": "CPVR, Figure 1"}, ["CVPR 2025"])


# ----------------------------------------------------------------------------------- what stands on the pages


def cells_at(page: str, anchor: str) -> list[dict]:
    """A statement of a chapter and the cell after it, by its label; or the cells under a heading, by its address."""
    cells = json.loads((ROOT / "book" / f"{page}.ipynb").read_text(encoding="utf-8"))["cells"]
    for number, cell in enumerate(cells):
        if any(tag.endswith(f":{anchor}") for tag in cell["metadata"].get("tags", [])):
            return cells[number : number + 2]
    found, depth = [], 0
    for cell in cells:
        lines = "".join(cell["source"]).splitlines() if cell["cell_type"] == "markdown" else []
        for start, line in enumerate(lines):
            if match := re.match("(#+) (.*)", line):
                if depth and len(match[1]) <= depth:
                    return [*found, cell | {"source": "\n".join(lines[:start])}]
                if nodes.make_id(match[2]) == anchor:
                    depth, cell = len(match[1]), cell | {"source": "\n".join(lines[start:])}
        found += [cell] if depth else []
    return found


def proof_in(cells: list[dict], place: str) -> bool:
    """Whether a labelled statement is followed by its proof, or a section derives something or states the place.

    A section states a place in bold, as in **Lemma E.7.**, and gives the reason in the same cell.
    """
    texts = ["".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown"]
    if re.match(r"\*\*(Theorem|Lemma|Proposition|Corollary)\b", texts[0]):
        tags = cells[1]["metadata"].get("tags", [])
        return "proof" in tags or ("folded" in tags and texts[1].startswith("**Proof"))
    bold = [name for text in texts for name in re.findall(r"\*\*([^*]+)\.\*\*[^.]*\.", text)]
    named = any(re.search(rf"\b{re.escape(place.partition(',')[0])}(?!\w)", name, re.I) for name in bold)
    return named or any("so we derive" in text for text in texts)


@each(("name", "entry"), [(n, e) for n, e in ENTRIES if "proved" in e])
def test_what_is_proved_has_its_proof_on_that_page(name, entry):
    assert proof_in(cells_at(*entry["proved"].split("#")), entry["place"])


@each("entry", [entry for _, entry in ENTRIES if "shown" in entry])
def test_what_is_shown_is_an_output_of_that_section(entry):
    assert any(cell.get("outputs") for cell in cells_at(*entry["shown"].split("#")))


def test_a_draw_hangs_on_the_seed_and_on_the_rows_alone():
    rows = ledger.every_row(ROOT / "book")
    found = draw.drawn(rows)
    assert len({(row["source"], row["what"], row["address"]) for row in found}) == draw.COUNT == 20
    assert {row["verdict"].partition(" on ")[0] for row in found} <= {*ledger.DECIDED, "depends"}
    assert draw.drawn(rows[::-1]) == found != draw.drawn(rows, seed=draw.SEED + 1)
    # A row that goes away lets one in, and moves no other.
    fewer = draw.drawn([row for row in rows if row != found[4]])
    assert [row for row in found if row not in fewer] == [found[4]]
    depends = ROW | {"verdict": "depends on dead calls", "address": ""}
    assert draw.drawn([depends, ROW | {"verdict": "undecided", "address": ""}], count=1) == [depends]
    with pytest.raises(ValueError, match="there are 0 decided rows"):
        draw.drawn([ROW | {"verdict": "proved"}])


def test_a_place_with_several_rows_has_a_statement_before_them():
    places = [{"place": "Figure 9", "claim": "it rises"}, {"place": "Table 1", "claim": "it falls"}]
    sources = {"CVPR 2025": {"places": places}}
    here = ROW | {"chapter": "Part", "address": "part.html"}
    rows = [here, here | {"what": "width", "verdict": "undecided"}, here | {"source": "CVPR 2025, Table 1"}]
    (kind, first), *others = ledger.statements(rows, sources)
    assert (kind, first["source"], first["what"]) == ("statement", "CVPR 2025, Figure 9", "it rises")
    assert (first["verdict"], first["chapter"], first["address"]) == ("mixed", "Part", "")
    assert others == [("measured", rows[0]), ("measured", rows[1]), ("", rows[2])]
    between = [kind for kind, _ in ledger.statements([rows[0], rows[2], rows[1]], sources)]
    assert between == ["statement", "measured", "measured", ""], "another place may sort between"


@pytest.mark.browser
def test_rows_fold_behind_statements_menus_show_some_and_without_javascript_all_are_shown(chromium, site):
    base, body = site.resolve().as_uri() + "/", "table.ledger tbody"
    with opened(chromium, base, "book/claims.html", java_script_enabled=False) as (tab, _):
        total = tab.locator(f"{body} tr:not(.statement)").count()
        assert total == len(ledger.every_row(ROOT / "book")) and tab.locator(f"{body} tr").last.is_visible()
    with opened(chromium, base, "book/claims.html") as (tab, problems):
        assert tab.locator(f"{body} tr.measured:visible").count() == 0
        button = tab.locator(f"{body} tr.statement button").first
        button.focus()
        tab.keyboard.press("Enter")
        assert f"{tab.locator(f'{body} tr.measured:visible').count()} measurements" == button.inner_text()
        verdict = tab.get_by_label("Verdict")
        verdict.focus()
        tab.keyboard.press("ArrowDown")
        chosen = verdict.input_value()
        visible = tab.locator(f"{body} tr:visible")
        assert 0 < visible.count() < total
        assert set(visible.locator("td:nth-child(6)").all_inner_texts()) == {chosen}
        assert tab.locator("form.ledger-filter output").inner_text() == f"{visible.count()} of {total} rows"
        assert problems == []
