"""Scan and Snap: tasks with one or two common tokens and queries, inside the assumptions and on each side of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics import SequenceClasses, Trajectory, gradient_flow, sgd
from theory.scan_and_snap.changed import Law

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
    law : Law, optional
        Closed forms other than the paper's that the checks are to hold runs against.
    """

    name: str
    classes: SequenceClasses
    eta_y: float
    eta_z: float
    t_end: float
    law: Law | None = None

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
        return gradient_flow(self.classes, **rates, decoder=level.removesuffix(" flow"), **self.of_flows)

    @property
    def of_flows(self) -> dict[str, Any]:
        """How long flows are, where they are recorded, and how accurate they are: arguments of `gradient_flow`."""
        # The first output time is early enough for what holds to first order in time.
        times = np.concatenate([[0.0], np.geomspace(0.01, self.t_end, 120)])
        return {"t_end": self.t_end, "times": times, "rtol": 1e-10, "atol": 1e-14}


def classes_with_common_shares(
    shares: ArrayLike, vocab_size: int, *, n_queries: int = 1, distinct: ArrayLike = (1.0, 0.8, 0.6, 0.4, 0.2)
) -> SequenceClasses:
    """Classes that share one token, with chosen overlaps f_n . f_n' = a_n a_n'.

    Parameters
    ----------
    shares : (K,) float
        a_n, the entry of the unit vector f_n at the common token, token 0; between 0 and 1.
    vocab_size : int
        M.
    n_queries : int
        Query tokens, each with next tokens that follow each other; K should be a multiple.
    distinct : (D,) float
        Unnormalised probabilities of the distinct tokens of each class.
    """
    share = np.asarray(shares, dtype=np.float64)
    own = np.asarray(distinct, dtype=np.float64)
    probabilities = np.zeros((share.size, 1 + share.size * own.size))
    probabilities[:, 0] = share
    for n, rest in enumerate(np.sqrt(1 - share**2)):
        probabilities[n, 1 + n * own.size : 1 + (n + 1) * own.size] = rest * own / np.linalg.norm(own)
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    query = np.arange(share.size) * n_queries // share.size
    return SequenceClasses(probabilities, query, vocab_size=vocab_size)


def single_common_token(n_classes: int, vocab_size: int, overlap: float) -> SequenceClasses:
    """Theorem 4's setting with five distinct tokens a class and a given overlap f_n . f_n'."""
    distinct = np.array([1.0, 0.8, 0.6, 0.4, 0.2])
    common = float(np.sqrt(overlap / (1 - overlap) * (distinct**2).sum()))
    return SequenceClasses.single_common_token(n_classes, vocab_size, common=common, distinct=distinct)


def two_common_tokens(n_classes: int, vocab_size: int, overlap: float) -> SequenceClasses:
    """Corollary 2's setting: exchangeable classes of a given overlap, with two common tokens, of which one is rarer."""
    own, common = np.array([0.7, 0.5]), np.array([1.0, 0.8])
    common *= np.sqrt(overlap / (1 - overlap) * (own**2).sum() / (common**2).sum())
    probabilities = np.zeros((n_classes, 2 + 2 * n_classes))
    probabilities[:, :2] = common
    for n in range(n_classes):
        probabilities[n, 2 + 2 * n : 4 + 2 * n] = own
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return SequenceClasses(probabilities, [0] * n_classes, vocab_size=vocab_size)


def rising_common_token(vocab_size: int) -> SequenceClasses:
    """Three classes inside Assumption 2, one of two common tokens of which gains attention.

    It is the most frequent token of class 0 and hardly occurs with class 1, so that it acts as a distinct one: outside
    Theorem 2(b) and Corollary 2, and against Theorem 3's condition for (12).
    """
    own = [1.0, 0.8, 0.6, 0.4, 0.2]
    probabilities = np.zeros((3, 2 + 3 * len(own)))
    probabilities[:, 0] = 0.7
    probabilities[:, 1] = 2.5, 0.01, 0.0
    for n in range(3):
        probabilities[n, 2 + n * len(own) : 2 + (n + 1) * len(own)] = own
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return SequenceClasses(probabilities, [0, 0, 0], vocab_size=vocab_size)


def settings(*, quick: bool) -> list[Setting]:
    """The designed settings: inside the assumptions, on each side of them, and the paper's own."""
    two_queries = classes_with_common_shares([0.075**0.5] * 4, 8000, n_queries=2)
    chosen = [
        Setting("inside: K = 2, M = 1000, rho = 0.3", single_common_token(2, 1000, 0.3), 1.0, 1e-3, 100.0),
        Setting("inside: K = 3, M = 2000, rho = 0.15", single_common_token(3, 2000, 0.15), 1.0, 1e-3, 100.0),
        Setting("two queries: K = 4, M = 8000, rho = 0.075", two_queries, 1.0, 1e-3, 150.0),
        Setting(
            "unequal overlaps: K = 3, M = 10,000, rho = 0.12 to 0.18",
            classes_with_common_shares([0.45, 0.4, 0.3], 10_000),
            1.0,
            1e-3,
            100.0,
        ),
        Setting("two common tokens: K = 3, M = 2000", two_common_tokens(3, 2000, 0.15), 1.0, 1e-3, 100.0),
        Setting("a common token that gains: K = 3, M = 10,000", rising_common_token(10_000), 1.0, 0.5, 100.0),
        Setting("fast attention: eta_Z = 0.5", single_common_token(2, 1000, 0.3), 1.0, 0.5, 100.0),
        Setting("the paper's: K = 10, M = 1000", single_common_token(10, 1000, 0.009), 1.0, 1e-3, 300.0),
    ]
    if not quick:
        unequal = classes_with_common_shares([0.32, 0.3, 0.26, 0.24], 20_000, n_queries=2)
        chosen += [
            Setting("inside: K = 4, M = 8000, rho = 0.075", single_common_token(4, 8000, 0.075), 1.0, 1e-3, 150.0),
            Setting("two queries and unequal overlaps: K = 4, M = 20,000", unequal, 1.0, 1e-3, 150.0),
            Setting("two common tokens: K = 2, M = 1000", two_common_tokens(2, 1000, 0.3), 1.0, 1e-3, 100.0),
            Setting("the paper's with eta_Z = 0.5", single_common_token(10, 1000, 0.009), 1.0, 0.5, 700.0),
            Setting("strong overlap: rho = 0.65", single_common_token(10, 1000, 0.65), 1.0, 0.5, 700.0),
            Setting("small vocabulary: M = K = 10", single_common_token(10, 10, 0.3), 1.0, 1e-3, 100.0),
            Setting("large vocabulary: M = 100,000", single_common_token(10, 100_000, 0.001), 1.0, 1e-3, 300.0),
        ]
    return chosen
