"""Flows of JoMA: the full gradient flow of attention and a hidden layer, and reductions to one number per token."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import xarray as xr

ATTENTIONS = ("linear", "exp", "softmax")
ACTIVATIONS = ("linear", "relu", "softplus")


def attention(kind: str, x: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Attention weights b (contexts, tokens): x z, x e^z, or x e^z over its sum, without further normalisation."""
    if kind == "linear":
        return x * z
    b = x * np.exp(z - (z.max() if kind == "softmax" else 0.0))
    return b / b.sum(axis=1, keepdims=True) if kind == "softmax" else b


def back_through(kind: str, x: np.ndarray, b: np.ndarray, w: np.ndarray) -> np.ndarray:
    """(db/dz)^T w for each context: (contexts, tokens)."""
    if kind == "linear":
        return x * w
    return b * (w - (b * w).sum(axis=1, keepdims=True)) if kind == "softmax" else b * w


def activation(kind: str, s: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """h(s) and its slope; softplus is ln(1 + e^s)."""
    if kind == "linear":
        return s, np.ones_like(s)
    if kind == "relu":
        return np.maximum(s, 0.0), (s > 0).astype(float)
    return np.logaddexp(0.0, s), 1 / (1 + np.exp(-s))


def entropy_of(p: np.ndarray) -> np.ndarray:
    """Entropy of each row of probabilities, in nats."""
    return -np.where(p > 0, p * np.log(np.where(p > 0, p, 1.0)), 0.0).sum(axis=-1)


def entropy(z: np.ndarray) -> float:
    """Entropy of softmax(z), in nats."""
    p = np.exp(z - z.max())
    p /= p.sum()
    return float(entropy_of(p))


class JointFlow:
    """Gradient ascent on the log-likelihood of next tokens, by logits z, a hidden layer v and q, and a decoder y.

    Unit k sees ``s_k = v_k . b(x) + q_k``, where q_k is the unit's weight at the query (the residual link); the next
    token has probabilities softmax(y^T h(s)). Counts x (contexts, tokens), weights p, time in units of 1/rate.

    Parameters
    ----------
    contexts : (n, C) numbers, not negative
    targets : (n,) int
    n_units, n_targets : int
    attention : "linear", "exp" or "softmax"
    activation : "linear", "relu" or "softplus"
    scale : float
        Standard deviation of the start of v and y; z starts at zero, or at one for linear attention.
    seed : int
        Seed of the start.
    """

    def __init__(
        self,
        contexts: Sequence[Sequence[float]],
        targets: Sequence[int],
        *,
        n_units: int,
        n_targets: int,
        attention: str = "softmax",
        activation: str = "relu",
        scale: float = 0.3,
        seed: int = 0,
    ) -> None:
        for name, value, known in (("attention", attention, ATTENTIONS), ("activation", activation, ACTIVATIONS)):
            if value not in known:
                raise ValueError(f"`{name}` must be one of {', '.join(known)}, but got {value!r}")
        self.x = np.array(contexts, dtype=float)
        if self.x.ndim != 2 or not (np.isfinite(self.x).all() and (self.x >= 0).all() and self.x.any(axis=1).all()):
            raise ValueError("`contexts` must be counts, a row with at least one token each")
        self.targets = np.array(targets, dtype=int)
        if self.targets.shape != (len(self.x),) or (self.targets < 0).any() or (self.targets >= n_targets).any():
            raise ValueError(f"`targets` must be {len(self.x)} integers below {n_targets}, but got {list(targets)}")
        self._config = {
            "contexts": self.x.tolist(),
            "targets": self.targets.tolist(),
            "n_units": int(n_units),
            "n_targets": int(n_targets),
            "attention": attention,
            "activation": activation,
            "scale": float(scale),
            "seed": int(seed),
        }
        self.attention, self.activation = attention, activation
        rng = np.random.default_rng(seed)
        tokens = self.x.shape[1]
        self.initial = {
            "z": xr.DataArray(np.full(tokens, float(attention == "linear")), dims=("token",)),
            "v": xr.DataArray(scale * rng.standard_normal((n_units, tokens)), dims=("unit", "token")),
            "q": xr.DataArray(scale * rng.standard_normal(n_units), dims=("unit",)),
            "y": xr.DataArray(scale * rng.standard_normal((n_units, n_targets)), dims=("unit", "target")),
        }

    def config(self) -> dict:
        """Plain data that makes the flow again."""
        return dict(self._config)

    def gathered(self, state: Mapping[str, np.ndarray]) -> np.ndarray:
        """b of each context: (n, C)."""
        return attention(self.attention, self.x, np.asarray(state["z"]))

    def signals(self, state: Mapping[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """b, h, residual and g h' of each context."""
        b = self.gathered(state)
        h, slope = activation(self.activation, b @ state["v"].T + state["q"])
        logits = h @ state["y"]
        alpha = np.exp(logits - logits.max(axis=1, keepdims=True))
        residual = -alpha / alpha.sum(axis=1, keepdims=True)
        residual[np.arange(len(b)), self.targets] += 1
        return b, h, residual, (residual @ state["y"].T) * slope

    def derivative(self, t: float, state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The gradient of the mean log-likelihood over contexts."""
        return self._gradient(state, np.full(len(self.x), 1 / len(self.x)))

    def _gradient(self, state: Mapping[str, np.ndarray], weight: np.ndarray) -> dict[str, np.ndarray]:
        b, h, residual, g = self.signals(state)
        weighted = g * weight[:, None]
        return {
            "z": back_through(self.attention, self.x, b, weighted @ state["v"]).sum(axis=0),
            "v": weighted.T @ b,
            "q": weighted.sum(axis=0),
            "y": h.T @ (residual * weight[:, None]),
        }

    def observe(self, t: float, state: Mapping[str, np.ndarray]) -> dict[str, object]:
        """Loss in nats and the entropy of softmax(z)."""
        residual = self.signals(state)[2]
        return {
            "loss": float(-np.log1p(-residual[np.arange(len(residual)), self.targets]).mean()),
            "entropy": entropy(np.asarray(state["z"])),
        }


class SampledFlow(JointFlow):
    """A `JointFlow` for SGD by `dynamics.descend`, with batches of 16 contexts, drawn with replacement."""

    BATCH = 16

    def sample(self, t: float, state: Mapping[str, np.ndarray], rng: np.random.Generator) -> dict[str, np.ndarray]:
        """The gradient on a random batch."""
        drawn = rng.integers(len(self.x), size=self.BATCH)
        return self._gradient(state, np.bincount(drawn, minlength=len(self.x)) / self.BATCH)


class ReducedFlow:
    """v' = Delta e^{v^2/2} (linear) or v' = (mu - v) e^{v^2/2} (nonlinear activation), entry by entry, from zero.

    Parameters
    ----------
    drive : (C,) float
        Delta if ``linear``, else mu.
    linear : bool
    """

    def __init__(self, drive: Sequence[float], *, linear: bool = False) -> None:
        self.drive = np.array(drive, dtype=float)
        if self.drive.ndim != 1 or not self.drive.size or not np.isfinite(self.drive).all():
            raise ValueError(f"`drive` must be a finite number for each token, but got {drive!r}")
        self.linear = bool(linear)
        self.initial = {"v": xr.DataArray(np.zeros_like(self.drive), dims=("token",))}

    def config(self) -> dict:
        """Plain data that makes the flow again."""
        return {"drive": self.drive.tolist(), "linear": self.linear}

    def derivative(self, t: float, state: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The rate v'."""
        v = state["v"]
        return {"v": (self.drive if self.linear else self.drive - v) * np.exp(v * v / 2)}

    def observe(self, t: float, state: Mapping[str, np.ndarray]) -> dict[str, object]:
        """Entropy of softmax(v^2/2), which is attention by Theorem 1."""
        return {"entropy": entropy(state["v"] ** 2 / 2)}
