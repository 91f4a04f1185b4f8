"""Probabilistic bounds for drawn classes, checked by counting violations over many runs of SGD.

Lemmas 10 to 12, Theorem 5's Theta and Corollary 1's sigma hold with probability 1 - delta after N steps of batch size 1
with the modified decoder and T -> infinity. Here `dynamics.sgd` takes these steps from `SEEDS` seeds, and each check
counts the runs that violate a bound. If the bound holds, more than `allowed` violations have a probability below
`FALSE_ALARM` over the choice of seeds, by the exact binomial law. Every function takes runs and a level, as in
`theory.scan_and_snap.measures`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from scipy.special import bdtrc

from dynamics import Bags, Layer, sgd_many
from dynamics.descent import Outcome
from theory.scan_and_snap import bounds, decoder
from theory.statements import Runs

SEEDS = 200
DELTA = 0.05
# Probability of a false alarm for one check in one setting. A hundred such checks raise one in fewer than one of a
# thousand audits.
FALSE_ALARM = 1e-5
# Learning rate of attention so small that features do not change in any bit.
_STILL = 1e-30
# Factor that slows the decoder, so that it stays in its first stage: there h is linear and theta_n largest.
_SLOWER = 1000


def allowed(n_seeds: int = SEEDS, delta: float = DELTA, alarm: float = FALSE_ALARM) -> int:
    """Least number a with P(more than a of ``n_seeds`` runs violate a bound) <= alarm, each with probability delta."""
    return int(np.argmax(bdtrc(np.arange(n_seeds + 1), n_seeds, delta) <= alarm))


def n_steps(n_classes: int) -> int:
    """N: 50 visits a class, but at most 200 steps: 25 K^2 for two classes, 2 K^2 for ten."""
    return min(50 * n_classes, 200)


@dataclass(frozen=True)
class Sample:
    """The last states of the runs, class by class: (runs, classes).

    Attributes
    ----------
    n_steps, vocabulary, eta_y : int, int, float
        N, M, and the learning rate of the decoder.
    visits : array
        N_n.
    margin : array
        x with w_n = x (e_n - 1/M) + a remainder: M h where (31) holds.
    miss : array
        1 - alpha_nn, the coefficient of zeta_n in e_n - alpha_n.
    off_line : (runs,) array
        The remainders, relative to the largest margin.
    decoder_error : (runs,) array
        Error of Y against (70) with the run's margins, relative to Y's largest entry.
    signal_error : (runs,) array
        Error of g_n against (9) with (86) to (88), at the run's theta and sigma.
    """

    n_steps: int
    vocabulary: int
    eta_y: float
    visits: np.ndarray
    margin: np.ndarray
    miss: np.ndarray
    off_line: np.ndarray
    decoder_error: np.ndarray
    signal_error: np.ndarray

    @property
    def mean(self) -> int:
        """Nbar = ceil(N/K)."""
        return -(-self.n_steps // self.visits.shape[1])

    def h(self, visits: float | np.ndarray) -> np.ndarray:
        """h(s) of Lemma 6."""
        return decoder.h(visits, vocab_size=self.vocabulary, eta_y=self.eta_y)

    @property
    def theta(self) -> np.ndarray:
        """w_n = (1 + theta_n) (M - 1) h(Nbar) zeta_n (Lemma 12)."""
        return self.margin / (self.vocabulary * self.h(self.mean)) - 1

    @property
    def sigma(self) -> np.ndarray:
        """e_n - alpha_n = (M - 1)/(M - 1 + exp(M h(Nbar))) (1 + sigma) zeta_n (Corollary 1)."""
        rest = self.vocabulary - 1
        return self.miss * (rest + np.exp(self.vocabulary * self.h(self.mean))) / rest - 1


def _last_state(outcome: Outcome) -> tuple[np.ndarray, ...]:
    """The fields of a `Sample` from ``visits`` on, of one run."""
    assert outcome.visits is not None
    return outcome.visits, *state(outcome.layer, outcome.bags)


def state(layer: Layer, bags: Bags) -> tuple[np.ndarray, ...]:
    """State of a layer's classes, with the fields of `Sample`: margin, miss, off_line, decoder and signal error."""
    m, mass = layer.vocab_size, layer.multiplicity
    classes = np.arange(len(bags))
    features, Y = layer.features(bags), layer.Y
    rows = features @ Y
    shape = np.zeros(rows.shape)
    shape[classes, bags.target] = 1
    shape -= 1 / m
    margin = rows[classes, bags.target] / (1 - 1 / m)
    off_line = np.abs(rows - margin[:, None] * shape).max() / np.abs(margin).max()
    gram = features @ features.T
    combined = features.T @ np.linalg.solve(gram, margin[:, None] * shape)
    decoder_error = np.abs(Y - combined).max() / np.abs(Y).max()
    residual = -layer.predict(bags)
    residual[classes, bags.target] = 0
    miss = -(residual @ mass)
    residual[classes, bags.target] = miss
    found = (residual * mass) @ Y.T
    # (9) with unequal visits: g_n = miss_n F (I - E') [w_n' . zeta_n]_n', and zeta_n . zeta_n' is q_1 or q_0.
    inner = bounds.inner_coefficients(len(bags), m) * (1 - 1 / m)
    expected = miss[:, None] * (np.linalg.solve(gram, margin[:, None] * inner).T @ features)
    signal_error = np.abs(found - expected).max() / np.abs(expected).max()
    return margin, miss, off_line, decoder_error, signal_error


@dataclass(frozen=True)
class _Task:
    """Task of a run; tasks with equal classes are equal."""

    key: tuple
    eta_y: float
    eta_z: float
    classes: Any = field(compare=False)

    @classmethod
    def of(cls, classes: Any, eta_y: float, eta_z: float) -> _Task:
        bags = classes.population()
        arrays = (bags.query, bags.target, bags.indptr, bags.token, bags.count, bags.weight)
        return cls((bags.vocab_size, *(array.tobytes() for array in arrays)), eta_y, eta_z, classes)


@lru_cache(maxsize=32)
def _sample(task: _Task) -> Sample:
    classes, steps = task.classes, n_steps(task.classes.n_classes)
    options = {"batch_size": 1, "length": None, "momentum": 0.0, "decoder": "modified"}
    arguments: dict[str, Any] = {"eta_y": task.eta_y, "eta_z": task.eta_z, "steps": steps, **options}
    runs = [(classes, {**arguments, "seed": seed}) for seed in range(SEEDS)]
    # One thread: neighbouring runs share the cost of their steps there, and in two threads they would wait.
    states = zip(*sgd_many(runs, observe=_last_state, threads=1), strict=True)
    return Sample(steps, classes.vocab_size, task.eta_y, *(np.array(part) for part in states))


def still(runs: Runs) -> Sample:
    """Features that stand still, and a decoder in its first stage, where theta is largest."""
    return _sample(_Task.of(runs.setting.classes, runs.setting.eta_y / _SLOWER, _STILL))


def moving(runs: Runs) -> Sample:
    """Features that move, at the rates of the setting."""
    return _sample(_Task.of(runs.setting.classes, runs.setting.eta_y, runs.setting.eta_z))


def _excess(outside: np.ndarray) -> float:
    """Share of runs outside the bound in excess of `allowed`; 0 if there are no more than `allowed`."""
    return max(int(outside.sum()) - allowed(outside.size), 0) / outside.size


def radius(n_steps: int) -> float:
    """The first bound of (58) on |N_n - Nbar|."""
    return float(np.sqrt(n_steps / 2 * np.log(2 / DELTA)) + 1)


def lemma5(runs: Runs, level: str) -> float:
    """w_n against (M - 1) h*(N_n) zeta_n, in every run, and N_n that add up to N."""
    sample = still(runs)
    if not (sample.visits.sum(axis=1) == sample.n_steps).all():
        return 1.0
    steps = decoder.h_steps(sample.n_steps, vocab_size=sample.vocabulary, eta_y=sample.eta_y)
    expected = sample.vocabulary * steps[sample.visits.astype(np.int64)]
    return float(max(np.abs(sample.margin - expected).max() / expected.max(), sample.off_line.max()))


def lemma10(runs: Runs, level: str) -> float:
    """Runs in which the visits of class 0 are further from Nbar than (58) says."""
    sample = still(runs)
    return _excess(np.abs(sample.visits[:, 0] - sample.mean) > radius(sample.n_steps))


def lemma11(runs: Runs, level: str) -> float:
    """Runs in which (61) fails for class 0, with the constant 1 and Delta = ceil(sqrt(N ln(1/delta)))."""
    sample = still(runs)
    delta = np.ceil(np.sqrt(sample.n_steps * np.log(1 / DELTA)))
    at = sample.h(sample.mean)
    return _excess(np.abs(sample.margin[:, 0] / sample.vocabulary - at) > at * delta / sample.mean)


def _theta_outside(sample: Sample, bound: Callable[[int, int], float]) -> float:
    return _excess(np.abs(sample.theta).max(axis=1) > bound(sample.n_steps, sample.visits.shape[1]))


def lemma12_bound(n_steps: int, n_classes: int) -> float:
    """(K/sqrt N) sqrt(ln(K/delta)), with the constant 1."""
    return float(n_classes / np.sqrt(n_steps) * np.sqrt(np.log(n_classes / DELTA)))


def lemma12(runs: Runs, level: str) -> float:
    """Runs in which some |theta_n| is beyond Lemma 12's bound, features still."""
    return _theta_outside(still(runs), lemma12_bound)


def theorem5(runs: Runs, level: str) -> float:
    """Runs in which some theta_n of (70) is beyond Lemma 12's bound, features moving."""
    return _theta_outside(moving(runs), lemma12_bound)


def theorem5_decoder(runs: Runs, level: str) -> float:
    """Largest error of Y against (70) with the Theta of each run, features moving."""
    return float(moving(runs).decoder_error.max())


def theorem1_signal(runs: Runs, level: str) -> float:
    """Largest error of g_n against (9), with (86) to (88) at the theta and sigma of each run, features moving."""
    return float(moving(runs).signal_error.max())


def sigma_bound(n_steps: int, n_classes: int, vocab_size: int, eta_y: float) -> float:
    """|sigma| by (71), constants 1: eta_Y |N_n - Nbar| by (58), or (K/sqrt N) sqrt(ln(1/delta)) where N is late."""
    upper = bounds.crossings(vocab_size)[1]  # the margin (1 + omega_1) ln M
    late = n_classes * (np.sqrt(n_steps * np.log(1 / DELTA)) + 2 * upper / eta_y)
    if n_steps > late:
        return float(n_classes / np.sqrt(n_steps) * np.sqrt(np.log(1 / DELTA)))
    return eta_y * radius(n_steps)


def corollary1(runs: Runs, level: str) -> float:
    """Runs in which |sigma| of class 0 is beyond (71), features moving."""
    sample = moving(runs)
    bound = sigma_bound(sample.n_steps, sample.visits.shape[1], sample.vocabulary, sample.eta_y)
    return _excess(np.abs(sample.sigma[:, 0]) > bound)
