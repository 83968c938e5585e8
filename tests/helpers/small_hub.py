"""Small networks in folders as transformers stores them, built here: nothing is downloaded."""

from __future__ import annotations

from pathlib import Path

import torch

WORDS = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "the", "a", "cat", "dog", "mat", "sat", "ran", "on", "and", "far", "red"]
WORDS += ["old", "slept", "sang", "well"]
LONGEST = 12
SENTENCES = """the cat sat
a dog ran on and on and on
the old red cat slept well on the mat
the dog sang
a cat and a dog and the old red dog and a red cat ran far and on and on
far
"""


def tokenizer(pad: str | None = "[PAD]"):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(WORDS)}, unk_token="[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=words, unk_token="[UNK]", pad_token=pad)


def text_folder(folder: Path, kind: str = "BertModel", seed: int = 0, **options) -> Path:
    """A network of text with its tokenizer; the GPT's tokenizer knows no padding."""
    import transformers

    torch.manual_seed(seed)
    sizes = {"n_positions": LONGEST, "n_embd": 32, "n_layer": 2, "n_head": 4, "bos_token_id": 2, "eos_token_id": 3}
    if kind.startswith("Bert"):
        sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
        sizes["max_position_embeddings"] = LONGEST
    network = getattr(transformers, kind)
    network(network.config_class(vocab_size=len(WORDS), **sizes, **options)).save_pretrained(folder)
    tokenizer("[PAD]" if kind.startswith("Bert") else None).save_pretrained(folder)
    return folder


def image_folder(folder: Path, kind: str = "ViTModel", seed: int = 0) -> Path:
    """A network of images of 16 pixels with its processor."""
    import transformers

    torch.manual_seed(seed)
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 24}
    network = getattr(transformers, kind)
    network(network.config_class(image_size=16, patch_size=8, **sizes)).save_pretrained(folder)
    transformers.ViTImageProcessor(size={"height": 16, "width": 16}).save_pretrained(folder)
    return folder
