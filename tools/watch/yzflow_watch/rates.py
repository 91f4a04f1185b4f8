"""Learning rates of the reparameterised matrices Y and Z, from the factors in a model."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from yzflow_watch.adapters import Matrices

__all__ = ["induced"]


def induced(
    factors: Matrices, rate: float | Mapping[str, float], tokens: np.ndarray, following: np.ndarray
) -> tuple[float, float]:
    r"""Learning rates (eta_Y, eta_Z) with which plain steps on the factors move Y and Z at this moment.

    A step of rate eta on the factors moves Z by the kernel :math:`\eta\, (\partial Z/\partial\theta)(\partial
    Z/\partial\theta)^T` on its gradient, and Y likewise. The rates are eta times the mean of the kernels' diagonals
    over the tokens given: with z = e_q W_Q W_K^T e_l/s, q = W_Q^T e_q and k = W_K^T e_l that of z is

    .. math:: (\|e_q\|^2 \|k\|^2 + \|e_l\|^2 \|q\|^2 + \|W_Q k\|^2 + \|W_K q\|^2)/s^2.

    and the diagonal of y = e_l W_V W_O u_n likewise, with a term for each of the four factors. A factor that stands
    still, or is missing, has no term. For orthogonal embeddings and matrices with orthogonal columns of one length
    these are the rates of finding 27. The normalisation of a model with LayerNorm is left out.

    Parameters
    ----------
    factors : Matrices
    rate : float or mapping
        eta per step, or the rate of each matrix by its name. A matrix without a rate stands still.
    tokens, following : int array
        The tokens and next tokens of the mean.
    """
    e, u, still = factors.embedding[tokens], factors.unembedding[following], factors.still
    q = e @ factors.query
    k, back_k = (e, q) if factors.key is None else (e @ factors.key, q @ factors.key.T)
    o = u @ factors.output.T
    v, back_v = (e, o) if factors.value is None else (e @ factors.value, o @ factors.value.T)
    size = _mean(e)
    of_z = {"query": size * _mean(k), "embedding": _mean(k @ factors.query.T) + _mean(back_k)}
    of_y = {"output": _mean(v) * _mean(u), "unembedding": _mean(v @ factors.output), "embedding": _mean(back_v)}
    if factors.key is not None:
        of_z["key"] = size * _mean(q)
    if factors.value is not None:
        of_y["value"] = size * _mean(o)
    rates = rate if isinstance(rate, Mapping) else dict.fromkeys((*of_y, *of_z), rate)
    eta_y, eta_z = (
        sum(rates.get(name, 0.0) * term for name, term in of.items() if name not in still) for of in (of_y, of_z)
    )
    return eta_y, eta_z / factors.scale**2


def _mean(rows: np.ndarray) -> float:
    """Mean of the squared norms of rows."""
    return float((rows**2).sum(axis=1).mean())
