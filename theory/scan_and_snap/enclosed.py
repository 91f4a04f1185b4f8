"""Statements of Scan and Snap as claims about an enclosed flow: at every time, and whatever the rounding.

Each function takes the enclosed flows of a setting, a level and the tolerance of a check, and returns what
`theory.enclosures.Enclosure.decide` decides: a claim about a span of time. It says of every time in balls what
the function of the same name in `theory.scan_and_snap.measures` measures at output times, in the register's form, with
errors relative to the largest entry of the same time. Where a statement speaks of a class, every class is looked at,
and every query of a token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any

from dynamics.support import checks
from theory.statements import Flows

if TYPE_CHECKING:
    from flint import arb

    from theory.enclosures import Claim, Enclosure, Moment, Quantity

Predicate = Callable[["Moment"], "Claim"]
# Zero sums hold to 1e-8 of the largest entry at M = 100,000 with these; 60 are too few.
BITS = 75
# The slow-down s is the limit of a ratio at t = 0; it is compared up to this time, the first that the audit records.
EARLY = 0.01


def enclose(setting: Any, level: str, *, t_end: float, max_seconds: float, folder: Any = None) -> Enclosure:
    """The flow of a level in balls; from a certificate in ``folder``, checked again, if there is one.

    Raises
    ------
    ValueError
        If the level is none of the flows, the setting has too many variables, or one of them does not start at zero.
    """
    from theory.enclosures import kept

    if setting.start is not None:
        raise checks.reject("start", "be zero for a flow in balls", "a layer")
    rates = _rates(setting, level)
    return kept(folder, setting.classes, **rates, t_end=t_end, bits=BITS, max_seconds=max_seconds)


def question(setting: Any, level: str) -> Mapping[str, Any] | None:
    """Those parts of a certificate's claim that the flow of a level has; None where the flow cannot be enclosed."""
    from theory.enclosures.populations import OfPopulation
    from theory.enclosures.reading import read

    if setting.start is not None:
        return None
    try:
        return OfPopulation(read(setting.classes, **_rates(setting, level))).claim()
    except ValueError:  # too many variables
        return None


def _rates(setting: Any, level: str) -> dict[str, Any]:
    return {"eta_y": setting.eta_y, "eta_z": setting.eta_z, "decoder": level.removesuffix(" flow")}


# How a claim is put together.


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


Pairs = Sequence[tuple["Quantity", "Quantity"]]


def _relative(flows: Flows, level: str, tolerance: float, pairs: Callable[[_View], Pairs]) -> Predicate:
    """max |found - expected| <= tolerance max |expected| over ``pairs`` of them, or over the setting's whole run.

    The second maximum is that of the time, or of the output times of the setting's run if that is larger. One entry
    that is large is enough to prove it, and all entries are needed to refute it.
    """
    run: list[arb] = []

    def claim(view: _View) -> Claim:
        from theory.enclosures import Claim

        found_here = pairs(view)
        errors = [found - expected for found, expected in found_here]
        bounds = [expected * tolerance for _, expected in found_here]
        largest = max(bounds, key=lambda bound: float(abs(bound.ball().mid())))
        # If its sign is guessed wrong, nothing is proved.
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


def _over_run(flows: Flows, level: str, pairs: Callable[[_View], Pairs]) -> arb:
    """A lower bound of the largest expected entry at 24 times of the setting's run."""
    import numpy as np
    from flint import arb

    enclosure = flows.enclosure(level)
    last = min(flows.setting.t_end, enclosure.t_reached)
    largest = arb(0)
    with enclosure.computing():
        for time in np.geomspace(last / 1000, last, 24).tolist():
            for _, expected in pairs(_View(enclosure.moment(time), flows.setting)):
                largest = largest.max(expected.ball().abs_lower())
    return largest


# What the paper's formulas are made of.


class _View:
    """A moment of a flow of a setting, with the numbers of the paper's formulas."""

    def __init__(self, at: Moment, setting: Any):
        self.at = at
        self.classes = setting.classes
        self.n_classes, self.vocab_size = setting.classes.n_classes, setting.classes.vocab_size
        self.eta_y, self.eta_z = setting.eta_y, setting.eta_z
        self.common = frozenset(setting.classes.common_tokens.tolist())

    @cached_property
    def x(self) -> Quantity:
        """The margin M h(t/K) in closed form."""
        from flint import arb

        from theory.scan_and_snap import balls

        rate = arb(self.eta_y) * self.vocab_size / self.n_classes
        return self.at.along(lambda t: balls.margin_series(t * rate, self.vocab_size))

    @cached_property
    def gamma(self) -> Quantity:
        from theory.scan_and_snap import balls

        return balls.gamma(self.x, self.vocab_size)

    @property
    def _one_query(self) -> bool:
        return len(self.classes.query_tokens) == 1

    def distinct(self, n: int) -> list[int]:
        """Distinct tokens of a class, the most frequent first."""
        own = [token for token, _ in self.at.tokens(n) if token not in self.common]
        return sorted(own, key=lambda token: -self.classes.probabilities[[n], [token]][0])

    def shared(self, n: int) -> list[int]:
        return [token for token, _ in self.at.tokens(n) if token in self.common]

    def _coefficients(self, n: int, right: Sequence[Any]) -> list[Quantity]:
        """(F^T F)^{-1} of a vector with one entry for each class that n sees."""
        from theory.enclosures.fields import solve

        zero = self.x * 0
        return [row[0] for row in solve(self.at.gram(n), [[zero + entry] for entry in right])]

    def _combined(self, n: int, coefficients: Sequence[Quantity]) -> dict[int, Quantity]:
        """sum_n' c_n' f_n' at every kind of token that n, or a class that n sees, has."""
        seen = self.at.seen_from(n)
        zero = self.x * 0
        found = {}
        for name, _ in seen:
            for token, _ in self.at.tokens(name):
                if token not in found:
                    # Of a token in common, each of the classes that are alike has the same entry of F.
                    terms = [
                        self.at.feature(other, token) * c * (copies if token in self.common else 1)
                        for (other, copies), c in zip(seen, coefficients, strict=True)
                    ]
                    found[token] = sum(terms, zero)
        return found

    def signal(self, n: int) -> list[Quantity]:
        """Coefficients of g_n/gamma by (9), (I - E') u_n, with I - E' = (F^T F)^{-1}."""
        from flint import arb

        size = arb(self.vocab_size)
        inner = [size / (size - 1) if name == n else -size / (size - 1) ** 2 for name, _ in self.at.seen_from(n)]
        return self._coefficients(n, inner)

    def backpropagated(self, n: int) -> dict[int, Quantity]:
        """g_n by (9) at the features of this time."""
        return {token: value * self.gamma for token, value in self._combined(n, self.signal(n)).items()}

    def xi_over_gamma(self, n: int) -> Quantity:
        """sum over n' != n of beta_nn' f_n.f_n' by (9)."""
        signal = self.signal(n)
        terms = [
            self.at.overlap(n, name) * c * (-copies)
            for (name, copies), c in zip(self.at.seen_from(n)[1:], signal[1:], strict=True)
        ]
        return sum(terms, self.x * 0)

    def _columns(self, n: int) -> list[tuple[int, int]]:
        """Next tokens and how many are like them: those that n sees, and one that never occurs."""
        unseen = self.vocab_size - self.n_classes
        return self.at.seen_from(n) + ([(self.n_classes, unseen)] if unseen else [])

    def found_signal(self, n: int) -> dict[int, Quantity]:
        """g_n = Y (e_n - alpha_n) of the flow."""
        columns = self._columns(n)
        own = self.at.tokens(n)
        logits = [
            sum((self.at.feature(n, token) * self.at.y(token, name) * k for token, k in own), self.x * 0)
            for name, _ in columns
        ]
        odds = [(logit - logits[0]).exp() for logit in logits[1:]]
        weights = [copies for _, copies in columns[1:]]
        rest = sum((odd * k for odd, k in zip(odds, weights, strict=True)), self.x * 0)
        share = 1 / (rest + 1)
        residual = [rest * share, *(odd * share * (-k) for odd, k in zip(odds, weights, strict=True))]
        tokens = {token for name, _ in self.at.seen_from(n) for token, _ in self.at.tokens(name)}
        return {
            token: sum((y * r for y, r in zip(self._row(token, n, columns), residual, strict=True)), self.x * 0)
            for token in sorted(tokens)
        }

    def _row(self, token: int, n: int, columns: Sequence[tuple[int, int]]) -> list[Quantity]:
        """Mean of Y[token, .] over the next tokens that each column stands for."""
        row = []
        for name, copies in columns:
            value = self.at.y(token, name)
            if copies > 1 and name < self.n_classes and token not in self.common and name in self._owners(token):
                # A distinct token of one of the classes that are alike: its own column, and the others'.
                value = (value + self.at.y(token, n) * (copies - 1)) / copies
            row.append(value)
        return row

    def _owners(self, token: int) -> list[int]:
        return self.classes.probabilities[:, [token]].nonzero()[0].tolist()

    def margin(self, n: int) -> Quantity:
        """M h_n of the theory flow."""
        return self.at.h(n) * self.vocab_size

    def decoder_sums(self) -> Pairs:
        """For each row of Y its sum plus an entry, and that entry."""
        found = []
        for n in self.at.next_tokens:
            columns = self._columns(n)
            for token, _ in self.at.tokens(n):
                row = zip(columns, self._row(token, n, columns), strict=True)
                entry = self.at.y(token, n)
                found.append((sum((y * copies for (_, copies), y in row), entry), entry))
        return found

    def query_sums(self) -> Pairs:
        """For each row of Z its sum plus its largest entry, and that entry."""
        rows: dict[int, dict[int, Quantity]] = {}
        for n in self.at.next_tokens:
            alike = self.n_classes if self.at.exchangeable and self._one_query else 1
            for token, copies in self.at.tokens(n):
                times = copies if token in self.common else copies * alike
                rows.setdefault(self.at.query(n), {})[token] = self.at.z(self.at.query(n), token) * times
        found = []
        for row in rows.values():
            largest = max(row.values(), key=lambda value: float(abs(value.ball().mid())))
            found.append((sum(row.values(), largest), largest))
        return found

    def decoder_entries(self) -> Pairs:
        """Y[l, n], and (F (I - E') W)[l, n] with the margin in closed form."""
        from flint import arb

        last, found = -1 / arb(self.vocab_size), []
        for n in self.at.next_tokens:
            seen = self.at.seen_from(n)
            for name, _ in self._columns(n):
                if name == n or name == self.n_classes:
                    right = [last + 1 if other == name else last for other, _ in seen]
                    expected = self._combined(n, self._coefficients(n, right))
                    found += [(self.at.y(token, name), value * self.x) for token, value in expected.items()]
        return found

    def _pull(self, n: int) -> dict[int, Quantity]:
        """f_n * (g_n - f_n (f_n . g_n)), what class n adds to (10)."""
        g, own = self.backpropagated(n), self.at.tokens(n)
        along = sum((self.at.feature(n, token) * g[token] * k for token, k in own), self.x * 0)
        return {
            token: f * (g[token] - f * along) for token, f in ((token, self.at.feature(n, token)) for token, _ in own)
        }

    def velocities(self) -> Pairs:
        """dz/dt of every query and token, and what (10) says with the class probability 1/K."""
        expected: dict[tuple[int, int], Quantity] = {}
        for n in self.at.next_tokens:
            alike = self.n_classes if self.at.exchangeable and self._one_query else 1
            for token, value in self._pull(n).items():
                place = self.at.query(n), token
                share = value * self.eta_z * (alike if token in self.common else 1) / self.n_classes
                expected[place] = expected[place] + share if place in expected else share
        return [(self.at.velocity(*place), value) for place, value in expected.items()]

    def logits(self, common: bool) -> list[tuple[int, int]]:
        """Query and token of every logit of a common, or of a distinct token."""
        chosen = self.shared if common else self.distinct
        return sorted({(self.at.query(n), token) for n in self.at.next_tokens for token in chosen(n)})


def _viewed(flows: Flows, level: str, claim: Callable[[_View], Claim]) -> Predicate:
    """The claim with its numbers; those of a span are kept, since every claim asks for the same spans first."""

    def predicate(at: Moment) -> Claim:
        key = level, at.start, at.end
        if key not in flows.memo:
            flows.memo[key] = _View(at, flows.setting)
        return claim(flows.memo[key])

    return predicate


# The claims.


def zero_sums(flows: Flows, level: str, tolerance: float) -> Predicate:
    """Rows of Y and of Z sum to zero, relative to the largest entry."""
    y, z = (_relative(flows, level, tolerance, pairs) for pairs in (_View.decoder_sums, _View.query_sums))
    return lambda at: y(at) & z(at)


def lemma6_flow(flows: Flows, level: str, tolerance: float) -> Predicate:
    """h of the flow against the closed form."""

    def claim(view: _View) -> Claim:
        return _all(_near(view.margin(n), view.x, tolerance) for n in view.at.next_tokens)

    return _viewed(flows, level, claim)


def theorem1(flows: Flows, level: str, tolerance: float) -> Predicate:
    """g_n = Y (e_n - alpha_n) against (9); in the theory flow, where Y = F (I - E') W, gamma alone is left of both."""

    def pairs(view: _View) -> Pairs:
        from theory.scan_and_snap import balls

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
    return _relative(flows, level, tolerance, _View.velocities)


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

    def pairs(view: _View) -> Pairs:
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

    def claim(view: _View) -> Claim:
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

    def claim(view: _View) -> Claim:
        claims = []
        for n in view.at.next_tokens:
            speeds = [view.at.velocity(view.at.query(n), token) for token in view.distinct(n)]
            claims += [first - second >= 0 for i, first in enumerate(speeds) for second in speeds[i + 1 :]]
        return _all(claims)

    return _viewed(flows, level, claim)


def theorem3_dominant(flows: Flows, level: str, tolerance: float) -> Predicate:
    """Attention of the most frequent distinct token of every class grows: z' above its mean by f^2."""

    def claim(view: _View) -> Claim:
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

    # Integrals up to the end of each span; spans are asked for in the order of time.
    sums: dict[tuple[int, float], arb] = {}

    def claim(view: _View) -> Claim:
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

    from theory.scan_and_snap import balls

    def claim(view: _View) -> Claim:
        rho = arb(flows.setting.overlap)
        c0 = 1 / (rho * rho * (view.n_classes - 1))
        rates = arb(view.eta_y), arb(view.eta_z)
        exponent = balls.growth_exponent(view.x, view.vocab_size, view.n_classes, *rates, c0)
        return _all(_near(-view.at.z(*place), exponent, tolerance) for place in view.logits(common=True))

    return _viewed(flows, level, claim)


def theorem5(flows: Flows, level: str, tolerance: float) -> Predicate:
    """Y against F (I - E') W with w_n = (M - 1) h(t/K) zeta_n; in the theory flow, h alone is left of both."""

    def pairs(view: _View) -> Pairs:
        if level == "theory flow":
            return [(view.margin(n), view.x) for n in view.at.next_tokens]
        return view.decoder_entries()

    return _relative(flows, level, tolerance, pairs)


def corollary1(flows: Flows, level: str, tolerance: float) -> Predicate:
    """The loss against ln(1 + (M - 1) exp(-M h(t/K)))."""

    def claim(view: _View) -> Claim:
        expected = ((-view.x).exp() * (view.vocab_size - 1) + 1).log()
        return _near(view.at.loss, expected, tolerance)

    return _viewed(flows, level, claim)


def remark1_corrected(flows: Flows, level: str, tolerance: float) -> Predicate:
    """The ratio of the full to the modified flow's logit of a common token against s."""
    from flint import arb

    modified = flows.enclosure("modified flow")

    def claim(view: _View) -> Claim:
        rho, k, m = arb(flows.setting.overlap), view.n_classes, view.vocab_size
        slowdown = (1 - rho) * (rho * (k - 1) + 1) / (rho * (m - 1) + 1)
        beside = modified.moment(view.at.start, view.at.end)
        place = view.logits(common=True)[0]
        return _near(-view.at.z(*place), -beside.z(*place) * slowdown, tolerance)

    return _viewed(flows, level, claim)
