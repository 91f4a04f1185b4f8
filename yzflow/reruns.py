"""Saved files, made again and compared: the same bits, or the differences and their possible causes."""

from __future__ import annotations

import inspect
import json
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from dynamics import Run, Trajectory
from dynamics.fields.table import entry_of
from dynamics.support import checks, distributions, files, sealed
from dynamics.support.calls import Call
from dynamics.support.content import changes
from dynamics.support.origins import Code, Origin, check_is_here, read_outside
from dynamics.support.provenance import environment
from yzflow.audits.audit import Enclose, audit
from yzflow.audits.check import OWN_ARGUMENTS, check
from yzflow.audits.rendered import as_json
from yzflow.audits.survival import load as load_survival
from yzflow.audits.survival import survival
from yzflow.sweeps.sweep import load_sweep, sweep
from yzflow.sweeps.tasks import of_a_file, resolve

__all__ = ["Difference", "Factor", "RerunReport", "rerun"]

# Words for the parts of the environment.
_FACTORS = {
    "platform": "operating system",
    "cpu": "processor",
    "cores": "number of cores",
    "blas": "BLAS",
    "threads": "threads of numba",
    "compilation": "compilation",
    "source": "code of yzflow",
    "commit": "commit",
}


@dataclass(frozen=True)
class Difference:
    """A variable that came out differently.

    Attributes
    ----------
    name : str
        A variable of the file, or a path in it.
    largest : float
        The largest difference of two numbers; nan if they are no numbers or their shapes differ.
    scale : float
        The largest number of this variable in the file.
    """

    name: str
    largest: float
    scale: float

    def __str__(self) -> str:
        if self.largest != self.largest:
            return f"{self.name}: not the same kind or number of values"
        relative = f", {self.largest / self.scale:.2g} of the largest" if self.scale > 0 else ""
        return f"{self.name}: by at most {self.largest:.3g}{relative}"


@dataclass(frozen=True)
class Factor:
    """A possible cause of other bits: a version, machine or code that differs from that of the file."""

    name: str
    then: str
    now: str

    def __str__(self) -> str:
        return f"{self.name}: {_brief(self.then)} then, {_brief(self.now)} now"


@dataclass(frozen=True)
class RerunReport:
    """The result of `yzflow.rerun`.

    Attributes
    ----------
    path : str
    kind : str
        The kind of the file.
    compared : int
        Variables, or numbers and words of a JSON file, that were compared.
    differences : tuple of Difference
    factors : tuple of Factor
        Everything that differs here, whether or not it changed a bit.
    unknown : tuple of str
        Facts on its making that the file does not hold.
    """

    path: str
    kind: str
    compared: int
    differences: tuple[Difference, ...]
    factors: tuple[Factor, ...]
    unknown: tuple[str, ...] = ()

    @property
    def same(self) -> bool:
        """True if everything that was compared has the same bits."""
        return not self.differences

    def text(self) -> str:
        """The verdict, the differences, and the factors."""
        what = f"{self.path} ({self.kind})"
        if self.same:
            lines = [f"Same bits: {what}; {self.compared} compared."]
        else:
            lines = [f"Other bits: {what}; {len(self.differences)} of {self.compared} differ."]
            lines += [f"  {difference}" for difference in self.differences]
        if self.factors:
            lines += ["Different here:", *(f"  {factor}" for factor in self.factors)]
        else:
            lines.append("Nothing that the file says of how it was made is different here.")
        if self.unknown:
            lines.append(f"The file does not say: {', '.join(self.unknown)}.")
        return "\n".join(map(_printable, lines))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"same": self.same, **asdict(self)}

    def json(self) -> str:
        """Everything as JSON."""
        return as_json(self.as_dict())


def rerun(path: str | os.PathLike, *, progress: bool = False, **given: Any) -> RerunReport:
    """Make a saved file again, and compare the two bit by bit.

    Parameters
    ----------
    path : path-like
        A trajectory (`Trajectory.save`, ``yzflow flow`` and ``sgd``), a run of an open flow (`Run.save`), a sweep
        (``yzflow sweep``), a survival table (``yzflow survival``), an audit or a check as JSON (``yzflow audit --out``,
        ``yzflow check --json --out``), or a certificate (`Enclosure.save`).
    progress : bool
        Show progress on standard error.
    **given
        Arguments that the file does not hold: ``data`` of more than 64 MiB of a trajectory; ``task``, your function
        that a sweep ran; ``flow``, your flow of a run or a certificate, or its class. A file never decides what runs: a
        name in it is looked up among installed entry points and the objects that you handed over in this process.

    Raises
    ------
    ValueError
        If the file is none of these, is damaged, does not say how it was made, or names code that nobody handed over.
    FileNotFoundError
        If there is no such file.
    ImportError
        If it is an audit in balls, and yzflow-enclose is not installed.

    Examples
    --------
    >>> import yzflow as yz
    >>> classes = yz.SequenceClasses.syn_small()
    >>> yz.sgd(classes, eta_y=1, eta_z=1, steps=10).save("sgd.nc"); yz.rerun("sgd.nc").same
    True
    """
    file = checks.path("path", path)
    with files.opened("path", file) as opened:
        head = opened.read(8)
    if head.startswith(b"\x89HDF"):
        return _dataset(file, progress, given)
    if head.startswith(b"PK"):
        _only("a certificate", given, "flow")
        return _certificate(file, progress, given.get("flow"))
    _only("this file", given)
    if head.lstrip().startswith(b"{"):
        return _json(file, progress)
    raise checks.reject(
        "path", "be a trajectory, a sweep, a survival table, an audit, a check or a certificate", os.fspath(path)
    )


def _dataset(path: Path, progress: bool, given: Mapping[str, Any]) -> RerunReport:
    loader = _RESULTS.get(sealed.kind_of(path))
    if loader is None:
        kind, saved, make = saved_table(path)
        _only(kind.partition(" of ")[0], given, *(("task",) if make is _sweep else ()))
        check_is_here(read_outside(saved.attrs.get("code", "")))
        again = make(saved, progress, **given)
        report = _report(path, kind, saved, again, saved.attrs)
        return replace(report, factors=(*report.factors, *_of_content(saved.attrs, again.attrs)))
    result = loader(path)
    what = "a run" if isinstance(result, Run) else "a trajectory"
    call = result.call
    if call is None:
        raise checks.reject("path", "hold the call that made it", f"{path}, {what} without")
    field = tuple(_of_field(result.parameters)) if isinstance(result, Trajectory) else ()
    again = call.make(progress=progress, **given)
    then, now = (made.saved if isinstance(made, Run) else made.dataset for made in (result, again))
    report = _report(path, f"{what} of {call.function}", then, now, result.environment)
    return replace(report, factors=(*report.factors, *_of_code(call), *field))


# Formats of files that hold their call.
_RESULTS: dict[str, Callable[[Path], Run | Trajectory]] = {
    "yzflow-trajectory-1": Trajectory.load,
    "yzflow-run-1": Run.load,
}


def _only(what: str, given: Mapping[str, Any], *names: str) -> None:
    for name in given:
        if name not in names:
            raise checks.reject(name, f"be left out for {what}", checks.brief(given[name]))


def _of_content(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Factor]:
    """Factors in the function of a sweep, and in the data that it reads."""
    pair = [_said_as_json(attributes, "content") for attributes in (then, now)]
    for name, (was, here) in changes(*pair).items():
        yield Factor(f"{name} of {then['task']}", str(was), str(here))


def _of_code(call: Call) -> Iterator[Factor]:
    """Factors in the code of others that a call names."""
    for value in call.arguments.values():
        if isinstance(value, Origin) and value.code is not None:
            yield from _changed(value.code)


def _changed(code: Code, now: Code | None = None) -> Iterator[Factor]:
    for name, (then, here) in code.factors(now).items():
        yield Factor(name, then or "none", here or "none")


def _of_field(parameters: Mapping[str, Any]) -> Iterator[Factor]:
    """Factors in the code of a registered field that the run used, if it used one.

    Raises
    ------
    ValueError
        If the field is not known here: a file holds no code, and says only where its field came from.
    """
    kept = parameters.get("field")
    if not isinstance(kept, dict):
        return
    name, then = str(parameters["decoder"]), {key: str(value) for key, value in kept.items()}
    code = _code_of_field(then)
    try:
        now = entry_of(name).recorded.get("field", {})
    except ValueError as error:
        rule = f"be registered before the file is made again: import {then.get('module')}, of {code.whose}"
        raise checks.reject("decoder", rule, repr(name)) from error
    yield from _changed(code, _code_of_field(now))
    for part in ("module", "functions"):
        was, here = (record.get(part) or "none" for record in (then, now))
        if was != here:
            yield Factor(f"{part} of {name}", was, here)


def _code_of_field(origin: Mapping[str, str]) -> Code:
    """The code in a record of `Field.origin`; a built-in field has none."""
    return Code(**{"package": "none"} | {one.name: origin[one.name] for one in fields(Code) if one.name in origin})


def saved_table(path: Path) -> tuple[str, xr.Dataset, Callable[..., xr.Dataset]]:
    """Kind of a file of a sweep or of a survival table, its content, and its maker; ValueError for any other file."""
    kind = sealed.kind_of(path)
    if kind == "yzflow-sweep-1":
        runs = load_sweep(path)
        return f"a sweep of {_said(path, runs, 'task')}", runs, _sweep
    if kind == "yzflow-survival-1":
        table = load_survival(path)
        return f"a survival table of {_said(path, table, 'paper')}", table, _survival
    rule = "be a trajectory, a run of an open flow, a sweep or a survival table"
    raise checks.reject("path", rule, f"{sealed.kinds()[kind]}, {os.fspath(path)!r}")


def _said(path: Path, dataset: xr.Dataset, name: str) -> str:
    if name not in dataset.attrs:
        raise checks.reject("path", f"say its {name}", f"a file without, {os.fspath(path)!r}")
    return str(dataset.attrs[name])


def _printable(line: str) -> str:
    """A line without characters that would end it or control a terminal, since parts of it come from a file."""
    return "".join(sign if sign.isprintable() else ascii(sign)[1:-1] for sign in line)


def _said_as_json(attributes: Mapping[str, Any], name: str, *keys: str) -> dict[str, Any]:
    """An attribute that holds a mapping as JSON; ValueError if it does not."""
    try:
        content = json.loads(str(attributes.get(name, "{}")))
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or not content.keys() >= set(keys):
        rule = f"say its {name} as JSON" + (f" with {' and '.join(keys)}" if keys else "")
        raise checks.reject("path", rule, checks.brief(attributes.get(name)))
    return content


def _sweep(runs: xr.Dataset, progress: bool, task: Any = None) -> xr.Dataset:
    name = str(runs.attrs["task"])
    configuration = _said_as_json(runs.attrs, "configuration", "grid", "seeds")
    _said_as_json(runs.attrs, "content")
    known = of_a_file(name) if task is None else resolve(task)
    if known.name != name:
        raise checks.reject("task", f"be {name}, whose runs are in the file", known.name)
    with tempfile.TemporaryDirectory() as folder:
        seeds = configuration["seeds"]
        return sweep(known, configuration["grid"], store=folder, seeds=seeds, progress=progress)


def _survival(table: xr.Dataset, progress: bool) -> xr.Dataset:
    if table.attrs.get("own"):
        raise checks.reject("path", "be of settings that a file can name", "a table of a reader's own data")
    # The same statements and options ask the same checks, so the table says what was asked for.
    statements = list(dict.fromkeys(table["statement"].values.tolist()))
    options = table["option"].values.tolist()
    quick, seed = bool(table.attrs["quick"]), int(table.attrs["seed"])
    seeds = int(table.attrs["seeds"])
    return survival(statements, options, quick=quick, seed=seed, seeds=seeds, progress=progress)


def _certificate(path: Path, progress: bool, flow: Any = None) -> RerunReport:
    if not distributions.installed(distributions.EVIDENCE.partition(".")[0]):
        raise sealed.another(path, "a certificate", files.read("path", path))
    evidence = distributions.bring(distributions.EVIDENCE, "making a certificate again")
    then, now = evidence.again(path, flow=flow, progress=progress)
    leaves, others = ({**made.arrays(), **dict(_leaves(dict(made.claimed)))} for made in (then, now))
    differences = tuple(_differences(leaves, others))
    report = RerunReport(
        str(path), "a certificate", len(leaves), differences, *_factors(then.environment, environment())
    )
    return replace(report, factors=(*report.factors, *(_changed(then.code) if then.code else ())))


def _json(path: Path, progress: bool) -> RerunReport:
    try:
        content = json.loads(files.read("path", path))
        made = content["made"]
        function, arguments, then = made["function"], dict(made["arguments"]), dict(made["environment"])
    except (ValueError, KeyError, TypeError) as error:
        raise checks.reject("path", "be JSON of an audit or a check that says how it was made", str(path)) from error
    codes = read_outside(then.get("code", ""))
    check_is_here(codes)
    if function == "check at own data":
        raise checks.reject(
            "path", "be of the register's settings, since a check at your own data holds none of them", path
        )
    makers: dict[str, Callable[..., Any]] = {"audit": audit, "check": check}
    make = makers[checks.one_of("function", function, tuple(makers))]
    _check_names("arguments", arguments, set(inspect.signature(make).parameters) - {"progress", *OWN_ARGUMENTS})
    if arguments.get("enclose") is not None:
        _check_names("enclose", arguments["enclose"], {field.name for field in fields(Enclose)})
        if arguments["enclose"]["folder"] is not None:
            raise checks.reject("path", "leave to you where to write", f"a folder, {arguments['enclose']['folder']!r}")
        arguments["enclose"] = Enclose(**arguments["enclose"])
    absent = [code.package for code in codes if code.package not in sys.modules]
    try:
        again = make(**arguments, progress=progress).json()
    except ValueError as error:  # for a statement or a field that nobody registered here
        if not absent:
            raise
        rule = f"be made again where its code is imported: import {', '.join(absent)} first"
        raise checks.reject("path", rule, f"{path} ({error})") from error
    leaves, others = (dict(_leaves({**whole, "made": None})) for whole in (content, json.loads(again)))
    differences = tuple(_differences(leaves, others))
    kind = "an audit" if function == "audit" else "a check"
    return RerunReport(str(path), kind, len(leaves), differences, *_factors(then, environment()))


def _check_names(name: str, given: Any, wanted: set[str]) -> None:
    if not isinstance(given, dict) or set(given) != wanted:
        raise checks.reject(name, f"have {', '.join(sorted(wanted))}", checks.brief(given))


def _report(path: Path, kind: str, then: xr.Dataset, now: xr.Dataset, attributes: Mapping[str, Any]) -> RerunReport:
    first, second = ({str(name): one.values for name, one in whole.variables.items()} for whole in (then, now))
    return RerunReport(
        str(path), kind, len(first), tuple(_differences(first, second)), *_factors(attributes, environment())
    )


def _differences(then: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[Difference]:
    for name in {**then, **now}:
        if name not in then or name not in now:
            yield Difference(name, float("nan"), float("nan"))
            continue
        first, second = _plain(then[name]), _plain(now[name])
        alike = first.dtype == second.dtype and first.shape == second.shape
        if alike and _same_bits(first, second):
            continue
        numbers = alike and first.dtype.kind in "fiub"
        if not numbers or (np.isfinite(first) != np.isfinite(second)).any():
            yield Difference(name, float("nan"), float("nan"))
            continue
        known = np.isfinite(first)
        largest = np.abs(first[known].astype(float) - second[known].astype(float)).max(initial=0.0)
        yield Difference(name, float(largest), float(np.abs(first[known].astype(float)).max(initial=0.0)))


def _plain(values: Any) -> np.ndarray:
    """Words as objects, since the room for letters in a file is not one of their bits."""
    array = np.asarray(values)
    return array.astype(object) if array.dtype.kind == "U" else array


def _same_bits(first: np.ndarray, second: np.ndarray) -> bool:
    """Compare bits, not values: 0 and -0 differ here, and nan equals itself."""
    return first.tolist() == second.tolist() if first.dtype.hasobject else first.tobytes() == second.tobytes()


def _leaves(node: Any, place: str = "") -> Iterator[tuple[str, Any]]:
    """The numbers and words of JSON content by their paths, and its empty containers."""
    if isinstance(node, (dict, list)) and not node:
        yield place, type(node).__name__
    elif isinstance(node, dict):
        for name, entry in node.items():
            yield from _leaves(entry, f"{place}.{name}" if place else str(name))
    elif isinstance(node, list):
        for i, entry in enumerate(node):
            yield from _leaves(entry, f"{place}[{i}]")
    else:
        yield place, node


def _factors(then: Mapping[str, Any], now: Mapping[str, str]) -> tuple[tuple[Factor, ...], tuple[str, ...]]:
    """Factors that differ here, and factors that the file does not name."""
    factors, unknown = [], []
    for name, value in now.items():
        if name == "versions":
            old, new = _versions(then.get(name)), _versions(value)
            changed = [key for key in new if key in old and old[key] != new[key]]
            factors += [Factor(f"version of {key}", old[key], new[key]) for key in changed]
            unknown += [f"version of {key}" for key in new if key not in old]
        elif not then.get(name):
            unknown += [_FACTORS[name]] if value else []
        elif str(then[name]) != value:
            factors.append(Factor(_FACTORS[name], str(then[name]), value))
    for code in read_outside(then.get("code", "")):
        factors += _changed(code)
    return tuple(factors), tuple(unknown)


def _versions(text: object) -> dict[str, str]:
    """Versions of packages; if the runs of a sweep were made with several versions, all of them."""
    try:
        content = json.loads(str(text))
        several = [json.loads(entry) for entry in content] if isinstance(content, list) else [content]
        names = {name: None for entry in several for name in entry}
        return {name: " and ".join(sorted({str(entry.get(name)) for entry in several})) for name in names}
    except (ValueError, TypeError, AttributeError):
        return {}


def _brief(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:40]}.."
