"""Blind runs: trainings inside a theorem's assumptions, and with one of them broken, which the report is not told.

The runs are drawn from one seed. Each is the paper's layer on a population and with rates inside every assumption of
the theorems in `TARGETS`, a third of them as it is; of the others one thing is changed, drawn from `BREAKS`. The report
has what a user gives it: the model's attention and logits, its parts, its rates; the optimizer it sees. It is right if
it calls the theorem's assumptions fulfilled, or names the one that is broken.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from yzflow_watch.recording import Recording
from yzflow_watch.report import WatchReport

from dynamics import SequenceClasses
from dynamics.support.progress import Progress
from yzflow.papers.scan_and_snap.settings import Setting
from yzflow.parts import part_of
from yzflow_studies.which_theory import models
from yzflow_studies.which_theory.drawing import LONG, inside, log_uniform

SEED = 4902
RUNS, NEEDED = 30, 27
STEPS, BATCH, PROBE, LONGEST = 60, 32, 128, 20_000
TARGETS = tuple(f"Scan and Snap: {name}" for name in ("Theorem 1", "Theorem 2(a)", "Theorem 2(b)", "Theorem 3"))
# Thing that is changed -> words, one of which the assumption that it breaks has.
BREAKS: dict[str, tuple[str, ...]] = {
    "fast attention": ("Assumption 1(c)",),
    "positions": ("no positional encoding", "by query and token"),
    "short sequences": ("Assumption 1(b)",),
    "a start of Y": ("Y(0) = 0",),
    "Adam": ("plain gradient steps",),
    "momentum": ("plain gradient steps",),
    "weight decay": ("plain gradient steps",),
    "a small vocabulary": ("M >> 100",),
    "strong overlap": ("|lambda_1(E)| < 1/K",),
    "weak overlap": ("|lambda_i(E)| >= 6/sqrt(M)",),
    "a fast decoder": ("eta_Y < 1",),
    "unequal next tokens": ("drawn uniformly",),
    "two queries": ("one query",),
    "two heads": ("one head",),
    "a residual link": ("residual link",),
}


def _changed(name: str, given: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Changes of a run by a break, by name."""
    population, k = dict(given["population"]), given["population"]["classes"]
    free = 1 / (k * (k - 1))
    if name == "fast attention":
        return {"eta_z": given["eta_y"] * log_uniform(rng, 0.02, 1.0)}
    if name == "positions":
        return {"bias": log_uniform(rng, 1e-4, 1e-2)}
    if name == "short sequences":
        return {"length": int(rng.integers(20, 200))}
    if name == "a start of Y":
        return {"start": log_uniform(rng, 0.3, 3.0)}
    if name == "Adam":
        return {"optimizer": "Adam", "eta_y": 0.03 * given["eta_y"], "eta_z": 0.03 * given["eta_z"]}
    if name in ("momentum", "weight decay"):
        return {name: float(rng.choice([0.5, 0.9])) if name == "momentum" else log_uniform(rng, 1e-4, 1e-1)}
    if name == "a small vocabulary":
        vocabulary = int(rng.integers(400, 900))
        overlap = log_uniform(rng, 1.1 * 6 / np.sqrt(vocabulary), 0.45)
        return {"population": population | {"classes": 2, "vocabulary": vocabulary, "overlap": overlap}}
    if name == "strong overlap":
        return {"population": population | {"overlap": log_uniform(rng, 1.2 * free, 1.8 * free)}}
    if name == "weak overlap":
        least = 6 / np.sqrt(population["vocabulary"])
        return {"population": population | {"overlap": log_uniform(rng, 0.3 * least, 0.8 * least)}}
    if name == "a fast decoder":
        factor = log_uniform(rng, 1.3, 4.0) / given["eta_y"]
        return {"eta_y": factor * given["eta_y"], "eta_z": factor * given["eta_z"]}
    if name == "unequal next tokens":
        return {"ratio": log_uniform(rng, 2.0, 8.0)}
    if name == "two queries":
        return {"second": round(float(rng.uniform(0.1, 0.5)), 3)}
    return {"heads": 2} if name == "two heads" else {"residual": True}


def design(seed: int = SEED) -> list[dict[str, Any]]:
    """Runs with the theorem that each is about, and what is broken: "" for nothing.

    Sequences are half as long again as Assumption 1(b) asks; a run that needs more than `LONGEST` is drawn anew.
    """
    rng = np.random.default_rng(seed)
    found: list[dict[str, Any]] = []
    while len(found) < RUNS:
        number, eta_y = len(found), log_uniform(rng, 0.2, 1.0)
        run: dict[str, Any] = {"name": f"blind-{seed}-{number:02d}", "seed": seed + number}
        run |= {"population": inside(rng), "eta_y": eta_y, "eta_z": eta_y * log_uniform(rng, 1e-4, 8e-3)}
        run |= {"optimizer": "SGD", "momentum": 0.0, "weight decay": 0.0, "length": LONG, "bias": 0.0, "heads": 1}
        run |= {"start": 0.0, "ratio": 1.0, "second": 0.0, "residual": False}
        broken = str(rng.choice(list(BREAKS))) if rng.random() < 2 / 3 else ""
        run |= {"target": str(rng.choice(TARGETS)), "broken": broken}
        run |= _changed(broken, run, rng) if broken else {}
        if broken != "short sequences":
            run["length"] = 1 + round(1.5 * (LONG - 1) / truth(run)[SHORT])
        if run["length"] <= LONGEST:
            found.append(run)
    return found


SHORT = "Assumption 1(b), T -> infinity: T - 1 >= 10 gamma/(P xi_n), rarest token"


def truth(run: Mapping[str, Any]) -> dict[str, float]:
    """Margins of the target's assumptions on the population itself, of those that population and rates decide."""
    rates = {"eta_y": run["eta_y"], "eta_z": run["eta_z"], "t_end": float(STEPS)}
    sizes = {"batch_size": BATCH, "length": run["length"], "position_bias": run["bias"]}
    setting = Setting(run["name"], classes_of(run), **rates, **sizes)
    [target] = [one for one in part_of("Scan and Snap", "statements") if one.id == run["target"]]
    return {one.text: one.margin(setting) for one in target.assumptions if "SGD" in (one.levels or ("SGD",))}


class TwoHeads(models.Layer):
    """The paper's layer with a second Z; the decoder has the mean of what both gather."""

    def __init__(self, source: Any, **given: Any) -> None:
        super().__init__(source, **given)
        self.other = torch.nn.Parameter(0.01 * torch.randn(self.z.shape))

    def heads(self, tokens: torch.Tensor) -> torch.Tensor:
        return torch.stack([self.weights(tokens), self.weights(tokens, self.other)], dim=1)


class Mixed(models.Population):
    """Sequences of which some of the first next token have a query of their own."""

    def __init__(self, *given: Any, second: float, **options: Any) -> None:
        super().__init__(*given, **options)
        self.second, self.extra = second, self.n_queries
        self.n_queries += 1

    def draw(self, n: int, rng: np.random.Generator) -> np.ndarray:
        tokens = super().draw(n, rng)
        tokens[(tokens[:, -1] == 0) & (rng.random(n) < self.second), -2] = self.n_tokens + self.extra
        return tokens


def classes_of(run: Mapping[str, Any]) -> Any:
    """The population, whose next tokens have weights from 1 to 1/ratio."""
    classes = models.population(run["population"])
    weights = run["ratio"] ** -np.linspace(0, 1, classes.n_classes)
    sizes = {"vocab_size": classes.vocab_size, "class_weights": weights / weights.sum()}
    return SequenceClasses(classes.probabilities, classes.query, **sizes)


def recorded(run: Mapping[str, Any], *, shuffled: bool = False) -> Recording:
    """The recording of one blind run."""
    torch.manual_seed(run["seed"])
    given = (classes_of(run), run["length"])
    source = (
        Mixed(*given, second=run["second"], shuffled=shuffled)
        if run["second"]
        else models.Population(*given, shuffled=shuffled)
    )
    kind = TwoHeads if run["heads"] == 2 else models.Layer
    model = kind(source, bias=run["bias"], residual=run["residual"])
    with torch.no_grad():
        model.y += run["start"] * torch.randn(model.y.shape)
    logits = [model.z, *([model.other] if isinstance(model, TwoHeads) else [])]
    decoder = [model.y, *([] if model.own is None else [model.own])]
    groups = [{"params": decoder, "lr": run["eta_y"]}, {"params": logits, "lr": run["eta_z"]}]
    if run["optimizer"] == "Adam":
        optimizer: torch.optim.Optimizer = torch.optim.Adam(groups, lr=1.0)
    else:
        optimizer = torch.optim.SGD(groups, lr=1.0, momentum=run["momentum"], weight_decay=run["weight decay"])
    told: dict[str, Any] = {"attention": models.attention_of_layer, "logits": models.Layer.forward}
    told |= {"rates": (run["eta_y"], run["eta_z"]), "parts": ["a residual link"] if run["residual"] else []}
    training = models.WatchedModel(model, source, told, optimizer, False)
    return models.train(training, steps=STEPS, batch=BATCH, seed=run["seed"], probe=PROBE)


class Answer(NamedTuple):
    """A report's answer on a run, beside the truth."""

    name: str
    target: str
    broken: str
    right: bool
    alone: bool  # nothing but what is broken was named
    named: tuple[str, ...]  # assumptions that the report named


def answer(run: Mapping[str, Any], recording: Recording) -> Answer:
    """Whether the report calls the theorem's assumptions fulfilled, or names the one that is broken."""
    found = WatchReport(recording).applies[run["target"]]
    named = (*found.broken, *found.unknown)
    hits = [any(word in text for word in BREAKS[run["broken"]]) for text in named] if run["broken"] else []
    right = any(hits) if run["broken"] else found.inside
    alone = right and all(hits)
    return Answer(run["name"], run["target"], run["broken"], right, alone, named)


def recordings(
    runs: Sequence[Mapping[str, Any]], store: str | os.PathLike, *, shuffled: bool = False, progress: bool = False
) -> list[Recording]:
    """Recordings of blind runs; what ``store`` holds is not trained again."""
    from yzflow_studies.which_theory import study

    Path(store).mkdir(parents=True, exist_ok=True)
    found = []
    with Progress("blind runs", enabled=progress) as report:
        for number, run in enumerate(runs):
            path = study.file_of(run, store, shuffled=shuffled)
            report.update(number / len(runs))
            if not path.exists():
                recorded(run, shuffled=shuffled).save(path)
            found.append(Recording.load(path))
    return found
