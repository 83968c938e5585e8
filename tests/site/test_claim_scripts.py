"""The scripts that draw rows of the ledger for a referee, and that show what changed in it."""

from pathlib import Path

from scripts import load_script

FOLDER = Path(__file__).resolve().parents[2] / "book" / "data" / "claims"
ROWS = [
    {"chapter": "one", "source": f"paper, {at}", "what": f"gap {at}", "ours": f"0.{at}", "verdict": "agrees"}
    for at in range(9)
]


def test_draw_depends_on_the_seed_and_numbered_rows_alone():
    """A draw depends on the seed and on the rows that have a number, and on nothing else."""
    drawn = load_script(FOLDER / "draw.py").drawn
    rows = drawn([*ROWS, {**ROWS[0], "ours": "-"}], seed=1, count=4)
    assert rows == drawn(ROWS[::-1], seed=1, count=4) and rows != drawn(ROWS, seed=2, count=4)
    assert len({row["what"] for row in rows}) == 4


def test_moved_row_is_no_change_and_changed_row_is_listed():
    """A row that moves is no change, and one that changes is listed as it was and as it is."""
    script = load_script(FOLDER / "freeze.py")
    before = script.frozen(ROWS)
    assert script.changes(before, script.frozen([{**row, "chapter": "two"} for row in ROWS[::-1]])) == []
    planted = [{**ROWS[0], "verdict": "disagrees"}, *ROWS[1:]]
    gone, came = script.changes(before, script.frozen(planted))
    assert gone.startswith("- paper, 0") and came.startswith("+ paper, 0")
    assert "\tagrees\t" in gone and "\tdisagrees\t" in came
