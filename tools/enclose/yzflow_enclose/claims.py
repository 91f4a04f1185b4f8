"""The claim of a certificate: the flow, its population and the bounds, in a closed vocabulary.

A claim is plain JSON. It holds the population itself, sorted, so that settings, variables and their names follow from
it; there is no free text. For a reader's own flow it holds name and configuration of its class in place of a
population. ``yzflow_enclose.verifier`` parses and judges claims with independent code, except for a reader's own flow.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dynamics.support import checks
from dynamics.support.canonical import canonical, digest
from yzflow_enclose import formulas
from yzflow_enclose.canonical import SIZES
from yzflow_enclose.fields import DECODERS
from yzflow_enclose.formulas import Predicate, check_says

FORMAT = "yzflow-certificate-2"
KINDS = ("population", "flow")
# The kind and format of an enclosure of many settings at once.
CELL, CELL_FORMAT = "cell", "yzflow-cell-3"
FEWEST_BITS, MOST_BITS = 30, 400
HIGHEST_DEGREE = 20
_COMMON = {"format", "kind", "t_end", "t_reached", "errors", "predicates"}
_KEYS = {
    "population": _COMMON | {"bits", "decoder", "eta_y", "eta_z", "start", "population"},
    "flow": _COMMON | {"bits", "flow", "states", "clock", "own_start"},
    CELL: _COMMON | {"decoder", "start", "n_classes", "vocab_size", "distinct", "eta_y", "eta_z", "common", "degree"},
}
_MOST = 2**53 - 1
# The most entries of a table by query and token, or by token and next token; a larger one is not made.
_MOST_ENTRIES = 10**8
_MOST_TOKENS = 50


def check(claim: Any, kinds: Sequence[str] = KINDS) -> dict[str, Any]:
    """The claim, if every part of it has the form that `save` of such an enclosure writes; ValueError otherwise."""
    known = CELL_FORMAT if CELL in kinds else FORMAT
    _need(isinstance(claim, dict) and claim.get("format") == known, "format", known, _at(claim, "format"))
    _need(claim.get("kind") in kinds, "kind", f"one of {tuple(kinds)}", claim.get("kind"))
    keys = _KEYS[claim["kind"]]
    _need(set(claim) == keys, "parts", f"{sorted(keys)}", sorted(map(str, claim)))
    t_end, reached = claim["t_end"], claim["t_reached"]
    _need(_float(t_end) and t_end > 0, "t_end", "a positive number", t_end)
    _need(_float(reached) and 0 < reached <= t_end, "t_reached", "a time up to t_end", reached)
    if "bits" in keys:
        _need(_whole(claim["bits"], FEWEST_BITS, MOST_BITS), "bits", f"{FEWEST_BITS} to {MOST_BITS}", claim["bits"])
    errors = claim["errors"]
    _need(isinstance(errors, list) and all(map(_positive, errors)), "errors", "bounds", errors)
    if claim["kind"] != "flow":
        _need(claim["decoder"] in DECODERS, "decoder", f"one of {DECODERS}", claim["decoder"])
        _need(claim["start"] == "zero", "start", "zero", claim["start"])
        for name in ("eta_y", "eta_z") if claim["kind"] == "population" else ("eta_y",):
            _need(_positive(claim[name]), name, "a positive number", claim[name])
    if claim["kind"] == "population":
        _check_population(claim["population"])
    elif claim["kind"] == CELL:
        _check_cell(claim)
    _need(isinstance(claim["predicates"], list), "predicates", "a list", claim["predicates"])
    for predicate in claim["predicates"]:
        if claim["kind"] == CELL:
            _check_sign(predicate, claim)
        else:
            _check_predicate(predicate, len(errors), reached, rates=1 if claim["kind"] == "population" else None)
    if claim["kind"] == CELL:
        rows = [tuple(made["coefficients"]) for made in claim["predicates"]]
        _need(len(set(rows)) == len(rows), "predicates", "one for each sum", rows)
    return claim


def _check_cell(claim: Mapping[str, Any]) -> None:
    classes, size, distinct = claim["n_classes"], claim["vocab_size"], claim["distinct"]
    _need(_whole(classes, 2, _MOST), "n_classes", "an integer from 2 on", classes)
    _need(_whole(size, classes, _MOST), "vocab_size", "an integer from n_classes on", size)
    good = isinstance(distinct, list) and 0 < len(distinct) <= _MOST_TOKENS and all(map(_positive, distinct))
    _need(good, "distinct", f"1 to {_MOST_TOKENS} positive weights", distinct)
    for name in ("eta_z", "common"):
        ends = claim[name]
        good = isinstance(ends, list) and len(ends) == 2 and all(map(_positive, ends)) and ends[0] < ends[1]
        _need(good, name, "a range of positive numbers", ends)
    _need(_whole(claim["degree"], 1, HIGHEST_DEGREE), "degree", f"1 to {HIGHEST_DEGREE}", claim["degree"])


def _check_sign(found: Any, claim: Mapping[str, Any]) -> None:
    false = isinstance(found, dict) and found.get("verdict") is False
    keys = {"coefficients", "verdict", "until"} | ({"time"} if false else set())
    _need(isinstance(found, dict) and set(found) == keys, "predicates", f"{sorted(keys)} each", found)
    row, verdict, until = found["coefficients"], found["verdict"], found["until"]
    good = isinstance(row, list) and len(row) == 1 + len(claim["distinct"]) and all(map(_float, row))
    _need(good, "coefficients", "a number for each logit of a class", row)
    _need(verdict is None or isinstance(verdict, bool), "verdict", "true, false or null", verdict)
    good = _float(until) and 0 <= until <= claim["t_reached"] and (until == claim["t_end"]) is (verdict is True)
    _need(good, "until", "t_end where the verdict is true, and a time before it where it is not", until)
    if false:
        good = _float(found["time"]) and until < found["time"] <= claim["t_reached"]
        _need(good, "time", "one of the steps, after until", found["time"])


def _check_population(found: Any) -> None:
    keys = {*SIZES, "query_tokens", "bags", "sha256"}
    _need(isinstance(found, dict) and set(found) == keys, "population", f"{sorted(keys)}", found)
    for name in SIZES:
        _need(_whole(found[name], 1, _MOST), name, "a positive integer", found[name])
    sizes = found["n_tokens"] * found["n_queries"], found["n_tokens"] * _count(found["bags"])
    _need(max(sizes) <= _MOST_ENTRIES, "n_tokens", f"small enough for tables of {_MOST_ENTRIES} entries", sizes)
    labels, bags = found["query_tokens"], found["bags"]
    good = isinstance(labels, list) and all(_whole(label, 0, _MOST) for label in labels)
    _need(good and len(set(labels)) == len(labels) == found["n_queries"], "query_tokens", "one a query", labels)
    _need(isinstance(bags, list) and bags != [], "bags", "a list", bags)
    for bag in bags:
        good = isinstance(bag, list) and len(bag) == 5 and all(isinstance(row, list) for row in bag[3:])
        good = good and len(bag[3]) == len(bag[4]) > 0 and all(_whole(token, 0, _MOST) for token in bag[3])
        good = good and all(_float(x) for x in (bag[2], *bag[4])) and all(_whole(i, 0, _MOST) for i in bag[:2])
        _need(good, "bags", "[query, next token, weight, tokens, counts] each", bag)
    order = [(q, n, tokens, counts) for q, n, _, tokens, counts in bags]
    _need(order == sorted(order), "bags", "sorted", "another order")
    content = {name: value for name, value in found.items() if name != "sha256"}
    _need(found["sha256"] == digest(content), "sha256", "that of the population", found["sha256"])


def _check_predicate(found: Any, variables: int, reached: float, *, rates: int | None) -> None:
    keys = {"says", "verdict", "until", "margin"}
    false = isinstance(found, dict) and found.get("verdict") is False
    keys |= {"times"} if false else set()
    _need(isinstance(found, dict) and set(found) == keys, "predicates", f"{sorted(keys)} each", found)
    check_says(found["says"], variables, rates=rates)
    _need(isinstance(found["verdict"], bool), "verdict", "true or false", found["verdict"])
    _need(_float(found["until"]) and 0 < found["until"] <= reached, "until", "a time of the steps", found["until"])
    _need(_float(found["margin"]), "margin", "a number", found["margin"])
    if false:
        times = found["times"]
        good = isinstance(times, list) and len(times) == 2 and all(map(_float, times))
        _need(good and 0 <= times[0] <= times[1] <= found["until"] and times[1] > 0, "times", "a span up to it", times)


def _at(claim: Any, name: str) -> Any:
    return claim.get(name) if isinstance(claim, dict) else claim


def _count(value: Any) -> int:
    return len(value) if isinstance(value, list) else 0


def _float(value: Any) -> bool:
    return type(value) is float and math.isfinite(value)


def _positive(value: Any) -> bool:
    return _float(value) and value > 0


def _whole(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _need(good: bool, name: str, rule: str, got: Any) -> None:
    if not good:
        raise checks.reject("path", f"hold a claim whose {name} is {rule}", checks.brief(got))


def differences(claim: Mapping[str, Any], question: Mapping[str, Any]) -> list[str]:
    """Names of the parts in which a claim and a question differ."""
    return [name for name, value in question.items() if canonical(claim.get(name)) != canonical(value)]


def words(claim: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """A claim in lines of plain words, with the names of its variables."""
    if claim["kind"] == "population":
        found = claim["population"]
        lines = [
            f"{claim['decoder']} flow from zero, eta_Y = {claim['eta_y']}, eta_Z = {claim['eta_z']}, time in SGD steps"
        ]
        lines.append(f"population of {len(found['bags'])} bags, M = {found['vocab_size']}, SHA-256 {found['sha256']}:")
        for query, target, weight, tokens, counts in found["bags"]:
            label = found["query_tokens"][query]
            lines.append(f"  query {label}, next token {target}, weight {weight}: counts {counts} of tokens {tokens}")
    else:
        lines = [ascii(f"flow {claim['flow']['target']} of {claim['flow']['code']['sha256'] or 'code without a file'}")]
        lines.append(f"configuration {claim['flow']['config']!a}")
        lines.append("of the field as given: what its code computes in balls, and at drawn points in floats")
    lines.append(f"from t = 0 to {claim['t_reached']}, of {claim['t_end']}, each variable is known to within")
    lines += [f"  {name}: {error:.3g}" for name, error in zip(names, claim["errors"], strict=True)]
    for made in map(Predicate.of, claim["predicates"]):
        if made.times is None:
            text = f"true for every t with 0 < t <= {made.until}, by {made.margin:.3g} at the ends of steps"
        else:
            first, last = made.times
            when = f"at t = {last}" if first == last else f"for {first} < t <= {last}"
            text = f"false {when}, by {-made.margin:.3g} there"
        lines.append(f"{text}: {formulas.words(made.says, names)}")
    return lines


def cell_words(claim: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """The claim of a cell in lines of plain words, with the names of its variables."""
    (low, high), (first, last) = claim["eta_z"], claim["common"]
    lines = [
        f"{claim['decoder']} flow from zero of {claim['n_classes']} classes that are copies of each other, "
        f"M = {claim['vocab_size']}, eta_Y = {claim['eta_y']}, time in SGD steps",
        f"each of probability 1/{claim['n_classes']}, all of one query; distinct tokens of weights "
        f"{claim['distinct']}, and one common token",
        f"at every setting with {low} <= eta_Z <= {high} and {first} <= weight of the common token <= {last},",
        f"from t = 0 to {claim['t_reached']}, of {claim['t_end']}, each variable is known to within",
        *(f"  {name}: {error:.3g}" for name, error in zip(names, claim["errors"], strict=True)),
        f"of polynomials of degree {claim['degree']} in the settings, and at every setting",
    ]
    for made in claim["predicates"]:
        said = [f"positive for every t with 0 < t <= {made['until']}"] if made["until"] > 0 else []
        if made["verdict"] is False:
            said.append(f"negative at t = {made['time']}")
        elif made["verdict"] is None:
            said.append("open after that")
        formula = " + ".join(f"{c} d{name}/dt" for c, name in zip(made["coefficients"], names, strict=False))
        lines.append(f"{', '.join(said)}: {formula}")
    return lines
