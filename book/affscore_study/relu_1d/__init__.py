"""The study of the score of ReLU in one dimension: tests of the paper's Figure 3 in closed form."""
