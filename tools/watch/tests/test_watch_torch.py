"""Watching trainings of PyTorch: the same attention as the model's own, and nothing disturbed."""

import numpy as np
import pytest
from driving import example
from yzflow_watch.kinds_of_models import adapter_of
from yzflow_watch.recording import Recording

import yzflow as yz

torch = pytest.importorskip("torch")

from watched_torch import Encoder, assert_same, made, train  # noqa: E402, which needs PyTorch

pytestmark = pytest.mark.slow

TOKENS = np.random.default_rng(0).integers(0, 12, (40, 9))
DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(params=DEVICES, autouse=True)
def device(request, monkeypatch):
    """Each test on the processor and, where there is one, on the GPU, whose sums are made to keep their order."""
    monkeypatch.setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True)
    with torch.device(request.param):
        yield request.param
    torch.use_deterministic_algorithms(False)


def array(tensor):
    return tensor.detach().cpu().numpy()


def test_training_is_the_same_to_the_bit_with_a_recorder():
    alone, model = train(made(), steps=12), made()
    recorder = yz.watch(model, TOKENS)
    assert_same(alone, train(model, recorder, steps=12))
    assert model.training and recorder.recording.steps.tolist() == [0, 1, 2, 3, 4, 5, 7, 9, 12]


@pytest.mark.parametrize("fused", [False, True])
def test_a_step_that_a_scaler_skips_is_none(fused):
    model = made()
    recorder = yz.watch(model, TOKENS)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1, fused=fused)
    before = array(model.decoder.bias).copy()
    with pytest.warns(UserWarning, match="no step was seen"):
        train(model, recorder, steps=1, optimizer=optimizer, skipped=0)
    assert recorder.recording.steps.tolist() == [0]
    assert np.array_equal(before, array(model.decoder.bias))
    train(model, recorder, steps=3, optimizer=optimizer, skipped=1)
    assert recorder.recording.steps.tolist() == [0, 1, 2]


def test_mixed_precision_is_the_same_to_the_bit_and_looked_at_in_the_precision_of_the_weights():
    alone, model = train(made(), autocast=True), made()
    recorder = yz.watch(model, TOKENS)
    with torch.autocast(next(model.parameters()).device.type, torch.bfloat16):
        seen = adapter_of(model).on(model, TOKENS[:, :-1])
    np.testing.assert_allclose(seen.attention, adapter_of(model).on(model, TOKENS[:, :-1]).attention, atol=1e-7)
    assert_same(alone, train(model, recorder, autocast=True))
    assert not np.array_equal(alone[0][0], train(made())[0][0])


def test_a_callback_of_the_trainer_records_what_a_with_block_does():
    """Events as the Trainer's own handler calls them, around the same loop; one that failed before is forgotten."""
    pytest.importorskip("transformers")
    from transformers import TrainerControl, TrainerState, TrainingArguments
    from transformers.trainer_callback import CallbackHandler

    def recorded(by_callback):
        model = made()
        recorder = yz.watch(model, TOKENS)
        if not by_callback:
            return train(model, recorder), recorder
        handler = CallbackHandler([recorder.callback()], model, None, None, None)
        events = (TrainingArguments.__new__(TrainingArguments), TrainerState(), TrainerControl())
        handler.on_train_begin(*events)  # of a training that never ends
        handler.on_train_begin(*events)
        left = train(model)
        handler.on_train_end(*events)
        assert not recorder._training.followed
        return left, recorder

    (first, one), (second, other) = recorded(False), recorded(True)
    assert_same(first, second)
    assert one.recording.dataset.identical(other.recording.dataset)


def test_a_loop_that_counts_twice_is_refused():
    recorder = yz.watch(made(), TOKENS)
    with pytest.warns(UserWarning, match="no step was seen"), recorder:
        with pytest.raises(RuntimeError, match="do not call `step` there"):
            recorder.step()
        with pytest.raises(RuntimeError, match="records already"):
            recorder.__enter__()


@pytest.mark.parametrize("implementation", ["eager", "sdpa"])
@pytest.mark.parametrize("name", ["GPT2", "GPTNeoX"])
def test_attention_is_the_output_of_hugging_face_models(name, implementation):
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 12, "attn_implementation": implementation}
    if name == "GPT2":
        config = transformers.GPT2Config(n_embd=8, n_layer=2, n_head=2, n_positions=16, bos_token_id=0, **sizes)
        model = transformers.GPT2LMHeadModel(config)
    else:
        config = transformers.GPTNeoXConfig(
            hidden_size=8, num_hidden_layers=2, num_attention_heads=2, intermediate_size=16, bos_token_id=0, **sizes
        )
        model = transformers.GPTNeoXForCausalLM(config)
    compiled = torch.compile(model, backend="eager")
    recorder = yz.watch(compiled, TOKENS, optimizer=torch.optim.SGD(model.parameters(), lr=0.1))
    assert model.config._attn_implementation == implementation and model.training
    data = recorder.recording.dataset
    assert np.isfinite(data["eta_z"]).all() and (data["eta_y"] > 0).all()
    model.eval()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        out = model(torch.as_tensor(TOKENS[:, :-1]), output_attentions=True)
    seen = recorder.adapter.on(model, TOKENS[:, :-1])
    for layer, own in enumerate(out.attentions):
        np.testing.assert_allclose(seen.attention[layer], array(own[:, :, -1]), atol=1e-6)
    np.testing.assert_allclose(seen.logits, array(out.logits[:, -1]), atol=1e-5)


def test_matrices_of_gpt_neox_give_its_queries_and_keys():
    transformers = pytest.importorskip("transformers")
    config = transformers.GPTNeoXConfig(
        vocab_size=12, hidden_size=8, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, bos_token_id=0
    )
    model = transformers.GPTNeoXForCausalLM(config)
    x = torch.randn(5, 8)
    layer = model.gpt_neox.layers[0].attention
    query, key, value = layer.query_key_value(x[None]).view(1, 5, -1, 3 * layer.head_size).transpose(1, 2).chunk(3, -1)
    for i, head in enumerate(adapter_of(model).matrices(model, TOKENS[:2, :-1])[0]):
        for own, matrix in ((query, head.query), (key, head.key), (value, head.value)):
            np.testing.assert_allclose(array(x) @ matrix, array(own[0, i]), atol=1e-5)


def test_parts_are_added_to_those_of_a_known_kind():
    facts = yz.watch(made(Encoder), TOKENS, parts=["gates", "LayerNorm"]).recording.facts
    assert facts["parts"] == ["a residual link", "LayerNorm", "a feed-forward part", "gates"]
    assert yz.watch(made(), TOKENS, parts=["gates"]).recording.facts["parts"] == ["gates"]
    with pytest.raises(ValueError, match="`parts` must be words"):
        yz.watch(made(), TOKENS, parts=[1])


def test_the_example_runs_and_reports_what_was_stored(tmp_path, capsys):
    assert example("watch_training").main(["--quick", "--out", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    assert out.count("Stored at step 4, before what followed was seen") == 2
    assert "Adam's first step" in out and "Adam stands in the way of 33 statements" in out
    assert {path.name for path in tmp_path.iterdir()} == {"SGD.nc", "SGD.html", "Adam.nc", "Adam.html"}
    recording = Recording.load(tmp_path / "SGD.nc")
    assert recording.steps[-1] == 64 and recording.asked.tolist() == [1, 2, 4, 9, 19, 38]
    assert (recording.dataset["eta_z"][1:] > 0).all()  # at step 0 no optimizer has been seen
