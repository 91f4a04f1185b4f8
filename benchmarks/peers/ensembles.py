"""Many flows of Theorem 4's setting in diffrax under vmap, and by scipy on one stacked state: the reduced equations.

Both are told all reductions of ours: 4 D + 3 numbers a member, full decoder.
"""

from collections.abc import Callable, Mapping

import numpy as np
from scipy.integrate import DOP853

VMAP_NAME = "diffrax Dopri8 under vmap, jax, our reduced equations"
STACKED_NAME = "scipy DOP853, stacked, largest norm over members, our reduced equations"


def field(xp, state, member, count):
    """The derivative of a state, whose last axis holds its numbers; members' K, M, eta_Y, eta_Z likewise."""
    D = count.shape[-1] - 1
    K, M, eta_y, eta_z = (member[..., i, None] for i in range(4))
    z, a, b = state[..., : D + 1], state[..., D + 1, None], state[..., D + 2, None]
    p, q, r = (state[..., D + 3 + i * D : D + 3 + (i + 1) * D] for i in range(3))
    f = count * xp.exp(z - z.max(axis=-1, keepdims=True))
    f = f / xp.sqrt((f * f).sum(axis=-1, keepdims=True))
    shared, own = f[..., :1], f[..., 1:]
    u = [shared * s + (own * t).sum(axis=-1, keepdims=True) for s, t in ((a, p), (a, q), (b, r))]
    top = xp.maximum(xp.maximum(u[0], u[1]), u[2])
    e = [xp.exp(one - top) for one in u]
    others = (K - 1) * e[1] + (M - K) * e[2]
    total = others + e[0]
    r_own, r_other, r_rest = others / total, -e[1] / total, -e[2] / total
    g = xp.concatenate(
        [
            (r_own + (K - 1) * r_other) * a + (M - K) * r_rest * b,
            r_own * p + (K - 1) * r_other * q + (M - K) * r_rest * r,
        ],
        axis=-1,
    )
    dz = f * (g - f * (f * g).sum(axis=-1, keepdims=True)) * eta_z
    rate = eta_y / K
    return xp.concatenate(
        [
            dz[..., :1],
            dz[..., 1:] / K,
            rate * shared * (r_own + (K - 1) * r_other),
            rate * shared * K * r_rest,
            rate * own * r_own,
            rate * own * r_other,
            rate * own * r_rest,
        ],
        axis=-1,
    )


def arrays(settings: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Rows K, M, eta_Y, eta_Z and counts of settings as `gradient_flow_ensemble` takes them."""
    names = ("n_classes", "vocab_size", "eta_y", "eta_z")
    members = np.stack([np.asarray(settings[name], dtype=float) for name in names], axis=1)
    distinct = np.broadcast_to(settings["distinct"], (len(members), len(settings["distinct"])))
    return members, np.concatenate([np.asarray(settings["common"])[:, None], distinct], axis=1)


def vmapped(settings: Mapping[str, np.ndarray], *, t_end: float, rtol: float, atol: float) -> Callable[[], np.ndarray]:
    """A function that returns z of every member at the end; its first call compiles."""
    import diffrax
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
    members, counts = (jnp.asarray(part) for part in arrays(settings))
    width = counts.shape[1]

    def one(member, count):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(lambda t, y, args: field(jnp, y, member, count)),
            diffrax.Dopri8(),
            0.0,
            t_end,
            None,
            jnp.zeros(4 * width - 1),
            saveat=diffrax.SaveAt(t1=True),
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
            max_steps=1_000_000,
        )
        return solution.ys[0][:width]

    integrate = jax.jit(jax.vmap(one))
    return lambda: np.asarray(integrate(members, counts))


class _Largest(DOP853):
    """DOP853 on members side by side, whose error is the largest of any member's."""

    members = 1

    def _estimate_error_norm(self, K, h, scale):
        size = self.n // self.members
        fifth, third = (((K.T @ E / scale).reshape(self.members, size) ** 2).sum(axis=1) for E in (self.E5, self.E3))
        with np.errstate(invalid="ignore"):
            norms = np.abs(h) * fifth / np.sqrt((fifth + 0.01 * third) * size)
        return float(np.nan_to_num(norms).max())


def stacked(settings: Mapping[str, np.ndarray], *, t_end: float, rtol: float, atol: float) -> np.ndarray:
    """z of every member at the end: every member takes the steps that the worst one needs."""
    members, counts = arrays(settings)
    n, width = counts.shape

    def right_hand_side(_, state):
        return field(np, state.reshape(n, -1), members, counts).ravel()

    kind = type("Stacked", (_Largest,), {"members": n})
    solver = kind(right_hand_side, 0.0, np.zeros(n * (4 * width - 1)), t_end, rtol=rtol, atol=atol)
    while solver.status == "running":
        solver.step()
    return solver.y.reshape(n, -1)[:, :width]
