"""Loads networks and data sets by name."""
