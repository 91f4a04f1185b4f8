"""Bad values of arguments: each is refused by the argument's name, the rule and the value."""

import numpy as np
import pytest
import xarray as xr
from driving import ROOT
from hostile import Table, call_of, refused, refused_everywhere
from matplotlib.figure import Figure
from own_flows import Logistic
from rules import RULES
from scipy.sparse import csr_array

from dynamics import (
    Bags,
    Embedding,
    Field,
    Layer,
    Objective,
    Optimizer,
    SequenceClasses,
    Solver,
    TextCorpus,
    descend,
    gradient_flow,
    integrate,
    sgd_many,
)
from dynamics.support import checks

TABLE = Table(["dynamics"], ROOT / "tests" / "dynamics" / "calls.py")
# Arguments with other rules than `RULES` has for the name.
OTHERWISE = {
    "bags.Bags(vocab_size)",
    "_engine.solver.Solver(momentum)",
    "support.limits.Limits(data)",
    "optimizers.optimizer.Optimizer.factor(t)",
    "optimizers.optimizer.Schedule.__call__(t)",
    "optimizers.optimizer.Schedule.clock(t)",
}
RATES = {"eta_y": 1.0, "eta_z": 1.0}
CLASSES = SequenceClasses([[0.2, 0.8, 0.0], [0.2, 0.0, 0.8]], [0, 0], vocab_size=4)
TWICE = SequenceClasses([[0.5, 0.5], [0.5, 0.5]], [0, 0], vocab_size=4)
MORE_CLASSES = SequenceClasses([[1, 0], [0, 1], [0.5, 0.5]], [0, 0, 0])
NOTHING = {"token": [], "count": []}
LONG = Bags.from_dense([0, 0], [0, 1], [[3.0, 1.0], [1.0, 6.0]])
ONE, SIX = Bags([0], [0], [0, 1], [0], [1.0]), Bags([0], [0], [0, 1], [5], [1.0])  # tokens
TWO = {"query": [0, 1], "target": [0, 1], "indptr": [0, 2, 3], "token": [0, 2, 1], "count": [1.0, 2.0, 1.0]}
LANES = {"n_classes": 3, "vocab_size": 20, "eta_y": 1.0, "eta_z": 0.5}
VALUED = Layer(np.zeros((1, 3)), np.zeros((2, 4)), np.ones((3, 2)))
RESIDUAL = Layer(np.zeros((1, 3)), np.zeros((4, 4)), residual=True)
OF_VALUES = Embedding(np.eye(3), np.ones((2, 3)), np.ones((2, 3)), np.ones((2, 3)))
HIDDEN = np.ma.array([1.0, 1.0], mask=[True, False])
THREE = Embedding(np.eye(3), np.ones((2, 3)), np.ones((2, 3)))  # vectors


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
    text = TextCorpus(["0 1 2 3 4 0"], vocabulary=("<unk>", *"01234"))
    return {
        "a run of many": (one_of_many, {"data": CLASSES, **sgd}),
        "two bags": (Bags, TWO),
        "a plain layer": (Layer, {"Z": [[1.0, 2.0]], "Y": [[1.0, 2.0], [3.0, 4.0]]}),
        "a layer with values": (Layer, {"Z": np.zeros((2, 4)), "Y": np.ones((3, 3)), "V": np.ones((4, 3))}),
        "an own flow": (flow_of, {}),
        "a flow of one number": (integrate, {"flow": Logistic(), "t_end": 1.0}),
        "a descent of one number": (descend, {"flow": Logistic(), "rate": 0.1, "steps": 3}),
        "windows of six tokens": (text.windows, {"length": 3}),
        "a drawn flow": (flow.plot, {"ax": Figure().subplots()}),
        "growth by names": (flow.growth_factor, {"next_token": "dog", "token": "loyal"}),
        "names": (SequenceClasses, {"probabilities": np.eye(3), "query": [0] * 3, "vocab_size": 6}),
        "an index array": (checks.index_array, {"name": "value", "value": [0, 3], "upper": 4}),
        "a finite array": (checks.finite_array, {"name": "value", "value": [1.0]}),
        "a number": (checks.real, {"name": "value", "value": 1.0}),
        "a layer of a residual": (Layer, {"Z": np.zeros((2, 3)), "Y": np.zeros((5, 4)), "residual": True}),
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
        ("solver", "Euler", "a Solver", "str"),
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
    "Objective": [
        ("contrast", [1], "Bags", "list"),
        ("terms", [3], "a function", "3"),
        ("terms", 3, "functions of the weights"),
        ("contrast_weight", 0.5, "0 without"),
        ("contrast_weight", -1, "non-negative"),
    ],
    "Optimizer": [
        ("optimizer", ..., "one of .. 'sgd'", "'cubes'", {"name": "cubes"}),
        ("schedule", 3, "a Schedule or a function of the step"),
        ("betas", (0.5, 0.9), "left out for 'sgd'", "(0.5, 0.9)", {"name": "sgd", "decoupled": None}),
        ("betas", (0.5,), "two numbers", "(0.5,)"),
        ("clip", 0.0, "positive"),
    ],
    "Schedule": [("decay", "x", "one of 'constant', 'cosine', 'linear'")],
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
    ],
    "SequenceClasses": [
        ("probabilities", [[0.5, 0.6, -0.1], [1, 0, 0]], "non-negative", "-0.1 at index (0, 2)"),
        ("probabilities", [[0.5, np.nan, 0.5], [1, 0, 0]], "hold finite numbers", "nan at index (0, 1)"),
        ("probabilities", [[1, 0, 0], [np.inf, 0, 0]], "hold finite numbers", "inf at index (1, 0)"),
        ("probabilities", [[1, 0, 0], [0.5, 0.4, 0]], "have rows that sum to one", "0.9 in row 1"),
        ("probabilities", [[1, 0, 0], [0, 0, 0]], "have rows that sum to one", "0.0 in row 1"),
        ("probabilities", [[1.0, 0.0]], "have at least two rows", "shape (1, 2)"),
        ("probabilities", [1.0, 0.0], "have 2 axes", "shape (2,)"),
        ("probabilities", [], "have 2 axes", "shape (0,)"),
        ("probabilities", [[], []], "have rows that sum to one", "0.0 in row 0"),
        ("probabilities", [[1], [0, 1]], "an array of numbers", "rows of different lengths"),
        ("probabilities", "probabilities", "an array of numbers"),
        ("probabilities", None, "an array of numbers"),
        ("probabilities", [["1", "0"], ["0", "1"]], "an array of numbers", "[['1', '0'], ['0', '1']]"),
        ("probabilities", [[1j, 0], [0, 1]], "an array of numbers", "[[1j, 0], [0, 1]]"),
        ("probabilities", csr_array([[1.0, 0], [2, -1]]), "non-negative", "-1.0"),
        ("probabilities", csr_array([[1.0, 0], [np.nan, 1]]), "hold finite numbers", "nan"),
        ("probabilities", csr_array([[1.0, 0], [0, 0.5]]), "have rows that sum to one", "0.5 in row 1"),
        ("probabilities", csr_array([[1 + 1j, 0], [0, 1]]), "an array of numbers", "array([1.+1.j, 1.+0.j])"),
        ("query", [0, 3], "hold indices in [0, 3)", "3 at index 1"),
        ("query", [-1, 0], "hold indices in [0, 3)", "-1 at index 0"),
        ("query", [0, 0, 0], "have one entry for each of 2 next tokens", "3"),
        ("query", [0.0, 1.0], "hold integers", "dtype float64"),
        ("query", [True, False], "hold integers", "dtype bool"),
        ("query", ["0", "1"], "hold integers", "dtype"),
        ("query", None, "have 1 axis", "shape ()"),
        ("query", [[0, 1]], "have 1 axis", "shape (1, 2)"),
        ("query", [[0], [1, 2]], "an array of integers", "rows of different lengths"),
        ("class_weights", [0.5, 0.4], "sum to one", "0.9"),
        ("class_weights", [1.0, 0.0], "positive", "0.0"),
        ("class_weights", [1.5, -0.5], "positive", "-0.5"),
        ("class_weights", [1.0], "have 2 entries", "1"),
        ("class_weights", [np.nan, 1.0], "hold finite numbers", "nan at index 0"),
        ("class_weights", "uniform", "an array of numbers"),
        ("class_weights", HIDDEN, "have no masked entries", "a masked array"),
    ],
    "names": [
        ("token_names", ["the", "stray"], "hold 3 to 6 names, one for each of the contextual tokens", "2"),
        ("token_names", list("abcdefg"), "hold 3 to 6 names", "7"),
        ("token_names", ["the", "the", "cat"], "hold each name once", "'the' at 0 and 1"),
        ("token_names", ["the", 2, "cat"], "hold text", "2 at index 1"),
        ("token_names", "abc", "a sequence of names"),
        ("token_names", ["a", "b\0", "c"], "hold text of at most 200 characters that files", r"'b\x00' at index 1"),
        ("token_names", ["a", "\ud800", "c"], "files can keep", r"'\ud800' at index 1"),
        ("token_names", ["a", "b" * 201, "c"], "at most 200 characters", "at index 1"),
        ("class_names", ["cat"], "hold 3 to 6 names, one for each of the next tokens", "1"),
        ("class_names", {"cat": 0, "dog": 1}, "a sequence of names of next tokens", "{'cat': 0, 'dog': 1}"),
    ],
    "SequenceClasses.sample": [("n", 0, "at least 1"), ("n", 2.0, "an integer", "2.0: write 2")],
    "SequenceClasses.distinct_tokens": [("n", 2, "below 2"), ("n", -1, "at least 0")],
    "SequenceClasses.syn_medium": [("n_queries", 0, "at least 1"), ("n_queries", "3", "an integer")],
    "SequenceClasses.single_common_token": [
        ("n_classes", 1, "at least 2"),
        ("vocab_size", 2, "at least 3", None, {"n_classes": 3}),
        ("common", 0, "positive"),
        ("common", np.nan, "a positive finite number"),
        ("distinct", [], "hold at least one number, all positive", "[]"),
        ("distinct", [1.0, 0.0], "all positive", "[1.0, 0.0]"),
        ("distinct", 1.0, "have 1 axis", "shape ()"),
    ],
    "two bags": [
        ("query", [], "hold at least one bag", "an empty array", {"target": [], "indptr": [0]} | NOTHING),
        ("query", [0, -1], "hold indices of at least 0", "-1 at index 1"),
        ("query", [0.5, 1], "hold integers", "dtype float64"),
        ("query", [True, False], "hold integers", "dtype bool"),
        ("query", [[0], [0, 1]], "an array of integers", "rows of different lengths"),
        ("target", [0], "have one entry for each of 2 bags", "1"),
        ("target", [0, -2], "hold indices of at least 0", "-2 at index 1"),
        ("target", [0.0, 1.0], "hold integers", "dtype float64"),
        ("target", [[0.5, 0.4], [0, 1]], "have rows that sum to one", "0.9 in row 0"),
        ("target", [[1.5, -0.5], [0, 1]], "non-negative", "-0.5 at index (0, 1)"),
        ("target", [[np.nan, 1], [0, 1]], "hold finite numbers", "nan at index (0, 0)"),
        ("target", [[], []], "have at least one column", "shape (2, 0)"),
        ("target", [[1.0]], "have one entry for each of 2 bags", "1"),
        ("indptr", [0, 3], "have 3 entries", "2"),
        ("indptr", [0, 1, 2, 3], "have 3 entries", "4"),
        ("indptr", [1, 2, 3], "run from 0 to 3", "1 to 3"),
        ("indptr", [0, 2, 2], "run from 0 to 3", "0 to 2"),
        ("indptr", [0, 2, 4], "run from 0 to 3", "0 to 4"),
        ("indptr", [0, 3, 3], "give every bag at least one token", "bag 1 has none"),
        ("token", [2, 0, 1], "increase within a bag, each token once", "bag 0"),
        ("token", [2, 2, 1], "increase within a bag, each token once", "bag 0"),
        ("token", [0, 2, 1], "increase within a bag, each token once", "bag 1", {"indptr": [0, 1, 3]}),
        ("token", [-1, 2, 1], "hold indices of at least 0", "-1 at index 0"),
        ("token", np.array([-1, 2, 1], dtype=np.int8), "hold indices of at least 0", "-1 at index 0"),
        ("token", [0.0, 2, 1], "hold integers", "dtype float64"),
        ("count", [1.0, 0.0, 1.0], "positive", "0.0 at index 1"),
        ("count", [1.0, -1.0, 1.0], "positive", "-1.0 at index 1"),
        ("count", [1.0, np.nan, 1.0], "hold finite numbers", "nan at index 1"),
        ("count", [1.0, np.inf, 1.0], "hold finite numbers", "inf at index 1"),
        ("count", [1.0], "have one entry for each of 3 tokens", "1"),
        ("count", [[1.0, 2.0, 1.0]], "have 1 axis", "shape (1, 3)"),
        ("count", ["1", "2", "1"], "an array of numbers", "['1', '2', '1']"),
        ("count", None, "an array of numbers"),
        ("count", [1j, 1, 1], "an array of numbers", "[1j, 1, 1]"),
        ("count", [1e300, 5e-324, 1.0], "have ratios within a bag", "5e-324 at index 1 beside 1e+300"),
        ("count", HIDDEN, "have no masked entries", "a masked array"),
        ("weight", [0.5, 0.4], "sum to one", "0.9"),
        ("weight", [1.5, -0.5], "non-negative", "-0.5 at index 1"),
        ("weight", [1.0], "have one entry for each of 2 bags", "1"),
        ("weight", [np.nan, 1.0], "hold finite numbers", "nan at index 0"),
        ("n_queries", 1, "at least 2"),
        ("n_tokens", 2, "at least 3"),
        ("vocab_size", 1, "at least 2"),
        ("query_names", ["a"], "hold 2 names, one for each of the 2 rows of Z", "1"),
        ("token_names", ["a", "b"], "hold 3 names, one for each of the 3 contextual tokens", "2"),
    ],
    "Bags.from_dense": [
        ("counts", [[1, -1]], "non-negative", "-1.0 at index (0, 1)"),
        ("counts", [1, 1], "have 2 axes", "shape (2,)"),
        ("indptr", ..., "give every bag at least one token", "bag 0 has none", {"counts": [[0.0]]}),
    ],
    "Bags.concatenate": [
        ("parts", [], "hold at least one", "none"),
        ("parts", [3], "Bags", "3"),
        ("parts", [Bags(**TWO), Bags(**TWO | {"target": np.eye(2)})], "have targets of one kind", "[(), (2,)]"),
        ("parts", [Bags(**TWO, token_names=names) for names in (["a", "b", ""], ["", "c", ""])],
         "have the same token names", "'b' and 'c' for 1"),
        ("shares", [1.0], "2 numbers with a positive sum", "0.5"),
        ("shares", [0.0, 0.0], "2 numbers with a positive sum", "0.0"),
        ("shares", [1.0, -1.0], "non-negative", "-1.0"),
    ],
    "a plain layer": [
        ("Z", [[np.nan, 1.0]], "hold finite numbers", "nan at index (0, 0)"),
        ("Z", [1.0], "have 2 axes", "shape (1,)"),
        ("Z", np.zeros((0, 2)), "have at least one row and one column", "shape (0, 2)"),
        ("Z", "Z", "an array of numbers"),
        ("Z", None, "an array of numbers"),
        ("Z", np.ma.array(np.zeros((1, 2)), mask=True), "have no masked entries", "a masked array"),
        ("Y", [[1j]], "an array of numbers", "[[1j]]"),
        ("Y", [[np.inf]], "hold finite numbers", "inf at index (0, 0)"),
        ("Y", [[1.0]], "have 2 rows, one a token", "shape (1, 1)"),
        ("V", [[1.0]], "have 2 rows, one a token", "shape (1, 1)"),
        ("multiplicity", [1], "a positive integer for each of 2 columns of Y", "1"),
        ("multiplicity", [1, 0], "a positive integer for each of 2 columns of Y", "0"),
        ("multiplicity", [1.0, 2.0], "hold integers", "dtype float64"),
        ("center", True, "left out without a value matrix"),
        ("floor", 0.1, "left out without a value matrix"),
        ("embedding", THREE, "have a vector for each of the 2 tokens", "3 vectors and Z of shape (1, 2)"),
        ("embedding", THREE, "have a vector for each of the", "3 vectors and Z of shape (5, 3)",
         {"Z": np.zeros((5, 3)), "Y": np.zeros((3, 2))}),
        *(("embedding", own, "have the values that V is made of", got, {"Z": np.zeros((3, 3)), **weights})
          for own, got, weights in (
              (OF_VALUES, "no V", {"Y": np.zeros((3, 2))}),
              (OF_VALUES, "(3, 4)", {"V": np.zeros((3, 4)), "Y": np.zeros((4, 2))}),
              (THREE, "None of them", {"V": np.zeros((3, 2)), "Y": np.zeros((2, 2))}))),
    ],
    "a layer with values": [
        ("Y", np.ones((2, 3)), "have 3 rows, one a column of V", "shape (2, 3)"),
        ("hidden", np.ones((3, 2)), "have 4 rows, one a column of V and one for the biases", "shape (3, 2)"),
        ("Y", ..., "have 5 rows, one a unit", "shape (3, 3)", {"hidden": np.ones((4, 5))}),
        ("floor", -0.1, "non-negative"),
        ("floor", np.inf, "a non-negative finite number"),
        ("floor", 0.1, "left out without normalisation", None, {"normalisation": None}),
        ("normalisation", "layer", "'unit' or None with a hidden layer and no V", None,
         {"V": None, "hidden": np.ones((5, 3)), "Y": np.ones((3, 3))}),
    ],
    "a layer of a residual": [
        ("Y", np.zeros((3, 4)), "have 5 rows, one a token and query", "shape (3, 4)"),
        ("residual", ..., "left out beside V, hidden or embedding", "True", {"V": np.zeros((3, 5))}),
    ],
    "layer.Embedding": [
        ("keys", ..., "have 3 columns", "2", {"keys": np.ones((2, 2)), "queries": np.ones((2, 2))}),
        ("queries", np.ones((1, 3)), "have the shape of `keys`", "(1, 3)"),
    ],
    **{f"layer.Layer.{name}": [
        ("bags", Bags([1], [0], [0, 1], [0], [1.0]), "have at most the 1 queries of the layer", "2"),
        ("bags", Bags([0], [0], [0, 1], [3], [1.0]), "have at most the 3 tokens of the layer", "4"),
        ("bags", Bags([0], [4], [0, 1], [0], [1.0]), "have at most the 4 next tokens of the layer", "5"),
    ] for name in ("loss", "gradient", "attention", "features", "predict")},
    "residual_connection": [("data", [1, 2], "Bags or offer population()", "list")],
    "layer_norm": [("width", 2, "at least 3")],
    "biased_sequences": [
        ("position_bias", -1.0, "non-negative"),
        ("position_bias", [0.0, 1.0], "have an entry for each of the 3 contextual tokens", "2 entries"),
        ("position_bias", [0.0, 1.0, np.nan], "hold finite numbers", "nan at index 2"),
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
        ("solver", "RK45", "a Solver", "str"),
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
    "TextCorpus": [
        ("source", [], "hold at least one token", "an empty text"),
        ("source", ["\n", " \t"], "hold at least one token", "an empty text"),
        ("source", "a text\nof lines", "a path, an open file or an iterable of lines", "text"),
        ("source", b"bytes", "a path, an open file or an iterable of lines", "bytes"),
        ("source", 7, "a path, an open file or an iterable of lines", "int"),
        ("source", ["a", b"b"], "hold lines of text", "bytes at index 1"),
        ("source", {"text": ["a b"]}, "of a table, one column", "dict with ['text'"),
        ("tokenizer", "bpe", "one of 'whitespace', 'words', 'bytes'"),
        ("vocabulary", ["a"], "hold <unk> and each token once", "1 entries"),
        ("vocabulary", ["<unk>", "a", "a"], "hold <unk> and each token once", "3"),
        ("vocab_size", 5, "left out beside a vocabulary"),
        ("vocabulary", ["<unk>", "The"], "in small letters .. lowercase=False", "'The'"),
    ],
    "TextCorpus.decode": [("tokens", [6], "hold indices in [0, 4)", "6 at index 0")],
    "windows of six tokens": [
        ("length", 6, "below the 6 tokens of the text, the last of which is the next token"),
        ("length", 3, "below the 3 tokens", None, {"stop": 3}),
        ("stride", 0, "at least 1"),
        ("limit", 0, "at least 1"),
        ("stop", 2, "at least 4", None, {"start": 4}),
        ("limit", ..., "say how many windows `rng` draws", "None", {"rng": np.random.default_rng(0)}),
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
    "a number": [("value", np.ma.masked, "a finite number", "masked")],
    "an index array": [
        ("value", [0, 4], "hold indices in [0, 4)", "4 at index 1"),
        ("value", np.array([0, 2**64 - 1], dtype=np.uint64), "hold", "18446744073709551615 at index 1"),
        ("value", np.ma.array([1, 2], mask=[False, True]), "have no masked entries", "a masked array"),
    ],
    "a finite array": [
        ("value", HIDDEN, "have no masked entries", "a masked array"),
        ("value", [HIDDEN, HIDDEN], "have no masked entries", "a masked array"),
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
