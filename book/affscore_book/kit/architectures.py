"""Published facts about networks (family, year, depth, size, cost, accuracy).

The year, family and depth are data of this module; parameters, cost and accuracy come from torchvision's metadata.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Mapping
from typing import NamedTuple

from affscore.signatures import Signature
from affscore.zoo.models import usual_weights
from affscore.zoo.weights import require

__all__ = ["FAMILIES", "GROUPS", "Facts", "Family", "facts", "model_name", "printable"]


class Family(NamedTuple):
    """Architectures of one publication.

    ``group`` is the group in the paper's Figure 6 (:data:`GROUPS`); ``year`` is the year of the first public version of
    that publication. ``depths`` maps each model to its depth, the number of convolutions and linear maps on the longest
    path from input to output: 50 for ``resnet50``. (The public reference code counts modules.)
    """

    group: str
    year: int
    depths: Mapping[str, int]


#: Groups of architectures, named as in Figure 6 of the paper.
GROUPS = ("Pre-residual", "Residual", "NAS-based", "ViT", "Post-ViT", "other")

_REGNET = {
    "regnet_x_400mf": 68, "regnet_x_800mf": 50, "regnet_x_1_6gf": 56, "regnet_x_3_2gf": 77, "regnet_x_8gf": 71,
    "regnet_x_16gf": 68, "regnet_x_32gf": 71, "regnet_y_400mf": 82, "regnet_y_800mf": 72, "regnet_y_1_6gf": 137,
    "regnet_y_3_2gf": 107, "regnet_y_8gf": 87, "regnet_y_16gf": 92, "regnet_y_32gf": 102, "regnet_y_128gf": 137,
}  # fmt: skip

#: All classification models of torchvision, and EfficientNet-Lite, by family.
FAMILIES: dict[str, Family] = {
    "AlexNet": Family("Pre-residual", 2012, {"alexnet": 8}),
    "VGG": Family("Pre-residual", 2014, {f"vgg{n}{end}": n for n in (11, 13, 16, 19) for end in ("", "_bn")}),
    "GoogLeNet": Family("Pre-residual", 2014, {"googlenet": 22}),
    "Inception": Family("Pre-residual", 2015, {"inception_v3": 48}),
    "SqueezeNet": Family("Pre-residual", 2016, {"squeezenet1_0": 18, "squeezenet1_1": 18}),
    "ResNet": Family("Residual", 2015, {f"resnet{depth}": depth for depth in (18, 34, 50, 101, 152)}),
    "Wide ResNet": Family("Residual", 2016, {"wide_resnet50_2": 50, "wide_resnet101_2": 101}),
    "DenseNet": Family("Residual", 2016, {f"densenet{depth}": depth for depth in (121, 161, 169, 201)}),
    "ResNeXt": Family("Residual", 2016, {"resnext50_32x4d": 50, "resnext101_32x8d": 101, "resnext101_64x4d": 101}),
    "MobileNetV2": Family("Residual", 2018, {"mobilenet_v2": 53}),
    "ShuffleNetV2": Family("Residual", 2018, {f"shufflenet_v2_x{width}": 51 for width in ("0_5", "1_0", "1_5", "2_0")}),
    "MNASNet": Family("NAS-based", 2018, {f"mnasnet{width}": 53 for width in ("0_5", "0_75", "1_0", "1_3")}),
    "EfficientNet": Family("NAS-based", 2019, {
        f"efficientnet_b{size}": depth for size, depth in enumerate((82, 116, 116, 131, 161, 195, 225, 274))
    }),
    "MobileNetV3": Family("NAS-based", 2019, {"mobilenet_v3_small": 54, "mobilenet_v3_large": 64}),
    "RegNet": Family("NAS-based", 2020, _REGNET),
    "EfficientNet-Lite": Family("NAS-based", 2020, {f"efficientnet_lite{n}": 65 if n else 50 for n in range(3)}),
    "EfficientNetV2": Family("NAS-based", 2021, {
        "efficientnet_v2_s": 171, "efficientnet_v2_m": 246, "efficientnet_v2_l": 340,
    }),
    "ViT": Family("ViT", 2020, {"vit_b_32": 50, "vit_l_32": 98, "vit_b_16": 50, "vit_l_16": 98, "vit_h_14": 130}),
    "Swin": Family("Post-ViT", 2021, {"swin_t": 53, "swin_s": 101, "swin_b": 101}),
    "SwinV2": Family("Post-ViT", 2021, {"swin_v2_t": 53, "swin_v2_s": 101, "swin_v2_b": 101}),
    "ConvNeXt": Family("Post-ViT", 2022, {
        "convnext_tiny": 59, "convnext_small": 113, "convnext_base": 113, "convnext_large": 113,
    }),
    "MaxViT": Family("Post-ViT", 2022, {"maxvit_t": 147}),
}  # fmt: skip

# TensorFlow's README of EfficientNet-Lite: parameters, 10^9 multiply-adds, top-1 accuracy in percent.
_LITE = {
    "efficientnet_lite0": (4_652_008, 0.407, 75.1),
    "efficientnet_lite1": (5_416_680, 0.631, 76.7),
    "efficientnet_lite2": (6_092_072, 0.899, 77.6),
}


class Facts(NamedTuple):
    """Published facts about a model; unknown facts are None, as for your own network.

    Family and group are ``"other"`` if the model is not in :data:`FAMILIES`; year and depth are as in
    :class:`Family`. ``parameters`` is the number of parameters; ``gflops`` is the number of multiply-adds for one image
    in 10^9, which torchvision calls GFLOPS; ``accuracy`` is ImageNet-1k's top-1 accuracy in percent.
    """

    model: str
    family: str = "other"
    group: str = "other"
    year: int | None = None
    depth: int | None = None
    parameters: int | None = None
    gflops: float | None = None
    accuracy: float | None = None


def facts(model: str | Signature, weights: str | None = None) -> Facts:
    """Published facts about a model, from :data:`FAMILIES` and torchvision's metadata of its weights.

    Parameters
    ----------
    model
        A name, or a signature, whose provenance names the model and its weights.
    weights
        The name of a set of torchvision's weights. The default is the set of the signature, or ``IMAGENET1K_V1`` if the
        signature has random or other weights; if a model has no ``IMAGENET1K_V1`` (``vit_h_14``, ``regnet_y_128gf``),
        it is the set for the smallest images.

    Examples
    --------
    >>> resnet = facts("resnet50")
    >>> resnet.family, resnet.year, resnet.depth, resnet.accuracy, resnet.parameters
    ('ResNet', 2015, 50, 76.13, 25557032)
    >>> facts("my_network")
    Facts(model='my_network', family='other', group='other', year=None, ...)
    """
    if isinstance(model, Signature):
        named = re.search(r"Weights\.(IMAGENET1K_\w+)", str(model.provenance.get("weights")))
        model, weights = model_name(model), weights or (named[1] if named else None)
    name = next((name for name, family in FAMILIES.items() if model in family.depths), None)
    if name is None:
        return Facts(model)
    if model in _LITE:
        parameters, gflops, accuracy = _LITE[model]
    else:
        enum = require("torchvision.models").get_model_weights(model)
        meta = (enum[weights] if weights in enum.__members__ else usual_weights(enum)).meta
        parameters, gflops, accuracy = meta["num_params"], meta["_ops"], meta["_metrics"]["ImageNet-1K"]["acc@1"]
        if math.isnan(accuracy):  # vgg16 has weights without a classifier
            accuracy = None
    family = FAMILIES[name]
    return Facts(model, name, family.group, family.year, family.depths[model], parameters, gflops, accuracy)


def printable(text: str, most: int | None = None) -> str:
    """``text`` with unprintable characters (line ends, controls, lone surrogates) escaped.

    A text of more than ``most`` characters is cut and ends with a checksum, so that different texts stay different.
    """
    shown = text if text.isprintable() else repr(text)[1:-1]
    if most is None or len(shown) <= most:
        return shown
    return f"{shown[: most - 10]}… {hashlib.sha256(shown.encode()).hexdigest()[:8]}"


def model_name(signature: Signature) -> str:
    """The model's name in printable form."""
    return printable(str(signature.provenance.get("model", "network")), 48)
