"""Run notebooks as Colab would, all by default: python .ci/colab.py [--packages FREEZE] [--python PYTHON] [NOTEBOOK...]

The script makes a stand-in for Colab's machine in a temporary folder: an environment without this book's package, a
home folder, and a fake module google.colab. It takes each notebook from the last commit, puts it into a separate folder
and runs it from its first cell. This cell fetches less than 20 MB from this repository, whose public address is
redirected to its folder, and installs both packages. The printed text must equal the stored text. Then everything runs
a second time in a new kernel, and the first cell runs twice.

--packages takes a list of versions as `pip freeze` writes it, such as the list that Colab publishes at
https://github.com/googlecolab/backend-info: the environment then has these versions of the packages that the book uses.
Without it the stand-in sees the packages of the environment that runs this script.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
# The packages that run a notebook on Colab, in addition to the requirements of the book.
KERNEL = ("ipykernel", "ipython", "jupyter_client", "jupyter_core", "traitlets", "pyzmq", "tornado", "pillow")
#: The number of bytes that a chapter may fetch.
FETCHED = 20_000_000
FAKE_COLAB = """\
import sys, types
output = types.ModuleType("google.colab.output")
output.enable_custom_widget_manager = lambda *arguments: None
output._widgets = types.SimpleNamespace(_installed_url=None)
colab = types.ModuleType("google.colab")
colab.output = output
sys.modules |= {"google.colab": colab, "google.colab.output": output}
"""


def plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def chosen(freeze: str) -> list[str]:
    """The lines of a `pip freeze` for the packages that the book uses, as NAME==VERSION for the package index."""
    library, book = (tomllib.loads((ROOT / name / "pyproject.toml").read_text())["project"] for name in ("", "book"))
    asked = [*book["dependencies"], *library["dependencies"], *library["optional-dependencies"]["pretrained"], *KERNEL]
    wanted = {plain(re.match(r"[\w.-]+", requirement)[0]) for requirement in asked}
    found = {}
    for line in freeze.splitlines():
        # "torch==2.11.0+cu128", or "torch @ https://.../torch-2.1.0%2Bcu118-cp310-...whl"
        if match := re.match(r"([\w.-]+)(?:==| @ \S+/[\w.]+-)(\d[\w.]*)", line):
            found[plain(match[1])] = match[2]
    if missing := sorted({plain(name) for name in ("torch", "numpy", *KERNEL)} - set(found)):
        raise ValueError(f"the list of packages has no {', '.join(missing)}; it should be what pip freeze writes.")
    return [f"{name}=={version}" for name, version in sorted(found.items()) if name in wanted]


def make_environment(folder: Path, python: str, freeze: str | None) -> Path:
    """Make an environment with everything except the book's package; returns its Python."""
    subprocess.run([python, "-m", "venv", folder], check=True)
    inside = folder / "bin" / "python"
    code = "import sysconfig; print(sysconfig.get_path('purelib'))"
    packages = Path(subprocess.check_output([inside, "-c", code], text=True).strip())
    (packages / "sitecustomize.py").write_text(FAKE_COLAB)
    if freeze is None:
        # A path in a .pth file, unlike a site folder, does not bring the editable installation of this book with it.
        (packages / "parent.pth").write_text(subprocess.check_output([sys.executable, "-c", code], text=True))
    else:
        subprocess.run([inside, "-m", "pip", "install", "--quiet", *chosen(freeze)], check=True)
    return inside


def torch_version(python: Path) -> str:
    code = "from importlib.metadata import version; print(version('torch'))"
    return subprocess.check_output([python, "-c", code], text=True).strip()


def committed(name: str) -> nbformat.NotebookNode:
    source = subprocess.check_output(["git", "-C", ROOT, "show", f"HEAD:book/{name}.ipynb"], text=True)
    return nbformat.reads(source, as_version=4)


def printed(cell: nbformat.NotebookNode) -> list[str]:
    """The text of a cell's outputs: the printed text, and its values as text."""
    texts = [output.get("text", output.get("data", {}).get("text/plain")) for output in cell.outputs]
    return [text for text in texts if text is not None]


def differences(stored: nbformat.NotebookNode, run: nbformat.NotebookNode) -> list[str]:
    found = []
    for index, (was, now) in enumerate(zip(stored.cells, run.cells, strict=True)):
        ignored = {"remove-cell", "nbval-ignore-output"} & set(was.metadata.get("tags", []))
        if was.cell_type == "code" and not ignored and printed(was) != printed(now):
            found.append(f"cell {index} prints {printed(now)} and has stored {printed(was)}")
    return found


def run_as_colab(
    names: list[str], folder: Path, python: str = sys.executable, freeze: str | None = None, twice: bool = True
) -> list[str]:
    """Run the notebooks in ``folder``, each ``twice`` or once; returns a sentence for each failure."""
    home, kernel = folder / "home", folder / "jupyter" / "kernels" / "colab"
    for path in (home, kernel):
        path.mkdir(parents=True)
    inside = make_environment(folder / "colab", python, freeze)
    torch = torch_version(inside)
    url = re.search(r"^  url: *(\S+)", (ROOT / "_config.yml").read_text(), re.M)[1]
    # GitHub's servers serve parts of a repository; git serves parts of a folder only if its settings allow it.
    (home / ".gitconfig").write_text("[uploadpack]\n\tallowFilter = true\n\tallowAnySHA1InWant = true\n")
    git = {f"url.file://{ROOT}.insteadOf": url, "safe.directory": "*"}
    env = {"HOME": str(home), "GIT_CONFIG_COUNT": str(len(git)), "PYTHONPATH": "", "PYTHONNOUSERSITE": "1"}
    for number, (key, value) in enumerate(git.items()):
        env |= {f"GIT_CONFIG_KEY_{number}": key, f"GIT_CONFIG_VALUE_{number}": value}
    command = [str(inside), "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    spec = {"argv": command, "display_name": "Colab", "language": "python", "env": env}
    (kernel / "kernel.json").write_text(json.dumps(spec))
    os.environ["JUPYTER_PATH"] = str(folder / "jupyter")

    wrong = []
    for name in names:
        stored = committed(name)
        place = folder / "content" / name
        place.mkdir(parents=True)
        for attempt in ("first", "second") if twice else ("first",):
            notebook = committed(name)
            installing = next(cell for cell in notebook.cells if cell.cell_type == "code")
            if attempt == "second":
                notebook.cells.insert(notebook.cells.index(installing), installing.copy())
            try:
                client = NotebookClient(
                    notebook, timeout=900, kernel_name="colab", coalesce_streams=True,
                    resources={"metadata": {"path": str(place)}},
                )  # fmt: skip
                client.execute()
            except Exception as error:
                wrong.append(f"{name}, {attempt} run: {error}")
                continue
            if attempt == "second":
                notebook.cells.remove(installing)
            wrong += [f"{name}, {attempt} run: {sentence}" for sentence in differences(stored, notebook)]
            if (said := "".join(printed(installing))).count("\n") != 1:
                wrong.append(f"{name}, {attempt} run: the first cell should print one line, and prints {said!r}")
    fetched = sum(path.stat().st_size for path in (home / "affscore" / ".git").rglob("*") if path.is_file())
    if fetched > FETCHED * len(names):
        wrong.append(f"the first cells fetched {fetched / 1e6:.1f} MB; those of a chapter should fetch less than 20.")
    if (now := torch_version(inside)) != torch:
        wrong.append(f"torch was {torch} and is {now}: an installation must keep Colab's")
    return wrong


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("notebooks", nargs="*", help="names such as relu_1d; all by default")
    parser.add_argument("--packages", type=Path, help="a list of versions as pip freeze writes it")
    parser.add_argument("--python", default=sys.executable, help="the Python of the stand-in")
    arguments = parser.parse_args()
    names = arguments.notebooks or sorted(path.stem for path in (ROOT / "book").glob("*.ipynb"))
    freeze = arguments.packages.read_text() if arguments.packages else None
    with tempfile.TemporaryDirectory() as folder:
        wrong = run_as_colab(names, Path(folder), arguments.python, freeze)
    print(*wrong, f"{len(names)} notebooks, {len(wrong)} findings.", sep="\n")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
