"""Enclosures hold what other routes compute: DOP853, a 60-digit Taylor solver, the objective's gradient."""

import math
from dataclasses import replace

import mpmath
import numpy as np
import pytest
import scipy.integrate
from flint import arb, arb_series, ctx
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import sequence_classes
from yzflow_enclose import enclose_flow
from yzflow_enclose.march import _first_guess, degree_of
from yzflow_enclose.reading import read, read_general
from yzflow_enclose.stepping import grow, jacobian, precision

from dynamics import SequenceClasses, gradient_flow

DECODERS = ("full", "modified", "theory")
LEAD = {"eta_y": 1.0, "eta_z": 2.0}


def lead_shrinks() -> SequenceClasses:
    return SequenceClasses.single_common_token(2, 2, common=1.0, distinct=(2.0, 1.0))


def uneven() -> SequenceClasses:
    """Two classes that no symmetry exchanges; two queries."""
    return SequenceClasses([[0.5, 0.3, 0.2, 0], [0.1, 0, 0.4, 0.5]], [0, 1], vocab_size=3, class_weights=[0.75, 0.25])


def series(values):
    ctx.cap = 2
    return [arb_series([value], 2) for value in values]


@st.composite
def copies_of_a_class(draw):
    """K copies of a class, with common tokens in all of them, one query or one each."""
    K, n_common, n_distinct = draw(st.integers(2, 4)), draw(st.integers(1, 2)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    row = rng.uniform(0.2, 1, n_common + n_distinct)
    if draw(st.booleans()):
        row[-1] = row[-2]  # twins, or a common token as likely as a distinct one
    table = np.zeros((K, n_common + K * n_distinct))
    table[:, :n_common] = row[:n_common]
    for n in range(K):
        table[n, n_common + n * n_distinct : n_common + (n + 1) * n_distinct] = row[n_common:]
    queries = np.arange(K) if draw(st.booleans()) else np.zeros(K, int)
    size = table.shape[1]
    vocab_size = draw(st.sampled_from([K, K + 1, K + 7]))
    # fsum, so that the sum of a row does not depend on the order of its entries: copies to the last bit.
    sums = np.array([[math.fsum(row)] for row in table.tolist()])
    return SequenceClasses(table / sums, queries % size, vocab_size=vocab_size)


@given(copies_of_a_class(), st.sampled_from(DECODERS), st.integers(0, 2**32 - 1))
def test_the_reduction_commutes_with_the_field_in_balls(data, decoder, seed):
    reduced = read(data, eta_y=1.25, eta_z=0.5, decoder=decoder)
    whole = read_general(reduced.bags, eta_y=1.25, eta_z=0.5, decoder=decoder)
    assert reduced.settings["kind"] == "symmetric" and reduced.field.size < whole.field.size
    numbers = np.random.default_rng(seed).normal(size=reduced.field.size)
    lifted = np.zeros(whole.field.size, int)
    for own, other in zip(_index(whole), _index(reduced), strict=True):
        lifted[own[own >= 0]] = other[own >= 0]
    with precision(140):
        state = [arb(x) for x in numbers.tolist()]
        found = reduced.field.derivative(series(state))
        expected = whole.field.derivative(series([state[i] if i >= 0 else arb(0) for i in lifted.tolist()]))
        for place, value in zip(lifted.tolist(), expected, strict=True):
            difference = value[0] - (found[place][0] if place >= 0 else 0)
            assert difference.contains(0) and difference.abs_upper() < 1e-30


def _index(reading):
    parts = [reading.z_index] + ([reading.y_index] if reading.field.decoder != "theory" else [])
    if reading.field.decoder == "theory":
        parts.append(reading.x_index)
    return parts


@given(sequence_classes(), st.integers(0, 2**32 - 1))
def test_the_full_field_is_the_gradient_of_the_objective(data, seed):
    reading = read_general(data.population(), eta_y=1.25, eta_z=0.5, decoder="full")
    field = reading.field
    copies = np.ones(field.size)
    for place, times in zip(reading.y_index.T, field.multiplicity, strict=True):
        copies[place[place >= 0]] = times
    with precision(140):
        state = [arb(x) for x in np.random.default_rng(seed).normal(size=field.size).tolist()]
        velocity = field.derivative(series(state))
        for i in range(field.size):
            moved = series(state)
            moved[i] = arb_series([state[i], 1], 2)
            rate = arb(0.5 if i < field.n_logits else 1.25) / int(copies[i])
            difference = velocity[i][0] + field.loss(moved)[1] * rate
            assert difference.contains(0) and difference.abs_upper() < 1e-30


@settings(max_examples=5)
@given(st.one_of(copies_of_a_class(), sequence_classes(max_unseen=3)), st.integers(0, 2**32 - 1))
def test_the_norm_makes_the_jacobian_of_the_full_field_symmetric(data, seed):
    """As of the gradient of a function: so the weights count what each variable stands for."""
    for reading in (
        read(data, eta_y=1.25, eta_z=0.5, decoder="full"),
        read_general(data.population(), eta_y=1.25, eta_z=0.5, decoder="full"),
    ):
        size, w = reading.field.size, reading.field.weights
        with precision(100):
            numbers = np.random.default_rng(seed).normal(size=size).tolist()
            table = jacobian(reading.field, [arb(x) for x in numbers])
            slopes = np.array([[float(entry.mid()) for entry in row] for row in table])
        scaled = slopes * w[:, None] / w
        np.testing.assert_allclose(scaled, scaled.T, rtol=1e-12, atol=1e-13)
        # A token that is alone in its bags has all attention whatever its logit, whose column is zero then.
        assert np.abs(scaled).max() > 0


@pytest.mark.slow
@settings(max_examples=4)
@given(
    st.one_of(copies_of_a_class(), sequence_classes(max_unseen=3).filter(lambda data: data.probabilities.nnz <= 6)),
    st.sampled_from(DECODERS),
    st.sampled_from([(1.0, 0.5), (0.5, 2.0)]),
)
def test_dop853_lies_inside(data, decoder, rates):
    eta_y, eta_z = rates
    enclosure = enclose_flow(data, eta_y=eta_y, eta_z=eta_z, t_end=20.0, decoder=decoder, bits=36)
    assert enclosure.complete
    times = [0.5, 7.0, 20.0]
    run = gradient_flow(
        data, eta_y=eta_y, eta_z=eta_z, t_end=20.0, decoder=decoder, times=times, rtol=1e-13, atol=1e-15
    ).dataset
    balls = enclosure.at(times)
    for name in ("z", "attention", "loss"):
        expected, found, radius = run[name].values, balls[name].values, balls[f"{name}_radius"].values
        assert found.shape == expected.shape
        assert (np.abs(found - expected) <= radius + 2e-13).all()
        assert radius.max() < 1e-6


def test_an_integration_of_the_definition_lies_inside():
    # Lemma 1 (3) for K = M = 2 in plain numpy, every logit of its own.
    counts = np.array([[1.0, 2, 1, 0, 0], [1.0, 0, 0, 2, 1]]) / 4

    def slope(_, state):
        z, Y = state[:5], state[5:].reshape(5, 2)
        dz, dY = np.zeros(5), np.zeros((5, 2))
        for n in range(2):
            f = counts[n] * np.exp(z)
            f /= np.linalg.norm(f)
            u = Y.T @ f
            r = np.eye(2)[n] - np.exp(u) / np.exp(u).sum()
            g = Y @ r
            dz += LEAD["eta_z"] / 2 * f * (g - f * (f @ g))
            dY += LEAD["eta_y"] / 2 * np.outer(f, r)
        return np.append(dz, dY)

    times = [1.0, 10.0, 52.5, 300.0]
    done = scipy.integrate.solve_ivp(slope, (0, 300), np.zeros(15), "DOP853", times, rtol=1e-13, atol=1e-15)
    balls = enclose_flow(lead_shrinks(), **LEAD, t_end=300.0, bits=40).at(times)
    assert (np.abs(balls["z"].values[:, 0] - done.y[:5].T) <= balls["z_radius"].values[:, 0] + 1e-12).all()
    assert (balls["z_radius"] < 1e-6).all()


def times_series(a, b):
    return [mpmath.fsum(a[j] * b[k - j] for j in range(k + 1)) for k in range(len(a))]


def exp_series(a):
    out = [mpmath.exp(a[0])]
    for k in range(1, len(a)):
        out.append(mpmath.fsum(j * a[j] * out[k - j] for j in range(1, k + 1)) / k)
    return out


def power_series(a, exponent):
    """a^exponent, by J. C. P. Miller's recurrence."""
    out = [a[0] ** exponent]
    for k in range(1, len(a)):
        terms = (((exponent + 1) * j - k) * a[j] * out[k - j] for j in range(1, k + 1))
        out.append(mpmath.fsum(terms) / (k * a[0]))
    return out


def reduced_slope(state, counts, eta_y, eta_z):
    """K = M = 2 by symmetry: z of the common and the two distinct tokens, Y of the distinct ones (own = -other)."""
    z, y = state[:3], state[3:]
    f = [[count * x for x in exp_series(logit)] for count, logit in zip(counts, z, strict=True)]
    squares = [times_series(value, value) for value in f]
    scale = power_series([sum(parts) for parts in zip(*squares, strict=True)], mpmath.mpf(-1) / 2)
    f = [times_series(value, scale) for value in f]
    pulls = [times_series(value, own) for value, own in zip(f[1:], y, strict=True)]
    odds = exp_series([2 * (a + b) for a, b in zip(*pulls, strict=True)])
    miss = power_series([odds[0] + 1, *odds[1:]], mpmath.mpf(-1))
    g = [[0 * x for x in miss], *([2 * x for x in times_series(own, miss)] for own in y)]
    inner = [sum(parts) for parts in zip(*(times_series(a, b) for a, b in zip(f, g, strict=True)), strict=True)]
    dz = [
        times_series(value, [a - b for a, b in zip(own, times_series(value, inner), strict=True)])
        for value, own in zip(f, g, strict=True)
    ]
    rates = (eta_z, eta_z / 2, eta_z / 2, eta_y / 2, eta_y / 2)
    parts = [*dz, times_series(f[1], miss), times_series(f[2], miss)]
    return [[rate * x for x in part] for rate, part in zip(rates, parts, strict=True)]


@pytest.mark.slow
@settings(max_examples=2)
@given(
    st.floats(0.2, 3.0), st.floats(1.2, 3.0), st.sampled_from([(1.0, 2.0), (0.5, 0.25), (1.5, 1.0)]), st.integers(1, 2)
)
def test_a_taylor_run_of_60_digits_lies_inside(common, first, rates, steps):
    data = SequenceClasses.single_common_token(2, 2, common=common, distinct=(first, 1.0))
    eta_y, eta_z = rates
    enclosure = enclose_flow(data, eta_y=eta_y, eta_z=eta_z, t_end=1.0, bits=110)
    # Counts as they are in the arrays: floats that were divided by their sum.
    groups = enclosure._reading.settings
    counts = [count for count, _ in groups["common"] + groups["distinct"]]
    with mpmath.workdps(60):
        state, step = [mpmath.mpf(0)] * 5, mpmath.mpf(1) / 4
        for _ in range(steps):
            parts = [[value] for value in state]
            for k in range(45):
                slopes = reduced_slope(parts, counts, eta_y, eta_z)
                for part, slope in zip(parts, slopes, strict=True):
                    part.append(slope[k] / (k + 1))
            state = [mpmath.fsum(c * step**k for k, c in enumerate(part)) for part in parts]
        moment = enclosure.moment(steps / 4)
        with precision(240):
            for place, value in zip((0, 1, 2, 3, 5), state, strict=True):
                ball = moment.variable(place).ball()
                assert ball.contains(arb(mpmath.nstr(value, 50)))
                assert ball.rad() < 1e-30


def test_radii_shrink_with_bits():
    radii = [
        float(enclose_flow(lead_shrinks(), **LEAD, t_end=5.0, bits=bits).steps[-1].radius) for bits in (40, 60, 100)
    ]
    assert radii[0] < 2.0**-30 and radii[1] < radii[0] * 2.0**-15 and radii[2] < radii[1] * 2.0**-35


@pytest.mark.parametrize("decoder", DECODERS)
def test_two_precisions_overlap_and_both_start_at_zero(decoder):
    coarse, fine = (
        enclose_flow(uneven(), eta_y=1.0, eta_z=1.0, t_end=2.0, decoder=decoder, bits=bits) for bits in (36, 70)
    )
    for time in (0.0, 1e-9, 0.7, 2.0):
        for place in range(coarse.variables):
            balls = [enclosure.moment(time).variable(place).ball() for enclosure in (coarse, fine)]
            assert balls[0].contains(balls[1]) if time else balls[0].is_zero()


@pytest.mark.parametrize("bits", [60, 200, 235, 240, 320, 600])
@pytest.mark.parametrize("radius", [0.01, 5.0, 70.0])
def test_steps_are_as_long_at_any_precision(bits, radius):
    """The series of 3 radius / (radius - t): at some precisions its terms have no square as a float, or no size."""
    degree, goal = degree_of(bits), 2.0**-bits
    with precision(bits):
        row = [3 / arb(radius) ** k for k in range(degree + 1)]
        guess = _first_guess([row, row], np.array([1.0, 1.0]), goal)
    terms = ((math.log(goal) - math.log(3) - math.log(2) / 2) / k + math.log(radius) for k in (degree - 1, degree))
    assert guess == pytest.approx(math.exp(min(terms)), rel=1e-9)


def test_row_sums_of_z_are_zero_at_all_times():
    enclosure = enclose_flow(SequenceClasses.syn_small(), eta_y=1.0, eta_z=1.0, t_end=3.0, decoder="theory", bits=40)

    def small(at):
        total = sum((at.z(30, token) for token in range(1, 20)), at.z(30, 0))
        return (total < 1e-6) & (total > -1e-6)

    assert enclosure.holds(small) is True


def test_classes_that_differ_in_the_last_bit_are_no_copies():
    """A ball promises to hold the flow of the data that were given, so that nothing is made equal that is not."""
    same = SequenceClasses.single_common_token(2, 5, common=0.5, distinct=(1.0, 0.5)).population()
    count = same.count.copy()
    count[1] = np.nextafter(count[1], 1)
    near = replace(same, count=count)
    rates = {"eta_y": 1.0, "eta_z": 2.0, "decoder": "full"}
    assert read(same, **rates).settings["kind"] == "symmetric"
    found = read(near, **rates)
    assert found.settings["kind"] == "general" and found.settings["count"][0] != found.settings["count"][1]
    many = SequenceClasses.single_common_token(40, 50, common=0.5, distinct=(1.0, 0.5)).population()
    weight = many.weight.copy()
    weight[0] = np.nextafter(weight[0], 1)
    with pytest.raises(ValueError, match=r"copies of each other, to the last bit of their counts and weights"):
        read(replace(many, weight=weight), **rates)


@given(st.floats(-50, 5), st.floats(1e-3, 10), st.floats(0, 1), st.floats(0, 1))
@example(1.5e-196, 1.0, 0.0, 1.0)
def test_growth_is_rounded_outwards_for_either_sign(mu, length, epsilon, delta):
    """Over a span that is known to a few bits only, the bound holds for its shortest and its longest length."""
    with precision(20):
        span = arb(length) + arb(0, length * 2.0**-12)
        bound = grow(arb(epsilon), arb(delta), arb(mu), span)
    with precision(200):
        for whole in (arb(length) * (1 - arb(2) ** -13), arb(length) * (1 + arb(2) ** -13)):
            factor = (arb(mu) * whole).exp()
            between = whole if mu == 0 else (arb(mu) * whole).expm1() / arb(mu)
            assert bound >= factor * arb(epsilon) + arb(delta) * between
