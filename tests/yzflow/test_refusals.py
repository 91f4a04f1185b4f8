"""Bad values of arguments of the engines: each is refused by its name, the rule and the value, and leaves no file."""

import numpy as np
import pytest
import sweep_tasks
from hostile import refused, refused_everywhere
from rules import RULES

import yzflow as yz
from theory.statements import REGISTER, Check, Clause, Statement
from yzflow import figures, intervals
from yzflow.fuzzing.campaign import replay
from yzflow.paper import Paper

THEOREM, SIGNS = "Scan and Snap: Theorem 2(b)", REGISTER["Scan and Snap: Theorem 2(a)"]
DYCK = "Bounded Dyck: Theorem 2"
DATA = yz.SequenceClasses.single_common_token(3, 50)
THIRD = Check("the decay", ("flow",), lambda runs, level: 0.0)


def few_classes(run):
    return run.dataset.sizes["next_token"] < 4


def theorem(paper="Decay"):
    return Statement(paper, "Theorem 3", "It decays", "It does.", "x", clauses=(Clause("it", "x", None, (THIRD,)),))


OPTIONS = {"quick": True, "seed": 0, "progress": False}
# Arguments with other rules than `RULES` has for the name: None leaves these to `check`.
OTHERWISE = {f"check of data({name})" for name in ("data", "eta_y", "eta_z", "t_end")}
CALLS = {
    "sweep": (yz.sweep, {"task": sweep_tasks.plain, "grid": {"a": [1]}, "store": "store", "progress": False}),
    "sweep of a task": (yz.sweep, {"task": "syn_medium", "grid": {"eta_z": [1.0]}, "store": "store"}),
    "sweep of flows": (yz.sweep, {"task": "flow", "grid": {"t_end": [1.0]}, "store": "store"}),
    "check": (yz.check, {"statement": THEOREM, **OPTIONS}),
    "check of data": (yz.check, {"statement": THEOREM, "data": DATA, "eta_y": 1.0, "eta_z": 1e-3, "t_end": 20.0}),
    "audit": (yz.audit, {"only": [THEOREM], **OPTIONS}),
    "survival": (yz.survival, {"statements": [THEOREM], "options": ["plain"], **OPTIONS}),
    "fuzz": (yz.fuzz, {"statement": "Scan and Snap: Theorem 2(a)", "level": "theory flow", "examples": 1, "seed": 0}),
    "fuzz of a conjecture": (yz.fuzz, {"statement": few_classes, "like": THEOREM, "level": "full flow"}),
    "replay": (replay, {"statement": SIGNS, "level": "theory flow", "choices": {"K": 2}}),
    "intervals.factor": (intervals.factor, {"n": 3}),
    "intervals.of_share": (intervals.of_share, {"successes": 1, "runs": 5}),
    "paper": (Paper, {"name": "Decay", "slug": "decay", "reference": "none", "levels": ("flow",),
                      "columns": {"theory": ("flow",), "true gradient": (), "SGD": ()}, "statements": (theorem(),)}),
    **{name: (call, {}) for own in ("figure3", "figure5", "figure9", "survival")
       for name, call in ((own + " drawn", figures.entries()[own]), (own + " computed", figures.entries()[own].data))},
}  # fmt: skip
FIGURES = {
    "figure3": [
        ("steps", 5, "left out for figure3, which takes n_classes, vocab_size, common, eta_y, eta_z, t_end"),
        ("klasses", 5, "left out for figure3, which takes n_classes"),
        ("n_classes", 1, "at least 2"),
        ("n_classes", (2, 3), "one value", "(2, 3)"),
        ("eta_y", -1, "positive"),
        ("eta_y", (), "have one value or more, each once", "()"),
        ("eta_y", (1, 1), "have one value or more, each once", "(1, 1)"),
    ],
    "survival": [("n_classes", 5, "left out for survival, which has one setting only")],
    "figure5": [("optimizer", "adagrad", "one of 'sgd', 'adam', 'adamw', 'sign'")],
    "figure9": [("ratios", (1, 2, 3), "have one value, or one for each M of [100, 10000]", "[1.0, 2.0, 3.0]")],
}
REFUSED = {
    "sweep": [
        ("grid['a']", {"a": []}, "a non-empty list of values", "an empty one"),
        ("grid['a']", {"a": 1.0}, "a non-empty list of values", "1.0"),
        ("grid['a']", {"a": "xy"}, "a non-empty list of values", "'xy'"),
        ("grid['a']", {"a": [1, 1.0]}, "hold each value once", "1.0 twice"),
        ("grid['a']", {"a": [np.nan]}, "hold finite numbers, words, booleans or None", "nan"),
        ("grid['a']", {"a": [[1]]}, "hold finite numbers", "[1]"),
        ("grid['a']", {"a": ["1", 1]}, "hold values that are written differently", "'1' and 1"),
        ("grid['a']", {"a": [None, 3, "None"]}, "hold values that are written differently", "None and 'None'"),
        ("grid['a']", {"a": ["x\0"]}, "hold words that a file can hold", r"'x\x00'"),
        ("grid['a']", {"a": ["\ud800"]}, "hold words that a file can hold", r"'\ud800'"),
        *(("grid", {name: [1]}, "have words as keys, none of seed, failed, error, run, version", repr(name))
          for name in ("seed", 1, "a/b", "", ".", "a\0", "\ud800", "_nc4_non_coord_a", "run", "version")),
        ("grid", {"n" * 300: [1]}, "have words as keys", ""),
        ("grid", [1], "a mapping of keys to lists of values", "[1]"),
        ("seeds", 0, "at least 1"),
        ("seeds", [], "a non-empty list of values", "an empty one"),
        ("seeds", [-1], "at least 0", "-1"),
        ("seeds", [0.5], "an integer", "0.5"),
        ("seeds", [2, 2], "hold each value once", "2 twice"),
        ("workers", 0, "at least 1"),
        ("workers", 10**9, "leave at most", "bytes"),
        ("executor", 4, "a concurrent.futures.Executor or None"),
        ("task", "syn_large", "a function as 'module:function' or one of"),
        ("task", "nowhere:f", "name a function as 'module:function'", "'nowhere:f' (No module named"),
        ("task", "sweep_tasks:f", "name a function as 'module:function'"),
        *(("task", bad, "the name of a task or a function at the top level", "")
          for bad in (sweep_tasks.anonymous, sweep_tasks.make_local(), sweep_tasks.Holder.method, 3)),
        *(("store", bad, "the path of a folder") for bad in ("", b"store", 5, None)),
    ],
    "sweep of a task": [
        ("grid", {"eta_q": [1]}, "have keys of the task 'syn_medium', such as \"eta_y\", \"eta_z\" and", "'eta_q'"),
        ("grid", {"progress": [True]}, "have keys of the task", "'progress'"),
        ("grid", {"n_queries": [1]}, "have keys of the task 'syn_small'", "'n_queries'", {"task": "syn_small"}),
        ("grid", {"ratio": [1], "eta_y": [1]}, "have one of 'ratio' and 'eta_y'", "both"),
        ("eta_z", ..., "positive", "-0.5", {"grid": {"eta_z": [1.0, -0.5]}}),
        ("ratio", ..., "positive", "0.0", {"grid": {"ratio": [0.0]}}),
        ("n_queries", ..., "at least 1", "0", {"grid": {"n_queries": [0]}}),
        ("optimizer", ..., "one of 'sgd', 'adam', 'adamw', 'sign'", "'lbfgs'", {"grid": {"optimizer": ["lbfgs"]}}),
        ("init", ..., "one of 'zero', 'uniform'", "'one'", {"grid": {"init": ["one"]}}),
    ],
    "sweep of flows": [
        ("decoder", ..., "one of 'full', 'modified', 'theory'", "'half'", {"grid": {"decoder": ["half"]}}),
        ("t_end", ..., "a positive finite number", "'long'", {"grid": {"t_end": ["long"]}}),
    ],
    "check": [
        *(("statement", bad, "") for bad in (None, 4, b"Lemma 4")),
        *((name, 1.0, "come with `data`") for name in ("eta_y", "eta_z", "t_end")),
        *((name, "sgd", "come with `data`") for name in ("optimizer", "level")),
    ],
    "check of data": [
        ("data", ..., "left out for Sparse averaging, whose checks make their own", "",
         {"statement": "Sparse averaging: Theorem 2"}),
        ("data", ..., "a model that `yzflow_bounded_dyck.models.of` makes", "", {"statement": DYCK}),
        ("eta_y", -1.0, "positive"),
        ("optimizer", "adan", "one of"),
        ("level", "flow", "one of"),
        ("statement", "Scan and Snap: Lemma 1", "one that is checked on training", "Scan and Snap: Lemma 1"),
        ("data", [[1.0]], "a Bags", ""),
        ("data", yz.Bags.from_dense([0, 1, 0], [0, 0, 1], [[1, 0], [1, 0], [0, 1]]),
         "have one query for each next token", "2 queries before next token 0"),
    ],
    "audit": [("only", ["Theorem 99"], "in the register, as", "'Theorem 99'")],
    "survival": [
        ("statements", ["Theorm 3"], 'in the register, as .. "Scan and Snap: Theorem 3"', "'Theorm 3'"),
        *(("statements", [bad], "measured on training", "") for bad in ("Lemma 18", DYCK)),
        ("statements", "Theorem 3", "a list of statements", ""),
        ("statements", [], "name at least one", ""),
        ("options", ["adamv"], 'known, as "adam', "'adamv'"),
        ("options", [3], "known", "3"),
        ("workers", 0, "at least 1"),
        ("settings", [], "name at least one", "an empty list"),
        ("settings", [{"eta_z": 0.1}], "have data each", ""),
        ("settings", [{"data": DATA, "eta": 1}], "have entries of data", ""),
        ("settings", [{"data": DATA, "optimizer": "adam"}], "since options change that", ""),
        ("workers", 2, "1 with `settings`", None, {"settings": [{"data": DATA}]}),
    ],
    "fuzz": [
        ("examples", 0, "at least 1"),
        ("level", "no level", "one of"),
        ("outside", "no assumption", "begin the text of one of"),
        ("statement", DYCK, "of a paper that declares how settings are drawn", ""),
    ],
    "fuzz of a conjecture": [
        ("like", None, "the statement inside whose assumptions settings are drawn"),
        ("level", None, "one of", "''"),
        ("like", "no theorem", "in the register"),
        ("like", ..., "None unless", "", {"statement": SIGNS}),
        ("statement", ..., "of a paper that declares how settings are drawn", "few_classes", {"like": DYCK}),
    ],
    "replay": [
        ("choices", {}, "have 'K'", ""),
        ("choices['K']", {"K": 13}, "at most 12", "13"),
        ("choices['K']", {"K": 1}, "", "1"),
    ],
    "intervals.factor": [("n", 1, "at least 2"), ("level", 1.0, "below 1"), ("level", 0, "positive")],
    "intervals.of_share": [
        ("successes", -1, "at least 0"),
        ("successes", 6, "at most 5"),
        ("runs", 0, "at least 1", None, {"successes": 0}),
    ],
    "paper": [
        ("statements", (theorem("Other"),), "of Decay", "Other: Theorem 3"),
        ("statements", (theorem(), theorem()), "name each statement once", ""),
        ("levels", ("SGD",), "of SGD", "Decay: Theorem 3 has flow"),
        ("levels", ("flow", "flow"), "names, each once", ""),
        ("levels", "flow", "a tuple"),
        ("columns", {"SGD": ()}, "have each of `levels` once", ""),
        ("settings", 3, ""),
        ("mistakes", (), "a Mapping", ""),
        *(("name", bad, "") for bad in ("", "A: B", 3)),
        *(("slug", bad, "") for bad in ("Own", "")),
    ],
    **{f"{name} {way}": rows for name, rows in FIGURES.items() for way in ("drawn", "computed")},
}  # fmt: skip


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("arguments", RULES)
def test_a_rule_holds_wherever_its_argument_is(arguments):
    refused_everywhere(CALLS, arguments.split(), RULES[arguments], but=OTHERWISE)


@pytest.mark.parametrize("name", REFUSED)
def test_a_bad_value_is_refused_by_its_name_the_rule_and_the_value(name):
    refused(*CALLS[name], REFUSED[name])
