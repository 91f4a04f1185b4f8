"""The fall of the common token in the theory flow against B(t) with its lower limit and its K - 1."""

from collections.abc import Sequence

import numpy as np

from dynamics import SequenceClasses, gradient_flow
from theory import attention
from theory.values import Study


def against_the_flow(
    k: int, sizes: Sequence[int], common: float, eta_y: float, eta_z: float, t: float, rtol: float
) -> dict:
    """Largest relative difference of -z_common and B over time, and the two terms that make it to first order."""
    rows = []
    for m in sizes:
        classes = SequenceClasses.single_common_token(k, m, common=common)
        rho = float(classes.overlap()[0, 1])
        times = np.geomspace(1e-2, t, 200)
        flow = gradient_flow(
            classes, eta_y=eta_y, eta_z=eta_z, t_end=t, times=times, decoder="theory", rtol=rtol, atol=1e-16
        )
        fall = -flow.dataset["z"].values[:, 0, int(classes.common_tokens[0])]
        c0 = attention.speed_constant(n_classes=k, overlap=rho)
        exponent = attention.growth_exponent(times, vocab_size=m, n_classes=k, eta_y=eta_y, eta_z=eta_z, c0=c0)
        reduced = rho / ((1 - rho) * (1 + (k - 1) * rho))
        rows.append(
            {
                "m": m,
                "rho": rho,
                "off": np.abs(fall / exponent - 1).max(),
                "overlap": reduced / rho - 1,
                "others": 1 / (m * (1 + (k - 1) * rho) * rho),
            }
        )
    return {"rows": rows, "opposite": all(row["overlap"] * row["others"] < 0 for row in rows)}


STUDIES = (
    Study(
        "weak",
        against_the_flow,
        {"k": 10, "sizes": [1000, 100_000], "common": 0.15, "eta_y": 1.0, "eta_z": 0.5, "t": 700.0, "rtol": 1e-10},
        ("overlap below 1/(K (K - 1)), the upper half of Assumption 2",),
        tolerance=1e-4,
    ),
)
