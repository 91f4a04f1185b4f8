"""Settings for the checks of JoMA's statements: random contexts, Scan and Snap's classes, and reduced flows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import yzflow as yz
from yzflow_joma.flows import JointFlow, ReducedFlow, SampledFlow
from yzflow_joma.formulas import blow_up_time

PAPER = "JoMA"
LINEAR, NONLINEAR = "reduced flow, linear", "reduced flow, nonlinear"
RATE, SHORT = 0.05, 0.005  # steps of SGD; short steps in place of a flow with rectified units
MU = (3.0, 2.5, 2.0, 1.5, 1.0, 0.5)


@dataclass(frozen=True)
class JomaSetting:
    """Data, start and reduced flows for the checks.

    Attributes
    ----------
    name : str
    contexts : tuple of tuple of float
        Counts.
    targets : tuple of int
    n_units : int
    mu, delta : tuple of float
        Entries of the reduced flows.
    activation : str
    t_end : float
        End of the full flow.
    seed : int
        Seed of the start.
    scale : float
        Standard deviation of the start.
    of_classes : bool
        True if the contexts are Scan and Snap's.
    """

    name: str
    contexts: tuple[tuple[float, ...], ...]
    targets: tuple[int, ...]
    n_units: int
    mu: tuple[float, ...] = MU
    delta: tuple[float, ...] = (1.0, 0.6, 0.3, 0.1)
    activation: str = "relu"
    t_end: float = 20.0
    seed: int = 0
    scale: float = 0.1
    of_classes: bool = False

    def flow(self, attention: str, kind: type[JointFlow] = JointFlow) -> JointFlow:
        """The full flow under one kind of attention."""
        return kind(
            self.contexts,
            self.targets,
            n_units=self.n_units,
            n_targets=max(self.targets) + 1,
            attention=attention,
            activation=self.activation,
            scale=self.scale,
            seed=self.seed,
        )

    def reduced(self, level: str) -> ReducedFlow:
        """One of the reduced flows."""
        return ReducedFlow(self.delta, linear=True) if level == LINEAR else ReducedFlow(self.mu)

    def end(self, level: str) -> float:
        """Last time of a reduced flow, before the blow-up of a linear one."""
        return 0.98 * blow_up_time(self.delta) if level == LINEAR else 30.0

    def simulate(self, level: str, *, seed: int) -> yz.Run:
        """The simulation at a level."""
        if level in (LINEAR, NONLINEAR):
            end = self.end(level)
            rest = np.linspace(0.0, end, 50)[1:] if level == LINEAR else np.geomspace(0.01, end, 1500)
            times = np.concatenate([[0.0], rest])
            return yz.integrate(self.reduced(level), t_end=end, times=times, rtol=1e-11, atol=1e-13)
        if level == "SGD":
            steps = int(self.t_end / RATE)
            flow = self.flow("softmax", SampledFlow)
            return yz.descend(flow, rate=RATE, steps=steps, seed=seed, record_every=max(1, steps // 60))
        attention = level.removeprefix("full flow, ")
        end = min(self.t_end, 4.0) if attention in ("linear", "exp") else self.t_end
        if self.activation == "relu":
            # Integrators stall if a rectified unit stays at its kink; short steps of Euler's method do not.
            steps = int(end / SHORT)
            return yz.descend(self.flow(attention), rate=SHORT, steps=steps, record_every=max(1, steps // 60))
        times = np.concatenate([[0.0], np.geomspace(0.01, end, 60)])
        return yz.integrate(self.flow(attention), t_end=end, times=times)


def random_contexts(name: str, n: int, tokens: int, n_units: int, *, seed: int, **more: object) -> JomaSetting:
    """Contexts with exponential counts and two next tokens, by the halves of a random linear function."""
    rng = np.random.default_rng(seed)
    x = rng.exponential(size=(n, tokens))
    scores = x @ rng.standard_normal(tokens)
    targets = scores > np.median(scores)
    return JomaSetting(
        name,
        tuple(map(tuple, x.tolist())),
        tuple(targets.astype(int).tolist()),
        n_units,
        seed=seed,
        **more,  # type: ignore[arg-type]
    )


def alike(name: str, n: int, tokens: int, n_units: int, *, seed: int) -> JomaSetting:
    """Contexts that differ by a hundredth, three quarters with one next token; attention hardly moves to the end."""
    rng = np.random.default_rng(seed)
    x = rng.exponential(size=tokens) * (1 + 0.01 * rng.standard_normal((n, tokens)))
    targets = (np.arange(n) % 4 == 0).astype(int)
    shown = tuple(map(tuple, x.tolist()))
    return JomaSetting(name, shown, tuple(targets.tolist()), n_units, activation="softplus", t_end=1.0, seed=seed)


def of_classes(name: str, classes: yz.SequenceClasses, n_units: int, **more: object) -> JomaSetting:
    """Scan and Snap's classes with one query, in the limit T -> infinity."""
    bags = classes.population()
    x = np.zeros((len(bags), bags.n_tokens))
    x[bags.owner, bags.token] = bags.count
    x /= x.sum(axis=1, keepdims=True)
    contexts, targets = tuple(map(tuple, x.tolist())), tuple(bags.target.tolist())
    return JomaSetting(name, contexts, targets, n_units, of_classes=True, **more)  # type: ignore[arg-type]


def trained_classes(activation: str, *, scale: float = 0.1) -> JomaSetting:
    """Three of Scan and Snap's classes with a common token, and eight units."""
    classes = yz.SequenceClasses.single_common_token(3, 8, common=1.0, distinct=[1.0, 0.6])
    shown = "ReLU" if activation == "relu" else activation
    return of_classes(f"Scan and Snap's classes, {shown}", classes, 8, activation=activation, t_end=60.0, scale=scale)


def drawn_classes(seed: int) -> JomaSetting:
    """`trained_classes` with random shares of the common token, from 0.5 to 2, and of second tokens, from 0.2 to 1."""
    common, second = np.random.default_rng(seed).uniform([0.5, 0.2], [2.0, 1.0]).tolist()
    classes = yz.SequenceClasses.single_common_token(3, 8, common=common, distinct=[1.0, second])
    return of_classes(f"Scan and Snap's classes, draw {seed}", classes, 8, activation="softplus", seed=seed)


def settings(*, quick: bool) -> list[JomaSetting]:
    """Random contexts of several sizes, and Scan and Snap's classes with ReLU and softplus."""
    chosen = [
        # Attention turns at t = 145.
        random_contexts("40 random contexts, 6 tokens, 4 units", 40, 6, 4, seed=0, activation="softplus", t_end=1000.0),
        trained_classes("relu"),
        alike("40 contexts alike, 6 tokens, 4 units", 40, 6, 4, seed=4),
    ]
    if not quick:
        chosen += [
            random_contexts("40 random contexts, 6 tokens, ReLU", 40, 6, 4, seed=1),
            random_contexts("10 random contexts, 20 tokens", 10, 20, 8, seed=2, activation="softplus"),
            trained_classes("softplus"),
            random_contexts("four entries", 40, 4, 4, seed=3, mu=(2.0, 1.0, 1.0, 1.0), activation="softplus"),
        ]
    return chosen
