"""The name that a notebook gives to ``student(...)``, read from its code: nothing is run."""

from __future__ import annotations

import ast
import warnings
from collections.abc import Iterable
from typing import Any

from IPython.core.inputtransformer2 import TransformerManager

__all__ = ["name_given"]

#: Methods of texts that are evaluated, and the longest text that may come of it.
METHODS = {
    "capitalize", "casefold", "join", "lower", "lstrip", "removeprefix", "removesuffix", "replace", "rstrip", "strip",
    "swapcase", "title", "upper",
}  # fmt: skip
LONGEST = 1000
#: Magics whose cell is Python that runs.
RUNS = {"capture", "prun", "time", "timeit"}


def name_given(sources: Iterable[str]) -> str | None:
    """The name in the last call of ``student(...)``, "" without a call; None if only running the code would tell.

    >>> name_given(['me = " Ada "', "student(f'{me.strip()} L')"])
    'Ada L'
    >>> name_given(["student(input())"]) is None
    True
    """
    reader = _Reader()
    for source in sources:
        reader.read(source)
    return reader.name


class _Unknown(ValueError):
    """A value that only running the code would tell."""


class _Reader(ast.NodeVisitor):
    """Follows the names of constants through code, in the order in which it stands there."""

    def __init__(self) -> None:
        self.name: str | None = ""
        self._student = {"student"}  # names of the function
        self._values: dict[str, Any] = {"__name__": "__main__"}
        self._certain = True  # whether what is read now runs

    def read(self, source: str) -> None:
        """Follow a cell. One that is no Python does not run either."""
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about escapes in the student's texts
                code = TransformerManager().transform_cell(source)
                tree = compile(code, "cell", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return
        try:
            self.visit(tree)
        except RecursionError:
            self.name = None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self._student |= {alias.asname or alias.name for alias in node.names if alias.name == "student"}

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit(node.value)
        for target in node.targets:
            self._bind(target, node.value)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value:
            self.visit(node.value)
            self._bind(node.target, node.value)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        self.visit(node.value)
        if isinstance(node.target, ast.Name):
            before = ast.copy_location(ast.Name(node.target.id, ast.Load()), node.target)
            self._bind(node.target, ast.BinOp(before, node.op, node.value))

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit(node.value)
        self._bind(node.target, node.value)

    def visit_If(self, node: ast.If) -> None:
        self.visit(node.test)
        try:
            taken = node.body if self._value(node.test) else node.orelse
        except _Unknown:
            self._perhaps(node)
            return
        for statement in taken:
            self.visit(statement)

    def _perhaps(self, node: ast.AST) -> None:
        """Follow what may run, or run more than once."""
        before, self._certain = self._certain, False
        self.generic_visit(node)
        self._certain = before

    visit_For = visit_While = visit_FunctionDef = visit_AsyncFunctionDef = visit_Lambda = visit_IfExp = _perhaps
    visit_ListComp = visit_ExceptHandler = visit_ClassDef = visit_Match = _perhaps

    def visit_Call(self, node: ast.Call) -> None:
        self.generic_visit(node)
        function = node.func
        called = function.id if isinstance(function, ast.Name) else getattr(function, "attr", "")
        if called == "run_cell_magic":
            magic, _, body = (each.value for each in node.args if isinstance(each, ast.Constant))
            if magic in RUNS:
                self.read(str(body))
        elif called in self._student if isinstance(function, ast.Name) else called == "student":
            given = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg in ("name", None))]
            if len(given) == 1:  # otherwise the call is an error
                self._call(given[0])

    def _call(self, given: ast.expr) -> None:
        try:
            name = self._value(given)
        except _Unknown:
            self.name = None
            return
        if isinstance(name, str):  # otherwise the call is an error
            self.name = name if self._certain or name == self.name else None

    def _bind(self, target: ast.expr, value: ast.expr) -> None:
        """Note what a name stands for from here on, or that it is not known."""
        if isinstance(target, ast.Tuple | ast.List):
            parts = value.elts if isinstance(value, ast.Tuple | ast.List) else []
            for number, each in enumerate(target.elts):
                self._bind(each, parts[number] if len(parts) == len(target.elts) else target)
        if not isinstance(target, ast.Name):
            return
        if isinstance(value, ast.Name) and value.id in self._student:
            self._student.add(target.id)
        try:
            self._values[target.id] = self._value(value)
        except _Unknown:
            self._values.pop(target.id, None)
        if not self._certain:
            self._values.pop(target.id, None)

    def _value(self, node: ast.expr) -> Any:
        """What an expression of constants is."""
        try:
            found = self._evaluated(node)
        except (TypeError, ValueError, LookupError, AttributeError) as error:
            raise _Unknown(str(error)) from error
        if isinstance(found, str) and len(found) > LONGEST:
            raise _Unknown("a text that grows")
        return found

    def _evaluated(self, node: ast.expr) -> Any:
        match node:
            case ast.Constant():
                return node.value
            case ast.Name():
                return self._values[node.id]
            case ast.NamedExpr():
                return self._value(node.value)
            case ast.JoinedStr():
                return "".join(self._value(part) for part in node.values)
            case ast.FormattedValue(format_spec=None):
                value = self._value(node.value)
                return {ord("r"): repr(value), ord("a"): ascii(value)}.get(node.conversion, str(value))
            case ast.BinOp(op=ast.Add()):
                return self._value(node.left) + self._value(node.right)
            case ast.Tuple() | ast.List():
                return [self._value(each) for each in node.elts]
            case ast.Dict():
                return {self._value(key): self._value(value) for key, value in zip(node.keys, node.values, strict=True)
                        if key}  # fmt: skip
            case ast.Subscript():
                return self._value(node.value)[self._value(node.slice)]
            case ast.Compare(ops=[ast.Eq()], comparators=[other]):
                return self._value(node.left) == self._value(other)
            case ast.Starred():
                (found,) = self._value(node.value)  # the only argument
                return found
            case ast.Call(func=ast.Name(id="str"), args=[one], keywords=[]):
                return str(self._value(one))
            case ast.Call(func=ast.Attribute(value=value, attr=method), keywords=[]) if method in METHODS:
                if isinstance(text := self._value(value), str):
                    return getattr(text, method)(*map(self._value, node.args))
        raise _Unknown(type(node).__name__)
