"""Memory that can be foreseen is refused before it is taken."""

import pytest
from yzflow_bounded_dyck import DyckLanguage

from dynamics import Limits

jax = pytest.importorskip("jax")
deep = pytest.importorskip("yzflow_deep")

HUGE = 10**12
DYCK = DyckLanguage(2, 3)


@Limits(memory=2**31)  # the same bound on every machine
def test_transformers_are_counted_before_they_are_made():
    small, data = deep.Architecture(5, width=4), deep.Sequences([[0, 1, 2]], [[1, 2, 3]])
    options = {"learning_rate": 0.1, "steps": 1}
    for name, call in (
        ("seeds", lambda: deep.train(small, data, **options, seeds=10**9)),
        ("seeds", lambda: deep.train(small, data, **options, seeds=10**6)),
        ("steps", lambda: deep.train(small, data, learning_rate=0.1, steps=HUGE)),
        ("batch_size", lambda: deep.train(small, data, **options, batch_size=HUGE)),
        ("architecture", lambda: deep.Transformer(deep.Architecture(HUGE), 0)),
        ("length", lambda: deep.dyck_sequences(DYCK, ["()"], length=HUGE)),
    ):
        with pytest.raises(ValueError, match=rf"^`{name}` must leave at most 2,147,483,648 bytes"):
            call()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"n_heads": 2, "n_layers": 3, "mlp_width": 5},
        {"positions": "learned", "max_length": 7, "tied": False, "n_outputs": 3},
        {"positions": "linear", "max_length": 7, "norm": "after"},
        {"norm": "mixture", "factored": False, "n_heads": 2},
        {"norm": "mixture", "values": False, "n_heads": 2, "mlp_width": 0},
        {"norm": "none", "positions": "sinusoidal"},
        {"norm_kind": "unit", "values": False},
    ],
)
def test_weights_are_counted_as_they_are_made(options):
    a = deep.Architecture(6, width=4, **options)
    assert a.n_weights == sum(leaf.size for leaf in jax.tree.leaves(deep.Transformer(a, 0)))
