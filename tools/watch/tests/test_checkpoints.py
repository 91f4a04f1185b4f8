"""Checkpoints of a training that is over: each at its own step, one in memory, and none that could hold code."""

import functools
import weakref

import numpy as np
import pytest
import watched_layers as layers
from yzflow_watch.recording import Recording

import yzflow as yz

CLASSES = layers.classes_inside(vocab_size=8)
SEQUENCES = layers.draw(CLASSES, 6, 8, np.random.default_rng(0))
LOOKS = {"attention": layers.attention, "logits": layers.logits}
COLUMNS = ("attention", "entropy", "loss", "spread", "eta_z")


def trained(steps):
    """The paper's layer after so many steps."""
    model = layers.Trained(CLASSES)
    for number in range(steps):
        model.step(number, batch_size=4)
    return model


def watched(checkpoints, **options):
    return yz.watch_checkpoints(checkpoints, SEQUENCES, **LOOKS | options)


def test_steps_are_those_of_the_checkpoints_in_order_and_each_is_recorded():
    recorder = watched({5: trained(5), 1: trained(1), 4: lambda: trained(4)})
    data = recorder.recording.dataset
    assert data["step"].values.tolist() == [1, 4, 5]
    alone = yz.watch(trained(4), SEQUENCES, **LOOKS).recording.dataset
    for name in COLUMNS:
        np.testing.assert_array_equal(data[name][1], alone[name][0])
    report = recorder.report(now=4)
    assert isinstance(report, yz.WatchReport) and "step 4" in report.text


def test_it_is_the_recording_of_a_loop_that_numbers_its_steps():
    model = trained(0)
    recorder = yz.watch(model, SEQUENCES, **LOOKS, rates=(1.0, 0.1), batch_size=4, predict_at=[2])
    for number in range(3):
        model.step(number, batch_size=4)
        recorder.step(at=number + 1)
    steps = {number: functools.partial(trained, number) for number in range(4)}
    other = watched(steps, rates=(1.0, 0.1), batch_size=4, predict_at=[2])
    assert recorder.recording.dataset.identical(other.recording.dataset)


def test_what_is_not_given_is_not_known():
    data, facts = (getattr(watched({1: trained(1), 2: trained(2)}).recording, name) for name in ("dataset", "facts"))
    assert data["eta_y"].isnull().all() and data["learning_rate"].isnull().all()
    assert facts["batch"] == 0 and facts["optimizer"] is None


def test_equal_weights_at_two_steps_are_said():
    with pytest.warns(UserWarning, match="step 64 answers as that of step 2"):
        watched({1: trained(1), 2: trained(2), 64: trained(2)})


def test_one_model_is_kept_at_a_time():
    alive, most = weakref.WeakSet(), []

    def make(steps):
        most.append(len(alive))
        model = trained(steps)
        alive.add(model)
        return model

    watched({number: functools.partial(make, number) for number in (1, 2, 3)})
    assert most == [0, 0, 0]


def test_a_recording_goes_on_with_later_checkpoints(tmp_path):
    path, asked = tmp_path / "run.nc", []

    def make(steps):
        asked.append(steps)
        return trained(steps)

    steps = {number: functools.partial(make, number) for number in (1, 2, 5, 9)}
    watched({number: steps[number] for number in (1, 2)}, path=path)
    with pytest.raises(ValueError, match=r"`checkpoints` must have step 2, with which .* but got steps 5, 9"):
        watched({number: steps[number] for number in (5, 9)}, path=path)
    asked.clear()
    watched(steps, path=path)
    assert asked == [2, 5, 9]
    recording = Recording.load(path)
    assert recording.steps.tolist() == [1, 2, 5, 9]
    assert recording.dataset.equals(watched(steps).recording.dataset)
    with pytest.raises(ValueError, match="no older one that it lacks"):
        watched({4: steps[5], **steps}, path=path)


def test_a_function_that_fails_is_named_with_its_step():
    with pytest.raises(ValueError, match=r"`checkpoints\[7\]` must be a model that can be loaded, .* KeyError: 'lost'"):
        watched({1: trained(1), 7: lambda: {}["lost"]})
    with pytest.raises(ValueError, match="`every` must not be given"):
        watched({1: trained(1)}, every=2)


# Of PyTorch


TOKENS = np.random.default_rng(0).integers(0, 11, (12, 7))


def pythia(**changes):
    torch, transformers = pytest.importorskip("torch"), pytest.importorskip("transformers")
    torch.manual_seed(0)
    sizes = {"vocab_size": 11, "hidden_size": 8, "intermediate_size": 12, "num_hidden_layers": 1} | changes
    config = transformers.GPTNeoXConfig(num_attention_heads=2, max_position_embeddings=16, bos_token_id=0, **sizes)
    return transformers.GPTNeoXForCausalLM(config)


def moved(model, size):
    torch = pytest.importorskip("torch")
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(size * torch.randn_like(weight))


@pytest.fixture
def folders(tmp_path):
    """Folders step1, step64 and step1000, as Pythia's are called, with the models saved there."""
    model, models, found = pythia(), {}, {}
    for step in (1000, 1, 64):
        moved(model, 0.3)
        found[step] = tmp_path / f"step{step}"
        model.save_pretrained(found[step])
        models[step] = {name: value.clone() for name, value in model.state_dict().items()}
    return found, models


@pytest.mark.slow
def test_folders_are_loaded_as_they_were_saved(folders):
    folders, weights = folders
    recorder = yz.watch_checkpoints(folders, TOKENS, learning_rate=0.1)
    data = recorder.recording.dataset
    assert data["step"].values.tolist() == [1, 64, 1000] and np.isfinite(data["eta_z"]).all()
    model = pythia()
    for number, step in enumerate((1, 64, 1000)):
        model.load_state_dict(weights[step])
        alone = yz.watch(model, TOKENS, learning_rate=0.1).recording.dataset
        for name in COLUMNS:
            np.testing.assert_allclose(data[name][number], alone[name][0], rtol=1e-5)


@pytest.mark.slow
def test_half_precision_is_looked_at_in_single_precision(folders, tmp_path):
    torch = pytest.importorskip("torch")
    model = pythia()
    model.to(torch.float16).save_pretrained(tmp_path / "half")
    data = yz.watch_checkpoints({8: tmp_path / "half"}, TOKENS).recording.dataset
    alone = yz.watch(model.float(), TOKENS).recording.dataset
    np.testing.assert_allclose(data["attention"], alone["attention"], rtol=1e-6)


@pytest.mark.slow
def test_files_of_weights_are_loaded_into_the_model(folders, tmp_path):
    safetensors = pytest.importorskip("safetensors.torch")
    folders, weights = folders
    files = {step: tmp_path / f"{step}.safetensors" for step in folders}
    for step, file in files.items():
        safetensors.save_file(weights[step], file)
    data = yz.watch_checkpoints(files, TOKENS, model=pythia()).recording.dataset
    for name in COLUMNS:
        np.testing.assert_allclose(data[name], yz.watch_checkpoints(folders, TOKENS).recording.dataset[name], rtol=1e-6)
    files[64].write_bytes(files[64].read_bytes()[:-40])
    with pytest.raises(ValueError, match=r"`checkpoints\[64\]` must be a model that can be loaded.*64.safetensors"):
        yz.watch_checkpoints(files, TOKENS, model=pythia())


@pytest.mark.slow
def test_a_broken_folder_is_named_and_what_came_before_it_is_kept(folders, tmp_path):
    folders, _ = folders
    [file] = folders[64].glob("*.safetensors")
    whole = file.read_bytes()
    file.write_bytes(whole[:100])
    with pytest.raises(ValueError, match=r"`checkpoints\[64\]` must be a model that can be loaded"):
        yz.watch_checkpoints(folders, TOKENS, path=tmp_path / "run.nc")
    assert Recording.load(tmp_path / "run.nc").steps.tolist() == [1]
    file.write_bytes(whole)
    assert yz.watch_checkpoints(folders, TOKENS, path=tmp_path / "run.nc").recording.steps.tolist() == [1, 64, 1000]
    torch = pytest.importorskip("torch")
    some = {"gpt_neox.embed_in.weight": torch.zeros(11, 8)}
    pytest.importorskip("safetensors.torch").save_file(some, file, {"format": "pt"})
    with pytest.raises(ValueError, match=r"step64, which ends in .* no weights of "):
        yz.watch_checkpoints(folders, TOKENS)
    file.unlink()
    with pytest.raises(ValueError, match=r"`checkpoints\[64\]` must be a folder with config.json and \*.safetensors"):
        yz.watch_checkpoints(folders, TOKENS)


@pytest.mark.slow
def test_no_pickle_and_no_code_of_a_folder_runs(folders, tmp_path):
    torch = pytest.importorskip("torch")
    folders, _ = folders
    ran = tmp_path / "ran"

    class Bomb:
        def __reduce__(self):
            return ran.write_text, ("x",)

    torch.save({"x": Bomb()}, folders[64] / "pytorch_model.bin")
    (folders[64] / "modeling.py").write_text(f"open({str(ran)!r}, 'w')\nclass Own: pass\n")
    config = folders[64] / "config.json"
    plain = config.read_text()
    yz.watch_checkpoints(folders, TOKENS)
    config.write_text(
        plain.replace('"gpt_neox"', '"own"').replace("{", '{"auto_map": {"AutoModelForCausalLM": "modeling.Own"},', 1)
    )
    with pytest.raises(ValueError, match=r"`checkpoints\[64\]` must be a model that can be loaded"):
        yz.watch_checkpoints(folders, TOKENS)
    config.write_text(plain)
    [file] = folders[64].glob("*.safetensors")
    file.unlink()
    with pytest.raises(ValueError, match=r"`checkpoints\[64\]` must be a folder"):
        yz.watch_checkpoints(folders, TOKENS)
    torch.save({"x": Bomb()}, tmp_path / "weights.pt")
    with pytest.raises(ValueError, match=r"`checkpoints\[2\]` must be a file \*.safetensors of weights"):
        yz.watch_checkpoints({2: tmp_path / "weights.pt"}, TOKENS, model=pythia())
    assert not ran.exists()


@pytest.mark.slow
def test_a_checkpoint_of_another_model_is_refused(folders, tmp_path):
    folders, _ = folders
    for number, (changes, said) in enumerate([({"num_hidden_layers": 2}, "2 x 2"), ({"vocab_size": 12}, "12")]):
        other = tmp_path / str(number)
        pythia(**changes).save_pretrained(other)
        with pytest.raises(
            ValueError, match=rf"`checkpoints\[2000\]` must be of the model of step 1, .* but got .* {said}"
        ):
            yz.watch_checkpoints({**folders, 2000: other}, TOKENS)
    transformers = pytest.importorskip("transformers")
    sizes = {"vocab_size": 11, "n_embd": 8, "n_layer": 1, "n_head": 2, "n_positions": 16, "bos_token_id": 0}
    with pytest.raises(ValueError, match=r"`checkpoints\[2000\]` must be of the model of step 1, .* but got GPT-2"):
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**sizes))
        yz.watch_checkpoints({**folders, 2000: model}, TOKENS)
