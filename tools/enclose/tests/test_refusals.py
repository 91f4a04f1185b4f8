"""Every public callable of this distribution with hostile values, and with those that a rule forbids."""

from pathlib import Path

import numpy as np
import own_flows
from hostile import OfCalls, Table
from yzflow_bounded_dyck import DyckLanguage

from dynamics import SequenceClasses

LINEAR = own_flows.Linear(np.eye(201), np.ones(201))
TWO_BAGS = DyckLanguage(1, 2).sample(3, max_length=9, rng=0)
EQUAL, UNEVEN = (
    SequenceClasses([[0.5, 0.5], rows], [0, 0], vocab_size=4, class_weights=weights)
    for rows, weights in (([0.5, 0.5], None), ([0.4, 0.6], [0.9, 0.1]))
)

REFUSED = {
    "enclose_flow": [
        ("bits", 20, "at least 30"), ("bits", 500, "at most 400"),
        ("data", SequenceClasses.syn_medium(3), "have at most 200 variables, or classes that are copies",
         None, {"decoder": "full"}),
        ("data", TWO_BAGS, "have one next token a bag"),
    ],
    "enclose": [
        ("t_end", 0.0, "positive"), ("bits", 20, "at least 30"), ("bits", 500, "at most 400"),
        ("start", {"y": 1.0}, "have names among x", "'y'"), ("start", 3.0, "a mapping of names to arrays"),
        ("start['x']", {"x": [1.0]}, "have the shape"), ("start['x']", {"x": [np.nan] * 2}, ""),
        ("flow", 3.0, "have `initial`, and a method"),
        ("initial", ..., "hold at most 200 numbers", "201", {"flow": LINEAR, "start": None}),
    ],
    "Enclosure.crossing": [
        ("between", (1, 1), "two times, the first before the second"), ("between", (0.1, 0.2, 0.3), "two times"),
        ("t", ..., "lie in [0, 1]", "3", {"between": (0.5, 3)}),
        ("function", lambda at: 1.0, "return one quantity of the moment"), ("function", 3, ""),
    ],
    "long_enough.long_enough": [
        ("decoder", "both", "one of"), ("logits", [0.0, 0.0], "an array of numbers of shape (1, 3)"),
        ("logits", [[0.0, np.nan, 0.0]], "hold finite numbers"),
        ("logits", [[0.0, -700.0, 0.0]], "within 600 of the largest of their query", "-700"),
        ("classes", EQUAL, "linearly independent", None, {"decoder": "modified", "logits": None}),
        ("classes", UNEVEN, "have equal weights", None, {"decoder": "modified", "logits": None}),
    ],
}  # fmt: skip

# Arguments with other rules than `RULES` has for the name.
OTHERWISE = {
    "enclosure.Enclosure.at(t)",
    "enclosure.Enclosure.plot(n_times)",
    "formulas.Predicate(times)",
    "scan_and_snap.long_enough.expected_rates(decoder)",
    "scan_and_snap.long_enough.long_enough(decoder)",
    "scan_and_snap.ranges.brackets_transition(vocab_size)",
    "scan_and_snap.ranges.late_ratio(vocab_size)",
}


class TestCalls(OfCalls):
    TABLE = Table(["yzflow_enclose"], Path(__file__).with_name("calls.py"))
    REFUSED, OTHERWISE = REFUSED, OTHERWISE
