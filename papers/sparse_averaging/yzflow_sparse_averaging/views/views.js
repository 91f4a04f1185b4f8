// What sparse averaging needs of one unit, in bits of its width: the constructions' and the lower bound's, over q.
yzflow.views.widths = {
  title: "Bits m p that a unit for q-sparse averaging has or needs",
  sliders: {
    N: { label: "N, tokens", min: 4, max: 1e6, step: 0.05, log: true, integer: true },
    p: { label: "p, bits of a number", min: 2, max: 64, integer: true },
    d: { label: "d′, width of values", min: 1, max: 64, integer: true },
  },
  compute({ N, p, d }) {
    const sizes = [...new Set(Array.from({ length: 120 }, (_, i) => Math.round((N / 2) ** (i / 119))))];
    const list = (formula) => sizes.map(formula);
    const needed = list((q) => Math.max((q - d * p) / 2, 0) || null);
    const printed = list((q) => (q * p) / Math.log2(N));
    const line = (id, label, color, dash, y) => ({ id, label, color, dash, width: 2.8, x: sizes, y });
    return {
      x: { label: "q, tokens averaged", symbol: "q", min: 1, max: N / 2, log: true },
      y: { label: "m p, bits", log: true, decades: 9 },
      reference: "of the lower bounds",
      margins: {},
      lines: [
        line("random", "12 q ln N random keys (Theorem 2, as checked)", "c1", "solid", list((q) => 12 * q * Math.log(N) * p)),
        line("moments", "moment curve: about 4 q² log₂ N (exact)", "c2", "dotdash", list((q) => 4 * q * q * Math.log2(N))),
        { ...line("printed", "needed, as in the slides: m log₂ N ≥ q", "c5", "dashed", printed), off: yzflow.apart(printed, needed) },
        { ...line("corrected", "needed, corrected: (2m + d′) p ≥ q", "c3", "solid", needed), width: 5 },
      ],
      bands: null,
      python: `import numpy as np

N, p, d = ${N}, ${p}, ${d}
times = np.unique(np.round((N / 2) ** (np.arange(120) / 119)))  # q
curves = {
    "random": 12 * times * np.log(N) * p,
    "moments": 4 * times**2 * np.log2(N),
    "printed": times * p / np.log2(N),
    "corrected": np.where(times > d * p, (times - d * p) / 2, np.nan),
}
print({name: float(curve[-1]) for name, curve in curves.items()})
`,
    };
  },
};
