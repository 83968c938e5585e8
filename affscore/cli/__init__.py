"""The command line, on top of the rest of the package."""
