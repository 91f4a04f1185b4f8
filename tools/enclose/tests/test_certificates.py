"""Proved predicates, open ones, and mistakes of the program, none of which passes for a proof."""

import ast
import inspect
import itertools
import shutil
import subprocess
import sys

import numpy as np
import pytest
from flint import arb, ctx
from yzflow_enclose import (
    Claim,
    Enclosure,
    enclose_flow,
    fields,
    kept,
    march,
    quantities,
    stepping,
)
from yzflow_enclose.keeping import certificate_path
from yzflow_enclose.populations import OfPopulation
from yzflow_enclose.reading import read
from yzflow_enclose.verifier import verify, verify_cell, verify_file, verify_flow, verify_jets

from dynamics import Bags, SequenceClasses

pytestmark = pytest.mark.usefixtures("same_precision")  # a checker sets it and leaves it so

RATES = {"eta_y": 1.0, "eta_z": 2.0}
SHORT = {**RATES, "t_end": 3.0, "bits": 36}


def lead_shrinks() -> SequenceClasses:
    """Finding 8: the lead of a distinct token grows, then shrinks."""
    return SequenceClasses.single_common_token(2, 2, common=1.0, distinct=(2.0, 1.0))


def common_and_rest() -> SequenceClasses:
    return SequenceClasses.single_common_token(3, 7, common=0.5, distinct=(1.0, 0.5))


@pytest.fixture(scope="module", params=["full", "modified", "theory"])
def saved(request, tmp_path_factory):
    """A file of a short enclosure with M > K."""
    path = tmp_path_factory.mktemp("enclosures") / f"{request.param}.npz"
    flow = enclose_flow(common_and_rest(), decoder=request.param, **SHORT)
    flow.record(lambda at: (at.velocity(0, 0) < 0) & (at.velocity(0, 1) > 0))
    flow.record(lambda at: at.loss.rate < 0, until=2.5)
    flow.record(lambda at: at.attention(0, 0) > 0.24)
    assert [predicate.verdict for predicate in flow.predicates] == [True, True, False]
    flow.save(path)
    return path


@pytest.fixture(scope="module")
def short():
    return enclose_flow(lead_shrinks(), decoder="full", **SHORT)


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
    if decoder == "full":  # the peak, to any width
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
def test_claims_for_all_times(short, claim, expected):
    assert short.holds(claim) is expected


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


def test_a_relative_gain_is_of_the_attention_of_all_bags_of_a_next_token():
    """Two bags of next token 0, of weights 1/2 and 1/4, with two queries: at zero, attention is in their counts."""
    bags = Bags(
        [0, 1, 0], [0, 0, 1], [0, 2, 5, 6], [0, 1, 0, 1, 2, 2], [1, 3, 2, 1, 1, 1.0], [0.5, 0.25, 0.25], vocab_size=3
    )
    start = enclose_flow(bags, **SHORT).moment(0.0)
    shares = (0.5 / 4 + 0.25 / 2) / 0.75, (0.5 * 3 / 4 + 0.25 / 4) / 0.75
    assert [start.attention(0, token).upper for token in (0, 1)] == pytest.approx(shares)
    found = start.relative_gain(0, 0, 1)
    assert found.lower <= (shares[0] / shares[1]) ** 2 - 1 <= found.upper < found.lower + 1e-9


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


def test_a_saved_enclosure_comes_back(saved):
    flow = Enclosure.load(saved)
    assert flow.verify() and flow.complete
    fresh = enclose_flow(common_and_rest(), decoder=flow.at(0.0).attrs["decoder"], **SHORT)
    assert flow.at([0.0, 1.0, 3.0]).identical(fresh.at([0.0, 1.0, 3.0]))
    verify.check(saved)


def test_the_checker_is_small_and_alone(saved):
    modules = (verify, verify_cell, verify_file, verify_flow, verify_jets)
    sources = [inspect.getsource(module) for module in modules]
    assert max(len(text.splitlines()) for text in sources) <= 300
    nodes = [node for text in sources for node in ast.walk(ast.parse(text))]
    found = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    found |= {node.module for node in nodes if isinstance(node, ast.ImportFrom)}
    own = {name for module in modules[1:] for name in (module.__name__, module.__name__.rpartition(".")[2])}
    own = own - {verify_cell.__name__} | {verify_cell.__package__}
    standard = {name for name in found - own - {"flint"} if name.partition(".")[0] in sys.stdlib_module_names}
    assert found == {"flint", *own, *standard}
    done = subprocess.run([sys.executable, verify.__file__, saved], capture_output=True, text=True)
    assert done.returncode == 0 and done.stdout.startswith("verified: ") and done.stdout.isascii()
    done = subprocess.run([sys.executable, verify.__file__, saved.parent], capture_output=True, text=True)
    assert done.returncode == 1 and "not verified" in done.stderr


@pytest.mark.parametrize("saved", ["modified"], indirect=True)
def test_errors_are_in_the_units_of_the_variables(saved):
    """Not in those of the norm: each variable of a finer enclosure is within the error that is claimed of it."""
    coarse = Enclosure.load(saved)
    options = {**SHORT, "bits": 90}
    fine = enclose_flow(common_and_rest(), decoder=coarse.claim["decoder"], **options)
    for t in np.linspace(0.5, 3.0, 6).tolist():
        with fine.computing():
            at = [fine.moment(t).variable(i).ball() for i in range(fine.variables)]
            step = next(step for step in coarse.steps if step.end >= t)
            polynomials = [p(arb(t) - arb(step.start)) for p in step.polynomials()]
        for value, p, error in zip(at, polynomials, coarse.claim["errors"], strict=True):
            assert abs(value - p) < error < 1e-6


def test_the_two_checkers_say_the_same(saved):
    """Format, formula and names are written twice: in lines, but for the first words."""
    flow = Enclosure.load(saved)
    own, other = flow.words.splitlines(), verify.check(saved)
    assert own == [line.removeprefix("verified: ") for line in other] and len(own) > 8


def test_settings_and_names_of_any_population_are_derived_alike():
    """Those of the checker from the claim, and those of the reader from the data: fields at random states agree."""
    rng = np.random.default_rng(3)
    tables = [common_and_rest(), lead_shrinks(), SequenceClasses.single_common_token(4, 4, distinct=(1.0, 1.0, 2.0))]
    own = SequenceClasses(0.75 * np.eye(3, 7) + 0.25 * np.eye(3, 7, 3), [4, 2, 6], vocab_size=5)
    random = Bags(
        [1, 0, 1], [2, 0, 0], [0, 2, 3, 5], [0, 2, 1, 0, 1], rng.uniform(1, 2, 5), [0.25, 0.5, 0.25], vocab_size=4
    )
    for data, decoder in itertools.product([*tables, own, random], ["full", "modified", "theory"]):
        of = OfPopulation(read(data, eta_y=1.25, eta_z=0.5, decoder=decoder))
        field, names = verify.field_of(of.claim())
        assert names == of.variable_names() and len(set(names)) == of.variables
        ctx.cap = 1
        state = [stepping.arb_series([arb(x)], 1) for x in rng.normal(size=of.variables).tolist()]
        for first, second in zip(field(state), of.field.derivative(state), strict=True):
            assert abs(float(first[0]) - float(second[0])) < 1e-12


def test_a_file_under_the_name_of_another_question_is_no_answer(tmp_path):
    options = {**SHORT, "folder": tmp_path}
    rest = {name: value for name, value in options.items() if name != "folder"}
    for decoder in ("full", "theory"):
        kept(**options, data=lead_shrinks(), decoder=decoder)
    paths = [certificate_path(tmp_path, lead_shrinks(), decoder=name, **rest) for name in ("full", "theory")]
    shutil.copy(paths[0], paths[1])
    found = kept(**options, data=lead_shrinks(), decoder="theory")
    assert found.claim["decoder"] == "theory" and Enclosure.load(paths[1]).claim["decoder"] == "theory"
    paths[0].write_bytes(paths[0].read_bytes()[:-1])
    with pytest.warns(UserWarning, match="the flow is enclosed again"):
        assert kept(**options, data=lead_shrinks(), decoder="full").claim["decoder"] == "full"
    assert Enclosure.load(paths[0]).verify()


def test_what_cannot_be_written_down_is_refused():
    flow = enclose_flow(lead_shrinks(), **SHORT)
    for predicate in (
        lambda at: at.loss.upper < 1,
        lambda at: Claim(True),
        lambda at: at.loss < float(at.loss.ball()),
        lambda at: at.loss > arb(1) / 3,
        lambda at: np.sin(at.loss) > 0,
    ):
        with pytest.raises(ValueError, match=r"`predicate` must .* to be written down"):
            flow.record(predicate)
    assert flow.predicates == ()
    with pytest.raises(ValueError, match="without steps proves nothing"):
        enclose_flow(lead_shrinks(), **SHORT, max_seconds=1e-9).save("nothing.npz")


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


@pytest.mark.parametrize("seed", range(3))
def test_a_defect_counts_what_its_series_leaves_out(seed):
    # Taylor polynomials of second degree: the defect is of second order, and the orders from the third on add to it.
    flow = enclose_flow(common_and_rest(), **SHORT, max_steps=1)
    field, half = flow._reading.field, arb(0.2)
    with stepping.precision(80):
        start = [arb(x) for x in np.random.default_rng(seed).uniform(-1, 1, field.size).tolist()]
        parts = [stepping.arb_poly(row) for row in stepping.taylor(field, start, 2, exact=True)]
        found = [stepping._defect(field, parts, arb(0), half, 2)]
        checked, _ = verify.field_of(flow.claim)
        weights = [arb(weight) for weight in field.weights.tolist()]
        found.append(verify_flow.defect(checked, parts, arb(0), half, weights))
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
