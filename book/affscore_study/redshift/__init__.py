"""The study of neural redshift: the complexity of the functions of random networks, and the scores of their layers."""
