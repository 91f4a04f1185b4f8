"""Late attention for K < M: the exponent's hypothesis in balls and on random settings, where it fails, and the law."""

from collections.abc import Sequence

import numpy as np
from yzflow_beyond_scan_and_snap.late import final_exponent
from yzflow_beyond_scan_and_snap.late_attention import COUNTER_EXAMPLE, LateAttention

from theory.values import Study
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


def rise(sigmas: Sequence[float], end: float, bits: int) -> dict:
    """The counter-example in balls: the sign of N at some sigma, and whether it is trapped at the end."""
    flow = LateAttention.of(**COUNTER_EXAMPLE)
    found = study.rise(flow, sigmas=sigmas, t_end=end, bits=bits, eta_y=COUNTER_EXAMPLE["eta_y"])
    pull = [sum(pair) / 2 for pair in found.pop("pull")]
    return {**found, "pull": pull, "ratio": flow.ratio, "rises_between": found["signs"] == [1, -1, 1]}


def border(
    sizes: Sequence[tuple[int, int]], first: float, per_octave: int, octaves: int, speeds: Sequence[float], rtol: float
) -> dict:
    """By K and M the largest w(0) on a grid from which no logit rises, and the next one, from which one does."""
    ratios = [first * 2 ** (step / per_octave) for step in range(per_octave * octaves + 1)]
    rows, firsts, failed = [], [], 0
    for k, m in sizes:
        found = study.rising_from((k, m), ratios=ratios, speeds=speeds, rtol=rtol)
        failed += found["failed"]
        row = {"k": k, "m": m, "last": found["last"], "rises": "none", "at": "-"}
        if np.isfinite(found["first"]):
            firsts.append(found["first"])
            row |= {"rises": f"{found['first']:,.0f}", "at": f"{found['speed']:g}"}
        rows.append(row)
    return {
        "rows": rows,
        "least": min(row["last"] for row in rows),
        "lowest": min(firsts),
        "largest": max(ratios),
        "failed": failed,
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
    Study("rise", rise, {"sigmas": [9.0, 10.5, 12.0], "end": 40.0, "bits": 150}, quick=False),
    Study(
        "border",
        border,
        {
            "sizes": [[2, 3], [2, 4], [2, 10], [2, 100], [3, 4], [3, 10]],
            "first": 250.0,
            "per_octave": 2,
            "octaves": 6,
            "speeds": [0.1, 0.18, 0.32, 0.56, 1.0, 1.8, 3.2],
            "rtol": 1e-10,
        },
        quick=False,
    ),
    Study(
        "law",
        law,
        {"sizes": [[2, 3], [3, 4], [5, 6], [5, 20]], **RATES, "ln_t": [100.0, 1000.0, 10_000.0]},
        quick=False,
        tolerance=1e-3,
    ),
)
