"""Signatures of many networks: runs that go on where they stopped, comparison, figures and report."""
