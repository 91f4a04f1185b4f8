"""How far a distinct token can grow: as printed, with an integral's lower limit, and with the class probability."""

from collections.abc import Sequence

import numpy as np

from theory import attention
from theory.values import Study
from yzflow.papers.scan_and_snap.phase_transition import speed_constant, weak_classes


def bounds(eta_z: float, t: float, rates: Sequence[float]) -> dict:
    """Bounds exp(2 B_n) of the growth factor in the paper's setting, and the growth, at each eta_Y."""
    classes = weak_classes()
    k, m, c0 = classes.n_classes, classes.vocab_size, speed_constant(classes)
    sizes = {"vocab_size": m, "n_classes": k, "eta_z": eta_z}
    distinct = classes.probabilities[[0], 1:].toarray().ravel()
    distinct = distinct[distinct > 0]
    printed, limit, grown, figure = [], [], [], []
    for rate in rates:
        exponent = attention.growth_exponent(t, eta_y=rate, c0=c0, **sizes)
        printed.append(np.exp(2 * attention.printed_growth_exponent(t, eta_y=rate, c0=c0, **sizes)))
        figure.append(np.exp(2 * attention.printed_growth_exponent(t, eta_y=rate, c0=1 / k, **sizes)))
        limit.append(np.exp(2 * exponent))
        grown.append(attention.distinct_growth(exponent / k, distinct)[0] - 1)
    class_probability = np.power(limit, 1 / k)
    found = {
        "printed": printed,
        "figure": figure,
        "limit": limit,
        "class_probability": class_probability,
        "grown": grown,
    }
    return {
        **{name: {"least": min(list_), "most": max(list_)} for name, list_ in found.items()},
        "k": k,
        "m": m,
        "rho": classes.overlap()[0, 1],
        "c0": c0,
        # Of the fall from the printed bound to the last one, on a logarithmic scale: what the limit makes up.
        "mostly_the_limit": bool(
            np.log(np.divide(printed, limit)).min() > np.log(np.divide(limit, class_probability)).max()
        ),
    }


STUDIES = (
    Study(
        "bounds",
        bounds,
        {"eta_z": 0.5, "t": 700.0, "rates": [0.5, 1.0, 2.0, 5.0]},
        ("overlap below 1/(K (K - 1)), the upper half of Assumption 2", "eta_Z/eta_Y of 0.1 to 1: outside 1(c)"),
    ),
)
