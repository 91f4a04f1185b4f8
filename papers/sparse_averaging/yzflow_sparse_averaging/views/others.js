// What networks of other kinds need for sparse averaging, and queries that are linear in y.
(() => {
  const { views: { widths }, apart } = yzflow;
  const PRINTED = { color: "c5", dash: "dashed", width: 2.5 };
  const { N, d } = widths.sliders;
  const TOKENS = { ...N, min: 8, max: 4000 };
  const Q = { label: "q, tokens averaged", min: 1, max: 400, step: 0.05, log: true, integer: true };
  const adjust = ({ N: tokens, q }) => { if (q.value > tokens.value - 1) q.set(tokens.value - 1); };
  const brief = (value) => yzflow.widgets.brief(value);

  // Fully connected: the error that a first layer of k numbers cannot avoid.
  yzflow.views.collision = {
    title: "Error of an entry that every first layer of k numbers makes on some input with entries from −1 to 1",
    sliders: { N: TOKENS, q: Q, d: { ...d, label: "d′, width of values" } },
    adjust,
    compute({ N: tokens, q, d: width }) {
      const all = tokens * width;
      const first = width * (tokens - 2 * q + 2); // below it the least error is one, q <= N/2
      const half = 2 * q <= tokens;
      const steps = [first - 1, first, Math.round(all / 2), all - 1, all]; // where the error bends or jumps
      const sizes = [...new Set([...Array.from({ length: 120 }, (_, i) => Math.round((1.2 * all * i) / 119)), ...steps])].filter((k) => k > 0).sort((a, b) => a - b);
      const unit = sizes.map((k) => Math.abs(k / (2 * q) - 1));
      const most = Math.min(q, tokens - q);
      // The least error of a layer of k numbers, by r, those that some coordinate lacks.
      const least = (k) => {
        if (k >= all) return 0;
        if (k < width) return 1;
        if (q === tokens) return 0;
        const r = Math.floor((all - k + width - 1) / width);
        return r % 2 === 0 || r > 2 * most ? Math.min(most, r / 2) / q : (r + 1 / (2 * q - r)) / (2 * q);
      };
      const proved = sizes.map(least);
      const share = sizes.map((k) => (2 * q <= tokens ? Math.max(1 - k / all, 0) : null));
      return {
        x: { label: "k, numbers in the first layer", symbol: "k", min: 0, max: 1.2 * all },
        y: { label: "error" },
        marks: [
          ...(half ? [{ x: first, label: "d′(N − 2q + 2)", color: "mark", dash: "solid" }] : []),
          { x: all, label: "N d′", color: "mark", dash: "dashed" },
          { x: 2 * q, label: "2q", color: "c2", dash: "dotted" },
        ],
        margins: { "q < N": (tokens - 1) / q, "q <= N/2": tokens / 2 / q }, reference: "of k, from the 2q numbers of an attention unit",
        note: `One attention unit needs 2q = ${2 * q} exact numbers; a fully connected network needs ${half ? `${first} to be below an error of one, more than ${Math.round(all / 2)} to be below one half, and ` : ""}${all} to be exact.`,
        lines: [
          { id: "proved", label: "as corrected: the least error", color: "c3", width: 4, x: sizes, y: proved, off: unit },
          { id: "share", label: "share of the values that the layer lacks, q ≤ N/2", color: "c1", dash: "dotdash", width: 2.2, x: sizes, y: share },
          { ...PRINTED, id: "narrow", label: "1/(2q − 1)", x: sizes, y: sizes.map(() => 1 / (2 * q - 1)) },
        ],
        bands: null,
        python: `import numpy as np
from yzflow_sparse_averaging import averaging

N, q, d = ${tokens}, ${q}, ${width}
first, last = d * (N - 2 * q + 2), N * d
steps = [first - 1, first, np.floor(last / 2 + 0.5), last - 1, last]
times = np.unique(np.append(np.round(1.2 * last * np.arange(120) / 119), steps))  # k
times = times[times > 0]
proved = [averaging.collision_error(N, q, width=int(k), value_dimension=d) for k in times]
share = np.maximum(1 - times / last, 0) if 2 * q <= N else np.full(len(times), np.nan)
curves = {"proved": proved, "share": share, "narrow": np.full(len(times), 1 / (2 * q - 1))}
print({name: float(curve[-1]) for name, curve in curves.items()})
`,
      };
    },
  };

  // log2 of sum_{k <= r} C(n, k), by logarithms.
  function logBall(n, r) {
    let [term, total] = [0, 0]; // ln C(n, 0), ln of the sum
    for (let k = 1; k <= r; k++) {
      term += Math.log((n - k + 1) / k);
      const top = Math.max(term, total);
      total = top + Math.log(Math.exp(term - top) + Math.exp(total - top));
    }
    return total / Math.LN2;
  }

  // Recurrent: bits of state over the error that is allowed.
  yzflow.views.states = {
    title: "Bits of state that a recurrent network needs before the last token",
    sliders: { N: TOKENS, q: Q },
    adjust,
    compute({ N: tokens, q }) {
      const n = tokens - 1;
      const errors = Array.from({ length: 120 }, (_, i) => 0.001 * 999 ** (i / 119)).concat(0.9995);
      const ball = (error) => n - logBall(n, Math.min(n, Math.floor(2 * q * error)));
      const entropy = (error) => {
        const share = (2 * q * error) / n;
        return share <= 0.5 ? n * (1 + share * Math.log2(share) + (1 - share) * Math.log2(1 - share)) : null;
      };
      const needed = errors.map((error) => (error * q < 1 ? n : 2 * q > tokens + 1 ? Math.floor(n / q) : Math.max(Math.floor(n / q), ball(error))));
      const bound = errors.map((error) => (2 * q <= tokens + 1 ? entropy(error) : null));
      return {
        x: { label: "error allowed", symbol: "ε", min: 0.001, max: 1, log: true }, y: { label: "bits" },
        marks: [{ x: 1 / q, label: "1/q", color: "mark", dash: "solid" }], margins: {},
        reference: "of the form with the entropy H, from what is needed",
        note: `Below an error of 1/q = ${brief(1 / q)} all N − 1 = ${n} bits are needed; one attention unit gets by with 2q = ${2 * q} exact numbers.`,
        lines: [
          { id: "needed", label: "needed, as corrected", color: "c3", width: 4, x: errors, y: needed },
          { ...PRINTED, id: "entropy", label: "(N − 1)(1 − H(2qε/(N − 1)))", x: errors, y: bound, off: apart(bound, needed) },
          { id: "blocks", label: "⌊(N − 1)/q⌋", color: "c1", dash: "dotdash", width: 2.2, x: errors, y: errors.map(() => Math.floor(n / q)) },
        ],
        bands: null,
        python: `import numpy as np
from yzflow_sparse_averaging import averaging

N, q = ${tokens}, ${q}
times = np.append(0.001 * 999 ** (np.arange(120) / 119), 0.9995)  # errors
share = 2 * q * times / (N - 1)
inside = (share <= 0.5) & (2 * q <= N + 1)
part = np.where(inside, share, 0.5)
entropy = -part * np.log2(part) - (1 - part) * np.log2(1 - part)
curves = {
    "needed": [averaging.state_bits(N, q, error=error) for error in times],
    "entropy": np.where(inside, (N - 1) * (1 - entropy), np.nan),
    "blocks": np.full(len(times), (N - 1) // q),
}
print({name: float(curve[-1]) for name, curve in curves.items()})
`,
      };
    },
  };

  // Linear query: dimensions over q.
  yzflow.views.linear = {
    title: "Dimensions m that exact averaging takes, by the kind of query",
    sliders: { N: { ...N, min: 16 }, q: { ...Q, label: "q, at most" } },
    adjust: ({ N: tokens, q }) => { if (q.value > tokens.value / 2) q.set(Math.floor(tokens.value / 2)); if (q.value < 3) q.set(3); },
    compute({ N: tokens, q }) {
      const sizes = [...new Set(Array.from({ length: 120 }, (_, i) => Math.round(q ** (i / 119))))];
      const linear = sizes.map((size) => (size >= 3 ? tokens - 1 : null));
      const curve = sizes.map((size) => 2 * size);
      const random = sizes.map((size) => 12 * size * Math.log(tokens));
      return {
        x: { label: "q, tokens averaged", symbol: "q", min: 1, max: q, log: true }, y: { label: "dimensions m", log: true, decades: 7 },
        marks: [], margins: {}, reference: "of the linear query, from the moment curve", note: "",
        lines: [
          { id: "linear", label: "query linear in y: N − 1, from q = 3 on", color: "c3", width: 4, x: sizes, y: linear, off: apart(linear, curve) },
          { id: "curve", label: "any query, exact numbers: 2q (moment curve)", color: "c1", width: 2.5, x: sizes, y: curve },
          { ...PRINTED, id: "random", label: "any query, random keys: 12 q ln N", x: sizes, y: random },
        ],
        bands: null,
        python: `import numpy as np

N, q = ${tokens}, ${q}
times = np.unique(np.round(q ** (np.arange(120) / 119)))  # q
curves = {"linear": np.where(times >= 3, N - 1, np.nan), "curve": 2 * times, "random": 12 * times * np.log(N)}
print({name: float(curve[-1]) for name, curve in curves.items()})
`,
      };
    },
  };
})();
