"""The explorer's mathematics in JavaScript gives what Python's gives."""

import itertools
from importlib import resources

import numpy as np
import pytest

from dynamics import DyckLanguage, Layer, SequenceClasses, Solver, gradient_flow
from theory import attention, averaging, balance, decoder
from theory.scan_and_snap.tokens import weak_correlation

DISTINCT = [1.0, 0.8, 0.6, 0.4, 0.2]


@pytest.fixture(scope="module")
def run(shared_browser, tmp_path_factory):
    """Evaluate an expression beside mathematics.js, with `x` as its argument."""
    script = resources.files("yzflow.pages.explorer").joinpath("mathematics.js").read_text(encoding="utf-8")
    path = tmp_path_factory.mktemp("explorer") / "mathematics.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><title>x</title><script>{script}</script>", encoding="utf-8")
    page = shared_browser(path)
    return lambda expression, x=None: page.evaluate(f"(x) => {expression}", x)


def close(actual, expected, rtol):
    np.testing.assert_allclose(np.array(actual, dtype=float), expected, rtol=rtol, atol=0)


def test_decoder_over_the_range_of_the_sliders_and_beyond(run):
    times = [0.0, *np.geomspace(1e-9, 1e7, 33)]
    for m, eta_y in itertools.product([2, 3, 34, 1000, 10**6], [1e-3, 0.5, 20.0]):
        k = min(10, m)
        sizes = {"vocab_size": m, "n_classes": k}
        setting = {"M": m, "K": k, "etaY": eta_y, "etaZ": 0.3}
        x = {"t": times, "s": setting}
        close(run("x.t.map((t) => yzflow.decoder.h(t, x.s))", x), decoder.h(times, vocab_size=m, eta_y=eta_y), 1e-12)
        expected = decoder.gamma(times, **sizes, eta_y=eta_y)
        close(run("x.t.map((t) => yzflow.decoder.gamma(t, x.s))", x), expected, 1e-11)
        expected = decoder.gamma_integral(times, **sizes, eta_y=eta_y, eta_z=0.3)
        close(run("x.t.map((t) => yzflow.decoder.gammaIntegral(t, x.s))", x), expected, 1e-11)
        for script, python in [
            ("transitionTime", decoder.transition_time),
            ("scanningTime", decoder.scanning_time),
            ("snappingTime", decoder.snapping_time),
        ]:
            close(run(f"yzflow.decoder.{script}(x)", setting), python(**sizes, eta_y=eta_y), 1e-13)
        close(run("yzflow.decoder.hSteps(60, x)", setting), decoder.h_steps(60, vocab_size=m, eta_y=eta_y), 1e-12)


def test_growth_exponent_and_growth_of_distinct_tokens(run):
    times = list(np.geomspace(0.01, 1e5, 15))
    for c0 in [1.0, 50.0, 1e7]:
        x = {"t": times, "s": {"M": 1000, "K": 10, "etaY": 2.0, "etaZ": 0.5}, "c0": c0}
        expected = attention.growth_exponent(times, vocab_size=1000, n_classes=10, eta_y=2.0, eta_z=0.5, c0=c0)
        close(run("x.t.map((t) => yzflow.attention.growthExponent(t, x.s, x.c0))", x), expected, 1e-12)
    exponents = [0.0, 1e-6, 0.1, 1.0, 7.0, 40.0]
    for p in [DISTINCT, [1.0] * 5, [0.3, 0.3, 0.1], [0.05, 1.0, 0.999, 0.01, 0.5]]:
        grown = run("x.b.map((b) => yzflow.attention.distinctGrowth(b, x.p))", {"b": exponents, "p": p})
        expected = np.log(attention.distinct_growth(exponents, p))
        np.testing.assert_allclose(grown, expected, rtol=1e-11, atol=1e-15)


def test_regime(run):
    for k, m, common in itertools.product([2, 3, 10], [10, 1000, 10**6], [0.02, 0.15, 2.0]):
        classes = SequenceClasses.single_common_token(k, m, common=common, distinct=DISTINCT)
        overlap = classes.overlap()
        rho = run("yzflow.attention.overlap(x)", {"common": common, "distinct": DISTINCT})
        close(rho, overlap[0, 1], 1e-13)
        close(
            run(f"yzflow.attention.speedConstant({k}, x)", rho),
            attention.speed_constant(n_classes=k, overlap=rho),
            1e-13,
        )
        expected = attention.full_flow_slowdown(vocab_size=m, n_classes=k, overlap=rho)
        close(run(f"yzflow.attention.fullFlowSlowdown({m}, {k}, x)", rho), expected, 1e-13)
        margins = run(f"yzflow.attention.assumption2({m}, {k}, x)", rho)
        weak = weak_correlation(overlap, vocab_size=m)
        close([margins["upper"], margins["lower"]], [weak.upper_margin, weak.lower_margin], 1e-9)


FLOWS = [
    (10, 1000, 1.0, 0.5, 0.15, 700.0),
    (2, 2, 0.1, 3.0, 0.7, 1e3),
    (10, 10, 1.0, 0.01, 0.15, 300.0),
    (3, 10**6, 20.0, 5.0, 2.0, 1e5),
    (50, 5000, 5.0, 0.05, 0.02, 1e5),
]


@pytest.mark.parametrize("level", ["theory", "full"])
@pytest.mark.parametrize(("k", "m", "eta_y", "eta_z", "common", "t_end"), FLOWS)
def test_flow_of_one_class_is_the_flow_of_all(run, level, k, m, eta_y, eta_z, common, t_end):
    """Logits over time against the general integrator, which holds all classes."""
    times = np.concatenate([[0.0], np.geomspace(t_end / 1e3, t_end, 12)])
    classes = SequenceClasses.single_common_token(k, m, common=common, distinct=DISTINCT)
    options = {"rtol": 1e-11, "atol": 1e-13, "solver": Solver(time_scale="log")}
    flow = gradient_flow(classes, eta_y=eta_y, eta_z=eta_z, t_end=t_end, times=times, decoder=level, **options)
    expected = flow.dataset["z"].to_numpy()[:, 0, :6]
    setting = {"M": m, "K": k, "etaY": eta_y, "etaZ": eta_z}
    x = {"s": setting, "p": [common, *DISTINCT], "t": times.tolist()}
    actual = run(f"yzflow.flow.logits('{level}', x.s, x.p, x.t)", x)
    np.testing.assert_allclose(actual, expected, rtol=2e-7, atol=2e-9)


def test_integrator_has_order_five(run):
    """y'' = -y from (0, 1) has the solution sin t; the work grows with the fifth root of the tolerance."""
    script = """(() => {
      let calls = 0;
      const problem = { start: [0, 1], derivative: (t, y) => (calls++, [y[1], -y[0]]) };
      const end = yzflow.flow.integrate(problem, [0, 20], { rtol: 0, atol: x }).at(-1);
      return [Math.abs(end[0] - Math.sin(20)), calls];
    })()"""
    (coarse, few), (fine, many) = run(script, 1e-5), run(script, 1e-10)
    assert coarse < 1e-3 and fine < 1e-8
    assert 7 < many / few < 12  # 1e5^(1/5) = 10


def test_integrator_gives_up_where_asked(run):
    states = run("yzflow.flow.integrate({ start: [1], derivative: (t, y) => [-y[0]] }, [0, 50], { maximum: 3 })")
    assert states[0] == [1] and states[1] is None


LANGUAGE = DyckLanguage(n_types=2, max_depth=3)
SCRIPT_LANGUAGE = {"k": 2, "D": 3}


def test_states_of_every_prefix(run):
    prefixes = [prefix for length in range(7) for prefix in LANGUAGE.prefixes(length)]
    texts = ["".join("()[]"[bracket] for bracket in prefix) for prefix in prefixes]
    parsed = run("x.map((text) => yzflow.dyck.parse(text, { k: 2, D: 3 }))", texts)
    assert [one["states"] for one in parsed] == [LANGUAGE.state_sequence(prefix).tolist() for prefix in prefixes]
    assert [one["stack"] for one in parsed] == [LANGUAGE.stack(prefix).tolist() for prefix in prefixes]


@pytest.mark.parametrize(("text", "says"), [("(]", "close"), (")", "close"), ("(((([", "deeper"), ("(a", "not one of")])
def test_what_is_no_prefix_is_refused_with_its_place(run, text, says):
    attempt = "(() => { try { yzflow.dyck.parse(x, { k: 2, D: 3 }); } catch (error) { return error.message; } })()"
    message = run(attempt, text)
    assert message.startswith("bracket ") and says in message


def _random_layer():
    rng = np.random.default_rng(3)
    layer = balance.balanced_layer(LANGUAGE, rng=rng)
    return Layer(layer.Z + 0.3 * rng.normal(size=layer.Z.shape), layer.Y, layer.V)


def test_prediction_and_residual_of_an_unbalanced_layer(run):
    layer = _random_layer()
    weights = {"Z": layer.Z.tolist(), "V": layer.V.tolist(), "Y": layer.Y.tolist()}
    bags = LANGUAGE.sample(20, max_length=30, rng=5)
    counts = np.zeros((len(bags), LANGUAGE.n_states))
    counts[np.repeat(np.arange(len(bags)), np.diff(bags.indptr)), bags.token] = bags.count
    x = {"layer": weights, "query": bags.query.tolist(), "counts": counts.tolist()}
    predicted = run("x.query.map((q, i) => yzflow.dyck.predict(x.layer, q, x.counts[i]))", x)
    close(predicted, layer.predict(bags), 1e-11)
    actual = run("yzflow.dyck.residual(x.Z, x.language)", {"Z": weights["Z"], "language": SCRIPT_LANGUAGE})
    close(actual, balance.residual(layer.Z, LANGUAGE), 1e-13)
    delta = np.linalg.norm(balance.insertions(layer, LANGUAGE), axis=-1)
    u = balance.contributions(layer, LANGUAGE)
    x |= {"language": SCRIPT_LANGUAGE, "pairs": list(itertools.product(range(2), (1, 2, 3)))}
    opened = "yzflow.dyck.openState(pair[0], pair[1], x.language)"
    share = f"yzflow.dyck.pairShare(x.layer, q, x.counts[i], {opened}, x.language)"
    shares = run(f"x.query.map((q, i) => x.pairs.map((pair) => {share}))", x)
    sums = np.einsum("bs,bsc->bc", counts, u[bags.query])
    close(shares, delta[bags.query].reshape(len(bags), -1) / np.linalg.norm(sums, axis=1)[:, None], 1e-10)


@pytest.mark.parametrize(("m", "q"), [(20, 1), (60, 3), (60, 6), (200, 8), (8, 8)])
def test_certificates(run, m, q):
    signs = np.random.default_rng(m).choice([-1, 1], size=(64, 200))
    keys = signs[:, :m] / np.sqrt(m)
    x = {"signs": signs.tolist(), "y": list(range(3, 3 + q))}
    found = run(f"yzflow.averaging.certificate(x.signs, {m}, x.y)", x)
    expected = averaging.certificate(keys, x["y"], method="minimum norm", rho=0.999, level=0.35, throw=False)
    if np.isfinite(found["rho"]):
        close(found["rho"], expected.rho, 1e-10)
        if expected.feasible:
            np.testing.assert_allclose(found["scores"], keys @ expected.query, rtol=1e-10, atol=1e-12)
    else:
        assert np.isinf(expected.rho)
    tau = averaging.temperature(n_tokens=64, q=q, error=0.1)
    close(run(f"yzflow.averaging.temperature(64, {q}, 0.1)"), tau, 1e-14)
    close(run("yzflow.averaging.temperature(4, 4, 0.1)"), 0.0, 0)


def test_hard_sets_are_the_closest_tokens(run):
    from dynamics.data.averaging import adversarial_subsets

    signs = np.random.default_rng(0).choice([-1, 1], size=(64, 100))
    hard = run("x.map((_, i) => yzflow.averaging.closest(x, 37, i, 4))", signs.tolist())
    assert hard == adversarial_subsets(signs[:, :37].astype(float), 4).tolist()
