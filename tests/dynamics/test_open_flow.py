"""Open flows: closed forms, invariants, orbits, random linear systems against the matrix exponential, and files."""
# ruff: noqa: RUF012  # states of a class that nobody writes to

import itertools
import json
import pickle

import numpy as np
import pytest
import xarray as xr
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib import pyplot
from matplotlib.figure import Figure
from own_flows import Linear, Logistic
from scipy.linalg import expm

from dynamics import Flow, IntegrationError, Limits, Optimizer, Run, Schedule, Solver, descend, integrate
from dynamics._engine.steps import METHODS
from dynamics.support.netcdf import load_dataset, save_dataset


class Joint:
    """JoMA with linear activation: v' = Delta e^(v^2/2), so that sqrt(pi/2) erf(v/sqrt 2) = Delta t."""

    def __init__(self, delta=(1.0, 0.6, 0.3, 0.1)):
        self.delta = np.array(delta)
        labels = {"token": [f"t{i}" for i in range(len(self.delta))]}
        start = np.zeros(len(self.delta))
        self.initial = {"v": xr.DataArray(start, dims="token", coords=labels, attrs={"units": "1"})}

    def config(self):
        return {"delta": self.delta}

    def derivative(self, t, state):
        return {"v": self.delta * np.exp(state["v"] ** 2 / 2)}

    def observe(self, t, state):
        return {"largest": state["v"].max(), "z": xr.DataArray(state["v"] ** 2 / 2, dims="token")}


class Pairs:
    """Ten copies of two numbers that push each other; a matrix without labels beside them."""

    labels = np.arange(20).reshape(10, 2) % 2

    def __init__(self):
        self.initial = {"pair": np.tile([1.0, 0.5], (10, 1)), "sum": np.zeros((2, 1))}

    def orbits(self):
        return {"pair": self.labels}

    def derivative(self, t, state):
        first, second = state["pair"].T
        assert state["pair"].shape == (10, 2)
        return {
            "pair": np.stack([second * np.cos(t), -first], axis=1),
            "sum": np.array([[first.sum()], [second.sum()]]),
        }


def test_joint_dynamics_have_their_closed_form():
    run = integrate(Joint(), t_end=1.2, rtol=1e-10)
    assert run.final["v"].values.round(4).tolist() == [2.0282, 0.7969, 0.3681, 0.1203]
    from scipy.special import erf

    v, times = run.dataset["v"].values, run.dataset["time"].values
    clock = np.sqrt(np.pi / 2) * erf(v / np.sqrt(2))
    np.testing.assert_allclose(clock, times[:, None] * Joint().delta, atol=1e-9)


@Limits(evaluations=100)
def test_a_flow_is_given_up_at_the_limit_of_evaluations():
    with pytest.raises(IntegrationError, match="more than 100 evaluations of the derivative"):
        integrate(Linear([[0.0, 1.0], [-1.0, 0.0]], [1.0, 0.0]), t_end=1e4)


def test_where_a_solution_ends_is_said_and_what_was_recorded_is_kept():
    with pytest.raises(IntegrationError, match=r"stopped after t = 1\.25331 of 2, .* v\[token=t0\]") as caught:
        integrate(Joint(), t_end=2.0)
    error = caught.value
    assert error.time == pytest.approx(np.sqrt(np.pi / 2), abs=1e-5)
    assert error.run.dataset["time"].values[-1] <= error.time
    assert error.state["v"][0] > 5 > error.state["v"][1]
    again = pickle.loads(pickle.dumps(error))
    assert again.time == error.time and again.run.states == ("v",) and str(again) == str(error)


@pytest.mark.parametrize(("method", "scale"), list(zip(METHODS, itertools.cycle(["log", "linear"]), strict=False)))
def test_every_method_finds_the_logistic_curve(method, scale):
    run = integrate(Logistic(), t_end=10.0, solver=Solver(method=method, time_scale=scale), n_times=7, rtol=1e-6)
    t = run.dataset["time"].values
    np.testing.assert_allclose(run.dataset["x"], 1 / (1 + 3 * np.exp(-t)), atol=1e-4)


@given(
    st.lists(st.lists(st.floats(-2, 2), min_size=3, max_size=3), min_size=3, max_size=3),
    st.lists(st.floats(-1, 1), min_size=3, max_size=3),
    st.floats(0.1, 2),
)
@settings(deadline=None, max_examples=15)
def test_linear_systems_are_the_matrix_exponential(matrix, start, t_end):
    run = integrate(Linear(matrix, start), t_end=t_end, n_times=3)
    expected = [expm(np.array(matrix) * t) @ start for t in run.dataset["time"].values]
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(run.dataset["x"], expected, atol=1e-6 * scale)


def test_the_time_is_that_of_the_flow_on_both_scales():
    class Driven:
        initial = {"x": 0.0}

        def derivative(self, t, state):
            return {"x": np.cos(t)}

    for scale in ("linear", "log"):
        run = integrate(Driven(), t_end=4.0, solver=Solver(time_scale=scale))
        np.testing.assert_allclose(run.dataset["x"], np.sin(run.dataset["time"]), atol=1e-8)


def test_orbits_move_together_and_give_what_all_entries_give():
    run, whole = integrate(Pairs(), t_end=2.0), integrate(Pairs(), t_end=2.0, solver=Solver(reduce="none"))
    assert run.dataset.attrs["reduction"] == "22 variables to 4 orbits"
    assert whole.dataset.attrs["reduction"] == "none"
    for name in ("pair", "sum"):
        np.testing.assert_allclose(run.dataset[name], whole.dataset[name], rtol=1e-6, atol=1e-8)


def test_orbits_that_move_apart_are_refused_at_the_start_and_at_the_end():
    class Start(Pairs):
        def derivative(self, t, state):
            return {**super().derivative(t, state), "pair": np.arange(20.0).reshape(10, 2)}

    class End(Pairs):
        def derivative(self, t, state):
            found = super().derivative(t, state)
            found["pair"][3, 1] += max(0.0, t - 1)
            return found

    with pytest.raises(ValueError, match=r"`orbits` must label .* pair\[pair_0=\d, pair_1=\d\] .* at t = 0"):
        integrate(Start(), t_end=2.0)
    with pytest.raises(ValueError, match=r"`orbits` must label .*pair\[pair_0=3, pair_1=1\].* at t = 2"):
        integrate(End(), t_end=2.0)
    Pairs.labels = np.zeros((10, 2), int)
    try:
        with pytest.raises(ValueError, match=r"`orbits` must label entries of 'pair' alike only where they are equal"):
            integrate(Pairs(), t_end=2.0)
    finally:
        Pairs.labels = np.arange(20).reshape(10, 2) % 2


def test_a_dataset_keeps_dimensions_labels_attributes_and_observables():
    run = integrate(Joint(), t_end=1.0, times=[0.0, 0.5, 1.0])
    assert run.dataset["v"].dims == ("time", "token") and run.dataset["v"].attrs == {"units": "1"}
    assert run.dataset["token"].values.tolist() == ["t0", "t1", "t2", "t3"]
    np.testing.assert_array_equal(run.dataset["largest"], run.dataset["v"].max("token"))
    np.testing.assert_array_equal(run.dataset["z"], run.dataset["v"] ** 2 / 2)
    assert run.states == ("v",) and run.final["v"].dims == ("token",)
    assert run.parameters["t_end"] == 1.0 and json.loads(run.dataset.attrs["versions"])["numpy"]
    assert "3 times from 0 to 1" in repr(run) and "3 times from 0 to 1" in run._repr_html_()


def test_lines_whose_words_are_alike_are_all_drawn():
    """Words are cut off at the same length, and so alike; a number tells their lines apart."""
    run = integrate(Joint(), t_end=1.0, times=[0.0, 0.5, 1.0])
    ax = run.plot("v", labels=["a" * 40, "a" * 40 + "b", "c"], ax=Figure().subplots())
    drawn = {line.get_label(): line.get_ydata().tolist() for line in ax.lines}
    cut = "a" * 23 + "\N{HORIZONTAL ELLIPSIS}"
    assert list(drawn) == [f"{cut}, 0", f"{cut}, 1", "c", "token t3"]
    assert list(drawn.values()) == run.dataset["v"].values.T.tolist()


# Steps


def test_steps_tend_to_the_flow_with_order_one():
    flow = integrate(Logistic(0.1), t_end=2.0).final["x"].item()
    errors = [abs(descend(Logistic(0.1), rate=2.0 / n, steps=n).final["x"].item() - flow) for n in (20, 40, 80)]
    orders = np.log2(np.array(errors[:-1]) / errors[1:])
    assert (np.abs(orders - 1) < 0.1).all()


def test_a_step_is_the_rate_times_the_derivative_and_zero_freezes():
    class Two:
        initial = {"x": np.array([1.0, 2.0]), "y": 3.0}

        def derivative(self, t, state):
            return {"x": state["x"] * (1 + t), "y": state["y"]}

    run = descend(Two(), rate={"x": 0.5, "y": 0}, steps=2)
    assert run.dataset["time"].values.tolist() == [0.0, 1.0, 2.0]
    np.testing.assert_array_equal(run.final["x"], np.array([1.0, 2.0]) * 1.5 * 2.0)
    assert run.final["y"].item() == 3.0
    timed = descend(Two(), rate=0.5, steps=5, record_every=2)
    assert timed.dataset["time"].values.tolist() == [0.0, 1.0, 2.0, 2.5]


def test_random_steps_are_those_of_their_seed_and_have_the_right_mean():
    class Noisy:
        initial = {"x": np.zeros(2000)}

        def derivative(self, t, state):
            return {"x": -state["x"]}

        def sample(self, t, state, rng):
            return {"x": 1 - state["x"] + rng.normal(size=2000)}

    one, same, other = (descend(Noisy(), rate=0.1, steps=30, seed=seed).final["x"].values for seed in (1, 1, 2))
    np.testing.assert_array_equal(one, same)
    assert (one != other).all()
    # x_k has the mean 1 - 0.9^k and the variance 0.01 (1 - 0.81^k) / 0.19.
    deviation = np.sqrt(0.01 / 0.19)
    assert abs(one.mean() - (1 - 0.9**30)) < 4 * deviation / np.sqrt(2000)
    assert one.std() == pytest.approx(deviation * np.sqrt(1 - 0.81**30), rel=0.1)


def test_optimizers_are_those_of_the_one_table():
    class Slope:
        initial = {"x": np.zeros(3), "y": np.zeros(())}

        def derivative(self, t, state):
            return {"x": np.array([3.0, 4.0, 0.0]), "y": 12.0}

    def final(optimizer, steps=2):
        run = descend(Slope(), rate=0.1, steps=steps, optimizer=optimizer)
        return [*run.final["x"].values, run.final["y"].item()]

    assert final("sign") == pytest.approx([0.2, 0.2, 0.0, 0.2])
    assert final(Optimizer("sgd", 0.5)) == pytest.approx([0.75, 1.0, 0.0, 3.0])  # 0.1 (1 + 1.5) g
    assert final(Optimizer("sgd", 0.0, clip=1.3), 1) == pytest.approx([0.03, 0.04, 0.0, 0.12], rel=1e-6)
    assert final("adam") == pytest.approx([0.2, 0.2, 0.0, 0.2], abs=1e-6)
    assert final(Optimizer("sgd", 0.0, schedule=Schedule(2))) == pytest.approx([0.15, 0.2, 0.0, 0.6])
    with pytest.raises(ValueError, match=r"`optimizer` must be one of"):
        final("lion")


def test_steps_that_diverge_are_told_with_what_was_recorded():
    class Cube:
        initial = {"x": 2.0}

        def derivative(self, t, state):
            return {"x": state["x"] ** 3}

    with pytest.raises(IntegrationError, match=r"no longer finite after step") as caught:
        descend(Cube(), rate=1.0, steps=50)
    assert np.isfinite(caught.value.run.dataset["x"]).all() and caught.value.run.dataset.sizes["time"] > 2


# Files


def test_a_file_keeps_every_bit(tmp_path):
    class Timed(Joint):
        def events(self, t, state):
            return {"half": state["v"][0] - 0.5, "never": state["v"][0] + 1}

    run = integrate(Timed(), t_end=1.2)
    run.save(tmp_path / "run.nc")
    loaded = Run.load(tmp_path / "run.nc")
    xr.testing.assert_identical(loaded.dataset, run.dataset)
    assert list(loaded.events) == ["half", "never"]
    assert loaded.events["half"].tobytes() == run.events["half"].tobytes() and loaded.events["never"].size == 0
    loaded.save(tmp_path / "again.nc")
    xr.testing.assert_identical(Run.load(tmp_path / "again.nc").dataset, run.dataset)


def test_a_damaged_file_and_another_one_are_refused(tmp_path):
    path = tmp_path / "run.nc"
    integrate(Logistic(), t_end=1.0).save(path)
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / "damaged.nc").write_bytes(content)
    with pytest.raises(ValueError, match=r"`path` must be a run of an open flow .*checksum"):
        Run.load(tmp_path / "damaged.nc")
    save_dataset(xr.Dataset({"x": ("i", [1.0])}), tmp_path / "other.nc")
    with pytest.raises(ValueError, match=r"`path` must be a run of an open flow .*another file"):
        Run.load(tmp_path / "other.nc")
    with pytest.raises(FileNotFoundError):
        Run.load(tmp_path / "none.nc")
    assert [one.name for one in tmp_path.iterdir() if one.name.startswith(".")] == []


def test_a_file_holds_no_code(tmp_path):
    path = tmp_path / "run.nc"
    integrate(Joint(), t_end=1.0).save(path)
    held = load_dataset(path, "yzflow-run-1", "a run")
    assert b"np.exp" not in held["call"].values.tobytes()
    assert Run.load(path).call.arguments["flow"].target == f"{__name__}:Joint"


def test_a_flow_that_changes_after_its_run_does_not_change_the_call():
    flow = Joint()
    run = integrate(flow, t_end=1.0)
    flow.delta[:] = 0
    again = run.call.make()
    np.testing.assert_array_equal(again.dataset["v"], run.dataset["v"])


# Plots


def test_at_most_ten_lines_are_drawn_those_that_move_most():
    class Many:
        initial = {"x": np.zeros((4, 5)), "y": 0.0}

        def derivative(self, t, state):
            return {"x": np.arange(20.0).reshape(4, 5), "y": 1.0}

    run = integrate(Many(), t_end=1.0)
    axes = run.plot("x")
    assert len(axes.lines) == 10 and "10 of 20" in axes.get_title()
    assert axes.lines[-1].get_label() == r"x_0 3, x_1 4"
    assert len(run.plot("y").lines) == 1 and run.plot("y").get_ylabel() == "y"
    labels = [line.get_label() for line in integrate(Joint(), t_end=1.0).plot("v", labels={0: "first"}).lines]
    assert labels == ["first", "token t1", "token t2", "token t3"]
    spread = integrate(Many(), t_end=1e4, times=np.geomspace(0.1, 1e4, 30)).plot("y")
    assert spread.get_xscale() == "log"
    pyplot.close("all")


# Input


def bad(**members):
    """A flow with other members than it should have."""
    body = {"initial": {"x": 1.0}, "derivative": lambda self, t, state: {"x": state["x"]}, **members}
    return type("Bad", (), body)()


@pytest.mark.parametrize("run", [lambda flow: integrate(flow, t_end=1.0), lambda flow: descend(flow, rate=1, steps=9)])
@pytest.mark.parametrize("error", [KeyError, ValueError, ZeroDivisionError])
def test_errors_of_a_flows_own_code_come_out_as_they_are(run, error):
    def derivative(self, t, state):
        if t > 0.5:
            raise error("mine")
        return {"x": state["x"]}

    with pytest.raises(error, match=r"mine"):
        run(bad(derivative=derivative))


def test_states_are_read_only_for_the_flow():
    def derivative(self, t, state):
        state["x"] += 1
        return state

    with pytest.raises(ValueError, match=r"read-only"):
        integrate(bad(derivative=derivative), t_end=1.0)


def test_the_protocol_asks_for_its_two_members():
    assert isinstance(Logistic(), Flow) and isinstance(Joint(), Flow)
    assert not isinstance(object(), Flow) and not isinstance(np.zeros(3), Flow)


def test_a_derivative_that_draws_is_refused_at_once():
    """No step is small enough for it: it was integrated for hours."""

    class Noisy(Linear):
        rng = np.random.default_rng(0)

        def derivative(self, t, state):
            return {"x": self.matrix @ state["x"] + 1e-3 * self.rng.standard_normal(state["x"].shape)}

    with pytest.raises(ValueError, match=r"`derivative` must return the same numbers .* others for 'x' at the second"):
        integrate(Noisy([[-1.0]], [1.0]), t_end=1.0)
    assert descend(Noisy([[-1.0]], [1.0]), rate=0.1, steps=3).dataset["x"].size == 4


def test_a_derivative_that_draws_into_one_array_is_refused_too():
    """The array of the first call is that of the second."""
    rng, kept = np.random.default_rng(0), np.zeros(3)

    class Drawn:
        initial = {"x": np.ones(3)}

        def derivative(self, t, state):
            np.subtract(0.1 * rng.standard_normal(3), state["x"], out=kept)
            return {"x": kept}

        def config(self):
            return {}

    with pytest.raises(ValueError, match=r"others for 'x' at the second call"):
        integrate(Drawn(), t_end=1.0)


def test_progress_says_its_first_line_at_once(capsys):
    integrate(Logistic(), t_end=1.0, progress=True)
    descend(Logistic(), rate=0.1, steps=2, progress=True)
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(":")[0] for line in lines] == ["flow (Logistic)", "steps (Logistic)"]


def test_a_derivative_that_ends_somewhere_is_told_from_a_step_that_is_too_small():
    class Ends:
        initial = {"x": 1.0}

        def derivative(self, t, state):
            return {"x": np.sqrt(0.5 - t)}

    with np.errstate(invalid="ignore"), pytest.raises(IntegrationError, match="the derivative is not finite beyond"):
        integrate(Ends(), t_end=1.0)
