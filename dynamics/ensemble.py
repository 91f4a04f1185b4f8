"""Many gradient flows at once."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import xarray as xr
from numpy.typing import ArrayLike

from dynamics._engine import chunks, one_by_one
from dynamics._engine import lane_records as records
from dynamics._engine import lanes as ensemble
from dynamics._engine.drive import Clock
from dynamics._engine.grid import Grid
from dynamics.bags import Bags, Data, population_of
from dynamics.fields.table import Entry, entry_of
from dynamics.support import checks
from dynamics.support.checks import read_only
from dynamics.support.limits import current
from dynamics.support.progress import Progress
from dynamics.support.provenance import provenance

__all__ = ["RECORDS", "gradient_flow_ensemble"]

_FORMAT = "yzflow-flow-ensemble-1"
# Records that can be kept at the output times.
RECORDS = ("z", "attention", "loss", "z_velocity", "y")
_ATTRIBUTES = {
    "z": {"long_name": "attention logit", "units": "1"},
    "attention": {"long_name": "attention c_n, given the token's own class or any class for the common one"},
    "loss": {"long_name": "expected cross-entropy", "units": "nats"},
    "z_velocity": {"long_name": "rate of change of the attention logit", "units": "1 / SGD step"},
    "y": {"long_name": "decoder logit", "units": "1"},
    "fastest_time": {"long_name": "time at which the logit moves fastest; nan if it is the last", "units": "SGD steps"},
    "largest_speed": {"long_name": "largest speed of the logit", "units": "1 / SGD step"},
    "evaluations": {"long_name": "evaluations of the derivative"},
    "reached": {"long_name": "how far the flow came", "units": "SGD steps"},
    "failed": {"long_name": "whether the flow stopped before the end"},
    "reason": {
        "long_name": "why it stopped",
        "flag_values": list(ensemble.REASONS),
        "flag_meanings": " ".join(text.replace(" ", "_") or "none" for text in ensemble.REASONS.values()),
    },
}


def gradient_flow_ensemble(
    settings: Mapping[str, ArrayLike | xr.DataArray] | Sequence[tuple[Data, float, float]],
    *,
    t_end: float,
    times: ArrayLike | None = None,
    decoder: str = "full",
    rtol: float = 1e-8,
    atol: float = 1e-10,
    record: Sequence[str] = ("z", "attention", "loss"),
    fastest: bool = True,
    threads: int | None = None,
    path: str | os.PathLike | None = None,
    progress: bool = False,
) -> xr.Dataset:
    r"""Integrate many gradient flows, each as `gradient_flow` does from Y = Z = 0.

    In Theorem 4's setting a flow is, for each of K exchangeable classes with features f (entry 0 the common token,
    l > 0 the distinct ones), residuals r_n = e_n - alpha_n and g = Y r_n,

    dz_0/dt = eta_Z f_0 (g_0 - f_0 f . g),  dz_l/dt = (eta_Z / K) f_l (g_l - f_l f . g),

    with Y by Lemma 1 (3) for "full", by Lemma 3 (26) for "modified", and g by (10) with Theorem 1 and h by (44) for
    "theory": 4 D + 3 numbers for D distinct tokens, or D + 2. Sixteen members go side by side, each with adaptive steps
    of its own, by the scheme and the coefficients of scipy's DOP853, so that a member takes the steps that
    `gradient_flow` takes where it is not stiff; no number of a member depends on the others or on ``threads``.

    Parameters
    ----------
    settings : mapping, or sequence of (data, eta_y, eta_z)
        Of Theorem 4's setting (`SequenceClasses.single_common_token`): ``n_classes`` (K), ``vocab_size`` (M),
        ``eta_y``, ``eta_z`` and, if they are not its defaults, ``common`` and ``distinct``. Each is a number, an array
        with the dimension ``setting``, or an `xarray.DataArray`; they are broadcast against each other, by name.
        ``distinct`` has the dimension ``distinct_token`` besides, as its only or last one.
        In a sequence ``data`` may be anything that `gradient_flow` takes. What is not of Theorem 4's setting is
        integrated one after the other.
    t_end : float
        Last time, in SGD steps. A flow depends on rates times time alone: to give each member a unit of time of its
        own, multiply its rates with it.
    times : (T,) array, optional
        Output times, increasing, in [0, t_end], by the interpolant of order 7. Default: ``t_end``.
    decoder : "full", "modified" or "theory", or the name of a `Field`
        One of your own takes a sequence, and its flows are integrated one after the other.
    rtol, atol : float
        Tolerances of each member's own error, as in `gradient_flow`.
    record : sequence of str
        Some of "z", "attention", "loss", "z_velocity" and, for a mapping, "y".
    fastest : bool
        Look for the times at which logits move fastest. Without that, loose tolerances take less time. In a stiff flow
        speeds are less exact than states: of 500 flows with random rates to t = 10,000 the worst largest speed was off
        by 1% at the default tolerances, and by a factor of 30 at ``rtol=1e-6``.
    threads : int, optional
        Default: the number of cores.
    path : path-like, optional
        A folder, for a mapping: results are kept there as they are made, in files that the returned arrays are mapped
        from, so that memory does not grow with the number of members. The same call takes up what is there, by the same
        version of yzflow. Default: in memory.
    progress : bool
        Show progress on standard error.

    Returns
    -------
    xarray.Dataset
        With the dimensions of the settings, which are ``setting`` for plain arrays and sequences: what is recorded,
        over ``time`` too. ``kind`` of a mapping is "common", "distinct 0", "distinct 1", ..; attention of the common
        token is that of any class, of a distinct token that of its own class. Of a sequence it is "query q, token l",
        and attention has the dimension ``pair``, "next token n, token l"; entries that a member does not have are nan.
        ``y`` has the dimension ``logit``, "token: column" with the columns own (next token), other (that occurs) and
        unseen.
        ``fastest_time`` and ``largest_speed`` (kind), unless ``fastest`` is False: when each logit moves fastest up to
        ``t_end``, and how fast.
        ``evaluations`` of the derivative; ``failed``, with the ``reason`` (its attributes tell what the numbers mean)
        and the time ``reached``: later outputs are nan.

    Raises
    ------
    ValueError
        If an argument is invalid. A flow that cannot be integrated, or whose decoder has no inverse, is marked.

    Source: Tian, Wang, Chen, Du (2023), arXiv 2305.16380, Sections 3-6 and Appendix D.
    """
    entry = entry_of(decoder, *(["lanes"] if isinstance(settings, Mapping) else []))
    end = checks.positive("t_end", t_end)
    times = Clock(0.0, end, logarithmic=False).output_times([end] if times is None else times, 2)
    record = checks.listed("record", record, "be a list of words")
    for name in record:
        checks.one_of("record", name, RECORDS)
    fastest = checks.flag("fastest", fastest)
    kept = (*(name for name in RECORDS if name in record), *(_PEAKS if fastest else ()), *_TOLD)
    threads = (os.cpu_count() or 1) if threads is None else checks.threads("threads", threads)
    solver = _Solver(decoder, read_only(times), end, checks.positive("rtol", rtol), checks.positive("atol", atol))
    parameters = {"t_end": end, "decoder": decoder, **entry.recorded, "rtol": solver.rtol, "atol": solver.atol}
    label = f"flows ({decoder})"
    if isinstance(settings, Mapping):
        grid = Grid(settings)
        with Progress(label, enabled=progress) as report:
            dataset = _of_grid(grid, solver, kept, threads, path, report)
    else:
        if path is not None:
            raise checks.reject("path", "be None where `settings` are a sequence", checks.brief(path))
        if "y" in record:
            raise checks.reject("record", "be without 'y' where `settings` are a sequence", record)
        members = _members(settings, entry)
        with Progress(label, enabled=progress) as report:
            dataset = _of_sequence(members, solver, kept, threads, report)
    for name, variable in dataset.data_vars.items():
        variable.attrs.update(_ATTRIBUTES[str(name)])
    dataset["time"].attrs.update(long_name="time", units="SGD steps")
    return dataset.assign_attrs(provenance("gradient_flow_ensemble", parameters, _FORMAT))


class _Solver(NamedTuple):
    """How members are integrated."""

    decoder: str
    times: np.ndarray
    end: float
    rtol: float
    atol: float

    def run(self, members: np.ndarray, counts: np.ndarray, peaks: bool, stop: np.ndarray) -> dict[str, np.ndarray]:
        """Integrate members of Theorem 4's setting: rows (K, M, eta_Y, eta_Z), and counts, the common token's first."""
        n, width, shape = len(members), counts.shape[1], (len(members), self.times.size)
        z, attention, velocity = (np.full((*shape, width), np.nan) for _ in range(3))
        loss, y = np.full(shape, np.nan), np.full((*shape, 3 * width - 1), np.nan)
        peak, told, status = np.empty((n, 2, width)), np.zeros((n, 2)), np.full(n, ensemble.INTERRUPTED)
        # Where attention falls quickly a flow is stiff, and long: those first, so that lanes end together.
        order = np.argsort(-members[:, 3] * counts[:, 0], kind="stable")
        ensemble.integrate(
            entry_of(self.decoder, "lanes").lanes, records.Combinations.of_dop853(),
            read_only(np.ascontiguousarray(members)), read_only(np.ascontiguousarray(counts)), read_only(order),
            self.times, peaks, self.end, self.rtol, self.atol, ensemble.MOST_EVALUATIONS, stop,
            records.Results(z, attention, loss, velocity, y, peak, told, status),
        )  # fmt: skip
        return {
            "z": z,
            "attention": attention,
            "loss": loss,
            "z_velocity": velocity,
            "y": y,
            "fastest_time": peak[:, 0],
            "largest_speed": peak[:, 1],
            "evaluations": told[:, 0].astype(np.int64),
            "reached": told[:, 1],
            "failed": status != ensemble.DONE,
            "reason": status.astype(np.int8),
        }

    def chunk(self, width: int, threads: int, size: int) -> int:
        """Members to take at a time: as many as fit in a bound, and several chunks a thread, if these are long enough.

        While the last members of a chunk end, lanes are idle.
        """
        limits = current()
        fit = limits.numbers // (self.times.size * 7 * width + 50)
        share = max(-(-size // (4 * threads)), min(-(-size // threads), 64 * ensemble.LANES))
        return int(max(1, min(fit, limits.members, share)))


_PEAKS, _TOLD = ("fastest_time", "largest_speed"), ("evaluations", "reached", "failed", "reason")


def _of_grid(
    grid: Grid,
    solver: _Solver,
    kept: tuple[str, ...],
    threads: int,
    path: str | os.PathLike | None,
    report: Progress,
) -> xr.Dataset:
    kinds = ["common", *(f"distinct {i}" for i in range(grid.n_distinct))]
    logits = _logits(kinds)
    dims = {
        **dict.fromkeys(("z", "attention", "z_velocity"), ("time", "kind")),
        "loss": ("time",),
        "y": ("time", "logit"),
        **dict.fromkeys(_PEAKS, ("kind",)),
    }
    lengths = {"time": solver.times.size, "kind": len(kinds), "logit": len(logits)}
    types = {"evaluations": np.int64, "failed": np.bool_, "reason": np.int8}
    variables = {
        name: (tuple(lengths[dim] for dim in dims.get(name, ())), np.dtype(types.get(name, np.float64)))
        for name in kept
    }
    peaks = _PEAKS[0] in kept
    checks.fits_in_memory("times", 8 * 7 * len(kinds) * solver.times.size * threads, "integrate one setting")
    stop = np.zeros(1, np.int64)
    store: chunks.Held | chunks.Kept
    # Chunks on disk must not depend on the number of threads.
    chunk = min(grid.size, solver.chunk(len(kinds), threads if path is None else 1, grid.size))
    if path is None:
        store = chunks.Held(grid.size, variables)
    else:
        arguments = solver._asdict() | {"times": solver.times.tolist(), "record": list(kept), "chunk": chunk}
        store = chunks.Kept(path, grid.identity() | arguments, grid.size, -(-grid.size // chunk), variables)
    parts = chunks.bounds(grid.size, chunk)

    def compute(lo: int, hi: int) -> dict[str, np.ndarray]:
        found = solver.run(*grid.rows(lo, hi), peaks, stop)
        return {name: found[name] for name in kept}

    compute(0, 0)  # which compiles, or loads what is compiled: not in a thread that cannot be interrupted
    chunks.work(compute, store, parts, threads=threads, stop=stop, report=report)
    arrays = {
        name: ((*grid.dims, *dims.get(name, ())), array.reshape((*grid.shape, *array.shape[1:])))
        for name, array in store.arrays.items()
    }
    labels: dict[str, Any] = {"time": solver.times, "kind": kinds}
    if "y" in kept:
        labels["logit"] = logits
    return xr.Dataset(arrays, {**grid.labels().coords, **labels})


def _logits(kinds: list[str]) -> list[str]:
    """The decoder logits in words, in the order of the kernel's."""
    own, *distinct = kinds
    words = [f"{own}: own"]
    words += [f"{kind}: {column}" for column in ("own", "other") for kind in distinct]
    # r of token i stands at 2 D + i, i from 1, and b after them.
    return words + [f"{kind}: unseen" for kind in distinct] + [f"{own}: unseen"]


class _Member(NamedTuple):
    """A member of a sequence; ``row`` and ``counts`` in Theorem 4's setting, where ``tokens`` are those of one
    class, the common one first."""

    entries: one_by_one.Entries
    rates: dict[str, float]
    row: np.ndarray | None
    counts: np.ndarray | None


def _members(settings: object, entry: Entry) -> list[_Member]:
    rule = "be a mapping of arrays, or a sequence of (data, eta_y, eta_z)"
    found = []
    entries: dict[int, tuple[Data, one_by_one.Entries, tuple | None]] = {}  # the same data with many rates: once
    for i, item in enumerate(checks.listed("settings", settings, rule)):
        if not (isinstance(item, (tuple, list)) and len(item) == 3):
            raise checks.reject(f"settings[{i}]", "be (data, eta_y, eta_z)", checks.brief(item))
        data, *given = item
        rates = {
            name: checks.rate(f"settings[{i}][{name}]", rate)
            for name, rate in zip(("eta_y", "eta_z"), given, strict=True)
        }
        if id(data) not in entries:
            bags = population_of(data)
            if entry.reduced and not bags.hard:
                raise checks.reject(f"settings[{i}]", "have one next token a bag for decoder='theory'", "distributions")
            entries[id(data)] = data, one_by_one.Entries.of(bags), None if entry.lanes is None else _theorem_4(bags)
        _, own, form = entries[id(data)]
        row = counts = None
        if form is not None:
            n_classes, counts = form
            vocab_size = own.support.bags.vocab_size
            row = np.array([n_classes, vocab_size, rates["eta_y"], rates["eta_z"]], dtype=np.float64)
        found.append(_Member(own, rates, row, counts))
    if not found:
        raise checks.reject("settings", rule, "none")
    return found


def _theorem_4(bags: Bags) -> tuple[int, np.ndarray] | None:
    """K and the counts of a class, common token first, if the bags are those of `SequenceClasses.single_common_token`
    but for the names of tokens: one bag a class, each with the one common token and so many of its own as the others,
    with equal counts in the order of their names."""
    n = len(bags)
    degree = np.bincount(bags.token)
    common = np.flatnonzero(degree > 1)
    lengths = np.diff(bags.indptr)
    if (
        not bags.hard
        or n < 2
        or common.size != 1
        or degree[common[0]] != n
        or bags.n_queries > 1
        or np.unique(bags.target).size != n
        or (bags.weight != bags.weight[0]).any()
        or (lengths != lengths[0]).any()
        or lengths[0] < 2
    ):
        return None
    counts = bags.count.reshape(n, -1)
    shared = bags.token.reshape(n, -1) == common[0]
    rows = np.concatenate([counts[shared][:, None], counts[~shared].reshape(n, -1)], axis=1)
    return None if (rows != rows[0]).any() else (n, rows[0])


def _of_sequence(
    members: list[_Member], solver: _Solver, kept: tuple[str, ...], threads: int, report: Progress
) -> xr.Dataset:
    tables: dict[str, dict[str, int]] = {"kind": {}, "pair": {}}
    places = {}
    for member in members:
        if id(member.entries) not in places:
            own = {"kind": member.entries.kinds(), "pair": member.entries.pairs()}
            for dim, labels in own.items():
                for label in labels:
                    tables[dim].setdefault(label, len(tables[dim]))
            places[id(member.entries)] = {
                dim: np.array([tables[dim][label] for label in labels]) for dim, labels in own.items()
            }
    dims = {"z": "kind", "z_velocity": "kind", "attention": "pair"}
    size, n_times = len(members), solver.times.size
    lengths = {dim: len(table) for dim, table in tables.items()}
    need = 8 * size * (n_times * sum(lengths[dims[name]] for name in kept if name in dims) + 2 * lengths["kind"])
    checks.fits_in_memory("settings", need, "hold the results")
    out: dict[str, np.ndarray] = {
        name: np.full((size, n_times, *([lengths[dims[name]]] if name in dims else [])), np.nan)
        for name in RECORDS
        if name in kept
    }
    out |= {name: np.full((size, lengths["kind"]), np.nan) for name in _PEAKS if name in kept}
    out |= {name: np.zeros(size, kind) for name, kind in (("evaluations", np.int64), ("reached", np.float64))}
    out |= {"failed": np.zeros(size, dtype=np.bool_), "reason": np.zeros(size, dtype=np.int8)}

    def put(i: int, found: Mapping[str, np.ndarray]) -> None:
        place = places[id(members[i].entries)]
        for name, array in out.items():
            if name in _PEAKS:
                array[i, place["kind"]] = found[name]
            elif name in dims:
                array[i][:, place[dims[name]]] = found[name]
            else:
                array[i] = found[name]

    peaks = _PEAKS[0] in kept
    groups: dict[int, list[int]] = {}
    rest = []
    for i, member in enumerate(members):
        if member.counts is None:
            rest.append(i)
        else:
            groups.setdefault(member.counts.size, []).append(i)
    stop = np.zeros(1, np.int64)
    for width, group in groups.items():
        rows, counts = np.stack([members[i].row for i in group]), np.stack([members[i].counts for i in group])
        store = _Lifted(group, members, put)

        def compute(lo: int, hi: int, rows: np.ndarray = rows, counts: np.ndarray = counts) -> dict[str, np.ndarray]:
            return solver.run(rows[lo:hi], counts[lo:hi], peaks, stop)

        compute(0, 0)
        parts = chunks.bounds(len(group), solver.chunk(width, threads, len(group)))
        chunks.work(compute, store, parts, threads=threads, stop=stop, report=report)
    for done, i in enumerate(rest):
        report.update((size - len(rest) + done) / size, f"{size - len(rest) + done:,} of {size:,} flows")
        one = one_by_one.integrate(members[i].entries, members[i].rates, *solver, peaks=peaks)
        put(i, one.results())
    coords: dict[str, Any] = {"time": solver.times}
    coords |= {dim: list(table) for dim, table in tables.items()}
    coords |= {name: ("setting", [member.rates[name] for member in members]) for name in ("eta_y", "eta_z")}
    shape = {name: ("time", dims[name]) for name in dims} | {"loss": ("time",)}
    shape |= dict.fromkeys(_PEAKS, ("kind",))
    return xr.Dataset({name: (("setting", *shape.get(name, ())), array) for name, array in out.items()}, coords)


class _Lifted:
    """Results of members of Theorem 4's setting, put where the tokens of their data are."""

    def __init__(self, group: list[int], members: list[_Member], put: Any) -> None:
        self._group, self._members, self._put = group, members, put

    def has(self, chunk: int, lo: int, hi: int) -> bool:
        """Nothing is there before it is made."""
        return False

    def put(self, chunk: int, lo: int, hi: int, parts: Mapping[str, np.ndarray]) -> None:
        """Take over the results of members ``lo`` to ``hi`` of the group."""
        for row, i in enumerate(self._group[lo:hi]):
            entries = self._members[i].entries
            kinds, pairs = (
                _place(entries.support.bags, entries.token),
                _place(entries.support.bags, entries.support.token),
            )
            found = {name: part[row] for name, part in parts.items() if name != "y"}
            for name in ("z", "z_velocity", *_PEAKS):
                found[name] = found[name][..., kinds]
            self._put(i, found | {"attention": found["attention"][..., pairs]})


def _place(bags: Bags, token: np.ndarray) -> np.ndarray:
    """0 for the common token, 1, 2, .. for the distinct ones of a class in the order of their names."""
    common = np.bincount(bags.token).argmax()
    tokens = bags.token.reshape(len(bags), -1)
    distinct = tokens[tokens != common].reshape(len(bags), -1)
    place = np.zeros(bags.n_tokens, dtype=np.int64)
    place[distinct] = np.arange(1, distinct.shape[1] + 1)
    return place[token]
