"""Published numbers on hand-written layers, for the register and the pages: `python -m yzflow.values write`."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np

from theory.values import Study
from yzflow_bounded_dyck import DyckLanguage, balance, hypotheses, loops, measures, measures_of_widths, silence
from yzflow_bounded_dyck.languages import Automaton, Language, shuffle_language


def silent(k: int, depth: int, level: int, first_seed: int, last_seed: int) -> dict[str, Any]:
    """Layers with zero values on all brackets of one level: differences in (11), and errors to length 6 and at 500."""
    language, differences, errors = DyckLanguage(k, depth), [], []
    batches = (language.enumerate(min_length=0, max_length=6), language.sample(50, max_length=500, rng=1))
    for seed in range(first_seed, last_seed + 1):
        layer = silence.silent_layer(language, [(kind, level) for kind in range(k)], rng=seed)
        differences.append(float(balance.residual(layer.Z, language)))
        head = silence.memory_head(layer, language)
        errors += [np.abs(head(layer.features(bags)) - bags.target).max() for bags in batches]
    least, most = min(differences), max(differences)
    return {"differences": differences, "least": least, "most": most, "below": float(max(errors)) < 1e-10}


def silent_sets() -> dict[str, Any]:
    """How many sets of pairs the languages of the check have, and how many of them can be silent."""
    rows = []
    for language in measures.SILENT_RUN:
        pairs = list(itertools.product(range(language.n_types), range(1, language.max_depth + 1)))
        sets = [some for size in range(len(pairs) + 1) for some in itertools.combinations(pairs, size)]
        may = sum(silence.may_be_silent(language, some) for some in sets)
        rows.append({"k": language.n_types, "D": language.max_depth, "sets": len(sets), "may": may})
    return {"rows": rows, "right": measures.silent_sets() == 0, "languages": len(rows)}


def ranks(k: int, depth: int) -> dict[str, int]:
    """Joint ranks of the paper's encodings of brackets, without START."""
    language = DyckLanguage(k, depth)
    names = {"type and depth": "depths", "type and angle": "angles"}
    found = {name: int(np.linalg.matrix_rank(language.embedding(kind)[:-1])) for kind, name in names.items()}
    return {**found, "states": language.n_states - 1}


def by_hand() -> dict[str, int]:
    """Layers for the check of necessity."""
    return {"layers": len(measures.right_and_balanced())}


def one_type(depth: int, longest: int) -> dict[str, Any]:
    """A layer for one type: least contribution of its pairs, difference in (11), and whether equal depths look alike.

    Prefixes have every length up to 20, and the longest length.
    """
    language = DyckLanguage(1, depth)
    layer = hypotheses.one_type_layer(language)
    added = np.linalg.norm(balance.insertions(layer, language)[balance.queries(language).ravel()], axis=-1)
    spread = 0.0
    for length in (*range(1, 21), longest):
        bags = language.sample(50, min_length=length, max_length=length, rng=0)
        depths = np.array([language.states[query].depth for query in bags.query])
        features = layer.features(bags)
        spread = max(spread, *(float(np.ptp(features[depths == one], axis=0).max()) for one in set(depths)))
    return {
        "adds": float(added.min()),
        "difference": float(balance.residual(layer.Z, language)),
        "same": spread < 1e-12,
    }


def pruned_widths(largest: int, accuracy: float, failure: float, draws: int) -> dict[str, Any]:
    """Units an input that pruned networks of square maps need, measured, beside those that are promised."""
    rows = [
        measures_of_widths.needed_units(size, accuracy, failure, draws)
        for size in (2**power for power in range(largest + 1))
    ]
    return {"rows": rows, "within": accuracy, "share": failure, "networks": draws}


def _modular(m: int) -> Automaton:
    """The token a counts modulo m, b leaves the count; the next token tells whether it is zero."""
    rows = {}
    for count in range(m):
        chance = 0.9 if count else 0.5
        moves = {"a": ((count + 1) % m, chance), "b": (count, 1 - chance)}
        rows[str(count)] = {token: {"to": str(to), "probability": p} for token, (to, p) in moves.items()}
    return Automaton(rows, start="0")


def languages(k: int, size: int, m: int, length: int) -> dict[str, Any]:
    """How much balance leaves a layer to know of Dyck, of counters and of a count modulo m; errors at one length."""
    named: dict[str, Language] = {
        "Dyck, brackets and depths": DyckLanguage(k, size),
        "shuffled brackets, with counts": shuffle_language(k, size),
        "shuffled brackets alone": shuffle_language(k, size, label=None),
        f"a count modulo {m}": _modular(m),
    }
    rows = []
    for name, language in named.items():
        parts, listed = loops.known(language), loops.simple_loops(language)
        error = "refused"
        if parts.exact:
            layer = loops.balanced_layer_of(language, 0)
            bags = language.sample(100, min_length=length, max_length=length, rng=1)
            error = "none" if np.abs(loops.Head(layer, language)(bags) - bags.target).max() < 1e-12 else "some"
        torsion = " ".join(map(str, parts.torsion)) or "none"
        sizes = {"states": language.n_states - 1, "loops": len(listed), "longest": int(listed.sum(axis=1).max())}
        rows.append({"language": name, **sizes, "rank": parts.rank, "torsion": torsion, "error": error})
    return {"rows": rows}


STUDIES = (
    Study("languages", languages, {"k": 2, "size": 3, "m": 3, "length": 2000}),
    Study("silent", silent, {"k": 2, "depth": 2, "level": 2, "first_seed": 0, "last_seed": 3}),
    Study("silent_sets", silent_sets),
    Study("ranks", ranks, {"k": 2, "depth": 4}),
    Study("by_hand", by_hand),
    Study("pruned_widths", pruned_widths, {"largest": 2, "accuracy": 0.1, "failure": 0.1, "draws": 60}, quick=False),
    Study("one_type", one_type, {"depth": 3, "longest": 5001}),
)
