"""Late attention for K < M: the exponent's hypothesis in balls and on random settings, and the law against the flow."""

from collections.abc import Sequence

import numpy as np

from theory.scan_and_snap.late_attention import LateAttention
from theory.values import Study
from yzflow.papers.scan_and_snap.late import final_exponent
from yzflow_studies.late_exponent import study


def enclosed(
    sizes: Sequence[tuple[int, int, int, float, int]], common: float, eta_y: float, eta_z: float, ln_t: Sequence[float]
) -> dict:
    """Flows in balls from the start to sigma: rows of K, M, distinct tokens, sigma at the end, and bits."""
    rows = []
    for k, m, d, end, bits in sizes:
        flow = LateAttention.of(n_classes=k, vocab_size=m, common=common, n_distinct=d, eta_y=eta_y, eta_z=eta_z)
        found = study.enclosed(flow, t_end=end, bits=bits, ln_t=ln_t, eta_y=eta_y)
        bounds = found.pop("exponents")
        reached = [pair for pair in bounds if pair[0] == pair[0]]
        middle = [sum(pair) / 2 for pair in reached]
        rows.append(
            {
                "k": k,
                "m": m,
                "d": d,
                "end": end,
                "bits": bits,
                **found,
                "exponents": [f"{value:.5f}" for value in middle] + ["-"] * (len(bounds) - len(reached)),
                "width": max(high - low for low, high in reached),
                "limit": final_exponent(n_classes=k, vocab_size=m),
            }
        )
    return {
        "rows": rows,
        "all_fall": all(row["falls"] for row in rows),
        "all_trapped": all(row["trapped"] for row in rows),
        "widest": max(row["width"] for row in rows),
        "count": len(rows),
    }


def surveyed(number: int, seed: int, rtol: float) -> dict:
    """Random settings in which the logit does not fall at some time, and a bound of their share."""
    found = study.surveyed(number, seed, rtol)
    rising = int((found["least"] <= 0).sum())
    return {
        "rising": rising,
        "none_rises": rising == 0,
        "least": found["least"].min(),
        "kappa": found["kappa"].min(),
        "entered": int(np.isfinite(found["entered"]).sum()),
        # Clopper and Pearson, where none was seen.
        "bound": 1 - 0.05 ** (1 / number) if rising == 0 else np.nan,
    }


def law(sizes: Sequence[tuple[int, int]], common: float, eta_y: float, eta_z: float, ln_t: Sequence[float]) -> dict:
    """w (ln t)^alpha, and the exponent less its limit against the next orders."""
    rows = []
    for k, m in sizes:
        found = study.law((k, m), ln_t, common=common, eta_y=eta_y, eta_z=eta_z)
        excess, said = (found[name] - found["limit"] for name in ("exponent", "predicted"))
        rows.append({"k": k, "m": m, "scaled": found["scaled"], "excess": excess, "said": said})
    return {"rows": rows, "off": max(abs(row["said"][-1] / row["excess"][-1] - 1) for row in rows)}


RATES = {"common": 0.4, "eta_y": 1.0, "eta_z": 0.5}
STUDIES = (
    Study(
        "enclosed",
        enclosed,
        {
            "sizes": [
                [2, 3, 1, 1010.0, 80],
                [3, 5, 1, 130.0, 80],
                [5, 6, 1, 2600.0, 80],
                [2, 10, 1, 130.0, 100],
                [5, 20, 1, 130.0, 80],
                [10, 30, 5, 130.0, 150],
                [2, 50, 1, 110.0, 130],
                [10, 100, 5, 160.0, 150],
            ],
            **RATES,
            "ln_t": [10.0, 100.0, 1000.0],
        },
        quick=False,
    ),
    Study("survey", surveyed, {"number": 500, "seed": 51, "rtol": 1e-10}, quick=False),
    Study(
        "law",
        law,
        {"sizes": [[2, 3], [3, 4], [5, 6], [5, 20]], **RATES, "ln_t": [100.0, 1000.0, 10_000.0]},
        quick=False,
        tolerance=1e-3,
    ),
)
