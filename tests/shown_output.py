"""Output that pages show: a line of a block ends in ``# -> OUTPUT``, or text stands below ``<!--- prints -->``, the
output of the block above, or below ``<!--- prints: COMMAND -->``.

Numbers agree to the digits that are shown, words and signs exactly; ``...`` stands for anything, ``below X`` for a
number up to X.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import importlib
import io
import re
import shlex
import tokenize
from collections.abc import Iterator, Sequence

from click.testing import CliRunner
from sybil import Document, Example, Region
from sybil.evaluators.python import pad
from sybil.parsers.markdown import PythonCodeBlockParser

_NUMBER = re.compile(r"(?<![\w.])[-+]?\d[\d,_]*(?:\.\d+)?(?:e[-+]?\d+)?")
_PRINTS = re.compile(r"^<!--- prints(?:: (?P<command>.+?))? -->\n```text\n(?P<shown>.*?)^```", re.DOTALL | re.MULTILINE)


def comments(source: str) -> dict[int, str]:
    """The comment of each line that has one."""
    tokens = tokenize.generate_tokens(io.StringIO(source).readline)
    return {one.start[0]: one.string.lstrip("# ") for one in tokens if one.type == tokenize.COMMENT}


def agrees(shown: str, output: str) -> bool:
    """Whether output is as it is shown."""
    if shown.startswith("below "):
        return float(output) <= float(shown.removeprefix("below "))
    pattern = r"\s+".join(_pattern(word) for word in shown.split())
    match = re.fullmatch(pattern, output.strip(), re.DOTALL)
    numbers = _NUMBER.findall(shown)
    return match is not None and all(_rounds(found, to) for found, to in zip(match.groups(), numbers, strict=True))


def _pattern(word: str) -> str:
    parts = re.split(f"({_NUMBER.pattern})", word)
    return "".join(
        f"({_NUMBER.pattern})" if at % 2 else re.escape(part).replace(r"\.\.\.", ".*?") for at, part in enumerate(parts)
    )


def _rounds(found: str, shown: str) -> bool:
    mantissa, _, exponent = shown.partition("e")
    digits = len(mantissa.partition(".")[2]) - int(exponent or 0)
    value, said = (float(text.replace(",", "").replace("_", "")) for text in (found, shown))
    return abs(value - said) <= 0.5 * 10.0**-digits * (1 + 1e-9) and (digits > 0 or value == said or exponent != "")


def _compared(example: Example, texts: Sequence[tuple[str | None, str]]) -> None:
    """Runs a block statement by statement, then commands where it wrote its files, and compares what the page shows."""
    source = pad(example.parsed, example.line + example.parsed.line_offset)
    said = comments(source)
    whole = io.StringIO()
    for statement in ast.parse(source, example.path).body:
        shown = said.get(statement.end_lineno or 0, "")
        if not shown.startswith("-> "):
            code = compile(ast.Module([statement], []), example.path, "exec", dont_inherit=True)
            with contextlib.redirect_stdout(whole):
                exec(code, example.namespace)
            continue
        assert isinstance(statement, ast.Expr), f"output is of an expression, or of what prints, but not of {shown!r}"
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            code = compile(ast.Expression(statement.value), example.path, "eval", dont_inherit=True)
            value = eval(code, example.namespace)
        output = printed.getvalue() or str(value)
        assert agrees(shown.removeprefix("-> "), output), f"the page shows {shown!r}, but this is {output!r}"
    example.namespace.pop("__builtins__", None)
    for command, shown in texts:
        output = whole.getvalue() if command is None else _output(command)
        assert agrees(shown, output), f"the page shows {shown!r}, but this is {output!r}"


def _output(command: str) -> str:
    program, *arguments = shlex.split(command)
    assert program == "yzflow", command
    main = importlib.import_module("yzflow.cli").main
    return CliRunner().invoke(main, arguments, catch_exceptions=False).output


class BlockParser(PythonCodeBlockParser):
    """Blocks of Python, whose shown output is compared, and that of commands between a block and the next one."""

    def __call__(self, document: Document) -> Iterator[Region]:
        regions = list(super().__call__(document))
        ends = [*(region.start for region in regions[1:]), len(document.text)]
        for region, end in zip(regions, ends, strict=False):  # a page may have none
            if not region.parsed.startswith(">>>"):
                texts = [match.groups() for match in _PRINTS.finditer(document.text, region.end, end)]
                region.evaluator = functools.partial(_compared, texts=texts)
            yield region
