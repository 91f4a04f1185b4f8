"""What is proved, what is left open, and that no mistake passes for a proof."""

import ast
import inspect
import subprocess
import sys

import numpy as np
import pytest
from flint import arb, ctx

from dynamics import Bags, DyckLanguage, SequenceClasses
from theory.enclosures import Claim, Enclosure, certificate, enclose_flow, fields, march, quantities, stepping
from theory.enclosures.keeping import certificate_path
from yzflow import verify

RATES = {"eta_y": 1.0, "eta_z": 2.0}
SHORT = {**RATES, "t_end": 3.0, "bits": 36}


def lead_shrinks() -> SequenceClasses:
    """Finding 8: the lead of a distinct token grows, then shrinks."""
    return SequenceClasses.single_common_token(2, 2, common=1.0, distinct=(2.0, 1.0))


def common_and_rest() -> SequenceClasses:
    return SequenceClasses.single_common_token(3, 7, common=0.5, distinct=(1.0, 0.5))


@pytest.fixture(autouse=True)
def same_precision():
    """The checker is a program: it sets its precision and leaves it so."""
    before = ctx.prec, ctx.cap
    yield
    ctx.prec, ctx.cap = before


@pytest.fixture(scope="module", params=["full", "modified", "theory"])
def saved(request, tmp_path_factory):
    """A file of a short enclosure with M > K."""
    path = tmp_path_factory.mktemp("enclosures") / f"{request.param}.npz"
    enclose_flow(common_and_rest(), decoder=request.param, **SHORT).save(path)
    return path


@pytest.mark.parametrize(("decoder", "expected"), [("full", False), ("modified", False), ("theory", True)])
def test_a_lead_shrinks_in_the_full_and_the_modified_flow(decoder, expected):
    flow = enclose_flow(lead_shrinks(), **RATES, t_end=60.0, decoder=decoder, bits=40)
    decision = flow.decide(lambda at: at.relative_gain(0, 1, 2).rate >= 0)
    assert decision.value is expected
    assert flow.holds(lambda at: (at.velocity(0, 0) < 0) & (at.loss.rate < 0) & (at.relative_gain(0, 1, 2) > 3)) is True
    if expected is False:
        start, end = decision.times
        assert 52.5 < start <= end < 60
        assert flow.moment(start, end).relative_gain(0, 1, 2).rate.upper < 0


def test_a_peak_is_found_to_any_width():
    flow = enclose_flow(lead_shrinks(), **RATES, t_end=60.0, bits=40)
    rising = [flow.moment(t).relative_gain(0, 1, 2).rate.lower > 0 for t in (52.0, 52.4, 53.0)]
    assert rising == [True, True, False]


@pytest.mark.parametrize(
    ("claim", "expected"),
    [
        (lambda at: at.velocity(0, 0) > 0, False),
        (lambda at: at.velocity(0, 0) < 0, True),
        (lambda at: ~(at.velocity(0, 0) < 0), False),
        (lambda at: at.velocity(0, 1) < 0, False),
        (lambda at: at.z(0, 0) < -0.05, False),
        (lambda at: at.z(0, 0) < 0, True),
        (lambda at: at.z(0, 0) <= at.z(0, 1), True),
        (lambda at: at.attention(0, 0) < 0.25, True),
        (lambda at: at.attention(0, 0) > 0.25, False),
        (lambda at: at.attention(0, 0) + at.attention(0, 1) + at.attention(0, 2) < 1, None),
        (lambda at: at.loss > 0.6, False),
        (lambda at: (at.loss.exp() < 2.001) & (at.time < 3.001), True),
        (lambda at: at.time < 3, False),
        (lambda at: at.z(0, 0) * at.z(0, 0) > 0, True),
        (lambda at: at.growth_factor(0, 1).log() - 2 * at.z(0, 1) < 1e-6, True),
    ],
)
def test_claims_for_all_times(claim, expected):
    assert enclose_flow(lead_shrinks(), decoder="full", **SHORT).holds(claim) is expected


def test_claims_have_three_values():
    true, false, unknown = Claim(True), Claim(False), Claim(None)
    assert (true & unknown).value is None and (false & unknown).value is False and (true & true).value is True
    assert (true | unknown).value is True and (false | unknown).value is None and (false | false).value is False
    assert (~unknown).value is None and (~true).value is False
    with pytest.raises(TypeError, match="one comparison at a time"):
        bool(true)
    flow = enclose_flow(lead_shrinks(), **SHORT)
    with pytest.raises(ValueError, match="`predicate` must return a Claim, as comparisons of quantities are, but got"):
        flow.holds(lambda at: at.loss.upper < 1)
    with pytest.raises(ValueError, match="a rate has no rate"):
        flow.holds(lambda at: at.velocity(0, 0).rate < 0)


def test_a_certificate_s_path_does_not_depend_on_the_order_of_arguments():
    rest = {"t_end": 3.0, "bits": 36}
    found = {
        certificate_path("folder", lead_shrinks(), **RATES, decoder="full", **dict(order))
        for order in (rest.items(), reversed(rest.items()))
    }
    assert len(found) == 1
    assert certificate_path("folder", lead_shrinks(), **RATES, decoder="full", t_end=4.0, bits=36) not in found


def test_a_feature_is_asked_of_one_bag():
    # Next token 0 follows two queries.
    bags = Bags([0, 1, 0], [0, 0, 1], [0, 1, 2, 3], [0, 1, 2], np.ones(3), vocab_size=3)
    flow = enclose_flow(bags, **SHORT)
    assert flow.moment(0.0).feature(1, 2).lower == pytest.approx(1, abs=1e-9)
    with pytest.raises(ValueError, match="`next_token` must belong to one query, but got 0"):
        flow.moment(0.0).feature(0, 0)
    for ask in (flow.moment(0.0).query, flow.moment(0.0).tokens):
        with pytest.raises(ValueError, match="`next_token` must be one that occurs, but got 2"):
            ask(2)


def test_a_rate_is_a_derivative():
    flow = enclose_flow(common_and_rest(), **RATES, t_end=3.0, bits=80)
    for quantity in (lambda at: at.loss, lambda at: at.attention(1, 0), lambda at: 1 / at.z(0, 0).exp().sqrt()):
        below, above = (quantity(flow.moment(2 + sign * 2.0**-20)).ball() for sign in (-1, 1))
        rate = quantity(flow.moment(2.0)).rate.ball()
        assert abs(float((above - below) * 2.0**19 - rate)) < 1e-10
        whole = quantity(flow.moment(1.99, 2.01))
        assert whole.rate.ball().contains(rate) and whole.ball().contains(below)


def test_what_ends_early_proves_nothing_beyond():
    flow = enclose_flow(lead_shrinks(), **{**SHORT, "t_end": 50.0}, max_steps=3)
    assert not flow.complete and 0 < flow.t_reached < 50 and "3 steps were taken" in repr(flow)
    assert flow.holds(lambda at: at.velocity(0, 0) < 0) is None
    assert flow.decide(lambda at: at.velocity(0, 0) < 0).times == (flow.t_reached, 50.0)
    assert flow.holds(lambda at: at.velocity(0, 0) > 0) is False
    assert flow.verify()
    with pytest.raises(ValueError, match=r"`t` must lie in \[0, .*\], where it ended since 3 steps were taken"):
        flow.at(49.0)
    assert "seconds were over" in enclose_flow(lead_shrinks(), **SHORT, max_seconds=1e-9).reason


def test_a_tube_that_is_lost_ends_the_enclosure(monkeypatch):
    # An error that grows too fast for the precision, as in a stiff or chaotic flow.
    monkeypatch.setattr(stepping, "log_norm", lambda field, box: (arb(30), arb(0)))
    flow = enclose_flow(lead_shrinks(), **SHORT)
    assert not flow.complete and ("grew" in flow.reason or "short enough" in flow.reason)
    assert flow.holds(lambda at: at.velocity(0, 0) < 0) is None


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"eta_y": 0.0}, "`eta_y` must be positive, but got 0.0"),
        ({"bits": 20}, "`bits` must be at least 30, but got 20"),
        ({"bits": 500}, "`bits` must be at most 400, but got 500"),
        ({"decoder": "none"}, "`decoder` must be one of 'full', 'modified', 'theory', but got 'none'"),
        ({"data": SequenceClasses.syn_medium(3)}, "`data` must have at most 200 variables, or classes that are copies"),
        ({"data": DyckLanguage(1, 2).sample(3, max_length=9, rng=0)}, "`data` must have one next token a bag"),
        ({"data": 3}, "`data` must be Bags or offer population"),
    ],
)
def test_bad_input_is_refused(arguments, message):
    with pytest.raises(ValueError, match=message.replace("(", r"\(")):
        enclose_flow(**{"data": lead_shrinks(), **SHORT, **arguments})


def test_a_saved_enclosure_comes_back(saved):
    flow = Enclosure.load(saved)
    assert flow.verify() and flow.complete
    fresh = enclose_flow(common_and_rest(), decoder=flow.at(0.0).attrs["decoder"], **SHORT)
    assert flow.at([0.0, 1.0, 3.0]).identical(fresh.at([0.0, 1.0, 3.0]))
    verify.check(saved)


def test_the_checker_is_small_and_alone(saved):
    source = inspect.getsource(verify)
    assert len(source.splitlines()) <= 200
    trees = ast.walk(ast.parse(source))
    found = {alias.name for node in trees if isinstance(node, ast.Import) for alias in node.names}
    trees = ast.walk(ast.parse(source))
    found |= {node.module for node in trees if isinstance(node, ast.ImportFrom)}
    assert found == {"hashlib", "json", "sys", "collections.abc", "functools", "flint", "numpy"}
    done = subprocess.run([sys.executable, verify.__file__, saved], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("verified to t = 3.0 of 3.0: ")
    done = subprocess.run([sys.executable, verify.__file__, saved.parent], capture_output=True, text=True)
    assert done.returncode == 1 and "not verified" in done.stderr


def altered(saved, tmp_path, change):
    """A copy of a certificate after ``change(settings, arrays)``, under a hash of its own."""
    settings, arrays = certificate.read(saved)
    change(settings, arrays)
    certificate.write(tmp_path / "altered.npz", settings, arrays)
    return tmp_path / "altered.npz"


def add(name, index, amount):
    def change(settings, arrays):
        arrays[name][index] += amount

    return change


def scale(name, index, factor):
    def change(settings, arrays):
        arrays[name][index] *= factor

    return change


def setting(name, value):
    def change(settings, arrays):
        settings[name] = value(settings[name])

    return change


def without_a_step(settings, arrays):
    for name in ("start", "end", "radius", "pieces", "limbs"):
        arrays[name] = np.delete(arrays[name], 1, axis=0)


def exchanged_steps(settings, arrays):
    for name in ("radius", "limbs"):
        arrays[name][[0, 1]] = arrays[name][[1, 0]]


TAMPERED = {
    "a first coefficient": add("limbs", (0, 0, 0, 0), 1e-9),
    "a coefficient": scale("limbs", (1, 1, 1, 0), 1 + 1e-5),
    "a high coefficient": scale("limbs", (1, 0, 5, 0), 1.5),
    "a low limb": add("limbs", (1, 0, 1, 1), 1e-6),
    "a sign": scale("limbs", (slice(None), 0), -1),
    "a smaller radius": scale("radius", 0, 1e-3),
    "a last radius": scale("radius", -1, 1e-3),
    "no radius": scale("radius", 0, np.nan),
    "a negative radius": scale("radius", 0, -1),
    "an end": add("end", -1, 3.0),
    "a start": add("start", 0, 1e-6),
    "both times": lambda s, a: (add("end", 0, 1e-6)(s, a), add("start", 1, 1e-6)(s, a)),
    "no pieces": scale("pieces", 1, 0),
    "a missing step": without_a_step,
    "exchanged steps": exchanged_steps,
    "eta_y": setting("eta_y", lambda x: x * (1 + 1e-9)),
    "eta_z": setting("eta_z", lambda x: x * 1.001),
    "vocab_size": setting("vocab_size", lambda x: x + 1),
    "n_classes": setting("n_classes", lambda x: x + 1),
    "class_weight": setting("class_weight", lambda x: x * 1.001),
    "own_queries": setting("own_queries", lambda x: not x),
    "a count": setting("distinct", lambda pairs: [[pairs[0][0] * 1.001, 1], *pairs[1:]]),
    "a copy": setting("distinct", lambda pairs: [[pairs[0][0], 2], *pairs[1:]]),
    "a decoder": setting("decoder", lambda name: "full" if name == "modified" else "modified"),
    "another decoder": setting("decoder", lambda name: "blend"),
    "no decoder": setting("decoder", lambda name: None),
    "the norm": setting("weights", lambda weights: [weight * 1e4 for weight in weights]),
    "a kind": setting("kind", lambda name: "general"),
}


@pytest.mark.parametrize("mistake", TAMPERED)
def test_what_is_tampered_with_is_not_verified(saved, tmp_path, mistake):
    path = altered(saved, tmp_path, TAMPERED[mistake])
    with pytest.raises((ValueError, TypeError, LookupError)):
        verify.check(path)


@pytest.mark.parametrize("name", ["blend", "", None, ["full"]])
def test_a_certificate_of_a_decoder_without_equations_is_refused_by_its_name(saved, tmp_path, name):
    path = altered(saved, tmp_path, setting("decoder", lambda old: name))
    with pytest.raises(ValueError, match=r"`decoder` must be one of 'full', 'modified', 'theory', but got"):
        Enclosure.load(path)
    with pytest.raises(ValueError, match="no equations of"):
        verify.check(path)


def test_a_byte_that_is_changed_is_noticed(saved, tmp_path):
    content = dict(np.load(saved))
    content["radius"] = content["radius"] * 1.5
    np.savez(tmp_path / "changed.npz", **content)
    (tmp_path / "cut.npz").write_bytes(saved.read_bytes()[:-30])
    for name, message in (("changed.npz", "another SHA-256"), ("cut.npz", "be an enclosure that `save` wrote")):
        with pytest.raises(ValueError, match=message):
            Enclosure.load(tmp_path / name)
    with pytest.raises(ValueError, match="SHA-256"):
        verify.check(tmp_path / "changed.npz")
    with pytest.raises(FileNotFoundError):
        Enclosure.load(tmp_path / "none.npz")


def test_the_error_is_in_the_units_of_the_variables(saved, tmp_path):
    """Not in those of the norm, whose weights the file chooses: other weights are the same certificate."""

    def small(settings, arrays):
        settings["weights"] = [weight * 2.0**-27 for weight in settings["weights"]]
        arrays["radius"] *= 2.0**-27

    _, now, error = verify.check(saved)
    _, again, same = verify.check(altered(saved, tmp_path, small))
    assert now == again == 3.0 and float(same) == pytest.approx(float(error), rel=1e-6)
    settings, arrays = certificate.read(saved)
    assert 0 < error <= arrays["radius"][-1] / min(settings["weights"])


def opposite(function):
    return lambda *args: [-value for value in function(*args)]


def without_the_remainder(monkeypatch):
    def thin_only(field, polynomials, length, degree):
        middle = [stepping.moved(p, length / 2) for p in polynomials]
        ctx.cap = degree
        slope = field.derivative([stepping.arb_series(p.coeffs(), degree) for p in middle])
        errors = [s[0] - p.derivative()[0] for s, p in zip(slope, middle, strict=True)]
        return stepping.weighted_norm(errors, field.weights)

    monkeypatch.setattr(march, "defect", thin_only)


def without_the_gap(monkeypatch):
    original = march.taylor

    def displaced(field, start, order, *, exact):
        return original(field, [value + 1e-9 for value in start], order, exact=exact)

    monkeypatch.setattr(march, "taylor", displaced)
    monkeypatch.setattr(march, "_start", lambda field, polynomials, state, epsilon: epsilon)


def wrong_class_count(monkeypatch):
    original = fields.Symmetric._views

    def views(self, f):
        (one, _), (rho, last) = original(self, f)
        return [[one, rho], [rho, last]]

    monkeypatch.setattr(fields.Symmetric, "_views", views)


MISTAKES = {
    "the sign of dz/dt": lambda m: m.setattr(fields.Symmetric, "_velocities", opposite(fields.Symmetric._velocities)),
    "the sign of dY/dt": lambda m: m.setattr(fields.Symmetric, "_full", opposite(fields.Symmetric._full)),
    "the sign of e - alpha": lambda m: m.setattr(fields, "residual", opposite(fields.residual)),
    "a softmax without multiplicity": lambda m: m.setattr(
        fields, "residual", lambda u, k, n, f=fields.residual: f(u, [1] * len(k), n)
    ),
    "features that are not normalised": lambda m: m.setattr(
        fields, "features", lambda c, k, z: [logit.exp() * count for count, logit in zip(c, z, strict=True)]
    ),
    "the full flow for the modified": lambda m: m.setattr(fields.Symmetric, "_modified", fields.Symmetric._full),
    "K - 1 left out of F^T F": wrong_class_count,
    "the remainder dropped": without_the_remainder,
    "no defect": lambda m: m.setattr(march, "defect", lambda *args: arb(1e-30)),
    "errors that shrink": lambda m: m.setattr(stepping, "grow", lambda epsilon, delta, mu, length: epsilon / 2),
    "the tube not checked": lambda m: m.setattr(
        march, "follow", lambda f, p, h, e, delta, radius, pieces: (delta * 1e-6, delta * 1e-6, 0.0)
    ),
    "a radius rounded inward": lambda m: m.setattr(march, "above", lambda value: float(value) / 100),
    "the gap at the start left out": without_the_gap,
}
DECODER_OF = {"the full flow for the modified": "modified", "K - 1 left out of F^T F": "modified"}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_of_the_program_is_not_verified(mistake, tmp_path):
    with pytest.MonkeyPatch.context() as monkeypatch:
        MISTAKES[mistake](monkeypatch)
        flow = enclose_flow(common_and_rest(), decoder=DECODER_OF.get(mistake, "full"), **SHORT)
        assert flow.steps
        flow.save(tmp_path / "wrong.npz")
    with pytest.raises(ValueError, match="the error is not within its radius"):
        verify.check(tmp_path / "wrong.npz")


@pytest.mark.parametrize("seed", range(6))
def test_a_defect_counts_what_its_series_leaves_out(seed):
    # Taylor polynomials of second degree: the defect is of second order, and the orders from the third on add to it.
    flow = enclose_flow(common_and_rest(), **SHORT, max_steps=1)
    field, half = flow._reading.field, arb(0.2)
    with stepping.precision(80):
        start = [arb(x) for x in np.random.default_rng(seed).uniform(-1, 1, field.size).tolist()]
        parts = [stepping.arb_poly(row) for row in stepping.taylor(field, start, 2, exact=True)]
        found = [stepping._defect(field, parts, arb(0), half, 2)]
        checked, _ = verify.symmetric(field.settings)
        found.append(verify.defect(checked, parts, arb(0), half, verify.balls(field.weights)))
        ctx.cap = 1
        largest = 0.0
        for t in (-0.2, 0.2):
            slopes = field.derivative([stepping.arb_series([p(arb(t))], 1) for p in parts])
            gaps = [p.derivative()(arb(t)) - slope[0] for p, slope in zip(parts, slopes, strict=True)]
            largest = max(largest, float(stepping.weighted_norm(gaps, field.weights)))
        assert all(largest * (1 - 1e-9) <= float(bound) for bound in found)


def test_conversions_round_outward():
    for text in ("1.1", "-0.3", "1e-30", "12345.678"):
        for ball in (arb(text), arb(text) + arb(0, 1e-25)):
            assert arb(stepping.above(ball)) > ball
            middle, radius = quantities.midpoint_and_radius(ball)
            assert (arb(middle) + arb(0, radius)).contains(ball)
