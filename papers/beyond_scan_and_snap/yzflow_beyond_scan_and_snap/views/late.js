// Attention late in the full flow, beside the theory's flow.
(() => {
  const { claims, decoder, integrate, late, apart } = yzflow;
  const { CORRECTED, SLIDERS, stopped } = yzflow.views.shared;
  const N = 120;

  // The full flow and the theory flow of equal classes in s = ln t, with logarithms of probabilities, so that ln t may be
  // thousands: `late_flow` and `theory_logit` of yzflow_beyond_scan_and_snap.late.
  const START = -12;
  const addExp = (a, b) => {
    const top = Math.max(a, b);
    return top === -Infinity ? top : top + Math.log1p(Math.exp(-Math.abs(a - b)));
  };
  const ratioOf = ({ share }) => share / (1 - share);

  function fullFlow(setting) {
    const { K, M, etaY, etaZ } = setting;
    const gain = 1 + 1 / K;
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
      const [dA, dB, dC, dz] = late.rates(M, K, c, d, A, B, C, p, q, etaY, etaZ);
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
    const { K, M, etaY, etaZ } = setting;
    const phi = (v) => late.theoryTime(M, K, Math.exp(v));
    const x = s < 600 ? M * decoder.h(Math.exp(s) / K, setting) : s + Math.log((M * etaY) / K);
    const top = 2 * Math.log(ratioOf(setting));
    const goal = phi(top) + late.theoryRate(M, K) * claims.accumulated(M, K, etaY, etaZ, x / M);
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
    compute(setting) {
      const { K, M, etaY, etaZ, share, end } = setting;
      const times = Array.from({ length: N }, (_, i) => end ** (i / (N - 1)));
      times[N - 1] = end;
      const { problem, read } = fullFlow(setting);
      const rows = integrate(problem, times, { rtol: 1e-9, atol: 1e-11, maximum: 60000 }).map((state, i) => state && read(times[i], state));
      const full = rows.map((row) => row && row.w);
      const theory = times.map((s) => theoryRatio(setting, s));
      const alpha = late.exponent(M, K);
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
from yzflow_beyond_scan_and_snap import late

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
