"""Output that pages show is compared when their blocks run, and no block shows it in another form."""

import ast
import builtins
import re

import pytest
from driving import ROOT
from shown_output import BlockParser, agrees, comments
from sybil.document import Document

PAGES = sorted(
    path
    for pattern in ("README.md", "docs/*.md", "docs/howto/*.md", "docs/theory/*.md", "studies/*/*/page.md")
    for path in ROOT.glob(pattern)
)
SHOWN = """```python
print("a", {})  # -> a {}
```
"""


@pytest.mark.parametrize(
    ("shown", "output"),
    [
        ("4.27", "4.2745"),
        ("(52.706, 52.706)", "(52.70607332680797, 52.70607332680797)\n"),
        ("True False", "True False"),
        ("below 1e-10", "3.2e-11"),
        ("-8.4e-4 of 1,000", "-0.00084321 of 1000"),
        ("counts [...] of\n  ...\n[0, 1]", "counts [0.25, 0.5] of\n  one\n  two\n[0, 1]"),
    ],
)
def test_output_agrees_to_the_digits_that_are_shown(shown, output):
    assert agrees(shown, output)


@pytest.mark.parametrize(
    ("shown", "output"),
    [
        ("4.27", "4.2755"),
        ("4.27", "-4.27"),
        ("52.5", "52.70607332680797"),
        ("True False", "True True"),
        ("below 1e-10", "3.2e-10"),
        ("1000", "1000.3"),
        ("a 1", "a 1 2"),
        ("a 1", "b 1"),
        ("counts [...] of", "counts [0.25 of"),
    ],
)
def test_other_output_does_not(shown, output):
    assert not agrees(shown, output)


def _evaluated(folder, text):
    path = folder / "page.md"
    path.write_text(text)
    for example in Document.parse(str(path), BlockParser()).examples():
        example.evaluate()


def test_a_page_with_other_output_fails(tmp_path):
    _evaluated(tmp_path, SHOWN.format(0.25, 0.2))
    with pytest.raises(AssertionError, match=r"the page shows '-> a 0.3', but this is 'a 0.2"):
        _evaluated(tmp_path, SHOWN.format(0.2, 0.3))
    command = "{}\n<!--- prints: yzflow --version -->\n```text\n..., version {}\n```\n"
    _evaluated(tmp_path, command.format(SHOWN.format(1, 1), "..."))
    with pytest.raises(AssertionError, match=r"the page shows .*, version none"):
        _evaluated(tmp_path, command.format(SHOWN.format(1, 1), "none"))
    block = "```python\nfor size in (2, 3):\n    print(size, size**2)\n```\n<!--- prints -->\n```text\n2 4\n3 {}\n```\n"
    _evaluated(tmp_path, block.format(9))
    with pytest.raises(AssertionError, match=r"the page shows '2 4\\n3 8\\n', but this is '2 4\\n3 9"):
        _evaluated(tmp_path, block.format(8))
    with pytest.raises(AssertionError, match="output is of an expression"):
        _evaluated(tmp_path, "```python\nx = 1  # -> 1\n```\n")


def test_blocks_of_the_readme_run_alone():
    """Each name that a block reads is bound in it; one block is skipped, since it is of a reader's training."""
    text = (ROOT / "README.md").read_text()
    skipped = re.findall(r"<!--- skip: next .*? -->\n\n```python\n(.*?)```", text, re.DOTALL)
    blocks = re.findall(r"^```python\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    assert len(skipped) == 1 and len(blocks) >= 5
    for block in set(blocks) - set(skipped):
        names = [node for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Name)]
        imported = {
            name.asname for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Import) for name in node.names
        }
        bound = {node.id for node in names if isinstance(node.ctx, ast.Store)} | imported | set(dir(builtins))
        assert {node.id for node in names} <= bound, block


def test_the_readme_is_short():
    """A reader's words: no marks, no code."""
    text = re.sub(r"<!--.*?-->|```.*?```", "", (ROOT / "README.md").read_text(), flags=re.DOTALL)
    assert len(text.split()) < 900


@pytest.mark.parametrize("page", PAGES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_no_block_shows_output_that_is_not_compared(page):
    for example in Document.parse(str(page), BlockParser()).examples():
        said = comments(example.parsed)
        for statement in ast.parse(example.parsed).body:
            comment = said.get(statement.end_lineno, "")
            shows = isinstance(statement, ast.Expr) and re.search(r"\d|\b(True|False|None)\b", comment)
            assert not shows or comment.startswith("-> "), f"write `# -> OUTPUT`, or a line of its own: {comment!r}"
