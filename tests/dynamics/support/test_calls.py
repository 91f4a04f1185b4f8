"""Calls that are kept: what comes back is what was given, and nothing that is no call is made."""

import io
import json

import numpy as np
import pytest
import scipy.sparse
import strategies
from hypothesis import given
from hypothesis import strategies as st

from dynamics import Bags, Layer, Limits, Objective, Optimizer, SequenceClasses, Solver, gradient_flow, sgd
from dynamics.support import calls
from dynamics.support.calls import Call, LeftOut

PLAIN = st.none() | st.booleans() | st.integers(-(2**63), 2**63) | st.floats(allow_nan=False) | st.text(max_size=8)


def again(value):
    return Call.from_bytes(Call("sgd", {"value": value}).to_bytes()).arguments["value"]


def equal(first, second):
    """Whether two objects hold the same, by routes of their own for each kind."""
    if scipy.sparse.issparse(first):
        return np.array_equal(first.toarray(), second.toarray())
    if isinstance(first, np.ndarray):
        return first.dtype == second.dtype and np.array_equal(first, second)
    if type(first).__module__.startswith("dynamics."):
        names = (name for name in vars(first) if not name.startswith("_"))
        return type(first) is type(second) and all(equal(getattr(first, n), getattr(second, n)) for n in names)
    return type(first) is type(second) and first == second


@given(st.dictionaries(st.text(min_size=1, max_size=5), PLAIN | st.lists(PLAIN, max_size=3), max_size=4))
def test_plain_arguments_come_back_as_they_were(arguments):
    found = Call.from_bytes(Call("sgd", arguments).to_bytes())
    assert (found.function, dict(found.arguments)) == ("sgd", arguments)


@given(strategies.sequence_classes(), st.data())
def test_data_and_layers_come_back_bit_by_bit(classes, data):
    bags = data.draw(strategies.bags())
    layer = data.draw(strategies.layers(bags, value=data.draw(st.booleans())))
    for value in (classes, classes.population(), bags, layer):
        assert equal(value, again(value))
    assert equal(classes.probabilities, again(classes).probabilities)


def test_other_objects_come_back():
    bags = SequenceClasses.syn_small().population()
    for value in (
        Objective("squared", contrast=bags, contrast_weight=0.5),
        Optimizer("adam"),
        Solver("Radau", time_scale="log"),
        np.array([0.0, -0.0, np.nan]),
    ):
        back = again(value)
        same = back.tobytes() == value.tobytes() if isinstance(value, np.ndarray) else equal(value, back)
        assert same, value
    seed = np.random.SeedSequence(5, spawn_key=(1, 2))
    assert again(seed).generate_state(4).tolist() == seed.generate_state(4).tolist()


def test_a_layer_and_a_trajectory_as_start(tmp_path):
    classes = SequenceClasses.single_common_token(3, 20)
    first = gradient_flow(classes, eta_y=1, eta_z=0.1, t_end=3, n_times=4)
    second = gradient_flow(classes, eta_y=1, eta_z=0.1, t_end=5, times=np.array([4.0, 5.0]), init=first)
    for trajectory in (first, second):
        made = Call.from_bytes(trajectory.call.to_bytes()).make()
        assert made.dataset.identical(trajectory.dataset)


def test_what_a_caller_changes_later_is_not_what_was_called():
    times = np.array([1.0, 2.0])
    flow = gradient_flow(SequenceClasses.single_common_token(3, 9), eta_y=1, eta_z=0.1, t_end=3, times=times)
    times[:] = 2.5, 2.6
    assert flow.call.make().dataset["time"].values.tolist() == [1.0, 2.0]


def test_large_data_are_left_out_and_must_be_given_as_they_were():
    classes = SequenceClasses.syn_small()
    run = sgd(classes, eta_y=1, eta_z=1, steps=2, batch_size=4)
    with Limits(data=100):
        call = Call.from_bytes(run.call.to_bytes())
    assert call.missing == ("data",) and call.arguments["data"].what == "SequenceClasses"
    assert call.make(data=classes).dataset.identical(run.dataset)
    with pytest.raises(ValueError, match="`data` must be given, as the file does not hold it, but got SequenceClasses"):
        call.make()
    with pytest.raises(ValueError, match="`data` must be the SequenceClasses that the file was made from"):
        call.make(data=SequenceClasses.syn_medium(1))
    with pytest.raises(ValueError, match="`steps` must be left out where the file holds it"):
        call.make(data=classes, steps=3)


def test_objects_of_other_people_are_left_out():
    class Own:
        def population(self):
            return SequenceClasses.syn_small().population()

    found = again(Own())
    assert isinstance(found, LeftOut) and found.what == "Own"
    # Known by its population.
    assert found.sha256 == calls.digest(SequenceClasses.syn_small().population())


class Mine(Bags):
    """Bags of a class of one's own."""

    @classmethod
    def half(cls, count):
        return cls.from_dense([0, 0], [0, 1], [[1, count, 0], [1, 0, 1]], vocab_size=4)


class Doubled(SequenceClasses):
    """Classes that answer otherwise than by what they hold."""

    def overlap(self):
        return 2 * super().overlap()


class Turned(SequenceClasses):
    """Classes with another population than theirs, of which no part of theirs says anything."""

    count = 2.0

    def population(self):
        return Mine.half(self.count)


def test_data_of_a_class_of_one_s_own_are_what_they_hold():
    """A class that changes nothing is kept, and told apart, by its content."""

    def plain(count):
        return again(Mine.half(count))

    assert type(again(Mine.half(2))) is Bags and equal(again(Mine.half(2)).count, Mine.half(2).count)
    assert calls.digest(Mine.half(2)) == calls.digest(again(Mine.half(2))) != calls.digest(Mine.half(3))
    keys = [calls.data_key("data", made(count)) for made in (Mine.half, plain) for count in (2, 3, 2)]
    assert keys[:3] == [keys[0], keys[1], keys[0]] and len(set(keys)) == 4 and "" not in keys


@given(strategies.bags(), strategies.bags())
def test_keys_of_data_are_equal_where_the_content_is(first, second):
    of = [{**one.arrays, **one.sizes} for one in (first, second)]
    same = all(np.array_equal(of[0][name], of[1][name]) for name in of[0])
    for kind in (Bags, Mine):
        keys = [calls.data_key("data", kind(**held)) for held in of]
        assert (keys[0] == keys[1]) == same


def test_a_population_of_one_s_own_is_part_of_a_key(monkeypatch):
    plain, turned = (kind([[1, 0], [0, 1]], [0, 0]) for kind in (SequenceClasses, Turned))
    other = Turned([[1, 0], [0, 1]], [1, 1])
    keys = [calls.data_key("data", one) for one in (plain, turned, other)]
    monkeypatch.setattr(Turned, "count", 3.0)
    assert len({*keys, calls.data_key("data", turned)}) == 4
    population = strategies.Population(Mine.half(2)), strategies.Population(Mine.half(3))
    assert calls.data_key("data", population[0]) != calls.data_key("data", population[1])
    assert isinstance(again(turned), LeftOut) and again(turned).sha256 == calls.digest(turned.population())


def test_data_that_answer_by_code_of_their_own_have_no_key():
    rule = (
        "^`data` must hold content that a file can hold, and answer by the code of yzflow, where results are kept, but"
    )
    with pytest.raises(ValueError, match=f"{rule} got its own overlap of Doubled: hand over `Bags`"):
        calls.data_key("data", Doubled([[1, 0], [0, 1]], [0, 0]))
    with pytest.raises(ValueError, match=rule):
        calls.data_key("data", strategies.Population(lambda: None))


def file_of(call, **arrays):
    file = io.BytesIO()
    np.savez(file, call=np.frombuffer(json.dumps(call).encode(), np.uint8), **arrays)
    return file.getvalue()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"PK nothing",
        file_of([]),
        file_of({"function": "exit", "arguments": {}}),
        file_of({"function": "sgd", "arguments": {"data": {"object": "Popen", "with": {}}}}),
        file_of({"function": "sgd", "arguments": {"data": {"object": "Layer", "with": {"Z": {"array": "0"}}}}}),
        file_of({"function": "sgd", "arguments": {"data": {"array": "0"}}}),
        file_of({"function": "sgd", "arguments": {"data": {}}}),
    ],
)
def test_what_is_no_call_is_refused(content):
    with pytest.raises(ValueError, match="must"):
        Call.from_bytes(content)


def test_indices_of_a_file_are_checked():
    """Kernels would read out of bounds with them."""
    bags = Bags([0], [0], [0, 1], [0], [1.0])
    parts = {name: {"array": name} for name in ("query", "target", "indptr", "token", "count", "weight")}
    arrays = {name: getattr(bags, name) for name in parts} | {"indptr": np.array([0, 9])}
    with pytest.raises(ValueError, match="`indptr` must run from 0 to 1"):
        Call.from_bytes(
            file_of({"function": "sgd", "arguments": {"data": {"object": "Bags", "with": parts}}}, **arrays)
        )


def test_layers_in_single_precision_stay_so():
    layer = Layer(np.zeros((1, 2), np.float32), np.ones((2, 2), np.float32))
    assert again(layer).Z.dtype == np.float32
