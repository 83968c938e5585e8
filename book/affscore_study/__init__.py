"""The study behind the book: its rules and verdicts, the computations of its audits, and the networks it was tested on.

Lessons call :mod:`affscore_book` only. The audits (``book/audit_NAME.ipynb``) and the scripts that made the stored
results also call this package. It has a folder for each chapter.
"""
