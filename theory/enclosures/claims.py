"""The claim of a certificate: what it says of which flow of which population, in one canonical form and closed words.

A claim is plain JSON. It holds the population itself, sorted, so that settings, variables and their names follow from
it, and nothing in it is free text. ``yzflow.verify`` parses and judges the same with code of its own.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from dynamics.support import checks
from theory.enclosures import formulas
from theory.enclosures.canonical import SIZES, canonical, digest
from theory.enclosures.fields import DECODERS
from theory.enclosures.formulas import Predicate, check_says

FORMAT = "yzflow-certificate-2"
KINDS = ("population", "flow")
FEWEST_BITS, MOST_BITS = 30, 400
_COMMON = {"format", "kind", "t_end", "t_reached", "bits", "errors", "predicates"}
_KEYS = {
    "population": _COMMON | {"decoder", "eta_y", "eta_z", "start", "population"},
    "flow": _COMMON | {"flow", "states", "clock", "own_start"},
}
_MOST = 2**53
# Of a table by query and token, or by token and next token: one of a file that claims more is not made.
_MOST_ENTRIES = 10**8


def check(claim: Any) -> dict[str, Any]:
    """The claim, if every part of it is one that `Enclosure.save` writes; ValueError otherwise."""
    _need(isinstance(claim, dict) and claim.get("format") == FORMAT, "format", FORMAT, _at(claim, "format"))
    _need(claim.get("kind") in KINDS, "kind", f"one of {KINDS}", claim.get("kind"))
    keys = _KEYS[claim["kind"]]
    _need(set(claim) == keys, "parts", f"{sorted(keys)}", sorted(map(str, claim)))
    t_end, reached = claim["t_end"], claim["t_reached"]
    _need(_float(t_end) and t_end > 0, "t_end", "a positive number", t_end)
    _need(_float(reached) and 0 < reached <= t_end, "t_reached", "a time up to t_end", reached)
    _need(_whole(claim["bits"], FEWEST_BITS, MOST_BITS), "bits", f"{FEWEST_BITS} to {MOST_BITS}", claim["bits"])
    errors = claim["errors"]
    _need(isinstance(errors, list) and all(_float(e) and e >= 0 for e in errors), "errors", "bounds", errors)
    if claim["kind"] == "population":
        _need(claim["decoder"] in DECODERS, "decoder", f"one of {DECODERS}", claim["decoder"])
        _need(claim["start"] == "zero", "start", "zero", claim["start"])
        for name in ("eta_y", "eta_z"):
            _need(_float(claim[name]) and claim[name] > 0, name, "a positive number", claim[name])
        _check_population(claim["population"])
    _need(isinstance(claim["predicates"], list), "predicates", "a list", claim["predicates"])
    for predicate in claim["predicates"]:
        _check_predicate(predicate, len(errors), reached)
    return claim


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


def _check_predicate(found: Any, variables: int, reached: float) -> None:
    keys = {"says", "verdict", "until", "margin"}
    false = isinstance(found, dict) and found.get("verdict") is False
    keys |= {"times"} if false else set()
    _need(isinstance(found, dict) and set(found) == keys, "predicates", f"{sorted(keys)} each", found)
    check_says(found["says"], variables)
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


def _whole(value: Any, least: int, most: int) -> bool:
    return type(value) is int and least <= value <= most


def _need(good: bool, name: str, rule: str, got: Any) -> None:
    if not good:
        raise checks.reject("path", f"hold a claim whose {name} is {rule}", checks.brief(got))


def differences(claim: Mapping[str, Any], question: Mapping[str, Any]) -> list[str]:
    """Names of the parts of a question that a claim answers otherwise."""
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
