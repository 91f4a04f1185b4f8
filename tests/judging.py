"""A judge of the claims of certificates that asks neither checker: a flow of seventy digits, and a claim at many times.

The flow is followed by Taylor's series from midpoints alone, without a bound; its field is the one that tests compare
with the simulator's.
"""

import numpy as np
from flint import arb, arb_series, ctx
from yzflow_enclose import canonical
from yzflow_enclose.cells import Cell
from yzflow_enclose.reading import read
from yzflow_enclose.stepping import precision, taylor

DIGITS_BITS, TERMS, TINY = 260, 30, 1e-35


class Flow:
    """The flow of a field from zero at any time, to far more digits than a claim has."""

    def __init__(self, field):
        self.field, self.seen = field, {}
        self.known = [(arb(0), taylor(field, [arb(0)] * field.size, TERMS, exact=True))]

    def _reach(self):
        """How far the last series goes: its last terms are nothing there."""
        rows = self.known[-1][1]
        size = max((float(abs(row[-1])) for row in rows), default=0.0)
        return min(0.25, 1e-2 if size == 0 else (1e-45 / size) ** (1 / TERMS) if size > 1e-280 else 0.25)

    def series(self, t):
        """Power series of every variable about a time."""
        if t not in self.seen:
            self.seen[t] = self._series(arb(t))
        return self.seen[t]

    def _series(self, t):
        while t > self.known[-1][0] + self._reach():
            start, rows = self.known[-1]
            step = arb(self._reach())
            state = [self._value(row, step) for row in rows]
            self.known.append(((start + step).mid(), taylor(self.field, state, TERMS, exact=True)))
        start, rows = [entry for entry in self.known if entry[0] <= t][-1]
        if t == start:
            return [row[:5] for row in rows]
        return taylor(self.field, [self._value(row, t - start) for row in rows], 4, exact=True)

    def _value(self, row, step):
        found = arb(0)
        for entry in reversed(row):
            found = (found * step + entry).mid()
        return found


def truth(says, series, t):
    """Whether a predicate is true at a time, and by how much; None where it is not defined, or a tie."""
    ctx.cap = 5
    functions = {
        "+": lambda a, b: a + b, "*": lambda a, b: a * b, "/": lambda a, b: a / b, "-": lambda a: -a,
        "exp": lambda a: a.exp(), "log": lambda a: a.log(), "sqrt": lambda a: a.sqrt(), "rsqrt": lambda a: a.rsqrt(),
        "rate": lambda a: a.derivative(),
    }  # fmt: skip
    found, sizes = [], []
    for name, *given in says:
        size = None
        if name == "variable":
            value = arb_series(series[given[0]], 5)
        elif name == "number":
            value = arb_series([arb(given[0])], 5)
        elif name == "time":
            value = arb_series([arb(t), 1], 5)
        elif name in functions:
            parts = [found[i] for i in given]
            try:
                value = None if None in parts else functions[name](*parts)
                value = value if value is not None and value[0].is_finite() else None
            except (ZeroDivisionError, ValueError):
                value = None
        elif name in (">", ">="):
            size = None if found[given[0]] is None else found[given[0]][0].mid()
            value = None if size is None or abs(size) < TINY else bool(size > 0)
        elif name == "not":
            value = None if found[given[0]] is None else not found[given[0]]
            size = None if sizes[given[0]] is None else -sizes[given[0]]
        else:
            parts, own = [found[i] for i in given], [sizes[i] for i in given]
            decisive = name == "or"
            value = decisive if decisive in parts else None if None in parts else not decisive
            size = None if None in own else (own[0].max(own[1]) if decisive else own[0].min(own[1]))
        found.append(value)
        sizes.append(size)
    return found[-1], sizes[-1]


def _value(coefficients, t):
    """A polynomial whose coefficients are sums of floats."""
    found = arb(0)
    for limbs in reversed(coefficients):
        found = found * t + sum(map(arb, limbs), arb(0))
    return found


def falsehood(claim, arrays, flows):
    """Why a claim is false, by the flow at many times; nothing if no time shows it."""
    rates = {name: claim[name] for name in ("decoder", "eta_y", "eta_z")}
    key = canonical.digest([claim["population"], rates])
    with precision(DIGITS_BITS):
        if key not in flows:
            flows[key] = Flow(read(canonical.bags_of(claim["population"]), **rates).field)
        flow = flows[key]
        for start, end, rows in zip(arrays["start"].tolist(), arrays["end"].tolist(), arrays["limbs"], strict=True):
            for t in np.linspace(start, end, 4).tolist():
                values = flow.series(t)
                for own, row, error in zip(values, rows.tolist(), claim["errors"], strict=True):
                    if abs(_value(row, arb(t) - arb(start)) - own[0]) > error:
                        return f"a variable is elsewhere at t = {t}"
        for number, told in enumerate(claim["predicates"]):
            first, last = told.get("times", (0.0, told["until"]))
            times = first + (last - first) * np.concatenate([np.geomspace(1e-9, 0.01, 5), np.linspace(0.05, 1, 20)])
            ends = [min(t, told["until"]) for t in [*arrays["end"].tolist()] if t <= told["until"]] + [told["until"]]
            for t in [*times.tolist(), last, *(ends if told["verdict"] else [])]:
                if not first <= t <= last or t == 0:
                    continue
                value, size = truth(told["says"], flow.series(t), t)
                if value is (not told["verdict"]) or (value is None and size is None):
                    return f"predicate {number} is {value} at t = {t}"
                at_margin = t in ends if told["verdict"] else t == last
                if at_margin and size is not None and (told["margin"] - size) * (1 if told["verdict"] else -1) > TINY:
                    return f"predicate {number} has another margin at t = {t}"
    return ""


def falsehood_of_cell(claim, arrays, flows):
    """Why a claim of a cell is false, by the flow at some settings and times; nothing if none shows it."""
    cell = Cell.of(claim)
    with precision(DIGITS_BITS):
        for setting in ((-1, -1), (-1, 1), (1, -1), (1, 1), (0.25, -0.5)):
            key = canonical.digest([cell.claim(), setting])
            if key not in flows:
                ends = zip((cell.eta_z, cell.common), setting, strict=True)
                flows[key] = Flow(cell.field(*(arb(a) + (arb(b) - arb(a)) * (1 + arb(s)) / 2 for (a, b), s in ends)))
            if _is_elsewhere(claim, arrays, setting, flows[key]):
                return f"a variable is elsewhere at {setting}"
            for told in claim["predicates"]:

                def size(t, row=told["coefficients"], flow=flows[key]):
                    return sum((arb(c) * own[1] for c, own in zip(row, flow.series(t), strict=False)), arb(0))

                times = [told["until"] * share for share in (1e-6, 1e-3, 0.1, 0.3, 0.5, 0.8, 1.0)]
                if any(t > 0 and size(t) < -TINY for t in times):
                    return f"a sum is not positive at {setting}"
                if told["verdict"] is False and size(told["time"]) > TINY:
                    return f"a sum is not negative at {setting}"
    return ""


def _is_elsewhere(claim, arrays, setting, flow):
    """Whether a polynomial of a cell is further from the flow at a setting than the claim says."""
    x, y = map(arb, setting)
    monomials = [x ** (d - k) * y**k for d in range(claim["degree"] + 1) for k in range(d + 1)]
    for start, end, rows in zip(*(arrays[name].tolist() for name in ("start", "end", "limbs")), strict=True):
        for t in (start, start + (end - start) / 2, end):
            for own, row, error in zip(flow.series(t), rows, claim["errors"], strict=True):
                polynomials = [_value(terms, arb(t) - arb(start)) for terms in row]
                if abs(sum((m * p for m, p in zip(monomials, polynomials, strict=True)), arb(0)) - own[0]) > error:
                    return True
    return False
