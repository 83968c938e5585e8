"""What was measured is found by its name; what was not, and a damaged file, is said."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from affscore_book.transformers.bends import load_sentences
from affscore_book.transformers.measured import LIKE_PAIRS, Job, MiniLMScores, load_minilm_scores, nearest_table
from affscore_book.transformers.vits import load_vits
from affscore_study.transformers.bends import SENTENCES

FOLDER = Path(__file__).parents[2] / "book" / "data" / "transformers"
FILE = FOLDER / "minilm" / "scores.json"


@pytest.fixture(scope="module")
def stored() -> MiniLMScores:
    return load_minilm_scores(FILE)


def test_rows_are_those_of_their_names(stored):
    assert stored.of(pool="trailing").tolist() == stored.scores["trained 0|english|32|trailing|all|"]
    assert stored.batches(kind="code", length=8)[2].tolist() == stored.scores["trained 0|code|8|spatial|2|"]
    assert stored.starts("rearranged")[1].tolist() == stored.scores["rearranged 1|english|32|spatial|all|"]
    with pytest.raises(ValueError, match="it should be one of those"):
        stored.of(length=77)


def test_what_is_stored_are_scores_and_laws(stored):
    values = np.array(list(stored.scores.values()))
    assert values.shape[1] == 6 and (values < 1).all() and (values > 0).all()
    for name, line in stored.twins.items():  # a call scores no more than a straight line in its place
        assert (np.array(stored.scores[name]) < np.array(line) + 0.005).all()
    # Masked padding changes nothing.
    assert stored.of(length=0, batch="0", change="padded") == pytest.approx(stored.of(length=0, batch="0"), abs=1e-4)
    for rows in stored.layers.values():
        assert len(rows) == 6
        for row in rows:
            assert row.means.shape == row.spreads.shape == (1536,) and (row.spreads > 0).all()
            assert row.shares.sum() == pytest.approx(1, abs=1e-4) and len(row.edges) == len(row.shares) + 1


def test_texts_and_lines_are_compared_with_english(stored):
    """Texts and their linear twins are compared with English on one batch.

    Each kind of text has a planted score and a line of its own, the same for all six calls.
    """
    levels = {"english": (0.9, 0.99), "code": (0.8, 0.95), "random": (0.6, 0.9)}
    jobs = [Job(weights, kind=kind, batch="0") for weights in ("trained", "random") for kind in levels]
    scores, twins = ({job.name: [levels[job.kind][side]] * 6 for job in jobs} for side in (0, 1))
    rows = replace(stored, scores=scores, twins=twins).text_twins().rows()
    assert [(row["weights"], row["minus English"]) for row in rows] == [
        (weights, kind) for weights in ("trained", "random") for kind in ("code", "random tokens")
    ]
    gaps = [[float(row[column]) for column in ("mean score", "straight line")] for row in rows]
    assert gaps == pytest.approx(np.array([[-0.1, -0.04], [-0.3, -0.09]] * 2), abs=1e-9)
    with pytest.raises(ValueError, match=r"job is 'trained 0\|code\|96\|.*'; it should be one of those whose"):
        stored.line(kind="code", length=96, batch="0")


@pytest.mark.parametrize(("load", "name", "damage", "message"), [
    (load_minilm_scores, "minilm/scores.json", lambda content: content["scores"].update({Job().name: [0.5]}),
     "has no 6 scores"),
    (load_sentences, "minilm/sentences.json",
     lambda content: content["sentences"][SENTENCES[0]]["as written"]["tokens"].pop(), "bends has shape"),
    (load_vits, "vits.json", lambda content: content["scores"]["vit_4|trained|spatial|0"][0].pop(),
     "is not a complete file"),
])  # fmt: skip
def test_damaged_files_are_refused(tmp_path, load, name, damage, message):
    content = json.loads((FOLDER / name).read_text(encoding="utf-8"))
    damage(content)
    (tmp_path / "damaged.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.raises(ValueError, match=message):
        load(tmp_path / "damaged.json")


def test_the_nearest_sentence_is_the_one_of_the_same_meaning():
    table = nearest_table(FILE.with_name("sentences.json"))
    assert [(row["sentence"], row["nearest of six"]) for row in table.rows()] == [*LIKE_PAIRS]
