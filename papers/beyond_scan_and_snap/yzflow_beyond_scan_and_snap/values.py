"""Numbers that the statements quote: ``python -m yzflow.values write``."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics import SequenceClasses, gradient_flow
from theory.scan_and_snap import decoder
from theory.values import Study
from yzflow_beyond_scan_and_snap.lengths import long_enough


def lengths(k: int, m: int, common: list[float]) -> dict[str, Any]:
    """Least T with Theorem 2's signs in expectation, for classes with one common token; also to order 1/T."""
    rows = []
    for share in common:
        classes = SequenceClasses.single_common_token(k, m, common=share)
        rho = float(classes.overlap()[0, 1])
        row: dict[str, Any] = {"k": k, "m": m, "rho": rho}
        for name in ("modified", "full", "trained"):
            found = long_enough()(classes, decoder=name)
            row |= {name: found.length, f"{name}_first_order": found.first_order, f"{name}_exact": found.exact}
            row |= {"fails": found.fails} if name == "modified" else {}
        rows.append(row)
    return {"rows": rows}


def moved_lengths(k: int, m: int, common: float, eta_y: float, eta_z: float, by_peak: list[float]) -> dict[str, Any]:
    """Least T as in `lengths`, for the attention of the theory flow at the start and at times in units of t*."""
    classes = SequenceClasses.single_common_token(k, m, common=common)
    peak = decoder.transition_time(vocab_size=m, n_classes=k, eta_y=eta_y)
    times = [0.0, *(peak * ratio for ratio in by_peak)]
    flow = gradient_flow(classes, eta_y=eta_y, eta_z=eta_z, t_end=times[-1], times=times, decoder="theory").dataset
    rows = []
    for place, time in enumerate(times):
        z = flow["z"].isel(time=place).values
        found = long_enough()(classes, logits=z)
        pulls = classes.probabilities.toarray()[:2] * np.exp(z[0])
        first, second = pulls / np.linalg.norm(pulls, axis=1, keepdims=True)
        rows.append({
            "time": time,
            "common": float(z[0, 0]),
            "rho": float(first @ second),
            "modified": found.length,
            "fails": found.fails,
            "exact": found.exact,
        })  # fmt: skip
    lengths = [row["modified"] for row in rows]
    return {"rows": rows, "grows": all(np.diff(lengths) > 0), "exact": all(row["exact"] for row in rows)}


STUDIES = (
    Study("long_enough", lengths, {"k": 10, "m": 1000, "common": [0.34, 0.15, 0.1]}),
    Study(
        "long_enough_moved",
        moved_lengths,
        {"k": 10, "m": 1000, "common": 0.34, "eta_y": 1.0, "eta_z": 0.5, "by_peak": [0.5, 1, 2, 10, 100, 1000]},
    ),
)
