"""Whether and when the full flow's attention overtakes the theory's: with frozen features, and with moving ones."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike
from yzflow_beyond_scan_and_snap import late

from theory.scan_and_snap.proofs.slowdown import late_ratio
from theory.values import Study
from yzflow_studies.overtaking.study import frozen_speeds, overtaking, two_classes
from yzflow_studies.refined import largest


def reached(k: int, sizes: Sequence[int], overlaps: Sequence[float]) -> dict:
    """ln(eta_Y t/K) at which the ratio of speeds first is one, with frozen features."""
    found = overtaking(n_classes=k, vocab_sizes=sizes, overlaps=overlaps, last=1e3)
    return {"rows": [{"m": m, "at": row} for m, row in zip(sizes, found.values.tolist(), strict=True)]}


def limit(sizes: Sequence[tuple[int, int, float]], ln_t: float) -> dict:
    """How far the ratio of speeds is from s_inf."""
    off = []
    for k, m, rho in sizes:
        speeds = frozen_speeds([ln_t], n_classes=k, vocab_size=m, overlap=rho)
        off.append(abs(speeds[0] / float(late_ratio(m, k, rho)) - 1))
    return {"off": off, "largest": max(off)}


def moving(k: int, m: int, rho: float, n_distinct: int, eta_y: float, eta_z: float, ln_t: Sequence[float]) -> dict:
    """The common token's logit in the full flow over that in the theory's, features moving; its maximum is refined."""
    # rho = w^2/(1 + w^2) for w = f_common/|f_distinct|, so that P(common) = w/(w + sqrt(D)).
    w = (rho / (1 - rho)) ** 0.5
    options = {"n_classes": k, "vocab_size": m, "common": w / (w + n_distinct**0.5), "n_distinct": n_distinct}

    def multiple(points: ArrayLike) -> np.ndarray:
        full = late.late_flow(points, **options, eta_y=eta_y, eta_z=eta_z)["z"].values
        return full / late.theory_logit(points, **options, eta_y=eta_y, eta_z=eta_z)

    ratio, (most, at) = multiple(ln_t), largest(multiple, ln_t)
    return {"ratio": ratio, "largest": most, "at": at, "overtakes": most > 1, "keeps": bool(ratio[-1] > 1)}


def apart(
    probabilities: Sequence[Sequence[float]], eta_y: float, eta_z: float, t: Sequence[float], ln_t: float
) -> dict:
    """The same multiple for any two classes with K = M = 2, at times t and a last ln t; token 0 is the common one."""
    flows = two_classes(probabilities, [*np.log(t), ln_t], eta_y=eta_y, eta_z=eta_z).isel(token=0)
    ratio = (flows["full"] / flows["theory"]).values
    return {"ratio": ratio, "keeps": bool(ratio[-1] > 1)}


FROZEN = ("features stand still",)
MOVING = {"k": 5, "m": 60, "rho": 0.967, "n_distinct": 5, "eta_y": 1.0}
OUTSIDE = ("outside Assumption 2, whose overlap is below 1/(K (K - 1))",)
FEW = ("outside Assumption 2, M >> K^2",)
GRID = [0.5 * i for i in range(1, 20)] + [10.0 + 2 * i for i in range(46)] + [150.0, 200, 300, 500, 1000]
STUDIES = (
    Study(
        "reached",
        reached,
        {"k": 10, "sizes": [10, 100, 1000], "overlaps": [0.01, 0.1, 0.3, 0.9]},
        FROZEN,
        tolerance=1e-4,
    ),
    Study("limit", limit, {"sizes": [(5, 60, 0.967), (4, 4, 0.3), (3, 30, 0.2)], "ln_t": 20_000.0}, FROZEN),
    Study("lost", moving, {**MOVING, "eta_z": 1e-3, "ln_t": [4.6, 6.9, 9.2, 13.8, 50.0, 100.0, 1000.0]}, OUTSIDE),
    Study(
        "equal",
        moving,
        {
            **MOVING,
            "m": 5,
            "rho": 0.3,
            "n_distinct": 1,
            "eta_z": 1e-3,
            "ln_t": [2.3, 4.6, 6.9, 13.8, 50.0, 100.0, 1000.0],
        },
        OUTSIDE,
    ),
    Study(
        "unequal_classes",
        apart,
        {
            "probabilities": [[2 / 3, 1 / 3, 0.0], [0.25, 0.0, 0.75]],
            "eta_y": 1.0,
            "eta_z": 0.5,
            "t": [1e1, 1e3, 1e8, 1e16],
            "ln_t": 1000.0,
        },
        FEW,
        tolerance=1e-4,
    ),
    Study(
        "unequal_tokens",
        apart,
        {
            "probabilities": [[0.6, 0.36, 0.04, 0.0, 0.0], [0.6, 0.0, 0.0, 0.36, 0.04]],
            "eta_y": 1.0,
            "eta_z": 0.5,
            "t": [1e3, 1e16],
            "ln_t": 1000.0,
        },
        FEW,
        tolerance=1e-4,
    ),
    Study("never", moving, {**MOVING, "eta_z": 0.5, "ln_t": GRID}, OUTSIDE, quick=False),
    Study("paper", moving, {**MOVING, "m": 1000, "k": 10, "rho": 0.0101, "eta_z": 1e-3, "ln_t": GRID}, quick=False),
)
