"""Runs: the labelled results of any flow, their events, plots and files."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

import lazy_loader
import numpy as np

from dynamics import _shown
from dynamics.support import checks, display, sealed
from dynamics.support.calls import Call
from dynamics.support.results import json_attribute, load_result, save_result

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

    from dynamics.support.display import Labels, Style
else:
    xr = lazy_loader.load("xarray")

FORMAT = "yzflow-run-1"
_WHAT = sealed.KINDS[FORMAT]
_LISTS = ("states", "notes", "events")  # attributes
_TIMES = "event_time"


class Run:
    """The states of a flow over time, its observables and its events.

    Returned by `integrate` and `descend`; the constructor takes a dataset with the same attributes.

    Attributes
    ----------
    dataset : xarray.Dataset
        Each state over ``time`` and its own dimensions, with its coordinates, and each observable likewise. Attributes
        hold the parameters (JSON), the names of the states (JSON), the versions of the software, the platform and the
        processor.
    events : dict
        Name -> times of its zeros, increasing.
    call : Call or None
        The call that made it: ``call.make()`` makes it again.
    environment : dict
        For a run from a file: what may have changed its bits, such as versions, BLAS and threads.
    """

    def __init__(
        self,
        dataset: xr.Dataset,
        call: Call | None = None,
        environment: Mapping[str, str] | None = None,
        *,
        events: Mapping[str, np.ndarray] | None = None,
    ) -> None:
        checks.instance("dataset", dataset, xr.Dataset)
        if dataset.attrs.get("format") != FORMAT:
            raise checks.reject("dataset", f"have the attribute format = {FORMAT!r}", dataset.attrs.get("format"))
        self.dataset = dataset
        zeros = checks.mapping("events", events)
        self.events = {name: checks.finite_array("events", times, ndim=1) for name, times in zeros.items()}
        self.call = call if call is None else checks.instance("call", call, Call)
        self.environment = checks.mapping("environment", environment)

    def __repr__(self) -> str:
        time = self.dataset["time"].values
        counts = ", ".join(f"{name} {times.size}" for name, times in self.events.items())
        return (
            f"<Run: {time.size} times from {time[0]:g} to {time[-1]:g}, states {', '.join(self.states)}"
            + (f", events {counts}" if counts else "")
            + ">"
        )

    def _repr_html_(self) -> str:
        return display.page(repr(self), {}, self.dataset._repr_html_())

    @property
    def states(self) -> tuple[str, ...]:
        """Names of the states."""
        return tuple(json.loads(self.dataset.attrs["states"]))

    @property
    def parameters(self) -> dict:
        """The arguments of the simulation."""
        return json.loads(self.dataset.attrs["parameters"])

    @property
    def notes(self) -> tuple[str, ...]:
        """Events on the way, in words: kinks that were crossed or slid along, and the reason for the end of the run."""
        return tuple(json.loads(self.dataset.attrs.get("notes", "[]")))

    @property
    def final(self) -> dict[str, xr.DataArray]:
        """Each state at the last time."""
        return {name: self.dataset[name].isel(time=-1, drop=True) for name in self.states}

    def plot(
        self, name: str, *, ax: Axes | None = None, labels: Labels | None = None, style: Style | None = None
    ) -> Axes:
        """Draw a state or an observable over time.

        The time axis is logarithmic if the times are spread so, or if most changes happen early.

        Parameters
        ----------
        name : str
            A variable of ``dataset``. Of more than ten lines, the ten that move most are drawn, and the title says so.
        ax : matplotlib Axes, optional
            Default: new ones, of a figure of pyplot's.
        labels : sequence or mapping, optional
            Text for its entries in the place of their labels or indices: from number 0 on, or by number.
        style : str or mapping, optional
            A style of matplotlib, such as "ggplot", or settings of it.

        Returns
        -------
        matplotlib Axes
        """
        return _shown.plot_run(self, name, ax, labels, style)

    def save(self, path: str | os.PathLike) -> None:
        """Write to a netCDF file, completely or not at all, with a checksum that `load` compares.

        The file also holds the call and its environment, but no code. Of the flow it holds the name of its class, its
        ``config()``, and version and SHA-256 of the package that defines it. `yzflow.rerun` makes the run again.

        Raises
        ------
        OSError
            If the folder does not exist or cannot be written.
        """
        save_result(self.saved, path, self.call, self.environment)

    @property
    def saved(self) -> xr.Dataset:
        """The dataset that a file holds: ``dataset``, with the times of events."""
        return _with_events(self.dataset, self.events)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Run:
        """Read a file of `save`; the flow's code is not imported.

        Raises
        ------
        ValueError
            If a byte of the file is not as it was written, or it holds something else.
        FileNotFoundError
            If there is no such file.
        """
        dataset, call, environment = load_result(path, FORMAT, _WHAT, ())
        lists = {name: json_attribute(dataset, name, list, path, _WHAT) for name in _LISTS if name in dataset.attrs}
        try:
            # Check that the names are variables: anybody can seal a file with any content.
            known = [dataset[name] for name in lists["states"]]
            if not known or not all(isinstance(name, str) for texts in lists.values() for name in texts):
                raise TypeError
            dataset, events = _without_events(dataset, lists.get("events", []))
        except (KeyError, TypeError, ValueError):
            got = f"one with other parts, {os.fspath(path)!r}"
            raise checks.reject("path", f"be {_WHAT} written by yzflow", got) from None
        return cls(dataset, call, environment, events=events)


def _without_events(dataset: xr.Dataset, names: list[str]) -> tuple[xr.Dataset, dict[str, np.ndarray]]:
    """The dataset and the events that `_with_events` was given."""
    dataset.attrs.pop("events", None)
    counts = dataset.attrs.pop("event_counts", None)
    if counts is None:
        return dataset, {name: np.zeros(0) for name in names}
    times = np.asarray(dataset[_TIMES].values, np.float64)
    parts = np.split(times, np.cumsum(np.atleast_1d(counts))[:-1])
    return dataset.drop_vars(_TIMES), dict(zip(names, parts, strict=True))


def _with_events(dataset: xr.Dataset, events: Mapping[str, np.ndarray]) -> xr.Dataset:
    """The dataset with the events; all times are in one variable, since an axis of a file has one length."""
    if not events:
        return dataset
    dataset = dataset.assign_attrs(events=json.dumps(list(events)))
    times = np.concatenate(list(events.values()))
    if not times.size:
        return dataset
    counts = np.array([zeros.size for zeros in events.values()])
    return dataset.assign({_TIMES: ("event_number", times)}).assign_attrs(event_counts=counts)
