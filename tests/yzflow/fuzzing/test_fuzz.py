"""The fuzzer: false statements fall, true ones do not, and what it says can be said again."""

import json
import multiprocessing
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, replace

import numpy as np
import pytest
from click.testing import CliRunner

import yzflow as yz
from theory import papers
from theory.scan_and_snap._register import assumptions as of
from theory.statements import REGISTER, Check, Statement
from yzflow.audits import campaign_table
from yzflow.cli import main
from yzflow.fuzzing import blocks, campaign
from yzflow.fuzzing.blocks import Question, draw_block
from yzflow.fuzzing.campaign import fuzz, replay
from yzflow.fuzzing.choosing import Recorded

SIGNS = REGISTER["Scan and Snap: Theorem 2(a)"]


def claim(measure, *, level="full flow", assumptions=of.THEOREM_1, **options):
    """A statement of Scan and Snap with one check."""
    check = Check("claim", (level,), measure, expected=(level,), **{"tolerance": 0.5, **options})
    return Statement("Scan and Snap", "Claim", "ours", "", "", assumptions=assumptions, checks=(check,))


def test_a_false_claim_is_made_simple():
    """False from five classes on, whatever else: that is what is left, with everything else as simple as it can be."""
    report = fuzz(claim(lambda runs, level: float(runs.setting.classes.n_classes >= 5)), examples=50)
    assert not report.passed
    for one in report.violations:
        made = one.example.choices
        assert made["K"] == 5 and made["queries"] == made["common tokens"] == 1
        assert all(made[f"distinct tokens {n}"] == 1 for n in range(5))
        assert "VIOLATED" in report.text and repr(dict(made)) in report.text


def test_a_claim_that_is_false_at_the_border_alone_falls():
    """Draws come to the ends of ranges: eta_Y = 100 eta_Z, to the last digit."""
    fast = claim(lambda runs, level: float(runs.setting.eta_y <= 100.001 * runs.setting.eta_z))
    assert not fuzz(fast, examples=200).passed


def test_inside_means_that_every_assumption_holds_and_outside_that_one_does_not():
    inside = claim(lambda runs, level: 0.0)
    (found,) = fuzz(inside, examples=25).campaigns
    assert len(found.examples) == 25 and all(min(one.margins.values()) >= 1 for one in found.examples)
    (found,) = fuzz(inside, examples=25, outside="Assumption 1(c)").campaigns
    assert len(found.examples) == 25
    for one in found.examples:
        assert [text for text, margin in one.margins.items() if margin < 1] == [of.FAST_DECODER.text]


@pytest.mark.slow
def test_the_opposite_of_theorem_2_falls_and_theorem_2_does_not():
    check = next(one for one in SIGNS.checks if one.reversible and "theory flow" in one.expected)
    opposite = replace(check, printed=lambda runs, level: 1 - check.printed(runs, level), corrected=None)
    turned = replace(SIGNS, number="opposite", checks=(opposite,), clauses=(), prove=None)
    assert fuzz(SIGNS, level="theory flow", examples=9).passed
    report = fuzz(turned, level="theory flow", examples=9)
    assert len(report.violations) == 1


@pytest.mark.slow
def test_a_violation_of_the_full_flow_is_confirmed_in_balls_and_says_so():
    """Theorem 2(a) holds at the simplest setting: balls refute that a check which fails there is right, and say so."""
    theorem = next(check for check in SIGNS.checks if check.claim is not None and "full flow" in check.levels)
    wrong = replace(theorem, printed=lambda runs, level: 1.0, corrected=None, expected=("full flow",))
    report = fuzz(replace(SIGNS, number="wrong", checks=(wrong,), clauses=(), prove=None), examples=1)
    assert report.violations
    assert all(one.decided is not None and one.decided.value is True for one in report.violations)
    assert "in balls: " in report.text


def test_an_example_is_made_again_from_what_is_printed():
    (found,) = fuzz(SIGNS, level="theory flow", examples=5).campaigns
    for one in found.examples[:3]:
        again = replay(SIGNS, "theory flow", json.loads(json.dumps(one.choices)))
        assert again == one


def test_a_violation_outside_is_made_again_outside_alone():
    """The printed call finds the same shares; inside all assumptions, the same choices are refused."""
    wrong = replace(SIGNS.checks[0], printed=lambda runs, level: 1.0, corrected=None, expected=("theory flow",))
    turned = replace(SIGNS, number="wrong", checks=(wrong,), clauses=(), prove=None)
    report = fuzz(turned, level="theory flow", examples=1, outside="Assumption 1(c)")
    (found,) = report.violations
    assert f"outside={of.FAST_DECODER.text!r}" in found.python and found.python in report.text.replace("\n    ", "\n")
    again = replay(turned, found.level, found.example.choices, seed=found.seed, outside=found.outside)
    assert again == found.example
    with pytest.raises(ValueError, match=r"`choices\['eta_y / eta_z'\]` must be between 100 and"):
        replay(turned, found.level, found.example.choices, seed=found.seed)


@pytest.mark.slow
def test_examples_depend_on_the_seed_alone(tmp_path, monkeypatch):
    """In another process, with other modules at hand, and with a store: the same examples."""
    monkeypatch.setattr(blocks, "BLOCK", 4)
    asked = Question(REGISTER["Scan and Snap: Corollary 2"], "theory flow")
    here = [asdict(draw_block(asked, seed=3, number=number, size=4)) for number in (0, 1)]
    assert here[0]["examples"] != here[1]["examples"]
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        report = yz.fuzz(asked.statement, level="theory flow", examples=8, seed=3, store=tmp_path, executor=pool)
    kept = [asdict(one) for campaign in report.campaigns for one in campaign.examples]
    assert json.loads(json.dumps(kept)) == json.loads(json.dumps([one for block in here for one in block["examples"]]))


def test_a_store_has_nothing_of_other_code_or_of_other_checks(monkeypatch, tmp_path):
    """A paper from outside changes under its statement's name; a store would serve what was found of it before."""
    versions = []

    def swept(task, grid, **how):
        versions.append(task.version)
        raise InterruptedError

    def version():
        with pytest.raises(InterruptedError):
            yz.fuzz("Scan and Snap: Corollary 2", level="theory flow", examples=1, store=tmp_path)
        return versions[-1]

    monkeypatch.setattr(campaign, "sweep", swept)
    ours = version()
    assert version() == ours
    monkeypatch.setattr(campaign_table, "asked", lambda statement, level: "another tolerance")
    assert version() != ours
    monkeypatch.undo()
    monkeypatch.setattr(campaign, "sweep", swept)
    for code in ("code of then", "code of now"):
        monkeypatch.setattr(papers, "code_of", lambda *names, modules=(), code=code: code)
        version()
    assert len(set(versions)) == 4


def few_classes(run):
    return run.dataset.sizes["next_token"] < 4


def stays_ahead(run):
    """The most frequent token of class 0 has the largest share of its distinct tokens."""
    own = run.dataset["attention"].isel(next_token=0).where(run.dataset["distinct"].isel(next_token=0))
    return bool((own.argmax("token") == own.isel(time=0).argmax("token")).all())


def test_a_function_of_a_trajectory_is_a_conjecture():
    like = "Scan and Snap: Theorem 3"
    assert yz.fuzz(stays_ahead, like=like, level="full flow", examples=5).passed
    report = yz.fuzz(few_classes, like=like, level="full flow", examples=20)
    (found, *_) = report.violations
    assert found.example.choices["K"] == 4
    assert min(found.example.margins.values()) >= 1 and set(found.example.margins) <= {
        one.text for one in REGISTER[like].assumptions
    }
    assert "replay(few_classes, 'full flow'".replace("'", '"') in found.python and f"like='{like}'" in found.python
    shown = {}
    exec(found.python.replace("print(", "again = ("), {"few_classes": few_classes}, shown)  # what a reader runs
    assert shown["again"] == found.example.shares


@pytest.mark.parametrize("answer", [None, "no"])
def test_a_conjecture_without_an_answer_is_neither_true_nor_false(answer):
    """A function that forgets its ``return`` is no violation, and one that returns words does not hold."""
    with pytest.raises(TypeError, match="`statement` must return True or False, but got "):
        yz.fuzz(lambda run: answer, like="Scan and Snap: Theorem 3", level="theory flow", examples=2)


def test_a_claim_at_a_time_that_no_run_reaches_has_no_result():
    """Each run ends before the claim's time: none of them is an example, and there is no "no violation"."""
    late = {"like": SIGNS, "level": "theory flow", "examples": 3}
    never = fuzz(lambda run: True, at=lambda run: 2 * float(run.dataset["time"][-1]), **late)
    (found,) = never.campaigns
    assert not never.passed and not found.examples and found.unreached > 0
    assert f"not reached in {found.unreached} more" in never.text and "no result" in never.text
    assert "No violation" not in never.text
    reached = fuzz(lambda run: True, at=lambda run: float(run.dataset["time"][-1]), **late)
    assert reached.passed and len(reached.campaigns[0].examples) == 3 and reached.campaigns[0].unreached == 0
    with pytest.raises(ValueError, match="`at` must be None unless `statement` is a function"):
        fuzz(SIGNS, at=lambda run: 1.0)


def test_what_a_conjecture_raises_comes_out():
    with pytest.raises(ZeroDivisionError):
        yz.fuzz(lambda run: 1 / 0, like="Scan and Snap: Theorem 3", level="theory flow", examples=2)


def test_recorded_choices_are_checked():
    with pytest.raises(ValueError, match=r"`choices\['x'\]` must be between 0 and 1, but got 2"):
        Recorded({"x": 2.0}).real("x", 0, 1)


def test_the_command(tmp_path):
    given = ["fuzz", "Scan and Snap: Theorem 2(a)", "--level", "theory flow", "--examples", "5"]
    ended = CliRunner().invoke(main, [*given, "--out", str(tmp_path / "found.json")])
    assert ended.exit_code == 0, ended.output
    assert "theory flow: 5 examples, 0 violations" in ended.stdout and "This is no proof" in ended.stdout
    kept = json.loads((tmp_path / "found.json").read_text())
    assert len(kept["campaigns"][0]["examples"]) == 5
    assert np.isfinite([value for one in kept["campaigns"][0]["examples"] for value in one["shares"].values()]).all()
