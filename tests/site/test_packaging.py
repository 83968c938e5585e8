"""Installing both packages where torch already is, as on Colab, leaves that torch alone; and the wheels are complete.

The clean environment is a new virtual environment into which torch and what the package needs are linked from
the running one. pip sees them as installed, and with --no-index it can fetch nothing else, so a requirement that
the installed versions do not meet ends the install.
"""

import importlib.metadata as metadata
import os
import shutil
import subprocess
import sys
import tomllib
import venv
import zipfile
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[2]
LIBRARY, CHAPTERS = (tomllib.loads((ROOT / name / "pyproject.toml").read_text())["project"] for name in ("", "book"))
EXTRAS = LIBRARY["optional-dependencies"] | CHAPTERS["optional-dependencies"]
READER = sorted({*LIBRARY["dependencies"], *CHAPTERS["dependencies"], *EXTRAS["pretrained"]})
#: The folder of a distribution, its package, and the files beside it that the wheel is built from.
DISTRIBUTIONS = {
    "affscore": (ROOT, ("pyproject.toml", "README.md", *LIBRARY["license-files"])),
    "affscore_book": (ROOT / "book", ("pyproject.toml", *CHAPTERS["license-files"])),
}


def run(*command) -> str:
    done = subprocess.run([str(part) for part in command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def needed(lines: list[str], extras: set[str]) -> list[Requirement]:
    """The requirements that apply on this machine, with these extras."""
    requirements = [Requirement(line) for line in lines]
    return [r for r in requirements if not r.marker or any(r.marker.evaluate({"extra": e}) for e in extras or {""})]


def closure(lines: list[str]) -> list[metadata.Distribution]:
    """The installed distributions that the requirements need, directly or not."""
    found: dict[tuple[str, frozenset[str]], metadata.Distribution] = {}
    todo = needed(lines, set())
    while todo:
        requirement = todo.pop()
        key = canonicalize_name(requirement.name), frozenset(requirement.extras)
        if key not in found:
            found[key] = metadata.distribution(requirement.name)
            todo += needed(found[key].requires or [], requirement.extras)
    return list(found.values())


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> dict[str, Path]:
    """The wheel of each package, built from a copy so that nothing is left in the repository."""
    found = {}
    for package, (folder, files) in DISTRIBUTIONS.items():
        source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
        for name in files:
            shutil.copy(folder / name, source)
        shutil.copytree(folder / package, source / package, ignore=shutil.ignore_patterns("__pycache__"))
        run(sys.executable, "-m", "build", "--wheel", "--no-isolation", "--outdir", out, source)
        (found[package],) = out.glob("*.whl")
    return found


def environment(folder: Path, lines: list[str]) -> Path:
    """A new environment that has these requirements already, linked from the running one; the path of its Python."""
    venv.create(folder, with_pip=False, symlinks=True)
    (site,) = folder.glob("lib/python*/site-packages")
    for distribution in closure(lines):
        for top in {file.parts[0] for file in distribution.files or [] if file.parts[0] not in ("..", "__pycache__")}:
            if not (site / top).exists():
                (site / top).symlink_to(Path(distribution.locate_file(top)).resolve())
    return folder / "bin" / "python"


@pytest.mark.parametrize("package", DISTRIBUTIONS)
def test_wheel_holds_exactly_the_files_of_its_package(wheels, package):
    """A wheel holds every file of its package and nothing else."""
    folder = DISTRIBUTIONS[package][0]
    found = (path.relative_to(folder).as_posix() for path in (folder / package).rglob("*") if path.is_file())
    packed = zipfile.ZipFile(wheels[package]).namelist()
    about = f"{package}-{LIBRARY['version']}.dist-info"
    assert {name for name in packed if not name.startswith(about)} == {n for n in found if "__pycache__" not in n}
    assert f"{about}/licenses/LICENSE" in packed


def test_versions_agree_and_no_index_is_asked_for_affscore():
    """Both packages have one version, and the chapters ask no index for the library.

    The name affscore is not ours in an index: a stranger's package could answer.
    """
    assert LIBRARY["version"] == CHAPTERS["version"]
    lines = sum(CHAPTERS["optional-dependencies"].values(), CHAPTERS["dependencies"])
    assert not [line for line in lines if Requirement(line).name.startswith("affscore")]


def test_the_chapters_without_the_library_name_the_command(wheels, tmp_path):
    python = environment(tmp_path, [])
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps",
        wheels["affscore_book"])  # fmt: skip
    done = subprocess.run([python, "-I", "-c", "import affscore_book"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "ImportError: affscore_book needs the library affscore" in done.stderr
    assert "pip install -e . -e book" in done.stderr


SCRIPT = """
import torch
from torch import nn
from affscore import Signature, affinity_score, load_dataset, load_model, signature

x = torch.randn(50, 8)
found: Signature = signature(nn.ReLU(), [x, x], calls="*", companions=True, **vars(Settings(covariance="empirical")))
at = found.mean.tolist().index(min(found.mean.tolist()))
where: tuple[str, int] = found.calls[at].name, len(Signature.load("again.json"))
rows: list[dict[str, object]] = found.rows()
step: float = float(affinity_score(x, x.relu()))
photographs = load_dataset("photographs", preprocess=load_model("efficientnet_lite0").preprocess, batch_size=64)
wrong: int = found.pool
"""


@pytest.mark.weekly
def test_a_type_checker_reads_the_wheel(wheels, tmp_path):
    """Without py.typed everything would be Any, and the last line would pass."""
    python = environment(tmp_path / "environment", READER)
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", "--no-deps",
        wheels["affscore"])  # fmt: skip
    (tmp_path / "script.py").write_text(SCRIPT)
    # Reading torch and what it needs would take minutes.
    (tmp_path / "mypy.ini").write_text("[mypy]\nstrict = True\n[mypy-torch.*,numpy.*,scipy.*]\nfollow_imports = skip\n")
    options = ("--python-executable", python, "--config-file", "mypy.ini", "--cache-dir", os.devnull)
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *map(str, options), "script.py"],
        cwd=tmp_path, env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"}, capture_output=True, text=True,
        check=False,
    )  # fmt: skip
    assert [line.split(": ", 2)[2] for line in done.stdout.splitlines() if ": error: " in line] == [
        'Incompatible types in assignment (expression has type "str", variable has type "int")  [assignment]'
    ], done.stdout


def test_affscore_asks_for_numpy_scipy_and_torch_alone():
    assert sorted(Requirement(line).name for line in LIBRARY["dependencies"]) == ["numpy", "scipy", "torch"]


@pytest.mark.weekly  # that importing it imports no more is tested every time, in test_house.py
def test_affscore_alone_needs_numpy_scipy_and_torch(wheels, tmp_path):
    """And says in a sentence what a figure, a progress bar, a network by name or the command line needs beside them."""
    python = environment(tmp_path, LIBRARY["dependencies"])
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-index", wheels["affscore"])
    program = """
import importlib.util, affscore, torch
assert not any(map(importlib.util.find_spec, ("matplotlib", "tqdm", "safetensors", "torchvision", "sklearn")))
x = torch.randn(50, 4, generator=torch.Generator().manual_seed(0))
model = torch.nn.Sequential(torch.nn.Linear(4, 5), torch.nn.ReLU())
found = affscore.signature(model, [x, x], companions=True)
print(found)
print(0 < affscore.affinity_score(x, x.relu()).item() < 1)
from affscore.zoo.models import load_model
for needy in (found.plot, lambda: affscore.signature(model, [x], progress=True), lambda: load_model("resnet18")):
    try:
        needy()
    except ImportError as error:
        print(error)
"""
    lines = run(python, "-I", "-c", program).splitlines()
    assert lines[0].startswith("Signature of Sequential: 1 activation call") and lines[1] == "True"
    assert ["pip install" in line for line in lines[2:]] == [True] * 3
    assert "the affinity score of every activation call" in run(python, "-I", "-m", "affscore", "--help")


def requirements(file: str) -> dict[str, Requirement]:
    """The requirements of a file by package."""
    lines = (line.split("#")[0].strip() for line in (ROOT / file).read_text().splitlines())
    return {canonicalize_name(found.name): found for found in map(Requirement, filter(None, lines))}


def test_colabs_versions_are_within_the_ranges():
    ranges = {requirement.name: requirement for requirement in map(Requirement, READER)}
    for name, versions in {"ipywidgets": ("7.7.1", "8.1.7"), "torch": ("2.8.0+cu126", "2.15.0")}.items():
        assert all(map(ranges[name].specifier.contains, versions))


def test_lock_files_are_complete_and_pages_need_no_torch():
    """The lock files are complete and within the ranges, and the pages need no PyTorch."""
    locked, pages = requirements("requirements.lock"), requirements("pages.lock")
    for requirement in map(Requirement, [*READER, *(line for lines in EXTRAS.values() for line in lines)]):
        (pin,) = locked[canonicalize_name(requirement.name)].specifier
        assert pin.operator == "==" and requirement.specifier.contains(pin.version), requirement
    assert not any(pin.url for pin in locked.values()) and len(pages) < len(locked)
    assert all(locked[name].specifier == pin.specifier for name, pin in pages.items())
    assert not {"torch", "torchvision", "scipy", "anywidget", "transformers", "jupyterlab"} & pages.keys()
    # What each of the pages' needs is there too, since they are installed with --no-deps.
    assert {canonicalize_name(found.metadata["Name"]) for found in closure(EXTRAS["pages"])} <= pages.keys()
