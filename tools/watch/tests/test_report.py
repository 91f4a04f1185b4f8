"""The report: who was right, what was foreseen and came, why this step, and what stands in the way."""

import json
import re

import numpy as np
import pytest
import watched_layers as layers
import xarray as xr
from hypothesis import given
from hypothesis import strategies as st
from yzflow_watch import page, right, rivals
from yzflow_watch.in_the_way import InTheWay
from yzflow_watch.names import token_names
from yzflow_watch.recording import Recording
from yzflow_watch.report import WatchReport

from yzflow.audits.places import Applies, but

LINK, NORM, ADAM = (
    but(*pair)
    for pair in (
        ("no part besides", "there is a residual link"),
        ("no part besides", "there is LayerNorm"),
        ("plain gradient steps", "it is AdamW"),
    )
)


@pytest.fixture(scope="module")
def recording():
    return layers.watched(layers.Trained(layers.classes_inside(vocab_size=50)), length=60, steps=20).recording


def with_facts(recording, **facts):
    return Recording(recording.dataset.assign_attrs(facts=json.dumps(recording.facts | facts)))


def heads(recording, n):
    """The recording with so many heads, which are all alike."""
    return Recording(recording.dataset.isel(head=[0] * n))


# Who was right


def signs(*rows):
    """A prediction or an outcome of signs, a row for each head: (1, heads, 1, tokens)."""
    return xr.Dataset({"rises": (("layer", "head", "next_token", "token"), np.array(rows, float)[None, :, None])})


def said(right_ones, tokens=9, groups=1):
    """Predictions of which so many of a head's are right, where all tokens gain."""
    return signs(*[[0.9] * right_ones + [0.1] * (tokens - right_ones)] * groups)


def told(given, groups=1, tokens=9):
    happened = signs(*[[1.0] * tokens] * groups)
    return right.who_was_right(given, happened, ("even", "null"), np.zeros(1, int))


def test_counts_are_said_the_best_first():
    counts, _ = told({"null": said(5), "Scan and Snap": said(3), "Adam's first step": said(7)})
    assert counts == "Adam's first step foresaw 7 of 9 signs; Scan and Snap 3; the best null (null) 5"


def test_ties_are_said_and_who_speaks_of_less_has_its_number():
    few = said(2)
    few["rises"][..., 4:] = np.nan
    counts, _ = told({"A": said(4), "B": said(4), "C": few, "even": signs([0.5] * 9)})
    assert counts == "C foresaw 2 of 4 signs; A, B 4 of 9 each; the best null (even) 4.5 of 9 by even odds"


@pytest.mark.parametrize("groups", [1, 7])
def test_of_few_heads_no_winner_is_named(groups):
    """Tokens of a head move together: nine of nine signs of one head are one observation."""
    _, compared = told({"A": said(9, groups=groups), "null": said(0, groups=groups)}, groups)
    assert compared == f"Heads and queries whose tokens move together are too few ({groups}) to tell this from chance"


def test_a_winner_is_named_where_a_coin_would_rarely_do_as_well():
    _, compared = told({"A": said(9, groups=8), "B": said(3, groups=8), "null": said(5, groups=8)}, 8)
    assert compared == "A is ahead of the nulls and of the other theories by more than chance"
    _, compared = told({"A": said(9, groups=8), "B": said(9, groups=8), "null": said(5, groups=8)}, 8)
    assert (
        compared == "A and B are ahead of the nulls by more than chance; between them the difference is within chance"
    )
    _, compared = told({"A": said(5, groups=8), "null": said(9, groups=8)}, 8)
    assert compared == "A null was right more often than every theory"
    _, compared = told({"A": said(5, groups=8), "null": said(5, groups=8)}, 8)
    assert compared == "No theory is ahead of the nulls by more than chance"


def test_a_theory_is_ahead_of_even_odds_too():
    """Better than a null that is always wrong is not yet right."""
    given = {"A": said(3, groups=8), "null": said(0, groups=8), "even": signs(*[[0.5] * 9] * 8)}
    assert told(given, 8)[1] == "A null was right more often than every theory"


@given(st.integers(0, 10**6), st.integers(1, 12))
def test_no_winner_among_guesses(seed, groups):
    """Theories that guess win over a null that guesses at most as often as the level says: here two in a row never."""
    rng = np.random.default_rng(seed)
    one, other = rng.random((2, groups))
    wins = [right.ahead(one, other), right.ahead(other, one)]
    assert sum(wins) <= 1
    if groups < 8:
        assert not any(wins)
    assert not right.ahead(one, one)


@given(st.integers(0, 10**6))
def test_answers_beside_a_loop(seed):
    """Signs, leaders, heads and turns, one after the other."""
    rng = np.random.default_rng(seed)
    odds, true = rng.choice([0.1, 0.5, 0.9, np.nan], (2, 2, 3, 4)), rng.choice([0, 1, np.nan], (2, 2, 3, 4))
    axes = ("layer", "head", "next_token", "token")
    found = right.answers(*(xr.Dataset({"rises": (axes, values)}) for values in (odds, true)), "rises")
    for at in np.ndindex(odds.shape):
        if np.isnan(odds[at]) or np.isnan(true[at]):
            assert np.isnan(found[at])
        else:
            assert found[at] == (0.5 if odds[at] == 0.5 else float((odds[at] > 0.5) == true[at]))
    groups = right.by_group(found, np.array([7, 8, 7]))
    by_hand = [
        np.concatenate([found[i, j, k] for k in of]) for of in ((0, 2), (1,)) for i in range(2) for j in range(2)
    ]
    means = [values[~np.isnan(values)].mean() if np.isfinite(values).any() else np.nan for values in by_hand]
    np.testing.assert_allclose(groups, means)


def test_leaders_are_right_where_one_is_foreseen():
    axes = ("layer", "head", "next_token", "token")
    odds = np.array([[[[0.9, 0.05, 0.05, np.nan], [1 / 3, 1 / 3, 1 / 3, np.nan], [0.1, 0.8, 0.1, np.nan]]]])
    true = np.array([[[[1, 0, 0, np.nan], [0, 1, 0, np.nan], [np.nan] * 4]]])
    found = right.answers(*(xr.Dataset({"leads": (axes, values)}) for values in (odds, true)), "leads")
    np.testing.assert_allclose(found, [[[1, 1 / 3, np.nan]]])


def test_the_first_sentence_is_about_who_was_right(recording):
    report = WatchReport(recording)
    first = " ".join(report.text.split())[:200]
    assert first.startswith("From step 4 to 19, on who gains attention and who loses: ")
    total = int(np.isfinite(rivals.outcome(recording, 4)["rises"].values).sum())
    for theory, prediction in report.rivals.items():
        if theory in ("Scan and Snap", "finite sequences"):
            found = right.answers(prediction, report.happened, "rises")
            assert re.search(rf"{theory}[^;.]* {int((found == 1).sum())}( of {total} signs)?( each)?[;.]", report.right)
    assert report.right.endswith("too few (1) to tell this from chance.")


def test_signs_that_are_no_number_are_counted(recording):
    data = heads(recording, 2).dataset.copy(deep=True)
    data["gain"].values[-1, 0, 1] = np.nan
    present = int((data["share"].values > 0).sum())
    assert f"Left out are {present} tokens whose attention is no number (NaN)" in WatchReport(Recording(data)).right
    assert "NaN" not in WatchReport(heads(recording, 2)).right


def test_without_a_step_that_comes_first():
    report = WatchReport(
        layers.watched(layers.Trained(layers.classes_inside(vocab_size=50)), length=20, steps=0).recording
    )
    assert report.right.startswith("No step was seen: train in a `with` block")
    assert report.right.endswith("This is the model before its training.")
    assert "`step()`" in report.right


def test_without_a_future_nothing_is_scored(recording):
    report = WatchReport(recording, now=19)
    assert report.text.startswith("Nothing was recorded after step 19") and not report.foreseen()


def test_theories_that_foresaw_nothing_are_named(recording):
    assert "Silent: Adam's first step." in " ".join(WatchReport(recording).text.split())


# Why this step


def test_why_this_step(recording):
    square = WatchReport(recording).why_now
    assert square.startswith("Step 4 is the last record until the square root of the last step, 19")
    assert WatchReport(recording, now=5).why_now == ""
    assert WatchReport(recording, now=6).why_now == "Step 5 is the last record until 6, as asked."


# Foreseen, came, score


def test_each_theory_has_what_it_foresaw_what_came_and_its_score(recording):
    report = WatchReport(recording)
    came, rows = report.foreseen()["Who gains attention"]
    happened = report.happened["rises"].values
    n, gained = int(np.isfinite(happened).sum()), int((happened == 1).sum())
    assert came == f"of {n} signs, one for each token, next token and head, {gained} came out as gains"
    found = {row[0]: row[1:] for row in rows}
    for theory, (foresaw, correct, score) in found.items():
        odds = report.rivals[theory]["rises"].values[np.isfinite(happened)]
        assert score == f"{report.scores[theory]['rises']:.3f}"
        if (odds == 0.5).all():
            assert (foresaw, correct) == ("takes no side", "-")
            continue
        yes, no, even = (odds > 0.5).sum(), (odds < 0.5).sum(), (odds == 0.5).sum()
        assert foresaw == f"{yes} gain, {no} lose" + (f", {even} open" if even else "")
        hits = ((odds > 0.5) == (happened[np.isfinite(happened)] == 1)) & (odds != 0.5)
        assert correct == f"{hits.sum()} of {n}"
    assert set(report.foreseen()) <= set(right.WORDS.values())
    assert {"takes no side", "a token for 3 of 3"} >= {row[1] for row in report.foreseen()["Which token gains most"][1]}


# Obstacles


def applied(**margins):
    return {f"P: {name}": Applies(f"P: {name}", found) for name, found in margins.items()}


def test_obstacles_are_grouped_and_those_who_would_speak_named():
    shared = {LINK: 0.0, NORM: 0.0, ADAM: 0.0}
    found = InTheWay.of(applied(A=shared, B=shared | {"x": 2.0}, C=shared | {"x": 0.5}, D=shared | {"y": np.nan}))
    assert found.sentence == (
        "a residual link, LayerNorm and AdamW stand in the way of 4 statements; without these 3, A and B of P would "
        "speak."
    )


def test_obstacles_where_others_are_not_known_or_stand_in_the_way_too():
    open_one = InTheWay.of(applied(A={LINK: 0.0, "y": np.nan}, B={LINK: 0.0, "x": 0.5}))
    assert open_one.sentence == (
        "a residual link stands in the way of 2 statements; without it, A of P would speak if what is not known holds: "
        "y."
    )
    more = InTheWay.of(applied(A={LINK: 0.0, "z": 0.1}, B={LINK: 0.0, "x": 0.5}))
    assert more.sentence == "a residual link stands in the way of 2 statements, and each of these has more in its way."
    most = InTheWay.of(applied(A={LINK: 0.0}, B={LINK: 0.0, "x": 0.5}, C={"y": 0.1}))
    assert most.sentence.startswith("a residual link stands in the way of 2 of 3 statements; without it, A of P would")
    many = InTheWay.of(applied(**{f"Lemma {n}": {LINK: 0.0} for n in range(8)}, **{"Theorem 1": {LINK: 0.0}}))
    assert many.sentence.endswith("without it, 9 statements, among them Theorem 1 of P would speak.")
    alone = InTheWay.of(applied(A={"x": 0.5}))
    assert (
        alone.sentence
        == 'that "x" fails (margin 0.5) stands in the way of 1 statement; without it, A of P would speak.'
    )
    assert InTheWay.of(applied(A={"x": 2.0})).sentence == ""


def test_an_ordinary_transformer_hears_what_stands_in_the_way(recording):
    parts = ["a residual link", "LayerNorm"]
    adam = {"name": "AdamW", "lr": 0.001, "weight_decay": 0.01}
    report = WatchReport(with_facts(heads(recording, 4), parts=parts, optimizer=adam))
    head = report.headline
    assert head.startswith(
        "No theorem here applies at step 4: a residual link, LayerNorm, AdamW with weight decay 0.01"
    )
    assert "4 heads" in head and "of 33 statements" in head and "broken" not in report.text
    without = InTheWay.of(report.applies)
    for name in (*without.else_speak, *without.else_open):
        assert not set(report.applies[name].broken) - set(without.shared)
    for name in report.nearest[:8]:
        assert report.statements[name].title in report.text


def test_rates_of_other_steps_than_plain_ones_are_called_nominal(recording):
    adam = {"name": "Adam", "lr": 0.001}
    assert "nominal" not in WatchReport(recording).seen
    assert "nominal: those of plain steps" in WatchReport(with_facts(recording, optimizer=adam)).seen
    momentum = {"name": "SGD", "lr": 0.001, "momentum": 0.9}
    assert "nominal" in WatchReport(with_facts(recording, optimizer=momentum)).seen
    assert "if its steps are plain" in WatchReport(with_facts(recording, optimizer=None)).seen


def test_clipped_gradients_have_nominal_rates_and_gaps_and_processes_are_said(recording):
    assert "nominal" in WatchReport(with_facts(recording, rates="nominal")).seen
    told = WatchReport(with_facts(recording, gaps={"3": "OSError: full", "7": "OSError: full"}, processes=4)).seen
    assert "; 2 that could not be made or written; batches are those of one of 4 processes." in told
    assert not {"could not", "processes"} & set(WatchReport(recording).seen.split())


def test_a_verdict_that_is_open_says_what_is_not_known(recording):
    report = WatchReport(with_facts(recording, optimizer=None))
    assert report.headline.startswith("Open at step 4: ") and "plain gradient steps" in report.headline


# Names, and the page


class Tokenizer:
    def __init__(self, name):
        setattr(self, name, lambda ids: [f"<{ids[0]}>"] if name.startswith("convert") else f"<{ids[0]}>")


@pytest.mark.parametrize(
    "names",
    [
        {5: "<5>", 7: "<7>"}, [f"<{i}>" for i in range(8)], np.array([f"<{i}>" for i in range(8)]), "<{}>".format,
        Tokenizer("decode"), Tokenizer("convert_ids_to_tokens"),
    ],
)  # fmt: skip
def test_names_of_tokens(names):
    assert token_names(names, [5, 7]) == {5: "'<5>'", 7: "'<7>'"}


def test_without_names_tokens_have_their_numbers():
    assert token_names(None, np.array([3])) == {3: "token 3"}


def test_panels_name_tokens_layer_and_head(recording):
    """Also where a name has a sign of mathematics, and more tokens than a legend has room for."""
    wide = Recording(recording.dataset.isel(head=[0, 0, 0], layer=[0, 0]))
    report = WatchReport(wide, names=lambda number: f"${number}")
    found = page.panels(report, [1], [0, 2])
    titles = list(found)
    assert [one for one in titles if one.endswith("layer 1, head 2")] and len(titles) == 6
    assert not [one for one in titles if "head 1" in one]
    assert any(r"gain before '\$" in one for one in titles)
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    found[titles[0]](axes)
    labels = [text.get_text() for text in axes.get_legend().get_texts()]
    assert labels and all(label.startswith(r"'\$") for label in labels)
    assert len(labels) <= page._NAMED


def test_the_page_has_a_picture_of_each_head_that_is_asked_for(recording, tmp_path):
    report = WatchReport(heads(recording, 3), names={n: f"w{n}" for n in range(100)})
    text = report.page(tmp_path / "page.html", head=[0, 2]).read_text()
    assert text.count("<img") == 6 and "layer 0, head 2" in text and "head 1" not in text
    assert text.index("id='right'") < text.index("<img") < text.index("id='foreseen'") < text.index("id='assumptions'")
