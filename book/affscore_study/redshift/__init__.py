"""How complex the functions of random networks are, and how non-linear their layers."""
