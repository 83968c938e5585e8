"""The architectures of the paper by name, for a command line that starts without torch."""

from __future__ import annotations

__all__ = ["PAPER"]

#: The 36 architectures of the paper (section 4 and Figure 16), by family.
PAPER = (
    "alexnet",
    "vgg11", "vgg13", "vgg16", "vgg19",
    "googlenet", "inception_v3",
    "resnet18", "resnet34", "resnet50", "resnet101", "resnet152",
    "densenet121", "densenet161", "densenet169", "densenet201",
    "mnasnet0_5", "mnasnet0_75", "mnasnet1_0", "mnasnet1_3",
    "efficientnet_b1", "efficientnet_b2", "efficientnet_b3", "efficientnet_b4",
    "vit_b_32", "vit_l_32", "vit_b_16", "vit_l_16", "vit_h_14",
    "swin_t", "swin_s", "swin_b",
    "convnext_tiny", "convnext_small", "convnext_base", "convnext_large",
)  # fmt: skip
