"""Every public callable of this distribution with hostile values, and with those that a rule forbids."""

from pathlib import Path

import pytest
from hostile import OfCalls, Table

deep = pytest.importorskip("yzflow_deep")
pytest.importorskip("jax")

REFUSED = {
    "data.Sequences": [
        ("targets", [[1, 2, 3]], "have the shape of `inputs`", ""), ("inputs", [0, 1], "have 2 axes", ""),
        ("inputs", [[0, -1]], "hold indices of at least 0", "-1 at index 1"),
        ("targets", [[[0.5, 0.4], [0.5, 0.5]]], "have rows that sum to one", ""),
        ("mask", [[False, False]], "true somewhere", ""), ("mask", [[1, 0]], "hold booleans", ""),
    ],
    "model.Architecture": [
        ("width", 6, "a multiple of the 4 heads", None, {"n_heads": 4}),
        ("norm", "pre", "one of 'before', 'after', 'mixture', 'none'"), ("n_layers", 0, "at least 1"),
        ("max_length", ..., "given for learned positions", "", {"max_length": None}),
        ("max_length", 8, "left out without", None, {"positions": None}),
        ("n_outputs", 4, "the 3 tokens of a tied embedding"), ("temperature", 0.0, "positive"),
    ],
    "training.train": [
        ("learning_rate", -1.0, "positive"), ("learning_rate", [0.1, 0.1], "hold different values", ""),
        ("learning_rate", 1e-300, "in the range of float32"), ("seeds", 0, "at least 1"),
        ("learning_rate", [0.1, 1e300], "in the range of float32", "1e+300"),
        ("optimizer", "lion", "one of 'sgd', 'adam', 'adamw', 'sign'"), ("momentum", 1.0, "below 1"),
        ("momentum", 1 - 1e-10, "below 1 in float32"), ("contrast_weight", 1e-300, "in the range of float32"),
        ("label_smoothing", 1.0, "below 1"), ("label_smoothing", -0.1, ""), ("dtype", "float16", "one of"),
        ("contrast_weight", 1.0, "positive with `contrast`, and 0 without"), ("probe", [[9]], "hold indices in", ""),
        ("data", None, "Sequences"), ("validation", [1, 2], "Sequences"),
        ("data", deep.Sequences([[7]], [[0]]), "have at most the 3 tokens of the transformer", "8"),
        ("start", 3, "an Architecture or a Transformer", "int"),
        ("max_length", ..., "at least 3, the longest input", "2",
         {"start": deep.Architecture(3, positions="learned", max_length=2)}),
    ],
}  # fmt: skip

# Arguments with other rules than `RULES` has for the name.
OTHERWISE = {
    "data.Sequences.from_tokens(length)",
    "data.dyck_sequences(length)",
    "model.Architecture(vocab_size)",
    "training.model_at(seed)",
    "training.train(data)",
}


class TestCalls(OfCalls):
    TABLE = Table(["yzflow_deep"], Path(__file__).with_name("calls.py"))
    REFUSED, OTHERWISE = REFUSED, OTHERWISE
