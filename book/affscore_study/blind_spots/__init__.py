"""What the score does not see, and other measures beside it."""
