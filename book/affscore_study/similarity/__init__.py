"""The study of similarities of trained networks: tests of the source's claims."""
