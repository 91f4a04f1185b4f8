"""Tables for a terminal, for Markdown and for HTML, and facts as JSON."""

from __future__ import annotations

import itertools
import json
import math
import re
import textwrap
from collections.abc import Mapping, Sequence

__all__ = ["as_json", "columns", "html_table", "markdown_table"]


def as_json(facts: object, *, said: bool = False) -> str:
    """Facts as JSON. A number that is not finite becomes null, or a word if ``said``."""

    def plain(fact: object) -> object:
        if isinstance(fact, Mapping):
            return {name: plain(value) for name, value in fact.items()}
        if isinstance(fact, list | tuple):
            return [plain(value) for value in fact]
        odd = isinstance(fact, float) and not math.isfinite(fact)
        return (str(fact) if said else None) if odd else fact

    return json.dumps(plain(facts), indent=2, allow_nan=False)


def columns(rows: Sequence[Sequence[str]], *, most: int | None = None) -> list[str]:
    """Rows as aligned lines for a terminal; cells are wrapped, the widest first, if a line would pass ``most``."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    while most is not None and sum(widths) + 2 * len(widths) > most:
        widths[widths.index(max(widths))] -= 1
    lines = []
    for row in rows:
        cells = [
            [cell] if len(cell) <= width else textwrap.wrap(cell, width, break_on_hyphens=False)
            for cell, width in zip(row, widths, strict=True)
        ]
        for parts in itertools.zip_longest(*cells, fillvalue=""):
            line = "  ".join(part.ljust(width) for part, width in zip(parts, widths, strict=True))
            lines.append(f"  {line.rstrip()}")
    return lines


def markdown_table(rows: Sequence[Sequence[str]]) -> list[str]:
    """The rows as a table of Markdown."""
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return [lines[0], "|" + "---|" * len(rows[0]), *lines[1:]]


def html_table(head: Sequence[str], rows: Sequence[Sequence[str]], caption: str, *, bad: Sequence[bool] = ()) -> str:
    """An HTML table from cells of HTML. Roles keep it a table for screen readers where CSS shows rows as cards."""
    heads = "".join(f"<th role='columnheader' scope='col'>{name}</th>" for name in head)
    head = [re.sub(r"<[^>]*>", "", name) for name in head]  # attributes hold no tags
    lines = []
    for i, row in enumerate(rows):
        first, *rest = (f"data-head='{name}'" for name in head)
        cells = f"<th role='rowheader' scope='row' {first}><span>{row[0]}</span></th>"
        cells += "".join(
            f"<td role='cell' {name}><span>{cell}</span></td>" for name, cell in zip(rest, row[1:], strict=True)
        )
        lines.append(f"<tr role='row'{' class=bad' if i < len(bad) and bad[i] else ''}>{cells}</tr>")
    return (
        f"<table role='table'><caption>{caption}</caption><thead role='rowgroup'><tr role='row'>{heads}</tr></thead>"
        f"<tbody role='rowgroup'>{''.join(lines)}</tbody></table>"
    )
