"""Several JavaScript modules become one, or an error says why not."""

import pytest

from affscore_book.kit.bundle import bundle


def write(folder, **files):
    for name, text in files.items():
        (folder / f"{name}.js").write_text(text)
    return folder / f"{next(iter(files))}.js"


def test_bundle_holds_each_file_once_and_in_order(tmp_path, node):
    path = write(
        tmp_path,
        a='import { b } from "./b.js";\nimport {\n  c,\n} from "./c.js";\n'
        "export const a = b + c;\nexport default { a };\n",
        b='import { c } from "./c.js";\nexport const b = 10 * c;\n',
        c="export const c = 2;\n",
    )
    text = bundle(path)
    assert text.count("const c = 2") == 1 and "import" not in text
    assert node(text, "m => [m.a, m.default.a, Object.keys(m).length]") == [22, 22, 2]


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a": 'import * as b from "./b.js";\n', "b": ""}, "a.js has an import that cannot be bundled"),
        ({"a": 'import { c as d } from "./b.js";\n', "b": ""}, "a.js renames an import"),
        ({"a": 'import { c } from "https://example.org/b.js";\n'}, "a.js has an import that cannot be bundled"),
        ({"a": 'import { c } from "./b.js";\n', "b": "const c = 1;\nexport { c };\n"}, "b.js has an export"),
    ],
)
def test_bundle_names_what_it_cannot_do(tmp_path, files, message):
    with pytest.raises(ValueError, match=message):
        bundle(write(tmp_path, **files))
