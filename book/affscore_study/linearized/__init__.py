"""The study of linearised networks, whose activations are made linear one channel at a time."""
