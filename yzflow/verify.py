"""Check a certificate of an enclosed flow: ``python -m yzflow.verify FILE``, or this file alone as a script.

It takes nothing from the rest, and writes the equations down again. A certificate says that the flow from zero stays
within a radius of given polynomials, in the norm |W e|. For each step this bounds in balls (python-flint) the gap at
its start, the defect p' - f(p) and the growth of errors over the tube of that radius, and sees the error stay below it.
"""

import hashlib
import json
import sys
from collections.abc import Callable
from functools import partial

import flint
import numpy as np
from flint import arb, arb_poly, arb_series

total = partial(np.sum, keepdims=True)
balls = np.frompyfunc(arb, 1, 1)


def pack(items: list) -> np.ndarray:
    """An array of objects (numpy would take a series for a sequence); np.exp and np.sqrt call their methods."""
    return np.frompyfunc(items.__getitem__, 1, 1)(np.arange(len(items)))


def solve(A: np.ndarray, B: np.ndarray) -> np.ndarray:
    """A^{-1} B by elimination; A is positive definite."""
    A, B = A.copy(), B.copy()
    for k in range(len(A)):
        B[k], A[k] = B[k] / A[k, k : k + 1], A[k] / A[k, k : k + 1]
        for i in {*range(len(A))} - {k}:
            B[i], A[i] = B[i] - B[k] * A[i, k : k + 1], A[i] - A[k] * A[i, k : k + 1]
    return B


def symmetric(s: dict) -> tuple[Callable, int]:
    """f(x) for K equal classes, seen from one. Columns of Y: its own next token, K - 1 others, M - K unseen."""
    K, M, decoder, C = s["n_classes"], s["vocab_size"], s["decoder"], len(s["common"])
    groups, rest = s["common"] + s["distinct"], M - K
    count, k, G = balls([c for c, _ in groups]), pack([n for _, n in groups]), len(groups)
    m, cut = (pack([1, K - 1, rest]), 2 * C) if rest else (pack([1, K - 1]), 0)
    rate_y, rate_z = arb(s["eta_y"]) * arb(s["class_weight"]), arb(s["eta_z"]) * arb(s["class_weight"])
    movers = pack([1 if i >= C or s["own_queries"] else K for i in range(G)])

    def invert(f, own, other):
        """(F^T F)^{-1} of a vector with one entry ``own`` and K - 1 ``other``, by its mean and the difference."""
        rho = total((k * f * f)[:C])
        mean, difference = (own + other * (K - 1)) / K / (rho * (K - 1) + 1), (own - other) / (1 - rho) / K
        return mean + difference * (K - 1), mean - difference

    def field(x):
        y, w = x[G:], count * np.exp(x[:G])
        f = w / np.sqrt(total(k * w * w))
        if decoder == "theory":
            clock = 1 / (np.exp(y) + (M - 1))
            own, other = invert(f, y * clock * (M - 1), -y * clock)
            g = f * np.concatenate([own + other * (K - 1)] * C + [own] * (G - C))
        else:
            shared = y[:cut].reshape(C, 2)[:, [0, 0, 1]] if rest else np.repeat(x[:1] * 0, 2 * C).reshape(C, 2)
            Y = np.concatenate([shared, y[cut:].reshape(-1, len(m))])
            odds = np.exp((k * f) @ (Y[:, 1:] - Y[:, :1]))
            against = total(m[1:] * odds)
            r = np.concatenate([against, -odds]) / (against + 1)
            g = Y @ (m * r)
        z = rate_z * movers * f * (g - f * total(k * f * g))
        if decoder == "theory":
            return np.concatenate([z, rate_y * M * clock])
        if decoder == "modified":
            r = np.concatenate([*invert(f, r[:1], r[1:2]), r[2:] / (total((k * f * f)[:C]) * (K - 1) + 1)])
        common = np.concatenate([r[:1] + r[1:2] * (K - 1), r[2:] * K]) if rest else r[:0]
        return np.concatenate([z, *(rate_y * f[i : i + 1] * (common if i < C else r) for i in range(G))])

    return field, G + (1 if decoder == "theory" else cut + len(m) * (G - C))


def general(s: dict) -> tuple[Callable, int]:
    """f(x) for a population as it is: bags with a query, a next token, a weight, tokens and counts."""
    M, decoder, bags = s["vocab_size"], s["decoder"], range(len(s["query"]))
    names, tokens = sorted(set(s["target"])), sorted({t for row in s["token"] for t in row})
    target = [names.index(n) for n in s["target"]]
    m = pack([1] * len(names) + ([M - len(names)] if len(names) < M else []))
    pairs = sorted({(s["query"][b], t) for b in bags for t in s["token"][b]})
    zi = [[pairs.index((s["query"][b], t)) for t in s["token"][b]] for b in bags]
    yi = [[tokens.index(t) for t in s["token"][b]] for b in bags]
    count, p, nz = [balls(row) for row in s["count"]], balls(s["weight"]), len(pairs)

    def field(x):
        F = np.repeat(x[:1] * 0, len(tokens) * len(bags)).reshape(len(tokens), -1)
        z, tail = np.repeat(x[:1] * 0, nz), x[nz:]
        for b in bags:
            w = count[b] * np.exp(x[zi[b]])
            F[yi[b], b] = w / np.sqrt(total(w * w))
        if decoder == "theory":
            clock = 1 / (np.exp(tail) + (M - 1))
            same = pack([M - 1 if target[a] == target[b] else -1 for a in bags for b in bags])
            back = F @ solve(F.T @ F, tail[:, None] * same.reshape(len(bags), -1) * clock)
            tail = arb(s["eta_y"]) * M * p * clock
        else:
            Y, R = tail.reshape(len(tokens), -1), np.repeat(x[:1] * 0, len(bags) * len(m)).reshape(len(bags), -1)
            for b, n in enumerate(target):
                others = [j for j in range(len(m)) if j != n]
                odds = np.exp(F[:, b] @ (Y[:, others] - Y[:, n : n + 1]))
                against = total(m[others] * odds)
                R[b, others], R[b, n : n + 1] = -odds / (against + 1), against / (against + 1)
            back, pushed = Y @ (m * R).T, p[:, None] * R
            tail = arb(s["eta_y"]) * (F @ (solve(F.T @ F, pushed) if decoder == "modified" else pushed)).ravel()
        for b in bags:
            f, g = F[yi[b], b], back[yi[b], b]
            z[zi[b]] = z[zi[b]] + arb(s["eta_z"]) * p[b] * f * (g - f * total(f * g))
        return np.concatenate([z, tail])

    return field, nz + (len(bags) if decoder == "theory" else len(tokens) * len(m))


def evaluate(field: Callable, rows: list, length: int) -> list:
    """Coefficients of the field on the power series with the given ones."""
    flint.ctx.cap = length
    out = field(pack([arb_series(row[:length], length) for row in rows]))
    return [[series[k] for k in range(length)] for series in out]


def norm(values: list, W: np.ndarray) -> arb:
    sizes = [value.abs_upper() * w for value, w in zip(values, W, strict=True)]
    return sum((size * size for size in sizes), arb(0)).upper().sqrt().upper()


def defect(field: Callable, p: list, centre: arb, half: arb, W: np.ndarray) -> arb:
    """A bound of |W (p' - f(p))| where |t - centre| <= half: all terms at the centre, and the remainder anywhere."""
    order = max(q.degree() for q in p) + 2
    p = [q(arb_poly([centre, 1])) for q in p]
    thin = evaluate(field, [q.coeffs() for q in p], order)
    wide = evaluate(field, [q(arb_poly([arb(0, half), 1])).coeffs() for q in p], order + 1)
    bounds = []
    for q, a, b in zip(p, thin, wide, strict=True):
        slope = q.derivative().coeffs() + [arb(0)] * order
        terms = [(a[j] - slope[j]).abs_upper() for j in range(order)] + [b[order].abs_upper()]
        bounds.append(sum(term * half**j for j, term in enumerate(terms)))
    return norm(bounds, W)


def growth(field: Callable, box: list, W: np.ndarray) -> arb:
    """A bound of the logarithmic norm over a box: mu I - S has positive pivots, S the symmetric part of W f' W^-1."""
    n = len(box)
    J = [evaluate(field, [[v, int(i == j)] for i, v in enumerate(box)], 2) for j in range(n)]
    A = pack([J[j][i][1] * W[i] / W[j] for i in range(n) for j in range(n)]).reshape(n, n)
    S = (A + A.T) / 2
    spread = sum((a.rad() * a.rad() for a in S.flat), arb(0)).upper().sqrt().upper()
    S = pack([S[min(i, j), max(i, j)].mid() for i in range(n) for j in range(n)]).reshape(n, n)
    mu = arb(float(np.linalg.eigvalsh(S.astype(float))[-1] + 1e-9 * np.linalg.norm(S.astype(float))))
    L = mu * np.eye(n, dtype=int).astype(object) - S
    for k in range(n):
        L[k + 1 :, k:] = L[k + 1 :, k:] - np.outer(L[k + 1 :, k] / L[k, k], L[k, k:])
    return mu + spread if all(L[k, k] > 0 for k in range(n)) else arb.nan()


def check(path: str) -> tuple[dict, float, arb]:
    """Settings, time, and a bound of every variable's error of a certificate that is true; ValueError otherwise."""
    with open(path, "rb") as handle, np.load(handle, allow_pickle=False) as file:
        data = {name: np.ascontiguousarray(array) for name, array in file.items()}
    seal, found = data.pop("sha256").tobytes().decode(), hashlib.sha256()
    for name in sorted(data):
        found.update(f"{name} {data[name].dtype.str} {data[name].shape}\n".encode() + data[name].tobytes())
    if found.hexdigest() != seal:
        raise ValueError("the SHA-256 is another: the file is not as it was written")
    s = json.loads(data["settings"].tobytes().decode())
    flint.ctx.prec = int(s["bits"]) + 40
    if (what := s["flow"]["target"] if s["kind"] == "flow" else s["decoder"]) not in ("full", "modified", "theory"):
        raise ValueError(f"no equations of {what!r} are known here")
    field, n = {"symmetric": symmetric, "general": general}[s["kind"]](s)
    W, now, eps, state = balls(np.abs(s["weights"])), 0.0, arb(0), [arb(0)] * n
    names = ("start", "end", "radius", "pieces", "limbs")
    for start, end, radius, pieces, limbs in zip(*(data[name].tolist() for name in names), strict=True):
        if start != now or not end > start or pieces < 1:
            raise ValueError(f"the step from t = {start} does not start where the last one ended")
        p, h = [arb_poly([sum(balls(c)) for c in row]) for row in limbs], arb(end) - arb(start)
        eps = (eps + norm([q[0] - a for q, a in zip(p, state, strict=True)], W)).upper()
        delta = defect(field, p, h / 4, (h / 4).upper(), W).max(defect(field, p, h * 3 / 4, (h / 4).upper(), W))
        for j in range(pieces):
            middle, half = h * (2 * j + 1) / (2 * pieces), arb(0, (h / (2 * pieces)).upper())
            box = [q(arb_poly([middle, 1]))(half) + arb(0, (radius / w).upper()) for q, w in zip(p, W, strict=True)]
            factor = (growth(field, box, W) * h / pieces).exp().upper()
            eps = eps.max((factor * eps + delta * h / pieces * factor.max(arb(1))).upper())
            if not eps < radius:
                raise ValueError(f"the error is not within its radius in the step from t = {start}")
        state, now = [q(h) for q in p], end
    return s, now, (eps / min(W)).upper()  # in the variables' units: the file chooses the norm


def main(arguments: list[str]) -> None:
    try:
        s, now, eps = check(*arguments)
    except (ValueError, TypeError, LookupError, OSError, ZeroDivisionError) as error:
        sys.exit(f"python -m yzflow.verify FILE: not verified, {error}")
    rates = f"eta_Y = {s['eta_y']}, eta_Z = {s['eta_z']}, M = {s['vocab_size']}"
    print(f"verified to t = {now} of {s['t_end']}: {s['decoder']} flow, {rates}, each variable to {float(eps):.1e}")


if __name__ == "__main__":
    main(sys.argv[1:])
