"""The survival table: known reversals and survivors come out, and closed forms of options hold where they should."""

import dataclasses
import json
import re

import hostile
import numpy as np
import pytest
import survival_page
import xarray as xr
from driving import ROOT
from hypothesis import assume, example, given
from hypothesis import strategies as st

from dynamics import IntegrationError, SequenceClasses
from theory.trust import Trust
from yzflow.audits import _survival_cells, _survival_table, survival, survival_report
from yzflow.audits.audit import Simulations
from yzflow.audits.survival_verdicts import Fate
from yzflow.figures.registry import entries
from yzflow.papers.scan_and_snap import survival as rows
from yzflow.papers.scan_and_snap.figures import survival as picture
from yzflow.papers.scan_and_snap.settings import Setting

CLASSES = SequenceClasses.single_common_token(4, 60, common=0.3, distinct=[1.0, 0.5])
SMALL = Setting("small: K = 4, M = 60", CLASSES, 1.0, 0.01, 40.0)
DRAWS = 10
CORRECTED = ("coupled weight decay", "warm-up", "cosine schedule", "label smoothing", "temperature")
COMMON = "Theorem 2(b): share of times without loss"
SIGNAL = "Theorem 1: g_n = Y r_n against (9)"
LEAD = "Theorem 3: share of (time, class) with f' <= 0 of the dominant token"


def patched(patch, **changes):
    """The paper's room with one small setting, and other changes."""
    changes = {"settings": lambda quick: [SMALL], "draws": lambda quick: DRAWS, **changes}
    patch.setattr(survival, "_rooms", lambda: {rows.PAPER: dataclasses.replace(rows.ROOM, **changes)})


def levels(*names):
    return {name: rows.ROOM.levels[name] for name in names}


def no_end(setting, level, seed):
    raise IntegrationError("it stopped", 1.0, None, None)


@pytest.fixture(scope="module")
def flows():
    """Every option with closed forms of its own, and some without, in the modified flow and in steps."""
    with pytest.MonkeyPatch.context() as patch:
        names = ["plain", *CORRECTED, "decoupled weight decay", "no normalisation", "adam"]
        ended = dataclasses.replace(rows.OPTIONS[0], name="no end", simulate=no_end)
        patched(patch, levels=levels("modified flow", "full steps"), options=(*rows.OPTIONS, ended))
        return survival.survival(options=[*names, "no end"])


@pytest.fixture(scope="module")
def drawn():
    """Theorem 2(b) under plain steps and under Adam, in mini-batches; and under one that needs no flow."""
    with pytest.MonkeyPatch.context() as patch:
        patched(patch, levels=levels("SGD"))
        return survival.survival(["Theorem 2(b)"], ["plain", "adam", "batch of one"])


def fate(table, check, option, level, name="verdict"):
    return Fate(int(table[name].sel(check=check, option=option, level=level).squeeze()))


@pytest.mark.slow
def test_a_survivor_and_a_reversal(flows, drawn):
    """Finding 33: under Adam the common token gains and the dominant one loses, in steps and in batches."""
    for check in (COMMON, LEAD):
        assert fate(flows, check, "plain", "full steps") is Fate.HOLDS
        assert fate(flows, check, "adam", "full steps") is Fate.REVERSED
    assert fate(flows, COMMON, "label smoothing", "modified flow") is Fate.HOLDS
    assert fate(drawn, COMMON, "plain", "SGD") is Fate.HOLDS
    assert fate(drawn, COMMON, "adam", "SGD") is Fate.REVERSED
    # All of ten runs agree, and Holm's bound for six tests is 0.05/6.
    assert drawn.attrs["tests"] == 6 and float(drawn["p"].sel(check=COMMON, option="plain").squeeze()) == 2 / 2**10


@pytest.mark.slow
@pytest.mark.parametrize("option", CORRECTED)
def test_closed_forms_of_options_hold_where_the_plain_ones_fail(flows, option):
    """In the modified flow, where Theorem 1 and the loss are closed forms: the plain ones are off by 10% and more."""
    for check in (SIGNAL, "Corollary 1: loss over training"):
        assert fate(flows, check, "plain", "modified flow") is Fate.HOLDS
        cell = flows.sel(check=check, option=option, level="modified flow").squeeze()
        assert cell["error_corrected"] < 0.02
        if option != "temperature":  # which leaves the decoder alone
            assert cell["error"] > 2 * cell["error_corrected"] and cell["error"] > 0.1
    velocity = flows.sel(check="Lemma 4: velocity of the logits", option=option, level="modified flow").squeeze()
    assert velocity["error"] > 3 * velocity["error_corrected"]


@pytest.mark.slow
def test_momentum_is_a_clock_to_first_order_in_the_rates(monkeypatch):
    """Where the gradient changes little in the ten steps in which velocities settle."""
    errors = []
    for eta in (0.02, 0.005):
        slow = dataclasses.replace(SMALL, eta_y=eta, eta_z=eta / 100, t_end=6 / eta)
        patched(monkeypatch, levels=levels("modified flow"), settings=lambda quick, one=slow: [one])
        table = survival.survival(["Theorem 1", "Lemma 4"], ["momentum"])
        errors.append(table["error_corrected"].squeeze().values)
        assert (table["error"] > 0.5).all()
    assert (errors[1] < 0.06).all() and (errors[0] > 3 * errors[1]).all()


@pytest.mark.slow
def test_numbers_are_those_of_the_audit(flows):
    """The plain row asks the register's checks of the simulations that the audit makes."""
    runs = Simulations(SMALL, seed=0)
    for one in survival._all(rows.ROOM):
        if "modified flow" in one.check.levels:
            measure = one.check.printed if one.check.corrected is None else one.check.corrected
            found = flows["error"].sel(check=one.label, option="plain", level="modified flow").squeeze()
            assert float(found) == measure(runs, "modified flow")


@pytest.mark.slow
def test_what_has_no_number_says_why(flows):
    assert fate(flows, SIGNAL, "no normalisation", "full steps") is Fate.UNDEFINED  # the statement's g is not there
    assert fate(flows, COMMON, "no normalisation", "modified flow") is Fate.NOT_ASKED  # Lemma 3 needs unit features
    assert fate(flows, COMMON, "no end", "modified flow") is Fate.UNDEFINED
    why = flows["why"].sel(option="no end", level="modified flow").squeeze()
    assert _survival_cells.WHY[int(why.sel(check=COMMON))] == "training came to no end"
    assert fate(flows, COMMON, "adam", "full steps", "verdict_corrected") is Fate.NOT_ASKED
    assert (flows["verdict"].sel(check="Remark 1: early ratio of full and modified flow") == Fate.NOT_ASKED).all()


@pytest.mark.slow
def test_labels_have_their_scope(flows, drawn):
    cell = {"check": COMMON, "setting": SMALL.name}
    held = survival.label(flows, **cell, option="plain", level="full steps")
    assert held.trust is Trust.MEASURED and held.holds and held.scope["option"] == "plain"
    lost = survival.label(drawn, **cell, option="adam", level="SGD")
    assert not lost.holds and lost.scope["seeds"] == DRAWS and lost.scope["family-wise error rate"] == 0.05
    nothing = survival.label(flows, **cell, option="no end", level="modified flow")
    assert nothing.trust is Trust.NOT_EXAMINED and "no end" in str(nothing)
    with pytest.raises(ValueError, match=r"^`cell` must be one that is asked"):
        survival.label(flows, **cell, option="no normalisation", level="modified flow")
    with pytest.raises(ValueError, match=r"^`cell` must name its check"):
        survival.label(flows, option="plain")


def test_a_table_goes_on_from_its_store(tmp_path, monkeypatch):
    simulated, draws = [], 3

    def counting(one):
        def simulate(setting, level, seed):
            simulated.append((one.name, seed))
            return one.simulate(setting, level, seed)

        return dataclasses.replace(one, simulate=simulate)

    changed = {"levels": levels("SGD"), "draws": lambda quick: draws}
    patched(monkeypatch, **changed)
    whole = survival.survival(["Theorem 2(b)"], ["plain", "adam"])
    patched(monkeypatch, **changed, options=tuple(map(counting, rows.ROOM.options)))
    first = survival.survival(["Theorem 2(b)"], ["plain"], store=tmp_path / "runs")
    assert simulated == [("plain", seed) for seed in range(draws)]
    survival.survival(["Theorem 3"], ["plain"], store=tmp_path / "runs")  # all checks of a run are kept
    assert len(simulated) == draws
    again = survival.survival(["Theorem 2(b)"], ["plain", "adam"], store=tmp_path / "runs")
    assert len(simulated) == 2 * draws
    assert again.identical(whole) and again.isel(option=[0])["error"].identical(first["error"])
    seeds = [survival.survival(["Theorem 3"], ["plain"], seed=seed, store=tmp_path / "runs") for seed in (0, 5)]
    assert float(seeds[0]["error"].squeeze()) != float(seeds[1]["error"].squeeze()) and len(simulated) == 3 * draws


def test_hostile_arguments_end_in_a_result_or_our_grammar(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    patched(monkeypatch, levels=levels("full flow"), draws=lambda quick: 1)
    given = {"statements": ["Theorem 2(b)"], "options": ["plain"], "quick": True, "seed": 0, "seeds": 1,
             "store": "runs", "progress": False, "workers": 1}  # fmt: skip
    found = hostile.complaints("survival", survival.survival, given, functions=set())
    assert not found, f"{len(found)} calls:\n" + "\n".join(found)


def test_too_few_seeds_say_how_many_decide_and_are_offered(monkeypatch):
    """One check under two options is four tests, each over runs or their halves: eight that agree decide."""
    patched(monkeypatch, levels=levels("SGD"), draws=lambda quick: 4)
    few = survival.survival(["Theorem 2(b)"], ["plain", "adam"])
    assert few.attrs["tests"] == 4 and few.attrs["seeds"] == 4
    assert "No test over 4 seeds can decide: it takes 8 that agree (seeds=8, --seeds 8)." in survival_report.counted(
        few
    )
    enough = survival.survival(["Theorem 2(b)"], ["plain", "adam"], seeds=8)
    assert enough.attrs["seeds"] == 8 and "can decide" not in survival_report.counted(enough)
    assert set(survival_report.fates(few)) == {Fate.UNDECIDED} != set(survival_report.fates(enough))


def test_an_error_that_is_none_of_the_options_is_raised(monkeypatch):
    def broken(setting, level, seed):
        raise KeyError("a mistake of ours")

    options = tuple(dataclasses.replace(one, simulate=broken) for one in rows.ROOM.options)
    patched(monkeypatch, levels=levels("full flow"), options=options)
    with pytest.warns(UserWarning, match="1 of 1"), pytest.raises(RuntimeError, match="a mistake of ours"):
        survival.survival(["Theorem 2(b)"], ["plain"])


@pytest.mark.slow
def test_reports(flows, drawn):
    shown = survival_report.text(drawn)
    assert (
        "small: K = 4, M = 60; SGD" in shown
        and "reversed (in 10 of 10 runs)" in shown
        and "6 tests over 10 seeds" in shown
    )
    many = survival_report.text(flows)
    assert "✓ holds" in many and "✗*" in many
    assert "by a test over their runs" in shown and "over their runs" not in many
    facts = json.loads(json.dumps(survival_report.facts(drawn)["cells"]))
    assert {one["verdict"] for one in facts} >= {"HOLDS", "REVERSED"}
    assert all(one["label"]["trust"] == "MEASURED" for one in facts if one["verdict"] in ("HOLDS", "REVERSED"))


def test_a_sentence_for_each_option_counts_the_cells(table):
    sentences = survival_report.told(table)
    names = table["option"].values.tolist()
    assert len(sentences) == len(names)
    for name, sentence in zip(names, sentences, strict=True):
        rows = [survival_report.fates(table, check=check, option=name) for check in table["check"].values]
        asked = [[fate for fate in row if fate is not Fate.NOT_ASKED] for row in rows if set(row) != {Fate.NOT_ASKED}]
        held = sum(set(row) == {Fate.HOLDS} for row in asked)
        assert sentence.startswith(f"Under {name}, {held} of {len(asked)} checks hold") and sentence.endswith(".")
        missed = re.findall(r"(?:is|are|holds|fails) ?[a-z]* in \d+.*? of (\d+)", sentence)
        assert len(missed) == min(len(asked) - held, 3)
        rest = len(asked) - held - 3
        assert (f"; {rest} more do" in sentence) == (rest > 0)


@example(0.05004, 0.05, Fate.FAILS, 0)
@given(st.floats(0, 1), st.floats(0, 1), st.sampled_from(Fate), st.integers(0, 9))
def test_no_number_is_once_said_to_hold_and_once_to_fail(error, tolerance, fate, votes):
    """In one row, with one tolerance; votes of runs are shown in place of a median, and a time in place of an error."""
    assume(fate not in (Fate.HOLDS, Fate.FAILS) or (error <= tolerance) == (fate is Fate.HOLDS) or votes)
    cell = {"verdict": fate, "verdict_corrected": Fate.NOT_ASKED, "error": error, "error_corrected": np.nan,
            "holds_from": 12.0, "votes": np.array([votes, votes]), "tolerance": tolerance}  # fmt: skip
    said = survival_report._cell(cell, True)
    sized = re.search(r"\(([\d.e+-]+)\)", said)
    if fate in (Fate.HOLDS, Fate.FAILS):
        assert (sized is None) == (votes > 0) and (not votes or f"(in {votes} of {2 * votes} runs)" in said)
        assert sized is None or (float(sized[1]) <= tolerance) == (fate is Fate.HOLDS)
    assert not (fate is Fate.LATER and sized), said


@pytest.fixture(scope="module")
def table():
    """The table of the page."""
    return survival.load(ROOT / survival_page.DATA)


def test_the_published_page_is_that_of_its_data(table):
    assert (ROOT / survival_page.PAGE).read_text(encoding="utf-8") == survival_page.page(table)
    assert (ROOT / survival_page.CELLS).read_text(encoding="utf-8") == survival_page.cells(table)
    assert table["option"].values.tolist() == [option.name for option in rows.OPTIONS]
    assert fate(table.isel(setting=[1]), COMMON, "adam", "full steps") is Fate.REVERSED


def test_the_matrix_has_every_cell_of_the_table(table):
    written = (ROOT / survival_page.CELLS).read_text(encoding="utf-8")  # that of its data, as above
    shown = json.loads(written.partition(" = ")[2].rstrip(";\n"))
    shape = [len(shown[name]) for name in ("checks", "options", "settings", "levels")]
    found = {}
    for place, *cell in zip(*(shown["cells"][name] for name in ("place", "verdict", "own", "error")), strict=True):
        check, option, setting, level = np.unravel_index(place, shape)
        names = (shown["checks"][check]["label"], shown["options"][option]["name"])
        found[(*names, shown["settings"][setting], shown["levels"][level])] = cell
    dims = ("check", "option", "setting", "level")
    asked = table.stack(cell=dims)
    asked = asked.isel(cell=np.flatnonzero(asked["verdict"] != Fate.NOT_ASKED))
    assert len(found) == asked.sizes["cell"] > 6000
    stored = [asked[name].values.tolist() for name in ("verdict", "verdict_corrected", "error")]
    for cell, *values in zip(asked["cell"].values.tolist(), *stored, strict=True):
        verdict, own, error = found[cell]
        assert [verdict, own] == values[:2], cell
        assert error is None or abs(error - values[2]) <= 6e-3 * abs(values[2]), cell


def test_the_compact_table_counts_what_holds(table):
    head, *rows = survival_page.compact(table)
    assert len(head) == 1 + len(rows[0][1:]) and [row[0] for row in rows] == table["check"].values.tolist()
    for row in rows:
        for option, cell in zip(table["option"].values.tolist(), row[1:], strict=True):
            found = table["verdict"].sel(check=row[0], option=option).values.ravel()
            found = found[found != Fate.NOT_ASKED]
            if "/" in cell:
                held, asked = map(int, cell.rstrip("*").split("/"))
                assert held == np.isin(found, (Fate.HOLDS, Fate.LATER)).sum() and asked == found.size
                assert len(set(found)) > 1
            else:
                assert {Fate(int(one)).sign for one in found} == ({cell.rstrip("*")} if cell else set())
    assert sum("*" in cell for row in rows for cell in row) > 30


def test_the_published_margins_are_the_register_s(table):
    """Inside and outside follow from the settings alone; sequences of 256 tokens are outside of T -> infinity."""
    _, smallest, _ = _survival_table.margins(rows.ROOM, survival._all(rows.ROOM), rows.settings(quick=False))
    # To the last bits, which sums have from the processor.
    np.testing.assert_allclose(table["margin"].transpose("check", "setting", "level").values, smallest, rtol=1e-14)
    signs = table["reversible"] & (table["statement"] == "Scan and Snap: Theorem 2(a)")
    found = (table["margin"].isel(check=np.flatnonzero(signs)) >= 1).all("check").sel(level=["full steps", "SGD"])
    assert found.sel(level="SGD").values.tolist() == [False] * 5
    assert found.sel(level="full steps").values.tolist() == [
        name.startswith("inside") for name in table["setting"].values.tolist()
    ]


def test_the_first_step_foresees_what_adam_does_at_every_published_setting(table):
    """Finding 35: a common token rises where its f is below c/(D + c F), a distinct one where it is below 1/(D + c F).

    F and D are sums of the features over common and distinct tokens, c = (M - K)/(M - 1); the first step is derived in
    the study adam_reverses, the table is of whole runs. At the paper's rates other distinct tokens fall besides.
    """
    table, rises = table.sel(option="adam", level="full steps"), []
    for setting in rows.settings(quick=False):
        classes = setting.classes
        share = classes.probabilities.toarray()[0]
        f, common = share / np.linalg.norm(share), classes.common_tokens
        distinct = classes.distinct_tokens(0)
        c = (classes.vocab_size - classes.n_classes) / (classes.vocab_size - 1)
        bound = 1 / (f[distinct].sum() + c * f[common].sum())
        own = table.sel(setting=setting.name)
        rises.append(bool((f[common] < c * bound).all()))
        assert rises[-1] or (f[common] > c * bound).all()
        found = Fate(int(own["verdict"].sel(check=COMMON)))
        assert found is (Fate.REVERSED if rises[-1] else Fate.HOLDS)
        fall = float(own["error"].sel(check="Theorem 2(a): share of distinct tokens that have not gained"))
        if "the paper's" not in setting.name:
            assert fall == pytest.approx((f[distinct] > bound).mean(), abs=1e-12)
    assert sorted(rises) == [False, True, True, True, True]


@pytest.mark.slow
def test_the_picture(flows):
    """A sign and a colour for each verdict; a caption with what this data shows."""
    asked = set(Fate) - {Fate.NOT_ASKED}
    assert set(picture._COLOURS) == asked and len({one.sign for one in asked}) == len(asked)
    assert len({fill for fill, _ in picture._COLOURS.values()}) == len(asked)
    drawn_signs = [text.get_text() for text in picture.survival(flows).findobj() if hasattr(text, "get_text")]
    found = [Fate(int(value)) for value in flows["verdict"].sel(level="full steps").values.ravel()]
    for one in asked:
        assert drawn_signs.count(one.sign) == found.count(one)
    said = entries()["survival"].caption(flows)
    assert "reversed under" in said and "adam" in said.split("reversed under")[1]
    plain = flows.sel(option=["plain"])
    assert "No sign is reversed" in entries()["survival"].caption(plain)
    # It speaks of what is drawn: here a third setting, in which all is reversed, is not.
    other = plain.assign(verdict=xr.full_like(plain["verdict"], Fate.REVERSED))
    three = [one.assign_coords(setting=[str(k)]) for k, one in enumerate((plain, plain, other))]
    said = entries()["survival"].caption(xr.concat(three, "setting"))
    assert "No sign is reversed" in said and "Not drawn, and in the table: 2 settings, 1 level." in said
