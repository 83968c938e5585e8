"""The ledger of claims: no chapter's claim is missing, each source's list is complete, and its menus work.

And above it the twenty claims that matter: words by hand, verdicts and numbers from the rows of the ledger alone.
"""

import json
import math
import re
import shlex

import ledger
import matter
import pytest
from bs4 import BeautifulSoup, Tag
from docutils import nodes
from sphinx.errors import ExtensionError
from test_browser import opened
from test_notebooks import NOTEBOOKS, ROOT, output, planted

from affscore.cli.main import parser
from affscore_study.kit.claims import Claim
from affscore_study.kit.rules import Rule, parse_rules
from affscore_study.suite import command

SOURCES = ledger.sources_of(ROOT / "book")
ROWS = ledger.every_row(ROOT / "book")
VERDICTS = {
    *ledger.DECIDED, "undecided", "not shown", "not run here", "proved", "shown", "cited", "no claim", ledger.READ,
    "depends on a convention", "reproduced with settings that we recovered",
}  # fmt: skip
ROW = {
    "source": "CVPR 2025, Figure 9", "what": "gap", "theirs": "> 0", "ours": "0.71", "holds if": "at least 0",
    "verdict": "agrees", "kind": "source", "chapter": "Theory", "address": "theory.html#claims-theory-1",
}  # fmt: skip


def test_every_claim_of_every_chapter_is_in_the_ledger():
    assert {ledger.in_words([row["verdict"]]).removeprefix("1 ") for row in ROWS} <= VERDICTS
    for page in NOTEBOOKS:
        # A table of claims shows its verdicts as HTML too: as many rows there as in the ledger.
        shown = 0
        for cell in json.loads((ROOT / f"{page}.ipynb").read_text(encoding="utf-8"))["cells"]:
            for each_output in cell.get("outputs", []):
                table = "".join(each_output.get("data", {}).get("text/html", ""))
                if ">verdict</th>" in table:
                    shown += table.count("<tr>") - 1
        name = page.removeprefix("book/")
        assert sum(row["address"].startswith(f"{name}.html#claims-") for row in ROWS) == shown


def single(rule: Rule) -> list[Rule]:
    """A rule, or those of the rows and readings that differ in it."""
    parts = rule.each or rule.readings
    return [one for part in parts.values() for one in single(part)] if parts else [rule]


def is_row_of(rule: Rule, row: dict) -> bool:
    """Whether a row of the ledger says what a rule says, down to the digits that the row shows of the bound."""

    def like(text: str) -> str:
        return ".*".join(map(re.escape, re.split(r"\{\w*\}", text)))

    reading = r" \(.*\)" * bool(rule.depends_on and "{reading}" not in rule.what)
    words = (like(rule.what) + reading, like(rule.source), like(str(rule.theirs)), rule.kind)
    shown = (row["what"], row["source"], row["theirs"], row.get("kind", ""))
    if not all(map(re.fullmatch, words, shown)):
        return False
    if row["ours"] in ("", "-") or rule.accept is None:
        return row["holds if"].startswith("needs ")
    ranges = [rule.accept, *([(rule.mean_at_least, math.inf)] if rule.mean_at_least is not None else [])]
    claims = [Claim(rule.what, rule.source, rule.theirs, 0.0, accept, seen=rule.seen) for accept in ranges]
    return row["holds if"] in {claim.rule(digits) for claim in claims for digits in range(5)}


def rules_without_a_row(text: str, file: str) -> list[str]:
    """Rules of a file that no row of the ledger was decided by."""
    rules = [one for table in parse_rules(text, file).values() for rule in table for one in single(rule)]
    return [rule.where for rule in rules if not any(is_row_of(rule, row) for row in ROWS)]


@pytest.mark.parametrize(
    "path", sorted(ROOT.glob("book/affscore_study/*/claims.toml")), ids=lambda path: path.parent.name
)
def test_every_rule_has_decided_a_row_of_the_ledger(path):
    """A rule that was changed and whose audit was not run again has none."""
    assert rules_without_a_row(path.read_text(encoding="utf-8"), path.parent.name) == []


@pytest.mark.parametrize(
    ("old", "new"), [("at_least = 0.5", "at_least = 0.4"), ("at_most", "at_least"), ("main source", "source")]
)
def test_a_changed_rule_has_no_row(old, new):
    text = (ROOT / "book/affscore_study/relu_1d/claims.toml").read_text(encoding="utf-8")
    assert len(rules_without_a_row(text.replace(old, new), "planted")) == 1


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
    data = {"text/plain": "a table", ledger.CLAIMS: [ROW, ROW | {"what": "other"}]}
    claims = planted(outputs=[output(data)])
    rows = list(ledger.chapter_rows("deep_part", claims, "Deep part"))
    assert [row["what"] for row in rows] == ["gap", "other"]
    assert {row["address"] for row in rows} == {"deep_part.html#claims-deep-part-1"}
    text, cell = list(ledger.marked("book/deep_part", claims["cells"]))[1:]
    assert text["source"] == "(claims-deep-part-1)=" and "text/plain" in cell["outputs"][0]["data"]
    assert ledger.claims_of(cell) == [], "the page would show the JSON"


@pytest.mark.parametrize(
    ("entry", "verdict", "address"),
    [
        ({"needs": "a GPU"}, "not run here", ""),
        ({"read": "in a file, the default"}, "read, not run", ""),
        ({"proved": "theory#map"}, "proved", "theory.html#map"),
        ({"cited": "theory"}, "cited", "theory.html"),
        ({"illustrates": True}, "no claim", ""),
    ],
)
def test_a_place_without_a_chapters_claim_says_why(entry, verdict, address):
    sources, titles = {"CVPR 2025": {"places": [{"place": "Figure 19", "claim": "rises"} | entry]}}, {"theory": "T"}
    (row,) = ledger.other_rows(sources, [ROW], titles)
    assert (row["verdict"], row["address"], set(row)) == (verdict, address, set(ROW))
    tested = ROW | {"source": "CVPR 2025, Figure 19, left"}
    assert list(ledger.other_rows(sources, [tested], titles)) == []
    assert len(list(ledger.other_rows(sources, [tested | {"kind": "own"}], titles))) == 1
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


def test_every_row_is_counted_in_one_group():
    """Every row is counted in one group, and what no person wrote is not among the papers."""
    groups = {row["source"].partition(", ")[0]: ledger.group(row, SOURCES) for row in ROWS if row["kind"] != "own"}
    assert groups["CVPR 2025"] == groups["slides"] == "paper" and groups["AffScoreDeep"] == "code"
    assert groups["Nonlinear Advantage summary"] == "summary" and set(groups.values()) <= set(ledger.GROUPS)
    by_row = [text for text in ledger.counted(ROWS, SOURCES) if ", by row (" in text]
    assert sum(int(re.search(r"\((\d+)\)", text)[1]) for text in by_row) == len(ROWS)
    assert sum(int(n) for text in by_row for n in re.findall(r"(\d+) [a-z]", text)) == len(ROWS)


def test_ledger_counts_intervals_and_late_thresholds():
    """The ledger counts the verdicts that an interval decided and the thresholds that were set after a look."""
    decided, range_ = ROW | {"bracket": "95 %"}, ROW | {"bracket": "range over widths"}
    others = [range_, ROW | {"bracket": ""}, decided | {"verdict": "undecided"}, decided | {"verdict": "depends on n"}]
    others += [ROW | {"bracket": "98.75 %"}] * 80
    seen = ROW | {"holds if": "at least 0 (set after a look)"}
    *_, chance, look = ledger.counted([decided] * 40 + others + [seen], SOURCES)
    assert "122, of which the interval decides 120 (80 at 98.75 %, 40 at 95 %)" in chance and "1 (1 agrees)" in look


def test_missing_download_counts_once_with_its_rows():
    """A missing download counts once and is listed with the rows that wait for it."""
    texts = ["4 networks, pretrained: full_run", "torchvision's trained weights and ImageNet", "the inputs"]
    rows = [ROW, *(ROW | {"verdict": "not run here", "holds if": f"needs {text}"} for text in texts)]
    text = ledger.missing([*rows, rows[1] | {"source": "CVPR 2025, Table 1"}]).astext()
    assert "3 rows wait for 1 things, 1 for" in text and "CVPR 2025: Figure 9 (2 rows); Table 1." in text
    assert set(ledger.waiting(ROWS)) == {*ledger.MISSING, ""}


# -------------------------------------------------------------------------------------------- how it is printed


def test_commands_keep_their_dashes_and_run():
    """Typographic quotes make a dash of two hyphens in text, not in code."""
    commands = set()
    for row in ROWS:
        for node in (node for cell in ledger.line(row) for node in cell):
            if isinstance(node, nodes.literal):
                commands.add(node.astext())
            else:
                assert "--" not in node.astext()
    parsers = {"affscore": parser(), "affscore-study": command.parser()}
    whole = [shlex.split(text) for text in commands if text.startswith("affscore") and "--" in text]
    assert len(whole) > 10
    for program, *arguments in whole:
        parsers[program].parse_args(arguments)  # exits where an option is unknown, or a word follows it
    text = "affscore signature a --root B --companions for each --dataset of a; it gives .49 - .50"
    found = ledger.spans(text)
    code = [node.astext() for node in found if isinstance(node, nodes.literal)]
    assert code == ["affscore signature a --root B --companions", "--dataset"]
    assert "".join(node.astext() for node in found) == text


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
    assert [(row["source"], row["what"], wrong) for row in ROWS if (wrong := leaning(row))] == []
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


def test_a_place_with_several_rows_has_a_statement_before_them():
    places = [{"place": "Figure 9", "claim": "it rises"}, {"place": "Table 1", "claim": "it falls"}]
    sources = {"CVPR 2025": {"places": places}}
    # Another place may sort between.
    rows = [ROW, ROW | {"source": "CVPR 2025, Table 1"}, ROW | {"what": "width", "verdict": "undecided"}]
    (kind, first), *others = ledger.statements(rows, sources)
    assert (kind, first["source"], first["what"]) == ("statement", "CVPR 2025, Figure 9", "it rises")
    assert (first["verdict"], first["chapter"], first["address"]) == ("mixed", "Theory", "")
    assert others == [("measured", rows[0]), ("measured", rows[2]), ("", rows[1])]


# ----------------------------------------------------------------------------------- what stands on the pages


def has_proof(found: Tag, place: str) -> bool:
    """Whether a statement of a page is followed by its proof, or a section derives something or states the place.

    A section states a place in bold, as in **Lemma E.7.**, or as the title of a box, and gives the reason beside it.
    """
    if found.name == "div":
        return found.find_next_sibling().text.strip().startswith("Proof")
    stated = re.compile(rf"\b{re.escape(place.partition(',')[0])}(?!\w)", re.IGNORECASE)
    names = found.select("p > strong:first-child, .dropdown > .admonition-title")
    named = any(stated.search(name.text) and name.parent.text.count(".") > 1 for name in names)
    return named or "so we derive" in found.text


def test_what_is_proved_or_shown_is_on_that_page(site):
    pages: dict[str, BeautifulSoup] = {}
    for entry in (entry for source in SOURCES.values() for entry in source["places"] if {"proved", "shown"} & {*entry}):
        page, anchor = (entry.get("proved") or entry["shown"]).split("#")
        if page not in pages:
            text = (site / "book" / f"{page}.html").read_text(encoding="utf-8")
            pages[page] = BeautifulSoup(text, "html.parser")
        found = pages[page].find(id=anchor)
        assert has_proof(found, entry["place"]) if "proved" in entry else found.select(".cell_output"), entry


@pytest.mark.browser
def test_ledger_rows_fold_and_all_show_without_javascript(chromium, site):
    """Rows fold behind statements and menus select among them; without JavaScript all rows are shown."""
    base, body = site.resolve().as_uri() + "/", "table.ledger tbody"
    with opened(chromium, base, "book/claims.html", java_script_enabled=False) as (tab, _):
        total = tab.locator(f"{body} tr:not(.statement)").count()
        assert total == len(ROWS) and tab.locator(f"{body} tr").last.is_visible()
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


# ------------------------------------------------------------------------------------- the claims that matter


def test_twenty_claims_are_found_and_each_source_has_some():
    found = list(matter.claims_that_matter(ROOT / "book", ROWS))
    assert len(found) == 20 == len({claim["says"] for claim, _ in found})
    assert {claim["source"] for claim, _ in found} == set(matter.PAPERS)
    assert all(claim["says"].endswith(".") and not re.search(r"\d", claim["says"]) for claim, _ in found)
    assert not any(re.search(r"[.,]\d|\.$", claim.get("here", "")) for claim, _ in found)


def test_claims_that_matter_have_the_rows_of_their_place(tmp_path):
    """A claim has the rows of its place that hold its words, and none of our own."""
    claim = {"source": "CVPR 2025", "place": "Figure 9", "says": "It rises.", "only": "gap"}
    (tmp_path / "data" / "claims").mkdir(parents=True)
    (tmp_path / "data" / "claims" / "matter.json").write_text(json.dumps([claim]), encoding="utf-8")
    others = [ROW | {"source": "CVPR 2025, Figure 9, top"}, ROW | {"kind": "own"}, ROW | {"what": "width"}]
    assert list(matter.claims_that_matter(tmp_path, [ROW, *others])) == [(claim, [ROW])]
    with pytest.raises(ExtensionError, match="no row of the ledger is about 'CVPR 2025, Figure 9'"):
        list(matter.claims_that_matter(tmp_path, others))


def test_strongest_evidence_against_a_claim_is_on_the_page():
    """The strongest evidence against a claim is a row that does not agree, and the page shows it."""
    for claim, rows in matter.claims_that_matter(ROOT / "book", ROWS):
        row = matter.evidence_against(claim, ROWS)
        if row is None:  # nothing measured speaks against it
            assert {each["verdict"] for each in rows} <= {"agrees", "proved", "not run here"}, claim["says"]
            assert "Most against it: nothing that we measured." in matter.item(claim, rows).astext()
        else:
            assert row["verdict"] not in ("agrees", "held", "proved", "not run here"), claim["says"]
            assert row["what"] in matter.item(claim, rows, row).astext()
    claim = {"against": {"source": "CVPR 2025", "row": "gap"}}
    assert matter.evidence_against(claim, [ROW]) == ROW
    for rows in ([], [ROW, ROW | {"what": "other gap"}]):
        with pytest.raises(ExtensionError, match=f"{len(rows)} rows of 'CVPR 2025' fit 'gap'"):
            matter.evidence_against(claim, rows)


def test_undecided_names_the_bar_and_unrun_rows_say_nothing():
    """An undecided claim names its bar, and a row that is not run says nothing about the claim."""
    claim = {"says": "It rises."}
    undecided = ROW | {"verdict": "undecided", "holds if": "at least 0.02 (set after a look)"}
    text = matter.item(claim, [undecided, ROW | {"verdict": "not run here", "ours": "-"}]).astext()
    assert "Undecided (gap: 0.71). (Undecided: the interval holds both sides of the bar, at least 0.02.)" in text
    assert "gap: 0.71, undecided (the bar: at least 0.02)" in text
    assert matter.verdict([ROW | {"verdict": "not run here"}]) == "not run here"
    # Undecided means one thing: without an interval, or with one that shows nothing, no row is undecided.
    for row in (row for row in ROWS if row["verdict"] == "undecided"):
        assert row["bracket"] and "not estimable" not in row["ours"] and not row["holds if"].startswith("needs"), row


def test_verdict_and_number_are_the_rows_own():
    claim, other = {"says": "It rises."}, ROW | {"what": "width", "ours": "-", "verdict": "undecided"}
    mixed = matter.item(claim | {"here": "in two networks"}, [other, ROW])
    assert "Mixed: undecided once, agrees once, in two networks." in mixed.astext()
    assert "gap: 0.71, agrees" in mixed.astext() and "width, undecided" in mixed.astext()
    assert {link["refuri"] for link in mixed.findall(nodes.reference)} == {ROW["address"]}
    for row, says in (({}, "Agrees (gap: 0.71)."), ({"ours": "", "verdict": "proved", "address": ""}, "Proved."),
                      ({"verdict": "depends on n"}, "Depends on n.")):  # fmt: skip
        assert says in matter.item(claim, [ROW | row, ROW | row]).astext()
