// Plots of how far statements reach: Theorem 1(a) in the overlaps, attention late in the full flow.
(() => {
  const { attention, decoder, integrate, apart, sum } = yzflow;
  const { PRINTED, CORRECTED, SLIDERS, stopped } = yzflow.views.shared;
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
      const share = (G) => attention.xiOverGamma(G, M)[0] / weak(G);
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

  // The full flow and the theory flow of equal classes in s = ln t, with logarithms of probabilities, so that ln t may be
  // thousands: `late_flow` and `theory_logit` of yzflow.papers.scan_and_snap.late.
  const START = -12;
  const addExp = (a, b) => {
    const top = Math.max(a, b);
    return top === -Infinity ? top : top + Math.log1p(Math.exp(-Math.abs(a - b)));
  };
  const ratioOf = ({ share, D }) => (share * Math.sqrt(D)) / (1 - share);

  function fullFlow(setting) {
    const { K, M, etaY, etaZ, D: tokens } = setting;
    const gain = 1 + 1 / (K * tokens);
    const first = ratioOf(setting);
    const [logClasses, logOthers] = [Math.log(K - 1), M > K ? Math.log(M - K) : -Infinity];
    const parts = (s, [U, D, C, z]) => {
      const w = first * Math.exp(gain * z);
      const d = 1 / Math.sqrt(1 + w * w);
      const c = w * d;
      const u = U + s;
      const [A, B] = [u / d, (D - c * C) / d];
      const total = addExp(0, addExp(logClasses - u, logOthers - u - D));
      const p = Math.exp(-U - total);
      const q = M > K ? Math.exp(-U - D - total) : 0;
      const dA = ((etaY * d) / K) * (K * p + (M - K) * q);
      const dB = ((etaY * d) / K) * (q - p);
      const dC = (etaY * c * M * q) / K;
      const dz = etaZ * c * d * (d * (M - K) * q * C - c * ((K - 1) * p * A + (M - K) * q * (A + B)));
      const [dd, dc] = [-c * c * d * gain * dz, c * d * d * gain * dz];
      return { rate: [dd * A + d * dA - 1, dd * B + d * dB + dc * C + c * dC, dC, dz], w };
    };
    const d = 1 / Math.sqrt(1 + first * first);
    const [c, t] = [first * d, Math.exp(START)];
    const start = [(d * d * etaY * t) / K - START, (c * c * etaY * t) / K, (c * etaY * t) / K, 0];
    return {
      problem: { start, from: START, derivative: (s, y) => parts(s, y).rate },
      read: (s, y) => {
        const { rate, w } = parts(s, y);
        return { w, exponent: -gain * rate[3] * s };
      },
    };
  }

  // Phi(y) - Phi(y(0)) = (K - 1) M/(M - 1)^2 Gamma for y = w^2, by bisection in ln y.
  function theoryRatio(setting, s) {
    const { K, M, etaY, etaZ, D } = setting;
    const gain = 1 + 1 / (K * D);
    const phi = (v) => (Math.exp(-v) - (K + 1 - M) * v - (((M - K) * (M - 1)) / M) * Math.log1p(M * Math.exp(v))) / (2 * gain);
    const x = s < 600 ? M * decoder.h(Math.exp(s) / K, setting) : s + Math.log((M * etaY) / K);
    const top = 2 * Math.log(ratioOf(setting));
    const goal = phi(top) + ((K - 1) * M * etaZ * K * (x / M) ** 2) / (2 * etaY);
    let [low, high] = [top - 1, top];
    while (phi(low) < goal) low -= 1;
    for (let i = 0; i < 100; i++) {
      const middle = (low + high) / 2;
      if (phi(middle) < goal) high = middle;
      else low = middle;
    }
    return Math.exp((low + high) / 4);
  }

  yzflow.views.late = {
    title: "Attention on the common token over that on the distinct one",
    sliders: {
      etaY: SLIDERS.etaY, etaZ: SLIDERS.etaZ, K: { ...SLIDERS.K, min: 2 }, M: { ...SLIDERS.M, max: 1e4 },
      share: { label: "P(common token)", min: 0.05, max: 0.95, step: 0.05 },
      end: { label: "ln t at the end", min: 10, max: 10000, step: 0.05, log: true },
    },
    adjust: ({ K, M }) => { if (M.value < K.value) M.set(K.value); },
    compute(values) {
      const setting = { ...values, D: 1 };
      const { K, M, etaY, etaZ, share, end } = setting;
      const times = Array.from({ length: N }, (_, i) => end ** (i / (N - 1)));
      times[N - 1] = end;
      const { problem, read } = fullFlow(setting);
      const rows = integrate(problem, times, { rtol: 1e-9, atol: 1e-11, maximum: 60000 }).map((state, i) => state && read(times[i], state));
      const full = rows.map((row) => row && row.w);
      const theory = times.map((s) => theoryRatio(setting, s));
      const alpha = (K - 1) / (M - 1);
      const last = full.at(-1);
      const law = times.map((s) => last && last * (s / end) ** -alpha);
      const lines = [
        { ...CORRECTED, id: "law", label: `(ln t)^−α through the end, α = ${yzflow.widgets.brief(alpha)}`, x: times, y: law },
        { id: "full", label: "full flow", color: "c0", width: 3, x: times, y: full, off: apart(rows.map((row) => row && row.exponent), rows.map(() => alpha)) },
        { id: "theory", label: "theory flow, solved exactly", color: "c1", width: 2.2, x: times, y: theory },
      ];
      return {
        x: { label: "ln t", symbol: "ln t", min: 1, max: end, log: true }, y: { label: "common/distinct", log: true, decades: 6 },
        margins: {}, reference: "of the full flow’s exponent, −d ln(common/distinct)/d ln ln t, from α", lines, note: stopped(lines), bands: null,
        python: `import numpy as np
from yzflow.papers.scan_and_snap import late

times = np.geomspace(1, ${end}, ${N})  # ln t
population = {"n_classes": ${K}, "vocab_size": ${M}, "common": ${share}, "n_distinct": 1, "eta_y": ${etaY}, "eta_z": ${etaZ}}
full = late.late_flow(times, **population, rtol=1e-9)
theory = full.start * np.exp(full.gain * late.theory_logit(times, **population))
alpha = late.final_exponent(n_classes=${K}, vocab_size=${M})
ratio = full["ratio"].values
curves = {"law": ratio[-1] * (times / times[-1]) ** -alpha, "full": ratio, "theory": theory}
print({name: float(curve[-1]) for name, curve in curves.items()})
`,
      };
    },
  };
})();
