"""Networks whose activations are made linear one channel at a time."""
