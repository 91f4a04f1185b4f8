"""Tokens and rates that jax would clamp or round away without a word."""

import copy
import itertools
import pickle

import numpy as np
import pytest

jax = pytest.importorskip("jax")
deep = pytest.importorskip("yzflow_deep")

SMALL = deep.Architecture(5, width=4, mlp_width=4, positions="learned", max_length=3)
DATA = deep.Sequences([[0, 1, 2]], [[1, 2, 3]])


@pytest.mark.slow
@pytest.mark.parametrize("method", ["__call__", "hidden", "attention"])
def test_tokens_beyond_the_vocabulary_are_refused(method):
    call = getattr(deep.Transformer(SMALL, 0), method)
    call([0, 4])
    for tokens in ([0, 5], [-1, 0]):
        with pytest.raises(ValueError, match=r"`tokens` must hold indices in \[0, 5\)"):
            call(tokens)
    with pytest.raises(ValueError, match=r"`tokens` must be at most 3, as there are positions, but got 4"):
        call([0, 0, 0, 0])


def test_a_start_beyond_single_precision_is_refused():
    layer = deep.to_layer(deep.from_layer(deep.to_layer(deep.from_layer(_layer(1.0)))))
    assert np.isfinite(layer.Z).all()
    with pytest.raises(ValueError, match="`start` must have finite weights in float32"):
        deep.train(deep.from_layer(_layer(1e300)), DATA, learning_rate=0.1, steps=1)


@pytest.mark.slow
def test_weights_cannot_change():
    """Neither those that are drawn or given, nor those of copies; a model of a dataset is not a view of it."""
    run = deep.train(SMALL, DATA, learning_rate=0.1, steps=1)
    before = run["parameters"].values.copy()
    for made in (deep.Transformer(SMALL, 0), deep.from_layer(_layer(1.0)), deep.model_at(run)):
        # One after the other, as a copy shares its arrays with the original.
        for way in (lambda model: model, copy.copy, copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))):
            model = way(made)
            for array in jax.tree.leaves(model):
                with pytest.raises(ValueError, match="read-only"):
                    array[...] = 7
            for module, name in itertools.product((model, model.blocks[0]), ("embedding", "output", "new")):
                with pytest.raises(AttributeError):
                    setattr(module, name, None)
                with pytest.raises(AttributeError):
                    delattr(module, name)
            np.testing.assert_array_equal(model([0, 1]), made([0, 1]))
    np.testing.assert_array_equal(run["parameters"], before)


def _layer(scale):
    from dynamics import Layer

    return Layer(scale * np.eye(5), np.eye(5))
