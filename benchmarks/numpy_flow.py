"""The full flow beside scipy with the obvious NumPy right-hand side: dense f, all M columns of Y."""

import numpy as np
from scipy.integrate import solve_ivp

from benchmarks import Row, paired_seconds
from dynamics import SequenceClasses, gradient_flow


def numpy_flow(classes: SequenceClasses, *, eta_y: float, eta_z: float, t_end: float, rtol: float, atol: float):
    """Z at ``t_end`` from Lemma 1 written with dense arrays; one query."""
    probabilities = classes.probabilities.toarray()
    n_classes, n_tokens = probabilities.shape
    target = np.eye(n_classes, classes.vocab_size)

    def right_hand_side(_, state):
        z, Y = state[:n_tokens], state[n_tokens:].reshape(n_tokens, -1)
        f = probabilities * np.exp(z)
        f /= np.linalg.norm(f, axis=1, keepdims=True)
        u = f @ Y
        alpha = np.exp(u - u.max(axis=1, keepdims=True))
        r = target - alpha / alpha.sum(axis=1, keepdims=True)
        g = r @ Y.T
        dz = (f * (g - f * (f * g).sum(axis=1, keepdims=True))).mean(axis=0)
        return np.concatenate([eta_z * dz, (eta_y / n_classes * f.T @ r).ravel()])

    start = np.zeros(n_tokens * (1 + classes.vocab_size))
    solution = solve_ivp(right_hand_side, (0, t_end), start, method="DOP853", rtol=rtol, atol=atol, t_eval=[t_end])
    return solution.y[:n_tokens, -1]


def run() -> list[Row]:
    rows = []
    for n_classes, vocab_size in ((10, 1000), (50, 2000)):
        classes = SequenceClasses.single_common_token(n_classes, vocab_size)
        setting = {"eta_y": 1.0, "eta_z": 0.5, "t_end": 700.0, "rtol": 1e-8, "atol": 1e-10}

        def ours(classes=classes, setting=setting):
            return gradient_flow(classes, times=[setting["t_end"]], **setting).final.Z[0]

        def peer(classes=classes, setting=setting):
            return numpy_flow(classes, **setting)

        expected = peer()
        disagreement = np.abs(ours() - expected).max() / np.abs(expected).max()
        if disagreement > 1e-5:
            raise RuntimeError(f"the two flows disagree by {disagreement:.1e}; their times do not compare")
        seconds = paired_seconds(ours, peer, runs=3)
        task = f"full flow, K = {n_classes}, M = {vocab_size}, to t = 700"
        rows.append(Row(task, seconds[0], "scipy DOP853, NumPy right-hand side", seconds[1], float(disagreement)))
    return rows
