"""JoMA from outside: every part of the paper, its numbers by independent routes, and its imports."""

from __future__ import annotations

import ast
import functools
import math
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy.integrate
import xarray as xr
import yzflow_joma
from yzflow_joma import PAPER, enclosed, finding, formulas, measures
from yzflow_joma.enclosed import turning_point
from yzflow_joma.flows import ACTIVATIONS, ATTENTIONS, JointFlow, ReducedFlow, activation, attention, entropy
from yzflow_joma.settings import LINEAR, MU, NONLINEAR, random_contexts, settings, trained_classes

import yzflow as yz
from yzflow.audits.enclosing import Enclose
from yzflow.audits.survival_verdicts import Fate
from yzflow.testing import check_paper

PUBLIC = {
    *("yzflow", "yzflow.paper", "yzflow.testing", "yzflow.figures.registry", "yzflow.figures.style"),
    *("yzflow.sweeps.runs", "yzflow.pages.live", "yzflow.audits.options", "yzflow_watch.rivals", "dynamics"),
    *(
        "theory.statements",
        "theory.symbolic",
        "theory.symbolic.indexed",
        "theory.trust",
        "theory.values",
        "yzflow_enclose",
    ),
}


@pytest.mark.parametrize("case", check_paper(PAPER), ids=str)
def test_paper(case):
    case()


def test_only_public_names_are_imported():
    for file in Path(yzflow_joma.__file__).parent.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom):
                names = [node.module or "", *(alias.name for alias in node.names)]
                modules = [node.module or ""]
            elif isinstance(node, ast.Import):
                names = modules = [alias.name for alias in node.names]
            else:
                continue
            for module in modules:
                if module.partition(".")[0] in ("yzflow", "theory", "dynamics"):
                    assert module in PUBLIC, f"{file.name}: {module}"
            ours = modules[0].partition(".")[0] in ("yzflow", "theory", "dynamics", "yzflow_joma")
            assert not ours or not any(component.startswith("_") for name in names for component in name.split("."))


@pytest.mark.parametrize("attention", ATTENTIONS)
@pytest.mark.parametrize("activation", ACTIVATIONS)
def test_the_flow_is_the_gradient(attention, activation):
    """Central differences of the log-likelihood, which share no backward pass with the flow."""
    flow = _flow(attention, activation)
    rng = np.random.default_rng(5)
    state = {k: np.asarray(v) + 0.2 * rng.standard_normal(v.shape) for k, v in flow.initial.items()}
    rates = flow.derivative(0.0, state)
    for name, value in state.items():
        for index in np.ndindex(value.shape):
            ends = []
            for sign in (1, -1):
                moved = {key: array.copy() for key, array in state.items()}
                moved[name][index] += sign * 1e-6
                ends.append(_likelihood(flow, moved))
            assert rates[name][index] == pytest.approx((ends[0] - ends[1]) / 2e-6, abs=1e-8)


def _flow(attention, activation, **more):
    x = np.random.default_rng(3).exponential(size=(7, 4))
    return JointFlow(
        x, np.arange(7) % 3, n_units=2, n_targets=3, attention=attention, activation=activation, scale=0.5, **more
    )


def _likelihood(flow, state):
    h, _ = activation(flow.activation, attention(flow.attention, flow.x, state["z"]) @ state["v"].T + state["q"])
    logits = h @ state["y"]
    return float((logits[np.arange(len(logits)), flow.targets] - np.log(np.exp(logits).sum(axis=1))).mean())


def test_what_survives():
    """A common factor of all rates changes time alone; decay and a rate of its own have forms; signs have none."""
    table = yz.survival(["JoMA: Theorem 1"], ["clipping", "weight decay", "slow attention", "sign descent"], quick=True)

    def fates(level, name="verdict"):
        check = {"linear": "drift of z^2 - sum v^2", "exp": "drift of z - sum v^2/2"}[level]
        cells = table[name].sel(check=f"Theorem 1: {check}", level=f"full flow, {level}")
        return [{Fate(int(cell)) for cell in cells.sel(option=option).values} for option in table["option"].values]

    holds, fails, none = {Fate.HOLDS}, {Fate.FAILS}, {Fate.NOT_ASKED}
    assert table["option"].values.tolist() == ["clipping", "weight decay", "slow attention", "sign descent"]
    assert fates("linear") == fates("exp") == [holds, fails, fails, fails]
    assert fates("linear", "verdict_corrected") == [none, holds, holds, none]
    assert fates("exp", "verdict_corrected") == [none, none, holds, none]


@pytest.mark.parametrize("name", ["linear", "exp"])
def test_what_is_conserved_drifts_by_the_order_of_the_steps(name):
    """Euler steps keep the invariant to their own order, even with rectified units; another factor is not kept."""
    setting = trained_classes("relu")
    drifts = []
    for rate in (0.02, 0.01):
        data = yz.descend(setting.flow(name), rate=rate, steps=round(2 / rate)).dataset
        z, squares = data["z"].values, (data["v"].values ** 2).sum(axis=1)
        kept, other = (z**2 - s * squares if name == "linear" else z - s * squares / 2 for s in (1.0, 2.0))
        drifts.append(np.abs(kept[-1] - kept[0]).max())
        assert np.abs(other[-1] - other[0]).max() > 20 * drifts[-1]
    assert drifts[0] / drifts[1] == pytest.approx(2, rel=0.2)


def test_softmax_without_a_mean_is_worse_and_neither_is_exact():
    drifts = []
    for seed in range(5):
        setting = random_contexts("drawn", 40, 6, 4, seed=seed, activation="softplus")
        flow = setting.flow("softmax")
        data = setting.simulate("full flow, softmax", seed=0).dataset
        mean = measures.mean_attention(flow, data["z"].values[0])
        drifts.append((measures.with_mean(data, mean), measures.with_mean(data, 0 * mean)))
        assert mean.sum() == pytest.approx(1) and measures.factorisation(flow) > 0.05
    first, second = np.median(drifts, axis=0)
    assert 0.05 < first < second


def test_linear_activation_by_scipy():
    delta = np.array([1, 0.6, 0.3, 0.1])
    closed = formulas.linear_weights(delta, 1.2)
    assert closed == pytest.approx([2.0282, 0.7969, 0.3681, 0.1203], abs=5e-5)
    path = scipy.integrate.solve_ivp(
        lambda t, v: delta * np.exp(v * v / 2), (0, 1.2), 0 * delta, rtol=1e-11, atol=1e-12
    )
    assert path.y[:, -1] == pytest.approx(closed, rel=1e-6)
    run = yz.integrate(ReducedFlow(delta, linear=True), t_end=1.2, rtol=1e-11)
    assert run.final["v"].values == pytest.approx(closed, rel=1e-8)
    assert formulas.blow_up_time(delta) == pytest.approx(math.sqrt(math.pi / 2))


def test_nonlinear_activation_by_scipy():
    mu = np.array(MU)
    path = scipy.integrate.solve_ivp(
        lambda t, v: (mu - v) * np.exp(v * v / 2), (0, 0.3), 0 * mu, rtol=1e-11, atol=1e-12
    )
    for v, end in zip(path.y[:, -1], mu, strict=True):
        assert formulas.nonlinear_time(v, end) == pytest.approx(0.3, rel=1e-6)
    # ln(1/delta) of mu = 2 over that of mu = 1: near one early, R (1 + (tau_k - tau_j)/t) late.
    early, late = (_ratio(2.0, 1.0, t) for t in (0.01, 4.0))
    limit = formulas.late_ratio(2.0, 1.0)
    assert early == pytest.approx(1, abs=0.01)
    correction = (formulas.delay(1.0) - formulas.delay(2.0)) / 4.0
    assert late / limit == pytest.approx(1 + correction, abs=2 * correction**2)


def _ratio(first, second, t):
    def rates(_, x):  # x = ln(1/delta): dx/dt = e^{v^2/2}, which does not lose digits
        return np.exp((np.array([first, second]) * (1 - np.exp(-x))) ** 2 / 2)

    path = scipy.integrate.solve_ivp(rates, (0, t), [0.0, 0.0], rtol=1e-11, atol=1e-13)
    return path.y[0, -1] / path.y[1, -1]


@pytest.mark.parametrize(
    ("mu", "numbers", "between"),
    [(MU, (1.7918, 0.4774, 0.68, 0.9055), (0.5, 1.0)), ((2, 1, 1, 1), (1.3863, 1.0681, 1.53, 1.1139), (1.0, 2.0))],
)
def test_turning(mu, numbers, between):
    start, least, when, end = numbers
    mu = np.array(mu, float)
    path = scipy.integrate.solve_ivp(
        lambda t, v: (mu - v) * np.exp(v * v / 2), (0, 40), 0 * mu, method="LSODA", rtol=1e-10, dense_output=True
    )
    times = np.linspace(0, 4, 4001)
    h = np.array([entropy(v**2 / 2) for v in path.sol(times).T])
    assert (h[0], h.min(), entropy(mu**2 / 2)) == pytest.approx((start, least, end), abs=6e-5)
    assert times[h.argmin()] == pytest.approx(when, abs=6e-3)
    assert formulas.turns(mu) is True
    span = turning_point(mu.tolist(), between=between)
    assert span.times is not None and span.rising and span.width < 1e-9
    assert span.times[0] == pytest.approx(times[h.argmin()], abs=2e-3)


def _decided(claim, level, **other):
    setting = trained_classes("linear")
    made = dict(zip(("flows", "enclosure"), _flows(setting, level), strict=True))
    made["flows"].setting = replace(setting, **other)
    return made["enclosure"].decide(claim(made["flows"], level, 1e-6))


@functools.cache
def _made(setting, level):
    return enclosed.enclose(setting, level, t_end=1e4, max_seconds=600.0)


def _flows(setting, level):
    made = _made(setting, level)
    return SimpleNamespace(setting=setting, memo={}, enclosure=lambda _: made), made


def test_claims_in_balls():
    """Claims hold to the end of the simulation; a wrong Delta is refuted at once, a wrong sign at the turn."""
    assert _decided(enclosed.linear_form, LINEAR).value is True
    wrong = _decided(enclosed.linear_form, LINEAR, delta=(1.0, 0.6, 0.3, 0.1001))
    assert wrong.value is False and wrong.reached == 0.0
    right = _decided(enclosed.turns_once, NONLINEAR)
    assert right.value is True and right.reached == 30.0
    falls = _decided(lambda flows, level, tolerance: lambda at: enclosed.rate(at) < 0, NONLINEAR)
    assert falls.value is False and falls.times[1] == pytest.approx(0.67923739, abs=1e-3)


def test_an_entropy_that_does_not_turn_is_not_called_so():
    flows, _ = _flows(replace(trained_classes("linear"), mu=(2.0, 0.0, 0.0)), NONLINEAR)
    with pytest.raises(ValueError, match="neither its sign nor that of its rate is proved"):
        enclosed.turns_once(flows, NONLINEAR, 0.0)


def test_the_audit_keeps_certificates(tmp_path):
    report = yz.audit(["JoMA: Linear activation"], quick=True, enclose=Enclose(folder=tmp_path))
    assert {row.decided.words for row in report.table} == {"true for all t <= 1.22825"}
    (file,) = tmp_path.iterdir()
    assert yz.rerun(file).same


@pytest.mark.parametrize(
    ("mu", "turns"),
    [((2, 2, 2), None), ((2, 0, 0), False), ((2, -1), True), ((2, 1.9, *[0] * 50), False), ((0,), None)],
)
def test_where_it_turns(mu, turns):
    assert formulas.turns(mu) is turns
    run = yz.integrate(ReducedFlow(mu), t_end=20.0, n_times=2000, rtol=1e-10, atol=1e-13).dataset["entropy"].values
    rises = bool(run[-1] - run.min() > 1e-7)
    assert rises is bool(turns)


def test_sparse_dense_and_sparse_again_in_balls():
    """Too many zeros for a rise in the end, and two proved turns."""
    mu = list(measures.SPARSE_AGAIN)
    some, never = formulas.turning_zeros(mu)
    assert some < mu.count(0.0) < never and formulas.turns(mu) is False
    first = turning_point(mu, between=(0.9, 1.2))
    second = turning_point(mu, between=(1.2, 1.5), rising=False)
    assert first.times is not None and second.times is not None
    assert first.times[1] < 1.2 < second.times[0] and first.width < 1e-9 > second.width
    assert measures.sparse_again(None, NONLINEAR) == 0


def test_the_drift_of_softmax_is_below_its_bound():
    """Without the hypothesis, the drift is the integral of the covariance of attention with the pull."""
    for seed in range(3):
        setting = random_contexts("drawn", 40, 6, 4, seed=seed, activation="softplus")
        flow = setting.flow("softmax")
        times = np.linspace(0, 20, 400)
        data = yz.integrate(flow, t_end=20.0, times=times, rtol=1e-9, atol=1e-11).dataset
        mean = measures.mean_attention(flow, data["z"].values[0])
        z, v2 = data["z"].values, data["v"].values ** 2
        kept = z - (v2.sum(axis=1) - v2.sum(axis=(1, 2))[:, None] * mean) / 2
        spread, pulls, signed = [], [], []
        for i in range(len(times)):
            b, _, _, g = flow.signals({name: data[name].values[i] for name in ("z", "v", "q", "y")})
            pull = (g * (b @ data["v"].values[i].T)).sum(axis=1)
            spread.append(np.abs(b - mean).max(axis=0))
            pulls.append(np.abs(pull).mean())
            signed.append(-((b - mean) * pull[:, None]).mean(axis=0))
        drift = kept[-1] - kept[0]
        np.testing.assert_allclose(
            drift, scipy.integrate.trapezoid(signed, times, axis=0), atol=1e-4 * np.abs(drift).max()
        )
        assert (np.abs(drift) <= np.max(spread, axis=0) * scipy.integrate.trapezoid(pulls, times) * (1 + 1e-6)).all()
        assert np.abs(drift).max() > 1e-4


def _made_up(*entropies):
    """Runs of one kind each, with these entropies in time."""
    h = np.array(entropies, float)[:, None, None, :]
    names = ("kind", "activation", "seed", "time")
    data = {"entropy": (names, h), "of_contexts": (names, h), "loss": (names, 1 + 0 * h)}
    coords = {"kind": list("ab")[: len(h)], "activation": ["linear"], "seed": [0], "time": np.arange(h.shape[-1])}
    return xr.Dataset(data, coords).assign(apart=("kind", [0.0] * len(h)))


@pytest.mark.parametrize(
    ("entropies", "words"),
    [
        (([2, 1, 0.5], [2, 1, 0.9]), "No: attention became sparse and never"),
        (([2, 1, 1.5], [2, 1, 1.2]), "Often: attention"),
        (([2, 1, 1.5], [2, 1, 0.9]), "in 1 of 1 runs on a, but in none of 1 on b"),
        (([2, 1, 1.005], [1, 2, 0.5]), "No: "),  # a rise before the fall is none
    ],
)
def test_the_finding_follows_its_runs(entropies, words):
    found = finding.numbers(_made_up(*entropies))
    assert words in finding.sentence(found) and finding.sentence(found) in finding.page(found)


def test_the_finding_s_page_is_what_its_runs_give():
    text = (Path(__file__).parents[1] / "in_training.md").read_text(encoding="utf-8")
    runs = finding.study(kinds=finding.KINDS[1:2], activations=["softplus"])
    assert finding.table(finding.numbers(runs))[-1] in text and bool(finding.risen(runs).any())


def test_training_turns_and_does_not_by_another_solver():
    """By scipy's LSODA: a run that turns, and a run of classes that does not."""
    for setting, turns in ((settings(quick=True)[0], True), (trained_classes("softplus"), False)):
        flow = setting.flow("softmax")
        shapes = {name: value.shape for name, value in flow.initial.items()}
        start = np.concatenate([np.ravel(value) for value in flow.initial.values()])

        def state(x, shapes=shapes):
            places = np.cumsum([math.prod(shape) for shape in shapes.values()])[:-1]
            return {name: block.reshape(shapes[name]) for name, block in zip(shapes, np.split(x, places), strict=True)}

        def side(t, x, flow=flow, state=state):
            return np.concatenate([np.ravel(rate) for rate in flow.derivative(t, state(x)).values()])

        times = [20.0, 145.0, 1000.0]
        path = scipy.integrate.solve_ivp(side, (0, 1000), start, method="LSODA", t_eval=times, rtol=1e-9, atol=1e-11)
        h = [entropy(state(x)["z"]) for x in path.y.T]
        ours = yz.integrate(flow, t_end=1000.0, times=[0.0, *times], rtol=1e-9, atol=1e-11).dataset["entropy"]
        assert ours[1:].values == pytest.approx(h, abs=1e-5)
        assert bool(h[2] > h[1] + 0.01) is turns and h[0] > h[1]


def test_rerun(tmp_path):
    run = yz.integrate(ReducedFlow(MU), t_end=0.5, n_times=5)
    run.save(tmp_path / "run.nc")
    assert yz.rerun(tmp_path / "run.nc").same


def test_hostile():
    with pytest.raises(ValueError, match="`attention` must be one of"):
        _flow("cosine", "relu")
    with pytest.raises(ValueError, match="`drive` must be"):
        ReducedFlow([math.nan])
