"""Errors that end a simulation: the same class under every name that it has had, so that old pickles open."""

import pickle

import pytest

import dynamics
from dynamics.support import errors


@pytest.mark.parametrize(
    ("name", "module"),
    [
        ("IntegrationError", "dynamics.flow"),
        ("IntegrationError", "dynamics.support.errors"),
        ("DivergenceError", "dynamics.descent"),
        ("DivergenceError", "dynamics._engine.sgd.run"),
        ("DivergenceError", "dynamics.support.errors"),
    ],
)
def test_an_error_is_found_where_it_stood(name, module):
    assert pickle.loads(f"c{module}\n{name}\n.".encode()) is getattr(dynamics, name) is getattr(errors, name)


@pytest.mark.parametrize(
    "error",
    [errors.DivergenceError("diverged", 7, "records"), errors.IntegrationError("stopped", 1.5, 2, 3, {"x": [4]}, 5)],
)
def test_an_error_crosses_processes_with_what_it_carries(error):
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is type(error) and str(again) == str(error) and vars(again) == vars(error)
