"""Full-scale runs: a signature whose finished batches are kept, on one process or many.

:func:`run` computes what :func:`affscore.signature` computes, and writes each finished batch to a file of its own
(:mod:`affscore.suite.records`) before it goes on. Run again after an interruption of any kind, it does what is missing
and ends with the same bits as a run that was never interrupted: same machine, versions and settings, which it checks.

Under ``torchrun`` (:mod:`affscore.suite.ranks`), rank r of w takes every w-th of the missing batches, from the r-th on.
The batches are put together in their order, so the result does not depend on how many ranks there were; a later run may
have another number. A folder of a run holds::

    resnet50.json                           the finished signature (affscore.Signature.load)
    records/resnet50/batch-00000.json       what the first batch gave, and so on
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import scipy
import torch
from torch import nn

from affscore.engine import batch_results, circumstances, resolve_device, versions
from affscore.settings import Settings
from affscore.signatures import Signature
from affscore.suite import records
from affscore.suite.ranks import Ranks, RunError
from affscore.suite.records import RecordError
from affscore.zoo.batches import Batches

__all__ = ["file_name", "in_words", "network_checksum", "run", "weights_checksum"]


#: What a run measures: any batch by its number.
Data = Batches | Sequence[Any]


def file_name(model: str) -> str:
    """The name of a network as that of a file; of a path only its end.

    >>> file_name("resnet50"), file_name("timm:vit_tiny_patch16_224.augreg_in21k"), file_name("hf:~/models/tiny-bert")
    ('resnet50', 'timm-vit_tiny_patch16_224.augreg_in21k', 'hf-tiny-bert')
    """
    hub, colon, name = model.rpartition(":")
    return re.sub(r"[^\w.-]", "-", hub + colon + os.path.basename(os.path.normpath(name)))


def weights_checksum(model: nn.Module) -> str:
    """The SHA-256 of all parameters and buffers of a network, their names, dtypes and shapes."""
    digest = hashlib.sha256()
    for name, value in sorted(model.state_dict().items()):
        _feed(digest, name, value)
    return digest.hexdigest()


def network_checksum(model: nn.Module) -> str:
    """The SHA-256 of what a network is beside its weights, as far as its modules say.

    The kind of each module, its description (``extra_repr``), and those of its attributes that are numbers or text:
    slopes, eps, the names of activations. What the code of ``forward`` does cannot be seen.
    """
    digest = hashlib.sha256()
    for name, module in model.named_modules():
        plain = {key: value for key, value in vars(module).items() if _is_plain(value) and key != "training"}
        facts = [name, type(module).__module__, type(module).__qualname__, module.extra_repr(), sorted(plain.items())]
        if hasattr(module, "config"):
            facts.append(str(module.config))
        digest.update(f"{facts}\n".encode())
    return digest.hexdigest()


def _is_plain(value: Any) -> bool:
    return (isinstance(value, tuple) and all(map(_is_plain, value))) or isinstance(value, int | float | str | None)


def _feed(digest: Any, name: str, value: Any) -> None:
    if isinstance(value, torch.Tensor):
        digest.update(f"{name} {value.dtype} {tuple(value.shape)}\n".encode())
        digest.update(value.detach().cpu().contiguous().flatten().view(torch.uint8).numpy())
    elif isinstance(value, Mapping | list | tuple):
        for key, item in sorted(value.items()) if isinstance(value, Mapping) else enumerate(value):
            _feed(digest, f"{name}.{key}", item)


def in_words(facts: Mapping[str, Any]) -> str:
    """What data or weights are compared by: their name and the beginning of their checksum."""
    name = [str(facts[key]) for key in ("dataset", "source") if key in facts][:1]
    sums = [f"{key} {str(facts[key])[:12]}" for key in ("sha256", "first_batch_sha256", "seed") if key in facts]
    return ", ".join(name + sums)


def _described(
    model: nn.Module, batches: Data, device: torch.device, settings: Settings, provenance: Mapping[str, Any]
) -> dict[str, Any]:
    """All that the bits of a result may depend on. A run goes on only where all of it is the same."""
    if isinstance(batches, Batches):
        data = batches.provenance
    else:
        digest = hashlib.sha256()
        _feed(digest, "", next(_loaded(batches, [0], {})))
        data = {"first_batch_sha256": digest.hexdigest()}
    facts: dict[str, Any] = {
        "model": type(model).__name__,
        **provenance,
        "weights_sha256": weights_checksum(model),
        "network_sha256": network_checksum(model),
        "data": {key: value for key, value in data.items() if key != "skipped"},
        **circumstances(settings, device),
        "versions": versions() | {"scipy": scipy.__version__},
    }
    if device.type == "cpu":
        # On the CPU some kernels add up in an order that depends on the number of threads.
        facts["threads"] = torch.get_num_threads()
    else:
        facts["versions"] |= {"cuda": torch.version.cuda, "cudnn": torch.backends.cudnn.version()}
    measured = {key: getattr(settings, key) for key in ("pool", "covariance", "companions")}
    return json.loads(json.dumps({"batches": len(batches), **measured, "provenance": facts}))


def run(
    model: nn.Module,
    batches: Data,
    folder: str | os.PathLike[str],
    name: str,
    *,
    settings: Settings | None = None,
    device: str | torch.device | None = None,
    provenance: Mapping[str, Any] | None = None,
    restart: bool = False,
    ranks: Ranks | None = None,
    progress: Callable[[int], object] | None = None,
    say: Callable[[str], object] | None = None,
) -> Signature:
    """The signature of a network, each finished batch recorded; goes on where an earlier run ended.

    Parameters
    ----------
    model, device, provenance
        As for :func:`affscore.signature`.
    batches
        A sequence of batches, such as :func:`affscore.zoo.datasets.load_dataset` gives or a list.
    folder, name
        The result goes to ``folder/name.json``, the records to ``folder/records/name``.
    settings
        How the network is measured; :class:`affscore.settings.Settings` by default.
    restart
        Begin anew. What is there from before is renamed, not deleted.
    ranks
        The processes that share the work (:func:`affscore.suite.ranks.joined_ranks`); all of them make this same call.
    progress
        Called with the number of batches that were found finished, and after each of this rank's with the number that
        all ranks finish in that time if they are as fast.
    say
        Called, where batches are found finished, with a line that says what they and this run were compared by.

    The signature is returned on every rank. Its provenance says nothing about times, so that runs can be compared.

    Raises
    ------
    RunError
        If a batch fails (a damaged image does not: it is skipped, and listed in the record of its batch), a data
        worker dies, or another rank fails.
    RecordError
        If the records are damaged, are to be renamed while another process writes them, or belong to a run that differs
        in anything that the result may depend on: the differences are named. Of a list the first batch is compared.
    OSError, KeyboardInterrupt
        If a record cannot be written, for instance because the disk is full; as it came. These two and RunError say
        how many batches are kept.

    Examples
    --------
    >>> import tempfile
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
    >>> data = list(torch.randn(3, 64, 8))                                  # three batches (64, 8)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = run(model, data, folder, "small")
    ...     records.merge(folder, "small").scores.tolist() == result.scores.tolist()
    True
    """
    folder, settings, ranks = Path(folder), settings or Settings(), ranks or Ranks()
    sequence = hasattr(batches, "__len__") and hasattr(batches, "__getitem__")
    if isinstance(batches, torch.Tensor | Mapping | str) or not sequence:
        raise TypeError(f"batches is a {type(batches).__name__}; it should be a sequence of batches, such as a list.")
    if name in ("", ".", "..") or "/" in name or "\\" in name:
        raise ValueError(f"name is {name!r}; it should be usable as the name of a file.")
    if not len(batches):
        raise ValueError("batches is empty; it should hold at least one batch.")
    if restart:
        ranks.one_first(lambda: records.set_aside(folder, name))
    here = ranks.together(lambda: _described(model, batches, resolve_device(model, device), settings, provenance or {}))
    path = folder / f"{name}.json"
    with ExitStack() as stack:
        ranks.together(lambda: stack.enter_context(records.held(folder, name)))
        found = ranks.together(lambda: _found(path, here, ranks))

        # Each rank may see the records of its own machine only, so they tell each other what is done.
        done = set().union(*ranks.gather(set(found)))
        missing = [k for k in range(len(batches)) if k not in done]
        end = len(batches) if path.exists() else max(done, default=0)
        if ranks.rank == 0 and (lost := [k for k in missing if k < end]):
            place = folder / "records" / name
            warnings.warn(f"{place} lacks batch {records.some(lost)}; it is measured again.", stacklevel=2)
        if say and done and ranks.rank == 0:
            sums = here["provenance"]["weights_sha256"][:12], in_words(here["provenance"]["data"])
            begun = f"Going on from {len(done)} of {len(batches)} batches" if missing else "Finished before"
            say(f"{begun}: same network, weights (sha256 {sums[0]}), data ({sums[1]}), settings, versions.")
        if progress:
            progress(len(done))
        mine = missing[ranks.rank :: ranks.world]

        def work() -> None:
            if not mine:
                return
            skipped: dict[int, list[dict[str, str]]] = {}
            source = _loaded(batches, mine, skipped)
            for i, result in enumerate(batch_results(model, source, settings, device=device, numbers=mine)):
                records.write_batch(folder, name, here, result, skipped[result.index])
                found[result.index] = result, skipped[result.index]
                if progress:
                    progress(len(missing[i * ranks.world :][: ranks.world]))

        try:
            ranks.together(work)
        except (KeyboardInterrupt, OSError, ValueError) as error:
            kept, _ = records.progress_of(folder, name)
            why = "interrupted" if isinstance(error, KeyboardInterrupt) else str(error).rstrip(".")
            text = f"{why}. {kept} of {len(batches)} batches are kept in {folder / 'records'}; the same run goes on."
            if isinstance(error, OSError):
                raise records.os_error(error.errno, text) from error
            raise (KeyboardInterrupt if isinstance(error, KeyboardInterrupt) else RunError)(text) from error
        # Of those that several ranks see, the first one tells the others.
        seen = ranks.gather(set(found))
        own = {k: batch for k, batch in found.items() if k not in set().union(*seen[: ranks.rank])}
        together = {k: batch for part in ranks.gather(own) for k, batch in part.items()}
        result = ranks.together(lambda: records.signature_of(here, together))

        def save() -> None:
            if ranks.rank == 0:
                records.check_signature(path, here)  # another run may have ended meanwhile
                result.save(path)

        ranks.together(save)
        return result


def _found(path: Path, here: records.Run, ranks: Ranks) -> dict[int, records.Batch]:
    """The batches that this rank sees finished; RecordError if they, the signature or a rank are of another run."""
    for rank, other in enumerate(ranks.gather(here)):
        if different := records.differences(other, here):
            raise RecordError(f"rank {rank} (there) and rank {ranks.rank} (here) differ: {'; '.join(different)}.")
    if ranks.rank == 0:
        records.check_signature(path, here)
    return records.read_batches(path.parent, path.stem, here)[1]


def _loaded(batches: Data, numbers: list[int], skipped: dict[int, list[dict[str, str]]]) -> Iterator[Any]:
    """The batches with these numbers; notes the images that each had to do without."""
    met: list[dict[str, str]] = []  # in this run alone: an earlier one may have met the same images
    if isinstance(batches, Batches):
        batches = batches.select(numbers)
        batches.skipped = met
        source = iter(batches)
    else:
        source = (batches[k] for k in numbers)
    for number in numbers:
        before = len(met)
        try:
            batch = next(source)
        except (OSError, ValueError) as error:
            named = f"batch {number}" in str(error)
            raise OSError(str(error) if named else f"batch {number} cannot be read ({error}).") from error
        skipped[number] = met[before:]
        yield batch
