"""Valid calls of this room's public functions, which the hostile tests vary, and what only the room itself makes."""

# ruff: noqa: C408
import re
from functools import partial

import hostile
import numpy as np
from yzflow_sparse_averaging import (
    attention_only,
    averaging,
    circuits,
    constructed_units,
    faces,
    groups,
    instances,
    keys,
    matching,
    moments,
    other_architectures,
    power_sums,
    precision,
    protocols,
    recurrent,
    sizes,
    sorted_groups,
    strict,
    transform,
    windows,
)
from yzflow_sparse_averaging import attention_unit as trained
from yzflow_sparse_averaging.trained import linear_query, qsa

from dynamics.support import netcdf

# Modules whose names are no calls for users: proofs and checks, and what the engines ask of a paper.
INNER = re.compile(
    r"\._|\.(proofs|measures|measures_strict|measures_faces|measures_ball|statements|values|settings|constructions|views|"
    r"panel|questions|kinds)\b"
)
LIMITS = {"yzflow_sparse_averaging.instances._MOST_CASES": 2**16}
# Arguments that are functions: what those raise is not ours.
FUNCTIONS = {"phi", "query", "key", "value", "keys", "values", "heads", "layers", "maps"}
EXEMPT = {
    hostile.RECORD: {
        "keys.Certificate",
        "power_sums.AveragingLayer",
        "matching.MatchTransformer",
        "matching.MatchUnit",
        "faces.LostSet",
        "other_architectures.Collision",
        "protocols.ProtocolRun",
        "recurrent.IndexRun",
        "sizes.Size",
    },
    hostile.OURS: {f"parts.{name}" for name in ("Head", "Layers", "Layout", "Part", "total")},
    hostile.RAISED: {"keys.Infeasible"},
}


def _tasks():
    rng = partial(np.random.default_rng, 0)
    z, y = np.full((3, 1), 0.5), np.array([[0, 1], [1, 2], [0, 2]])
    return {
        "instances.adversarial_match": (instances.adversarial_match, dict(n_tokens=3, modulus=7, order=2)),
        "instances.adversarial_subsets": (instances.adversarial_subsets, dict(keys=np.eye(3), subset_size=1, sign=1)),
        "instances.all_match": (instances.all_match, dict(n_tokens=2, modulus=3)),
        "instances.all_subsets": (instances.all_subsets, dict(n_tokens=3, subset_size=2)),
        "instances.attention_error": (instances.attention_error, dict(attention=np.full((3, 3), 1 / 3), y=y)),
        "instances.worst_values": (instances.worst_values, dict(attention=np.full((3, 3), 1 / 3), y=y)),
        "instances.match2": (instances.match2, dict(x=[1, 2], modulus=3)),
        "instances.match3": (instances.match3, dict(x=[1, 2], modulus=3)),
        "instances.match_tokens": (instances.match_tokens, dict(x=[1, 2], blank=True)),
        "instances.qsa_tokens": (instances.qsa_tokens, dict(z=z, y=y)),
        "instances.sparse_average": (instances.sparse_average, dict(z=z, y=y)),
        "instances.random_match": (instances.random_match, dict(n_tokens=3, modulus=7, size=2, rng=rng(), order=2,
                                                                 planted=0.5)),
        "instances.random_qsa": (instances.random_qsa, dict(n_tokens=3, subset_size=2, dim=1, size=1, rng=rng())),
        "instances.random_subsets": (instances.random_subsets, dict(n_tokens=3, subset_size=2, size=1, rng=rng())),
    }  # fmt: skip


def _units():
    X, maps = np.eye(2), (lambda X: X, lambda X: X, lambda X: X)
    unit = trained.AttentionUnit(X, X, X)
    tensor = trained.TensorAttentionUnit(maps[0], maps[:2], maps[:2], embedding_dim=2)
    single = {"X": X}
    return {
        "attention_unit.AttentionUnit": (trained.AttentionUnit, dict(Q=X, K=X, V=X, phi=None, scale=1.0,
                                                                         precision=trained.Precision())),
        "attention_unit.AttentionUnit.from_maps": (trained.AttentionUnit.from_maps, dict(
            query=maps[0], key=maps[1], value=maps[2], embedding_dim=2, scale=1.0, precision=None)),
        **{f"attention_unit.AttentionUnit.{name}": (getattr(unit, name), single)
           for name in ("queries", "keys", "values", "attention", "__call__")},
        "attention_unit.FixedPoint": (trained.FixedPoint, dict(bits=4, fraction_bits=2)),
        "attention_unit.FixedPoint.covering": (trained.FixedPoint.covering, dict(bits=4, bound=2.0)),
        "attention_unit.FixedPoint.round": (trained.FixedPoint(4, 2).round, dict(values=[0.3])),
        "attention_unit.MultiHeadLayer": (trained.MultiHeadLayer, dict(heads=[unit])),
        "attention_unit.MultiHeadLayer.__call__": (trained.MultiHeadLayer([unit]), single),
        "attention_unit.Precision": (trained.Precision, dict.fromkeys(("query", "key", "value", "output"))),
        "attention_unit.Precision.apply": (trained.Precision(trained.FixedPoint(4, 2)).apply, dict(
            name="query", values=X)),
        "attention_unit.TensorAttentionUnit": (trained.TensorAttentionUnit, dict(
            query=maps[0], keys=maps[:2], values=maps[:2], embedding_dim=2, scale=1.0, precision=None)),
        **{f"attention_unit.TensorAttentionUnit.{name}": (getattr(tensor, name), single)
           for name in ("queries", "keys", "values", "attention")},
        "attention_unit.TensorAttentionUnit.__call__": (tensor, single),
        "attention_unit.Transformer": (trained.Transformer, dict(layers=[trained.MultiHeadLayer([unit])],
                                                                     maps=[None, None])),
        "attention_unit.Transformer.__call__": (trained.Transformer([trained.MultiHeadLayer([unit])]), single),
        **{f"attention_unit.{f.__name__}": (f, dict(queries=X, keys=X, scale=1.0, precision=None) | more)
           for f, more in ((trained.attend, {"values": X}), (trained.attention_weights, {}))},
    }  # fmt: skip


def _trained():
    rng = partial(np.random.default_rng, 0)
    z, y = np.full((3, 1), 0.5), np.array([[0, 1], [1, 2], [0, 2]])
    X = np.eye(2)
    linear = linear_query.LinearQueryUnit(np.ones((3, 2)), np.eye(3)[:, :2], np.eye(1))
    small = {"n_tokens": 4, "subset_size": 2, "embedding_dim": 3, "value_dim": 1, "steps": 2, "batch_size": 1}
    training = qsa.train_qsa(**small)
    netcdf.save_dataset(training, "qsa.nc")
    return {
        "trained.linear_query.LinearQueryUnit": (linear_query.LinearQueryUnit, dict(query=X, key=X, value=X)),
        "trained.linear_query.LinearQueryUnit.random": (
            linear_query.LinearQueryUnit.random, dict(n_tokens=3, value_dim=1, embedding_dim=2, rng=rng())),
        "trained.linear_query.LinearQueryUnit.attention": (linear.attention, dict(y=y)),
        "trained.linear_query.LinearQueryUnit.loss": (linear.loss, dict(z=z[None], y=y[None])),
        "trained.linear_query.LinearQueryUnit.gradient": (linear.gradient, dict(z=z[None], y=y[None])),
        "trained.linear_query.LinearQueryUnit.expected_loss": (linear.expected_loss, dict(y=y)),
        "trained.qsa.load_training": (qsa.load_training, dict(path="qsa.nc")),
        "trained.qsa.train_qsa": (qsa.train_qsa, dict(
            **small, learning_rate=0.1, schedule="cosine", optimizer="adam", momentum=0.9, init="random", seed=0,
            record_every=1, times=(), checkpoint=None, progress=False)),
        "trained.qsa.unit_at": (qsa.unit_at, dict(dataset=training, at=2)),
    }  # fmt: skip


def _constructions():
    rng = partial(np.random.default_rng, 0)
    signs = keys.random_keys(4, 8, rng=rng())
    curve = moments.moment_curve(5, 2)
    histogram = matching.match3_histogram(n_tokens=3, modulus=5)
    circuit = circuits.match3_circuit(n_tokens=2, modulus=2)
    one_layer = power_sums.match3_power_sums(n_tokens=3, modulus=5, dimension=2)
    return {
        "attention_only.attention_only_transformer": (attention_only.attention_only_transformer, dict(
            circuit=circuits.Circuit(3, 1, ((0, 1, 8), (1, 2, 8), (0, 2, 8)), (3, 4, 5)), modulus=2)),
        "circuits.Circuit": (circuits.Circuit, dict(
            n_tokens=2, bits=1, gates=[(0, 1, 8), (1, 2, 7)], outputs=[2, 3])),
        "circuits.Circuit.__call__": (circuit, dict(x=[1, 0])),
        "circuits.circuit_transformer": (circuits.circuit_transformer, dict(
            circuit=circuit, modulus=2)),
        "circuits.match3_circuit": (circuits.match3_circuit, dict(n_tokens=2, modulus=3)),
        "power_sums.AveragingLayer.__call__": (one_layer, dict(x=[1, 2, 3])),
        **{f"power_sums.AveragingLayer.{name}": (getattr(one_layer, name), dict(x=[1, 2, 3]))
           for name in ("outputs", "residues")},
        "power_sums.match3_power_sums": (power_sums.match3_power_sums, dict(
            n_tokens=3, modulus=5, dimension=2)),
        "strict.strict_transformer": (strict.strict_transformer, dict(
            model=groups.match3_groups(root=1, modulus=3))),
        "groups.match3_groups": (groups.match3_groups, dict(root=2, modulus=5, spare_bits=0)),
        "matching.MatchTransformer.__call__": (histogram, dict(x=[1, 2, 3])),
        "matching.MatchUnit.__call__": (matching.match2(n_tokens=3, modulus=5, error=0.1), dict(
            x=[1, 2])),
        "matching.angle_gap": (matching.angle_gap, dict(modulus=5)),
        **{f"matching.{f.__name__}": (f, dict(n_tokens=3, modulus=5, error=0.1, scale=None))
           for f in (matching.match2, matching.match3_tensor)},
        **{f"matching.{f.__name__}": (f, dict(n_tokens=3, modulus=5))
           for f in (matching.match3_bigram, matching.match3_histogram)},
        "windows.match3_local": (windows.match3_local, dict(n_tokens=3, modulus=5, reach=1)),
        "sizes.counted_size": (sizes.counted_size, dict(model=histogram, x=[1, 2, 3])),
        "sizes.number_bits": (sizes.number_bits, dict(values=[1.0, -0.25])),
        "sorted_groups.feasible_triples": (sorted_groups.feasible_triples, dict(
            largest=[1, 4], modulus=5)),
        "sorted_groups.match3_sorted": (sorted_groups.match3_sorted, dict(
            n_tokens=4, modulus=5, spare_bits=0)),
        "transform.match3_transform": (transform.match3_transform, dict(
            n_tokens=4, modulus=5, spare_bits=0)),
        "constructed_units.moment_curve_unit": (constructed_units.moment_curve_unit, dict(
            curve=curve, error=0.1, value_dimension=1)),
        "constructed_units.random_keys_unit": (constructed_units.random_keys_unit, dict(
            keys=signs, q=1, error=0.1, value_dimension=1, method="exclusion", bits=8)),
    }  # fmt: skip


def _keys():
    rng = partial(np.random.default_rng, 0)
    signs = keys.random_keys(4, 8, rng=rng())
    curve = moments.moment_curve(5, 2)
    return {
        "keys.certificate": (keys.certificate, dict(
            keys=signs, subset=[0], method="exclusion", rho=0.9, level=0.35, throw=False)),
        "keys.error_bound": (keys.error_bound, dict(tau=1.0, n_tokens=4, q=2, rho=0.5)),
        "keys.guaranteed_dimension": (keys.guaranteed_dimension, dict(n_tokens=8, q=2, failure=0.1)),
        "keys.random_keys": (keys.random_keys, dict(n_tokens=4, dimension=2, rng=rng())),
        "keys.smallest_dimension": (keys.smallest_dimension, dict(
            n_tokens=6, q=1, rng=rng(), method="exclusion", sets="random", n_sets=2, maximum=100, rho=0.5, level=0.35)),
        "keys.temperature": (keys.temperature, dict(n_tokens=4, q=2, error=0.1, rho=0.5)),
        "moments.MomentCurve": (moments.MomentCurve, dict(n_tokens=5, q=2)),
        **{f"moments.MomentCurve.{name}": (getattr(curve, name), dict(subset=[0, 2]))
           for name in ("query", "scores", "gap", "query_bits")},
        "moments.MomentCurve.temperature": (curve.temperature, dict(error=0.1)),
        "moments.MomentCurve.attention": (curve.attention, dict(subset=[0, 2], error=0.1)),
        "moments.moment_curve": (moments.moment_curve, dict(n_tokens=5, q=2)),
        "faces.every_set_keys": (faces.every_set_keys, dict(n_tokens=6, q=2)),
        "faces.every_set_query": (faces.every_set_query, dict(n_tokens=6, q=2, subset=[1, 3])),
        "faces.least_dimension": (faces.least_dimension, dict(n_tokens=6, q=2)),
        "faces.least_error_of_sets": (faces.least_error_of_sets, dict(share=0.7, q=2)),
        "faces.lost_set": (faces.lost_set, dict(keys=np.arange(12.0).reshape(6, 2) % 5, q=2)),
        "moments.is_face": (moments.is_face, dict(subset=[1, 3], n_tokens=6, dimension=4)),
        "moments.no_face_witness": (moments.no_face_witness, dict(subset=[1, 3], n_tokens=6)),
        "precision.error_parts": (precision.error_parts, dict(attention=[0.5, 0.5], subset=[0])),
        "precision.rounded_query": (precision.rounded_query, dict(query=[0.5], tau=1.0, bits=4)),
        "precision.smallest_bits": (precision.smallest_bits, dict(
            keys=signs, query=signs[0], subset=[0], tau=5.0, error=0.5)),
        "precision.sufficient_bits": (precision.sufficient_bits, dict(query=[0.5], tau=1.0,
                                                                                       error=0.1)),
    }  # fmt: skip


def _bounds():
    rng = partial(np.random.default_rng, 0)
    memory = recurrent.memory_network(3, 1)
    return {
        "other_architectures.ball_error": (other_architectures.ball_error, dict(
            n_tokens=4, q=2, width=3, value_dimension=2)),
        "other_architectures.best_first_layer": (other_architectures.best_first_layer, dict(
            n_tokens=4, q=1, width=2, value_dimension=1)),
        "other_architectures.collision": (other_architectures.collision, dict(
            first_layer=np.ones((1, 4)), q=1, n_tokens=4, value_dimension=1, rng=rng())),
        "other_architectures.collision_error": (other_architectures.collision_error, dict(
            n_tokens=4, q=1, width=2, value_dimension=1)),
        "protocols.bit_strings": (protocols.bit_strings, dict(n=2)),
        "protocols.disjointness_matrix": (protocols.disjointness_matrix, dict(n=2)),
        "protocols.disjointness_residues": (protocols.disjointness_residues, dict(n=2, modulus=9)),
        "protocols.exact_rank": (protocols.exact_rank, dict(matrix=[[1, 0], [0, 1]])),
        "protocols.match3_protocol": (protocols.match3_protocol, dict(
            model=matching.match3_histogram(n_tokens=3, modulus=5), bits=8)),
        "protocols.qsa_protocol": (protocols.qsa_protocol, dict(
            unit=averaging.random_keys_unit(keys.random_keys(3, 16, rng=rng()), 1, error=0.5, bits=8), q=1,
            encoding="corrected")),
        "recurrent.RecurrentNetwork": (recurrent.RecurrentNetwork, dict(
            size=1, numbers=memory.numbers, update=memory.update, answer=memory.answer)),
        **{f"recurrent.RecurrentNetwork.{name}": (call, dict(tokens=np.ones((3, 3))))
           for name, call in (("__call__", memory), ("state", memory.state))},
        "recurrent.memory_network": (recurrent.memory_network, dict(n_tokens=3, q=1, slots=1)),
        "recurrent.recurrent_protocol": (recurrent.recurrent_protocol, dict(
            network=memory, n_tokens=3, q=1)),
        "recurrent.separation": (recurrent.separation, dict(n_tokens=4, q=2, more=1, less=2)),
        **{f"recurrent.{f.__name__}": (f, dict(n_tokens=4, q=2, error=0.6))
           for f in (recurrent.separated_values, recurrent.state_bits, recurrent.sufficient_states)},
        "recurrent.state_count": (recurrent.state_count, dict(
            n_tokens=2, q=1, read=1, outputs="last")),
    }  # fmt: skip


def calls():
    """Name -> (callable, arguments); made anew, so that no call sees another's objects."""
    return {**_tasks(), **_units(), **_trained(), **_constructions(), **_keys(), **_bounds()}
