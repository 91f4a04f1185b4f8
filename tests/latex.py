"""The value of a formula in LaTeX at a point, read by rules of its own: for tests of what pages show."""

import math
import re

from scipy.special import lambertw

_FUNCTIONS = {
    r"\ln": math.log,
    r"\sqrt": math.sqrt,
    "W": lambda x: lambertw(x).real,
    r"\sin": math.sin,
    r"\cos": math.cos,
}


def value(formula, at):
    """The number that a formula stands for where its symbols, written as in it, have the values ``at``."""
    symbols = "|".join(re.escape(name) for name in sorted(at, key=len, reverse=True))
    spaces = re.sub(r"\\!|\\left|\\right(?!a)|\s+(?![A-Za-z])|(?<=[^A-Za-z])\s+", "", formula)
    spaces = re.sub(r"\\cdot", "*", spaces)
    tokens = re.findall(rf"{symbols}|\\[A-Za-z]+|\d+(?:\.\d+)?|[^\s]", spaces)
    reader = _Reader(tokens, at)
    found = reader.sum()
    if reader.tokens:
        raise ValueError(f"cannot read {''.join(reader.tokens)!r} of {formula!r}")
    return found


class _Reader:
    def __init__(self, tokens, at):
        self.tokens, self.at = list(tokens), at

    def take(self, *wanted):
        """The next token if it is one of those wanted."""
        return self.tokens.pop(0) if self.tokens and self.tokens[0] in wanted else None

    def sum(self):
        total = -self.product() if self.take("-") else self.product()
        while sign := self.take("+", "-"):
            total += self.product() if sign == "+" else -self.product()
        return total

    def product(self):
        found = self.power()
        while self.tokens and self.tokens[0] not in ("+", "-", ")", "}", r"\rfloor", r"\rceil"):
            if self.take("/"):
                found /= self.power()
            else:
                self.take("*")
                found *= self.power()
        return found

    def power(self):
        base = self.factor()
        return base ** self.argument() if self.take("^") else base

    def group(self, close):
        found = self.sum()
        if self.take(close) is None:
            raise ValueError(f"{close} expected before {''.join(self.tokens)!r}")
        return found

    def argument(self):
        return self.group("}") if self.take("{") else self.factor(digit=True)

    def factor(self, *, digit=False):
        token = self.tokens.pop(0)
        if token in self.at:
            return self.at[token]
        if token in ("(", "{"):
            return self.group({"(": ")", "{": "}"}[token])
        if token in (r"\lfloor", r"\lceil"):
            return (math.floor if token == r"\lfloor" else math.ceil)(self.group(token.replace(r"\l", r"\r")))
        if token in (r"\frac", r"\tfrac"):
            above = self.argument()
            return above / self.argument()
        if token in _FUNCTIONS:
            power = self.argument() if self.take("^") else 1
            inner = self.argument() if token == r"\sqrt" else self.factor()
            return _FUNCTIONS[token](inner) ** power
        if token[0].isdigit():
            if digit and len(token) > 1:  # of 12, an argument without braces is the first digit
                self.tokens.insert(0, token[1:])
                token = token[0]
            return float(token)
        if token == "e":
            return math.e
        if token == r"\pi":
            return math.pi
        raise ValueError(f"no value for {token!r}")
