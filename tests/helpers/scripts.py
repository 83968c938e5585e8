"""The scripts of book/data as modules, for the tests that run them."""

import importlib.util
from pathlib import Path
from typing import Any


def load_script(path: Path) -> Any:
    """The module of a file that is in no package."""
    spec = importlib.util.spec_from_file_location("_".join([*path.parts[-3:-1], path.stem]), path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
