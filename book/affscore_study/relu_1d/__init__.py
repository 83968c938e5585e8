"""The score of ReLU in one dimension, in closed form."""
