"""The full flow in torchdiffeq: the right-hand side of `numpy_flow` in PyTorch, double precision, dopri8."""

import numpy as np
import torch
import torchdiffeq

from dynamics import SequenceClasses

NAME = "torchdiffeq dopri8, PyTorch"


def flow(classes: SequenceClasses, *, eta_y: float, eta_z: float, t_end: float, rtol: float, atol: float) -> np.ndarray:
    """Z at ``t_end``."""
    torch.set_num_threads(1)
    probabilities = torch.tensor(classes.probabilities.toarray())
    n_classes, n_tokens = probabilities.shape
    target = torch.eye(n_classes, classes.vocab_size, dtype=torch.float64)

    def right_hand_side(_, state):
        z, Y = state
        f = probabilities * torch.exp(z)
        f = f / f.norm(dim=1, keepdim=True)
        r = target - torch.softmax(f @ Y, dim=1)
        g = r @ Y.T
        dz = (f * (g - f * (f * g).sum(dim=1, keepdim=True))).mean(dim=0)
        return eta_z * dz, eta_y / n_classes * f.T @ r

    start = torch.zeros(n_tokens, dtype=torch.float64), torch.zeros(n_tokens, classes.vocab_size, dtype=torch.float64)
    times = torch.tensor([0.0, t_end], dtype=torch.float64)
    with torch.no_grad():
        states = torchdiffeq.odeint(right_hand_side, start, times, rtol=rtol, atol=atol, method="dopri8")
    return states[0][-1].numpy()
