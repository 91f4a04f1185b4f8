"""Trainings that other people's reports are about, recorded: docs/tried.md has the list."""

import copy

import numpy as np
import pytest
from yzflow_watch.untouched import unwrapped

import yzflow as yz

torch = pytest.importorskip("torch")

from watched_torch import MODELS, TOKENS, Small, assert_same, counted, made, train  # noqa: E402, which needs PyTorch

pytestmark = pytest.mark.slow


class Lazy(torch.nn.Module):
    """A layer that keeps what it computes once, of a weight that is trained; in evaluation mode, too."""

    def __init__(self):
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(8))
        self.table = None

    def forward(self, x):
        if self.table is None:
            self.table = self.scale * 2
        found, self.table = self.table, None if self.training else self.table
        return x * found


def same_with_a_recorder(make, **given):
    """Asserts that nothing changes; gives the recorder."""
    alone = made(make)
    alone = train(alone, **{key: one(alone) for key, one in given.items()})
    model = made(make)
    recorder = yz.watch(model, TOKENS)
    assert_same(alone, train(model, recorder, **{key: one(model) for key, one in given.items()}))
    assert not recorder.recording.facts["gaps"]
    return recorder


@pytest.mark.parametrize(
    "norm", [torch.nn.utils.parametrizations.weight_norm, torch.nn.utils.parametrizations.orthogonal]
)
def test_weights_that_are_computed_of_others(norm):
    def normed():
        model = Small()
        norm(model.decoder)
        return model

    recorder = same_with_a_recorder(normed)
    assert counted(recorder) == ([0, 1, 2, 3, 4], 28)


def test_what_a_layer_keeps_in_evaluation_mode_is_asked_anew():
    recorder = same_with_a_recorder(lambda: Small(Lazy()))
    model = recorder.model
    assert model.between.table is None
    fresh = yz.watch(copy.deepcopy(model), TOKENS).recording.dataset
    assert np.array_equal(recorder.recording.dataset["loss"][-1], fresh["loss"][0])


def test_adapters_of_low_rank_inside_a_frozen_model():
    """As PEFT puts them: the layer's class is another, its own weight is still, and the optimizer has the rest."""

    class LowRank(torch.nn.Module):
        def __init__(self, base):
            super().__init__()
            self.base_layer = base
            self.down = torch.nn.Linear(8, 2, bias=False)
            self.up = torch.nn.Linear(2, 24, bias=False)

        @property
        def weight(self):
            return self.base_layer.weight

        def forward(self, x):
            return self.base_layer(x) + self.up(self.down(x))

    def adapted():
        model = MODELS["GPT2"][0]()
        for one in model.parameters():
            one.requires_grad_(False)
        for block in model.transformer.h:
            block.attn.c_attn = LowRank(block.attn.c_attn)
        return model

    def optimizer(model):
        return torch.optim.AdamW([one for one in model.parameters() if one.requires_grad], lr=0.01)

    recorder = same_with_a_recorder(adapted, optimizer=optimizer)
    assert counted(recorder) == ([0, 1, 2, 3, 4], 28)
    assert np.ptp(recorder.recording.dataset["entropy"].values, axis=0).max() > 0


def test_averaged_weights_that_are_swapped_in_for_validation():
    def swapped(model):
        averaged = torch.optim.swa_utils.AveragedModel(model)

        def after(number):
            averaged.update_parameters(model)
            own = copy.deepcopy(model.state_dict())
            model.load_state_dict(averaged.module.state_dict())
            model.eval()
            with torch.inference_mode():
                model(torch.as_tensor(TOKENS[:, :-1]))
            model.train()
            model.load_state_dict(own)

        return after

    recorder = same_with_a_recorder(Small, after=swapped)
    assert counted(recorder) == ([0, 1, 2, 3, 4], 28)


def test_an_optimizer_for_each_weight_that_steps_in_the_backward_pass():
    """A look comes in the middle of the pass then; nothing is changed by it."""

    def in_backward(model):
        own = {one: torch.optim.SGD([one], lr=0.1) for one in model.parameters()}

        def stepped(weight):
            own[weight].step()
            own[weight].zero_grad()

        for one in own:
            one.register_post_accumulate_grad_hook(stepped)
        return torch.optim.SGD([torch.nn.Parameter(torch.zeros(1))], lr=0.1)

    same_with_a_recorder(Small, optimizer=in_backward)


def test_a_closure_that_is_called_within_the_step():
    """As Lightning calls all its optimizers."""

    def within(model):
        optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
        plain = optimizer.step

        def step():
            def closure():
                optimizer.zero_grad()
                loss = model(torch.as_tensor(TOKENS[:5, :-1]))[:, -1].logsumexp(-1).mean()
                loss.backward()
                return loss

            return plain(closure)

        optimizer.step = step
        return optimizer

    same_with_a_recorder(Small, optimizer=within)


def test_a_forward_that_is_patched_on_the_object():
    """As accelerate does it for mixed precision."""

    def patched(model):
        plain = model.forward

        def forward(*args, **given):
            with torch.autocast("cpu", torch.bfloat16):
                return plain(*args, **given).float()

        model.forward = forward
        return model

    recorder = same_with_a_recorder(Small, called=patched)
    assert counted(recorder) == ([0, 1, 2, 3, 4], 28)


def test_wrappers_inside_wrappers():
    """As nanoGPT compiles a model, then shares its batches out."""
    model = made()
    outer = torch.nn.DataParallel(torch.compile(torch.nn.DataParallel(model), backend="eager"))
    assert unwrapped(outer) is model


@pytest.mark.filterwarnings("ignore")
def test_a_training_through_functional_calls():
    """It moves other weights than the model's, so that no step of the model is seen; and it goes on."""
    model = made()
    weights = {name: one.detach().clone().requires_grad_() for name, one in model.named_parameters()}

    def called(batch):
        return torch.func.functional_call(model, weights, (batch,))

    recorder = yz.watch(model, TOKENS)
    train(model, recorder, called=called, optimizer=torch.optim.Adam(weights.values(), lr=0.01))
    assert recorder.recording.steps.tolist() == [0]


@pytest.mark.filterwarnings("ignore:Anomaly Detection")
def test_a_training_that_pytorch_watches_for_anomalies():
    """With deterministic algorithms, too."""
    torch.use_deterministic_algorithms(True)
    try:
        with torch.autograd.detect_anomaly(check_nan=True):
            recorder = same_with_a_recorder(Small)
    finally:
        torch.use_deterministic_algorithms(False)
    assert counted(recorder) == ([0, 1, 2, 3, 4], 28)
