"""Transformers on text: a trained sentence network taken apart, and small ones measured along their training."""
