"""How doors for ids, shares and whole numbers refuse numbers of another kind: with words that say the cure."""

import re

import numpy as np
import pytest


def refusal(call, value):
    with pytest.raises(ValueError, match=r"^`\w+` must ") as caught:
        call(value)
    return str(caught.value)


def check_ids(door):
    """A door for ids of two tokens refuses whole floats with their cure, and others without."""
    for ids in ([0.0, 1.0], np.array([0, 1], np.float32), np.array([0, 1], np.float64)):
        assert refusal(door, ids).endswith("they are whole, so .astype('int64') makes integers of them")
        door(np.asarray(ids).astype("int64"))  # the cure
    for others in ([0.5, 1.0], [np.nan, 1.0], [True, False], [np.inf, 0.0]):
        assert "int64" not in refusal(door, others)


def check_labels(door):
    assert refusal(door, [-100, 1]).endswith("-100 marks what Hugging Face leaves out: drop it, as tokens[tokens >= 0]")
    assert "Hugging Face" not in refusal(door, [-1, 1])


def check_shares(door, shares):
    """A door for probabilities refuses frequencies, and says what to divide by."""
    door(shares)
    for factor in (3.0, 1 + 1e-4, 0.5):
        message = refusal(door, factor * shares)
        assert re.search(r"but got .*: divide (each row by its|by the) sum, in float64$", message)
        if shares.ndim > 1:
            later = np.array([shares[0], factor * shares[1]])
            assert f"{later[1].sum():.4g}"[:4] in refusal(door, later) and "in row 1:" in refusal(door, later)


def check_number(call):
    """A door for a whole number refuses whole floats with their cure, and others without."""
    for kind in (float, np.float64, np.float32):
        message = refusal(call, kind(2))
        assert message.endswith(": write 2") and "be an integer" in message
        assert "write" not in refusal(call, kind(2.5)) and "write" not in refusal(call, kind("inf"))
    call(2)
