"""Tables of kinds refuse what they lack: a toy entry is itself everywhere, or an error says what is missing."""

from dataclasses import replace

import numpy as np
import pytest
import xarray as xr

from dynamics import (
    Bags,
    Layer,
    Objective,
    Optimizer,
    Run,
    SequenceClasses,
    Solver,
    Trajectory,
    gradient_flow,
    gradient_flow_ensemble,
    sgd,
    sgd_many,
)
from dynamics._engine import steps
from dynamics._model.objective import CRITERIA, Criterion
from dynamics.fields import table as registry
from dynamics.fields.full import Full
from dynamics.optimizers.table import RULES, UpdateRule
from dynamics.options import optimizer_of
from dynamics.support import sealed
from dynamics.support.netcdf import save_dataset

CLASSES = SequenceClasses([[0.4, 0.6, 0.0], [0.4, 0.0, 0.6]], [0, 0], vocab_size=5)
RUN = {"eta_y": 0.3, "eta_z": 0.1, "steps": 7, "batch_size": 4, "length": 9, "seed": 3, "dtype": "float64"}


def _cubes(optimizer, gradient, first, second, step):
    return 5 * gradient**3


@pytest.fixture
def cubes(monkeypatch):
    """An optimizer that the package does not know, which moves along cubes of the gradient."""
    monkeypatch.setitem(RULES, "cubes", UpdateRule(_cubes))
    return Optimizer("cubes", momentum=0.0)


def test_a_new_optimizer_takes_its_own_steps(cubes):
    """One step against the gradient that plain SGD shows, on one batch; and no step of another optimizer later."""
    one = {**RUN, "steps": 1}
    start = Layer(np.zeros((1, 3)), np.zeros((3, 5)))
    plain = sgd(CLASSES, **one, init=start, momentum=0.0).final
    own = sgd(CLASSES, **one, init=start, optimizer=cubes).final
    gradient = plain.Y / RUN["eta_y"]
    np.testing.assert_allclose(own.Y, RUN["eta_y"] * 5 * gradient**3, rtol=1e-12, atol=1e-15)
    assert np.abs(own.Y - plain.Y).max() > 1e-3
    later = {name: sgd(CLASSES, **RUN, optimizer=Optimizer(name, momentum=0.0)).final.Y for name in ("sgd", "cubes")}
    assert np.abs(later["sgd"] - later["cubes"]).max() > 1e-3


@pytest.mark.parametrize("more", [{}, {"decoder": "modified", "length": None}], ids=["full", "modified"])
@pytest.mark.parametrize("name", [name for name, rule in RULES.items() if rule.kernel is not None])
def test_compiled_steps_are_those_of_the_same_entry_in_numpy(monkeypatch, name, more):
    given = {**RUN, **more, "steps": 25, "optimizer": name}
    compiled = sgd(CLASSES, **given).final
    monkeypatch.setitem(RULES, name, replace(RULES[name], kernel=None))
    plain = sgd(CLASSES, **given).final
    for ours, theirs in ((compiled.Z, plain.Z), (compiled.Y, plain.Y)):
        np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-7)
    assert np.abs(plain.Y).max() > 0.1


def test_it_is_itself_in_many_runs_in_options_and_in_files(cubes, tmp_path):
    alone = sgd(CLASSES, **RUN, optimizer=cubes)
    (many,) = sgd_many([(CLASSES, {**RUN, "optimizer": cubes})])
    np.testing.assert_array_equal(many.layer.Y, alone.final.Y)
    assert alone.parameters["optimizer"] == "cubes"
    alone.save(tmp_path / "run.nc")
    assert Trajectory.load(tmp_path / "run.nc").optimizer == cubes
    assert optimizer_of({"optimizer": "cubes", "momentum": 0.0}) == cubes


def test_without_a_flow_the_flow_refuses_it_and_says_which_have_one(cubes):
    with pytest.raises(ValueError, match=r"`optimizer` must have a flow, as 'sgd' or 'adam' or .*, but got 'cubes'"):
        gradient_flow(CLASSES, eta_y=1.0, eta_z=1.0, t_end=1.0, optimizer=cubes)


def test_with_a_flow_it_follows_its_own(monkeypatch):
    """Along cubes of the gradient: small steps tend to it, with an error that halves with the rates."""
    monkeypatch.setitem(RULES, "cubes", UpdateRule(_cubes, lambda optimizer, direction: 5 * direction**3))
    cubes = Optimizer("cubes", momentum=0.0)
    given = {"eta_y": 2.0, "eta_z": 1.0}
    flow = gradient_flow(CLASSES, **given, t_end=4.0, optimizer=cubes).final.Y
    errors = []
    for k in (10, 20, 40):
        rates = {name: rate / k for name, rate in given.items()}
        whole = {"batch_size": None, "length": None, "dtype": "float64"}
        errors.append(np.abs(sgd(CLASSES, **rates, steps=4 * k, optimizer=cubes, **whole).final.Y - flow).max())
    assert errors[0] > 1e-4
    np.testing.assert_allclose([errors[0] / errors[1], errors[1] / errors[2]], 2, rtol=0.15)


class Doubled(Full):
    """The full flow with twice the decoder's gradient, as somebody would write it who knows `Full` alone."""

    def gradient(self, weights, slopes):
        loss = super().gradient(weights, slopes)
        slopes.Y[...] *= 2
        return loss


@pytest.fixture
def doubled(monkeypatch):
    monkeypatch.setitem(registry.SYSTEMS, "doubled", registry.Entry(Doubled))


# Doubling the gradient of Y is doubling its rate: the answer is known without the new class.
@pytest.mark.parametrize(("method", "reduce"), [("auto", "auto"), ("DOP853", "none"), ("LSODA", "auto")])
def test_a_decoder_that_overrides_a_gradient_is_itself_by_every_method(doubled, method, reduce):
    classes = SequenceClasses.single_common_token(3, 40, common=1.0, distinct=[1.0, 0.6])
    given = {"t_end": 12.0, "rtol": 1e-8, "atol": 1e-10, "eta_z": 0.3}
    solver = Solver(method=method, reduce=reduce)
    own = gradient_flow(classes, eta_y=0.7, decoder="doubled", solver=solver, **given)
    known = gradient_flow(classes, eta_y=1.4, solver=Solver(method="RK45", reduce="none"), **given)
    for name in ("Y", "Z"):
        np.testing.assert_allclose(getattr(own.final, name), getattr(known.final, name), rtol=1e-5, atol=1e-7)
    other = gradient_flow(classes, eta_y=0.7, solver=solver, **given)
    assert np.abs(own.final.Y - other.final.Y).max() > 0.1
    assert own.parameters["decoder"] == "doubled" and own.parameters.get("reduction", "none") == "none"


def test_a_large_one_is_itself_too(doubled):
    """So large that the full flow keeps its slopes as factors, which are not this flow's."""
    rng = np.random.default_rng(0)
    classes = SequenceClasses(rng.dirichlet(np.ones(300), 12), [0] * 12, vocab_size=400)
    given = {"t_end": 3.0, "eta_z": 0.3, "solver": Solver(reduce="none")}
    own = gradient_flow(classes, eta_y=0.7, decoder="doubled", **given).final.Y
    known = gradient_flow(classes, eta_y=1.4, **given).final.Y
    np.testing.assert_allclose(own, known, rtol=1e-5, atol=1e-9)
    assert np.abs(own - gradient_flow(classes, eta_y=0.7, **given).final.Y).max() > 0.01


def test_an_ensemble_of_it_is_itself_member_by_member(doubled):
    """Theorem 4's setting, too, for which the kernel of lanes would integrate another field."""
    classes = SequenceClasses.single_common_token(3, 20)
    found = gradient_flow_ensemble([(classes, 0.5, 0.2), (CLASSES, 0.5, 0.2)], t_end=5.0, decoder="doubled")
    for i, data in enumerate((classes, CLASSES)):
        known = gradient_flow(data, eta_y=1.0, eta_z=0.2, t_end=5.0).dataset["loss"][-1]
        np.testing.assert_allclose(found["loss"][i, -1], known, rtol=1e-5)


@pytest.mark.parametrize("method", ["a toy", "quad"])
def test_a_method_that_no_integrator_has_is_refused(monkeypatch, method):
    """ "quad" is a name of `scipy.integrate`, and no solver of it."""
    monkeypatch.setattr(steps, "METHODS", (*steps.METHODS, method))
    with pytest.raises(ValueError, match=rf"`method` must be one that scipy.integrate has, but got '{method}'"):
        gradient_flow(CLASSES, eta_y=1.0, eta_z=1.0, t_end=1.0, solver=Solver(method=method))


def test_a_criterion_has_its_own_label_and_units_and_fields_that_lack_it_refuse_it(monkeypatch):
    monkeypatch.setitem(CRITERIA, "toy", Criterion(True, "toy loss", "toys"))
    toy = Objective("toy")
    flow = gradient_flow(CLASSES, eta_y=1.0, eta_z=1.0, t_end=1.0, objective=toy)
    run = sgd(CLASSES, **RUN, objective=toy)
    for dataset in (flow.dataset, run.dataset):
        assert dataset["loss"].attrs == {"long_name": "expected toy loss", "units": "toys"}
    assert run.dataset["batch_loss"].attrs["units"] == "toys"
    squared = gradient_flow(CLASSES, eta_y=1.0, eta_z=1.0, t_end=1.0, objective=Objective("squared"))
    np.testing.assert_array_equal(flow.dataset["z"], squared.dataset["z"])  # by the flag that it declares
    for decoder in ("modified", "theory"):
        with pytest.raises(ValueError, match="`criterion` must be"):
            gradient_flow(CLASSES, eta_y=1.0, eta_z=1.0, t_end=1.0, objective=toy, decoder=decoder)


def test_a_kind_of_file_is_told_by_its_words_and_refused_by_all_others(monkeypatch, tmp_path):
    path = tmp_path / "toy.nc"
    monkeypatch.setattr(sealed, "KINDS", {**sealed.KINDS, "yzflow-toy-1": "a box of toys"})
    sealed.kinds.cache_clear()
    save_dataset(xr.Dataset({"x": 1.0}, attrs={"format": "yzflow-toy-1"}), path)
    try:
        for load, what in (
            (Trajectory.load, "a trajectory"),
            (Bags.load, "a file of bags"),
            (Run.load, "a run of an open"),
        ):
            with pytest.raises(ValueError, match=f"{what}.*a box of toys"):
                load(path)
    finally:
        sealed.kinds.cache_clear()
