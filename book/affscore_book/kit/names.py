"""Finds the names that a cell of a notebook reads and binds, without running the cell.

A page that runs cells needs them to find out which earlier cells a cell needs (:mod:`affscore_book.kit.session`).
"""

from __future__ import annotations

import ast
import builtins
from typing import Any

__all__ = ["read_and_bound"]

Function = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def read_and_bound(source: str) -> tuple[frozenset[str], frozenset[str]]:
    """The names that a cell reads before it binds them, without builtins, and the names that it binds.

    A name that a function of the cell reads counts unless the cell binds the name anywhere, since the function is
    called later. Raises SyntaxError if the source is not Python.

    >>> read, bound = read_and_bound("y = [x * k for k in range(3)]")
    >>> sorted(read), sorted(bound)
    (['x'], ['y'])
    """
    scope = _Scope()
    for statement in ast.parse(source).body:
        scope.visit(statement)
    later = scope.later - scope.bound
    return frozenset((scope.read | later) - set(dir(builtins))), frozenset(scope.bound)


class _Scope(ast.NodeVisitor):
    """The names of one scope, collected in the order in which its statements run."""

    def __init__(self) -> None:
        self.read: set[str] = set()
        self.bound: set[str] = set()
        self.later: set[str] = set()
        self.outer: set[str] = set()

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Store):
            self._bind(node.id)
        elif node.id not in self.bound:
            self.read.add(node.id)

    def _bind(self, name: str) -> None:
        if name not in self.outer:
            self.bound.add(name)

    def visit_Assign(self, node: ast.Assign) -> None:
        for part in (node.value, *node.targets):  # Python evaluates the value first
            self.visit(part)

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            self.visit(node.value)
            self.visit(node.target)

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name) and node.target.id not in self.bound:
            self.read.add(node.target.id)
        self.visit(node.value)
        self.visit(node.target)

    def visit_For(self, node: ast.For) -> None:
        for part in (node.iter, node.target, *node.body, *node.orelse):
            self.visit(part)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self._bind(alias.asname or alias.name.partition(".")[0])

    visit_ImportFrom = visit_Import

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        if node.name:
            self._bind(node.name)
        self.generic_visit(node)

    def visit_Global(self, node: ast.Global | ast.Nonlocal) -> None:
        self.outer.update(node.names)

    visit_Nonlocal = visit_Global

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.GeneratorExp | ast.DictComp) -> None:
        inner = _Scope()
        for part in node.generators:
            inner.visit(part.iter)
            inner.visit(part.target)
            for condition in part.ifs:
                inner.visit(condition)
        results = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        for result in results:
            inner.visit(result)
        self.read |= inner.read - self.bound
        self.later |= inner.later

    visit_ListComp = visit_SetComp = visit_GeneratorExp = visit_DictComp = _comprehension

    def _function(self, node: Function) -> None:
        arguments = node.args
        for default in (*arguments.defaults, *filter(None, arguments.kw_defaults)):
            self.visit(default)
        inner = _Scope()
        every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
        inner.bound |= {each.arg for each in every if each is not None}
        body: list[Any] = [node.body] if isinstance(node, ast.Lambda) else node.body
        for statement in body:
            inner.visit(statement)
        self.later |= (inner.read | inner.later) - inner.bound

    visit_Lambda = _function

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        for decorator in node.decorator_list:
            self.visit(decorator)
        self._function(node)
        self._bind(node.name)

    visit_AsyncFunctionDef = visit_FunctionDef

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        for part in (*node.decorator_list, *node.bases, *(each.value for each in node.keywords)):
            self.visit(part)
        inner = _Scope()
        for statement in node.body:
            inner.visit(statement)
        self.read |= inner.read - self.bound
        self.later |= inner.later
        self._bind(node.name)
