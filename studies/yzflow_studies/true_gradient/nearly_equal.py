"""A distinct token that loses attention under the true gradient: two classes that are nearly the same, and a hub.

Four classes n, a, b, c, features that stand still, V' = R in units where eta_Y/K = 1. The overlaps of a, b and c are
one another's G_ac = G_bc = sqrt(1 - spread^2) and G_ab near one; n overlaps with c a little and with b by ``turn``,
very little. The probabilities of a and b are told apart at a time of order 1/turn^2 only; until then V_b - V_a =
t (e_b - e_a) exactly, and n's logits of b and a part by turn t, at a time T = 1/turn, whatever went before::

    before T:  H_n(c) rises like ln t, H_n(a) = H_n(b) fall like ln t;  n's own V_n holds all three near 1/t
    about T:   H_n(b) rises back towards H_n(n); V_n(b) was never pushed down, so that alpha_n(b) outgrows alpha_n(c)

and xi_n = sum_j alpha_n(j)(H_n(j) - H_n(n)) is decided by b, where it is negative. Two routes: the limit turn -> 0 at
T fixed in ln t, of which nothing is stiff, and the flow itself with a Gram matrix of this kind, in long numbers.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy
import xarray as xr
from numpy.typing import ArrayLike

from dynamics.support import checks

CLASSES = ("n", "a", "b", "c")
_START = -6.0
# How n's feature is shared between its own direction and that in which b differs from a.
_TURNED = 0.7
_DIGITS, _BITS = 60, 203
_LAST = 100.0


def features(*, spread: float, pull: float, ln_turned: float) -> list[list[str]]:
    """Features of n, a, b, c as rows of decimal numbers, before they are divided by their norms.

    f_a = e_1, f_b = e_1 + d e_3, f_c = sqrt(1 - spread^2) e_1 + spread e_2, f_n = .. e_0 + pull spread e_2 + 0.7 e_3
    with d = exp(-ln_turned)/0.7, so that G_nc = pull spread^2 and G_nb = exp(-ln_turned) but for factors 1 + O(d^2).

    Raises
    ------
    ValueError
        If a number is out of its range.
    """
    spread, pull, _ = checked(spread, pull, ln_turned)
    import flint
    from yzflow_enclose.stepping import precision

    with precision(_BITS):
        e, along = flint.arb(spread), flint.arb(pull) * flint.arb(spread)
        lam = flint.arb(_TURNED)
        rows = [
            [(1 - along**2 - lam**2).sqrt(), 0, along, lam],
            [0, 1, 0, 0],
            [0, 1, 0, (-flint.arb(ln_turned)).exp() / lam],
            [0, (1 - e**2).sqrt(), e, 0],
        ]
        return [[flint.arb(x).str(_DIGITS, radius=False) for x in row] for row in rows]


def limit(*, spread: float, pull: float, ln_turned: float, ln_t: ArrayLike, rtol: float = 1e-8) -> xr.Dataset:
    """xi_n of the limit in which b is told from a by n alone, M = K = 4.

    With the logits of a and b equal, S = V_a + V_b is kept where both are given the same probability, and ten numbers
    are left: S(c), S(n), V_c and V_n, with V_b = S/2 + t (e_b - e_a)/2 in H_n = G_nc V_c + exp(-ln_turned) V_b.

    Parameters
    ----------
    spread, pull : float
        G_ac = G_bc = sqrt(1 - spread^2), G_nc = pull spread^2.
    ln_turned : float
        ln T of the turn, in units of K/eta_Y.
    ln_t : (n,) array
        Logarithm of eta_Y t/K, increasing, above -6.
    rtol : float
        Tolerance of the integrator (LSODA in ln t).

    Returns
    -------
    xarray.Dataset
        ``share`` (ln_t), ``apart`` = H_n(j) - H_n(n) and ``log_alpha`` = ln alpha_n(j), over (ln_t, token).

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """
    spread, pull, ln_turned = checked(spread, pull, ln_turned)
    s = _times(ln_t)
    rho, g = np.sqrt(1 - spread**2), pull * spread**2

    def logits(at: float, y: np.ndarray) -> tuple[np.ndarray, ...]:
        Vc, Vn = y[2:6], y[6:10]
        apart, middle = -rho * (Vc[1] - Vc[2]), -(y[0] + y[1]) / 2
        S = np.array([y[1], middle + apart / 2, middle - apart / 2, y[0]])
        H = g * Vc + np.exp(at - ln_turned) / 2 * np.array([0, -1, 1, 0])
        return S + rho * Vc, Vc + rho * S + g * Vn, Vn + H, H

    def rate(at: float, y: np.ndarray) -> np.ndarray:
        both, c, n = (np.exp(at + scipy.special.log_softmax(L)) for L in logits(at, y)[:3])
        c[3], n[0] = -c[:3].sum(), -n[1:].sum()
        return np.concatenate([[-2 * both[3], -2 * both[0]], -c, -n])

    first = np.exp(_START) * np.concatenate([[-0.5, -0.5], np.eye(4)[3] - 0.25, np.eye(4)[0] - 0.25])
    solution = scipy.integrate.solve_ivp(
        rate, (_START, s[-1]), first, method="LSODA", t_eval=s, rtol=rtol, atol=1e-2 * rtol
    )
    if not solution.success:
        raise RuntimeError(f"the limit stopped at ln t = {solution.t[-1]:g}: {solution.message}")
    rows = [logits(at, y)[2:] for at, y in zip(solution.t, solution.y.T, strict=True)]
    return _found(s, np.array([scipy.special.log_softmax(L) for L, _ in rows]), np.array([H for _, H in rows]))


def flow(rows: Sequence[Sequence[str]], *, ln_t: ArrayLike, step: float = 0.05) -> xr.Dataset:
    """xi of the first class, M = K, under Lemma 1's decoder gradient with these features, in numbers of 60 digits.

    V' = R from V = 0, with Y = F^T V, in ln t: the second-order, L-stable method of two implicit stages. Rates of t/2
    stand beside those of order one while two classes are given the same probabilities; in double precision their
    rounding drowns the others from ln t of about 30 on.

    Parameters
    ----------
    rows : (K, d) rows of decimal numbers
        Features, divided by their norms here; entries at or above zero.
    ln_t : (n,) array
        Logarithm of eta_Y t/K, increasing, above -6, to 100: beyond, 60 digits are too few.
    step : float
        Longest step in ln t; the error falls like its square.

    Returns
    -------
    xarray.Dataset
        ``share``, ``apart``, ``log_alpha`` as from `limit`, of the class of the first row.

    Raises
    ------
    ValueError
        If a feature has a negative entry or no length, or an argument is out of its range.
    """
    s, step = _times(ln_t), checks.positive("step", step)
    if s[-1] > _LAST:
        raise checks.reject("ln_t", f"be at most {_LAST:g}", s[-1])
    import flint
    from yzflow_enclose.stepping import precision

    with precision(_BITS):
        return _long(flint, [[flint.arb(str(x)) for x in row] for row in rows], s, step)


def _long(flint, F, s, step):
    arb, mat, k, d = flint.arb, flint.arb_mat, len(F), len(F[0])
    if any(len(row) != d for row in F) or any(x < 0 for row in F for x in row):
        raise checks.reject("rows", "be equally long with no negative entry", "others")
    norms = [sum((x * x for x in row), arb(0)).sqrt() for row in F]
    if any(not norm > 0 for norm in norms):
        raise checks.reject("rows", "have a length each", "zeros")
    F = [[x / norm for x in row] for row, norm in zip(F, norms, strict=True)]
    size = d * k + k  # Y, then V of the first class

    def probabilities(y):
        found = []
        for row in F:
            L = [sum((row[i] * y[i * k + j] for i in range(d)), arb(0)) for j in range(k)]
            largest = max(L, key=float)
            raised = [(x - largest).exp() for x in L]
            whole = sum(raised, arb(0))
            found.append([x / whole for x in raised])
        return found

    def rate(a):
        R = [[int(i == j) - a[i][j] for j in range(k)] for i in range(k)]
        return [sum((F[n][i] * R[n][j] for n in range(k)), arb(0)) for i in range(d) for j in range(k)] + R[0]

    def jacobian(a):
        J = mat(size, size)
        for n in range(k):
            for j in range(k):
                for m in range(k):
                    slope = a[n][j] * a[n][m] - (a[n][j] if j == m else 0)
                    for e in range(d):
                        if F[n][e] == 0:
                            continue
                        for i in range(d):
                            J[i * k + j, e * k + m] += F[n][i] * slope * F[n][e]
                        if n == 0:
                            J[d * k + j, e * k + m] += slope * F[n][e]
        return J

    def stage(base, guess, scale):
        """The y with y = base + scale rate(y), by Newton's steps with middles of balls."""
        y = guess
        for _ in range(30):
            a = probabilities(y)
            miss = [b + scale * r - x for b, r, x in zip(base, rate(a), y, strict=True)]
            A = mat(size, size, [int(i == j) for i in range(size) for j in range(size)]) - scale * jacobian(a)
            change = A.mid().solve(mat(size, 1, [x.mid() for x in miss]).mid(), algorithm="approx").entries()
            y = [(x + c).mid() for x, c in zip(y, change, strict=True)]
            if all(abs(float(c)) < 1e-15 for c in change):
                return y
        raise RuntimeError("Newton's steps did not settle")

    gamma = 1 - 1 / arb(2).sqrt()
    first = rate([[arb(1) / k] * k for _ in range(k)])
    at, y = _START, [(arb(_START).exp() * r).mid() for r in first]
    log_alpha, own = [], []
    for end in s:
        count = int(np.ceil((end - at) / step - 1e-9))
        h, begin = (end - at) / count, at
        for i in range(count):
            here = arb(begin) + i * arb(h)
            scales = [gamma * h * (here + gamma * h).exp(), gamma * h * (here + h).exp()]
            one = stage(y, y, scales[0].mid())
            base = [(x + (1 - gamma) / gamma * (z - x)).mid() for x, z in zip(y, one, strict=True)]
            y = stage(base, one, scales[1].mid())
        at = float(end)
        a = probabilities(y)[0]
        L = [sum((F[0][i] * y[i * k + j] for i in range(d)), arb(0)) for j in range(k)]
        log_alpha.append([float(x.log()) for x in a])
        own.append([float(x - v) for x, v in zip(L, y[d * k :], strict=True)])
    return _found(s, np.array(log_alpha), np.array(own))


def _found(s: np.ndarray, log_alpha: np.ndarray, H: np.ndarray) -> xr.Dataset:
    apart = H - H[:, :1]
    terms = np.exp(log_alpha) * apart
    share = terms.sum(axis=1) / np.abs(terms).sum(axis=1)
    dims = ("ln_t", "token")
    return xr.Dataset({"share": ("ln_t", share), "apart": (dims, apart), "log_alpha": (dims, log_alpha)}, {"ln_t": s})


def checked(spread: float, pull: float, ln_turned: float) -> tuple[float, float, float]:
    spread, pull = checks.positive("spread", spread), checks.positive("pull", pull)
    if spread >= 1:
        raise checks.reject("spread", "be below one", spread)
    if (pull * spread) ** 2 + _TURNED**2 >= 1:
        raise checks.reject("pull", f"leave n a length, (pull spread)^2 + {_TURNED}^2 < 1", pull)
    return spread, pull, checks.positive("ln_turned", ln_turned)


def _times(ln_t: ArrayLike) -> np.ndarray:
    s = checks.finite_array("ln_t", ln_t, ndim=1)
    if s.size == 0 or (np.diff(s) <= 0).any() or s[0] <= _START:
        raise checks.reject("ln_t", f"be increasing and above {_START:g}", s)
    return s
