"""In a page that runs its cells there is one function of SciPy; the library itself would be another 14 MB."""
