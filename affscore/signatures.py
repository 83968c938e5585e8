"""Non-linearity signatures: the affinity score of every activation call of a network, in execution order.

:func:`affscore.signature` (:mod:`affscore.measuring`) measures a signature. This module defines the result, and stores,
loads and draws it. The book's first chapter explains signatures.

The stored form is one JSON object: it has ``schema``, which is the string ``affscore.signature/1``, and the attributes
of :class:`Signature` under their names. The attribute ``companions`` is optional. Arrays are lists of rows with
``null`` for NaN, calls are objects with the attributes of :class:`affscore.calls.Call`, and excluded calls have a name,
a reason and a kind.

Reference: Bouniot et al., CVPR 2025, section 3.2 and section 4 (batches of 512, pooled features, Ledoit-Wolf).
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np

from affscore.affine import COVARIANCES
from affscore.arguments import check_choice, line_of
from affscore.calls import Call, Excluded, name_pattern
from affscore.companions import check_names
from affscore.errors import AffscoreError, warn
from affscore.files import destination, replacing
from affscore.settings import POOLS
from affscore.stored import check_calls, check_provenance, check_that, no_constant, validated, with_nulls

if TYPE_CHECKING:
    from matplotlib.axes import Axes

__all__ = ["TOTAL", "BatchResult", "Signature", "SignatureError", "read_signature"]

SCHEMA = "affscore.signature/1"
TOTAL = "unfinished_of"  # in the provenance of an unfinished signature: the total number of batches


class SignatureError(AffscoreError, ValueError):
    """A batch could not be scored. ``finished`` is the Signature of the batches before it, or None.

    The book's chapter ``first_signature`` says which networks and batches are accepted.
    """

    def __init__(self, message: str, finished: Signature | None = None) -> None:
        super().__init__(message)
        self.finished = finished


@dataclass(frozen=True)
class BatchResult:
    """The result of one batch: its number ``index``, its ``size`` in samples, and its part of a :class:`Signature`.

    ``scores``, and the list of each measure in ``companions``, have a float for each of the ``calls``, or NaN.
    """

    index: int
    size: int
    calls: list[Call]
    excluded: list[Excluded]
    scores: list[float]
    companions: dict[str, list[float]] = field(default_factory=dict)


@dataclass(eq=False)
class Signature:
    """Scores of every activation call, with their provenance.

    The book's chapter ``first_signature`` shows how to read a signature.

    Attributes
    ----------
    calls
        The activation calls in execution order, as :class:`affscore.calls.Call`.
    scores
        float64 array of shape (batches, calls); NaN where a call's input or output varies over the batch so little
        that rounding decides the score (a dead call).
    excluded
        Activation calls that were seen and not scored, each with the reason.
    pool, covariance
        The settings of the run.
    batch_sizes
        Number of samples in each batch.
    provenance
        The facts that a rerun needs: model, weights, data, seed, device, versions, time.
    companions
        For each companion measure taken (:mod:`affscore.companions`), a float64 array of shape (batches, calls); NaN
        where it is undefined.
    """

    calls: list[Call]
    scores: np.ndarray
    excluded: list[Excluded] = field(default_factory=list)
    pool: str = "spatial"
    covariance: str = "ledoit_wolf"
    batch_sizes: list[int] = field(kw_only=True)
    provenance: dict[str, Any] = field(default_factory=dict)
    companions: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.scores = np.asarray(self.scores, dtype=np.float64)
        if self.scores.ndim != 2 or self.scores.shape[1] != len(self.calls):
            raise ValueError(f"scores has shape {self.scores.shape}; it should be (batches, {len(self.calls)} calls).")
        self.companions = {name: np.asarray(value, dtype=np.float64) for name, value in self.companions.items()}
        check_names(list(self.companions))
        for name, value in self.companions.items():
            expected = f"it should be that of scores, {self.scores.shape}"
            check_that(value.shape == self.scores.shape, f"the companion {name!r} has shape {value.shape}; {expected}")
            check_that(not np.isinf(value).any(), f"the companion {name!r} is infinite")
        for name, known in (("pool", POOLS), ("covariance", COVARIANCES)):
            check_choice(name, getattr(self, name), known)
        check_calls(self.calls, [-1] if self.pool == "trailing" else None)
        sizes, many = self.batch_sizes, len(self.scores)
        check_that(len(sizes) == many, f"batch_sizes has {len(sizes)} numbers for {many} batches")
        whole = all(type(size) is int and size >= 2 for size in sizes)
        check_that(whole, "batch_sizes should hold integers of at least 2")
        check_provenance(self.provenance)
        check_that(not np.isinf(self.scores).any(), "a score is infinite")
        check_that(not (self.scores > 1).any(), "a score is above 1")
        unshrunk = self.covariance == "empirical"
        check_that(not unshrunk or not (self.scores < -1e-9).any(), "a score without shrinkage is below 0")

    @classmethod
    def from_results(
        cls, results: Iterable[BatchResult], *, pool: str, covariance: str, provenance: Mapping[str, Any] | None = None
    ) -> Signature:
        """The signature of batches, in the given order, from the results of :func:`affscore.measuring.batch_results`.

        Raises
        ------
        ValueError
            If there are no results, or if their calls or companion measures differ.
        """
        results = list(results)
        if not results:
            raise ValueError("results is empty; it should hold at least one batch.")
        first = results[0]
        for result in results[1:]:
            names = [[call.name for call in each.calls] for each in (result, first)]
            measures = [sorted(each.companions) for each in (result, first)]
            for what, (one, other) in (("activation calls", names), ("companions", measures)):
                if one != other:
                    raise ValueError(f"the {what} of batch {result.index} differ from those of batch {first.index}.")
        return cls(
            calls=list(first.calls),
            scores=np.array([result.scores for result in results]),
            excluded=list(first.excluded),
            pool=pool,
            covariance=covariance,
            batch_sizes=[result.size for result in results],
            provenance=dict(provenance or {}),
            companions={name: np.array([result.companions[name] for result in results]) for name in first.companions},
        )

    @property
    def dead(self) -> np.ndarray:
        """Whether each score is undefined because input or output varies by little more than rounding errors.

        The result is a bool array of shape (batches, calls).
        """
        return np.isnan(self.scores)

    def _over_batches(self, statistic: Any, values: np.ndarray) -> np.ndarray:
        result = np.full(len(self.calls), np.nan)
        alive = ~np.isnan(values).all(axis=0)
        result[alive] = statistic(values[:, alive], axis=0)
        return result

    @property
    def mean(self) -> np.ndarray:
        """Mean over the batches in which the call is alive, shape (calls,); NaN for a call that is never alive."""
        return self._over_batches(np.nanmean, self.scores)

    @property
    def std(self) -> np.ndarray:
        """Standard deviation over the same batches, normalised by their number; 0 for a single batch."""
        return self._over_batches(np.nanstd, self.scores)

    def __len__(self) -> int:
        """Number of calls."""
        return len(self.calls)

    def __iter__(self) -> Iterator[Call]:
        """The calls, in execution order."""
        return iter(self.calls)

    def __getitem__(self, pattern: str) -> Signature:
        """The signature of the calls whose names match a pattern, as in :class:`affscore.settings.Settings`.

        Raises
        ------
        KeyError
            If no call matches.
        TypeError
            If the pattern is not a string.

        Examples
        --------
        >>> made = [Call(f"layer{i}:relu[0]", f"layer{i}", "relu", 0, False, (8,), 1) for i in (1, 2)]
        >>> whole = Signature(made, [[0.5, 0.7]], batch_sizes=[64])
        >>> [call.name for call in whole], whole["layer2*"].mean
        (['layer1:relu[0]', 'layer2:relu[0]'], array([0.7]))
        """
        if not isinstance(pattern, str):
            raise TypeError(f"the index is {pattern!r}; it should be a pattern of names, such as 'layer3.*'.")
        matches = name_pattern(pattern).match
        chosen = [i for i, call in enumerate(self.calls) if matches(call.name)]
        if not chosen:
            some = ", ".join(call.name for call in self.calls[:3])
            raise KeyError(f"{pattern!r} matches the name of no call; the names include {some}.")
        return replace(
            self,
            calls=[self.calls[i] for i in chosen],
            scores=self.scores[:, chosen],
            excluded=[item for item in self.excluded if matches(item.name)],
            companions={name: value[:, chosen] for name, value in self.companions.items()},
        )

    def rows(self) -> list[dict[str, Any]]:
        """A dictionary for each call: its attributes, the mean ``score`` and the ``std`` over the batches.

        The mean of each companion measure is under its name. Undefined values are NaN.

        >>> made = Call("0:relu[0]", "0", "relu", 0, False, (8,), 1)
        >>> row = Signature([made], [[0.5], [0.7]], batch_sizes=[64, 64]).rows()[0]
        >>> row["call"], row["shape"], round(row["score"], 3), round(row["std"], 3)
        ('0:relu[0]', (8,), 0.6, 0.1)
        """
        means = {name: self._over_batches(np.nanmean, values).tolist() for name, values in self.companions.items()}
        rows = []
        for i, (call, mean, std) in enumerate(zip(self.calls, self.mean.tolist(), self.std.tolist(), strict=True)):
            facts = asdict(call)
            measures = {name: values[i] for name, values in means.items()}
            rows.append({"call": facts.pop("name"), **facts, "score": mean, "std": std, **measures})
        return rows

    def _repr_html_(self) -> str:
        """HTML for a notebook: the picture, if matplotlib is installed, and the table."""
        picture = ""
        with suppress(ImportError):
            from affscore.plots import as_image

            picture = as_image(lambda ax: self.plot(ax, twin="twin" in self.companions), repr(self))
        return f"{picture}<details><summary>{escape(repr(self))}</summary><pre>{escape(self.table())}</pre></details>"

    def __repr__(self) -> str:
        batches, calls = self.scores.shape
        name = self.provenance.get("model", "network")
        head = (
            f"Signature of {name}: {calls} activation call{'s' * (calls != 1)}, {batches} batch{'es' * (batches != 1)}"
        )
        mean = self.mean[~np.isnan(self.mean)]
        if len(mean):
            head += f", scores {mean.min():.2f} to {mean.max():.2f}, median {np.median(mean):.2f}"
        twins = self._twins()
        if len(twins := twins[~np.isnan(twins)]):
            head += f", linear twins {twins.min():.2f} to {twins.max():.2f}"
        if dead := int(self.dead.any(axis=0).sum()):
            head += f", {dead} dead in some batch"
        if self.excluded:
            head += f", {len(self.excluded)} excluded"
        return head

    def _twins(self) -> np.ndarray:
        """The mean scores of the linear twins, shape (calls,); NaN where they were not measured."""
        return self._over_batches(np.nanmean, self.companions.get("twin", np.full(self.scores.shape, np.nan)))

    def table(self, digits: int = 2) -> str:
        """The signature as text: mean score (and std over batches), name and input shape of each call.

        If the linear twins were measured, their mean scores are in another column.
        """
        width = max([len(call.name) for call in self.calls] + [4])
        many, twins = len(self.scores) > 1, "twin" in self.companions
        head = f"{'#':>3}  {'score':>6}" + f"  {'std':>6}" * many + f"  {'twin':>6}" * twins
        lines = [f"{head}  {'call':<{width}}  {'shape':>14}"]
        numbers = zip(self.calls, self.mean, self.std, self._twins(), strict=True)
        for i, (call, mean, std, twin) in enumerate(numbers, start=1):
            value = "dead" if math.isnan(mean) else f"{mean:.{digits}f}"
            spread, line = ("" if math.isnan(each) else f"{each:.{digits}f}" for each in (std, twin))
            row = f"{i:>3}  {value:>6}" + f"  {spread:>6}" * many + f"  {line:>6}" * twins
            lines.append(f"{row}  {call.name:<{width}}  {'x'.join(map(str, call.shape)):>14}" + "  gate" * call.gate)
        return "\n".join(lines)

    def plot(self, ax: Axes | None = None, *, twin: bool = False, **options: Any) -> Axes:
        """Draw the mean score of each call in execution order, with a band of one standard deviation over batches.

        Gates are open squares, and dead calls are crosses at 0. With ``twin`` a dashed line shows the mean scores of
        the linear twins, which need the companion measure ``twin``. ``options`` style the line. Returns the matplotlib
        axes; raises ImportError if matplotlib is not installed, and ValueError if the twins were not measured.
        """
        if twin and "twin" not in self.companions:
            raise ValueError("twin is True, but the twins were not measured; measure with companions=['twin'].")
        try:
            from affscore.plots import draw_signature
        except ImportError as error:
            raise ImportError("plot draws with the package matplotlib: pip install matplotlib.") from error
        gate = np.array([call.gate for call in self.calls], dtype=bool)
        twins = [row["twin"] for row in self.rows()] if twin else None
        return draw_signature(ax, self.mean, self.std, gate, twins, options)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the signature as JSON, either the whole file or nothing."""
        content = {
            "schema": SCHEMA,
            "pool": self.pool,
            "covariance": self.covariance,
            "calls": [asdict(call) for call in self.calls],
            "excluded": [asdict(item) | {"kind": type(item).__name__} for item in self.excluded],
            "batch_sizes": self.batch_sizes,
            "scores": with_nulls(self.scores),
            "provenance": self.provenance,
        }
        if self.companions:
            content["companions"] = {name: with_nulls(value) for name, value in self.companions.items()}
        with replacing(path) as temporary:
            temporary.write_text(json.dumps(content, indent=1, allow_nan=False) + "\n", encoding="utf-8")

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Signature:
        """Read a signature that :meth:`save` wrote. It warns if the signature is unfinished.

        Raises
        ------
        ValueError
            If the file is truncated, not JSON, of another schema, or contradicts itself.
        OSError
            If there is no file at the path, or it is a folder, a device or a pipe.
        """
        found = read_signature(path)
        if TOTAL in found.provenance:
            warn(f"{path} is unfinished: it has {len(found.batch_sizes)} of {found.provenance[TOTAL]} batches.")
        return found


def read_signature(path: str | os.PathLike[str]) -> Signature:
    """The signature in a file, finished or not, without a warning; errors are those of :meth:`Signature.load`."""
    try:
        data = destination(path).read_bytes()
    except FileNotFoundError as error:
        raise FileNotFoundError(f"path: there is no file {path}.") from error
    try:
        content = json.loads(data.decode("utf-8"), parse_constant=no_constant)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path} is not complete JSON (line {error.lineno}: {error.msg}); was it cut off while being written?"
        ) from error
    except (ValueError, RecursionError) as error:  # not UTF-8, a number with thousands of digits, too deep nesting
        raise ValueError(f"{path} is not a valid signature: {str(error).rstrip('.')}.") from error
    schema = content.get("schema") if isinstance(content, dict) else None
    if schema != SCHEMA:
        raise ValueError(f"{path} has schema {schema!r}; it should be {SCHEMA!r}.")
    try:
        return Signature(**validated(content))
    except (AttributeError, KeyError, OverflowError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a valid signature: {type(error).__name__}: {line_of(error)}.") from error
