"""Transformers on text: a trained sentence network by its pools, its texts and its layers, and small ones along training."""
