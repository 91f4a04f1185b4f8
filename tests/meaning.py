"""Which theorems of `formal` a test evaluates: their names stand at it, and `test_formal.py` demands one for each."""

from collections.abc import Callable
from typing import TypeVar

import numpy as np

SEEDS = range(2)
Test = TypeVar("Test", bound=Callable)


def evaluates(*theorems: str) -> Callable[[Test], Test]:
    """Marks a test as one that computes both sides of these theorems at points."""

    def marked(test: Test) -> Test:
        test.theorems = theorems
        return test

    return marked


def gram(rng, k, strength):
    """Gram matrix of features of norm one with entries >= 0."""
    F = features(rng, k, k, strength)
    return F.T @ F


def features(rng, m, k, strength):
    """Features of norm one, as columns: the class's own token, and some of the others."""
    F = np.eye(m, k) + strength * rng.random((m, k)) * (rng.random((m, k)) < 0.5)
    return F / np.linalg.norm(F, axis=0)
