"""The command line, which uses the rest of the package."""
