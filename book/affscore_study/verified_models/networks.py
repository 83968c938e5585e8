"""Networks of torchvision, timm and Hugging Face with random weights, each with a small batch for it.

Weights have the usual spread, and batch norms have the statistics of a batch, so that outputs vary. Nothing is
downloaded. Images are as small as the architecture allows. Networks of torchvision and timm have their original width
and depth; those of Hugging Face are small.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from affscore_book.kit.batch_norm import set_batch_norm

__all__ = ["BATCH", "fill", "network_and_batch", "network_names", "output_of"]

#: The number of samples in a batch. No axis of these networks that could be taken for the batch has this length.
BATCH = 6

# The number of pixels of a side if 32 are too few or do not fit, by the beginning of the name.
TORCHVISION = {"alexnet": 64, "inception": 75, "maxvit": 224, "vit_b_32": 64, "vit_l_32": 64, "vit_h_14": 28}

# The smallest network of every file of timm.models, and of each family in files that hold several.
ANY_SIZE = """
    caformer_s18 convformer_s18 convmixer_768_32 convnext_atto convnext_zepto_rms convnextv2_atto cpubone_nano
    crossvit_tiny_240 cs3darknet_focus_s cspnext_tiny cspresnet50 darknet17 davit_tiny densenet121
    dla46x_c dm_nfnet_f0 dpn48b eca_nfnet_l0 ecaresnet26t edgenext_xx_small efficientnet_b0 efficientnet_b0_g16_evos
    efficientnet_es efficientvim_m1 efficientvit_b0 efficientvit_m0 ese_vovnet19b_slim_dw fasternet_t0 fastvit_t8
    fbnetc_100 fbnetv3_b focalnet_tiny_srf gcresnext26ts gemma4_vit_167m gernet_s ghostnet_050 hardcorenas_a hgnet_tiny
    hgnetv2_b0 hrnet_w18_small iformer_t inception_next_atto lambda_resnet26t lcnet_035 lcnetv2_small legacy_seresnet18
    legacy_xception lowformer_b0 mambaout_femto mixnet_s mnasnet_small mobilenetv2_035 mobilenetv3_small_050
    mobilenetv4_conv_small_035 mobilenetv4_hybrid_medium_075 mobilenetv5_300m mobileone_s0 mobilevit_xxs
    mobilevitv2_050 mvitv2_tiny naflexvit_base_patch16_gap nasnetalarge nextvit_small nf_regnet_b0 nf_resnet26
    pnasnet5large poolformer_s12 poolformerv2_s12 pvt_v2_b0 qwen3_vit_88m rdnet_tiny regnetv_040 regnetx_002
    regnety_002 regnetz_005 regnetz_b16 repghostnet_050 repvgg_a0 repvit_m0_9 res2net50_14w_8s resnest14d resnet10t
    resnetv2_18 resnetv2_50d_evos resnetv2_50x1_bit resnext26ts rexnet_100 sam2_hiera_tiny samvit_base_patch16_224
    selecsls42 sequencer2d_s seresnext26d_32x4d shvit_s1 skresnet18 spnasnet_100 starnet_s050 swiftformer_xs
    tf_efficientnet_lite0 tiny_vit_5m_224 tinynet_e tresnet_m twins_pcpvt_small twins_svt_small vgg11 xception41
    xcit_nano_12_p16_224
"""
# Networks that are built for one size of images, which is an argument.
ONE_SIZE = """
    beit_base_patch16_224 botnet26t_256 cait_xxs24_224 coat_lite_tiny coat_tiny coatnet_pico_rw_224 convit_tiny
    deit3_small_patch16_224 deit_tiny_distilled_patch16_224 deit_tiny_patch16_224 eca_botnext26ts_256
    efficientformerv2_s0 eva02_tiny_patch14_224 gcvit_xxtiny gmixer_12_224 gmlp_ti16_224 hiera_tiny_224 levit_128s
    levit_conv_128s maxvit_pico_rw_256 maxxvit_rmlp_nano_rw_256 mixer_s32_224 nest_tiny pit_ti_224 resmlp_12_224
    swin_s3_tiny_224 swin_tiny_patch4_window7_224 swinv2_cr_tiny_224 swinv2_tiny_window8_256 tnt_s_patch16_224
    visformer_tiny vit_base_patch16_clip_quickgelu_224 vit_medium_patch16_rope_reg1_gap_256
    vit_relpos_small_patch16_224 vit_tiny_patch16_224 vit_tiny_r_s16_p8_224 vitamin_small_224 volo_d1_224
"""
OTHER_SIZES = {
    "bat_resnext26ts": 256, "csatv2": 64, "deepseek_vit_412m": 28, "efficientformer_l1": 224, "ghostnetv2_100": 56,
    "ghostnetv3_050": 56, "halonet26t": 256, "inception_resnet_v2": 96, "inception_v3": 96, "inception_v4": 96,
}  # fmt: skip
TIMM = dict.fromkeys((ANY_SIZE + ONE_SIZE).split(), 32) | OTHER_SIZES

LAYERS = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4}
WIDE = LAYERS | {"intermediate_size": 48}
MARKS = {"vocab_size": 50, "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
TEXT = WIDE | MARKS
NARROW = TEXT | {"embedding_size": 16}
GROUPED = TEXT | {"num_key_value_heads": 2, "head_dim": 8}
PATCHES = {"image_size": 32, "patch_size": 8}
WINDOWS = {"image_size": 32, "patch_size": 4, "embed_dim": 16, "depths": [1, 1], "num_heads": [2, 4], "window_size": 4}
STAGES = {"hidden_sizes": [8, 16, 24, 32], "depths": [1, 1, 1, 1]}
HEADS = {"num_attention_heads": [1, 2, 2, 4]}
SOUND = WIDE | {"conv_dim": [8] * 7, "num_conv_pos_embeddings": 16, "num_conv_pos_embedding_groups": 4}
T5 = {"vocab_size": 50, "d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}
TWO_STACKS = MARKS | {
    "d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4,
    "decoder_attention_heads": 4, "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "decoder_start_token_id": 2,
}  # fmt: skip
GPT = {"n_embd": 32, "n_layer": 2, "n_head": 4} | MARKS
# The class of each network, and the values in its configuration.
HUGGING_FACE: dict[str, tuple[str, dict[str, Any]]] = {
    "ALBERT": ("AlbertModel", NARROW),
    "BART": ("BartModel", TWO_STACKS),
    "BEiT": ("BeitModel", WIDE | PATCHES),
    "BERT": ("BertModel", TEXT),
    "BLOOM": ("BloomModel", {"vocab_size": 50, "hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "CLIP, images": ("CLIPVisionModel", WIDE | PATCHES),
    "CLIP, text": ("CLIPTextModel", TEXT),
    "Cohere": ("CohereModel", GROUPED),
    "ConvNeXt": ("ConvNextModel", STAGES),
    "ConvNeXt v2": ("ConvNextV2Model", STAGES),
    "DeBERTa v2": ("DebertaV2Model", TEXT),
    "DeiT": ("DeiTModel", WIDE | PATCHES),
    "DINOv2": ("Dinov2Model", LAYERS | PATCHES),
    "DINOv2, SwiGLU": ("Dinov2Model", LAYERS | PATCHES | {"use_swiglu_ffn": True}),
    "DistilBERT": ("DistilBertModel", {"vocab_size": 50, "dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 48}),
    "ELECTRA": ("ElectraModel", NARROW),
    "Falcon": ("FalconModel", LAYERS | MARKS),
    "FocalNet": ("FocalNetModel", {"image_size": 32, "embed_dim": 16, "depths": [1, 1, 1, 1]}),
    "Gemma": ("GemmaModel", GROUPED),
    "GPT-2": ("GPT2Model", GPT),
    "GPT-J": ("GPTJModel", GPT | {"rotary_dim": 4}),
    "GPT-NeoX": ("GPTNeoXModel", TEXT),
    "HuBERT": ("HubertModel", SOUND),
    "LeViT": (
        "LevitModel",
        {"image_size": 64, "hidden_sizes": [16, 24, 32], "depths": [1, 1, 1], "num_attention_heads": [2, 2, 4]},
    ),
    "Llama": ("LlamaModel", GROUPED),
    "Mamba": ("MambaModel", {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2}),
    "Mistral": ("MistralModel", GROUPED),
    "Mixtral": ("MixtralModel", GROUPED | {"num_local_experts": 4}),
    "MobileBERT": ("MobileBertModel", NARROW | {"intra_bottleneck_size": 16, "true_hidden_size": 16}),
    "MobileNet v2": ("MobileNetV2Model", {}),
    "MobileViT": (
        "MobileViTModel",
        {"image_size": 64, "hidden_sizes": [16, 24, 32], "neck_hidden_sizes": [8, 8, 8, 16, 16, 16, 32]},
    ),
    "ModernBERT": ("ModernBertModel", TEXT | {"cls_token_id": 1, "sep_token_id": 2}),
    "Nemotron": ("NemotronModel", GROUPED),
    "OPT": ("OPTModel", LAYERS | MARKS | {"ffn_dim": 48, "word_embed_proj_dim": 32}),
    "Phi": ("PhiModel", GROUPED),
    "PoolFormer": ("PoolFormerModel", STAGES),
    "PVT v2": ("PvtV2Model", STAGES | HEADS),
    "Qwen 2": ("Qwen2Model", GROUPED),
    "Qwen 3": ("Qwen3Model", GROUPED),
    "RegNet": ("RegNetModel", STAGES | {"embedding_size": 8, "groups_width": 8}),
    "ResNet": ("ResNetModel", STAGES | {"embedding_size": 8}),
    "RoBERTa": ("RobertaModel", TEXT),
    "RWKV": ("RwkvModel", {"vocab_size": 50, "hidden_size": 32, "num_hidden_layers": 2}),
    "SegFormer": ("SegformerModel", STAGES | HEADS),
    "SigLIP, images": ("SiglipVisionModel", WIDE | PATCHES),
    "SigLIP, text": ("SiglipTextModel", TEXT | {"max_position_embeddings": 7}),
    "Swin": ("SwinModel", WINDOWS),
    "Swin v2": ("Swinv2Model", WINDOWS),
    "T5": ("T5Model", T5),
    "T5 1.1": ("T5Model", T5 | {"feed_forward_proj": "gated-gelu"}),
    "ViT": ("ViTModel", WIDE | PATCHES),
    "Wav2Vec2": ("Wav2Vec2Model", SOUND),
    "Whisper": ("WhisperModel", TWO_STACKS | {"num_mel_bins": 8, "max_source_positions": 16}),
    "XLNet": ("XLNetModel", {"vocab_size": 50, "d_model": 32, "n_layer": 2, "n_head": 4, "d_inner": 48}),
}


def network_names() -> list[str]:
    """The names of all networks, as ``library/name``."""
    from torchvision import models

    libraries = {"torchvision": models.list_models(module=models), "timm": TIMM, "transformers": HUGGING_FACE}
    return [f"{library}/{name}" for library, those in libraries.items() for name in sorted(those, key=str.lower)]


def network_and_batch(name: str) -> tuple[nn.Module, Any]:
    """A network of :func:`network_names` in evaluation mode on the CPU, and a batch: a tensor or arguments by name."""
    library, _, short = name.partition("/")
    model, size = {"torchvision": _torchvision, "timm": _timm, "transformers": _hugging_face}[library](short)
    inputs = _named_inputs if library == "transformers" else _images
    first, second = (inputs(model, size, seed) for seed in (0, 1))
    # Without the statistics of a batch, the outputs of deep random networks vanish or explode.
    return set_batch_norm(fill(model), [first], lambda part: output_of(model, part)), second


def output_of(model: nn.Module, inputs: Any) -> Any:
    """The output of a network for a tensor or for arguments by name."""
    return model(inputs) if isinstance(inputs, Tensor) else model(**inputs)


def _torchvision(name: str) -> tuple[nn.Module, int]:
    import torchvision

    size = next((size for start, size in TORCHVISION.items() if name.startswith(start)), 32)
    options: dict[str, Any] = {"image_size": size} if name.startswith("vit") else {}
    if name in ("googlenet", "inception_v3"):
        options = {"aux_logits": False, "init_weights": False}
    return torchvision.models.get_model(name, weights=None, **options), size


def _timm(name: str) -> tuple[nn.Module, int]:
    import timm

    options: dict[str, Any] = {"img_size": TIMM[name]} if name in ONE_SIZE.split() else {}
    return timm.create_model(name, pretrained=False, **options), TIMM[name]


def _hugging_face(name: str) -> tuple[nn.Module, int]:
    import transformers

    kind, options = HUGGING_FACE[name]
    network = getattr(transformers, kind)
    return network(network.config_class(**options)), options.get("image_size", 64)


def _images(model: nn.Module, size: int, seed: int) -> Tensor:
    return _normal((BATCH, 3, size, size), seed)


def _named_inputs(model: Any, size: int, seed: int) -> dict[str, Tensor]:
    """Arguments by name: images, sound, its spectrum, or sentences of seven words, the first of which is padded."""
    shapes = {"pixel_values": (BATCH, 3, size, size), "input_values": (BATCH, 2000), "input_features": (BATCH, 8, 32)}
    kind = model.main_input_name
    words = torch.randint(3, 50, (BATCH, 7), generator=torch.Generator().manual_seed(seed))
    inputs = {kind: words if kind == "input_ids" else _normal(shapes[kind], seed)}
    if kind == "input_ids":
        inputs["attention_mask"] = torch.ones_like(words)
        inputs["attention_mask"][0, 4:] = 0
    return inputs | ({"decoder_input_ids": words.flip(1)} if model.config.is_encoder_decoder else {})


def _normal(shape: tuple[int, ...], seed: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed))


@torch.no_grad()
def fill(model: nn.Module) -> nn.Module:
    """Fill every parameter with random numbers and return the network.

    The heads and scales that a library sets to zero are filled as well, because outputs must not be constant.
    """
    normal = _normal((1_000_003,), 0)
    for module in model.modules():
        for name, parameter in module.named_parameters(recurse=False):
            flat, matrix = parameter.view(-1), parameter.ndim > 1
            for start in range(0, len(flat), len(normal)):  # quicker than drawing a billion numbers
                piece = flat[start : start + len(normal)]
                piece.copy_(normal[: len(piece)])
            normal = normal.roll(4099)
            parameter.mul_((2 * len(parameter) / parameter.numel()) ** 0.5 if matrix else 0.1)
            if not matrix and name == "weight":  # the weight of a normalisation
                parameter.add_(1)
    return model
