"""Boolean circuits with two inputs per gate, run by attention: an obstacle to lower bounds for several layers.

On the conjecture of Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896) we found: a circuit of s gates and depth D
runs in D layers of 2 ceil(s/N) heads on N tokens, with O((s/N)^2 + (s/N) log NM) numbers per token. So a bound of
N^Omega(1) on D, m, H and p for Match3 at M = N^a implies that Match3 has no circuit of N^(1 + o(1)) gates and depth
N^o(1). No such bound is known for any function in NP.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.support import checks
from yzflow_sparse_averaging import sizes
from yzflow_sparse_averaging.attention_unit import MultiHeadLayer, Transformer
from yzflow_sparse_averaging.matching import MatchTransformer
from yzflow_sparse_averaging.parts import Head, Layers, Layout, Part

__all__ = ["Circuit", "circuit_transformer", "match3_circuit"]

Gate = tuple[int, int, int]  # left and right wire, and the table of outputs at 00, 01, 10, 11 as bits 0 to 3
AND, OR = 0b1000, 0b1110


@dataclass(frozen=True)
class Circuit:
    """A circuit whose wires are first the bits of N residues, then its gates, each of two wires before it.

    Attributes
    ----------
    n_tokens, bits : int
        N, and the binary digits of a residue: wire i b + k is digit k of x_i.
    gates : tuple of (left, right, table)
        Bit 2 u + v of the table is the gate's output for u on the left wire and v on the right one.
    outputs : tuple of int
        N gates, as wires, one for each token.
    """

    n_tokens: int
    bits: int
    gates: tuple[Gate, ...]
    outputs: tuple[int, ...]

    def __post_init__(self) -> None:
        n, bits = checks.integer("n_tokens", self.n_tokens, minimum=1), checks.integer("bits", self.bits, minimum=1)
        gates = checks.listed("gates", self.gates, "be triples of integers")
        for number, gate in enumerate(gates):
            parts = checks.listed("gates", gate, "be triples of integers")
            if len(parts) != 3:
                raise checks.reject("gates", "be triples of integers", f"{len(parts)} numbers")
            *wires, table = parts
            for wire in wires:
                checks.integer("gates", wire, minimum=0, maximum=n * bits + number - 1)
            checks.integer("gates", table, minimum=0, maximum=15)
        outputs = checks.listed("outputs", self.outputs, "be wires")
        if len(outputs) != n:
            raise checks.reject("outputs", f"be {n} wires, one a token", len(outputs))
        for wire in outputs:
            checks.integer("outputs", wire, minimum=n * bits, maximum=n * bits + len(gates) - 1)

    @property
    def depth(self) -> int:
        """Gates on the longest path."""
        inputs = self.n_tokens * self.bits
        levels = [0] * inputs
        for left, right, _ in self.gates:
            levels.append(1 + max(levels[left], levels[right]))
        return max(levels[wire] for wire in self.outputs)

    def __call__(self, x: ArrayLike) -> np.ndarray:
        """The N outputs for residues (.., N), gate by gate: (.., N) of bool."""
        x = checks.finite_array("x", x).astype(np.int64)
        if x.ndim == 0 or x.shape[-1] != self.n_tokens:
            raise checks.reject("x", f"hold {self.n_tokens} tokens", f"shape {x.shape}")
        wires = [x[..., i] >> k & 1 for i in range(self.n_tokens) for k in range(self.bits)]
        for left, right, table in self.gates:
            wires.append(table >> (2 * wires[left] + wires[right]) & 1)
        return np.stack([wires[wire] for wire in self.outputs], -1) > 0


def match3_circuit(*, n_tokens: int, modulus: int) -> Circuit:
    """Match3 by a circuit of O(N M log M + M^2) gates for the residues that occur and for the sums of two.

    Parameters
    ----------
    n_tokens, modulus : int
        N and M, for M up to 64.
    """
    n_tokens = checks.integer("n_tokens", n_tokens, minimum=1, maximum=2**10)
    modulus = checks.integer("modulus", modulus, minimum=2, maximum=64)
    bits = (modulus - 1).bit_length()
    inputs, gates = n_tokens * bits, []

    def gate(left: int, right: int, table: int) -> int:
        gates.append((left, right, table))
        return inputs + len(gates) - 1

    def tree(wires: list[int], table: int) -> int:
        while len(wires) > 1:
            pairs = [gate(wires[at], wires[at + 1], table) for at in range(0, len(wires) - 1, 2)]
            wires = pairs + wires[2 * len(pairs) :]
        return wires[0]

    def is_residue(i: int, residue: int) -> int:
        # A first gate compares each digit with the residue's digit.
        digits = [gate(i * bits + k, i * bits + k, AND if residue >> k & 1 else 0b0001) for k in range(bits)]
        return tree(digits, AND)

    equal = [[is_residue(i, residue) for residue in range(modulus)] for i in range(n_tokens)]
    present = [tree([row[residue] for row in equal], OR) for residue in range(modulus)]
    reached = [
        tree([gate(present[s], present[(-residue - s) % modulus], AND) for s in range(modulus)], OR)
        for residue in range(modulus)
    ]
    outputs = [tree([gate(one, two, AND) for one, two in zip(row, reached, strict=True)], OR) for row in equal]
    return Circuit(n_tokens, bits, tuple(gates), tuple(outputs))


def layers(depth: Any, slots: Any, code: Any, bits: Any) -> tuple[Layers, ...]:
    """The layers for g gates a token, codes of positions of so many digits and b digits of a residue."""
    return (Layers("wires", depth, 2 * slots, code, slots + bits),)


def layout(slots: Any, bits: Any, numbers: dict[str, Any] | None = None) -> Layout:
    """A token: position, the digits of its residue and its gates, and for each gate the wires of two tokens."""
    held = numbers or {}
    columns = {"position": 1, "wires": bits + slots, "fetched": 2 * slots * (bits + slots)}
    return Layout(tuple(Part(name, count, held.get(name)) for name, count in columns.items()))


def circuit_transformer(circuit: Circuit, *, modulus: int) -> MatchTransformer:
    r"""A circuit of s gates and depth D as a transformer of D layers of 2g heads, g = ceil(s/N) gates a token.

    Gate number a belongs to token a div g. In each layer two heads for each of its g gates fetch all wires of the two
    tokens that hold the gate's inputs, by the code of their positions, and the map behind it computes all gates anew:
    those on paths of at most l gates are right after l layers. The output of token i is a gate that token i holds.

    Hypotheses: tokens know their positions, no further tokens, maps between layers are of any size; scaled queries,
    keys and values are integers, outputs are rounded to halves, and numerators and denominators of attention may have
    relative errors of up to 1/32.

    Parameters
    ----------
    circuit : Circuit
    modulus : int
        M, of at most 2^b.

    Raises
    ------
    ValueError
        If M has more digits than the circuit reads, or one gate is the output of two tokens.
    """
    checks.instance("circuit", circuit, Circuit)
    modulus = checks.integer("modulus", modulus, minimum=2, maximum=2**circuit.bits)
    n, bits = circuit.n_tokens, circuit.bits
    owner, slots = gate_places(circuit)
    code_width = max(1, (n - 1).bit_length())
    (kind,) = layers(circuit.depth, slots, code_width, bits)
    scale = -(-sizes.whole_scale(8 * n) // 2)  # keys differ by 2
    output = sizes.averages(1.0, 1 / 2)
    bit = sizes.whole_numbers(1)
    token = layout(slots, bits, {"position": sizes.whole_numbers(max(1, n - 1)), "wires": bit, "fetched": output})
    width = bits + slots
    source, column, table = _wiring(circuit, owner, slots)

    def tokens(x: Any) -> np.ndarray:
        digits = np.asarray(x, dtype=np.int64)[..., None] >> np.arange(bits) & 1
        out = token.placed("wires", digits.astype(float))
        token.read(out, "position")[...] = np.arange(float(n))[:, None]
        return out

    def position(X: np.ndarray) -> np.ndarray:
        return token.read(X, "position")[..., 0].astype(np.int64)

    def code(number: np.ndarray) -> np.ndarray:
        return 2.0 * (number[..., None] >> np.arange(code_width) & 1) - 1

    def head(slot: int, side: int) -> Head:
        return Head.into(
            "fetched",
            token,
            kind,
            query=lambda X: code(source[side, position(X), slot]),
            key=lambda X: code(position(X)),
            value=lambda X: token.read(X, "wires"),
            scale=float(scale),
            precision=sizes.rounded(scale, 1, 1, output),
            offset=(2 * slot + side) * width,
        )

    def compute(X: np.ndarray) -> np.ndarray:
        fetched = token.read(X, "fetched").reshape(*X.shape[:-1], slots, 2, width) > 0.5
        where = position(X)
        read = [
            np.take_along_axis(fetched[..., side, :], column[side, where][..., None], -1)[..., 0].astype(np.int64)
            for side in range(2)
        ]
        out = token.placed("position", token.read(X, "position"))
        wires = token.read(out, "wires")
        wires[..., :bits] = token.read(X, "wires")[..., :bits]
        wires[..., bits:] = table[where] >> (2 * read[0] + read[1]) & 1
        return out

    wanted = np.array([_column(circuit, owner, wire) for wire in circuit.outputs])

    def answer(X: np.ndarray) -> np.ndarray:
        return np.take_along_axis(token.read(compute(X), "wires"), wanted[position(X)][..., None], -1)

    built = [
        MultiHeadLayer([head(slot, side) for slot in range(slots) for side in range(2)]) for _ in range(circuit.depth)
    ]
    held: list[Callable] = [token.held(None), *(token.held(compute) for _ in range(circuit.depth - 1)), answer]
    return MatchTransformer(Transformer(built, held), n, modulus, tokens, token)


def gate_places(circuit: Circuit) -> tuple[list[tuple[int, int]], int]:
    """Token and slot of each gate, at most g = ceil(s/N) gates a token, outputs with their own tokens."""
    n, inputs = circuit.n_tokens, circuit.n_tokens * circuit.bits
    slots = max(1, -(-len(circuit.gates) // n))
    owner: dict[int, tuple[int, int]] = {}
    load = [0] * n
    if len(set(circuit.outputs)) < n:
        raise checks.reject("circuit", "have a gate of its own for the output of each token", circuit.outputs)
    for i, wire in enumerate(circuit.outputs):
        owner[wire] = (i, 0)
        load[i] = 1
    free = 0
    for wire in range(inputs, inputs + len(circuit.gates)):
        if wire not in owner:
            while load[free] >= slots:
                free += 1
            owner[wire] = (free, load[free])
            load[free] += 1
    return [owner[wire] for wire in range(inputs, inputs + len(circuit.gates))], slots


def _column(circuit: Circuit, owner: Sequence[tuple[int, int]], wire: int) -> int:
    """Column of a wire among those of its token."""
    inputs = circuit.n_tokens * circuit.bits
    return wire % circuit.bits if wire < inputs else circuit.bits + owner[wire - inputs][1]


def _wiring(
    circuit: Circuit, owner: Sequence[tuple[int, int]], slots: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Tokens and columns of the two inputs of each token's gates, (2, N, g), and their tables, (N, g)."""
    n, inputs = circuit.n_tokens, circuit.n_tokens * circuit.bits
    source, column = np.zeros((2, 2, n, slots), np.int64)
    table = np.zeros((n, slots), np.int64)
    for (token, slot), (left, right, rule) in zip(owner, circuit.gates, strict=True):
        table[token, slot] = rule
        for side, wire in enumerate((left, right)):
            source[side, token, slot] = wire // circuit.bits if wire < inputs else owner[wire - inputs][0]
            column[side, token, slot] = _column(circuit, owner, wire)
    return source, column, table
