"""The flow of a field from outside: its direction at layers."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from dynamics._model.objective import add_terms
from dynamics._model.weights import Weights
from dynamics.fields.full import Full
from dynamics.fields.own import Field, add_direction, check_direction, check_field
from dynamics.fields.system import FlowSetting
from dynamics.layer import moved


class Own(Full):
    """As `Full`, along the direction of a `Field`."""

    finds_loss = False

    def __init__(self, field: Field, setting: FlowSetting) -> None:
        super().__init__(setting)
        self.field = field
        check_field(field, setting.bags, setting.start, setting.objective)
        check_direction(field, "gradient", setting.bags, setting.start)

    def gradient(self, weights: Weights, slopes: Weights) -> float:
        """The direction of each weight, added into ``slopes``; nan where a trial step overshot."""
        if not all(np.isfinite(array).all() for array in weights):
            for slope in slopes:
                slope.fill(np.nan)
            return float("nan")
        add_direction(self.field, "gradient", moved(self.like, weights), self.setting.bags, slopes)
        add_terms(self.setting.objective, weights, slopes)
        return float("nan")


def whole_of(field: Field) -> Callable[[FlowSetting], Own]:
    """FlowSetting -> the flow of all weights."""
    return partial(Own, field)
