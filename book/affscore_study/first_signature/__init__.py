"""The first chapter: the signature of a real network."""
