"""Layers on and off balance, each with words for students."""

from yzflow.pages.explorer.registry import Preset

PRESETS = (
    Preset(
        "A balanced layer: insertions do nothing",
        "A matched pair of brackets should not matter for what comes next. In a balanced layer the two brackets of a "
        "pair cancel in attention, whatever the attention looks like.",
        "Insert 100 pairs at any level. Does any probability move?",
        "No. A balanced layer can have any attention pattern, so a pattern alone does not show what a layer computes.",
        {"text": "([]", "type": 1, "level": 2, "pairs": 20, "violation": 0.0},
    ),
    Preset(
        "A layer off balance: insertions take over",
        "Here opening brackets weigh more or less than their partners, by a different amount for each query. Every "
        "inserted pair leaves a rest, the rests add up, and in the end the layer forgets the open bracket.",
        "How many pairs does it take until the right bracket is no longer the likeliest guess?",
        "Eight. What one pair adds is little, but the same each time: it points away from what the text says, and "
        "grows with the number of pairs.",
        {"text": "([]", "type": 1, "level": 2, "pairs": 20, "violation": 0.5},
    ),
    Preset(
        "A small violation and many pairs",
        "The violation is small, and a short text is still predicted well. Length makes it visible: generalisation to "
        "longer texts needs balance.",
        "Halve the violation. How many more pairs does the layer survive?",
        "About twice as many: what one pair leaves is about proportional to the violation.",
        {"text": "([]", "type": 1, "level": 2, "pairs": 40, "violation": 0.2},
    ),
)

# <!-- numbers
# typed: 100 (what the reader enters)
# -->
