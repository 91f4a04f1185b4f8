"""Sweeps: what they return, and that nothing that happens to workers, files or the process changes it."""

import json
import multiprocessing
import os
import signal
import threading
import time
from concurrent.futures import Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from types import SimpleNamespace

import numpy as np
import pytest
import sweep_tasks
import xarray as xr
from driving import assert_same_bits, quietly
from hypothesis import given
from hypothesis import strategies as st

import yzflow
from dynamics import SequenceClasses, sgd
from yzflow.sweeps import execution, tasks
from yzflow.sweeps.collect import Collector
from yzflow.sweeps.runs import Result
from yzflow.sweeps.store import Store

SPAWN = multiprocessing.get_context("spawn")
GRID = {"a": [1, 2, 3], "b": ["x", "y"]}


# Results of a sweep


def test_dimensions_values_and_labels(tmp_path):
    found = quietly(sweep_tasks.plain, GRID, store=tmp_path, seeds=[4, 7])
    assert found["value"].dims == ("a", "b", "seed") and found["value"].shape == (3, 2, 2)
    expected = 10.0 * found["a"] + found["seed"]
    np.testing.assert_array_equal(found["value"], expected.broadcast_like(found["value"]).transpose("a", "b", "seed"))
    assert found["seed"].values.tolist() == [4, 7] and found["b"].values.tolist() == ["x", "y"]
    assert not found["failed"].any() and (found["error"] == "").all()
    configuration = json.loads(found.attrs["configuration"])
    assert configuration == {"grid": GRID, "seeds": [4, 7], "fixed": {}}
    assert found.attrs["task"] == "sweep_tasks:plain"
    assert set(json.loads(found.attrs["versions"])) == {"yzflow", "python", "numpy", "scipy", "numba", "xarray"}


def test_a_number_of_seeds_counts_from_zero(tmp_path):
    assert quietly(sweep_tasks.plain, {"a": [1]}, store=tmp_path, seeds=3)["seed"].values.tolist() == [0, 1, 2]
    assert quietly(sweep_tasks.plain, {"a": [1]}, store=tmp_path)["seed"].values.tolist() == [0]


def test_plain_arrays_get_dimensions_and_keep_their_type(tmp_path):
    found = quietly(sweep_tasks.arrays, {"a": np.arange(1, 3)}, store=tmp_path, seeds=2)
    noise = np.random.default_rng([1, 2]).normal(size=4)
    cell = found.sel(a=2, seed=1)
    np.testing.assert_array_equal(cell["noise"], noise)
    assert cell["noise"].dims == ("noise_0",) and cell["norm"] == np.linalg.norm(noise)
    assert (found["small"].dtype, found["count"].dtype) == (np.float32, np.int64)
    assert list(found.data_vars) == ["noise", "norm", "count", "small", "failed", "error"]


@pytest.mark.parametrize(
    ("values", "labels"),
    [
        ([1, 2.5], [1.0, 2.5]),
        ([True, False], [True, False]),
        ([None, 128], ["None", "128"]),
        (["u", "v"], ["u", "v"]),
        (np.array([0.5, 1.5], dtype=np.float32), [0.5, 1.5]),
        (range(2), [0, 1]),
    ],
)
def test_labels_of_the_grid(tmp_path, values, labels):
    found = quietly(sweep_tasks.plain, {"a": [1], "b": values}, store=tmp_path / "store")
    assert found["b"].values.tolist() == labels
    found.to_netcdf(tmp_path / "out.nc", engine="h5netcdf")
    again = xr.load_dataset(tmp_path / "out.nc")
    assert again["b"].values.tolist() == labels and again.equals(found)


@given(st.data())
def test_the_order_in_which_results_come_does_not_matter(data):
    """Differences of runs in labels, types, attributes, variables, errors."""
    results = []
    for cell in range(data.draw(st.integers(1, 6))):
        labels = np.array(sorted(data.draw(st.sets(st.integers(0, 4)))), dtype=float)
        curve = labels.astype(data.draw(st.sampled_from(["f4", "f8", "i4"]))) + cell
        variables = {
            "curve": (("time",), curve, {"cell": cell}),
            "flag": ((), np.array(cell % 2 == 0), {"cell": cell}),
        }
        names = data.draw(st.permutations(sorted(variables)))[: data.draw(st.integers(0, 2))]
        some = {name: variables[name] for name in names}
        coordinates = {"time": (labels, {"cell": cell})} if "curve" in some else {}
        results.append(Result(some, coordinates, "" if some else "ValueError: no", attributes={"on": str(cell % 3)}))
    collectors = []
    for order in (range(len(results)), data.draw(st.permutations(range(len(results))))):
        collectors.append(Collector(len(results)))
        for cell in order:
            collectors[-1].add(cell, results[cell])
    (variables, coordinates), other = (collector.variables() for collector in collectors)
    assert list(variables) == list(other[0]) and list(coordinates) == list(other[1])
    for name, (dims, array, attributes) in variables.items():
        assert (dims, array.dtype, attributes) == (other[0][name][0], other[0][name][1].dtype, other[0][name][2])
        assert array.tobytes() == other[0][name][1].tobytes()
        owners = [cell for cell, result in enumerate(results) if name in result.variables]
        assert attributes == {"cell": owners[0]}
        for cell in owners:
            own = results[cell].variables[name][1]
            at = (cell, *(np.searchsorted(coordinates[dim][0], results[cell].coordinates[dim][0]) for dim in dims))
            np.testing.assert_array_equal(array[at], own)
        assert np.isnan(array).sum() == array.size - sum(results[cell].variables[name][1].size for cell in owners)
    assert collectors[0].provenance() == collectors[1].provenance() and collectors[0].errors == collectors[1].errors


# The tasks with a name, by another route


def test_ratio_is_eta_y_over_eta_z_and_the_same_run(tmp_path):
    ratio = quietly("syn_small", {"eta_z": [0.5], "ratio": [3.0], "steps": [5]}, store=tmp_path)
    rates = quietly("syn_small", {"eta_z": [0.5], "eta_y": [1.5], "steps": [5]}, store=tmp_path)
    assert ratio["loss"].item() == rates["loss"].item() and len(Store(tmp_path)) == 1
    run = sgd(SequenceClasses.syn_small(), eta_y=1.5, eta_z=0.5, steps=5)
    assert rates["loss"].item() == pytest.approx(run.dataset["loss"].values[-1], rel=1e-12)
    assert rates["entropy"].item() == pytest.approx(run.attention_entropy()[-1].mean().item(), rel=1e-12)


def test_the_interface_names_the_built_in_tasks():
    assert {"syn_small", "syn_medium", "flow"} <= set(tasks.named())
    for name in ("syn_small", "syn_medium", "flow", "dyck"):  # others have arguments without a default
        task = tasks.named()[name]
        assert task.identity({}, 0)["configuration"] == task.complete({})


# Bad input, before anything runs


def test_a_task_that_workers_cannot_import_is_refused_before_anything_runs(tmp_path, monkeypatch):
    """As a function that was typed into an interpreter: here it is, in a worker it is not."""

    def typed(configuration, seed):
        raise AssertionError("it ran")

    typed.__module__, typed.__qualname__ = "__main__", "typed"
    monkeypatch.setattr("__main__.typed", typed, raising=False)
    message = r"can import; in a notebook, .*%%writefile tasks.py.*executor=ThreadPoolExecutor\(\), but got .*typed"
    with pytest.raises(ValueError, match=r"^`task` must be a function that the workers " + message):
        quietly(typed, {"a": [1]}, store=tmp_path, workers=1)
    assert len(Store(tmp_path)) == 0


@pytest.mark.parametrize("what", sweep_tasks.RESULTS)
def test_results_that_are_no_numbers_fail_their_run_only(tmp_path, what):
    with pytest.warns(UserWarning, match="1 of 1 runs failed"):
        found = quietly(sweep_tasks.returns, {"what": [what]}, store=tmp_path)
    assert found["error"].item().startswith(("TypeError: ", "ValueError: "))


# Resuming


def test_a_run_that_is_there_is_not_run_again(tmp_path):
    (tmp_path / "calls").mkdir()
    grid = {"a": [1, 2], "folder": [str(tmp_path / "calls")]}

    def calls():
        return len(list((tmp_path / "calls").iterdir()))

    first = quietly(sweep_tasks.counted, grid, store=tmp_path / "store", seeds=2)
    assert calls() == 4
    assert_same_bits(quietly(sweep_tasks.counted, grid, store=tmp_path / "store", seeds=2), first)
    assert calls() == 4
    larger = quietly(sweep_tasks.counted, grid | {"a": [2, 3, 1]}, store=tmp_path / "store", seeds=[1, 0])
    assert calls() == 6
    np.testing.assert_array_equal(larger["value"].sel(a=[1, 2], seed=[0, 1]), first["value"])


def test_a_new_version_of_a_function_is_run_again(tmp_path, monkeypatch):
    quietly(sweep_tasks.plain, {"a": [1]}, store=tmp_path)
    monkeypatch.setattr(sweep_tasks.plain, "version", 2, raising=False)
    quietly(sweep_tasks.plain, {"a": [1]}, store=tmp_path)
    assert len(Store(tmp_path)) == 2


def test_a_failed_run_is_marked_and_tried_again(tmp_path, monkeypatch):
    with pytest.warns(UserWarning, match="1 of 4 runs failed, the first with ArithmeticError: two lines"):
        found = quietly(sweep_tasks.fails, {"a": [1, 2]}, store=tmp_path, seeds=2)
    assert found["failed"].values.tolist() == [[False, False], [False, True]]
    assert found["error"].values.tolist() == [["", ""], ["", "ArithmeticError: two lines"]]
    np.testing.assert_array_equal(found["value"], [[10, 11], [20, np.nan]])
    kept = [Store(tmp_path).read(key)[1] for key in Store(tmp_path).keys()]  # noqa: SIM118
    assert [result.traceback.splitlines()[0] for result in kept if result.error] == [
        "Traceback (most recent call last):"
    ]
    # The cause is gone: only the failed run is done again.
    monkeypatch.setenv("SWEEP_TASKS_FAIL", "0")
    again = quietly(sweep_tasks.fails, {"a": [1, 2]}, store=tmp_path, seeds=2)
    assert not again["failed"].any() and (again["error"] == "").all()
    np.testing.assert_array_equal(again["value"], [[10, 11], [20, 21]])


# Executors


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The sweeps of this section in one thread, in another order than that of the grid."""
    folder = tmp_path_factory.mktemp("expected")
    with ThreadPoolExecutor(1) as pool:
        options = {"store": folder, "seeds": 5, "executor": pool, "progress": False}
        yzflow.sweep(sweep_tasks.arrays, {"a": [3, 1]}, **options | {"seeds": [4, 2]})
        return {
            "arrays": yzflow.sweep(sweep_tasks.arrays, {"a": [1, 2, 3]}, **options),
            "syn_small": yzflow.sweep("syn_small", {"eta_z": [0.5, 1.0], "steps": [20]}, **options),
        }


def test_threads_give_the_same(tmp_path, expected):
    with ThreadPoolExecutor(2) as pool:
        found = quietly(sweep_tasks.arrays, {"a": [1, 2, 3]}, store=tmp_path, seeds=5, executor=pool)
    assert_same_bits(found, expected["arrays"])
    found = quietly("syn_small", {"eta_z": [0.5, 1.0], "steps": [20]}, store=tmp_path, seeds=5, workers=2)
    assert_same_bits(found, expected["syn_small"])


def test_no_more_workers_start_than_there_are_runs():
    """A pool of processes starts all of its own at once."""
    with execution.Workers(tasks.resolve("syn_small"), n=5) as workers:
        workers.start(2)
        assert workers.n == 2 and workers._executor._max_workers == 2


@pytest.mark.slow
def test_processes_give_the_same_as_threads_for_a_built_in_task(tmp_path, expected):
    with ProcessPoolExecutor(2, mp_context=SPAWN) as pool:
        found = quietly("syn_small", {"eta_z": [0.5, 1.0], "steps": [20]}, store=tmp_path, seeds=5, executor=pool)
    assert_same_bits(found, expected["syn_small"])


@pytest.fixture(scope="module")
def dask_client():
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None, silence_logs=50
        ) as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.slow
def test_a_dask_cluster_gives_the_same(tmp_path, expected, dask_client):
    executor = dask_client.get_executor()
    found = quietly(sweep_tasks.arrays, {"a": [1, 2, 3]}, store=tmp_path, seeds=5, executor=executor)
    assert_same_bits(found, expected["arrays"])
    found = quietly("syn_small", {"eta_z": [0.5, 1.0], "steps": [20]}, store=tmp_path, seeds=5, executor=executor)
    assert_same_bits(found, expected["syn_small"])


class DeadAfter(Executor):
    """A cluster's executor, as dask has it, whose scheduler dies after so many calls: no future is done after that."""

    def __init__(self, calls):
        self.calls, self._client = calls, SimpleNamespace(status="running", ncores=lambda: {"a worker": 1})

    def submit(self, function, *arguments):
        future = Future()
        self.calls -= 1
        if self.calls < 0:
            self._client.status = "closed"
        else:
            future.set_result(function(*arguments))
        return future


def test_a_sweep_whose_scheduler_dies_ends_with_what_is_kept_and_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(DeadAfter, "__module__", "distributed.cfexecutor")
    monkeypatch.setattr(execution, "_POLL", 0.01)
    grid, store = {"a": [1, 2, 3]}, tmp_path / "runs"
    with pytest.raises(RuntimeError, match=r"scheduler of the dask cluster is gone \(its client is closed\)") as caught:
        quietly(sweep_tasks.plain, grid, store=store, executor=DeadAfter(3))  # a look at the task, and two runs
    assert f"; 2 of 3 runs are in {store}; the same command, or `sweep` with the executor" in str(caught.value)
    found = quietly(sweep_tasks.plain, grid, store=store, executor=DeadAfter(2))  # one run is left
    np.testing.assert_array_equal(found["value"].squeeze(), [10.0, 20.0, 30.0])
    with pytest.raises(RuntimeError, match="is gone"):  # before the first run
        quietly(sweep_tasks.plain, grid, store=tmp_path / "other", executor=DeadAfter(0))


def dying(tmp_path, deaths):
    (tmp_path / "deaths").mkdir()
    return {"a": [1, 2, 3, 4], "folder": [str(tmp_path / "deaths")], "deaths": [deaths]}


@pytest.mark.slow
def test_a_killed_dask_worker_costs_a_retry(tmp_path, dask_client):
    grid = dying(tmp_path, 1)
    found = quietly(sweep_tasks.dies, grid, store=tmp_path / "store", seeds=3, executor=dask_client.get_executor())
    assert len(os.listdir(tmp_path / "deaths")) == 1
    assert not found["failed"].any()
    np.testing.assert_array_equal(found["value"].squeeze(), 10.0 * found["a"] + found["seed"])


@pytest.mark.slow
@pytest.mark.parametrize("deaths", [1, 99])
def test_a_killed_worker_costs_a_retry_of_its_runs_only(tmp_path, deaths):
    grid = dying(tmp_path, deaths)
    if deaths == 1:
        found = quietly(sweep_tasks.dies, grid, store=tmp_path / "store", seeds=3, workers=2)
    else:
        with pytest.warns(
            UserWarning, match="1 of 12 runs failed, the first with BrokenProcessPool: its worker died 3"
        ):
            found = quietly(sweep_tasks.dies, grid, store=tmp_path / "store", seeds=3, workers=2)
    assert len(os.listdir(tmp_path / "deaths")) == min(deaths, execution.ATTEMPTS)
    failed = found["failed"].squeeze(drop=True)
    assert failed.sum() == (deaths > 3) and failed.sel(a=3, seed=0) == (deaths > 3)
    value = (10.0 * found["a"] + found["seed"]).where(~failed)
    np.testing.assert_array_equal(found["value"].squeeze(), value)


class Unreliable(Executor):
    """Runs at once, in order; a chunk with a cursed run is lost."""

    _max_workers = 2

    def __init__(self, cursed):
        self.cursed, self.chunks = cursed, []

    def submit(self, function, *arguments):
        future = Future()
        if function.__name__ == "run_chunk":
            jobs = arguments[1]
            self.chunks.append([(configuration["a"], seed) for configuration, seed in jobs])
            if self.cursed in self.chunks[-1]:
                future.set_exception(RuntimeError("worker lost"))
                return future
        future.set_result(function(*arguments))
        return future


def test_a_run_that_takes_its_worker_down_is_found_out_alone(tmp_path):
    """In its chunk, singly, and alone; every other run is done, and most of them once."""
    executor = Unreliable(cursed=(5, 1))
    with pytest.warns(UserWarning, match="1 of 80 runs failed, the first with RuntimeError: .* 3 times.*worker lost"):
        found = quietly(sweep_tasks.plain, {"a": list(range(40))}, store=tmp_path, seeds=2, executor=executor)
    assert found["failed"].sum() == 1 and found["failed"].sel(a=5, seed=1)
    tried = [chunk for chunk in executor.chunks if (5, 1) in chunk]
    assert len(tried) == 3 and len(tried[0]) > 1 and tried[1] == tried[2] == [(5, 1)]
    times = [sum(cell in chunk for chunk in executor.chunks) for cell in ((a, s) for a in range(40) for s in range(2))]
    assert max(times) == 3 and sorted(times)[-2] <= 2 and sum(time > 1 for time in times) == len(tried[0])


class Together(Executor):
    """Loses everything that is in flight with the cursed run, as a pool of processes does."""

    _max_workers = 2

    def __init__(self, cursed):
        self.cursed, self.flying, self.lock, self.largest = cursed, [], threading.Lock(), 0

    def submit(self, function, *arguments):
        future = Future()
        if function.__name__ != "run_chunk":
            future.set_result(function(*arguments))
            return future
        with self.lock:
            self.flying.append((future, function, arguments))
            self.largest = max(self.largest, len(self.flying))
        threading.Timer(0.01, self.land).start()
        return future

    def land(self):
        with self.lock:
            landing, self.flying = self.flying, []
        lost = any(seed == self.cursed for _, _, (_, jobs) in landing for _, seed in jobs)
        for future, function, arguments in landing:
            if lost:
                future.set_exception(RuntimeError("worker lost"))
            else:
                future.set_result(function(*arguments))


def test_runs_beside_one_that_takes_the_pool_down_are_not_blamed(tmp_path):
    executor = Together(cursed=5)
    with pytest.warns(UserWarning, match="1 of 12 runs failed"):
        found = quietly(sweep_tasks.plain, {"a": [1]}, store=tmp_path, seeds=12, executor=executor)
    assert found["seed"][found["failed"].values.ravel()].values.tolist() == [5]
    assert 2 <= executor.largest <= 4


def test_the_last_attempt_is_alone():
    queue = execution._Queue(range(4), 2, lambda cell: ({}, cell))

    def take_all():
        chunks = []
        while chunk := queue.take(len(chunks)):
            chunks.append(chunk)
        return chunks

    for _ in range(2):
        chunks = take_all()
        assert sorted(cell for chunk in chunks for cell, _ in chunk) == [0, 1, 2, 3]
        assert all(queue.lost(chunk, RuntimeError("lost")) == [] for chunk in chunks)
    for expected in range(4):
        [[(cell, _)]] = chunks = take_all()
        assert cell == expected
        [(lost, result)] = queue.lost(chunks[0], RuntimeError("lost"))
        assert lost == cell and "died 3 times" in result.error
    assert not queue and take_all() == []


@pytest.mark.slow
def test_what_is_in_flight_is_bounded_and_short_runs_share_a_submission(tmp_path):
    executor = Unreliable(cursed=None)
    quietly(sweep_tasks.plain, {"a": list(range(700))}, store=tmp_path, executor=executor)
    sizes = [len(chunk) for chunk in executor.chunks]
    assert max(sizes) <= 256 and len(sizes) < 120 and sizes[-1] == 1


@pytest.mark.slow
def test_a_broken_executor_of_the_caller_leaves_a_resumable_store(tmp_path):
    grid = dying(tmp_path, 1)
    with (
        ProcessPoolExecutor(1, mp_context=SPAWN) as pool,
        pytest.raises(RuntimeError, match=r"the executor is broken.*call `sweep` again"),
    ):
        quietly(sweep_tasks.dies, grid, store=tmp_path / "store", seeds=3, executor=pool)
    found = quietly(sweep_tasks.dies, grid, store=tmp_path / "store", seeds=3)
    np.testing.assert_array_equal(found["value"].squeeze(), 10.0 * found["a"] + found["seed"])


def test_two_sweeps_on_one_store_at_once(tmp_path):
    found, grid = {}, {"a": [1, 2, 3], "sleep": [0.002]}

    def go(name):
        found[name] = quietly(sweep_tasks.arrays, grid, store=tmp_path / "store", seeds=20)

    threads = [threading.Thread(target=go, args=(name,)) for name in "abc"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for name in "abc":
        assert_same_bits(found[name], quietly(sweep_tasks.arrays, grid, store=tmp_path / "alone", seeds=20))
    assert len(Store(tmp_path / "store")) == 60


def test_ctrl_c_leaves_a_resumable_store(tmp_path):
    """The signal itself, in the middle of a sweep in this process."""
    grid = {"a": [1, 2, 3], "sleep": [0.01]}
    store = Store(tmp_path / "store")

    def interrupt():
        while len(store) < 3:
            time.sleep(0.002)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        quietly(sweep_tasks.arrays, grid, store=store, seeds=100, executor=ThreadPoolExecutor(1))
    thread.join()
    assert 3 <= len(store) < 300
    some = {"a": [1, 2], "sleep": [0.01]}
    assert_same_bits(
        quietly(sweep_tasks.arrays, some, store=store, seeds=5),
        quietly(sweep_tasks.arrays, some, store=tmp_path / "alone", seeds=5),
    )
