"""The ledger of claims: no chapter's claim is missing, each source's list is complete, and its menus work."""

import json
import re

import ledger
import pytest
from sphinx.errors import ExtensionError
from test_browser import opened
from test_notebooks import NOTEBOOKS, ROOT, planted

SOURCES = json.loads((ROOT / "book" / "data" / "claims" / "sources.json").read_text(encoding="utf-8"))
VERDICTS = {
    "agrees", "disagrees", "undecided", "not run here", "there before training", "not there before training",
    "held", "failed", "proved", "no claim",
}  # fmt: skip

ROW = {
    "source": "CVPR 2025, Figure 9", "what": "gap", "theirs": "> 0", "ours": "0.71", "holds if": "at least 0",
    "verdict": "agrees", "kind": "source",
}  # fmt: skip


def claiming(*rows: dict) -> dict:
    data = {"text/plain": "a table", ledger.CLAIMS: list(rows)}
    return planted(outputs=[{"output_type": "display_data", "data": data, "metadata": {}}])


def test_every_claim_of_every_chapter_is_in_the_ledger():
    rows = ledger.every_row(ROOT / "book")
    assert {row["verdict"] for row in rows} <= VERDICTS
    for page in NOTEBOOKS:
        # A table of claims shows its verdicts as HTML too: as many rows there as in the ledger.
        shown = 0
        for cell in json.loads((ROOT / f"{page}.ipynb").read_text(encoding="utf-8"))["cells"]:
            for output in cell.get("outputs", []):
                table = "".join(output.get("data", {}).get("text/html", ""))
                if ">verdict</th>" in table:
                    shown += table.count("<tr>") - 1
        name = page.removeprefix("book/")
        assert sum(row["address"].startswith(f"{name}.html#claims-") for row in rows) == shown


@pytest.mark.parametrize(
    ("name", "kind", "count"),
    [("CVPR 2025", "Figure", 19), ("CVPR 2025", "Table", 3), ("Symmetries", "Figure", 28), ("Symmetries", "Table", 4)],
)
def test_the_lists_of_the_papers_are_complete(name, kind, count):
    places = [entry["place"] for entry in SOURCES[name]["places"]]
    found = {int(number) for place in places for number in re.findall(rf"\b{kind} (\d+)", place)}
    assert found == set(range(1, count + 1))
    assert len(places) == len(set(places))


def test_a_claim_stands_under_its_place_and_links_to_its_cell():
    claims = claiming(ROW, ROW | {"what": "other"})
    rows = list(ledger.chapter_rows("deep_part", claims, "Deep part"))
    assert [row["what"] for row in rows] == ["gap", "other"]
    assert {row["address"] for row in rows} == {"deep_part.html#claims-deep-part-1"}
    text, cell = list(ledger.marked("book/deep_part", claims["cells"]))[1:]
    assert text["source"] == "(claims-deep-part-1)=" and "text/plain" in cell["outputs"][0]["data"]
    assert ledger.claims_of(cell) == [], "the page would show the JSON"


@pytest.mark.parametrize(
    ("entry", "verdict"),
    [
        ({"needs": "a GPU"}, "not run here"),
        ({"proved": "theory"}, "proved"),
        ({"illustrates": True}, "no claim"),
    ],
)
def test_a_place_without_a_chapters_claim_says_why(entry, verdict):
    sources = {"CVPR 2025": {"places": [{"place": "Figure 19", "claim": "rises"} | entry]}}
    (row,) = ledger.other_rows(sources, [ROW], {"theory": "Theory"})
    assert row["verdict"] == verdict and set(row) == {*ROW, "chapter", "address"}
    tested = ROW | {"source": "CVPR 2025, Figure 19, left"}
    assert list(ledger.other_rows(sources, [tested], {})) == []


def test_a_place_without_a_reason_is_an_error():
    sources = {"CVPR 2025": {"places": [{"place": "Figure 19", "claim": "rises"}]}}
    with pytest.raises(ExtensionError, match="Figure 19 has no row"):
        list(ledger.other_rows(sources, [ROW], {}))


def test_rows_are_in_the_order_of_the_source():
    places = ["section 3", "Figure 10", "Figure 9", "Table 1", "Figure 9, top"]
    rows = [ROW | {"source": f"CVPR 2025, {place}"} for place in places]
    ordered = sorted([ROW | {"source": "ours, a"}, *rows], key=lambda row: ledger.order(row, ["CVPR 2025", "ours"]))
    assert [row["source"].partition(", ")[2] for row in ordered] == [
        "Figure 9", "Figure 9, top", "Figure 10", "Table 1", "section 3", "a"
    ]  # fmt: skip


def test_an_unknown_source_is_an_error():
    with pytest.raises(ExtensionError, match="names the source 'CPVR'"):
        ledger.order(ROW | {"source": "CPVR, Figure 1"}, ["CVPR 2025"])


@pytest.mark.browser
def test_the_menus_show_some_rows_by_keyboard_and_all_without_javascript(chromium, site):
    base, rows = site.resolve().as_uri() + "/", "table.ledger tbody tr"
    with opened(chromium, base, "book/claims.html", java_script_enabled=False) as (tab, _):
        total = tab.locator(rows).count()
        assert total == len(ledger.every_row(ROOT / "book")) and tab.locator(rows).last.is_visible()
    with opened(chromium, base, "book/claims.html") as (tab, problems):
        verdict = tab.get_by_label("Verdict")
        verdict.focus()
        tab.keyboard.press("ArrowDown")
        chosen = verdict.input_value()
        visible = tab.locator(f"{rows}:visible")
        assert 0 < visible.count() < total
        assert set(visible.locator("td:nth-child(5)").all_inner_texts()) == {chosen}
        assert tab.locator("form.ledger-filter output").inner_text() == f"{visible.count()} of {total} rows"
        assert problems == []
