"""Scan and Snap: tasks with one or two common tokens, inside the assumptions and on each side of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics import SequenceClasses, Trajectory, gradient_flow, sgd

PAPER = "Scan and Snap"


@dataclass(frozen=True)
class Setting:
    """One training task, in the units of the paper.

    Attributes
    ----------
    name : str
    classes : SequenceClasses
    eta_y, eta_z : float
        Learning rates per step.
    t_end : float
        Length of the training, SGD steps.
    """

    name: str
    classes: SequenceClasses
    eta_y: float
    eta_z: float
    t_end: float

    @property
    def overlap(self) -> float:
        """Mean initial overlap f_n . f_n' of different classes."""
        overlap = self.classes.overlap()
        return float(overlap[~np.eye(len(overlap), dtype=bool)].mean())

    def simulate(self, level: str, *, seed: int) -> Trajectory:
        """The simulation at a level of fidelity."""
        rates: dict[str, Any] = {"eta_y": self.eta_y, "eta_z": self.eta_z}
        if level == "SGD":
            steps = int(self.t_end)
            sizes: dict[str, Any] = {"batch_size": 64, "length": 256, "momentum": 0.0}
            return sgd(self.classes, **rates, steps=steps, **sizes, seed=seed, record_every=max(1, steps // 50))
        if level == "modified SGD":
            steps = int(self.t_end)
            single: dict[str, Any] = {"batch_size": 1, "length": None, "momentum": 0.0, "decoder": "modified"}
            return sgd(self.classes, **rates, steps=steps, **single, seed=seed, record_every=max(1, steps // 50))
        # The first output time is early enough for what holds to first order in time.
        times = np.concatenate([[0.0], np.geomspace(0.01, self.t_end, 120)])
        tight: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-14}
        return gradient_flow(
            self.classes, **rates, t_end=self.t_end, times=times, decoder=level.removesuffix(" flow"), **tight
        )


def single_common_token(n_classes: int, vocab_size: int, overlap: float) -> SequenceClasses:
    """Theorem 4's setting with five distinct tokens a class and a given overlap f_n . f_n'."""
    distinct = np.array([1.0, 0.8, 0.6, 0.4, 0.2])
    common = float(np.sqrt(overlap / (1 - overlap) * (distinct**2).sum()))
    return SequenceClasses.single_common_token(n_classes, vocab_size, common=common, distinct=distinct)


def two_common_tokens(n_classes: int, vocab_size: int) -> SequenceClasses:
    """Corollary 2's setting: exchangeable classes that share two tokens of equal probability; overlap 0.30."""
    probabilities = np.zeros((n_classes, 2 + 2 * n_classes))
    probabilities[:, :2] = 0.2
    for n in range(n_classes):
        probabilities[n, 2 + 2 * n : 4 + 2 * n] = 0.35, 0.25
    return SequenceClasses(probabilities, [0] * n_classes, vocab_size=vocab_size)


def settings(*, quick: bool) -> list[Setting]:
    """The designed settings: inside the assumptions, on each side of them, and the paper's own."""
    chosen = [
        Setting("inside: K = 2, M = 1000, rho = 0.3", single_common_token(2, 1000, 0.3), 1.0, 1e-3, 100.0),
        Setting("fast attention: eta_Z = 0.5", single_common_token(2, 1000, 0.3), 1.0, 0.5, 100.0),
        Setting("two common tokens: K = 2, M = 1000", two_common_tokens(2, 1000), 1.0, 1e-3, 100.0),
        Setting("the paper's: K = 10, M = 1000", single_common_token(10, 1000, 0.009), 1.0, 1e-3, 300.0),
    ]
    if not quick:
        chosen += [
            Setting("the paper's with eta_Z = 0.5", single_common_token(10, 1000, 0.009), 1.0, 0.5, 700.0),
            Setting("strong overlap: rho = 0.65", single_common_token(10, 1000, 0.65), 1.0, 0.5, 700.0),
            Setting("small vocabulary: M = K = 10", single_common_token(10, 10, 0.3), 1.0, 1e-3, 100.0),
            Setting("large vocabulary: M = 100,000", single_common_token(10, 100_000, 0.001), 1.0, 1e-3, 300.0),
        ]
    return chosen
