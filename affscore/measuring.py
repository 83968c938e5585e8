"""Run a network over batches and measure every activation call.

:func:`signature` measures a whole signature. :func:`batch_results`, below it, yields the result of each batch, for
code that stores them one by one. The scores are computed in threads (:mod:`affscore.score_queue`). At most
:data:`AHEAD` batches wait for theirs, which bounds the memory. The caller's thread settings decide the number of
workers and change no bit of the results.
"""

from __future__ import annotations

import itertools
import operator
import platform
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from importlib import metadata
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from affscore.arguments import line_of
from affscore.arrays import stay_on_one_thread
from affscore.forward import Forward, inputs_of
from affscore.score_queue import ScoringQueue, sentence
from affscore.settings import Settings
from affscore.signatures import BatchResult, Signature, SignatureError
from affscore.stacked import device_name
from affscore.stored import check_provenance
from affscore.tracing import check_traceable

__all__ = ["batch_results", "circumstances", "resolve_device", "signature", "versions"]

#: How many batches may wait for their scores while the next one runs, by type of device. On a CPU the network itself
#: needs the cores, so only loading overlaps with scoring.
AHEAD = {"cpu": 0, "cuda": 2}
#: The keys of the provenance that a run writes itself.
_RECORDED = {
    "device", "micro_batch", "precision", "channels_last", "calls", "channel_axis", "started", "seconds", "versions",
}  # fmt: skip


def signature(
    model: nn.Module,
    batches: Iterable[Any],
    *,
    pool: str = "spatial",
    covariance: str = "ledoit_wolf",
    companions: bool | Sequence[str] = (),
    micro_batch: int | None = None,
    precision: str = "full",
    channels_last: bool = False,
    calls: str | None = None,
    channel_axis: Mapping[str, int] | None = None,
    device: str | torch.device | None = None,
    progress: bool = False,
    provenance: Mapping[str, Any] | None = None,
) -> Signature:
    """The non-linearity signature of a network: the affinity score of every activation call, batch by batch.

    The book's chapter ``first_signature`` explains it, ``measuring`` what it averages over. Read
    a score beside that of the call's linear twin (``companions=["twin"]``): with few samples, a linear layer scores
    below 1, too.

    Every element-wise operator that is fixed and not affine is a call. Softmax and normalisation layers do not count.
    The tracer does not see activations inside another library's fused kernels whose names do not reveal them.
    Activations that are added up before anything else uses them are one call, ``elementwise[...]``. ``excluded`` of
    the result lists the calls that were seen and not scored, with the reason: :mod:`affscore.tracing` has the kinds.

    Parameters
    ----------
    model
        Any ``torch.nn.Module``. It runs in evaluation mode and without gradients. Afterwards every module is returned
        to its previous mode, and stays on ``device``. A network that changes its weights when it runs is refused; its
        buffers may change.
    batches
        An iterable of batches, or a single batch that is a tensor or a mapping. A batch is one statistical sample: a
        tensor of shape (n, ...) with n >= 2, a pair (inputs, targets) as data loaders give, or a mapping from argument
        names to tensors. Tokens for which an ``attention_mask`` (n, tokens) is 0 are padding and are ignored.
    pool, covariance, companions, micro_batch, precision, channels_last, calls, channel_axis
        How it is measured: see :class:`affscore.settings.Settings`.
    device
        Where to run, for instance ``"cuda"``; the network is moved there and stays there. ``"auto"`` is a GPU if
        there is one. By default the network is not moved.
    progress
        Show a progress bar, which needs the package tqdm.
    provenance
        Facts to store with the result, such as the names of weights and data, in values that JSON can hold. The run
        records its device, settings, times and versions itself.

    Returns
    -------
    Signature

    Raises
    ------
    SignatureError
        (a ValueError) If a batch cannot be scored: it could not be read, it has a wrong type or fewer than 2 samples,
        the network failed on it, the output of an activation holds NaN or infinite values (the error names the call),
        or its calls differ from those of earlier batches. Its attribute ``finished`` holds the signature of the
        batches so far.
    KeyboardInterrupt
        With the same attribute, if the keyboard interrupts the run.
    ValueError, TypeError
        If an argument is wrong or the model is compiled or scripted.

    Warns
    -----
    AffscoreWarning
        (a UserWarning) Once for all calls in ``excluded``, except those that depend on parameters alone; and if the
        network made no call. Once for each call that varies so little that rounding can move its score by more than
        0.005, that has channels which vary only by rounding, or whose input alone holds infinite values.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.Tanh())
    >>> result = signature(model, [torch.randn(64, 8), torch.randn(64, 8)], pool="spatial")    # two batches (64, 8)
    >>> result.scores.shape, [call.name for call in result.calls]
    ((2, 2), ['1:relu[0]', '3:tanh[0]'])
    """
    settings = Settings(
        pool=pool, covariance=covariance, companions=companions, micro_batch=micro_batch, precision=precision,
        channels_last=channels_last, calls=calls, channel_axis=channel_axis or {},
    )  # fmt: skip
    facts = dict(provenance) if isinstance(provenance, Mapping) else provenance or {}
    check_provenance(facts)  # fail before the work, not after it
    if own := sorted(_RECORDED & facts.keys()):
        raise ValueError(f"provenance names {own[0]!r}, which the run records itself; it should have another name.")
    results: list[BatchResult] = []
    started, clock = datetime.now(UTC), time.perf_counter()
    running: Iterable[BatchResult] = batch_results(model, batches, settings, device=device)
    target = resolve_device(model, device)

    def finished() -> Signature | None:
        if not results:
            return None
        stored = {
            "model": type(model).__name__,
            **facts,
            **circumstances(settings, target),
            "started": started.isoformat(timespec="seconds"),
            "seconds": round(time.perf_counter() - clock, 3),
            "versions": versions(),
        }
        return Signature.from_results(results, pool=settings.pool, covariance=settings.covariance, provenance=stored)

    if progress:
        try:
            from tqdm.auto import tqdm
        except ImportError as error:
            raise ImportError("progress needs the package tqdm: pip install tqdm.") from error
        running = tqdm(running, desc="batches", total=operator.length_hint(batches) or None)
    try:
        for result in running:
            results.append(result)
    except (SignatureError, KeyboardInterrupt) as error:
        error.finished = finished()  # type: ignore[union-attr]
        raise
    whole = finished()
    if whole is None:
        raise SignatureError("batches is empty; it should give at least one batch.")
    return whole


def batch_results(
    model: nn.Module,
    batches: Iterable[Any],
    settings: Settings | None = None,
    *,
    device: str | torch.device | None = None,
    numbers: Iterable[int] | None = None,
) -> Iterator[BatchResult]:
    """The results of a network's batches, one by one in order.

    Parameters
    ----------
    model, batches, device
        As for :func:`affscore.signature`.
    settings
        How it is measured; by default ``Settings()``.
    numbers
        The number of each batch, if these are some of many; by default 0, 1, 2 and so on.

    Yields
    ------
    BatchResult
        As soon as it and all before it are finished. Between two results each module has the mode it had before.

    Raises
    ------
    SignatureError
        If a batch fails, after the results of all batches before it.
    ValueError, TypeError
        At once, if an argument is wrong or the model is compiled or scripted.

    Examples
    --------
    >>> model = nn.Sequential(nn.Linear(8, 16), nn.ReLU())
    >>> batches = [torch.randn(64, 8), torch.randn(32, 8)]
    >>> for result in batch_results(model, batches, Settings(companions=["cka"])):
    ...     print(result.index, result.size, [call.name for call in result.calls], list(result.companions))
    0 64 ['1:relu[0]'] ['cka']
    1 32 ['1:relu[0]'] ['cka']
    """
    settings = settings or Settings()
    if isinstance(batches, Tensor | Mapping):
        batches = [batches]
    if isinstance(batches, str | np.ndarray) or not isinstance(batches, Iterable):
        raise TypeError(
            f"batches is a {type(batches).__name__}; it should be an iterable of batches, such as a data loader or a "
            "list of tensors, or one batch, a tensor."
        )
    if _is_pair(batches):
        raise ValueError(
            "batches holds two tensors that look like the inputs and targets of one batch; to measure that batch, give "
            "its inputs alone, or [batch]."
        )
    check_traceable(model)
    target = resolve_device(model, device)
    if any(parameter.is_meta for parameter in model.parameters()):
        raise ValueError("model is on the meta device and has no weights; load them first.")
    if device is not None:
        model.to(target)
    return _run(model, batches, settings, target, numbers)


def _is_pair(batches: Iterable[Any]) -> bool:
    """Whether these are inputs and targets, as one step of a data loader gives them, in place of batches."""
    if not isinstance(batches, list | tuple) or len(batches) != 2 or not all(isinstance(x, Tensor) for x in batches):
        return False
    one, other = batches
    return len(one.shape) != len(other.shape) or one.is_floating_point() != other.is_floating_point()


def resolve_device(model: nn.Module, device: str | torch.device | None) -> torch.device:
    """``device``, checked; for ``"auto"`` a GPU if there is one; otherwise the device of the network's parameters."""
    if device == "auto" and torch.cuda.is_available():
        return torch.device("cuda")
    if device not in (None, "auto"):
        try:
            torch.zeros(1, device=device).item()  # the meta device has no values
            return torch.device(device)
        except (AssertionError, RuntimeError, TypeError) as error:  # torch without CUDA asserts
            raise ValueError(
                f"device is {device!r}; it should be 'auto', 'cpu' or another that can be used here ({line_of(error)})."
            ) from error
    first = next(model.parameters(), None)
    return torch.device("cpu") if first is None else first.device


def circumstances(settings: Settings, device: torch.device) -> dict[str, Any]:
    """The device and those settings for which a signature has no field, as values that JSON can hold."""
    facts: dict[str, Any] = {key: getattr(settings, key) for key in ("micro_batch", "precision", "channels_last")}
    facts |= {"calls": settings.calls} if settings.calls else {}
    facts |= {"channel_axis": dict(settings.channel_axis)} if settings.channel_axis else {}
    return {"device": device_name(device), **facts}


def versions() -> dict[str, str]:
    """The versions of Python and of the packages that determine the numbers."""
    return {
        "affscore": metadata.version("affscore"),
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
    }


def _run(
    model: nn.Module, batches: Iterable[Any], settings: Settings, device: torch.device, numbers: Iterable[int] | None
) -> Iterator[BatchResult]:
    ahead = AHEAD.get(device.type, 0)
    failure: BaseException | None = None
    index = -1
    with ThreadPoolExecutor(torch.get_num_threads(), "affscore", stay_on_one_thread) as scorers:
        queue = ScoringQueue(Forward(model, device, settings), scorers)
        try:
            try:
                source, end = iter(batches), object()
                for index in itertools.count() if numbers is None else numbers:
                    if (batch := next(source, end)) is end:
                        break
                    inputs = inputs_of(batch, index)
                    while queue and (len(queue) > ahead or queue.ready()):
                        yield queue.first()
                    queue.launch(index, inputs)
            except (GeneratorExit, SignatureError):
                raise
            except BaseException as error:
                failure = error
            # Results of the batches before a failure come first; after an interruption, only those that are ready.
            while queue and (queue.ready() or failure is None or isinstance(failure, Exception)):
                yield queue.first()
            if isinstance(failure, Exception):
                raise SignatureError(sentence(failure, index)) from failure
            if failure is not None:
                raise failure
        finally:
            scorers.shutdown(wait=False, cancel_futures=True)
            # The workers' number of threads is also the default of later threads; this sets the caller's number again.
            torch.set_num_threads(torch.get_num_threads())
