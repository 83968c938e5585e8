"""Fetch the versions that Colab publishes: python3 .ci/colab_versions.py FREEZE [--source URL]

Colab lists the packages of its machines and the other installed programs, such as Python, in one repository. The script
writes the list of packages to FREEZE, for .ci/colab.py, and prints the version of Python in the form of a workflow's
output: `python=3.13`. It needs only Python.
"""

import argparse
import re
import sys
import urllib.request
from pathlib import Path

SOURCE = "https://raw.githubusercontent.com/googlecolab/backend-info/main"
PACKAGES, SYSTEM = "pip-freeze.gpu.txt", "os-info-gpu.txt"


def fetched(source: str, name: str) -> str:
    """The text of one of Colab's files. Raises OSError, with the file's name, if it cannot be fetched."""
    try:
        with urllib.request.urlopen(f"{source}/{name}", timeout=60) as file:
            return file.read().decode()
    except OSError as error:
        raise OSError(f"{source}/{name} cannot be fetched ({error}); has it been renamed?") from error


def python_version(system: str) -> str:
    """The version of Python, such as 3.13, which `python --version` wrote into the list of installed programs."""
    if not (match := re.search(r"^Python (\d+\.\d+)\b", system, re.MULTILINE)):
        raise ValueError(f"{SYSTEM} has no line such as 'Python 3.13.7': {system[:200]!r}.")
    return match[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("freeze", type=Path, help="the file to write the list of packages to")
    parser.add_argument("--source", default=SOURCE, help="where the files are")
    arguments = parser.parse_args()
    try:
        packages, version = fetched(arguments.source, PACKAGES), python_version(fetched(arguments.source, SYSTEM))
    except (OSError, ValueError) as error:
        sys.exit(str(error))
    arguments.freeze.write_text(packages)
    print(f"python={version}")


if __name__ == "__main__":
    main()
