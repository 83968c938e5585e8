"""The study of single activation functions: tables, samples, and tests of the paper's claims."""
