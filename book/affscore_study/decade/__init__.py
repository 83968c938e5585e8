"""A decade of architectures, each trained small on the same images with the same recipe."""
