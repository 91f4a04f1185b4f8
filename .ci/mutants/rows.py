"""Mutants of measures, which only whole audits run: the rows of the quick audit that reach each, one by one.

Killed is one with which a row alarms, or raises: `test_every_proof_holds_and_no_statement_that_should_hold_fails` of
`tests/yzflow/audits/test_audit.py` is red then, but takes minutes, as it proves all statements and measures all rows.
Started by `python .ci/mutants audit ID..` in the copy of the tree; takes a minute or two, then a second for each.
"""

from __future__ import annotations

import functools
import gc
import importlib
import json
import os
import sys
from pathlib import Path

import server
from operators import Mutant, module_of

TEST = "tests/yzflow/audits/test_audit.py::test_every_proof_holds_and_no_statement_that_should_hold_fails"


def main() -> None:
    """Do the task: each mutant in a fork, with the simulations that all rows share."""
    import coverage

    from theory import statements
    from yzflow.audits import audit

    task = json.loads(Path(os.environ["MUTANTS_TASK"]).read_text())
    todo = [Mutant(**one) for one in task["mutants"]]
    files = sorted({mutant.file for mutant in todo})
    for file in files:
        importlib.import_module(module_of(file))
    root = os.getcwd()
    tracer = coverage.Coverage(data_file=None, config_file=False, include=[os.path.join(root, f) for f in files])
    tracer.set_option("run:disable_warnings", ["no-data-collected"])
    made = {
        paper: [audit.Simulations(setting, seed=0) for setting in settings]
        for paper, settings in audit.settings(quick=True).items()
    }
    rows = []
    for statement in statements.REGISTER.values():
        for runs in made.get(statement.paper, ()):
            for check, level in [(one, level) for one in statement.checks for level in one.levels]:
                tracer.erase()
                tracer.start()
                row = audit.measure(statement, check, level, runs, None)
                tracer.stop()
                data = tracer.get_data()
                lines = {(os.path.relpath(f, root), n) for f in data.measured_files() for n in data.lines(f) or ()}
                if not row.alarming:
                    rows.append(((statement, check, level, runs), lines))
    for each in gc.get_objects():  # what a check keeps from call to call
        if isinstance(each, functools._lru_cache_wrapper) and getattr(each, "__module__", "").startswith("theory"):
            each.cache_clear()
    alive = server._alive(files)
    with open(task["results"], "a", buffering=1, encoding="utf-8") as results:
        for number, mutant in enumerate(todo):
            changed = {(mutant.file, line) for line in range(mutant.line, mutant.end_line + 1)}
            # All rows of a statement of which one reaches it, that one first: what is kept hides lines from the others.
            reached = {row[0].id for row, lines in rows if lines & changed}
            some = sorted((one for one in rows if one[0][0].id in reached), key=lambda one: not one[1] & changed)

            def work(tell, mutant=mutant, some=some):
                wrong = server._put(mutant, alive)
                tell(wrong or {"row": next(filter(None, (_wrong(audit, *row) for row, _ in some)), None)})

            *told, end = server._fork(work, cpu=200, wall=1000)
            found = told[0] if told else end
            if found.get("row"):
                record = {"mutant": mutant.name, "status": "killed", "by": TEST, "row": found["row"]}
                results.write(json.dumps(record) + "\n")
            server._progress(number + 1, len(todo), f"{found} {mutant.file}:{mutant.line}")


def _wrong(audit, statement, check, level, runs):
    """Text of the row, if it alarms; or of what it raised."""
    try:
        row = audit.measure(statement, check, level, runs, None)
    except Exception as error:
        return f"{statement.id} at {level}: {type(error).__name__}"
    return f"{statement.id} at {level} alarms" if row.alarming else None


if __name__ == "__main__":
    sys.exit(main())
