"""Trajectories: labelled results of a simulation, their observables and their files."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any

import lazy_loader
import numpy as np
from numpy.typing import ArrayLike

from dynamics import _shown, observables
from dynamics._model.objective import Objective
from dynamics.layer import Embedding, Layer
from dynamics.optimizers.optimizer import Optimizer
from dynamics.support import checks, display, names
from dynamics.support.calls import Call
from dynamics.support.results import load_result, save_result

if TYPE_CHECKING:
    import xarray as xr
    from matplotlib.axes import Axes

    from dynamics.support.display import Labels, Style
else:  # a third of the time from a new process to the end of a first small flow
    xr = lazy_loader.load("xarray")

FORMAT = "yzflow-trajectory-1"
EMBEDDING = ("embedding", "key_weights", "query_weights", "value_weights")


class Trajectory:
    """The states of a layer over training, with loss and attention on the training data.

    Returned by `gradient_flow`, `sgd` and `stochastic_flow`; the constructor takes a dataset with the same variables.

    Attributes
    ----------
    dataset : xarray.Dataset
        ``time`` is in SGD steps. Variables:

        - ``loss(time)``: expected cross-entropy -J (2), nats; or the squared loss, if that was the criterion.
        - ``z(time, query, token)``: attention logits; ``z_velocity``: their rate of change per step.
        - ``y(time, token, column)`` (``value`` under a value matrix and ``unit`` under a hidden layer in place of
          ``token``): decoder logits; ``multiplicity(column)`` next tokens share a column. Where they exist,
          ``v(time, token, value)``, ``hidden(time, input, unit)`` with the biases last, ``embedding(token,
          embedding_dimension)`` and ``key_weights``, ``query_weights``, ``value_weights`` over time.
        - ``attention(time, next_token, token)``: c_n, expected attention given the next token.
        - ``distinct(next_token, token)``: whether a token occurs with that next token only.
        - ``query_of(next_token)``: psi(n), or -1 where a next token has several queries.

        If the tables would need more than 1 GiB, they have only the pairs (next token, token) that occur together:
        ``attention(time, entry)``, ``z(time, entry)`` (nan where a next token has several queries) and
        ``distinct(entry)``, with the coordinates ``entry_next_token`` and ``entry_token``. Of the matrices only the
        last state is kept, ``z_final(query, token)`` and ``y_final(token, column)``. All methods below work on both
        forms. A reduced flow of this size never forms Y, and has neither ``y_final`` nor ``z_velocity``.

        Names of the data stand beside the numbers, as the coordinates ``token_name(token)``, ``query_name(query)`` and
        ``next_token_name(next_token)``, "" where there is none. Methods take a name in the place of a number, and
        `named` has names in the place of all numbers.

        Attributes hold the parameters (JSON), the versions of the software, the platform and the processor ("cpu").
    call : Call or None
        The call of `gradient_flow`, `sgd` or `stochastic_flow` that made it, with its data: ``call.make()`` makes it
        again.
    environment : dict
        For a trajectory from a file: what may have changed its bits, such as versions, BLAS and threads.
    """

    _parts: tuple[dict[str, tuple], dict[str, tuple], dict[str, Any]]
    _due: tuple[Callable[[], Trajectory], Callable[[], Layer]]

    def __init__(
        self, dataset: xr.Dataset, call: Call | None = None, environment: Mapping[str, str] | None = None
    ) -> None:
        checks.instance("dataset", dataset, xr.Dataset)
        if dataset.attrs.get("format") != FORMAT:
            raise checks.reject("dataset", f"have the attribute format = {FORMAT!r}", dataset.attrs.get("format"))
        self.dataset = dataset
        self.call = call if call is None else checks.instance("call", call, Call)
        self.environment = checks.mapping("environment", environment)

    @classmethod
    def _recorded(cls, variables: dict, coordinates: dict, attributes: dict) -> Trajectory:
        """A trajectory from the arguments of `xarray.Dataset`, which is called when the dataset is first asked for."""
        trajectory = cls.__new__(cls)
        trajectory._parts = (variables, coordinates, attributes)
        trajectory.call, trajectory.environment = None, {}
        return trajectory

    @classmethod
    def _later(cls, make: Callable[[], Trajectory], final: Callable[[], Layer]) -> Trajectory:
        """A trajectory with the last layer ``final()``; for anything else ``make()`` is called, once."""
        trajectory = cls.__new__(cls)
        trajectory._due = (make, final)
        trajectory.call, trajectory.environment = None, {}
        return trajectory

    def _made(self) -> None:
        """Call the function ``make`` of `_later`, unless that was done."""
        due = self.__dict__.get("_due")
        if due is not None:
            self._parts = due[0]()._parts
            self.__dict__.pop("_due", None)

    def __getstate__(self) -> dict[str, Any]:
        self._made()
        return self.__dict__.copy()

    @cached_property
    def dataset(self) -> xr.Dataset:
        """The dataset that the class describes."""
        self._made()
        return xr.Dataset(*self.__dict__.pop("_parts"))

    def __repr__(self) -> str:
        sizes = self.dataset.sizes
        time = self.dataset["time"].values
        return (
            f"<Trajectory: {sizes['time']} times from {time[0]:g} to {time[-1]:g} steps, {sizes['query']} queries, "
            f"{sizes['token']} tokens, {sizes['next_token']} next tokens>"
        )

    def _repr_html_(self) -> str:
        return display.page(repr(self), {}, self.dataset._repr_html_())

    def plot(
        self,
        quantity: str = "attention",
        *,
        next_token: int | str | None = None,
        ax: Axes | None = None,
        labels: Labels | None = None,
        style: Style | None = None,
    ) -> Axes:
        """Draw attention, logits, loss or entropy over time.

        The time axis is logarithmic if the times are spread so, or if most changes happen early.

        Parameters
        ----------
        quantity : "attention", "z", "loss" or "entropy"
            Attention or logits of the tokens of one next token, the loss, or the entropy of each next token's
            attention. Of more than ten lines, the ten that move most are drawn, and the title says so.
        next_token : int or str, optional
            Its number or its name. Default: the first.
        ax : matplotlib Axes, optional
            Default: new ones, of a figure of pyplot's.
        labels : sequence or mapping, optional
            Text for tokens, or for next tokens where entropy is drawn, in the place of their names or numbers: from
            number 0 on, or by number or name.
        style : str or mapping, optional
            A style of matplotlib, such as "ggplot", or settings of it.

        Returns
        -------
        matplotlib Axes
        """
        return _shown.plot_trajectory(self, quantity, next_token, ax, labels, style)

    @property
    def named(self) -> xr.Dataset:
        """The dataset with names in place of numbers, for ``sel``; without a name, the number stands as text.

        Raises
        ------
        ValueError
            If the data had no names.

        Examples
        --------
        >>> from dynamics import SequenceClasses, gradient_flow
        >>> rows, words = [[0.5, 0.5, 0], [0.5, 0, 0.5]], ["the", "stray", "loyal"]
        >>> classes = SequenceClasses(rows, [0, 0], token_names=words, class_names=["cat", "dog"])
        >>> flow = gradient_flow(classes, eta_y=1.0, eta_z=0.5, t_end=10.0)
        >>> flow.named["attention"].sel(next_token="dog", token="loyal").dims
        ('time',)
        """
        texts = {axis: self.names(axis) for axis in names.AXES.values()}
        if not any(texts.values()):
            raise ValueError("`named` needs names: give `token_names` or `class_names` to the data")
        whole = {axis: [label or str(n) for label, n in zip(labels, self.dataset[axis].values, strict=True)]
                 for axis, labels in texts.items() if labels is not None}  # fmt: skip
        return self.dataset.drop_vars([f"{axis}_name" for axis in whole]).assign_coords(whole)

    def names(self, axis: str) -> list[str] | None:
        """Names along the axis "token", "next_token" or "query", "" where there is none; None if the data had none."""
        checks.one_of("axis", axis, tuple(names.AXES.values()))
        key = f"{axis}_name"
        return self.dataset[key].values.tolist() if key in self.dataset.coords else None

    @property
    def parameters(self) -> dict:
        """The arguments of the simulation."""
        return json.loads(self.dataset.attrs["parameters"])

    @property
    def final(self) -> Layer:
        """The layer at the last recorded time."""
        due = self.__dict__.get("_due")
        if due is not None:
            return due[1]()
        last, attributes = self._last()
        if "entry_token" in last:
            if "y_final" not in last:
                raise ValueError("`final` needs Y, which a reduced flow of this size never forms")
            return Layer(last["z_final"], last["y_final"], None, last["multiplicity"])
        V, hidden, vectors, keys, queries, values = (last.get(name) for name in ("v", "hidden", *EMBEDDING))
        embedding = None if vectors is None else Embedding(vectors, keys, queries, values)
        center, floor = bool(attributes.get("center", 0)), float(attributes.get("floor", 0.0))
        residual = bool(attributes.get("residual", 0))
        kind = str(attributes.get("normalisation", "layer" if center else "unit"))
        return Layer(
            last["z"],
            last["y"],
            V,
            last["multiplicity"],
            hidden,
            center,
            floor,
            embedding,
            residual,
            float(attributes.get("temperature", 1.0)),
            None if kind == "none" else kind,
        )

    @property
    def objective(self) -> Objective:
        """The objective of the run.

        Raises
        ------
        ValueError
            If it had insertions or terms, which are not recorded.
        """
        return Objective.of(self.parameters)

    @property
    def optimizer(self) -> Optimizer | None:
        """The optimizer of the run; for a flow, the optimizer whose steps it is the limit of.

        None for the flow of plain steps without momentum.

        Raises
        ------
        ValueError
            If its schedule was a function: only the name of the function is recorded.
        """
        return Optimizer.of(self.parameters) if "optimizer" in self.parameters else None

    def _last(self) -> tuple[dict[str, Any], Mapping]:
        """The variables and coordinates at the last time, and the attributes, without making a dataset."""
        if "_parts" in self.__dict__:
            variables, coordinates, attributes = self._parts
            arrays = {name: (part[0], part[1]) for name, part in (variables | coordinates).items()}
        else:
            attributes = self.dataset.attrs
            arrays = {str(name): (part.dims, part.values) for name, part in self.dataset.variables.items()}
        return {
            name: np.take(values, -1, axis=dims.index("time")) if "time" in dims else values
            for name, (dims, values) in arrays.items()
        }, attributes

    def attention_entropy(self, tokens: str = "distinct") -> xr.DataArray:
        """Entropy of c_n over (time, next_token), in nats.

        Parameters
        ----------
        tokens : "distinct" or "all"
            "distinct" restricts c_n to the tokens distinct to n and renormalises it there, as in Fig. 6 of the paper;
            nan for a next token without distinct tokens.
        """
        checks.one_of("tokens", tokens, ("distinct", "all"))
        attention = self.dataset["attention"]
        mask = self.dataset["distinct"].values if tokens == "distinct" else None
        return xr.DataArray(
            observables.entropy(attention.values, mask, self._starts),
            dims=("time", "next_token"),
            coords=self._per_next_token(),
            name="attention_entropy",
            attrs={"long_name": f"entropy of attention, {tokens} tokens", "units": "nats"},
        )

    def recall(self, thresholds: ArrayLike) -> xr.DataArray:
        """Share of the distinct tokens of n with attention c_nl above each threshold.

        Over (time, next_token, threshold). Figs. 11 and 12 of the paper average over n and have thresholds around 1/M.
        Such thresholds fit the softmax of the query's row of Z over all M tokens in place of c_n.
        """
        thresholds = checks.finite_array("thresholds", thresholds, ndim=1)
        attention = self.dataset["attention"]
        return xr.DataArray(
            observables.recall(attention.values, self.dataset["distinct"].values, thresholds, self._starts),
            dims=("time", "next_token", "threshold"),
            coords={**self._per_next_token(), "threshold": thresholds},
            name="recall",
            attrs={"long_name": "recall of distinct tokens", "units": "1"},
        )

    def _per_next_token(self) -> dict[str, xr.DataArray]:
        """Coordinates of a measure over times and next tokens."""
        keys = ("time", "next_token", "next_token_name")
        return {name: self.dataset[name] for name in keys if name in self.dataset.coords}

    def surviving_tokens(self, next_token: int | str, threshold: float) -> np.ndarray:
        """Distinct tokens of next token n whose attention c_nl is above ``threshold`` at the last time."""
        threshold = checks.real("threshold", threshold)
        final = self.dataset.isel(time=-1)
        if self._starts is None:
            shares, distinct = (self._at("next_token", next_token, final[name]) for name in ("attention", "distinct"))
            return self.dataset["token"].values[(shares.values > threshold) & distinct.values]
        entries = self._entries(next_token)
        above = (final["attention"].values > threshold) & final["distinct"].values
        return final["entry_token"].values[entries][above[entries]]

    def growth_factor(self, next_token: int | str, token: int | str) -> xr.DataArray:
        """``chi_l(t) = exp(2 (z_l(t) - z_l(0)))`` of Theorem 3 over time, with z_l(0) the first recorded state."""
        logit = self._logit(next_token, token)
        growth: xr.DataArray = np.exp(2 * (logit - logit.isel(time=0)))
        return growth.rename("growth_factor").assign_attrs(long_name="growth factor", units="1")

    def relative_gain(self, next_token: int | str, token: int | str, other: int | str) -> xr.DataArray:
        """``r_{l/l'|n}(t) = f_nl^2 / f_nl'^2 - 1`` (11) over time, for l = ``token`` and l' = ``other``."""
        ratio = self._share(next_token, token) / self._share(next_token, other)
        return (ratio**2 - 1).rename("relative_gain").assign_attrs(long_name="relative gain", units="1")

    def row_sums(self) -> xr.Dataset:
        """Row sums of Y over all M next tokens and of Z over all tokens, at each time that has the matrices.

        By Lemma 1 both are conserved exactly for any data; their changes are round-off.
        """
        if self._starts is None:
            y, z = self.dataset["y"], self.dataset["z"]
        else:
            time, last = self.dataset["time"][-1:], self.final
            y = xr.DataArray(last.Y, dims=("token", "column")).expand_dims(time=time)
            z = self.dataset["z_final"].expand_dims(time=time)
        return xr.Dataset({"y": y.dot(self.dataset["multiplicity"]), "z": z.sum("token")})

    def to_csv(self, path: str | os.PathLike) -> None:
        """Write attention and logits over time as a table, completely or not at all.

        A line for each time and each token of each next token, with their names: ``time``, ``next_token``,
        ``next_token_name``, ``token``, ``token_name``, ``distinct``, ``attention``, ``z`` (empty where a next token has
        several queries). Numbers have all their digits.
        """
        _shown.write_csv(self, path)

    def save(self, path: str | os.PathLike) -> None:
        """Write to a netCDF file, completely or not at all, with a checksum that `load` compares.

        The file also holds the call, with its data up to 64 MiB, and its environment: `yzflow.rerun` makes the
        trajectory again.

        Raises
        ------
        OSError
            If the folder does not exist or cannot be written.
        """
        save_result(self.dataset, path, self.call, self.environment)

    @classmethod
    def load(cls, path: str | os.PathLike) -> Trajectory:
        """Read a file of `save`.

        Raises
        ------
        ValueError
            If a byte of the file is not as it was written, or it holds something else.
        FileNotFoundError
            If there is no such file.
        """
        return cls(*load_result(path, FORMAT, "a trajectory", ("query", "token", "next_token")))

    @property
    def _starts(self) -> np.ndarray | None:
        """The first entry of each next token in tables of pairs, and their number; None for full tables."""
        if "entry" not in self.dataset.dims:
            return None
        owner = self.dataset["entry_next_token"].values
        return np.append(np.searchsorted(owner, self.dataset["next_token"].values), owner.size)

    def _entries(self, next_token: int | str) -> slice:
        position = int(self._at("next_token", next_token, self._positions("next_token")))
        starts: Any = self._starts
        return slice(*starts[position : position + 2])

    def _positions(self, dimension: str) -> xr.DataArray:
        return xr.DataArray(np.arange(self.dataset.sizes[dimension]), {dimension: self.dataset[dimension]})

    def number(self, axis: str, value: int | str) -> int:
        """The number of a token, next token or query of the trajectory; ``value`` is the number or the name.

        Raises
        ------
        ValueError
            If there is no such name; the message has the nearest ones.
        """
        checks.one_of("axis", axis, tuple(names.AXES.values()))
        if not isinstance(value, str):
            return checks.integer(axis, value, minimum=0)
        known = dict(zip(self.names(axis) or [], self.dataset[axis].values.tolist(), strict=False))
        known.pop("", None)
        if not known:
            raise checks.reject(axis, "be a number where the data has no names", repr(value))
        if value not in known:
            near = checks.nearest(value, {name: (name,) for name in known})
            raise checks.reject(axis, f"be a name of the data, as {near} are", repr(value))
        return known[value]

    def _at(self, dimension: str, value: int | str, array: xr.DataArray) -> xr.DataArray:
        value = self.number(dimension, value)
        if value not in self.dataset[dimension].values:
            raise checks.reject(dimension, f"be a {dimension.replace('_', ' ')} of the trajectory", value)
        return array.sel({dimension: value}, drop=True)

    def _pair(self, name: str, next_token: int | str, token: int | str) -> xr.DataArray:
        """A variable of a table of pairs, at one pair."""
        token = self.number("token", token)
        entries = self._entries(next_token)
        tokens = self.dataset["entry_token"].values[entries]
        if token not in tokens:
            raise checks.reject("token", f"occur with next token {next_token}", token)
        return self.dataset[name].isel(entry=entries.start + int(np.searchsorted(tokens, token)), drop=True)

    def _logit(self, next_token: int | str, token: int | str) -> xr.DataArray:
        query = int(self._at("next_token", next_token, self.dataset["query_of"]))
        if query < 0:
            raise checks.reject("next_token", "have a single query", f"{next_token}, which has several")
        if self._starts is not None:
            return self._pair("z", next_token, token).drop_vars(("entry_token", "entry_next_token"), errors="ignore")
        return self._at("token", token, self.dataset["z"].sel(query=query, drop=True))

    def _of(self, next_token: int | str, name: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Tokens that occur with a next token, whether they are distinct, and attention or z of each: (time, tokens).

        Raises
        ------
        ValueError
            If ``name`` is "z" and the next token has several queries.
        """
        query = int(self._at("next_token", next_token, self.dataset["query_of"]))
        if name == "z" and query < 0:
            raise checks.reject("next_token", "have a single query", f"{next_token}, which has several")
        if self._starts is not None:
            entries = self._entries(next_token)
            parts = (self.dataset[key].values[..., entries] for key in ("entry_token", "distinct", name))
            return tuple(parts)
        shares = self._at("next_token", next_token, self.dataset["attention"]).values
        columns = np.flatnonzero((shares > 0).any(axis=0))
        distinct = self._at("next_token", next_token, self.dataset["distinct"]).values
        values = shares if name == "attention" else self.dataset["z"].sel(query=query).values
        return self.dataset["token"].values[columns], distinct[columns], values[:, columns]

    def _share(self, next_token: int | str, token: int | str) -> xr.DataArray:
        if self._starts is not None:
            share = self._pair("attention", next_token, token)
        else:
            share = self._at("token", token, self._at("next_token", next_token, self.dataset["attention"]))
        if not (share > 0).all():
            raise checks.reject("token", f"occur with next token {next_token}", token)
        return share
