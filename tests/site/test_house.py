"""The rules of the house: who may import whom, what a name means, how long a module is, where its tests are.

CONTRIBUTING.md draws the house. Each rule is a function of a folder, shown failing on a planted one.
"""

from __future__ import annotations

import ast
import functools
import json
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("affscore", "affscore_book", "affscore_study")
#: What runs a cell in the page, and builds the page.
IN_THE_PAGE = ("affscore_book.kit.session", "affscore_book.kit.bundle")
#: Names that only the study calls, and that share private parts with what a lesson calls.
SHARED = {
    "decade.networks.wide_vgg16", "kit.networks.activation_layers", "relu_1d.exact.monotone_score",
    "similarity.channels.unit_channels", "similarity.figures.plot_decay", "similarity.kernels.gram",
    "symmetries.action.mix_channels", "symmetries.detector.violations", "uses.results.load_token_alarms",
}  # fmt: skip
#: What of a chapter's folder nobody else may import.
OWN = {"figures", "exercises", "widget"}


# ------------------------------------------------------------------------------------------- the modules


FLOORS = ["", "zoo", "cli"]  # the rooms of affscore, from the core upwards
CLOCK = re.compile(r"\b(?:perf_counter|process_time|monotonic|thread_time|performance\.now|time\.time)(?:_ns)?\(")


class File(NamedTuple):
    """A file of ours: its package and its room ("" for what lies in the package itself), what it says and imports.

    An import is (module, name in it), with the name "" for a module itself.
    """

    path: Path
    package: str
    room: str
    tree: ast.Module
    imports: list[tuple[str, str]]


@functools.cache
def modules(root: Path) -> dict[str, File]:
    """Every module of the packages by its dotted name."""
    paths = {}
    for top in (root / "affscore", root / "book/affscore_book", root / "book/affscore_study"):
        for path in sorted(top.rglob("*.py")):
            parts = path.relative_to(top.parent).with_suffix("").parts
            paths[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return {module: read(path, set(paths)) for module, path in paths.items()}


def read(path: Path, known: set[str]) -> File:
    """A file, where these modules are ours."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    parts = path.parent.parts
    package = next((name for name in reversed(parts) if name in PACKAGES), "")
    inside = parts[len(parts) - parts[::-1].index(package) :] if package else ()
    return File(path, package, inside[0] if inside else "", tree, imports_of(tree, known))


def imports_of(tree: ast.Module, known: set[str]) -> list[tuple[str, str]]:
    """What code imports of these modules."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (module := node.module or "").split(".")[0] in PACKAGES:
            names = (alias.name for alias in node.names)
            found += [(f"{module}.{name}", "") if f"{module}.{name}" in known else (module, name) for name in names]
        elif isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names if alias.name.split(".")[0] in PACKAGES]
    return found


def lessons(root: Path) -> Iterator[tuple[str, str]]:
    """Name and code of each lesson. ``full_run`` is the study's own page."""
    for path in sorted((root / "book").glob("*.ipynb")):
        if not path.name.startswith("audit_") and path.stem != "full_run":
            cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
            lines = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "code")
            yield path.name, re.sub(r"^( *)[!%].*", r"\1pass", lines, flags=re.MULTILINE)


# ----------------------------------------------------------------------------------------------- the rules


def wrong_directions(root: Path) -> list[str]:
    """Imports that point upwards."""
    known, wrong = modules(root), []
    for module, file in known.items():
        for target in (known[target] for target, _ in file.imports):
            allowed = True
            if file.package == "affscore":
                # The package's face names what it imports when asked for; the last is no more than the command.
                inside = target.package == "affscore" and module not in ("affscore", "affscore.__main__")
                below = inside and FLOORS.index(target.room) <= FLOORS.index(file.room)
                allowed = below if inside else target.package == "affscore"
            elif file.package == "affscore_book" and target.package == "affscore_study":
                allowed = False
            elif file.package == target.package == "affscore_book" and target.room != file.room:
                allowed = target.room == "kit" or (file.room != "kit" and target.path.stem not in OWN)
            if not allowed:
                wrong.append(f"{module} imports {target.path.relative_to(root)}")
    return wrong


def lessons_that_call_the_study(root: Path) -> list[str]:
    """Lessons that import the study: they need the library and the book alone."""
    return [
        f"{name} imports affscore_study"
        for name, code in lessons(root)
        if re.search(r"^ *(?:from|import) affscore_study\b", code, re.MULTILINE)
    ]


def names_no_lesson_needs(root: Path) -> list[str]:
    """Functions and classes of the book's package that no lesson, exercise, widget or command needs.

    They belong to the study. A name counts wherever it stands, so that this finds too few rather than too many.
    """
    known = {module: file for module, file in modules(root).items() if file.package == "affscore_book"}
    defined = {
        (module, node.name): node
        for module, file in known.items()
        for node in file.tree.body
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and node.name != "main"
    }

    def named(tree: ast.AST, module: str, imports: list[tuple[str, str]]) -> set[tuple[str, str]]:
        """The definitions that a piece of code can mean."""
        names = {getattr(part, "id", getattr(part, "attr", "")) for part in ast.walk(tree)}
        inside = {(target, name) for target in [module, *(t for t, n in imports if not n)] for name in names}
        return (inside | {pair for pair in imports if pair[1] in names}) & defined.keys()

    starts = [(ast.parse(code), "") for _, code in lessons(root)]
    starts += [
        (file.tree, module)
        for module, file in known.items()
        if file.room == "course" or file.path.stem in ("exercises", "widget")
    ]
    needed, rest = set(), {pair for pair in defined if pair[0] in IN_THE_PAGE}
    for tree, module in starts:
        rest |= named(tree, module, imports_of(tree, set(known)))
    # What stands at the level of a module runs on its import.
    for module, file in known.items():
        loose = [node for node in file.tree.body if not isinstance(node, ast.FunctionDef | ast.ClassDef)]
        rest |= named(ast.Module(loose, []), module, file.imports)
    while rest:
        needed.add(found := rest.pop())
        rest |= named(defined[found], found[0], known[found[0]].imports) - needed
    idle = {f"{module.removeprefix('affscore_book.')}.{name}" for module, name in defined.keys() - needed}
    stale = [f"{name} needs no exception: a lesson uses it, or it is gone" for name in sorted(SHARED - idle)]
    return [f"{name} serves no lesson" for name in sorted(idle - SHARED)] + stale


def circle(root: Path) -> list[str]:
    """The modules of a circle of imports, or []."""
    known = modules(root)
    try:
        TopologicalSorter({m: {t for t, _ in file.imports} - {m} for m, file in known.items()}).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def is_private(name: str) -> bool:
    return name.startswith("_") and not name.startswith("__")


def private_names(root: Path) -> list[str]:
    """Private names that are used outside their module: imported, or reached through an imported module."""
    known = modules(root)
    scripts = [*(root / "book").glob("data/*/*.py"), *(root / "benchmarks").glob("*.py")]
    found = []
    for path, *_, tree, imports in [*known.values(), *(read(path, set(known)) for path in scripts)]:
        found += [f"{path} imports {name} of {target}" for target, name in imports if is_private(name)]
        froms = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        ours = {a.asname or a.name for node in froms for a in node.names if f"{node.module}.{a.name}" in known}
        reached = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute) and is_private(node.attr)]
        used = [(node.value.id, node.attr) for node in reached if isinstance(node.value, ast.Name)]
        found += [f"{path} uses {module}.{name}" for module, name in used if module in ours]
    return found


def ambiguous_names(root: Path) -> list[str]:
    """Public names (of ``__all__``) that more than one module defines; the face of a package only hands them on."""
    where = defaultdict(list)
    for module, file in modules(root).items():
        top = [] if file.path.stem == "__init__" else file.tree.body
        lists = [node.value for node in top if isinstance(node, ast.Assign) and ast.unparse(node.targets) == "__all__"]
        handed_on = {a.asname or a.name for node in top if isinstance(node, ast.ImportFrom) for a in node.names}
        for name in {name for names in lists for name in ast.literal_eval(names)} - handed_on:
            where[name].append(module)
    return [f"{name}: {', '.join(places)}" for name, places in sorted(where.items()) if len(places) > 1]


def long_modules(root: Path, most: int = 400) -> list[str]:
    """Modules that no student reads in one sitting."""
    lengths = {m: len(file.path.read_text(encoding="utf-8").splitlines()) for m, file in modules(root).items()}
    return [f"{module}: {lines} lines" for module, lines in lengths.items() if lines > most]


def untested_modules(root: Path) -> list[str]:
    """Modules with functions or classes that no test in their room imports."""
    known, used = modules(root), defaultdict(set)
    for path in (root / "tests").glob("*/*.py"):
        used[path.parent.name] |= {target for target, _ in read(path, set(known)).imports}
    return [
        f"{module} has no test in tests/{file.room or 'core'}"
        for module, file in known.items()
        if file.path.name != "__main__.py" and module not in used[file.room or "core"]
        and any(isinstance(node, ast.ClassDef | ast.FunctionDef) for node in file.tree.body)
    ]  # fmt: skip


def asserted_times(root: Path) -> list[str]:
    """Assertions about a time: machines are shared and noisy, so times belong in benchmarks."""
    found = []
    for path in sorted((root / "tests").rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        clocks = {*re.findall(rf"(\w+) = .*{CLOCK.pattern}", text)}
        for line in re.findall(r"^ *assert .*", text, re.MULTILINE):
            if CLOCK.search(line) or clocks & {*re.findall(r"\w+", line)}:
                found.append(f"{path.relative_to(root)} asserts a time:{line}")
    return found


def long_test_names(root: Path, most: int = 60) -> list[str]:
    """Tests whose names do not fit in a line of a test log; the full sentence is in the docstring."""
    return [
        f"{path.relative_to(root)} has a test of {len(name)} characters: {name}"
        for path in sorted((root / "tests").rglob("*.py"))
        for name in re.findall(r"^ *(?:async )?def (test\w*)", path.read_text(encoding="utf-8"), re.MULTILINE)
        if len(name) > most
    ]


RULES = [
    wrong_directions, lessons_that_call_the_study, names_no_lesson_needs, circle, private_names, ambiguous_names,
    long_modules, untested_modules, asserted_times, long_test_names,
]  # fmt: skip


# ----------------------------------------------------------------------------------------------- the tests


@pytest.mark.parametrize("rule", RULES)
def test_the_house_keeps_its_rules(rule):
    assert rule(ROOT) == []


#: A house of a few files that breaks the rules.
PLANTED = {
    "affscore/__init__.py": "",
    "affscore/zoo/__init__.py": "",
    "affscore/score.py": "import affscore_book.kit.stored\ndef f():\n    from affscore.zoo.models import load_model\n",
    "affscore/zoo/models.py": "from affscore.cli.options import device_of\nfrom affscore import score\nscore._root\n",
    "affscore/cli/options.py": "from affscore.zoo.models import _own\n",
    "affscore/files.py": "def cka(): ...\n__all__ = ['cka']\n" + "\n" * 400,
    "book/affscore_book/kit/stored.py": "from affscore_book.theory import measures\n",
    "book/affscore_book/kit/tables.py": "from affscore_study.theory.smooth import roots\n",
    "book/affscore_study/theory/smooth.py": "from affscore_book.theory.figures import roots\n",
    "book/affscore_book/theory/measures.py": "def cka(): ...\n__all__ = ['cka']\n",
    "book/affscore_book/theory/figures.py": "from affscore_book.relu_1d import figures\n",
    "book/affscore_book/relu_1d/figures.py": "from affscore_book.theory.measures import cka\n",
    "book/theory.ipynb": json.dumps({"cells": [{"cell_type": "code", "source": ["import affscore_study.theory\n"]}]}),
    "benchmarks/score.py": "from affscore.score import _root\n",
    "tests/core/test_score.py": "def f():\n    began = perf_counter()\n    assert time() - began < 1\n",
    "tests/core/test_names.py": f"def test_{'x' * 55}(): ...\nclass TestA:\n    def test_{'x' * 56}(self): ...\n",
    "tests/core/test_page.py": "def f():\n    assert page.evaluate('performance.now()') < 9\n",
}


def test_a_planted_house_breaks_every_rule(tmp_path):
    for name, text in PLANTED.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert set(circle(tmp_path)) == {"affscore.zoo.models", "affscore.cli.options"}
    found = {rule.__name__: len(rule(tmp_path)) for rule in RULES if rule is not circle}
    assert found == {
        "wrong_directions": 6, "lessons_that_call_the_study": 1, "private_names": 3,
        "names_no_lesson_needs": 1 + len(SHARED),  # all exceptions are stale there
        "ambiguous_names": 1, "long_modules": 1, "untested_modules": 3, "asserted_times": 2, "long_test_names": 1,
    }  # fmt: skip


HEAVY = ("torch", "scipy", "matplotlib", "sklearn", "torchvision", "safetensors", "affscore.zoo", "affscore_book")


def test_importing_affscore_is_light():
    show = f"print([name for name in {HEAVY} if name in sys.modules])"
    program = f"import sys, affscore\n{show}\nimport affscore.plots\n{show}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "['matplotlib']"]
