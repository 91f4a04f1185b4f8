"""Steps of a training of PyTorch's: each counted once, with its sequences, and none left unseen."""

import copy
import itertools
import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yzflow_watch.gradients import LEFT, UNKNOWN
from yzflow_watch.recording import LATER_FACTS, Recording

import yzflow as yz
from dynamics.support import netcdf

torch = pytest.importorskip("torch")

from loops_of_torch import (  # noqa: E402, which needs PyTorch
    BATCH,
    STEPS,
    TOKENS,
    Small,
    batches,
    closures,
    in_backward,
    loss_of,
    pairs,
    parts_of,
    plain,
    recorded,
    sgd,
    sharp,
    skipped,
    together,
    validated,
)

# A step with a number


def test_a_checkpoint_stands_at_its_step():
    recorder = yz.watch(Small(), TOKENS)
    for seed, step in enumerate((1, 64, 143000), start=1):
        recorder.step(Small(seed), at=step)
    assert recorder.recording.steps.tolist() == [0, 1, 64, 143000]
    recorder.step(Small(9))
    assert recorder._step == 143001
    for step in (143001, 5, 2.5, -1):
        with pytest.raises(ValueError, match="`at` must"):
            recorder.step(Small(), at=step)
    assert recorder._step == 143001
    assert yz.watch(Small(), TOKENS, resume_at=64).recording.steps.tolist() == [64]


def test_equal_weights_at_two_steps_are_said_once():
    recorder = yz.watch(Small(), TOKENS)
    recorder.step(Small(1), at=64)
    with pytest.warns(UserWarning, match="the model of step 1000 answers as that of step 64") as said:
        recorder.step(Small(1), at=1000)
        recorder.step(Small(1), at=2000)
    assert len(said) == 1


# Steps of the model, and their sequences


@pytest.mark.parametrize("train", [together, in_backward, sharp, closures, validated, skipped, pairs])
def test_a_step_is_one_of_the_model(train):
    facts = recorded(train).recording.facts
    assert (facts["steps"], facts["counted"], facts["batch"]) == (STEPS, STEPS * BATCH, BATCH)


def test_gradients_that_are_set_to_zero_are_dropped_too():
    facts = recorded(lambda *given: sharp(*given, to_none=False)).recording.facts
    assert (facts["steps"], facts["batch"]) == (STEPS, BATCH)


def test_weights_that_are_recorded_are_those_after_the_step():
    for train in (together, in_backward):
        found = recorded(train).recording
        for step in (1, 3):
            alone = Small()
            train(alone, batches(), step)
            look = yz.watch(alone, TOKENS).recording.dataset
            data = found.dataset.sel(step=step)
            assert np.array_equal(data["attention"], look["attention"][0])
            assert float(data["loss"]) == float(look["loss"][0])


def test_all_optimizers_are_named_with_their_rates():
    facts = recorded(together).recording.facts
    assert facts["optimizer"]["name"] == "Muon and AdamW"
    assert [(one["name"], one["lr"]) for one in facts["optimizers"]] == [("Muon", 0.2), ("AdamW", 0.01)]


def test_optimizers_that_take_turns_are_said_once():
    def train(model, data, steps):
        optimizers = [sgd(one) for one in parts_of(model)]
        for number, batch in enumerate(itertools.islice(data, steps)):
            model.zero_grad()
            loss_of(model, batch).backward()
            optimizers[number % 2].step()

    with pytest.warns(UserWarning, match="SGD step in turn, each after forwards of its own: each time is") as said:
        facts = recorded(train).recording.facts
    assert len(said) == 1 and (facts["steps"], facts["batch"]) == (STEPS, BATCH)


def test_an_optimizer_that_steps_twice_after_a_forward_is_said_once():
    def train(model, data, steps):
        optimizer = sgd(model.parameters())
        for batch in itertools.islice(data, steps):
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.step()
            optimizer.step()

    with pytest.warns(UserWarning, match="SGD steps again after no forward of its own: each time") as said:
        facts = recorded(train, steps=2).recording.facts
    assert len(said) == 1 and facts["steps"] == 4 and facts["gradients"] == UNKNOWN


@settings(max_examples=6, deadline=None)
@given(
    accumulate=st.integers(1, 3),
    n=st.integers(1, 5),
    steps=st.integers(1, 3),
    shared=st.booleans(),
    to_none=st.booleans(),
    rates=st.tuples(*[st.floats(0.01, 0.3)] * 2),
)
def test_steps_and_sequences_are_those_of_the_loop(accumulate, n, steps, shared, to_none, rates):
    model, counted = Small(), 0
    first, second = parts_of(model)
    groups = [{"params": one, "lr": rate} for one, rate in zip((first, second), rates, strict=True)]
    optimizers = [sgd([one]) for one in groups] if shared else [sgd(groups)]
    recorder, data = yz.watch(model, TOKENS), batches(n)
    with recorder:
        for _ in range(steps):
            for one in optimizers:
                one.zero_grad(set_to_none=to_none)
            for _ in range(accumulate):
                loss_of(model, next(data)).backward()
                counted += n
            for one in optimizers:
                one.step()
    facts = recorder.recording.facts
    assert (facts["steps"], facts["counted"]) == (steps, counted) and recorder.recording.steps[-1] == steps
    assert facts["gradients"] == LEFT
    assert facts["matrices"][0]["embedding"]["lr"] == rates[0] and facts["matrices"][0]["key"]["lr"] == rates[1]


# No step


def averaged(model, data):
    averages = torch.optim.swa_utils.AveragedModel(model)
    optimizer = sgd(copy.deepcopy(model).parameters())
    optimizer.step()
    averages.update_parameters(model)


def by_hand(model, data):
    with torch.no_grad():
        model.decoder.weight.mul_(0.9)


NONE = {
    averaged: "SGD holds no parameter of this model",
    by_hand: "its weights changed all the same",
    lambda model, data: None: "no step was seen: train in a `with` block",
}


@pytest.mark.parametrize("train", NONE)
def test_a_block_without_a_step_is_said_first(train):
    model = Small()
    recorder = yz.watch(model, TOKENS)
    with pytest.warns(UserWarning, match=NONE[train]), recorder:
        train(model, batches())
    facts = recorder.recording.facts
    assert next(iter(facts)) == "unseen" and NONE[train] in facts["unseen"]
    assert "no step was seen" in repr(recorder)
    assert recorder.report().right.startswith("No step was seen: ")


def test_a_block_that_was_forgotten_is_said_first():
    model = Small()
    recorder = yz.watch(model, TOKENS)
    validated(model, batches(), 2)
    assert "its weights changed all the same" in recorder.report().right
    recorder.step()
    assert recorder.recording.facts["unseen"] == "" and "no step" not in recorder.report().right


# Kept between recordings


def test_facts_that_came_later_are_checked_and_may_be_missing(tmp_path):
    path = tmp_path / "run.nc"
    recorder = recorded(plain)
    data = recorder.recording.dataset.copy()
    older = {name: value for name, value in recorder.recording.facts.items() if name not in LATER_FACTS}
    for change, works in (({}, True), ({"gradients": 3}, False), ({"matrices": {}}, False), ({"steps": 2}, True)):
        netcdf.save_dataset(data.assign_attrs(facts=json.dumps(older | change)), path)
        if works:
            found = Recording.load(path).facts
            assert found["gradients"] == UNKNOWN and found["unseen"] == ""
        else:
            with pytest.raises(ValueError, match="`path` must be a recording of a training"):
                Recording.load(path)


class Counting(Small):
    """A buffer, a buffer that is put in place of another, and an attribute change with every forward."""

    def __init__(self):
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("last", torch.zeros(1))
        self.number = 0

    def forward(self, tokens):
        self.calls += 1
        self.last = self.calls.clone()[None]
        self.number, self.cache = self.number + 1, tokens
        return super().forward(tokens) * (1 + 0.01 * self.calls)


def test_what_a_look_changes_in_a_model_is_put_back():
    alone, beside = Counting(), Counting()
    plain(alone, batches(), STEPS)
    recorded(plain, STEPS, beside)
    for name, value in alone.state_dict().items():
        assert torch.equal(value, beside.state_dict()[name]), name
    assert alone.number == beside.number == STEPS


def test_nothing_is_said_of_an_ordinary_training():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recorder = recorded(plain)
    assert recorder.recording.facts["optimizer"] == {
        "name": "SGD", "lr": 0.1, "momentum": 0, "dampening": 0, "weight_decay": 0, "nesterov": False, "maximize": False
    }  # fmt: skip
