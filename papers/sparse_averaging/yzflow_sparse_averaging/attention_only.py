"""Boolean circuits by attention alone: linear queries, keys and values, and no map between layers.

The transformers of Sanford, Hsu, Telgarsky (NeurIPS 2023, arXiv 2306.02896) have maps between layers. A circuit needs
no such maps, as we found. One head fetches a wire by its position. Another head looks the gate's output up in a table
that three tokens hold; the look-up shrinks errors again, as rounding by a map would.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dynamics.support import checks
from yzflow_sparse_averaging import sizes
from yzflow_sparse_averaging.attention_unit import AttentionUnit, FixedPoint, MultiHeadLayer, Transformer
from yzflow_sparse_averaging.circuits import Circuit, gate_places
from yzflow_sparse_averaging.matching import MatchTransformer
from yzflow_sparse_averaging.parts import Layout, Part

__all__ = ["attention_only_transformer"]

AND_NOT = 0b0100  # u and not v: bit 2 u + v of the table


def attention_only_transformer(circuit: Circuit, *, modulus: int) -> MatchTransformer:
    r"""A circuit of depth E as at most 14 E layers without maps between them, strict, with positions and a blank.

    Each gate becomes at most 11 gates "u and not v", to which a constant one is added. In layer 2l - 1 the two inputs
    of each gate are fetched by W heads, one for each of the W wires that a token holds. All but one of these heads
    attend to the blank token, whose wires are zero. In layer 2l a head for each gate looks its output up in four
    tokens, which hold the pairs of bits. Each l has columns of its own, so that nothing is ever erased.

    With outputs rounded to steps of at most 1/(64 W) and weights of wrong tokens of at most 1/(64 W) together, a wire
    is within 3/(128 W) of its bit and a fetched input within 1/8, whatever the depth.

    Parameters
    ----------
    circuit : Circuit
        N >= 3.
    modulus : int
        M, of at most 2^b.

    Raises
    ------
    ValueError
        If N < 3, M has more digits than the circuit reads, or one gate is the output of two tokens.
    """
    checks.instance("circuit", circuit, Circuit)
    modulus = checks.integer("modulus", modulus, minimum=2, maximum=2**circuit.bits)
    if circuit.n_tokens < 3:
        raise checks.reject("circuit", "have at least 3 tokens, which hold a table", circuit.n_tokens)
    made = _Columns(_and_not(circuit))
    built = [layer for stage in range(made.circuit.depth) for layer in (made.fetch(stage), made.look_up(stage))]
    last = made.start(f"gates {made.circuit.depth}")

    def answer(X: np.ndarray) -> np.ndarray:
        return (X[..., last : last + 1] > 0.5).astype(float)  # outputs are in the first slot

    n, bits = circuit.n_tokens, circuit.bits

    def tokens(x: Any) -> np.ndarray:
        return made.tokens(np.asarray(x, dtype=np.int64)[..., None] >> np.arange(bits) & 1)

    maps = [None] * len(built) + [answer]
    return MatchTransformer(Transformer(built, maps), n, modulus, tokens, made.layout)


def _and_not(circuit: Circuit) -> Circuit:
    """The same function by gates "u and not v"; an input more a token, its last digit, is to be one."""
    n, bits = circuit.n_tokens, circuit.bits + 1
    gates: list[tuple[int, int, int]] = []
    one = circuit.bits  # of token 0
    known = [i * bits + k for i in range(n) for k in range(circuit.bits)]

    def gate(left: int, right: int) -> int:
        gates.append((left, right, AND_NOT))
        return n * bits + len(gates) - 1

    for left, right, table in circuit.gates:
        u, v = known[left], known[right]
        none = one
        for row in range(4):
            if table >> row & 1:
                first, second = (u, v) if row >> 1 else (v, u)
                if row == 3:
                    second = gate(one, second)
                elif row == 0:
                    first = gate(one, first)
                none = gate(none, gate(first, second))
        known.append(gate(one, none))
    return Circuit(n, bits, tuple(gates), tuple(known[wire] for wire in circuit.outputs))


class _Columns:
    """The columns of a token by content, and the heads that read them; a head's maps select columns, times integers."""

    def __init__(self, circuit: Circuit) -> None:
        self.circuit = circuit
        self.owner, self.slots = gate_places(circuit)
        self.n, self.inputs = circuit.n_tokens, circuit.bits
        self.wires = self.inputs + self.slots  # W
        self.code = self.n.bit_length()  # positions 0 to N, the blank's last
        fraction = math.ceil(math.log2(64 * self.wires))
        self.number = FixedPoint(fraction + 3, fraction)
        odds = 64 * self.wires * (self.n + 1)
        self.asking = -(-sizes.whole_scale(odds) // 2)  # codes differ by 2
        self.looking = sizes.whole_scale(odds)
        sign, bit = sizes.whole_numbers(1), sizes.whole_numbers(1)
        asked = 2 * self.slots * self.wires * self.code
        parts = [Part("unit", 1, bit), Part("code", self.code, sign), Part("sources", asked, sign)]
        parts += [Part("table", 2, sign), Part("entry", 1, bit), Part("digits", self.inputs, bit)]
        for stage in range(circuit.depth):
            parts += [Part(f"inputs {stage + 1}", 2 * self.slots, self.number)]
            parts += [Part(f"gates {stage + 1}", self.slots, self.number)]
        self.layout = Layout(tuple(parts))

    def start(self, name: str) -> int:
        return int(self.layout.place(name).start)

    def tokens(self, digits: np.ndarray) -> np.ndarray:
        """Tokens of the digits of N residues, (.., N, b), and the blank."""
        out = np.zeros((*digits.shape[:-2], self.n + 1, self.layout.width))
        read = self.layout.read
        read(out, "unit")[...] = 1
        everyone = np.arange(self.n + 1)
        read(out, "code")[...] = self._codes(everyone)
        read(out, "sources")[...] = self._codes(self._sources()).reshape(self.n + 1, -1)
        # Pairs of bits as signs: 00 and 01, 10 and 11 at tokens 0 to 3, which for N = 3 has the blank.
        read(out, "table")[..., :4, :] = [[-1, -1], [-1, 1], [1, -1], [1, 1]]
        read(out, "entry")[..., 2, 0] = 1
        read(out, "digits")[..., : self.n, :-1] = digits
        read(out, "digits")[..., : self.n, -1] = 1
        return out

    def _codes(self, number: np.ndarray) -> np.ndarray:
        return 2.0 * (number[..., None] >> np.arange(self.code) & 1) - 1

    def _sources(self) -> np.ndarray:
        """The token that each token asks for each side of each gate and each wire: (N + 1, g, 2, W); N if none."""
        asked = np.full((self.n + 1, self.slots, 2, self.wires), self.n)
        before = self.n * self.inputs
        for (token, slot), gate in zip(self.owner, self.circuit.gates, strict=True):
            for side, wire in enumerate(gate[:2]):
                if wire < before:
                    asked[token, slot, side, wire % self.inputs] = wire // self.inputs
                else:
                    other, place = self.owner[wire - before]
                    asked[token, slot, side, self.inputs + place] = other
        return asked

    def fetch(self, stage: int) -> MultiHeadLayer:
        """Heads that fetch wires; at the first stage the gates are still zero, and are not fetched."""
        heads = []
        for slot in range(self.slots):
            for side in range(2):
                for wire in range(self.wires):
                    if wire >= self.inputs and stage == 0:
                        continue
                    held = (
                        self.start("digits") + wire
                        if wire < self.inputs
                        else self.start(f"gates {stage}") + wire - self.inputs
                    )
                    at = ((slot * 2 + side) * self.wires + wire) * self.code + self.start("sources")
                    to = self.start(f"inputs {stage + 1}") + 2 * slot + side
                    heads.append(self._head(slice(at, at + self.code), "code", held, to, self.asking))
        return MultiHeadLayer(heads)

    def look_up(self, stage: int) -> MultiHeadLayer:
        """Heads that look each gate's output up by its two inputs, as signs."""
        heads = []
        for slot in range(self.slots):
            at = self.start(f"inputs {stage + 1}") + 2 * slot
            to = self.start(f"gates {stage + 1}") + slot
            heads.append(self._head(slice(at, at + 2), "table", self.start("entry"), to, self.looking, signs=True))
        return MultiHeadLayer(heads)

    def _head(self, asked: slice, key: str, held: int, to: int, scale: int, *, signs: bool = False) -> AttentionUnit:
        """A unit whose query, key and value are columns of a token, or twice them less the unit's column."""
        width, place = self.layout.width, self.layout.place(key)
        unit = self.start("unit")

        def query(X: np.ndarray) -> np.ndarray:
            return 2 * X[..., asked] - X[..., unit : unit + 1] if signs else X[..., asked]

        def value(X: np.ndarray) -> np.ndarray:
            out = np.zeros((*X.shape[:-1], width))
            out[..., to] = X[..., held]
            return out

        fraction = self.number.fraction_bits
        large = FixedPoint(fraction + scale.bit_length() + 3, fraction)
        precision = sizes.Precision(large, sizes.whole_numbers(1), self.number, self.number)
        made = AttentionUnit.from_maps(
            query,
            lambda X: X[..., place],
            value,
            embedding_dim=asked.stop - asked.start,
            scale=float(scale),
            precision=precision,
        )
        vars(made)["value_dim"] = 1
        return made
