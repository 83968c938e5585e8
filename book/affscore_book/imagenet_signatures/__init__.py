"""Signatures of ImageNet models, and the figures and tables of the paper."""
