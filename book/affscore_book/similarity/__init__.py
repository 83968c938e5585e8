"""How alike two layers are, and what single units respond to."""
