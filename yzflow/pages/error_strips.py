"""The errors of a statement as a plot in HTML: a strip for each check and level, with a mark for each setting.

Positions are percentages of a strip's width, so the plot fits a projector and a phone without scaling its letters.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from html import escape

from theory.statements import Source
from yzflow.audits import formulas
from yzflow.audits.checked_statement import bare
from yzflow.audits.verdicts import Row, describe, verdict_rows

__all__ = ["drawn", "place"]

_FLOOR, _TOP = 1e-12, 20.0  # errors are clipped to this range
_TICKS = ((1e-12, "1e-12"), (1e-9, "1e-9"), (1e-6, "1e-6"), (1e-3, "0.1%"), (1.0, "100%"))


def place(error: float) -> float:
    """Position of an error on a logarithmic axis, in per cent of the width; NaN is put at the right end."""
    shown = min(max(error, _FLOOR), _TOP) if math.isfinite(error) else _TOP
    return 3 + 94 * math.log(shown / _FLOOR) / math.log(_TOP / _FLOOR)


def drawn(rows: Sequence[Row], source: Source) -> str:
    """The plot of rows, with key and axis; ``source`` has the name of the printed form."""
    parts, check, wrong = [], None, any(row.alarming for row in rows)
    for merged in verdict_rows(rows):
        if merged.check != check:
            check = merged.check
            parts.append(f"<p class='check'>{formulas.readable(check)}</p>")
        strip = _strip(merged.rows, source.short)
        parts.append(f"<div class='strip'><span>{escape(merged.level)}</span><svg>{strip}</svg></div>")
    ticks = "".join(f"<text x='{place(at):.1f}%' y='14' text-anchor='middle'>{text}</text>" for at, text in _TICKS)
    parts.append(f"<div class='strip axis'><span></span><svg>{ticks}</svg></div>")
    outside = any(not row.inside for row in rows)
    second = any(row.corrected is not None for row in rows)
    standing = "corrected form" if all(row.corrected is not None for row in rows) else "statement"
    key = [(_disc("8", "7", "standing"), f"{standing}, assumptions hold")]
    key += [(_disc("8", "7", "standing outside"), f"{standing}, an assumption is broken")] if outside else []
    key += [(_cross("8", "7"), escape(source.form))] if second else []
    key += [(_disc("8", "7", "wrong"), "should hold, and does not")] if wrong else []
    key.append(("<line class='tolerance' x1='8' x2='8' y1='0' y2='14'/>", "tolerance"))
    listed = "".join(f"<li><svg aria-hidden='true'>{mark}</svg>{words}</li>" for mark, words in key)
    words = (
        "Relative error, or violation of an inequality, of each check and level; 1e-12 stands for that or less, "
        "and the right end for 20 times or more"
    )
    name = "Errors by check and level, one mark for each setting; the same in numbers in the tables below"
    return (
        f"<div role='img' aria-label='{name}'>{''.join(parts)}</div>"
        f"<ul class='key'>{listed}</ul><figcaption>{words}.</figcaption>"
    )


def _strip(rows: Sequence[Row], first: str) -> str:
    marks = [f"<line class='grid' x1='{place(at):.1f}%' x2='{place(at):.1f}%' y1='0' y2='100%'/>" for at, _ in _TICKS]
    edge = f"{place(rows[0].tolerance):.2f}%"
    marks.append(f"<line class='tolerance' x1='{edge}' x2='{edge}' y1='0' y2='100%'/>")
    for number, row in enumerate(rows):
        height = f"{20 + 60 * (number + 0.5) / len(rows):.0f}%"  # marks of equal errors do not cover each other
        if row.corrected is not None:
            marks.append(_cross(f"{place(row.printed):.2f}%", height, _words(row, first, row.printed)))
        kind = "wrong" if row.alarming else "standing" if row.inside else "standing outside"
        marks.append(_disc(f"{place(row.error):.2f}%", height, kind, _words(row, "", row.error)))
    return "".join(marks)


def _words(row: Row, form: str, error: float) -> str:
    return f"<title>{escape(f'{bare(row.setting)}: {form} {describe(error, row.tolerance)}')}</title>"


def _disc(x: str, y: str, kind: str, title: str = "") -> str:
    return f"<circle class='{kind}' cx='{x}' cy='{y}' r='4'>{title}</circle>"


def _cross(x: str, y: str, title: str = "") -> str:
    return f"<svg x='{x}' y='{y}' overflow='visible'><path class='printed' d='M-4-4L4 4M-4 4L4-4'>{title}</path></svg>"
