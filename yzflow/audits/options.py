"""Options of training, the rows of the survival table: their simulations and their closed forms."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import xarray as xr

from dynamics import Run, Trajectory
from theory.statements import SettingLike

__all__ = ["Correction", "Option", "Room"]


@dataclass(frozen=True)
class Correction:
    """Closed forms and variables that correct a statement for an option.

    Attributes
    ----------
    setting : SettingLike
        The setting with corrected rates or closed forms.
    view : callable
        Dataset of a run -> dataset in the variables of the corrected statement.
    """

    setting: SettingLike
    view: Callable[[xr.Dataset], xr.Dataset] = lambda dataset: dataset


@dataclass(frozen=True)
class Option:
    """One change of an assumption.

    Attributes
    ----------
    name : str
        The option's name for users.
    text : str
        Description of the change, with its numbers.
    simulate : callable
        (setting, level, seed) -> Trajectory or Run. Raises ValueError if the level lacks the option, and
        IntegrationError or DivergenceError if training fails.
    levels : tuple of str
        Levels at which the option changes something.
    adapted : callable
        setting -> the setting with the option's rates, classes and length, for the checks.
    corrected : callable, optional
        (adapted setting, level) -> Correction; None if no closed form under the option is known.
    meaningless : tuple of str
        Numbers of statements that have no meaning under the option.
    """

    name: str
    text: str
    simulate: Callable[..., Trajectory | Run]
    levels: tuple[str, ...]
    adapted: Callable[[Any], Any] = lambda setting: setting
    corrected: Callable[[Any, str], Correction | None] | None = None
    meaningless: tuple[str, ...] = ()


@dataclass(frozen=True)
class Room:
    """A paper's part of the survival table, its ``survival``.

    Attributes
    ----------
    paper : str
        Its name in the register.
    options : tuple of Option
        The rows. A new option needs a row here, and a term in the step and in the flow
        (`dynamics.optimizers.optimizer.ascend` and ``velocity``).
    levels : dict of str to str
        Level of the table -> level of the register with the same checks.
    drawn : tuple of str
        Levels with random runs, where verdicts are tests over seeds.
    settings : callable
        (quick) -> settings, each with the end ``t_end`` of its simulation.
    draws : callable
        (quick) -> number of seeds.
    mirrored : callable
        Dataset of a run -> dataset of a run that moves the opposite way.
    left_out : dict of str to str
        Number of a statement that the table omits although simulations can test it -> reason.
    """

    paper: str
    options: tuple[Option, ...]
    levels: dict[str, str]
    drawn: tuple[str, ...]
    settings: Callable[..., list]
    draws: Callable[..., int]
    mirrored: Callable[[xr.Dataset], xr.Dataset]
    left_out: dict[str, str] = dataclasses.field(default_factory=dict)
