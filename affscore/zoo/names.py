"""The names of data sets and of weights, in a module without torch, so that the command line starts fast."""

__all__ = ["DATASETS", "WEIGHTS"]

#: The data sets that :func:`affscore.load_dataset` knows by name.
DATASETS = ("photographs", "fashion-mnist", "cifar10", "cifar100", "imagenet", "imagenette", "random")

#: The weights of the networks without ``IMAGENET1K_V1``. In the other weights of vit_h_14 only the last layer was
#: trained on ImageNet.
WEIGHTS = {"vit_h_14": "IMAGENET1K_SWAG_E2E_V1"}
