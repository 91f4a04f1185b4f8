"""Eleven true statements with sharp borders, which the fuzzer draws settings on: none may fall, however near.

A `Border` is a claim ``found <= bound`` that is true, with a bound that some settings come arbitrarily near to, or
reach. Its share is found/bound: above one the statement is false. `campaign` lets the fuzzer draw, and says how many
examples there were, how many fell, how near the nearest came, and after how many the same statement with a bound that
is one percent closer is false. A claim about a sign has the place of the setting, in units of the border: its share is
infinite where the sign is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np

from dynamics import Layer, SequenceClasses, gradient_flow
from theory import attention, decoder
from theory.scan_and_snap import bounds, centred
from theory.statements import Check, Statement
from yzflow.fuzzing.blocks import BLOCK, Question, draw_block
from yzflow.fuzzing.choosing import Choose

ROUNDING = 1e-9
CLOSER = 0.99


@dataclass(frozen=True)
class Border:
    """A true statement and its border.

    Attributes
    ----------
    name, says : str
    draw : callable
        Choices -> the numbers of a setting.
    share : callable
        These numbers -> found/bound.
    flows : bool
        Whether each setting is a flow, which takes longer.
    """

    name: str
    says: str
    draw: Callable[[Choose], dict[str, Any]]
    share: Callable[..., float]
    flows: bool = False

    def statement(self, closer: float = 1.0) -> Statement:
        """For the fuzzer: false where the share is above ``closer``."""

        def measure(runs: Any, level: str) -> float:
            return self.share(**runs.setting.numbers)

        check = Check(
            self.name, ("closed form",), measure, tolerance=closer * (1 + ROUNDING), expected=("closed form",)
        )
        return Statement("Scan and Snap", self.name, "Sharp border", self.says, "", checks=(check,))


@dataclass(frozen=True)
class Drawing(Question):
    """The question of a campaign whose settings are those of a border, and not those of the paper."""

    draw: Callable[[Choose], dict[str, Any]] = lambda choose: {}

    def setting(self, choose: Choose) -> Any:
        numbers = self.draw(choose)
        return SimpleNamespace(
            name=", ".join(f"{name} = {value}" for name, value in choose.made.items()), numbers=numbers
        )


def campaign(border: str, examples: int, seed: int) -> dict[str, Any]:
    """Examples that the fuzzer draws of a statement.

    Returns
    -------
    dict
        ``examples`` that were asked, ``fell``: those above the bound, ``nearest``: the largest share, and ``closer``:
        the examples until the bound times `CLOSER` is exceeded, 0 if none did.
    """
    one = BORDERS[border]
    asked = Drawing(one.statement(), "closed form", draw=one.draw)
    shares: list[float] = []
    fell = 0
    for number in range(-(-examples // BLOCK)):
        size = min(BLOCK, examples - number * BLOCK)
        block = draw_block(asked, seed=seed, number=number, size=size, simpler=False)
        if block.stopped or block.rejected:
            raise RuntimeError(f"{border}: {block.stopped} settings could not be asked: {block.why}")
        shares += [example.worst * (1 + ROUNDING) for example in block.examples]
        fell += block.simplest is not None
    above = np.flatnonzero(np.array(shares) > CLOSER)
    return {
        "examples": len(shares),
        "fell": fell,
        "nearest": float(max(shares)),
        "closer": int(above[0]) + 1 if above.size else 0,
    }


# Growth of the decoder.


def _sizes(choose: Choose, least: int) -> dict[str, Any]:
    m = choose.integer("M", least, 10**12, log=True)
    return {"m": m, "k": choose.integer("K", 2, min(12, m)), "eta_y": choose.real("eta_Y", 1e-3, 1.0, log=True)}


def _rates(m: int, k: int, eta_y: float) -> dict[str, Any]:
    return {"vocab_size": m, "n_classes": k, "eta_y": eta_y}


def _peak_is_early(m: int, k: int, eta_y: float) -> float:
    return float(decoder.transition_time(**_rates(m, k, eta_y)) / decoder.scanning_time(**_rates(m, k, eta_y)))


def _around_the_peak(choose: Choose) -> dict[str, Any]:
    return _sizes(choose, 3) | {"at": choose.real("t / t*", 0.1, 10.0, log=True)}


def _below_the_peak(m: int, k: int, eta_y: float, at: float) -> float:
    sizes = _rates(m, k, eta_y)
    t = at * decoder.transition_time(**sizes)
    return float(decoder.gamma(t, **sizes) / decoder.peak_gamma(vocab_size=m))


def _early(choose: Choose) -> dict[str, Any]:
    return _sizes(choose, 3) | {"at": choose.real("t / t0'", 1e-9, 10.0, log=True)}


def _first_stage(m: int, k: int, eta_y: float, at: float) -> float:
    sizes = _rates(m, k, eta_y)
    t = at * decoder.scanning_time(**sizes)
    return float(decoder.gamma(t, **sizes) * k / (eta_y * t))


def _visited(choose: Choose) -> dict[str, Any]:
    return {
        "m": choose.integer("M", 2, 10**9, log=True),
        "s": choose.real("eta_Y t", 1e-9, 1e15, log=True),
    }


def _ends_of_growth(m: int, s: float) -> float:
    x = m * float(decoder.h(s, vocab_size=m, eta_y=1.0))
    return max(x / s, math.expm1(x) / (m * s))


def _steps(choose: Choose) -> dict[str, Any]:
    return {
        "m": choose.integer("M", 2, 10**9, log=True),
        "eta_y": choose.real("eta_Y", 1e-3, 1e6, log=True),
        "n": choose.integer("n", 1, 30),
    }


def _step_gap(m: int, eta_y: float, n: int) -> float:
    sizes: dict[str, Any] = {"vocab_size": m, "eta_y": eta_y}
    found = (decoder.h_steps(n, **sizes) - decoder.h(np.arange(n + 1.0), **sizes)) * m / eta_y
    return math.inf if found.min() < -1e-9 else float(found.max())


# Bounds of growth, and the slow-down.


def _tokens(choose: Choose) -> dict[str, Any]:
    count = choose.integer("distinct tokens", 2, 5)
    rest = [choose.real(f"P_{i} / P_0", 1e-3, 0.999, log=True) for i in range(1, count)]
    return {"distinct": [1.0, *rest], "exponent": choose.real("B_n", 1e-6, 300.0, log=True)}


def _growth_bounds(distinct: list[float], exponent: float) -> float:
    p = np.array(distinct)
    grown = float(np.log(attention.distinct_growth(exponent, p)[0]))
    first = p[0] ** 2 / (p**2).sum()
    return float(max(2 * first * exponent / grown, grown / (2 * exponent)))


def _overlap(choose: Choose) -> dict[str, Any]:
    k = choose.integer("K", 2, 12)
    m = k + choose.integer("M - K", 0, 10**9 - k, log=False) if choose.one_of("M", ("= K", "> K")) else k
    return {"m": m, "k": k, "rho": choose.real("rho", 1e-12, 0.999, log=True)}


def _slowdown(m: int, k: int, rho: float) -> float:
    return float(attention.full_flow_slowdown(vocab_size=m, n_classes=k, overlap=rho) / (1 - rho))


# Overlaps.


def _overlaps(choose: Choose, least: int, most: int) -> np.ndarray:
    """Symmetric overlaps with entries >= 0, of any pattern or nearly a star, with |lambda_1| = 1."""
    k = choose.integer("K", least, most)
    found = np.zeros((k, k))
    if choose.one_of("pattern", ("any", "star")) == "any":
        for i in range(k):
            for j in range(i):
                found[i, j] = choose.real(f"E_{i}{j}", 0.0, 1.0)
        found[1, 0] = max(found[1, 0], 1e-3)
    else:  # class 1 overlaps with classes 2, 3, .. alike, and class 0 touches it
        found[2:, 1] = 1.0
        found[1, 0] = choose.real("touch", 1e-9, 1.0, log=True)
    found = found + found.T
    return found / np.abs(np.linalg.eigvalsh(found)).max()


def _scaled(choose: Choose) -> dict[str, Any]:
    return {"e": choose.real("|lambda_1|", 1e-3, 0.999, log=True) * _overlaps(choose, 2, 5)}


def _difference(e: np.ndarray) -> float:
    top = np.abs(np.linalg.eigvalsh(e)).max()
    inverse = np.linalg.inv(np.eye(len(e)) + e)
    return float(np.abs(np.eye(len(e)) - inverse - e).max() / (top**2 / (1 - top**2)))


def _unscaled(choose: Choose) -> dict[str, Any]:
    e = _overlaps(choose, 4, 7)
    return {"e": e, "m": len(e) + choose.integer("M - K", 1, 10**9, log=True)}


def _least_eigenvalue(e: np.ndarray, m: int) -> float:
    """1/sqrt(K - 2) over the least |lambda_1| of c E at which some xi_n is zero; without one, over 1."""
    own = e.sum(axis=1) > 1e-12

    def positive(scale: float) -> bool:
        return bool((bounds.xi_over_gamma(np.eye(len(e)) + scale * e, m)[own] > 0).all())

    grid = np.linspace(0.02, 0.999, 50)
    grams = np.eye(len(e)) + grid[:, None, None] * e
    wrong = np.flatnonzero((bounds.xi_over_gamma(grams, m)[:, own] <= 0).any(axis=1))
    if not wrong.size:
        return 1 / math.sqrt(len(e) - 2)
    high = float(grid[wrong[0]])
    low = 0.0 if wrong[0] == 0 else float(grid[wrong[0] - 1])
    for _ in range(30):
        middle = (low + high) / 2
        low, high = (middle, high) if positive(middle) else (low, middle)
    return 1 / math.sqrt(len(e) - 2) / high


# Signs.


def _centred(choose: Choose) -> dict[str, Any]:
    """Equal classes under LayerNorm, with a common share off the border by a small part of it, on either side."""
    k, count = choose.integer("K", 2, 6), choose.integer("distinct tokens", 1, 3)
    least = 1 + k * count
    return {
        "k": k,
        "count": count,
        # Farther out and nearer, the overlap's distance from its border is below what a double tells from zero.
        "m": choose.integer("M", max(least, 10), 1000, log=True),
        "off": choose.real("distance", 1e-4, 0.1, log=True) * choose.one_of("side", (1, -1)),
    }


def _centred_sign(k: int, count: int, m: int, off: float) -> float:
    """p off the root p* of (M - 1) p^2 = 1 - p^2 - (1 - p)^2/count, one query, all classes alike."""
    # (M - 1 + 1 + 1/count) p^2 - (2/count) p - (1 - 1/count) = 0
    a, b, c = m + 1 / count, 1 / count, 1 - 1 / count
    border = (b + math.sqrt(b * b + a * c)) / a
    common = border * (1 + off)
    shares = np.zeros((k, 1 + k * count))
    shares[:, 0] = common
    for n in range(k):
        shares[n, 1 + n * count : 1 + (n + 1) * count] = (1 - common) / count
    falls = centred.speed(shares, m)[0] < 0
    return 1 - abs(off) if falls == (off > 0) else math.inf


def _leader(choose: Choose) -> dict[str, Any]:
    return {
        "k": choose.integer("K", 2, 3),
        "weaker": choose.real("P_2 / P_1", 0.05, 1.0, log=True),
        "off": choose.real("lead", 1e-6, 0.3, log=True) * choose.one_of("side", (1, -1)),
        "eta_z": choose.real("eta_Z", 1e-2, 10.0, log=True),
    }


def _leader_leads(k: int, weaker: float, off: float, eta_z: float) -> float:
    """A token of a smaller P that starts ln(P_1/P_2) + off above, in the theory flow: it leads if off > 0."""
    classes = SequenceClasses.single_common_token(k, 1000, common=0.3, distinct=[1.0, weaker])
    start = Layer.zeros(classes.population())
    z = np.array(start.Z)
    first, second = classes.distinct_tokens(0)
    z[0, second] = -math.log(weaker) + off
    layer = Layer(z, start.Y, None, start.multiplicity)
    rates: dict[str, Any] = {"eta_y": 1.0, "eta_z": eta_z, "t_end": 100.0}
    flow = gradient_flow(classes, decoder="theory", init=layer, n_times=3, rtol=1e-11, atol=1e-13, **rates)
    leads = flow.final.Z[0, second] - flow.final.Z[0, first] + math.log(weaker)
    return math.exp(-abs(off)) if leads * off > 0 and abs(leads) > abs(off) else math.inf


BORDERS = {
    one.name: one
    for one in (
        Border(
            "peak before t0'",
            "gamma peaks before t0' = K ln M/eta_Y for M >= 19",
            lambda choose: _sizes(choose, 19),
            _peak_is_early,
        ),
        Border(
            "largest gamma", "gamma <= W((M - 1)/e) (M - 1)/M, at t* with equality", _around_the_peak, _below_the_peak
        ),
        Border("first stage", "gamma <= eta_Y t/K at every t", _early, _first_stage),
        Border("Lemma 6", "M h <= eta_Y t and exp(M h) - 1 <= M eta_Y t", _visited, _ends_of_growth),
        Border("Lemma 7, halved", "0 <= h* - h <= eta_Y/M for every eta_Y", _steps, _step_gap),
        Border("(12)", "exp(2 f^2 B_n) <= chi <= exp(2 B_n), no common tokens", _tokens, _growth_bounds),
        Border("Remark 1", "s <= 1 - rho, with equality at K = M", _overlap, _slowdown),
        Border(
            "Lemma 17, sharp",
            "entries of E' - E: at most q^2/(1 - q^2), q = abs(lambda_1), with equality at K = 2",
            _scaled,
            _difference,
        ),
        Border("Theorem 1(a), sharp", "xi_n > 0 for abs(lambda_1) <= 1/sqrt(K - 2)", _unscaled, _least_eigenvalue),
        Border("LayerNorm", "equal classes: the common token falls above p*, and rises below", _centred, _centred_sign),
        Border(
            "Section 5",
            "of two distinct tokens the one of the larger P exp(z(0)) gets ahead",
            _leader,
            _leader_leads,
            flows=True,
        ),
    )
}

# <!-- numbers
# typed: 19 (condition of a theorem)
# typed: 2 (factor of a formula, or size at which a bound is reached)
# -->
