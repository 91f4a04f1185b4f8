"""The limit of `nearly_equal` in balls: the sign of xi_n with every rounding counted.

In numbers V the limit's errors grow; in Y = F^T V it ascends a concave objective, and they never do. With a and b one
feature e_1, f_c = rho e_1 + spread e_2 and f_n = pull spread e_2 + .. e_0, the rows of Y are Y_1, Y_2 and Y_0. In Y_1
the entries of a and b are equal, and all sum to zero: two numbers are left, along directions at right angles.
"""

from __future__ import annotations

from typing import Any

import flint
import numpy as np
from yzflow_enclose import ball, enclose, softmax
from yzflow_enclose.stepping import precision

from dynamics.support import checks
from yzflow_studies.true_gradient.nearly_equal import checked

_BITS = 302  # some 90 digits


class Limit:
    """The limit's flow in ln(1 + t), from Y = 0 at t = 0, for `yzflow_enclose.enclose`."""

    def __init__(self, spread: float, pull: float, ln_turned: float) -> None:
        self.initial = {"sum": 0.0, "difference": 0.0, "hub": np.zeros(4), "own": np.zeros(4)}
        self.turned, self.spread = ln_turned, spread
        with precision(_BITS):
            self.root = np.sqrt(ball(2.0))
            self.rho = np.sqrt(1 - ball(spread) * ball(spread))
            self.along = ball(pull) * ball(spread)
            self.alone = np.sqrt(1 - self.along * self.along)

    def logits(self, s: Any, state: Any) -> tuple[Any, Any, Any]:
        """Logits of a and b, of c, and of n, over the tokens n, a, b, c."""
        total, apart = state["sum"], state["difference"] * self.root
        both = np.array([(total + apart) / 2, -total / 2, -total / 2, (total - apart) / 2])
        late = (np.exp(s - self.turned) - np.exp(0 * s - self.turned)) / 2  # t/(2 T)
        turn = np.array([0 * late, -late, late, 0 * late])
        c = self.rho * both + self.spread * state["hub"]
        return both, c, self.along * state["hub"] + self.alone * state["own"] + turn

    def field(self, s: Any, state: Any) -> dict[str, Any]:
        """dY/ds = (1 + t) F^T R, where the sum of each residual's own token is that of the others."""
        both, c, n = (np.exp(s) * softmax(logits) for logits in self.logits(s, state))
        c = np.array([-c[0], -c[1], -c[2], c[0] + c[1] + c[2]])
        n = np.array([n[1] + n[2] + n[3], -n[1], -n[2], -n[3]])
        of_n, of_c = self.rho * c[0] - 2 * both[0], self.rho * c[3] - 2 * both[3]
        rows = {"hub": self.spread * c + self.along * n, "own": self.alone * n}
        return {"sum": of_n + of_c, "difference": (of_n - of_c) / self.root, **rows}


def enclosed(*, spread: float, pull: float, ln_turned: float, ln_t: float, bits: int = 80) -> dict[str, list[float]]:
    """Bounds of xi_n of the limit at one time.

    Parameters
    ----------
    spread, pull, ln_turned : float
        As for `nearly_equal.limit`, taken for the binary fractions that they are.
    ln_t : float
        ln(1 + eta_Y t/K), above zero.
    bits : int
        As for `yzflow_enclose.enclose`.

    Returns
    -------
    dict
        ``xi``, ``share`` of the moduli of its terms, and ``a``, ``b``, ``c`` = H_n(j) - H_n(n): lower and upper bound.

    Raises
    ------
    ValueError
        If an argument is out of its range.
    RuntimeError
        If the enclosure ends before the time.
    """
    limit = Limit(*checked(spread, pull, ln_turned))
    end = checks.positive("ln_t", ln_t)
    found = enclose(limit, t_end=end, bits=bits)
    if not found.complete:
        raise RuntimeError(f"the enclosure ended at ln(1 + t) = {found.t_reached:g}: {found.reason}")
    state = found.moment(end).state
    logits = limit.logits(end, state)[2]
    alpha = softmax(logits)
    H = [one - own / limit.alone for one, own in zip(logits, state["own"], strict=True)]
    with precision(_BITS):
        apart = [(one - H[0]).ball() for one in H[1:]]
        terms = [(alpha[j + 1] * (H[j + 1] - H[0])).ball() for j in range(3)]
        xi = sum(terms, flint.arb(0))
        share = xi / sum((abs(term) for term in terms), flint.arb(0))
        told = {"xi": xi, "share": share, **dict(zip("abc", apart, strict=True))}
        return {name: [float(x.lower()), float(x.upper())] for name, x in told.items()}
