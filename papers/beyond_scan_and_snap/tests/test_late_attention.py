"""Late attention in its own clock: against the simulator, the flow in ln t, finite differences, and balls."""

import json
import math

import numpy as np
import pytest
import scipy
from driving import ROOT
from yzflow_beyond_scan_and_snap import late_attention
from yzflow_beyond_scan_and_snap.late import final_exponent, late_flow
from yzflow_beyond_scan_and_snap.late_attention import LateAttention, random_settings
from yzflow_beyond_scan_and_snap.proofs import late_exponent

import yzflow as yz
from dynamics import SequenceClasses, Solver, gradient_flow

NAMES = ("A", "B", "C", "log_w", "lag")


def state_of(k, m, w, u, kappa, along):
    """A, B, C, log_w with given w, u = d A, kappa and R + b; lag does not matter."""
    d = 1 / np.sqrt(1 + w * w)
    c, gap, turned = w * d, np.log(kappa), along * w * u  # d B + c C and d C - c B
    return np.array([u / d, d * gap - c * turned, c * gap + d * turned, np.log(w), 0.5])


def conditions(flow, y):
    return flow.conditions(dict(zip(NAMES, y, strict=True)))


def moved(flow, y, end):
    """The states along the flow, by equations of the test's own, in the angle of the features."""
    k, m, a = flow.n_classes, flow.vocab_size, flow.speed

    def rate(_, point):
        A, B, C, angle = point
        c, d = math.sin(angle), math.cos(angle)
        kappa = math.exp(d * B + c * C)
        # By how much the angle raises both margins, each as often as it is wanted.
        up = (m - k) * (d * C - c * (A + B)) - (k - 1) * kappa * c * A
        return [d * (k * kappa + m - k) / m, d * (1 - kappa) / m, c, a * (c * d) ** 2 * up]

    start = [*y[:3], math.atan(math.exp(y[3]))]
    found = scipy.integrate.solve_ivp(rate, (0, end), start, method="Radau", rtol=1e-9, atol=1e-12).y
    return np.vstack([found[:3], np.log(np.tan(found[3])), np.full(found.shape[1], 0.5)])


@pytest.mark.parametrize("n_distinct", [1, 3])
def test_the_flow_is_the_simulator_s(n_distinct):
    """Of the unreduced full flow, Lemma 1 on all of Y and Z."""
    own = LateAttention.of(n_classes=3, vocab_size=8, common=0.5, n_distinct=n_distinct, eta_y=2.0, eta_z=0.7)
    run = yz.integrate(own, t_end=4.0, times=[1.0, 2.5, 4.0], rtol=1e-11, atol=1e-13).dataset
    state = {name: run[name].values for name in NAMES}
    classes = SequenceClasses.single_common_token(3, 8, common=0.5, distinct=[0.5 / n_distinct] * n_distinct)
    times = np.exp(own.ln_t(state, eta_y=2.0))
    whole = gradient_flow(
        classes, eta_y=2.0, eta_z=0.7, t_end=times[-1], times=times, rtol=1e-10, atol=1e-13,
        solver=Solver(time_scale="log"),
    )  # fmt: skip
    fall = state["log_w"] - own.initial["log_w"]
    np.testing.assert_allclose(
        fall / (1 + 1 / (3 * n_distinct)), whole.dataset["z"].values[:, 0, int(classes.common_tokens[0])], rtol=1e-7
    )


def test_the_rate_of_the_pull_where_it_vanishes():
    """Finite differences of N along the flow, on both sides of the border that condition (2) stays away from."""
    k, m = 3, 7
    flow = LateAttention(n_classes=k, vocab_size=m, ratio=0.3, speed=0.4)
    signs = set()
    for kappa in (0.1, 0.4, 0.9, 2.0, 4.0):
        for u in (0.5, 3.0, 20.0):
            w = 0.3
            along = ((k - 1) * kappa + m - k) / (m - k)  # N = 0
            y = state_of(k, m, w, u, kappa, along)
            assert abs(conditions(flow, y)["the logit falls"]) < 1e-12
            step = 1e-6
            ends = [y + side * step * _slope(flow, y) for side in (-1, 1)]
            slope = np.diff([conditions(flow, end)["the logit falls"] for end in ends])[0] / (2 * step)
            bend = k * kappa**2 + 2 * (m - k) * kappa - (m - k)
            expected = (k - 1) / (m * u * (1 + w * w)) * (bend - u * kappa * (kappa - 1 - m * w * w))
            assert slope == pytest.approx(expected, rel=1e-5)
            signs.add(np.sign(slope))
    assert signs == {-1.0, 1.0}  # outside the trap the logit may begin to rise


def _slope(flow, y):
    found = flow.derivative(0.0, dict(zip(NAMES, y, strict=True)))
    return np.array([float(found[name]) for name in NAMES])


@pytest.mark.slow
def test_what_is_in_the_trap_stays_there():
    rng = np.random.default_rng(3)
    least = dict.fromkeys(("the logit falls", "excess", "ledge", "margin", "reach"), np.inf)
    done = 0
    while done < 8:
        k, free = int(rng.integers(2, 8)), int(rng.integers(1, 12))
        m = k + free
        flow = LateAttention(n_classes=k, vocab_size=m, ratio=1.0, speed=10 ** rng.uniform(-2, 2))
        w, u = 10 ** rng.uniform(-2, 0.5), max(m + 1, 3 * k) * (1 + rng.exponential(0.2))
        along = late_exponent.ledge(m, k) * (1 + rng.exponential(0.05))
        kappa = free * (along - 1) / (k - 1) * (1 + rng.exponential(0.05))
        if rng.random() < 0.5:
            kappa = 1 + m * w * w + m / u * (1 - rng.exponential(0.05))  # near the border of (2)
        if kappa <= 0:
            continue
        y = state_of(k, m, w, u, kappa, float(along))
        if min(conditions(flow, y).values()) < 0:
            continue
        done += 1
        found = moved(flow, y, 5 * y[0])
        for name, values in conditions(flow, found).items():
            least[name] = min(least[name], float(np.min(values)))
    assert min(least.values()) > -1e-7, least


def test_the_trap_is_reached_and_left_by_nothing_that_it_forbids():
    """The least excess above (2) lets the logit begin to rise: the proof's border is not an idle condition."""
    k, m, w = 2, 5, 0.1
    flow = LateAttention(n_classes=k, vocab_size=m, ratio=w, speed=1.0)
    u, kappa = 40.0, 1.6
    assert u * (kappa - 1 - m * w * w) > late_exponent.most_excess(m)
    y = state_of(k, m, w, u, kappa, ((k - 1) * kappa + m - k) / (m - k))
    found = moved(flow, y, 0.05)
    assert conditions(flow, found[:, -1])["the logit falls"] < 0


@pytest.mark.slow
def test_in_balls_the_logit_falls_until_it_is_trapped():
    flow = LateAttention.of(n_classes=2, vocab_size=3, n_distinct=1)
    enclosure = yz.enclose(flow, t_end=25.0, bits=60)
    assert enclosure.holds(lambda at: at.velocity["log_w"] < 0) is True
    with enclosure.computing():
        found = flow.conditions(enclosure.moment(25.0).state)
        assert all(np.asarray(value)[()].lower > 0 for value in found.values())
        before = flow.conditions(enclosure.moment(3.0).state)
        assert np.asarray(before["margin"])[()].upper < 0  # and not from the start
    ten = enclosure.crossing(lambda at: flow.ln_t(at.state) - 10, between=(1.0, 25.0))
    with enclosure.computing():
        exponent = np.asarray(flow.exponent(enclosure.moment(*ten.times)))[()]
        low, high = exponent.lower, exponent.upper
    # By an integrator in ln t, with other variables.
    other = float(late_flow([10.0], n_classes=2, vocab_size=3, n_distinct=1, rtol=1e-11)["exponent"][0])
    assert high - low < 1e-9 and low - 1e-7 < other < high + 1e-7


@pytest.mark.slow
@pytest.mark.parametrize("sizes", [(2, 3)])
def test_w_falls_like_the_power_that_is_proved(sizes):
    """From the integrator in ln t: w (ln t)^alpha settles, and the next orders explain the exponent's excess."""
    k, m = sizes
    s = np.array([1e2, 1e3, 1e4])
    flow = late_flow(s, n_classes=k, vocab_size=m, n_distinct=1, rtol=1e-9)
    w, alpha = flow["ratio"].values, final_exponent(n_classes=k, vocab_size=m)
    scaled = np.log(w * s**alpha)
    assert abs(scaled[2] - scaled[1]) < 0.7 * abs(scaled[1] - scaled[0]) < 0.1
    wrong = np.log(w * s ** (k / m))  # the power K/M would not settle
    assert abs(wrong[2] - wrong[1]) > 0.9 * abs(wrong[1] - wrong[0])
    speed = flow.attrs["gain"] * 0.5 * k / m
    excess = [
        float(late_exponent.next_exponent(m, k, y, 1 / (speed * y * t**2))) / (1 + alpha * y - np.log(k / m) / t)
        - alpha
        for y, t in zip(w**2, s, strict=True)
    ]
    np.testing.assert_allclose((flow["exponent"].values - alpha)[1:], excess[1:], rtol=0.15, atol=2e-6)


def inequalities(flow, y, larger):
    """The claims of `late_start` or `late_larger_start`, positive inside and over their scale, by the test itself."""
    k, m, a = flow.n_classes, flow.vocab_size, flow.speed
    A, B, C, w = y[0], y[1], y[2], np.exp(y[3])
    d = 1 / np.sqrt(1 + w * w)
    kappa, u = np.exp(d * B + w * d * C), d * A
    others, delta = (m - k) * (1 - C / (w * A) + B / A), kappa - 1 - m * w * w
    pull, least = (k - 1) * kappa + others, (k - 1) / 2 + others
    first = flow.ratio**2
    return {
        "N": pull / ((k - 1) * kappa + m - k),
        "kappa": 1 - delta if larger else 2 - kappa,
        "kappa from the start": 1 + m * first - kappa,
        "excess": 1 - u * delta / m,
        "kappa above 1/2": kappa - 0.5,
        "drive": 1 - a * m * (w * u) ** 2 * least / ((1 if larger else 1 + 1 / m) * (m - k / 2)),
        "along": C / (w * A) - B / A - (1 + first) / (1 + k * first),
        "lead": first / (1 + k * first) + B / A,
    }


BORDERS = [(2, 3, 1 / 3, False), (15, 30, 1 / 30, False), (2, 4, 1 / 8, True), (10, 300, 1 / 10, True)]


@pytest.mark.parametrize(("k", "m", "square", "larger"), BORDERS)
def test_the_inequalities_hold_from_the_largest_starts_that_are_proved(k, m, square, larger):
    """Along flows integrated by the test's own equations, with w(0) at the border and rates of all sizes."""
    least = {}
    for size in (1e-4, 10.0, 1e4):
        flow = LateAttention(n_classes=k, vocab_size=m, ratio=np.sqrt(square) * (1 - 1e-12), speed=size / m)
        assert flow.always_falls()
        y = np.array([0.0, 0.0, 0.0, np.log(flow.ratio), 0.5])
        path = moved(flow, y, max(20.0, m))[:, 2:]  # at the start two of them are equalities
        for name, values in inequalities(flow, path, larger).items():
            least[name] = min(least.get(name, np.inf), values.min())
    assert min(least.values()) > -1e-7, least
    assert all(least[name] > 0 for name in ("N", "kappa", "excess", "kappa above 1/2", "drive")), least


def test_which_starts_are_proved_is_decided_exactly():
    def proved(ratio, k=2, m=4):
        return LateAttention(n_classes=k, vocab_size=m, ratio=ratio, speed=1.0).always_falls()

    assert proved(0.5) and not proved(0.5, 2, 5)
    assert not proved(np.nextafter(0.5, 1)) and proved(np.nextafter(0.5, 0))
    # Of 1/8 and 1/K, where 2 K <= M: the doubles next to the square roots.
    for k, m, largest in ((2, 200, 8), (8, 16, 8), (8, 2000, 8), (9, 18, 9), (30, 60, 30)):
        root = 1 / math.sqrt(largest)
        assert proved(root * (1 - 1e-15), k, m) and not proved(root * (1 + 1e-15), k, m)
    assert not proved(1 / math.sqrt(9.5), 9, 17) and proved(1 / math.sqrt(17.5), 9, 17)  # 2 K > M
    assert not LateAttention.of(**late_attention.COUNTER_EXAMPLE).always_falls()
    assert LateAttention.of(n_classes=2, vocab_size=3, common=0.36, n_distinct=1).always_falls()
    assert not LateAttention.of(n_classes=2, vocab_size=3, common=0.37, n_distinct=1).always_falls()


def test_nearly_all_common_the_logit_rises_for_a_while_in_the_simulator():
    """The counter-example by the unreduced full flow, Lemma 1 on all of Y and Z."""
    classes = SequenceClasses.single_common_token(2, 3, common=0.9999, distinct=[0.0001])
    times = np.exp([9.0, 9.9, 9.95, 10.1, 10.6])
    whole = gradient_flow(
        classes, eta_y=1.0, eta_z=1.0, t_end=times[-1], times=times, rtol=1e-9, atol=1e-13,
        solver=Solver(time_scale="log"),
    )  # fmt: skip
    z = whole.dataset["z"].values[:, 0, int(classes.common_tokens[0])]
    assert z[1] < z[0] and z[3] > z[2] + 0.004 and z[4] < z[3]


CHECKS = {
    "unbroken_fall": (late_attention._pull_of_counter_example, late_attention, "RISES_AT", lambda right: 9.0),
    "rising": (
        late_attention._rising,
        LateAttention,
        "conditions",
        lambda right: lambda *a: {key: -value for key, value in right(*a).items()},
    ),
}


@pytest.mark.parametrize("name", CHECKS)
def test_the_register_s_checks_turn_red(name, monkeypatch):
    monkeypatch.setattr(late_attention, "SETTINGS", 3)
    kept, owner, attribute, wrong = CHECKS[name]
    check = getattr(late_attention, name)
    kept.cache_clear()
    try:
        assert check(None, "closed form") == 0
        monkeypatch.setattr(owner, attribute, wrong(getattr(owner, attribute)))
        kept.cache_clear()
        assert check(None, "closed form") == 1
    finally:
        kept.cache_clear()


def test_refusals_and_settings():
    with pytest.raises(ValueError, match="`vocab_size` must be"):
        LateAttention(n_classes=3, vocab_size=3, ratio=1.0, speed=1.0)
    with pytest.raises(ValueError, match="`speed` must be positive, but got 0"):
        LateAttention(n_classes=3, vocab_size=4, ratio=1.0, speed=0)
    with pytest.raises(ValueError, match="`common` must be below 1"):
        LateAttention.of(n_classes=3, vocab_size=4, common=1.5)
    one, two = random_settings(3, 7), random_settings(3, 7)
    assert [flow.config() for flow in one] == [flow.config() for flow in two]
    assert all(2 <= flow.n_classes < flow.vocab_size for flow in one)


def test_the_docstring_names_the_starts_that_were_seen_to_rise():
    """Those of the study at its lowest border, K = 2 and M = 10."""
    rows = json.loads((ROOT / "studies/yzflow_studies/late_exponent/values.json").read_text())["border"]["values"][
        "rows"
    ]
    (row,) = (row for row in rows if (row["k"], row["m"]) == (2, 10))
    words = " ".join(LateAttention.always_falls.__doc__.split())
    last, first = f"{row['last']:.0f}", row["rises"].replace(",", "")
    assert (
        f"at K = 2, M = 10 the logit was seen to rise for a while from w(0) = {first}, and not from w(0) = {last}"
        in words
    )
    assert float(first) == min(float(row["rises"].replace(",", "")) for row in rows if row["rises"] != "none")
