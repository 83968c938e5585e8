"""What a cell reads and binds, found without running it."""

from __future__ import annotations

import pytest

from affscore_book.kit.names import read_and_bound


@pytest.mark.parametrize(
    ("source", "read", "bound"),
    [
        ("y = x + 1", "x", "y"),
        ("x = 1\ny = x", "", "x y"),
        ("x += 1", "x", "x"),
        ("x = x + 1", "x", "x"),
        ("import numpy as np, os.path\nfrom a import b as c", "", "np os c"),
        ("for i, y in z.items():\n    total = i", "z", "i y total"),
        ("[k * a for k in ks if k > b]", "a ks b", ""),
        ("{k: v for k, v in z}", "z", ""),
        ("def f(x, c=d):\n    return x + g", "d g", "f"),
        ("def f(x):\n    return g(x)\ndef g(x):\n    return x", "", "f g"),
        ("def f():\n    def inner():\n        return outer\n    return inner", "outer", "f"),
        ("key = lambda v: v + w", "w", "key"),
        ("with open(p) as file:\n    file.read()", "p", "file"),
        ("try:\n    a\nexcept E as error:\n    error", "a E", "error"),
        ("class A(B):\n    c = d", "B d", "A"),
        ("if (n := m) > 1:\n    n", "m", "n"),
        ("a: int = b", "b", "a"),
        ("a.b = c\nd[e] = 1", "a c d e", ""),
        ("(a, *b), c = d", "d", "a b c"),
        ("print(len(x))", "x", ""),
        ("@decorate\ndef f(): pass", "decorate", "f"),
        ("match m:\n    case [p, q]:\n        p", "m", "p q"),
        ("async def f():\n    async for x in y:\n        pass", "y", "f"),
    ],
)
def test_reads_and_binds(source, read, bound):
    assert read_and_bound(source) == (frozenset(read.split()), frozenset(bound.split()))


def test_an_error_of_syntax_is_raised():
    with pytest.raises(SyntaxError):
        read_and_bound("x = ")
