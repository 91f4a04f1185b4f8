r"""From which length on the signs of Theorem 2 hold in expectation over finite sequences: decided for given classes.

Theorem 2 is about T -> infinity. With T tokens a class shows S = T - 1 independent draws, with counts N, and its
feature is f = (a N)/||a N|| in the place of f_n, with a_l = exp(z_l) of the attention logits. With the decoder that
long sequences have taught, which sends back g_n, the expected velocity of token l by eta_Z gamma is

    v_l = sum_n p_n E[ f_l g_nl - f_l^2 (f . g_n) ],    g_n = sum_n' w_nn' f_n'.

Neither a time nor a learning rate is in it: gamma > 0 is a factor. With y = a N/S, q = a P_n its mean and x =
||y||^2/||q||^2 - 1 it is made of E[y_l (1 + x)^(-1/2)] and of E[y_l^2 y_j (1 + x)^(-3/2)], where

    T_m(x) <= (1 + x)^(-b) <= T_m(x) + c x^(m+1),    m odd,

with the Taylor polynomial T_m, and c what makes the right side exact at the least x that the class's tokens have,
1/(||q||^2 sum_l a_l^-2) - 1 (`theory.scan_and_snap.proofs.finite_sequences`). Moments of multinomial counts are
polynomials in 1/S: so are both bounds, they are off by O(S^(-(m+1)/2)), and their sign for **all** S from some on is
decided by coefficients that are positive (Bernstein). Smaller S are decided one by one, by the bounds or by the sum
over all counts.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from flint import arb, arb_mat, arb_poly, ctx, fmpq, fmpq_poly
from numpy.typing import ArrayLike

from dynamics import SequenceClasses
from dynamics.support import checks

__all__ = ["LongEnough", "expected_rates", "long_enough"]

ORDER = 5  # m: the bounds are off by O(1/S^3), the difference of two lengths is of order 1/S^2
BITS = 300
MOST_COUNTS = 50_000  # sums over all counts of a length
LONGEST = 2**60

Series = list[fmpq_poly]  # by powers of a mark of ||N||^2, polynomials in a mark of factorial moments
Rates = dict[tuple[int, int], tuple[arb_poly, arb_poly]]  # by query and token, the bounds as polynomials in 1/S


@dataclass(frozen=True)
class LongEnough:
    """The length from which on the signs hold, and what decides it.

    Attributes
    ----------
    length : int or None
        T: at this length and at every larger one all signs are proved. None where one does not hold in the limit.
    fails : int or None
        The largest T below it at which a sign is proved to fail.
    query, token : int
        Whose sign is the last to hold, or does not hold in the limit.
    first_order : float
        T by the terms up to order 1/(T - 1): where the limit and the first correction of this token are equal.
    """

    length: int | None
    fails: int | None
    query: int
    token: int
    first_order: float

    @property
    def exact(self) -> bool:
        """Whether the signs fail at the length just below, so that no smaller one would do."""
        return self.length is not None and self.fails == self.length - 1


def long_enough(classes: SequenceClasses, *, decoder: str = "modified", logits: ArrayLike | None = None) -> LongEnough:
    """The T from which on Theorem 2's signs hold in expectation, at given attention logits.

    Parameters
    ----------
    classes : SequenceClasses
        Of equal weights. Their probabilities are taken as the ratios of these floats, exactly.
    decoder : str
        "modified": w of (9), at any time, as in Theorem 2. "full": w_nn' = 1[n = n'] - 1/M, early in Lemma 1's flow.
    logits : (n_queries, n_tokens) array, optional
        z, as a trajectory of these classes has them; zero by default. exp(z), over the largest of its query, is taken
        as a float, exactly. The features that the decoder sends back are those at z, as in Theorem 1.

    Returns
    -------
    LongEnough
        Proved in balls: distinct tokens gain, and common ones lose, at ``length`` and beyond.

    Raises
    ------
    ValueError
        If classes do not have equal weights, the features of a modified decoder depend on each other, or logits have
        another shape or are not finite, or more than 600 below the largest.

    Examples
    --------
    >>> classes = SequenceClasses([[0.3, 0.65, 0.05, 0], [0.4, 0, 0, 0.6]], [0, 0], vocab_size=5)
    >>> found = long_enough(classes)
    >>> found.length, found.token, found.exact
    (179, 2, True)

    Notes
    -----
    Where two tokens meet their limits only at infinity, as at exact ties, the polynomials cannot decide, and ``length``
    is None, too. The model is that of Tian et al. (2023), arXiv 2305.16380, Sections 3.2 and 5.
    """
    with ctx.workprec(BITS):
        task = _Task(classes, decoder, logits)
        wanted, rates = task.signs(), task.bounds()
        by_length = []
        for (query, token), sign in wanted.items():
            low, high = rates[query, token]
            if sign < 0:
                low, high = -high, -low
            first = math.inf if not high[0] > 0 else float((-low[1] / low[0]).mid()) + 1
            enough = _from_on(low)
            if enough is None:
                return LongEnough(None, None, query, token, first)
            by_length.append((enough, query, token, first, low, high))
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
    with ctx.workprec(BITS):
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
        self.weights = DECODERS[decoder](self)

    def of_full(self) -> list[list[arb]]:
        """w_nn' of Lemma 1's flow early on: row n says what g_n is made of."""
        k, m = self.n_classes, arb(self.vocab_size)
        return [[arb(n == other) - 1 / m for other in range(k)] for n in range(k)]

    def of_modified(self) -> list[list[arb]]:
        """w_nn' of (9): row n says what g_n is made of."""
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
        # Classes that are copies of each other have the same moments, and see the same parts of each other.
        moments_of = functools.cache(_Moments)
        parts_of = functools.cache(_Moments.parts)
        for n in range(self.n_classes):
            own = self.tokens[n]
            others = [k for k in range(self.n_classes) if any(self.shares[k][token] != 0 for token in own)]
            gains = tuple(self.gains[n][token] for token in own)
            moments = moments_of(tuple(self.shares[n][token] for token in own), gains)
            rests = [_remainder(power, _least(gains) / moments.square) for power in (1, 3)]
            for place, token in enumerate(own):
                low = high = arb_poly([])
                for other in others:
                    toward, away = parts_of(moments, place, tuple(self.pulls[other][token] for token in own))
                    scale = self.weights[n][other] / (arb(self.squares[other]) * arb(moments.square)).sqrt()
                    main = _in_balls(toward[0] - away[0])
                    ends = main - _in_balls(away[1]) * rests[1], main + _in_balls(toward[1]) * rests[0]
                    if not (scale > 0 or scale < 0):
                        size = max(len(end) for end in ends)
                        ends = (arb_poly([ends[0][k].union(ends[1][k]) for k in range(size)]),) * 2
                    below, above = ends[::-1] if scale < 0 else ends
                    low, high = low + below * scale, high + above * scale
                key, share = (int(self.classes.query[n]), token), 1 / arb(self.n_classes)
                before = found.get(key, (arb_poly([]), arb_poly([])))
                found[key] = before[0] + low * share, before[1] + high * share
        return found

    def few(self, n: int, draws: int) -> bool:
        """Whether the counts of a class can be summed over."""
        return math.comb(draws + len(self.tokens[n]) - 1, len(self.tokens[n]) - 1) <= MOST_COUNTS

    def enumerated(self, query: int, token: int, draws: int) -> arb:
        """v of a token, summed over all counts."""
        total = arb(0)
        for n in self.of(query, token):
            own = self.tokens[n]
            sent = [
                sum(
                    (self.weights[n][k] * arb(self.pulls[k][j]) / arb(self.squares[k]).sqrt()
                     for k in range(self.n_classes)),
                    arb(0),
                )
                for j in own
            ]  # fmt: skip
            place, powers = own.index(token), [_powers(self.shares[n][j], draws) for j in own]
            gains = [self.gains[n][j] for j in own]
            factorial = arb(math.factorial(draws))
            for counts in _compositions(draws, len(own)):
                if counts[place]:
                    chance, along, square = factorial, arb(0), arb(0)
                    for c, power, g, a in zip(counts, powers, sent, gains, strict=True):
                        chance, along, square = chance * power[c], along + g * (a * c), square + (a * c) ** 2
                    root, pull = square.sqrt(), gains[place] * counts[place]
                    total += chance * (pull * sent[place] - pull**2 * along / square) / root
        return total / self.n_classes


# Weights of what is sent back, by decoder.
DECODERS = {"modified": _Task.of_modified, "full": _Task.of_full}


class _Moments:
    """Moments of one class's counts, by factorial ones, as polynomials in 1/S."""

    def __init__(self, shares: Sequence[fmpq], gains: Sequence[fmpq]):
        self.square = sum(((p * a) ** 2 for p, a in zip(shares, gains, strict=True)), fmpq(0))
        single = [[_marked(p, a, weight) for weight in range(4)] for p, a in zip(shares, gains, strict=True)]
        self.all = _one()
        for series in single:
            self.all = _times(self.all, series[0])
        # A token's weight N^1, N^2 or N^3, as a factor of the product over all tokens.
        self.ratios = [[_times(series[w], _inverse(series[0])) for w in (1, 2, 3)] for series in single]

    def parts(self, place: int, v: Sequence[fmpq]) -> tuple[tuple[fmpq_poly, fmpq_poly], tuple[fmpq_poly, fmpq_poly]]:
        """v_l E[y_l (1 + x)^(-1/2)] and E[y_l^2 (y . v) (1 + x)^(-3/2)]/||P||^2: each by T_m, and by x^(m+1)."""
        first = self._central(_times(self.all, self.ratios[place][0]), 1)
        second = _times(self.all, self.ratios[place][1])
        along = [fmpq_poly([])] * (ORDER + 2)
        for j, share in enumerate(v):
            if share != 0 and j != place:
                along = [one + share * ratio for one, ratio in zip(along, self.ratios[j][0], strict=True)]
        third = _times(second, along)
        if v[place] != 0:
            own = _times(self.all, self.ratios[place][2])
            third = [one + v[place] * other for one, other in zip(third, own, strict=True)]
        away = [one / self.square for one in self._central(third, 3)]
        toward = [one * v[place] for one in first]
        return tuple((_taylor(power, terms), terms[-1]) for power, terms in ((1, toward), (3, away)))  # type: ignore

    def _central(self, series: Series, degree: int) -> list[fmpq_poly]:
        """E[weight x^r], r = 0 .. m + 1, of a weight of this degree in y."""
        raw = [
            _by_length(one, 2 * r + degree) * fmpq(math.factorial(r)) / self.square**r for r, one in enumerate(series)
        ]
        return [
            sum((raw[k] * ((-1) ** (r - k) * math.comb(r, k)) for k in range(r + 1)), fmpq_poly([]))
            for r in range(len(raw))
        ]


def _exact(row: np.ndarray) -> list[fmpq]:
    """Floats divided by their sum, exactly."""
    parts = [Fraction(float(p)) for p in row]
    total = sum(parts)
    return [fmpq(one.numerator, one.denominator) for one in (part / total for part in parts)]


def _gains(classes: SequenceClasses, logits: ArrayLike | None) -> list[list[fmpq]]:
    """exp(z) over the largest of its query, as floats, exactly."""
    shape = (int(classes.query.max()) + 1, classes.probabilities.shape[1])
    z = np.zeros(shape) if logits is None else checks.of_shape("logits", checks.finite_array("logits", logits), shape)
    below = z - z.max(axis=1, keepdims=True)
    if below.min() < -600:
        raise checks.reject("logits", "be within 600 of the largest of their query", float(below.min()))
    found = [[Fraction(float(a)) for a in row] for row in np.exp(below)]
    return [[fmpq(a.numerator, a.denominator) for a in row] for row in found]


def _least(gains: Sequence[fmpq]) -> fmpq:
    """The least ||a N||^2/S^2, as the sum of y_l/a_l is 1."""
    return 1 / sum((1 / (a * a) for a in gains), fmpq(0))


def _marked(p: fmpq, a: fmpq, weight: int) -> Series:
    """sum_r t^r/r! of (a N)^(2r + weight) by factorial moments: N^d = sum_i S(d, i) (N)_i, with p^i u^i for (N)_i."""
    found = []
    for r in range(ORDER + 2):
        degree = 2 * r + weight
        scale = a**degree / math.factorial(r)
        found.append(fmpq_poly([p**i * _stirling(degree, i) * scale for i in range(degree + 1)]))
    return found


def _stirling(n: int, k: int) -> int:
    """Stirling's number of the second kind."""
    return sum((-1) ** (k - j) * math.comb(k, j) * j**n for j in range(k + 1)) // math.factorial(k)


def _one() -> Series:
    return [fmpq_poly([1]), *[fmpq_poly([])] * (ORDER + 1)]


def _times(a: Series, b: Series) -> Series:
    return [sum((a[i] * b[r - i] for i in range(r + 1)), fmpq_poly([])) for r in range(ORDER + 2)]


def _inverse(a: Series) -> Series:
    """1/a of a series that starts with one."""
    found = [fmpq_poly([1])]
    for r in range(1, ORDER + 2):
        found.append(-sum((a[i] * found[r - i] for i in range(1, r + 1)), fmpq_poly([])))
    return found


def _by_length(moments: fmpq_poly, degree: int) -> fmpq_poly:
    """E over S draws, divided by S^degree, as a polynomial in w = 1/S: u^i stands for S (S - 1) .. (S - i + 1)."""
    found, falling = fmpq_poly([]), fmpq_poly([1])
    for i, one in enumerate(moments.coeffs()):
        if one != 0:
            found += one * fmpq_poly([0, 1]) ** (degree - i) * falling
        falling *= fmpq_poly([1, -i])
    return found


def _binomial(power: int, r: int) -> fmpq:
    """Coefficient of x^r in (1 + x)^(-power/2)."""
    found = fmpq(1)
    for i in range(r):
        found *= fmpq(-power - 2 * i, 2 * (i + 1))
    return found


def _taylor(power: int, terms: Sequence[fmpq_poly]) -> fmpq_poly:
    """T_m of (1 + x)^(-power/2), with the moments in the place of the powers of x."""
    return sum((terms[r] * _binomial(power, r) for r in range(ORDER + 1)), fmpq_poly([]))


def _remainder(power: int, least: fmpq) -> arb:
    """c: the quotient ((1 + x)^(-a) - T_m)/x^(m+1) at 1 + x = ``least``, written on its root y, where x = 0 is no pole.

    With x = y^2 - 1 the numerator 1 - y^power T_m(x) has the factor (1 - y)^(m+1).
    """
    x = fmpq_poly([-1, 0, 1])
    taylor = sum((x**r * _binomial(power, r) for r in range(ORDER + 1)), fmpq_poly([]))
    quotient, rest = divmod(1 - fmpq_poly([0, 1]) ** power * taylor, fmpq_poly([1, -1]) ** (ORDER + 1))
    if rest != 0:
        raise ArithmeticError("the Taylor polynomial does not leave a remainder of its order")
    y = arb(least).sqrt()
    return _in_balls(quotient)(y) / (y**power * (1 + y) ** (ORDER + 1))


def _in_balls(polynomial: fmpq_poly) -> arb_poly:
    return arb_poly([arb(one) for one in polynomial.coeffs()])


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
