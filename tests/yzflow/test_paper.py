"""Papers from outside: through one door, in the table, in every engine, and never in the way of others."""

import json
import re
import subprocess
import sys
import textwrap
from dataclasses import replace

import numpy as np
import pytest
import sympy as sp
from click.testing import CliRunner
from driving import ROOT

import yzflow as yz
from theory import papers as table
from theory import statements
from theory.statements import Assumption, Check, Statement
from theory.symbolic import Derivation
from yzflow import cli
from yzflow.audits.options import Option, Room
from yzflow.audits.survival_verdicts import Fate
from yzflow.figures.registry import entries
from yzflow.paper import Paper, later
from yzflow.testing import cases


class Decay:
    """x' = -k x, and so x = x(0) e^{-k t}."""

    def __init__(self, rate: float = 1.0):
        self.rate = rate
        self.initial = {"x": np.array([1.0, 2.0])}

    def derivative(self, t, state):
        return {"x": -self.rate * state["x"]}

    def config(self):
        return {"rate": self.rate}


class Setting:
    t_end = 1.0

    def __init__(self, name: str, rate: float):
        self.name, self.rate = name, rate

    def simulate(self, level: str, *, seed: int) -> yz.Run:
        if level != "flow":
            raise ValueError(f"`level` must be 'flow', but got {level!r}")
        return yz.integrate(Decay(self.rate), t_end=1.0, n_times=5)


def settings(*, quick: bool) -> list[Setting]:
    return [Setting("slow", 0.5), *([] if quick else [Setting("fast", 3.0)])]


def solution(*, power=lambda k, t: sp.exp(-k * t)) -> Derivation:
    k, t = sp.symbols("k t", positive=True)
    claimed = power(k, t)
    return Derivation(
        "Theorem 3",
        {"rate": sp.diff(claimed, t) + k * claimed, "start": claimed.subs(t, 0) - 1},
        steps=("Differentiate.",),
        scope="all rates",
        sizes={},
        proves=("Theorem 9",),
    )


def error(factor):
    def measure(runs, level):
        run = runs.trajectory(level).dataset
        exact = run["x"][0] * np.exp(-factor * runs.setting.rate * run["time"])
        return float(abs(run["x"] - exact).max())

    return measure


def theorem(number="Theorem 3", *, factor=1.0, paper="Decay"):
    check = Check("the decay", ("flow",), error(factor), tolerance=1e-6, expected=("flow",))
    known = Assumption("k > 0", lambda setting: float("inf") if setting.rate > 0 else 0.0)
    proof = {"prove": solution} if factor == 1.0 else {}
    text = "The state decays exponentially."
    return Statement(
        paper, number, "It decays", text, r"x = x_0 e^{-k t}", assumptions=(known,), checks=(check,), **proof
    )


def paper(**changes):
    given = {"levels": ("flow",), "statements": (theorem(),), "settings": settings}
    mistakes = {"half the rate": (solution, {"power": lambda k, t: sp.exp(-k * t / 2)}, "rate")}
    return Paper("Decay", "decay", "made up for a test", **{**given, "mistakes": mistakes, **changes})


@pytest.fixture
def registered():
    """Register papers, and forget them after the test."""
    yield yz.register
    table.forget()


def test_a_registered_paper_is_checked_and_its_false_statement_is_flagged(registered, tmp_path):
    registered(paper(statements=(theorem(), theorem("Theorem 4", factor=2.0))))
    right, wrong = yz.check("Decay: Theorem 3"), yz.check("Decay: Theorem 4")
    assert right.passed and "proved" in right.text()
    assert not wrong.passed and "FAILS" in wrong.headline
    assert [one.setting for one in yz.audit(["Decay: Theorem 3"]).table] == ["slow", "fast"]
    yz.page("Decay: Theorem 4", tmp_path / "page.html")
    assert "FAILS where it should hold" in (tmp_path / "page.html").read_text()
    assert {"Decay: Theorem 3", "Decay: Theorem 4"} < set(statements.REGISTER)


class Noisy(Decay):
    """The same with a little noise in each step."""

    def sample(self, t, state, rng):
        return {"x": -self.rate * state["x"] + 1e-9 * rng.normal(size=2)}


class Trained(Setting):
    def simulate(self, level: str, *, seed: int) -> yz.Run:
        kind = {"flow": Decay, "steps": Decay, "SGD": Noisy}[level]
        if level == "flow":
            return super().simulate(level, seed=seed)
        return yz.descend(kind(self.rate), rate=1e-3, steps=1000, seed=seed, record_every=250)


def test_labels_have_the_seeds_of_what_was_drawn_and_no_others(registered):
    levels = ("flow", "steps", "SGD")
    check = Check("the decay", levels, error(1.0), tolerance=1e-3, expected=levels)
    one = Statement("Decay", "Theorem 3", "It decays", "It does.", r"x = x_0 e^{-k t}", checks=(check,))
    registered(paper(levels=levels, statements=(one,), settings=lambda *, quick: [Trained("slow", 0.5)]))
    table = yz.audit(["Decay: Theorem 3"], seed=7).table
    assert {row.level: row.label.scope.get("seeds") for row in table} == {"flow": None, "steps": None, "SGD": (7,)}
    assert not any(row.alarming for row in table)


def small(runs, level):
    """By how much the first number exceeds 1/2, after the start."""
    return float(runs.trajectory(level).dataset["x"][1:, 0].max()) - 0.5


def test_options_of_a_paper_whose_simulations_are_runs(registered):
    """x = e^{-k t} is below 1/2 from ln(2) / k on: for k = 2 from the third of five times on, for k = 1/2 never."""
    check = Check("the size", ("flow",), small, expected=("flow",))
    one = Statement("Decay", "Theorem 3", "It is small", "It is.", r"x < 1 / 2", checks=(check,))
    options = [
        Option(name, text, lambda setting, level, seed, k=k: Setting("own", k).simulate(level, seed=seed), ("flow",))
        for name, text, k in (("plain", "nothing", 2.0), ("slow", "a quarter of the rate", 0.5))
    ]
    room = Room(
        "Decay", tuple(options), {"flow": "flow"}, (), lambda *, quick: [Setting("fast", 2.0)], lambda *, quick: 1,
        lambda dataset: dataset.assign(x=-dataset["x"]),
    )  # fmt: skip
    registered(paper(statements=(one,), survival=room))
    found = yz.survival(["Decay: Theorem 3"], quick=True).squeeze()
    np.testing.assert_allclose(found["error"], np.exp([-0.5, -0.125]) - 0.5, atol=1e-6)
    assert found["holds_from"].values.tolist() == [0.5, np.inf]
    assert found["verdict"].values.tolist() == [Fate.LATER, Fate.FAILS]


def test_a_number_of_two_papers_is_refused_with_both_names(registered):
    registered(paper())
    with pytest.raises(ValueError, match='"Decay: Theorem 3"') as refused:
        yz.check("Theorem 3")
    assert '"Scan and Snap: Theorem 3"' in str(refused.value)


def test_a_paper_has_a_name_of_its_own_and_may_be_registered_again(registered):
    registered(paper())
    registered(paper(statements=(theorem("Theorem 5"),)))
    assert [one.number for one in yz.papers()["decay"].statements] == ["Theorem 5"]
    assert "Decay: Theorem 3" not in statements.REGISTER
    for name, slug in (("Scan and Snap", "own"), ("Own", "scan_and_snap"), ("Own", "scan-and-snap")):
        with pytest.raises(ValueError, match=r"`paper` must have a name and a slug of its own, unlike Scan and Snap"):
            registered(Paper(name, slug, "none"))
    with pytest.raises(ValueError, match="`paper` must be a Paper"):
        registered("Decay")


def test_a_statement_of_a_notebook_is_checked_under_its_paper(registered):
    with pytest.raises(ValueError, match=r"`statement` must be of a paper in the table, .* but got 'Decay: Theorem 3'"):
        yz.check(theorem())
    registered(paper(statements=()))
    assert yz.check(theorem()).passed and not yz.check(theorem(factor=2.0)).passed
    assert yz.audit([theorem()], quick=True).passed
    with pytest.raises(ValueError, match="`levels` must be of flow, but Decay: Theorem 3 has SGD"):
        odd = Check("the decay", ("SGD",), error(1.0))
        yz.check(Statement("Decay", "Theorem 3", "It decays", "It does.", "x", checks=(odd,)))


def test_parts_of_later_are_checked_when_they_are_asked_for():
    made = paper(levels=later("theory.scan_and_snap.statements:LEVELS"), statements=later(f"{__name__}:WRONG"))
    with pytest.raises(ValueError, match=r"`levels` must be of .*, but Decay: Theorem 3 has flow"):
        made.statements  # noqa: B018
    with pytest.raises(ValueError, match="`reference` must be 'module:name'"):
        later("no colon")


WRONG = (theorem(),)


def failing():
    """Which of the tests of a paper fail, by name."""
    found = []
    for case in cases(yz.papers()["decay"]):
        try:
            case()
        except AssertionError:
            found.append(case.name)
    return found


def test_check_paper_passes_what_is_right(registered):
    registered(paper())
    assert failing() == []


def unnamed(*, quick: bool) -> list[Setting]:
    return [Setting("slow", 0.5), Setting("slow", 1.0)]


def untyped(quick=True):
    return settings(quick=quick)


def nowhere(*, quick: bool) -> list[Setting]:
    return [Setting("growth", -0.1)]


def unknown_margin():
    nowhere = Assumption("k is known", lambda setting: float("nan"))
    return replace(theorem(), assumptions=(nowhere,))


def test_a_paper_that_is_not_in_the_table_is_said_to_be_missing():
    case = next(one for one in cases(paper()) if one.name == "in the table")
    with pytest.raises(AssertionError, match="is not in the table"):
        case()


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"statements": (theorem(factor=2.0),)}, ["checks: Theorem 3"]),
        ({"mistakes": {}}, ["every proof has a mistake"]),
        ({"mistakes": {"none": (solution, {}, "rate")}}, ["mistake: none"]),
        ({"mistakes": {"name": (solution, {"power": lambda k, t: k}, "speed")}}, ["mistake: name"]),
        ({"settings": unnamed}, ["settings"]),
        ({"statements": (unknown_margin(),)}, ["settings", "checks: Theorem 3"]),
        ({"settings": untyped}, ["signatures"]),
        ({"settings": nowhere}, ["checks: Theorem 3"]),
        ({"questions": {"Theorem 9": ("Why?", "So.")}}, ["questions"]),
    ],
)
def test_check_paper_finds_what_is_wrong(registered, changes, expected):
    registered(paper(**changes))
    assert failing() == expected


OUTSIDE = '''
import numpy as np
from matplotlib.figure import Figure
import yzflow as yz
from theory.statements import Check, Statement
from yzflow.figures.registry import Effort, Entry
from yzflow.sweeps.runs import Task


class Setting:
    name = "the only one"

    def simulate(self, level: str, *, seed: int) -> yz.Run:
        raise ValueError(f"`level` must be none, but got {level!r}")


def settings(*, quick: bool) -> list[Setting]:
    return [Setting()]


def zero(runs: object, level: str) -> float:
    return 0.0


def draw(data: float) -> Figure:
    """A point."""
    figure = Figure()
    figure.subplots().plot([data])
    return figure


def square(configuration: dict, seed: int) -> dict:
    return {"square": np.array(configuration["side"] ** 2)}


PAPER = yz.Paper(
    "Outside", "outside", "made up", levels=("formula",), settings=settings,
    statements=(Statement("Outside", "Theorem 3", "Nothing", "It is nothing.", "0",
                          checks=(Check("nothing", ("formula",), zero, expected=("formula",)),)),),
    figures=(Entry("figure9", "Outside", draw, lambda effort: 1.0),),
    tasks=(Task("squares", square, keys=("side",)),),
)
'''


@pytest.fixture
def outside(tmp_path):
    """A folder of two distributions, as installed: a paper, and one that cannot be imported."""
    for name, code in (("outside_paper", OUTSIDE), ("broken_paper", "raise RuntimeError('not today')\n")):
        (tmp_path / f"{name}.py").write_text(code)
        info = tmp_path / f"{name}-1.5.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.5\n")
        (info / "entry_points.txt").write_text(f"[yzflow.papers]\n{name} = {name}:PAPER\n")
        (info / "top_level.txt").write_text(f"{name}\n")
        (info / "RECORD").write_text("")

    def run(program, *, code=0):
        environment = {"PYTHONPATH": f"{tmp_path}:{ROOT}", "MPLBACKEND": "agg", "PATH": "/usr/bin:/bin"}
        command = [sys.executable, "-c", textwrap.dedent(program)]
        done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == code, done.stderr
        return done

    return run


@pytest.mark.slow
def test_installed_papers_are_found_also_in_processes_and_a_broken_one_is_left_out(outside, tmp_path):
    program = """
        import json
        import yzflow as yz
        from theory import papers
        from yzflow.figures import entries
        if __name__ == "__main__":
            found, ours = list(yz.papers()), [one.slug for one in papers.built_in()]
            assert len(ours) == 3 and found[:3] == ours and "outside" in found[3:]
            assert papers.left_out() == {"broken_paper": "not today"}
            assert "figure9" in entries() and entries()["figure9"].paper != "Outside"
            assert entries()["outside_figure9"](quick=True).axes
            found = yz.sweep("squares", {"side": [2, 3]}, store="store", workers=1, progress=False)
            assert found["square"].values.ravel().tolist() == [4, 9]
            assert json.loads(found.attrs["code"])["outside_paper"]["version"] == "1.5"
            verdict = yz.check("Outside: Theorem 3")
            open("check.json", "w").write(verdict.json())
            assert yz.rerun("check.json").same
        """
    done = outside(program)
    assert "the paper broken_paper of broken_paper 1.5 is left out: not today" in done.stderr
    file = tmp_path / "outside_paper.py"
    file.write_text(file.read_text() + "\n# changed\n")
    again = outside("import yzflow as yz; print(yz.rerun('check.json').text())").stdout
    assert "code of outside_paper" in again and "Same bits" in again
    file.unlink()
    for info in tmp_path.glob("outside_paper-*/*"):
        info.unlink()
    refused = outside("import yzflow as yz; yz.rerun('check.json')", code=1).stderr
    assert "that of outside_paper 1.5, which is not installed" in refused


def addition(**changes):
    given = {"levels": ("flow",), "statements": (theorem("Theorem 9"),), "adds_to": "Decay"}
    named = {"name": "Further decay", "slug": "further_decay", "reference": "made up for a test"}
    return Paper(**{**named, **given, **changes})


def test_a_package_adds_to_a_paper_under_its_name(registered):
    registered(paper(questions={"Theorem 3": ("Why?", "So.")}))
    more = addition(questions={"Theorem 9": ("And?", "Yes.")}, proofs={"further": solution})
    assert "Decay: Theorem 9" not in statements.REGISTER
    registered(more)
    host = yz.papers()["decay"]
    assert [one.number for one in host.statements] == ["Theorem 3", "Theorem 9"]
    assert host.questions == {"Theorem 3": ("Why?", "So."), "Theorem 9": ("And?", "Yes.")}
    assert host.proofs == {"further": solution}
    assert statements.REGISTER["Decay: Theorem 9"] is more.statements[0]
    assert yz.check("Decay: Theorem 9").passed and "further_decay" not in yz.papers()
    # A copy of the paper is the same paper: what was added is there once.
    assert replace(host, reference="again").statements == host.statements
    table.forget()
    assert "Decay: Theorem 9" not in statements.REGISTER and table.additions("Decay") == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"statements": (theorem(),)}, "`statements` must have numbers that Decay does not have, but got 'Theorem 3'"),
        ({"adds_to": "Growth", "statements": ()}, "`adds_to` must be the name of an installed paper, but got 'Growth'"),
        ({"slug": "decay"}, "`paper` must have a name and a slug of its own, unlike Decay"),
    ],
)
def test_an_addition_that_does_not_fit_is_refused_and_leaves_the_paper_as_it_was(registered, changes, said):
    registered(paper())
    with pytest.raises(ValueError, match=re.escape(said)):
        registered(addition(**changes))
    assert [one.number for one in yz.papers()["decay"].statements] == ["Theorem 3"] and table.additions("Decay") == []


def test_a_statement_of_another_paper_is_no_part_of_an_addition():
    with pytest.raises(ValueError, match="Growth"):
        addition(statements=(theorem("Theorem 9", paper="Growth"),))


def test_a_part_of_an_addition_that_cannot_be_imported_is_left_out_and_said(registered):
    registered(paper(questions={"Theorem 3": ("Why?", "So.")}))
    registered(addition(questions=later("math:nothing_of_the_kind")))
    with pytest.warns(UserWarning, match="`questions` of Further decay is left out: .*nothing_of_the_kind"):
        assert yz.papers()["decay"].questions == {"Theorem 3": ("Why?", "So.")}


def test_our_own_outputs_have_no_word_of_papers_from_outside(registered):
    ours = [one.slug for one in table.built_in()]
    registered(paper())
    assert [one.slug for one in table.built_in()] == ours
    assert yz.audit(["Scan and Snap: Lemma 2"], quick=True).environment().keys().isdisjoint({"code"})
    assert "Decay" in CliRunner().invoke(cli.main, ["statements", "--paper", "decay"]).output
    assert json.loads(yz.audit(["Decay: Theorem 3"]).json())["made"]["environment"].get("code")
    assert all(entry.paper != "Decay" for entry in entries().values())


def test_commands_take_a_paper(registered):
    registered(paper())
    run = CliRunner().invoke
    assert "Decay" in run(cli.main, ["papers"]).output
    assert json.loads(run(cli.main, ["papers", "--json"]).output)[-1]["statements"] == 1
    done = run(cli.main, ["audit", "--paper", "decay", "--quick", "--json"])
    assert done.exit_code == 0 and '"setting": "slow"' in done.output
    both = run(cli.main, ["audit", "--paper", "decay", "--only", "Lemma 1"])
    assert both.exit_code == 2 and "`--paper` must be left out beside --only" in both.output
    none = run(cli.main, ["survival", "--paper", "decay", "--quick"])
    assert none.exit_code == 2 and "`statements` must name some that are measured on training" in none.output
