"""Notebooks run as on Colab, through their own first cell; .ci/colab.py weekly runs all of them."""

import re

import colab
import pytest
from test_notebooks import nbformat, planted, printing

FREEZE = "\n".join(
    ["# Do not modify", *(f"{name}==1.0" for name in colab.KERNEL), "torch==2.11.0+cu128", "numpy==2.0.2", "jax==0.7"]
)


def test_a_chapter_installs_itself_and_prints_what_is_stored(tmp_path):
    assert colab.run_as_colab(["few_networks"], tmp_path, twice=False) == []


@pytest.mark.weekly
def test_a_first_cell_that_could_not_install_says_so(tmp_path, monkeypatch):
    committed = colab.committed

    def elsewhere(name):
        notebook = committed(name)
        cell = next(cell for cell in notebook.cells if cell.cell_type == "code")
        cell.source = re.sub(r'repository, extras = "[^"]+"', 'repository, extras = "file:///nowhere"', cell.source)
        return notebook

    monkeypatch.setattr(colab, "committed", elsewhere)
    first, second, *rest = colab.run_as_colab(["relu_1d"], tmp_path)
    assert all("Not installed" in each and "Is file:///nowhere public?" in each for each in (first, second))
    assert not rest


def test_the_versions_that_matter_are_chosen():
    lines = colab.chosen(FREEZE)
    assert {"torch==2.11.0", "numpy==2.0.2", "ipykernel==1.0"} <= set(lines)
    assert not any("jax" in line for line in lines)
    address = "torch @ https://download.example.org/whl/cu118/torch-2.1.0%2Bcu118-cp310-cp310-linux_x86_64.whl"
    assert "torch==2.1.0" in colab.chosen(FREEZE.replace("torch==2.11.0+cu128", address))
    with pytest.raises(ValueError, match="no numpy, torch"):
        colab.chosen("\n".join(f"{name}==1.0" for name in colab.KERNEL))


def test_other_text_is_found_but_in_the_cell_that_installs():
    stored, run = planted(**printing("0.71")), planted(**printing("0.72"))
    assert colab.differences(stored, stored) == []
    assert len(colab.differences(stored, run)) == 1
    run = nbformat.from_dict(stored)
    run.cells[0].outputs = nbformat.from_dict(printing("installed\n")["outputs"])
    assert colab.differences(stored, run) == []
