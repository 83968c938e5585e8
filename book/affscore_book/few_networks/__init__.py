"""How sure a mean over a few networks is: a hundred studies, and whose interval holds the truth."""
