r"""Formulas of the register, as mathematics in Markdown and as pictures in HTML.

A statement's ``printed`` and ``corrected`` are LaTeX without dollar signs if they contain a LaTeX command, and plain
text otherwise. A double backslash ends a line.
"""

from __future__ import annotations

import functools
import html
import math
import re
from typing import Any

__all__ = ["as_html", "as_markdown", "in_words", "is_latex", "parts", "readable"]

_SIZE = 100  # units of the picture to one em of the text around it
_LINE = re.compile(r"\s*\\\\\s*")
_LONG = 70  # characters of LaTeX, about 20 em
_RELATIONS = ("=", "<", ">", r"\le", r"\ge", r"\ne", r"\approx", r"\sim", r"\to", r"\Rightarrow")
_ARGUMENT = r"\s*(\\[A-Za-z]+|[^{\s\\])"
_OPEN = ("{", "(", "[", r"\left", r"\{", r"\langle")
_CLOSE = ("}", ")", "]", r"\right", r"\}", r"\rangle")


def is_latex(formula: str) -> bool:
    r"""True if a formula is LaTeX, that is, contains a command."""
    return re.search(r"\\[A-Za-z]", formula) is not None


def as_markdown(formula: str) -> list[str]:
    """The formula as lines of Markdown: mathematics, or plain text as code."""
    if not is_latex(formula):
        return [f"`{formula}`"]
    lines = _LINE.split(formula)
    if len(lines) == 1:
        return ["$$", formula, "$$"]
    return ["$$", r"\begin{aligned}", *(rf"&{line} \\[1ex]" for line in lines), r"\end{aligned}", "$$"]


@functools.cache
def as_html(formula: str, *, latex: bool | None = None) -> str:
    """The formula as inline SVG pictures, or as code.

    Each piece between wide spaces is one picture, with the colour of the surrounding text and the formula as its title.
    Plain text becomes code, as does LaTeX that matplotlib cannot set. `is_latex` decides unless ``latex`` is given.
    """
    if is_latex(formula) if latex is None else latex:
        lines = [re.split(r"\\q?quad\b\s*", line) for line in _LINE.split(formula)]
        try:
            return "<br/>".join(" ".join(_picture(piece) for piece in parts if piece.strip()) for parts in lines)
        except ValueError:
            pass
    return f"<code>{html.escape(formula)}</code>"


def in_words(text: str) -> str:
    """HTML of a text with formulas between dollar signs: formulas as pictures, the rest escaped."""
    pieces = re.split(r"\$([^$]*)\$", text)
    return "".join(as_html(piece, latex=True) if i % 2 else html.escape(piece) for i, piece in enumerate(pieces))


_NAMES = (
    "alpha beta gamma delta zeta eta theta kappa lambda mu nu xi pi rho sigma tau phi chi psi omega Gamma Delta Theta"
    " Psi Omega"
)
_GREEK = dict(zip(_NAMES.split(), "αβγδζηθκλμνξπρστφχψωΓΔΘΨΩ", strict=True)) | {"eps": "ε", "inf": "∞"}
_LETTER = re.compile(rf"(?<![A-Za-z.])({'|'.join(_GREEK)})(?![A-Za-z])")
_CODE = re.compile(r"\b(?:dynamics|theory|yzflow(?:_\w+)?)(?:\.\w+)+")
_SIGNS = (
    ("&gt;&gt;", "≫"),
    ("&lt;&lt;", "≪"),
    ("&lt;~", "≲"),
    ("&gt;=", "≥"),
    ("&lt;=", "≤"),
    (" != ", " ≠ "),
    ("||", "‖"),
    ("+-", "±"),
    ("sqrt ", "√"),
    ("sqrt(", "√("),
    ("log2 ", "log_2 "),
)
_MINUS = "\N{MINUS SIGN}"
_LOW = re.compile(
    r"(?<![A-Za-z])((?:max|min|log|d?[A-Za-z\u0370-\u03ff∑∏∫)‖])'?)"
    r"_(\{[^{}]*\}|\([^()]*\)|[A-Za-z0-9\u0370-\u03ff\u221e]{1,5}(?!\w)'*)"
)
_HIGH = re.compile(r"\^(\{[^{}]*\}|\([^()]*\)|-?[\d.]*\d|-?[\u0370-\u03ff]|[A-Za-z](?![a-z]))")
_LARGE = {"sum": "∑", "prod": "∏", "int": "∫"}


@functools.cache
def readable(text: str) -> str:
    """HTML of plain text, with Greek letters, mathematical signs, subscripts and superscripts.

    Examples
    --------
    >>> readable("|lambda_1(E)| <= 6/sqrt(M), sum_n 2^(n/2); theory.bounds")
    '|λ<sub>1</sub>(E)| ≤ 6/√(M), ∑<sub>n</sub> 2<sup>n/2</sup>; <code>theory.bounds</code>'
    """
    pieces, end = [], 0
    for code in _CODE.finditer(text):
        pieces += [_in_letters(text[end : code.start()]), f"<code>{code[0]}</code>"]
        end = code.end()
    return "".join([*pieces, _in_letters(text[end:])])


def _in_letters(text: str) -> str:
    text = _LETTER.sub(lambda name: _GREEK[name[1]], html.escape(text, quote=False))
    for plain, sign in _SIGNS:
        text = text.replace(plain, sign)
    text = re.sub(r"\bt0(?!\w)", "t_0", text)
    text = re.sub(r"\b(sum|prod|int)_(?=[\w{(])", lambda sign: f"{_LARGE[sign[1]]}_", text)
    text = re.sub(r"(?<=[\w)}']) - (?=[\w({|‖])", f" {_MINUS} ", text)
    text = re.sub(r"(?:^|(?<=[\s(=]))-(?=[\w(])", _MINUS, text)
    text = _LOW.sub(lambda low: f"{low[1]}<sub>{_inner(low[2])}</sub>", text)
    return _raised(text)


def _raised(text: str) -> str:
    return _HIGH.sub(lambda high: f"<sup>{_raised(_inner(high[1])).replace('-', _MINUS)}</sup>", text)


def _inner(group: str) -> str:
    """A group without its brackets."""
    return group[1:-1] if group[0] in "{(" else group


def parts(formula: str) -> str:
    r"""The formula with wide spaces at which a line may be broken, as `as_html` makes a picture of each piece.

    Outside brackets, a wide space replaces the space after a comma, colon or semicolon. One is also put before a
    relation, or words, late in a long piece.
    """
    depth = since = 0
    tokens: list[str] = []
    for token in re.findall(r"\\[A-Za-z]+|\\.|.", formula, re.DOTALL):
        depth += (token in _OPEN) - (token in _CLOSE)
        since = 0 if token in (r"\quad", r"\qquad", r"\\") else since + len(token)
        if depth == 0 and token in (r"\ ", " ") and tokens and tokens[-1] in (",", ":", ";"):
            token, since = r"\quad ", 0
        elif depth == 0 and since > {r"\text": _LONG // 2}.get(token, _LONG if token in _RELATIONS else math.inf):
            tokens.append(r"\quad ")
            since = 0
        tokens.append(token)
    return "".join(tokens)


def _plain(formula: str) -> str:
    """The formula in LaTeX commands that matplotlib knows."""
    plain = re.sub(r"\\text\{([^{}]*)\}", lambda match: r"\mathrm{" + match[1].replace(" ", r"\ ") + "}", formula)
    # Matplotlib's \frac is the small form: \frac becomes \dfrac, and \tfrac becomes \frac.
    plain = re.sub(rf"\\([td]?)frac{_ARGUMENT}{_ARGUMENT}", r"\\\1frac{\2}{\3}", plain)
    plain = plain.replace(r"\bmod", r"\ \mathrm{mod}\ ")
    plain = re.sub(rf"\\sqrt(?!\[){_ARGUMENT}", r"\\sqrt{\1}", plain).replace(r"\frac{", r"\dfrac{")
    plain = re.sub(r"\\[Bb]igg?[lr]?(?![A-Za-z])", "", plain.replace(r"\tfrac{", r"\frac{"))
    return re.sub(r"\\([lg]e)(?![A-Za-z])", r"\\\1q", plain)


def _extents(path: Any) -> tuple[float, float, float, float]:
    """Least x and y, largest x and y of an outline, whose curves matplotlib would ask one by one."""
    import numpy as np
    from matplotlib.path import Path

    vertices, codes = path.vertices, path.codes
    if (codes == Path.CURVE4).any():
        return path.get_extents().extents
    curved = codes == Path.CURVE3
    (middle,) = np.nonzero(curved & (np.cumsum(curved) % 2 == 1))
    start, control, end = (vertices[middle + step] for step in (-1, 0, 1))
    with np.errstate(divide="ignore", invalid="ignore"):
        t = (start - control) / (start - 2 * control + end)
    t = np.where((t > 0) & (t < 1), t, 0.0)
    turning = (1 - t) ** 2 * start + 2 * t * (1 - t) * control + t**2 * end
    passed = np.delete(vertices, np.union1d(middle, np.flatnonzero(codes == Path.CLOSEPOLY)), axis=0)
    points = np.concatenate([passed, turning])
    return *points.min(axis=0), *points.max(axis=0)


@functools.cache
def _picture(formula: str) -> str:
    """One line of mathematics as SVG; ValueError if matplotlib cannot set it."""
    from matplotlib.path import Path  # takes a third of a second, so not imported for a check on a screen
    from matplotlib.textpath import TextPath

    drawing = {Path.MOVETO: "M", Path.LINETO: "L", Path.CURVE3: "Q", Path.CURVE4: "C", Path.CLOSEPOLY: "Z"}
    text = f"${_plain(formula)}$"
    path = TextPath((0, 0), text, size=_SIZE)
    drawn = []
    for points, code in path.iter_segments(simplify=False, curves=True):
        # SVG's y axis points downwards.
        numbers = " ".join(f"{x:.0f} {-y:.0f}" for x, y in points.reshape(-1, 2))
        drawn.append(drawing[code] + (numbers if code != Path.CLOSEPOLY else ""))
    x0, y0, x1, y1 = _extents(path)
    width, tall = x1 - x0 + 4, y1 - y0 + 4
    title = html.escape(formula, quote=True)
    return (
        f"<svg role='img' style='width:{width / _SIZE:.2f}em;vertical-align:{(y0 - 2) / _SIZE:.2f}em'"
        f" viewBox='{x0 - 2:.0f} {-y1 - 2:.0f} {width:.0f} {tall:.0f}' fill='currentColor'>"
        f"<title>{title}</title><path d='{''.join(drawn)}'/></svg>"
    )
