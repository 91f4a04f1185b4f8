"""Many flows of Theorem 4's setting in heyoka (Taylor series): the reduced equations, full decoder."""

from collections.abc import Callable, Mapping

import heyoka as hy
import numpy as np

from benchmarks.peers.ensembles import arrays


def equations(width: int) -> list:
    """The reduced equations in heyoka's expressions; parameters are K, M, eta_Y, eta_Z and the counts."""
    D = width - 1
    z = [hy.expression(f"z{i}") for i in range(width)]
    a, b = hy.expression("a"), hy.expression("b")
    p, q, r = ([hy.expression(f"{name}{i}") for i in range(D)] for name in "pqr")
    K, M, eta_y, eta_z = (hy.par[i] for i in range(4))
    c = [hy.par[4 + i] * hy.exp(z[i]) for i in range(width)]
    scale = hy.sum([one * one for one in c]) ** -0.5
    f = [one * scale for one in c]

    def logit(shared: object, own: list) -> object:
        return f[0] * shared + hy.sum([f[i + 1] * own[i] for i in range(D)])

    u_own, u_other, u_rest = logit(a, p), logit(a, q), logit(b, r)
    e_other, e_rest = hy.exp(u_other - u_own), hy.exp(u_rest - u_own)
    others = (K - 1.0) * e_other + (M - K) * e_rest
    total = 1.0 + others
    r_own, r_other, r_rest = others / total, -e_other / total, -e_rest / total
    g = [(r_own + (K - 1.0) * r_other) * a + (M - K) * r_rest * b]
    g += [r_own * p[i] + (K - 1.0) * r_other * q[i] + (M - K) * r_rest * r[i] for i in range(D)]
    inner = hy.sum([f[i] * g[i] for i in range(width)])
    rate = eta_y / K
    system = [(z[i], (eta_z if i == 0 else eta_z / K) * f[i] * (g[i] - f[i] * inner)) for i in range(width)]
    system += [(a, rate * f[0] * (r_own + (K - 1.0) * r_other)), (b, rate * f[0] * K * r_rest)]
    for own, residual in ((p, r_own), (q, r_other), (r, r_rest)):
        system += [(own[i], rate * f[i + 1] * residual) for i in range(D)]
    return system


def calls(settings: Mapping[str, np.ndarray], *, t_end: float, tolerance: float) -> dict[str, Callable[[], np.ndarray]]:
    """Functions that return z of every member at the end, by name: one member at a time, and in batches."""
    members, counts = arrays(settings)
    parameters = np.concatenate([members, counts], axis=1)
    n, width = counts.shape
    system, lanes = equations(width), hy.recommended_simd_size()
    one = hy.taylor_adaptive(system, np.zeros(4 * width - 1), pars=np.ones(4 + width), tol=tolerance)
    batch = hy.taylor_adaptive_batch(
        system, np.zeros((4 * width - 1, lanes)), pars=np.ones((4 + width, lanes)), tol=tolerance
    )

    def alone() -> np.ndarray:
        found = np.empty((n, width))
        for i in range(n):
            one.time, one.state[:], one.pars[:] = 0.0, 0.0, parameters[i]
            one.propagate_until(t_end)
            found[i] = one.state[:width]
        return found

    def together() -> np.ndarray:
        found = np.empty((n, width))
        for first in range(0, n, lanes):
            rows = np.minimum(np.arange(first, first + lanes), n - 1)
            batch.set_time(0.0)
            batch.state[:], batch.pars[:] = 0.0, parameters[rows].T
            batch.propagate_until(t_end)
            found[rows] = batch.state[:width].T
        return found

    # As many in a batch as heyoka recommends for the processor, so that the name is the same everywhere.
    return {"heyoka, our reduced equations": alone, "heyoka in batches, our reduced equations": together}
