"""The study of transformers: a sentence network, vision transformers, and byte decoders along their training."""
