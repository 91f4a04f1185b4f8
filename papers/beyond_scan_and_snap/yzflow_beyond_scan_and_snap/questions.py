"""Questions for students on the statements' pages, and their answers, with the numbers of stored values."""

from __future__ import annotations

from yzflow.values.marks import bare

_QUESTIONS = {
    "Theorem 2, finite sequences": (
        "With Lemma 3's modified gradient, common tokens of the sliders' classes lose, and distinct ones gain, on the "
        "mean over sequences of 865<!--=modified0--> tokens. Do they "
        "over shorter ones, or with Lemma 1's gradient?",
        "Not over 864<!--=fails-->: there one sign is wrong. With "
        "Lemma 1's gradient, early on, it takes "
        "32,119<!--=full-->. At an "
        "overlap of 0.0101<!--=rho--> it takes "
        "14,791<!--=modified1--> with the modified one, and no "
        "length is enough for all "
        "classes: rare enough distinct tokens lose at any.",
    ),
    "Theorem 2(a), true gradient": (
        "With the true gradient, how does the early pull depend on the size $M$ of the vocabulary?",
        r"$\xi_n$ begins like $\frac{\eta_Yt}{KM}$ times the sum of the overlaps: in a vocabulary ten times as large "
        "attention starts ten times more slowly. The pull of the modified gradient has no such factor for large $M$.",
    ),
}
QUESTIONS = {number: (bare(asked), bare(answer)) for number, (asked, answer) in _QUESTIONS.items()}

# <!-- numbers
# modified0: beyond_scan_and_snap.long_enough.rows.0.modified ,
# fails: beyond_scan_and_snap.long_enough.rows.0.fails ,
# full: beyond_scan_and_snap.long_enough.rows.0.full ,
# rho: beyond_scan_and_snap.long_enough.rows.1.rho .4f
# modified1: beyond_scan_and_snap.long_enough.rows.1.modified ,
# -->
