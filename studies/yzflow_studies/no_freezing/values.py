"""How attention falls late in the full flow: the exponent of the common token's share in ln t, and its logit."""

from collections.abc import Sequence

import numpy as np
from yzflow_beyond_scan_and_snap import late

from dynamics import SequenceClasses, gradient_flow
from theory.values import Study
from yzflow_studies.no_freezing.study import slow_exponent


def exponents(
    sizes: Sequence[tuple[int, int, int]], common: float, eta_y: float, eta_z: float, ln_t: Sequence[float]
) -> dict:
    """-d ln w/d ln ln t of w = f_common/|f_distinct|, what a slow change of w predicts, and the logits."""
    rows = []
    for k, m, n_distinct in sizes:
        population = {"n_classes": k, "vocab_size": m, "common": common, "n_distinct": n_distinct}
        options = {**population, "eta_y": eta_y, "eta_z": eta_z}
        flow = late.late_flow(ln_t, **options)
        row = {"k": k, "m": m, "d": n_distinct, "exponent": flow["exponent"].values, "z": flow["z"].values}
        row["theory_z"] = late.theory_logit(ln_t, **options)
        row["limit"] = late.final_exponent(n_classes=k, vocab_size=m)
        if m > k:
            row["slow"] = slow_exponent(flow["ratio"].values, n_classes=k, vocab_size=m)[0]
            row["above"] = row["slow"] / row["exponent"] - 1
        rows.append(row)
    return {"rows": rows, "largest_above": max(row["above"][2:].max() for row in rows if "above" in row)}


def agreement(k: int, m: int, common: float, n_distinct: int, eta_y: float, eta_z: float, ln_t: float) -> dict:
    """The largest difference of the common token's logit between the reduced flow and `gradient_flow`."""
    s = np.linspace(0, ln_t, 33)
    own = late.late_flow(
        s, n_classes=k, vocab_size=m, common=common, n_distinct=n_distinct, eta_y=eta_y, eta_z=eta_z, rtol=1e-10
    )
    classes = SequenceClasses.single_common_token(
        k, m, common=common, distinct=[(1 - common) / n_distinct] * n_distinct
    )
    run = gradient_flow(classes, eta_y=eta_y, eta_z=eta_z, t_end=np.exp(ln_t), times=np.exp(s), rtol=1e-10, atol=1e-13)
    return {"off": np.abs(run.dataset["z"].values[:, 0, 0] - own["z"].values).max()}


def slopes(k: int, m: int, n_distinct: int, ln_t: Sequence[float], theory_ln_t: float) -> dict:
    """-dz/d ln ln t of the full flow, and -d ln w/d ln ln t of the theory flow very late."""
    options = {"n_classes": k, "vocab_size": m, "n_distinct": n_distinct}
    flow = late.late_flow(ln_t, **options)
    ends = np.array([theory_ln_t, 2 * theory_ln_t])
    fall = np.diff(late.theory_logit(ends, **options)) / np.diff(np.log(ends))
    return {"full": flow["exponent"].values / flow.attrs["gain"], "theory": -flow.attrs["gain"] * fall[0]}


def logits(
    k: int,
    m: int,
    common: float,
    n_distinct: Sequence[int],
    rates: Sequence[tuple[float, float]],
    ln_t: Sequence[float],
) -> dict:
    """The common token's logit of the full flow for pairs of rates and numbers of distinct tokens."""
    rows = []
    for d in n_distinct:
        for eta_y, eta_z in rates:
            flow = late.late_flow(
                ln_t, n_classes=k, vocab_size=m, common=common, n_distinct=d, eta_y=eta_y, eta_z=eta_z
            )
            rows.append({"d": d, "eta_y": eta_y, "eta_z": eta_z, "z": flow["z"].values})
    return {"rows": rows}


RATES = {"common": 0.4, "eta_y": 1.0, "eta_z": 0.5}
STUDIES = (
    Study(
        "exponents",
        exponents,
        {"sizes": [[10, 1000, 5], [5, 20, 1], [5, 5, 1]], **RATES, "ln_t": [10.0, 100.0, 1000.0, 10_000.0]},
        quick=False,
        tolerance=1e-4,
    ),
    Study("agreement", agreement, {"k": 10, "m": 1000, **RATES, "n_distinct": 5, "ln_t": 8.0}, noise=1e-8),
    Study(
        "slopes",
        slopes,
        {"k": 10, "m": 1000, "n_distinct": 5, "ln_t": [10.0, 20.0, 30.0], "theory_ln_t": 1e5},
        tolerance=1e-4,
    ),
    Study(
        "logits",
        logits,
        {
            "k": 10,
            "m": 1000,
            "common": 0.4,
            "n_distinct": [5, 1],
            "rates": [[1.0, 0.5], [0.5, 1.0]],
            "ln_t": [5.0, 10.0, 20.0, 30.0, 100.0],
        },
        tolerance=1e-4,
    ),
)
