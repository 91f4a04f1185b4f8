// How far Theorem 1(a) reaches in the overlaps.
(() => {
  const { attention, apart, sum } = yzflow;
  const { CORRECTED, SLIDERS } = yzflow.views.shared;
  const N = 120;

  // Theorem 1(a): a class that touches the centre of a star of overlaps, against equal overlaps.
  const starOf = (K, size, touch) => Array.from({ length: K }, (_, i) => Array.from({ length: K }, (_, j) => {
    const [a, b] = [Math.min(i, j), Math.max(i, j)];
    return i === j ? 1 : a === 1 ? size : a === 0 && b === 1 ? touch : 0;
  }));
  const equalOf = (K, size) => Array.from({ length: K }, (_, i) => Array.from({ length: K }, (_, j) => (i === j ? 1 : size)));
  yzflow.views.star = {
    title: "ξₙ over its value at weak overlaps",
    sliders: {
      K: { label: "K, classes", min: 4, max: 20, integer: true },
      M: { ...SLIDERS.M, min: 20 },
      touch: { label: "overlap of class 1 with the centre", min: 0.0001, max: 0.1, step: 0.05, log: true },
    },
    compute({ K, M, touch }) {
      const largest = Array.from({ length: N }, (_, i) => 0.05 + (0.9 * i) / (N - 1));
      // First order in the overlaps: beta_nn' is M/(M - 1) (G_nn' + 1/(M - 1)).
      const weak = (G) => sum(G[0].slice(1).map((value) => (M / (M - 1)) * value * (value + 1 / (M - 1))));
      const share = (G) => attention.xiOverGamma(G, M) / weak(G);
      const star = largest.map((value) => share(starOf(K, value / Math.sqrt(K - 2), touch)));
      const equal = largest.map((value) => share(equalOf(K, value / (K - 1))));
      const lost = largest.find((_, i) => star[i] <= 0);
      const ones = largest.map(() => 1);
      return {
        x: { label: "|λ₁(E)|, largest eigenvalue of the overlaps", symbol: "|λ₁|", min: 0, max: 1 },
        y: { label: "share of the weak pull" },
        marks: [
          { x: 1 / K, label: "1/K", color: "mark", dash: "dashed" },
          { x: 1 / Math.sqrt(K - 2), label: "1/√(K−2)", color: "mark", dash: "solid" },
        ],
        margins: {}, reference: "from the pull of weak overlaps",
        note: `Class 1 is ${lost === undefined ? "pushed away at each overlap in the plot" : `no longer pushed away from |λ₁| = ${yzflow.widgets.brief(lost)} on`}; the theorem asks for |λ₁| below 1/K = ${yzflow.widgets.brief(1 / K)}, and 1/√(K−2) = ${yzflow.widgets.brief(1 / Math.sqrt(K - 2))} is enough.`,
        lines: [
          { id: "star", label: "class 1, beside a star’s centre", color: "c0", width: 3, x: largest, y: star, off: apart(star, ones) },
          { ...CORRECTED, id: "equal", label: "equal overlaps", width: 3, x: largest, y: equal, off: apart(equal, ones) },
          { id: "zero", label: "0: no push", color: "c5", dash: "dashed", width: 2, x: largest, y: largest.map(() => 0) },
        ],
        bands: null,
        python: `import numpy as np
from theory.scan_and_snap.bounds import xi_over_gamma

K, M, touch = ${K}, ${M}, ${touch}
times = np.linspace(0.05, 0.95, ${N})  # |lambda_1(E)|, but for the touch


def share(gram):
    weak = M / (M - 1) * gram[0, 1:] * (gram[0, 1:] + 1 / (M - 1))
    return xi_over_gamma(gram, M)[0] / weak.sum()


def star(size):
    gram = np.eye(K)
    gram[1, 2:] = gram[2:, 1] = size
    gram[0, 1] = gram[1, 0] = touch
    return gram


curves = {
    "star": [share(star(value / np.sqrt(K - 2))) for value in times],
    "equal": [share(np.eye(K) * (1 - value / (K - 1)) + value / (K - 1)) for value in times],
    "zero": 0 * times,
}
print({name: float(curve[-1]) for name, curve in curves.items()})
`,
      };
    },
  };
})();
