"""The rules of the house: who may import whom, what a name means, how long a module is, where its tests are.

CONTRIBUTING.md draws the house. Each rule is a function of a folder, shown failing on a planted one.
"""

from __future__ import annotations

import ast
import functools
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

from grids import each

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("affscore", "affscore_book")
#: What of a chapter's folder nobody else may import.
OWN = {"figures", "exercises", "widget"}


# ------------------------------------------------------------------------------------------- the modules


FLOORS = ["", "zoo", "suite", "cli"]  # the rooms of affscore, from the core upwards
CLOCK = re.compile(r"\b(perf_counter|process_time|monotonic|thread_time|performance\.now|time\.time)(_ns)?\(")


def modules(root: Path) -> dict[str, Path]:
    """Every module of both packages by its dotted name."""
    found = {}
    for top in (root / "affscore", root / "book" / "affscore_book"):
        for path in sorted(top.rglob("*.py")):
            parts = path.relative_to(top.parent).with_suffix("").parts
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


@functools.cache
def parsed(text: str) -> ast.Module:
    """The tree of a file; all rules read the same files, and change none."""
    return ast.parse(text)


def tree_of(path: Path) -> ast.Module:
    return parsed(path.read_text(encoding="utf-8"))


@functools.cache
def names_imported(tree: ast.Module) -> list[tuple[str, str]]:
    """What a file imports of ours: module and name in it, "" for ``import MODULE``."""
    found = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
            found += [(node.module or "", alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names if alias.name.split(".")[0] in PACKAGES]
    return found


def imports(path: Path, known: set[str]) -> Iterator[tuple[str, str]]:
    """What a file imports of ours: module and name in it, "" for the module itself."""
    for module, name in names_imported(tree_of(path)):
        yield (f"{module}.{name}", "") if f"{module}.{name}" in known else (module, name)


def room(path: Path) -> tuple[str, str]:
    """Package and folder of a file; the folder is "" for what lies in the package itself."""
    parts = path.parent.parts
    package = next(name for name in reversed(parts) if name in PACKAGES)
    inside = parts[len(parts) - parts[::-1].index(package) :]
    return package, inside[0] if inside else ""


# ----------------------------------------------------------------------------------------------- the rules


def wrong_directions(root: Path) -> list[str]:
    """Imports that point upwards."""
    known, wrong = modules(root), []
    for module, path in known.items():
        package, folder = room(path)
        for target, _ in imports(path, set(known)):
            to_package, to_folder = room(known[target])
            allowed = True
            if package == "affscore":
                # The package's face names what it imports when asked for; the last is no more than the command.
                inside = to_package == "affscore" and module not in ("affscore", "affscore.__main__")
                allowed = FLOORS.index(to_folder) <= FLOORS.index(folder) if inside else to_package == "affscore"
            elif to_package == "affscore_book" and to_folder != folder:
                last = target.rsplit(".", 1)[-1]
                allowed = to_folder == "kit" if folder == "kit" else to_folder == "kit" or last not in OWN
            if not allowed:
                wrong.append(f"{module} imports {target}")
    return wrong


def circle(root: Path) -> list[str]:
    """The modules of a circle of imports, or []."""
    known = modules(root)
    graph = {m: {t for t, _ in imports(path, set(known)) if t in known and t != m} for m, path in known.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def private_names(root: Path) -> list[str]:
    """Private names that are used outside their module: imported, or reached through an imported module."""
    known, found = modules(root), []
    scripts = [*(root / "book").glob("data/*/*.py"), *(root / "benchmarks").glob("*.py")]
    for path in [*known.values(), *scripts]:
        aliases = set()
        tree = tree_of(path)
        for target, name in imports(path, set(known)):
            if name.startswith("_") and not name.startswith("__"):
                found.append(f"{path.relative_to(root)} imports {name} of {target}")
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in PACKAGES:
                aliases |= {a.asname or a.name for a in node.names if f"{node.module}.{a.name}" in known}
        for node in ast.walk(tree):
            private = isinstance(node, ast.Attribute) and node.attr.startswith("_") and not node.attr.startswith("__")
            if private and isinstance(node.value, ast.Name) and node.value.id in aliases:
                found.append(f"{path.relative_to(root)} uses {node.value.id}.{node.attr}")
    return found


def ambiguous_names(root: Path) -> list[str]:
    """Public names (of ``__all__``) that more than one module defines."""
    where = defaultdict(list)
    for module, path in modules(root).items():
        tree = tree_of(path)
        defined = {node.name for node in tree.body if isinstance(node, ast.ClassDef | ast.FunctionDef)}
        public: list[str] = []
        for node in tree.body:
            if isinstance(node, ast.Assign):
                targets = [t.id for target in node.targets for t in ast.walk(target) if isinstance(t, ast.Name)]
                defined |= set(targets)
                if targets == ["__all__"]:
                    public = ast.literal_eval(node.value)
            elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
                defined.add(node.target.id)
        for name in public:
            if name in defined:
                where[name].append(module)
    return [f"{name}: {', '.join(places)}" for name, places in sorted(where.items()) if len(places) > 1]


def long_modules(root: Path, most: int = 400) -> list[str]:
    """Modules that no student reads in one sitting."""
    lengths = {module: len(path.read_text(encoding="utf-8").splitlines()) for module, path in modules(root).items()}
    return [f"{module}: {lines} lines" for module, lines in lengths.items() if lines > most]


def untested_modules(root: Path) -> list[str]:
    """Modules with functions or classes that no test in their room imports."""
    known, missing = modules(root), []
    used: dict[str, set[str]] = {}
    for module, path in known.items():
        tree = tree_of(path)
        if path.name == "__main__.py" or not any(isinstance(n, ast.ClassDef | ast.FunctionDef) for n in tree.body):
            continue
        name = room(path)[1] or "core"
        if name not in used:
            tests = (root / "tests" / name).glob("*.py")
            used[name] = {target for test in tests for target, _ in imports(test, set(known))}
        if module not in used[name]:
            missing.append(f"{module} has no test in tests/{name}")
    return missing


def asserted_times(root: Path) -> list[str]:
    """Assertions about a time: machines are shared and noisy, so times belong in benchmarks."""
    found = []
    for path in sorted((root / "tests").rglob("*.py")):
        if not CLOCK.search(path.read_text(encoding="utf-8")):
            continue
        for function in [node for node in ast.walk(tree_of(path)) if isinstance(node, ast.FunctionDef)]:
            timed = [n for n in ast.walk(function) if isinstance(n, ast.Assign) and CLOCK.search(ast.unparse(n))]
            names = {name.id for n in timed for name in ast.walk(n) if isinstance(name, ast.Name)} - {"time"}
            for check in [node for node in ast.walk(function) if isinstance(node, ast.Assert)]:
                used = {node.id for node in ast.walk(check) if isinstance(node, ast.Name)}
                if CLOCK.search(ast.unparse(check)) or used & names:
                    found.append(f"{path.relative_to(root)}:{check.lineno} asserts a time")
    return found


RULES = [wrong_directions, circle, private_names, ambiguous_names, long_modules, untested_modules, asserted_times]


# ----------------------------------------------------------------------------------------------- the tests


@each("rule", RULES)
def test_the_house_keeps_its_rules(rule):
    assert rule(ROOT) == []


#: A house of a few files that breaks the rules.
PLANTED = {
    "affscore/__init__.py": "",
    "affscore/zoo/__init__.py": "",
    "affscore/score.py": "import affscore_book.kit.claims\ndef f():\n    from affscore.zoo.models import load_model\n",
    "affscore/zoo/models.py": "from affscore.cli.options import device_of\nfrom affscore import score\nscore._root\n",
    "affscore/cli/options.py": "from affscore.zoo.models import _own\n",
    "affscore/files.py": "def cka(): ...\n__all__ = ['cka']\n" + "\n" * 400,
    "book/affscore_book/kit/claims.py": "from affscore_book.theory import measures\n",
    "book/affscore_book/theory/measures.py": "def cka(): ...\n__all__ = ['cka']\n",
    "book/affscore_book/theory/figures.py": "from affscore_book.relu_1d import figures\n",
    "book/affscore_book/relu_1d/figures.py": "from affscore_book.theory.measures import cka\n",
    "benchmarks/score.py": "from affscore.score import _root\n",
    "tests/core/test_score.py": "def f():\n    began = perf_counter()\n    assert time() - began < 1\n",
    "tests/core/test_page.py": "def f():\n    assert page.evaluate('performance.now()') < 9\n",
}


def test_a_planted_house_breaks_every_rule(tmp_path):
    for name, text in PLANTED.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert set(circle(tmp_path)) == {"affscore.zoo.models", "affscore.cli.options"}
    found = {rule.__name__: len(rule(tmp_path)) for rule in RULES if rule is not circle}
    assert found == {
        "wrong_directions": 5, "private_names": 3, "ambiguous_names": 1, "long_modules": 1, "untested_modules": 3,
        "asserted_times": 2,
    }  # fmt: skip


HEAVY = ("matplotlib", "sklearn", "torchvision", "safetensors", "affscore.zoo", "affscore.suite")


def test_importing_affscore_is_light():
    show = f"print([name for name in {HEAVY} if name in sys.modules])"
    program = f"import sys, affscore\n{show}\nimport affscore.plots\n{show}"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["[]", "['matplotlib']"]
