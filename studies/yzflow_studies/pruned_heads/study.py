"""Heads of trained transformers, pruned by a penalty while the others adapt, beside pruning with the others fixed.

Wen, Li, Liu, Risteski (2023), arXiv 2312.01429, Appendix B.2, which runs nothing: it conjectures that the definition of
a head's importance decides whether important heads are interpretable, and names two sides of letting the others adapt.
The penalty is that of Voita et al. (2019): the expected number of open gates, each with the hard concrete law of
Louizos, Welling, Kingma (2018). The hypotheses below were written, with seeds, penalties and statistics, before any of
the runs was made. yzflow-deep is needed.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from yzflow_bounded_dyck import DyckLanguage
from yzflow_bounded_dyck import training as dyck

from dynamics.support import checks
from yzflow import intervals
from yzflow.figures.registry import Effort, Entry
from yzflow.figures.style import BLACK, BLUE, ORANGE, VERMILION, canvas, styled
from yzflow.sweeps.runs import Task
from yzflow.sweeps.store import Store
from yzflow_studies.dyck_embeddings.study import stack_share
from yzflow_studies.dyck_galleries.study import of_data, swept
from yzflow_studies.ordinary_dyck import deep as deep_dyck
from yzflow_studies.precise_dyck import precise
from yzflow_studies.uniform_attention.study import Hypothesis, verdict

if TYPE_CHECKING:
    from yzflow_deep import Transformer

PAPER = "Bounded Dyck"
SEEDS = tuple(range(4520, 4526))  # used by no other study of this project
LAYERS, HEADS = 3, 4
PENALTIES = (1e-3, 3e-3, 1e-2, 3e-2, 1e-1)  # nats an open head
STEPS = 2000  # with gates; then SETTLE more without, closed heads gone and open ones whole
SETTLE = 500
ETA, GATE_ETA = 1e-3, 1e-2  # Adam, of weights and of gates
BATCH_SIZE = 16
_LOW, _HIGH, _TEMPERATURE, _START = -0.1, 1.1, 2 / 3, 2.0  # of the hard concrete law, and ln alpha at the start
HYPOTHESES = (
    Hypothesis("H1", "at as many heads adapting keeps more accuracy than removing the least important ones", 0.0, True),
    Hypothesis("H2", "with the others fixed a head's importance and its stack-likeness hardly go together", 0.5, False),
    Hypothesis("H3", "heads that survive are more stack-like than the heads of the model were", 0.0, True),
    Hypothesis("H4", "with a larger penalty fewer survivors are nearest to the head that they came from", 0.0, True),
)


def gated(model: Transformer, gates: Any) -> Transformer:
    """The transformer with what each head adds multiplied by its gate, (layers, heads); 0 removes the head."""
    import equinox as eqx

    values = [block.value * gate[:, None, None] for block, gate in zip(model.blocks, gates, strict=True)]
    return eqx.tree_at(lambda m: [block.value for block in m.blocks], model, values)


def open_probability(log_alpha: Any) -> Any:
    """Probability that a hard concrete gate is not zero, ``sigmoid(ln alpha - b ln(-low / high))``."""
    import jax

    return jax.nn.sigmoid(log_alpha - _TEMPERATURE * np.log(-_LOW / _HIGH))


def gate_values(log_alpha: Any, noise: Any | None = None) -> Any:
    """Hard concrete gates, drawn with uniform ``noise``, or without noise those that are used in the end."""
    import jax
    import jax.numpy as jnp

    shifted = log_alpha if noise is None else (jnp.log(noise) - jnp.log1p(-noise) + log_alpha) / _TEMPERATURE
    return jnp.clip(jax.nn.sigmoid(shifted) * (_HIGH - _LOW) + _LOW, 0.0, 1.0)


@functools.cache
def _training(steps: int, gates: bool):
    """``steps`` steps of Adam in one compiled call, with gates that train or with fixed ones."""
    import equinox as eqx
    import jax
    import jax.numpy as jnp
    import optax

    rule, gate_rule = optax.adam(ETA), optax.adam(GATE_ETA)

    def loss(both, penalty, fixed, noise, inputs, targets, mask):
        model, log_alpha = both
        used = gate_values(log_alpha, noise) if gates else fixed
        logits = jax.vmap(gated(model, used))(inputs)
        entropy = optax.softmax_cross_entropy_with_integer_labels(logits, targets)
        return (entropy * mask).sum() / mask.sum() + penalty * gates * open_probability(log_alpha).sum()

    def run(model, log_alpha, fixed, penalty, rows, noise, data):
        def step(state, drawn):
            model, log_alpha, moments, gate_moments = state
            batch = tuple(array[drawn[0]] for array in data)
            slope, gate_slope = jax.grad(loss)((model, log_alpha), penalty, fixed, drawn[1], *batch)
            change, moments = rule.update(slope, moments)
            gate_change, gate_moments = gate_rule.update(gate_slope, gate_moments)
            return (optax.apply_updates(model, change), log_alpha + gate_change, moments, gate_moments), None

        start = (model, log_alpha, rule.init(model), gate_rule.init(log_alpha))
        (model, log_alpha, *_), _ = jax.lax.scan(step, start, (rows, noise))
        return model, log_alpha

    def call(model, log_alpha, fixed, penalty, rng, data):
        rows = rng.integers(len(data[0]), size=(steps, BATCH_SIZE), dtype=np.int32)
        noise = rng.uniform(1e-6, 1 - 1e-6, size=(steps, *fixed.shape)).astype(np.float32)
        model = jax.tree.map(jnp.asarray, model)
        return compiled(model, jnp.asarray(log_alpha), jnp.asarray(fixed), penalty, rows, noise, data)

    compiled = eqx.filter_jit(run)
    return call


def adapted(
    model: Transformer,
    language: DyckLanguage,
    penalty: float,
    rng: np.random.Generator | int,
    *,
    steps: int = STEPS,
    settle: int = SETTLE,
    n_train: int = precise.N_TRAIN,
    data_seed: int = 0,
) -> tuple[Transformer, np.ndarray]:
    """The transformer after training with penalised gates, without the heads whose gates closed.

    All weights and gates are trained together for ``steps`` steps on the loss plus ``penalty`` times the expected
    number of open gates. Then heads whose noiseless gate is zero are removed, the others made whole, and all weights
    trained for ``settle`` more steps.

    Parameters
    ----------
    model : yzflow_deep.Transformer
        With value matrices.
    language : DyckLanguage
    penalty : float
        lambda, nats an open head; non-negative.
    rng : numpy.random.Generator or seed
        Of batches and gates.
    steps, settle, n_train : int
    data_seed : int
        Of the words.

    Returns
    -------
    Transformer
    (layers, heads) array of bool
        Which heads are left.
    """
    import jax.numpy as jnp

    penalty = checks.non_negative("penalty", penalty)
    if not model.architecture.values:
        raise checks.reject("model", "have value matrices", model.architecture)
    generator = np.random.default_rng(rng)
    words = deep_dyck.data(language, n=n_train, seed=data_seed)
    data = tuple(jnp.asarray(array) for array in (words.inputs, words.targets, words.mask))
    shape = (model.architecture.n_layers, model.architecture.n_heads)
    log_alpha, whole = np.full(shape, _START, dtype=np.float32), np.ones(shape, dtype=np.float32)
    model, log_alpha = _training(steps, True)(model, log_alpha, whole, penalty, generator, data)
    left = np.asarray(gate_values(log_alpha)) > 0
    model, _ = _training(settle, False)(model, log_alpha, left.astype(np.float32), 0.0, generator, data)
    return gated(model, left.astype(np.float32)), left


def maps(model: Transformer, language: DyckLanguage) -> xr.DataArray:
    """Attention on `training.probe_prefix`: (layer, head, row, position)."""
    probe = np.append(language.n_brackets, dyck.probe_prefix(language))
    return xr.DataArray(np.asarray(model.attention(probe), dtype=float), dims=("layer", "head", "row", "position"))


def nearest(before: xr.DataArray, after: xr.DataArray) -> np.ndarray:
    """Number of the head of the same layer whose map before is the nearest to each map after: (layers, heads)."""
    gaps = ((before.rename(head="old") - after) ** 2).sum(("row", "position"))
    return gaps.transpose("layer", "head", "old").values.argmin(axis=-1)


@functools.lru_cache(maxsize=32)
def _base(seed: int, most_steps: int, data_seed: int):
    """A trained model of one seed: it, its maps, its accuracy and what removing each head alone costs."""
    few: dict[str, Any] = {"data_seed": data_seed}
    if most_steps < precise.CHECK_EVERY:
        few |= {"check_every": most_steps, "n_train": 300, "n_test": 60}
    runs = precise.trained(n_layers=LAYERS, n_heads=HEADS, seeds=[seed], most_steps=most_steps, n_long=5, **few)
    (model,) = precise.models(runs)
    accuracy = right(model)
    cost = np.zeros((LAYERS, HEADS))
    for place in np.ndindex(cost.shape):
        kept = np.ones(cost.shape, dtype=np.float32)
        kept[place] = 0
        cost[place] = accuracy - right(gated(model, kept))
    return model, maps(model, dyck.LANGUAGE), accuracy, cost


def right(model: Transformer) -> float:
    """Share of the closing brackets after a closing one that are right, in short test words."""
    return precise.closings(model, precise.words(dyck.LANGUAGE, "below 28", n=500))["after closing"]


def prune_run(configuration: Mapping[str, Any], seed: int) -> dict:
    """One model and one penalty: heads before and after, and what is left with the others adapting or fixed."""
    data_seed = configuration.get("data_seed", 0)
    model, before, accuracy, cost = _base(seed, configuration["most_steps"], data_seed)
    size = {"data_seed": data_seed, **{name: configuration[name] for name in ("steps", "settle")}}
    other, left = adapted(model, dyck.LANGUAGE, configuration["penalty"], [seed, 1], **size)
    after = maps(other, dyck.LANGUAGE)
    order = np.argsort(np.argsort(-cost.ravel())).reshape(cost.shape)  # 0 is the most important head
    fixed = (order < left.sum()).astype(np.float32)
    heads = ("layer", "head")
    return {
        "before": xr.DataArray(accuracy),
        "accuracy": xr.DataArray(right(other)),
        "fixed": xr.DataArray(right(gated(model, fixed))),
        "same": xr.DataArray(right(gated(model, left.astype(np.float32)))),
        "left": xr.DataArray(left, dims=heads),
        "cost": xr.DataArray(cost, dims=heads),
        "share_before": stack_share(before, dyck.LANGUAGE).transpose(*heads),
        "share_after": stack_share(after, dyck.LANGUAGE).transpose(*heads),
        "moved": ((after - before) ** 2).sum(("row", "position")).transpose(*heads),
        "kept_place": xr.DataArray(nearest(before, after) == np.arange(HEADS), dims=heads),
    }


PRUNE = Task("pruned_heads", prune_run, keys=("penalty", "steps", "settle", "most_steps", "data_seed"), threads=True)


def pruned(
    *,
    penalty: Sequence[float] = PENALTIES,
    seeds: Sequence[int] = SEEDS,
    steps: int = STEPS,
    settle: int = SETTLE,
    most_steps: int = precise.MOST_STEPS,
    data_seed: int = 0,
    store: str | os.PathLike | Store | None = None,
    progress: bool = False,
) -> xr.Dataset:
    """`prune_run` over (penalty, seed); what ``store`` holds is not run again.

    Returns
    -------
    xarray.Dataset
        ``before``, ``accuracy`` (adapted), ``fixed`` (the same number of heads, the least important ones removed from
        the model as it was), ``same`` (the same heads removed from it): shares of closing brackets after a closing one.
        By head: ``left``, ``cost`` of removing it alone, ``share_before`` and ``share_after`` of `stack_share`,
        ``moved``, the squared distance of its maps, ``kept_place``, whether the map after is nearest to its own before.
    """
    grid = {"penalty": list(penalty), "steps": [steps], "settle": [settle], "most_steps": [most_steps]}
    grid |= of_data(data_seed)
    found = swept(PRUNE, grid, seeds, store, progress)
    return found if "penalty" in found.dims else found.expand_dims(penalty=list(penalty))


def by_seed(runs: xr.Dataset) -> dict[str, np.ndarray]:
    """Numbers that each of `HYPOTHESES` is tested on, one a seed; nan where a seed has none.

    H1: `accuracy` less `fixed`, mean over penalties. H2: Spearman's rank correlation of cost and stack share over the
    heads before. H3: mean share of survivors after less that of all heads before, mean over penalties that leave a
    head. H4: share of survivors that kept their place, at the smallest penalty less at the largest that leaves a head.
    """
    import scipy.stats

    runs = runs.transpose("penalty", "seed", "layer", "head", ...)
    left = runs["left"].astype(bool)
    first = runs.isel(penalty=0)
    ranks = [
        scipy.stats.spearmanr(cost.ravel(), share.ravel()).statistic
        for cost, share in zip(first["cost"].values, first["share_before"].values, strict=True)
    ]
    share = runs["share_after"].where(left).mean(("layer", "head")) - runs["share_before"].mean(("layer", "head"))
    place = runs["kept_place"].where(left).mean(("layer", "head")).transpose("seed", "penalty").values
    fall = [row[np.isfinite(row)][[0, -1]] if np.isfinite(row).sum() > 1 else (np.nan, np.nan) for row in place]
    return {
        "H1": (runs["accuracy"] - runs["fixed"]).mean("penalty").values,
        "H2": np.array(ranks),
        "H3": share.mean("penalty").values,
        "H4": np.array([one - other for one, other in fall]),
    }


def verdicts(runs: xr.Dataset) -> dict[str, str]:
    """Verdict on each of `HYPOTHESES`, over the seeds that have a number."""
    values = by_seed(runs)
    return {one.name: verdict(values[one.name][np.isfinite(values[one.name])], one) for one in HYPOTHESES}


# The figure


_WAYS = (
    ("accuracy", "the others adapt", BLUE, "o-"),
    ("fixed", "the others fixed, least important removed", VERMILION, "s--"),
    ("same", "the others fixed, the same heads removed", ORANGE, "^:"),
)


def of_survivors(runs: xr.Dataset, name: str) -> xr.DataArray:
    """Mean of a variable over the heads that are left: (penalty, seed); nan where there is none."""
    return runs[name].where(runs["left"].astype(bool)).mean(("layer", "head")).transpose("penalty", "seed")


@styled
def pruned_heads(runs: xr.Dataset) -> Figure:
    """Heads of trained transformers pruned by a penalty while the others adapt, beside pruning with the others fixed.

    Left: accuracy after closing brackets against the heads that are left; light marks are seeds, lines join their means
    at one penalty, solid where all weights adapt, dashed where as many of the most important heads of the model as it
    was are kept, dotted where the same heads are. Middle: how stack-like the heads that are left are, after and before,
    with all heads before as the dotted line, and 95% intervals of means over seeds (Student's t). Right: the share of
    them whose map is nearest to the map that the same head had, in its layer. Numbers at the solid line are penalties.

    Parameters
    ----------
    runs : xarray.Dataset
        From `pruned`.
    """
    figure = canvas(figsize=(13.5, 4.2))
    panels = figure.subplots(1, 3)
    heads = runs["left"].sum(("layer", "head")).transpose("penalty", "seed")
    for name, label, colour, style in _WAYS:
        found = runs[name].transpose("penalty", "seed")
        panels[0].plot(heads.values.ravel(), found.values.ravel(), style[0], color=colour, alpha=0.25, markersize=4)
        panels[0].plot(heads.mean("seed"), found.mean("seed"), style, color=colour, label=label)
    ends = zip(heads.mean("seed").values, runs["accuracy"].mean("seed").values, runs["penalty"].values, strict=True)
    for left, right_share, penalty in ends:
        panels[0].annotate(
            f"{penalty:g}", (left, right_share), xytext=(0, 7), textcoords="offset points", ha="center", fontsize=8
        )
    panels[0].invert_xaxis()
    panels[0].set_ylim(top=1.02)
    panels[0].set(xlabel="heads left", ylabel="closing brackets found", title="accuracy")
    panels[0].legend(loc="lower left", fontsize=8)
    place = np.arange(runs.sizes["penalty"])
    for name, label, colour, shift in (("share_after", "after", BLUE, 0.06), ("share_before", "before", BLACK, -0.06)):
        found = of_survivors(runs, name)
        panels[1].errorbar(
            place + shift, found.mean("seed"), intervals.of_mean(found), fmt="o", color=colour, capsize=3, label=label
        )
    whole = float(runs["share_before"].mean())
    panels[1].axhline(whole, color=BLACK, linewidth=0.8, linestyle=":", label="all heads before")
    panels[1].set(ylabel="attention on the stack's depth", title="stack-likeness of the heads left", ylim=(0, None))
    panels[1].legend(loc="lower left", fontsize=8)
    found = of_survivors(runs, "kept_place")
    for number, seed in enumerate(found["seed"].values):
        panels[2].plot(place + 0.05 * (number - 2.5), found.sel(seed=seed), "o", color=BLUE, alpha=0.3, markersize=4)
    panels[2].plot(place, found.mean("seed"), "o-", color=BLUE)
    panels[2].set(ylabel="share of the heads left", title="maps nearest to their own before", ylim=(0, 1.05))
    for axes in panels[1:]:
        axes.set_xticks(place, [f"{penalty:g}" for penalty in runs["penalty"].values])
        axes.set_xlabel("penalty, nats an open head")
    n_heads = runs.sizes["layer"] * runs.sizes["head"]
    figure.suptitle(f"Heads left of {n_heads}, {runs.sizes['seed']} transformers")
    return figure


def _claims(runs: xr.Dataset) -> str:
    """The verdicts, in a sentence."""
    found = verdicts(runs)
    return "; ".join(f"{one.name}, {one.says}: {found[one.name]}" for one in HYPOTHESES) + "."


def _runs(effort: Effort) -> xr.Dataset:
    few: dict[str, Any] = {}
    if effort.quick:
        few = {"penalty": PENALTIES[::2], "seeds": SEEDS[:2], "steps": 60, "settle": 10, "most_steps": 100}
    return pruned(store=effort.store, progress=effort.progress, **few)


FIGURES = (Entry("pruned_heads", PAPER, pruned_heads, _runs, claims=_claims),)

# <!-- numbers
# typed: 95% (level of intervals and quantiles)
# typed: 28 (range of lengths of the test prefixes, LENGTHS of yzflow_bounded_dyck.training)
# -->
