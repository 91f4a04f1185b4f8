"""Steps, rates and resumption of a training of PyTorch's: each counted once, with what moved the weights."""

import copy
import itertools
import json
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yzflow_watch.gradients import CHANGED, LEFT, UNKNOWN
from yzflow_watch.kinds_of_models import adapter_of
from yzflow_watch.rates import induced
from yzflow_watch.recording import LATER_FACTS, Recording

import yzflow as yz
from dynamics.support import netcdf

torch = pytest.importorskip("torch")

TOKENS = np.random.default_rng(0).integers(0, 12, (24, 7))
BATCH = 6


class Small(torch.nn.Module):
    """One layer of attention of the last position, without dropout, and a decoder."""

    def __init__(self, seed=0, dtype=None):
        super().__init__()
        torch.manual_seed(seed)
        self.embedding = torch.nn.Embedding(12, 8, dtype=dtype)
        self.attention = torch.nn.MultiheadAttention(8, 2, bias=False, batch_first=True, dtype=dtype)
        self.decoder = torch.nn.Linear(8, 12, bias=False, dtype=dtype)

    def forward(self, tokens):
        x = self.embedding(tokens)
        return self.decoder(self.attention(x, x, x, need_weights=False)[0])


def batches(n=BATCH, seed=3):
    rng = np.random.default_rng(seed)
    while True:
        yield torch.as_tensor(rng.integers(0, 12, (n, 7)))


def loss_of(model, batch):
    return torch.nn.functional.cross_entropy(model(batch[:, :-1])[:, -1], batch[:, -1])


def sgd(parameters, lr=0.1, **options):
    return torch.optim.SGD(parameters, lr=lr, **options)


def parts_of(model):
    """Embeddings, and the rest: what two optimizers share."""
    return list(model.embedding.parameters()), [*model.attention.parameters(), *model.decoder.parameters()]


class Muon(torch.optim.SGD):
    """Named as another optimizer."""


def recorded(train, steps=6, model=None, **options):
    """Facts and recording of ``train(model, batches, steps)`` in a `with` block."""
    model = model or Small()
    recorder = yz.watch(model, TOKENS, **options)
    with recorder:
        train(model, batches(), steps)
    return recorder


# A step with a number


def test_a_checkpoint_stands_at_its_step():
    recorder = yz.watch(Small(), TOKENS)
    for seed, step in enumerate((1, 2, 64, 70, 1000, 143000), start=1):
        recorder.step(Small(seed), at=step)
    assert recorder.recording.steps.tolist() == [0, 1, 2, 64, 70, 1000, 143000]
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


def together(model, data, steps):
    """Two optimizers, both after one backward pass."""
    first, second = parts_of(model)
    optimizers = [Muon(first, lr=0.2), torch.optim.AdamW(second, lr=0.01)]
    for batch in itertools.islice(data, steps):
        loss_of(model, batch).backward()
        for one in optimizers:
            one.step()
            one.zero_grad()


def in_backward(model, data, steps):
    """An optimizer for each parameter, which steps as its gradient arrives."""
    optimizers = {one: sgd([one]) for one in model.parameters()}

    def step(parameter):
        optimizers[parameter].step()
        optimizers[parameter].zero_grad()

    hooks = [one.register_post_accumulate_grad_hook(step) for one in model.parameters()]
    for batch in itertools.islice(data, steps):
        loss_of(model, batch).backward()
    for one in hooks:
        one.remove()


def sharp(model, data, steps, to_none=True):
    """Sharpness-aware: two forwards and backward passes on a batch, and one step."""
    optimizer = sgd(model.parameters())
    for batch in itertools.islice(data, steps):
        optimizer.zero_grad(set_to_none=to_none)
        loss_of(model, batch).backward()
        shifts = [0.05 * one.grad.clone() for one in model.parameters()]
        with torch.no_grad():
            for one, shift in zip(model.parameters(), shifts, strict=True):
                one.add_(shift)
        optimizer.zero_grad(set_to_none=to_none)
        loss_of(model, batch).backward()
        with torch.no_grad():
            for one, shift in zip(model.parameters(), shifts, strict=True):
                one.sub_(shift)
        optimizer.step()


def closures(model, data, steps):
    """L-BFGS, which evaluates a batch many times in a step."""
    optimizer = torch.optim.LBFGS(model.parameters(), lr=0.1, max_iter=4)
    for batch in itertools.islice(data, steps):

        def closure(batch=batch):
            optimizer.zero_grad()
            loss = loss_of(model, batch)
            loss.backward()
            return loss

        optimizer.step(closure)


def validated(model, data, steps):
    """With forwards in training mode that nothing learns from, with and without slopes."""
    optimizer = sgd(model.parameters())
    for batch in itertools.islice(data, steps):
        optimizer.zero_grad()
        with torch.no_grad():
            loss_of(model, next(data))
        loss_of(model, next(data))
        loss = loss_of(model, batch)
        loss_of(model, next(data))
        loss.backward()
        optimizer.step()


def skipped(model, data, steps):
    """A scaler leaves out every second step."""
    optimizer, scaler = sgd(model.parameters()), torch.amp.GradScaler("cpu", init_scale=3.0 * 2**10)
    for number, batch in enumerate(itertools.islice(data, 2 * steps)):
        optimizer.zero_grad()
        scaler.scale(loss_of(model, batch) * (torch.inf if number % 2 else 1)).backward()
        scaler.step(optimizer)
        scaler.update()


def pairs(model, data, steps):
    """A loss of two forwards."""
    optimizer = sgd(model.parameters())
    for _ in range(steps):
        optimizer.zero_grad()
        (loss_of(model, next(data)[:2]) + loss_of(model, next(data)[:4])).backward()
        optimizer.step()


@pytest.mark.parametrize("train", [together, in_backward, sharp, closures, validated, skipped, pairs])
def test_a_step_is_one_of_the_model(train):
    facts = recorded(train).recording.facts
    assert (facts["steps"], facts["counted"], facts["batch"]) == (6, 6 * BATCH, BATCH)


def test_gradients_that_are_set_to_zero_are_dropped_too():
    facts = recorded(lambda *given: sharp(*given, to_none=False)).recording.facts
    assert (facts["steps"], facts["batch"]) == (6, BATCH)


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
    assert len(said) == 1 and (facts["steps"], facts["batch"]) == (6, BATCH)


def test_an_optimizer_that_steps_twice_after_a_forward_is_said_once():
    def train(model, data, steps):
        optimizer = sgd(model.parameters())
        for batch in itertools.islice(data, steps):
            optimizer.zero_grad()
            loss_of(model, batch).backward()
            optimizer.step()
            optimizer.step()

    with pytest.warns(UserWarning, match="SGD steps again after no forward of its own: each time") as said:
        facts = recorded(train, steps=3).recording.facts
    assert len(said) == 1 and facts["steps"] == 6 and facts["gradients"] == UNKNOWN


@settings(max_examples=12, deadline=None)
@given(
    accumulate=st.integers(1, 3),
    n=st.integers(1, 5),
    steps=st.integers(1, 5),
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


def test_copies_and_files_of_the_model_have_no_trace_of_the_recorder(tmp_path):
    model, data = Small(), batches()
    recorder, optimizer = yz.watch(model, TOKENS), sgd(model.parameters())
    with recorder:
        loss_of(model, next(data)).backward()
        copied = copy.deepcopy(model)
        torch.save(model, tmp_path / "model.pt")
        read = torch.load(tmp_path / "model.pt", weights_only=False)
        for other in (copied, read):
            loss_of(other, next(data)).backward()
        optimizer.step()
    assert recorder.recording.facts["counted"] == BATCH
    assert b"_Forward" not in (tmp_path / "model.pt").read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("whole", [False, True])
@pytest.mark.parametrize("in_place", [False, True])
def test_a_compiled_model_is_followed_in_its_graph(whole, in_place):
    """Attention that compiles as a whole, and one that does not: the same steps, sequences and gradients."""

    class Plain(Small):
        def forward(self, tokens):
            x = self.embedding(tokens)
            return self.decoder(torch.softmax(x @ x.transpose(1, 2), dim=-1) @ x)

    def attention(model, tokens):
        x = model.embedding(tokens)
        return torch.softmax(x @ x.transpose(1, 2), dim=-1)[:, None]

    def logits(model, tokens):
        x = model.embedding(tokens)
        return model.decoder(attention(model, tokens)[:, 0] @ x)

    def train(model, data, steps):
        if in_place:
            model.compile(backend="eager", fullgraph=whole)
            called = model
        else:
            called = torch.compile(model, backend="eager", fullgraph=whole)
        with torch.no_grad():
            loss_of(called, next(data))
        optimizer = sgd(model.parameters())
        for batch in itertools.islice(data, steps):
            optimizer.zero_grad()
            loss_of(called, batch).backward()
            optimizer.step()

    facts = recorded(train, model=Plain(), attention=attention, logits=logits).recording.facts
    assert (facts["steps"], facts["batch"], facts["gradients"]) == (6, BATCH, LEFT)


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


# Rates


def quantity(model, kind, head, first, second):
    """z = E W_Q W_K^T E^T/s of a head, or y = E W_V W_O U^T, of rows."""
    query, key, value = model.attention.in_proj_weight.T.split(8, dim=1)
    cut = slice(4 * head, 4 * head + 4)
    e, u = model.embedding.weight, model.decoder.weight
    if kind == "z":
        return (e[first] @ query[:, cut]) @ (e[second] @ key[:, cut]) / 2
    return (e[first] @ value[:, cut]) @ (u[second] @ model.attention.out_proj.weight[:, cut])


@settings(max_examples=4, deadline=None)
@given(rates=st.tuples(*[st.floats(0.05, 2.0)] * 3), seed=st.integers(0, 99), frozen=st.booleans())
def test_rates_of_groups_are_those_of_a_step(rates, seed, frozen):
    """One plain step of size 1e-6 on the quantity itself, by groups, moves it as far as the recorded rate says."""
    model = Small(seed, dtype=torch.float64)
    model.embedding.weight.requires_grad_(not frozen)
    named = dict(zip(("embedding", "attention", "decoder"), rates, strict=True))
    groups = [{"params": getattr(model, name).parameters(), "lr": rate} for name, rate in named.items()]
    tokens = TOKENS % 3  # of which there are few pairs; next tokens 0 to 2 are none of the last rows
    tokens[:, -1] += 9
    data = yz.watch(model, tokens, optimizer=torch.optim.SGD(groups)).recording.dataset.isel(step=0, layer=0)

    def moved(*which):
        total, size, after = quantity(model, *which), 1e-6, copy.deepcopy(model)
        mine = [(name, one) for name, one in model.named_parameters() if one.requires_grad]
        grads = torch.autograd.grad(total, [one for _, one in mine], allow_unused=True)
        with torch.no_grad():
            for (name, _), grad in zip(mine, grads, strict=True):
                if grad is not None:
                    after.get_parameter(name).add_(size * named[name.split(".")[0]] * grad)
            return float(quantity(after, *which) - total.detach()) / size

    for head in (0, 1):
        of_y = [moved("y", head, i, n) for i in range(3) for n in (9, 10, 11)]
        assert float(data["eta_y"][head]) == pytest.approx(np.mean(of_y), rel=1e-4)
        if frozen:  # else an embedding that is query and token at once has one rate more
            of_z = [moved("z", head, i, j) for i in range(3) for j in range(3)]
            assert float(data["eta_z"][head]) == pytest.approx(np.mean(of_z), rel=1e-4)
    [heads] = adapter_of(model).matrices(model, tokens[:2, :-1])
    of = dict.fromkeys(("query", "key", "value", "output"), named["attention"])
    of |= {"embedding": named["embedding"], "unembedding": named["decoder"]}
    found = [induced(one, of, data["token"].values, data["next_token"].values) for one in heads]
    np.testing.assert_allclose(np.transpose(found), [data["eta_y"], data["eta_z"]], rtol=1e-12)


def grouped(model, data, steps):
    groups = [
        {"params": model.embedding.parameters(), "lr": 0.5, "weight_decay": 0.0},
        {"params": model.attention.parameters(), "lr": 0.01, "weight_decay": 0.0},
        {"params": model.decoder.parameters(), "lr": 0.1, "weight_decay": 0.3},
    ]
    optimizer = torch.optim.SGD(groups)
    for batch in itertools.islice(data, steps):
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        optimizer.step()


def test_each_matrix_has_its_own_rate_and_decay():
    facts = recorded(grouped).recording.facts
    [of] = facts["matrices"]
    assert {name: one["lr"] for name, one in of.items()} == {
        "embedding": 0.5, "query": 0.01, "key": 0.01, "value": 0.01, "output": 0.01, "unembedding": 0.1
    }  # fmt: skip
    assert of["unembedding"]["weight_decay"] == 0.3 and of["query"]["weight_decay"] == 0
    assert facts["optimizer"]["weight_decay"] == 0.3  # no group hides another's
    assert facts["rates"] == "nominal"


def test_rates_of_adam_are_nominal_and_those_of_plain_steps_are_not():
    def adam(model, data, steps):
        optimizer = torch.optim.Adam(model.parameters())
        for batch in itertools.islice(data, steps):
            loss_of(model, batch).backward()
            optimizer.step()

    assert recorded(adam).recording.facts["rates"] == "nominal"
    assert recorded(validated).recording.facts["rates"] == "of plain steps"


# Gradients


def plain(model, data, steps, change=lambda model: None):
    optimizer = sgd(model.parameters())
    for batch in itertools.islice(data, steps):
        optimizer.zero_grad()
        loss_of(model, batch).backward()
        change(model)
        optimizer.step()


def norm_clipped(model):
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01)


def replaced(model):
    for one in model.parameters():
        one.grad = one.grad / 3


def noisy(model):
    for one in model.parameters():
        one.grad += 0.1


def clamped(model):
    torch.nn.utils.clip_grad_value_(model.parameters(), 1e-3)


def behind(model):
    for one in model.parameters():
        one.grad.data.mul_(0.5)


def reversed_sign(model):
    model.decoder.weight.grad.neg_()


@pytest.mark.parametrize("change", [norm_clipped, replaced, noisy, clamped, behind, reversed_sign])
def test_a_gradient_that_is_changed_before_the_step_is_no_plain_one(change):
    recorder = recorded(lambda *given: plain(*given, change))
    assert recorder.recording.facts["gradients"] == CHANGED
    margins = recorder.report(now=6).applies["Scan and Snap: Theorem 3"].margins
    assert margins["plain gradient steps, but there are gradients that were changed before the step"] == 0


@pytest.mark.parametrize(
    "change", [lambda model: None, lambda model: torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9)]
)
def test_a_gradient_that_is_as_it_was_is_a_plain_one(change):
    recorder = recorded(lambda *given: plain(*given, change))
    assert recorder.recording.facts["gradients"] == LEFT
    assert recorder.report(now=6).applies["Scan and Snap: Theorem 3"].margins["plain gradient steps"] == 1


def test_clipping_between_the_steps_that_are_recorded_is_seen():
    count = itertools.count(1)

    def sometimes(model):
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01 if next(count) == 6 else 1e9)

    assert recorded(lambda *given: plain(*given, sometimes), steps=7).recording.facts["gradients"] == CHANGED


def test_the_rate_of_a_clipped_gradient_is_the_one_that_moved_the_weights():
    factors = []

    def clip(model):
        norm = float(torch.nn.utils.clip_grad_norm_(model.parameters(), 0.01))
        factors.append(0.01 / (norm + 1e-6))

    model = Small()
    data = recorded(lambda *given: plain(*given, clip), model=model, steps=2).recording.dataset
    whole = induced(adapter_of(model).matrices(model, TOKENS[:2, :-1])[0][0], 0.1 * factors[-1], *[
        data[name].values for name in ("token", "next_token")
    ])  # fmt: skip
    assert factors[-1] < 0.1
    assert (float(data["eta_y"][-1, 0, 0]), float(data["eta_z"][-1, 0, 0])) == pytest.approx(whole, rel=1e-4)


@pytest.mark.parametrize("clipped", [False, True])
def test_what_a_scaler_divides_out_is_no_change(clipped):
    def train(model, data, steps):
        optimizer, scaler = sgd(model.parameters()), torch.amp.GradScaler("cpu", init_scale=3.0 * 2**10)
        for batch in itertools.islice(data, steps):
            optimizer.zero_grad()
            scaler.scale(loss_of(model, batch)).backward()
            if clipped:
                scaler.unscale_(optimizer)
                norm_clipped(model)
            scaler.step(optimizer)
            scaler.update()

    assert recorded(train).recording.facts["gradients"] == (CHANGED if clipped else LEFT)


@pytest.mark.parametrize("train", [sharp, in_backward])
def test_what_is_not_known_of_gradients_is_not_plain(train):
    recorder = recorded(train)
    assert recorder.recording.facts["gradients"] == UNKNOWN
    assert np.isnan(recorder.report(now=6).applies["Scan and Snap: Theorem 3"].margins["plain gradient steps"])


# Resumption


def stopped(path, steps):
    """A model that was trained so many steps, with its recording in the file."""
    model = Small()
    recorded(plain, steps, model, path=path)
    return model


def after(steps):
    model = Small()
    plain(model, batches(), steps)
    return model


def test_another_model_or_an_older_one_does_not_go_on(tmp_path):
    path = tmp_path / "run.nc"
    stopped(path, 12)
    content = path.read_bytes()
    for other in (Small(1), after(11)):
        with pytest.raises(
            ValueError, match=r"`path` must be of the same model as at step 12: .*`resume_at`.*differs by"
        ):
            yz.watch(other, TOKENS, path=path)
    assert yz.watch(after(12), TOKENS, path=path).recording.steps.tolist()[-1] == 12
    assert path.read_bytes() == content


@pytest.mark.slow
def test_it_goes_on_from_an_older_checkpoint(tmp_path):
    path = tmp_path / "run.nc"
    stopped(path, 12)
    recorder = yz.watch(after(5), TOKENS, path=path, resume_at=5)
    assert recorder.recording.steps.tolist() == [0, 1, 2, 3, 4, 5]
    assert recorder.recording.facts["batch"] == BATCH
    data = batches()
    for _ in range(5):
        next(data)
    with recorder:
        plain(recorder.model, data, 7)
    assert recorder.recording.steps.tolist() == [0, 1, 2, 3, 4, 5, 7, 9, 12]
    whole = tmp_path / "whole.nc"
    stopped(whole, 12)
    for name, values in Recording.load(whole).dataset.data_vars.items():
        np.testing.assert_array_equal(Recording.load(path).dataset[name], values)
    for step, message in (
        (7, "`resume_at` must be of the same model as at step 7"),
        (-1, "`resume_at` must be at least"),
    ):
        with pytest.raises(ValueError, match=message):
            yz.watch(after(5), TOKENS, path=path, resume_at=step)
    beyond = yz.watch(after(13), TOKENS, path=path, resume_at=13)
    assert beyond.recording.steps.tolist()[-2:] == [12, 13]


def test_a_model_whose_answers_are_not_numbers_goes_on(tmp_path):
    path = tmp_path / "run.nc"

    def logits(model, tokens):
        return np.full((len(tokens), 12), np.nan)

    def attention(model, tokens):
        return np.full((len(tokens), 1, 6), 1 / 6)

    looks = {"attention": attention, "logits": logits, "path": path}
    yz.watch(None, TOKENS, **looks).step()
    assert yz.watch(None, TOKENS, **looks).recording.steps.tolist() == [0, 1]


def test_a_trainer_that_resumes_says_its_step(tmp_path):
    pytest.importorskip("transformers")
    from transformers import TrainerControl, TrainerState, TrainingArguments

    model = after(5)
    recorder = yz.watch(model, TOKENS)
    callback, state = recorder.callback(), TrainerState(global_step=5)
    given = (TrainingArguments.__new__(TrainingArguments), state, TrainerControl())
    callback.on_train_begin(*given)
    plain(model, batches(), 2)
    callback.on_train_end(*given)
    assert recorder.recording.steps.tolist() == [5, 7]
    assert recorder.recording.facts["batch"] == BATCH
    path = tmp_path / "run.nc"
    stopped(path, 12)
    older = yz.watch(after(9), TOKENS, path=path, resume_at=9)
    state.global_step = 7
    with pytest.raises(ValueError, match="must be of the same model as at step 7"):
        older.callback().on_train_begin(*given)


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
    plain(alone, batches(), 5)
    recorded(plain, 5, beside)
    for name, value in alone.state_dict().items():
        assert torch.equal(value, beside.state_dict()[name]), name
    assert alone.number == beside.number == 5


def test_nothing_is_said_of_an_ordinary_training():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recorder = recorded(plain)
    assert recorder.recording.facts["optimizer"] == {
        "name": "SGD", "lr": 0.1, "momentum": 0, "dampening": 0, "weight_decay": 0, "nesterov": False, "maximize": False
    }  # fmt: skip
