"""What chapters share: claims, checks, stored results, statistics, small networks, and the base of the widgets."""
