"""The construction of the score, step by step."""
