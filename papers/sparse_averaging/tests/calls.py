"""Valid calls of this room's public functions, which the hostile tests vary, and what only the room itself makes."""

# ruff: noqa: C408
from functools import partial

import hostile
import numpy as np
from yzflow_sparse_averaging import (
    attention_only,
    averaging,
    circuits,
    constructed_units,
    groups,
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

EXEMPT = {
    hostile.RECORD: {
        "sparse_averaging.keys.Certificate",
        "sparse_averaging.power_sums.AveragingLayer",
        "sparse_averaging.matching.MatchTransformer",
        "sparse_averaging.matching.MatchUnit",
        "sparse_averaging.other_architectures.Collision",
        "sparse_averaging.protocols.ProtocolRun",
        "sparse_averaging.recurrent.IndexRun",
        "sparse_averaging.sizes.Size",
    },
    hostile.OURS: {f"sparse_averaging.parts.{name}" for name in ("Head", "Layers", "Layout", "Part", "total")},
    hostile.RAISED: {"sparse_averaging.keys.Infeasible"},
}


def calls():
    """Name -> (callable, arguments); made anew, so that no call sees another's objects."""
    rng = partial(np.random.default_rng, 0)
    signs = keys.random_keys(4, 8, rng=rng())
    curve = moments.moment_curve(5, 2)
    memory = recurrent.memory_network(3, 1)
    histogram = matching.match3_histogram(n_tokens=3, modulus=5)
    circuit = circuits.match3_circuit(n_tokens=2, modulus=2)
    one_layer = power_sums.match3_power_sums(n_tokens=3, modulus=5, dimension=2)
    return {
        "sparse_averaging.attention_only.attention_only_transformer": (attention_only.attention_only_transformer, dict(
            circuit=circuits.Circuit(3, 1, ((0, 1, 8), (1, 2, 8), (0, 2, 8)), (3, 4, 5)), modulus=2)),
        "sparse_averaging.circuits.Circuit": (circuits.Circuit, dict(
            n_tokens=2, bits=1, gates=[(0, 1, 8), (1, 2, 7)], outputs=[2, 3])),
        "sparse_averaging.circuits.Circuit.__call__": (circuit, dict(x=[1, 0])),
        "sparse_averaging.circuits.circuit_transformer": (circuits.circuit_transformer, dict(
            circuit=circuit, modulus=2)),
        "sparse_averaging.circuits.match3_circuit": (circuits.match3_circuit, dict(n_tokens=2, modulus=3)),
        "sparse_averaging.power_sums.AveragingLayer.__call__": (one_layer, dict(x=[1, 2, 3])),
        **{f"sparse_averaging.power_sums.AveragingLayer.{name}": (getattr(one_layer, name), dict(x=[1, 2, 3]))
           for name in ("outputs", "residues")},
        "sparse_averaging.power_sums.match3_power_sums": (power_sums.match3_power_sums, dict(
            n_tokens=3, modulus=5, dimension=2)),
        "sparse_averaging.strict.strict_transformer": (strict.strict_transformer, dict(
            model=groups.match3_groups(root=1, modulus=3))),
        "sparse_averaging.groups.match3_groups": (groups.match3_groups, dict(root=2, modulus=5, spare_bits=0)),
        "sparse_averaging.keys.certificate": (keys.certificate, dict(
            keys=signs, subset=[0], method="exclusion", rho=0.9, level=0.35, throw=False)),
        "sparse_averaging.keys.error_bound": (keys.error_bound, dict(tau=1.0, n_tokens=4, q=2, rho=0.5)),
        "sparse_averaging.keys.random_keys": (keys.random_keys, dict(n_tokens=4, dimension=2, rng=rng())),
        "sparse_averaging.keys.smallest_dimension": (keys.smallest_dimension, dict(
            n_tokens=6, q=1, rng=rng(), method="exclusion", sets="random", n_sets=2, maximum=100, rho=0.5, level=0.35)),
        "sparse_averaging.keys.temperature": (keys.temperature, dict(n_tokens=4, q=2, error=0.1, rho=0.5)),
        "sparse_averaging.matching.MatchTransformer.__call__": (histogram, dict(x=[1, 2, 3])),
        "sparse_averaging.matching.MatchUnit.__call__": (matching.match2(n_tokens=3, modulus=5, error=0.1), dict(
            x=[1, 2])),
        "sparse_averaging.matching.angle_gap": (matching.angle_gap, dict(modulus=5)),
        **{f"sparse_averaging.matching.{f.__name__}": (f, dict(n_tokens=3, modulus=5, error=0.1, scale=None))
           for f in (matching.match2, matching.match3_tensor)},
        **{f"sparse_averaging.matching.{f.__name__}": (f, dict(n_tokens=3, modulus=5))
           for f in (matching.match3_bigram, matching.match3_histogram)},
        "sparse_averaging.windows.match3_local": (windows.match3_local, dict(n_tokens=3, modulus=5, reach=1)),
        "sparse_averaging.moments.MomentCurve": (moments.MomentCurve, dict(n_tokens=5, q=2)),
        **{f"sparse_averaging.moments.MomentCurve.{name}": (getattr(curve, name), dict(subset=[0, 2]))
           for name in ("query", "scores", "gap", "query_bits")},
        "sparse_averaging.moments.MomentCurve.temperature": (curve.temperature, dict(error=0.1)),
        "sparse_averaging.moments.MomentCurve.attention": (curve.attention, dict(subset=[0, 2], error=0.1)),
        "sparse_averaging.moments.moment_curve": (moments.moment_curve, dict(n_tokens=5, q=2)),
        "sparse_averaging.moments.is_face": (moments.is_face, dict(subset=[1, 3], n_tokens=6, dimension=4)),
        "sparse_averaging.moments.no_face_witness": (moments.no_face_witness, dict(subset=[1, 3], n_tokens=6)),
        "sparse_averaging.other_architectures.best_first_layer": (other_architectures.best_first_layer, dict(
            n_tokens=4, q=1, width=2, value_dimension=1)),
        "sparse_averaging.other_architectures.collision": (other_architectures.collision, dict(
            first_layer=np.ones((1, 4)), q=1, n_tokens=4, value_dimension=1, rng=rng())),
        "sparse_averaging.other_architectures.collision_error": (other_architectures.collision_error, dict(
            n_tokens=4, q=1, width=2, value_dimension=1)),
        "sparse_averaging.precision.error_parts": (precision.error_parts, dict(attention=[0.5, 0.5], subset=[0])),
        "sparse_averaging.precision.rounded_query": (precision.rounded_query, dict(query=[0.5], tau=1.0, bits=4)),
        "sparse_averaging.precision.smallest_bits": (precision.smallest_bits, dict(
            keys=signs, query=signs[0], subset=[0], tau=5.0, error=0.5)),
        "sparse_averaging.precision.sufficient_bits": (precision.sufficient_bits, dict(query=[0.5], tau=1.0,
                                                                                       error=0.1)),
        "sparse_averaging.protocols.bit_strings": (protocols.bit_strings, dict(n=2)),
        "sparse_averaging.protocols.disjointness_matrix": (protocols.disjointness_matrix, dict(n=2)),
        "sparse_averaging.protocols.disjointness_residues": (protocols.disjointness_residues, dict(n=2, modulus=9)),
        "sparse_averaging.protocols.exact_rank": (protocols.exact_rank, dict(matrix=[[1, 0], [0, 1]])),
        "sparse_averaging.protocols.match3_protocol": (protocols.match3_protocol, dict(
            model=matching.match3_histogram(n_tokens=3, modulus=5), bits=8)),
        "sparse_averaging.protocols.qsa_protocol": (protocols.qsa_protocol, dict(
            unit=averaging.random_keys_unit(keys.random_keys(3, 16, rng=rng()), 1, error=0.5, bits=8), q=1,
            encoding="corrected")),
        "sparse_averaging.recurrent.RecurrentNetwork": (recurrent.RecurrentNetwork, dict(
            size=1, numbers=memory.numbers, update=memory.update, answer=memory.answer)),
        **{f"sparse_averaging.recurrent.RecurrentNetwork.{name}": (call, dict(tokens=np.ones((3, 3))))
           for name, call in (("__call__", memory), ("state", memory.state))},
        "sparse_averaging.recurrent.memory_network": (recurrent.memory_network, dict(n_tokens=3, q=1, slots=1)),
        "sparse_averaging.recurrent.recurrent_protocol": (recurrent.recurrent_protocol, dict(
            network=memory, n_tokens=3, q=1)),
        "sparse_averaging.recurrent.separation": (recurrent.separation, dict(n_tokens=4, q=2, more=1, less=2)),
        **{f"sparse_averaging.recurrent.{f.__name__}": (f, dict(n_tokens=4, q=2, error=0.6))
           for f in (recurrent.separated_values, recurrent.state_bits, recurrent.sufficient_states)},
        "sparse_averaging.recurrent.state_count": (recurrent.state_count, dict(
            n_tokens=2, q=1, read=1, outputs="last")),
        "sparse_averaging.sizes.counted_size": (sizes.counted_size, dict(model=histogram, x=[1, 2, 3])),
        "sparse_averaging.sizes.number_bits": (sizes.number_bits, dict(values=[1.0, -0.25])),
        "sparse_averaging.sorted_groups.feasible_triples": (sorted_groups.feasible_triples, dict(
            largest=[1, 4], modulus=5)),
        "sparse_averaging.sorted_groups.match3_sorted": (sorted_groups.match3_sorted, dict(
            n_tokens=4, modulus=5, spare_bits=0)),
        "sparse_averaging.transform.match3_transform": (transform.match3_transform, dict(
            n_tokens=4, modulus=5, spare_bits=0)),
        "sparse_averaging.constructed_units.moment_curve_unit": (constructed_units.moment_curve_unit, dict(
            curve=curve, error=0.1, value_dimension=1)),
        "sparse_averaging.constructed_units.random_keys_unit": (constructed_units.random_keys_unit, dict(
            keys=signs, q=1, error=0.1, value_dimension=1, method="exclusion", bits=8)),
    }  # fmt: skip
