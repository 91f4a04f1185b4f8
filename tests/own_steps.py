"""Fields of closed forms for the bounds of a validated step."""

import numpy as np
from yzflow_enclose.fields import VectorField


class Made(VectorField):
    """A field from a function of its series."""

    def __init__(self, weights, derivative):
        self.weights = np.array(weights, float)
        self.size = self.weights.size
        self.derivative = derivative

    derivative = None  # set at once


def near(bound, exact, loose=1e-7, *, zero=False):
    """Whether a bound is not below what it bounds, nor above it by more than round-off."""
    if zero and exact == 0:
        return float(bound) < 1e-12
    return -1e-12 * abs(exact) <= float(bound) - exact <= loose * abs(exact)
