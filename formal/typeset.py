r"""Statements of Coq as LaTeX: made from the statement's source, so that no formula beside a theorem is typed.

The part of Coq's language that statements use: quantifiers, implications, connectives, relations, arithmetic and
application. Known functions have their signs, ``Sum n f`` a sum, ``is_derive`` a derivative; others keep their names.
Lines end with a double backslash, and ``\quad`` stands where a line may be broken.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_TOKEN = re.compile(
    r"\s*(?:(%\w+)|(\d+(?:\.\d+)?)|([A-Za-z_][\w']*(?:\.[A-Za-z_][\w']*)*)|"
    r"(<->|->|=>|:=|<>|<=|>=|/\\|\\/|\+\+|::|[-~=<>+*/^(),:\[\];&|]))"
)
_ENDS = {"->", "<->", "/\\", "\\/", ")", ",", ":=", "in", "then", "else", "=>", ":", "]", ";", ""}
_LETTERS = "alpha beta gamma delta zeta eta theta iota kappa lambda mu nu xi rho sigma tau phi chi psi omega Delta"
_GREEK = frozenset(_LETTERS.split())
_NAMES = {"Nbar": r"\bar N", "Nn": "N_n", "tstar": "t^*", "PI": r"\pi", "Ginv": r"\mathrm{Ginv}"}
_RELATIONS = {"=": "=", "<>": r"\ne", "<": "<", "<=": r"\le", ">": ">", ">=": r"\ge"}


_SIGNS = {
    ("exp", 1): "e^{{{0}}}",
    ("ln", 1): r"\ln({0})",
    ("cos", 1): r"\cos({0})",
    ("sqrt", 1): r"\sqrt{{{0}}}",
    ("Rabs", 1): "|{0}|",
    ("List.length", 1): "|{0}|",
    ("length", 1): "|{0}|",
    ("Rmin", 2): r"\min({0}, {1})",
    ("kron", 2): "[{0} = {1}]",
    ("norm", 2): r"\|{1}\|",
    ("S", 1): "{0} + 1",
    ("pred", 1): "{0} - 1",
    ("Nat.eqb", 2): "{0} = {1}",
}


@dataclass(frozen=True)
class Node:
    """A term: what heads it, and its parts. Of quantifiers, ``names`` are what they bind."""

    head: str
    parts: tuple[Node, ...] = ()
    names: tuple[str, ...] = ()


class _Reader:
    """A parser by recursive descent, one method for each level of precedence."""

    def __init__(self, text: str) -> None:
        self.tokens = []
        at = 0
        text = text.strip()
        while at < len(text):
            found = _TOKEN.match(text, at)
            if found is None:
                raise ValueError(f"a statement must be in the language of typeset.py, but has {text[at : at + 20]!r}")
            if not found[1]:  # a scope, such as %nat
                self.tokens.append(found[0].strip())
            at = found.end()
        self.at = 0

    @property
    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self, expected: str = "") -> str:
        token = self.next
        if expected and token != expected:
            raise ValueError(f"a statement must have {expected!r} where it has {token!r}")
        self.at += 1
        return token

    def binders(self, end: str) -> tuple[str, ...]:
        """Names up to a token, their types left out."""
        names: list[str] = []
        depth, typed = 0, False
        while not (self.next == end and depth == 0):
            token = self.take()
            if not token:
                raise ValueError(f"a statement must have {end!r} behind what it binds")
            depth += (token == "(") - (token == ")")
            typed = (typed or token == ":") and token != ")" if depth <= 1 else typed
            if not typed and token not in "():":
                names.append(token)
        self.take(end)
        return tuple(names)

    def term(self) -> Node:
        if self.next in ("forall", "exists", "fun"):
            head = self.take()
            names = self.binders("=>" if head == "fun" else ",")
            return Node(head, (self.term(),), names)
        if self.next == "let":
            self.take()
            names = self.binders(":=")
            value = self.term()
            self.take("in")
            return Node("let", (value, self.term()), names)
        if self.next == "if":
            self.take()
            test = self.term()
            self.take("then")
            yes = self.term()
            self.take("else")
            return Node("if", (test, yes, self.term()))
        left = self.equivalent()
        if self.next == "->":
            self.take()
            return Node("->", (left, self.term()))
        return left

    def equivalent(self) -> Node:
        left = self.joined(0)
        if self.next == "<->":
            self.take()
            return Node("<->", (left, self.joined(0)))
        return left

    def joined(self, level: int) -> Node:
        sign = ("\\/", "/\\")[level]
        left = self.joined(1) if level == 0 else self.denied()
        if self.next == sign:
            self.take()
            right = self.term() if self.next in ("forall", "exists", "let") else self.joined(level)
            return Node(sign, (left, right))
        return left

    def denied(self) -> Node:
        if self.next == "~":
            self.take()
            return Node("~", (self.denied(),))
        if self.next in ("forall", "exists", "fun", "let", "if"):
            return self.term()
        return self.related()

    def related(self) -> Node:
        parts, signs = [self.listed()], []
        while self.next in _RELATIONS:
            signs.append(self.take())
            parts.append(self.term() if self.next in ("if", "fun") else self.listed())
        return Node("relation", tuple(parts), tuple(signs)) if signs else parts[0]

    def listed(self) -> Node:
        left = self.sum()
        if self.next in ("++", "::"):
            sign = self.take()
            return Node(sign, (left, self.listed()))
        return left

    def sum(self) -> Node:
        left = self.product()
        while self.next in ("+", "-"):
            sign = self.take()
            right = self.term() if self.next == "if" else self.product()
            left = Node(sign, (left, right))
        return left

    def product(self) -> Node:
        left = self.signed()
        while self.next in ("*", "/"):
            sign = self.take()
            left = Node(sign, (left, self.signed()))
        return left

    def signed(self) -> Node:
        if self.next == "-":
            self.take()
            return Node("minus", (self.signed(),))
        if self.next == "/":
            self.take()
            return Node("/", (Node("1"), self.signed()))
        return self.power()

    def power(self) -> Node:
        left = self.applied()
        if self.next == "^":
            self.take()
            return Node("^", (left, self.power()))
        return left

    def applied(self) -> Node:
        head = self.atom()
        parts = []
        while self.next == "(" or self.next == "[" or re.match(r"[\w]", self.next):
            if self.next in ("in", "then", "else", "forall", "exists", "fun", "let", "if"):
                break
            parts.append(self.atom())
        return Node("apply", (head, *parts)) if parts else head

    def atom(self) -> Node:
        token = self.take()
        if token == "(":
            inner = self.term()
            self.take(")")
            return Node("()", (inner,)) if inner.head in ("->", "forall", "exists") else inner
        if token == "[":
            parts = []
            while self.next != "]":
                parts.append(self.term())
                if self.next == ";":
                    self.take()
            self.take("]")
            return Node("list", tuple(parts))
        if token in _ENDS or token in ("match", "with", "end", "as") or not re.match(r"\w", token):
            raise ValueError(f"a statement must have a term where it has {token!r}")
        return Node(token)


def read(text: str) -> Node:
    """The statement as a tree.

    Raises
    ------
    ValueError
        If it has what this language lacks.
    """
    reader = _Reader(text)
    found = reader.term()
    if reader.next:
        raise ValueError(f"a statement must end, but has {reader.next!r}")
    _check(found, frozenset())
    return found


def _check(node: Node, bound: frozenset[str]) -> None:
    """ValueError if a name that has a sign of its own stands for something else."""
    first = node.parts[0].head if node.head == "apply" else ""
    if first in bound and first in {name for name, _ in _SIGNS} | {"INR", "Sum", "Over", "Others"}:
        raise ValueError(f"a statement must not bind the name {first}, which has a sign")
    for part in node.parts:
        _check(part, bound | set(node.names) if node.head != "relation" else bound)


def name(text: str) -> str:
    """A name as LaTeX: Greek letters, digits and what follows a low line lower, words upright."""
    if text in _NAMES:
        return _NAMES[text]
    if text == "_":
        return r"\cdot"
    bare = text.rstrip("'")
    primes = text[len(bare) :]
    stem, _, low = bare.partition("_")
    if not low and re.fullmatch(r"[A-Za-z]\d+", bare):
        stem, low = bare[0], bare[1:]
    known = stem in _GREEK
    if known or len(stem) == 1:
        shown = rf"\{stem}" if known else stem
        italic = len(low) == 1 or low.isdigit()
        return shown + (f"_{{{low}}}" if italic else rf"_{{\mathrm{{{_words(low)}}}}}" if low else "") + primes
    return rf"\mathrm{{{_words(bare)}}}" + primes


def _names(names: Sequence[str]) -> str:
    """Names in braces, so that no line is broken between them."""
    return "{" + ", ".join(map(name, names)) + "}"


def _words(text: str) -> str:
    return text.rpartition(".")[2].replace("_", r"\ ")


def _wrapped(node: Node, inline: bool, *heads: str) -> str:
    """With brackets if it is one of these, or a quantifier."""
    text = latex(node, inline)
    loose = {"->", "<->", "forall", "exists", "fun", "let", "if", "/\\", "\\/", "relation", "~", *heads}
    return f"({text})" if node.head in loose else text


def _binding(node: Node, default: str = "i") -> tuple[str, Node]:
    """The variable and the body of a function that stands as an argument."""
    if node.head == "fun" and len(node.names) == 1:
        return node.names[0], node.parts[0]
    return default, Node("apply", (*(node.parts if node.head == "apply" else (node,)), Node(default)))


def _known(head: str, given: Sequence[Node], inline: bool) -> str | None:
    """An application of a function that has a sign of its own."""
    one = [latex(part, True) for part in given]
    if head == "INR" and len(given) == 1:
        return _wrapped(given[0], True, "+", "-")
    if (head, len(given)) in _SIGNS:
        return _SIGNS[head, len(given)].format(*one)
    if head in ("Sum", "Over") and len(given) == 2:
        variable, body = _binding(given[1])
        over = rf"{name(variable)} < {one[0]}" if head == "Sum" else rf"{name(variable)} \in \{{0, 1\}}^{{{one[0]}}}"
        return rf"\sum_{{{over}}}\ {_wrapped(body, inline, '+', '-')}"
    if head == "Others" and len(given) == 3:
        variable, body = _binding(given[2])
        over = rf"{name(variable)} < {one[0]},\ {name(variable)} \ne {one[1]}"
        return rf"\sum_{{{over}}}\ {_wrapped(body, inline, '+', '-')}"
    if head == "is_derive" and len(given) == 3:
        variable, body = _binding(given[0], "t")
        slope = rf"\tfrac{{d}}{{d{name(variable)}}} {_wrapped(body, True, '+', '-')}"
        if given[1].head != variable:
            slope = rf"\left.{slope}\right|_{{{name(variable)} = {one[1]}}}"
        return f"{slope} = {latex(given[2])}"
    if head == "is_RInt" and len(given) == 4:
        variable, body = _binding(given[0], "s")
        under = rf"{_wrapped(body, True, '+', '-')}\,d{name(variable)}"
        return rf"\int_{{{one[1]}}}^{{{one[2]}}} {under} = {latex(given[3])}"
    if head == "is_lim_seq" and len(given) == 2:
        variable, body = _binding(given[0], "n")
        return rf"\lim_{{{name(variable)} \to \infty}} {_wrapped(body, True, '+', '-')} = {one[1]}"
    return None


def latex(node: Node, inline: bool = False) -> str:
    """A term on one line; within brackets and exponents fractions are slanted."""
    head, parts = node.head, node.parts
    if head == "apply":
        known = _known(parts[0].head, parts[1:], inline)
        if known is not None:
            return known
        first = _wrapped(parts[0], True, "+", "-", "*", "/", "apply")
        given = (_wrapped(part, True) if part.head == "fun" else latex(part, True) for part in parts[1:])
        return f"{first}({', '.join(given)})"
    if head == "()":
        return f"({latex(parts[0], True)})"
    if head == "list":
        return f"[{', '.join(latex(part, True) for part in parts)}]"
    if head in ("++", "::"):
        return rf"{latex(parts[0], inline)} \cdot {latex(parts[1], inline)}"
    if not parts:
        return name(head) if re.match(r"[A-Za-z_]", head) else head
    found = _arithmetic(node, inline)
    return _logic(node, inline) if found is None else found


def _arithmetic(node: Node, inline: bool) -> str | None:
    head, parts = node.head, node.parts
    if head in ("+", "-"):
        right = _wrapped(parts[1], inline, *(("+", "-", "minus") if head == "-" else ("minus",)))
        return f"{_wrapped(parts[0], inline)} {head} {right}"
    if head == "*":
        left, right = (_wrapped(part, inline, "+", "-", "minus") for part in parts)
        return rf"{left} \cdot {right}" if re.match(r"\d", right) else rf"{left}\,{right}"
    if head == "/" and inline:
        return f"{_wrapped(parts[0], True, '+', '-')}/{_wrapped(parts[1], True, '+', '-', '*', '/')}"
    if head == "/":
        return rf"\frac{{{latex(parts[0], True)}}}{{{latex(parts[1], True)}}}"
    if head == "minus":
        return f"-{_wrapped(parts[0], inline, '+', '-')}"
    if head == "^":
        return f"{_wrapped(parts[0], inline, '+', '-', '*', '/', 'minus', '^')}^{{{latex(parts[1], True)}}}"
    return None


def _logic(node: Node, inline: bool) -> str:
    head, parts = node.head, node.parts
    if head == "relation":
        signs = ("", *(f" {_RELATIONS[sign]} " for sign in node.names))
        return "".join(f"{sign}{latex(part, inline)}" for sign, part in zip(signs, parts, strict=True))
    if head in ("/\\", "\\/"):
        loose = ("\\/",) if head == "/\\" else ()
        texts = [
            latex(one, inline) if one.head in ("relation", head) else _wrapped(one, inline, *loose) for one in parts
        ]
        word = "and" if head == "/\\" else "or"
        return rf"{texts[0]}\quad\mathrm{{{word}}}\ {texts[1]}"
    if head == "->":
        return rf"{_premise(parts[0], inline)} \Rightarrow\quad {latex(parts[1], inline)}"
    if head == "<->":
        return rf"{_wrapped(parts[0], inline)} \Leftrightarrow\quad {latex(parts[1], inline)}"
    if head == "~":
        return rf"\mathrm{{not}}\ {_wrapped(parts[0], inline)}"
    if head in ("forall", "exists"):
        return rf"\{head}\, {_names(node.names)}:\ {latex(parts[0], inline)}"
    if head == "fun":
        return rf"{', '.join(map(name, node.names))} \mapsto {latex(parts[0], True)}"
    if head == "let":
        return rf"{_defined(node)}:\ {latex(parts[1], inline)}"
    test, yes, no = (latex(part, True) for part in parts)
    return rf"({yes}\ \mathrm{{if}}\ {test},\ \mathrm{{else}}\ {no})"


def _premise(node: Node, inline: bool = False) -> str:
    """A premise, in brackets where it quantifies over all."""
    if node.head == "()" and node.parts[0].head == "exists":
        node = node.parts[0]
    return latex(node, inline) if node.head in ("relation", "/\\", "\\/", "~", "exists") else _wrapped(node, inline)


def _defined(node: Node) -> str:
    first, *others = map(name, node.names)
    given = f"({', '.join(others)})" if others else ""
    return f"{first}{given} := {latex(node.parts[0])}"


def lines(node: Node, marks: str = "123456789") -> list[str]:
    """A statement as lines: what it is about, what it assumes, and each thing that it says, marked if it is not one."""
    found: list[str] = []
    names: list[str] = []
    assumed: list[str] = []

    def said() -> None:
        if names:
            found.append(rf"\forall\, {_names(names)}:")
        found.extend(rf"{one}" for one in _rows(assumed))
        names.clear()
        assumed.clear()

    while True:
        if node.head == "()":
            node = node.parts[0]
        elif node.head == "forall":
            if assumed:
                said()
                found[-1] += r" \quad \Rightarrow"
            names += node.names
            node = node.parts[0]
        elif node.head == "->":
            assumed.append(_premise(node.parts[0]))
            node = node.parts[1]
        elif node.head == "let":
            said()
            found.append(_defined(node))
            node = node.parts[1]
        else:
            break
    had = bool(assumed)
    said()
    mark = r"\Rightarrow\quad " if had or (found and ":=" in found[-1]) else ""
    both: list[Node] = [node]
    while both[-1].head == "/\\":
        both[-1:] = both[-1].parts
    for number, one in enumerate(both):
        block = one.head in ("forall", "()", "let") and len(both) > 1
        inner = lines(one, "abcdefgh") if block else [latex(one)]
        mark += rf"({marks[number]})\quad " if len(both) > 1 else ""
        inner[0] = mark + inner[0]
        if found and not mark and not found[-1].endswith(r"\Rightarrow"):
            found[-1] += r" \quad " + inner.pop(0)
        found += inner
        mark = ""
    return found


def _rows(assumed: Sequence[str], longest: int = 90) -> list[str]:
    """Assumptions, several short ones to a line."""
    rows: list[str] = []
    for one in assumed:
        if rows and len(rows[-1]) + len(one) < longest:
            rows[-1] += rf",\quad {one}"
        else:
            rows.append(one)
    return rows


def typeset(statement: str) -> str:
    """A statement of Coq as lines of LaTeX."""
    return r" \\ ".join(lines(read(statement)))
