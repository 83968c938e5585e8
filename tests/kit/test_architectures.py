"""What is published about networks: against torchvision and against the networks themselves."""

import pytest
import torch
import torchvision
from made_signatures import made, published
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from affscore.zoo.models import load_model
from affscore_book.kit.architectures import FAMILIES, GROUPS, facts


def test_every_classification_model_of_torchvision_is_known_once():
    known = [name for family in FAMILIES.values() for name in family.depths]
    assert len(known) == len(set(known))
    assert set(torchvision.models.list_models(module=torchvision.models)) == {n for n in known if "lite" not in n}
    assert {family.group for family in FAMILIES.values()} < set(GROUPS)
    assert [facts(name).year for name in ("alexnet", "vgg16", "resnet50", "densenet121", "vit_b_16", "swin_t")] == [
        2012, 2014, 2015, 2016, 2020, 2021,
    ]  # fmt: skip


@pytest.mark.parametrize("name", torchvision.models.list_models(module=torchvision.models))
def test_weights_of_a_signature_decide_which_numbers_count(name):
    enum = torchvision.models.get_model_weights(name)
    default = facts(name)
    assert default.accuracy is not None and 50 < default.accuracy < 90
    for entry in enum:
        found = facts(made([0.5], model=name, weights={"weights": f"{enum.__name__}.{entry.name}"}))
        assert found == facts(name, entry.name) and found.gflops == entry.meta["_ops"]
        assert found.accuracy in (entry.meta["_metrics"]["ImageNet-1K"]["acc@1"], None)
        assert found == default or entry.name != "IMAGENET1K_V1"
    assert facts(published(name, [0.5])) == default


class LongestPath(TorchDispatchMode):
    """Counts convolutions and matrix products with weights along the longest path to each tensor."""

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        depth = max(
            (getattr(t, "depth", 0) for t in tree_leaves((args, kwargs)) if isinstance(t, torch.Tensor)), default=0
        )
        depth += func.overloadpacket.__name__ in ("convolution", "addmm", "mm")
        for tensor in tree_leaves(out):
            if isinstance(tensor, torch.Tensor):
                tensor.depth = depth
        return out


def counted_depth(name):
    """The depth of a model by running its shapes."""
    options = {"aux_logits": False, "init_weights": False} if name in ("googlenet", "inception_v3") else {}
    # RegNet computes its widths with tensors.
    with torch.device("cpu" if "regnet" in name else "meta"):
        if "lite" in name:
            from efficientnet_lite_pytorch import EfficientNet

            model = EfficientNet.from_name(name.replace("_", "-"))
        else:
            model = torchvision.models.get_model(name, weights=None, **options)
    image = torch.empty(2, 3, *[299 if name == "inception_v3" else 224] * 2, device="meta")
    fast = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)  # its fused kernel hides the layers
    try:
        with torch.no_grad(), LongestPath():
            return model.to("meta").eval()(image).depth
    finally:
        torch.backends.mha.set_fastpath_enabled(fast)


@pytest.mark.weekly  # it changes with torchvision only
@pytest.mark.parametrize("family", FAMILIES)
def test_depths_are_those_of_the_longest_path(family):
    # The first and one more of a family: building all takes a minute.
    names = list(FAMILIES[family].depths)
    for name in {names[0], names[len(names) // 2]}:
        assert facts(name).depth == counted_depth(name), name


def test_a_block_of_a_vit_is_four_maps_deep():
    """By hand, from the paper: 12, 24 or 32 blocks, the patches and the head."""
    for name, blocks in (("vit_b_16", 12), ("vit_l_16", 24), ("vit_l_32", 24), ("vit_h_14", 32)):
        assert facts(name).depth == 4 * blocks + 2


def test_parameters_are_those_of_real_models():
    for name, weights in (("efficientnet_lite0", None), ("resnet18", "random")):
        model = load_model(name, weights=weights).model
        assert facts(name).parameters == sum(each.numel() for each in model.parameters())
