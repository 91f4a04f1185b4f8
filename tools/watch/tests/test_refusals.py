"""Every public callable of this distribution with hostile values, and with those that a rule forbids."""

from pathlib import Path

import numpy as np
from hostile import OfCalls, Table

REFUSED = {
    "watching.watch": [
        ("tokens", np.zeros(5, int), "have two rows and four columns at least", "shape (5,)"),
        ("tokens", np.full((3, 5), -1), "not be negative", "-1"), ("every", 0, "at least 1"), ("every", "often", ""),
        ("rates", (1.0, -1.0), "two positive numbers"), ("logits", None, "given where the other"),
        ("model", ..., "GPT-2 of Hugging Face", "Trained", {"attention": None, "logits": None}),
        ("attention", lambda model, tokens: np.zeros((2, 2)), "give an array", "(2, 2)"),
        ("batch_size", 0, "at least 1"), ("n_tokens", 0, "at least 1"),
    ],
    "checkpoints.watch_checkpoints": [
        ("checkpoints", {}, "map steps to models, functions or paths"),
        ("checkpoints", [1], "map steps to models, functions or paths"),
        ("checkpoints", {-1: None}, "at least 0", ""), ("checkpoints", {"1": None}, "an integer", ""),
        ("checkpoints[1]", {1: "nowhere"}, "a folder .. or a function that makes the model", "nowhere"),
    ],
    "report.WatchReport.page": [
        ("head", 3, ""), ("layer", [0, 5], "", ""), ("head", [], "a number or several"), ("head", "0", "", ""),
    ],
    "report.WatchReport": [
        ("names", {0: "a"}, "have a text for token 1", ""), ("names", ["a"], "have a text for token", ""),
        ("names", lambda number: number, "have a text for token 0", "0"),
        ("names", 3, "a mapping, a sequence or a function from numbers to texts, or a tokenizer"),
    ],
}  # fmt: skip


class TestCalls(OfCalls):
    TABLE = Table(["yzflow_watch"], Path(__file__).with_name("calls.py"))
    REFUSED = REFUSED
