"""Networks by name: the weights are real, loaded without running code, and every failure is a sentence."""

import hashlib
import pickle
import re
import sys

import pytest
import torch
import torchvision
from image_files import sentence
from PIL import Image
from torchvision.models import get_model, get_model_weights

from affscore.zoo.datasets import photographs
from affscore.zoo.models import LITE_SIZES, load_model, weights_fingerprint
from affscore.zoo.weights import load_state, read_state_dict

SMALL = "squeezenet1_1"  # 1.2 million parameters


# ------------------------------------------------------------------------------------- EfficientNet-Lite


def top(net, name, count):
    """The names of the most probable categories of one of the photographs."""
    with torch.no_grad():
        logits = net.model(net.preprocess(photographs()[name])[None])[0]
    return [net.categories[i] for i in logits.topk(count).indices]


@pytest.mark.parametrize("name", sorted(LITE_SIZES))
def test_lite_is_trained_and_given_images_as_tensorflow_does(name):
    """A thousand categories: chance would name the cat with probability 1/500, the coffee with 1/1000."""
    lite = load_model(name)
    assert top(lite, "coffee", 1) == ["espresso"]
    assert top(lite, "chelsea", 1)[0] in {"Egyptian cat", "tiger cat"}
    assert "Egyptian cat" in top(lite, "chelsea", 2)
    assert "missile" in top(lite, "rocket", 3)
    assert {"moped", "motor scooter"} & set(top(lite, "motorcycle_left", 2))
    assert top(lite, "china", 1) == ["palace"]
    for level, value in ((0, -127 / 128), (127, 0.0), (255, 1.0)):
        image = lite.preprocess(Image.new("RGB", (300, 500), (level,) * 3))
        torch.testing.assert_close(image, torch.full((3, lite.image_size, lite.image_size), value), atol=1e-6, rtol=0)
    assert not any(module.training for module in lite.model.modules())
    # The publisher put the first eight digits of the checksum into the file's name.
    assert lite.provenance["source"].endswith(f"-{lite.provenance['sha256'][:8]}.pth")
    assert lite.provenance["licence"] == "Apache-2.0" and len(lite.categories) == 1000


# ---------------------------------------------------------------------------------------- random weights


@pytest.mark.parametrize("name", [pytest.param("efficientnet_lite0", marks=pytest.mark.weekly), SMALL, "googlenet"])
def test_random_weights_depend_on_their_seed_alone(name):
    """Random weights depend on their seed alone, and the caller's generator is unchanged."""
    torch.manual_seed(5)
    before = torch.get_rng_state()
    first, again, other = (load_model(name, weights="random", seed=seed).model.state_dict() for seed in (3, 3, 4))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert not all(torch.equal(first[key], other[key]) for key in first)
    if name == SMALL:  # torchvision's own initialisation
        torch.manual_seed(3)
        expected = get_model(SMALL, weights=None).state_dict()
        assert all(torch.equal(first[key], expected[key]) for key in expected)


# ------------------------------------------------------------------------------------------ state dicts


@pytest.mark.parametrize(
    ("name", "suffix"), [("mnasnet0_5", ".pth"), ("mnasnet0_5", ".safetensors"), ("efficientnet_lite0", ".pth")]
)
def test_state_dict_file_round_trip(tmp_path, name, suffix):
    source = load_model(name, weights="random", seed=1)
    path = tmp_path / f"weights{suffix}"
    save(source.model.state_dict(), path)
    loaded = load_model(name, weights=path)
    expected, actual = source.model.state_dict(), loaded.model.state_dict()
    assert all(torch.equal(expected[key], actual[key]) for key in expected)
    assert loaded.provenance["sha256"] == hashlib.sha256(path.read_bytes()).hexdigest()


def save(state, path):
    if path.suffix == ".safetensors":
        from safetensors.torch import save_file

        save_file({key: value.contiguous() for key, value in state.items()}, path)
    else:
        torch.save(state, path)


@pytest.mark.parametrize("wrap", [lambda s: {"state_dict": s, "epoch": 3}, lambda s: {"model": s}])
def test_wrapped_and_data_parallel_state_dicts(tmp_path, wrap):
    state = load_model(SMALL, weights="random", seed=2).model.state_dict()
    torch.save(wrap({f"module.{key}": value for key, value in state.items()}), tmp_path / "w.pth")
    loaded = load_model(SMALL, weights=str(tmp_path / "w.pth")).model.state_dict()
    assert all(torch.equal(state[key], loaded[key]) for key in state)


def change(name, do):
    """A function that changes one tensor of a state dict."""
    return lambda state: state.update({name: do(state[name])})


W, B, OLD = "classifier.1.weight", "classifier.1.bias", load_model(SMALL, weights="random").model.state_dict()


@pytest.mark.filterwarnings("ignore:.*")  # torch's own, of sparse and complex tensors
@pytest.mark.parametrize(("spoil", "expected"), [
    (lambda state: state.pop(W), f"1 tensors are missing, first {W}"),
    (lambda state: state.clear(), f"{len(OLD)} tensors are missing"),
    (lambda state: state.update(surprise=torch.zeros(1)), "1 tensors are unexpected, first surprise"),
    (lambda state: state.update({f"module.{W}": state[W]}), f"1 tensors are unexpected, first module.{W}"),
    (change(W, lambda value: torch.zeros(7, 512, 1, 1)), W),
    (change(W, lambda value: torch.zeros(1).expand(2**20, 2**20, 1, 1)), W),  # huge, but not in the file
    (change(B, lambda value: value.long()), f"{B} holds values of int64"),
    (change(B, lambda value: value > 0), f"{B} holds values of bool"),
    (change(B, lambda value: value + 1j), f"{B} holds values of complex64"),
    (change(B, lambda value: value / 0), f"{B} holds values that are not finite"),
    (change(B, lambda value: value.double() + 1e300), f"{B} holds values that are not finite"),
    (change(B, lambda value: value.to_sparse()), B),
    (lambda state: setattr(state, "_metadata", 5), SMALL),
])  # fmt: skip
def test_state_dict_that_does_not_fit_is_refused(tmp_path, spoil, expected):
    state = load_model(SMALL, weights="random").model.state_dict()
    spoil(state)
    torch.save(state, tmp_path / "w.pth")
    with pytest.raises(ValueError, match="does not fit") as error:
        load_model(SMALL, weights=tmp_path / "w.pth")
    assert expected in str(error.value) and SMALL in str(error.value) and "\n" not in str(error.value)


def test_weights_of_another_precision_are_taken(tmp_path):
    state = {key: value.to(torch.bfloat16) for key, value in OLD.items()}
    torch.save(state, tmp_path / "w.pth")
    loaded = load_model(SMALL, weights=tmp_path / "w.pth").model.state_dict()
    assert all(torch.equal(loaded[key], state[key].float()) for key in state)


def test_whole_numbers_stay_whole():
    """Positions in a table that a file holds as fractions would be cut off."""
    model = torch.nn.Linear(2, 2)
    model.register_buffer("position", torch.tensor([1, 2]))
    state = model.state_dict()
    load_state(model, state, "net", "file")
    with pytest.raises(ValueError, match="position holds values of float32"):
        load_state(model, state | {"position": torch.tensor([1.7, 2.2])}, "net", "file")


def test_names_that_are_no_text_are_refused(tmp_path):
    torch.save({"state_dict": {0: torch.zeros(1), "a": torch.zeros(1)}}, tmp_path / "w.pth")
    with pytest.raises(ValueError, match=r"weights: .*w\.pth holds a tensor with the name 0") as error:
        load_model(SMALL, weights=tmp_path / "w.pth")
    sentence(error)


class Bomb:
    """A pickle that runs code when it is loaded carelessly."""

    def __reduce__(self):
        return (sys.exit, ("the file ran code",))


def test_no_code_runs_from_a_weight_file(tmp_path):
    path = tmp_path / "bomb.pth"
    torch.save({"weight": Bomb()}, path)
    with pytest.raises(SystemExit):  # the planted bomb works
        torch.load(path, weights_only=False)
    with pytest.raises(ValueError, match="cannot be read as a state dict"):
        read_state_dict(path)


@pytest.mark.parametrize("suffix", [".pth", ".safetensors"])
@pytest.mark.parametrize("content", [b"", b"not a state dict", "truncated", "list"])
def test_damaged_weight_files_end_in_a_sentence(tmp_path, content, suffix):
    path = tmp_path / f"w{suffix}"
    if content == "list":
        path.write_bytes(pickle.dumps([1, 2])) if suffix == ".safetensors" else torch.save([1, 2], path)
    elif content == "truncated":
        save({"a": torch.zeros(1000)}, path)
        path.write_bytes(path.read_bytes()[:-600])
    else:
        path.write_bytes(content)
    with pytest.raises(ValueError, match=r"weights: .*w\.(pth|safetensors) (cannot be read|holds a)"):
        load_model(SMALL, weights=path)


# ------------------------------------------------------------------------- torchvision's weights, served


@pytest.fixture
def serve(tmp_path, monkeypatch):
    """Puts a state dict where an entry of torchvision's weights is downloaded from, beside an empty cache."""
    monkeypatch.setattr(torch.hub, "_hub_dir", str(tmp_path / "hub"))
    (tmp_path / "www").mkdir()

    def put(name, state, entry="IMAGENET1K_V1", digits=None):
        path = tmp_path / "www" / "file.pth"
        torch.save(state, path)
        digits = digits or hashlib.sha256(path.read_bytes()).hexdigest()[:8]
        path = path.rename(path.with_name(f"{name}-{digits}.pth"))
        monkeypatch.setattr(get_model_weights(name)[entry].value, "url", path.as_uri())
        return path

    return put


def old_densenet_names(state):
    """The names that torchvision's own DenseNet files still have; they also lack the counters of batches."""
    kept = {key: value for key, value in state.items() if not key.endswith("num_batches_tracked")}
    return {re.sub(r"(denselayer\d+\.(?:norm|conv))([12])", r"\1.\2", key): value for key, value in kept.items()}


@pytest.mark.parametrize("name", [SMALL, "densenet121", "mnasnet0_5", "inception_v3"])
def test_downloaded_weights_give_torchvisions_own_network(serve, name):
    """Oracle: torchvision's builder, given the same file."""
    options = {"init_weights": False} if name == "inception_v3" else {}
    source = get_model(name, weights=None, **options)  # with auxiliary heads, as the official files
    state = source.state_dict()
    if name == "densenet121":
        state = old_densenet_names(state)
        assert set(state) != set(source.state_dict())
    path = serve(name, state)
    net = load_model(name)
    expected = get_model(name, weights=get_model_weights(name).IMAGENET1K_V1).eval()
    assert net.weights.endswith("IMAGENET1K_V1") and net.provenance["source"].endswith(path.name)
    assert net.image_size == (299 if name == "inception_v3" else 224)
    assert len(net.categories) == 1000
    assert not any(module.training for module in net.model.modules())
    mine, theirs = net.model.state_dict(), expected.state_dict()
    theirs = {key: value for key, value in theirs.items() if not key.startswith("AuxLogits.")}  # for training
    assert mine.keys() == theirs.keys() and all(torch.equal(mine[key], theirs[key]) for key in mine)
    x = torch.randn(2, 3, net.image_size, net.image_size, generator=torch.Generator().manual_seed(0))
    with torch.no_grad():
        y = net.model(x)
        assert torch.equal(y, expected(x))  # transform_input and the like agree as well
    assert y.std(dim=0).max() > 0


def test_default_weights_are_imagenet1k_v1():
    """The default weights are IMAGENET1K_V1, and another set can be asked for."""
    name = "mobilenet_v3_large"  # torchvision's DEFAULT is another set here
    sets = get_model_weights(name)
    assert sets.DEFAULT.name != "IMAGENET1K_V1"
    assert weights_fingerprint(name)["weights"] == str(sets.IMAGENET1K_V1)
    assert weights_fingerprint(name, "IMAGENET1K_V2")["weights"] == str(sets.IMAGENET1K_V2)


def test_files_that_are_not_the_official_ones_say_what_to_do(serve, tmp_path):
    """With another checksum than its name says; then missing, damaged, and another in the cache."""
    state = load_model(SMALL, weights="random").model.state_dict()
    serve(SMALL, state, digits="00000000")
    with pytest.raises(OSError, match="invalid hash") as error:
        load_model(SMALL)
    sentence(error, "IMAGENET1K_V1", "weights='random'", "efficientnet_lite0")
    assert not list((tmp_path / "hub").rglob("*.pth"))
    served = serve(SMALL, state)
    place = tmp_path / "hub" / "checkpoints" / served.name
    content = served.read_bytes()
    served.unlink()
    with pytest.raises(OSError, match="cannot be downloaded") as error:
        load_model(SMALL)
    sentence(error, served.as_uri(), place, "Put the file")
    place.write_bytes(b"half a file")
    with pytest.raises(OSError, match="cannot be read") as error:
        load_model(SMALL)
    sentence(error, place, "Delete that file")
    state["classifier.1.bias"] += 1
    torch.save(state, place)
    for use in (load_model, weights_fingerprint):
        with pytest.raises(OSError, match="is not torchvision's file") as error:
            use(SMALL)
        sentence(error, place, served.stem[-8:], "Delete that file")
    place.write_bytes(content)  # the advice works
    assert load_model(SMALL).weights.endswith("IMAGENET1K_V1")


def test_weights_are_identified_without_building_a_network(serve, monkeypatch, tmp_path):
    path = tmp_path / "w.pth"
    torch.save(load_model(SMALL, weights="random").model.state_dict(), path)
    served = serve(SMALL, load_model(SMALL, weights="random", seed=1).model.state_dict())
    assert weights_fingerprint(SMALL)["source"].endswith(served.name)  # the address, before the download
    asked = [(SMALL, None), (SMALL, path), (SMALL, "random"), ("efficientnet_lite0", None)]
    loaded = [load_model(name, weights=weights, seed=4) for name, weights in asked]

    def build(*_, **__):
        raise AssertionError("a network was built")

    monkeypatch.setattr(torchvision.models, "get_model", build)
    monkeypatch.setattr("efficientnet_lite_pytorch.EfficientNet.from_name", build)
    kinds = ["pretrained", "file", "random", "pretrained"]
    for (name, weights), net, kind in zip(asked, loaded, kinds, strict=True):
        facts = weights_fingerprint(name, weights, 4)
        assert facts["kind"] == kind
        assert facts.items() <= net.provenance.items() and ("seed" if weights == "random" else "sha256") in facts


# ------------------------------------------------------------------------------------------ wrong names


@pytest.mark.parametrize(("name", "close"), [
    ("EfficientNet-Lite1", "efficientnet_lite1"),
    ("vgg_16", "vgg16"),
    ("???", "available_models() lists all"),
])  # fmt: skip
def test_unknown_model_names_close_ones(name, close):
    with pytest.raises(ValueError, match="there is no model") as error:
        load_model(name)
    sentence(error, name, close)


@pytest.mark.parametrize(("name", "weights", "offered"), [
    ("resnet50", "IMAGENET1K_V7", "IMAGENET1K_V2"),
    ("vit_h_14", None, "IMAGENET1K_SWAG_E2E_V1"),  # has no IMAGENET1K_V1
    ("efficientnet_lite2", "IMAGENET1K_V2", "IMAGENET1K_V1"),
])  # fmt: skip
def test_unknown_weights_say_what_there_is(name, weights, offered):
    with pytest.raises(ValueError, match="has no weights") as error:
        load_model(name, weights=weights)
    sentence(error, name, offered, "'random'", "state dict file")


@pytest.mark.parametrize("seed", [-1, 2**64, 1.0, True, None])
def test_seed_that_is_none(seed):
    for use in (load_model, weights_fingerprint):
        with pytest.raises(ValueError, match=r"^seed is "):
            use(SMALL, weights="random", seed=seed)


@pytest.mark.parametrize(("weights", "words"), [
    ("", "^weights is ''"),
    ("~no_such_user/w.pth", "^weights is '~no_such_user/w.pth'"),
    ("no/such/weights.pth", "there is no file"),
    ("folder/IMAGENET1K_V1", "there is no file"),
])  # fmt: skip
def test_paths_of_weights_that_are_none(weights, words):
    with pytest.raises((ValueError, FileNotFoundError), match=words):
        load_model(SMALL, weights=weights)
