"""Numbers in the questions on sparse averaging, at what the pages' sliders start from, and in the presets."""

from typing import Any

import numpy as np
from scipy.optimize import brentq
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging.instances import adversarial_subsets
from yzflow_sparse_averaging.panel import data

from theory.values import Study


def crossing(p: int) -> dict[str, float]:
    """The q from which on 4 q^2 log2 N bits of the moment curve are more than 12 q ln N p of random keys."""
    return {"q": 3 * p * float(np.log(2))}


def connected(n: int, q: int, numbers: int) -> dict[str, Any]:
    """The least widths of a first layer not forced to errors of one, or one half, and that of exact ones."""
    errors = [averaging.collision_error(n, q, width=width) for width in range(numbers, n + 1)]
    return {
        "below_one": numbers + next(i for i, error in enumerate(errors) if error < 1),
        "below_half": numbers + next(i for i, error in enumerate(errors) if error < 1 / 2),
        "exact": numbers + next(i for i, error in enumerate(errors) if error == 0),
    }


def forced(n: int, q: int, width: int) -> dict[str, float]:
    """The error that a first layer of so many numbers is forced to."""
    return {"error": averaging.collision_error(n, q, width=width)}


def recurrent(n: int, error: float, few: int, many: int) -> dict[str, Any]:
    """Bits that are still needed, of those that exact averages need."""
    bits = {name: averaging.state_bits(n, q, error=error) for name, q in (("few", few), ("many", many))}
    return {"all": n - 1, "bits": bits}


def near_misses(n: int, modulus: int, error: float) -> dict[str, float]:
    """How many near misses weigh as much as the blank token of the unit for Match2."""
    unit = averaging.match2(n_tokens=n, modulus=modulus, error=error)
    return {"misses": round(float(np.exp(unit.scale * (unit.blank_score - 1 + averaging.angle_gap(modulus)))), 3)}


def conjecture(share: float) -> dict[str, float]:
    """The N from which on the size of two layers stays below N / log2 N, in millions, and below a share, in billions.

    And the same in millions if m is no less than the numbers of a token.
    """

    def from_on(slope: float, rest: float, share: float) -> float:
        return 2 ** float(
            brentq(lambda x: np.log2(slope * 2 ** (2 * x / 3) + rest) - np.log2(share) - x + np.log2(x), 6, 200)
        )

    return {
        "millions": from_on(6, 0, 1.0) / 1e6,
        "billions": from_on(6, 0, share) / 1e9,
        "strict": from_on(18, 12, 1.0) / 1e6,
    }


def dimensions(q: int) -> dict[str, int]:
    """The largest m at which a wrong token of the panel's set scores above one half: a random set, and a hard one."""
    last = {}
    for name, hard in (("random", False), ("hard", True)):
        for m in range(1, data.MAX_DIMENSION + 1):
            signs = data.key_signs()[:, :m].astype(float)
            chosen = adversarial_subsets(signs, q)[0] if hard else np.arange(q)
            found = averaging.certificate(signs / np.sqrt(m), chosen, method="minimum norm", throw=False)
            last[name] = m if found.rho > 0.5 else last.get(name, 0)
    return {"tokens": data.N_TOKENS, **last, "from_on": last["random"] + 1, "hard_from_on": last["hard"] + 1}


STUDIES = (
    Study("crossing", crossing, {"p": 16}),
    Study("connected", connected, {"n": 1000, "q": 100, "numbers": 200}),
    Study("forced", forced, {"n": 1000, "q": 400, "width": 500}),
    Study("recurrent", recurrent, {"n": 1000, "error": 0.5, "few": 10, "many": 300}),
    Study("near_misses", near_misses, {"n": 100, "modulus": 31, "error": 0.01}),
    Study("conjecture", conjecture, {"share": 0.1}),
    Study("dimensions", dimensions, {"q": 3}),
)
