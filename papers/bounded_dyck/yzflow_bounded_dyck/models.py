r"""Any model of bounded Dyck as one kind of object: from prefixes of brackets to log-probabilities of the next one.

`of` takes a function, a PyTorch module, a causal language model of transformers, `from_tokens.TokenTransformer` or a
`dynamics.Layer`. `outputs.examine` measures it, and `yz.check(.., data=model)` asks the statements of the paper.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy  # whose parts are imported where they are first used
from numpy.typing import ArrayLike

from dynamics import Layer
from dynamics.support import checks
from yzflow_bounded_dyck import DyckLanguage, balance
from yzflow_bounded_dyck.from_tokens import TokenTransformer

KINDS = ("logits", "probabilities")
_TOKENS_A_CALL = 65_536
_SAME = 1e-4  # of the largest score: differences of this size are rounding


@dataclass(frozen=True, eq=False)
class Model:
    """A model with its language; made by `of`.

    Attributes
    ----------
    language : DyckLanguage
    scores : callable
        (n, length) brackets, all prefixes of one length -> (n, 2 k) logits or probabilities.
    kind : "logits" or "probabilities"
    name : str
    longest : int or None
        Most brackets that the model reads; None if there is no limit.
    shortest : int
        1 if the model cannot be asked about the empty prefix.
    sums : callable, optional
        (n, length) brackets -> (n, width): the sums before LN of (12).
    """

    language: DyckLanguage
    scores: Callable[[np.ndarray], np.ndarray]
    kind: str
    name: str
    longest: int | None = None
    shortest: int = 0
    sums: Callable[[np.ndarray], np.ndarray] | None = None

    def __repr__(self) -> str:
        return f"<Model: {self.name} on {self.language!r}>"

    def log_distribution(self, prefixes: Iterable) -> np.ndarray:
        """Logarithm of the model's distribution over the 2 k brackets after each prefix: (prefixes, 2 k).

        Parameters
        ----------
        prefixes : iterable of prefixes
            Each as `DyckLanguage.encode` takes it; lengths may differ.

        Raises
        ------
        ValueError
            If a prefix is none of the language, is too long for the model, or an output is NaN or of another shape.
        """
        rows = _grouped(self, prefixes, self.scores, self.language.n_brackets)
        if self.kind == "probabilities":
            with np.errstate(divide="ignore"):
                return np.log(rows / rows.sum(axis=1, keepdims=True))
        logs: np.ndarray = scipy.special.log_softmax(rows, axis=1)
        return logs

    def distribution(self, prefixes: Iterable) -> np.ndarray:
        """The model's distribution over the 2 k brackets after each prefix: (prefixes, 2 k)."""
        return np.exp(self.log_distribution(prefixes))

    def sums_before_norm(self, prefixes: Iterable) -> np.ndarray:
        """The sums before LN after each prefix: (prefixes, width); ValueError where the model has none."""
        if self.sums is None:
            raise checks.reject("model", "come with `sums`, its vectors before LN", repr(self))
        return _grouped(self, prefixes, self.sums, None)


def of(
    model: Any,
    language: DyckLanguage,
    *,
    kind: str = "logits",
    one: bool = False,
    tokens: ArrayLike | None = None,
    start: int | None = None,
    longest: int | None = None,
    sums: Callable[[np.ndarray], ArrayLike] | None = None,
) -> Model:
    """A model of yours, asked in one way; it is tried at once on short prefixes.

    Parameters
    ----------
    model : callable, torch.nn.Module, TokenTransformer or Layer
        A function of tokens (n, T), or (T,) with ``one``, that returns scores (n, V) of the next token, or (n, T, V) of
        which the last row counts. A module gets a tensor; of a tuple the first entry counts, and of an object its
        ``logits``. Modules are asked in evaluation mode and put back.
    language : DyckLanguage
    kind : "logits" or "probabilities"
        Logits that are not negative and sum to one after each prefix are taken for probabilities, and refused.
    one : bool
        The function takes one prefix at a time.
    tokens : (2 k,) int, optional
        The model's number of each bracket, in the order of `DyckLanguage.brackets`. Default: their own numbers. If V is
        above the largest of them, they are columns of the output too, and others are left out; else V must be 2 k.
    start : int, optional
        The model's number of a token to put before each prefix. Default: none, and the empty prefix is not asked.
    longest : int, optional
        Most brackets that it reads. Default: no limit; of a model of transformers, that of its configuration.
    sums : callable, optional
        From tokens as ``model`` gets them to the sums before LN (12), (n, width): not divided by the normaliser of
        softmax. The paper's violation needs them. A `Layer` with LN and no floor has its own.

    Raises
    ------
    ValueError
        If an argument breaks one of these rules; outputs have another shape, are NaN, or change from call to call; or a
        prefix's output depends on the others in its batch.

    Examples
    --------
    >>> language = DyckLanguage(n_types=2, max_depth=3)
    >>> guess = of(lambda prefixes: np.zeros((len(prefixes), 4)), language)
    >>> guess.distribution(["(", "([]"])[1]
    array([0.25, 0.25, 0.25, 0.25])
    """
    checks.instance("language", language, DyckLanguage)
    checks.one_of("kind", kind, KINDS)
    one = checks.flag("one", one)
    torch = sys.modules.get("torch")
    module = torch is not None and isinstance(model, torch.nn.Module)
    own = isinstance(model, (Layer, TokenTransformer))
    if own:
        given = {"tokens": tokens, "start": start, "sums": sums, "one": one or None}
        for name, value in [*given.items(), ("kind", None if kind == "logits" else kind)]:
            if value is not None:
                raise checks.reject(name, f"be left out for a {type(model).__name__}", checks.brief(value))
        shown = _of_layer(model, language) if isinstance(model, Layer) else _of_transformer(model, language)
        return _tried(_limited(shown, longest))
    table = np.arange(language.n_brackets) if tokens is None else checks.index_array("tokens", tokens)
    if table.size != language.n_brackets or np.unique(table).size != table.size:
        rule = f"have another number for each of the {language.n_brackets} brackets"
        raise checks.reject("tokens", rule, table.tolist())
    first = None if start is None else checks.integer("start", start, minimum=0)
    if first is not None and first in table:
        raise checks.reject("start", "be no bracket's number", first)
    if not callable(model):
        raise checks.reject(
            "model", "be a function, a PyTorch module, a TokenTransformer or a Layer", checks.brief(model)
        )
    if module:
        if one:
            raise checks.reject("one", "be left out for a module, which takes batches", one)
        if longest is None:
            longest = _own_limit(model, first is not None)
        model = _asked_module(model, torch)
    name = type(model).__name__ if not hasattr(model, "__name__") else model.__name__
    scores = _scores(model, language, table, first, one, kind, listed=tokens is not None)
    ready = None if sums is None else _vectors(checks.function("sums", sums), table, first, one)
    return _tried(_limited(Model(language, scores, kind, name, shortest=int(first is None), sums=ready), longest))


def _limited(model: Model, longest: int | None) -> Model:
    if longest is None:
        return model
    return replace(model, longest=checks.integer("longest", longest, minimum=2))


def _of_transformer(model: TokenTransformer, language: DyckLanguage) -> Model:
    if model.decoder.shape[1] != language.n_brackets or model.language.max_depth < language.max_depth:
        raise checks.reject("language", f"be {model.language!r}, the transformer's", repr(language))
    return Model(language, lambda rows: np.array([model(row)[-1] for row in rows]), "logits", "a TokenTransformer")


def _of_layer(layer: Layer, language: DyckLanguage) -> Model:
    balance._fit("layer", layer.Z, language)
    whole = layer.expand()
    if whole.Y.shape[1] != language.n_brackets:
        rule = f"have {language.n_brackets} next tokens, the brackets"
        raise checks.reject("layer", rule, whole.Y.shape[1])

    def scores(rows: np.ndarray) -> np.ndarray:
        return np.asarray(whole.logits(language.bags(list(rows))))

    def sums(rows: np.ndarray) -> np.ndarray:
        states = np.array([language.state_sequence(row) for row in rows])
        u = balance.contributions(layer, language, scaled=True)
        return u[states[:, -1], states.T].sum(axis=0)

    normed = layer.floor == 0 and layer.normalisation is not None
    return Model(language, scores, "logits", "a layer over states", sums=sums if normed else None)


def _own_limit(module: Any, started: bool) -> int | None:
    """Most brackets that the configuration of a model of transformers allows; None if it says nothing."""
    limit = getattr(getattr(module, "config", None), "max_position_embeddings", None)
    return int(limit) - started if checks.is_number(limit, int) else None


def _asked_module(module: Any, torch: Any) -> Callable[[np.ndarray], Any]:
    """A function of tokens, from a module that is asked in evaluation mode and without slopes."""

    @contextmanager
    def evaluated() -> Iterator[None]:
        modes = [(part, part.training) for part in module.modules()]
        module.eval()
        try:
            with torch.no_grad():
                yield
        finally:
            for part, mode in modes:
                part.training = mode

    def ask(tokens: np.ndarray) -> Any:
        parameter = next(module.parameters(), None)
        with evaluated():
            outputs = module(torch.as_tensor(tokens, device=None if parameter is None else parameter.device))
            outputs = getattr(outputs, "logits", outputs)
            outputs = outputs[0] if isinstance(outputs, tuple) else outputs
            if not isinstance(outputs, torch.Tensor):
                rule = "return a tensor, a tuple that begins with one, or an object with `logits`"
                raise checks.reject("model", rule, checks.brief(outputs))
            return outputs.to(torch.float64).cpu().numpy()

    ask.__name__ = type(module).__name__
    return ask


def _fed(rows: np.ndarray, table: np.ndarray, first: int | None) -> np.ndarray:
    """The model's tokens for prefixes of brackets."""
    tokens = table[rows]
    return tokens if first is None else np.column_stack([np.full(len(rows), first), tokens])


def _array(name: str, outputs: Any) -> np.ndarray:
    """A model's outputs in float64; NaN is refused."""
    detached = outputs.detach().cpu().numpy() if hasattr(outputs, "detach") else outputs
    array = checks.array(name, detached)
    if array.dtype.kind not in "iuf":
        raise checks.reject(name, "return real numbers", f"dtype {array.dtype}")
    array = array.astype(np.float64)
    if np.isnan(array).any():
        raise checks.reject(name, "return numbers", "NaN")
    return array


def _answers(name: str, ask: Callable, tokens: np.ndarray, one: bool) -> np.ndarray:
    """The last outputs for each row of tokens: (n, V)."""
    array = np.stack([_array(name, ask(row)) for row in tokens]) if one else _array(name, ask(tokens))
    n, length = tokens.shape
    if array.ndim not in (2, 3) or len(array) != n or (array.ndim == 3 and array.shape[1] not in (length, length + 1)):
        what = (
            f"({length}, V) or (V,) for one prefix" if one else f"({n}, V) or ({n}, {length}, V) for tokens {n, length}"
        )
        cure = "" if one else ", batch first; one=True asks one prefix at a time"
        raise checks.reject(name, f"return {what}{cure}", f"shape {array.shape[1:] if one else array.shape}")
    return array if array.ndim == 2 else array[:, -1]


def _scores(model, language, table, first, one, kind, *, listed) -> Callable[[np.ndarray], np.ndarray]:
    def scores(rows: np.ndarray) -> np.ndarray:
        found = _answers("model", model, _fed(rows, table, first), one)
        size, brackets = found.shape[1], language.n_brackets
        known = listed or size <= brackets + 1  # the brackets, and perhaps START
        if not known or (size <= table.max() and size != brackets):
            rule = f"have {brackets} columns, or come with `tokens`, the columns of the brackets"
            raise checks.reject("model", rule, f"{size} columns")
        if kind == "probabilities":
            if (found < 0).any():
                raise checks.reject("model", 'return probabilities, or have kind="logits"', f"{found.min():.3g}")
            checks.sum_to_one("model", found.sum(axis=1), within=1e-3)
        elif found.min() >= 0 and np.allclose(found.sum(axis=1), 1, rtol=0, atol=1e-6):
            rule = 'return logits, or have kind="probabilities": these sum to one'
            raise checks.reject("model", rule, found[0].tolist())
        chosen = found[:, table] if size > table.max() else found
        lost = chosen.sum(axis=1) == 0 if kind == "probabilities" else np.isneginf(chosen).all(axis=1)
        if lost.any() or np.isposinf(chosen).any():
            rule = "leave a bracket possible after each prefix, with finite scores"
            raise checks.reject("model", rule, chosen[np.argmax(lost)].tolist())
        return chosen

    return scores


def _vectors(sums, table, first, one) -> Callable[[np.ndarray], np.ndarray]:
    def vectors(rows: np.ndarray) -> np.ndarray:
        found = _answers("sums", sums, _fed(rows, table, first), one)
        return checks.finite_array("sums", found)

    return vectors


def _grouped(model: Model, prefixes: Iterable, ask: Callable, width: int | None) -> np.ndarray:
    """Answers for prefixes of any lengths: those of one length are asked together, some at a time."""
    listed = checks.listed("prefixes", prefixes, "be an iterable of prefixes")
    encoded = [model.language.encode(prefix) for prefix in listed]
    if not encoded:
        raise checks.reject("prefixes", "hold at least one prefix", "none")
    lengths = np.array([prefix.size for prefix in encoded])
    if model.longest is not None and lengths.max() > model.longest:
        raise checks.reject(
            "prefixes", f"have at most {model.longest} brackets, the most that the model reads", lengths.max()
        )
    if lengths.min() < model.shortest:
        raise checks.reject("prefixes", "not be empty for a model without `start`", "the empty prefix")
    rows: list[np.ndarray | None] = [None] * len(encoded)
    for length in np.unique(lengths):
        chosen = np.flatnonzero(lengths == length)
        for part in np.array_split(chosen, -(-chosen.size * (int(length) + 1) // _TOKENS_A_CALL)):
            if part.size == 0:
                continue
            answers = ask(np.stack([encoded[number] for number in part]))
            for number, answer in zip(part, answers, strict=True):
                rows[number] = answer
    return np.stack([row for row in rows if row is not None])


def _tried(model: Model) -> Model:
    """The model, after two prefixes together, again and alone: outputs must be the same each time."""
    one, other = _two(model.language)
    asks = [model.scores] if model.sums is None else [model.scores, model.sums]
    for ask in asks:
        name = "sums" if ask is model.sums else "model"
        both = ask(np.array([one, other]))
        scale = max(1.0, float(np.abs(both[np.isfinite(both)]).max(initial=0)))
        _same(ask(np.array([one, other])), both, scale, name, "the same prefix the same output each time (.eval()?)")
        rule = "each prefix an output that no other prefix of its batch changes"
        _same(np.concatenate([ask(np.array([row])) for row in (one, other)]), both, scale, name, rule)
    return model


def _same(found: np.ndarray, before: np.ndarray, scale: float, name: str, rule: str) -> None:
    with np.errstate(invalid="ignore"):
        gap = np.where(found == before, 0.0, np.abs(found - before))
    if not gap.max() <= _SAME * scale:
        raise checks.reject(name, f"give {rule}", f"a difference of {gap.max():.3g}")


def _two(language: DyckLanguage) -> Sequence[list[int]]:
    """Two prefixes of two brackets, unlike each other where the language has such."""
    if language.n_types > 1:
        return [0, 1], [2, 3]
    return [0, 1], [0, 0] if language.max_depth > 1 else [0, 1]
