"""The full flow of many classes to t = 1e5, with and without use of their symmetry, beside diffrax (Dopri8)."""

import numpy as np
import scipy.sparse

from benchmarks import Row, compare, optional_peer
from dynamics import SequenceClasses, gradient_flow

_SETTING = {"eta_y": 1.0, "eta_z": 0.5, "t_end": 1e5, "rtol": 1e-8, "atol": 1e-10}


def perturbed(n_classes: int, vocab_size: int, seed: int = 0) -> SequenceClasses:
    """Classes with a common token and five own ones each, all probabilities different."""
    rng = np.random.default_rng(seed)
    table = SequenceClasses.single_common_token(n_classes, vocab_size).probabilities.copy()
    table.data *= np.exp(0.2 * rng.normal(size=table.data.size))
    table = scipy.sparse.diags_array(1 / np.asarray(table.sum(axis=1)).ravel()) @ table
    return SequenceClasses(table, np.zeros(n_classes, dtype=int), vocab_size=vocab_size)


def run() -> list[Row]:
    peer, dense = optional_peer("diffrax_large_flow"), optional_peer("diffrax_flow")
    if peer is None:
        return []
    rows = []
    for name, classes in (
        ("asymmetric", perturbed(200, 20_000)),
        ("exchangeable", SequenceClasses.single_common_token(200, 20_000)),
    ):

        def ours(classes=classes):
            return gradient_flow(classes, times=[_SETTING["t_end"]], **_SETTING).final.Z[0]

        for peer_name, theirs in (
            ("diffrax Dopri8, our K + 1 columns", dense.flow(classes, **_SETTING, reduced=True)),
            ("diffrax Dopri8, our columns and tokens of a class", peer.solver(classes, **_SETTING)),
        ):
            task, options = f"full flow, K = 200, M = 20,000, {name}, t = 1e5", {"tolerance": 1e-5, "runs": 3}
            rows.append(compare(task, ours, peer_name, theirs, result="attention logits", **options))
    return rows
