"""The study of the blind spots of the score, and of other measures."""
