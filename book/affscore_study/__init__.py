"""The study behind the book: its rules and verdicts, what its audits compute, and the networks that it was tried on.

Lessons call :mod:`affscore_book` alone. The audits (``book/audit_NAME.ipynb``) and the scripts that made the stored
results call this package too. It has a folder for each chapter.
"""
