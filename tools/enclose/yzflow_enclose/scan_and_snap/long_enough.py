r"""The length from which on Theorem 2's signs hold in expectation over finite sequences, for given classes.

Theorem 2 is about T -> infinity. With T tokens a class shows S = T - 1 independent draws, with counts N. Its feature is
f = (a N)/||a N|| in place of f_n, with a_l = exp(z_l) of the attention logits. A decoder trained on long sequences
sends back g_n. Then the expected velocity of token l, divided by eta_Z gamma, is

    v_l = sum_n p_n E[ f_l g_nl - f_l^2 (f . g_n) ],    g_n = sum_n' w_nn' f_n'.

It contains no time and no learning rate: gamma > 0 is a factor. With y = a N/S, q = a P_n its mean and x =
||y||^2/||q||^2 - 1 it is made of E[y_l (1 + x)^(-1/2)] and of E[y_l^2 y_j (1 + x)^(-3/2)], where

    T_m(x) <= (1 + x)^(-b) <= T_m(x) + c x^(m+1),    m odd,

with the Taylor polynomial T_m. The constant c makes the right side exact at the least x of the class's tokens,
1/(||q||^2 sum_l a_l^-2) - 1 (`yzflow_beyond_scan_and_snap.proofs.finite_sequences`). Moments of multinomial counts are
polynomials in 1/S, and so are both bounds, which are off by O(S^(-(m+1)/2)). Their sign for **all** S from some S on is
decided by positive coefficients (Bernstein). Smaller S are decided one by one, by the bounds or by the sum over all
counts. If the same sequences train Y, E[f_n'] replaces f_n', with its own bounds.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb, arb_mat, arb_poly, fmpq
from numpy.typing import ArrayLike

from dynamics import SequenceClasses
from dynamics.support import checks
from yzflow_enclose.scan_and_snap.mean_features import Around, Means
from yzflow_enclose.stepping import precision

__all__ = ["LongEnough", "expected_rates", "long_enough"]

BITS = 300
MOST_COUNTS = 50_000  # the most counts of a length to sum over
LONGEST = 2**60

Rates = dict[tuple[int, int], tuple[arb_poly, arb_poly]]  # by query and token: two bounds, polynomials in 1/S


@dataclass(frozen=True)
class LongEnough:
    """The length from which on the signs hold, and the token that decides it.

    Attributes
    ----------
    length : int or None
        T: at this length and at every larger one all signs are proved. None if a sign does not hold in the limit, or if
        the polynomials leave one open.
    fails : int or None
        The largest T below it at which a sign is proved to fail.
    query, token : int
        The token whose sign is the last to hold, or does not hold in the limit, or is open.
    first_order : float
        T by the terms up to order 1/(T - 1): where the limit and the first correction of this token are equal.
    decided : bool
        False if ``length`` is None because a sign is open: no sign is then proved to fail in the limit.
    """

    length: int | None
    fails: int | None
    query: int
    token: int
    first_order: float
    decided: bool = True

    @property
    def exact(self) -> bool:
        """True if the signs fail at the length just below, so that ``length`` is the least."""
        return self.length is not None and self.fails == self.length - 1


def long_enough(classes: SequenceClasses, *, decoder: str = "modified", logits: ArrayLike | None = None) -> LongEnough:
    """The T from which on Theorem 2's signs hold in expectation, at given attention logits.

    Parameters
    ----------
    classes : SequenceClasses
        Classes of equal weights. Their probabilities are taken as the ratios of these floats, exactly.
    decoder : str
        "modified": w of (9), at any time, as in Theorem 2. "full": w_nn' = 1[n = n'] - 1/M, early in Lemma 1's flow.
        "trained": as "full", where the same sequences have made Y, so that E[f] is sent back in the place of f_n': the
        first moves of SGD from a zero decoder, in expectation and to leading order in the number of steps.
    logits : (n_queries, n_tokens) array, optional
        z, in the form of a trajectory of these classes; zero by default. exp(z), divided by the largest of its query,
        is taken as a float, exactly. The features that the decoder sends back are taken at z, as in Theorem 1.

    Returns
    -------
    LongEnough
        Proved in balls: distinct tokens gain, and common ones lose, at ``length`` and beyond.

    Raises
    ------
    ValueError
        If classes do not have equal weights; if the features of a modified decoder depend on each other; or if logits
        have another shape, are not finite, or are more than 600 below the largest.

    Examples
    --------
    >>> classes = SequenceClasses([[0.3, 0.65, 0.05, 0], [0.4, 0, 0, 0.6]], [0, 0], vocab_size=5)
    >>> found = long_enough(classes)
    >>> found.length, found.token, found.exact
    (179, 2, True)

    Notes
    -----
    If two tokens meet their limits only at infinity, as at exact ties, the polynomials cannot decide, and ``length`` is
    None, too. The model is that of Tian et al. (2023), arXiv 2305.16380, Sections 3.2 and 5.
    """
    with precision(BITS):
        task = _Task(classes, decoder, logits)
        wanted, rates = task.signs(), task.bounds()
        by_length, undecided = [], None
        for (query, token), sign in wanted.items():
            low, high = rates[query, token]
            if sign < 0:
                low, high = -high, -low
            first = math.inf if not high[0] > 0 else float((-low[1] / low[0]).mid()) + 1
            enough = _from_on(low)
            if enough is None:
                if high[0] < 0:
                    return LongEnough(None, None, query, token, first)
                undecided = undecided or LongEnough(None, None, query, token, first, decided=False)
                continue
            by_length.append((enough, query, token, first, low, high))
        if undecided is not None:
            return undecided
        found = LongEnough(0, 0, 0, 0, 0.0)
        for enough, query, token, first, low, high in sorted(by_length, key=lambda row: -row[0]):
            if found.length is not None and enough + 1 <= found.length:
                break
            holds, fails = _one_by_one(task, enough, query, token, wanted[query, token], (low, high))
            if holds + 1 > (found.length or 0):
                found = LongEnough(holds + 1, fails + 1, query, token, first)
        return found


def expected_rates(
    classes: SequenceClasses, length: int, *, decoder: str = "modified", logits: ArrayLike | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of v: the expected velocity of the logits, by eta_Z gamma, over sequences of this length.

    Parameters
    ----------
    classes, decoder, logits
        As for `long_enough`.
    length : int
        T >= 2.

    Returns
    -------
    low, high : (n_queries, n_tokens) arrays
        The sum over all counts, where there are few, in floats rounded outward; else what the polynomials leave.
    """
    length = checks.integer("length", length, minimum=2)
    with precision(BITS):
        task = _Task(classes, decoder, logits)
        low, high = np.zeros((2, int(classes.query.max()) + 1, classes.probabilities.shape[1]))
        rates = None if all(task.few(n, length - 1) for n in range(task.n_classes)) else task.bounds()
        for query, token in task.places():
            if rates is None:
                below = above = task.enumerated(query, token, length - 1)
            else:
                below, above = (one(1 / arb(length - 1)) for one in rates[query, token])
            low[query, token] = np.nextafter(float(below.lower()), -math.inf)
            high[query, token] = np.nextafter(float(above.upper()), math.inf)
    return low, high


class _Task:
    """Classes in exact numbers, and the weights w of their decoder in balls."""

    def __init__(self, classes: SequenceClasses, decoder: str, logits: ArrayLike | None = None):
        checks.instance("classes", classes, SequenceClasses)
        checks.one_of("decoder", decoder, DECODERS)
        weights = np.asarray(classes.class_weights)
        if np.ptp(weights) > 1e-12 * weights.max():
            raise checks.reject("classes", "have equal weights", checks.brief(weights.tolist()))
        self.classes, self.n_classes, self.vocab_size = classes, classes.n_classes, classes.vocab_size
        self.shares = [_exact(row) for row in classes.probabilities.toarray()]
        gains = _gains(classes, logits)
        self.gains = [gains[query] for query in classes.query]  # a
        pairs = zip(self.shares, self.gains, strict=True)
        self.pulls = [[p * a for p, a in zip(*of, strict=True)] for of in pairs]  # q
        self.squares = [sum((q * q for q in row), fmpq(0)) for row in self.pulls]
        self.tokens = [[token for token, p in enumerate(row) if p != 0] for row in self.shares]
        weights, self.trained = DECODERS[decoder]
        self.weights = weights(self)

    def of_full(self) -> list[list[arb]]:
        """w_nn' early in Lemma 1's flow: row n has the coefficients of g_n."""
        k, m = self.n_classes, arb(self.vocab_size)
        return [[arb(n == other) - 1 / m for other in range(k)] for n in range(k)]

    def of_modified(self) -> list[list[arb]]:
        """w_nn' of (9): row n has the coefficients of g_n."""
        k, m = self.n_classes, arb(self.vocab_size)
        gram, inner = arb_mat(k, k), arb_mat(k, k)
        for n, other in itertools.product(range(k), repeat=2):
            dot = sum((p * q for p, q in zip(self.pulls[n], self.pulls[other], strict=True)), fmpq(0))
            gram[n, other] = arb(dot) / (arb(self.squares[n]) * arb(self.squares[other])).sqrt()
            inner[n, other] = m / (m - 1) if n == other else -m / (m - 1) ** 2  # u_n of Theorem 1
        try:
            found = gram.solve(inner)
        except ZeroDivisionError:
            raise checks.reject("classes", "have features that are linearly independent", "dependent ones") from None
        return [[found[other, n] for other in range(k)] for n in range(k)]

    def places(self) -> Iterator[tuple[int, int]]:
        """The queries with the tokens that occur with them."""
        query = self.classes.query
        for m in np.unique(query):
            yield from ((int(m), t) for t in sorted({t for n in np.flatnonzero(query == m) for t in self.tokens[n]}))

    def signs(self) -> dict[tuple[int, int], int]:
        """Signs by Theorem 2: distinct tokens gain, common ones lose."""
        common = set(np.asarray(self.classes.common_tokens).tolist())
        return {(query, token): -1 if token in common else 1 for query, token in self.places()}

    def of(self, query: int, token: int) -> list[int]:
        """Classes of a query that have a token."""
        return [n for n in range(self.n_classes) if self.classes.query[n] == query and token in self.tokens[n]]

    def bounds(self) -> Rates:
        """Bounds of v as polynomials in 1/S, the lower and the upper one."""
        found: Rates = {}
        both = zip(self.shares, self.gains, self.tokens, strict=True)
        means = [_means(tuple(p[t] for t in own), tuple(a[t] for t in own)) for p, a, own in both]
        for n, own in enumerate(self.tokens):
            sent = [self.sent(means, n, token) for token in own]
            for place, token in enumerate(own):
                rate = means[n].feature(place) * sent[place]
                for other, g in enumerate(sent):
                    rate = rate - means[n].third(place, other) * g
                key, share = (int(self.classes.query[n]), token), 1 / arb(self.n_classes)
                low, high = found.get(key, (arb_poly([]), arb_poly([])))
                found[key] = low + (rate.value - rate.off) * share, high + (rate.value + rate.off) * share
        return found

    def sent(self, means: Sequence[Means], n: int, token: int) -> Around:
        """Entry of g_n at a token: a sum over the classes that have it."""
        total = Around(arb_poly([]), arb_poly([]))
        for k in range(self.n_classes):
            if self.pulls[k][token] != 0:
                own = Around(arb_poly([arb(self.pulls[k][token]) / means[k].norm]), arb_poly([]))
                feature = means[k].feature(self.tokens[k].index(token)) if self.trained else own
                total = total + feature * self.weights[n][k]
        return total

    def few(self, n: int, draws: int) -> bool:
        """True if the counts of a class are few enough to sum over."""
        return math.comb(draws + len(self.tokens[n]) - 1, len(self.tokens[n]) - 1) <= MOST_COUNTS

    def enumerated(self, query: int, token: int, draws: int) -> arb:
        """v of a token, summed over all counts."""
        total = arb(0)
        features = [self.mean_feature(k, draws) for k in range(self.n_classes)]
        for n in self.of(query, token):
            own = self.tokens[n]
            sent = [sum((self.weights[n][k] * features[k][j] for k in range(self.n_classes)), arb(0)) for j in own]
            place = own.index(token)
            for chance, pulls, root in self.all_counts(n, draws):
                if pulls[place]:
                    along = sum((g * y for g, y in zip(sent, pulls, strict=True)), arb(0))
                    total += chance * (pulls[place] * sent[place] - pulls[place] ** 2 * along / root**2) / root
        return total / self.n_classes

    def mean_feature(self, n: int, draws: int) -> list[arb]:
        """The vector that the decoder sends back for a class: its feature, or the mean feature over sequences."""
        norm = arb(self.squares[n]).sqrt()
        if not self.trained:
            return [arb(q) / norm for q in self.pulls[n]]
        found = [arb(0) for _ in self.pulls[n]]
        for chance, pulls, root in self.all_counts(n, draws):
            for token, y in zip(self.tokens[n], pulls, strict=True):
                found[token] += chance * y / root
        return found

    def all_counts(self, n: int, draws: int) -> Iterator[tuple[arb, list[fmpq], arb]]:
        """Probabilities of all counts of a class, a N, and its norm."""
        own = self.tokens[n]
        powers, gains = [_powers(self.shares[n][j], draws) for j in own], [self.gains[n][j] for j in own]
        factorial = arb(math.factorial(draws))
        for counts in _compositions(draws, len(own)):
            chance = math.prod((power[c] for power, c in zip(powers, counts, strict=True)), start=factorial)
            pulls = [a * c for a, c in zip(gains, counts, strict=True)]
            yield chance, pulls, arb(sum((y * y for y in pulls), fmpq(0))).sqrt()


# Decoder -> its weights, and whether it sends back the mean over the same sequences.
DECODERS = {
    "modified": (_Task.of_modified, False),
    "full": (_Task.of_full, False),
    "trained": (_Task.of_full, True),
}


# One result for all copies of a class, and for all decoders; always at BITS.
_means = functools.lru_cache(maxsize=64)(Means)


def _exact(row: np.ndarray) -> list[fmpq]:
    """Floats divided by their sum, exactly."""
    parts = [Fraction(float(p)) for p in row]
    total = sum(parts)
    return [fmpq(one.numerator, one.denominator) for one in (part / total for part in parts)]


def _gains(classes: SequenceClasses, logits: ArrayLike | None) -> list[list[fmpq]]:
    """exp(z) divided by the largest of its query, as floats, exactly."""
    shape = (int(classes.query.max()) + 1, classes.probabilities.shape[1])
    z = np.zeros(shape) if logits is None else checks.of_shape("logits", checks.finite_array("logits", logits), shape)
    below = z - z.max(axis=1, keepdims=True)
    if below.min() < -600:
        raise checks.reject("logits", "be within 600 of the largest of their query", float(below.min()))
    found = [[Fraction(float(a)) for a in row] for row in np.exp(below)]
    return [[fmpq(a.numerator, a.denominator) for a in row] for row in found]


def _powers(p: fmpq, most: int) -> list[arb]:
    """p^c/c!, c = 0 .. most."""
    found = [arb(1)]
    for c in range(1, most + 1):
        found.append(found[-1] * arb(p) / c)
    return found


def _compositions(total: int, parts: int) -> Iterator[tuple[int, ...]]:
    """Counts of so many tokens with this sum."""
    for bars in itertools.combinations(range(total + parts - 1), parts - 1):
        edges = (-1, *bars, total + parts - 1)
        yield tuple(right - left - 1 for left, right in itertools.pairwise(edges))


def _positive_from(polynomial: arb_poly, draws: int) -> bool:
    """Whether it is positive for all 0 < w <= 1/draws: so are all coefficients after w = 1/(draws (1 + t))."""
    coefficients = [one / arb(draws) ** k for k, one in enumerate(polynomial.coeffs())]
    top = len(coefficients) - 1
    return all(
        sum((coefficients[k] * math.comb(top - k, j) for k in range(top - j + 1)), arb(0)) > 0 for j in range(top + 1)
    )


def _from_on(polynomial: arb_poly) -> int | None:
    """The least number of draws from which on `_positive_from` decides; None where there is none."""
    if not polynomial[0] > 0:
        return None
    high = 1
    while not _positive_from(polynomial, high):
        high *= 2
        if high > LONGEST:
            return None
    low = high // 2
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if _positive_from(polynomial, middle) else (middle, high)
    return high


def _one_by_one(
    task: _Task, enough: int, query: int, token: int, sign: int, bounds: tuple[arb_poly, arb_poly]
) -> tuple[int, int]:
    """Draws from which on the sign is proved, and the most at which it fails; one draw gives f = e_l and no motion."""
    holds, unbroken = enough, True
    for draws in range(enough - 1, 1, -1):
        low, high = (one(1 / arb(draws)) for one in bounds)
        if not (low > 0 or high <= 0) and all(task.few(n, draws) for n in task.of(query, token)):
            low = high = task.enumerated(query, token, draws) * sign
        if high <= 0:
            return holds, draws
        unbroken = unbroken and bool(low > 0)
        holds = draws if unbroken else holds
    return holds, 1
