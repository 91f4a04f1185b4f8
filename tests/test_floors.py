"""The floors of `dynamics` and `yzflow`: no module imports one of a higher floor, for types and in functions too."""

import ast
from pathlib import Path

import pytest
from driving import ROOT

# From the ground up. A row names modules, each with all that is in it; of two rows, the longer name counts. A package's
# own file, which hands public names on, is named alone.
FLOORS = {
    "dynamics": {
        "backend": ["dynamics.backend"],
        "support": ["dynamics.support", "dynamics.version", "dynamics._shown"],
        "data": ["dynamics.bags", "dynamics.data"],
        # Weights, the kind of a layer, the objective and the steps: all that the kernels have to know of a layer.
        "objective": [
            "dynamics._model.weights",
            "dynamics._model.objective",
            "dynamics.optimizers",
            "dynamics.options",
        ],
        "gradient": ["dynamics._model"],
        # Its loss and its gradient are the kernels'.
        "layer": ["dynamics.layer"],
        "results": ["dynamics.observables", "dynamics.trajectory", "dynamics.run"],
        "fields": ["dynamics.fields"],
        "engine": ["dynamics._engine"],
        "assembly": ["dynamics._assembly"],
        "sgd, flow, ensembles": [
            "dynamics._engine.sgd",
            "dynamics._engine.chunks",
            "dynamics._engine.grid",
            "dynamics._engine.lane_field",
            "dynamics._engine.lane_records",
            "dynamics._engine.lanes",
            "dynamics._engine.one_by_one",
            "dynamics.descent",
            "dynamics.diffusion",
            "dynamics.ensemble",
            "dynamics.extensions",
            "dynamics.flow",
            "dynamics.noise",
            "dynamics.open_descent",
            "dynamics.open_flow",
        ],
        "the public names": ["dynamics"],
    },
    "yzflow": {
        "ground": [
            "yzflow._dynamics",
            "yzflow._elsewhere",
            "yzflow._theory",
            "yzflow.figure_settings",
            "yzflow.intervals",
            "yzflow.pages.files",
            "yzflow.parts",
            "yzflow.scripts",
            "yzflow.values",
        ],
        # Parts that a paper or a study gives to the rooms: a task, a figure, rows of tables, a panel, views.
        "parts": [
            "yzflow.audits.case",
            "yzflow.audits.formulas",
            "yzflow.audits.options",
            "yzflow.audits.campaign_table",
            "yzflow.figures.film",
            "yzflow.figures.notebook",
            "yzflow.figures.registry",
            "yzflow.figures.style",
            "yzflow.pages.explorer",
            "yzflow.pages.live",
            "yzflow.sweeps.collect",
            "yzflow.sweeps.runs",
            "yzflow.sweeps.store",
        ],
        "papers and studies": ["yzflow.paper", "yzflow.studies"],
        "sweeps": ["yzflow.sweeps"],
        "figures": ["yzflow.figures"],
        "audits": ["yzflow.audits"],
        "pages": ["yzflow.pages"],
        # A verdict writes its page.
        "checks": ["yzflow.audits.check", "yzflow.pages.contents", "yzflow.pages.writing"],
        "fuzzing": ["yzflow.fuzzing"],
        "users of the rooms": [
            "yzflow.examples",
            "yzflow.listing",
            "yzflow.papers",
            "yzflow.reruns",
            "yzflow.testing",
        ],
        "the public names": ["yzflow", "yzflow.skeleton"],
        "commands": ["yzflow.commands", "yzflow.cli", "yzflow.__main__"],
    },
}


def modules(root: Path, package: str) -> dict[str, Path]:
    """Each module by its dotted name."""
    paths = sorted((root / package).rglob("*.py"))
    return {".".join(path.relative_to(root).with_suffix("").parts).removesuffix(".__init__"): path for path in paths}


def covers(name: str, module: str) -> bool:
    return module == name or ("." in name and module.startswith(f"{name}."))


def floor_of(module: str, floors: dict[str, list[str]]) -> int:
    """The floor of a module, from 0."""
    rows = [(name, level) for level, names in enumerate(floors.values()) for name in names if covers(name, module)]
    assert rows, f"no row names {module}"
    return max(rows, key=lambda row: len(row[0]))[1]


def arrows(root: Path, package: str) -> set[tuple[str, str]]:
    """Pairs (module, module that it imports) of a package, wherever in the file the import stands."""
    known = modules(root, package)
    pairs = set()
    for module, path in known.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                assert node.level == 0, f"{module} imports relatively"
                deeper = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [name if name in known else str(node.module) for name in deeper]
            else:
                continue
            pairs.update((module, name) for name in names if name in known)
    return pairs


def rising(root: Path, package: str, floors: dict[str, list[str]]) -> set[tuple[str, str]]:
    """The arrows that go up."""
    level = {module: floor_of(module, floors) for module in modules(root, package)}
    return {(module, other) for module, other in arrows(root, package) if level[module] < level[other]}


@pytest.mark.parametrize("package", FLOORS)
def test_no_arrow_goes_up(package):
    assert rising(ROOT, package, FLOORS[package]) == set()


@pytest.mark.parametrize("package", FLOORS)
def test_every_row_names_a_module_once(package):
    names = [name for row in FLOORS[package].values() for name in row]
    assert len(names) == len(set(names))
    assert set(names) <= set(modules(ROOT, package))
