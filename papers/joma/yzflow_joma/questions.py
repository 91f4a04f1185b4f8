"""Questions for students."""

QUESTIONS = {
    "First sparse, then dense": (
        "Add an entry with $\\mu = 0$ to entries that all have $\\mu = 2$. Does the entropy still turn?",
        "No: the zero stays, the others move together, and attention only leaves the zero.",
    ),
    "Theorem 1": (
        "Why does exp attention conserve $z - \\frac12\\sum_k v_k^2$ for every activation?",
        "The activation is in $g_kh'_k$ alone, which stands in both rates.",
    ),
}
