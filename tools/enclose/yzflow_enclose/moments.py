"""The state of an enclosed flow at a time, or over a span of time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

import numpy as np
from flint import arb, arb_poly, arb_series

from dynamics.support import checks
from yzflow_enclose.fields import PopulationField, features
from yzflow_enclose.quantities import ORDER, Quantity, Span, checked_span
from yzflow_enclose.reading import Reading
from yzflow_enclose.states import FlowTube
from yzflow_enclose.stepping import Step, defect, moved, precision, speed_margin, taylor


class Moment:
    """Argument of a predicate: quantities of the flow on the span of time (start, end], or at one time.

    Names are those of a `dynamics.Trajectory`: rows of Z by their query token, attention by its next token.

    Parameters
    ----------
    start, end : float
        The span; equal for a single time.
    """

    def __init__(self, reading: Reading, tube: Tube | FlowTube, start: float, end: float):
        self.start, self.end = checked_span(start, end)
        self._reading = checks.instance("reading", reading, Reading)
        self._field = reading.field
        self._span, self._variables = checks.instance("tube", tube, (Tube, FlowTube)).variables(self.start, self.end)
        self._features: dict[int, dict[tuple[int, float], Quantity]] = {}

    def _number(self, value: float | arb) -> Quantity:
        return self._variables[0] * 0 + value

    def variable(self, place: int) -> Quantity:
        """A variable of the reduced flow by its index; -1 for a variable that stays at zero."""
        place = checks.integer("place", place, minimum=-1, maximum=len(self._variables) - 1)
        return self._number(0.0) if place < 0 else self._variables[place]

    def _place(self, name: str, labels: Sequence[int] | np.ndarray, value: int) -> int:
        found = np.flatnonzero(np.asarray(labels) == checks.integer(name, value, minimum=0))
        if found.size == 0:
            raise checks.reject(name, "be one of the population's", value)
        return int(found[0])

    @property
    def time(self) -> Quantity:
        """t, in SGD steps."""
        return self.along(lambda t: t)

    def along(self, function: Callable[[arb_series], arb_series]) -> Quantity:
        """A known function of time: from the power series of t, whose first coefficient may be wide, to its own."""
        return self._span.along(function)

    @cached_property
    def next_tokens(self) -> tuple[int, ...]:
        """Next tokens that occur; only the first if all classes are copies of each other, for which it stands."""
        names = tuple(self._reading.next_tokens.tolist())
        return names[:1] if self.exchangeable else names

    @property
    def exchangeable(self) -> bool:
        """True if the classes were read as copies of each other."""
        return self._reading.settings["kind"] == "symmetric"

    def seen_from(self, next_token: int) -> list[tuple[int, int]]:
        """The next tokens that occur as this one sees them, itself first: one of each group, and its size.

        A group has next tokens that are alike.
        """
        self._bags(next_token)
        others = [name for name in self._reading.next_tokens.tolist() if name != next_token]
        if self.exchangeable:
            return [(next_token, 1), (others[0], len(others))]
        return [(next_token, 1), *((name, 1) for name in others)]

    def tokens(self, next_token: int) -> list[tuple[int, int]]:
        """Tokens that occur with a next token: one of each group of alike tokens, and its size."""
        found: dict[tuple[int, float] | int, list[int]] = {}
        for bag in self._bags(next_token):
            for token, count, place in zip(*(part.tolist() for part in self._reading.entries(bag)), strict=True):
                group = found.setdefault((place, count) if self.exchangeable else token, [])
                if token not in group:
                    group.append(token)
        return [(group[0], len(group)) for group in found.values()]

    def query(self, next_token: int) -> int:
        """The query token of a next token; the first one of several."""
        return int(self._reading.query_tokens[self._reading.bags.query[self._bags(next_token)[0]]])

    def feature(self, next_token: int, token: int) -> Quantity:
        """f_nl, attention to a token scaled to Euclidean norm one; zero for a token that does not occur with it."""
        token = checks.integer("token", token, minimum=0)
        bags = self._bags(next_token)
        if len(bags) > 1:
            raise checks.reject("next_token", "belong to one query", next_token)
        tokens, counts, places = self._reading.entries(bags[0])
        own = np.flatnonzero(tokens == token)
        if own.size == 0:
            return self._number(0.0)
        if bags[0] not in self._features:
            pairs = list(zip(places.tolist(), counts.tolist(), strict=True))
            groups = sorted(set(pairs))
            found = features(
                [arb(count) for _, count in groups],
                [pairs.count(group) for group in groups],
                [self.variable(place) for place, _ in groups],
            )
            self._features[bags[0]] = dict(zip(groups, found, strict=True))
        return self._features[bags[0]][int(places[own[0]]), float(counts[own[0]])]

    def overlap(self, next_token: int, other: int) -> Quantity:
        """f_n . f_n' of two next tokens."""
        shared = {int(t) for bag in self._bags(other) for t in self._reading.entries(bag)[0]}
        terms = [
            self.feature(next_token, token) * self.feature(other, token) * copies
            for token, copies in self.tokens(next_token)
            if token in shared
        ]
        return sum(terms, self._number(0.0))

    def gram(self, next_token: int) -> list[list[Quantity]]:
        """F^T F on vectors with an entry for each of `seen_from`, as a matrix of that size."""
        seen = self.seen_from(next_token)
        if self.exchangeable:
            (_, _), (other, rest) = seen
            rho, one = self.overlap(next_token, other), self._number(1.0)
            return [[one, rho * rest], [rho, rho * (rest - 1) + 1]]
        return [
            [self._number(1.0) if row == column else self.overlap(row, column) for column, _ in seen] for row, _ in seen
        ]

    def z(self, query: int, token: int) -> Quantity:
        """The attention logit z_l of a query token."""
        row = self._place("query", self._reading.query_tokens, query)
        return self.variable(int(self._reading.z_index[row, self._token(token)]))

    def _token(self, token: int) -> int:
        return checks.integer("token", token, minimum=0, maximum=self._reading.z_index.shape[1] - 1)

    def velocity(self, query: int, token: int) -> Quantity:
        """dz_l/dt, per SGD step."""
        return self.z(query, token).rate

    def y(self, token: int, next_token: int) -> Quantity:
        """The decoder logit Y[l, n]; all next tokens that never occur share one."""
        if self._field.decoder == "theory":
            raise ValueError("the theory flow has no Y: `h` stands for it")
        next_token = checks.integer("next_token", next_token, minimum=0, maximum=self._reading.bags.vocab_size - 1)
        names = self._reading.next_tokens
        column = int(np.searchsorted(names, next_token)) if next_token in names else names.size
        return self.variable(int(self._reading.y_index[self._token(token), column]))

    def h(self, next_token: int) -> Quantity:
        """h_n of the theory flow (44)."""
        if self._field.decoder != "theory":
            raise ValueError("only the theory flow has h")
        bag = self._bags(next_token)[0]
        return self.variable(int(self._reading.x_index[bag])) / self._reading.bags.vocab_size

    def attention(self, next_token: int, token: int) -> Quantity:
        """c_nl, expected attention to a token given the next token."""
        token = checks.integer("token", token, minimum=0)
        shares, weights = [], []
        for bag in self._bags(next_token):
            weight = float(self._reading.bags.weight[bag])
            weights.append(weight)
            share = self._share(bag, token)
            if share is not None:
                shares.append(share * weight)
        if not shares:
            raise checks.reject("token", f"occur with next token {next_token}", token)
        # Summed as balls, since a sum of floats would be rounded.
        return sum(shares[1:], shares[0]) / sum((self._number(w) for w in weights[1:]), self._number(weights[0]))

    def shares(self, next_token: int) -> dict[int, Quantity]:
        """c_nl of every token that occurs with a next token."""
        tokens = {int(token) for bag in self._bags(next_token) for token in self._reading.entries(bag)[0]}
        return {token: self.attention(next_token, token) for token in sorted(tokens)}

    def _share(self, bag: int, token: int) -> Quantity | None:
        tokens, counts, places = self._reading.entries(bag)
        if token not in tokens:
            return None
        own = int(np.flatnonzero(tokens == token)[0])
        groups: dict[tuple[int, float], int] = {}
        for count, place in zip(counts.tolist(), places.tolist(), strict=True):
            groups[place, count] = groups.get((place, count), 0) + 1

        # c_l = N_l / sum_l' N_l' exp(z_l' - z_l)
        mine = self.variable(int(places[own]))
        terms = [(self.variable(place) - mine).exp() * count * number for (place, count), number in groups.items()]
        return float(counts[own]) / sum(terms[1:], terms[0])

    def relative_gain(self, next_token: int, token: int, other: int) -> Quantity:
        """r_{l/l'|n} = f_nl^2 / f_nl'^2 - 1 (11)."""
        bags = self._bags(next_token)
        if len(bags) > 1:
            ratio = self.attention(next_token, token) / self.attention(next_token, other)
            return ratio * ratio - 1
        tokens, counts, places = self._reading.entries(bags[0])
        first, second = (self._place("token", tokens, which) for which in (token, other))
        mine, its = float(counts[first]), float(counts[second])
        lead = self.variable(int(places[first])) - self.variable(int(places[second]))
        return (lead * 2).exp() * mine * mine / its / its - 1

    def growth_factor(self, query: int, token: int) -> Quantity:
        """chi_l = exp(2 (z_l(t) - z_l(0))) of Theorem 3."""
        return (self.z(query, token) * 2).exp()

    @cached_property
    def loss(self) -> Quantity:
        """The expected cross-entropy, nats."""
        return self._field.loss(self._variables)

    def _bags(self, next_token: int) -> list[int]:
        known = checks.integer("next_token", next_token, minimum=0)
        found = np.flatnonzero(self._reading.bags.target == known).tolist()
        if not found:
            raise checks.reject("next_token", "be one that occurs", next_token)
        return found


class Tube:
    """The steps, as enclosures of every variable and its velocity at any time."""

    def __init__(self, field: PopulationField, steps: Sequence[Step]):
        self._field = field
        self._steps = steps
        self._starts = np.array([step.start for step in steps])
        # Caches, since every claim about the same steps asks for both again.
        self._open: dict[int, tuple[list[arb_poly], list[arb], list[arb]]] = {}
        self._found: dict[tuple[float, float], tuple[Span, list[Quantity]]] = {}

    def _step(self, start: float, end: float) -> int:
        """The index of the step that holds a span; if two steps hold a single time, the later."""
        place = max(0, int(np.searchsorted(self._starts, start, side="right")) - 1)
        if end > self._steps[place].end:
            raise checks.reject("end", f"lie in one step with start, {start!r}", repr(end))
        return place

    def _opened(self, place: int) -> tuple[list[arb_poly], list[arb], list[arb]]:
        """Polynomials of a step, and bounds of the distance of the flow and of its velocity to them."""
        if place not in self._open:
            step = self._steps[place]
            polynomials, radius = step.polynomials(), arb(step.radius)
            delta = defect(self._field, polynomials, step.length, step.degree)
            speed = speed_margin(self._field, polynomials, step.length, delta, radius)
            weights = [arb(weight) for weight in self._field.weights.tolist()]
            margins = [[(bound / weight).upper() for weight in weights] for bound in (radius, speed)]
            self._open[place] = (polynomials, margins[0], margins[1])
        return self._open[place]

    @precision(cap=ORDER + 1)
    def variables(self, start: float, end: float) -> tuple[Span, list[Quantity]]:
        """Every variable on a span within a step."""
        if (start, end) not in self._found:
            self._found[start, end] = self._from_zero(end) if start == 0.0 else self._within(start, end)
        return self._found[start, end]

    def _within(self, start: float, end: float) -> tuple[Span, list[Quantity]]:
        place = self._step(start, end)
        polynomials, margins, speeds = self._opened(place)
        half = (arb(end) - arb(start)) / 2
        centre = arb(start) + half
        span = Span(start, end, centre, arb(0, half.upper()) if end > start else arb(0))
        found = []
        for polynomial, margin, speed in zip(polynomials, margins, speeds, strict=True):
            thin = moved(polynomial, centre - arb(self._steps[place].start))
            wide = moved(thin, span.distance)
            series = arb_series(thin.coeffs()[:ORDER], ORDER), arb_series(wide.coeffs()[: ORDER + 1], ORDER + 1)
            found.append(Quantity(*series, span, margin, speed))
        return span, found

    def _from_zero(self, end: float) -> tuple[Span, list[Quantity]]:
        """From the exact start: Taylor coefficients of the flow itself, so that zeros there are exactly zero."""
        zero = arb(0)
        state = [zero] * self._field.size
        half = arb(end) / 2
        span = Span(0.0, end, zero, half + arb(0, half.upper()) if end else zero)
        thin = taylor(self._field, state, ORDER - 1, exact=False)
        if end:
            polynomials, margins, _ = self._opened(self._step(0.0, end))
            state = [
                moved(p, half)(arb(0, half.upper())) + arb(0, m) for p, m in zip(polynomials, margins, strict=True)
            ]
        try:
            wide = taylor(self._field, state, ORDER, exact=False)
        except ValueError:  # a denominator's ball holds zero: unknown until the span is halved
            wide = [[value] + [arb.nan()] * ORDER for value in state]
        return span, [
            Quantity(arb_series(first, ORDER), arb_series(whole, ORDER + 1), span, zero, zero)
            for first, whole in zip(thin, wide, strict=True)
        ]
