"""The engines of `yzflow` with hostile values in every argument: a result, or ``ValueError`` in our grammar.

By default each argument gets a few of the values; the long form takes all of them, and then several at once.
"""

from concurrent.futures import ThreadPoolExecutor

import hostile
import matplotlib.figure
import pytest
import sweep_tasks

import yzflow
from dynamics import SequenceClasses, sgd
from dynamics.support.netcdf import save_dataset
from theory import statements
from yzflow import crates, examples, figures
from yzflow.figures import registry
from yzflow.pages import contents
from yzflow.sweeps import cache, config, store, sweep

STATEMENT = "Bounded Dyck: Corollary 2"  # whose proof is kept


@pytest.fixture(scope="module")
def calls(tmp_path_factory):
    """Name -> (callable, arguments), made in a folder that takes the files of hostile paths too."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path_factory.mktemp("hostile"))
        classes = SequenceClasses([[0.2, 0.8, 0.0], [0.2, 0.0, 0.8]], [0, 0], vocab_size=4)
        figure = matplotlib.figure.Figure()
        with ThreadPoolExecutor(1) as pool:
            swept = {"task": sweep_tasks.plain, "grid": {"a": [1]}, "store": "runs", "seeds": 1, "progress": False}
            save_dataset(yzflow.sweep(**swept, executor=pool), "sweep.nc")
            runs = store.Store("runs")
            [key] = runs.keys()
            with open("c.toml", "w") as file:
                file.write('task = "syn_small"\n[grid]\nsteps = [2]\n')
            report = yzflow.audit([STATEMENT], quick=True)
            entry = figures.find("9")
            drawn = {entry.name: entry.data(registry.Effort(quick=True))}
            # Of all statements, as without `only`, one.
            patch.setattr(statements, "REGISTER", {STATEMENT: statements.REGISTER[STATEMENT]})
            trajectory = {"eta_y": 0.1, "eta_z": 0.1, "steps": 1}
            sgd(classes, **trajectory).save("run.nc")
            yield {
                "sweep": (yzflow.sweep, swept | {"executor": pool, "workers": None}),
                "load_sweep": (sweep.load_sweep, {"path": "sweep.nc"}),
                "Store": (store.Store, {"path": "runs"}),
                "Store.read": (runs.read, {"key": key}),
                "Store.dataset": (runs.dataset, {"task": runs.dataset().attrs["task"]}),
                "Store.consolidate": (runs.consolidate, {"path": "all.nc", "task": None}),
                "Store.__contains__": (runs.__contains__, {"key": key}),
                "config.load": (config.load, {"path": "c.toml"}),
                "cache.trajectory": (cache.trajectory, {"simulate": sgd, "classes": classes, "store": "kept",
                                                        "progress": False, **trajectory}),
                "figures.find": (figures.find, {"name": "9"}),
                "figures.names": (figures.names, {"given": False}),
                "figures.save": (figures.save, {"figure": figure, "stem": "figure", "formats": ["png"]}),
                "figures.save_all": (figures.save_all, {"shown": drawn, "folder": ".", "formats": ["png"]}),
                "figures.Effort": (registry.Effort, {"quick": True, "store": None, "progress": False}),
                "figures.Entry.data": (entry.data, {"effort": registry.Effort(quick=True)}),
                "rerun": (yzflow.rerun, {"path": "run.nc", "progress": False}),
                "crates.describe": (crates.describe, {"folder": "runs", "name": "Runs", "terms": ""}),
                "examples.find": (examples.find, {"name": "extensions"}),
                "examples.copy": (examples.copy, {"name": "sweep.toml", "to": "copies"}),
                "audit": (yzflow.audit, {"only": [STATEMENT], "quick": True, "seed": 0, "progress": False}),
                "check": (yzflow.check, {"statement": STATEMENT, "quick": True, "seed": 0, "progress": False}),
                "page": (yzflow.page, {"statement": STATEMENT, "path": "page.html", "quick": True, "seed": 0,
                                       "progress": False}),
                "contents.write_all": (contents.write_all, {"path": "pages", "only": [STATEMENT], "quick": True,
                                                            "seed": 0, "progress": False}),
                "AuditReport.to_json": (report.to_json, {"path": "audit.json"}),
                "AuditReport.to_html": (report.to_html, {"path": "audit.html"}),
            }  # fmt: skip


@pytest.mark.parametrize("name", [
    "sweep", "load_sweep", "Store", "Store.read", "Store.dataset", "Store.consolidate", "Store.__contains__",
    "config.load", "cache.trajectory", "figures.find", "figures.names", "figures.save", "figures.save_all",
    "figures.Effort", "figures.Entry.data", "rerun", "crates.describe", "examples.find", "examples.copy",
    "audit", "check", "page", "contents.write_all", "AuditReport.to_json", "AuditReport.to_html",
])  # fmt: skip
def test_hostile_arguments_end_in_a_result_or_our_grammar(calls, name):
    function, arguments = calls[name]
    found = hostile.complaints(name, function, arguments, functions={"simulate"})
    assert not found, f"{len(found)} calls:\n" + "\n".join(found)
