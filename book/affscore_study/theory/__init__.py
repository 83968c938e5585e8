"""The study of the theory: numerical tests of the theorems on the score."""
