"""Enclosures of a reader's own flows in files: names, numbers and hashes; the code is elsewhere."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from dynamics.support import checks
from dynamics.support.names import is_name
from dynamics.support.origins import Code, Origin
from yzflow_enclose.flows import FlowReading
from yzflow_enclose.reading import MOST_VARIABLES
from yzflow_enclose.starts import Start, plain
from yzflow_enclose.states import by_name

_TARGET = re.compile(r"[\w.]+:[\w.]+")


class StoredFlow:
    """A flow as its file describes it; its code is imported only when needed."""

    kind = "flow"

    def __init__(self, settings: Mapping[str, Any], arrays: Mapping[str, np.ndarray]):
        def refuse(what: str, got: Any) -> ValueError:
            return checks.reject("path", f"hold an enclosure of a flow with {what}", checks.brief(got))

        try:
            flow = settings["flow"]
            if not _TARGET.fullmatch(flow["target"]):
                raise refuse("the name of a class", flow["target"])
            self.code = Code(**{key: str(value) for key, value in flow["code"].items()})
            self.origin = Origin(str(flow["target"]), dict(flow["config"]), self.code)
            self.shapes = {str(name): tuple(map(int, shape)) for name, shape in settings["states"].items()}
            if not all(is_name(name) and name.isprintable() for name in self.shapes):
                raise refuse("names of states", list(self.shapes))
            self.clock, self.own_start = settings["clock"] is True, settings["own_start"] is True
            self.weights = np.array(arrays["weights"], float)
            self.given = Start(np.array(arrays["initial"], float), np.array(arrays["initial_radius"], float))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise refuse("its origin, states and start", error) from error
        count = sum(math.prod(shape) for shape in self.shapes.values())
        if not (0 < count <= MOST_VARIABLES and self.weights.shape == (count,) == self.given.radius.shape):
            raise refuse("a weight and a start for each variable", self.weights.shape)
        # `certificate.read` has checked dimensions, finite numbers and signs of weights; left to check:
        if self.given.limbs.shape[:1] != (count,):
            raise refuse("a start for each variable", self.given.limbs.shape)
        if (self.given.radius < 0).any():
            raise refuse("radii that are not negative", self.given.radius)
        self.variables = count + self.clock

    @property
    def title(self) -> str:
        return self.origin.target

    name = title

    def facts(self) -> dict[str, Any]:
        return dict(self.origin.config)

    def arrays(self) -> dict[str, np.ndarray]:
        weights = {"weights": self.weights}
        return {**weights, "initial": self.given.limbs, "initial_radius": self.given.radius}

    @property
    def _plain_state(self) -> dict[str, np.ndarray]:
        return by_name(self.given.balls(), self.shapes)

    def open(self, flow: Any = None) -> FlowReading:
        """The flow, made again from installed code, or ``flow``; ValueError if that fails, or it is another one."""
        if flow is None:
            flow = self.origin.make()
        elif isinstance(flow, type) and self.origin.is_of(flow):
            flow = self.origin.make(flow)
        else:
            self._compare(flow)
        initial = {str(name): np.shape(value) for name, value in dict(getattr(flow, "initial", None) or {}).items()}
        if initial != self.shapes:
            raise checks.reject("path", f"hold the states of {self.title}, {initial}", self.shapes)
        found = FlowReading(flow, self._plain_state if self.own_start else None, t_end=1.0, weights=self.weights)
        if self.own_start:
            found.given = self.given
        elif not found.given.same(self.given):
            raise checks.reject("path", f"hold the start of {self.title}", "another one: its `initial` has changed")
        if found.field.clock != self.clock:
            raise checks.reject("path", "say whether the field depends on time", self.clock)
        found.code = self.code
        return found

    def _compare(self, flow: Any) -> None:
        kind = flow if isinstance(flow, type) else type(flow)
        if not self.origin.is_of(kind):
            target = f"{kind.__module__}:{kind.__qualname__}"
            raise checks.reject("flow", f"be a {self.origin.target}, as the file says", target)
        config = getattr(flow, "config", None)
        if not callable(config) or plain(config()) != self.origin.config:
            raise checks.reject("flow", f"have the configuration {checks.brief(dict(self.origin.config))}", "another")
