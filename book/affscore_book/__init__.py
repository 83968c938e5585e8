"""The code behind the book: `kit` is shared, and each chapter has a folder of its name."""

from importlib.util import find_spec

if find_spec("affscore") is None:  # looked for and not imported: the pages are printed where no torch is
    raise ImportError(
        "affscore_book needs the library affscore of the same repository. Install both, from its folder: "
        "pip install -e . -e book, or from its address: pip install git+https://github.com/affscore/affscore "
        '"git+https://github.com/affscore/affscore#subdirectory=book".'
    )
