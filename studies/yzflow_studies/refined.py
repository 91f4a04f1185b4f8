"""Maxima over time that do not depend on the times that were looked at."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy
from numpy.typing import ArrayLike

from dynamics.support import checks


def largest(curve: Callable[[np.ndarray], np.ndarray], points: ArrayLike) -> tuple[float, float]:
    """The largest value of a curve, and where: the best of the points, refined between its two neighbours.

    Parameters
    ----------
    curve : callable
        Takes increasing points, and returns the value at each.
    points : (n,) array
        At least two, increasing, and close enough for the curve to have one maximum between the neighbours.
    """
    places = checks.finite_array("points", points, ndim=1)
    if places.size < 2 or (np.diff(places) <= 0).any():
        raise checks.reject("points", "be at least two, and increasing", checks.brief(places.tolist()))
    values = curve(places)
    best = int(values.argmax())
    bounds = places[max(best - 1, 0)], places[min(best + 1, places.size - 1)]
    found = scipy.optimize.minimize_scalar(
        lambda point: -float(curve(np.array([point]))[0]),
        bounds=bounds,
        method="bounded",
        options={"xatol": 1e-4 * (bounds[1] - bounds[0])},
    )
    if -found.fun > values[best]:
        return float(-found.fun), float(found.x)
    return float(values[best]), float(places[best])
