"""The stored byte decoders: complete, as the script writes them, and the kept weights still do what was stored."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from affscore import signature
from affscore_book.transformers.gpt import GPTS
from affscore_book.transformers.gpt_results import GPT_POOLS, kept_gpt, load_gpts
from affscore_study.transformers.gpt_shown import gpt_inputs, gpt_table
from affscore_study.transformers.gpt_training import GPT_MOMENTS, GPT_STEPS

FOLDER = Path(__file__).parents[2] / "book" / "data" / "transformers" / "gpt"
STORED = load_gpts(FOLDER)
NETWORKS = [network for seeds in STORED.values() for network in seeds.values()]


@pytest.mark.parametrize("network", NETWORKS)
def test_every_network_learned_and_has_scores_at_both_ends(network):
    """Every stored network has learned and has scores at its start and at its end."""
    assert network.bits[0] > 7.5 and network.bits[-1] < 3  # pairs of bytes alone give 3.4
    assert network.steps[0] == 0 and network.steps[-1] == GPT_STEPS
    assert network.steps.tolist() == ([0, *GPT_MOMENTS] if network.seed == 0 else [0, GPT_STEPS])
    for pool in GPT_POOLS:
        scores = network.scores[pool]
        assert scores.shape == (len(network.steps), 4)
        ends = scores[[0, -1]]
        assert ((ends > 0) & (ends <= 1)).all()
        assert np.isnan(scores[1:-1]).all() == (pool in ("last", "tokens") or network.seed > 0)
    assert network.mean("last", 0) == pytest.approx(network.scores["last"][0].mean())


def test_stored_files_match_their_names_and_full_precision():
    """Every stored file is of its name, and half precision keeps the network's bits per byte."""
    texts = set()
    for file in (FOLDER / "results").glob("*.json"):
        result = json.loads(file.read_text(encoding="utf-8"))
        assert file.stem == f"{result['network']}-{result['seed']}".replace(" ", "-")
        assert result["bits_stored"] == pytest.approx(result["bits"], abs=0.005)
        assert len(result["history"]) == GPT_STEPS / 100 and result["history"][-1]["loss"] < 2
        texts.add(result["sha256"])
    assert len(texts) == 1  # all were trained on one text
    assert len((FOLDER / "held_out.txt").read_bytes()) == pytest.approx(result["bytes"] / 10, abs=1)


@pytest.mark.weekly  # the notebook measures them with another pool every time
def test_the_stored_weights_give_the_stored_scores():
    network, seen = kept_gpt(FOLDER, 512)
    found = signature(network, [seen], micro_batch=64).scores[0]
    np.testing.assert_allclose(found, STORED["gelu"][0].scores["spatial"][-1], atol=1e-3)


def test_training_moves_gelu_inputs_to_its_flat_side():
    """The inputs at the start are those of linear layers, and training moves them to where GELU is flat."""
    rows = gpt_inputs(FOLDER).rows()
    for row in rows[:4]:  # PyTorch's own start: variance 1/3 of what comes in, which is normalised
        assert abs(row["mean"]) < 0.05 and row["spread"] == pytest.approx(3**-0.5, abs=0.1)
        assert row["above 0"] == pytest.approx(0.5, abs=0.03)
    assert all(row["mean"] < -0.5 and row["above 0"] < 0.3 for row in rows[4:]) and len(rows) == 8


def test_one_table_row_is_the_mean_over_the_seeds():
    table = gpt_table(STORED)
    assert list(table["network"]) == [name for name in GPTS if name in STORED]
    row, seeds = table.rows()[0], STORED["gelu"].values()
    assert row["thousand parameters"] == round(next(iter(seeds)).parameters / 1000)
    assert row["bits"] == pytest.approx(np.mean([network.bits[-1] for network in seeds]))
    assert row["trailing, start"] == pytest.approx(np.mean([network.scores["trailing"][0] for network in seeds]))


def test_missing_and_damaged_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"has no signatures; book/data/transformers/gpt/make\.py writes them"):
        load_gpts(tmp_path / "nowhere")
    for folder in ("results", "signatures"):
        (tmp_path / folder).mkdir()
        shutil.copy(FOLDER / folder / "gelu-0.json", tmp_path / folder)
    assert load_gpts(tmp_path)["gelu"][0].bits[-1] == STORED["gelu"][0].bits[-1]
    file = tmp_path / "signatures" / "gelu-0.json"
    content = json.loads(file.read_text())
    del content["states"]["0"]["bits"]
    file.write_text(json.dumps(content))
    with pytest.raises(ValueError, match=r"gelu-0\.json is not a complete file of book/data/transformers/gpt"):
        load_gpts(tmp_path)
