"""Every engine with each field and option that it takes, against scipy's integration of dense formulas.

A row is an engine, a field, an option and a tolerance: how far logits, their rates of change and the loss may be from
the reference, over the largest of each.
"""

import functools
import itertools
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import reference
import scipy.integrate
from own_fields import register_blends
from own_fields import table as table

from dynamics import (
    Bags,
    Layer,
    SequenceClasses,
    Solver,
    gradient_flow,
    gradient_flow_ensemble,
    integrate,
    stochastic_flow,
)
from dynamics import flow as flow_module
from dynamics._engine import dop853
from dynamics._engine.steps import METHODS
from dynamics._model import small

pytestmark = pytest.mark.usefixtures("table", "few_classes_reduced")
RATES = {"eta_y": 1.0, "eta_z": 0.8}
TIMES = np.array([0.0, 0.7, 3.0, 8.0])
BUILT_IN = ("full", "modified", "theory")
FIELDS = (*BUILT_IN, "blend 0.5")
RNG = np.random.default_rng(11)
ODD = SequenceClasses(RNG.dirichlet(np.ones(5), 3), [0, 1, 1], vocab_size=5)
ALIKE = SequenceClasses.single_common_token(3, 5)
SOFT = Bags.from_dense([0, 1, 1], RNG.dirichlet(np.ones(4), 3), RNG.random((3, 5)), [0.3, 0.3, 0.4], n_queries=2)


class Case(NamedTuple):
    """The data and the start of a flow, which an option changes."""

    data: SequenceClasses | Bags
    start: Layer | None = None

    @property
    def bags(self):
        return self.data if isinstance(self.data, Bags) else self.data.population()


def _starts(*values):
    zeros = Layer.zeros(ODD.population())
    rows = values[0].shape[1] if values else len(zeros.Y)
    Z, Y = RNG.normal(size=zeros.Z.shape), RNG.normal(size=(rows, ODD.vocab_size))
    return Layer(Z, Y, *values)


OPTIONS = {
    "plain": Case(ODD),
    "alike": Case(ALIKE),  # which symmetry reduces
    "start": Case(ODD, _starts()),
    "soft": Case(SOFT),
    "values": Case(ODD, _starts(RNG.normal(size=(5, 2)))),
}


def formula(case, field):
    """The derivative of (Z, Y), of (Z, h) for "theory", or of (Z, Y, V), per unit of the learning rates."""
    if case.start is not None and case.start.V is not None:
        return lambda *weights: reference.complex_step_gradient(case.bags, weights)
    if field == "blend 0.5":
        return lambda Z, Y: [
            (one + other) / 2
            for one, other in zip(
                reference.full_flow(case.bags, Z, Y), reference.modified_flow(case.bags, Z, Y), strict=True
            )
        ]
    return functools.partial(getattr(reference, f"{field}_flow"), case.bags)


@functools.cache
def known(option, field):
    """Z and dZ/dt at `TIMES`, and the loss unless the state has no Y, of a flow by its formulas."""
    case = OPTIONS[option]
    bags, start = case.bags, case.start
    n = (bags.n_queries, bags.n_tokens), (bags.n_tokens, bags.vocab_size)
    if start is not None:
        state = reference.arrays(start)
    else:
        state = [np.zeros(n[0]), np.zeros(()) if field == "theory" else np.zeros(n[1])]
    rates = [RATES["eta_z"], *[RATES["eta_y"]] * (len(state) - 1)]
    ends, derivative = np.cumsum([part.size for part in state]), formula(case, field)

    def split(flat):
        return [own.reshape(part.shape) for own, part in zip(np.split(flat, ends[:-1]), state, strict=True)]

    def slope(_, flat):
        moved = zip(rates, derivative(*split(flat)), strict=True)
        return np.concatenate([np.ravel(rate * part) for rate, part in moved])

    first = np.concatenate([np.ravel(part) for part in state])
    options = {"method": "DOP853", "t_eval": TIMES, "rtol": 1e-10, "atol": 1e-12}
    found = scipy.integrate.solve_ivp(slope, (0, TIMES[-1]), first, **options).y.T
    states = [split(row) for row in found]
    loss = None if field == "theory" else np.array([reference.loss(bags, *own) for own in states])
    return np.array([Z for Z, *_ in states]), np.array([split(slope(0, row))[0] for row in found]), loss


def of(dataset):
    """z, its rate and the loss of a trajectory."""
    return (dataset[name].values for name in ("z", "z_velocity", "loss"))


def flow(case, field, method="auto", scale="linear", reduce="none", rtol=1e-9):
    solver = Solver(method=method, time_scale=scale, reduce=reduce)
    given = {**RATES, "t_end": TIMES[-1], "times": TIMES, "rtol": rtol, "atol": rtol / 100, "solver": solver}
    return of(gradient_flow(case.data, **given, decoder=field, init=case.start).dataset)


def path(*, large=False, factored=False, scale="linear"):
    """`flow` without the kernel that takes whole steps: call by call, or by sums or factors of large states."""

    def run(case, field):
        asked = []
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(small, "_VARIABLES", 0)
            patch.setattr(dop853, "LARGE", 1 if large else dop853.LARGE)
            original = flow_module.factors_of
            patch.setattr(flow_module, "factors_of", lambda system: (asked.append(original(system)), asked[-1])[1])
            if not factored:
                patch.setattr(flow_module, "factors_of", lambda system: None)
            found = flow(case, field, scale=scale)
        assert not factored or asked[-1] is not None
        return found

    return run


def side_by_side(case, field):
    """Members of a mapping, in lanes."""
    made = gradient_flow_ensemble(
        {"n_classes": 3, "vocab_size": 5, **RATES}, t_end=TIMES[-1], times=TIMES, decoder=field, rtol=1e-9, atol=1e-11,
        record=["z", "loss", "z_velocity"], fastest=False, threads=1,
    )  # fmt: skip
    owner = case.bags.token.reshape(3, -1)  # the common token's place is where all classes have the same one
    kind = np.zeros(case.bags.n_tokens, dtype=int)
    common = owner[0][np.isin(owner[0], owner[1])][0]
    for row in owner:
        kind[row[row != common]] = np.arange(1, row.size)
    return made["z"].values[:, None, kind], made["z_velocity"].values[:, None, kind], made["loss"].values


def member(case, field):
    """A member of a sequence, which is integrated alone."""
    made = gradient_flow_ensemble(
        [(case.data, *RATES.values())], t_end=TIMES[-1], times=TIMES, decoder=field, rtol=1e-9, atol=1e-11,
        record=["z", "loss", "z_velocity"], fastest=False, threads=1,
    ).isel(setting=0)  # fmt: skip
    shape = (TIMES.size, case.bags.n_queries, case.bags.n_tokens)
    z, velocity = np.zeros(shape), np.zeros(shape)
    for kind in made["kind"].values:
        query, token = (int(word.split()[-1]) for word in kind.split(","))
        z[:, query, token] = made["z"].sel(kind=kind)
        velocity[:, query, token] = made["z_velocity"].sel(kind=kind)
    return z, velocity, made["loss"].values


class Dense:
    """The formulas of a case as an open flow."""

    def __init__(self, case, field):
        self.slope = formula(case, field)
        bags = case.bags
        zeros = {"Z": np.zeros((bags.n_queries, bags.n_tokens)), "Y": np.zeros((bags.n_tokens, bags.vocab_size))}
        parts = zip(("Z", "Y", "V"), reference.arrays(case.start), strict=False) if case.start else zeros.items()
        self.initial, self.loss = dict(parts), functools.partial(reference.loss, bags)

    def derivative(self, t, state):
        moved = zip(state, self.slope(*state.values()), strict=True)
        return {name: (RATES["eta_z"] if name == "Z" else RATES["eta_y"]) * part for name, part in moved}

    def observe(self, t, state):
        return {"z_velocity": self.derivative(t, state)["Z"], "loss": float(self.loss(*state.values()))}


def open_flow(case, field):
    run = integrate(Dense(case, field), t_end=TIMES[-1], times=TIMES, rtol=1e-9, atol=1e-11).dataset
    return (run[name].values for name in ("Z", "z_velocity", "loss"))


def without_noise(case, field):
    """The stochastic flow of all of the data at each step, which has no noise."""
    made = stochastic_flow(case.data, **RATES, t_end=TIMES[-1], times=TIMES, decoder=field, init=case.start, dt=0.02,
                           batch_size=None, length=None, scheme="runge-kutta")  # fmt: skip
    dataset = made.dataset
    return dataset["z"].values, None, dataset["loss"].values


class Engine(NamedTuple):
    """How a flow is run: (case, field) -> z, dz/dt and loss at `TIMES`; what of; and how near it comes."""

    run: Callable
    fields: tuple[str, ...] = FIELDS
    options: tuple[str, ...] = tuple(OPTIONS)
    tolerance: float = 1e-7


TOLERANCES = {"RK45": 1e-6, "RK23": 1e-4, "Radau": 1e-5, "BDF": 1e-3, "LSODA": 1e-6}
LOOSER = {"RK45": 1e-8, "RK23": 1e-6, "Radau": 1e-7, "BDF": 1e-7}
ENGINES = {
    "kernel": Engine(flow),
    "orbits": Engine(functools.partial(flow, reduce="auto"), options=("alike",)),
    "calls": Engine(path(), fields=BUILT_IN),
    "large": Engine(path(large=True), fields=BUILT_IN),
    "factors": Engine(path(large=True, factored=True, scale="log"), fields=("full",), options=("alike",)),
    "lanes": Engine(side_by_side, fields=BUILT_IN, options=("alike",)),
    "member": Engine(member, options=("plain", "alike", "soft")),
    "open": Engine(open_flow, fields=("full",), options=("plain", "start")),
    "without noise": Engine(without_noise, fields=BUILT_IN, tolerance=1e-5),
}
for method, scale in itertools.product(METHODS, ("linear", "log")):
    run = functools.partial(flow, method=method, scale=scale, rtol=LOOSER.get(method, 1e-9))
    fields = BUILT_IN if scale == "linear" else ("full",)  # methods ask each field in the same way
    ENGINES[f"{method} {scale}"] = Engine(run, fields, options=("plain",), tolerance=TOLERANCES.get(method, 1e-7))
REFUSED = {("theory", "start"), ("theory", "soft"), *((field, "values") for field in FIELDS if field != "full")}
SLOW = ("values", "blend 0.5", "RK23", "Radau", "BDF")  # the reference, or many evaluations
ROWS = [
    pytest.param(name, field, option, marks=[pytest.mark.slow] * ({name.split()[0], field, option} & {*SLOW} != set()))
    for name, engine in ENGINES.items()
    for field, option in itertools.product(engine.fields, engine.options)
    if (field, option) not in REFUSED
]


@pytest.mark.parametrize(("engine", "field", "option"), ROWS)
def test_every_engine_is_the_reference(engine, field, option):
    if field.startswith("blend"):
        register_blends(0.5)
    for given, expected in zip(ENGINES[engine].run(OPTIONS[option], field), known(option, field), strict=True):
        if given is not None and expected is not None:
            assert reference.scaled_difference(given, expected) < ENGINES[engine].tolerance
