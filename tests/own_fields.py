"""Fields from outside that tests register: written from Lemma 1 and Lemma 3, without the simulators' kernels."""

from functools import partial

import numpy as np
import pytest

from dynamics import Field, register_field
from dynamics.fields.table import SYSTEMS


@pytest.fixture
def table():
    """The table of decoders, as it was before when the test ends."""
    before = dict(SYSTEMS)
    yield SYSTEMS
    SYSTEMS.clear()
    SYSTEMS.update(before)


def blend(layer, bags, share):
    """Between Lemma 1 (share 0) and Lemma 3 (share 1)."""
    f, columns = layer.features(bags), np.eye(layer.multiplicity.size)
    target = columns[bags.target] if bags.hard else bags.target @ columns[: bags.target.shape[1]]
    pushed = bags.weight[:, None] * (target - layer.predict(bags))
    solved = np.linalg.solve(f @ f.T, pushed) if share else pushed
    return {"Z": layer.gradient(bags).Z, "Y": f.T @ ((1 - share) * pushed + share * solved)}


def tilted(layer, bags):
    """No limit of any built-in field: attention twice as fast, a decoder that forgets."""
    slope = layer.gradient(bags)
    return {"Z": 2 * slope.Z, "Y": slope.Y - 0.1 * layer.Y}


def plain(layer, bags):
    """The full field, as public names have it."""
    return layer.gradient(bags)


def register_blends(*shares):
    """Fields "blend 0.5", .., which SGD takes as well."""
    for share in shares:
        own = partial(blend, share=share)
        register_field(Field(f"blend {share}", own, step=own, inverts=share > 0))


def direct(Z, Y, probabilities, weights, multiplicity):
    """The velocities of `tilted` at rates of one, for one query and class n with next token n, from formulas alone."""
    shares = probabilities * np.exp(Z)
    shares = shares / shares.sum(axis=1, keepdims=True)
    dZ, dY = np.zeros_like(Z), -0.1 * Y
    for n, c in enumerate(shares):
        f = c / np.sqrt(c @ c)
        odds = np.exp(f @ Y)
        r = np.eye(multiplicity.size)[n] - odds / (odds @ multiplicity)
        g = Y @ (r * multiplicity)
        dZ += 2 * weights[n] * f * (g - f * (f @ g))
        dY += weights[n] * np.outer(f, r)
    return dZ, dY
