"""Margins in the proofs of the constructions are those of the worst case, found by trying what attention may do."""

import itertools

import pytest
import sympy as sp
from yzflow_sparse_averaging.proofs import groups, sorted_groups, strict, transform

from theory.symbolic import derived

HALF = sp.Rational(1, 2)


def averages(right, beside, error):
    """Least and largest average of tokens of weight one and of others, by choices of weights and values for each.

    Numerators and denominators may be wrong by ``error``, relatively.
    """
    found = []
    for chosen in itertools.product(*(itertools.product(*one) for one in beside)):
        above = sum(right, sp.Integer(0)) + sum(weight * value for weight, value in chosen)
        found.append(above / (len(right) + sum(weight for weight, _ in chosen)))
    return min(found) * (1 - error) / (1 + error), max(found) * (1 + error) / (1 - error)


def margins(derive, **values):
    """Room that the inequalities of a derivation leave, at numbers for its symbols."""
    found = {}
    for name, (expression, _) in derived(derive).signed.items():
        symbols = {str(symbol): symbol for symbol in expression.free_symbols}
        if symbols.keys() <= values.keys():
            found[name] = expression.subs({symbol: values[letter] for letter, symbol in symbols.items()})
    return found


def whole(*rows):
    """Rows of numbers as exact ones."""
    return [tuple(map(sp.Integer, row)) for row in rows]


@pytest.mark.parametrize(("alike", "rest", "modulus"), whole((1, 0, 2), (1, 1, 2), (2, 2, 3), (3, 1, 5)))
def test_sorted_groups(alike, rest, modulus):
    """Shares of a digit among tokens that agree, and residues gathered from a group, both times the group's size."""
    found = margins(sorted_groups.derive, n=alike - 1, r=rest, h=modulus - 2, e=0)
    n = alike + rest
    error, top = sorted_groups.weight_error(n, modulus), modulus - 1
    leak, rounding = sorted_groups.digit_leak(n), alike * sorted_groups.digit_step(n) / 2
    beside = [((0, leak), (0, 1))] * rest
    worst = {}
    for count in range(alike + 1):
        least, most = averages([1] * count + [0] * (alike - count), beside, error)
        worst[count] = [HALF - rounding - off for off in (count - alike * least, alike * most - count)]
    assert found["counts too small, by less than 1/2"] == worst[alike][0]
    assert found["counts too large, by less than 1/2"] == worst[alike][1]
    assert found["a count of zero, too large by less than 1/2"] == worst[0][1]
    leak, rounding = sorted_groups.gather_leak(n, modulus), alike * sorted_groups.gather_step(alike) / 2
    beside = [((0, leak), (0, top))] * rest
    for residue in range(modulus):
        least, most = averages([residue] + [0] * (alike - 1), beside, error)
        worst[residue] = [HALF - rounding - off for off in (residue - alike * least, alike * most - residue)]
    assert found["residues too small, by less than 1/2"] == worst[top][0]
    assert found["residues too large, by less than 1/2"] == worst[top][1]
    assert found["a residue of zero, too large by less than 1/2"] == worst[0][1]
    assert min(margin for residue in range(modulus) for margin in worst[residue]) == min(worst[top] + worst[0]) > 0
    # All but one of n + 1 tokens have a triple, the last one is what those look at who are not asked for.
    leak, rounding, error = sorted_groups.report_leak(n + 1), sorted_groups.report_step(n + 1) / 2, sp.Rational(1, 32)
    threshold = sorted_groups.report_threshold(n + 1)
    least = averages([1] + [0] * (n - 1), [((leak,), (0,))], error)[0]
    assert found["report: one bit is enough"] == least - rounding - threshold
    most = averages([0], [((leak,), (1,))] * n, error)[1]
    assert 0 <= threshold - rounding - most - found["report: all others are not"] <= 2 * leak


@pytest.mark.parametrize(("n", "modulus", "length", "prime"), whole((1, 2, 4, 5), (2, 2, 4, 5), (2, 3, 8, 17)))
def test_transform(n, modulus, length, prime):
    """Copies of numbers below P, bits of a histogram, bits that are read; L is a power of two and P = 1 mod L."""
    found = margins(
        transform.derive, n=n - 1, h=modulus - 2, e=0, s=prime - length - 1, l=sp.Rational(length, 2 * modulus) - 1
    )
    # Degrees of a square, positions up to 2M - 1, counts of pairs.
    assert found["no wrap"] == length - 1 - 2 * (modulus - 1)
    assert found["both reads are of positions"] == length - max(-x % modulus + modulus for x in range(modulus))
    assert found["counts are below the prime"] == prime - modulus
    leak, rounding = transform.copy_leak(n, prime), transform.copy_step() / 2
    for number, small, large in (
        (prime - 1, "copies too small, by less than 1/2", "copies too large, by less than 1/2"),
        (0, None, "a copied zero, too large by less than 1/2"),
    ):
        least, most = averages([number], [((0, leak), (0, prime - 1))] * n, transform.weight_error(prime))
        assert small is None or found[small] == HALF - rounding - (number - least)
        assert found[large] == HALF - rounding - (most - number)
    # Bits that are read are rounded to quarters.
    error, beside, eighth = transform.bit_weight_error(), [((0, leak), (0, 1))] * n, sp.Rational(1, 8)
    assert found["reads: a positive number"] == averages([1], beside, error)[0] - eighth - HALF
    assert found["reads: a zero"] == HALF - eighth - averages([0], beside, error)[1]
    blank, rounding = transform.histogram_leak(n), transform.histogram_step(n) / 2
    threshold = transform.histogram_threshold(n)
    least = averages([1] + [0] * (n - 1), [((blank,), (0,))], error)[0]
    assert found["histogram: one token is enough"] == least - rounding - threshold
    # Nobody is asked for: beside the blank token all others weigh o; a bound leaves out what they add below the line.
    most = averages([0], [((blank,), (1,))] * n, error)[1]
    assert 0 <= threshold - rounding - most - found["histogram: all others are not"] <= 2 * (n * blank) ** 2


@pytest.mark.parametrize(("root", "modulus"), whole((1, 2), (2, 3)))
def test_groups(root, modulus):
    """Numbers of S slots; one is read. Tokens of other groups have equal weights, and G - 1 of them share the slot."""
    found = margins(groups.derive, g=root - 1, h=modulus - 2, e=0)
    slots, n, top = root**2, root**3, modulus - 1
    leak, error, rounding = groups.leak(n, slots, modulus), groups.weight_error(modulus), groups.step(slots) / 2
    others = [((leak,), (0,))] * (n - slots - root + 1)
    beside = [((leak,), (0, top))] * (root - 1) + others
    for number, small, large in (
        (top, "gathered numbers too small, by less than 1/2", "gathered numbers too large, by less than 1/2"),
        (0, None, "a gathered zero, too large by less than 1/2"),
    ):
        least, most = averages([number] + [0] * (slots - 1), beside, error)
        assert small is None or found[small] == HALF - slots * rounding - (number - slots * least)
        assert found[large] == HALF - slots * rounding - (slots * most - number)
        if number:
            assert found["outputs are in range"] == groups.largest_output(modulus) - most / rounding
    bits, threshold = [((leak,), (0, 1))] * (n - slots), groups.threshold(slots)
    least = averages([1] + [0] * (slots - 1), bits, error)[0]
    assert found["one bit of its group is enough"] == least - rounding - threshold
    assert found["all bits of other groups are not"] == threshold - averages([0] * slots, bits, error)[1] - rounding


@pytest.mark.parametrize(("wires", "n", "prime"), whole((1, 1, 3), (2, 2, 5), (5, 3, 11)))
def test_strict(wires, n, prime):
    """One layer that averages, by all of its inputs; without maps, wires that are off and tokens that leak."""
    found = margins(strict.derive, w=wires - 1, n=n - 1, s=prime - 2 * n - 1)
    digits = [n * x[0] + sum(x) for x in itertools.product((0, prime - 1), repeat=int(n))]
    assert found["one layer: digits do not carry"] == strict.base(n, prime) - 1 - max(digits)
    assert found["one layer: N times a rounded mean is within 1/2"] == HALF - n * strict.step(n) / 2
    # Of 2N roots N are copies of the token's own, and the others those of all tokens.
    assert strict.copies(n) == n
    assert found["one layer: its own residue occurs more often than all others"] == (n + 1) - (n - 1)
    off, leak, rounding = strict.wire_error(wires), strict.wrong_weight(wires), strict.fine_step(wires) / 2
    beside = [((leak,), (-off, off, 1 - off, 1 + off))]
    worst = max(abs(one - bit) for bit in (0, 1) for x in (bit - off, bit + off) for one in averages([x], beside, 0))
    # All heads but one read zeros. Bounds are by the weight, where attention has it over one and the weight.
    gap = strict.input_error() - wires * (worst + rounding) - found["without maps: a fetched input"]
    assert 0 <= gap <= wires * leak * (2 * off + leak)
    table = max(abs(one - bit) for bit in (0, 1) for one in averages([bit], [((leak,), (0, 1))], 0))
    gap = off - table - rounding - found["without maps: what is looked up"]
    assert 0 <= gap <= leak**2
    # Signs 2 u - 1 of inputs that are off: scores of the right pair, of one with a wrong bit, and of none.
    ends = [1 - 2 * strict.input_error(), 1 + 2 * strict.input_error()]
    right, wrong = min(a + b for a in ends for b in ends), max(a - b for a in ends for b in ends)
    assert found["without maps: the right pair is ahead of others by 1"] == right - wrong - 1
    assert found["without maps: and of tokens without a pair"] == right - 1
