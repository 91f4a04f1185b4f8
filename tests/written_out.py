"""Flows that are written out from the loss, in plain time: peers of the simulators that share nothing with them."""

import numpy as np
import scipy


def lemma1(probabilities, times, eta_y, eta_z):
    """z of Lemma 1's flow from its loss alone: plain t, all of Y, and a gradient that is written out here."""
    P = np.array(probabilities)
    n, k = P.shape[1], len(P)

    def rate(t, state):
        z, Y = state[:n], state[n:].reshape(n, k)
        F = P * np.exp(z)
        F /= np.linalg.norm(F, axis=1, keepdims=True)
        residual = np.eye(k) - scipy.special.softmax(F @ Y, axis=1)
        back = residual @ Y.T
        pull = F * (back - F * (F * back).sum(axis=1, keepdims=True))
        return np.concatenate([eta_z * pull.mean(axis=0), eta_y / k * (F.T @ residual).ravel()])

    options = {"method": "DOP853", "t_eval": times, "rtol": 1e-10, "atol": 1e-13}
    return scipy.integrate.solve_ivp(rate, (0, times[-1]), np.zeros(n + n * k), **options).y[:n].T
