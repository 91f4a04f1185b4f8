"""A statement at a reader's own data and training."""

import dataclasses
import json
import warnings

import numpy as np
import pytest
from click.testing import CliRunner
from yzflow_beyond_scan_and_snap.lengths import enumerated_rates

import yzflow as yz
from theory import decoder
from yzflow import cli
from yzflow.audits import audit
from yzflow.audits._survival_cells import NOTHING
from yzflow.audits.outcomes import Outcome
from yzflow.papers.scan_and_snap import survival as rows
from yzflow.papers.scan_and_snap.panel import data
from yzflow.papers.scan_and_snap.settings import classes_of_bags, settings, single_common_token, two_common_tokens

THEOREM = "Scan and Snap: Theorem 2(b)"
SHORT = {"eta_z": 1e-3, "t_end": 20.0}


def own(name=THEOREM, data=None, **given):
    return yz.check(name, data=single_common_token(2, 1000, 0.3) if data is None else data, **(SHORT | given))


def column(verdict, name):
    return next(one for one in verdict.columns if one.name == name)


def test_a_reader_asks_what_the_audit_asks_at_the_same_setting():
    (setting,) = [one for one in settings(quick=True) if one.name.startswith("inside: K = 2")]
    verdict = own(data=setting.classes, eta_y=setting.eta_y, eta_z=setting.eta_z, t_end=setting.t_end)
    runs = audit.Simulations(setting, seed=0)
    statement = verdict.statement
    for row in verdict.rows:
        check = next(one for one in statement.checks if one.name == row.check)
        assert row.printed == check.printed(runs, row.level)
        assert row.margins == statement.margins(setting, check, row.level)
    assert {row.level for row in verdict.rows} == {"theory flow", "modified flow", "full flow", "SGD"}
    assert verdict.passed and all(row.inside for row in verdict.rows if row.level == "theory flow")


@pytest.mark.parametrize("rho", [0.3, 0.65])
def test_margins_are_those_of_the_data(rho):
    """Two classes of overlap rho have |lambda_i| = rho: 1/K over it, and it over 6/sqrt(M)."""
    verdict = own(data=single_common_token(2, 1000, rho), level="theory flow")
    (held,) = verdict.margins.values()
    upper, lower = (next(m for text, m in held.items() if sign in text) for sign in ("< 1/K", ">= 6/sqrt(M)"))
    assert upper == pytest.approx(0.5 / rho) and lower == pytest.approx(rho * 1000**0.5 / 6)
    assert ("|lambda_1(E)| < 1/K (margin 0.77)" in verdict.place) == (rho == 0.65)


def test_another_optimizer_trains_and_is_named():
    """Adam moves the common token the other way where it is not frequent: in the full flow, and not in the theory's."""
    data = yz.SequenceClasses.single_common_token(4, 60, common=0.3, distinct=[1.0, 0.5])
    rates = {"eta_y": 0.01, "eta_z": 1e-3, "t_end": 300.0}
    plain, adam = (own(data=data, optimizer=name, level="full flow", **rates) for name in ("sgd", "adam"))
    assert column(plain, "true gradient").outcome is Outcome.HOLDS
    assert column(adam, "true gradient").outcome is Outcome.FAILS
    assert "In your full flow (adam) " in adam.headline and "adam" not in plain.headline
    assert "does not speak of adam." in adam.outcome and "does not speak" not in plain.outcome
    assert adam.passed and not any(row.inside or row.expected for row in adam.rows)
    refused = own(data=data, optimizer="adam", level="theory flow", **rates)
    assert not refused.rows and refused.missing[0].startswith("theory flow: `optimizer` must be 'sgd'")
    assert "Not run: theory flow" in refused.outcome and "held" not in refused.outcome


def test_an_objective_is_passed_on():
    smoothed = own("Scan and Snap: Corollary 1", objective=yz.Objective(label_smoothing=0.1), level="full flow")
    assert "does not speak of label smoothing 0.1." in smoothed.place
    # The loss of smoothed targets stays above their entropy.
    plain = own("Scan and Snap: Corollary 1", level="full flow")
    assert smoothed.rows[0].printed != plain.rows[0].printed


def test_bags_are_read_as_the_classes_that_they_are():
    classes = two_common_tokens(3, 50, 0.15)
    again = classes_of_bags(classes.population())
    np.testing.assert_allclose(again.probabilities.toarray(), classes.probabilities.toarray(), atol=1e-15)
    assert again.vocab_size == 50 and list(again.query) == list(classes.query)
    # Two bags of a next token count by their weights, each by its frequencies.
    bags = yz.Bags.from_dense([0, 0, 0], [0, 0, 1], [[2, 0, 0], [1, 1, 0], [0, 0, 3]], weight=[0.5, 0.25, 0.25])
    np.testing.assert_allclose(classes_of_bags(bags).probabilities.toarray(), [[5 / 6, 1 / 6, 0], [0, 0, 1]])


def test_next_tokens_have_any_numbers_and_those_without_weight_are_no_class():
    """The ids of a text begin with the unknown word; which number a next token has changes nothing."""
    counts, weight = [[9, 9, 9], [2, 0, 0], [1, 1, 0], [0, 0, 3]], [0, 0.5, 0.25, 0.25]
    found = classes_of_bags(yz.Bags.from_dense([1, 0, 0, 0], [9, 4, 4, 7], counts, weight=weight))
    np.testing.assert_allclose(found.probabilities.toarray(), [[5 / 6, 1 / 6, 0], [0, 0, 1]])
    assert found.class_weights.tolist() == [0.75, 0.25] and found.vocab_size == 10
    with pytest.raises(
        ValueError,
        match=r"one query for each next token, as `data.pairs\(\)` has, but got 2 .* next token 7",
    ):
        classes_of_bags(yz.Bags.from_dense([0, 0, 1], [4, 7, 7], counts[1:]))
    pairs = yz.Bags.from_dense([0, 0, 1], [4, 7, 7], counts[1:]).pairs()
    assert classes_of_bags(pairs).query.tolist() == [0, 0, 1]
    with pytest.raises(ValueError, match=r"`data` must have two next tokens at least, but got \[4\]"):
        classes_of_bags(yz.Bags.from_dense([0, 0], [4, 7], counts[1:3], weight=[1, 0]))


def test_a_false_formula_is_an_alarm_inside_and_none_outside(monkeypatch):
    right = decoder.Decoder.gamma
    monkeypatch.setattr(decoder.Decoder, "gamma", lambda self, t: right(self, t) * self.n_classes)
    inside = own("Scan and Snap: Lemma 4", data=single_common_token(2, 10_000, 0.3), level="theory flow")
    assert not inside.passed and "FAILS where it should hold" in inside.headline
    outside = own("Scan and Snap: Lemma 4", data=single_common_token(2, 1000, 0.65), level="theory flow")
    assert outside.passed and "outside" in outside.place


@pytest.mark.slow
def test_the_page_says_where_it_was_run(tmp_path, monkeypatch):
    monkeypatch.setattr(data, "MAX_STEPS", 2)
    verdict = own(level="full flow")
    verdict.page(tmp_path / "own.html")
    text = (tmp_path / "own.html").read_text(encoding="utf-8")
    assert "your own: K = 2, M = 1,000" in text and "Theorem 2(b)" in text


@pytest.mark.slow
def test_survival_of_a_readers_setting_is_that_of_the_same_setting_in_the_table(monkeypatch):
    """Theorem 2(b) under Adam at the table's setting outside the assumptions, given as if it were a reader's."""
    (known,) = [one for one in rows.settings(quick=True) if one.name.startswith("outside")]
    room = dataclasses.replace(rows.ROOM, levels={"full flow": "full flow"}, settings=lambda *, quick: [known])
    monkeypatch.setattr("yzflow.audits.survival._rooms", lambda: {rows.PAPER: room})
    given = {"data": known.classes, "eta_y": known.eta_y, "eta_z": known.eta_z, "t_end": known.t_end}
    asked = {"statements": ["Theorem 2(b)"], "options": ["plain", "adam"], "quick": True}
    own, table = yz.survival(settings=[given], **asked), yz.survival(**asked)
    there = table.sel(setting=known.name)
    for name in ("verdict", "error", "margin"):
        np.testing.assert_array_equal(own[name].isel(setting=0), there[name])
    assert set(np.unique(own["verdict"].sel(option="adam"))) != set(np.unique(own["verdict"].sel(option="plain")))
    # Other rates are another setting, by name too: what is kept under it is not taken for it.
    other = yz.survival(settings=[given | {"eta_z": 0.2}], **(asked | {"options": ["plain"]}))
    assert other["setting"].item() != own["setting"].item()


@pytest.mark.slow
def test_the_command_asks_for_the_same(tmp_path):
    table = tmp_path / "classes.csv"
    table.write_text("next_token,query,the,cat,dog\ncat,the,4,6,0\ndog,the,4,0,6\n")
    given = ["--level", "full flow", "--eta-z", "0.01", "--t-end", "20", "--optimizer", "sign", "--page"]
    arguments = ["check", THEOREM, "--data", str(table), *given, str(tmp_path / "own.html"), "--json"]
    ended = CliRunner().invoke(cli.main, arguments)
    assert ended.exit_code == 0, ended.output
    found = json.loads(ended.stdout)
    classes = yz.SequenceClasses([[0.4, 0.6, 0], [0.4, 0, 0.6]], query=[0, 0], vocab_size=3)
    same = own(data=classes, eta_z=0.01, level="full flow", optimizer="sign")
    assert [row["printed"] for row in found["rows"]] == pytest.approx([row.printed for row in same.rows])
    assert found["columns"]["true gradient"]["outcome"] == column(same, "true gradient").outcome.value
    assert "does not speak of sign" in (tmp_path / "own.html").read_text(encoding="utf-8")
    refused = CliRunner().invoke(cli.main, ["check", THEOREM, "--eta-z", "0.1"])
    assert refused.exit_code == 2 and "`eta_z` must come with `data`" in refused.output
    larger = CliRunner().invoke(cli.main, [*arguments, "--vocab-size", "50"])
    assert "K = 2, M = 50" in json.loads(larger.stdout)["rows"][0]["setting"]
    for option in ("--vocab-size", "--length"):
        refused = CliRunner().invoke(cli.main, ["check", THEOREM, option, "50"])
        assert refused.exit_code == 2 and f"`{option}` must come with --data, but got 50" in refused.output


def test_the_screen_says_the_verdict_and_where_before_all_else():
    verdict = own(level="theory flow", eta_z=0.5)
    lines = verdict.text().splitlines()
    flat = " ".join(verdict.text().split())
    assert len(lines) <= 40 and max(map(len, lines)) <= 100
    assert flat.index(verdict.headline[:60]) < flat.index("your own: K = 2, M = 1,000")
    (margins,) = verdict.margins.values()
    (smallest,) = [text for text, margin in margins.items() if not margin >= 1]
    assert f"outside {smallest} (margin {margins[smallest]:.2g})" in flat
    assert "Largest errors at your own setting" in lines and lines[-1] == "--verbose shows the rest"


def test_a_check_that_data_has_nothing_for_is_not_run_and_says_why():
    """One distinct token in a class has no lead that could shrink: no error of an undefined amount, and no warning."""
    classes = yz.SequenceClasses([[0.5, 0.5, 0, 0], [0.5, 0, 0.5, 0]], [0, 0], vocab_size=4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        verdict = yz.check("Scan and Snap: Theorem 3", data=classes, eta_y=1.0, eta_z=0.01, t_end=50.0)
    assert any("`data` must have two distinct tokens in class 0" in one for one in verdict.missing)
    said = "Nothing to compare: theory flow, modified flow, full flow: `data` must have two distinct tokens in class 0"
    assert "undefined" not in verdict.text() and said in verdict.outcome
    assert {row.check for row in verdict.rows} >= {"bounds (12), xi_n by (9)"} and len(verdict.rows) > 5


NO_DISTINCT = yz.SequenceClasses([[0.5, 0.5], [0.4, 0.6]], [0, 0], vocab_size=10)
NO_COMMON = yz.SequenceClasses([[0.5, 0.5, 0, 0], [0, 0, 0.5, 0.5]], [0, 0], vocab_size=10)
ONE_TOKEN = yz.SequenceClasses([[1, 0], [0, 1]], [0, 0], vocab_size=2)
SOME_DISTINCT = yz.SequenceClasses([[0.5, 0.5, 0, 0], [0.5, 0.2, 0.2, 0.1]], [0, 0], vocab_size=10)


@pytest.mark.parametrize("number", ["13", "15", "17"])
def test_rounding_of_no_overlap_misses_no_bound(number):
    """Classes that share no token: E is zero but for 2e-16 on its diagonal."""
    apart = yz.SequenceClasses([[0.6, 0.4, 0, 0], [0, 0, 0.5, 0.5]], [0, 1], vocab_size=10)
    assert (apart.overlap() != np.eye(2)).any()
    verdict = yz.check(f"Scan and Snap: Lemma {number}", data=apart, level="closed form")
    assert verdict.rows and all(row.error < 1e-9 for row in verdict.rows)


@pytest.mark.parametrize(
    ("data", "asked", "run"),
    [
        (NO_DISTINCT, "Theorem 3", False),
        (SOME_DISTINCT, "Theorem 3", True),  # one class has some
        (NO_COMMON, "Theorem 4", False),
        (ONE_TOKEN, "Lemma 4", False),
    ],
)
def test_what_these_data_have_not_is_not_run_and_the_assumptions_are_told_all_the_same(data, asked, run):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        verdict = yz.check(f"Scan and Snap: {asked}", data=data, eta_y=0.5, eta_z=0.5, t_end=5.0)
    assert bool(verdict.rows) == run and (run or verdict.missing)
    assert not any(np.isnan(row.error) for row in verdict.rows)
    assert "Nothing to compare: " in verdict.text() or run
    assert run or "there was nothing to compare" in verdict.headline
    assert "outside " in verdict.place and "eta_Y >> eta_Z: eta_Y >= 100 eta_Z (margin 0.01)" in verdict.place


def test_survival_of_data_that_have_nothing_for_a_check_says_so():
    own = {"data": NO_DISTINCT, "eta_y": 0.5, "eta_z": 0.05, "t_end": 3.0}
    table = yz.survival(["Theorem 3", "Lemma 4"], ["plain"], settings=[own], quick=True)
    cells = table.squeeze("setting").sel(option="plain", level="full flow")
    why = dict(zip(cells["check"].values.tolist(), cells["why"].values.tolist(), strict=True))
    assert why["Theorem 3: identity (11)"] == NOTHING and why["Lemma 4: velocity of the logits"] == 0


def test_the_dominant_tokens_are_those_of_the_classes_that_have_any():
    """A class without a distinct token says nothing: the others' errors are what they are beside one that has some."""
    verdict = yz.check("Scan and Snap: Theorem 3", data=SOME_DISTINCT, eta_y=0.5, eta_z=0.005, t_end=5.0)
    errors = {(row.check, row.level): row.error for row in verdict.rows}
    assert errors["identity (11)", "theory flow"] < 1e-6


@pytest.mark.parametrize(("data", "small"), [(SOME_DISTINCT, None), (NO_COMMON, 1e-9)])
def test_what_holds_of_all_data_does_not_fail_by_rounding(data, small):
    """Logits that stand still, or nearly so, have sums that are as small."""
    weights = None if small is None else [1 - small, small]
    classes = yz.SequenceClasses(data.probabilities, data.query, vocab_size=10, class_weights=weights)
    for asked in ("Lemma 1, zero sums", "Lemma 6"):
        verdict = yz.check(f"Scan and Snap: {asked}", data=classes, eta_y=0.5, eta_z=0.05, t_end=8.0)
        assert verdict.passed, verdict.outcome


def test_a_check_of_what_has_not_moved_yet_says_so():
    """Bounds of a growth that no float tells from none: a fuzzer came upon them."""
    classes = single_common_token(2, 1000, 0.3)
    verdict = yz.check("Scan and Snap: Theorem 3", data=classes, eta_y=1e-4, eta_z=1e-9, t_end=10.0)
    assert any("be so late that attention moves: B_n above 1e-10, but got B_n up to" in one for one in verdict.missing)


def test_what_is_computed_on_examples_of_a_check_s_own_is_no_number_of_these_data():
    verdict = yz.check("Scan and Snap: Theorem 1(a)", data=NO_COMMON, eta_y=0.5, eta_z=0.005, t_end=5.0)
    rows, missing = {row.check for row in verdict.rows}, " ".join(verdict.missing)
    others = "stars and random overlaps with |lambda_1(E)| just below 1/sqrt(K - 2)"
    assert others not in rows and f"{others} has examples of its own" in missing
    assert "share of the setting's classes with xi_n <= 0" in rows


def test_what_the_statement_foresees_of_these_data_is_said_before_what_was_found():
    """By known numbers: t* in closed form, s by its formula, and the signs over all sequences of these lengths."""
    classes = yz.SequenceClasses([[0.4, 0.4, 0.2, 0.0, 0.0], [0.4, 0.0, 0.0, 0.4, 0.2]], query=[0, 0], vocab_size=100)
    asked = {"data": classes, "eta_y": 0.01, "eta_z": 0.001, "t_end": 5.0}
    peak = yz.decoder.transition_time(vocab_size=100, n_classes=2, eta_y=0.01)
    assert f"t* = {peak:.1f} steps" in yz.check("Scan and Snap: Theorem 4", **asked).outcome
    rho = 0.4**2 / (0.4**2 + 0.4**2 + 0.2**2)
    s = (1 - rho) * (1 + rho) / (1 + 99 * rho)
    verdict = yz.check("Remark 1", **asked)
    assert f"begins {s:.3g} times as fast in the full flow" in verdict.text() and verdict.as_dict()["predicted"]
    pytest.importorskip("yzflow_enclose", reason="T is decided in balls")
    said = yz.check("Scan and Snap: Theorem 2(a)", **asked, level="theory flow").outcome
    assert "from T = 13 on for Lemma 3's modified gradient" in said
    signs = [enumerated_rates(classes, length, np.zeros(5)) * [-1, 1, 1, 1, 1] > 0 for length in (12, 13)]
    assert not signs[0].all() and signs[1].all()


def test_a_statement_that_foresees_nothing_of_these_data_says_why():
    unequal = yz.SequenceClasses([[0.4, 0.6, 0.0], [0.4, 0.3, 0.3], [0.2, 0.0, 0.8]], query=[0] * 3, vocab_size=10)
    verdict = yz.check("Remark 1", data=unequal, eta_z=0.001, t_end=2.0)
    assert any("prediction: `data` must have equal overlaps" in one for one in verdict.missing)
    assert "Foreseen" not in verdict.outcome and verdict.as_dict()["predicted"] == ""


def test_what_is_measured_outside_is_no_claim_without_a_check(tmp_path):
    verdict = own(data=NO_COMMON, name="Scan and Snap: Theorem 1", level="full flow", t_end=3.0)
    assert verdict.rows and not any(row.expected for row in verdict.rows)
    demonstrated, _ = verdict.checklists().values()
    assert demonstrated == "n/a: the statement has no measurement inside its assumptions here"
    (tmp_path / "own.json").write_text(verdict.json())
    with pytest.raises(ValueError, match="`path` must be of the register's settings, since a check at your own data"):
        yz.rerun(tmp_path / "own.json")
