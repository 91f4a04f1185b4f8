"""Copies that a call makes for itself are those of the public constructors, which check what is given once."""

from dataclasses import fields, replace

import numpy as np
import pytest
import strategies
from hypothesis import given
from hypothesis import strategies as st
from own_fields import plain
from own_fields import table as table

from dynamics import (
    Embedding,
    Field,
    Layer,
    Objective,
    Optimizer,
    Schedule,
    SequenceClasses,
    Solver,
    gradient_flow,
    register_field,
    sgd,
)
from dynamics.layer import moved

CLASSES = SequenceClasses.syn_small()
RATES = {"eta_y": 1.0, "eta_z": 0.5}
FLOW, SGD = RATES | {"t_end": 5.0, "n_times": 3}, RATES | {"steps": 4, "batch_size": 3, "length": 5}
OPTIMIZER = Optimizer("adam", schedule=Schedule(2.0, "cosine"))


def assert_copy(copy, expected):
    """Equal in every field, with arrays that nobody can write to."""
    assert type(copy) is type(expected) and vars(copy).keys() <= {field.name for field in fields(expected)} | {"_kept"}
    for field in fields(expected):
        own, other = getattr(copy, field.name), getattr(expected, field.name)
        if isinstance(other, np.ndarray):
            assert own.dtype == other.dtype and own.flags.c_contiguous and not own.flags.writeable
            np.testing.assert_array_equal(own, other)
        else:
            assert own == other


@given(st.data(), st.booleans(), st.integers(0, 2**32 - 1))
def test_a_layer_with_other_weights(data, value, seed):
    layer = data.draw(strategies.layers(data.draw(strategies.bags()), value=value))
    rng = np.random.default_rng(seed)
    weights = [rng.normal(size=array.shape[::-1]).T for array in layer.weights]
    own = moved(layer, weights)
    assert_copy(own, replace(layer, Z=weights[0], Y=weights[1], V=weights[2] if value else None))
    assert not any(np.shares_memory(a, b) for a, b in zip(own.weights, weights, strict=True) if a.size)
    weights[0][0, 0] = np.nan
    with pytest.raises(ValueError, match=r"^`Z` must hold finite numbers, but got nan at index \(0, 0\)|index 0, 0"):
        moved(layer, weights)
    assert_copy(layer.expand(), replace(layer, Y=layer.expand().Y, multiplicity=np.ones(layer.vocab_size, dtype=int)))


@given(strategies.bags(), st.text("abc", min_size=1, max_size=3))
def test_bags_with_the_names_of_others(bags, word):
    named = replace(bags, token_names=[f"{word}{n}" for n in range(bags.n_tokens)])
    assert_copy(bags.named_like(named), named)


@given(st.floats(1.5, 1e6), st.floats(0, 1), st.sampled_from(["constant", "cosine", "linear"]))
def test_a_schedule_until_its_end(steps, warm_up, decay):
    schedule = Schedule(warm_up, decay)
    optimizer = Optimizer("adamw", schedule=schedule)
    expected = schedule if decay == "constant" else Schedule(warm_up, decay, steps)
    assert schedule.over(steps) == expected
    assert optimizer.over(steps) == Optimizer("adamw", schedule=expected)


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    "call",
    [
        lambda: gradient_flow(CLASSES, **FLOW).dataset,
        lambda: gradient_flow(CLASSES, **FLOW, decoder="plain").dataset,
        lambda: sgd(CLASSES, **SGD),
        lambda: sgd(CLASSES, **SGD, optimizer=OPTIMIZER),
        lambda: sgd(CLASSES, **SGD, momentum=0.5, decoder="plain"),
    ],
)
def test_a_call_checks_what_it_is_given_once(call, monkeypatch):
    """No object that it makes of those is checked again, a step's batch apart, whose bags are new."""
    register_field(Field("plain", plain, step=plain))
    call()
    checked = []
    for kind in (Embedding, Layer, Objective, Optimizer, Schedule, Solver):
        own = kind.__post_init__
        monkeypatch.setattr(kind, "__post_init__", lambda self, own=own: (checked.append(type(self)), own(self)))
    call()
    assert len(checked) == len(set(checked)), checked
