"""A look into a network with a kernel: one activation call's clouds before and after, its score and its companions.

Unlike the other widgets this one runs a network, so it needs Python: Jupyter or Colab. A static page shows the picture
of its first state, which is stored with the notebook. Built on ipywidgets, which comes with ``affscore[widgets]``.
"""

from __future__ import annotations

import base64
import io
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache, partial
from html import escape
from typing import Any

import ipywidgets
import matplotlib
import numpy as np
import torch
import traitlets
from matplotlib.figure import Figure
from torch import Tensor, nn

from affscore.calls import Observation
from affscore.companions import measure
from affscore.plots import BLUE, VERMILION
from affscore.pooling import POOLS
from affscore.score import affinity_score
from affscore.suite.tables import Table
from affscore.tracing import trace
from affscore.zoo.datasets import check_name, load_dataset
from affscore.zoo.models import load_model

__all__ = ["Explorer", "explorer"]

VIEWS = ("two channels", "principal components")
_COMPANIONS = {
    "cka": "CKA",
    "r2_held_out": "R2, held out",
    "norm_per_sample": "norm per sample",
    "entropy_change": "change of entropy",
    "sparsity_before": "zeros before",
    "sparsity_after": "zeros after",
}


def projected(before: np.ndarray, after: np.ndarray, view: str) -> tuple[list[np.ndarray], list[str]]:
    """Two clouds, float64 (samples, channels), in the plane: (samples, 2) each, and the names of the two axes.

    Views as in :class:`Explorer`. Principal components have the signs that make their largest entry positive.
    """
    if before.shape[1] == 1:
        return [np.column_stack([cloud[:, 0], np.zeros(len(cloud))]) for cloud in (before, after)], ["channel 0", ""]
    if view == VIEWS[0]:
        channels = np.sort(np.argsort(before.var(axis=0))[::-1][:2])
        return [before[:, channels], after[:, channels]], [f"channel {channel}" for channel in channels]
    planes = []
    for cloud in (before, after):
        centred = cloud - cloud.mean(axis=0)
        axes = np.linalg.svd(centred, full_matrices=False)[2][:2]
        signs = np.sign(axes[np.arange(len(axes)), np.abs(axes).argmax(axis=1)])  # the same on every machine
        planes.append(centred @ (axes * signs[:, None]).T)
    return planes, ["first component", "second component"]


def drawn(clouds: Sequence[np.ndarray], names: Sequence[str], title: str) -> bytes:
    """The clouds before and after, (samples, 2) each, as PNG."""
    with matplotlib.rc_context({"font.size": 14, "axes.grid": True, "grid.color": "#dddddd", "axes.axisbelow": True}):
        figure = Figure(figsize=(6, 3.6), dpi=100, layout="constrained", facecolor="white")
        looks = zip(figure.subplots(1, 2), clouds, (BLUE, VERMILION), ("before", "after"), strict=True)
        for axes, cloud, colour, when in looks:
            axes.plot(*cloud.T, "o", color=colour, markersize=4, alpha=0.6, mew=0)
            axes.set(title=when, xlabel=names[0], ylabel=names[1])
            axes.locator_params(nbins=4)
        figure.suptitle(title, fontsize=14)
        file = io.BytesIO()
        figure.savefig(file, format="png")
    return file.getvalue()


class Explorer(ipywidgets.VBox):
    """Choose a model, data, pool and activation call; see its input and output, score and companions.

    :func:`explorer` makes it by names; for networks of your own, ``models[name]()`` makes one and
    ``datasets[name](model name)`` a batch of its input, (samples, ...). The traits may be set from Python as well;
    setting one recomputes what follows.

    Attributes
    ----------
    model, data
        Names of a model and of a data set.
    pool
        ``"spatial"`` or ``"trailing"``.
    call
        Name of the activation call, one of :attr:`calls`.
    view
        ``"two channels"`` (those that vary most before the activation) or ``"principal components"`` (of the input;
        the output is projected onto its own).
    score, companions
        The score of the call, NaN where its output does not vary, and its companion measures by name.

    Examples
    --------
    >>> _ = torch.manual_seed(0)
    >>> network = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2), nn.Tanh())
    >>> view = Explorer({"small": lambda: network}, {"normal": lambda _: torch.randn(32, 4)})
    >>> view
    Explorer(model='small', data='normal', pool='spatial', call='1:relu[0]', view='two channels')
    >>> view.call = "3:tanh[0]"
    >>> 0 < view.score < 1
    True
    """

    model = traitlets.Unicode()
    data = traitlets.Unicode()
    pool = traitlets.Enum(POOLS, default_value="spatial")
    call = traitlets.Unicode()
    view = traitlets.Enum(VIEWS, default_value=VIEWS[0])

    def __init__(self, models: Mapping[str, Callable[[], nn.Module]], datasets: Mapping[str, Callable[..., Tensor]]):
        self._models, self._datasets = {name: cache(make) for name, make in models.items()}, dict(datasets)
        self._seen: dict[tuple[str, str, str], dict[str, Observation]] = {}
        self.score = math.nan
        self.companions: dict[str, float] = {}
        self._picture = ipywidgets.Image(format="png", layout=ipywidgets.Layout(max_width="100%"))
        self._table = ipywidgets.HTML()
        self._status = ipywidgets.Label()
        choices: Sequence[Iterable[str]] = (models, datasets, POOLS, (), VIEWS)
        lists = zip(("model", "data", "pool", "call", "view"), choices, strict=True)
        self._lists = {name: ipywidgets.Dropdown(description=name, options=list(some)) for name, some in lists}
        super().__init__([*self._lists.values(), self._status, self._picture, self._table])
        self._busy = True
        self.model, self.data = next(iter(self._models)), next(iter(self._datasets))
        self._busy = False
        self._update()
        for name, box in self._lists.items():
            box.observe(lambda change, name=name: setattr(self, name, change.new or ""), "value")
        self.observe(lambda _: self._update(), list(self._lists))

    @property
    def calls(self) -> list[str]:
        """Names of the activation calls of the present model, in execution order."""
        return list(self._observations())

    @traitlets.validate("model", "data", "call")
    def _known(self, proposal: Any) -> str:
        name, value = proposal["trait"].name, proposal["value"]
        options = self.calls if name == "call" else list(self._models if name == "model" else self._datasets)
        if value not in options and not self._busy:
            raise traitlets.TraitError(f"{name} is {value!r}; it should be one of {', '.join(options)}.")
        return value

    def _observations(self) -> dict[str, Observation]:
        """The calls of the present model on the present data, watched once for each pool."""
        key = self.model, self.data, self.pool
        if key not in self._seen:
            network, batch = self._models[self.model]().eval(), self._datasets[self.data](self.model)
            with torch.no_grad(), trace(network, len(batch), self.pool, sparsity=True) as found:
                network(batch)
            self._seen[key] = {observation.call.name: observation for observation in found.observations}
        return self._seen[key]

    def _update(self) -> None:
        """Compute and draw the present state; ``call`` falls back to the first where the model has none so named."""
        if self._busy:
            return
        self._busy = True
        try:
            self._status.value = f"{self.model} runs on {self.data} ..."
            found = self._observations()
            if self.call not in found:
                self.call = next(iter(found), "")
            self._lists["call"].options = list(found)
            for name, box in self._lists.items():
                box.value = getattr(self, name) or None
            self._compute(found.get(self.call))
        except Exception as error:
            self._status.value = str(error)  # an error in a list's callback would be seen by nobody
            raise
        finally:
            self._busy = False

    def _compute(self, observation: Observation | None) -> None:
        if observation is None:
            self.score, self.companions = math.nan, {}
            self._status.value = f"{self.model} has no activation call."
            self._table.value = ""
            return
        before, after = observation.before.double(), observation.after.double()
        self.score = affinity_score(before, after, covariance="ledoit_wolf").item()
        self.companions = measure(before, after)
        self.companions |= zip(
            ("sparsity_before", "sparsity_after"), map(float, observation.sparsity or ()), strict=True
        )
        self._status.value = f"{len(before)} samples of {before.shape[1]} channels ({self.pool} pool)"
        self._table.value = self.table()._repr_html_()
        shown = "undefined" if math.isnan(self.score) else f"{self.score:.3f}"
        clouds, names = projected(before.numpy(), after.numpy(), self.view)
        self._picture.value = drawn(clouds, names, f"{self.call}: score {shown}")

    def table(self) -> Table:
        """The score and the companions of the present call."""
        found = {label: self.companions[name] for name, label in _COMPANIONS.items() if name in self.companions}
        return Table({"measure": ["affinity score", *found], "value": [self.score, *found.values()]})

    def __repr__(self) -> str:
        return f"Explorer({', '.join(f'{name}={getattr(self, name)!r}' for name in self._lists)})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        """The live widget, and for pages without a kernel its present picture."""
        data = super()._repr_mimebundle_(**kwargs) or {}
        data["text/plain"] = repr(self)
        if "google.colab" not in sys.modules:  # Colab shows text/html in place of the live widget
            picture = base64.b64encode(self._picture.value).decode()
            alt = escape(f"Input and output of {self.call} of {self.model} on {self.data}, score {self.score:.3f}")
            data["text/html"] = (
                f'<figure><img src="data:image/png;base64,{picture}" alt="{alt}" style="background: white; '
                f'max-width: 100%"><figcaption>{escape(self.model)} on {escape(self.data)}, {escape(self.pool)} pool. '
                f"With a kernel, lists choose all of these.</figcaption></figure>{self.table()._repr_html_()}"
            )
        return data


def explorer(models: Sequence[str], datasets: Sequence[str], *, samples: int = 64) -> Explorer:
    """An :class:`Explorer` of networks and data by name.

    Parameters
    ----------
    models
        Names that :func:`affscore.zoo.models.load_model` knows.
    datasets
        Names that :func:`affscore.zoo.datasets.load_dataset` knows.
    samples
        Images in a batch.

    Raises
    ------
    ValueError
        If one of them is unknown.
    """
    for name in datasets:
        check_name(name)
    loaded = cache(load_model)

    def network(name: str) -> nn.Module:
        return loaded(name).model

    def batch(data: str, model: str) -> Tensor:
        return load_dataset(data, preprocess=loaded(model).preprocess, batch_size=samples, batches=1)[0]

    return Explorer(
        {name: partial(network, name) for name in models}, {name: partial(batch, name) for name in datasets}
    )
