"""Tables to start from, each with words for students."""

from __future__ import annotations

from typing import Any

from yzflow.pages.explorer.registry import Preset
from yzflow.papers.scan_and_snap.own_panel.data import TRAINING


def _table(tokens: str, query: dict[str, str], counts: dict[str, list[float]], vocab_size: int) -> dict[str, Any]:
    rows = [[name, query[name], 1, *row] for name, row in counts.items()]
    return {"tokens": tokens.split(), "rows": rows, "M": vocab_size, **TRAINING}


PRESETS = (
    Preset(
        "A toy: which animal comes next?",
        "The next word is cat, dog or bird, and the last word read is my. Before each animal some words occur that "
        "all three share, and some that tell it from the others.",
        "Which words lose attention before cat, and which gains most?",
        "The and a, which all animals share, lose, and purrs, which only cat has, gains most. Let it occur before dog, "
        "too: then cat has no word of its own left.",
        _table(
            "the a tail purrs barks sings",
            dict.fromkeys(("cat", "dog", "bird"), "my"),
            {"cat": [10, 5, 3, 4, 0, 0], "dog": [10, 5, 3, 0, 5, 0], "bird": [10, 5, 0, 0, 0, 6]},
            20,
        ),
    ),
    Preset(
        "Two queries: each has attention of its own",
        "Hay and fish come after eats, tea and milk after drinks. Logits of attention belong to the query, so that two "
        "next tokens with different queries never compete for them.",
        "Before hay, attention on warm falls. What if all four classes have the query eats?",
        "It rises. With one query the four classes share one logit of warm, and tea, which has warm as its only "
        "telling word, lifts it.",
        _table(
            "morning warm horse cat child",
            {"hay": "eats", "fish": "eats", "tea": "drinks", "milk": "drinks"},
            {"hay": [6, 1, 3, 0, 0], "fish": [6, 0, 0, 3, 0], "tea": [6, 4, 0, 0, 0], "milk": [6, 0, 0, 0, 4]},
            30,
        ),
    ),
    Preset(
        "No word is distinct: only ratios differ",
        "Spam and letter see the same three words, in different ratios. The theorems on distinct tokens say nothing "
        "here, but the flow can be computed.",
        "Which word gains before spam, and which before letter, though both classes share all logits?",
        "Free and meeting gain equally in logits, and hello, which occurs equally often in both, loses. So the word "
        "that a class has more of gains more of its attention: free before spam, meeting before letter.",
        _table(
            "hello free meeting",
            {"spam": "dear", "letter": "dear"},
            {"spam": [6, 5, 1], "letter": [6, 1, 5]},
            10,
        ),
    ),
)
