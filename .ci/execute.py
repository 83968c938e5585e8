"""Run notebooks in place and print how long each took: python .ci/execute.py [NOTEBOOK...], all of book/ by default.

The script writes the times to book/data/run_times.csv; the head of each page shows them. It stores solutions folded.

Plots are drawn with twice the pixels of the screen and stored with a palette, so that they are sharp and small.

The script keeps only sources, outputs and execution counts: no timestamps, no widget state and no version of Python.
A second run therefore changes nothing.
"""

import base64
import csv
import io
import sys
import time
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from PIL import Image, ImageChops, ImageStat

ROOT = Path(__file__).resolve().parents[1]
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}


def execute(path: Path) -> float:
    """Run one notebook from its own folder, write it back and return the seconds it took."""
    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook, timeout=900, kernel_name="python3",
        record_timing=False, coalesce_streams=True, extra_arguments=["--InlineBackend.figure_formats={'retina'}"],
        resources={"metadata": {"path": str(path.parent)}},
    )  # fmt: skip
    start = time.perf_counter()
    client.execute()
    seconds = time.perf_counter() - start
    notebook.metadata.pop("widgets", None)
    notebook.metadata |= {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}
    fold_solutions(notebook)
    shrink_pictures(notebook)
    nbformat.write(notebook, path)
    return seconds


#: The sizes of a palette, and the largest difference between a stored and a drawn colour (root mean square, of 255).
PALETTES, COLOUR_ERROR = (32, 128), 2.0


def shrunk(png: bytes) -> bytes:
    """A plot with the smallest palette that suffices; a picture with more colours (a photograph) at half its size."""
    with Image.open(io.BytesIO(png)) as file:
        image = file.convert("RGB")
    for colours in PALETTES:
        small = image.quantize(colours, method=Image.Quantize.MEDIANCUT, dither=Image.Dither.NONE)
        if max(ImageStat.Stat(ImageChops.difference(image, small.convert("RGB"))).rms) <= COLOUR_ERROR:
            break
    else:
        small = image.resize((image.width // 2, image.height // 2), Image.Resampling.LANCZOS)
    stored = io.BytesIO()
    small.save(stored, "png", optimize=True)
    return stored.getvalue()


def shrink_pictures(notebook: nbformat.NotebookNode) -> None:
    """Replace every PNG of a notebook that has just run by the result of :func:`shrunk`."""
    for cell in notebook.cells:
        for output in cell.get("outputs", []):
            if "image/png" in output.get("data", {}):
                small = shrunk(base64.b64decode(output.data["image/png"]))
                output.data["image/png"] = base64.b64encode(small).decode()


def fold_solutions(notebook: nbformat.NotebookNode) -> None:
    """Mark the heading of each solution as folded, for JupyterLab (in the cell) and for Colab (in the notebook)."""
    headings = []
    for cell in notebook.cells:
        labels = [tag.partition(":")[2] for tag in cell.metadata.get("tags", []) if tag.startswith("solution:")]
        if labels and cell.source.startswith("#### "):
            cell.metadata |= {"id": f"solution-{labels[0]}", "jp-MarkdownHeadingCollapsed": True}
            headings.append(cell.metadata.id)
    if headings:
        notebook.metadata["colab"] = {"collapsed_sections": headings}


def title(path: Path) -> str:
    """The first heading of a notebook."""
    first = nbformat.read(path, as_version=4).cells[0].source
    return next(line for line in first.splitlines() if line.startswith("# ")).removeprefix("# ").strip()


def note_times(times: dict[Path, float]) -> None:
    """Replace the chapters' rows in the table of run times, and drop chapters that no longer exist."""
    table = ROOT / "book" / "data" / "run_times.csv"
    rows = {}
    if table.exists():
        with table.open(newline="", encoding="utf-8") as file:
            rows = dict(list(csv.reader(file))[1:])
    rows |= {title(path): f"{seconds:.0f}" for path, seconds in times.items()}
    chapters = [title(path) for path in sorted((ROOT / "book").glob("*.ipynb"))]
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["Chapter", "Seconds"])
        writer.writerows((chapter, rows[chapter]) for chapter in chapters if chapter in rows)


if __name__ == "__main__":
    paths = [Path(argument).resolve() for argument in sys.argv[1:]] or sorted((ROOT / "book").glob("*.ipynb"))
    times = {}
    for path in paths:
        times[path] = execute(path)
        print(f"{path.name:40s} {times[path]:6.1f} s", flush=True)
    note_times(times)
