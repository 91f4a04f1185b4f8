"""Rules of arguments, which hold wherever an argument has the name."""

import numpy as np

POSITIVE = [
    (-0.5, "positive"),
    (np.nan, "positive finite number"),
    (np.inf, "positive finite number"),
    (-np.inf, "positive finite number", "-inf"),
    (10**400, "positive finite number", "inf"),
    ("1", "positive finite number"),
    (None, "positive finite number"),
    (True, "positive finite number"),
    (1j, "positive finite number"),
    ([1.0], "positive finite number", "[1.0]"),
    (np.array([1.0]), "positive finite number", "array([1.])"),
    (np.timedelta64(5, "ns"), "positive finite number", "5"),
]
INTEGER = [(2.5, "an integer"), (True, "an integer"), (2.0, "an integer", "2.0: write 2"), ("3", "an integer")]
FLAG = [(bad, "True or False") for bad in ("yes", "", None, 2, 0.0, 0.5)]
TIMES = [
    ([], "hold at least one time", "none"),
    ([0.0, 0.5, 0.25], "increase", "0.25 after 0.5"),
    ([0.0, 0.5, 0.5], "increase", "0.5 after 0.5"),
    ([0.0, 1.1], "lie in [0, 1]", "1.1"),
    ([-1.0, 1.0], "lie in [0, 1]", "-1.0"),
    ([0.0, np.nan], "hold finite numbers", "nan at index 1"),
    ([0.0, np.inf], "hold finite numbers", "inf at index 1"),
    (3.0, "have 1 axis", "shape ()"),
    ([[1.0]], "have 1 axis", "shape (1, 1)"),
    (["1"], "an array of numbers", "['1']"),
    ([1j], "an array of numbers", "[1j]"),
    ([[1.0], [1.0, 2.0]], "an array of numbers", "rows of different lengths"),
]
NO_DATA = (3, None, "bags", [1], {}, np.eye(3))
# Names of arguments -> what `hostile.Refusal` reads after the name: a bad value, words of the rule, of the value, ..
RULES = {
    "eta_y eta_z": POSITIVE,
    "t_end rtol atol dt c0": [(0.0, "positive"), *POSITIVE],
    "times": TIMES,
    "n_times": [
        (bad, rule, None, {"times": None})
        for bad, rule in ((1, "at least 2"), (2.5, "an integer"), (None, "an integer"))
    ],
    "t": [
        (-1.0, "non-negative"),
        ([0.0, np.nan], "hold finite numbers", "nan at index 1"),
        (np.inf, "hold finite numbers"),
        ("soon", "an array of numbers"),
    ],
    "vocab_size": [(1, "at least"), *INTEGER],
    "length": [(1, "at least 2"), (-5, "at least 2"), *INTEGER],
    "n_steps seed": [(-1, "at least 0"), *INTEGER],
    "n_classes": [(0, "at least"), (-1, "at least"), *INTEGER],
    "batch_size record_every threads": [(0, "at least 1"), (-1, "at least 1"), *INTEGER],
    "progress quick finite fastest lowercase replacement inverts center residual inner_norm": FLAG,
    "decoder": [
        *((bad, "one of 'full', 'modified', 'theory'") for bad in ("exact", None, 3)),
        (["full"], "one of 'full', 'modified', 'theory'", "'full'"),
    ],
    "data": [(bad, "Bags or offer population()", type(bad).__name__) for bad in NO_DATA],
    "objective": [("squared", "an Objective", "'squared'")],
    "rng": [("x", "a numpy.random.Generator"), (True, "a numpy.random.Generator")],
    "path": [(3, "the path of a"), ("", "the path of a"), ("a\0b", "the path of a", r"'a\x00b'")],
    "ax": [("left", "axes of matplotlib")],
    "style": [
        (3, "a style of matplotlib or a mapping of its settings"),
        ("ggplott", 'a style or settings of matplotlib, as "ggplot"'),
        ({"lines.length": 3}, "a style or settings of matplotlib", "{'lines.length': 3}"),
    ],
    "labels": [(3, "a sequence of text, or a mapping"), ({0: 1}, "hold text", "1")],
    "criterion": [("hinge", "one of 'cross-entropy', 'squared'")],
    "momentum": [(1.0, "below 1"), (-0.1, "non-negative"), (np.nan, "a non-negative finite number")],
    "bags": [(bad, "Bags") for bad in (3, None, "bags")],
}
