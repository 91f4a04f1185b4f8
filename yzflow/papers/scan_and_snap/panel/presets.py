"""Settings of the panel that follow the paper's figures, each with words for students."""

from functools import partial

from yzflow.pages.explorer.registry import Preset
from yzflow.papers.scan_and_snap import flagship
from yzflow.values import value
from yzflow.values.marks import as_text

_TOKENS = {"common": 0.15, "distinct": (1.0, 0.8, 0.6, 0.4, 0.2)}
_FIGURE_3 = {"K": 10, "M": 1000, "etaY": 1.0, "etaZ": 0.5, "end": 700.0, "unitConstant": False, **_TOKENS}

_INSIDE, _CONTRAST = (partial(as_text, value(f"scan_and_snap.{name}")) for name in ("inside", "contrast"))

PRESETS = (  # the page opens with one in which attention moves far enough to be seen
    Preset(
        "Contrast, outside Assumptions 1(c) and 2: attention moves far",
        "All next tokens share a common token that occurs twice as often as their most frequent distinct one, and "
        "attention learns half as fast as the decoder. Attention moves far enough to be seen, and each level has a "
        "pace of its own.",
        "Press Play, and choose one level after the other. How much of its change has each level done by t*?",
        _CONTRAST(
            "By t* = {transition_time:.0f} the theory flow has done {done.theory:.0%} of its change up to "
            "t = {t_end:,.0f}, the modified flow {done.modified:.0%}, but the full flow only {done.full:.0%}. "
            "Attention is fastest at t = {fastest_attention.theory:.2g} in the theory flow, long before t*, and at "
            "t = {fastest_attention.full:.2g} in the full flow. The full flow gets to 90% at "
            "t = {time_of_90_percent.full:.0f}, and its whole change is smaller: it moves {change.full:.2g} of all "
            "attention, the theory flow {change.theory:.2g}."
        ),
        _FIGURE_3 | flagship.explorer(flagship.contrast()) | {"level": "full"},
    ),
    Preset(
        "Scan and snap, inside all assumptions of Theorems 1 to 4",
        _INSIDE(
            "Two next tokens of {vocab_size:,} share a rare common token, and attention learns {ratio:.0f} times more "
            "slowly than the decoder. The plot shows how fast attention moves at each level, over the largest speed of "
            "that level."
        ),
        "When is attention fastest, and how much of its change is done by then? Choose one level after the other.",
        _INSIDE(
            "At t* = {transition_time:.0f} in the theory flow and the modified flow, and at "
            "t = {fastest_attention.full:.0f} in the full flow. Before that it speeds up (scanning), and after it "
            "slows down (snapping): at 10 t* it has {late_speed.theory:.2g%}, {late_speed.modified:.2g%} and "
            "{late_speed.full:.2g%} of its largest speed. But by t* only {done.theory:.0%}, {done.modified:.0%} and "
            "{done.full:.0%} of the change up to t = {t_end:,.0f} is done: most of it comes after t*, slowly. And it "
            "is small: {change.theory:.2g} of all attention moves in the theory flow, {change.full:.2g} in the full "
            "flow. "
        )
        + value("scan_and_snap.lengths_inside.told.0")
        + " Sequences so short are outside Assumption 1(b): choose a longer T beside SGD.",
        _FIGURE_3 | flagship.explorer(flagship.inside()) | {"level": "full", "view": "speed"},
    ),
    Preset(
        "Scan and Snap, Fig. 3: growth of attention",
        "Distinct tokens, which tell one next token from another, gain attention early in training (scanning). "
        "The paper says that attention then almost stops (snapping), but at no level here half of the change up to "
        "t = 700 is done by t*.",
        "The learning rate of the decoder is larger in some curves. Do they snap earlier or later, and do they end "
        "higher or lower?",
        "Earlier and lower: the decoder learns faster, so that the gradient that feeds attention dies sooner. (The "
        "paper's own curves are higher: it takes B for the exponent of a distinct token, where B/K is right.)",
        _FIGURE_3,
        ({"etaY": 0.5}, {"etaY": 2.0}, {"etaY": 5.0}),
    ),
    Preset(
        "Scan and Snap, Fig. 8: the decoder alone",
        "h says how much the decoder has learnt after seeing a class some number of times: fast at first, then only "
        "like a logarithm. The smooth formula h(s) and the step-by-step recursion h*(s) nearly agree.",
        "Make the learning rate of the decoder large. Where is the gap between the two curves largest?",
        "Where the curve bends. The gap never exceeds the rate over M, half of the bound in Lemma 7.",
        _FIGURE_3 | {"M": 50, "K": 2, "end": 160.0},
        ({"etaY": 0.2}, {"etaY": 2.0}),
    ),
    Preset(
        "Scan and Snap, Fig. 9 left: both rates grow together",
        "The ratio of the two learning rates is 10 in every curve, and only their size changes. Larger rates make the "
        "growth exponent B rise sooner, as in the paper's figure with one class and the constant set to one.",
        "At the time t₀ of each curve, which curve has the largest B?",
        "None: at a fixed ratio B(t₀) is the same for all sizes of the rates. They only set the clock.",
        _FIGURE_3 | {"K": 1, "M": 100, "etaY": 10.0, "etaZ": 1.0, "end": 5.0, "unitConstant": True},
        ({"etaY": 5.0, "etaZ": 0.5}, {"etaY": 40.0, "etaZ": 4.0}),
    ),
    Preset(
        "Scan and Snap, Fig. 9 right: equal rates",
        "Both learning rates are equal here, and the vocabulary has 10000 tokens. B is larger than with a fast "
        "decoder, since attention has more time before the gradient dies.",
        "Lower the rate of the decoder at a fixed rate of attention. What happens to B in the end?",
        "It grows: a slow decoder leaves the gradient alive for longer.",
        _FIGURE_3 | {"K": 1, "M": 10000, "etaY": 1.0, "etaZ": 1.0, "end": 50.0, "unitConstant": True},
        ({"etaY": 0.5, "etaZ": 0.5}, {"etaY": 4.0, "etaZ": 4.0}),
    ),
    Preset(
        "Where the theory is nearly exact: every next token occurs (K = M)",
        "With as many next tokens that occur as there are in the vocabulary, the paper's simplified decoder is nearly "
        "the true one. The slow-down s is close to one, and the theory flow and the full flow give almost one curve.",
        "Raise M to 1000 and compare the theory flow with the full flow early on. By what factor does attention slow "
        "down?",
        "By s, about 0.1<!--=s-->: the next tokens that never occur take up "
        "gradient "
        "that the simplified decoder ignores.",
        _FIGURE_3 | {"K": 10, "M": 10, "etaY": 1.0, "etaZ": 0.02, "end": 150.0},
    ),
    Preset(
        "Where Assumption 2 holds: few classes, a huge vocabulary",
        "Assumption 2 asks for overlaps between classes that are weak, but not too weak for the size of the "
        "vocabulary. Two classes and a million tokens satisfy it.",
        "Raise K step by step. When does Assumption 2 fail, and which of its two sides is it?",
        "At K = 5<!--=fails_at--> with this overlap, the upper side: K (K - 1) times the overlap must stay below one.",
        _FIGURE_3 | {"K": 2, "M": 1000000, "etaY": 1.0, "etaZ": 0.02, "common": 0.37, "end": 100.0},
    ),
)

# <!-- numbers
# s: questions_snap.presets.s .1f
# fails_at: questions_snap.presets.fails_at
# typed: 700 10000 (its own setting, which stands beside it)
# typed: 10 (ratio of the rates of its settings, which stand beside it)
# typed: 1000 (what the reader enters)
# typed: 90% (the share of scan_and_snap.contrast.time_of_90_percent)
# -->
