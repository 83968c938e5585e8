"""The signatures of the paper's networks: its sentences and tables, and the full run."""
