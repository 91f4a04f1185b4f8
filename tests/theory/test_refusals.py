"""Bad values of arguments of closed forms and of statements: each is refused by its name, the rule and the value."""

import numpy as np
import pytest
import sympy as sp
from driving import ROOT
from hostile import Table, call_of, refused, refused_everywhere
from rules import RULES

from dynamics import Bags
from theory.scan_and_snap.token_estimates import TokenEstimates
from theory.symbolic import Derivation, derived, has_sign
from theory.trust import Label, Trust

TABLE = Table(["theory"], *sorted((ROOT / "tests" / "theory").rglob("calls.py")))
# Arguments with other rules than `RULES` has for the name.
OTHERWISE = {"scan_and_snap._register.assumptions.slower_by(vocab_size)", "statements.Statement.with_kernel(labels)"}
SOFT = Bags.from_dense([0], [[0.5, 0.5]], [[1.0]])
X = sp.Symbol("x", positive=True)


def more_calls():
    """Calls beside those of the table, whose bad values need other good ones beside them."""
    target = np.repeat([0, 1], [3, 2])
    estimates = TokenEstimates(Bags.from_dense(np.zeros(5, int), target, np.ones((5, 1)), vocab_size=2))
    return {
        "kinds of a token": (estimates.kind, {"token": 0, "next_token": 0, "share": 0.5}),
        "a label": (Label, {"trust": Trust.PROVED}),
        "a sign": (has_sign, {"expression": X, "relation": "> 0"}),
        "a proof": (derived, {"prove": lambda: Derivation("Lemma", {"a": X - X}, sizes={})}),
        "vanishing": (Derivation, {"statement": "Lemma", "vanishing": {"a": X - X}, "sizes": {}}),
    }


def sizes(**beside):
    """Rows of what takes the sizes of a decoder, of ten words."""
    return [
        ("vocab_size", 2**53 + 1, "at most 2**53"),
        ("n_classes", 11, "at most `vocab_size` = 10"),
        *(("eta_z", zero, "positive") for zero in (0, 0.0) if "eta_z" in beside),
    ]


OVERLAP = [
    ("overlap", 1.0, ""),
    ("overlap", [0.5, -0.5], "", "-0.5"),
    ("overlap", np.nan, "hold finite numbers"),
]
REFUSED = {
    "attention.growth_exponent": [*sizes(eta_z=1.0), ("c0", 0.0, "positive")],
    "attention.printed_growth_exponent": sizes(eta_z=1.0),
    "attention.Rates": sizes(eta_z=1.0),
    "decoder.gamma_integral": sizes(eta_z=1.0),
    **{f"decoder.{name}": sizes()
       for name in ("gamma", "transition_time", "scanning_time", "snapping_time", "Decoder")},
    **{f"decoder.{name}": [("vocab_size", 2**53 + 1, "at most 2**53")] for name in ("h", "h_steps", "peak_gamma")},
    "changed.Smoothed.gamma_integral": [("eta_z", 0.0, "positive")],
    "changed.Smoothed": [("label_smoothing", 1.0, "below 1"), ("label_smoothing", 0.0, "positive")],
    "changed.Decayed": [("weight_decay", 0.0, "positive")],
    "attention.speed_constant": [*OVERLAP, ("overlap", [0.5, 0.0], "between 0 and 1, both excluded", "0.0"),
                                 ("n_classes", 1, "at least 2")],
    "attention.full_flow_slowdown": [*OVERLAP, ("n_classes", 1, "at least 2"), ("n_classes", 11, "at most")],
    "attention.growth_bounds": [
        ("exponent", -1e-9, "non-negative"),
        ("exponent", None, "an array of numbers"),
        ("f0", -0.1, "non-negative"),
        ("f0", 1.5, "at most 1"),
        ("f0", [0.1, 0.2, 0.3], "broadcast to shape (2,)", "shape (3,)", {"exponent": [1.0, 2.0]}),
    ],
    "attention.distinct_growth": [
        ("exponent", -1e-9, "non-negative"),
        ("exponent", None, "an array of numbers"),
        ("distinct", [0.5, 0.0], "positive", "0.0"),
        ("distinct", [], "hold at least 1 probability", "an empty array"),
        ("distinct", [[0.5]], "have 1 axis", "shape (1, 1)"),
    ],
    "attention.relative_gain": [
        ("share", -0.1, "non-negative"),
        ("other", 0.0, "positive"),
        ("other", [0.1, 0.2, 0.3], "broadcast to shape (2,)", "shape (3,)", {"share": [0.5, 0.5]}),
    ],
    "initial_drift": [("bags", SOFT, "have next tokens", "distributions")],
    "TokenEstimates": [
        ("bags", SOFT, "have next tokens", "distributions"),
        ("bags", Bags.from_dense([0, 0], [0, 1], [[1.0], [1.0]], [0.4, 0.6]), "have equal weights", ""),
    ],
    "kinds of a token": [
        ("share", ..., "given, or `lift`, and not both", "", {"share": None}),
        ("share", ..., "given, or `lift`, and not both", "", {"lift": 2.0}),
        ("share", 1.0, "below 1"),
        ("share", 0.0, "positive"),
        ("lift", -1.0, "positive", None, {"share": None}),
        ("level", 0.0, "positive"),
        ("next_token", 0.5, "hold integers", "dtype float64"),
        ("lift", 1.0, "above 1", None, {"share": None}),
        ("level", 0.7, "at most 0.5"),
        ("token", 1, "hold indices in [0, 1)"),
        ("next_token", 2, "hold indices in [0, 2)"),
        ("next_token", [0, 0, 0], "broadcast against `token`", "", {"token": [0, 0]}),
    ],
    "finite_length_drift": [
        ("probabilities", [0.5, 0.6], "sum to one", "1.1"),
        ("probabilities", [1.5, -0.5], "positive", "-0.5"),
        ("probabilities", [], "positive", ""),
    ],
    "weak_correlation": [
        ("overlap", [[1.0, 0.5]], "square", "shape (1, 2)"),
        ("overlap", [[1.0, 0.5], [0.4, 1.0]], "symmetric with ones on the diagonal", ""),
        ("overlap", [[2.0, 0.5], [0.5, 1.0]], "symmetric with ones on the diagonal", ""),
        ("overlap", [[1.0, np.nan], [np.nan, 1.0]], "hold finite numbers", "nan"),
    ],
    "tokens.alike": [("values", [[-1.0]], "non-negative", "-1.0 at index (0, 0)")],
    "common_probabilities": [("classes", 3, "a SequenceClasses")],
    "distinct_probabilities": [("classes", 3, "a SequenceClasses")],
    "slower_by": [("vocab_size", 0, "at least 1")],
    "momentum_clock": [("steps", "yes", "True or False")],
    "a label": [
        ("scope", {"K": (3,)}, "empty for a proof of all sizes", ""),
        ("scope", {}, "say where what is proved at sizes is so", "", {"trust": Trust.PROVED_AT_SIZES}),
        ("scope", {}, "say where what is measured is so", "", {"trust": Trust.MEASURED}),
        ("scope", {}, "say where what is enclosed is so", "", {"trust": Trust.ENCLOSED}),
        ("prose", (), "give the reason", "", {"trust": Trust.ARGUED}),
        ("prose", (), "give the reason", "", {"trust": Trust.NOT_EXAMINED}),
    ],
    "a sign": [("relation", "== 0", "one of")],
    "a proof": [("prove", lambda: None, "return a Derivation", "None")],
    "vanishing": [
        ("vanishing", {}, "hold an expression where `signed` has none", "none"),
        *(("vanishing", {"a": bad}, "hold an expression for 'a'", "")
          for bad in (None, True, "0", sp.true, sp.Eq(sp.Symbol("x"), 1))),
    ],
}  # fmt: skip


@pytest.fixture(scope="module")
def table(tmp_path_factory):
    for table in TABLE.made(tmp_path_factory.mktemp("refused")):
        yield table | more_calls()


@pytest.mark.parametrize("arguments", RULES)
def test_a_rule_holds_wherever_its_argument_is(table, arguments):
    refused_everywhere(table, arguments.split(), RULES[arguments], but=OTHERWISE)


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_value_is_refused_by_its_name_the_rule_and_the_value(table, name):
    refused(*call_of(table, name), REFUSED[name])
