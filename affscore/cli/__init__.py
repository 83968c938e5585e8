"""The command line, on top of everything else of the package."""
