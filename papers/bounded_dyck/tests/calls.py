"""Valid calls of this room's public functions, which the hostile tests vary, and what only the room itself makes."""

# ruff: noqa: C408
import json
import re
from pathlib import Path

import hostile
import numpy as np
from yzflow_bounded_dyck import (
    DyckLanguage,
    approximate,
    balance,
    from_tokens,
    gpt,
    heads,
    hypotheses,
    interpolating,
    languages,
    larger,
    loops,
    lottery,
    models,
    networks,
    outputs,
    pruning,
    silence,
    smoothing,
    subset_law,
    transformers,
    widths,
)
from yzflow_bounded_dyck.dyck import checked_lengths

# Modules whose names are no calls for users: proofs and checks, and what the engines ask of a paper.
INNER = re.compile(
    r"\._|\.(proofs|measures|measures_of_heads|measures_of_lemmas|measures_of_models|measures_of_pruning|measures_of_widths|statements|bounds|bounds_on_inputs|values|settings|tasks|training|views|panel|questions)\b"
)
# What a model of the reader raises is not ours.
FUNCTIONS = {"model", "sums", "scores"}
EXEMPT = {
    hostile.RAISED: {"languages.Language"},
    hostile.OURS: {"pruned.Fit"},
    "a bound of a change by other changes, which takes what a certificate has measured": {
        f"bounds.{name}"
        for name in (
            "attention_change",
            "chain_norm",
            "logit_spread",
            "network_change",
            "norm_change",
            "padded_norm_change",
            "read_change",
        )
    },
    hostile.RECORD: {
        "dyck.State",
        "languages.Seen",
        "loops.Known",
        "approximate.FromLoss",
        "approximate.Reach",
        "outputs.Examination",
        "outputs.Reach",
        "pruned.PrunedPart",
        "lottery.PrunedTransformer",
        "pruning.Pruned",
        "pruning.PrunedDyckLayer",
    },
}


def _languages():
    dyck = DyckLanguage(2, 3)
    return {
        "dyck.DyckLanguage": (DyckLanguage, dict(n_types=2, max_depth=3, open_probability=0.5)),
        "dyck.DyckLanguage.open": (dyck.open, dict(type=0, depth=1)),
        "dyck.DyckLanguage.close": (dyck.close, dict(type=0, depth=0)),
        "dyck.DyckLanguage.partner": (dyck.partner, dict(state=0)),
        **{f"dyck.DyckLanguage.{name}": (getattr(dyck, name), dict(prefix="(["))
           for name in ("encode", "state_sequence", "stack", "configuration", "next_token", "log_probability")},
        "dyck.DyckLanguage.prefixes": (dyck.prefixes, dict(length=2)),
        "dyck.DyckLanguage.enumerate": (dyck.enumerate, dict(max_length=2, min_length=1, kind="prefix",
                                                                  positions="last")),
        "dyck.DyckLanguage.sample": (dyck.sample, dict(n=2, max_length=4, rng=0, kind="word", min_length=1,
                                                            positions="all")),
        "dyck.DyckLanguage.sample_sequences": (dyck.sample_sequences, dict(n=2, max_length=4, rng=0,
                                                                                kind="prefix", min_length=1)),
        "dyck.DyckLanguage.bags": (dyck.bags, dict(prefixes=["(", "()"], positions="last", weight=[0.5, 0.5])),
        "dyck.DyckLanguage.embedding": (dyck.embedding, dict(kind="one-hot")),
    }  # fmt: skip


def _automata():
    tables = {"s": {"a": {"to": "s", "probability": 0.5}, "b": {"to": "s", "probability": 0.5, "label": "x"}}}
    Path("automaton.json").write_text(json.dumps({"start": "s", "transitions": tables}), encoding="utf-8")
    own, counters = languages.Automaton(tables, "s"), languages.shuffle_language(2, 1)
    layer = loops.balanced_layer_of(counters, 0)
    bags, head = counters.bags([[], [0]]), loops.Head(layer, counters)
    drawn = dict(n=2, max_length=4, rng=0, kind="word", min_length=1)
    return {
        "languages.Automaton": (languages.Automaton, dict(transitions=tables, start="s")),
        **{f"languages.Automaton.{name}": (getattr(own, name), dict(prefix="ab"))
           for name in ("encode", "state_sequence", "configuration", "next_token")},
        "languages.Automaton.load": (languages.Automaton.load, dict(path="automaton.json")),
        "languages.Automaton.enumerate": (own.enumerate, dict(max_length=2, min_length=1, kind="prefix",
                                                                 positions="last")),
        "languages.Automaton.sample": (own.sample, drawn | dict(positions="all")),
        "languages.Automaton.sample_sequences": (own.sample_sequences, drawn),
        "languages.Automaton.bags": (own.bags, dict(prefixes=["a", "ab"], positions="last", weight=[0.5, 0.5])),
        "languages.shuffle_language": (languages.shuffle_language, dict(n_types=2, max_count=1, open_probability=0.5,
                                                                           label="count")),
        **{f"loops.{name}": (getattr(loops, name), dict(language=counters))
           for name in ("simple_loops", "queries_in_doubt", "known")},
        "loops.loop_sums": (loops.loop_sums, dict(layer=layer, language=counters, scaled=True)),
        "loops.loop_violation": (loops.loop_violation, dict(layer=layer, language=counters)),
        "loops.balanced_layer_of": (loops.balanced_layer_of, dict(language=counters, rng=0, scale=1.0)),
        "loops.Head": (loops.Head, dict(layer=layer, language=counters)),
        "loops.Head.__call__": (head, dict(bags=bags)),
    }  # fmt: skip


def _transformers():
    dyck = DyckLanguage(2, 3)
    given = transformers.random_transformer(2, 1, [2], 1, 0, floor=1.0)
    layer = given.layers[0]
    random = lottery.room_for(given, 1, 0)
    pruned = lottery.prune_transformer(given, random)
    rows = np.zeros((1, 2, 2))
    return {
        **{f"lottery.PrunedTransformer.{name}": (getattr(pruned, name), arguments) for name, arguments in {
            "__call__": dict(tokens=rows), "error": dict(tokens=rows), "certificate": dict(radius=1.0),
            "certificate_on": dict(tokens=rows), "errors_by_layer": dict(radius=1.0),
        }.items()},
        "lottery.indistinguishable_transformers": (lottery.indistinguishable_transformers, dict(
            first=given, second=given, random=lottery.room_for(given, 1, 0, spare=2), layer=0)),
        "lottery.prune_transformer": (lottery.prune_transformer, dict(
            target=given, random=random, place=0)),
        "lottery.room_for": (lottery.room_for, dict(target=given, n=1, rng=0, spare=0, residual=1.0)),
        "subset_law.expected": (subset_law.expected, dict(pruned=pruned, rng=0)),
        "subset_law.nearest_sums": (subset_law.nearest_sums, dict(wanted=[0.5], sizes=[1.0, 0.5], rng=0)),
        "transformers.Transformer": (transformers.Transformer, dict(layers=(layer,), floor=1.0)),
        "transformers.Transformer.__call__": (given, dict(tokens=rows)),
        "transformers.Transformer.states": (given.states, dict(tokens=rows)),
        "transformers.TransformerLayer": (transformers.TransformerLayer, dict(
            key=layer.key, query=layer.query, value=layer.value, network=layer.network, residual=1.0)),
        "transformers.TransformerLayer.__call__": (layer, dict(tokens=rows, floor=1.0)),
        "transformers.TransformerLayer.attention": (layer.attention, dict(tokens=rows)),
        "transformers.TransformerLayer.mixed": (layer.mixed, dict(tokens=rows)),
        "transformers.layer_norm": (transformers.layer_norm, dict(rows=rows, floor=1.0)),
        "transformers.random_transformer": (transformers.random_transformer, dict(
            width=2, attention=1, hidden=[2], n_layers=1, rng=0, floor=1.0, norm=1.0, residual=1.0)),
        "larger.balanced_transformer": (larger.balanced_transformer, dict(
            language=dyck, rng=0, scale=1.0)),
        "larger.encoded": (larger.encoded, dict(language=dyck, prefix=[0, 1])),
        "larger.isometry": (larger.isometry, dict(width=2, wider=3, rng=0)),
        "larger.wider": (larger.wider, dict(transformer=given, width=3, rng=0, attention=1, units=1)),
        "larger.identity_layer": (larger.identity_layer, dict(width=2, rng=0, attention=1)),
        "larger.deeper": (larger.deeper, dict(transformer=given, more=1, rng=0, at=0)),
    }  # fmt: skip


def _layers():
    dyck = DyckLanguage(2, 3)
    dyck_bags = dyck.sample(3, max_length=4, rng=0)
    balanced = balance.balanced_layer(dyck, 0)
    return {
        "silence.may_be_silent": (silence.may_be_silent, dict(language=dyck, silent=[(0, 3)])),
        "silence.memory_head": (silence.memory_head, dict(layer=balanced, language=dyck)),
        "silence.silent_layer": (silence.silent_layer, dict(language=dyck, silent=[(0, 3)], rng=0)),
        "silence.stacks": (silence.stacks, dict(language=dyck)),
        "gpt.closed_form": (gpt.closed_form, dict(layer=balanced, language=dyck)),
        "gpt.distances": (gpt.distances, dict(layer=balanced, language=dyck, n=2,
                                                           queries=np.ones_like(balanced.V))),
        "gpt.gathered": (gpt.gathered, dict(layer=balanced, language=dyck, n=2)),
        "gpt.linked_rate": (gpt.linked_rate, dict(layer=balanced, language=dyck, queries=np.ones_like(balanced.V))),
        "gpt.layer_on_a_line": (gpt.layer_on_a_line, dict(language=dyck, rng=0)),
        "gpt.least_loss": (gpt.least_loss, dict(distance=[0.5, 1.0], lipschitz=2.0)),
        "approximate.apart": (approximate.apart, dict(language=dyck)),
        "approximate.excess": (approximate.excess, dict(layer=balanced, bags=dyck_bags)),
        "approximate.from_loss": (approximate.from_loss, dict(
            layer=balanced, language=dyck, max_length=5)),
        "approximate.kept_apart": (approximate.kept_apart, dict(layer=balanced, bags=dyck_bags)),
        "approximate.kept_behind": (approximate.kept_behind, dict(layer=balanced, language=dyck, n=3)),
        "approximate.lipschitz": (approximate.lipschitz, dict(layer=balanced)),
        "approximate.miss": (approximate.miss, dict(layer=balanced, language=dyck)),
        "approximate.reach": (approximate.reach, dict(layer=balanced, language=dyck, share=0.5)),
        "balance.balanced_layer": (balance.balanced_layer, dict(language=dyck, rng=0, scale=1.0,
                                                                             decoder=True)),
        "balance.balancing_values": (balance.balancing_values, dict(Z=balanced.Z, language=dyck)),
        "balance.residual": (balance.residual, dict(Z=balanced.Z, language=dyck)),
        "balance.closing_accuracy": (balance.closing_accuracy, dict(layer=balanced, language=dyck,
                                                                                 bags=dyck_bags, head=None)),
        **{f"balance.{f.__name__}": (f, dict(layer=balanced, language=dyck, scaled=False))
           for f in (balance.contributions, balance.insertions)},
        **{f"balance.{f.__name__}": (f, dict(layer=balanced, language=dyck, lengths=[1, 4]))
           for f in (balance.drift, balance.predicted_accuracy)},
        **{f"balance.{f.__name__}": (f, dict(layer=balanced, language=dyck))
           for f in (balance.exact_head, balance.violation)},
        "balance.smallest_coordinate": (balance.smallest_coordinate, dict(layer=balanced, language=dyck,
                                                                                      queries=[6, 7])),
        "hypotheses.one_type_layer": (hypotheses.one_type_layer, dict(language=DyckLanguage(1, 3))),
        "hypotheses.balanced_at_closing_queries": (hypotheses.balanced_at_closing_queries, dict(
            language=dyck, rng=0)),
        "hypotheses.encoded_layer": (hypotheses.encoded_layer, dict(
            layer=balanced, encodings=np.eye(dyck.n_states))),
        "hypotheses.linked_features": (hypotheses.linked_features, dict(layer=balanced, bags=dyck_bags)),
        "hypotheses.linked_head": (hypotheses.linked_head, dict(layer=balanced, language=dyck)),
        "balance.matched_pairs": (balance.matched_pairs, dict(language=dyck, lengths=4)),
        "balance.pairs": (balance.pairs, dict(language=dyck)),
        "balance.queries": (balance.queries, dict(language=dyck)),
    }  # fmt: skip


def _heads():
    dyck = DyckLanguage(2, 3)
    two, bags = heads.shifted_heads(dyck, 2, 0), dyck.sample(3, max_length=4, rng=0)
    link, layer = np.ones_like(two[0].V), balance.balanced_layer(dyck, 0)
    return {
        "heads.features": (heads.features, dict(heads=two, bags=bags, link=link)),
        "heads.left_of_pairs": (heads.left_of_pairs, dict(
            heads=two, language=dyck, numbers=np.ones((1, 2, 3)), link=link)),
        "heads.opposite_heads": (heads.opposite_heads, dict(language=dyck, width=2, rng=0)),
        "heads.own_constants": (heads.own_constants, dict(heads=two, language=dyck)),
        "heads.shifted_heads": (heads.shifted_heads, dict(language=dyck, n_heads=2, rng=0, size=1.0)),
        "heads.stack_head": (heads.stack_head, dict(heads=two, language=dyck)),
        "smoothing.best_gap": (smoothing.best_gap, dict(probability=[0.5], n_brackets=4, smoothing=0.1)),
        "smoothing.smoothed": (smoothing.smoothed, dict(targets=[0.5, 0.5], smoothing=0.1)),
        "smoothing.smoothed_head": (smoothing.smoothed_head, dict(layer=layer, language=dyck, smoothing=0.1)),
    }  # fmt: skip


def _networks():
    X = np.eye(2)
    network = networks.ReluNetwork((X, X))
    return {
        "networks.ReluNetwork": (networks.ReluNetwork, dict(weights=(X, X), biases=([0, 0], [0, 0]))),
        "networks.ReluNetwork.__call__": (network, dict(inputs=X)),
        "pruning.PrunedDyckLayer.predict": (
            pruning.prune_balanced_layer(DyckLanguage(1, 1), 1, 0).predict,
            dict(bags=DyckLanguage(1, 1).sample(1, max_length=2, rng=0))),
        "pruning.identity_network": (pruning.identity_network, dict(size=2, n_layers=2)),
        "pruning.indistinguishable": (pruning.indistinguishable, dict(first=network, second=network,
                                                                                   matrix=0, n=1, rng=0)),
        "pruning.is_pruning": (pruning.is_pruning, dict(pruned=[X], original=[X])),
        "pruning.max_row_norm": (pruning.max_row_norm, dict(matrix=X)),
        "pruning.pad": (pruning.pad, dict(network=network, sizes=[2, 3, 2])),
        "pruning.prune_balanced_layer": (pruning.prune_balanced_layer, dict(
            language=DyckLanguage(1, 1), n=1, rng=0, scale=0.0)),
        **{f"pruning.{f.__name__}": (f, dict(matrix=X, n=1, rng=0))
           for f in (pruning.prune_linear, pruning.prune_product)},
        "pruning.prune_network": (pruning.prune_network, dict(network=network, n=1, rng=0)),
        "pruning.subset_sum": (pruning.subset_sum, dict(values=[0.5, 1.0], target=1.0)),
    }  # fmt: skip


def _widths():
    rule, network = dict(accuracy=0.1, failure=0.1), networks.ReluNetwork((np.eye(2), np.eye(2)))
    return {
        "interpolating.interpolating_network": (
            interpolating.interpolating_network,
            dict(points=[[0.0], [1.0]], values=[[1.0], [2.0]]),
        ),
        "interpolating.index_network": (interpolating.index_network, dict(size=2, least=0.5)),
        "interpolating.picking_network": (interpolating.picking_network, dict(size=2, bound=1.0)),
        "interpolating.switching_network": (
            interpolating.switching_network,
            dict(networks=[network, network], bound=1.0),
        ),
        "interpolating.separating_basis": (interpolating.separating_basis, dict(points=[[0.0, 1.0], [1.0, 0.0]])),
        "widths.units_of_network": (widths.units_of_network, dict(shapes=[(2, 3), (1, 2)], **rule)),
        "widths.missed_targets": (widths.missed_targets, dict(sizes=[1.0, 0.5], length=0.5, accuracy=0.1)),
        "widths.units_of_linear": (widths.units_of_linear, dict(shape=(2, 3), **rule, largest=1.0)),
        "widths.rows_of_product": (widths.rows_of_product, dict(size=2, **rule, largest=1.0)),
        "widths.too_few_products": (widths.too_few_products, rule),
        "widths.entries_found": (widths.entries_found, dict(blocks=2, width=3, least=0.5)),
        "widths.width_of_entries": (widths.width_of_entries, dict(blocks=2, failure=0.1, least=0.5)),
    }


def _from_tokens():
    model = from_tokens.token_transformer(DyckLanguage(1, 2), 0)
    return {
        "from_tokens.Part": (from_tokens.Part, vars(model.parts[0])),
        "from_tokens.TokenTransformer": (from_tokens.TokenTransformer, vars(model)),
        "from_tokens.TokenTransformer.__call__": (model, dict(prefix=[0, 1])),
        "from_tokens.TokenTransformer.stream": (model.stream, dict(prefix=[0, 1], parts=2)),
        "from_tokens.TokenTransformer.distribution": (model.distribution, dict(prefix=[0, 1])),
        "from_tokens.token_transformer": (from_tokens.token_transformer, dict(
            language=DyckLanguage(1, 2), rng=0, scale=1.0, sharpness=0.0, low=800.0)),
    }  # fmt: skip


def _guess(prefixes):
    return np.zeros((len(prefixes), 2))


def _models():
    dyck = DyckLanguage(1, 2)
    model = models.of(_guess, dyck, sums=_guess)
    settings = dict(kind="logits", one=False, tokens=[0, 1], start=2, longest=50, sums=_guess)
    asked = dict(prefixes=[[0], [0, 1]])
    return {
        "dyck.checked_lengths": (checked_lengths, dict(min_length=1, max_length=2, kind="prefix")),
        "models.Model": (models.Model, vars(model)),
        **{f"models.Model.{name}": (getattr(model, name), asked)
           for name in ("distribution", "log_distribution", "sums_before_norm")},
        "outputs.Examination.reach": (outputs.examine(model, lengths=[2], n=2).reach, dict(share=0.9)),
        "models.of": (models.of, dict(model=_guess, language=dyck) | settings),
        "outputs.examine": (outputs.examine, dict(model=model, lengths=[2], n=2, pairs=[1], stacks=2, rng=0)),
    }  # fmt: skip


def calls():
    """Name -> (callable, arguments); made anew, so that no call sees another's objects."""
    groups = (_languages, _automata, _transformers, _layers, _heads, _networks, _widths, _from_tokens, _models)
    return {name: call for group in groups for name, call in group().items()}
