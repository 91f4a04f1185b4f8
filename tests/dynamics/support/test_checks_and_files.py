"""Bad input and bad files: one clear error each, with the argument's name, the rule and the value."""

import os
import re
import stat

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from dynamics import Bags, Layer, Objective, Optimizer, SequenceClasses, Solver, gradient_flow, sgd
from dynamics.support import checks, files
from dynamics.support.files import replacing


def refuses(name, value=None):
    """Expects the grammar of `dynamics.support.checks` for the argument ``name``, with ``value`` in the message."""
    shown = "" if value is None else ".*" + re.escape(str(value))
    return pytest.raises(ValueError, match=rf"(?s)^`{name}` must .*, but got {shown}")


CLASSES = SequenceClasses.single_common_token(3, 20)
# Of numpy's times the spans are integers to `isinstance`, and both become integers by `item`.
TIMES = [np.timedelta64(5), np.timedelta64(5, "ns"), np.datetime64(5, "ns")]
NOT_NUMBERS = ["1", None, True, 1j, [1.0], np.array([1.0]), object(), *TIMES]

# Gradient flow


@pytest.mark.parametrize("name", ["t_end", "rtol", "atol"])
def test_times_and_tolerances_are_not_zero(name):  # a rate of zero freezes
    with refuses(name, 0):
        gradient_flow(CLASSES, **({"eta_y": 1.0, "eta_z": 1.0, "t_end": 1.0} | {name: 0}))


@pytest.mark.parametrize("name", ["eta_y", "eta_z", "t_end", "rtol", "atol"])
@pytest.mark.parametrize("value", [-0.5, np.nan, np.inf, -np.inf, 10**400, *NOT_NUMBERS])
def test_rates_times_and_tolerances_are_positive_numbers(name, value):
    with refuses(name):
        gradient_flow(CLASSES, **({"eta_y": 1.0, "eta_z": 1.0, "t_end": 1.0} | {name: value}))


def test_the_message_holds_name_rule_and_value():
    with pytest.raises(ValueError, match=r"^`eta_y` must be positive, but got -0\.5$"):
        gradient_flow(CLASSES, eta_y=-0.5, eta_z=1.0, t_end=1.0)


@pytest.mark.parametrize("time", TIMES)
@pytest.mark.parametrize(
    "check",
    [
        lambda value: checks.real("a", value),
        lambda value: checks.integer("a", value, minimum=0),
        lambda value: checks.flag("a", value),
        lambda value: checks.generator("a", value),
        lambda value: checks.finite_array("a", value),
        lambda value: checks.integer_array("a", value),
        lambda value: checks.index_array("a", [value]),
    ],
)
def test_times_are_no_numbers(check, time):
    for value in (time, np.array(time)):
        with refuses("a"):
            check(value)


@pytest.mark.parametrize("time", TIMES)
def test_times_stay_what_they_are_in_plain_types(time):
    assert checks.plain_types(time) is time
    assert checks.plain_types(np.array([time])).dtype.kind in "mM"
    assert checks.plain_types(np.float32(0.5)) == 0.5 and checks.plain_types(np.arange(2)) == [0, 1]


@pytest.mark.parametrize("value", [10**5000, -(10**5000)], ids=["above", "below"])
def test_integers_that_python_does_not_write_are_refused_in_words(value):
    for check in (checks.real, checks.positive, checks.flag):
        with refuses("a"):
            check("a", value)
    with refuses("a", "an integer of thousands of digits"):
        checks.integer("a", value, minimum=0)


@given(st.floats(max_value=0, exclude_max=True) | st.just(np.nan) | st.just(np.inf))
def test_no_bad_number_passes_as_a_rate(value):
    with refuses("eta_z"):
        gradient_flow(CLASSES, eta_y=1.0, eta_z=value, t_end=1.0)


BAD_FLOW = [
    ("decoder", {"decoder": "exact"}, "'exact'"),
    ("decoder", {"decoder": None}, "None"),
    ("decoder", {"decoder": ["full"]}, "'full'"),
    ("solver", {"solver": "Euler"}, "str"),
    ("objective", {"objective": "squared"}, "str"),
    ("times", {"times": []}, None),
    ("times", {"times": [0.0, 2.0, 1.0]}, "1.0 after 2.0"),
    ("times", {"times": [0.0, 1.0, 1.0]}, "1.0 after 1.0"),
    ("times", {"times": [0.0, 5.1]}, "5.1"),
    ("times", {"times": [-1.0, 1.0]}, "-1.0"),
    ("times", {"times": [0.0, np.nan]}, "nan at index 1"),
    ("times", {"times": [0.0, np.inf]}, "inf at index 1"),
    ("times", {"times": 3.0}, "shape ()"),
    ("times", {"times": [[1.0]]}, "shape (1, 1)"),
    ("times", {"times": ["1"]}, None),
    ("times", {"times": [1j]}, None),
    ("times", {"times": [[1.0], [1.0, 2.0]]}, None),
    ("n_times", {"n_times": 1}, "1"),
    ("n_times", {"n_times": 2.5}, "2.5"),
    ("n_times", {"n_times": True}, "True"),
    ("n_times", {"n_times": None}, "None"),
    ("init", {"init": "zero"}, "str"),
    ("init", {"init": np.zeros((1, 16))}, "ndarray"),
    ("eta_v", {"eta_v": 1.0}, "1.0"),
    ("init", {"init": Layer(np.zeros((2, 16)), np.zeros((16, 20)))}, "2"),
    ("data", {"init": Layer(np.zeros((1, 15)), np.zeros((15, 20)))}, "16"),
    ("data", {"init": Layer(np.zeros((1, 16)), np.zeros((16, 19)))}, "20"),
    ("multiplicity", {"init": Layer(np.zeros((1, 16)), np.zeros((16, 3)), None, [1, 1, 18])}, "[1, 1, 18] for 3"),
    ("init", {"decoder": "theory", "init": Layer(np.zeros((1, 16)), np.ones((16, 20)))}, "<Layer"),
]


@pytest.mark.parametrize(("name", "change", "value"), BAD_FLOW)
def test_gradient_flow_refuses(name, change, value):
    with refuses(name, value):
        gradient_flow(CLASSES, **({"eta_y": 1.0, "eta_z": 1.0, "t_end": 5.0} | change))


BAD_VALUES = [
    (Solver, "method", "Euler"),
    (Solver, "time_scale", "sqrt"),
    (Solver, "reduce", "always"),
    (Solver, "reduce", None),
    (Objective, "criterion", "hinge"),
    (Objective, "contrast", [1]),
    (Objective, "contrast_weight", 0.5),
    (Objective, "contrast_weight", -1),
    (Optimizer, "momentum", 1.0),
    (Optimizer, "momentum", -0.1),
]


@pytest.mark.parametrize(("kind", "name", "value"), BAD_VALUES)
def test_values_that_group_options_refuse(kind, name, value):
    with refuses(name, None if isinstance(value, list) else value if not isinstance(value, str) else repr(value)):
        kind(**{name: value})


def test_optimizers_have_names():
    with refuses("optimizer", "'adagrad'"):
        Optimizer("adagrad")


@pytest.mark.slow
def test_momentum_stands_in_one_place():
    """Beside an Optimizer, which has its own, an argument that says something else is refused."""
    arguments = {"eta_y": 1.0, "eta_z": 1.0, "steps": 2, "batch_size": 4, "length": 5}
    one = sgd(CLASSES, **arguments, momentum=0.5)
    other = sgd(CLASSES, **arguments, optimizer=Optimizer("sgd", momentum=0.5))
    np.testing.assert_array_equal(one.dataset["y"], other.dataset["y"])
    assert one.parameters == other.parameters and one.parameters["momentum"] == 0.5
    with refuses("momentum", 0.3):
        sgd(CLASSES, **arguments, momentum=0.3, optimizer=Optimizer("sgd", momentum=0.5))


@pytest.mark.parametrize("data", [3, None, "bags", np.zeros((3, 4)), [1, 2], {}])
def test_data_of_the_wrong_type(data):
    with refuses("data", type(data).__name__):
        gradient_flow(data, eta_y=1.0, eta_z=1.0, t_end=1.0)


def test_population_of_the_wrong_type():
    class Other:
        def population(self):
            return [1, 2]

    with refuses("data", "Other"):
        gradient_flow(Other(), eta_y=1.0, eta_z=1.0, t_end=1.0)


@pytest.mark.parametrize("decoder", ["modified", "theory"])
@pytest.mark.parametrize(
    "table",
    [
        [[0.5, 0.5, 0], [0.5, 0.5, 0]],
        [[1, 0], [0, 1], [0.5, 0.5]],
    ],
)
def test_dependent_features(decoder, table):
    """Two equal classes, and more classes than tokens; the full flow has no inverse to take."""
    classes = SequenceClasses(table, [0] * len(table))
    options = {"eta_y": 1.0, "eta_z": 1.0, "t_end": 1.0}
    with refuses("data", "a smallest eigenvalue of"):
        gradient_flow(classes, decoder=decoder, **options)
    gradient_flow(classes, decoder="full", **options)


@pytest.mark.parametrize("decoder", ["modified", "theory"])
def test_values_need_the_full_decoder(decoder):
    layer = Layer(np.zeros((1, 16)), np.zeros((2, 20)), np.ones((16, 2)))
    with refuses("init", "<Layer"):
        gradient_flow(CLASSES, eta_y=1.0, eta_z=1.0, t_end=1.0, decoder=decoder, init=layer)


def test_theory_needs_hard_targets():
    data = Bags.from_dense([0, 0], [[1, 0], [0.5, 0.5]], [[1, 0], [0, 1]])
    with refuses("data", "distributions"):
        gradient_flow(data, eta_y=1.0, eta_z=1.0, t_end=1.0, decoder="theory")


def test_t_end_lies_after_the_start():
    trajectory = gradient_flow(CLASSES, eta_y=1.0, eta_z=1.0, t_end=5.0, n_times=2)
    with refuses("t_end", "5.0"):
        gradient_flow(CLASSES, eta_y=1.0, eta_z=1.0, t_end=5.0, init=trajectory)
    with refuses("times", "4.0"):
        gradient_flow(CLASSES, eta_y=1.0, eta_z=1.0, t_end=6.0, times=[4.0, 6.0], init=trajectory)


@pytest.mark.slow
def test_theory_continues_only_with_an_h_for_each_bag():
    """Bags.concatenate([..]) of fewer classes fits the layer, but not the state of the theory flow."""
    trajectory = gradient_flow(CLASSES, eta_y=1.0, eta_z=1.0, t_end=1.0, n_times=2, decoder="theory")
    population = CLASSES.population()
    fewer = Bags(
        population.query[:2], population.target[:2], population.indptr[:3], population.token[:12], population.count[:12]
    )
    with refuses("init", "3"):
        gradient_flow(fewer, eta_y=1.0, eta_z=1.0, t_end=2.0, decoder="theory", init=trajectory)


# Sequence classes

GOOD = np.array([[0.5, 0.5, 0.0], [0.25, 0.0, 0.75]])

BAD_PROBABILITIES = [
    ([[0.5, 0.6, -0.1], [1, 0, 0]], "-0.1 at index (0, 2)"),
    ([[0.5, np.nan, 0.5], [1, 0, 0]], "nan at index (0, 1)"),
    ([[1, 0, 0], [np.inf, 0, 0]], "inf at index (1, 0)"),
    ([[1, 0, 0], [0.5, 0.4, 0]], "0.9 in row 1"),
    ([[1, 0, 0], [0, 0, 0]], "0.0 in row 1"),
    ([[1.0, 0.0]], "shape (1, 2)"),
    ([1.0, 0.0], "shape (2,)"),
    ([], "shape (0,)"),
    ([[], []], "0.0 in row 0"),
    ([[1], [0, 1]], None),
    ("probabilities", None),
    (None, "None"),
    ([["1", "0"], ["0", "1"]], None),
    ([[1j, 0], [0, 1]], None),
    (scipy.sparse.csr_array([[1.0, 0], [2, -1]]), "-1.0"),
    (scipy.sparse.csr_array([[1.0, 0], [np.nan, 1]]), "nan"),
    (scipy.sparse.csr_array([[1.0, 0], [0, 0.5]]), "0.5 in row 1"),
    (scipy.sparse.csr_array([[1 + 1j, 0], [0, 1]]), None),
]


@pytest.mark.parametrize(("table", "value"), BAD_PROBABILITIES)
def test_probabilities(table, value):
    with refuses("probabilities", value):
        SequenceClasses(table, [0, 0])


@given(
    st.lists(st.floats(0, 10), min_size=2, max_size=5),
    st.sampled_from([np.nan, np.inf, -np.inf, -1e-300, -1.0]),
    st.integers(0, 4),
    st.booleans(),
)
def test_no_bad_probability_passes(row, bad, place, sparse):
    row = [*row]
    row[place % len(row)] = bad
    table = np.array([row, np.eye(len(row))[0]])
    with refuses("probabilities"):
        SequenceClasses(scipy.sparse.csr_array(table) if sparse else table, [0, 0])


@pytest.mark.parametrize(
    ("name", "arguments", "value"),
    [
        ("query", {"query": [0, 3]}, "3 at index 1"),
        ("query", {"query": [-1, 0]}, "-1 at index 0"),
        ("query", {"query": [0, 0, 0]}, "3"),
        ("query", {"query": [0.0, 1.0]}, "float64"),
        ("query", {"query": [True, False]}, "bool"),
        ("query", {"query": ["0", "1"]}, "dtype"),
        ("query", {"query": None}, "shape ()"),
        ("query", {"query": [[0, 1]]}, "shape (1, 2)"),
        ("query", {"query": [[0], [1, 2]]}, None),
        ("vocab_size", {"vocab_size": 1}, "1"),
        ("vocab_size", {"vocab_size": 2.0}, "2.0"),
        ("vocab_size", {"vocab_size": True}, "True"),
        ("vocab_size", {"vocab_size": "9"}, "'9'"),
        ("class_weights", {"class_weights": [0.5, 0.4]}, "0.9"),
        ("class_weights", {"class_weights": [1.0, 0.0]}, "0.0"),
        ("class_weights", {"class_weights": [1.5, -0.5]}, "-0.5"),
        ("class_weights", {"class_weights": [1.0]}, "1"),
        ("class_weights", {"class_weights": [np.nan, 1.0]}, "nan at index 0"),
        ("class_weights", {"class_weights": "uniform"}, "'uniform'"),
    ],
)
def test_sequence_classes_refuse(name, arguments, value):
    with refuses(name, value):
        SequenceClasses(GOOD, **({"query": [0, 1]} | arguments))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("n", lambda: CLASSES.sample(0, length=5, rng=0)),
        ("n", lambda: CLASSES.sample(2.0, length=5, rng=0)),
        ("length", lambda: CLASSES.sample(3, length=1, rng=0)),
        ("length", lambda: CLASSES.sample(3, length=None, rng=0)),
        ("n", lambda: CLASSES.distinct_tokens(3)),
        ("n", lambda: CLASSES.distinct_tokens(-1)),
        ("n_queries", lambda: SequenceClasses.syn_medium(0)),
        ("n_queries", lambda: SequenceClasses.syn_medium("3")),
        ("n_classes", lambda: SequenceClasses.single_common_token(1, 5)),
        ("vocab_size", lambda: SequenceClasses.single_common_token(3, 2)),
        ("common", lambda: SequenceClasses.single_common_token(3, 5, common=0)),
        ("common", lambda: SequenceClasses.single_common_token(3, 5, common=np.nan)),
        ("distinct", lambda: SequenceClasses.single_common_token(3, 5, distinct=[])),
        ("distinct", lambda: SequenceClasses.single_common_token(3, 5, distinct=[1.0, 0.0])),
        ("distinct", lambda: SequenceClasses.single_common_token(3, 5, distinct=1.0)),
    ],
)
def test_methods_of_sequence_classes_refuse(name, call):
    with refuses(name):
        call()


# Bags

BAG = {"query": [0, 1], "target": [0, 1], "indptr": [0, 2, 3], "token": [0, 2, 1], "count": [1.0, 2.0, 1.0]}


@pytest.mark.parametrize(
    ("name", "change", "value"),
    [
        ("query", {"query": [], "target": [], "indptr": [0], "token": [], "count": []}, "an empty array"),
        ("query", {"query": [0, -1]}, "-1 at index 1"),
        ("query", {"query": [0.5, 1]}, "float64"),
        ("query", {"query": [True, False]}, "bool"),
        ("query", {"query": [[0], [0, 1]]}, None),
        ("target", {"target": [0]}, "1"),
        ("target", {"target": [0, -2]}, "-2 at index 1"),
        ("target", {"target": [0.0, 1.0]}, "float64"),
        ("target", {"target": [[0.5, 0.4], [0, 1]]}, "0.9 in row 0"),
        ("target", {"target": [[1.5, -0.5], [0, 1]]}, "-0.5 at index (0, 1)"),
        ("target", {"target": [[np.nan, 1], [0, 1]]}, "nan at index (0, 0)"),
        ("target", {"target": [[], []]}, "shape (2, 0)"),
        ("target", {"target": [[1.0]]}, "1"),
        ("indptr", {"indptr": [0, 3]}, "2"),
        ("indptr", {"indptr": [1, 2, 3]}, "1 to 3"),
        ("indptr", {"indptr": [0, 2, 4]}, "0 to 4"),
        ("token", {"token": [2, 0, 1]}, "bag 0"),
        ("token", {"token": [2, 2, 1]}, "bag 0"),
        ("token", {"indptr": [0, 1, 3], "token": [0, 2, 1]}, "bag 1"),
        ("token", {"token": [-1, 2, 1]}, "-1 at index 0"),
        ("token", {"token": [0.0, 2, 1]}, "float64"),
        ("count", {"count": [1.0, 0.0, 1.0]}, "0.0 at index 1"),
        ("count", {"count": [1.0, -1.0, 1.0]}, "-1.0 at index 1"),
        ("count", {"count": [1.0, np.nan, 1.0]}, "nan at index 1"),
        ("count", {"count": [1.0, np.inf, 1.0]}, "inf at index 1"),
        ("count", {"count": [1.0]}, "1"),
        ("count", {"count": [[1.0, 2.0, 1.0]]}, "shape (1, 3)"),
        ("count", {"count": ["1", "2", "1"]}, None),
        ("count", {"count": None}, "None"),
        ("count", {"count": [1j, 1, 1]}, None),
        ("weight", {"weight": [0.5, 0.4]}, "0.9"),
        ("weight", {"weight": [1.5, -0.5]}, "-0.5 at index 1"),
        ("weight", {"weight": [1.0]}, "1"),
        ("weight", {"weight": [np.nan, 1.0]}, "nan at index 0"),
        ("n_queries", {"n_queries": 1}, "1"),
        ("n_tokens", {"n_tokens": 2}, "2"),
        ("vocab_size", {"vocab_size": 1}, "1"),
        ("vocab_size", {"vocab_size": 2.5}, "2.5"),
    ],
)
def test_bags_refuse(name, change, value):
    with refuses(name, value):
        Bags(**(BAG | change))


@pytest.mark.parametrize(
    ("name", "call"),
    [
        ("counts", lambda: Bags.from_dense([0], [0], [[1, -1]])),
        ("counts", lambda: Bags.from_dense([0], [0], [1, 1])),
        ("parts", lambda: Bags.concatenate([])),
        ("parts", lambda: Bags.concatenate([Bags(**BAG), Bags(**(BAG | {"target": np.eye(2)}))])),
        ("shares", lambda: Bags.concatenate([Bags(**BAG)] * 2, [1.0])),
        ("shares", lambda: Bags.concatenate([Bags(**BAG)] * 2, [0.0, 0.0])),
        ("shares", lambda: Bags.concatenate([Bags(**BAG)] * 2, [1.0, -1.0])),
    ],
)
def test_builders_of_bags_refuse(name, call):
    with refuses(name):
        call()


@pytest.mark.parametrize(
    ("bag", "call"),
    [
        (1, lambda: Bags(**(BAG | {"indptr": [0, 3, 3]}))),
        (0, lambda: Bags.from_dense([0, 0], [0, 0], [[0, 0], [1, 1]])),
    ],
)
def test_a_bag_without_tokens_is_named(bag, call):
    with pytest.raises(ValueError, match=f"^`indptr` must give every bag at least one token, but bag {bag} has none$"):
        call()


# Layers


@pytest.mark.parametrize(
    ("name", "arguments", "value"),
    [
        ("Z", ([[np.nan]], [[1.0]]), "nan at index (0, 0)"),
        ("Z", ([1.0], [[1.0]]), "shape (1,)"),
        ("Z", (np.zeros((0, 2)), np.zeros((2, 2))), "shape (0, 2)"),
        ("Z", ("Z", [[1.0]]), "'Z'"),
        ("Z", (None, [[1.0]]), "None"),
        ("Y", ([[1.0]], [[1j]]), None),
        ("Y", ([[1.0]], [[np.inf]]), "inf at index (0, 0)"),
        ("Y", ([[1.0, 2.0]], [[1.0]]), "shape (1, 1)"),
        ("V", ([[1.0]], [[1.0]], [[1.0], [1.0]]), "shape (2, 1)"),
        ("Y", ([[1.0]], [[1.0]], [[1.0, 1.0]]), "shape (1, 1)"),
        ("multiplicity", ([[1.0]], [[1.0, 2.0]], None, [1]), None),
        ("multiplicity", ([[1.0]], [[1.0, 2.0]], None, [1, 0]), None),
        ("multiplicity", ([[1.0]], [[1.0, 2.0]], None, [1.0, 2.0]), "float64"),
    ],
)
def test_layers_refuse(name, arguments, value):
    with refuses(name, value):
        Layer(*arguments)


@pytest.mark.parametrize("method", ["loss", "gradient", "attention", "features", "predict"])
@pytest.mark.parametrize(
    ("name", "layer"),
    [
        ("bags", Layer(np.zeros((1, 3)), np.zeros((3, 2)))),
        ("bags", Layer(np.zeros((2, 2)), np.zeros((2, 2)))),
        ("bags", Layer(np.zeros((2, 3)), np.zeros((3, 1)))),
        ("multiplicity", Layer(np.zeros((2, 3)), np.zeros((3, 1)), None, [2])),
    ],
)
def test_layers_refuse_bags_that_do_not_fit(method, name, layer):
    """An index out of range would read other memory in the compiled kernels."""
    with refuses(name):
        getattr(layer, method)(Bags(**BAG))


# The checks themselves


@given(st.integers(-5, 5), st.integers(-5, 5))
def test_integer_keeps_its_minimum(value, minimum):
    if value < minimum:
        with refuses("n", value):
            checks.integer("n", value, minimum=minimum)
    else:
        assert checks.integer("n", np.int32(value), minimum=minimum) == value


@given(st.floats(allow_nan=False, allow_infinity=False) | st.integers(-10, 10))
def test_real_keeps_finite_numbers(value):
    for number in (value, np.float64(value), np.array(value)):
        assert checks.real("x", number) == value
    if value < 0:
        with refuses("x", value):
            checks.non_negative("x", value)
    else:
        assert checks.non_negative("x", value) == value


def test_checks_copy():
    array = np.zeros(3)
    assert not np.shares_memory(checks.finite_array("x", array), array)
    index = np.arange(3)
    assert not np.shares_memory(checks.index_array("x", index), index)


def test_index_array_keeps_its_bound():
    np.testing.assert_array_equal(checks.index_array("i", [0, 3], upper=4), [0, 3])
    with refuses("i", "4 at index 1"):
        checks.index_array("i", [0, 4], upper=4)
    with refuses("i"):
        checks.index_array("i", np.array([2**63 + 1], dtype=np.uint64))


# Files


def test_load_names_a_missing_file_of_bags(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"nothing\.npz"):
        Bags.load(tmp_path / "nothing.npz")


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "bags.npz"
    Bags(**BAG).save(path)
    return path


@pytest.mark.parametrize("content", [b"", b"query,target\n0,1\n", bytes(range(256)), b"PK\x03\x04 not a zip"])
def test_load_refuses_what_are_no_bags(content, saved):
    saved.write_bytes(content)
    with pytest.raises(ValueError, match=r"^`path` must be a file of bags written by yzflow, .*bags\.npz"):
        Bags.load(saved)


def test_load_refuses_other_arrays(saved):
    np.savez(saved, query=[0])
    with refuses("path", "bags.npz"):
        Bags.load(saved)
    with open(saved, "wb") as file:
        np.save(file, np.zeros(3))
    with refuses("path", "bags.npz"):
        Bags.load(saved)


def test_load_refuses_every_truncated_file(saved):
    whole = saved.read_bytes()
    for size in range(0, len(whole), 11):
        saved.write_bytes(whole[:size])
        with refuses("path", "bags.npz"):
            Bags.load(saved)


def test_load_of_a_damaged_file_is_right_or_refused(saved):
    """Whatever byte is wrong: an error in the usual grammar, or the same bags (an unused byte)."""
    whole = saved.read_bytes()
    original = Bags.load(saved)
    refused = 0
    for place in range(0, len(whole), 5):
        damaged = bytearray(whole)
        damaged[place] ^= 0xFF
        saved.write_bytes(damaged)
        try:
            loaded = Bags.load(saved)
        except ValueError as error:
            assert str(error).startswith("`")
            refused += 1
        else:
            assert loaded.sizes == original.sizes
            np.testing.assert_array_equal(loaded.count, original.count)
            np.testing.assert_array_equal(loaded.token, original.token)
    assert refused > len(whole) / 20


@pytest.mark.parametrize("existing", [None, "precious"])
def test_replacing_leaves_no_trace_of_a_failure(tmp_path, existing):
    path = tmp_path / "result.txt"
    if existing:
        path.write_text(existing)
    with pytest.raises(KeyboardInterrupt), replacing(path) as temporary:
        assert temporary.parent == tmp_path
        assert temporary.suffix == ".txt"
        temporary.write_text("half")
        raise KeyboardInterrupt
    assert [entry.name for entry in tmp_path.iterdir()] == (["result.txt"] if existing else [])
    if existing:
        assert path.read_text() == existing


def test_replacing_replaces_with_the_permissions_of_a_new_file(tmp_path):
    path, other = tmp_path / "result.txt", tmp_path / "other.txt"
    path.write_text("old")
    with replacing(path) as temporary:
        temporary.write_text("new")
        assert path.read_text() == "old"
    other.write_text("new")
    assert path.read_text() == "new"
    assert stat.S_IMODE(os.stat(path).st_mode) == stat.S_IMODE(os.stat(other).st_mode)
    assert len(list(tmp_path.iterdir())) == 2


def test_bags_into_a_missing_folder(tmp_path):
    with pytest.raises(FileNotFoundError):
        Bags(**BAG).save(tmp_path / "missing" / "bags.npz")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("path", "inside"), [(".", ""), ("./", ""), ("..", ".."), ("sub/", "sub"), ("a/../b", "b")])
def test_the_folder_that_one_is_in_is_a_folder(tmp_path, monkeypatch, path, inside):
    monkeypatch.chdir(tmp_path)
    assert files.absolute("store", path, folder=True) == (tmp_path / inside).resolve()
    for bad in (None, 3, "", "a\0b", b"sub"):
        with pytest.raises(ValueError, match=r"`store` must be the path of a folder, but got "):
            files.absolute("store", bad, folder=True)
