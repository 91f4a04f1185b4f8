"""Valid calls of this room's public functions, which the hostile tests vary, and what only the room itself makes."""

# ruff: noqa: C408
import hostile
import numpy as np
from yzflow_bounded_dyck import (
    DyckLanguage,
    approximate,
    balance,
    gpt,
    hypotheses,
    larger,
    lottery,
    networks,
    pruning,
    silence,
    subset_law,
    transformers,
)

EXEMPT = {
    hostile.OURS: {"bounded_dyck.pruned.Fit"},
    hostile.RECORD: {
        "bounded_dyck.approximate.FromLoss",
        "bounded_dyck.approximate.Reach",
        "bounded_dyck.pruned.PrunedPart",
        "bounded_dyck.lottery.PrunedTransformer",
        "bounded_dyck.pruning.Pruned",
        "bounded_dyck.pruning.PrunedDyckLayer",
    },
}


def calls():
    """Name -> (callable, arguments); made anew, so that no call sees another's objects."""
    X = np.eye(2)
    dyck = DyckLanguage(2, 3)
    dyck_bags = dyck.sample(3, max_length=4, rng=0)
    balanced = balance.balanced_layer(dyck, 0)
    network = networks.ReluNetwork((X, X))
    given = transformers.random_transformer(2, 1, [2], 1, 0, floor=1.0)
    layer = given.layers[0]
    random = lottery.room_for(given, 1, 0)
    pruned = lottery.prune_transformer(given, random)
    rows = np.zeros((1, 2, 2))
    return {
        **{f"bounded_dyck.lottery.PrunedTransformer.{name}": (getattr(pruned, name), arguments) for name, arguments in {
            "__call__": dict(tokens=rows), "error": dict(tokens=rows), "certificate": dict(radius=1.0),
            "certificate_on": dict(tokens=rows), "errors_by_layer": dict(radius=1.0),
        }.items()},
        "bounded_dyck.lottery.indistinguishable_transformers": (lottery.indistinguishable_transformers, dict(
            first=given, second=given, random=lottery.room_for(given, 1, 0, spare=2), layer=0)),
        "bounded_dyck.lottery.prune_transformer": (lottery.prune_transformer, dict(
            target=given, random=random, place=0)),
        "bounded_dyck.lottery.room_for": (lottery.room_for, dict(target=given, n=1, rng=0, spare=0, residual=1.0)),
        "bounded_dyck.subset_law.expected": (subset_law.expected, dict(pruned=pruned, rng=0)),
        "bounded_dyck.subset_law.nearest_sums": (subset_law.nearest_sums, dict(wanted=[0.5], sizes=[1.0, 0.5], rng=0)),
        "bounded_dyck.transformers.Transformer": (transformers.Transformer, dict(layers=(layer,), floor=1.0)),
        "bounded_dyck.transformers.Transformer.__call__": (given, dict(tokens=rows)),
        "bounded_dyck.transformers.Transformer.states": (given.states, dict(tokens=rows)),
        "bounded_dyck.transformers.TransformerLayer": (transformers.TransformerLayer, dict(
            key=layer.key, query=layer.query, value=layer.value, network=layer.network, residual=1.0)),
        "bounded_dyck.transformers.TransformerLayer.__call__": (layer, dict(tokens=rows, floor=1.0)),
        "bounded_dyck.transformers.TransformerLayer.attention": (layer.attention, dict(tokens=rows)),
        "bounded_dyck.transformers.TransformerLayer.mixed": (layer.mixed, dict(tokens=rows)),
        "bounded_dyck.transformers.layer_norm": (transformers.layer_norm, dict(rows=rows, floor=1.0)),
        "bounded_dyck.transformers.random_transformer": (transformers.random_transformer, dict(
            width=2, attention=1, hidden=[2], n_layers=1, rng=0, floor=1.0, norm=1.0, residual=1.0)),
        "bounded_dyck.larger.balanced_transformer": (larger.balanced_transformer, dict(
            language=dyck, rng=0, scale=1.0)),
        "bounded_dyck.larger.encoded": (larger.encoded, dict(language=dyck, prefix=[0, 1])),
        "bounded_dyck.larger.isometry": (larger.isometry, dict(width=2, wider=3, rng=0)),
        "bounded_dyck.larger.wider": (larger.wider, dict(transformer=given, width=3, rng=0, attention=1, units=1)),
        "bounded_dyck.larger.identity_layer": (larger.identity_layer, dict(width=2, rng=0, attention=1)),
        "bounded_dyck.larger.deeper": (larger.deeper, dict(transformer=given, more=1, rng=0, at=0)),
        "bounded_dyck.silence.may_be_silent": (silence.may_be_silent, dict(language=dyck, silent=[(0, 3)])),
        "bounded_dyck.silence.memory_head": (silence.memory_head, dict(layer=balanced, language=dyck)),
        "bounded_dyck.silence.silent_layer": (silence.silent_layer, dict(language=dyck, silent=[(0, 3)], rng=0)),
        "bounded_dyck.silence.stacks": (silence.stacks, dict(language=dyck)),
        "bounded_dyck.gpt.closed_form": (gpt.closed_form, dict(layer=balanced, language=dyck)),
        "bounded_dyck.gpt.distances": (gpt.distances, dict(layer=balanced, language=dyck, n=2,
                                                           queries=np.ones_like(balanced.V))),
        "bounded_dyck.gpt.gathered": (gpt.gathered, dict(layer=balanced, language=dyck, n=2)),
        "bounded_dyck.gpt.least_loss": (gpt.least_loss, dict(distance=[0.5, 1.0], lipschitz=2.0)),
        "bounded_dyck.approximate.apart": (approximate.apart, dict(language=dyck)),
        "bounded_dyck.approximate.excess": (approximate.excess, dict(layer=balanced, bags=dyck_bags)),
        "bounded_dyck.approximate.from_loss": (approximate.from_loss, dict(
            layer=balanced, language=dyck, max_length=5)),
        "bounded_dyck.approximate.kept_apart": (approximate.kept_apart, dict(layer=balanced, bags=dyck_bags)),
        "bounded_dyck.approximate.kept_behind": (approximate.kept_behind, dict(layer=balanced, language=dyck, n=3)),
        "bounded_dyck.approximate.lipschitz": (approximate.lipschitz, dict(layer=balanced)),
        "bounded_dyck.approximate.miss": (approximate.miss, dict(layer=balanced, language=dyck)),
        "bounded_dyck.approximate.reach": (approximate.reach, dict(layer=balanced, language=dyck, share=0.5)),
        "bounded_dyck.balance.balanced_layer": (balance.balanced_layer, dict(language=dyck, rng=0, scale=1.0,
                                                                             decoder=True)),
        "bounded_dyck.balance.balancing_values": (balance.balancing_values, dict(Z=balanced.Z, language=dyck)),
        "bounded_dyck.balance.residual": (balance.residual, dict(Z=balanced.Z, language=dyck)),
        "bounded_dyck.balance.closing_accuracy": (balance.closing_accuracy, dict(layer=balanced, language=dyck,
                                                                                 bags=dyck_bags, head=None)),
        **{f"bounded_dyck.balance.{f.__name__}": (f, dict(layer=balanced, language=dyck, scaled=False))
           for f in (balance.contributions, balance.insertions)},
        **{f"bounded_dyck.balance.{f.__name__}": (f, dict(layer=balanced, language=dyck, lengths=[1, 4]))
           for f in (balance.drift, balance.predicted_accuracy)},
        **{f"bounded_dyck.balance.{f.__name__}": (f, dict(layer=balanced, language=dyck))
           for f in (balance.exact_head, balance.violation)},
        "bounded_dyck.balance.smallest_coordinate": (balance.smallest_coordinate, dict(layer=balanced, language=dyck,
                                                                                      queries=[6, 7])),
        "bounded_dyck.hypotheses.one_type_layer": (hypotheses.one_type_layer, dict(language=DyckLanguage(1, 3))),
        "bounded_dyck.hypotheses.balanced_at_closing_queries": (hypotheses.balanced_at_closing_queries, dict(
            language=dyck, rng=0)),
        "bounded_dyck.hypotheses.encoded_layer": (hypotheses.encoded_layer, dict(
            layer=balanced, encodings=np.eye(dyck.n_states))),
        "bounded_dyck.hypotheses.linked_features": (hypotheses.linked_features, dict(layer=balanced, bags=dyck_bags)),
        "bounded_dyck.hypotheses.linked_head": (hypotheses.linked_head, dict(layer=balanced, language=dyck)),
        "bounded_dyck.balance.matched_pairs": (balance.matched_pairs, dict(language=dyck, lengths=4)),
        "bounded_dyck.balance.pairs": (balance.pairs, dict(language=dyck)),
        "bounded_dyck.balance.queries": (balance.queries, dict(language=dyck)),
        "bounded_dyck.networks.ReluNetwork": (networks.ReluNetwork, dict(weights=(X, X), biases=([0, 0], [0, 0]))),
        "bounded_dyck.networks.ReluNetwork.__call__": (network, dict(inputs=X)),
        "bounded_dyck.pruning.PrunedDyckLayer.predict": (
            pruning.prune_balanced_layer(DyckLanguage(1, 1), 1, 0).predict,
            dict(bags=DyckLanguage(1, 1).sample(1, max_length=2, rng=0))),
        "bounded_dyck.pruning.identity_network": (pruning.identity_network, dict(size=2, n_layers=2)),
        "bounded_dyck.pruning.indistinguishable": (pruning.indistinguishable, dict(first=network, second=network,
                                                                                   matrix=0, n=1, rng=0)),
        "bounded_dyck.pruning.is_pruning": (pruning.is_pruning, dict(pruned=[X], original=[X])),
        "bounded_dyck.pruning.max_row_norm": (pruning.max_row_norm, dict(matrix=X)),
        "bounded_dyck.pruning.pad": (pruning.pad, dict(network=network, sizes=[2, 3, 2])),
        "bounded_dyck.pruning.prune_balanced_layer": (pruning.prune_balanced_layer, dict(
            language=DyckLanguage(1, 1), n=1, rng=0, scale=0.0)),
        **{f"bounded_dyck.pruning.{f.__name__}": (f, dict(matrix=X, n=1, rng=0))
           for f in (pruning.prune_linear, pruning.prune_product)},
        "bounded_dyck.pruning.prune_network": (pruning.prune_network, dict(network=network, n=1, rng=0)),
        "bounded_dyck.pruning.subset_sum": (pruning.subset_sum, dict(values=[0.5, 1.0], target=1.0)),
    }  # fmt: skip
