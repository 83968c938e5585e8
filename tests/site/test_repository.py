"""The repository's public address is kept in _config.yml, and every other mention agrees with it.

A released edition opens and installs its own tag, and is refused where a version disagrees.
"""

import json
import re
import shutil
from pathlib import Path

import pytest
import release
import repository
import yaml

ROOT = Path(__file__).resolve().parents[2]

# In two pieces, or this file would hold stale mentions itself.
OTHER = "some" + "one"


@pytest.fixture
def copy(tmp_path):
    """A copy of some of the files that people wrote."""
    for name in (
        "_config.yml",
        "README.md",
        "CITATION.cff",
        "pyproject.toml",
        "book/intro.md",
        "book/few_networks.ipynb",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copyfile(ROOT / name, tmp_path / name)
    return tmp_path


def test_every_mention_agrees():
    assert repository.disagreements() == []
    assert {"CITATION.cff", "pyproject.toml", "README.md"} <= {path.name for path, _ in repository.mentions()}


def test_colab_links_open_notebooks_on_the_books_branch():
    """Links to Colab open notebooks that exist on the branch of the book."""
    branch = yaml.safe_load((ROOT / "_config.yml").read_text())["repository"]["branch"]
    pattern = re.compile(r"colab\.research\.google\.com/github/[^/\s]+/[^/\s]+/blob/([^/\s]+)/([^\s)\"'\\]+)")
    pages = [path for path in repository.files() if path.suffix in {".md", ".ipynb"}]
    links = [(page.name, *match) for page in pages for match in pattern.findall(page.read_text())]
    assert links
    assert [link for link in links if link[1] != branch or not (ROOT / link[2]).is_file()] == []


STALE = [
    f"https://github.com/{OTHER}/affscore",
    f"git+https://github.com/{OTHER}/affscore.git",
    f"https://colab.research.google.com/github/{OTHER}/else/blob/main/book/intro.ipynb",
    f"https://{OTHER}.github.io/affscore/",
]


def test_every_stale_mention_is_found(copy):
    for file in ("README.md", "book/planted.ipynb"):
        with (copy / file).open("a") as stream:
            stream.writelines(f'"{stale}"\n' for stale in STALE)
        found = [sentence for sentence in repository.disagreements(copy) if file in sentence]
        assert len(found) == len(STALE) and all(OTHER in sentence for sentence in found)


def test_one_command_changes_every_mention_and_changes_it_back(copy):
    url = f"https://github.com/{OTHER}/new.name"
    others = "https://github.com/rhysd/actionlint https://github.com/qbouniot/AffScoreDeep https://pytorch.github.io/x"
    (copy / "other.md").write_text(others)
    before = {path: path.read_text() for path in repository.files(copy)}
    old = "https://github.com/{}/{}".format(*repository.read_address(copy))
    assert repository.set_repository(url, copy) > 3
    assert repository.disagreements(copy) == [] and (copy / "other.md").read_text() == others
    assert repository.read_address(copy) == repository.parse_address(url)
    assert [path for path in repository.files(copy) if old in path.read_text()] == []
    repository.set_repository(old, copy)
    assert {path: path.read_text() for path in repository.files(copy)} == before


@pytest.mark.parametrize(
    "url", ["", "affscore", "http://github.com/a/b", "https://github.com/a", "https://gitlab.com/a/b"]
)
def test_an_address_that_is_none_is_refused_and_nothing_changes(copy, url):
    before = (copy / "_config.yml").read_text()
    with pytest.raises(ValueError, match="should look like"):
        repository.set_repository(url, copy)
    assert (copy / "_config.yml").read_text() == before


# ---------------------------------------------------------------------------------------------- a release


TAG = "v0.3.1"


@pytest.fixture
def released(tmp_path):
    """What a release reads and writes, with two chapters."""
    (tmp_path / "book").mkdir()
    for name in ("_config.yml", "book/theory.ipynb", "book/relu_1d.ipynb"):
        shutil.copy(ROOT / name, tmp_path / name)
    for name in ("pyproject.toml", "book/pyproject.toml"):
        (tmp_path / name).write_text('[project]\nversion = "0.3.1"\n')
    (tmp_path / "CITATION.cff").write_text("cff-version: 1.2.0\nversion: 0.3.1\n")
    (tmp_path / "CHANGELOG.md").write_text("# Changes\n\n## 0.3.1, today\n")
    return tmp_path


def test_the_rocket_and_the_first_cells_name_the_tag(released):
    assert len(release.unpinned(released, TAG)) == 3
    release.pin(released, TAG)
    assert release.unready(released, TAG) == release.unpinned(released, TAG) == []
    assert f"  branch: {TAG}\n" in (released / "_config.yml").read_text()
    cells = json.loads((released / "book" / "theory.ipynb").read_text())["cells"]
    first = next("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
    assert f"git clone -q --depth 1 --branch {TAG} --filter=blob:none --sparse {{repository}}" in first
    release.pin(released, "v0.3.2")
    text = (released / "book" / "theory.ipynb").read_text() + (released / "_config.yml").read_text()
    assert "v0.3.2" in text and TAG not in text and text.count("--branch") == 1


@pytest.mark.parametrize("name", ["pyproject.toml", "book/pyproject.toml", "CITATION.cff", "CHANGELOG.md"])
def test_another_version_is_refused(released, name):
    before = (released / name).read_text()
    (released / name).write_text(before.replace("0.3.1", "0.3.10"))
    assert [sentence.split()[0] for sentence in release.unready(released, TAG)] == [name]
    (released / name).write_text(before)
    assert len(release.unready(released, "0.3")) == 1
