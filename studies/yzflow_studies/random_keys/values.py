"""How large m must be for random keys: for the sets closest to one other key, and for sets that a search finds."""

import math
from collections.abc import Sequence

import numpy as np
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks

from theory.values import Study
from yzflow_studies.random_keys.hard_sets import worst_case_dimension

METHODS = {"norm": "minimum norm", "exclusion": "exclusion"}


def tabulated(n: int, q: int, seeds: int) -> dict:
    """The smallest m at which every adversarial set has a certificate: least and largest over seeds, by method."""
    row = {}
    for name, method in METHODS.items():
        found = [
            averaging.smallest_dimension(n, q, rng=np.random.default_rng(seed), method=method) for seed in range(seeds)
        ]
        row[name] = "-".join(map(str, sorted({min(found), max(found)})))
    return row


def few_sets(n: int, q: Sequence[int], n_sets: int, seeds: int) -> dict:
    """The same by exclusion for fewer of the sets."""
    found = [
        [averaging.smallest_dimension(n, size, rng=np.random.default_rng(seed), n_sets=n_sets) for seed in range(seeds)]
        for size in q
    ]
    return {"m": ["-".join(map(str, sorted({min(row), max(row)}))) for row in found]}


def searched(sizes: Sequence[tuple[int, int]], q: Sequence[int], starts: int, steps: int) -> dict:
    """The smallest m of the closest sets and that at which a local search finds no set without a certificate.

    ``sizes`` has N and the number of seeds for each column.
    """
    rows, rho, above = [], [], []
    for size in q:
        row: dict = {"q": size}
        for n, seeds in sizes:
            cells = []
            for seed in range(seeds):
                found = worst_case_dimension(n, size, seed=seed, starts=starts, steps=steps)
                cells.append(f"{found.tabulated} / {found.searched}")
                rho += [least for _, _, least in found.failing]
                above.append(found.searched / found.tabulated - 1)
            row[f"n{n}"] = ", ".join(cells)
        rows.append(row)
    return {"rows": rows, "low": min(rho), "high": max(rho), "all": max(rho) <= 1 / 2, "above": max(above)}


def programs(n: int, q: Sequence[int], sets: int, seed: int) -> dict:
    """The smallest m, by bisection, at which the linear program has a certificate for some of the closest sets."""
    rows = []
    for size in q:
        high = averaging.smallest_dimension(n, size, rng=np.random.default_rng(seed), n_sets=sets)
        signs = averaging.random_keys(n, high, rng=np.random.default_rng(seed)) * math.sqrt(high)
        least, most = size, high
        while most - least > 1:
            m = (least + most) // 2
            keys = signs[:, :m] / math.sqrt(m)
            found = (
                averaging.certificate(keys, subset, method="linear program", throw=False).query
                for subset in tasks.adversarial_subsets(keys, size)[:sets]
            )
            least, most = (m, most) if any(query is None for query in found) else (least, m)
        rows.append({"q": size, "m": most, "share": most / high})
    return {"rows": rows, "low": min(row["share"] for row in rows), "high": max(row["share"] for row in rows)}


STUDIES = (
    *(
        Study(f"q{q}", tabulated, {"n": 1024, "q": q, "seeds": seeds}, quick=False)
        for q, seeds in ((1, 3), (2, 3), (4, 3), (8, 3), (16, 2), (32, 1))
    ),
    Study("few_sets", few_sets, {"n": 1024, "q": [2, 4, 8, 16], "n_sets": 64, "seeds": 2}, quick=False),
    Study(
        "searched",
        searched,
        {"sizes": [[256, 2], [1024, 1]], "q": [1, 2, 4, 8], "starts": 10, "steps": 400},
        quick=False,
    ),
    Study("programs", programs, {"n": 256, "q": [2, 4, 8], "sets": 24, "seed": 0}, quick=False),
)
