"""A recorder never ends a training of PyTorch's and never changes a bit of it; what it cannot see it says once."""

import contextlib
import copy
import io
import os
import pickle
import queue
import random
import socket
import warnings
from datetime import timedelta

import numpy as np
import pytest

import yzflow as yz

torch = pytest.importorskip("torch")

from watched_torch import (  # noqa: E402, which needs PyTorch
    LEGACY,
    MODELS,
    TOKENS,
    Averages,
    Drawn,
    Small,
    assert_same,
    by_hand,
    counted,
    logits,
    made,
    train,
)

# Never changes it


@pytest.mark.parametrize("between", [Averages, Drawn, torch.nn.Identity])
def test_buffers_and_random_numbers_that_move_in_evaluation_mode_are_put_back(between):
    alone = train(made(lambda: Small(between())))
    model = made(lambda: Small(between()))
    assert_same(alone, train(model, yz.watch(model, TOKENS)))


def test_a_look_puts_back_what_own_functions_change():
    """Random numbers of three kinds, modes, and a buffer that a function writes, of a model that is no module, too."""

    def attention(model, sequences):
        found = by_hand(model.module.eval(), sequences)
        LEGACY.normal(), random.random(), torch.randn(3)
        model.module.train()
        return found

    class Other:
        def __init__(self, module):
            self.module = module

    model = made()
    before = random.getstate(), LEGACY.get_state()[1].copy(), torch.get_rng_state()
    yz.watch(Other(model), TOKENS, attention=lambda m, t: attention(m, torch.as_tensor(t)), logits=own_logits)
    assert random.getstate() == before[0] and np.array_equal(LEGACY.get_state()[1], before[1])
    assert torch.equal(torch.get_rng_state(), before[2])


def own_logits(model, sequences):
    model.module.eval()
    return model.module(torch.as_tensor(sequences))


def test_weights_that_are_computed_are_asked_in_evaluation_mode():
    """Spectral normalisation goes on by one step at each use in training mode."""

    def normed():
        model = Small()
        torch.nn.utils.parametrizations.spectral_norm(model.decoder)
        return model

    alone = train(made(normed))
    model = made(normed)
    recorder = yz.watch(model, TOKENS)
    assert_same(alone, train(model, recorder))
    assert np.isfinite(recorder.recording.dataset["eta_y"][1:]).all()


@pytest.mark.parametrize("reentrant", [False, True])
def test_forwards_that_a_checkpoint_computes_again_are_counted_once(reentrant):
    from torch.utils.checkpoint import checkpoint

    def called(model):
        need = torch.zeros((), requires_grad=True)  # a reentrant checkpoint follows slopes of its arguments alone
        return lambda batch: checkpoint(lambda given, _: model(given), batch, need, use_reentrant=reentrant)

    alone = made()
    alone = train(alone, called=called(alone))
    model = made()
    recorder = yz.watch(model, TOKENS)
    assert_same(alone, train(model, recorder, called=called(model)))
    assert counted(recorder) == ([0, 1, 2, 3, 4], 28)


WAYS = {
    "plain": {},
    "accumulated": {"accumulate": 2},
    "autocast": {"autocast": True},
    "SGD": {"optimizer": lambda model: torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)},
    "fused": {"optimizer": lambda model: torch.optim.AdamW(model.parameters(), lr=0.01, fused=True)},
    "checkpointed": {"called": lambda model: checkpointed(model)},
    "compiled": {"called": lambda model: torch.compile(model, backend="eager")},
    "compiled in place": {"called": lambda model: in_place(model)},
    "DataParallel": {"called": lambda model: torch.nn.DataParallel(model)},
}


def checkpointed(model):
    if hasattr(model, "gradient_checkpointing_enable"):
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
        return model
    from torch.utils.checkpoint import checkpoint

    return lambda batch: checkpoint(model, batch, use_reentrant=False)


def in_place(model):
    model.compile(backend="eager", fullgraph=True)
    return model


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "way"),
    [(name, way) for name in MODELS for way in WAYS
     if name == "MultiheadAttention" or way == "plain" or (name, way) == ("GPT2", "checkpointed")],
)  # fmt: skip
def test_all_that_a_training_leaves_is_the_same_to_the_bit(name, way):
    """Each kind of model, each kind of training; and its steps and sequences are counted."""
    make, looks = MODELS[name]

    def left(watched):
        torch._dynamo.reset()
        model = made(make)
        given = {key: one(model) if callable(one) else one for key, one in WAYS[way].items()}
        recorder = yz.watch(model, TOKENS, **looks) if watched else None
        return train(model, recorder, **given), recorder

    (alone, _), (beside, recorder) = left(False), left(True)
    assert_same(alone, beside)
    assert counted(recorder) == ([0, 1, 2, 3, 4], 56 if way == "accumulated" else 28)
    assert not recorder.recording.facts["gaps"]


@pytest.mark.slow
def test_a_transformer_of_jax_is_the_same_to_the_bit():
    pytest.importorskip("equinox")
    import jax
    import yzflow_deep as deep
    from yzflow_deep.model import Transformer

    model = Transformer(deep.Architecture(12, n_layers=1, width=8), np.random.default_rng(0))
    before = [np.array(one).tobytes() for one in jax.tree.leaves(model) if hasattr(one, "shape")]
    recorder = yz.watch(model, TOKENS)
    with pytest.warns(UserWarning, match="to the last bit: are their weights equal"):
        for _ in range(2):
            recorder.step(model)
    assert [np.array(one).tobytes() for one in jax.tree.leaves(model) if hasattr(one, "shape")] == before


# Compiled


class Counting:
    """A backend that compiles nothing, and counts how often it was asked to."""

    def __init__(self):
        self.asked = 0

    def __call__(self, graph, example):
        self.asked += 1
        return graph.forward


def wrapped(model, backend):
    return torch.compile(model, backend=backend)


def wrapped_whole(model, backend):
    return torch.compile(model, backend=backend, fullgraph=True)


def whole(model, backend):
    model.compile(backend=backend, fullgraph=True)
    return model


def by_layer(model, backend):
    for layer in model.transformer.h:
        layer.compile(backend=backend)
    return model


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("name", "compiled"),
    [("MultiheadAttention", wrapped), ("MultiheadAttention", wrapped_whole), ("MultiheadAttention", whole),
     ("GPT2", by_layer)],
)  # fmt: skip
def test_compiled_models_are_followed_and_compiled_as_often_as_without_a_recorder(name, compiled):
    make = MODELS[name][0]

    def left(watched):
        torch._dynamo.reset()
        model, backend = made(make), Counting()
        called = compiled(model, backend)
        recorder = yz.watch(called, TOKENS) if watched else None
        return train(model, recorder, called=called), backend.asked, recorder

    (alone, often, _), (beside, again, recorder) = left(False), left(True)
    assert_same(alone, beside)
    assert often == again > 0
    assert counted(recorder) == ([0, 1, 2, 3, 4], 28)
    plain = made(make)
    eager = yz.watch(plain, TOKENS)
    train(plain, eager)
    assert recorder.recording.facts == eager.recording.facts
    seen, own = recorder.recording.dataset, eager.recording.dataset
    np.testing.assert_allclose(seen["attention"], own["attention"], atol=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize("after_entering", [False, True])
def test_a_model_inside_a_compiled_function_ends_no_training_and_is_said_once(after_entering):
    torch._dynamo.reset()
    model = made()
    recorder = yz.watch(model, TOKENS)

    def compiled():
        return torch.compile(lambda batch: model(batch), backend="eager", fullgraph=True)

    made_before = None if after_entering else compiled()
    with pytest.warns(UserWarning, match="no forward of the model was seen before step 1: say `batch_size=`") as said:
        train(model, recorder, called=lambda batch: (made_before or compiled())(batch))
    assert sum("no forward" in str(one.message) for one in said) == 1
    assert counted(recorder) == ([0, 1, 2, 3, 4], 0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        train(model, yz.watch(model, TOKENS, batch_size=7), called=compiled())


@pytest.mark.slow
def test_nothing_stays_on_a_model_that_was_followed():
    from torch._dynamo.eval_frame import OptimizedModule

    before = OptimizedModule.__call__
    model = made()
    model.compile(backend="eager")
    own = model._compiled_call_impl
    with pytest.warns(UserWarning, match="no step was seen"), yz.watch(model, TOKENS):
        assert OptimizedModule.__call__ is not before and model._compiled_call_impl is not own
    assert OptimizedModule.__call__ is before and model._compiled_call_impl is own
    assert not model._forward_hooks


# Copies


def test_copies_and_files_hold_nothing_of_the_recorder():
    model = made()
    recorder = yz.watch(model, TOKENS)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    copies = []

    def copied(number):
        file = io.BytesIO()
        torch.save(model, file)
        assert b"untouched" not in file.getvalue()
        file.seek(0)
        copies.extend([torch.load(file, weights_only=False), copy.deepcopy(model), pickle.loads(pickle.dumps(model))])
        copies.append(torch.optim.swa_utils.AveragedModel(model))
        pickle.dumps((optimizer, copy.deepcopy(optimizer)))
        for each in copies:
            each(torch.as_tensor(TOKENS[:3]))
        torch.optim.SGD(copies[1].parameters(), lr=0.1).step()

    train(model, recorder, after=copied, optimizer=optimizer)
    assert counted(recorder) == ([0, 1, 2, 3, 4], 28)
    assert_same(train(made()), train(made(), after=None))


# Never ends it


class FailsFrom:
    """Attention that ends in an error from a call on; calls are counted from ``begin`` on."""

    def __init__(self, number, error):
        self.left, self.error, self.begun = number, error, False

    def begin(self):
        self.begun = True

    def __call__(self, model, sequences):
        if self.begun and not self.left:
            raise self.error
        self.left -= self.begun
        return by_hand(model, sequences)


def test_what_cannot_be_looked_at_is_a_gap_and_said_once(tmp_path):
    model, path = made(), tmp_path / "run.nc"
    attention = FailsFrom(4, RuntimeError("CUDA out of memory\nTried to allocate"))
    recorder = yz.watch(model, TOKENS, attention=attention, logits=logits, path=path)
    attention.begin()
    with pytest.warns(UserWarning, match=r"step 3 could not be recorded \(.*CUDA out of memory\)") as said:
        beside = train(model, recorder)
    assert len(said) == 1
    assert_same(train(made()), beside)
    facts = recorder.recording.facts
    assert recorder.recording.steps.tolist() == [0, 1, 2] and list(facts["gaps"]) == ["3", "4"]
    assert facts["counted"] == 28
    with pytest.raises(ValueError, match="be of the same model as at step 2"):  # its weights are those of step 4
        yz.watch(model, TOKENS, attention=by_hand, logits=logits, path=path)
    again = yz.watch(model, TOKENS, attention=by_hand, logits=logits, path=path, resume_at=4)
    assert again.recording.steps.tolist() == [0, 1, 2, 4]


def test_a_gap_is_one_in_a_loop_that_is_counted_by_hand_too():
    model, attention = made(), FailsFrom(2, MemoryError("no"))
    recorder = yz.watch(model, TOKENS, attention=attention, logits=logits)
    attention.begin()
    with pytest.warns(UserWarning, match="step 2 could not be recorded"):
        for _ in range(3):
            with torch.no_grad():
                model.decoder.weight.add_(0.01)
            recorder.step()
    assert recorder.recording.steps.tolist() == [0, 1]
    assert list(recorder.recording.facts["gaps"]) == ["2", "3"]


def test_at_the_start_and_when_somebody_interrupts_it_is_raised():
    model, ended, stopped = made(), FailsFrom(0, RuntimeError("no")), FailsFrom(2, KeyboardInterrupt())
    ended.begin()
    with pytest.raises(ValueError, match="`attention` must take the model and sequences, but got an error"):
        yz.watch(model, TOKENS, attention=ended, logits=logits)
    recorder = yz.watch(model, TOKENS, attention=stopped, logits=logits)
    stopped.begin()
    with pytest.raises(KeyboardInterrupt):
        train(model, recorder)
    assert model.training


def test_a_file_that_cannot_be_written_ends_no_training(tmp_path):
    model, folder = made(), tmp_path / "runs"
    folder.mkdir()
    recorder = yz.watch(model, TOKENS, path=folder / "run.nc")
    (folder / "run.nc").unlink()
    folder.rmdir()
    with pytest.warns(UserWarning, match="the training goes on"):
        train(model, recorder)
    assert recorder.recording.steps.tolist() == [0, 1, 2, 3, 4]


# Several processes


def test_shared_out_weights_are_refused():
    class FullyShardedDataParallel(Small):
        pass

    with pytest.raises(ValueError, match="`model` must hold all of its weights in each process: call `step` with"):
        yz.watch(FullyShardedDataParallel(), TOKENS)


def in_a_process(rank, world, port, answers):
    """Trainings of one process: without a recorder, and with one of the wrapper and of the model inside."""
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", rank=rank, world_size=world, timeout=timedelta(seconds=60))
    found = []
    for given in (None, "whole", "inside"):
        model = made(lambda: Small(Averages()))
        together = torch.nn.parallel.DistributedDataParallel(model)
        recorder = yz.watch({"whole": together, "inside": model}[given], TOKENS) if given and rank == 0 else None
        left = train(model, recorder, called=together)
        found.append(([one.tobytes() for one in left[0]], recorder and recorder.recording.facts))
    answers.put((rank, found))
    torch.distributed.destroy_process_group()


def together(world):
    """Answers of each process."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    context = torch.multiprocessing.get_context("spawn")
    answers = context.Queue()
    all_of_them = [context.Process(target=in_a_process, args=(rank, world, port, answers)) for rank in range(world)]
    for each in all_of_them:
        each.start()
    found = []
    with contextlib.suppress(queue.Empty):
        found = [answers.get(timeout=240) for _ in all_of_them]
    for each in all_of_them:
        each.join(30)
        each.kill()
    return sorted(found, key=lambda one: one[0])


@pytest.mark.slow
def test_one_of_several_processes_may_be_recorded():
    """Both the model inside and its wrapper, whose forwards give buffers to the other processes."""
    answers = together(2)
    assert [rank for rank, _ in answers] == [0, 1]
    for rank, ((alone, _), *recorded) in answers:
        for left, facts in recorded:
            assert left == alone
            assert (facts["processes"], facts["batch"]) == (2, 7) if rank == 0 else facts is None
