"""Cells of settings, for `yzflow_enclose.verifier`: what a flow does at every setting of a box of them.

The settings are eta_Z and the common token's weight; s_1 and s_2 run over them, each from -1 to 1. A step has a
polynomial p(t, s) for each variable. Bounds are by Taylor's theorem with Lagrange's remainder: a function is the sum of
its terms up to a degree at one point of a box, and of those of the next degree at some point in between. Evaluated on a
`Jet` at a point, it gives the former; on one at a ball that holds the box, the latter. So no remainder is followed
through products and quotients.
"""

import math
import operator
from collections.abc import Callable
from functools import reduce
from itertools import accumulate, pairwise

import flint
from flint import arb, arb_mat, arb_poly, arb_series

if __package__:
    from yzflow_enclose.verifier.verify_file import fits, need, positive, real, whole
    from yzflow_enclose.verifier.verify_flow import copies_in_classes, dot, equal_classes, norm, taylor, weights
    from yzflow_enclose.verifier.verify_jets import TOP, Jet, Slope, growth, key, size
else:
    from verify_file import fits, need, positive, real, whole  # type: ignore[no-redef]
    from verify_flow import copies_in_classes, dot, equal_classes, norm, taylor, weights  # type: ignore[no-redef]
    from verify_jets import TOP, Jet, Slope, growth, key, size  # type: ignore[no-redef]

BITS, HIGHEST = 100, 20  # of balls; degree in the settings
FINENESS = (1, 2, 4)  # with which the defect beyond that degree is bounded, one after the other while it is too large
IN_TIME, TOKENS = 8, 50  # degree in time; distinct tokens
BOXES, TERMS = 3000, 4  # that a predicate may be decided in, a step; of the series from t = 0
CENTRE, WHOLE = [arb(0)] * 2, [arb(1)] * 2  # of the box of settings

CLAIM = {
    "format": {"yzflow-cell-3"}, "kind": {"cell"}, "decoder": {"full", "modified", "theory"}, "start": {"zero"},
    "n_classes": whole, "vocab_size": whole, "distinct": [positive], "eta_y": positive, "eta_z": (positive, positive),
    "common": (positive, positive), "degree": whole, "t_end": positive, "t_reached": positive, "errors": [positive],
    "predicates": [dict],
}  # fmt: skip
SAYS = {"coefficients": [real], "verdict": {True, False, None}, "until": real}


def remainder(degree: int, parts: int = 4) -> list:
    """Bounds of x, and the weight up to each in int_0^1 n (1 - x)^(n - 1) g(x s) dx, a Taylor remainder of degree n."""
    ends = [arb(k) / parts for k in range(parts + 1)]
    return [(b, (1 - a) ** degree - (1 - b) ** degree) for a, b in pairwise(ends)]


class CheckedCell:
    """The steps of a certificate of a cell, after the error of each was checked to stay within its radius."""

    def __init__(self, c: dict, W: list, steps: list):
        self.c, self.W, self.degree, self.steps = c, W, c["degree"], steps
        self.powers = [(a, d - a) for d in range(self.degree + 1) for a in range(d, -1, -1)]
        eps, state = arb(0), [[arb(0)] * len(self.powers) for _ in W]
        for (_, last, *_), (start, *_) in pairwise([(0.0, 0.0), *steps]):
            need(start == last, f"the step from t = {start} does not start where the last one ended")
        for start, end, radius, speed, p in steps:
            need(end > start, f"the step from t = {start} does not end after it")
            h = arb(end) - arb(start)
            gaps = [
                sum(abs(q(0) - a) for q, a in zip(row, own, strict=True)) for row, own in zip(p, state, strict=True)
            ]
            eps = (eps + norm(gaps, W)).upper()
            in_time = self.in_time(p, h)
            quarters = [self.jacobian(p, h, radius, [arb(x), arb(y)]) for x in (-0.5, 0.5) for y in (-0.5, 0.5)]
            factor, slope = (reduce(arb.max, map(bound, quarters)) for bound in (growth, size))
            factor = (factor * h).exp().upper()
            for fineness in FINENESS:
                delta = (in_time + self.in_settings(p, h, fineness)).upper()
                after = (factor * eps + delta * h * factor.max(arb(1))).upper()
                largest = eps.max(after)
                within = largest < radius, slope * largest + delta <= speed
                if all(within):
                    break
            need(within[0], f"the error is not within its radius in the step from t = {start}")
            need(within[1], f"the velocity's error is larger than said in the step from t = {start}")
            eps, state = after, [[q(h) for q in row] for row in p]

    def field(self, S: list) -> Callable:
        """f(x) at the settings s: numbers, or jets."""
        c, K, G = self.c, self.c["n_classes"], 1 + len(self.c["distinct"])
        ends = [list(map(arb, c[name])) for name in ("eta_z", "common")]
        eta_z, common = (s * ((b - a) / 2) + (a + b) / 2 for s, (a, b) in zip(S, ends, strict=True))
        count, movers = [common, *map(arb, c["distinct"])], [K] + [1] * (G - 1)
        return equal_classes(
            c["decoder"], K, c["vocab_size"], 1, count, [1] * G, arb(c["eta_y"]) / K, eta_z / K, movers
        )

    def around(self, centre: list, half: list, degree: int) -> tuple[list, list]:
        """s as jets at centre + half s, and its monomials."""
        S = [Jet({0: c, TOP + 64**i: h}, degree) for i, (c, h) in enumerate(zip(centre, half, strict=True))]
        one = Jet({0: arb(1)}, degree)
        first, second = ([*accumulate([s] * self.degree, operator.mul, initial=one)] for s in S)
        return S, [first[a] * second[b] for a, b in self.powers]

    def in_time(self, p: list, h: arb) -> arb:
        """A bound of the terms of W (p' - f(p)) up to the degree in s, each a series in t at the middle."""
        order, half = max(q.degree() for row in p for q in row) + 2, (h / 2).upper()
        places = [key(*powers) for powers in self.powers]
        field = self.field(self.around(CENTRE, WHOLE, self.degree)[0])

        def slopes(centre: arb, length: int) -> list:
            rows = [[q(arb_poly([centre, 1])).coeffs()[:length] for q in row] for row in p]
            flint.ctx.cap = length
            return field(
                [Jet({k: arb_series(q, length) for k, q in zip(places, row, strict=True)}, self.degree) for row in rows]
            )

        bounds = []
        for row, thin, wide in zip(p, slopes(h / 2, order), slopes(h / 2 + arb(0, half), order + 1), strict=True):
            bounds.append(arb(0))
            for k, q in zip(places, row, strict=True):
                own = q(arb_poly([h / 2, 1])).derivative().coeffs() + [arb(0)] * order
                a, b = (jet.terms.get(k, arb_series([0])) for jet in (thin, wide))
                bounds[-1] += sum((abs(a[j] - own[j]) * half**j for j in range(order)), abs(b[order]) * half**order)
        return norm(bounds, self.W)

    def in_settings(self, p: list, h: arb, fineness: int) -> arb:
        """A bound of the terms of W f(p) beyond the degree in s: those of the next two degrees, and the rest."""
        found, parts = arb(0), 2 * fineness
        half = (h / (2 * parts)).upper()
        for part in range(parts):
            t = arb_poly([h * (2 * part + 1) / (2 * parts), 1])
            rows = [[q(t)(arb(0, half)) for q in row] for row in p]

            sizes = [arb(0)] * len(p)
            for reach, share, least in (
                (0, arb(1), 1),
                *((*pair, 3) for pair in remainder(self.degree + 3, 4 * fineness)),
            ):
                S, powers = self.around([arb(0, reach)] * 2, WHOLE, self.degree + max(least, 2))
                jets = self.field(S)([dot(powers, row) for row in rows])
                sizes = [a + jet.size(self.degree + least) * share for a, jet in zip(sizes, jets, strict=True)]
            found = found.max(norm(sizes, self.W))
        return found

    def jacobian(self, p: list, h: arb, radius: float, centre: list) -> list:
        """W f' W^-1 over the tube of a quarter of the settings: terms of a jet in s and t, the constant first."""
        found: dict = {}
        n, half = len(p), (h / 2).upper()
        for degree, reach, share in ((2, 0, arb(1)), *((3, *pair) for pair in remainder(3))):
            S, powers = self.around([arb(c, reach / 2) for c in centre], [arb(0.5)] * 2, degree)
            t, state = arb_poly([h / 2 + arb(0, reach) * half, half]), []
            for j, (row, w) in enumerate(zip(p, self.W, strict=True)):
                parts = [q(t).coeffs()[: degree + 1] for q in row]
                jets = [Jet({k * (TOP + 64**2): v for k, v in enumerate([*own, arb(0)])}, degree) for own in parts]
                along = Slope(arb(0, (radius / w).upper()), arb_mat(1, n, [arb(int(i == j)) / w for i in range(n)]))
                state.append(dot(powers, jets) + along)
            for i, jet in enumerate(self.field(S)(state)):
                for k, v in jet.terms.items():
                    if reach == 0 or k >= degree * TOP:
                        rows = found.setdefault(k, [arb_mat(1, n)] * n)
                        rows[i] = rows[i] + v.slope * (share * self.W[i])
        return [arb_mat([row.entries() for row in found[k]]) for k in sorted(found)]

    def positive(self, row: list, a: float, b: float) -> bool:
        """True if sum_i row_i dz_i/dt > 0 for a < t <= b, or at t = a = b, at every setting."""
        waiting = [(a, b, [0.0, 0.0], [1.0, 1.0])]
        for _ in range(BOXES):
            if not waiting:
                return True
            a, b, centre, half = waiting.pop()
            if self.sum_in(row, a, b, centre, half) > 0:
                continue
            between, which = a + (b - a) / 2, int(half[1] > half[0])
            single = self.sum_in(row, a, b, centre, [0.0, 0.0])
            # The length of the time takes more than half of what there is at one setting, or it is that of the box.
            if a < between < b and not single.mid() > 2 * single.rad():
                waiting += [(a, between, centre, half), (between, b, centre, half)]
                continue
            half = [x / 2 if i == which else x for i, x in enumerate(half)]
            for sign in (-1, 1):
                moved = [x + sign * half[which] if i == which else x for i, x in enumerate(centre)]
                waiting.append((a, b, moved, half))
        return False

    def sum_in(self, row: list, a: float, b: float, centre: list, half: list) -> arb:
        """The sum less its error, for a < t <= b, or at t = a = b, at settings of a box; divided by t from t = 0 on."""
        start, _, radius, speed, p = [step for step in self.steps if step[0] < b][-1]
        weights, early = self.W[: len(row)], a == 0 < b
        sums = [dot(row, [q.derivative() for q in own]) for own in zip(*p[: len(row)], strict=True)]
        t, reach = (arb(a) + arb(b)) / 2 - arb(start), arb(0, ((arb(b) - arb(a)) / 2).upper())
        powers = self.around(list(map(arb, centre)), list(map(arb, half)), self.degree)[1]
        rows = [[q(arb_poly([t, 1]))(reach) for q in own] for own in (p if early else [sums])]
        boxes = [jet.terms[0] + arb(0, jet.size(1)) for jet in (dot(powers, own) for own in rows)]
        if not early:
            return boxes[0] - norm([arb(c) / (w * w) for c, w in zip(row, weights, strict=True)], weights) * speed
        boxes = [box + arb(0, (radius / w).upper()) for box, w in zip(boxes, self.W, strict=True)]
        try:
            return self.from_zero(row, [arb(*pair) for pair in zip(centre, half, strict=True)], boxes, b)
        except (ZeroDivisionError, ValueError):  # the field is not defined on all of the box
            return arb.nan()

    def from_zero(self, row: list, s: list, box: list, b: float) -> arb:
        """The sum over t, by its series from the exact start, where all velocities are zero."""
        field, size = self.field(s), len(row)
        thin, wide = taylor(field, [arb(0)] * len(box), TERMS), taylor(field, box, TERMS + 1)
        terms = [dot(row, [x[k] * k for x in thin[:size]]) for k in range(1, TERMS)]
        value, span = dot(row, [x[TERMS] * TERMS for x in wide[:size]]), arb(0).union(arb(b))
        for term in reversed(terms[1:]):
            value = value * span + term
        return value if terms[0].is_zero() else arb.nan()


def names_of(c: dict) -> list[str]:
    """Meaning of each variable."""
    tokens = ["common", *(f"distinct {i}" for i in range(1, 1 + len(c["distinct"])))]
    names, never = [f"z({token})" for token in tokens], c["vocab_size"] > c["n_classes"]
    if c["decoder"] == "theory":
        return [*names, "M h"]
    for token in tokens:
        columns = ["own", "other"] if token != "common" else ["any class"] * never
        names += [f"Y({token}, {column})" for column in columns + ["never"] * never]
    return names


def schema(c: dict) -> None:
    """Refuse a claim with parts of another form."""
    for name in CLAIM:
        need(fits(c.get(name), CLAIM[name]), f"the {name} of the claim is none that is known here")
    good = c.keys() == CLAIM.keys() and 2 <= c["n_classes"] <= c["vocab_size"] and c["t_reached"] <= c["t_end"]
    good = good and 0 < len(c["distinct"]) <= TOKENS and 1 <= c["degree"] <= HIGHEST
    need(good and c["eta_z"][0] < c["eta_z"][1] and c["common"][0] < c["common"][1], "no cell is such")
    rows = [told.get("coefficients") for told in c["predicates"]]
    need(all(row not in rows[:i] for i, row in enumerate(rows)), "a sum is decided twice")
    for told in c["predicates"]:
        verdict, until = told.get("verdict"), told.get("until")
        need(fits(told, SAYS if verdict is not False else {**SAYS, "time": positive}), "a predicate's parts")
        need(len(told["coefficients"]) == 1 + len(c["distinct"]), "a predicate's coefficients")
        need(0 <= until <= c["t_reached"] and (until == c["t_end"]) is (verdict is True), "a predicate's times")
        need(verdict is not False or until < told["time"] <= c["t_reached"], "a predicate's times")


def cell_of(c: dict, arrays: dict, names: list) -> CheckedCell:
    """The steps of a certificate, each of them checked."""
    need(arrays.keys() == {"start", "end", "radius", "speed", "limbs", "weights"}, "arrays are missing, or others")
    shape, limbs = arrays["limbs"]
    (n,), W = arrays["weights"]
    count = math.comb(c["degree"] + 2, 2)
    copies = copies_in_classes(c["n_classes"], c["vocab_size"], [1] * (1 + len(c["distinct"])), 1, False)
    norm_here = weights(c["decoder"], c["eta_y"], sum(c["eta_z"]) / 2, *copies, 1)
    need(
        norm_here == W and n == len(names) == len(c["errors"]) and min(W) > 0,
        "the norm is another",
    )
    need({type(x) for _, numbers in arrays.values() for x in numbers} == {float}, "numbers of another kind")
    need(shape[:3] == (shape[0], n, count) and shape[3:] == (IN_TIME + 1, 2) and shape[0] > 0, "the steps are none")
    columns = [arrays[name] for name in ("start", "end", "radius", "speed")]
    need(all(own == shape[:1] for own, _ in columns), "the steps are not whole")
    floats, steps = iter(limbs), []
    for times_and_bounds in zip(*(column for _, column in columns), strict=True):
        p = [
            [[sum(arb(next(floats)) for _ in range(shape[4])) for _ in range(shape[3])] for _ in range(count)]
            for _ in W
        ]
        steps.append((*times_and_bounds, [[arb_poly(own) for own in row] for row in p]))
    need(steps[-1][1] == c["t_reached"], "the steps end at another time than the claim says")
    for _, _, radius, *_ in steps:
        within = all(arb(radius) / arb(w) <= e for w, e in zip(W, c["errors"], strict=True))
        need(within, "an error is larger than the claim says")
    return CheckedCell(c, [arb(w) for w in W], steps)


def check(c: dict, arrays: dict) -> list[str]:
    """The claim of a cell's certificate in words, a line each, if it is true; ValueError otherwise."""
    schema(c)
    flint.ctx.prec = BITS
    names = names_of(c)
    cell = cell_of(c, arrays, names)
    lines = [
        f"verified: {c['decoder']} flow from zero of {c['n_classes']} classes that are copies of each other, M = "
        f"{c['vocab_size']}, eta_Y = {c['eta_y']}, time in SGD steps",
        f"each of probability 1/{c['n_classes']}, all of one query; distinct tokens of weights "
        f"{c['distinct']}, and one common token",
        "at every setting with {} <= eta_Z <= {} and {} <= weight of the common token <= {},".format(
            *c["eta_z"], *c["common"]
        ),
        f"from t = 0 to {c['t_reached']}, of {c['t_end']}, each variable is known to within",
        *(f"  {name}: {error:.3g}" for name, error in zip(names, c["errors"], strict=True)),
        f"of polynomials of degree {c['degree']} in the settings, and at every setting",
    ]
    for told in c["predicates"]:
        row, until = told["coefficients"], told["until"]
        formula = " + ".join(f"{x} d{name}/dt" for x, name in zip(row, names, strict=False))
        ends = [(step[0], min(step[1], until)) for step in cell.steps if step[0] < until]
        need(all(cell.positive(row, a, b) for a, b in ends), f"it is not positive for 0 < t <= {until}: {formula}")
        words = [f"positive for every t with 0 < t <= {until}"] * (until > 0)
        if told["verdict"] is False:
            t = told["time"]
            need(cell.positive([-x for x in row], t, t), f"it is not negative at t = {t}: {formula}")
            words.append(f"negative at t = {t}")
        words += ["open after that"] * (told["verdict"] is None)
        lines.append(f"{', '.join(words)}: {formula}")
    return lines
