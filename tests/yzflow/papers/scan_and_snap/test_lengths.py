"""SGD on sequences of T tokens beside the flows: what is said of T, wherever both are drawn, against simulations."""

import re

import driving
import numpy as np
import pytest

from dynamics import SequenceClasses, gradient_flow, sgd
from theory import statements
from yzflow.pages import live
from yzflow.papers.scan_and_snap import flagship, lengths, views
from yzflow.papers.scan_and_snap.panel import data
from yzflow.papers.scan_and_snap.panel.presets import PRESETS
from yzflow.values import value
from yzflow.values.marks import bare

SMALL = {"K": 3, "M": 40, "common": 0.5, "distinct": (1.0, 0.3), "etaY": 1.0, "etaZ": 0.5, "end": 40}
CLASSES = SequenceClasses.single_common_token(3, 40, common=0.5, distinct=(1.0, 0.3))
SAYS_T = re.compile(
    r"SGD with sequences of T = [\d,]+ tokens is not the full flow, which stands for infinitely long ones"
)


def by_hand(length, seed):
    """The last logits of one run, and the mean of each distinct one over the classes by a loop."""
    batch = {} if length else {"batch_size": None}
    run = sgd(CLASSES, eta_y=1.0, eta_z=0.5, steps=40, length=length, momentum=0.0, seed=seed, **batch)
    z = run.dataset["z"].values[-1, 0]
    return [z[0], *(sum(z[1 + 2 * k + token] for k in range(3)) / 3 for token in range(2))]


@pytest.fixture
def short(monkeypatch):
    """Lengths that take no time."""
    monkeypatch.setattr(lengths, "LENGTHS", (8, 64, None))
    return data.by_length(SMALL, seeds=3)


def test_a_run_is_that_of_its_length_and_seeds(short):
    assert list(short) == ["8", "64", "infinity"]
    for name, length, seeds in (("8", 8, 3), ("64", 64, 3), ("infinity", None, 1)):
        ends = np.array(short[name]["z"])[:, -1]
        np.testing.assert_allclose(ends, [by_hand(length, seed) for seed in range(seeds)], rtol=5e-7)
    assert len({tuple(np.array(run["z"])[0, -1]) for run in short.values()}) == 3


def test_the_sentence_has_the_numbers_of_its_run_and_of_the_flow(short):
    z = gradient_flow(CLASSES, eta_y=1.0, eta_z=0.5, t_end=40).dataset["z"].values[-1, 0]
    flow = [z[0], z[1::2].mean(), z[2::2].mean()]
    words = {0: "none", 1: "one", 2: "two"}
    for name, run in short.items():
        mean = np.array(run["z"])[:, -1].mean(axis=0)
        said = re.search(
            r"after (\d+) steps the common token's logit is at (\S+) in SGD and at (\S+) in the", run["told"]
        )
        assert int(said[1]) == 40
        assert float(said[2]) == pytest.approx(mean[0], rel=0.05) and float(said[3]) == pytest.approx(flow[0], rel=0.05)
        fallen = [words[int((np.array(logits[1:]) < 0).sum())] for logits in (mean, flow)]
        assert f"of two distinct logits {fallen[0]} have fallen in SGD and {fallen[1]} in the full flow." in run["told"]
        assert bool(SAYS_T.match(run["told"])) == (name != "infinity")


@pytest.mark.parametrize("length", [2, 128, 1024, 10**6])
def test_the_sentence_names_its_length(length):
    assert f"T = {length:,} tokens" in lengths.said(length) and SAYS_T.match(lengths.said(length))
    assert lengths.said(length).endswith("long ones.")


def test_logits_of_the_flagship_setting_keep_their_digits(monkeypatch):
    """A logit of a billionth is there to six digits, and zero is zero."""
    monkeypatch.setattr(lengths, "LENGTHS", (None,))
    (run,) = data.by_length(PRESETS[1].setting | {"end": 100}).values()
    setting = flagship.inside()
    options = {"eta_y": setting.eta_y, "eta_z": setting.eta_z, "steps": 100, "momentum": 0.0, "batch_size": None}
    z = sgd(setting.classes, length=None, **options).dataset["z"].values[-1, 0]
    assert 0 < abs(z[5]) < 2e-9 and run["z"][0][0] == [0.0] * 6
    np.testing.assert_allclose(run["z"][0][-1], lengths.by_token(z, 2), rtol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["inside", "page"])
def test_published_numbers_are_those_of_a_simulation(name):
    """One seed at the shortest length and the limit; seeds differ by a twentieth."""
    found, given = value(f"scan_and_snap.lengths_{name}"), {"inside": PRESETS[1].setting, "page": views._FIRST}[name]
    common = given.get("common", views.common_of(given.get("rho", 0.5)))
    classes = SequenceClasses.single_common_token(given["K"], given["M"], common=common)
    rates = {"eta_y": given["etaY"], "eta_z": given["etaZ"]}
    for row, length, batch, close in ((found["rows"][0], 128, 128, 0.1), (found["rows"][-1], None, None, 1e-6)):
        run = sgd(
            classes, **rates, steps=2000, length=length, batch_size=batch, momentum=0.0, seed=20, record_every=2000
        )
        z = run.dataset["z"].values[-1, 0]
        own = z[1:].reshape(given["K"], 5).mean(axis=0)
        assert row["t"] == lengths.named(length) and row["fallen"] == (own < 0).sum()
        assert row["common"] == pytest.approx(z[0], rel=close) and row["distinct"] == pytest.approx(own[0], rel=close)
    full, printed = (
        gradient_flow(classes, **rates | more, t_end=2000, decoder=level).dataset["z"].values[-1, 0]
        for level, more in (("full", {}), ("theory", {"eta_z": given["K"] * given["etaZ"]}))
    )
    assert found["full"]["common"] == pytest.approx(full[0], rel=1e-4)
    assert found["printed"]["distinct"] == pytest.approx(printed[1], rel=1e-4)
    short, limit = found["rows"][0], found["rows"][-1]
    assert abs(limit["common"] / full[0] - 1) < 0.02 and limit["fallen"] == 0 < short["fallen"]
    if name == "page":  # SGD lies nearer to what is printed than to what is right, and long sequences do not
        right = found["theory"]["distinct"]
        assert abs(short["low"] - printed[1]) < abs(short["low"] - right) < right < short["low"] < printed[1]
    else:
        assert short["common"] / full[0] > 1000


# Every place that draws both says it


def draws_both(content):
    """Whether what a page computes beforehand are runs of SGD by length, beside the flows that its script computes."""
    return content.get("told") is not None


def test_every_statement_s_page_with_runs_of_sgd_says_it(monkeypatch):
    """By what the page's data has: wherever the script of a view draws a band, and nowhere else."""
    monkeypatch.setattr(lengths, "LENGTHS", (8, None))
    monkeypatch.setattr(data, "MAX_STEPS", 2)
    banded = set(re.findall(r"views\.(\w+) = moved\(", scripts()))
    for view, code in re.findall(r"(?ms)^  yzflow\.views\.(\w+) = \{\n(.*?)^  \};", scripts()):
        banded |= {view} if "banded(" in code else set()
    assert len(banded) >= 5
    seen = set()
    for statement in statements.REGISTER.values():
        found = live.views(statement)
        if found is not None and found.paper == views.VIEWS.paper:
            content = found.content(statement)
            assert draws_both(content) == (content["view"] in banded), statement.id
            if draws_both(content):
                seen.add(content["view"])
                assert [bool(SAYS_T.match(text)) for text in content["told"].values()] == [True, False]
                assert list(content["told"]) == list(content["runs"]) == ["8", "infinity"]
    assert seen == banded


def scripts():
    """The scripts of this paper's views."""
    return "\n".join(live.file(package, name) for package, name in views.VIEWS.scripts if package == views.__name__)


def test_every_preset_with_runs_of_sgd_says_it(monkeypatch):
    monkeypatch.setattr(lengths, "LENGTHS", (8, None))
    monkeypatch.setattr(data, "MAX_STEPS", 2)
    runs = data.collect()["sgd"]
    assert [run is None for run in runs] == [preset.setting["K"] == 1 for preset in PRESETS]
    for run in filter(None, runs):
        assert list(run) == ["8", "infinity"] and SAYS_T.match(run["8"]["told"])


def test_texts_that_show_sgd_beside_a_flow_say_it():
    """Pages of the documentation whose blocks run both, or that say so of the explorer's levels."""
    texts = [driving.ROOT / "README.md", *sorted((driving.ROOT / "docs").glob("*.md"))]
    both = []
    for path in texts:
        text = path.read_text(encoding="utf-8")
        code = "".join(re.findall(r"(?ms)^```python\n(.*?)^```", text))
        runs = re.search(r"\b(sgd|lengths\.trained)\(", code) and re.search(r"(gradient_flow|flagship\.flows)\(", code)
        shows = re.search(r"flows and\s+SGD|to SGD is drawn", re.sub(r"\s+", " ", text)) is not None
        if (runs or shows) and path.name not in ("audit.md", "benchmarks.md"):
            both.append(path.name)
            shown = bare(re.sub(r"\s+", " ", text.replace(code, "")))
            assert lengths.said(128).rstrip(".") in shown, path
        assert "which is what training does" not in re.sub(r"\s+", " ", text), path
    assert {"lesson.md", "teaching.md", "tutorial.md", "statements.md"} <= set(both)
