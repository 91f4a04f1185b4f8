r"""Complete words beside prefixes: violation, drift and long prefixes in the regime of Fig. 3 and in that of App. D.2.

Wen, Li, Liu, Risteski (2023), arXiv 2312.01429. Section 4 trains on complete words, at every position, on the bracket
that was drawn; Appendix D.2 does the same on prefixes. Both test on prefixes of about 16 times the length. Here are
both, with and without the regulariser (22), of the layer behind a minimal first layer and of a standard 2-layer
transformer.

Violation S / P (15)-(18) and the drift need a minimal first layer. What stands in for them in any architecture is
measured by its answers: `pair_effect` and `behind_mean_word`.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from yzflow_bounded_dyck import DyckLanguage, balance
from yzflow_bounded_dyck import training as dyck

from dynamics import Bags, Layer
from dynamics.layer import moved
from dynamics.support import checks, distributions
from yzflow_studies.ordinary_dyck import deep

KINDS = ("word", "prefix")
ARCHITECTURES = ("minimal", "standard")
POSITIONS = ("all", "last")
TARGETS = ("drawn", "exact")
LONG = "400-500"
# Of the standard architecture: steps, sequences a step, and test prefixes of each length whose last bracket closes.
STEPS, BATCH, N_CLOSING = 6000, 16, 500
_N_OPEN = 100  # whose answer is hardly ever wrong
_N_UNUSED = 20  # test prefixes of `deep.trained` itself, whose accuracies are not kept

Answers = Callable[[Sequence[np.ndarray]], np.ndarray]  # prefixes -> logits of the k closing brackets, (prefixes, k)


def drawn_bags(language: DyckLanguage, sequences: Sequence[np.ndarray]) -> Bags:
    """A bag for each bracket of each sequence: what stands before it, and the bracket as the next token.

    This is how a language model trains, (4): on all positions, from START on; nothing is asked at the end.
    """
    whole = language.bags(sequences, positions="all")
    ends = np.cumsum([sequence.size + 1 for sequence in sequences]) - 1
    entries = np.repeat(~np.isin(np.arange(len(whole)), ends), np.diff(whole.indptr))
    kept = np.delete(np.arange(len(whole)), ends)
    indptr = np.concatenate([[0], np.cumsum(np.diff(whole.indptr)[kept])])
    target = np.concatenate([*sequences])
    return Bags(
        whole.query[kept], target, indptr, whole.token[entries], whole.count[entries], **whole.sizes, **whole.names
    )


@functools.lru_cache(maxsize=4)
def data(
    language: DyckLanguage,
    kind: str,
    *,
    positions: str = "all",
    targets: str = "drawn",
    n_train: int = 40_000,
    n_test: int = 10_000,
    seed: int = 0,
) -> dyck.Data:
    """Training sequences of fewer than 28 brackets as bags, and the test prefixes of `training.data`.

    Parameters
    ----------
    language : DyckLanguage
    kind : "word" or "prefix"
        What the sequences are, as `DyckLanguage.sample` draws them.
    positions : "all" or "last"
        A bag for each position, or one for the whole sequence.
    targets : "drawn" or "exact"
        The bracket that follows in the sequence; or its distribution (3), which for words is not how they go on: near
        its end a word closes.
    n_train : int
        Training sequences.
    n_test : int
        Test prefixes of each range of lengths.
    seed : int
        Of the training sequences; test prefixes are the same.

    Raises
    ------
    ValueError
        If an argument is none of these, or drawn targets are asked for behind the last position.
    """
    checks.one_of("kind", kind, KINDS)
    checks.one_of("positions", positions, POSITIONS)
    if checks.one_of("targets", targets, TARGETS) == "drawn" and positions == "last":
        raise checks.reject("targets", "be 'exact' for the last position, behind which nothing is drawn", targets)
    low, high = dyck.LENGTHS["below 28"]
    rng = np.random.default_rng([seed, KINDS.index(kind)])
    sequences = language.sample_sequences(n_train, min_length=low, max_length=high, kind=kind, rng=rng)
    exact = functools.partial(language.bags, positions=positions)
    train = drawn_bags(language, sequences) if targets == "drawn" else exact(sequences)
    return dyck.Data(train, dyck.data(language, n_test=n_test).test)


def pair_effect(answers: Answers, language: DyckLanguage) -> float:
    r"""How far a matched pair moves the answer, in units of how far another stack does.

    For the prefixes w open_j close_j of (16), w of 1 to D - 1 open brackets: the mean change of the closing logits
    (their mean over types taken off) by one pair (i, l), inserted where the prefix first has depth l - 1, over the mean
    distance to the nearest prefix whose answer is another. 0 where pairs change nothing; where it is about 1, one pair
    is as good as another stack. Needs no minimal first layer, which S / P does.

    Parameters
    ----------
    answers : callable
        From `answers_of_layer` or `answers_of_model`.
    language : DyckLanguage

    Returns
    -------
    float
        nan for k = 1 or D = 1, where nothing before a closing query matters.
    """
    if min(language.n_types, language.max_depth) < 2:
        return np.nan
    kinds = range(language.n_types)
    changes, distances = [], []
    for depth in range(1, language.max_depth):
        prefixes = list(_closing_prefixes(language, depth))
        plain = _centred(answers(prefixes))
        top = np.array([prefix[depth - 1] for prefix in prefixes])
        query = np.array([prefix[-1] for prefix in prefixes])
        gaps = np.linalg.norm(plain[:, None] - plain, axis=2)
        other = (top[:, None] != top) & (query[:, None] == query)
        distances.append(np.where(other, gaps, np.inf).min(axis=1))
        for level, kind in itertools.product(range(1, min(depth + 2, language.max_depth) + 1), kinds):
            pair, place = [2 * kind, 2 * kind + 1], level - 1
            longer = [np.concatenate([prefix[:place], pair, prefix[place:]]) for prefix in prefixes]
            changes.append(np.linalg.norm(_centred(answers(longer)) - plain, axis=1))
    return float(np.concatenate(changes).mean() / np.concatenate(distances).mean())


def _closing_prefixes(language: DyckLanguage, depth: int):
    """w, open j, close j for all types of the ``depth`` open brackets w and of j."""
    for *stack, j in itertools.product(range(language.n_types), repeat=depth + 1):
        yield np.array([*(2 * kind for kind in stack), 2 * j, 2 * j + 1])


def _centred(logits: np.ndarray) -> np.ndarray:
    logits = np.asarray(logits, dtype=float)
    return logits - logits.mean(axis=1, keepdims=True)


def mean_word(language: DyckLanguage, lengths: int | Sequence[int]) -> np.ndarray:
    """A word with the mean numbers of matched pairs of a random prefix, rounded: bracket numbers.

    Pairs of a level lie evenly spread in those of the level before, and take the types in turn. Behind the first level
    whose mean rounds to none there is none.
    """
    numbers = np.rint(language.n_types * balance.matched_pairs(language, lengths)).astype(int)
    word: list[int] = []
    counts = np.zeros(numbers.size + 1, dtype=int)

    def write(level: int, upto: int) -> None:
        while counts[level] < upto:
            kind = 2 * (counts[level] % language.n_types)
            word.append(kind)
            counts[level] += 1
            if level + 1 < numbers.size:
                write(level + 1, round(numbers[level + 1] * counts[level] / numbers[level]))
            word.append(kind + 1)

    write(0, int(numbers[0]))
    return np.array(word, dtype=int)


def behind_mean_word(answers: Answers, language: DyckLanguage, lengths: Sequence[int]) -> float:
    """Share of closing queries answered right behind `mean_word` in place of what a random prefix has matched.

    Over the prefixes w open_j close_j behind that one word, weighted by how often a prefix of these lengths ends like
    them. For the layer behind a minimal first layer that is `balance.predicted_accuracy` of closing queries, but
    for the rounding of mean numbers and for one pair more; it needs no minimal first layer.
    """
    word, one_less = mean_word(language, lengths), [length - 1 for length in lengths]
    closed = balance.matched_pairs(language, lengths) - balance.matched_pairs(language, one_less)
    shares = []
    for depth in range(1, language.max_depth):
        prefixes = list(_closing_prefixes(language, depth))
        found = np.argmax(answers([np.concatenate([word, prefix]) for prefix in prefixes]), axis=1)
        shares.append(np.mean(2 * found == [prefix[depth - 1] for prefix in prefixes]))
    return float(np.average(shares, weights=closed[1:]))


def answers_of_layer(layer: Layer, language: DyckLanguage) -> Answers:
    """The closing logits of a layer over the states of a minimal first layer."""
    exact = moved(layer, [array.astype(np.float64) for array in layer.weights]).expand()
    return lambda prefixes: exact.logits(language.bags(prefixes))[:, 1 : language.n_brackets : 2]


def answers_of_model(model: Any, language: DyckLanguage) -> Answers:
    """The closing logits of a `yzflow_deep.Transformer` on brackets behind START."""
    return lambda prefixes: deep.closing_logits(model, language, prefixes)


def _from_answers(answers: Answers, language: DyckLanguage) -> dict[str, float]:
    low, high = dyck.LENGTHS[LONG]
    chosen = range(low, high + 1)
    return {
        "pair_effect": pair_effect(answers, language),
        "behind_mean_word": behind_mean_word(answers, language, chosen),
    }


def minimal_run(language: DyckLanguage, seed: int, **settings: Any) -> xr.Dataset:
    """One run of `training.trained` on `data`, with `pair_effect` and `behind_mean_word`.

    ``settings`` are arguments of the two, one value each; ``data_seed`` is the seed of `data`.
    """
    sizes = {name: settings.pop(name) for name in ("kind", "positions", "targets", "n_train", "n_test")}
    rest: dict[str, Any] = {name: settings.pop(name) for name in ("steps", "batch_size")}
    samples = data(language, sizes.pop("kind"), **sizes, seed=settings.pop("data_seed", 0))
    one: dict[str, Any] = {name: [value] for name, value in settings.items()}
    runs = dyck.trained(
        **one,
        **rest,
        seeds=[seed],
        language=language,
        samples=samples,
        also=lambda layer: _from_answers(answers_of_layer(layer, language), language),
        threads=1,
    )
    return runs.isel(dict.fromkeys((*settings, "seed"), 0), drop=True).drop_vars(["attention", "start_attention"])


def standard_run(
    language: DyckLanguage, seed: int, *, n_closing: int = N_CLOSING, checkpoints: str | None = None, **settings: Any
) -> xr.Dataset:
    """One run of `deep.trained`, a 2-layer transformer without positions, measured as a layer is.

    Its accuracies are those of ``n_closing`` test prefixes whose last bracket closes and of 100 whose last one opens;
    "all" weighs them as they occur.
    """
    transformers = distributions.bring("yzflow_deep")

    runs = deep.trained(language, seeds=[seed], n_test=_N_UNUSED, store=checkpoints, **settings)
    model = transformers.model_at(runs.expand_dims("learning_rate"), seed=seed)
    answers = answers_of_model(model, language)
    accuracy = [_accuracies(model, language, deep.LENGTHS[name], n_closing) for name in ("below 28", LONG)]
    return xr.Dataset(
        {
            "accuracy": (("length", "query"), accuracy),
            "loss": runs["batch_loss"].isel(seed=0, drop=True)[-100:].mean().astype(float),
            **{name: ((), value) for name, value in _from_answers(answers, language).items()},
        },
        {"length": ["below 28", LONG], "query": list(dyck.QUERIES)},
    )


def _accuracies(model, language, span, n_closing) -> list[float]:
    """Open, closing and all queries, as in `training.QUERIES`."""
    closing, opening = _tests(language, span, n_closing)
    right = [deep.closes_right(model, language, some).mean() for some in (opening, closing)]
    drawn = deep.open_prefixes(language, span, n=10_000)
    share = np.mean([prefix[-1] % 2 for prefix in drawn])
    return [*right, (1 - share) * right[0] + share * right[1]]


@functools.lru_cache(maxsize=8)
def _tests(language: DyckLanguage, span: tuple[int, int], n_closing: int) -> tuple[list, list]:
    drawn = deep.open_prefixes(language, span, n=10_000)
    closing = [prefix for prefix in drawn if prefix[-1] % 2]
    opening = [prefix for prefix in drawn if not prefix[-1] % 2]
    return closing[:n_closing], opening[:_N_OPEN]
