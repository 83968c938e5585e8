"""The name of a student: the one that running the notebook would give, in every spelling, and nothing is run."""

import pytest

from affscore_book.course import variants
from affscore_book.course.names import name_given

SPELLED = [
    'student("Ada")  # your name',
    'student(name="Ada")',
    'student("Ada",)',
    'student(r"Ada")',
    'student ("Ada")',
    'student("""Ada""");',
    'student(("A" "da"))',
    'student("A" + "da")',
    'x = 1; student("Ada")',
    '_ = student("Ada")',
    '%matplotlib inline\n!true\nstudent("Ada")',
    '%%time\nstudent("Ada")',
    'student(" Ada ".strip().title())',
    'student("-".join(["Ada"]))',
    'me = "Ada"\nstudent(me)',
    'me: str = "Ada"\nstudent(me)',
    'me = you = "A"\nme += "da"\nstudent(me)',
    'student(me := "Ada")',
    'first, last = "Ada", ""\nstudent(f"{first}{last}")',
    'names = {"me": ["Ada"]}\nstudent(names["me"][0])',
    'student(*["Ada"])',
    'student(str("Ada"))',
    'from affscore_book.course import variants\nvariants.student("Ada")',
    'from affscore_book.course.variants import student as s\ns("Ada")',
    's = student\ns("Ada")',
    'try:\n    student("Ada")\nfinally:\n    pass',
    'if True:\n    student("Ada")\nelse:\n    student("Bob")',
    'if __name__ == "__main__":\n    student("Ada")',
    'student("Bob")\nstudent("Ada")',
    'student("Bob"); student("Ada")',
    'student("Bob")\nfor _ in range(2):\n    pass\nstudent("Ada")',
    'student("Ada")\n# student("Bob")',
    'student("Ada")\ntext = "student(\'Bob\')"',
    "student('O\\'Brien')",
    'student("")',
    "1",
]


@pytest.mark.parametrize("source", SPELLED)
def test_every_spelling_gives_the_name_that_running_it_gives(source):
    """Oracle: the code is run, with a function that notes its argument."""
    seen = [""]

    def student(name):
        seen.append(name)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(variants, "student", student)
        plain = "\n".join(line for line in source.split("\n") if line[:1] not in "%!")
        exec(plain, {"student": student, "__name__": "__main__"})
    assert name_given(["from affscore_book.course.variants import student", source]) == seen[-1]


@pytest.mark.parametrize("source", [
    "student(input())",
    'import os\nstudent(os.environ["USER"])',
    'def name():\n    return "Ada"\nstudent(name())',
    'def give(name):\n    student(name)\ngive("Ada")',
    'for name in ("Ada", "Bob"):\n    student(name)',
    'if input():\n    student("Ada")',
    'me = "Ada"\nme = input()\nstudent(me)',
    'me = "Ada"\nif input():\n    me = "Bob"\nstudent(me)',
    'me = "Ada"\n' + 'me = me + me\n' * 60 + "student(me)",
    f"student({'(' * 80}{'f(' * 80}1{')' * 160})",
])  # fmt: skip
def test_a_name_that_only_running_the_code_would_tell_is_none(source):
    assert name_given([source]) is None


def test_names_are_kept_and_invalid_cells_skipped():
    """A name is kept from cell to cell, and cells that are no valid Python are skipped."""
    assert name_given(['me = "Ada"', "student(", "student(me)", "%%bash\nstudent('Bob')", "a\0b"]) == "Ada"


def test_a_warning_of_the_students_code_is_none_of_the_readers():
    assert name_given(['student("\\d")']) == "\\d"
