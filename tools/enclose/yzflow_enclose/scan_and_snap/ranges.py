"""Constants and inequalities of the closed forms for whole ranges of their parameters, certified in balls.

A scan looks at points. Here a range is cut into boxes, each a ball, until every box is decided. Beyond the last box the
values are bounded by an inequality, which is written beside. The formulas are those of `theory.scan_and_snap.decoder`
in the margin x = M h; M is a real number here, not only an integer.
"""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Callable, Sequence

from flint import arb

from dynamics.support import checks
from yzflow_enclose.scan_and_snap import balls
from yzflow_enclose.stepping import precision

_BITS = 80
Box = tuple[arb, ...]
Bounded = Callable[..., "arb | None"]


def _between(low: float | arb, high: float | arb) -> arb:
    return arb(low).union(arb(high))


def _size(vocab_size: float) -> float:
    size = checks.real("vocab_size", vocab_size)
    if size < 2:
        raise checks.reject("vocab_size", "be at least 2", size)
    return size


def _halves(box: Box) -> list[Box]:
    """The box cut in two across its relatively longest side."""
    sides = [float(side.rad()) / max(1.0, abs(float(side.mid()))) for side in box]
    longest = sides.index(max(sides))
    low, middle, high = box[longest].lower(), box[longest].mid(), box[longest].upper()
    return [(*box[:longest], part, *box[longest + 1 :]) for part in (_between(low, middle), _between(middle, high))]


def supremum(function: Bounded, boxes: Sequence[Box], *, accuracy: float, most: int = 200_000) -> arb:
    """A ball of the largest value of a function over boxes of its arguments.

    Parameters
    ----------
    function : callable
        From balls to a ball of all its values there; None if the box has no point of the domain.
    boxes : sequence of tuples of arb
    accuracy : float
        Radius up to which boxes are cut.
    most : int
        The most evaluations.

    Returns
    -------
    arb
        Its upper end is above every value; its lower end is a value, if centres near the domain's border are in the
        domain.

    Raises
    ------
    RuntimeError
        If the accuracy is not reached.
    ValueError
        If no box has a point of the domain.
    """
    order = itertools.count()
    best: arb | None = None
    heap: list[tuple[float, int, Box]] = []

    def visit(box: Box) -> None:
        nonlocal best
        value = function(*box)
        if value is None:
            return
        upper = float(value.upper()) if value.is_finite() else float("inf")
        heapq.heappush(heap, (-upper, next(order), box))
        at = function(*(side.mid() for side in box))
        if at is not None and at.is_finite():
            best = at.lower() if best is None else best.max(at.lower())

    for box in boxes:
        visit(box)
    for _ in range(most):
        if not heap:
            raise checks.reject("boxes", "have a point of the function's domain", len(boxes))
        upper, _, box = heap[0]
        if best is not None and -upper - float(best) <= 2 * accuracy:
            return best.union(arb(-upper) + arb(0, abs(upper) * 2.0**-50))
        heapq.heappop(heap)
        for half in _halves(box):
            visit(half)
    raise RuntimeError(f"the largest value was not found to {accuracy:g} in {most} boxes")


def holds(claim: Callable[..., bool | None], boxes: Sequence[Box], *, depth: int = 40) -> bool | None:
    """Decide whether a claim, true, false or open for a box, is true for all points of boxes."""
    waiting = [(box, 0) for box in boxes]
    while waiting:
        box, cuts = waiting.pop()
        value = claim(*box)
        if value is False:
            return False
        if value is None:
            if cuts == depth:
                return None
            waiting += [(half, cuts + 1) for half in _halves(box)]
    return True


def range_of(function: Callable[..., arb], *sides: tuple[float, float], accuracy: float) -> arb:
    """A ball of the values of a function whose arguments go through ranges, as narrow as ``accuracy`` asks.

    Parameters
    ----------
    function : callable
        From balls to a ball of all its values there, such as `yzflow_enclose.scan_and_snap.balls.margin`.
    *sides : (low, high)
        The range of each argument.
    accuracy : float
        The largest excess of either end.

    Examples
    --------
    gamma of 10 classes for M from 990 to 1010, at eta_Y = 1 and t from 50 to 60:

    >>> from yzflow_enclose.scan_and_snap import balls, ranges
    >>> gamma = lambda M, t: balls.gamma(balls.margin(M * t / 10, M), M)
    >>> ball = ranges.range_of(gamma, (990, 1010), (50, 60), accuracy=0.05)
    >>> print(f"{float(ball.lower()):.1f} to {float(ball.upper()):.1f}")
    4.3 to 4.5
    """
    with precision(_BITS):
        box = tuple(_between(low, high) for low, high in sides)
        upper = supremum(function, [box], accuracy=accuracy / 2)
        lower = supremum(lambda *at: -function(*at), [box], accuracy=accuracy / 2)
        return upper.upper().union(-lower.upper())


def transition(lambert: arb) -> tuple[arb, arb]:
    """M, and M eta_Y t*/K, from w = W((M - 1)/e) > 0: with u* = 1 + w, M - 1 = w exp(u*)."""
    peak = lambert + 1
    others = lambert * peak.exp()
    return others + 1, peak.exp() * (lambert * peak + 1) - 1


def _lambert(others: arb) -> arb:
    return (others / arb(1).exp()).lambertw()


def brackets_transition(factor: int, vocab_size: float) -> bool | None:
    """True if t* < factor K ln M/eta_Y for every real M from ``vocab_size`` on; factor 1 is t0', factor 2 is t0.

    Raises
    ------
    ValueError
        If the factor is neither 1 nor 2, or M below 2.
    """
    factor = checks.integer("factor", factor, minimum=1, maximum=2)
    vocab_size = _size(vocab_size)

    def claim(lambert: arb) -> bool | None:
        size, scaled = transition(lambert)
        rest = size * size.log() * factor - scaled
        return True if rest > 0 else False if rest <= 0 else None

    with precision(_BITS):
        first, last = _lambert(arb(vocab_size) - 1), arb(2)
        if first > last:
            return True
        # Only the lower end of the first box is sure to be in the range: a claim is false if it is false there.
        if claim(first) is False:
            return False
        return holds(claim, [(first.union(last),)])


def late_constant(accuracy: float = 2e-5) -> arb:
    r"""The least C with gamma <= C K ln(M eta_Y t/K)/(eta_Y t) for all t >= 2 K ln M/eta_Y and all real M >= 2.

    With x = M h, m = M - 1 and b = exp(x)/m, so that M tau = m x + m b - 1 for tau = eta_Y t/K, and q = m (x + b),

        C = (m/M)^2 x (q - 1)/(m (1 + b) ln(q - 1)) <= V = x (x + b)/((1 + b) (x + ln(1 + x/b))),

    since v/ln v grows from v = e on, q - 1 = M tau >= 2 M ln M > e, and ln q = x + ln(1 + x/b). The condition
    t >= 2 K ln M/eta_Y implies x + b >= 2 ln m = 2 (x - ln b). Then

    - b >= x gives V <= x (x + b)/((1 + b) x) < 1 + x/b <= 2, and x <= 2 gives V <= (x + b)/(1 + b) <= 2;
    - x >= 1000 and b <= x gives b >= x - 2 ln x and V <= 2 x/(1 + x - 2 ln x), which falls and is below 2.03;
    - the rest, 2 <= x <= 1000 and 1 <= b <= x (b < 1 would ask for x + 1 > 2 x), is cut into boxes.

    Parameters
    ----------
    accuracy : float
        Accuracy of the upper end, positive.

    Returns
    -------
    arb
        A ball: its upper end by the boxes, its lower by one M.
    """
    accuracy = checks.positive("accuracy", accuracy)
    with precision(_BITS):

        def bound(x: arb, b: arb) -> arb | None:
            if (x - b).upper() < 0 or (b - x + b.log() * 2).upper() < 0:
                return None
            return x * (x + b) / ((1 + b) * (x + (1 + x / b).log()))

        # Boxes grow with x: a ball has a radius of a few per cent.
        edges = [2 * 1.25**k for k in range(28)] + [1000.0]
        boxes = [(_between(low, high), _between(1, high)) for low, high in itertools.pairwise(edges)]
        upper = supremum(bound, boxes, accuracy=accuracy)
        return late_ratio(1.6e8).lower().union(upper.upper())


def late_ratio(vocab_size: float) -> arb:
    """gamma eta_Y t/(K ln(M eta_Y t/K)) at t = 2 K ln M/eta_Y, for one real M >= 2."""
    with precision(_BITS):
        size = arb(_size(vocab_size))
        tau = size.log() * 2
        x = balls.margin(size * tau, size)
        return balls.gamma(x, size) * tau / (size * tau).log()


def step_gap_below(constant: float, vocab_size: int, eta_y: tuple[float, float]) -> bool | None:
    """True if h*(s) - h(s) <= constant eta_Y/M for all visits s and all eta_Y of a range: Lemma 7 (a), sharper.

    M h*(s) grows with eta_Y as long as eta_Y <= 4 (M - 1)/M, so that the ends of a range bound it. And x* - g <= M h is
    equivalent to exp(x* - g) + (M - 1)(x* - g) <= M eta_Y s + 1. If the last increment of M h* is below the bound, no
    later gap is above it: either the gap does not widen, or it is below that increment (`theory.decoder.h_steps`).

    Parameters
    ----------
    constant : float
        1 is half of the lemma's.
    vocab_size : int
    eta_y : (float, float)
        Within (0, 1].

    Raises
    ------
    ValueError
        If an argument is out of its range.
    """
    constant = checks.positive("constant", constant)
    size = checks.integer("vocab_size", vocab_size, minimum=2)
    rule = "be a range within (0, 1]"
    ends = checks.listed("eta_y", eta_y, rule)
    if len(ends) != 2:
        raise checks.reject("eta_y", rule, eta_y)
    low, high = (checks.positive("eta_y", rate) for rate in ends)
    if not low <= high <= 1:
        raise checks.reject("eta_y", rule, eta_y)

    def claim(rate: arb) -> bool | None:
        slowest, fastest = rate.lower(), rate.upper()
        least, most, s, certain = arb(0), arb(0), 0, True
        while True:
            increments = [end * size / (x.exp() + (size - 1)) for end, x in ((slowest, least), (fastest, most))]
            if s > 0 and increments[1] < slowest * constant:
                return True if certain else None
            least, most = ((x + step) for x, step in zip((least, most), increments, strict=True))
            least, most, s = least.lower(), most.upper(), s + 1
            shown = most - slowest * constant
            certain = certain and bool(shown.exp() + shown * (size - 1) <= slowest * size * s + 1)
            shown = least - fastest * constant
            if shown.exp() + shown * (size - 1) > fastest * size * s + 1:
                return False

    with precision(_BITS):
        return holds(claim, [(_between(low, high),)], depth=24)
