"""Statements of Scan and Snap as claims about an enclosed flow: at every time, and for any rounding.

Each function takes the enclosed flows of a setting, a level and the tolerance of a check, and returns a predicate for
`yzflow_enclose.Enclosure.decide`. The predicate states in balls, for every time, the quantity that the function of the
same name in `theory.scan_and_snap.measures` measures at output times, in the register's form. Errors are relative to
the largest entry of the same time. A statement about a class is checked for every class, and for every query of a
token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import reduce
from typing import TYPE_CHECKING, Any

from dynamics.support import checks
from theory.scan_and_snap.statements import FLOWS
from theory.statements import Enclosing, Flows
from yzflow_enclose.scan_and_snap.view import Pairs, View

if TYPE_CHECKING:
    from flint import arb

    from yzflow_enclose import Claim, Enclosure, Moment, Quantity

Predicate = Callable[["Moment"], "Claim"]
# Zero sums hold to 1e-8 of the largest entry at M = 100,000 with these; 60 are too few.
BITS = 75


def enclose(setting: Any, level: str, *, t_end: float, max_seconds: float, folder: Any = None) -> Enclosure:
    """The flow of a level in balls; a certificate in ``folder``, if there is one, is checked again.

    Raises
    ------
    ValueError
        If the level is none of the flows, the setting has too many variables, or it does not start at zero.
    """
    from yzflow_enclose import kept

    if setting.start is not None:
        raise checks.reject("start", "be zero for a flow in balls", "a layer")
    rates = _rates(setting, level)
    return kept(folder, setting.classes, **rates, t_end=t_end, bits=BITS, max_seconds=max_seconds)


def question(setting: Any, level: str) -> Mapping[str, Any] | None:
    """Parts of a certificate's claim for the flow of a level; None if the flow cannot be enclosed."""
    from yzflow_enclose.populations import OfPopulation
    from yzflow_enclose.reading import read

    if setting.start is not None:
        return None
    try:
        return OfPopulation(read(setting.classes, **_rates(setting, level))).claim()
    except ValueError:  # too many variables
        return None


def _rates(setting: Any, level: str) -> dict[str, Any]:
    return {"eta_y": setting.eta_y, "eta_z": setting.eta_z, "decoder": level.removesuffix(" flow")}


# Parts of claims.


def _all(claims: Iterable[Claim]) -> Claim:
    claims = list(claims)
    if not claims:
        raise ValueError("the setting has nothing that the claim is about")
    return reduce(lambda first, second: first & second, claims)


def _between(low: Quantity, value: Quantity, high: Quantity) -> Claim:
    return (value - low >= 0) & (high - value >= 0)


def _near(found: Quantity, positive: Quantity, tolerance: float) -> Claim:
    """|found/positive - 1| <= tolerance."""
    margin = positive * tolerance
    return _between(positive - margin, found, positive + margin)


def _relative(flows: Flows, level: str, tolerance: float, pairs: Callable[[View], Pairs]) -> Predicate:
    """max |found - expected| <= tolerance max |expected| over ``pairs`` of them, or over the setting's whole run.

    The second maximum is over the pairs at the same time, or over the output times of the setting's run if that is
    larger. One large entry is enough to prove the claim, and all entries are needed to refute it.
    """
    run: list[arb] = []

    def claim(view: View) -> Claim:
        from yzflow_enclose import Claim

        found_here = pairs(view)
        errors = [found - expected for found, expected in found_here]
        bounds = [expected * tolerance for _, expected in found_here]
        largest = max(bounds, key=lambda bound: float(abs(bound.ball().mid())))
        # A wrong guess of its sign proves nothing.
        largest = largest if float(largest.ball().mid()) > 0 else -largest
        if _all(_between(-largest, error, largest) for error in errors).value:
            return Claim(True)
        if not run:
            run.append(_over_run(flows, level, pairs) * tolerance)
        if _all(_between(-largest * 0 - run[0], error, largest * 0 + run[0]) for error in errors).value:
            return Claim(True)
        sizes = [bound * bound for bound in bounds]
        least = run[0] * run[0]
        refuted = any(all((error * error > size).value for size in (*sizes, least)) for error in errors)
        return Claim(False if refuted else None)

    return _viewed(flows, level, claim)


def _over_run(flows: Flows, level: str, pairs: Callable[[View], Pairs]) -> arb:
    """A lower bound of the largest expected entry at 24 times of the setting's run."""
    import numpy as np
    from flint import arb

    enclosure = flows.enclosure(level)
    last = min(flows.setting.t_end, enclosure.t_reached)
    largest = arb(0)
    with enclosure.computing():
        for time in np.geomspace(last / 1000, last, 24).tolist():
            for _, expected in pairs(View(enclosure.moment(time), flows.setting)):
                largest = largest.max(expected.ball().abs_lower())
    return largest


def _viewed(flows: Flows, level: str, claim: Callable[[View], Claim]) -> Predicate:
    """The claim as a predicate; numbers of a span are kept, since every claim asks for the same spans first."""

    def predicate(at: Moment) -> Claim:
        key = level, at.start, at.end
        if key not in flows.memo:
            flows.memo[key] = View(at, flows.setting)
        return claim(flows.memo[key])

    return predicate


# The claims.


def zero_sums(flows: Flows, level: str, tolerance: float) -> Predicate:
    """Rows of Y and of Z sum to zero, relative to the largest entry."""
    y, z = (_relative(flows, level, tolerance, pairs) for pairs in (View.decoder_sums, View.query_sums))
    return lambda at: y(at) & z(at)


def lemma6_flow(flows: Flows, level: str, tolerance: float) -> Predicate:
    """h of the flow against the closed form."""

    def claim(view: View) -> Claim:
        return _all(_near(view.margin(n), view.x, tolerance) for n in view.at.next_tokens)

    return _viewed(flows, level, claim)


def theorem1(flows: Flows, level: str, tolerance: float) -> Predicate:
    """g_n = Y (e_n - alpha_n) against (9); in the theory flow, where Y = F (I - E') W, both reduce to gamma."""

    def pairs(view: View) -> Pairs:
        from yzflow_enclose.scan_and_snap import balls

        if level == "theory flow":
            return [(balls.gamma(view.margin(n), view.vocab_size), view.gamma) for n in view.at.next_tokens]
        found = []
        for n in view.at.next_tokens:
            signal, expected = view.found_signal(n), view.backpropagated(n)
            found += [(signal[token], expected[token]) for token in signal]
        return found

    return _relative(flows, level, tolerance, pairs)


def lemma4_corrected(flows: Flows, level: str, tolerance: float) -> Predicate:
    """The velocity of the logits against (10) with the class probability."""
    return _relative(flows, level, tolerance, View.velocities)


def theorem2_distinct(flows: Flows, level: str, tolerance: float) -> Predicate:
    """Every distinct token has gained."""
    return _viewed(flows, level, lambda view: _all(view.at.z(*place) > 0 for place in view.logits(common=False)))


def theorem2_distinct_velocity(flows: Flows, level: str, tolerance: float) -> Predicate:
    """Every distinct token gains."""
    return _viewed(flows, level, lambda view: _all(view.at.velocity(*p) > 0 for p in view.logits(common=False)))


def theorem2_common(flows: Flows, level: str, tolerance: float) -> Predicate:
    """Every common token has lost."""
    return _viewed(flows, level, lambda view: _all(view.at.z(*place) < 0 for place in view.logits(common=True)))


def theorem2_common_velocity(flows: Flows, level: str, tolerance: float) -> Predicate:
    """Every common token loses."""
    return _viewed(flows, level, lambda view: _all(view.at.velocity(*p) < 0 for p in view.logits(common=True)))


def theorem2_rate_corrected(flows: Flows, level: str, tolerance: float) -> Predicate:
    """z' of distinct tokens against f^2 xi_n/K, xi_n by (9)."""

    def pairs(view: View) -> Pairs:
        found = []
        for n in view.at.next_tokens:
            speed = view.gamma * view.xi_over_gamma(n) * view.eta_z / view.n_classes
            for token in view.distinct(n):
                f = view.at.feature(n, token)
                found.append((view.at.velocity(view.at.query(n), token), f * f * speed))
        return found

    return _relative(flows, level, tolerance, pairs)


def theorem3_identity(flows: Flows, level: str, tolerance: float) -> Predicate:
    """r_l/l'(t) = r_l/l'(0) chi_l(t) for the most frequent distinct token l of a class and each other."""
    from flint import arb

    def claim(view: View) -> Claim:
        claims = []
        for n in view.at.next_tokens:
            top, *others = view.distinct(n)
            chi = view.at.growth_factor(view.at.query(n), top)
            for other in others:
                first, second = (arb(float(view.classes.probabilities[[n], [token]][0])) for token in (top, other))
                start = first * first / (second * second) - 1
                claims.append(_near(view.at.relative_gain(n, top, other), chi * start, tolerance))
        return _all(claims)

    return _viewed(flows, level, claim)


def theorem3_monotony(flows: Flows, level: str, tolerance: float) -> Predicate:
    """No distinct token's lead over a less frequent one of its class shrinks."""

    def claim(view: View) -> Claim:
        claims = []
        for n in view.at.next_tokens:
            speeds = [view.at.velocity(view.at.query(n), token) for token in view.distinct(n)]
            claims += [first - second >= 0 for i, first in enumerate(speeds) for second in speeds[i + 1 :]]
        return _all(claims)

    return _viewed(flows, level, claim)


def theorem3_dominant(flows: Flows, level: str, tolerance: float) -> Predicate:
    """Attention of the most frequent distinct token of every class grows: z' above its mean by f^2."""

    def claim(view: View) -> Claim:
        claims = []
        for n in view.at.next_tokens:
            speed = {token: view.at.velocity(view.at.query(n), token) for token, _ in view.at.tokens(n)}
            weighed = []
            for token, copies in view.at.tokens(n):
                f = view.at.feature(n, token)
                weighed.append(f * f * speed[token] * copies)
            mean = sum(weighed, view.x * 0)
            claims.append(speed[view.distinct(n)[0]] - mean > 0)
        return _all(claims)

    return _viewed(flows, level, claim)


def theorem3_bounds(flows: Flows, level: str, tolerance: float) -> Predicate:
    """(12) for the most frequent distinct token, B_n = (eta_Z/K) int xi_n with xi_n by (9)."""
    from flint import arb

    # Integrals up to the end of each span; spans come in the order of time.
    sums: dict[tuple[int, float], arb] = {}

    def claim(view: View) -> Claim:
        at, claims = view.at, []
        for n in at.next_tokens:
            speed = view.gamma * view.xi_over_gamma(n) * view.eta_z / view.n_classes
            exponent, end = speed.integral(sums.setdefault((n, at.start), arb(0)))
            if (n, at.end) not in sums or end.rad() < sums[n, at.end].rad():
                sums[n, at.end] = end
            top = view.distinct(n)[0]
            counts = [(arb(float(view.classes.probabilities[[n], [t]][0])), k) for t, k in at.tokens(n)]
            own = arb(float(view.classes.probabilities[[n], [top]][0]))
            first = own * own / sum((count * count * k for count, k in counts), arb(0))
            grown = at.z(view.at.query(n), top) * 2
            low, high = exponent * (first * 2), exponent * 2
            claims.append(_between(low - low * tolerance, grown, high + high * tolerance))
        return _all(claims)

    return _viewed(flows, level, claim)


def theorem4_corrected(flows: Flows, level: str, tolerance: float) -> Predicate:
    """-z of the common token against B with B(0) = 0 and C_0 = 1/((K - 1) rho^2)."""
    from flint import arb

    from yzflow_enclose.scan_and_snap import balls

    def claim(view: View) -> Claim:
        rho = arb(flows.setting.overlap)
        c0 = 1 / (rho * rho * (view.n_classes - 1))
        rates = arb(view.eta_y), arb(view.eta_z)
        exponent = balls.growth_exponent(view.x, view.vocab_size, view.n_classes, *rates, c0)
        return _all(_near(-view.at.z(*place), exponent, tolerance) for place in view.logits(common=True))

    return _viewed(flows, level, claim)


def theorem5(flows: Flows, level: str, tolerance: float) -> Predicate:
    """Y against F (I - E') W with w_n = (M - 1) h(t/K) zeta_n; in the theory flow, h alone is left of both."""

    def pairs(view: View) -> Pairs:
        if level == "theory flow":
            return [(view.margin(n), view.x) for n in view.at.next_tokens]
        return view.decoder_entries()

    return _relative(flows, level, tolerance, pairs)


def corollary1(flows: Flows, level: str, tolerance: float) -> Predicate:
    """The loss against ln(1 + (M - 1) exp(-M h(t/K)))."""

    def claim(view: View) -> Claim:
        expected = ((-view.x).exp() * (view.vocab_size - 1) + 1).log()
        return _near(view.at.loss, expected, tolerance)

    return _viewed(flows, level, claim)


def remark1_corrected(flows: Flows, level: str, tolerance: float) -> Predicate:
    """The ratio of the full to the modified flow's logit of a common token against s."""
    from flint import arb

    modified = flows.enclosure("modified flow")

    def claim(view: View) -> Claim:
        rho, k, m = arb(flows.setting.overlap), view.n_classes, view.vocab_size
        slowdown = (1 - rho) * (rho * (k - 1) + 1) / (rho * (m - 1) + 1)
        beside = modified.moment(view.at.start, view.at.end)
        place = view.logits(common=True)[0]
        return _near(-view.at.z(*place), -beside.z(*place) * slowdown, tolerance)

    return _viewed(flows, level, claim)


# By the names of the measures that they are claims of.
CLAIMS = (
    zero_sums,
    lemma6_flow,
    theorem1,
    lemma4_corrected,
    theorem2_distinct,
    theorem2_distinct_velocity,
    theorem2_common,
    theorem2_common_velocity,
    theorem2_rate_corrected,
    theorem3_identity,
    theorem3_monotony,
    theorem3_dominant,
    theorem3_bounds,
    theorem4_corrected,
    theorem5,
    corollary1,
    remark1_corrected,
)
ENCLOSING = Enclosing(FLOWS, enclose, question, {claim.__name__: claim for claim in CLAIMS})
