"""Which (eta_Y, eta_Z) one learning rate on the original parameters induces: the open point of Appendix G.

Y = U W_V^T U^T and Z = U W_Q W_K^T U^T/sqrt(d), with embeddings U (M, d). Gradient ascent on (2) with one rate eta
moves them by a kernel on the gradients G_Y = dJ/dY and G_Z = dJ/dZ. With A = W_V^T and B = W_Q W_K^T/sqrt(d),

    dY/dt = U' A U^T + U A' U^T + U A U'^T,   A' = eta U^T G_Y U,
    U' = eta (G_Y U A^T + G_Y^T U A + G_Z U B^T + G_Z^T U B),

and dZ/dt alike. Paper: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Section 3.1 and Appendix G.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
import scipy
import xarray as xr
from matplotlib.figure import Figure
from numpy.typing import ArrayLike

from dynamics import Bags, Layer, SequenceClasses, gradient_flow
from dynamics.support import checks
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLUE, GREEN, VERMILION, canvas, styled


class Parameters(NamedTuple):
    """U (M, d) and the matrices W_V, W_Q, W_K (d, d)."""

    U: np.ndarray
    W_V: np.ndarray
    W_Q: np.ndarray
    W_K: np.ndarray

    def logits(self) -> tuple[np.ndarray, np.ndarray]:
        """Y and Z, (M, M) each."""
        U = self.U
        return U @ self.W_V.T @ U.T, U @ self.W_Q @ self.W_K.T @ U.T / np.sqrt(U.shape[1])


def induced_rates(
    *,
    eta: float,
    width: int,
    embedding: ArrayLike = 1.0,
    value: ArrayLike = 1.0,
    query: ArrayLike = 1.0,
    key: ArrayLike = 1.0,
) -> tuple[Any, Any]:
    """(eta_Y, eta_Z) at initialisation, for orthogonal matrices of given scales.

    With U U^T = kappa^2 I, W_V W_V^T = v^2 I, and so on,

        eta_Y = eta kappa^2 (kappa^2 + 2 v^2),   eta_Z = eta kappa^2 (kappa^2 (q^2 + k^2) + 2 q^2 k^2)/d,

    plus terms of random sign, which vanish for v = q = 0: projections on the gradient G of products with rotations.
    Over rotations these have mean zero, but for one: a rotation's square has the mean I/d, so that 2 v^2 becomes
    2 v^2 (1 + <G, G^T>/(d |G|^2)) in the mean, and 2 q^2 k^2 alike. Gaussian entries of variance s^2 have
    kappa^2 = s_U^2 d, v^2 = s_V^2 d in the mean. All scales 1: eta_Y = 3 eta and eta_Z = 4 eta/d, eta_Y/eta_Z = 3 d/4:
    Assumption 1(c) holds for wide layers.

    Parameters
    ----------
    eta : float
        The one learning rate, positive.
    width : int
        d.
    embedding, value, query, key : float
        kappa, v, q, k, at or above zero.
    """
    eta, d = checks.positive("eta", eta), checks.integer("width", width, minimum=1)
    kappa, v, q, k = (
        checks.non_negative_array(name, scale) ** 2
        for name, scale in (("embedding", embedding), ("value", value), ("query", query), ("key", key))
    )
    return (eta * kappa * (kappa + 2 * v))[()], (eta * kappa * (kappa * (q + k) + 2 * q * k) / d)[()]


def orthogonal(rng: np.random.Generator, size: int, scale: float) -> np.ndarray:
    """A random rotation or reflection, times ``scale``."""
    Q, R = np.linalg.qr(rng.normal(size=(size, size)))
    return scale * Q * np.sign(np.diag(R))


def start(
    rng: np.random.Generator,
    *,
    tokens: int,
    width: int,
    embedding: float = 1.0,
    value: float = 1.0,
    query: float = 1.0,
    key: float = 1.0,
    gaussian: bool = False,
) -> Parameters:
    """Initial parameters: orthogonal matrices (d = M is needed), or Gaussian ones of the same mean squares."""
    if gaussian:
        scale = 1 / np.sqrt(width)
        U = rng.normal(size=(tokens, width)) * scale * embedding
        return Parameters(U, *(rng.normal(size=(width, width)) * scale * s for s in (value, query, key)))
    if tokens != width:
        raise checks.reject("width", f"be {tokens}, the number of tokens, for orthogonal embeddings", width)
    return Parameters(*(orthogonal(rng, width, s) for s in (embedding, value, query, key)))


def gradients(bags: Bags, parameters: Parameters, query: int) -> tuple[np.ndarray, np.ndarray]:
    """G_Y and G_Z at these parameters; all bags have the one query token ``query``."""
    Y, Z = parameters.logits()
    slopes = Layer(np.ascontiguousarray(Z[[query]]), Y).gradient(bags)
    G_Z = np.zeros_like(Z)
    G_Z[query] = slopes.Z[0]
    return slopes.Y, G_Z


def velocity(parameters: Parameters, G_Y: np.ndarray, G_Z: np.ndarray, eta: float) -> Parameters:
    """Gradient ascent with one rate."""
    U, W_V, W_Q, W_K = parameters
    root = np.sqrt(U.shape[1])
    B, inner = W_Q @ W_K.T / root, U.T @ G_Z @ U / root
    dU = G_Y @ U @ W_V + G_Y.T @ U @ W_V.T + G_Z @ U @ B.T + G_Z.T @ U @ B
    return Parameters(eta * dU, eta * (U.T @ G_Y @ U).T, eta * inner @ W_K, eta * inner.T @ W_Q)


def moved(parameters: Parameters, rate: Parameters) -> tuple[np.ndarray, np.ndarray]:
    """dY/dt and dZ/dt by the product rule."""
    (U, W_V, W_Q, W_K), (dU, dV, dQ, dK) = parameters, rate
    B, dB = W_Q @ W_K.T, dQ @ W_K.T + W_Q @ dK.T
    dY = dU @ W_V.T @ U.T + U @ dV.T @ U.T + U @ W_V.T @ dU.T
    return dY, (dU @ B @ U.T + U @ dB @ U.T + U @ B @ dU.T) / np.sqrt(U.shape[1])


def effective(bags: Bags, parameters: Parameters, *, eta: float, query: int) -> dict[str, float]:
    """eta_Y = <dY/dt, G_Y>/|G_Y|^2 and its cosine, and the same of Z."""
    G = gradients(bags, parameters, query)
    rates = moved(parameters, velocity(parameters, *G, eta))
    found: dict[str, float] = {}
    for name, dX, slope in zip(("y", "z"), rates, G, strict=True):
        along, square = float((dX * slope).sum()), float((slope * slope).sum())
        found[f"eta_{name}"] = along / square if square else np.nan
        found[f"cosine_{name}"] = along / np.sqrt(square * (dX * dX).sum()) if square else np.nan
    return found


def conserved(parameters: Parameters) -> tuple[float, float]:
    """|U|^2 - 2 |W_V|^2 - 2 |W_Q|^2 and |W_Q|^2 - |W_K|^2: constant under gradient flow, for any data."""
    U, V, Q, K = (float((X * X).sum()) for X in parameters)
    return U - 2 * V - 2 * Q, Q - K


def simulate(
    bags: Bags, first: Parameters, *, eta: float, times: ArrayLike, query: int = 0, rtol: float = 1e-7
) -> tuple[list[Parameters], np.ndarray]:
    """The gradient flow of the original parameters: the parameters at ``times``, and the loss there."""
    times = checks.finite_array("times", times, ndim=1)
    shapes = [X.shape for X in first]
    ends = np.cumsum([X.size for X in first])[:-1]

    def unpack(y: np.ndarray) -> Parameters:
        return Parameters(*(part.reshape(shape) for part, shape in zip(np.split(y, ends), shapes, strict=True)))

    def rate(t: float, y: np.ndarray) -> np.ndarray:
        parameters = unpack(y)
        return np.concatenate([X.ravel() for X in velocity(parameters, *gradients(bags, parameters, query), eta)])

    initial = np.concatenate([X.ravel() for X in first])
    solution = scipy.integrate.solve_ivp(
        rate, (0.0, float(times[-1])), initial, method="DOP853", t_eval=times, rtol=rtol, atol=1e-3 * rtol
    )
    if not solution.success:
        raise RuntimeError(f"the flow of the original parameters stopped: {solution.message}")
    states = [unpack(y) for y in solution.y.T]
    loss = []
    for state in states:
        Y, Z = state.logits()
        loss.append(Layer(np.ascontiguousarray(Z[[query]]), np.ascontiguousarray(Y)).loss(bags))
    return states, np.array(loss)


def against_induced(
    *,
    n_classes: int = 4,
    n_distinct: int = 3,
    common: float = 0.5,
    eta: float = 0.05,
    t_end: float = 400.0,
    n_times: int = 9,
    value: float = 0.0,
    query: float = 0.0,
    embedding: float = 1.0,
    key: float = 1.0,
    seed: int = 0,
) -> xr.Dataset:
    """One rate on the original parameters beside the flow of Y and Z with the rates induced at the start.

    Orthogonal embeddings, d = M = 1 + K D tokens, one common token, which is the query. With ``value`` and ``query`` 0,
    Y = Z = 0 at first and the induced rates are exact there.

    Returns
    -------
    xarray.Dataset
        Over ``time``: ``z`` and ``loss`` of the original parameters, ``z_induced`` and ``loss_induced`` of Y and Z;
        ``eta_y``, ``eta_z``, ``cosine_y``, ``cosine_z`` as they change. Attributes: the rates predicted.
    """
    share = (1 - common) / n_distinct
    size = 1 + n_classes * n_distinct
    classes = SequenceClasses.single_common_token(n_classes, size, common=common, distinct=[share] * n_distinct)
    bags = classes.population()
    first = start(
        np.random.default_rng(seed), tokens=size, width=size, embedding=embedding, value=value, query=query, key=key
    )
    times = np.linspace(0, t_end, n_times)
    states, loss = simulate(bags, first, eta=eta, times=times)
    eta_y, eta_z = induced_rates(eta=eta, width=size, embedding=embedding, value=value, query=query, key=key)
    Y, Z = first.logits()
    layer = Layer(np.ascontiguousarray(Z[[0]]), np.ascontiguousarray(Y))
    simple = gradient_flow(bags, eta_y=eta_y, eta_z=eta_z, t_end=t_end, times=times, init=layer)
    rows = [effective(bags, state, eta=eta, query=0) for state in states]
    data: dict[str, Any] = {name: ("time", [row[name] for row in rows]) for name in rows[0]}
    data |= {
        "z": ("time", [float(state.logits()[1][0, 0]) for state in states]),
        "z_induced": ("time", simple.dataset["z"].values[:, 0, 0]),
        "loss": ("time", loss),
        "loss_induced": ("time", simple.dataset["loss"].values),
    }
    return xr.Dataset(
        data, {"time": times}, {"eta": eta, "width": size, "predicted_eta_y": eta_y, "predicted_eta_z": eta_z}
    )


# The figure


def _one_rate(effort: Effort) -> dict[str, xr.Dataset]:
    options: dict[str, Any] = {"t_end": 100.0, "n_times": 6} if effort.quick else {"t_end": 300.0, "n_times": 25}
    found = {"d = M = 13": against_induced(**options)}
    if not effort.quick:
        found["d = M = 41"] = against_induced(n_distinct=10, **options)
    return found


def _drift(data: Mapping[str, xr.Dataset]) -> str:
    parts = []
    for name, flow in data.items():
        ratio = flow["eta_y"] / flow["eta_z"]
        first = flow.attrs["predicted_eta_y"] / flow.attrs["predicted_eta_z"]
        parts.append(
            f"{name}: eta_Y/eta_Z is {first:.3g} at the start, {float(ratio[-1]):.2g} at t = "
            f"{float(flow['time'][-1]):g}; eta_Y has grown by "
            f"{float(flow['eta_y'][-1]) / flow.attrs['predicted_eta_y']:.2g}."
        )
    return " ".join(parts)


@styled
def original_rates(data: Mapping[str, xr.Dataset]) -> Figure:
    """Which rates of Y and Z one learning rate on U, W_V, W_Q, W_K induces, and their drift (Appendix G's open point).

    Left: -z of the common token, original parameters (lines) and Y, Z with the rates of the start (dashed). Middle: the
    effective rates over eta, dots: predicted at the start. Right: how far dY/dt and dZ/dt point along the gradients.

    Parameters
    ----------
    data : mapping
        Name -> dataset of `against_induced`.
    """
    figure = canvas(figsize=(11, 3.8))
    left, middle, right = figure.subplots(1, 3)
    for (name, flow), line in zip(data.items(), ("-", "-."), strict=False):
        eta, time = flow.attrs["eta"], flow["time"]
        left.plot(time, -flow["z"], line, color=BLUE, label=f"original, {name}")
        left.plot(time, -flow["z_induced"], "--", color=VERMILION, linewidth=1, label=f"induced, {name}")
        for kind, colour in (("y", GREEN), ("z", VERMILION)):
            middle.plot(
                time, flow[f"eta_{kind}"] / eta, line, color=colour, label=rf"$\eta_{kind.upper()}/\eta$, {name}"
            )
            middle.plot(0, flow.attrs[f"predicted_eta_{kind}"] / eta, "o", color=colour, markersize=5, clip_on=False)
            right.plot(time, flow[f"cosine_{kind}"], line, color=colour, label=f"{kind.upper()}, {name}")
    left.set(ylabel="fall of the common token's logit")
    middle.set(yscale="log", ylabel="effective rate")
    right.set(ylabel="cosine with the gradient", ylim=(0, 1.02))
    for axes in (left, middle, right):
        axes.set_xlabel("time t (SGD steps)")
        axes.legend(fontsize=7.5)
    figure.suptitle(r"One rate $\eta$ on the original parameters: $Y = UW_V^TU^T$, $Z = UW_QW_K^TU^T/\sqrt{d}$")
    return figure


FIGURES = (Entry("original_rates", "Scan and Snap", original_rates, _one_rate, claims=_drift),)

# <!-- numbers
# typed: 13 41 (setting of the runs that this module makes)
# -->
