"""The scripts that a page with widgets loads."""

import book_widgets


def test_comments_with_lines_of_their_own_stay_at_home():
    source = "// One.\nconst a = 1; // here\n/** Two\n * lines. */\nfunction f() {\n  // Three.\n  return a;\n}\n"
    assert book_widgets.uncommented(source) == "const a = 1; // here\nfunction f() {\n  return a;\n}\n"


def test_scripts_hold_their_widgets_in_few_bytes():
    """Every script is smaller than its modules and holds its widget."""
    for name, path in book_widgets.sources().items():
        text = book_widgets.files()[book_widgets.file_of(name)]
        assert "export default { render };" in text and len(text) < 1.1 * len(book_widgets.bundle(path))
        assert "\\n// " not in text
