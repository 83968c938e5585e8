"""Full-scale runs: a signature whose finished batches are kept, on one process or many.

:func:`run` computes what :func:`affscore.signature` computes, and appends each finished batch to a record
(:mod:`affscore.suite.records`) before it goes on. Run again after an interruption of any kind, it does what is missing
and ends with the same bits as a run that was never interrupted: same machine, versions and settings, which it checks.

Under ``torchrun``, rank r of w takes every w-th of the missing batches, from the r-th on, and writes a record of its
own. The batches are put together in their order, so the result does not depend on how many ranks there were; a later
run may have another number. A folder of a run holds::

    resnet50.json              the finished signature (affscore.Signature.load)
    records/resnet50.0.jsonl   the record of rank 0, or of a single process
    records/resnet50.1.jsonl   the record of rank 1, and so on
    records/resnet50.0.lock    held while rank 0 writes

:func:`merge` makes the signature from the records alone, for instance after copying those of several machines into one
folder. The page on full-scale runs has the commands.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol, TypeVar

import scipy
import torch
from torch import nn

from affscore.companions import check_names
from affscore.engine import Settings, batch_results, resolve_device, versions
from affscore.signature import BatchResult, Signature
from affscore.suite.records import Content, Record, RecordError, differences, os_error, read_record
from affscore.tracing import Call, Excluded

__all__ = ["Ranks", "RunError", "joined_ranks", "merge", "names", "progress_of", "run", "set_aside", "weights_checksum"]

T = TypeVar("T")


class RunError(ValueError):
    """A run could not go on. What was finished is in its records."""


class Batches(Protocol):
    """What a run needs of its data: any batch by its number. A list will do, and so will zoo.datasets.Batches."""

    def __len__(self) -> int: ...

    def __getitem__(self, k: int, /) -> Any: ...


# ---------------------------------------------------------------------------------------------------- ranks


@dataclass(frozen=True)
class Ranks:
    """The processes of a run, seen from one of them.

    Attributes
    ----------
    rank, world
        The number of this process, and how many there are.
    local
        Its number on its machine: which GPU it uses, and 0 for the one that downloads.
    group
        The torch.distributed group through which they talk; None for a single process.
    """

    rank: int = 0
    world: int = 1
    local: int = 0
    group: Any = None

    def gather(self, value: T) -> list[T]:
        """The values of all ranks, in the order of the ranks; every rank gets them and waits for them."""
        if self.world == 1:
            return [value]
        values: list[Any] = [None] * self.world
        torch.distributed.all_gather_object(values, value, group=self.group)
        return values

    def together(self, work: Callable[[], T]) -> T:
        """Do ``work`` on every rank. Where it fails on one, all raise: nobody waits for a rank that will not come."""
        result, error = None, None
        try:
            result = work()
        except Exception as caught:
            error = caught
        failed = [(rank, text) for rank, text in enumerate(self.gather(error and f"{error}")) if text is not None]
        if error is not None:
            raise error
        if failed:
            raise RunError(f"rank {failed[0][0]} failed: {failed[0][1]}")
        return result  # type: ignore[return-value]

    def one_first(self, work: Callable[[], T]) -> T:
        """Do ``work`` on rank 0, then on one rank of each other machine, then on the rest.

        The first downloads or unpacks; the others find it, on their machine or on a common disk.
        """
        ours = 0 if self.rank == 0 else 1 if self.local == 0 else 2
        found = [self.together(lambda turn=turn: work() if turn == ours else None) for turn in range(3)]  # type: ignore[misc]
        return found[ours]  # type: ignore[return-value]


@contextlib.contextmanager
def joined_ranks() -> Iterator[Ranks]:
    """The ranks that torchrun started, connected while the block runs; a single one without torchrun.

    A process group that the caller has made already is used and left as it is.
    """
    distributed = torch.distributed
    theirs = distributed.is_available() and distributed.is_initialized()
    if not theirs and int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield Ranks()
        return
    # The ranks meet at the end of each network, and one may be far ahead; torchrun ends them all if one dies.
    patience = timedelta(days=30)
    if not theirs:
        distributed.init_process_group("gloo", timeout=patience)
    try:
        group = distributed.new_group(backend="gloo", timeout=patience)
        rank, world = distributed.get_rank(), distributed.get_world_size()
        yield Ranks(rank, world, int(os.environ.get("LOCAL_RANK", rank)), group)
    finally:
        if not theirs:
            distributed.destroy_process_group()


# -------------------------------------------------------------------------------------------------- records


def _paths(folder: Path, name: str) -> list[Path]:
    """The records of one network, in the order of their ranks."""
    pattern = re.compile(re.escape(name) + r"\.(\d+)\.jsonl")
    there = (folder / "records").iterdir() if (folder / "records").is_dir() else ()
    found = [(int(match[1]), path) for path in there if (match := pattern.fullmatch(path.name))]
    return [path for _, path in sorted(found)]


def names(folder: str | os.PathLike[str]) -> list[str]:
    """The networks that have records in the folder of a run, sorted."""
    folder = Path(folder)
    there = (folder / "records").iterdir() if (folder / "records").is_dir() else ()
    return sorted({match[1] for path in there if (match := re.fullmatch(r"(.+)\.\d+\.jsonl", path.name))})


def _value(number: float) -> float | str | None:
    """A number as JSON has it: null for NaN, a string for an infinite one."""
    return None if math.isnan(number) else number if math.isfinite(number) else str(number)


def _number(value: float | str | None) -> float:
    return math.nan if value is None else float(value)


def _batch_line(result: BatchResult, skipped: list[dict[str, str]]) -> dict[str, Any]:
    line: dict[str, Any] = {"index": result.index, "size": result.size, "scores": [_value(v) for v in result.scores]}
    if result.companions:
        line["companions"] = {name: [_value(v) for v in values] for name, values in result.companions.items()}
    if skipped:
        line["skipped"] = skipped
    return line


def _calls_line(result: BatchResult) -> dict[str, Any]:
    return {
        "calls": [{**asdict(call), "shape": list(call.shape)} for call in result.calls],
        "excluded": [asdict(item) for item in result.excluded],
    }


@dataclass
class _Found:
    """What the records of one network hold together."""

    header: dict[str, Any] | None
    calls: dict[str, Any] | None
    batches: dict[int, dict[str, Any]]

    def missing(self, total: int) -> list[int]:
        return [k for k in range(total) if k not in self.batches]


def _together(records: Iterable[tuple[str, Content]]) -> _Found:
    """Join records, given with their paths, or say what they disagree about."""
    result = _Found(None, None, {})
    source: dict[Any, str] = {}
    first = math.inf
    for path, record in records:
        if record.header is None:
            continue
        if result.header is None:
            result.header, source["header"] = record.header, path
        elif different := differences(result.header, record.header):
            raise RecordError(
                f"{source['header']} (there) and {path} (here) are records of different runs: {'; '.join(different)}."
            )
        calls = next((content for kind, content in record.lines if kind == "calls"), None)
        if calls and result.calls and calls["calls"] != result.calls["calls"]:
            raise RecordError(f"{source['calls']} and {path} have different activation calls.")
        batches = [content for kind, content in record.lines if kind == "batch"]
        for batch in batches:
            k = batch["index"]
            if result.batches.setdefault(k, batch) != batch:
                raise RecordError(f"{source[k]} and {path} have different values for batch {k}.")
            source.setdefault(k, path)
        lowest = min((batch["index"] for batch in batches), default=math.inf)
        if lowest < first:
            first, result.calls, source["calls"] = lowest, calls, path
    return result


def _read(folder: Path, name: str) -> list[tuple[str, Content]]:
    return [(str(path), read_record(path)) for path in _paths(folder, name)]


def _signature(found: _Found) -> Signature:
    """The signature of complete records."""
    assert found.header is not None and found.calls is not None
    header = found.header
    calls = [Call(**{**call, "shape": tuple(call["shape"])}) for call in found.calls["calls"]]
    excluded = [Excluded(**item) for item in found.calls["excluded"]]
    lines = [found.batches[k] for k in range(header["batches"])]
    results = [
        BatchResult(
            line["index"],
            line["size"],
            calls,
            excluded,
            [_number(value) for value in line["scores"]],
            {name: [_number(v) for v in values] for name, values in line.get("companions", {}).items()},
        )
        for line in lines
    ]
    skipped = [image for line in lines for image in line.get("skipped", [])]
    facts = {**header["provenance"], "data": {**header["provenance"]["data"], "skipped": skipped}}
    return Signature.from_results(results, pool=header["pool"], covariance=header["covariance"], provenance=facts)


def progress_of(folder: str | os.PathLike[str], name: str) -> tuple[int, int]:
    """How many batches of a network are in its records, and how many there should be.

    Raises
    ------
    RecordError
        If a record is damaged or they do not belong together.
    """
    found = _together(_read(Path(folder), name))
    return len(found.batches), 0 if found.header is None else found.header["batches"]


def merge(folder: str | os.PathLike[str], name: str) -> Signature:
    """The signature of a network from the records in a folder, whoever wrote them.

    Parameters
    ----------
    folder
        The folder of a run; the records are in ``folder/records``.
    name
        The network, as in the names of the files.

    Returns
    -------
    Signature
        The same, bit for bit, however the batches are spread over the records.

    Raises
    ------
    FileNotFoundError
        If there is no record.
    RecordError
        If a record is damaged, batches are missing, or the records do not belong together.
    """
    folder = Path(folder)
    if not _paths(folder, name):
        raise FileNotFoundError(f"there is no record of {name} in {folder / 'records'}.")
    found = _together(_read(folder, name))
    total = 0 if found.header is None else found.header["batches"]
    missing = found.missing(total)
    if missing or not total:
        raise RecordError(
            f"the records of {name} in {folder / 'records'} hold {total - len(missing)} of {total} batches"
            + (f"; missing {_some(missing)}." if missing else ".")
        )
    return _signature(found)


def _some(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers[:8])) + (f" and {len(numbers) - 8} more" if len(numbers) > 8 else "")


def set_aside(folder: str | os.PathLike[str], name: str) -> list[Path]:
    """Rename the signature and the records of a network, so that a run begins anew; nothing is deleted.

    Returns the new paths: the old ones with ``.old1`` at the end, or the first number that is free for all.
    """
    folder = Path(folder)
    paths = [path for path in (folder / f"{name}.json", *_paths(folder, name)) if path.exists()]
    number = 1
    while any(path.with_name(f"{path.name}.old{number}").exists() for path in paths):
        number += 1
    return [path.rename(path.with_name(f"{path.name}.old{number}")) for path in paths]


# ------------------------------------------------------------------------------------------------ checksums


def weights_checksum(model: nn.Module) -> str:
    """The SHA-256 of all parameters and buffers of a network, their names, dtypes and shapes.

    >>> layer = nn.Linear(2, 2)
    >>> before = weights_checksum(layer)
    >>> _ = nn.init.zeros_(layer.bias)
    >>> weights_checksum(layer) == before
    False
    """
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        _feed(digest, name, value)
    return digest.hexdigest()


def _feed(digest: Any, name: str, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    elif isinstance(value, Mapping):
        for key in sorted(value):
            _feed(digest, f"{name}.{key}", value[key])
    elif isinstance(value, list | tuple):
        for i, item in enumerate(value):
            _feed(digest, f"{name}.{i}", item)


def _data(batches: Batches) -> dict[str, Any]:
    """What says which data these are: their provenance, or the checksum of the first batch where they have none."""
    provenance = getattr(batches, "provenance", None)
    if provenance is not None:
        return {key: value for key, value in provenance.items() if key != "skipped"}
    digest = hashlib.sha256()
    _feed(digest, "", next(_loaded(batches, [0], {})))
    return {"first_batch_sha256": digest.hexdigest()}


def _header(
    model: nn.Module, batches: Batches, device: torch.device, settings: dict[str, Any], provenance: Mapping[str, Any]
) -> dict[str, Any]:
    """All that the bits of a result may depend on. A run goes on only where all of it is the same."""
    facts: dict[str, Any] = {
        "model": type(model).__name__,
        **provenance,
        "weights_sha256": weights_checksum(model),
        "data": _data(batches),
        "device": torch.cuda.get_device_name(device) if device.type == "cuda" else device.type,
        "micro_batch": settings["micro_batch"],
        "precision": settings["precision"],
        "channels_last": settings["channels_last"],
        "scoring": settings["scoring"],
        "versions": versions() | {"scipy": scipy.__version__},
    }
    if device.type == "cpu":
        # On the CPU some kernels add up in an order that depends on the number of threads.
        facts["threads"] = torch.get_num_threads()
    else:
        facts["versions"] |= {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    return {
        "batches": len(batches),
        "pool": settings["pool"],
        "covariance": settings["covariance"],
        "companions": list(check_names(settings["companions"])),
        "provenance": facts,
    }


# -------------------------------------------------------------------------------------------------- running


def run(
    model: nn.Module,
    batches: Batches,
    folder: str | os.PathLike[str],
    name: str,
    *,
    pool: str = "spatial",
    covariance: str = "ledoit_wolf",
    companions: bool | Sequence[str] = False,
    micro_batch: int | None = None,
    device: str | torch.device | None = None,
    precision: str = "full",
    channels_last: bool = False,
    scoring: str = "host",
    provenance: Mapping[str, Any] | None = None,
    restart: bool = False,
    ranks: Ranks | None = None,
    progress: Callable[[int], object] | None = None,
) -> Signature:
    """The signature of a network, each finished batch recorded; goes on where an earlier run ended.

    Parameters
    ----------
    model, pool, covariance, companions, micro_batch, device, precision, channels_last, scoring, provenance
        As for :func:`affscore.signature`.
    batches
        A sequence of batches, such as :func:`affscore.zoo.datasets.load_dataset` gives or a list.
    folder, name
        The result goes to ``folder/name.json``, the records to ``folder/records``.
    restart
        Begin anew. What is there from before is renamed, not deleted.
    ranks
        The processes that share the work (:func:`joined_ranks`); all of them make this same call.
    progress
        Called with the number of batches that were just finished on this rank, or found finished.

    Returns
    -------
    Signature
        On every rank. Its provenance says nothing about times, so that runs can be compared.

    Raises
    ------
    RunError
        If a batch fails (a damaged image does not: it is skipped, and listed in the record of its batch), a data
        worker dies, or another rank fails. Says how many batches are kept.
    RecordError
        If the records there are damaged, are being written, or belong to a run that differs in anything that the
        result may depend on; the message names the differences.
    OSError
        If a record cannot be written, for instance because the disk is full.
    KeyboardInterrupt
        As it came, with a message that says how many batches are kept.

    Examples
    --------
    >>> import tempfile
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
    >>> data = list(torch.randn(3, 64, 8))                                  # three batches (64, 8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = run(model, data, folder, "small")
    ...     merge(folder, "small").scores.tolist() == result.scores.tolist()
    True
    """
    folder, ranks = Path(folder), ranks or Ranks()
    if not (hasattr(batches, "__len__") and hasattr(batches, "__getitem__")):
        raise TypeError(f"batches is a {type(batches).__name__}; it should be a sequence, such as a list.")
    if not name or "/" in name or "\\" in name:
        raise ValueError(f"name is {name!r}; it should be usable as the name of a file.")
    if not len(batches):
        raise ValueError("batches is empty; it should hold at least one batch.")
    settings = {
        "pool": pool, "covariance": covariance, "companions": companions, "micro_batch": micro_batch,
        "precision": precision, "channels_last": channels_last, "scoring": scoring,
    }  # fmt: skip
    path = folder / "records" / f"{name}.{ranks.rank}.jsonl"

    def prepare() -> Record:
        header = _header(model, batches, resolve_device(model, device), settings, provenance or {})
        if ranks.rank == 0:
            _check_result(folder / f"{name}.json", header)
        return Record(path, header)

    if restart:
        ranks.together(lambda: set_aside(folder, name) if ranks.rank == 0 else None)
    with contextlib.ExitStack() as stack:
        record = ranks.together(lambda: stack.enter_context(prepare()))
        # Each rank may see the records of its own machine only, so they tell each other what is done.
        found = ranks.together(lambda: _together(_read(folder, name)))
        done: set[int] = set().union(*ranks.gather(set(found.batches)))
        if progress:
            progress(len(done) if ranks.rank == 0 else 0)
        mine = [k for k in range(len(batches)) if k not in done][ranks.rank :: ranks.world]
        try:
            ranks.together(lambda: _work(model, batches, mine, record, settings, device, progress))
        except KeyboardInterrupt as error:
            raise KeyboardInterrupt(_kept("interrupted.", folder, name)) from error
        except OSError as error:
            raise os_error(error.errno, _kept(str(error), folder, name)) from error
        except ValueError as error:
            raise RunError(_kept(str(error), folder, name)) from error
    parts = ranks.gather(ranks.together(lambda: _read(folder, name)))
    result = ranks.together(lambda: _signature(_together(record for part in parts for record in part)))
    ranks.together(lambda: result.save(folder / f"{name}.json") if ranks.rank == 0 else None)
    return result


def _kept(message: str, folder: Path, name: str) -> str:
    done, total = progress_of(folder, name)
    return f"{message.rstrip('.')}. {done} of {total} batches are kept in {folder / 'records'}; the same run goes on."


def _check_result(path: Path, header: dict[str, Any]) -> None:
    """A finished signature is replaced only by that of the same run."""
    if not path.exists():
        return
    there = Signature.load(path)
    old = {"batches": len(there.batch_sizes), "pool": there.pool, "covariance": there.covariance}
    facts = dict(there.provenance)
    facts["data"] = {key: value for key, value in facts.get("data", {}).items() if key != "skipped"}
    old["companions"] = list(there.companions)
    new = {key: header[key] for key in old}
    different = differences(old, new) + differences(facts, json.loads(json.dumps(header["provenance"])))
    if different:
        raise RecordError(f"{path} is the signature of another run: {'; '.join(different)}.")


def _work(
    model: nn.Module,
    batches: Batches,
    numbers: list[int],
    record: Record,
    settings: dict[str, Any],
    device: str | torch.device | None,
    progress: Callable[[int], object] | None,
) -> None:
    """Compute some batches and append them to the record of this rank."""
    if not numbers:
        return
    skipped: dict[int, list[dict[str, str]]] = {}
    source = _loaded(batches, numbers, skipped)
    for result in batch_results(model, source, Settings(**settings), device=device, numbers=numbers):
        calls = _calls_line(result)
        known = next((content for kind, content in record.lines if kind == "calls"), None)
        if known is None:
            record.append("calls", calls)
        elif known["calls"] != calls["calls"]:
            raise RunError(f"the activation calls of batch {result.index} differ from those in {record.path}.")
        record.append("batch", _batch_line(result, skipped.get(result.index, [])))
        if progress:
            progress(1)


def _loaded(batches: Batches, numbers: list[int], skipped: dict[int, list[dict[str, str]]]) -> Iterator[Any]:
    """The batches with these numbers; notes the images that each had to do without."""
    batches = copy.copy(batches)
    if hasattr(batches, "skipped"):
        batches.skipped = []  # of this run alone: an earlier one may have met the same images
    source = iter(batches.select(numbers) if hasattr(batches, "select") else (batches[k] for k in numbers))
    for number in numbers:
        before = len(getattr(batches, "skipped", ()))
        try:
            batch = next(source)
        except (OSError, ValueError) as error:
            named = f"batch {number}" in str(error)
            raise OSError(str(error) if named else f"batch {number} cannot be read ({error}).") from error
        skipped[number] = list(getattr(batches, "skipped", ())[before:])
        yield batch
