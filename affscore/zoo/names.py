"""Names of data sets and of networks, for a command line that starts without torch."""

__all__ = ["DATASETS", "WEIGHTS"]

#: The data sets that :func:`affscore.load_dataset` knows by name.
DATASETS = ("photographs", "fashion-mnist", "cifar10", "cifar100", "imagenet", "imagenette", "random")

#: Weights of the networks without ``IMAGENET1K_V1``. In the other set of vit_h_14 only the last layer was trained on
#: ImageNet.
WEIGHTS = {"vit_h_14": "IMAGENET1K_SWAG_E2E_V1"}
