"""The full flow of many classes in jax with diffrax (Dopri8), with K + 1 columns of Y and the tokens of each class."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np

from dynamics import SequenceClasses

jax.config.update("jax_enable_x64", True)


def solver(classes: SequenceClasses, *, eta_y, eta_z, t_end, rtol, atol):
    """A function that returns Z at the end, from Lemma 1 in jax: six tokens a class, one column for what is unseen."""
    data = classes.population()
    n_classes = len(data)
    token, p = jnp.asarray(data.token.reshape(n_classes, -1)), jnp.asarray(data.count.reshape(n_classes, -1))
    multiplicity = jnp.append(jnp.ones(n_classes), classes.vocab_size - n_classes)
    target, weight = jnp.eye(n_classes, n_classes + 1), jnp.asarray(data.weight)

    def right_hand_side(_, state, __):
        z, Y = state
        c = p * jnp.exp(z[token] - z[token].max(axis=1, keepdims=True))
        f = c / jnp.linalg.norm(c, axis=1, keepdims=True)
        u = jnp.einsum("nd,ndc->nc", f, Y[token])
        e = jnp.exp(u - u.max(axis=1, keepdims=True))
        r = target - e / (e @ multiplicity)[:, None]
        g = jnp.einsum("nc,ndc->nd", r * multiplicity, Y[token])
        dz = weight[:, None] * f * (g - f * (f * g).sum(axis=1, keepdims=True))
        dY = (weight[:, None] * f)[:, :, None] * r[:, None, :]
        return (
            eta_z * jnp.zeros_like(z).at[token].add(dz),
            eta_y * jnp.zeros_like(Y).at[token].add(dY),
        )

    @jax.jit
    def solve():
        start = (jnp.zeros(data.n_tokens), jnp.zeros((data.n_tokens, n_classes + 1)))
        controller = diffrax.PIDController(rtol=rtol, atol=atol)
        term, end = diffrax.ODETerm(right_hand_side), t_end
        options = {"stepsize_controller": controller, "max_steps": 100_000}
        return diffrax.diffeqsolve(term, diffrax.Dopri8(), 0.0, end, None, start, **options).ys[0][0]

    return lambda: np.asarray(solve())
