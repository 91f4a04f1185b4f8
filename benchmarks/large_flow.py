"""The full flow of many classes to t = 1e5, with and without use of their symmetry, beside diffrax (Dopri8)."""

import diffrax
import jax
import jax.numpy as jnp
import numpy as np
import scipy.sparse

from benchmarks import Row, paired_seconds
from dynamics import SequenceClasses, gradient_flow

_SETTING = {"eta_y": 1.0, "eta_z": 0.5, "t_end": 1e5, "rtol": 1e-8, "atol": 1e-10}


def perturbed(n_classes: int, vocab_size: int, seed: int = 0) -> SequenceClasses:
    """Classes with a common token and five own ones each, all probabilities different."""
    rng = np.random.default_rng(seed)
    table = SequenceClasses.single_common_token(n_classes, vocab_size).probabilities
    table.data *= np.exp(0.2 * rng.normal(size=table.data.size))
    table = scipy.sparse.diags_array(1 / np.asarray(table.sum(axis=1)).ravel()) @ table
    return SequenceClasses(table, np.zeros(n_classes, dtype=int), vocab_size=vocab_size)


def diffrax_flow(classes: SequenceClasses):
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
            _SETTING["eta_z"] * jnp.zeros_like(z).at[token].add(dz),
            _SETTING["eta_y"] * jnp.zeros_like(Y).at[token].add(dY),
        )

    @jax.jit
    def solve():
        start = (jnp.zeros(data.n_tokens), jnp.zeros((data.n_tokens, n_classes + 1)))
        controller = diffrax.PIDController(rtol=_SETTING["rtol"], atol=_SETTING["atol"])
        term, end = diffrax.ODETerm(right_hand_side), _SETTING["t_end"]
        options = {"stepsize_controller": controller, "max_steps": 100_000}
        return diffrax.diffeqsolve(term, diffrax.Dopri8(), 0.0, end, None, start, **options).ys[0][0]

    return lambda: np.asarray(solve())


def run() -> list[Row]:
    jax.config.update("jax_enable_x64", True)
    rows = []
    for name, classes in (
        ("asymmetric", perturbed(200, 20_000)),
        ("exchangeable", SequenceClasses.single_common_token(200, 20_000)),
    ):

        def ours(classes=classes):
            return gradient_flow(classes, times=[_SETTING["t_end"]], **_SETTING).final.Z[0]

        peer = diffrax_flow(classes)
        expected = peer()
        disagreement = float(np.abs(ours() - expected).max() / np.abs(expected).max())
        if disagreement > 1e-5:
            raise RuntimeError(f"the two flows disagree by {disagreement:.1e}; their times do not compare")
        seconds = paired_seconds(ours, peer, runs=1)
        rows.append(
            Row(f"full flow, K = 200, {name}, to t = 1e5", seconds[0], "diffrax Dopri8", seconds[1], disagreement)
        )
    return rows
