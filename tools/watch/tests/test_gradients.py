"""Rates and gradients of a training of PyTorch's are those that moved the weights; a stopped training resumes."""

import copy
import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from yzflow_watch.gradients import CHANGED, LEFT, UNKNOWN
from yzflow_watch.kinds_of_models import adapter_of
from yzflow_watch.rates import induced
from yzflow_watch.recording import Recording

import yzflow as yz

torch = pytest.importorskip("torch")

from loops_of_torch import (  # noqa: E402, which needs PyTorch
    BATCH,
    STEPS,
    TOKENS,
    Small,
    batches,
    in_backward,
    loss_of,
    plain,
    recorded,
    sgd,
    sharp,
    validated,
)

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
    margins = recorder.report(now=STEPS).applies["Scan and Snap: Theorem 3"].margins
    assert margins["plain gradient steps, but there are gradients that were changed before the step"] == 0


@pytest.mark.parametrize(
    "change", [lambda model: None, lambda model: torch.nn.utils.clip_grad_norm_(model.parameters(), 1e9)]
)
def test_a_gradient_that_is_as_it_was_is_a_plain_one(change):
    recorder = recorded(lambda *given: plain(*given, change))
    assert recorder.recording.facts["gradients"] == LEFT
    assert recorder.report(now=STEPS).applies["Scan and Snap: Theorem 3"].margins["plain gradient steps"] == 1


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
    assert np.isnan(recorder.report(now=STEPS).applies["Scan and Snap: Theorem 3"].margins["plain gradient steps"])


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
    stopped(path, 4)
    content = path.read_bytes()
    for other in (Small(1), after(3)):
        with pytest.raises(
            ValueError, match=r"`path` must be of the same model as at step 4: .*`resume_at`.*differs by"
        ):
            yz.watch(other, TOKENS, path=path)
    assert yz.watch(after(4), TOKENS, path=path).recording.steps.tolist()[-1] == 4
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
    stopped(path, 3)
    older = yz.watch(after(2), TOKENS, path=path, resume_at=2)
    state.global_step = 1
    with pytest.raises(ValueError, match="must be of the same model as at step 1"):
        older.callback().on_train_begin(*given)
