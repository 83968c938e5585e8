"""Fetch the versions that Colab publishes: python3 .ci/colab_versions.py FREEZE [--source URL]

Colab lists the packages of its machines and what else is installed, such as Python, in one repository. The list of
packages is written to FREEZE, for .ci/colab.py, and the version of Python is printed as a workflow takes an output:
`python=3.13`. Needs nothing but Python.
"""

import argparse
import re
import sys
import urllib.request
from pathlib import Path

SOURCE = "https://raw.githubusercontent.com/googlecolab/backend-info/main"
PACKAGES, SYSTEM = "pip-freeze.gpu.txt", "os-info-gpu.txt"


def fetched(source: str, name: str) -> str:
    """A file of Colab's; OSError names it if it is not there."""
    try:
        with urllib.request.urlopen(f"{source}/{name}", timeout=60) as file:
            return file.read().decode()
    except OSError as error:
        raise OSError(f"{source}/{name} cannot be fetched ({error}); has it another name by now?") from error


def python_version(system: str) -> str:
    """The version of Python, such as 3.13, in what `python --version` wrote to a list of what is installed."""
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
