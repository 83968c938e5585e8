"""Notebooks run as on Colab, through their own first cell: weekly, when .ci/colab.py runs all of them too."""

import functools
import http.server
import re
import subprocess
import sys
import threading

import colab
import colab_versions
import pytest
import yaml
from test_notebooks import nbformat, planted, printing

FREEZE = "\n".join(
    ["# Do not modify", *(f"{name}==1.0" for name in colab.KERNEL), "torch==2.11.0+cu128", "numpy==2.0.2", "jax==0.7"]
)


@pytest.mark.weekly  # that all first cells are alike, and that the wheels are complete, is tested every time
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


SYSTEM = """# Do not modify this file directly; it is generated via
#  $ (lsb_release -ds;python --version;) > os-info-gpu.txt
Ubuntu 24.04.3 LTS
Python 3.13.7
R version 4.5.3 (2026-03-11) -- "Reassured Reassurer"
"""


@pytest.fixture
def published(tmp_path):
    """The address of a server that has the files that Colab publishes, and their folder."""
    folder = tmp_path / "published"
    folder.mkdir()
    (folder / colab_versions.PACKAGES).write_text(FREEZE)
    (folder / colab_versions.SYSTEM).write_text(SYSTEM)
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=folder)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}", folder
        server.shutdown()
        thread.join()


def fetch(tmp_path, source):
    command = [sys.executable, colab_versions.__file__, str(tmp_path / "freeze.txt"), "--source", source]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_the_versions_that_colab_publishes_are_fetched(published, tmp_path):
    """Python's as the workflow takes it, the packages' as the stand-in for Colab takes them."""
    done = fetch(tmp_path, published[0])
    assert (done.returncode, done.stdout) == (0, "python=3.13\n")
    assert "torch==2.11.0" in colab.chosen((tmp_path / "freeze.txt").read_text())


@pytest.mark.parametrize(("name", "content", "says"), [
    (colab_versions.PACKAGES, None, "cannot be fetched (HTTP Error 404"),
    (colab_versions.SYSTEM, None, "cannot be fetched (HTTP Error 404"),
    (colab_versions.SYSTEM, "Ubuntu 24.04.3 LTS", "has no line such as 'Python 3.13.7'"),
])  # fmt: skip
def test_missing_file_of_colab_is_one_sentence(published, tmp_path, name, content, says):
    """A file that Colab no longer publishes is an error in one sentence, and nothing is written."""
    source, folder = published
    (folder / colab_versions.PACKAGES).write_text(FREEZE)
    if content is None:
        (folder / name).unlink()
    else:
        (folder / name).write_text(content)
    done = fetch(tmp_path, source)
    assert done.returncode == 1 and name in done.stderr and says in done.stderr and done.stderr.count("\n") == 1
    assert done.stdout == "" and not (tmp_path / "freeze.txt").exists()


def test_weekly_run_takes_python_from_colab():
    """The weekly run takes its version of Python from what Colab publishes."""
    steps = yaml.safe_load((colab.ROOT / ".github/workflows/weekly.yml").read_text())["jobs"]["colab"]["steps"]
    (setup,) = (step["with"] for step in steps if "setup-python" in step.get("uses", ""))
    (fetching,) = (step for step in steps if "colab_versions.py freeze.txt" in step.get("run", ""))
    assert setup["python-version"] == f"${{{{ steps.{fetching['id']}.outputs.python }}}}"
    assert steps.index(fetching) < [step.get("with") for step in steps].index(setup)
