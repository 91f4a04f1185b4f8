"""How slowly the common token's logit goes on falling after the transition: the slope of B in ln ln t."""

import math

from theory import attention
from theory.values import Study


def slopes(k: int, m: int, rho: float, eta_y: float, eta_z: float, spans: list[list[float]]) -> dict[str, list[float]]:
    """Slopes of Theorem 4's B in ln ln t, between two times each."""
    c0 = attention.speed_constant(n_classes=k, overlap=rho)
    sizes = {"vocab_size": m, "n_classes": k, "eta_y": eta_y, "eta_z": eta_z, "c0": c0}
    found = []
    for first, last in spans:
        rise = attention.growth_exponent(last, **sizes) - attention.growth_exponent(first, **sizes)
        found.append(float(rise) / (math.log(math.log(last)) - math.log(math.log(first))))
    return {"slopes": found}


STUDIES = (
    Study(
        "paper",
        slopes,
        {"k": 10, "m": 1000, "rho": 0.01, "eta_y": 1.0, "eta_z": 0.5, "spans": [[1e3, 1e4], [1e64, 1e128]]},
    ),
)
