"""Sparse averaging, pairs and triples: what one attention unit can and cannot represent, as constructions that run.

Source: Sanford, Hsu, Telgarsky, "Representational Strengths and Limitations of Transformers" (NeurIPS 2023), arXiv
2306.02896. The units are those of `attention_unit`, the tasks those of `instances`. All names can be had from here.
"""

from yzflow_sparse_averaging.attention_only import attention_only_transformer
from yzflow_sparse_averaging.circuits import Circuit, circuit_transformer, match3_circuit
from yzflow_sparse_averaging.constructed_units import moment_curve_unit, random_keys_unit
from yzflow_sparse_averaging.faces import (
    LostSet,
    every_set_keys,
    every_set_query,
    least_dimension,
    least_error_of_sets,
    lost_set,
)
from yzflow_sparse_averaging.groups import match3_groups
from yzflow_sparse_averaging.keys import (
    Certificate,
    Infeasible,
    certificate,
    error_bound,
    guaranteed_dimension,
    random_keys,
    smallest_dimension,
    temperature,
)
from yzflow_sparse_averaging.matching import (
    MatchTransformer,
    MatchUnit,
    angle_gap,
    match2,
    match3_bigram,
    match3_histogram,
    match3_tensor,
)
from yzflow_sparse_averaging.moments import MomentCurve, is_face, moment_curve, no_face_witness
from yzflow_sparse_averaging.other_architectures import (
    Collision,
    ball_error,
    best_first_layer,
    collision,
    collision_error,
)
from yzflow_sparse_averaging.power_sums import AveragingLayer, match3_power_sums
from yzflow_sparse_averaging.precision import error_parts, rounded_query, smallest_bits, sufficient_bits
from yzflow_sparse_averaging.protocols import (
    ProtocolRun,
    bit_strings,
    disjointness_matrix,
    disjointness_residues,
    exact_rank,
    match3_protocol,
    qsa_protocol,
)
from yzflow_sparse_averaging.recurrent import (
    IndexRun,
    RecurrentNetwork,
    memory_network,
    recurrent_protocol,
    separated_values,
    separation,
    state_bits,
    state_count,
    sufficient_states,
)
from yzflow_sparse_averaging.sizes import Size, counted_size, number_bits
from yzflow_sparse_averaging.sorted_groups import feasible_triples, match3_sorted
from yzflow_sparse_averaging.strict import strict_transformer
from yzflow_sparse_averaging.transform import match3_transform
from yzflow_sparse_averaging.windows import match3_local

__all__ = [
    "AveragingLayer",
    "Certificate",
    "Circuit",
    "Collision",
    "IndexRun",
    "Infeasible",
    "LostSet",
    "MatchTransformer",
    "MatchUnit",
    "MomentCurve",
    "ProtocolRun",
    "RecurrentNetwork",
    "Size",
    "angle_gap",
    "attention_only_transformer",
    "ball_error",
    "best_first_layer",
    "bit_strings",
    "certificate",
    "circuit_transformer",
    "collision",
    "collision_error",
    "counted_size",
    "disjointness_matrix",
    "disjointness_residues",
    "error_bound",
    "error_parts",
    "every_set_keys",
    "every_set_query",
    "exact_rank",
    "feasible_triples",
    "guaranteed_dimension",
    "is_face",
    "least_dimension",
    "least_error_of_sets",
    "lost_set",
    "match2",
    "match3_bigram",
    "match3_circuit",
    "match3_groups",
    "match3_histogram",
    "match3_local",
    "match3_power_sums",
    "match3_protocol",
    "match3_sorted",
    "match3_tensor",
    "match3_transform",
    "memory_network",
    "moment_curve",
    "moment_curve_unit",
    "no_face_witness",
    "number_bits",
    "qsa_protocol",
    "random_keys",
    "random_keys_unit",
    "recurrent_protocol",
    "rounded_query",
    "separated_values",
    "separation",
    "smallest_bits",
    "smallest_dimension",
    "state_bits",
    "state_count",
    "strict_transformer",
    "sufficient_bits",
    "sufficient_states",
    "temperature",
]
