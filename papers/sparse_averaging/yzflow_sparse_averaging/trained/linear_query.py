r"""An attention unit for sparse averaging: a query linear in the set, one key per token, a value matrix.

For token i with the set y_i,

.. math:: s_i = K \sum_{j \in y_i} w_j, \qquad a_i = \mathrm{softmax}(s_i), \qquad f(X)_i = V^T \sum_l a_{il} z_l

with rows w_j of W (N, m), K (N, m) and V (d', d'). Attention depends on the set alone.

Source: the task is that of Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynamics.backend.compiled import kernel
from dynamics.support import checks
from dynamics.support.checks import read_only
from dynamics.support.frozen import Frozen
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.attention_unit import AttentionUnit, attention_weights

__all__ = ["LinearQueryUnit"]

# Name of each matrix of a unit, and of its axes.
MATRICES = {"query": ("token", "dimension"), "key": ("token", "dimension"), "value": ("input", "output")}


@dataclass(frozen=True, eq=False)
class LinearQueryUnit(Frozen):
    """The trained unit: queries ``sum_{j in y} w_j``, one key a token, and values ``V^T z``.

    Parameters
    ----------
    query, key : (N, m) arrays
        W and K.
    value : (d', d') array
        V.

    Raises
    ------
    ValueError
        If an entry is not finite, or shapes do not fit.
    """

    query: np.ndarray
    key: np.ndarray
    value: np.ndarray

    def __post_init__(self) -> None:
        for name in MATRICES:
            array = checks.finite_array(name, getattr(self, name), ndim=2)
            if 0 in array.shape:
                raise checks.reject(name, "have at least one row and one column", f"shape {array.shape}")
            object.__setattr__(self, name, read_only(array))
        if self.key.shape != self.query.shape:
            raise checks.reject("key", f"have the shape of the query, {self.query.shape}", f"shape {self.key.shape}")
        if self.value.shape[0] != self.value.shape[1]:
            raise checks.reject("value", "be square", f"shape {self.value.shape}")

    @property
    def matrices(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """W, K, V."""
        return self.query, self.key, self.value

    @classmethod
    def random(
        cls, n_tokens: int, value_dim: int, embedding_dim: int, rng: np.random.Generator | int
    ) -> LinearQueryUnit:
        """Independent normal entries of variance 1/m in W and K, and V = 1: attention is close to uniform."""
        sizes = {"n_tokens": n_tokens, "value_dim": value_dim, "embedding_dim": embedding_dim}
        n_tokens, value_dim, m = (checks.integer(name, size, minimum=1) for name, size in sizes.items())
        checks.fits_in_memory("n_tokens", 8 * (4 * n_tokens * m + 2 * value_dim**2), "draw matrices")
        rng = checks.generator("rng", rng)
        query, key = rng.normal(scale=m**-0.5, size=(2, n_tokens, m))
        return cls(query, key, np.eye(value_dim))

    def attention(self, y: ArrayLike) -> np.ndarray:
        """Attention for each set of ``y`` (.., R, q): (.., R, N)."""
        return attention_weights(self.query[tasks.checked_sets(y, len(self.query))].sum(axis=-2), self.key)

    def loss(self, z: ArrayLike, y: ArrayLike) -> float:
        """Mean squared error ``mean_i |f(X)_i - qSA(X)_i|^2`` over tokens and inputs z (b, N, d'), y (b, N, q)."""
        return self._loss_and_gradient(z, y)[0]

    def gradient(self, z: ArrayLike, y: ArrayLike) -> LinearQueryUnit:
        """Gradient of minus the loss, as a unit."""
        return LinearQueryUnit(*self._loss_and_gradient(z, y)[1])

    def _loss_and_gradient(self, z, y):
        z, y = tasks.checked_qsa(z, y)
        if z.ndim != 3 or z.shape[1:] != (len(self.query), len(self.value)):
            expected = f"({len(self.query)}, {len(self.value)})"
            raise checks.reject("z", f"have shape (inputs, {expected[1:]}", f"shape {z.shape}")
        gradient = tuple(np.empty(matrix.shape) for matrix in self.matrices)
        return loss_and_gradient(read_only(z), read_only(y), self.matrices, gradient), gradient

    def expected_loss(self, y: ArrayLike) -> float:
        r"""The loss for uniform z in the unit ball and the sets ``y`` (R, q), each as likely.

        The vectors have mean zero and covariance 1/(d' + 2), so that the expectation of the squared error is
        ``sum_l ||a_l V - 1{l in y}/q||_F^2 / (d' + 2)``, with the identity beside the last term.
        """
        y = tasks.checked_sets(y, len(self.query))
        if y.ndim != 2:
            raise checks.reject("y", "have 2 axes", f"shape {y.shape}")
        target = np.zeros((len(y), len(self.query)))
        np.put_along_axis(target, y, 1 / y.shape[1], axis=1)
        attention = self.attention(y)
        with np.errstate(over="ignore"):
            squares = (attention**2).sum(axis=1) * (self.value**2).sum() + (target**2).sum(axis=1) * len(self.value)
            squares -= 2 * (attention * target).sum(axis=1) * self.value.trace()
            return float(squares.mean() / (len(self.value) + 2))

    def unit(self) -> AttentionUnit:
        """The same as an `AttentionUnit` on the tokens of `instances.qsa_tokens`.

        phi gives (z_i, indicator of y_i, indicator of i), and Q, K, V select from it.
        """
        (n_tokens, m), dim = self.query.shape, len(self.value)

        def phi(X):
            tokens = X[..., dim:].astype(np.int64)
            one_hot = np.eye(n_tokens)[tokens]
            return np.concatenate([X[..., :dim], one_hot[..., :-1, :].sum(axis=-2), one_hot[..., -1, :]], axis=-1)

        Q = np.concatenate([np.zeros((dim, m)), self.query, np.zeros((n_tokens, m))])
        K = np.concatenate([np.zeros((dim + n_tokens, m)), self.key])
        return AttentionUnit(Q, K, np.concatenate([self.value, np.zeros((2 * n_tokens, dim))]), phi=phi)


@kernel(fastmath={"reassoc", "contract"})
def _qsa_kernel(z, y, B, V, dB, dV):
    """The loss of a batch; the gradient of minus the loss is added into ``dB`` and ``dV``; ``B = W K^T`` (N, N).

    With g = sum_l a_l z_l and the error e = V^T g - qSA: dV = -2 g e^T; with u = -2 V e, da_l = <z_l, u>, and through
    the softmax ds_l = a_l (da_l - sum_k a_k da_k), which goes to the rows of B that y names.
    """
    n_inputs, n_tokens, dim = z.shape
    size = y.shape[2]
    share = 1.0 / (n_inputs * n_tokens)
    a, da = np.empty(n_tokens), np.empty(n_tokens)
    g, e, u = np.empty(dim), np.empty(dim), np.empty(dim)
    loss = 0.0
    for b in range(n_inputs):
        for i in range(n_tokens):
            row = y[b, i, 0]
            for token in range(n_tokens):  # by loops, which compile in a fraction of the time that slices take
                a[token] = B[row, token]
            for k in range(1, size):
                row = y[b, i, k]
                for token in range(n_tokens):
                    a[token] += B[row, token]
            top = a[0]
            for token in range(n_tokens):
                top = max(top, a[token])
            total = 0.0
            for token in range(n_tokens):
                a[token] = np.exp(a[token] - top)
                total += a[token]
            for c in range(dim):
                g[c] = 0
            for token in range(n_tokens):
                a[token] /= total
                for c in range(dim):
                    g[c] += a[token] * z[b, token, c]
            for c in range(dim):
                e[c] = 0
                for k in range(size):
                    e[c] -= z[b, y[b, i, k], c] / size
            for r in range(dim):
                for c in range(dim):
                    e[c] += V[r, c] * g[r]
            for r in range(dim):
                loss += share * e[r] * e[r]
                u[r] = 0
                for c in range(dim):
                    u[r] -= 2 * share * V[r, c] * e[c]
                    dV[r, c] -= 2 * share * g[r] * e[c]
            mean = 0.0
            for token in range(n_tokens):
                da[token] = 0
                for c in range(dim):
                    da[token] += z[b, token, c] * u[c]
                mean += a[token] * da[token]
            for k in range(size):
                row = y[b, i, k]
                for token in range(n_tokens):
                    dB[row, token] += a[token] * (da[token] - mean)
    return loss


def loss_and_gradient(
    z: np.ndarray, y: np.ndarray, matrices: Sequence[np.ndarray], gradient: Sequence[np.ndarray]
) -> float:
    """The loss of a batch; the gradient of minus the loss for W, K, V goes into ``gradient``."""
    W, K, V = matrices
    dW, dK, dV = gradient
    dB = np.zeros((len(W), len(W)))
    dV[:] = 0
    loss = _qsa_kernel(z, y, read_only(W @ K.T), read_only(V[:]), dB, dV)
    np.matmul(dB, K, out=dW)
    np.matmul(dB.T, W, out=dK)
    return loss
