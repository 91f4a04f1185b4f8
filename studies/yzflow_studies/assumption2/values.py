"""Which settings Assumption 2 leaves, and what holds and fails inside it."""

from collections.abc import Sequence

import numpy as np

from dynamics import gradient_flow
from theory import tokens
from theory.scan_and_snap import measures
from theory.values import Study
from yzflow.audits.audit import Simulations
from yzflow.papers.scan_and_snap.settings import (
    Setting,
    classes_with_common_shares,
    rising_common_token,
    single_common_token,
)


def least_vocabulary(k: int, m: int) -> dict:
    """Above which M Assumption 2 leaves an equal overlap."""
    bound = 36 * k**2 * (k - 1) ** 2
    rho = 1 / (k * (k - 1))

    def holds(m: int) -> bool:
        classes = single_common_token(k, m, rho * (1 - 1e-9))
        return bool(tokens.weak_correlation(classes.overlap(), vocab_size=m).holds)

    return {"bound": bound, "inside": m > bound, "sharp": holds(bound + 1) and not holds(bound)}


def inside(sizes: Sequence[tuple[int, int, float]]) -> dict:
    """Margins of the settings that are inside."""
    weak = [tokens.weak_correlation(single_common_token(*size).overlap(), vocab_size=size[1]) for size in sizes]
    unequal = classes_with_common_shares([0.45, 0.4, 0.3], 10_000)
    overlap = unequal.overlap()
    off = overlap[~np.eye(len(overlap), dtype=bool)]
    weak.append(tokens.weak_correlation(overlap, vocab_size=10_000))
    return {
        "all": all(one.holds for one in weak),
        "unequal": {"k": len(overlap), "m": 10_000, "least": off.min(), "most": off.max()},
    }


def rising(m: int, eta_y: float, eta_z: float, t: float) -> dict:
    """Two common tokens of which one gains in the theory flow, inside Assumption 2; and the lower bound of (12)."""
    classes = rising_common_token(m)
    weak = tokens.weak_correlation(classes.overlap(), vocab_size=m)
    run = gradient_flow(
        classes,
        eta_y=eta_y,
        eta_z=eta_z,
        t_end=t,
        times=np.geomspace(0.01, t, 121),
        decoder="theory",
        rtol=1e-10,
        atol=1e-14,
    )
    attention_ = run.dataset["attention"].sel(next_token=0)
    distinct = int(classes.distinct_tokens(0)[0])
    feature = attention_[:, distinct] / np.linalg.norm(attention_.values, axis=1)
    setting = Setting("rising", classes, eta_y, eta_z, t)
    missed = measures.theorem3_bounds(Simulations(setting, seed=0, made={"theory flow": run}), "theory flow")
    return {
        "missed": missed,
        "k": classes.n_classes,
        "upper": weak.upper_margin,
        "lower": weak.lower_margin,
        "gains": bool(attention_.isel(time=-1)[1] > attention_.isel(time=0)[1]),
        "distinct_falls": bool(feature[-1] < feature[0]),
    }


def unequal(shares: Sequence[float], m: int, eta_y: float, eta_z: float, t: float) -> dict:
    """How far the full flow's early slow-down is from s of the mean overlap, for unequal and for equal ones."""
    classes = classes_with_common_shares(shares, m)
    mean = Setting("unequal", classes, eta_y, eta_z, t).overlap
    sets = {"unequal": classes, "equal": single_common_token(len(shares), m, mean)}
    return {
        name: measures.remark1_corrected(Simulations(Setting(name, one, eta_y, eta_z, t), seed=0), "full flow")
        for name, one in sets.items()
    }


STUDIES = (
    Study("least", least_vocabulary, {"k": 10, "m": 1000}),
    Study("inside", inside, {"sizes": [(3, 2000, 0.15), (4, 8000, 0.075)]}),
    Study(
        "rising", rising, {"m": 10_000, "eta_y": 1.0, "eta_z": 0.5, "t": 100.0}, ("inside Assumption 2, outside 1(c)",)
    ),
    Study("unequal", unequal, {"shares": [0.45, 0.4, 0.3], "m": 10_000, "eta_y": 1.0, "eta_z": 1e-3, "t": 100.0}),
)
