"""How much slower than the theory the full gradient flow begins, and how that changes."""

from dynamics import gradient_flow
from theory import attention
from theory.values import Study
from yzflow.papers.scan_and_snap.settings import single_common_token


def early(k: int, m: int, rho: float, eta_y: float, eta_z: float, t: float) -> dict[str, float]:
    """Ratio of a distinct token's logit in the full flow and in the theory's, early, beside formulas for it."""
    classes = single_common_token(k, m, rho)
    token = int(classes.distinct_tokens(0)[0])
    full, theory = (
        gradient_flow(
            classes, eta_y=eta_y, eta_z=eta_z, t_end=t, times=[t], decoder=name, rtol=1e-11, atol=1e-18
        ).final.Z[0, token]
        for name in ("full", "theory")
    )
    reduced = rho / ((1 - rho) * (1 + (k - 1) * rho))
    s = attention.full_flow_slowdown(vocab_size=m, n_classes=k, overlap=rho)
    return {"measured": full / theory, "s": s, "simple": 1 / (1 + (m - k) * reduced)}


STUDIES = (Study("paper", early, {"k": 10, "m": 1000, "rho": 0.011, "eta_y": 1.0, "eta_z": 1e-3, "t": 0.1}),)
