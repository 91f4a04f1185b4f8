"""A field from outside is itself by every method, and is refused with what is missing where it cannot be."""

from functools import partial
from importlib import metadata

import numpy as np
import pytest
from balls import enclose_flow
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from own_fields import blend, direct, plain, register_blends, tilted
from own_fields import table as table
from scipy.integrate import solve_ivp
from strategies import SEEDS

from dynamics import (
    Bags,
    DivergenceError,
    Embedding,
    Field,
    Layer,
    Objective,
    Optimizer,
    SequenceClasses,
    Solver,
    Trajectory,
    fields,
    gradient_flow,
    gradient_flow_ensemble,
    gradient_noise,
    linear_noise,
    register_field,
    sgd,
    sgd_many,
    stochastic_flow,
)
from dynamics.optimizers.table import RULES, UpdateRule

pytestmark = pytest.mark.usefixtures("table")
CLASSES = SequenceClasses.single_common_token(3, 40, common=1.0, distinct=[1.0, 0.6, 0.6])
RATES = {"eta_y": 0.7, "eta_z": 0.3}
STEPS = {**RATES, "steps": 10, "batch_size": 4, "momentum": 0.5, "seed": 3}


def known(times, classes=CLASSES):
    """`tilted` by scipy, from formulas and dense arrays."""
    start = Layer.zeros(classes.population())
    cut, classes_of_tokens = start.Z.size, classes.probabilities.toarray()

    def velocity(_, state):
        dZ, dY = direct(
            state[:cut],
            state[cut:].reshape(start.Y.shape),
            classes_of_tokens,
            classes.class_weights,
            start.multiplicity,
        )
        return np.concatenate([RATES["eta_z"] * dZ, RATES["eta_y"] * dY.ravel()])

    found = solve_ivp(
        velocity, (0, times[-1]), np.zeros(cut + start.Y.size), "DOP853", t_eval=times, rtol=1e-11, atol=1e-13
    ).y.T
    return found[:, :cut], found[:, cut:].reshape(-1, *start.Y.shape)


def layers():
    """Starts with each optional part, for three classes of four tokens, one query."""
    rng = np.random.default_rng(5)
    Z, Y = rng.normal(size=(2, 4)), rng.normal(size=(4, 5))
    parts = {"vectors": rng.normal(size=(4, 3)), "keys": rng.normal(size=(2, 3)), "queries": rng.normal(size=(2, 3))}
    yield "plain", Layer(Z, Y)
    yield "values", Layer(Z, Y[:3], rng.normal(size=(4, 3)), center=True, floor=0.1)
    yield "hidden", Layer(Z, Y[:3], hidden=rng.normal(size=(5, 3)))
    yield "residual", Layer(Z, rng.normal(size=(6, 5)), residual=True)
    yield "temperature", Layer(Z, Y, temperature=2.0, normalisation="layer")
    yield "embedding", Layer.embedded(Embedding(**parts), Y)
    yield "embedded values", Layer.embedded(Embedding(**parts, values=rng.normal(size=(3, 3))), Y[:3])


@pytest.mark.parametrize(("name", "start"), list(layers()), ids=[name for name, _ in layers()])
def test_the_gradient_in_public_names_is_the_full_flow_of_every_layer(name, start):
    register_field(Field("plain", plain, step=plain))
    rng = np.random.default_rng(6)
    queries = np.array([0, 1, 0])
    bags = Bags.from_dense(queries, [0, 1, 2], rng.dirichlet(np.ones(4), 3), n_queries=len(start.Z), vocab_size=5)
    for optimizer in (None, Optimizer("sgd", momentum=0.0, weight_decay=0.02, clip=0.05)):
        both = [
            gradient_flow(bags, **RATES, t_end=2.0, n_times=2, init=start, decoder=decoder, optimizer=optimizer).final
            for decoder in ("plain", "full")
        ]
        for own, whole in zip(both[0].weights, both[1].weights, strict=True):
            np.testing.assert_allclose(own, whole, rtol=1e-4, atol=1e-6)
    both = [sgd(bags, **{**STEPS, "length": None}, init=start, decoder=decoder).final for decoder in ("plain", "full")]
    for own, whole in zip(both[0].weights, both[1].weights, strict=True):
        np.testing.assert_allclose(own, whole, rtol=1e-9, atol=1e-11)


@settings(max_examples=4, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from([None, 2, 5, 30]),
    st.sampled_from([1, 3, 8]),
    st.booleans(),
    st.sampled_from(["float64", "float32"]),
    SEEDS,
)
def test_steps_in_public_names_are_those_of_sgd(length, batch_size, replacement, dtype, seed):
    """The batches that a step is given are those that the kernels are given, whatever their length."""
    register_field(Field("plain", plain, step=plain))
    rng = np.random.default_rng(1)
    classes = SequenceClasses(rng.dirichlet(np.ones(6), 4), [0, 0, 1, 1], vocab_size=7)
    given = {**STEPS, "length": length, "batch_size": batch_size, "replacement": replacement, "dtype": dtype}
    own, whole = (sgd(classes, **{**given, "seed": seed}, decoder=decoder) for decoder in ("plain", "full"))
    close = {"rtol": 1e-9, "atol": 1e-11} if dtype == "float64" else {"rtol": 1e-3, "atol": 1e-5}
    np.testing.assert_allclose(own.final.Y, whole.final.Y, **close)
    np.testing.assert_allclose(own.final.Z, whole.final.Z, **close)
    np.testing.assert_allclose(own.dataset["batch_loss"], whole.dataset["batch_loss"], **close)


def test_steps_on_distributions_and_in_many_runs():
    register_field(Field("plain", plain, step=plain))
    rng = np.random.default_rng(2)
    bags = Bags.from_dense([0, 0, 1], rng.dirichlet(np.ones(3), 3), rng.integers(0, 3, (3, 4)) + np.eye(3, 4))
    arguments = {**STEPS, "length": None, "optimizer": Optimizer("adamw", clip=0.1), "momentum": 0.9}
    own, whole = (sgd(bags, **arguments, decoder=decoder).final for decoder in ("plain", "full"))
    np.testing.assert_allclose(own.Y, whole.Y, rtol=1e-8, atol=1e-10)
    (many,) = sgd_many([(bags, {**arguments, "decoder": "plain"})], threads=2)
    np.testing.assert_array_equal(many.layer.Y, own.Y)


def test_sgd_climbs_a_step_that_inverts_as_lemma_3_does():
    register_blends(1.0)
    given = {**STEPS, "length": None}
    own, whole = (sgd(CLASSES, **given, decoder=decoder) for decoder in ("blend 1.0", "modified"))
    np.testing.assert_allclose(own.final.Y, whole.final.Y, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(own.dataset["loss"], whole.dataset["loss"], rtol=1e-9)
    with pytest.raises(ValueError, match=r"`length` must be None for decoder='blend 1.0', whose features"):
        sgd(CLASSES, **STEPS, length=16, decoder="blend 1.0")


def test_a_run_that_leaves_the_numbers_is_no_run_of_another_field():
    def away(layer, bags):
        return {"Z": layer.Z, "Y": np.full_like(layer.Y, 1e308)}

    register_field(Field("away", away, step=away))
    with pytest.raises(DivergenceError, match="no longer finite"):
        sgd(CLASSES, **STEPS, decoder="away")


def test_a_step_too_far_is_taken_back():
    """Trial steps overshoot into numbers that no layer takes: the integrator has to see that, and not an error."""
    register_field(Field("plain", plain))
    given = {"eta_y": 1e6, "eta_z": 1e6, "t_end": 1.0, "rtol": 1e-4, "n_times": 2}
    own, whole = (
        gradient_flow(CLASSES, **given, decoder=name, solver=Solver(reduce="none")) for name in ("plain", "full")
    )
    np.testing.assert_allclose(own.final.Z, whole.final.Z, rtol=1e-2)


def test_ensembles_take_a_sequence_and_refuse_what_needs_lanes():
    register_field(Field("tilted", tilted))
    rng = np.random.default_rng(4)
    other = SequenceClasses(rng.dirichlet(np.ones(4), 3), [0, 0, 1])
    ends = {"t_end": 4.0, "times": [1.0, 4.0], "decoder": "tilted"}
    found = gradient_flow_ensemble([(CLASSES, 0.7, 0.3), (other, 0.2, 0.4)], **ends)
    assert not found["failed"].any()
    for i, (data, eta_y, eta_z) in enumerate([(CLASSES, 0.7, 0.3), (other, 0.2, 0.4)]):
        flow = gradient_flow(data, eta_y=eta_y, eta_z=eta_z, **ends)
        np.testing.assert_allclose(found["loss"][i], flow.dataset["loss"], rtol=1e-5)
    settings = {"n_classes": 3, "vocab_size": 20, "eta_y": 1.0, "eta_z": 0.5}
    with pytest.raises(ValueError, match=r"`decoder` must have lanes .*sequence.*, as 'full' or .*, but got 'tilted'"):
        gradient_flow_ensemble(settings, t_end=1.0, decoder="tilted")
    with pytest.raises(ValueError, match="`gradient of decoder 'half'` must return a mapping"):
        register_field(Field("half", lambda layer, bags: {"Z": layer.Z}))
        gradient_flow_ensemble([(CLASSES, 0.7, 0.3)], t_end=1.0, decoder="half")


def test_a_population_whose_features_depend_on_each_other_is_refused_if_they_are_inverted():
    register_blends(0.5)
    twice = SequenceClasses([[0.5, 0.5], [0.5, 0.5]], [0, 0])
    for call in (
        lambda: gradient_flow(twice, **RATES, t_end=1.0, decoder="blend 0.5"),
        lambda: sgd(twice, **STEPS, length=None, decoder="blend 0.5"),
    ):
        with pytest.raises(ValueError, match="`data` must have linearly independent features f_n for decoder='blend"):
            call()
    marked = gradient_flow_ensemble([(twice, 0.7, 0.3)], t_end=1.0, decoder="blend 0.5")
    assert marked["failed"].all()


def test_files_say_where_a_field_came_from(tmp_path):
    register_blends(0.5)
    made = gradient_flow(CLASSES, **RATES, t_end=0.5, n_times=2, decoder="blend 0.5")
    made.save(tmp_path / "run.nc")
    found = Trajectory.load(tmp_path / "run.nc")
    assert found.parameters["decoder"] == "blend 0.5"
    assert found.parameters["field"]["module"] == "own_fields"
    assert len(found.parameters["field"]["sha256"]) == 64
    assert found.dataset.identical(made.dataset)
    np.testing.assert_array_equal(found.call.make().final.Y, made.final.Y)
    stepped = sgd(CLASSES, **STEPS, length=None, decoder="blend 0.5")
    assert stepped.parameters["field"] == made.parameters["field"]


def test_another_number_or_another_function_is_other_code():
    half, third = (Field("blend", partial(blend, share=share)).origin for share in (1 / 2, 1 / 3))
    assert half == Field("other", partial(blend, share=1 / 2)).origin
    assert half["sha256"] == third["sha256"] and half["functions"] != third["functions"]

    def made(factor):
        space: dict = {"__name__": "somewhere"}
        exec(f"def field(layer, bags):\n    return [{factor} * z for z in layer.Z]", space)
        return Field("made", space["field"]).origin

    assert made(2) == made(2) != made(3)


class Scaled:
    """A field with a number of its own, as an object."""

    def __init__(self, share):
        self.share = share

    def __call__(self, layer, bags):
        slope = layer.gradient(bags)
        return {"Z": slope.Z, "Y": self.share * slope.Y}


def test_a_field_that_is_changed_in_place_is_another():
    direction = Scaled(0.5)
    field = Field("changed", direction)
    before = field.origin
    assert field.origin == before
    direction.share = 0.7
    assert field.origin != before


WRONG = [
    ({"Z": 1}, "return a mapping with an array for each of Z, Y, but got Z"),
    ({"Z": 1, "Y": 1, "V": 1}, "return a mapping with an array for each of Z, Y, but got Z, Y, V"),
    (3, "return a mapping with an array for each of Z, Y, but got 3"),
    ({"Z": np.zeros(2), "Y": 0}, r"return numbers of shape \(1, 10\) for Z, but got shape \(2,\)"),
    ({"Z": np.zeros((1, 10), complex), "Y": 0}, r"return numbers of shape \(1, 10\) for Z, but got .* complex128"),
    ({"Z": [["a"] * 10], "Y": 0}, r"return numbers of shape \(1, 10\) for Z"),
]


@pytest.mark.parametrize(("returned", "message"), WRONG)
def test_what_a_direction_must_return(returned, message):
    register_field(Field("wrong", lambda layer, bags: returned, step=lambda layer, bags: returned))
    for what, call in (
        ("gradient", lambda: gradient_flow(CLASSES, **RATES, t_end=1.0, decoder="wrong")),
        ("step", lambda: sgd(CLASSES, **STEPS, decoder="wrong")),
    ):
        with pytest.raises(ValueError, match=f"`{what} of decoder 'wrong'` must {message}"):
            call()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": Objective("squared")}, "`criterion` must be left out for decoder='tilted'"),
        ({"objective": Objective(label_smoothing=0.1)}, "`label_smoothing` must be left out for decoder='tilted'"),
        (
            {"objective": Objective(contrast=CLASSES.population(), contrast_weight=1.0)},
            "`contrast` must be left out for decoder='tilted'",
        ),
    ],
)
def test_an_objective_that_a_direction_does_not_have_is_refused(options, message):
    register_field(Field("tilted", tilted, step=tilted))
    for call in (
        lambda: gradient_flow(CLASSES, **RATES, t_end=1.0, decoder="tilted", **options),
        lambda: sgd(CLASSES, **{**STEPS, "length": None}, decoder="tilted", **options),
    ):
        with pytest.raises(ValueError, match=message):
            call()


def test_two_modules_cannot_have_one_name():
    def stranger(layer, bags):
        return layer.gradient(bags)

    register_field(Field("mine", plain))
    register_field(Field("mine", tilted))  # of the same module, as when a cell runs again
    stranger.__module__ = "another"
    with pytest.raises(ValueError, match="`name` must be another than that of a field of the module own_fields"):
        register_field(Field("mine", stranger))
    assert "mine" in fields() and fields()["mine"] == ("derivative",)


class Offered:
    """An entry point of an installed distribution."""

    dist = None

    def __init__(self, name, value):
        self.name, self.value, self._found = name, "offered:field", value

    def load(self):
        if isinstance(self._found, BaseException):
            raise self._found
        return self._found


def test_an_installed_distribution_offers_a_field_by_name(monkeypatch):
    field = Field("tilted", tilted)
    offers = {
        "tilted": field,
        "broken": ImportError("no module named nowhere"),
        "nothing": 3,
        "renamed": Field("other", plain),
    }

    def points(*, group="", name=None):
        here = group == "yzflow.fields" and name in offers
        return [Offered(name, offers[name])] if here else metadata.EntryPoints()

    monkeypatch.setattr(metadata, "entry_points", points)
    flow = gradient_flow(CLASSES, **RATES, t_end=2.0, decoder="tilted")
    np.testing.assert_allclose(flow.final.Y, known([2.0])[1][-1], rtol=1e-6)
    given = {**RATES, "t_end": 1.0}
    with pytest.raises(ValueError, match=r"can be imported, but got 'broken' of the distribution .*no module named"):
        gradient_flow(CLASSES, **given, decoder="broken")
    for name in ("nothing", "renamed"):
        with pytest.raises(ValueError, match=f"`decoder` must be a Field of this name, but got .* for '{name}'"):
            gradient_flow(CLASSES, **given, decoder=name)


EVERYWHERE = {
    "gradient_flow": lambda name: gradient_flow(CLASSES, **RATES, t_end=1.0, decoder=name),
    "sgd": lambda name: sgd(CLASSES, **STEPS, decoder=name),
    "sgd_many": lambda name: sgd_many([(CLASSES, {**STEPS, "decoder": name})]),
    "ensemble": lambda name: gradient_flow_ensemble([(CLASSES, 1.0, 1.0)], t_end=1.0, decoder=name),
    "grid": lambda name: gradient_flow_ensemble(
        {"n_classes": 3, "vocab_size": 9, "eta_y": 1.0, "eta_z": 1.0}, t_end=1.0, decoder=name
    ),
    "stochastic_flow": lambda name: stochastic_flow(CLASSES, **RATES, t_end=1.0, batch_size=4, decoder=name),
    "gradient_noise": lambda name: gradient_noise(CLASSES, batch_size=4, length=9, decoder=name),
    "linear_noise": lambda name: linear_noise(CLASSES, **RATES, steps=[1], decoder=name),
    "enclose_flow": lambda name: enclose_flow(CLASSES, **RATES, t_end=1.0, decoder=name),
}


LACKS = {
    "sgd": "have a step of SGD, as 'full' or 'modified'",
    "sgd_many": "have a step of SGD, as 'full' or 'modified'",
    "grid": "have lanes for a mapping of settings",
    "stochastic_flow": "have noise of mini-batches, as 'full' or 'modified' or 'theory'",
    "gradient_noise": "have noise of mini-batches",
    "linear_noise": "have noise of mini-batches",
    "enclose_flow": "be one of 'full', 'modified', 'theory'",
}


@pytest.mark.parametrize("call", LACKS)
def test_what_a_field_lacks_is_said(call):
    register_field(Field("tilted", tilted))
    with pytest.raises(ValueError, match=f"`decoder` must {LACKS[call]}.*, but got 'tilted'"):
        EVERYWHERE[call]("tilted")


def test_of_many_fields_an_error_has_the_nearest():
    register_blends(*(k / 16 for k in range(1, 12)))
    with pytest.raises(ValueError, match=r'`decoder` must be one of 14 names, such as "modified", .*, but got'):
        gradient_flow(CLASSES, **RATES, t_end=1.0, decoder="modifier")


def test_an_optimizer_without_a_step_is_refused_by_sgd(monkeypatch):
    monkeypatch.setitem(RULES, "cubes", UpdateRule(None, lambda optimizer, direction: direction**3))
    cubes = Optimizer("cubes", momentum=0.0)
    gradient_flow(CLASSES, **RATES, t_end=1.0, optimizer=cubes)
    for call in (
        lambda: sgd(CLASSES, **{**STEPS, "momentum": 0.9}, optimizer=cubes),
        lambda: sgd_many([(CLASSES, {**STEPS, "momentum": 0.9, "optimizer": cubes})]),
    ):
        with pytest.raises(ValueError, match=r"`optimizer` must have a step, as 'sgd' or .*, but got 'cubes'"):
            call()


def one_column_a_class(layer, bags):
    """Lemma 1's decoder gradient of a softmax over columns, as if each were one next token."""
    f = layer.features(bags)
    odds = np.exp(f @ layer.Y)
    pushed = bags.weight[:, None] * (np.eye(layer.Y.shape[1])[bags.target] - odds / odds.sum(axis=1, keepdims=True))
    return {"Z": layer.gradient(bags).Z, "Y": f.T @ pushed}


@pytest.mark.parametrize("what", ["gradient", "step"])
def test_a_direction_that_ignores_multiplicity_is_refused_at_the_start(what):
    """One column stands for all next tokens that never occur; at `Layer.expand` the same function is right."""
    register_field(Field("columns", one_column_a_class, step=one_column_a_class))
    call = {
        "gradient": lambda **start: gradient_flow(CLASSES, **RATES, t_end=1.0, decoder="columns", **start),
        "step": lambda **start: sgd(CLASSES, **{**STEPS, "length": None}, decoder="columns", **start),
    }[what]
    with pytest.raises(ValueError, match=rf"`{what} of decoder 'columns'` must move column j .*another direction of Y"):
        call()
    whole = Layer.zeros(CLASSES.population()).expand()
    own = call(init=whole).final.expand()
    register_field(Field("plain", plain, step=plain))
    if what == "gradient":
        known = gradient_flow(CLASSES, **RATES, t_end=1.0, init=whole).final
        np.testing.assert_allclose(own.Y, known.Y, atol=1e-7)


def test_a_direction_that_draws_has_no_flow():
    rng = np.random.default_rng(0)

    def drawn(layer, bags):
        slope = layer.gradient(bags)
        return {"Z": slope.Z, "Y": slope.Y * (1 + 1e-6 * rng.standard_normal(slope.Y.shape))}

    register_field(Field("drawn", drawn, step=drawn))
    with pytest.raises(ValueError, match=r"`gradient of decoder 'drawn'` must return the same numbers .* second call"):
        gradient_flow(CLASSES, **RATES, t_end=1.0, decoder="drawn")
    sgd(CLASSES, **{**STEPS, "length": None}, decoder="drawn")  # a step may draw
