"""Similarities of trained networks: rules and verdicts."""
