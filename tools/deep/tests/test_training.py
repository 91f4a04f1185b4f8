"""Training of transformers: against hand-written steps, single runs, and itself after an interruption."""

import json
import os

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
import xarray as xr
import yzflow_deep as deep
from yzflow_bounded_dyck import DyckLanguage
from yzflow_deep import objective

from dynamics import DivergenceError, Limits, Optimizer, Schedule
from dynamics.optimizers.table import RULES, UpdateRule
from dynamics.support import progress
from dynamics.support.netcdf import save_dataset

V, LENGTH = 6, 8
ARCHITECTURE = deep.Architecture(V, width=4, mlp_width=8)
TEXT = deep.Sequences.from_tokens(np.random.default_rng(0).integers(V, size=20 * LENGTH + 1), length=LENGTH)
ARGUMENTS = {"learning_rate": 0.1, "steps": 30, "record_every": 10, "batch_size": 4, "seeds": [0, 5]}


@pytest.fixture(scope="module")
def run():
    return deep.train(ARCHITECTURE, TEXT, **ARGUMENTS)


def same(first, second):
    """True if two results are equal bit for bit."""
    return all(np.array_equal(first[name], second[name], equal_nan=True) for name in first.variables)


SAME_BITS = pytest.mark.skipif(jax.default_backend() != "cpu", reason="on a GPU the last bits differ")


# Steps


OPTIONS = {
    "decoupled decay": Optimizer(weight_decay=0.1, decoupled=True),
    "adamw": Optimizer("adamw", weight_decay=0.1, betas=(0.8, 0.9), epsilon=1e-3),
    "sign": Optimizer("sign"),
    "all": Optimizer("adam", weight_decay=0.1, clip=0.05, schedule=Schedule(decay="linear", floor=0.2)),
}


def as_optax(optimizer, eta, steps):
    """The rule by optax's own aliases, as far as there are any."""
    rate = eta if optimizer.schedule is None else lambda k: eta * jnp.asarray(table)[k]
    table = [optimizer.over(steps).factor(k) for k in range(steps)]
    if optimizer.name == "adamw":
        constants = {"b1": optimizer.betas[0], "b2": optimizer.betas[1], "eps": optimizer.epsilon}
        return optax.adamw(rate, weight_decay=optimizer.weight_decay, **constants)
    parts = [] if optimizer.clip is None else [optax.clip_by_global_norm(optimizer.clip)]
    decay = optimizer.weight_decay
    parts += [optax.add_decayed_weights(decay)] if decay and not optimizer.decoupled else []
    if optimizer.name == "sign":
        return optax.chain(*parts, optax.trace(optimizer.momentum), optax.scale_by_sign(), optax.scale(-eta))
    if optimizer.decoupled:
        terms = optax.trace(optimizer.momentum), optax.add_decayed_weights(decay), optax.scale(-eta)
        return optax.chain(*parts, *terms)
    return optax.chain(
        *parts, optax.adam(rate) if optimizer.rule.moments else optax.sgd(rate, momentum=optimizer.momentum)
    )


@pytest.mark.slow
@pytest.mark.parametrize("name", OPTIONS)
def test_options_are_those_of_optax(name):
    """Eight steps; optax's clipping has no 1e-6 beside the norm, a share of 1e-5 of it here."""
    optimizer, eta, steps = OPTIONS[name], 0.01, 8
    start = deep.Transformer(deep.Architecture(V, width=4, mlp_width=0, norm="none"), 3, dtype="float64")
    arguments = {"steps": steps, "learning_rate": eta, "batch_size": None, "dtype": "float64", "record_every": steps}
    run = deep.train(start, TEXT, optimizer=optimizer, **arguments)
    with jax.enable_x64(True):
        rule = as_optax(optimizer, eta, steps)
        weights, fixed = eqx.partition(jax.tree.map(jnp.asarray, start), start.trained())
        state = rule.init(weights)
        slope = jax.jit(
            jax.grad(lambda free: objective.mean_loss(eqx.combine(free, fixed), TEXT.inputs, TEXT.targets, TEXT.mask))
        )
        for _ in range(steps):
            updates, state = rule.update(slope(weights), state, weights)
            weights = optax.apply_updates(weights, updates)
        expected = flat(eqx.combine(weights, fixed))
    tolerance = 1e-5 if optimizer.clip else 1e-12
    np.testing.assert_allclose(run["parameters"].values[0, 0], expected, rtol=0, atol=tolerance)
    assert np.abs(expected - flat(start)).max() > 100 * tolerance
    assert Optimizer.of(json.loads(run.attrs["parameters"])) == optimizer


def flat(model):
    return np.concatenate([np.ravel(leaf) for leaf in jax.tree.leaves(model)])


@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_two_steps_are_those_by_hand(optimizer):
    start, eta = deep.Transformer(ARCHITECTURE, 3, dtype="float64"), 0.05
    arguments = {"steps": 2, "learning_rate": eta, "batch_size": None, "momentum": 0.7, "record_every": 1}
    run = deep.train(start, TEXT, optimizer=optimizer, dtype="float64", **arguments)
    weights, m, v = flat(start), 0.0, 0.0
    leaves, tree = jax.tree.flatten(start)
    cuts = np.cumsum([leaf.size for leaf in leaves])[:-1]
    with jax.enable_x64(True):
        slope = jax.jit(jax.value_and_grad(objective.mean_loss))
        for step in (1, 2):
            parts = np.split(weights, cuts)
            model = jax.tree.unflatten(tree, [p.reshape(leaf.shape) for p, leaf in zip(parts, leaves, strict=True)])
            loss, gradient = slope(model, TEXT.inputs, TEXT.targets, TEXT.mask)
            assert float(run["batch_loss"][0, 0, step - 1]) == pytest.approx(float(loss), rel=1e-12)
            g = flat(gradient)
            if optimizer == "sgd":
                m = 0.7 * m + g
                weights = weights - eta * m
            else:
                m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g**2
                weights = weights - eta * (m / (1 - 0.9**step)) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8)
    np.testing.assert_allclose(run["parameters"].values[0, 0], weights, rtol=1e-9, atol=1e-12)


@pytest.mark.slow
def test_many_runs_at_once_are_single_runs():
    double = ARGUMENTS | {"dtype": "float64"}
    both = deep.train(ARCHITECTURE, TEXT, **double | {"learning_rate": [0.1, 0.3], "seeds": [2, 5]})
    alone = deep.train(ARCHITECTURE, TEXT, **double | {"seeds": [5]})
    for name in ("batch_loss", "loss", "entropy", "attention", "parameters"):
        single = alone[name].values[0, 0]
        np.testing.assert_allclose(both[name].values[0, 1], single, rtol=1e-8, atol=1e-9)
    assert (abs(both["batch_loss"].diff("seed")) > 1e-3).any()
    # The first batch is the same at each rate; later ones meet other weights.
    first = both["batch_loss"].values[:, 0]
    assert first[0, 0] == pytest.approx(first[1, 0], rel=1e-6) and abs(first[0, -1] - first[1, -1]) > 1e-3


@pytest.mark.slow
def test_what_is_recorded(run):
    assert run["time"].values.tolist() == [0, 10, 20, 30] and run["batch_loss"].shape == (1, 2, 30)
    assert float(run["loss"][0, 0, -1]) < float(run["loss"][0, 0, 0])
    every_map = jax.jit(lambda model, rows: jax.vmap(lambda row: model.hidden(row)[1])(rows))
    for seed in (0, 5):
        model = deep.model_at(run, seed=seed)
        last = run.sel(seed=seed, learning_rate=0.1).isel(time=-1)
        maps = np.asarray(every_map(model, TEXT.inputs))
        np.testing.assert_allclose(last["attention"].values[0], maps[0], rtol=1e-4, atol=1e-6)
        entropy = -(maps * np.log(np.where(maps > 0, maps, 1))).sum(axis=-1).mean(axis=(0, -1))
        np.testing.assert_allclose(last["entropy"], entropy, rtol=1e-4)
    assert float(run["uniform_entropy"]) == pytest.approx(np.log(np.arange(1, LENGTH + 1)).mean())
    assert {"jax", "equinox", "optax", "yzflow"} <= set(json.loads(run.attrs["versions"]))
    with pytest.raises(ValueError, match=r"`seed` must be one of \[0, 5\], but got None"):
        deep.model_at(run)


@pytest.mark.slow
def test_the_regulariser_is_part_of_the_loss():
    language = DyckLanguage(1, 1)  # one insertion, ()
    sequences = deep.dyck_sequences(language, [[0, 1, 0], [0]], targets="exact")
    start = deep.Transformer(deep.Architecture(3, n_outputs=2, tied=False, width=4, mlp_width=8), 1)
    insertions = deep.dyck_insertions(language)
    arguments = {"learning_rate": 0.1, "steps": 1, "batch_size": None}
    run = deep.train(start, sequences, contrast=insertions, contrast_weight=3.0, **arguments)
    plain = float(jax.jit(objective.mean_loss)(start, sequences.inputs, sequences.targets, sequences.mask))
    pairs = np.repeat(insertions.tokens, 2, axis=0), np.repeat(insertions.lengths, 2)
    gap = float(jax.jit(objective.contrast_loss)(start, sequences.inputs, sequences.mask, *pairs))
    assert gap > 1e-3
    assert float(run["batch_loss"].values.squeeze()) == pytest.approx(plain + 3 * gap, rel=1e-5)


# Interruption, files


@SAME_BITS
@pytest.mark.slow
@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
@Limits(seconds_between_saves=0)
def test_a_run_goes_on_bit_for_bit_where_it_was_stopped(tmp_path, monkeypatch, optimizer):
    path = tmp_path / "runs" / "state.npz"
    arguments = ARGUMENTS | {"optimizer": optimizer, "seeds": 1, "steps": 24}
    whole = deep.train(ARCHITECTURE, TEXT, **arguments)
    update = progress.Progress.update

    def stop(self, done, note=""):
        if done >= 0.8:  # after the save at step 16, before the end
            raise KeyboardInterrupt
        update(self, done, note)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(progress.Progress, "update", stop)
        deep.train(ARCHITECTURE, TEXT, **arguments, checkpoint=path)
    assert os.listdir(path.parent) == [path.name]
    assert same(whole, deep.train(ARCHITECTURE, TEXT, **arguments, checkpoint=path))
    # At its end it only reads; with more steps it goes on to what a longer run has.
    assert same(whole, deep.train(ARCHITECTURE, TEXT, **arguments, checkpoint=path))
    if optimizer == "sgd":
        longer = deep.train(ARCHITECTURE, TEXT, **arguments | {"steps": 27})
        assert same(longer, deep.train(ARCHITECTURE, TEXT, **arguments | {"steps": 27}, checkpoint=path))


@pytest.mark.slow
def test_checkpoints_of_other_runs_are_refused(tmp_path):
    path = tmp_path / "state.npz"
    arguments = ARGUMENTS | {"steps": 2, "seeds": 1}
    deep.train(ARCHITECTURE, TEXT, **arguments, checkpoint=path)
    refused = [
        (
            arguments | {"learning_rate": 0.2},
            TEXT,
            r"a run with the same `learning_rate` = \[0.2\], but got .*state.npz",
        ),
        (arguments | {"steps": 1}, TEXT, "`steps` must be at least the 2 steps that the checkpoint has, but got 1"),
        (arguments, TEXT[1:], "`checkpoint` must be of a run with the same `data`, but got .*state.npz"),
    ]
    for changed, text, message in refused:
        with pytest.raises(ValueError, match=message):
            deep.train(ARCHITECTURE, text, **changed, checkpoint=path)
    # An option that is left out in one of the two runs is another run.
    smooth = tmp_path / "smooth.npz"
    deep.train(ARCHITECTURE, TEXT, **arguments, label_smoothing=0.1, checkpoint=smooth)
    for given, kept in (({"label_smoothing": 0.1}, path), ({}, smooth)):
        with pytest.raises(ValueError, match="a run with the same `label_smoothing` = "):
            deep.train(ARCHITECTURE, TEXT, **arguments, **given, checkpoint=kept)


@pytest.mark.slow
@SAME_BITS
def test_a_damaged_checkpoint_is_set_aside_and_training_starts_again(tmp_path):
    path = tmp_path / "state.npz"
    arguments = ARGUMENTS | {"steps": 2}
    whole = deep.train(ARCHITECTURE, TEXT, **arguments, checkpoint=path)
    content = path.read_bytes()
    flipped = bytearray(content)
    flipped[len(content) // 3] ^= 1
    for damaged in (bytes(flipped), content[: len(content) // 2], bytes(len(content)), b""):
        path.write_bytes(damaged)
        with pytest.warns(UserWarning, match=r"state\.npz is damaged \(its checksum .*, training starts again$"):
            again = deep.train(ARCHITECTURE, TEXT, **arguments, checkpoint=path)
        assert same(whole, again) and path.read_bytes() == content
        assert (tmp_path / "state.npz.damaged").read_bytes() == damaged


def test_a_file_that_is_no_checkpoint_is_refused_and_left(run, tmp_path):
    """Somebody's own file, and one of another kind, which the message names."""
    path = tmp_path / "state.npz"
    np.savez(path, x=[1.0])
    content = path.read_bytes()
    with pytest.raises(ValueError, match=r"^`checkpoint` must be a checkpoint of transformers written by yzflow, but"):
        deep.train(ARCHITECTURE, TEXT, **ARGUMENTS, checkpoint=path)
    assert path.read_bytes() == content
    save_dataset(run, path)
    with pytest.raises(ValueError, match=r"another file '.*state\.npz', a training of transformers$"):
        deep.train(ARCHITECTURE, TEXT, **ARGUMENTS, checkpoint=path)


def test_results_are_files(run, tmp_path):
    save_dataset(run, tmp_path / "run.nc")
    xr.testing.assert_identical(deep.load_training(tmp_path / "run.nc"), run)
    save_dataset(xr.Dataset(attrs={"format": "other"}), tmp_path / "other.nc")
    with pytest.raises(ValueError, match="`path` must be a training of transformers written by yzflow"):
        deep.load_training(tmp_path / "other.nc")


@Limits(seconds_between_lines=0)
def test_progress_shows_the_loss(capsys):
    deep.train(ARCHITECTURE, TEXT, learning_rate=0.1, steps=1, batch_size=4, seeds=2, progress=True)
    assert "transformer, sgd: 100% step 1 of 1, loss 1." in capsys.readouterr().err


# Failure


def test_divergence_of_all_runs_raises_and_of_some_is_recorded():
    arguments = {"steps": 40, "batch_size": 4, "record_every": 10}
    with pytest.raises(DivergenceError, match=r"no run has a finite loss any more from step .* smaller") as caught:
        deep.train(ARCHITECTURE, TEXT, learning_rate=1e30, seeds=2, **arguments)
    assert 0 < caught.value.step < 40 and caught.value.trajectory["time"].values.tolist()[0] == 0
    some = deep.train(ARCHITECTURE, TEXT, learning_rate=[0.1, 1e30], **arguments)
    assert some["diverged"].values[0, 0] == -1 and some["diverged"].values[1, 0] == caught.value.step
    assert np.isfinite(some["loss"][0]).all() and not np.isfinite(some["loss"][1, 0, -1])


def test_an_optimizer_that_optax_lacks_trains_no_transformer(monkeypatch):
    """One that the table of optimizers has, with a step of its own, and that of transformers has not."""
    monkeypatch.setitem(RULES, "cubes", UpdateRule(lambda optimizer, gradient, first, second, step: gradient**3))
    with pytest.raises(ValueError, match=r"`optimizer` must have a rule of optax, as .*'adam'.*, but got 'cubes'"):
        deep.train(ARCHITECTURE, TEXT, **{**ARGUMENTS, "optimizer": Optimizer("cubes", momentum=0.0)})
