"""The full flow in diffrax: the right-hand side of `numpy_flow` in jax, compiled, double precision, Dopri8."""

from collections.abc import Callable

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from dynamics import SequenceClasses

jax.config.update("jax_enable_x64", True)

NAME = "diffrax Dopri8, jax"
REDUCED_NAME = "diffrax Dopri8, jax, our K + 1 columns"


def flow(
    classes: SequenceClasses,
    *,
    eta_y: float,
    eta_z: float,
    t_end: float,
    rtol: float,
    atol: float,
    reduced=False,
    times: int = 1,
) -> Callable[[], np.ndarray]:
    """A function that returns Z at ``t_end``; its first call compiles.

    ``reduced`` lets it use what `Layer.zeros` knows: next tokens that never occur have equal columns of Y. It records
    both arrays at so many ``times``, equally spaced.
    """
    probabilities = jnp.asarray(classes.probabilities.toarray())
    n_classes, n_tokens = probabilities.shape
    columns = n_classes + 1 if reduced else classes.vocab_size
    target = jnp.eye(n_classes, columns)
    mass = jnp.ones(columns)
    if reduced:
        mass = mass.at[-1].set(classes.vocab_size - n_classes)

    def right_hand_side(_, state, __):
        z, Y = state
        f = probabilities * jnp.exp(z)
        f = f / jnp.linalg.norm(f, axis=1, keepdims=True)
        u = f @ Y
        alpha = jnp.exp(u - u.max(axis=1, keepdims=True))
        r = target - alpha / (alpha @ mass)[:, None]
        g = (r * mass) @ Y.T
        dz = (f * (g - f * (f * g).sum(axis=1, keepdims=True))).mean(axis=0)
        return eta_z * dz, eta_y / n_classes * f.T @ r

    save = diffrax.SaveAt(t1=True) if times == 1 else diffrax.SaveAt(ts=jnp.linspace(0.0, t_end, times))

    @jax.jit
    def integrate(start):
        solution = diffrax.diffeqsolve(
            diffrax.ODETerm(right_hand_side),
            diffrax.Dopri8(),
            0.0,
            t_end,
            None,
            start,
            saveat=save,
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=atol),
            max_steps=1_000_000,
        )
        return solution.ys

    start = jnp.zeros(n_tokens), jnp.zeros((n_tokens, columns))
    return lambda: np.asarray(jax.block_until_ready(integrate(start))[0][-1])
