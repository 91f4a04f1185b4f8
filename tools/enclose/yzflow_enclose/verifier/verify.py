"""Check a certificate: ``python -m yzflow_enclose.verifier FILE``, or this file as a script, with those beside it.

These files take nothing from the rest, only python-flint: format, vocabulary and equations are written down again. A
certificate claims that the flow from zero of the population in it stays within bounds of given polynomials, and that
predicates are true, or false, at every time of a span. Settings follow from the population; every bound is computed and
every predicate decided again. A file with other parts is refused. The output is the checked claim, in the words of this
file. A cell, many settings at once, is for ``verify_cell.py``.
"""

import hashlib
import json
import math
import operator
import struct
import sys
import zipfile
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import flint
from flint import arb, arb_poly, arb_series

if __package__:
    from yzflow_enclose.verifier import verify_cell
    from yzflow_enclose.verifier.verify_file import fits, need, number, opened, positive, real, whole
    from yzflow_enclose.verifier.verify_flow import Tube, copies_of_a_class, field_of, norm_of, taylor
else:
    import verify_cell  # type: ignore[no-redef]
    from verify_file import fits, need, number, opened, positive, real, whole  # type: ignore[no-redef]
    from verify_flow import Tube, copies_of_a_class, field_of, norm_of, taylor  # type: ignore[no-redef]

ORDER, DEPTH, SPANS = 6, 16, 60_000  # of expansions in time; how often a span is halved; on how many one is decided
OPERATIONS_AT_MOST, VARIABLES, ENTRIES = 100_000, 200, 10**8  # of a predicate; of a flow of no symmetry; of a table
LEAVES, TESTS, CLAIMS = {"variable": 1, "number": 1, "time": 0}, {">": 1, ">=": 1}, {"and": 2, "or": 2, "not": 1}
OPERATIONS = {
    "+": operator.add, "*": operator.mul, "/": operator.truediv, "-": operator.neg, "exp": arb_series.exp,
    "log": arb_series.log, "sqrt": arb_series.sqrt, "rsqrt": arb_series.rsqrt, "rate": arb_series.derivative,
}  # fmt: skip
REFUSALS = (
    ValueError, TypeError, AttributeError, LookupError, OSError, ArithmeticError, SyntaxError, struct.error,
    RuntimeError, MemoryError, EOFError, zipfile.BadZipFile,
)  # fmt: skip
ARGUMENTS = {**LEAVES, **dict.fromkeys(OPERATIONS, 1), **dict.fromkeys("+*/", 2), **TESTS, **CLAIMS}


SAYS = {"says": [list], "verdict": {True, False}, "until": positive, "margin": real}
BAG = (whole, whole, real, [whole], [positive])  # query, next token, weight, tokens, counts
POPULATION = {"bags": [BAG], "query_tokens": [whole], **dict.fromkeys(("n_queries", "n_tokens", "vocab_size"), whole)}
CLAIM = {
    "format": {"yzflow-certificate-2"}, "kind": {"population"}, "decoder": {"full", "modified", "theory"},
    "start": {"zero"}, "eta_y": positive, "eta_z": positive, "population": {**POPULATION, "sha256": str},
    "t_end": positive, "t_reached": positive, "bits": whole, "errors": [positive], "predicates": [dict],
}  # fmt: skip


def schema(c: dict) -> list:
    """The bags of a claim's population; ValueError if the claim has parts of another form."""
    for name in CLAIM:
        need(type(c) is dict and fits(c.get(name), CLAIM[name]), f"the {name} of the claim is none that is known here")
    p = {**c["population"]}
    bags, seal = p["bags"], p.pop("sha256")
    text = json.dumps(p, sort_keys=True, separators=(",", ":"))
    need(hashlib.sha256(text.encode()).hexdigest() == seal, "the SHA-256 of the population is another")
    good = c.keys() == CLAIM.keys() and c["t_reached"] <= c["t_end"] and 30 <= c["bits"] <= 400 and p["vocab_size"] > 1
    good = good and len({*p["query_tokens"]}) == len(p["query_tokens"]) == p["n_queries"]
    good = good and p["n_tokens"] * max(p["n_queries"], len(bags)) <= ENTRIES
    for q, n, weight, tokens, counts in bags:
        good = good and q < p["n_queries"] and n < p["vocab_size"] and 0 < len(tokens) == len(counts) and weight >= 0
        good = good and 2.0**-40 <= max(counts) <= 2.0**64
        good = good and all(a < b for a, b in pairwise([-1, *tokens, p["n_tokens"]]))
    keys = [(q, n, tokens, counts) for q, n, _, tokens, counts in bags]
    need(good and keys == sorted(keys) and abs(sum(bag[2] for bag in bags) - 1) < 1e-9, "no population is such")
    for told in c["predicates"]:
        need(fits(told, SAYS if told.get("verdict") else {**SAYS, "times": (real, positive)}), "a predicate's parts")
        first, last = told.get("times", [0.0, told["until"]])
        need(0 <= first <= last <= told["until"] <= c["t_reached"], "a predicate's times")
        check_operations(told["says"], len(c["errors"]))
    return bags


def check_operations(says: list, variables: int) -> None:
    """Refuse a list that is no claim, or an operation that is not on results of earlier ones."""
    need(0 < len(says) <= OPERATIONS_AT_MOST and fits(says, [list]), "a predicate's operations")
    rates: list = []  # number of nested rates in a result; None for a claim
    for place, (op, *given) in enumerate(says):
        need(type(op) is str and op in ARGUMENTS and len(given) == ARGUMENTS[op], "an operation")
        if op in LEAVES:
            need(all(number(x) if op == "number" else whole(x) and x < variables for x in given), "an operation")
            rates.append(0)
            continue
        need(all(whole(i) and i < place for i in given), "an operation")
        parts = [rates[i] for i in given]
        need(all((own is None) is (op in CLAIMS) for own in parts), "an operation on what it cannot take")
        rates.append(None if op in CLAIMS or op in TESTS else max(parts) + (op == "rate"))
        need(rates[-1] in (None, 0, 1), "a rate of a rate")
    need(rates[-1] is None, "a predicate that claims nothing")


def tube_of(c: dict, arrays: dict) -> tuple[Tube, list[str]]:
    """The steps of a certificate, each of them checked, and the names of its variables."""
    need(arrays.keys() == {"start", "end", "radius", "pieces", "limbs", "weights"}, "arrays are missing, or others")
    shape, limbs = arrays["limbs"]
    (n,), W = arrays["weights"]
    need(norm_of(c) == W and min(W) > 0, "the norm is another than that of the population")
    need(n <= VARIABLES or copies_of_a_class(c["population"]["bags"]) is not None, "there are too many variables")
    field, names = field_of(c)
    need(n == len(names) == len(c["errors"]), "not every variable has a weight and an error")
    kinds = {name: {*map(type, numbers)} for name, (_, numbers) in arrays.items()}
    need(all(kinds[name] == {int if name == "pieces" else float} for name in kinds), "numbers of another kind")
    need(len(shape) == 4 and shape[1] == n and math.prod(shape) > 0, "the steps are none")
    columns = [arrays[name] for name in ("start", "end", "radius", "pieces")]
    need(all(own == shape[:1] for own, _ in columns), "a step lacks a number")
    floats, steps = iter(limbs), []
    for start, end, radius, pieces in zip(*(column for _, column in columns), strict=True):
        rows = [[sum(arb(next(floats)) for _ in range(shape[3])) for _ in range(shape[2])] for _ in range(n)]
        steps.append((start, end, radius, pieces, [arb_poly(row) for row in rows]))
    need(steps[-1][1] == c["t_reached"], "the steps end at another time than the claim says")
    within = all(arb(max(arrays["radius"][1])) / arb(w) <= e for w, e in zip(W, c["errors"], strict=True))
    need(within, "an error is larger than the claim says")
    return Tube(field, [arb(w) for w in W], steps), names


def values(tube: Tube, says: list, a: float, b: float) -> Iterator:
    """Result of each operation for a < t <= b, or at t = a = b: two series, or the truth of a test or claim."""
    start, _, radius, _, p = [step for step in tube.steps if step[0] <= a][-1]
    half, still = (arb(b) - arb(a)) / 2, arb(0)
    middle = arb(a) + half - arb(start)
    wide = tube.box(p, radius, middle, half if b > a else still)
    # From t = 0 on, expanded at the exact start, so that exact zeros stay zero.
    thin = [still] * len(p) if a == 0 else tube.box(p, radius, middle, still)
    wide = thin if a == b else wide
    at = still if a == 0 else arb(a) + half
    off = (half if a == 0 else still) + arb(0, half.upper()) if b > a else still
    X = list(zip(taylor(tube.field, thin, ORDER), taylor(tube.field, wide, ORDER + 1), strict=True))
    flint.ctx.cap = ORDER + 1
    found: list[Any] = []
    for op, *given in says:
        parts = [] if op in LEAVES else [found[i] for i in given]
        if op == "variable":
            found.append(X[given[0]])
        elif op in LEAVES:
            terms = ([at, 1], [at + off, 1]) if op == "time" else ([given[0]], [given[0]])
            found.append((arb_series(terms[0], ORDER), arb_series(terms[1], ORDER + 1)))
        elif op in TESTS:
            found.append(sign(op, parts[0][0], parts[0][1], off, a == 0 < b))
        elif op in CLAIMS:
            found.append(combined(op, parts))
        else:
            found.append(tuple(result(op, own) for own in zip(*parts, strict=True)))
        yield found[-1]


def result(op: str, given: tuple) -> arb_series:
    """An operation on series; unknown if it is undefined somewhere in a ball."""
    try:
        found = OPERATIONS[op](*given)
        if all(series[0].is_finite() for series in (found, *given)):
            return found
    except (ZeroDivisionError, ValueError):
        pass
    length = min(series.prec for series in given)
    return arb_series([arb.nan()] * length, length)


def sign(op: str, thin: arb_series, wide: arb_series, off: arb, from_zero: bool) -> bool | None:
    """True if a quantity is positive, or not negative, by its values or its expansion; from t = 0 by its first term."""
    order, zeros = min(thin.prec, wide.prec - 1), 0
    while from_zero and zeros < order and thin[zeros].is_zero():
        zeros += 1
    value = wide[order]
    for k in range(order - 1, zeros - 1, -1):
        value = value * off + thin[k]
    found = [value] if zeros else [value, wide[0]]
    if op == ">":
        return True if any(x > 0 for x in found) else False if any(x <= 0 for x in found) else None
    return True if any(x >= 0 for x in found) else False if any(x < 0 for x in found) else None


def combined(op: str, parts: list) -> bool | None:
    """And, or, not, of truths that may be open."""
    if op == "not":
        return None if parts[0] is None else not parts[0]
    decisive = op == "or"
    return decisive if decisive in parts else None if None in parts else not decisive


def truth(tube: Tube, says: list, a: float, b: float) -> bool | None:
    """True if a predicate is true for all a < t <= b, False if it is false for all of them, else None."""
    try:
        return list(values(tube, says, a, b))[-1]
    except (ZeroDivisionError, ValueError):  # the field is not defined on a ball
        return None


def always(tube: Tube, says: list, spans: list, wanted: bool) -> bool:
    """True if a predicate is ``wanted`` for a < t <= b, or at t = a = b, of all spans, which lie in a step each."""
    waiting = [(a, b, 0) for a, b in spans]
    for _ in range(SPANS):
        if not waiting:
            return True
        a, b, depth = waiting.pop()
        found, middle = truth(tube, says, a, b), a + (b - a) / 2
        if found is (not wanted) or (found is None and (depth == DEPTH or not a < middle < b)):
            return False
        waiting += [] if found is wanted else [(a, middle, depth + 1), (middle, b, depth + 1)]
    return False


def slack(tube: Tube, says: list, t: float) -> arb:
    """The amount by which a predicate is true at a time; negative if it is false."""
    found: list[Any] = []
    for (op, *given), value in zip(says, values(tube, says, t, t), strict=True):
        own = [found[i] for i in given] if op not in LEAVES else []
        if op in CLAIMS:
            found.append(-own[0] if op == "not" else own[0].min(own[1]) if op == "and" else own[0].max(own[1]))
        else:
            found.append(own[0][1][0] if op in TESTS else value)
    return found[-1]


def formula(says: list, names: list[str]) -> str:
    """A predicate in words; subexpressions that are used more than once get names."""
    uses = Counter(i for op, *given in says if op not in LEAVES for i in given)
    texts: list[str] = []
    named: list[str] = []
    for place, (op, *given) in enumerate(says):
        if op in LEAVES:
            text = "t" if op == "time" else names[given[0]] if op == "variable" else repr(given[0])
        elif op == "not" and says[given[0]][0] in TESTS:  # of a test: the opposite one
            test, which = says[given[0]]
            text = f"({texts[which]} {'<=' if test == '>' else '<'} 0)"
        elif len(given) == 2:
            text = f"({texts[given[0]]} {op} {texts[given[1]]})"
        else:
            text = f"({texts[given[0]]} {op} 0)" if op in TESTS else f"{op}({texts[given[0]]})"
        if uses[place] > 1 and op not in LEAVES:
            named.append(f"a{len(named) + 1} = {text}")
            text = f"a{len(named)}"
        texts.append(text)
    return "; ".join([*named, texts[-1]])


def check(path: str) -> list[str]:
    """The claim of a certificate in words, a line each, if it is true; ValueError otherwise."""
    c, arrays = opened(path)
    if type(c) is dict and c.get("kind") == "cell":
        return verify_cell.check(c, arrays)
    own = (
        "the kind of the claim is none that is known here, but a class of Python: Enclosure.load(FILE).verify() runs it"
    )
    need(type(c) is not dict or c.get("kind") != "flow", own)
    bags = schema(c)
    flint.ctx.prec = c["bits"] + 40
    tube, names = tube_of(c, arrays)
    lines = [
        f"verified: {c['decoder']} flow from zero, eta_Y = {c['eta_y']}, eta_Z = {c['eta_z']}, time in SGD steps",
        f"population of {len(bags)} bags, M = {c['population']['vocab_size']}, SHA-256 {c['population']['sha256']}:",
        *(f"  query {c['population']['query_tokens'][q]}, next token {n}, weight {w}: counts {x} of tokens {t}"
          for q, n, w, t, x in bags),
        f"from t = 0 to {c['t_reached']}, of {c['t_end']}, each variable is known to within",
        *(f"  {name}: {error:.3g}" for name, error in zip(names, c["errors"], strict=True)),
    ]  # fmt: skip
    for told in c["predicates"]:
        says, until, margin = told["says"], told["until"], told["margin"]
        if told["verdict"]:
            spans = [(start, min(end, until)) for start, end, *_ in tube.steps if start < until]
            good = always(tube, says, spans, True) and all(slack(tube, says, t) >= margin for _, t in spans)
            words = f"true for every t with 0 < t <= {until}, by {margin:.3g} at the ends of steps"
        else:
            first, last = told["times"]
            _, end, *_ = [step for step in tube.steps if step[0] <= first][-1]
            need(last <= end, f"a predicate is said to be false for {first} < t <= {last}, but these leave their step")
            good = always(tube, says, [(first, last)], False) and slack(tube, says, last) <= margin
            when = f"at t = {last}" if first == last else f"for {first} < t <= {last}"
            words = f"false {when}, by {-margin:.3g} there"
        need(good, f"a predicate is not {words}: {formula(says, names)}")
        lines.append(f"{words}: {formula(says, names)}")
    return lines


def main(arguments: list[str]) -> None:
    for path in arguments or [""]:
        try:
            print("\n".join(check(path)))
        except REFUSALS as error:
            sys.exit(f"python -m yzflow_enclose.verifier FILE: not verified, {str(error)!a}")


if __name__ == "__main__":
    main(sys.argv[1:])
