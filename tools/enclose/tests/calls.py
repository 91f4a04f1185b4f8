"""Valid calls of enclosures, of what they give to a predicate, and of what one is written with."""

# ruff: noqa: C408
import re
from types import MappingProxyType

import hostile
import numpy as np
from flint import arb
from matplotlib.figure import Figure
from yzflow_enclose import (
    Claim,
    Enclosure,
    FlowMoment,
    Moment,
    Predicate,
    Quantity,
    ball,
    enclose,
    enclose_flow,
    erf,
    every,
    kept,
    logsumexp,
    sigmoid,
    softmax,
    softplus,
    some,
)
from yzflow_enclose.moments import Tube
from yzflow_enclose.scan_and_snap import long_enough, ranges

from dynamics import SequenceClasses

# Modules whose names are no calls for users, but for those that the package itself offers.
INNER = re.compile(r"\._|^yzflow_enclose\.(?!enclosure$|scan_and_snap\.(long_enough|ranges|mean_features)$)")
# Arguments that are functions: what those raise is not ours.
FUNCTIONS = {"function", "predicate"}
EXEMPT = {
    hostile.RECORD: {"crossings.Crossing", "decisions.Decision", "scan_and_snap.long_enough.LongEnough"},
    hostile.OURS: {
        # Means in exact numbers, of which `long_enough` is made.
        *(f"scan_and_snap.mean_features.{name}" for name in ("Around", "Means", "least_norm", "remainder", "sizes")),
        *(f"scan_and_snap.ranges.{name}" for name in ("holds", "late_constant", "range_of", "step_gap_below")),
        *(f"scan_and_snap.ranges.{name}" for name in ("supremum", "transition")),
    },
}


class Decay:
    """A flow of a state of two numbers."""

    initial = MappingProxyType({"x": np.array([1.0, 2.0])})

    def derivative(self, t, state):
        return {"x": -state["x"]}


def calls():
    """Name -> (callable, arguments); made anew, so that no call sees another's objects."""
    classes = SequenceClasses([[0.2, 0.8, 0.0], [0.2, 0.0, 0.8]], [0, 0], vocab_size=4)
    rates = {"eta_y": 0.1, "eta_z": 0.1}
    enclosed = enclose_flow(classes, **rates, t_end=1.0, bits=40)
    enclosed.save("kept_enclosure.npz")
    simple = enclose_flow(classes, **rates, t_end=1.0, decoder="theory", bits=40)
    of_states = enclose(Decay(), t_end=0.5, bits=40)
    reading, tube = enclosed.moment(0.5)._reading, Tube(enclosed._reading.field, enclosed.steps)
    own = of_states._reading
    at, again = enclosed.moment(0.25, 0.5), of_states.moment(0.25)
    quantity, claim = at.z(0, 1), Claim(None)
    floats = dict(x=[1.0, 2.0])
    says = [["variable", 0], ["number", 1.0], ["+", 0, 1], [">", 2]]
    of_enclosure = {
        "at": {"t": 0.5}, "moment": {"start": 0.1, "end": 0.2}, "save": {"path": "enclosed.npz"},
        "load": {"path": "kept_enclosure.npz", "trust": False}, "verify": {"flow": None}, "opened": {"flow": None},
        **{name: {"predicate": lambda moment: moment.z(0, 1) < 1, "until": 0.5}
           for name in ("decide", "holds", "record")},
        "crossing": {"function": lambda moment: moment.z(0, 1) - 1e-3, "between": (0.1, 1.0), "rising": True},
        "plot": {"name": None, "next_token": 0, "n_times": 2, "ax": Figure().subplots(), "labels": ["x"],
                 "style": {"lines.linewidth": 2.0}},
    }  # fmt: skip
    of_moment = {
        **{name: {"next_token": 0, "token": 0} for name in ("attention", "feature")},
        **{name: {"next_token": 0} for name in ("gram", "query", "seen_from", "shares", "tokens")},
        **{name: {"query": 0, "token": 1} for name in ("growth_factor", "velocity", "z")},
        "along": {"function": lambda t: t}, "overlap": {"next_token": 0, "other": 1}, "variable": {"place": 0},
        "relative_gain": {"next_token": 0, "token": 1, "other": 0}, "y": {"token": 0, "next_token": 1},
    }  # fmt: skip
    operators = ("add", "sub", "mul", "truediv", "lt", "le", "gt", "ge", "rsub", "rtruediv")
    made = Quantity, dict(thin=quantity._thin, wide=quantity._wide, span=at._span, error=arb(0), slope_error=None)
    return {
        "enclosing.enclose_flow": (enclose_flow, dict(
            data=classes, **rates, t_end=1.0, decoder="theory", bits=60, max_steps=50, max_seconds=5.0,
            progress=False)),
        "enclosing.enclose": (enclose, dict(
            flow=Decay(), start={"x": [1.0, 0.5]}, t_end=0.5, bits=40, max_steps=50, max_seconds=5.0, progress=False)),
        "enclosure.Enclosure": (Enclosure, dict(
            reading=own, steps=of_states.steps, t_end=0.5, bits=40, reason="", environment={"versions": "{}"})),
        "keeping.kept": (kept, dict(
            folder="kept", data=classes, **rates, t_end=0.5, decoder="theory", bits=40, max_seconds=5.0)),
        **{f"enclosure.Enclosure.{name}": (getattr(enclosed, name), given) for name, given in of_enclosure.items()},
        "formulas.Predicate": (Predicate, dict(says=says, until=0.5, times=(0.1, 0.2), margin=-0.5)),
        "formulas.Predicate.of": (Predicate.of, dict(found=Predicate(says, 0.5).plain())),
        "moments.Moment": (Moment, dict(reading=reading, tube=tube, start=0.1, end=0.2)),
        **{f"moments.Moment.{name}": (getattr(at, name), given) for name, given in of_moment.items()},
        "moments.Moment.h": (simple.moment(0.5).h, dict(next_token=0)),
        "states.FlowMoment": (FlowMoment, dict(tube=own.tube(of_states.steps), shapes=own.shapes, start=0.1, end=0.2)),
        "states.FlowMoment.along": (again.along, dict(function=lambda t: t)),
        "quantities.Quantity": made,
        "quantities.Quantity.integral": (quantity.integral, dict(before=0.0)),
        **{f"quantities.Quantity.__{name}__": (getattr(quantity, f"__{name}__"), dict(other=1.0))
           for name in operators},
        "quantities.Quantity.__pow__": (quantity.__pow__, dict(power=2)),
        "quantities.Quantity.__rpow__": (quantity.__rpow__, dict(base=2)),
        "quantities.Claim": (Claim, dict(value=True)),
        "quantities.Claim.__and__": (claim.__and__, dict(other=claim)),
        "quantities.Claim.__or__": (claim.__or__, dict(other=claim)),
        **{f"quantities.{f.__name__}": (f, dict(claims=[claim])) for f in (every, some)},
        "elementary.ball": (ball, dict(value="0.1", radius=1e-9)),
        **{f"elementary.{f.__name__}": (f, floats) for f in (erf, sigmoid, softplus)},
        **{f"elementary.{f.__name__}": (f, floats | {"axis": 0}) for f in (logsumexp, softmax)},
        "scan_and_snap.long_enough.long_enough": (
            long_enough.long_enough, dict(classes=classes, decoder="full", logits=np.zeros((1, 3)))),
        "scan_and_snap.long_enough.expected_rates": (
            long_enough.expected_rates, dict(classes=classes, length=3, decoder="full", logits=np.zeros((1, 3)))),
        "scan_and_snap.ranges.brackets_transition": (ranges.brackets_transition, dict(factor=1, vocab_size=20.0)),
        "scan_and_snap.ranges.late_ratio": (ranges.late_ratio, dict(vocab_size=20.0)),
    }  # fmt: skip
