"""Units that work and that break, each with words for students."""

from yzflow.pages.explorer.registry import Preset

PRESETS = (
    Preset(
        "Enough dimensions: attention averages exactly what it should",
        "One attention unit should put weight 1/q on q chosen tokens out of "
        "64<!--=tokens--> and none on the others. With random "
        "keys of enough dimensions there is a query that scores one on the chosen tokens and below one half elsewhere.",
        "Lower m. At which m does the score of a wrong token first pass one half?",
        "At m = 101<!--=random-->: from 102<!--=from_on--> on the curve of this set stays below the dashed line.",
        {"q": 3, "m": 128, "error": 0.1, "hard": False},
    ),
    Preset(
        "Too few dimensions: what breaks",
        "With few dimensions some other token looks like the chosen ones, and its score passes one half. The "
        "temperature then sharpens the wrong token too, and the average is wrong.",
        "Does a smaller target error, that is a larger temperature, repair the average?",
        "No: where a wrong token scores above one, a larger temperature moves even more weight onto it.",
        {"q": 6, "m": 16, "error": 0.1, "hard": False},
    ),
    Preset(
        "A hard set: the tokens closest to another one",
        "The chosen tokens are those whose keys are closest to the key of token 1, so that token 1 looks like all of "
        "them. Such a set needs more dimensions than a random one.",
        "Switch between the two kinds of sets. How much larger must m be for the hard one?",
        "About twice as large, "
        "195<!--=hard_from_on--> in place of 102<!--=from_on-->. For "
        "more chosen tokens the hard set needs more than there is here.",
        {"q": 3, "m": 128, "error": 0.1, "hard": True},
    ),
)

# <!-- numbers
# tokens: questions_sparse.dimensions.tokens
# random: questions_sparse.dimensions.random
# from_on: questions_sparse.dimensions.from_on
# hard_from_on: questions_sparse.dimensions.hard_from_on
# -->
