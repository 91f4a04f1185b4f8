"""The full flow in scipy with the obvious NumPy right-hand side: dense f, all M columns of Y."""

import numpy as np
from scipy.integrate import solve_ivp

from dynamics import SequenceClasses

NAME = "scipy DOP853, NumPy"


def flow(classes: SequenceClasses, *, eta_y: float, eta_z: float, t_end: float, rtol: float, atol: float) -> np.ndarray:
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
