"""Networks and data by name."""
