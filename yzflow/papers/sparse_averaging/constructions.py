"""Measured sizes of the constructions for sparse averaging, pairs and triples, as labelled data.

Task and theorems: Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import xarray as xr

from dynamics.data import averaging as tasks
from dynamics.support.progress import Progress
from dynamics.units.attention_unit import attention_weights
from theory import averaging
from theory.sparse_averaging.proofs import groups, sorted_groups, transform

SETS = ("random", "adversarial")
TRIPLES = ("groups", "sorted", "transform")
PROMISED = tuple(2**k for k in range(4, 41, 2))
SEARCHED = ("exclusion", "minimum norm")


def smallest_dimensions(
    *,
    n_tokens: Sequence[int] = (256, 1024),
    subset_sizes: Sequence[int] = (1, 2, 4, 8),
    n_sets: int = 64,
    seed: int = 0,
    progress: bool = False,
) -> xr.Dataset:
    """Smallest m at which ``n_sets`` sets all have a certificate: ``dimension`` (n_tokens, q, sets, certificate).

    Pairs with q > N/4 are left out (NaN). With N = 1024, q to 32 and 1024 sets it takes some minutes.
    """
    coordinates: dict[str, list] = {
        "n_tokens": list(n_tokens),
        "q": list(subset_sizes),
        "sets": list(SETS),
        "certificate": list(SEARCHED),
    }
    found = xr.DataArray(np.full([len(values) for values in coordinates.values()], np.nan), coordinates)
    cells = [(n, q, sets, method) for n in n_tokens for q in subset_sizes for sets in SETS for method in SEARCHED]
    with Progress("smallest dimensions", enabled=progress) as report:
        for number, (n, q, sets, method) in enumerate(cells):
            report.update(number / len(cells), f"N = {n}, q = {q}")
            if 4 * q > n:
                continue
            m = averaging.smallest_dimension(
                n, q, rng=np.random.default_rng(seed), method=method, sets=sets, n_sets=min(n_sets, n)
            )
            found.loc[{"n_tokens": n, "q": q, "sets": sets, "certificate": method}] = m
    return xr.Dataset({"dimension": found}, attrs={"n_sets": n_sets, "seed": seed})


def rounding_errors(
    *, n_tokens: int = 1024, subset_sizes: Sequence[int] = (4, 16), bits: int = 24, error: float = 1e-3, seed: int = 0
) -> xr.Dataset:
    """Errors of attention with p-bit queries, in parts, at m = 12 q ln N and a set next to another key.

    ``error``, ``uneven`` (on y) and ``off`` (weight off y, twice) over (q, bits); ``sufficient`` over q: the p at which
    the error is proved to be at most eps; ``rule``: log2(q ln N/eps).
    """
    rng = np.random.default_rng(seed)
    numbers = np.arange(1, bits + 1)
    out = {name: np.zeros((len(subset_sizes), bits)) for name in ("error", "uneven", "off")}
    sufficient = []
    for row, q in enumerate(subset_sizes):
        keys = averaging.random_keys(n_tokens, math.ceil(12 * q * math.log(n_tokens)), rng=rng)
        subset = tasks.adversarial_subsets(keys, q)[0]
        query = averaging.certificate(keys, subset).query
        tau = averaging.temperature(n_tokens=n_tokens, q=q, error=error / 2)
        sufficient.append(averaging.sufficient_bits(query, tau=tau, error=error / 2))
        for column, p in enumerate(numbers):
            precision = averaging.rounded_query(query, tau=tau, bits=int(p))
            attention = attention_weights(np.array([query]), keys, scale=tau, precision=precision)
            out["error"][row, column] = tasks.attention_error(attention, subset[None])[0]
            out["uneven"][row, column], out["off"][row, column] = averaging.error_parts(attention[0], subset)
    return xr.Dataset(
        {name: (("q", "bits"), values) for name, values in out.items()}
        | {
            "sufficient": ("q", sufficient),
            "rule": ("q", [math.log2(q * math.log(n_tokens) / error) for q in subset_sizes]),
        },
        {"q": list(subset_sizes), "bits": numbers},
        {"n_tokens": n_tokens, "error": error},
    )


def match2_margins(
    *,
    scale: float = 2000.0,
    n_tokens: Sequence[int] = (2, 10, 100, 1000),
    moduli: Sequence[int] = (31, 41, 51, 71, 101),
) -> xr.Dataset:
    """Margin of Match2 at one temperature c: the least log-odds of a right answer, measured and predicted.

    ``measured`` (n_tokens, modulus): min of |ln f/(1 - f)| over the worst inputs, with the sign of right answers;
    ``predicted``: L = (c (1 - cos(2 pi/M)) - ln N)/2, which the best blank score attains.
    """
    measured, predicted = (np.zeros((len(n_tokens), len(moduli))) for _ in range(2))
    for row, n in enumerate(n_tokens):
        for column, modulus in enumerate(moduli):
            unit = averaging.match2(n_tokens=n, modulus=modulus, scale=scale)
            predicted[row, column] = (scale * averaging.angle_gap(modulus) - math.log(n)) / 2
            margins = []
            for x in (np.full(n, (modulus + 1) // 2), np.zeros(1, int)):  # as near a match as can be; a single match
                attention = unit.unit.attention(tasks.match_tokens(x))[:-1]
                # Shares of the blank and of the rest: their ratio, which the output itself rounds to 0 or 1.
                odds = np.log(attention[:, :-1].sum(axis=1)) - np.log(attention[:, -1])
                margins.append(np.where(tasks.match2(x, modulus), odds, -odds).min())
            measured[row, column] = min(margins)
    names = ("n_tokens", "modulus")
    return xr.Dataset(
        {"measured": (names, measured), "predicted": (names, predicted)},
        {"n_tokens": list(n_tokens), "modulus": list(moduli)},
        {"scale": scale},
    )


def query_bits(
    *, n_tokens: int = 256, subset_sizes: Sequence[int] = (1, 2, 3, 4, 6, 8, 12, 16), error: float = 0.1, seed: int = 0
) -> xr.Dataset:
    """Bits of a query, m p, by construction: (q,) each.

    ``moment_curve``: m = 2q numbers of the length of the longest; ``own_lengths``: the same with each number of its own
    length, for the last q tokens; ``random_keys``: m = 12 q ln N times the smallest p for a set next to another key.
    """
    rng = np.random.default_rng(seed)
    bits: dict[str, list[int]] = {"moment_curve": [], "own_lengths": [], "random_keys": []}
    for q in subset_sizes:
        curve = averaging.moment_curve(n_tokens, q)
        bits["moment_curve"].append(curve.dimension * curve.number_bits())
        bits["own_lengths"].append(curve.query_bits(np.arange(n_tokens - q, n_tokens)))
        keys = averaging.random_keys(n_tokens, math.ceil(12 * q * math.log(n_tokens)), rng=rng)
        subset = tasks.adversarial_subsets(keys, q)[0]
        query = averaging.certificate(keys, subset).query
        tau = averaging.temperature(n_tokens=n_tokens, q=q, error=error / 2)
        needed = averaging.smallest_bits(keys, query, subset, tau=tau, error=error)
        bits["random_keys"].append(keys.shape[1] * needed)
    return xr.Dataset(
        {name: ("q", values) for name, values in bits.items()},
        {"q": list(subset_sizes)},
        {"n_tokens": n_tokens, "error": error},
    )


def triple_sizes(
    *,
    n_tokens: Sequence[int] = (8, 27, 64, 125, 216, 256),
    promised: Sequence[int] = PROMISED,
    exponent: float = 2.0,
    seed: int = 0,
    progress: bool = False,
) -> xr.Dataset:
    """What Match3 needs by construction: sizes counted while it runs, and sizes by the code at N too large to run.

    ``depth``, ``heads``, ``dimension``, ``bits`` and ``wrong`` (outputs, of ``outputs``) over (construction, n_tokens),
    where groups need a cube; ``product`` = m H D over (construction, promised), and ``bound`` = N / log2 N. M = N for
    the transform and N^``exponent`` for the others.
    """
    counted = {
        name: xr.DataArray(
            np.full((3, len(n_tokens)), np.nan), {"construction": list(TRIPLES), "n_tokens": list(n_tokens)}
        )
        for name in ("depth", "heads", "dimension", "bits", "wrong", "outputs")
    }
    product = np.array([[promised_product(name, n, exponent) for n in promised] for name in TRIPLES])
    cells = [(name, n) for name in TRIPLES for n in n_tokens]
    with Progress("sizes of Match3", enabled=progress) as report:
        for number, (name, n) in enumerate(cells):
            report.update(number / len(cells), f"{name}, N = {n}")
            if name == "groups" and round(n ** (1 / 3)) ** 3 != n:
                continue
            model = _triple_model(name, n, exponent)
            x = tasks.random_match(n, model.modulus, size=4, rng=seed, order=3, planted=0.5)
            x = np.concatenate([x, tasks.adversarial_match(n, model.modulus, order=3)[:: max(1, n // 16)]])
            size = averaging.counted_size(model, x[:2])
            wrong = int((model(x) != tasks.match3(x, model.modulus)).sum())
            found = {"depth": size.depth, "heads": size.heads, "dimension": size.dimension, "bits": size.bits}
            for key, value in {**found, "wrong": wrong, "outputs": x.size}.items():
                counted[key].loc[{"construction": name, "n_tokens": n}] = value
    bound = [n / math.log2(n) for n in promised]
    return xr.Dataset(
        {**counted, "product": (("construction", "promised"), product), "bound": ("promised", bound)},
        {"promised": list(promised)},
        {"exponent": exponent, "seed": seed},
    )


def _triple_model(name: str, n_tokens: int, exponent: float) -> averaging.MatchTransformer:
    """A construction for Match3 at the modulus of `triple_sizes`."""
    modulus = max(2, round(n_tokens**exponent))
    if name == "groups":
        return averaging.match3_groups(root=round(n_tokens ** (1 / 3)), modulus=modulus)
    if name == "sorted":
        return averaging.match3_sorted(n_tokens=n_tokens, modulus=modulus)
    return averaging.match3_transform(n_tokens=n_tokens, modulus=n_tokens)


def promised_product(name: str, n_tokens: float, exponent: float, *, strict: bool = False) -> float:
    """m H D that statements promise for Match3: "groups", "sorted" with M = N^exponent, "transform" with M = N.

    ``strict``: with m no less than the numbers of a token.
    """
    if name == "groups":
        return float((groups.strict_size if strict else groups.size)(n_tokens))
    if name == "transform":
        widths = [transform.dimension(n_tokens), *([transform.token_width()] if strict else [])]
        return float(transform.heads() * transform.depth(n_tokens) * max(map(float, widths)))
    # Not `digits`: the logarithm of N^exponent is not rounded here.
    digits = math.ceil(2 * (exponent + 1) - 1e-9)
    code = (exponent + 1) * math.log2(n_tokens)
    widths = [sorted_groups.dimension(n_tokens, 2)[0], code, *([sorted_groups.token_width(n_tokens)] if strict else [])]
    return float(sorted_groups.heads() * sorted_groups.depth(digits) * max(map(float, widths)))
