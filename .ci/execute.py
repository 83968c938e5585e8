"""Run notebooks in place and print how long each took: python .ci/execute.py [NOTEBOOK...], all of book/ by default.

Only sources, outputs and execution counts are kept: no timestamps, no widget state and no version of the
Python that ran them, so that a second run changes nothing.
"""

import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parents[1]
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}


def execute(path: Path) -> float:
    """Run one notebook from its own folder, write it back and return the seconds it took."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=900, kernel_name="python3", record_timing=False, store_widget_state=False,
        resources={"metadata": {"path": str(path.parent)}},
    )  # fmt: skip
    start = time.perf_counter()
    client.execute()
    seconds = time.perf_counter() - start
    notebook.metadata.pop("widgets", None)
    notebook.metadata |= {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}
    nbformat.write(notebook, path)
    return seconds


if __name__ == "__main__":
    paths = [Path(argument).resolve() for argument in sys.argv[1:]] or sorted((ROOT / "book").glob("*.ipynb"))
    for path in paths:
        print(f"{path.name:40s} {execute(path):6.1f} s", flush=True)
