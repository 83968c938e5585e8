"""The study of the first chapter, the signature of a real network."""
