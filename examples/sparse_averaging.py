"""Limits of one attention unit: sparse averaging, pairs and triples, as constructions that run.

    python examples/sparse_averaging.py [--out DIR] [--quick] [--learn]

Sanford, Hsu, Telgarsky (2023), arXiv 2306.02896: units with random keys and on the moment curve, Match2 and Match3, the
protocols behind the lower bounds, and one unit in training. Writes figures (PNG and PDF), their captions, the data
(netCDF) and a summary. With --learn also what is learnt of Match2 and Match3 from examples, which needs
yzflow-deep (pip install -e tools/deep) and up to an hour of one core; its runs are kept in DIR/runs, where the same
command goes on. Needs the studies: pip install -r studies/requirements.txt.
"""

import math
from collections.abc import Callable

import numpy as np
from yzflow_sparse_averaging import averaging
from yzflow_sparse_averaging import instances as tasks
from yzflow_sparse_averaging.attention_unit import attention_weights
from yzflow_sparse_averaging.proofs import groups
from yzflow_sparse_averaging.sizes import below_bound
from yzflow_studies.learning_match import study as learning_match
from yzflow_studies.linear_query import study as linear_query
from yzflow_studies.match2_margins import study as match2_margins
from yzflow_studies.moment_curve import study as moments
from yzflow_studies.random_keys import study as keys

from dynamics.support.files import replacing
from dynamics.support.netcdf import save_dataset
from dynamics.support.progress import Progress
from yzflow import figures, scripts

ERROR = 0.01
FIGURES = (*keys.FIGURES, *moments.FIGURES, *match2_margins.FIGURES, *linear_query.FIGURES[:1])
LEARNING = learning_match.FIGURES


def random_keys(rng: np.random.Generator) -> str:
    n, q, m = 4096, 16, 700
    keys = averaging.random_keys(n, m, rng=rng)
    subsets = np.stack(
        [*tasks.random_subsets(n, q, size=2, rng=rng), np.sort(np.argsort(-keys[0] @ keys.T)[1 : q + 1])]
    )
    queries = np.array([averaging.certificate(keys, subset).query for subset in subsets])
    tau = averaging.temperature(n_tokens=n, q=q, error=ERROR)
    worst = tasks.attention_error(attention_weights(queries, keys, scale=tau), subsets).max()
    small = averaging.certificate(keys[:, :100], subsets[-1], throw=False)
    return f"N = {n}, q = {q}, m = {m}: largest error {worst:.1e}, bound {ERROR:g}. With m = 100: " + (
        "a certificate" if small.feasible else f"no certificate, best rho {small.rho:.2f} > 1/2"
    )


def moment_curve(rng: np.random.Generator) -> str:
    n, q = 4096, 8
    curve = averaging.moment_curve(n, q)
    subset = np.arange(n - 2 * q, n, 2)
    exact = tasks.attention_error(curve.attention(subset, error=ERROR)[None], subset[None])[0]
    rounded = attention_weights(
        curve.query(subset).astype(float)[None], curve.keys().astype(float), scale=curve.temperature(ERROR)
    )
    floats = tasks.attention_error(rounded, subset[None])[0]
    return (
        f"N = {n}, q = {q}, m = {curve.dimension}: gap {curve.gap(subset)}, error {exact:.1e} in exact integers of "
        f"{curve.number_bits()} bits, {floats:.1f} in float64"
    )


def matching(rng: np.random.Generator) -> str:
    cells = []
    for order, n, modulus, make, truth in (
        (2, 1000, 10**6, averaging.match2, tasks.match2),
        (3, 20, 10**4, averaging.match3_tensor, tasks.match3),
    ):
        x = tasks.random_match(n, modulus, size=4, rng=rng, order=order, planted=0.5)
        x = np.concatenate([x, tasks.adversarial_match(n, modulus, order=order)[::4]])
        unit = make(n_tokens=n, modulus=modulus, error=ERROR)
        worst = np.abs(unit(x) - truth(x, modulus)).max()
        cells.append(f"Match{order} at N = {n}, M = {modulus}: m = {unit.unit.embedding_dim}, error {worst:.4f}")
    return "; ".join(cells) + f"; bound {ERROR:g}"


def protocols(rng: np.random.Generator) -> str:
    q = 5
    keys = averaging.random_keys(2 * q + 1, math.ceil(12 * q * math.log(2 * q + 1)), rng=rng)
    lines = []
    for bits in (8, 2):
        run = averaging.qsa_protocol(averaging.random_keys_unit(keys, q, error=0.5 / q, bits=bits), q)
        lines.append(f"{bits}-bit numbers: {run.bits} bits sent, {run.errors} of {run.disjoint.size} answers wrong")
    matrix = averaging.disjointness_matrix(q)
    ranks = [averaging.exact_rank(m) for m in (matrix, 1 - matrix)]
    return f"q = {q}, " + "; ".join(lines) + f". Rank of disjointness {ranks[0]}, of intersection {ranks[1]}"


def other_networks(rng: np.random.Generator) -> str:
    n, q = 64, 16
    found = averaging.collision(rng.normal(size=(n - 2 * q, n)), q, n_tokens=n, rng=rng)
    wide = averaging.collision_error(n, q, width=n - 1)
    lines = [
        f"first layer of width {n - 2 * q} on {n} tokens, q = {q}: two inputs collide, error {found.error:.6f} on one"
        f" of them; {wide:.3f} at least at width {n - 1}"
    ]
    few, asked = 9, 3
    for slots in (few - 1, few - 2):
        run = averaging.recurrent_protocol(averaging.memory_network(few, asked, slots=slots), few, asked)
        lines.append(
            f"recurrent, {few} tokens, q = {asked}, {run.bits} bits of state: {run.messages} states, {run.errors} of"
            f" {run.found.size} bits read wrongly"
        )
    return "; ".join(lines)


def conjecture(rng: np.random.Generator) -> str:
    cells = []
    for root, modulus, size in ((2, 9, 2000), (4, 1000, 10)):
        model = averaging.match3_groups(root=root, modulus=modulus)
        x = tasks.random_match(root**3, modulus, size=size, rng=rng, order=3, planted=0.3)
        wrong = int((model(x) != tasks.match3(x, modulus)).sum())
        cells.append(f"N = {root**3}: m = {model.embedding_dim}, {wrong} of {x.size} outputs wrong")
    for name, make in (("sorted groups", averaging.match3_sorted), ("transform", averaging.match3_transform)):
        model = make(n_tokens=64, modulus=64)
        x = tasks.random_match(64, 64, size=5, rng=rng, order=3, planted=0.3)
        wrong, size = int((model(x) != tasks.match3(x, 64)).sum()), averaging.counted_size(model, x)
        cells.append(
            f"{name}, N = M = 64: D = {size.depth}, H = {size.heads}, m = {size.dimension}, {size.bits} bits,"
            f" {wrong} wrong"
        )
    crossings = [f"{below_bound(size):.1e}" for size in (groups.size, groups.strict_size)]
    below = f"m H D is below N / log2 N from N = {crossings[0]} on"
    strict = f"if m is no less than the numbers of a token, from {crossings[1]} on"
    return f"Match3 with D = 2, H = 3, {'; '.join(cells)} (two layers: {below}, or, {strict})"


TOUR: dict[str, Callable[[np.random.Generator], str]] = {
    "Sparse averaging, random keys": random_keys,
    "Sparse averaging, moment curve": moment_curve,
    "Pairs and triples": matching,
    "Lower bound as a protocol": protocols,
    "Other architectures": other_networks,
    "Triples in two layers and in more": conjecture,
}


def main(arguments: list[str] | None = None) -> int:
    script = scripts.Script(__doc__, out="sparse_averaging", quick="smaller sizes, 2000 steps of training, no PDF")
    script.add_argument("--learn", action="store_true", help="train on Match2 and Match3 too")
    options = script.options(arguments)
    out, entries = options.out, FIGURES + (LEARNING if options.learn else ())
    effort = figures.Effort(quick=options.quick, store=out / "runs" if options.learn else None)
    rng = np.random.default_rng(0)
    summary, found = [], {}
    for title, part in TOUR.items():
        summary.append(f"{title}: {part(rng)}.")
        print(summary[-1] + "\n", flush=True)
    with Progress("figures") as report:
        for number, entry in enumerate(entries):
            report.update(number / len(entries), entry.name)
            found[entry.name] = entry.data(effort)
            save_dataset(found[entry.name], out / f"{entry.name}.nc")
    with replacing(out / "summary.txt") as path:
        path.write_text("\n".join(summary) + "\n", encoding="utf-8")
    print(figures.save_all(found, out, among=entries, formats=("png",) if options.quick else ("png", "pdf")))
    print(f"Figures, captions, data and summary are in {out}")
    return 0


if __name__ == "__main__":
    scripts.run(main)
