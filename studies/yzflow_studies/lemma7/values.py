"""How far the decoder's steps run ahead of its flow: Lemma 7 and Remark 2."""

from collections.abc import Sequence

import numpy as np

from theory import decoder
from theory.values import Study


def gap(m: int, eta_y: float) -> float:
    """Largest h* - h in units of eta_Y/M."""
    n = int(8 * (1 + np.log(m)) / eta_y) + 200
    steps = decoder.h_steps(n, vocab_size=m, eta_y=eta_y)
    flow = decoder.h(np.arange(n + 1), vocab_size=m, eta_y=eta_y)
    return float((steps - flow).max() * m / eta_y)


def gaps(fast: float, slow: float, sizes: Sequence[int]) -> dict:
    """The gap at a large rate, its limit for rates that go to zero, and at a rate of one."""
    return {
        "fast_rate": gap(2, fast),
        "limit": 1 / (2 * np.e),
        "slow_rate": [gap(m, slow) for m in sizes],
        "rate_one": [gap(m, 1.0) for m in sizes],
    }


def lag(m: int, eta_y: float, steps: Sequence[int]) -> dict:
    """h^-1(h*(s)) - s by (45), and whether it grows at every step and stays below 1/2 up to ln M/eta_Y."""
    x = m * decoder.h_steps(steps[-1], vocab_size=m, eta_y=eta_y)
    ahead = (np.expm1(x) + (m - 1) * x) / (m * eta_y) - np.arange(x.size)
    early = int(np.log(m) / eta_y)
    return {
        "lag": ahead[list(steps)],
        "grows": bool((np.diff(ahead) > 0).all()),
        "early_below_half": bool(ahead[: early + 1].max() < 0.5),
    }


STUDIES = (
    Study("gaps", gaps, {"fast": 1000.0, "slow": 1e-3, "sizes": [2, 1000]}),
    Study("lag", lag, {"m": 20, "eta_y": 0.9, "steps": [10**3, 10**4, 10**5, 10**6]}),
)
