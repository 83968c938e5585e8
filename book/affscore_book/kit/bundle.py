"""Makes one JavaScript module out of several; needs only the standard library, since the build of the pages imports it.

The file of a widget's JavaScript is named after its class: ``ScoreSlider`` is in ``score_slider.js``.
"""

from __future__ import annotations

import functools
import re
from pathlib import Path

__all__ = ["bundle", "sources"]

_IMPORT = re.compile(r'^import \{[^}]*\} from "(\.{1,2}/[\w./]+)";\n', re.MULTILINE)


@functools.cache
def sources() -> dict[str, Path]:
    """The JavaScript files of all widgets of the book, by the name of the class; these files have a default export.

    >>> sources()["ScoreSlider"].name
    'score_slider.js'
    """
    files = sorted(Path(__file__).resolve().parents[1].glob("*/*.js"))
    widgets = (path for path in files if "export default" in path.read_text(encoding="utf-8"))
    return {"".join(word.capitalize() for word in path.stem.split("_")): path for path in widgets}


def bundle(path: Path) -> str:
    """The ES module at ``path``, together with all modules that it imports, as one module without imports.

    Each imported file comes once, before the file that imports it, without its ``export`` keywords. All files share
    one scope. Therefore top-level names must differ (JavaScript reports equal names), an import may not rename, and
    only the outermost file may have a default export.

    Raises
    ------
    ValueError
        If an import does not have the form ``import { a, b } from "./file.js";`` on separate lines, or renames.

    >>> "import" in bundle(Path(__file__).with_name("figure.js"))
    False
    """
    seen: list[Path] = []
    parts: list[str] = []

    def add(file: Path, outermost: bool) -> None:
        file = file.resolve()
        if file in seen:
            return
        seen.append(file)
        text = file.read_text(encoding="utf-8")
        for match in _IMPORT.finditer(text):
            add(file.parent / match[1], outermost=False)
            if " as " in match[0]:
                raise ValueError(f"{file.name} renames an import ({match[0].strip()}); bundling needs one name.")
        text = _IMPORT.sub("", text)
        if re.search(r"^import\b", text, re.MULTILINE):
            raise ValueError(
                f'{file.name} has an import that cannot be bundled; write import {{ a, b }} from "./file.js";'
            )
        if not outermost:
            text = re.sub(r"^export (?=(?:async |function|class|const|let))", "", text, flags=re.MULTILINE)
            if re.search(r"^export\b", text, re.MULTILINE):
                raise ValueError(f"{file.name} has an export that cannot be bundled; export the declaration itself.")
        parts.append(text)

    add(path, outermost=True)
    return "\n".join(parts)
