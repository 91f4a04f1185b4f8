"""How much slower than the theory the full gradient flow begins, and how the ratio changes."""

from collections.abc import Sequence

import numpy as np

from dynamics import SequenceClasses, gradient_flow
from theory import attention
from theory.scan_and_snap.proofs.slowdown import late_ratio
from theory.values import Study
from yzflow.papers.scan_and_snap.phase_transition import weak_classes
from yzflow.papers.scan_and_snap.settings import single_common_token
from yzflow_studies.overtaking.study import frozen_speeds, overtaking

# Entry of a setting: classes by K, M and overlap, with five distinct tokens of 1, 0.8, 0.6, 0.4 and 0.2 each.
SIZES = ((10, 1000, 0.011), (10, 50, 0.011), (10, 10, 0.011), (5, 5, 0.3), (5, 5, 0.5), (5, 50, 0.3), (20, 200, 0.1))


def logit_ratio(
    classes: SequenceClasses, eta_y: float, eta_z: float, times: Sequence[float], token: int | None = None
) -> np.ndarray:
    """A token's logit, by default the first distinct one's, in the full flow over that in the theory flow."""
    token = int(classes.distinct_tokens(0)[0]) if token is None else token
    options = {"eta_y": eta_y, "eta_z": eta_z, "t_end": times[-1], "times": list(times), "rtol": 1e-11, "atol": 1e-20}
    full, theory = (
        gradient_flow(classes, decoder=name, **options).dataset["z"].values[:, 0, token] for name in ("full", "theory")
    )
    return full / theory


def slowdown(k: int, m: int, rho: float) -> float:
    """s of finding 1."""
    return float(attention.full_flow_slowdown(vocab_size=m, n_classes=k, overlap=rho))


def early(sizes: Sequence[tuple[int, int, float]], eta_y: float, eta_z: float, t: float) -> dict:
    """The ratio early on, beside s, beside s with its first correction, and beside the simpler form."""
    rows = []
    for k, m, rho in sizes:
        measured = logit_ratio(single_common_token(k, m, rho), eta_y, eta_z, [t])[0]
        simple = 1 / (1 + (m - k) * rho / ((1 - rho) * (1 + (k - 1) * rho)))
        # s with its first correction, which is proved.
        s = slowdown(k, m, rho)
        corrected = s * (1 + eta_y * rho * (m - k + 1) * t / (k * m))
        rows.append({"k": k, "m": m, "rho": rho, "measured": measured, "s": s, "simple": simple, "next": corrected})
    return {
        "rows": rows,
        "off": max(abs(row["measured"] / row["next"] - 1) for row in rows),
        "slower": all(row["measured"] < 1 for row in rows),
    }


def paper(eta_y: float, eta_z: float, t: float) -> dict:
    """The paper's own K and M with an overlap inside |lambda_1(E)| < 1/K."""
    classes = weak_classes()
    k, m, rho = classes.n_classes, classes.vocab_size, float(classes.overlap()[0, 1])
    s = slowdown(k, m, rho)
    ratio = logit_ratio(classes, eta_y, eta_z, [t])[0]
    return {"k": k, "m": m, "rho": rho, "s": s, "times": 1 / s, "limit": float(late_ratio(m, k, rho)), "at_t": ratio}


def risen(k: int, m: int, rho: float, eta_y: float, eta_z: float, t: float) -> dict:
    """The ratio at the end of the paper's own runs."""
    return {"s": slowdown(k, m, rho), "ratio": logit_ratio(single_common_token(k, m, rho), eta_y, eta_z, [t])[0]}


def frozen(k: int, m: int, rho: float, ln_t: Sequence[float]) -> dict:
    """Ratio of the speeds with frozen features at ln(eta_Y t/K), its limit, and when it reaches one."""
    speeds = frozen_speeds([-11.0, *ln_t], n_classes=k, vocab_size=m, overlap=rho)
    reached = overtaking(n_classes=k, vocab_sizes=[m], overlaps=[rho], last=1e3).item()
    limit = float(late_ratio(m, k, rho))
    return {"start": speeds[0], "ratio": speeds[1:], "limit": limit, "above": limit > 1, "reached": reached}


def moving(k: int, m: int, rho: float, eta_y: float, eta_z: Sequence[float], times: Sequence[float]) -> dict:
    """The ratio of the common token's logits with moving features."""
    classes = single_common_token(k, m, rho)
    return {f"rate{i}": logit_ratio(classes, eta_y, rate, times, token=0) for i, rate in enumerate(eta_z)}


OUTSIDE = "outside Assumption 2, whose overlap is below 1/(K (K - 1))"
STUDIES = (
    Study("early", early, {"sizes": [*SIZES, (3, 1000, 0.5)], "eta_y": 1.0, "eta_z": 1e-3, "t": 0.1}),
    Study(
        "paper", paper, {"eta_y": 1.0, "eta_z": 1e-3, "t": 700.0}, ("overlap below 1/(K (K - 1)), the upper half of 2",)
    ),
    Study("risen", risen, {"k": 10, "m": 1000, "rho": 0.01, "eta_y": 1.0, "eta_z": 1e-3, "t": 700.0}),
    Study(
        "frozen", frozen, {"k": 5, "m": 60, "rho": 0.967, "ln_t": [5, 10, 50, 1000]}, ("features stand still", OUTSIDE)
    ),
    Study(
        "frozen_paper", frozen, {"k": 10, "m": 1000, "rho": 0.011, "ln_t": [5, 10, 50, 1000]}, ("features stand still",)
    ),
    Study(
        "frozen_weak", frozen, {"k": 10, "m": 1000, "rho": 0.0101, "ln_t": [5, 10, 50, 1000]}, ("features stand still",)
    ),
    Study(
        "moving",
        moving,
        {"k": 5, "m": 60, "rho": 0.967, "eta_y": 1.0, "eta_z": [1e-3, 1e-6], "times": [100.0, 1e3, 1e4, 1e6]},
        (OUTSIDE,),
    ),
)
