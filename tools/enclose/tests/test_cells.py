"""Cells of settings: what holds in a cell holds at its settings, and no mistake passes for a proof."""

import dataclasses
import itertools
import math

import numpy as np
import pytest
from flint import arb, arb_poly, arb_series, ctx
from hypothesis import given, settings
from hypothesis import strategies as st
from yzflow_enclose import cell_bounds, enclose_flow
from yzflow_enclose.cells import Cell, decide_cell
from yzflow_enclose.jets import Jet, basis
from yzflow_enclose.signs import _quarters_of
from yzflow_enclose.stepping import jacobian, precision

from dynamics import SequenceClasses

DISTINCT = (2.0, 1.0)
LEAD = (0.0, 1.0, -1.0)
THEOREM2 = ((-1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))
SMALL = Cell(2, 2, DISTINCT, 1.0, (0.2, 0.22), (1.4, 1.5))
WITH_UNSEEN = Cell(3, 7, DISTINCT, 1.0, (0.2, 0.22), (1.4, 1.5))

OPERATIONS = {
    "sum": lambda a, b: a + b - 3,
    "product": lambda a, b: a * b * 2 - b,
    "inverse": lambda a, b: b / a + 1 / b,
    "exp": lambda a, b: (a - b).exp(),
    "log": lambda a, b: (a * b).log(),
    "rsqrt": lambda a, b: (a + b).rsqrt() * -1,
    "of a small one": lambda a, b: 1 / (b * 0.125) + (b * 0.125).rsqrt() + (b * 0.125).log(),
    "all": lambda a, b: (1 / ((a * b).exp() + 2)).rsqrt() * a.log(),
}


@pytest.mark.parametrize("operation", OPERATIONS)
@settings(max_examples=12)
@given(st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1e-3]))
def test_a_rest_bounds_what_a_jet_leaves_out(operation, seed, rest):
    rng, compute = np.random.default_rng(seed), OPERATIONS[operation]
    degree = seed % 5
    with precision(100):
        own = basis(2, degree)
        numbers = [[centre, *rng.uniform(-0.01, 0.01, len(own) - 1).tolist()] for centre in (1.5, 0.8)]
        jets = [Jet([arb(x) for x in row], own, arb(rest)) for row in numbers]
        found = compute(*jets)
        for _ in range(4):
            at = rng.choice([-1.0, 1.0, 0.3], 2).tolist()
            inputs = [_value(jet, at) + jet.rest * rng.choice([-1.0, 1.0]) for jet in jets]
            missed = abs(compute(*inputs) - _value(found, at))
            assert missed <= found.rest or (found.rest - missed).contains(0)
        if degree == 4 and rest == 0:
            assert found.rest < 0.2


def _value(jet, at):
    powers = ([arb(x) ** k for k in range(jet.basis.degree + 1)] for x in at)
    first, second = powers
    terms = zip(jet.terms, jet.basis.exponents, strict=True)
    return sum((t * first[a] * second[b] for t, (a, b) in terms if t is not None), arb(0))


@pytest.mark.parametrize("degree", range(4))
@pytest.mark.parametrize("first", [0.25, 3.0])
@pytest.mark.parametrize("function", ["inverse", "exp", "log", "rsqrt", "product"])
def test_a_rest_is_no_larger_than_the_worst_case(function, first, degree):
    """Where all of a jet lowers its first term, or raises that of an exponent or a factor, the rest is reached.

    Terms are series in a further variable, of which a linear one is followed as well.
    """
    with precision(100):
        ctx.cap = 2
        own, sign = basis(2, degree), 1 if function in ("exp", "product") else -1

        def series(value):
            return arb_series([value, value / 2], 2)

        terms = [sign * first * series(arb(0.2) ** sum(powers)) for powers in own.exponents[1:]]
        jet = Jet([arb_series([first, 0], 2), *terms], own, series(arb(first) / 64))
        compute = {
            "inverse": lambda a: 1 / a, "exp": lambda a: a.exp(), "log": lambda a: a.log(),
            "rsqrt": lambda a: a.rsqrt(), "product": lambda a: a * a * first,
        }[function]  # fmt: skip
        found = compute(jet)
        missed = compute(sum(jet.terms[1:], jet.terms[0]) + sign * jet.rest) - sum(found.terms[1:], found.terms[0])
        if function == "log":
            missed = -missed
        for k in range(2):
            above = found.rest[k] - missed[k]
            assert above.upper() >= 0 and above < 1e-25 and found.rest[k] > 1e-4


@pytest.mark.parametrize("terms", [(1.0, 1.5), (1.0, -3.5), (-1.0, 1.5), (1.0, 0.5)])
@pytest.mark.parametrize("degree", [1, 2])
def test_what_may_be_zero_has_no_bound_of_its_inverse(degree, terms):
    """Of the last one, 1 + s/2, by what it leaves out."""
    own = basis(1, degree)
    jet = Jet([*map(arb, terms), *[None] * (degree - 1)], own, arb(0.625))
    for found in (1 / jet, jet.log(), jet.rsqrt()):
        assert not found.rest.is_finite()


@pytest.mark.parametrize("decoder", ["full", "modified", "theory"])
@given(st.integers(0, 2**32 - 1))
@settings(max_examples=5)
def test_the_field_on_jets_is_the_field_at_every_setting(decoder, seed):
    # With a direction beside the state, so that the derivative in it is bounded as well: a column of the Jacobian.
    rng = np.random.default_rng(seed)
    cell = dataclasses.replace(WITH_UNSEEN, decoder=decoder)
    with precision(100):
        own = basis(2, 3)
        jets = cell.along(own, rest=arb_series([arb(0)], 2))
        state = rng.normal(scale=0.3, size=jets.size).tolist()
        ctx.cap = 2
        series = [arb_series([x, float(i == 1)], 2) for i, x in enumerate(state)]
        found = jets.derivative([Jet([x] + [None] * (len(own) - 1), own, arb_series([arb(0)], 2)) for x in series])
        for at in rng.uniform(-1, 1, (3, 2)).tolist():
            values = [
                (arb(a) + arb(b)) / 2 + (arb(b) - arb(a)) / 2 * x
                for (a, b), x in zip((cell.eta_z, cell.common), at, strict=True)
            ]
            for jet, exact in zip(found, cell.field(*values).derivative(series), strict=True):
                value = _value(jet, at)
                for k in range(2):
                    assert (abs(exact[k] - value[k]) - jet.rest[k]).lower() <= 0
                    assert jet.rest[k] < 1e-3


@pytest.mark.parametrize("cell", [SMALL, WITH_UNSEEN])
def test_flows_of_single_settings_lie_inside(cell):
    found = decide_cell(cell, [THEOREM2[0]], t_end=2.0, degree=3)[1]
    assert not found.reason and found.verify()
    weights = cell_bounds.Bounds(cell, 3).weights
    for at in ([-1.0, -1.0], [1.0, -1.0], [0.3, 0.9]):
        eta_z, common = (a + (b - a) * (1 + x) / 2 for (a, b), x in zip((cell.eta_z, cell.common), at, strict=True))
        data = SequenceClasses.single_common_token(cell.n_classes, cell.vocab_size, common=common, distinct=DISTINCT)
        flow = enclose_flow(data, eta_y=1.0, eta_z=eta_z, t_end=2.0, bits=40)
        for step in found.steps:
            with precision(80):
                exact = flow.moment(step.end)
                errors = []
                for place, row in enumerate(step.polynomials):
                    jet = Jet([p(step.length) for p in row], basis(2, 3))
                    errors.append(float(abs(exact.variable(place).ball() - _value(jet, at)) * weights[place]))
                assert np.linalg.norm(errors) <= step.radius
        assert step.radius < 1e-4


def test_a_lead_is_decided_for_a_whole_cell():
    # Finding 8, eta_Z = 2: there the lead grows until t = 52.7, at one setting.
    fast = dataclasses.replace(SMALL, eta_z=(1.95, 2.05), common=(0.98, 1.02))
    (lead, *others), found = decide_cell(fast, [LEAD, *THEOREM2], t_end=70.0, degree=4)
    assert lead.value is False and 45 < lead.reached < 52.7 < lead.time < 70
    assert [sign.value for sign in others] == [True] * 3 and not found.reason
    (slow,), found = decide_cell(dataclasses.replace(fast, eta_z=(0.12, 0.13)), [LEAD], t_end=8.0, degree=2)
    assert slow.value is True and slow.reached == 8.0
    assert found.sign(LEAD, 8.0) == slow and found.sign(LEAD, 9.0).value is None
    assert found.sign([-c for c in LEAD], 8.0).value is False


@pytest.mark.slow
def test_a_cell_with_both_answers_is_open():
    # Its slow settings still gain where its fast ones lose already, and by t_end none has lost at all settings.
    mixed = dataclasses.replace(SMALL, eta_z=(1.8, 2.2), common=(0.98, 1.02))
    (lead,), found = decide_cell(mixed, [LEAD], t_end=52.0, degree=4)
    assert lead.value is None and 40 < lead.reached < 52.7
    assert found.steps[-1].end > lead.reached


def test_a_wide_cell_ends_early_and_is_open():
    wide = dataclasses.replace(SMALL, eta_z=(0.1, 2.0), common=(0.5, 3.0))
    signs, found = decide_cell(wide, [LEAD, *THEOREM2], t_end=100.0, degree=2)
    assert found.reason and found.t_reached < 100 and all(sign.value is None for sign in signs)
    assert all(sign.reached <= found.t_reached for sign in signs)
    stopped = decide_cell(SMALL, [LEAD], t_end=100.0, degree=2, max_seconds=1e-9)
    assert "seconds were over" in stopped[1].reason and stopped[0][0].value is None


def test_a_claim_needs_more_than_the_error_of_the_velocity():
    (sign,), found = decide_cell(SMALL, [LEAD], t_end=4.0, degree=3)
    assert sign.value is True
    middle = len(found.steps) // 2
    for factor, expected in ((1.0, True), (1e6, None)):
        found.steps[middle] = dataclasses.replace(
            found.steps[middle], speed=found.steps[middle].speed * factor, radius=found.steps[middle].radius
        )
        assert found.sign(LEAD, 4.0).value is expected
    # A first step whose tube is wide decides nothing about the times right after zero.
    found.steps[0] = dataclasses.replace(found.steps[0], radius=1e3)
    assert found.sign(LEAD, 4.0).reached < 1e-3


@pytest.mark.parametrize("time", [0.0, 0.5, 1.0])
def test_the_jacobian_of_a_tube_is_that_of_the_field_at_its_settings(time):
    """Of a tube without width around a state that moves along a line; its jets are read at four settings and a time."""
    bounds, length = cell_bounds.Bounds(WITH_UNSEEN, 1), arb(1) / 64
    rng = np.random.default_rng(3)
    start, moved = rng.normal(scale=0.3, size=bounds.thin.size), rng.normal(scale=0.02, size=bounds.thin.size)
    numbers = (start + time * moved).tolist()
    with precision(100):
        line = [
            [arb_poly([x, v / length]) if k == 0 else arb_poly([0]) for k in range(len(bounds.basis))]
            for x, v in zip(start.tolist(), map(arb, moved.tolist()), strict=True)
        ]
        parts, rests = bounds.jacobian(line, length, arb(0))
        for at in ([0.0, 0.0], [1.0, -1.0], [-1.0, -1.0], [0.4, 1.0]):
            ends = zip((WITH_UNSEEN.eta_z, WITH_UNSEEN.common), at, strict=True)
            field = WITH_UNSEEN.field(*((arb(a) + arb(b)) / 2 + (arb(b) - arb(a)) / 2 * x for (a, b), x in ends))
            exact = jacobian(field, [arb(x) for x in numbers])
            place = [*map(arb, at), arb(2 * time - 1)]
            for i, j in itertools.product(range(bounds.thin.size), repeat=2):
                value = sum(
                    (
                        part[i][j] * math.prod((x**k for x, k in zip(place, powers, strict=True)), start=arb(1))
                        for powers, part in zip(bounds.tube.exponents, parts, strict=True)
                    ),
                    arb(0),
                )
                scaled = exact[i][j] * arb(bounds.weights[i]) / arb(bounds.weights[j])
                assert (abs(value - scaled) - rests[i][j]).lower() <= 0 and rests[i][j] < 1e-3
        assert max(abs(exact[i][i]).upper() for i in range(bounds.thin.size)) > 0.01


def test_the_error_holds_what_the_next_start_leaves_out():
    """A step hands on the middles of its balls; without error or defect, what they are wide is all that is lost."""
    bounds, length, wide = cell_bounds.Bounds(SMALL, 1), arb(1) / 64, arb(1) / 1024
    with precision(100):
        polynomials = [[arb_poly(c) for c in row] for row in bounds.series(bounds.zero)]
        polynomials[0][0] += arb_poly([0, arb(0, wide)])
        found = bounds.step(polynomials, length, bounds.zero, arb(0), arb(0), wide)
        lost = wide * length * bounds.weights[0]
        assert found.state[0][0].rad() == 0 and lost < found.error < lost * (1 + arb(2) ** -20)


@pytest.mark.parametrize("seed", range(4))
def test_the_logarithmic_norm_is_not_below_an_eigenvalue(seed):
    rng = np.random.default_rng(seed)
    parts = [rng.normal(size=(5, 5)) * scale for scale in (1.0, 0.2, 0.1)]
    rests = np.full((5, 5), 0.05)
    with precision(60):
        balls = [[[arb(x) for x in row] for row in part.tolist()] for part in parts]
        mu = float(cell_bounds.log_norm(balls, [[arb(x) for x in row] for row in rests.tolist()]))
    largest = -np.inf
    for signs in rng.choice([-1, 1], (200, 2)):
        matrix = parts[0] + signs[0] * parts[1] + signs[1] * parts[2] + rests * rng.choice([-1, 1], (5, 5))
        largest = max(largest, np.linalg.eigvalsh((matrix + matrix.T) / 2)[-1])
    assert largest <= mu < largest + 1.5


def test_quarters_tile_their_box():
    """Of boxes (middle, half) a side: the quarters of the quarters of [-1, 1] x [2, 6] are the 16 pieces of a grid."""
    box = ((0.0, 1.0), (4.0, 2.0))
    found = [part for quarter in _quarters_of(box) for part in _quarters_of(quarter)]
    edges = {((a - h, a + h), (b - k, b + k)) for (a, h), (b, k) in found}
    first, second = (list(itertools.pairwise(np.linspace(*ends, 5))) for ends in ((-1, 1), (2, 6)))
    assert len(found) == 16 and edges == {(x, y) for x in first for y in second}
