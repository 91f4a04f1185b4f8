// Pairs and triples: one unit's answers over N, and the sizes of constructions for Match3.
(() => {
  const { apart } = yzflow;
  const PRINTED = { color: "c5", dash: "dashed", width: 2.5 };
  const brief = (value) => yzflow.widgets.brief(value);

  // The unit of `match2` or `match3_tensor`, built for `size` tokens, on the worst inputs of N: all tokens as near a match
  // as can be, and one match among them. Up to what the code adds for rounding.
  const unit = (order) => ({
    title: `Answers of one unit for ${order === 2 ? "pairs" : "triples"} over N: nearest miss, and a single match`,
    sliders: {
      size: { label: "N that it is built for", min: 2, max: order === 2 ? 1e6 : 1e4, step: 0.05, log: true, integer: true },
      M: { label: "M, modulus", min: 3, max: 1000, step: 0.02, log: true, integer: true },
      eta: { label: "η, error aimed at", min: 1e-6, max: 0.4, step: 0.05, log: true },
      scale: { label: "scale, × the c that it needs", min: 0.2, max: 2, step: 0.01 },
    },
    compute({ size, M, eta, scale }) {
      const near = 2 * Math.sin(Math.PI / M) ** 2;
      const gap = order === 3 ? Math.min(near, 1) : near;
      const others = (n) => (order === 3 ? n * (n + 2) : n);
      const L = Math.log((1 - eta) / eta);
      const c = (scale * (Math.log(others(size)) + 2 * L)) / gap;
      const kept = (c * gap - Math.log(others(size))) / 2; // the blank's place between match and near miss
      const blank = order === 3 && kept > 0 ? kept - Math.log1p((-2 / (size + 2)) * Math.exp(-kept)) : kept;
      const sizes = [...new Set([...Array.from({ length: 120 }, (_, i) => Math.round((100 * size) ** (i / 119))), size])].sort((a, b) => a - b);
      // Weights in units of that of a match; pairs of a token and the blank have the value 0.
      const miss = sizes.map((n) => {
        const found = (order === 3 ? n * n : n) * Math.exp(-c * near);
        return found / (found + (order === 3 ? 2 * n * Math.exp(-c) : 0) + Math.exp(-blank));
      });
      // The others are far away; of triples their pairs with the blank take their share.
      const match = sizes.map((n) => 1 / (1 + (order === 3 ? 2 * n * Math.exp(-c) : 0) + Math.exp(-blank)));
      const flat = (value) => sizes.map(() => value);
      return {
        x: { label: "N, tokens of the input", symbol: "N", min: 1, max: 100 * size, log: true }, y: { label: "answer" },
        marks: [{ x: size, label: "built for", color: "mark", dash: "solid" }], margins: {},
        reference: "of the answer to near misses, in units of η",
        note: `c = ${brief(c)}: it needs ${brief(c / scale)}${scale < 1 ? ", and has less" : ""}. A match should be answered by 1, near misses by 0.`,
        lines: [
          { id: "match", label: "one match, no near miss", color: "c3", width: 4, x: sizes, y: match },
          { id: "miss", label: "N near misses, no match", color: "c0", width: 3, x: sizes, y: miss, off: miss.map((value) => Math.abs(value / eta - 1)) },
          { ...PRINTED, id: "eta", label: "η", x: sizes, y: flat(eta) },
          { ...PRINTED, id: "right", label: "1 − η", dash: "dotted", x: sizes, y: flat(1 - eta) },
        ],
        bands: null,
        python: `import numpy as np
from yzflow_sparse_averaging import averaging

size, M, eta = ${size}, ${M}, ${eta}
built = averaging.${order === 2 ? "match2" : "match3_tensor"}(n_tokens=size, modulus=M, error=eta)
c, near = ${scale} * built.scale, averaging.angle_gap(M)
built = averaging.${order === 2 ? "match2" : "match3_tensor"}(n_tokens=size, modulus=M, scale=c)
blank = np.exp(c * (built.blank_score - 1))  # weights over that of a match
times = np.unique(np.append(np.round((100 * size) ** (np.arange(120) / 119)), size))  # N
missed = times${order === 3 ? "**2" : ""} * np.exp(-c * near)
curves = {
    "match": 1 / (1 + ${order === 3 ? "2 * times * np.exp(-c)" : "0 * times"} + blank),
    "miss": missed / (missed + ${order === 3 ? "2 * times * np.exp(-c) + " : ""}blank),
    "eta": np.full(len(times), eta),
    "right": np.full(len(times), 1 - eta),
}
print({name: float(curve[-1]) for name, curve in curves.items()})
`,
      };
    },
  });
  yzflow.views.pairs = unit(2);
  yzflow.views.triples = unit(3);

  // Sizes m H D of what computes Match3.
  yzflow.views.sizes = {
    title: "Size m H D of transformers for Match3",
    sliders: {
      digits: { label: "N at most, a power of ten", min: 3, max: 12, integer: true },
      power: { label: "a, for M = N^a (sorted groups)", min: 1, max: 6, step: 0.1 },
      constant: { label: "constant in front of N/log₂ N", min: 0.01, max: 10, step: 0.05, log: true },
    },
    compute({ digits: tens, power, constant }) {
      const end = 10 ** tens;
      const sizes = Array.from({ length: 120 }, (_, i) => 8 * (end / 8) ** (i / 119));
      sizes[119] = end;
      const bound = sizes.map((n) => (constant * n) / Math.log2(n));
      const groups = sizes.map((n) => 6 * n ** (2 / 3));
      const transform = sizes.map((n) => 4 * (Math.log2(n) + 1) * (Math.log2(n) + 2));
      const digits = Math.ceil(2 * (power + 1) - 1e-9);
      const sorted = sizes.map((n) => 3 * (3 + Math.ceil(digits / 3)) * Math.max(Math.sqrt(n) + 3, (power + 1) * Math.log2(n)));
      const named = { "groups of N^(2/3)": groups, "sorted groups": sorted, "the transform": transform };
      const from = Object.entries(named).map(([name, line]) => {
        const last = line.findLastIndex((value, i) => value >= bound[i]);
        return `${name} ${last + 1 < sizes.length ? `from N of about ${brief(sizes[last + 1])}` : "at no N in the plot"}`;
      });
      return {
        x: { label: "N, tokens", symbol: "N", min: 8, max: end, log: true }, y: { label: "m H D", log: true, decades: 12 },
        marks: [], margins: {}, reference: "of each size, from the bound",
        note: `Below the bound: ${from.join("; ")}.`,
        lines: [
          { ...PRINTED, id: "bound", label: `${constant === 1 ? "" : `${brief(constant)} `}N/log₂ N: needed by one layer, conjectured for all`, x: sizes, y: bound },
          { id: "groups", label: "two layers, any M", color: "c3", width: 4, x: sizes, y: groups, off: apart(groups, bound) },
          { id: "sorted", label: "sorted groups, M = N^a", color: "c0", width: 3, x: sizes, y: sorted, off: apart(sorted, bound) },
          { id: "transform", label: "transform, M = N", color: "c1", dash: "dotdash", width: 2.5, x: sizes, y: transform, off: apart(transform, bound) },
        ],
        bands: null,
        python: `import numpy as np
from yzflow_sparse_averaging.constructions import promised_product

times = 8 * (10**${tens} / 8) ** (np.arange(120) / 119)  # N
curves = {"bound": ${constant} * times / np.log2(times)}
for name in ("groups", "sorted", "transform"):
    curves[name] = np.array([promised_product(name, n, ${power}) for n in times])
print({name: float(curve[-1]) for name, curve in curves.items()})
`,
      };
    },
  };
})();
