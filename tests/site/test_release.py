"""A released edition opens and installs its own tag, and is refused where a version disagrees."""

import json
import shutil

import pytest
import release
from grids import each
from test_notebooks import ROOT

TAG = "v0.3.1"


@pytest.fixture
def tree(tmp_path):
    """What a release reads and writes, with two chapters."""
    (tmp_path / "book").mkdir()
    for name in ("_config.yml", "book/theory.ipynb", "book/relu_1d.ipynb"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("pyproject.toml", "book/pyproject.toml"):
        (tmp_path / name).write_text('[project]\nversion = "0.3.1"\n')
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 0.3.1\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## 0.3.1, today\n")
    return tmp_path


def test_the_rocket_and_the_first_cells_name_the_tag(tree):
    assert len(release.unpinned(tree, TAG)) == 3
    release.pin(tree, TAG)
    assert release.unready(tree, TAG) == release.unpinned(tree, TAG) == []
    assert f"  branch: {TAG}\n" in (tree / "_config.yml").read_text()
    cells = json.loads((tree / "book" / "theory.ipynb").read_text())["cells"]
    first = next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert f"git clone -q --depth 1 --branch {TAG} --filter=blob:none --sparse {{repository}}" in first
    release.pin(tree, "v0.3.2")
    text = (tree / "book" / "theory.ipynb").read_text() + (tree / "_config.yml").read_text()
    assert "v0.3.2" in text and TAG not in text and text.count("--branch") == 1


@each("name", ["pyproject.toml", "book/pyproject.toml", "CITATION.cff", "CHANGELOG.md"])
def test_another_version_is_refused(tree, name):
    before = (tree / name).read_text()
    (tree / name).write_text(before.replace("0.3.1", "0.3.10"))
    assert [sentence.split()[0] for sentence in release.unready(tree, TAG)] == [name]
    (tree / name).write_text(before)
    assert len(release.unready(tree, "0.3")) == 1
