"""Signatures of many networks: runs that resume where they stopped, comparisons, figures and a report."""
