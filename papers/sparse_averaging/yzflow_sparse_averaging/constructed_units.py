"""Certificates and the moment curve as attention units for q-sparse averaging.

Source: Sanford, Hsu, Telgarsky (NeurIPS 2023), arXiv 2306.02896, Theorem 2. The units read the tokens (z_i, y_i, i) of
`yzflow_sparse_averaging.instances.qsa_tokens`: the key depends on i, the query on y_i, the value is z_i.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks
from yzflow_sparse_averaging.attention_unit import AttentionUnit, FixedPoint, Precision
from yzflow_sparse_averaging.keys import RHO, certificate, temperature
from yzflow_sparse_averaging.moments import MomentCurve


def random_keys_unit(
    keys: ArrayLike,
    q: int,
    *,
    error: float,
    value_dimension: int = 1,
    method: str = "exclusion",
    bits: int | None = None,
) -> AttentionUnit:
    """q-sparse averaging by random keys and certificates: every row of attention is within ``error`` of 1_y/q in L1.

    A certificate is computed for each new subset that the unit meets, and kept.

    Parameters
    ----------
    keys : (N, m) array
        See `random_keys`.
    q : int
    error : float
        eps; with ``bits`` it holds before rounding.
    value_dimension : int
        d'.
    method : str
        See `certificate`.
    bits : int, optional
        p: queries, keys and values are rounded to p-bit fixed-point numbers, of one range for all subsets. Queries up
        to ``2 tau max_i ||u_i||_inf sqrt(q)`` are in range, larger entries saturate.

    Raises
    ------
    yzflow_sparse_averaging.averaging.Infeasible
        By the unit, at a subset without a certificate.
    """
    keys = checks.finite_array("keys", keys, ndim=2)
    if keys.size == 0:
        raise checks.reject("keys", "have at least one row and one column", f"shape {keys.shape}")
    scale = temperature(n_tokens=len(keys), q=q, error=error) or 1.0
    known: dict[tuple[int, ...], np.ndarray | None] = {}

    def query(subset: tuple[int, ...]) -> np.ndarray | None:  # never None: a missing certificate raises
        if subset not in known:
            known[subset] = certificate(keys, subset, method=method, rho=RHO).query
        return known[subset]

    precision = None
    if bits is not None:
        key_range = float(np.abs(keys).max()) * (1 + 2.0**-40)
        precision = Precision(
            query=FixedPoint.covering(bits, 2 * scale * key_range * np.sqrt(q)),
            key=FixedPoint.covering(bits, 2 * key_range),
            value=FixedPoint.covering(bits, 2.0),
        )
    return _unit(query, keys, q, value_dimension, scale, precision)


def moment_curve_unit(curve: MomentCurve, *, error: float, value_dimension: int = 1) -> AttentionUnit:
    """q-sparse averaging by the moment curve with m = 2q: scores are exact integers, without rounding."""
    scale = checks.instance("curve", curve, MomentCurve).temperature(error) or 1.0
    return _unit(curve.query, curve.keys(), curve.q, value_dimension, scale, None)


def _unit(
    query: Callable, keys: np.ndarray, q: int, value_dimension: int, scale: float, precision: Precision | None
) -> AttentionUnit:
    value_dimension = checks.integer("value_dimension", value_dimension, minimum=1)

    def queries(X):
        subsets = X[..., value_dimension : value_dimension + q].astype(np.int64)
        found = [query(tuple(subset.tolist())) for subset in subsets.reshape(-1, q)]
        return np.array(found, dtype=keys.dtype).reshape(*subsets.shape[:-1], keys.shape[1])

    return AttentionUnit.from_maps(
        queries,
        lambda X: keys[X[..., -1].astype(np.int64)],
        lambda X: X[..., :value_dimension],
        embedding_dim=keys.shape[1],
        scale=scale,
        precision=precision,
    )
