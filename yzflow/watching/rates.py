"""Learning rates of the reparameterised matrices Y and Z, from the factors that a model trains."""

from __future__ import annotations

import numpy as np

from yzflow.watching.adapters import Matrices

__all__ = ["induced"]


def induced(factors: Matrices, rate: float, tokens: np.ndarray, following: np.ndarray) -> tuple[float, float]:
    r"""Learning rates (eta_Y, eta_Z) with which plain steps on the factors move Y and Z at this moment.

    A step of rate eta on the factors moves Z by the kernel :math:`\eta\, (\partial Z/\partial\theta)(\partial
    Z/\partial\theta)^T` on its gradient, and Y likewise. The rates are eta times the mean of the kernels' diagonals
    over the tokens given: with z = e_q W_Q W_K^T e_l/s, q = W_Q^T e_q and k = W_K^T e_l that of z is

    .. math:: (\|e_q\|^2 \|k\|^2 + \|e_l\|^2 \|q\|^2 + \|W_Q k\|^2 + \|W_K q\|^2)/s^2.

    For orthogonal embeddings and matrices with orthogonal columns of one length these are the rates of finding 27. The
    normalisation of a model with LayerNorm is left out.

    Parameters
    ----------
    factors : Matrices
    rate : float
        eta, per step.
    tokens, following : int array
        Tokens and next tokens that the mean is over.
    """
    e, u = factors.embedding[tokens], factors.unembedding[following]
    q, k, v = e @ factors.query, e @ factors.key, e @ factors.value
    size = _mean(e)
    of_z = size * (_mean(k) + _mean(q)) + _mean(k @ factors.query.T) + _mean(q @ factors.key.T)
    o = u @ factors.output.T
    of_y = size * _mean(o) + _mean(v) * _mean(u) + _mean(v @ factors.output) + _mean(o @ factors.value.T)
    return rate * of_y, rate * of_z / factors.scale**2


def _mean(rows: np.ndarray) -> float:
    """Mean of the squared norms of rows."""
    return float((rows**2).sum(axis=1).mean())
