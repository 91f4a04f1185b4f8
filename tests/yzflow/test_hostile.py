"""The public names of `yzflow`, and its engines, with hostile values in every argument: a result, or ``ValueError``.

By default each argument gets a few of the values; the long form takes all of them, and then several at once.
"""

import dataclasses
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hostile
import matplotlib.figure
import pytest
import sweep_tasks
from public import public

import yzflow
from dynamics import Limits, SequenceClasses, sgd
from dynamics.support.netcdf import save_dataset
from theory import statements
from yzflow import check, examples, figures
from yzflow.figures import registry
from yzflow.pages import contents
from yzflow.sweeps import cache, config, store, sweep

PUBLIC = public("yzflow")
# Functions that no stub has, and that commands and other parts call with what users give.
ENGINES = {
    "load_sweep", "Store", "Store.read", "Store.dataset", "Store.consolidate", "Store.__contains__", "config.load",
    "cache.trajectory", "examples.find", "examples.copy", "contents.write_all",
}  # fmt: skip
EXEMPT = {
    hostile.RECORD: {
        "audits.check.StatementVerdict", "audits.report.AuditReport", "reruns.RerunReport",
    },
    "data of a figure, which its paper's own function takes": {
        "figures.registry.Entry.__call__", "figures.registry.Entry.caption",
    },
}  # fmt: skip
EXEMPT_NAMES = set().union(*EXEMPT.values())
FUNCTIONS = {"simulate"}
STATEMENT = "Scan and Snap: Lemma 2"  # whose proof is kept


class Stopped(Exception):
    """A table begins to simulate, which takes minutes: its arguments are checked."""


def stopped(*given, **named):
    raise Stopped


def parts():
    """Parts of a paper, as its fields are named."""
    some = yzflow.papers()["scan_and_snap"]
    of_tools = {"enclosing": None, "watched": None, "rivals": ()}  # which need not be installed
    whole = {
        part.name: of_tools[part.name] if part.name in of_tools else getattr(some, part.name)
        for part in dataclasses.fields(some)
    }
    return whole | {"name": "A paper", "slug": "a_paper"} | dict.fromkeys(("statements", "figures"), ())


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """Name -> (callable, arguments), made in a folder that takes the files of hostile paths too."""
    with pytest.MonkeyPatch.context() as patch, Limits(evaluations=2000):
        patch.chdir(tmp_path_factory.mktemp("hostile"))
        classes = SequenceClasses([[0.2, 0.8, 0.0], [0.2, 0.0, 0.8]], [0, 0], vocab_size=4)
        with ThreadPoolExecutor(1) as pool:
            swept = {"task": sweep_tasks.plain, "grid": {"a": [1]}, "store": "runs", "seeds": 1, "progress": False}
            save_dataset(yzflow.sweep(**swept, executor=pool), "sweep.nc")
            runs = store.Store("runs")
            [key] = runs.keys()
            Path("c.toml").write_text('task = "syn_small"\n[grid]\nsteps = [2]\n')
            report = yzflow.audit([STATEMENT], quick=True)
            entry = figures.find("9")
            drawn = {entry.name: entry.data(registry.Effort(quick=True))}
            own = statements.REGISTER["Scan and Snap: Theorem 3"]
            # Of all statements, as without `only`, one.
            patch.setattr(statements, "REGISTER", {STATEMENT: statements.REGISTER[STATEMENT]})
            verdict = check(STATEMENT, quick=True)
            [statement] = report.statements
            of_statement = {"statement": statement}
            patch.setattr("yzflow.audits.survival.sweep", stopped)
            axes = matplotlib.figure.Figure().subplots()
            drawing = {"ax": axes, "style": {"lines.linewidth": 2.0}}
            trajectory = {"eta_y": 0.1, "eta_z": 0.1, "steps": 1}
            run = sgd(classes, **trajectory)
            run.save("run.nc")
            yield {
                "sweeps.sweep.sweep": (yzflow.sweep, swept | {"executor": pool, "workers": None}),
                "load_sweep": (sweep.load_sweep, {"path": "sweep.nc"}),
                "Store": (store.Store, {"path": "runs"}),
                "Store.read": (runs.read, {"key": key}),
                "Store.dataset": (runs.dataset, {"task": runs.dataset().attrs["task"]}),
                "Store.consolidate": (runs.consolidate, {"path": "all.nc", "task": None}),
                "Store.__contains__": (runs.__contains__, {"key": key}),
                "config.load": (config.load, {"path": "c.toml"}),
                "cache.trajectory": (cache.trajectory, {"simulate": sgd, "classes": classes, "store": "kept",
                                                        "progress": False, **trajectory}),
                "figures.finding.find": (figures.find, {"name": "9", "paper": "Scan and Snap"}),
                "figures.registry.names": (figures.names, {"given": False}),
                "figures.style.save": (figures.save, {"figure": axes.figure, "stem": "figure", "formats": ["png"]}),
                "figures.save_all": (figures.save_all, {
                    "shown": drawn, "folder": ".", "formats": ["png"], "among": ()}),
                "figures.registry.Effort": (registry.Effort, {"quick": True, "store": None, "progress": False}),
                "figures.registry.Entry.data": (entry.data, {"effort": registry.Effort(quick=True)}),
                "reruns.rerun": (yzflow.rerun, {"path": "run.nc", "progress": False}),
                "examples.find": (examples.find, {"name": "extensions"}),
                "examples.copy": (examples.copy, {"name": "sweep.toml", "to": "copies"}),
                "audits.audit.audit": (yzflow.audit, {
                    "only": [STATEMENT], "quick": True, "seed": 0, "enclose": None, "progress": False}),
                "audits.check.check": (yzflow.check, {
                    "statement": own, "data": classes, "eta_y": 0.1, "eta_z": 0.1, "t_end": 2.0, "optimizer": None,
                    "objective": None, "level": "theory flow", "quick": True, "seed": 0, "progress": False}),
                "fuzzing.campaign.fuzz": (yzflow.fuzz, {
                    "statement": "Scan and Snap: Theorem 2(a)", "level": "theory flow", "examples": 1, "seed": 0,
                    "like": None, "outside": None, "store": None, "executor": None, "progress": False, "at": None}),
                "audits.which.which": (yzflow.which, {
                    "data": classes, "eta_y": 0.1, "eta_z": 0.1, "t_end": 2.0, "length": 8, "optimizer": "sgd",
                    "tokens": None}),
                "pages.writing.page": (yzflow.page, {
                    "statement": STATEMENT, "path": "page.html", "quick": True, "seed": 0, "progress": False,
                    "certificates": None, "verifier": None, "tried": None}),
                "contents.write_all": (contents.write_all, {"path": "pages", "only": [STATEMENT], "quick": True,
                                                            "seed": 0, "progress": False, "run": True}),
                "audits.report.AuditReport.to_json": (report.to_json, {"path": "audit.json"}),
                "audits.report.AuditReport.to_html": (report.to_html, {"path": "audit.html"}),
                **{f"audits.report.AuditReport.{name}": (getattr(report, name), of_statement)
                   for name in ("of", "labels", "summary", "summaries", "vacuous")},
                "audits.report.AuditReport.columns": (report.columns, of_statement
                                                      | {"everywhere": False, "absent": ()}),
                "audits.report.AuditReport.labels_of": (report.labels_of, of_statement
                                                        | {"clause": statement.clauses[0]}),
                "audits.report.AuditReport.plot": (report.plot, {"statement": None, **drawing}),
                "audits.check.StatementVerdict.page": (verdict.page, {"path": "verdict.html"}),
                "audits.check.StatementVerdict.text": (verdict.text, {"verbose": False}),
                "audits.survival.survival": (yzflow.survival, {
                    "statements": ["Theorem 3"], "options": ["adamw"], "settings": None, "quick": True, "seed": 0,
                    "seeds": 1, "store": None, "progress": False, "workers": 1}),
                "figures.registry.Entry": (registry.Entry, {
                    name: value for name, value in vars(entry).items() if name != "__signature__"
                } | {"compute": entry.compute, "claims": None}),
                "figures.registry.Entry.film": (figures.find("moving_attention").film, {
                    "path": "film.gif", "data": run, "seconds": 0.4, "fps": 5, "quick": True, "store": None,
                    "progress": False}),
                "figures.registry.draw": (figures.draw, {"name": entry.name, "stem": "drawn"}),
                "paper.Paper": (yzflow.Paper, parts()),
                "paper.register": (yzflow.register, {"paper": next(iter(yzflow.papers().values()))}),
            }  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({*PUBLIC, *ENGINES} - EXEMPT_NAMES))
def test_hostile_arguments_end_in_a_result_or_our_grammar(calls, name):
    function, arguments = calls[name]
    found = hostile.complaints(name, function, arguments, functions=FUNCTIONS, also=(Stopped,))
    assert not found, f"{len(found)} calls:\n" + "\n".join(found)


def test_every_call_is_of_a_public_name_or_an_engine(calls):
    assert set(calls) == {*PUBLIC, *ENGINES} - EXEMPT_NAMES
    assert set(PUBLIC) >= EXEMPT_NAMES
    assert not hostile.without(calls)
