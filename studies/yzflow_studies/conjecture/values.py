"""Sizes of transformers for Match3 against the conjecture: where they cross its bound, bits, and what is counted."""

import math
from collections.abc import Sequence
from functools import partial

import numpy as np
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.constructions import TRIPLES, promised_product
from yzflow_sparse_averaging.sizes import below_bound

from theory.values import Study
from yzflow_studies.conjecture.study import triple_sizes


def crossings(exponent: float) -> dict[str, float]:
    """N from which m H D is below N / log2 N: m as built, and m no less than the numbers of a token."""
    return {
        name + "_strict" * strict: below_bound(partial(promised_product, name, exponent=exponent, strict=strict))
        for name in TRIPLES
        for strict in (False, True)
    }


def built(root: int, modulus: int, n_tokens: int, exponent: int, least: int) -> dict:
    """Counts of two constructions: the bits with and without positions, m and the numbers of a token."""
    two = averaging.match3_groups(root=root, modulus=modulus)
    ranked = averaging.match3_sorted(n_tokens=n_tokens, modulus=n_tokens**exponent)
    wider = [
        power
        for power in range(1, least)
        if averaging.match3_transform(n_tokens=2**power, modulus=2**power).width
        > averaging.match3_transform(n_tokens=2**power, modulus=2**power).embedding_dim
    ]
    return {
        "n": root**3,
        "p": two.bits,
        "averages": math.log2(root**2) + 4,
        "m": two.embedding_dim,
        "token": two.width,
        "sorted_n": n_tokens,
        "sorted_m": ranked.embedding_dim,
        "sorted_token": ranked.width,
        "transform_from": 2 ** (max(wider) + 1),
    }


def counted(n_tokens: Sequence[int], exponent: float, seed: int) -> dict:
    """D, H, m and p, and wrong outputs, as counted while the constructions run; groups where N is a cube."""
    data = triple_sizes(n_tokens=n_tokens, promised=(4,), exponent=exponent, seed=seed)
    rows = {}
    for n in n_tokens:
        rows[str(n)] = {"n": n}
        for name in TRIPLES:
            one = data.sel(construction=name, n_tokens=n)
            sizes = [float(one[key]) for key in ("depth", "heads", "dimension", "bits")]
            rows[str(n)][name] = "" if math.isnan(sizes[0]) else ", ".join(f"{size:.0f}" for size in sizes)
    return {"rows": list(rows.values()), "wrong": int(data["wrong"].sum()), "outputs": int(data["outputs"].sum())}


def large(n: int, seed: int) -> dict:
    """One input of the transform at M = N: m H D against N / log2 N, wrong outputs and the share with a match."""
    model = averaging.match3_transform(n_tokens=n, modulus=n)
    # Residues below 4/9 of M, so that small ones have no match.
    x = np.random.default_rng(seed).integers(4 * n // 9, size=(1, n))
    truth = tasks.match3(x, n)
    return {"wrong": int((model(x) != truth).sum()), "matched": truth.mean(), **product(n)}


def product(n: int) -> dict:
    """m H D of the transform at M = N, and the bound with the constant 1."""
    model = averaging.match3_transform(n_tokens=n, modulus=n)
    found = model.embedding_dim * model.heads * model.depth
    return {"product": found, "bound": n / math.log2(n), "below": found < n / math.log2(n)}


def rounding(roots: Sequence[int], moduli: Sequence[int], seed: int) -> dict:
    """Wrong outputs of two layers with one and with two bits less after the point than is proved to be enough."""
    wrong: dict[str, list[float]] = {"one": [], "two": []}
    for root in roots:
        n = root**3
        for modulus in [*moduli, n, n**2]:
            x = tasks.random_match(n, modulus, size=4, rng=seed, order=3, planted=0.5)
            x = np.concatenate([x, tasks.adversarial_match(n, modulus, order=3)[:: max(1, n // 8)]])
            truth = tasks.match3(x, modulus)
            for name, fewer in (("one", 1), ("two", 2)):
                model = averaging.match3_groups(root=root, modulus=modulus, spare_bits=-fewer)
                wrong[name].append(float((model(x) != truth).mean()))
    return {
        "n": [root**3 for root in roots],
        "none_wrong": max(wrong["one"]) == 0,
        "high": max(wrong["two"]),
        "enough": [math.ceil(math.log2(root**2)) for root in roots],
    }


STUDIES = (
    Study("crossings", crossings, {"exponent": 2.0}, ("M = N^2 for sorted groups, M = N for the transform",)),
    Study("built", built, {"root": 11, "modulus": 2, "n_tokens": 256, "exponent": 2, "least": 14}),
    Study(
        "counted",
        counted,
        {"n_tokens": [8, 27, 64, 125, 216, 256], "exponent": 2.0, "seed": 0},
        ("M = N for the transform, N^2 for the others",),
        quick=False,
    ),
    Study("product", product, {"n": 16384}),
    Study("large", large, {"n": 16384, "seed": 0}, quick=False),
    Study("rounding", rounding, {"roots": [2, 3, 4, 5, 6], "moduli": [3, 5], "seed": 0}, quick=False),
)
