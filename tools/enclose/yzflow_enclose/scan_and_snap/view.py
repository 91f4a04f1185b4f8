"""The numbers of the paper's formulas at a moment of an enclosed flow, in balls."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yzflow_enclose import Moment, Quantity

Pairs = Sequence[tuple["Quantity", "Quantity"]]


class View:
    """A moment of a flow of a setting, with the numbers of the paper's formulas."""

    def __init__(self, at: Moment, setting: Any):
        self.at = at
        self.classes = setting.classes
        self.n_classes, self.vocab_size = setting.classes.n_classes, setting.classes.vocab_size
        self.eta_y, self.eta_z = setting.eta_y, setting.eta_z
        self.common = frozenset(setting.classes.common_tokens.tolist())

    @cached_property
    def x(self) -> Quantity:
        """The margin M h(t/K) in closed form."""
        from flint import arb

        from yzflow_enclose.scan_and_snap import balls

        rate = arb(self.eta_y) * self.vocab_size / self.n_classes
        return self.at.along(lambda t: balls.margin_series(t * rate, self.vocab_size))

    @cached_property
    def gamma(self) -> Quantity:
        from yzflow_enclose.scan_and_snap import balls

        return balls.gamma(self.x, self.vocab_size)

    @property
    def _one_query(self) -> bool:
        return len(self.classes.query_tokens) == 1

    def distinct(self, n: int) -> list[int]:
        """Distinct tokens of a class, the most frequent first."""
        own = [token for token, _ in self.at.tokens(n) if token not in self.common]
        return sorted(own, key=lambda token: -self.classes.probabilities[[n], [token]][0])

    def shared(self, n: int) -> list[int]:
        return [token for token, _ in self.at.tokens(n) if token in self.common]

    def _coefficients(self, n: int, right: Sequence[Any]) -> list[Quantity]:
        """(F^T F)^{-1} of a vector with an entry for each class that n sees."""
        from yzflow_enclose.fields import solve

        zero = self.x * 0
        return [row[0] for row in solve(self.at.gram(n), [[zero + entry] for entry in right])]

    def _combined(self, n: int, coefficients: Sequence[Quantity]) -> dict[int, Quantity]:
        """sum_n' c_n' f_n' at every kind of token of n and of the classes that n sees."""
        seen = self.at.seen_from(n)
        zero = self.x * 0
        found = {}
        for name, _ in seen:
            for token, _ in self.at.tokens(name):
                if token not in found:
                    # For a common token, all alike classes have the same entry of F.
                    terms = [
                        self.at.feature(other, token) * c * (copies if token in self.common else 1)
                        for (other, copies), c in zip(seen, coefficients, strict=True)
                    ]
                    found[token] = sum(terms, zero)
        return found

    def signal(self, n: int) -> list[Quantity]:
        """Coefficients of g_n/gamma by (9), (I - E') u_n, with I - E' = (F^T F)^{-1}."""
        from flint import arb

        size = arb(self.vocab_size)
        inner = [size / (size - 1) if name == n else -size / (size - 1) ** 2 for name, _ in self.at.seen_from(n)]
        return self._coefficients(n, inner)

    def backpropagated(self, n: int) -> dict[int, Quantity]:
        """g_n by (9) at the features of this time."""
        return {token: value * self.gamma for token, value in self._combined(n, self.signal(n)).items()}

    def xi_over_gamma(self, n: int) -> Quantity:
        """sum over n' != n of beta_nn' f_n.f_n' by (9)."""
        signal = self.signal(n)
        terms = [
            self.at.overlap(n, name) * c * (-copies)
            for (name, copies), c in zip(self.at.seen_from(n)[1:], signal[1:], strict=True)
        ]
        return sum(terms, self.x * 0)

    def _columns(self, n: int) -> list[tuple[int, int]]:
        """Next tokens and the number of alike ones: those that n sees, and one that never occurs."""
        unseen = self.vocab_size - self.n_classes
        return self.at.seen_from(n) + ([(self.n_classes, unseen)] if unseen else [])

    def found_signal(self, n: int) -> dict[int, Quantity]:
        """g_n = Y (e_n - alpha_n) of the flow."""
        columns = self._columns(n)
        own = self.at.tokens(n)
        logits = [
            sum((self.at.feature(n, token) * self.at.y(token, name) * k for token, k in own), self.x * 0)
            for name, _ in columns
        ]
        odds = [(logit - logits[0]).exp() for logit in logits[1:]]
        weights = [copies for _, copies in columns[1:]]
        rest = sum((odd * k for odd, k in zip(odds, weights, strict=True)), self.x * 0)
        share = 1 / (rest + 1)
        residual = [rest * share, *(odd * share * (-k) for odd, k in zip(odds, weights, strict=True))]
        tokens = {token for name, _ in self.at.seen_from(n) for token, _ in self.at.tokens(name)}
        return {
            token: sum((y * r for y, r in zip(self._row(token, n, columns), residual, strict=True)), self.x * 0)
            for token in sorted(tokens)
        }

    def _row(self, token: int, n: int, columns: Sequence[tuple[int, int]]) -> list[Quantity]:
        """Mean of Y[token, .] over the next tokens of each column."""
        row = []
        for name, copies in columns:
            value = self.at.y(token, name)
            if copies > 1 and name < self.n_classes and token not in self.common and name in self._owners(token):
                # A distinct token of an alike class: its own column, and the columns of the others.
                value = (value + self.at.y(token, n) * (copies - 1)) / copies
            row.append(value)
        return row

    def _owners(self, token: int) -> list[int]:
        return self.classes.probabilities[:, [token]].nonzero()[0].tolist()

    def margin(self, n: int) -> Quantity:
        """M h_n of the theory flow."""
        return self.at.h(n) * self.vocab_size

    def decoder_sums(self) -> Pairs:
        """For each row of Y: its sum plus an entry, and that entry."""
        found = []
        for n in self.at.next_tokens:
            columns = self._columns(n)
            for token, _ in self.at.tokens(n):
                row = zip(columns, self._row(token, n, columns), strict=True)
                entry = self.at.y(token, n)
                found.append((sum((y * copies for (_, copies), y in row), entry), entry))
        return found

    def query_sums(self) -> Pairs:
        """For each row of Z: its sum plus its largest entry, and that entry."""
        rows: dict[int, dict[int, Quantity]] = {}
        for n in self.at.next_tokens:
            alike = self.n_classes if self.at.exchangeable and self._one_query else 1
            for token, copies in self.at.tokens(n):
                times = copies if token in self.common else copies * alike
                rows.setdefault(self.at.query(n), {})[token] = self.at.z(self.at.query(n), token) * times
        found = []
        for row in rows.values():
            largest = max(row.values(), key=lambda value: float(abs(value.ball().mid())))
            found.append((sum(row.values(), largest), largest))
        return found

    def decoder_entries(self) -> Pairs:
        """Y[l, n], and (F (I - E') W)[l, n] with the margin in closed form."""
        from flint import arb

        last, found = -1 / arb(self.vocab_size), []
        for n in self.at.next_tokens:
            seen = self.at.seen_from(n)
            for name, _ in self._columns(n):
                if name == n or name == self.n_classes:
                    right = [last + 1 if other == name else last for other, _ in seen]
                    expected = self._combined(n, self._coefficients(n, right))
                    found += [(self.at.y(token, name), value * self.x) for token, value in expected.items()]
        return found

    def _pull(self, n: int) -> dict[int, Quantity]:
        """f_n * (g_n - f_n (f_n . g_n)), the contribution of class n to (10)."""
        g, own = self.backpropagated(n), self.at.tokens(n)
        along = sum((self.at.feature(n, token) * g[token] * k for token, k in own), self.x * 0)
        return {
            token: f * (g[token] - f * along) for token, f in ((token, self.at.feature(n, token)) for token, _ in own)
        }

    def velocities(self) -> Pairs:
        """dz/dt of every query and token, and its value by (10) with the class probability 1/K."""
        expected: dict[tuple[int, int], Quantity] = {}
        for n in self.at.next_tokens:
            alike = self.n_classes if self.at.exchangeable and self._one_query else 1
            for token, value in self._pull(n).items():
                place = self.at.query(n), token
                share = value * self.eta_z * (alike if token in self.common else 1) / self.n_classes
                expected[place] = expected[place] + share if place in expected else share
        return [(self.at.velocity(*place), value) for place, value in expected.items()]

    def logits(self, common: bool) -> list[tuple[int, int]]:
        """Query and token of every logit of a common, or of a distinct token."""
        chosen = self.shared if common else self.distinct
        return sorted({(self.at.query(n), token) for n in self.at.next_tokens for token in chosen(n)})
