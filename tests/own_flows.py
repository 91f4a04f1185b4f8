"""Flows of named states for the tests of enclosures, as a reader would write them."""

import numpy as np


class Logistic:
    """x' = x (1 - x)."""

    def __init__(self, x=0.25):
        self.initial = {"x": x}

    def derivative(self, t, state):
        x = state["x"]
        return {"x": x * (1 - x)}

    def config(self):
        return {"x": self.initial["x"]}


class Linear:
    """x' = A x."""

    def __init__(self, matrix, start):
        self.matrix = np.array(matrix, float)
        self.initial = {"x": np.array(start, float)}

    def derivative(self, t, state):
        return {"x": self.matrix @ state["x"]}

    def config(self):
        return {"matrix": self.matrix, "start": self.initial["x"]}


class Stationary:
    """JoMA with a stationary gradient, as we state it: v' = Delta exp(v^2 / 2), z' = sum over units of v v'."""

    def __init__(self, delta):
        self.delta = np.array(delta, float)
        self.initial = {"v": np.zeros_like(self.delta), "z": np.zeros(self.delta.shape[-1])}

    def derivative(self, t, state):
        v = state["v"]
        pushed = self.delta * np.exp(v * v / 2)
        return {"v": pushed, "z": v * pushed}


class Joint:
    """JoMA's joint dynamics, as we state it: v_k' = Delta_k exp(z), z' = sum_k v_k v_k', of units k and entries."""

    def __init__(self, delta, sign=1.0):
        self.delta, self.sign = np.array(delta, float), sign
        self.initial = {"v": np.zeros_like(self.delta), "z": np.zeros(self.delta.shape[1])}

    def derivative(self, t, state):
        pushed = self.delta * np.exp(state["z"])
        return {"v": pushed, "z": self.sign * (state["v"] * pushed).sum(axis=0)}


class Drawn:
    """JoMA with a nonlinear activation, as we state it: v' = (mu - v) exp(v^2 / 2)."""

    def __init__(self, mu):
        self.mu = np.array(mu, float)
        self.initial = {"v": np.zeros_like(self.mu)}

    def derivative(self, t, state):
        v = state["v"]
        return {"v": (self.mu - v) * np.exp(v * v / 2)}

    def config(self):
        return {"mu": self.mu}


def entropy(v):
    """Entropy of softmax(v^2 / 2), nats: of floats, or of quantities in balls."""
    u = v * v / 2
    powers = np.exp(u)
    return np.log(powers.sum()) - (u * powers).sum() / powers.sum()
