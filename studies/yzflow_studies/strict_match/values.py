"""Match3 with linear queries, keys and values: sizes of several layers, bits of one, and what was run."""

from collections.abc import Sequence
from functools import partial

import numpy as np
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.constructions import TRIPLES, linear_product, one_layer_bits
from yzflow_sparse_averaging.sizes import below_bound

from theory.values import Study
from yzflow_studies.strict_match import study


def crossings(exponent: float) -> dict[str, float]:
    """N from which m H D of strict transformers is below N / log2 N."""
    return {name: below_bound(partial(linear_product, name, exponent=exponent)) for name in TRIPLES}


def run(n_tokens: Sequence[int], exponent: float, seed: int) -> dict:
    """D, H, m = d and p as counted while strict transformers run, and their wrong outputs."""
    rows, wrong, outputs = [], 0, 0
    for n in n_tokens:
        row: dict = {"n": n}
        for name in TRIPLES:
            if name == "groups" and round(n ** (1 / 3)) ** 3 != n:
                row[name] = ""
                continue
            found = study.counted(name, n, exponent, seed)
            row[name] = f"{found['depth']}, {found['heads']}, {found['dimension']}, {found['bits']}"
            wrong, outputs = wrong + found["wrong"], outputs + found["outputs"]
        rows.append(row)
    return {"rows": rows, "wrong": wrong, "outputs": outputs}


def one_layer(n_tokens: Sequence[int]) -> dict:
    """m H p of one layer at M = N + 2: needed, and built with m = 1 and m = 2N."""
    rows = []
    for n in n_tokens:
        least, one, _ = one_layer_bits(n, n + 2, 1)
        rows.append({"n": n, "least": least, "one": one, "all": one_layer_bits(n, n + 2, 2 * n)[1]})
    return {"rows": rows}


def every_input(n_tokens: Sequence[int], modulus: int) -> dict:
    """Wrong outputs of one layer over all inputs, for every m that divides 2N."""
    wrong = outputs = 0
    for n in n_tokens:
        x = tasks.all_match(n, modulus)
        for dimension in (d for d in range(1, 2 * n + 1) if 2 * n % d == 0):
            layer = averaging.match3_power_sums(n_tokens=n, modulus=modulus, dimension=dimension)
            wrong, outputs = wrong + int((layer(x) != tasks.match3(x, modulus)).sum()), outputs + x.size
    return {"wrong": wrong, "outputs": outputs}


def circuits(n_tokens: int, seeds: Sequence[int], gates: int) -> dict:
    """Wrong outputs of strict transformers that run random circuits, over all inputs of one bit a token."""
    x, wrong, outputs = tasks.all_match(n_tokens, 2), 0, 0
    for seed in seeds:
        rng = np.random.default_rng(seed)
        made = tuple((*rng.integers(n_tokens + k, size=2).tolist(), int(rng.integers(16))) for k in range(gates))
        circuit = averaging.Circuit(n_tokens, 1, made, tuple(range(gates, gates + n_tokens)))
        model = averaging.strict_transformer(averaging.circuit_transformer(circuit, modulus=2))
        wrong, outputs = wrong + int((model(x) != circuit(x)).sum()), outputs + x.size
    return {"wrong": wrong, "outputs": outputs, "count": len(seeds)}


STUDIES = (
    Study("crossings", crossings, {"exponent": 2.0}, ("M = N^2 for sorted groups, M = N for the transform",)),
    Study(
        "run",
        run,
        {"n_tokens": [8, 16, 27, 64], "exponent": 2.0, "seed": 0},
        ("M = N for the transform, N^2 for the others",),
    ),
    Study("one_layer", one_layer, {"n_tokens": [3, 9, 33, 129]}, ("M = N + 2",)),
    Study("every_input", every_input, {"n_tokens": [1, 2, 3, 4], "modulus": 5}),
    Study("circuits", circuits, {"n_tokens": 4, "seeds": [0, 1, 2, 3, 4, 5], "gates": 11}),
)
