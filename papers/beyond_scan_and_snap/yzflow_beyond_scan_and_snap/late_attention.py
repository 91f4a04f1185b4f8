r"""Late attention in a clock without probabilities: the flow, and a trap region in which the logit falls for ever.

The setting is K < M equal classes with one common token and equal distinct tokens. Let c = f_common, d = |f_distinct|,
w = c/d and kappa = p/q = exp(d B + c C), with the gaps A, B and C of Y's rows (`proofs.late_full_flow`). In the clock
d sigma = (eta_Y M q/K) dt the flow of Lemma 1 (3) is

    A' = (d/M)(K kappa + M - K),   B' = (d/M)(1 - kappa),   C' = c,   (ln w)' = -a c^2 d A N,
    N = (K - 1) kappa + (M - K)(1 - C/(w A) + B/A),   a = (1 + 1/(K D)) eta_Z K/(eta_Y M),

D is the number of distinct tokens of a class. No term is large or small, so that the flow can be integrated, and
enclosed in balls, to ln t of some hundreds. Proofs: `yzflow_beyond_scan_and_snap.proofs.late_exponent`, ``late_start``
and ``late_larger_start``.
Paper: Tian, Wang, Chen, Du (2023), arXiv 2305.16380.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from dynamics import integrate
from dynamics.support import checks
from theory.statements import Runs
from yzflow_beyond_scan_and_snap.proofs import late_exponent, late_larger_start, late_start

SETTINGS, _SEED, _END = 12, 50, 30.0
# Counter-example: nearly all tokens are common. At the time RISES_AT the logit rises, also in ball arithmetic.
COUNTER_EXAMPLE: dict[str, Any] = {
    "n_classes": 2,
    "vocab_size": 3,
    "common": 0.9999,
    "n_distinct": 1,
    "eta_y": 1.0,
    "eta_z": 1.0,
}
RISES_AT = 10.5


class LateAttention:
    """The flow above, for `yzflow.integrate` and `yzflow.enclose`; their time is sigma.

    Parameters
    ----------
    n_classes, vocab_size : int
        2 <= K < M.
    ratio : float
        w at the start, positive. The flow starts at the double nearest to ln w.
    speed : float
        a, positive.

    Attributes
    ----------
    initial : mapping
        A, B, C, log_w, and lag = (eta_Y t/K) exp(-(margin over a token that never occurs)); all but log_w are zero.
    """

    def __init__(self, *, n_classes: int, vocab_size: int, ratio: float, speed: float):
        self.n_classes = checks.integer("n_classes", n_classes, minimum=2)
        self.vocab_size = checks.integer("vocab_size", vocab_size, minimum=self.n_classes + 1)
        self.ratio, self.speed = checks.positive("ratio", ratio), checks.positive("speed", speed)
        self.initial = {"A": 0.0, "B": 0.0, "C": 0.0, "log_w": float(np.log(self.ratio)), "lag": 0.0}

    @classmethod
    def of(
        cls,
        *,
        n_classes: int,
        vocab_size: int,
        common: float = 0.4,
        n_distinct: int = 5,
        eta_y: float = 1.0,
        eta_z: float = 0.5,
    ) -> LateAttention:
        """The flow of a population: P(common | n) and the number of distinct tokens that share the rest equally."""
        n_classes = checks.integer("n_classes", n_classes, minimum=2)
        vocab_size = checks.integer("vocab_size", vocab_size, minimum=n_classes + 1)
        share = checks.below("common", checks.positive("common", common), 1)
        count = checks.integer("n_distinct", n_distinct, minimum=1)
        gain = 1 + 1 / (n_classes * count)
        return cls(
            n_classes=n_classes,
            vocab_size=vocab_size,
            ratio=share * np.sqrt(count) / (1 - share),
            speed=gain * checks.positive("eta_z", eta_z) * n_classes / (checks.positive("eta_y", eta_y) * vocab_size),
        )

    def config(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ("n_classes", "vocab_size", "ratio", "speed")}

    def derivative(self, t: Any, state: Mapping[str, Any]) -> dict[str, Any]:
        k, m, free = self.n_classes, self.vocab_size, self.vocab_size - self.n_classes
        A, B, C, _, lag = _entries(state)
        d, c, gap = _features(state)
        kappa = np.exp(gap)
        # The logit's pull, c A N, in a form without a division by A = 0.
        pull = c * ((k - 1) * kappa * A + free * (A + B)) - free * d * C
        turn = -self.speed * (c * d) ** 2 * pull  # the angle of the features, tan(angle) = w
        dA, dB = d * (k * kappa + free) / m, d * (1 - kappa) / m
        margin = d * A + gap
        rise = d * (dA + dB) + c * c + turn * (d * C - c * (A + B))
        return {
            "A": dA,
            "B": dB,
            "C": c,
            "log_w": -self.speed * c * d * pull,
            "lag": (1 + ((k - 1) * kappa + free) * np.exp(-margin)) / m - lag * rise,
        }

    def always_falls(self) -> bool:
        """Whether the common token's logit is proved to fall at all times, from a zero decoder and at any ``speed``.

        M w(0)^2 <= 1 (`yzflow_beyond_scan_and_snap.proofs.late_start`), or 2 K <= M and max(K, 8) w(0)^2 <= 1
        (``late_larger_start``). w (ln t)^((K - 1)/(M - 1)) then tends to a positive constant. False says only that the
        proofs do not reach so far: at K = 2, M = 10 the logit was seen to rise for a while from w(0) = 1000, and not
        from w(0) = 707 or less. Decided exactly, for the double that ``ratio`` is.
        """
        k, m, square = self.n_classes, self.vocab_size, Fraction(self.ratio) ** 2
        larger = all(square <= Fraction(str(most)) for most in late_larger_start.most_starts(k))
        return m * square <= int(late_start.most_start()) or (2 * k <= m and larger)

    def conditions(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """The trap's five conditions as numbers, positive inside, at A > 0; for floats or an enclosure's quantities."""
        k, m, a = self.n_classes, self.vocab_size, self.speed
        A, B, C, log_w, _ = _entries(state)
        d, _, gap = _features(state)
        w, kappa, u = np.exp(log_w), np.exp(gap), d * A
        ratio, lead = C / (w * A), -B / A
        first, second = late_exponent.least_margins(m, k)
        reach = a * m * d**4 * C**2 - float(late_exponent.least_reach()) * late_exponent.most_ratio(m, k, w * w) ** 2
        return {
            "the logit falls": late_exponent.pull(m, k, kappa, ratio, lead),
            "excess": late_exponent.most_excess(m) - u * (kappa - 1 - m * w * w),
            "ledge": ratio + lead - late_exponent.ledge(m, k),
            "margin": u - max(first, second),
            "reach": reach,
        }

    def ln_t(self, state: Mapping[str, Any], *, eta_y: float = 1.0) -> Any:
        """ln t, t in SGD steps."""
        d, _, gap = _features(state)
        A, _, _, _, lag = _entries(state)
        return d * A + gap + np.log(lag * (self.n_classes / checks.positive("eta_y", eta_y)))

    def exponent(self, moment: Any, *, eta_y: float = 1.0) -> Any:
        """-d ln w/d ln ln t at a moment of an enclosure."""
        late = self.ln_t(moment.state, eta_y=eta_y)
        return -np.asarray(moment.velocity["log_w"])[()] * late / late.rate


def _entries(state: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(np.asarray(state[name])[()] for name in ("A", "B", "C", "log_w", "lag"))


def _features(state: Mapping[str, Any]) -> tuple[Any, Any, Any]:
    """d, c and ln kappa."""
    _, B, C, log_w, _ = _entries(state)
    w = np.exp(log_w)
    d = 1 / np.sqrt(1 + w * w)
    return d, w * d, d * B + w * d * C


def rising(runs: Runs, level: str) -> float:
    """Share of times, over random flows from a zero decoder, at which the common token's logit does not fall.

    The flows come from `random_settings`, at 200 values of sigma up to 30. The audit's setting changes nothing.
    """
    return _rising()


@functools.cache
def _rising() -> float:
    share = []
    for flow in random_settings(SETTINGS, _SEED):
        path = integrate(flow, t_end=_END, times=np.linspace(0, _END, 201)[1:]).dataset
        falls = flow.conditions({name: path[name].values for name in flow.initial})["the logit falls"]
        share.append((falls <= 0).mean())
    return float(np.mean(share))


def unbroken_fall(runs: Runs, level: str) -> float:
    """1 if the common token's logit falls at ``RISES_AT`` in the counter-example, and 0 if it rises there.

    The audit's setting changes nothing.
    """
    return float(_pull_of_counter_example() >= 0)


@functools.cache
def _pull_of_counter_example() -> float:
    flow = LateAttention.of(**COUNTER_EXAMPLE)
    path = integrate(flow, t_end=RISES_AT, times=[RISES_AT], rtol=1e-10, atol=1e-13).dataset
    return float(flow.conditions({name: path[name].values for name in flow.initial})["the logit falls"][0])


def random_settings(number: int, seed: int) -> list[LateAttention]:
    """K from 2 to 20, M - K from 1 to 1000, w at the start from 0.1 to 10 and a (M - K) from 0.001 to 10."""
    rng = np.random.default_rng(checks.integer("seed", seed, minimum=0))
    flows = []
    for _ in range(checks.integer("number", number, minimum=1)):
        k, free = int(rng.integers(2, 21)), round(10 ** rng.uniform(0, 3))
        ratio, speed = 10 ** rng.uniform(-1, 1), 10 ** rng.uniform(-3, 1) / free
        flows.append(LateAttention(n_classes=k, vocab_size=k + free, ratio=ratio, speed=speed))
    return flows
