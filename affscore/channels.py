"""Finds the axis of the channels in each activation by tracking it from the layer that computed the channels.

A *layout* labels each axis of a tensor with its content: samples of the batch, or possibly samples (``N``), channels of
the last layer (``C``), positions that share that layer's weights (``.``), or a mixture (``?``).
A reshape may merge axes and split them again later, so an axis is stored as its factors, each a length and a label:
the windows of a Swin block lie on an axis ``((4, "N"), (49, "."))``, and the channels of a shuffled convolution on two
axes ``((8, "C"),)`` and ``((3, "C"),)`` until they are merged again.

Layers determine the axis of the channels: axis 1 for convolutions, the last axis for linear layers. In a matrix product
the axis of a learned weight becomes the channels; a matrix that is not learned, such as that of a graph, changes no
label. Operators that keep, move, merge or split axes are tracked by the shapes. After any other operator, and after a
sum of two tensors whose layouts disagree, the layout is unknown until the next layer. Operators that select or join
rows are also applied to the numbers of the samples: the rows are the samples (``N``) while each sample occurs once, in
any order. Otherwise they are a selection, whose label (``#0``, ``#1``, ...) refers to its samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import groupby
from typing import Any

import torch
from torch import Tensor

from affscore.calls import ACTIVATIONS, Operator, tensors_in
from affscore.fixed import Fixed
from affscore.torch_internals import WeakTensorKeyDictionary

__all__ = ["VIEWS", "Channels"]

Axis = tuple[tuple[int, str], ...]
Layout = tuple[Axis, ...]

_LIBRARIES = ("aten", "torchvision")  # the layouts of other libraries' operators are unknown
_CONVOLUTIONS = {"convolution", "_convolution", "convolution_overrideable", "cudnn_convolution", "deform_conv2d"}
_CHANNEL_NORMS = {  # channels on axis 1
    "native_batch_norm", "cudnn_batch_norm", "miopen_batch_norm", "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training", "_batch_norm_with_update", "_batch_norm_no_update", "native_group_norm",
}  # fmt: skip
_LAYER_NORMS = {"layer_norm", "native_layer_norm", "rms_norm", "_fused_rms_norm"}
_ATTENTION = {
    "scaled_dot_product_attention", "_scaled_dot_product_flash_attention", "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_flash_attention_for_cpu", "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_fused_attention_overrideable",
}  # fmt: skip
_FEATURES_LAST = {"_native_multi_head_attention", "mkldnn_rnn_layer", "_cudnn_rnn"}
_PRODUCTS = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1}  # the position of the first factor among the arguments
#: Operators that change the shape and keep all entries in order.
VIEWS = {
    "view", "_unsafe_view", "reshape", "_reshape_alias", "flatten", "unflatten", "squeeze", "unsqueeze",
}  # fmt: skip
_UNKNOWN = {"as_strided", "diagonal", "take", "new_zeros", "new_ones", "new_empty", "new_full", "new_empty_strided"}
# Operators whose outputs all have the same layout.
_MANY = {"split", "split_with_sizes", "chunk", "unbind", "tensor_split", "unsafe_split", "unsafe_chunk", "max", "min"}
# Operators that select or join whole rows if they act along the first axis.
_ROWS = {"cat", "index", "index_select", "slice", "narrow", "repeat", "split", "split_with_sizes", "chunk"}
# Operators that permute the rows of each column separately if they act along the first axis.
_SORTS = {"sort", "topk", "gather", "scatter", "scatter_add", "scatter_reduce"}
# Operators on several tensors, where the first tensor determines the layout.
_BY_INDEX = {
    "gather", "index_select", "index", "index_add", "index_copy", "scatter", "scatter_add", "scatter_reduce",
    "grid_sampler_2d", "grid_sampler_3d", "masked_scatter", "index_put", "max_unpool2d", "max_unpool3d",
}  # fmt: skip


def _axis(length: int, label: str) -> Axis:
    """An axis with one label. An axis of length 1 needs no label, unless it is the axis of the channels."""
    return ((length, label),) if length != 1 or label == "C" else ()


def _label(axis: Axis) -> str | None:
    """The label of an axis: ``?`` if it has several labels, None if it has no label."""
    labels = {label for _, label in axis}
    return None if not labels else labels.pop() if len(labels) == 1 else "?"


def _sharing(axis: Axis, first: bool = False) -> Axis:
    """An axis of a layer's input after the layer: its entries share the layer's weights, even if they were channels.

    Only the first axis may stay a mixture, since its rows need not be the samples.
    """
    if first and len(axis) == 1 and axis[0][1] == "?":
        return axis
    return tuple((length, label if label[0] in "N#" else ".") for length, label in axis)


def _resized(axis: Axis, length: int) -> Axis:
    """An axis after slicing, padding or concatenation; some samples may be missing or repeated afterwards."""
    label = _label(axis) or "."
    return axis if math.prod(n for n, _ in axis) == length else _axis(length, "?" if label[0] in "N#" else label)


def _reshaped(layout: Layout, shape: Sequence[int]) -> Layout | None:
    """The layout after a reshape, which distributes the factors over the new axes in order; None if they do not fit."""
    groups = groupby((factor for axis in layout for factor in axis), key=lambda factor: factor[1])
    factors = [(math.prod(length for length, _ in group), label) for label, group in groups]
    result: list[Axis] = []
    for length in shape:
        axis: list[tuple[int, str]] = []
        if length == 1 and factors and factors[0] == (1, "C"):
            axis.append(factors.pop(0))
        missing = length
        while missing > 1:
            while factors and factors[0][0] == 1:
                factors.pop(0)
            if not factors:
                return None
            size, label = factors.pop(0)
            part = math.gcd(size, missing)
            if part not in (size, missing):
                return None
            axis.append((part, label))
            if part < size:
                factors.insert(0, (size // part, label))
            missing //= part
        result.append(tuple(axis))
    return tuple(result)


def _agreed(layouts: Sequence[Layout], shape: Sequence[int]) -> Layout | None:
    """The layout after an element-wise operator on several tensors, or a concatenation."""
    if not layouts:
        return None
    # A tensor without channels, such as the network's input, takes the layout of the features to which it is added.
    labelled = [layout for layout in layouts if any("C" in (_label(axis) or "") for axis in layout)] or layouts
    result = []
    for place, length in enumerate(shape):
        back = len(shape) - place
        axes = [layout[-back] for layout in labelled if back <= len(layout) and layout[-back]]
        if len({tuple(n for n, _ in axis) for axis in axes}) == 1:  # the factors can be compared one by one
            factors = [(of[0][0], _either({label for _, label in of})) for of in zip(*axes, strict=True)]
            result.append(_resized(tuple(factors), length))
        else:
            result.append(_axis(length, _either({_label(axis) or "." for axis in axes})))
    return tuple(result)


def _either(labels: set[str]) -> str:
    """The label of an axis from its labels in several tensors."""
    return "N" if "N" in labels else labels.pop() if len(labels) == 1 else "?" if labels else "."


def _unlabelled(shape: Sequence[int]) -> Layout:
    """The layout of a network's input, and of any layer's input whose layout is unknown."""
    return (_axis(shape[0], "N"), *(_axis(length, ".") for length in shape[1:]))


def _layer_output(source: Layout | None, shape: Sequence[int], axis: int) -> Layout:
    """The layout of a layer's output, with its channels on ``axis`` and the other axes as in its input."""
    if source is None or len(source) != len(shape):
        source = _unlabelled(shape)
    if shape[axis] == 1 and any("C" in str(each) for d, each in enumerate(source) if d not in (0, axis)):
        # A layer with one output for each earlier channel, as in the gates of ECA, keeps these channels.
        return tuple(() if d == axis else _resized(each, shape[d]) for d, each in enumerate(source))
    rest = [_resized(_sharing(each, not d), shape[d]) for d, each in enumerate(source)]
    return (*rest[:axis], _axis(shape[axis], "C"), *rest[axis + 1 :])


class Channels:
    """The layouts of the tensors of one forward pass.

    ``fixed`` tensors have no layout. ``tokens`` is the number of tokens if some may be padding. The samples lie along
    the first axis of the network's input.
    """

    def __init__(self, fixed: Fixed, tokens: int | None = None) -> None:
        self.fixed, self.tokens = fixed, tokens
        self._layouts = WeakTensorKeyDictionary()
        self._selections: list[tuple[Tensor, int]] = []  # the sample of each row (-1 for none), the number of samples

    def layout(self, tensor: Tensor) -> Layout | None:
        """The layout of a tensor; None if it is unknown or not tracked."""
        if tensor in self._layouts:
            layout = self._layouts[tensor]
            lengths = None if layout is None else tuple(math.prod(n for n, _ in axis) for axis in layout)
            return layout if lengths == tuple(tensor.shape) else None  # otherwise its ``data`` was replaced
        if self.fixed(tensor) or not tensor.ndim:
            return None
        return _unlabelled(tensor.shape)

    def find(self, tensor: Tensor) -> tuple[int | None, str]:
        """The axis of the channels and ``""``, or None and the reason why it is unknown."""
        layout = self.layout(tensor)
        candidates = [] if layout is None else [d for d, axis in enumerate(layout) if d and _label(axis) in ("C", "?")]
        wide = [d for d in range(1, tensor.ndim) if tensor.shape[d] > 1]
        if layout is not None and len(candidates) == 1 and _label(layout[candidates[0]]) == "C":
            return candidates[0], ""
        what = f"its input of shape {tuple(tensor.shape)}"
        if [tensor.shape[d] for d in wide] == [self.tokens]:
            return None, f"axis {wide[0]} of {what} may hold channels or tokens; pass channel_axis"
        if len(wide) < 2:  # a vector, which has no axis to average over
            return (wide or [1])[0], ""
        if not candidates:
            return None, f"the axis of the channels in {what} is unknown; pass channel_axis"
        where = f"axes {', '.join(map(str, candidates))}" if len(candidates) > 1 else f"axis {candidates[0]}, with more"
        return None, f"a reshape or a sum left the channels of {what} on {where}; channel_axis can say what to keep"

    def first(self, tensor: Tensor) -> set[str]:
        """The labels along the first axis: empty if it is unknown, and ``N`` alone if it holds only samples."""
        return {label for axis in (self.layout(tensor) or ())[:1] for _, label in axis}

    def samples_first(self, tensor: Tensor, batch: int) -> Tensor:
        """The tensor, with only samples on axis 0 if axis 0 mixed them with positions; a vector gets one channel."""
        layout = self.layout(tensor)
        labels = [label for _, label in layout[0]] if layout else []
        if layout and len(labels) > 1 and labels.count("N") == 1 and (batch, "N") in layout[0]:
            axes = [*((factor,) for factor in layout[0]), *layout[1:]]
            place = labels.index("N")
            tensor = tensor.reshape([math.prod(n for n, _ in axis) for axis in axes]).movedim(place, 0)
            layout = (axes.pop(place), *axes)
            self._layouts[tensor] = layout
        if tensor.ndim == 1 and tensor.shape[0] == batch:
            tensor = tensor[:, None]
            self._layouts[tensor] = layout and (*layout, ())
        return tensor

    def forget(self, out: Any) -> None:
        """Mark the outputs of an operator as unknown."""
        self._layouts.update(dict.fromkeys(tensors_in([out])))

    def follow(self, operator: Operator, out: Any) -> None:
        """Record the layouts of an operator's outputs."""
        rows = self._picked(operator)
        for place, result in enumerate(tensors_in([out])):
            followed = not place or operator.name in _MANY
            layout = self._of(operator, tuple(result.shape)) if followed else None
            if rows and place < len(rows[0]) and layout and len(rows[0][place]) == len(result):
                layout = (self._selection(rows[0][place], rows[1]), *layout[1:])
            elif layout and operator.name in _SORTS and operator.argument("dim") % result.ndim == 0:
                layout = (_axis(len(result), "?"), *layout[1:])
            self._layouts[result] = layout

    def _rows(self, tensor: Tensor) -> tuple[Tensor, int] | None:
        """The index of the sample in each row (-1 for none) and the number of samples; None if unknown."""
        axis = (self.layout(tensor) or ((),))[0]
        if len(axis) != 1:
            return None
        length, label = axis[0]
        if label == "N":
            return torch.arange(length, device=tensor.device), length
        return self._selections[int(label[1:])] if label[0] == "#" else None

    def _picked(self, operator: Operator) -> tuple[Sequence[Tensor], int] | None:
        """The samples in the rows of each output, and their number, of an operator that selects or joins rows."""
        name, first = operator.name, operator.inputs[0] if operator.inputs else None
        if name not in _ROWS or first is None or not first.ndim:
            return None
        if name == "cat":
            known = [self._rows(each) if not self.fixed(each) else None for each in operator.inputs]
            many = next((each[1] for each in known if each), 0)
            if operator.argument("dim") % first.ndim or not many:
                return None
            none = [torch.full((len(each),), -1, device=first.device) for each in operator.inputs]
            return [torch.cat([k[0] if k else n for k, n in zip(known, none, strict=True)])], many
        if (rows := self._rows(first)) is None:
            return None
        args = list(operator.args[1:])
        if name == "index":
            if len(args[0]) != 1 or args[0][0] is None or args[0][0].ndim != 1:
                return None
        elif name == "repeat":
            if len(args[0]) != first.ndim:
                return None
            args = [args[0][:1]]
        elif (operator.argument("dim") or 0) % first.ndim:
            return None
        out = operator.func(rows[0], *args, **operator.kwargs)
        return ([out] if isinstance(out, Tensor) else out), rows[1]

    def _selection(self, rows: Tensor, many: int) -> Axis:
        """An axis whose rows hold these samples; it holds all samples if each occurs once."""
        if len(rows) == many and torch.equal(rows.sort().values, torch.arange(many, device=rows.device)):
            return _axis(many, "N")
        self._selections.append((rows, many))
        return _axis(len(rows), f"#{len(self._selections) - 1}")

    def _of(self, operator: Operator, shape: tuple[int, ...]) -> Layout | None:
        """The layout of an operator's output."""
        name, args, operands = operator.name, operator.args, operator.inputs
        layouts = [layout for each in operands if (layout := self.layout(each)) is not None]
        if torch.Tag.nondeterministic_seeded in operator.func.tags and shape and not layouts:
            return (_axis(shape[0], "?"), *(_axis(length, ".") for length in shape[1:]))  # rows of noise, not samples
        if not operands or name in _UNKNOWN or operator.func.namespace not in _LIBRARIES:
            return None
        old = self.layout(operands[0])
        if operator.func.overloadpacket in ACTIVATIONS:
            return old
        if name in _CONVOLUTIONS:
            return _layer_output(old, shape, 1)
        if name in _CHANNEL_NORMS:
            # Instance norm folds the batch into this axis.
            folded = old is not None and "N" in str(old[1])
            return old if folded else _layer_output(old, shape, 1)
        if name in _LAYER_NORMS:
            known = old is not None and any(_label(axis) == "C" for axis in old)
            return old if known or len(args[1]) > 1 else _layer_output(old, shape, len(shape) - 1)
        if name == "linear" or name in _FEATURES_LAST:
            return _layer_output(old, shape, len(shape) - 1)
        if name == "embedding":
            indices = self.layout(args[1]) or tuple(_axis(length, ".") for length in shape[:-1])
            return (*map(_sharing, indices), _axis(shape[-1], "C"))
        if name in _ATTENTION:
            value = self.layout(args[2])
            return value and (*(old or (*value[:-2], _axis(shape[-2], ".")))[: len(shape) - 1], value[-1])
        if name in _PRODUCTS:
            a, b = args[_PRODUCTS[name] :][:2]
            return self._product(a, b, shape)
        if name == "stack":
            place = operator.argument("dim") % len(shape)
            joined = _agreed(layouts, shape[:place] + shape[place + 1 :])
            return joined and (*joined[:place], _axis(shape[place], "."), *joined[place:])
        if operator.elementwise or name in ("cat", "copy", "_prelu_kernel"):
            return _agreed(layouts, shape)
        if old is None or not (name in _BY_INDEX or all(map(self.fixed, operands[1:]))):
            return None
        return self._moved(operator, old, shape)

    def _moved(self, operator: Operator, old: Layout, shape: tuple[int, ...]) -> Layout | None:
        """The layout after an operator on one tensor."""
        name, args = operator.name, operator.args
        if name == "permute":
            return tuple(old[d] for d in args[1])
        turned = name == "rot90" and operator.argument("k") % 2
        if name in ("transpose", "t") or turned:
            order = list(range(len(old)))
            a, b = operator.argument("dims") if turned else args[1:3] if name == "transpose" else (0, -1)
            order[a], order[b] = order[b], order[a]
            return tuple(old[d] for d in order)
        if name in VIEWS:
            return _reshaped(old, shape)
        if name == "index" and sum(isinstance(index, Tensor) for index in args[1]) > 1:
            return None
        if name == "unfold":  # windows along an axis; the entries of a window lie on a new last axis
            along, size = args[1] % len(old), args[2]
            old = (*old, _axis(size, _label(old[along]) or "."))
        elif name == "im2col":
            old = (old[0], (*old[1], *_axis(math.prod(args[1]), ".")), _axis(shape[2], "."))
        if name in ("expand", "repeat"):  # new axes come first
            old = (*(_axis(n, "?") for n in shape[: len(shape) - len(old)]), *old)
        if len(shape) == len(old):
            return tuple(_resized(axis, n) for axis, n in zip(old, shape, strict=True))
        dims = operator.argument("dim")
        if dims is None:
            return None
        gone = {d % len(old) for d in ([dims] if isinstance(dims, int) else dims)}
        return tuple(axis for d, axis in enumerate(old) if d not in gone)

    def _product(self, a: Tensor, b: Tensor, shape: tuple[int, ...]) -> Layout | None:
        """The layout of a matrix product; columns of a weight on the right, or rows on the left, are channels."""
        left, right = self.layout(a), self.layout(b)
        if left is None and not self.fixed(a) and self.fixed.learned(b):  # a linear layer written as a product
            left = _unlabelled(a.shape)
        if any(layout is None and not self.fixed(factor) for factor, layout in ((a, left), (b, right))):
            return None
        weight = (left is None and not self.fixed(b)), right is None
        rows = left[-2] if left else _axis(shape[-2], "N" if len(shape) == 2 else ".")
        columns = right[-1] if right else _axis(shape[-1], "C")
        if weight[0] and self.fixed.learned(a):
            rows, columns = _axis(shape[-2], "C"), _sharing(columns)
        elif weight[0] and right:  # for example, the adjacency matrix of a graph
            rows = _axis(shape[-2], _label(right[-2]) or ".")
        elif weight[1] and left and self.fixed(b) and not self.fixed.learned(b):
            columns = _axis(shape[-1], _label(left[-1]) or ".")
        elif weight[1]:
            rows = _sharing(rows, len(shape) == 2)
        ahead: Layout = ()
        if len(shape) == 3:
            firsts = [layout[0] for layout in (left, right) if layout and layout[0]] or [_axis(shape[0], ".")]
            first = max(firsts, key=lambda axis: "N" in str(axis))
            grouped = (weight[0] and a.stride(0)) or (weight[1] and b.stride(0))  # not one weight that was expanded
            ahead = (_axis(shape[0], "C") if grouped and "N" not in str(first) else first,)
        return (*ahead, rows, columns)
