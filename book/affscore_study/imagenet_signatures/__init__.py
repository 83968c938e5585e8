"""The study of ImageNet signatures: tests of the paper's sentences and tables, and the full run."""
