"""The base of all widgets: one JavaScript source that computes, live in Jupyter and in a static page alike.

A widget is a Python class and a JavaScript module beside it. In Jupyter the class is an ordinary anywidget. In the
built book there is no kernel: the notebook's stored output holds a ``<div class="affscore-widget">`` with the
widget's state and a picture that the same JavaScript has drawn in node (:mod:`affscore_book.kit.still`), and the Sphinx
extension ``book/_ext/book_widgets.py`` puts the JavaScript to work on it. If that fails, or JavaScript is off, the
picture stays.

How to add a widget
-------------------
1.  In the chapter's folder a JavaScript file named after the class: ``ScoreSlider`` is in ``score_slider.js``. It is an
    ES module and may import from its neighbours and from the kit, in the form
    ``import { a, b } from "../kit/figure.js";`` (see :mod:`affscore_book.kit.bundle`). ``kit/affinity1d.js`` has the
    mathematics of one dimension, ``kit/figure.js`` the controls, ``kit/panel.js`` the panels. ``kit/reader.js`` reads
    out what lines and dots draw, by the names of the legend or by those that ``reads`` gives; what is drawn in another
    way tells its numbers through ``panel.notes()``. The file exports ``evaluate(state)``, which
    computes an object with the ``score`` of a state (an object of the public traits) and needs no page, and ends with
    ``export default { render };``, where ``render({ model, el })`` builds a ``Figure``, adds controls and panels, and
    returns ``figure.onDraw((state) => { ...; return { score, text }; })``. The folder ``first_signature`` is the
    example. A style sheet of the same name, if it needs more than ``figure.css``.
2.  ``widget.py`` beside it: a subclass of :class:`ComputedWidget` with its public traits, each with
    ``.tag(sync=True)``, and the method ``score()`` (the number that the page shows, computed by Python). Traits hold
    what JSON can hold. The looks of lines, dots and bands are classes of ``figure.css``; colour always comes with a
    shape or a dash pattern.
3.  In the notebook: a cell that ends with ``NAME()``.
4.  Tests: ``tests/kit/test_widgets.py`` finds and checks every widget (bundle, stored picture, what it refuses, and
    ``evaluate`` against ``score()`` over a grid of its traits), and ``tests/site/test_browser.py`` every widget in the
    built book (it redraws on the arrow keys, and its number is that of ``score()`` to 1e-6). What is a widget's own is
    tested in the chapter's room; the fixture ``node`` runs JavaScript.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from html import escape
from pathlib import Path
from typing import Any, ClassVar

import anywidget

from affscore_book.kit.bundle import bundle, sources
from affscore_book.kit.still import still

__all__ = ["ComputedWidget", "chosen"]


class ComputedWidget(anywidget.AnyWidget):
    """A widget whose JavaScript does the computing. The module's docstring says how to make one.

    Subclasses declare synced traits and implement :meth:`score`; their JavaScript is found by their name. A value that
    a trait does not take raises ``traitlets.TraitError``. A widget that holds what was measured names in ``_told`` the
    list of it, of which its ``repr`` tells the length, and the other traits that this shows.
    """

    #: All widgets by class name.
    registry: ClassVar[dict[str, type[ComputedWidget]]] = {}
    _told: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        # anywidget makes a further subclass for every instance, which is no new widget.
        if ComputedWidget in cls.__bases__ and (source := sources().get(cls.__name__)):
            styles = [Path(__file__).with_name("figure.css"), source.with_suffix(".css")]
            cls._esm = bundle(source)
            cls._css = "\n".join(style.read_text(encoding="utf-8") for style in styles if style.exists())
            ComputedWidget.registry[cls.__name__] = cls
        super().__init_subclass__(**kwargs)

    def score(self) -> float:
        """The score that the page shows for the present traits, computed by Python; NaN where it is undefined."""
        raise NotImplementedError(f"{type(self).__name__} should implement score().")

    def picture(self) -> str | None:
        """The picture for the present traits as HTML text, the same on every machine; None where there is no node."""
        return still(self._esm, json.dumps(self.state(), allow_nan=False), self._css)

    def state(self) -> dict[str, Any]:
        """The public traits, sorted by name: all that the JavaScript needs."""
        return {
            name: getattr(self, name)
            for name, trait in sorted(self.traits(sync=True).items())
            if not name.startswith("_") and issubclass(trait.this_class, ComputedWidget)
        }

    def __repr__(self) -> str:
        state = self.state()
        many = [f"{len(state[name])} {name}" for name in self._told[:1] if state[name]]
        shown = many + [f"{name}={state[name]!r}" for name in (self._told[1:] if many else state)]
        return f"{type(self).__name__}({', '.join(shown)})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        result = super()._repr_mimebundle_(**kwargs)
        # Colab shows text/html in place of the live widget.
        if result is None or "google.colab" in sys.modules or (picture := self.picture()) is None:
            return result
        data, metadata = result
        state = escape(json.dumps(self.state(), allow_nan=False))
        html = (
            f'<div class="affscore-widget" data-widget="{type(self).__name__}" data-state="{state}">'
            f"{picture}</div>"
        )
        return data | {"text/html": html}, metadata


def chosen(rows: Sequence[dict[str, Any]], name: str, key: str = "name") -> dict[str, Any] | None:
    """The row of this name, or else the first one; None if there is none."""
    return next((row for row in rows if row[key] == name), rows[0] if rows else None)
