"""Bounded Dyck languages: small layers trained on all short prefixes by flow, and on samples by SGD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics import Layer, Trajectory, gradient_flow, sgd
from dynamics.support import checks
from yzflow.audits.case import OwnCase
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck.models import Model

PAPER = "Bounded Dyck"


@dataclass(frozen=True)
class DyckSetting:
    """One training task on Dyck prefixes, from a random start.

    Attributes
    ----------
    name : str
    language : DyckLanguage
    max_length : int
        Of the prefixes, in brackets.
    eta : float
        Learning rate of Y, Z and V, per step.
    t_end : float
        Length of the training, SGD steps.
    width : int
        Of the values V; without V no layer could be balanced, for all states would add on axes of their own.
    uniform : bool
        Whether attention is held uniform (footnote 4 of the paper): Z = 0, with the learning rate 0.
    """

    name: str
    language: DyckLanguage
    max_length: int = 6
    eta: float = 1.0
    t_end: float = 100.0
    width: int = 6
    uniform: bool = False

    @property
    def encodings(self) -> np.ndarray:
        """Outputs of the minimal first layer, a row for each state with START last: one-hot (19)."""
        return np.eye(self.language.n_states)

    def simulate(self, level: str, *, seed: int) -> Trajectory:
        """The full flow on the exact law of the prefixes, or SGD on samples of it, from the same start."""
        checks.one_of("level", level, ("full flow", "SGD"))
        rng = np.random.default_rng(0)
        states, brackets = self.language.n_states, self.language.n_brackets
        Z, Y = 0.3 * rng.normal(size=(states, states)), 0.3 * rng.normal(size=(self.width, brackets))
        if self.uniform:
            Z = np.zeros_like(Z)
        start = Layer(Z, Y, rng.normal(size=(states, self.width)) / np.sqrt(self.width))
        bags = self.language.enumerate(max_length=self.max_length)
        rates: dict[str, Any] = {
            "eta_y": self.eta,
            "eta_v": self.eta,
            "eta_z": 0.0 if self.uniform else self.eta,
            "init": start,
        }
        if level == "SGD":
            steps = int(self.t_end)
            sizes: dict[str, Any] = {"batch_size": 256, "length": None, "record_every": max(1, steps // 10)}
            return sgd(bags, **rates, steps=steps, momentum=0.0, **sizes, seed=seed)
        return gradient_flow(bags, **rates, t_end=self.t_end, n_times=11, rtol=1e-6)


@dataclass(frozen=True, eq=False)
class Given:
    """A model of a reader in place of a simulation.

    Attributes
    ----------
    model : Model
    """

    model: Model

    @property
    def final(self) -> Layer:
        """Refused: checks of layers train their own."""
        rule = (
            'be left out for a check that trains layers of its own; "Bounded Dyck: Pairs in outputs" is about any model'
        )
        raise checks.reject("data", rule, repr(self.model))


@dataclass(frozen=True, eq=False)
class OwnSetting:
    """The setting of a model that a reader gives to `yzflow.check`, with the attributes of `DyckSetting`."""

    name: str
    model: Model
    uniform: bool = False

    @property
    def language(self) -> DyckLanguage:
        """The model's language."""
        return self.model.language

    @property
    def encodings(self) -> np.ndarray:
        """One-hot (19), which layers over states have."""
        return np.eye(self.language.n_states)

    def simulate(self, level: str, *, seed: int) -> Given:
        """The model as it is given, whatever the seed."""
        checks.one_of("level", level, ("SGD",))  # no flow is known of it
        return Given(self.model)


def own(
    *,
    data: Model,
    eta_y: float | None = None,
    eta_z: float | None = None,
    t_end: float | None = None,
    optimizer: Any = None,
    objective: Any = None,
) -> OwnCase:
    """The setting of a reader's model, for ``yzflow.check(.., data=model)``; its training is not asked.

    Parameters
    ----------
    data : Model
        As `models.of` makes it.
    eta_y, eta_z, t_end, optimizer, objective
        To be left out: nothing is trained.
    """
    checks.instance("data", data, Model, rule="be a model that `yzflow_bounded_dyck.models.of` makes")
    given = {"eta_y": eta_y, "eta_z": eta_z, "t_end": t_end, "optimizer": optimizer, "objective": objective}
    for name, value in given.items():
        if value is not None:
            raise checks.reject(name, "be left out for a model that is trained already", checks.brief(value))
    return OwnCase(OwnSetting(f"your own: {data.name} on {data.language!r}", data), ("SGD",), subject="model")


def settings(*, quick: bool) -> list[DyckSetting]:
    """Two types at two depths, and one type, where nothing before a closing query matters."""
    chosen = [
        DyckSetting("k = 2, D = 3", DyckLanguage(2, 3)),
        DyckSetting("one type: k = 1, D = 3", DyckLanguage(1, 3)),
    ]
    if not quick:
        chosen += [
            DyckSetting("k = 3, D = 4", DyckLanguage(3, 4)),
            DyckSetting("k = 2, D = 6", DyckLanguage(2, 6, 0.7)),
            DyckSetting("depth one: k = 2, D = 1", DyckLanguage(2, 1)),
        ]
    return chosen
