"""How non-linear is a neural network? The affinity score and non-linearity signatures."""
