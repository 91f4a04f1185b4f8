"""A person's own functions inside a run: when they are asked, and how their errors come out."""

import sys

import numpy as np
import pytest
from own_fields import table  # noqa: F401  (a fixture)

from dynamics import (
    Field,
    Objective,
    Optimizer,
    SequenceClasses,
    Solver,
    gradient_flow,
    integrate,
    register_field,
    sgd,
)

CLASSES = SequenceClasses([[0.2, 0.8, 0.0], [0.2, 0.0, 0.8]], [0, 0], vocab_size=10)
END = 10.0
SOLVERS = [Solver("auto"), Solver("auto", "log"), Solver("LSODA", "log"), Solver("Radau")]
NAMES = [f"{solver.method} {solver.time_scale}" for solver in SOLVERS]


class Mine(ValueError):
    """An error of a person's own; a ValueError, as of `math.sqrt`, so that it may be taken for one of an integrator."""


class Late:
    """A function that counts how often it is asked, and fails from a call on."""

    def __init__(self, returns, fails=30):
        self.returns, self.left, self.error = returns, fails, Mine("of my own")

    def __call__(self, *arguments):
        self.left -= 1
        if self.left < 0:
            raise self.error
        return self.returns(*arguments)


def flow(solver=None, schedule=None, t_end=END, **more):
    optimizer = None if schedule is None else Optimizer("sgd", 0.0, schedule=schedule)
    return gradient_flow(CLASSES, eta_y=1.0, eta_z=0.5, t_end=t_end, solver=solver, optimizer=optimizer, **more)


@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
def test_a_schedule_is_asked_within_the_run_alone(solver):
    """A table with an entry a step is one for a flow, too: `sgd` asks it for 0 to t_end - 1."""
    asked, entries = [], np.linspace(1.0, 0.1, int(END))

    def schedule(step):
        asked.append(step)
        return 1 - 0.9 * step / END + 0 * entries[int(step)]

    first = flow(solver, schedule, t_end=END)
    assert min(asked) >= 0 and max(asked) < END
    half = flow(solver, lambda t: 1 - 0.9 * t / END, t_end=END / 2)
    asked.clear()
    whole = flow(solver, schedule, init=half)
    assert min(asked) >= END / 2 and max(asked) < END
    assert np.allclose(whole.final.Z, first.final.Z, atol=1e-6)


def doors():
    """Name of a door -> (a run with an own function in it, what the note names)."""
    slope = lambda layer, bags: layer.gradient(bags)  # noqa: E731
    sgd_ = {"eta_y": 1.0, "eta_z": 0.5, "steps": 40, "batch_size": 4, "length": 8, "seed": 0}
    for solver, name in zip(SOLVERS, NAMES, strict=True):
        yield f"schedule {name}", lambda own, s=solver: flow(s, own), lambda step: 1.0, "the schedule"
        yield f"term {name}", lambda own, s=solver: flow(s, objective=Objective(terms=(own,))), lambda w: {}, "the term"
        field = lambda own, s=solver: (register_field(Field("own", own)), flow(s, decoder="own"))  # noqa: E731
        yield f"field {name}", field, slope, "the gradient of decoder 'own'"
    stepped = lambda own: sgd(CLASSES, optimizer=Optimizer("sgd", 0.0, schedule=own), **sgd_)  # noqa: E731
    yield "schedule of sgd", stepped, lambda step: 1.0, "the schedule"
    pulled = lambda own: sgd(CLASSES, objective=Objective(terms=(own,)), **sgd_)  # noqa: E731
    yield "term of sgd", pulled, lambda weights: {}, "the term"


DOORS = list(doors())


@pytest.mark.parametrize("run, returns, named", [door[1:] for door in DOORS], ids=[door[0] for door in DOORS])
def test_errors_of_own_functions_come_out_as_they_were_raised(run, returns, named, table):  # noqa: F811
    own = Late(returns)
    with pytest.raises(Mine) as caught:
        run(own)
    assert caught.value is own.error
    notes = getattr(caught.value, "__notes__", [])
    if sys.version_info >= (3, 11):
        assert len(notes) == 1 and notes[0].startswith(f"raised by {named}") and "Late" in notes[0]


class Decay:
    """x' = -x, which refuses to be asked beyond its end."""

    def __init__(self):
        self.initial, self.asked = {"x": np.ones(1)}, []

    def derivative(self, t, state):
        self.asked.append(t)
        return {"x": -state["x"]}

    def events(self, t, state):
        self.asked.append(t)
        return {"half": float(state["x"][0]) - 0.5}


@pytest.mark.parametrize("solver", SOLVERS, ids=NAMES)
@pytest.mark.parametrize("end", [0.7, 100.0])
def test_an_open_flow_is_asked_within_the_run_alone(solver, end):
    own = Decay()
    integrate(own, t_end=end, solver=solver)
    assert min(own.asked) >= 0 and max(own.asked) <= end
