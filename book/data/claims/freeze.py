"""Write every row of the ledger to rows.tsv, or show the changes since then, because a move of code should change none.

    python book/data/claims/freeze.py            # write the rows as they are now
    python book/data/claims/freeze.py --check    # list the rows that differ from rows.tsv; exit status 1 if any does

A row has its source, statement, the source's words or number, our number with its interval, the rule and the verdict.
The chapter that decides it is left out, so that rows may move.
"""

import argparse
import csv
import io
import sys
from collections import Counter
from pathlib import Path

FOLDER = Path(__file__).parent
ROOT = FOLDER.parents[2]
sys.path.insert(0, str(ROOT / "book" / "_ext"))

import ledger  # noqa: E402

COLUMNS = ("source", "what", "theirs", "ours", "holds if", "verdict", "kind", "bracket")


def frozen(rows: list[dict]) -> str:
    """The text of the rows as a sorted table, with a line for the names of the columns."""
    text = io.StringIO()
    writer = csv.writer(text, dialect="excel-tab", lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(sorted(tuple(row.get(name, "") for name in COLUMNS) for row in rows))
    return text.getvalue()


def changes(before: str, now: str) -> list[str]:
    """The removed lines after "-", and the added lines after "+"."""
    old, new = (Counter(text.splitlines()) for text in (before, now))
    return sorted([f"- {line}" for line in (old - new).elements()] + [f"+ {line}" for line in (new - old).elements()],
                  key=lambda line: (line[2:], line[0]))  # fmt: skip


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    table, file = frozen(ledger.every_row(ROOT / "book")), FOLDER / "rows.tsv"
    if not parser.parse_args().check:
        file.write_text(table, encoding="utf-8")
    elif found := changes(file.read_text(encoding="utf-8"), table):
        print(*found, sep="\n")
        sys.exit(1)
