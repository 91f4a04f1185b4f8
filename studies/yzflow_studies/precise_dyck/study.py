"""Accuracy that trained transformers lose when one attention map is replaced: are stack-like maps used? (Figs. 4 to 6).

Setting: Wen, Li, Liu, Risteski (2023), arXiv 2312.01429, Appendix B.1. The models are those of `precise.trained`.
Nothing is trained again. yzflow-deep is needed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import xarray as xr
from matplotlib.figure import Figure
from yzflow_bounded_dyck import DyckLanguage

from dynamics.support import checks
from yzflow.figures.registry import Entry
from yzflow.figures.style import CATEGORIES, canvas, styled
from yzflow_studies.dyck_embeddings.study import stack_share
from yzflow_studies.precise_dyck import precise

if TYPE_CHECKING:
    from yzflow_deep import Transformer

WAYS = ("uniform", "random", "removed")
STACK_LIKE = 0.5  # of the attention of closing queries on open brackets of their own depth
IRRELEVANT = 0.01  # accuracy that may be lost, under every way
CONTROL = 0.1  # accuracy that another map of the same model must cost


def replaced(model: Transformer, layer: int, head: int, way: str, rng: np.random.Generator | int = 0) -> Transformer:
    """The same transformer with the attention map of one head replaced, and all else as it was.

    Parameters
    ----------
    model : yzflow_deep.Transformer
        With separate query and key matrices, and values.
    layer, head : int
        From 0.
    way : "uniform", "random" or "removed"
        Zero queries, so that all positions up to the own one weigh the same; queries and keys drawn anew, normal, with
        the norms of the trained ones; or zero values, so that the head adds nothing whatever its map.
    rng : numpy.random.Generator or seed
        For "random".
    """
    import equinox as eqx

    checks.one_of("way", way, WAYS)
    a = model.architecture
    layer = checks.integer("layer", layer, minimum=0, maximum=a.n_layers - 1)
    head = checks.integer("head", head, minimum=0, maximum=a.n_heads - 1)
    if not (a.factored and a.values):
        raise checks.reject("model", "have query, key and value matrices", a)
    generator = np.random.default_rng(rng)

    def with_head(matrices: Any, matrix: np.ndarray) -> np.ndarray:
        changed = np.array(matrices)
        changed[head] = matrix
        changed.flags.writeable = False
        return changed

    def drawn(matrix: np.ndarray) -> np.ndarray:
        fresh = generator.normal(size=matrix.shape)
        return fresh * np.linalg.norm(matrix) / np.linalg.norm(fresh)

    block = model.blocks[layer]
    own = [np.asarray(part)[head] for part in (block.query, block.key, block.value)]
    if way == "removed":
        changed = {"value": 0.0 * own[2]}
    else:
        changed = {"query": 0.0 * own[0]} if way == "uniform" else {"query": drawn(own[0]), "key": drawn(own[1])}
    parts = list(changed)
    new = [with_head(getattr(block, part), matrix) for part, matrix in changed.items()]
    return eqx.tree_at(lambda m: [getattr(m.blocks[layer], part) for part in parts], model, new)


def survey(runs: xr.Dataset, *, n_test: int = 500, draws: int = 3) -> xr.Dataset:
    """Stack-likeness of every map of `precise.trained`, and what replacing it costs.

    Parameters
    ----------
    runs : xarray.Dataset
    n_test : int
        Short test words; the closing brackets after a closing one are counted, which the last bracket does not tell.
    draws : int
        Of "random"; their mean is kept.

    Returns
    -------
    xarray.Dataset
        Over seed, layer and head: ``stack_share`` (`stack_share`) and ``lost`` (.., way), the accuracy before
        less that after; ``accuracy`` (seed) before.
    """
    language = DyckLanguage(int(runs.attrs["k"]), int(runs.attrs["D"]))
    test = precise.words(language, "below 28", n=n_test)

    def right(model: Transformer) -> float:
        return precise.closings(model, test)["after closing"]

    share = stack_share(runs["attention"].sel(time="end", drop=True), language)
    share = share.transpose("seed", "layer", "head")
    before, lost = [], np.zeros((*share.shape, len(WAYS)))
    for number, model in enumerate(precise.models(runs)):
        before.append(right(model))
        for layer, head in np.ndindex(share.shape[1:]):
            for index, way in enumerate(WAYS):
                times = draws if way == "random" else 1
                after = [right(replaced(model, layer, head, way, [number, draw])) for draw in range(times)]
                lost[number, layer, head, index] = before[-1] - np.mean(after)
    result = xr.Dataset({"stack_share": share, "lost": ((*share.dims, "way"), lost), "accuracy": ("seed", before)})
    return result.assign_coords(way=list(WAYS))


def misleading(found: xr.Dataset) -> xr.DataArray:
    """Which maps of `survey` are stack-like and idle while another of the same model is not: (seed, layer, head).

    Stack-like: more than `STACK_LIKE`. Does not matter: every way costs less than `IRRELEVANT`. Another does: it costs
    more than `CONTROL` under every way.
    """
    idle = found["lost"].max("way") < IRRELEVANT
    control = (found["lost"].min("way") > CONTROL).any(("layer", "head"))
    return (found["stack_share"] > STACK_LIKE) & idle & control


# The figure


_MARKERS = "osD^v"


@styled
def deep_dyck_interventions(found: xr.Dataset) -> Figure:
    """The accuracy that replacing one map of a trained transformer costs, against how stack-like it is (Figs. 4 to 6).

    A mark is a map of one head of one seed; from its layer's and head's query and key matrices a uniform or a random
    map was made, or its values were set to zero, with nothing trained again. Accuracy is that of closing brackets of
    short words whose previous bracket closes. Dotted: from where on a map counts as stack-like, and up to where as one
    that does not matter.

    Parameters
    ----------
    found : xarray.Dataset
        From `survey`.
    """
    figure = canvas(figsize=(12, 3.8))
    panels = figure.subplots(1, found.sizes["way"], sharey=True)
    for axes, way in zip(panels, found["way"].values, strict=True):
        for number, layer in enumerate(found["layer"].values):
            cell, (colour, _) = found.sel(layer=layer), CATEGORIES[1 + number]
            style = {"color": colour, "marker": _MARKERS[number], "s": 24, "alpha": 0.8, "linewidths": 0}
            axes.scatter(cell["stack_share"], cell["lost"].sel(way=way), label=f"layer {layer}", **style)
        axes.axvline(STACK_LIKE, color="0.6", linewidth=0.8, linestyle=":")
        axes.axhline(IRRELEVANT, color="0.6", linewidth=0.8, linestyle=":")
        axes.set(title=str(way), xlabel="attention on the stack's depth")
    panels[0].set_ylabel("accuracy lost")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside right center")
    figure.suptitle("One map replaced in trained transformers")
    return figure


def _intervention_claims(found: xr.Dataset) -> str:
    """How many stack-like maps there are and how many of them do not matter."""
    like = found["stack_share"] > STACK_LIKE
    idle = misleading(found)
    return (
        f"Of {found['stack_share'].size} maps {int(like.sum())} are stack-like; {int(idle.sum())} of these can be "
        f"replaced in every way at a cost below {IRRELEVANT:g}, in models where another map costs more "
        f"than {CONTROL:g}."
    )


FIGURES = (
    Entry(
        "deep_dyck_interventions", "Bounded Dyck", deep_dyck_interventions,
        claims=_intervention_claims, trained_by="yzflow example deep_dyck --precise",
    ),
)  # fmt: skip

# <!-- numbers
# typed: 6 (number of a statement, figure, section or finding)
# typed: 28 (range of lengths of the test prefixes, LENGTHS of yzflow_bounded_dyck.training)
# -->
