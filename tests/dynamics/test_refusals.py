"""Bad values of arguments: each is refused by the argument's name, the rule and the value."""

import numpy as np
import pytest
import xarray as xr
from driving import ROOT
from hostile import Table, call_of, refused, refused_everywhere
from matplotlib.figure import Figure
from own_flows import Logistic
from rules import RULES

from dynamics import (
    Bags,
    Field,
    Layer,
    Objective,
    Optimizer,
    SequenceClasses,
    Solver,
    descend,
    gradient_flow,
    integrate,
    sgd_many,
)

TABLE = Table(["dynamics"], ROOT / "tests" / "dynamics" / "calls.py")
# Arguments with other rules than `RULES` has for the name.
OTHERWISE = {
    "bags.Bags(vocab_size)",
    "_engine.steps.Solver(momentum)",
    "support.limits.Limits(data)",
    "optimizers.optimizer.Optimizer.factor(t)",
    "optimizers.optimizer.Schedule.__call__(t)",
    "optimizers.optimizer.Schedule.clock(t)",
}
RATES = {"eta_y": 1.0, "eta_z": 1.0}
CLASSES = SequenceClasses([[0.2, 0.8, 0.0], [0.2, 0.0, 0.8]], [0, 0], vocab_size=4)
TWICE = SequenceClasses([[0.5, 0.5], [0.5, 0.5]], [0, 0], vocab_size=4)
MORE_CLASSES = SequenceClasses([[1, 0], [0, 1], [0.5, 0.5]], [0, 0, 0])
LONG = Bags.from_dense([0, 0], [0, 1], [[3.0, 1.0], [1.0, 6.0]])
ONE, SIX = Bags([0], [0], [0, 1], [0], [1.0]), Bags([0], [0], [0, 1], [5], [1.0])  # tokens
LANES = {"n_classes": 3, "vocab_size": 20, "eta_y": 1.0, "eta_z": 0.5}
VALUED = Layer(np.zeros((1, 3)), np.zeros((2, 4)), np.ones((3, 2)))
RESIDUAL = Layer(np.zeros((1, 3)), np.zeros((4, 4)), residual=True)


def zeros(n_queries, n_tokens, vocab_size, **parts):
    return Layer(np.zeros((n_queries, n_tokens)), np.zeros((n_tokens, vocab_size)), **parts)


class Column:
    """A population that is none."""

    def population(self):
        return [1, 2]


def flow_of(**members):
    """Integrate a flow with other members than it should have."""
    body = {"initial": {"x": 1.0}, "derivative": lambda self, t, state: {"x": state["x"]}, **members}
    return integrate(type("Own", (), body)(), t_end=1.0)


def fixed(value):
    return lambda self, *_: value


def labelled(dimension, values, labels=None):
    return xr.DataArray(values, dims=dimension, coords={} if labels is None else {dimension: labels})


def one_of_many(data, **arguments):
    return sgd_many([(data, arguments)])


def more_calls(table):
    """Calls beside those of the table, whose bad values need other good ones beside them."""
    sgd = {name: value for name, value in table["descent.sgd"][1].items() if name not in ("progress", "data")}
    named = {"token_names": ["the", "stray", "loyal", "", "saw"], "class_names": ["cat", "dog"]}
    words = SequenceClasses([[0.5, 0.5, 0], [0.5, 0, 0.5]], [0, 4], vocab_size=6, **named)
    flow = gradient_flow(words, **RATES, t_end=1.0, n_times=2)
    return {
        "a run of many": (one_of_many, {"data": CLASSES, **sgd}),
        "an own flow": (flow_of, {}),
        "a flow of one number": (integrate, {"flow": Logistic(), "t_end": 1.0}),
        "a descent of one number": (descend, {"flow": Logistic(), "rate": 0.1, "steps": 3}),
        "a drawn flow": (flow.plot, {"ax": Figure().subplots()}),
        "growth by names": (flow.growth_factor, {"next_token": "dog", "token": "loyal"}),
    }


def init_rows(name="init"):
    """Layers that do not fit bags of one query, three tokens and four next tokens."""
    return [
        ("data", ..., "have at most the 2 tokens of the layer", "3", {name: zeros(1, 2, 4)}),
        ("data", ..., "have at most the 1 next tokens of the layer", "4", {name: zeros(1, 3, 1)}),
    ]


SGD = [
    ("steps", 0, "at least 1"),
    ("steps", -3, "at least 1"),
    ("steps", 2.0, "an integer"),
    ("optimizer", "rmsprop", "one of 'sgd', 'adam', 'adamw', 'sign'"),
    ("init", "normal", "'zero', 'uniform' or a Layer"),
    ("init", None, "'zero', 'uniform' or a Layer"),
    ("dtype", "float16", "one of 'float64', 'float32'"),
    ("dtype", np.float32, "one of 'float64', 'float32'", "<class 'numpy.float32'>"),
    ("momentum", 0.3, "left out beside an Optimizer", None, {"optimizer": Optimizer("sgd", momentum=0.5)}),
    ("momentum", 1 - 1e-10, "below 1 in float32", None, {"dtype": "float32"}),
    ("eta_y", 1e300, "in the range of float32", None, {"dtype": "float32"}),
    ("eta_z", 1e-300, "in the range of float32", None, {"dtype": "float32"}),
    ("eta_v", 1.0, "None unless `init` has a value matrix"),
    ("eta_v", -1.0, "positive", None, {"init": VALUED}),
    ("eta_hidden", 0.1, "None unless `init` has a hidden layer"),
    ("seed", None, "an integer"),
    ("position_bias", -1, "non-negative"),
    ("position_bias", 1.0, "0 without drawn sequences, for bags have no positions", None, {"length": None}),
    ("position_bias", 0.1, "0 without drawn sequences", None, {"data": LONG, "length": 8}),
    ("position_bias", [0.1, np.nan, 0.1], "hold finite numbers", "nan at index 1"),
    ("position_bias", [[0.1], [0.1, 0.1]], "an array of numbers", "rows of different lengths"),
    ("position_bias", [0.1] * 2, "have an entry for each of the 3 contextual tokens", "2 entries"),
    ("length", 7, "hold the query and the 7 tokens of the longest bag", None, {"data": LONG}),
    ("length", ..., "None when batch_size is None, which takes the whole population", "4", {"batch_size": None}),
    ("length", ..., "None for decoder='modified', whose features f_n", "4", {"decoder": "modified"}),
    ("decoder", "theory", "have a step of SGD, as 'full' or 'modified'"),
    ("evaluate", [1], "Bags", "list"),
    *init_rows(),
    ("init", zeros(2, 3, 4), "have 1 rows of Z, one a query token", "2"),
    ("init", Layer(np.zeros((1, 3)), np.full((3, 4), 1e99)), "in the range of float32", "1e+99", {"dtype": "float32"}),
    ("init", VALUED, "consist of Z and Y for decoder='modified'", "<Layer", {"decoder": "modified", "length": None}),
    ("data", TWICE, "have linearly independent features f_n", "a smallest", {"decoder": "modified", "length": None}),
    ("criterion", ..., "left out for decoder='modified'", "'squared'",
     {"decoder": "modified", "length": None, "objective": Objective("squared")}),
    ("contrast", ..., "have at most the 3 tokens", "6", {"objective": Objective(contrast=SIX), "length": None}),
]  # fmt: skip
REFUSED = {
    "gradient_flow": [
        ("solver", "Euler", "a Solver", "'Euler'"),
        ("init", "zero", "None, a Layer or a Trajectory", "str"),
        ("init", np.zeros((1, 16)), "None, a Layer or a Trajectory", "ndarray"),
        ("eta_v", 1.0, "None unless `init` has a value matrix"),
        ("eta_hidden", 0.1, "None unless `init` has a hidden layer"),
        *init_rows(),
        ("init", zeros(2, 3, 4), "have 1 rows of Z, one a query token", "2"),
        ("multiplicity", ..., "1 for every next token that occurs", "[1, 3] for 2",
         {"init": Layer(np.zeros((1, 3)), np.zeros((3, 2)), None, [1, 3])}),
        ("init", Layer(np.zeros((1, 3)), np.ones((3, 4))), "have Y = 0 for decoder='theory'", "<Layer",
         {"decoder": "theory"}),
        *(("init", layer, f"consist of Z and Y for decoder='{decoder}'", "<Layer", {"decoder": decoder})
          for layer, decoder in ((VALUED, "modified"), (VALUED, "theory"), (RESIDUAL, "theory"))),
        *(("data", own, "have linearly independent features f_n", "a smallest eigenvalue of", {"decoder": decoder})
          for decoder in ("modified", "theory") for own in (TWICE, MORE_CLASSES)),
        ("data", Bags.from_dense([0, 0], [[1, 0], [0.5, 0.5]], [[1, 0], [0, 1]]), "have one next token a bag",
         "distributions", {"decoder": "theory"}),
        ("data", Column(), "Bags or offer population()", "Column"),
        ("contrast", ..., "have at most the 3 tokens", "6", {"objective": Objective(contrast=SIX)}),
    ],
    "sgd": SGD,
    "a run of many": SGD,
    "sgd_many": [
        ("runs", [3], "pairs of data and arguments of `sgd`", "3"),
        *(("runs", [(CLASSES, RATES | {"steps": 1, name: 1})], "have arguments of `sgd` (eta_y,", repr(name))
          for name in ("progress", "eta_q")),
        *(("runs", [(CLASSES, dict.fromkeys({"eta_y", "eta_z", "steps"} - {name}, 1))],
           "have the arguments eta_y, eta_z, steps", f"none called '{name}'") for name in ("eta_y", "eta_z", "steps")),
    ],
    "stochastic_flow": [
        ("order", 3, "at most 2"),
        ("scheme", "milstein", "one of 'euler-maruyama', 'runge-kutta'"),
        ("length", ..., "None for decoder='theory'", "4", {"decoder": "theory"}),
        ("length", ..., "None when batch_size is None", "4", {"batch_size": None}),
        ("init", 3, "a Layer"),
        ("init", zeros(2, 3, 4), "have 1 rows of Z, one a query token", "2"),
        *init_rows(),
    ],
    "gradient_noise": [
        ("decoder", "theory", "have a step of SGD, as 'full' or 'modified'"),
        ("length", ..., "None when batch_size is None", "4", {"batch_size": None}),
        ("length", ..., "None for decoder='modified'", "4", {"decoder": "modified"}),
        ("layer", 3, "a Layer"),
        ("layer", zeros(2, 3, 4), "have 1 rows of Z, one a query token", "2"),
        *init_rows("layer"),
        ("contrast", ..., "left out", "<Bags: 1",
         {"objective": Objective(contrast=ONE, contrast_weight=1.0), "length": None}),
    ],
    "GradientNoise.parts": [("vector", [1.0], "have an entry for each of 12 weights", "1")],
    "linear_noise": [("steps", [2, 2], "integers that increase", "[2, 2]")],
    "gradient_flow_ensemble": [
        ("settings", LANES | {"eta": 1.0}, "one of 'n_classes',", "'eta'"),
        ("settings", {"n_classes": 3}, "have the keys", "none called 'vocab_size'"),
        ("settings['eta_y']", LANES | {"eta_y": -0.5}, "positive", "-0.5"),
        ("settings['n_classes']", LANES | {"n_classes": 1}, "at least 2", "1"),
        ("settings['n_classes']", LANES | {"n_classes": 2.5}, "hold integers", "dtype float64"),
        ("settings['vocab_size']", LANES | {"vocab_size": [30, 2]}, "at least n_classes", "fewer in a setting"),
        ("settings", LANES | {"eta_y": [1.0, 2.0], "eta_z": [1.0, 2.0, 3.0]}, "hold arrays that", "cannot reindex"),
        ("settings['eta_y']", LANES | {"eta_y": [[1.0]]}, "have at most 1 axes", "shape (1, 1)"),
        ("settings", LANES | {"eta_y": []}, "hold at least one setting", "sizes {'setting': 0}"),
        ("settings['distinct']", LANES | {"distinct": []}, "hold at least one number", "none"),
        ("settings['distinct']", LANES | {"distinct": 1.0}, "have at most 2 axes", "shape ()"),
        ("settings", LANES | {"eta_y": labelled("time", [1.0])}, "have dimensions with", "'time'"),
        ("settings['distinct']", LANES | {"distinct": labelled("a", [1.0])}, "have the dimension distinct_token",
         "dimensions ('a',)"),
        ("settings", [], "a mapping of arrays, or a sequence of", "none"),
        ("settings[0]", [(1, 2)], "(data, eta_y, eta_z)", "(1, 2)"),
        ("settings[0][eta_z]", [(CLASSES, 1.0, -1.0)], "positive", "-1.0"),
        ("path", "x", "None where", None, {"settings": [(CLASSES, 1.0, 1.0)]}),
        ("record", ["y"], "without 'y'", "['y']", {"settings": [(CLASSES, 1.0, 1.0)]}),
        ("record", ["h"], "one of", "'h'"),
    ],
    "observables.Support": [("n_tokens", 2, "at least 3")],
    "observables.recall": [
        ("threshold", "a", "an array of numbers"),
        ("threshold", [np.nan], "hold finite numbers", "nan at index 0"),
    ],
    "Solver": [
        ("method", "Euler", "one of"),
        ("time_scale", "sqrt", "one of"),
        ("reduce", "always", "one of"),
        ("reduce", None, "one of"),
        ("momentum", "third order", "one of 'second order', 'first order'"),
    ],
    "fields.own.Field": [
        *(("name", bad, "a word or a few that print") for bad in ("", " a", "a\nb", 3)),
        ("gradient", 3, "a function"),
        ("step", 3, "a function"),
    ],
    "register_field": [
        ("field", 3, "a Field"),
        *(("name", ..., "none of a built-in field", repr(name), {"field": Field(name, Layer.gradient)})
          for name in ("full", "theory")),
    ],
    "an own flow": [
        ("initial", [1.0], "a mapping of names to arrays", "[1.0]"),
        ("initial", {}, "hold at least one state", "none"),
        ("initial", {"x": np.zeros(0)}, "hold at least one number", "empty arrays"),
        ("initial", {"x": [1.0, np.nan]}, "hold finite numbers", "nan at index 1"),
        ("initial", {"x": "a"}, "an array of numbers", "'a'"),
        ("initial", {"x": 1j}, "an array of numbers", "1j"),
        ("initial", {"time": 1.0}, "have short names", "'time'"),
        ("initial", {"a/b": 1.0}, "have short names", "'a/b'"),
        ("initial", {3: 1.0}, "have short names", "3"),
        ("initial", {"x": labelled("time", [1.0])}, "have no dimension or label 'time'", "time"),
        ("initial", {"x": labelled("k", [1.0]), "y": labelled("k", [1.0, 2.0])}, "have one size of the dimension 'k'",
         "1 in 'x' and 2 in 'y'"),
        ("initial", {"x": labelled("k", [1.0], [0]), "y": labelled("k", [1.0], [1])}, "have the same labels",
         "cannot align"),
        ("initial", {"x": labelled("y", [1.0]), "y": 1.0}, "have dimensions that are no", "'y'"),
        ("derivative", fixed(1.0), "return a mapping with 'x'", "1.0"),
        ("derivative", fixed({"y": 1.0}), "return a mapping with 'x'", "['y']"),
        ("derivative", fixed({"x": 1.0, "y": 1.0}), "return a mapping with 'x'", "['x', 'y']"),
        ("derivative", fixed({"x": [1.0]}), "return an array of shape () for 'x'", "shape (1,)"),
        ("derivative", fixed({"x": 1j}), "return real numbers for 'x'", "1j"),
        ("derivative", fixed({"x": np.inf}), "return finite numbers for 'x' at the start", "inf"),
        ("orbits", 3, "a function"),
        ("orbits", fixed([0]), "return a mapping", "[0]"),
        ("orbits", fixed({"y": [0]}), "one of 'x'", "'y'"),
        ("orbits", fixed({"x": [0]}), "have the shape () for 'x'", "shape (1,)"),
        ("orbits", fixed({"x": 0.5}), "hold integers", "dtype float64"),
        ("observe", fixed(3), "return a mapping", "3"),
        ("observe", fixed({"x": 3}), "return names that are no states", "'x'"),
        ("observe", fixed({"q": "a"}), "hold real numbers in 'q'", "'a'"),
        ("observe", lambda self, t, state: {"q": np.zeros(1 + (t > 0.5))}, "return one shape", "(1,) and (2,)"),
        ("observe", lambda self, t, state: {"q" if t < 0.5 else "r": 1}, "return the same names", "['r']"),
        ("events", fixed(3), "return a mapping", "3"),
        ("events", fixed({"e": np.nan}), "return a number for 'e'", "nan at t = 0"),
        ("events", fixed({"e": np.zeros(2)}), "return a number for 'e'", "array([0., 0.]) at t = 0"),
        ("kinds", 3, "", "3", {"events": fixed({"e": 1})}),
        ("kinds", {"f": "stop"}, "one of 'e'", "'f'", {"events": fixed({"e": 1})}),
        ("kinds", {"e": "jump"}, "one of 'record', 'stop', 'kink'", "'jump'", {"events": fixed({"e": 1})}),
        ("kinds", {"e": "stop *"}, "have kinds with no more than a sign", "'stop *'", {"events": fixed({"e": 1})}),
        ("kinds", {"e": "kink +"}, "have kinds with no more than a sign", "'kink +'", {"events": fixed({"e": 1})}),
    ],
    "a flow of one number": [
        ("flow", 3, "have `initial` and `derivative`"),
        ("solver", "RK45", "a Solver", "'RK45'"),
        ("solver", Solver(momentum="first order"), "leave momentum", "first order"),
    ],
    "a descent of one number": [
        ("flow", None, "have"),
        ("rate", 0, "positive"),
        ("rate", {"y": 1.0}, "have a number for each of x", "['y']"),
        ("rate", {"x": -1.0}, "non-negative", "-1.0"),
        ("steps", 0, "at least 1"),
        ("steps", 1.5, "an integer"),
        ("optimizer", 3, "a name or an Optimizer"),
        ("record_every", ..., "leave at most", "bytes", {"steps": 10**15, "record_every": 1}),
    ],
    "Trajectory.attention_entropy": [("tokens", "common", "one of 'distinct', 'all'"), ("tokens", None, "one of")],
    "Trajectory.recall": [
        ("thresholds", 0.1, "have 1 axis", "shape ()"),
        ("thresholds", [[0.1]], "have 1 axis", "shape (1, 1)"),
        ("thresholds", [np.nan], "hold finite numbers", "nan at index 0"),
        ("thresholds", "a", "an array of numbers"),
    ],
    "Trajectory.growth_factor": [
        ("next_token", 3, "a next token of the trajectory"),
        ("next_token", "bog", "a number where the data has no names"),
        ("token", 5, "a token of the trajectory"),
        ("token", -1, "at least 0"),
    ],
    "Trajectory.relative_gain": [
        ("token", 2, "occur with next token 0"),
        ("token", ..., "occur with next token 0", "2", {"other": 2}),
    ],
    "Trajectory.surviving_tokens": [
        ("next_token", 5, "a next token of the trajectory"),
        ("threshold", np.nan, "a finite number"),
    ],
    "Trajectory.names": [("axis", "tokens", "one of 'token'")],
    "Trajectory.plot": [
        ("quantity", "y", "one of"),
        ("next_token", 7, "a next token of the trajectory"),
        ("next_token", 0, "left out for loss", None, {"quantity": "loss", "labels": None}),
    ],
    "run.Run": [("dataset", 3, "Dataset"), ("call", 3, "Call")],
    "Support.over_time": [("Z", np.zeros((2, 2)), "an array of numbers of shape (any, any, any)", "shape (2, 2)")],
    "trajectory.Trajectory": [
        ("dataset", 3, "Dataset", "3"),
        ("dataset", xr.Dataset(), "have the attribute format", ""),
    ],
    "run.Run.plot": [("name", "z", "one of")],
    "Layer.plot": [("matrix", "V", "one of 'Z', 'Y'")],
    "a drawn flow": [
        ("labels", {"strey": "x"}, 'keys, as "stray"', "'strey'"),
        ("labels", {9: "x"}, "numbers below 3 for keys", "9"),
        ("labels", list("abcd"), "hold at most 3 labels", "4"),
        ("labels", ["x"], "left out for loss", "['x']", {"quantity": "loss"}),
    ],
    "growth by names": [
        ("token", "royal", 'a name of the data, as "loyal"'),
        ("token", "", "a name of the data"),
        ("next_token", "bog", "a name of the data"),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    for table in TABLE.made(tmp_path_factory.mktemp("refused")):
        yield table | more_calls(table)


@pytest.mark.parametrize("arguments", RULES)
def test_a_rule_holds_wherever_its_argument_is(table, arguments):
    refused_everywhere(table, arguments.split(), RULES[arguments], but=OTHERWISE)


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_value_is_refused_by_its_name_the_rule_and_the_value(table, name):
    refused(*call_of(table, name), REFUSED[name])
