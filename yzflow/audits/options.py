"""An option of training as a row of the survival table: how it trains, and what it makes of the closed forms."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import xarray as xr

from dynamics import Run, Trajectory
from theory.statements import Setting

__all__ = ["Correction", "Option", "Room"]


@dataclass(frozen=True)
class Correction:
    """The variables and the closed forms in which statements are asked under an option.

    Attributes
    ----------
    setting : Setting
        With other rates, or other closed forms.
    view : callable
        The dataset of a run -> the same in the variables in which the statement is asked.
    """

    setting: Setting
    view: Callable[[xr.Dataset], xr.Dataset] = lambda dataset: dataset


@dataclass(frozen=True)
class Option:
    """One change of an assumption.

    Attributes
    ----------
    name : str
        By which it is asked for.
    text : str
        What is changed, with its numbers.
    simulate : callable
        (setting, level, seed) -> Trajectory or Run, as the setting's own. ValueError where the level has no such
        option; IntegrationError or DivergenceError where training comes to no end.
    levels : tuple of str
        At which it changes something.
    adapted : callable
        The setting as the checks see it: with the option's rates, classes and length.
    corrected : callable, optional
        (the adapted setting, level) -> Correction, where closed forms under the option are known; None where not.
    meaningless : tuple of str
        Numbers of statements that speak of things which are not there under the option.
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
    """Part of a paper in the table, its ``survival``.

    Attributes
    ----------
    paper : str
        Its name in the register.
    options : tuple of Option
        The rows. A new option is a row here, and its term in the step and in the flow
        (`dynamics.optimizers.optimizer.ascend` and ``velocity``).
    levels : dict of str to str
        Level of the table -> the register's level that tells which checks can be measured there.
    drawn : tuple of str
        The levels at which runs are drawn, so that verdicts are tests over seeds.
    settings : callable
        (quick) -> the settings, which also have the time ``t_end`` that they are simulated to.
    draws : callable
        (quick) -> how many seeds.
    mirrored : callable
        The dataset of a run -> that of a run which moves the other way.
    left_out : dict of str to str
        Numbers of statements that can be measured on a simulation and say nothing of training: why.
    """

    paper: str
    options: tuple[Option, ...]
    levels: dict[str, str]
    drawn: tuple[str, ...]
    settings: Callable[..., list]
    draws: Callable[..., int]
    mirrored: Callable[[xr.Dataset], xr.Dataset]
    left_out: dict[str, str] = dataclasses.field(default_factory=dict)
