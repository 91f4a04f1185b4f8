"""Scan and Snap: tasks with one or two common tokens and queries, inside the assumptions and on each side of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics import Bags, Layer, Objective, Optimizer, SequenceClasses, Trajectory, gradient_flow, sgd
from dynamics.optimizers.optimizer import OPTIMIZERS
from dynamics.support import checks
from theory.scan_and_snap.changed import Law
from yzflow.audits.case import OwnCase

PAPER = "Scan and Snap"


@dataclass(frozen=True)
class Setting:
    """One training task, in the units of the paper.

    Attributes
    ----------
    name : str
    classes : SequenceClasses
    eta_y, eta_z : float
        Learning rates per step, positive: the statements are about training of both.
    t_end : float
        Length of the training, SGD steps.
    law : Law, optional
        Closed forms for the checks in place of the paper's.
    optimizer : Optimizer, optional
        Default: plain steps, as in the theorems.
    objective : Objective, optional
        Default: the cross-entropy (2).
    batch_size : int
        Sequences of a step of SGD.
    length : int or None
        T of each of them, query included; None for T -> infinity.
    position_bias : float
        Position bias of attention in SGD, as in `dynamics.sgd`.
    start : Layer, optional
        Y(0) and Z(0). Default: zeros.
    """

    name: str
    classes: SequenceClasses
    eta_y: float
    eta_z: float
    t_end: float
    law: Law | None = None
    optimizer: Optimizer | None = None
    objective: Objective | None = None
    batch_size: int = 64
    length: int | None = 256
    position_bias: float = 0.0
    start: Layer | None = None

    def __post_init__(self) -> None:
        for name in ("eta_y", "eta_z"):
            checks.positive(name, getattr(self, name))

    @property
    def overlap(self) -> float:
        """Mean initial overlap f_n . f_n' of different classes."""
        overlap = self.classes.overlap()
        return float(overlap[~np.eye(len(overlap), dtype=bool)].mean())

    def simulate(self, level: str, *, seed: int) -> Trajectory:
        """The simulation at a level of fidelity."""
        rates: dict[str, Any] = {"eta_y": self.eta_y, "eta_z": self.eta_z, "objective": self.objective}
        if level in ("SGD", "modified SGD"):
            steps = int(self.t_end)
            rates |= {"init": "zero" if self.start is None else self.start, **self._steps_of(steps)}
            own = self.of_batches if level == "SGD" else {"batch_size": 1, "length": None, "decoder": "modified"}
            return sgd(self.classes, **rates, **own, steps=steps, seed=seed, record_every=max(1, steps // 50))
        rates |= {"init": self.start, "optimizer": self.optimizer}
        return gradient_flow(self.classes, **rates, decoder=level.removesuffix(" flow"), **self.of_flows)

    @property
    def of_batches(self) -> dict[str, Any]:
        """How sequences are drawn: arguments of `sgd`."""
        return {"batch_size": self.batch_size, "length": self.length, "position_bias": self.position_bias}

    def _steps_of(self, steps: int) -> dict[str, Any]:
        return {"momentum": 0.0} if self.optimizer is None else {"optimizer": self.optimizer.over(steps)}

    @property
    def of_flows(self) -> dict[str, Any]:
        """How long flows are, where they are recorded, and how accurate they are: arguments of `gradient_flow`."""
        # The first output time is early enough for claims to first order in time.
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
        Number of query tokens, each with consecutive next tokens; K should be a multiple.
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
    """Corollary 2's setting: exchangeable classes of a given overlap, with a frequent and a rarer common token."""
    own, common = np.array([0.7, 0.5]), np.array([1.0, 0.8])
    common *= np.sqrt(overlap / (1 - overlap) * (own**2).sum() / (common**2).sum())
    probabilities = np.zeros((n_classes, 2 + 2 * n_classes))
    probabilities[:, :2] = common
    for n in range(n_classes):
        probabilities[n, 2 + 2 * n : 4 + 2 * n] = own
    probabilities /= probabilities.sum(axis=1, keepdims=True)
    return SequenceClasses(probabilities, [0] * n_classes, vocab_size=vocab_size)


def rising_common_token(vocab_size: int) -> SequenceClasses:
    """Three classes inside Assumption 2, with two common tokens; one of the two gains attention.

    This token is the most frequent token of class 0 and rare in class 1, so that it acts as a distinct token. The
    setting is outside Theorem 2(b) and Corollary 2, and violates Theorem 3's condition for (12).
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
    """The designed settings: inside the assumptions, on each side of them, and the paper's own.

    In SGD those with sequences of 256 tokens are outside Assumption 1(b).
    """
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
        Setting(
            "long sequences: K = 3, eta_Y = 0.5, T = 65,536",
            single_common_token(3, 2000, 0.15),
            0.5,
            5e-4,
            200.0,
            length=65_536,
        ),
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


# A reader's training has flows and SGD; hundreds of runs of the modified decoder only on request.
_OWN_LEVELS = ("closed form", "theory flow", "modified flow", "full flow", "SGD")


def own(
    *,
    data: SequenceClasses | Bags,
    eta_y: float = 1.0,
    eta_z: float = 0.5,
    t_end: float | None = None,
    optimizer: Optimizer | str | None = None,
    objective: Objective | None = None,
) -> OwnCase:
    """The setting of a reader's own data and training, for `yzflow.check`.

    Parameters
    ----------
    data : SequenceClasses or Bags
        Bags whose next tokens follow one query each are read as classes, by the mean of their frequencies.
    eta_y, eta_z : float
        Learning rates per step.
    t_end : float, optional
        SGD steps. Default: twice the printed end of the first stage, t0 = 2 K ln M/eta_Y, and 10,000 at most.
    optimizer : Optimizer or str, optional
        Default: plain steps.
    objective : Objective, optional

    Raises
    ------
    ValueError
        If an argument is invalid.
    """
    classes = data if isinstance(data, SequenceClasses) else classes_of_bags(data)
    rates = checks.positive("eta_y", eta_y), checks.positive("eta_z", eta_z)
    usual = 4 * classes.n_classes * np.log(max(classes.vocab_size, 3)) / rates[0]
    end = checks.positive("t_end", min(usual, 1e4) if t_end is None else t_end)
    if isinstance(optimizer, str):
        optimizer = Optimizer(checks.one_of("optimizer", optimizer, OPTIMIZERS), **_NO_MOMENTUM.get(optimizer, {}))
    if optimizer is not None:
        checks.instance("optimizer", optimizer, Optimizer)
        optimizer = None if optimizer == _PLAIN else optimizer
    if objective is not None:
        checks.instance("objective", objective, Objective)
        objective = None if objective == Objective() else objective
    beyond = tuple(_said(one) for one in (optimizer, objective) if one is not None)
    name = f"your own: K = {classes.n_classes}, M = {classes.vocab_size:,}, eta_Y = {rates[0]:g}, eta_Z = {rates[1]:g}"
    setting = Setting(name, classes, *rates, end, optimizer=optimizer, objective=objective)
    return OwnCase(setting, _OWN_LEVELS, beyond)


def _said(changed: Optimizer | Objective) -> str:
    """Words for a training other than plain steps on the cross-entropy."""
    if isinstance(changed, Optimizer):
        name, usual = [changed.name], Optimizer(changed.name, **_NO_MOMENTUM.get(changed.name, {})).parameters
    else:
        name, usual = [], Objective().parameters
    others = {key: value for key, value in changed.parameters.items() if usual.get(key) != value}
    return ", ".join(name + [f"{key.replace('_', ' ')} {value}" for key, value in others.items()])


_PLAIN = Optimizer(momentum=0.0)
_NO_MOMENTUM: dict[str, dict[str, Any]] = {"sgd": {"momentum": 0.0}, "sign": {"momentum": 0.0}}


def classes_of_bags(bags: Bags) -> SequenceClasses:
    """Classes with the weighted mean frequencies of the bags of each next token, as in the limit T -> infinity.

    Classes are numbered in the order of their next tokens; next tokens without weight have no class.

    Raises
    ------
    ValueError
        If the argument is no Bags, a next token follows several queries, or targets are distributions. The paper's
        classes have one query for each next token.
    """
    checks.instance("data", bags, Bags, rule="be a Bags or a SequenceClasses")
    if bags.target.ndim != 1:
        raise checks.reject("data", "have next tokens as targets", "distributions over them")
    share = np.repeat(bags.weight / np.add.reduceat(bags.count, bags.indptr[:-1]), np.diff(bags.indptr))
    occurs = bags.weight > 0
    present, row = np.unique(bags.target[occurs], return_inverse=True)
    if present.size < 2:
        raise checks.reject("data", "have two next tokens at least", present.tolist())
    query = bags.query[occurs]
    queries = np.zeros(present.size, dtype=int)
    queries[row] = query
    several = np.unique(row[queries[row] != query])
    if several.size:
        first = int(several[0])
        count = np.unique(query[row == first]).size
        rule = "have one query for each next token, as `data.pairs()` has"
        raise checks.reject("data", rule, f"{count} queries before next token {present[first]}")
    dense = np.zeros((present.size, int(bags.token.max()) + 1))
    kept = occurs[bags.owner]
    places = np.searchsorted(present, bags.target[bags.owner[kept]]), bags.token[kept]
    np.add.at(dense, places, share[kept] * bags.count[kept])
    weights = np.bincount(row, bags.weight[occurs])
    probabilities = dense / dense.sum(axis=1, keepdims=True)
    sizes = {"vocab_size": bags.vocab_size, "class_weights": weights / weights.sum()}
    return SequenceClasses(probabilities, queries, **sizes)
