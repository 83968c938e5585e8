"""The code behind the book: `kit` is shared, and each chapter has a folder of its name."""
