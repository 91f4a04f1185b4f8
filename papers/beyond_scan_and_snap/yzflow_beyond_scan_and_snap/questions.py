"""Questions for students on the statements' pages, and their answers, with the numbers of stored values."""

from __future__ import annotations

from yzflow.values.marks import bare

_QUESTIONS = {
    "Theorem 2, finite sequences": (
        "With Lemma 3's modified gradient, common tokens of the sliders' classes lose, and distinct ones gain, on the "
        "mean over sequences of <!--v beyond_scan_and_snap.long_enough.rows.0.modified ,-->865<!--/--> tokens. Do they "
        "over shorter ones, or with Lemma 1's gradient?",
        "Not over <!--v beyond_scan_and_snap.long_enough.rows.0.fails ,-->864<!--/-->: there one sign is wrong. With "
        "Lemma 1's gradient, early on, it takes "
        "<!--v beyond_scan_and_snap.long_enough.rows.0.full ,-->32,119<!--/-->. At an "
        "overlap of <!--v beyond_scan_and_snap.long_enough.rows.1.rho .4f-->0.0101<!--/--> it takes "
        "<!--v beyond_scan_and_snap.long_enough.rows.1.modified ,-->14,791<!--/--> with the modified one, and no "
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
