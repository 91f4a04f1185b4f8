"""Plots with sliders on the pages of sparse averaging: what constructions have and bounds ask for."""

from yzflow.pages.live import Start, Views
from yzflow_sparse_averaging.settings import PAPER

_STARTS = (
    Start("A thousand tokens, 16 bits", "Half precision.", {"N": 1000, "p": 16, "d": 1}),
    Start("A million tokens, 8 bits", "A long context in small numbers.", {"N": 1000000, "p": 8, "d": 1}),
    Start(
        "Values of 64 dimensions",
        f"A head of usual width: its values alone carry {64 * 16} bits.",
        {"N": 100000, "p": 16, "d": 64},
    ),
)
_SIZES = {"N": 1000, "q": 10}
_COLLISIONS = (
    Start(
        "A tenth of all tokens", "The layer must be nearly as wide as all values together.", _SIZES | {"q": 100, "d": 1}
    ),
    Start(
        "Near half of all tokens",
        "Half of the width forces an error of 0.62<!--=error-->: to be below a "
        "constant error takes a share of all values.",
        _SIZES | {"q": 400, "d": 1},
    ),
    Start(
        "More than half of them",
        "Errors of order 1/q are forced here: one number, the sum of all values, is within (N - q)/q of each average.",
        {"N": 500, "q": 350, "d": 1},
    ),
)
_STATES = (
    Start("Ten of a thousand", "Errors below 1/q take all bits.", _SIZES),
    Start("A single token", "For q = 1 errors below one take all bits.", _SIZES | {"q": 1}),
    Start("A third of all tokens", "The entropy's bound holds for small errors only.", _SIZES | {"q": 300}),
)
_LINEAR = (
    Start("A thousand tokens", "A query that is linear in y pays for all tokens.", {"N": 1000, "q": 100}),
    Start("Sixteen tokens", "Where q is near N/2, nothing is saved.", {"N": 16, "q": 8}),
)
_UNIT = {"size": 100, "M": 31, "eta": 0.01, "scale": 1.0}
_UNITS = (
    Start("As the statement has it", "Both answers are within η up to the N that it is built for.", _UNIT),
    Start("A quarter less c", "Near misses are taken for matches.", _UNIT | {"scale": 0.75}),
    Start("A large modulus", "Residues are close to each other: c is in thousands.", _UNIT | {"M": 301}),
)
_MATCH3 = (
    Start(
        "M a square of N",
        "Constants decide for small N: two layers win from N = 2.0e6<!--=groups--> "
        "on, or from 1.1e8<!--=groups_strict--> if m is no less than the numbers of "
        "a "
        "token.",
        {"digits": 9, "power": 2.0, "constant": 1.0},
    ),
    Start(
        "A bound of a tenth",
        "Any constant loses in the end, later.",
        {"digits": 12, "power": 2.0, "constant": 0.1},
    ),
)

VIEWS = Views(
    paper=PAPER,
    scripts=tuple((__name__, f"{name}.js") for name in ("views", "others", "matches")),
    views={
        "Theorem 2": "widths",
        "Theorem 2, exact": "widths",
        "Theorem 4": "widths",
        "Fully connected": "collision",
        "Recurrent": "states",
        "Match2": "pairs",
        "Match3, one layer": "sizes",
        "Match3, tensor unit": "triples",
        "Conjecture": "sizes",
        "Match3, transform": "sizes",
        "Match3, sorted": "sizes",
        "Linear query": "linear",
    },
    starts={
        None: _STARTS,
        "collision": _COLLISIONS,
        "states": _STATES,
        "linear": _LINEAR,
        "pairs": _UNITS,
        "triples": _UNITS,
        "sizes": _MATCH3,
    },
    collect=lambda view, start: {"runs": None},
)

# <!-- numbers
# error: questions_sparse.forced.error .2f
# groups: conjecture.crossings.groups .1e
# groups_strict: conjecture.crossings.groups_strict .1e
# typed: 16 8 64 (its own setting, which stands beside it)
# typed: 2 (fraction of a formula)
# -->
