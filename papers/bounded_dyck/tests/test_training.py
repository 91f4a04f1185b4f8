"""Training on bounded Dyck languages: starts, measurements of a run, and the task of sweeps."""

import numpy as np
import pytest
import strategies
from hypothesis import given
from yzflow_bounded_dyck import DyckLanguage, balance
from yzflow_bounded_dyck import training as dyck

import yzflow
from dynamics import Objective, sgd

LANGUAGE = DyckLanguage(2, 3)


@pytest.mark.slow
def test_a_run_measures_the_layer_that_sgd_ends_with():
    language = DyckLanguage(2, 3)
    samples = dyck.data(language, n_train=300, n_test=400)
    settings = {"embedding": ("none", "type and depth"), "scale": (0.2, 0.7), "contrast_weight": (0.0, 2.0)}
    runs = dyck.trained(
        **settings, eta=(0.02, 0.05), seeds=2, steps=5, language=language, samples=samples, batch_size=9
    )
    at = {"embedding": "type and depth", "scale": 0.7, "contrast_weight": 2.0, "eta": 0.05, "seed": 1}
    start = dyck.start(language, 1, embedding="type and depth", scale=0.7)
    end = sgd(
        samples.train, eta_y=0.05, eta_z=0.05, steps=5, batch_size=9, optimizer="adam", dtype="float32", init=start,
        seed=1, objective=Objective(contrast=language.nested_pairs(), contrast_weight=2.0),
    )  # fmt: skip
    layer, one = end.final, runs.sel(at)
    for name, span in (("below 28", range(1, 28)), ("400-500", range(400, 501))):
        accuracy = balance.closing_accuracy(layer, language, samples.test[name])
        predicted = balance.predicted_accuracy(layer, language, span)
        for query in dyck.QUERIES:
            assert float(one["accuracy"].sel(length=name, query=query)) == pytest.approx(accuracy[query], abs=1e-12)
            assert float(one["predicted"].sel(length=name, query=query)) == pytest.approx(predicted[query], abs=1e-12)
    assert float(one["residual"]) == pytest.approx(balance.residual(layer.Z, language), rel=1e-5)
    assert float(one["violation"]) == pytest.approx(balance.violation(layer, language), rel=1e-5)
    assert float(one["loss"]) == pytest.approx(float(end.dataset["batch_loss"].mean()), rel=1e-6)
    np.testing.assert_allclose(one["attention"], dyck.attention_map(layer, language), atol=1e-6)
    np.testing.assert_array_equal(one["start_attention"], dyck.attention_map(start, language))
    assert all("units" in runs[name].attrs for name in runs)


@pytest.mark.parametrize("kind", dyck.ARCHITECTURES)
def test_a_start_has_the_scale_that_was_asked_for(kind):
    """Mean squares of 300 starts, within five standard errors (6e-7 each)."""
    language = DyckLanguage(2, 3)
    starts = [dyck.start(language, seed, embedding=kind, scale=0.3, width=8) for seed in range(300)]
    for name, expected in (("Z", 0.3**2), ("V", 1 / 8), ("Y", 1 / 8)):
        squares = np.array([np.mean(getattr(layer, name) ** 2) for layer in starts])
        assert abs(squares.mean() - expected) < 5 * squares.std(ddof=1) / np.sqrt(len(squares))
    assert (starts[0].embedding is None) == (kind == dyck.FREE)


def test_a_start_with_units_has_unit_size_answers():
    """With the unit vector LN gives, mean squares of Y's rows are one over the units, of what the units see two."""
    starts = [dyck.start(LANGUAGE, seed, hidden=16, width=8) for seed in range(300)]
    for squares, expected in (
        (np.array([np.mean(layer.hidden[:-1] ** 2) for layer in starts]), 2.0),
        (np.array([np.mean(layer.Y**2) for layer in starts]), 1 / 16),
    ):
        assert abs(squares.mean() - expected) < 5 * squares.std(ddof=1) / np.sqrt(len(squares))
    assert all((layer.hidden[-1] == 0).all() for layer in starts)


@given(strategies.dyck_languages(max_types=3, max_depth=4), strategies.SEEDS)
def test_attention_on_the_test_prefix_is_a_softmax_over_positions(language, seed):
    prefix = dyck.probe_prefix(language)
    states = language.state_sequence(prefix)
    assert sorted(states) == list(range(language.n_states))
    layer = dyck.start(language, seed, scale=2.0, width=3)
    found = dyck.attention_map(layer, language)
    for n in range(len(states)):
        weights = np.exp(layer.Z[states[n], states[: n + 1]])
        np.testing.assert_allclose(found[n, : n + 1], weights / weights.sum(), rtol=1e-12)
        assert (found[n, n + 1 :] == 0).all()


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: dyck.start(dyck.LANGUAGE, embedding="x"), "`embedding` must be one of 'none', 'one-hot'"),
        (lambda: dyck.start(dyck.LANGUAGE, scale=0), "`scale` must be positive, but got 0"),
        (lambda: dyck.start(dyck.LANGUAGE, width=0), "`width` must be at least 1, but got 0"),
        (lambda: dyck.data(n_train=1, n_test=1, lengths=("x",)), "`lengths` must be one of 'below 28', '400-500'"),
    ],
)
def test_bad_input_is_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_the_sweep_task_is_the_experiment(tmp_path):
    """Cell by cell the numbers of `trained`, whose data are the same for the same language."""
    options = {"steps": [5], "n_train": [90], "n_test": [30], "scale": [0.1], "contrast_weight": [0.0, 1.0]}
    swept = yzflow.sweep("dyck", options, store=tmp_path / "runs", seeds=[1, 2], progress=False)
    samples = dyck.data(n_train=90, n_test=30)
    runs = dyck.trained(scale=[0.1], contrast_weight=[0.0, 1.0], seeds=[1, 2], steps=5, samples=samples)
    for name in ("accuracy", "violation", "attention", "loss"):
        ours = swept[name].squeeze(("steps", "n_train", "n_test", "scale"))
        theirs = runs[name].squeeze(("embedding", "scale", "eta"))
        np.testing.assert_array_equal(ours.transpose(*theirs.dims), theirs)
    with pytest.raises(ValueError, match="`open_probability` must be above 0 and below 1"):
        yzflow.sweep("dyck", {"open_probability": [1.5]}, store=tmp_path / "runs", progress=False)


def test_attention_that_is_held_uniform_stays_so_while_the_rest_learns():
    """Footnote 4 of the paper: every entry of a row of attention is one over its length, and the loss falls."""
    language = DyckLanguage(2, 3)
    samples = dyck.data(language, n_train=300, n_test=200, lengths=("below 28",))
    settings = {"language": language, "samples": samples, "seeds": 1, "scale": (0.5,), "uniform": True}
    short, long = (dyck.trained(steps=steps, **settings).squeeze() for steps in (100, 400))
    rows = np.arange(1, long.sizes["row"] + 1)
    for name in ("attention", "start_attention"):
        # A bracket's state occurs once in the probe; the map is causal.
        np.testing.assert_allclose(long[name].values[np.diag_indices(rows.size)], 1 / rows, rtol=1e-6)
    assert float(long["residual"]) == 0
    assert float(long["loss"]) < 0.97 * float(short["loss"])
    with pytest.raises(ValueError, match=r'^`embedding` must be "none" where attention is held uniform, but got'):
        dyck.trained(embedding=("one-hot",), **settings)
