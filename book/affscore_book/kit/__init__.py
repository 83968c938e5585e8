"""The code that chapters share: checks, stored results, statistics, small networks, and the base of the widgets."""
