// Plots with sliders of JoMA's reduced flows: v' = Delta e^(v²/2) or (mu - v) e^(v²/2), entry by entry, from zero.
(() => {
  const { integrate, apart, sum } = yzflow;
  const N = 160;
  const COLORS = ["c0", "c1", "c2", "c3"];
  const grid = (first, last) => Array.from({ length: N }, (_, i) => first * (last / first) ** (i / (N - 1)));
  const column = (rows, place) => rows.map((row) => (row ? row[place] : null));
  const of = (setting, letter) => Object.keys(setting).filter((key) => key.startsWith(letter)).map((key) => setting[key]);
  const listed = (values) => `[${values.join(", ")}]`;

  // Simpson's rule for a smooth function on [0, end].
  function integral(f, end, n = 400) {
    const size = end / n;
    return (size / 3) * sum(Array.from({ length: n + 1 }, (_, i) => f(i * size) * (i % n === 0 ? 1 : i % 2 ? 4 : 2)));
  }

  function entropy(u) {
    const top = Math.max(...u);
    const weights = u.map((value) => Math.exp(value - top));
    const total = sum(weights);
    return Math.log(total) - sum(weights.map((weight, l) => weight * (u[l] - top))) / total;
  }

  const entropyOf = (v) => entropy(v.map((value) => (value * value) / 2));

  // Spread: no mu is zero, and not all are of one size.
  const SPREAD = "no mu_j is zero, and not all |mu_j| are equal";
  const slider = (label, min, max) => ({ label, min, max, step: 0.01 });

  yzflow.views.turning = {
    title: "Entropy of attention, softmax(v²/2)",
    sliders: Object.fromEntries([1, 2, 3, 4].map((j) => [`mu${j}`, slider(`μ${j}`, 0, 3)])),
    compute(setting) {
      const mu = of(setting, "mu");
      const times = grid(0.01, setting.end);
      const rows = integrate({ start: mu.map(() => 0), derivative: (t, v) => v.map((value, j) => (mu[j] - value) * Math.exp((value * value) / 2)) }, times);
      const h = rows.map((row) => (row ? entropyOf(row) : null));
      const last = entropyOf(mu);
      const least = h.reduce((best, value, i) => (value !== null && value < h[best] ? i : best), 0);
      const turns = least > 0 && least < N - 1 && h[0] - h[least] > 1e-9 && h.at(-1) - h[least] > 1e-9;
      const x = { label: "time", symbol: "t", min: times[0], max: setting.end, log: true };
      const flat = (value) => times.map(() => value);
      return {
        x, y: { label: "entropy (nats)" },
        marks: turns ? [{ x: times[least], label: "sparsest", color: "mark", dash: "dashed" }] : [],
        margins: { [SPREAD]: Math.min(...mu) > 0 && new Set(mu).size > 1 ? 1 : 0 },
        reference: "from the entropy in the end",
        note: turns ? `It is sparsest near t = ${yzflow.widgets.brief(times[least])}, and denser in the end.` : "It does not turn up to here.",
        lines: [
          { id: "entropy", label: "reduced flow", color: "c0", width: 3, x: times, y: h, off: apart(h, flat(last)) },
          { id: "end", label: "in the end: softmax(μ²/2)", color: "c3", dash: "dashed", width: 2, x: times, y: flat(last) },
          { id: "uniform", label: "uniform attention", color: "c5", dash: "dotdash", width: 2, x: times, y: flat(Math.log(mu.length)) },
        ],
        bands: null,
        python: `import numpy as np

import yzflow as yz
from yzflow_joma.flows import ReducedFlow, entropy

mu = np.array(${listed(mu)})
times = np.geomspace(0.01, ${setting.end}, ${N})
run = yz.integrate(ReducedFlow(mu), t_end=${setting.end}, times=[0.0, *times], rtol=1e-10, atol=1e-13).dataset
curves = {
    "entropy": run["entropy"].values[1:],
    "end": np.full(${N}, entropy(mu**2 / 2)),
    "uniform": np.full(${N}, np.log(mu.size)),
}
print({name: float(curve[-1]) for name, curve in curves.items()})
`,
      };
    },
  };

  yzflow.views.blowUp = {
    title: "Weights v under a linear activation",
    sliders: Object.fromEntries([1, 2, 3].map((j) => [`d${j}`, slider(`Δ${j}`, 0.05, 2)])),
    compute(setting) {
      const delta = of(setting, "d");
      const infinite = Math.sqrt(Math.PI / 2) / Math.max(...delta);
      const times = Array.from({ length: N }, (_, i) => (0.98 * infinite * (i + 1)) / N);
      const rows = integrate({ start: delta.map(() => 0), derivative: (t, v) => v.map((value, j) => delta[j] * Math.exp((value * value) / 2)) }, times);
      const lines = delta.map((value, j) => {
        const y = column(rows, j);
        // sqrt(pi/2) erf(v/sqrt 2) is the integral of e^(-s²/2) up to v.
        const left = y.map((v) => (v === null ? null : integral((s) => Math.exp((-s * s) / 2), v)));
        return { id: `v${j + 1}`, label: `v${j + 1}`, color: COLORS[j], width: 3, x: times, y, off: apart(left, times.map((t) => value * t)) };
      });
      return {
        x: { label: "time", symbol: "t", min: 0, max: infinite }, y: { label: "v" },
        marks: [{ x: infinite, label: "t∞", color: "mark", dash: "solid" }], margins: {},
        reference: "of √(π/2) erf(v/√2) from Δ t",
        note: `The largest is infinite at t = ${yzflow.widgets.brief(infinite)}, when the others are finite.`,
        lines, bands: null,
        python: `import numpy as np

import yzflow as yz
from yzflow_joma.flows import ReducedFlow

delta = np.array(${listed(delta)})
end = 0.98 * np.sqrt(np.pi / 2) / delta.max()
times = end * np.arange(1, ${N + 1}) / ${N}
run = yz.integrate(ReducedFlow(delta, linear=True), t_end=end, times=[0.0, *times], rtol=1e-10, atol=1e-13).dataset
curves = {f"v{j + 1}": run["v"].values[1:, j] for j in range(delta.size)}
print({name: float(curve[-1]) for name, curve in curves.items()})
`,
      };
    },
  };

  // tau: ln(1/delta) = e^(mu²/2) (t - tau) in the end.
  function delay(mu) {
    const end = Math.exp((-mu * mu) / 2);
    return integral((s) => (Math.abs(mu - s) < 1e-9 ? mu * end : (Math.exp((-s * s) / 2) - end) / (mu - s)), mu, 2000);
  }

  yzflow.views.ratio = {
    title: "ln(1/δ₁) over ln(1/δ₂)",
    sliders: { mu1: slider("μ₁, the salient entry", 0.5, 2.5), mu2: slider("μ₂", 0.1, 2.5) },
    compute(setting) {
      const { mu1, mu2, end } = setting;
      const times = grid(0.01, end);
      const rates = (t, x) => [mu1, mu2].map((mu, j) => Math.exp((mu * (1 - Math.exp(-x[j]))) ** 2 / 2));
      const rows = integrate({ start: [0, 0], derivative: rates }, times);
      const found = rows.map((row) => (row ? row[0] / row[1] : null));
      const limit = Math.exp((mu1 * mu1 - mu2 * mu2) / 2);
      const shift = delay(mu2) - delay(mu1);
      const late = times.map((t) => limit * (1 + shift / t));
      return {
        x: { label: "time", symbol: "t", min: times[0], max: end, log: true }, y: { label: "ratio", min: 0 },
        marks: [], margins: {}, reference: "from its limit",
        note: `It begins at one. Late, it is off its limit by ${yzflow.widgets.brief(Math.abs(shift))}/t, the difference of the delays over time.`,
        lines: [
          { id: "ratio", label: "reduced flow", color: "c0", width: 3, x: times, y: found, off: apart(found, times.map(() => limit)) },
          { id: "limit", label: "limit e^((μ₁² − μ₂²)/2)", color: "c3", dash: "dashed", width: 2, x: times, y: times.map(() => limit) },
          { id: "late", label: "with the delays", color: "c1", dash: "dotdash", width: 2, x: times, y: late.map((value) => (Math.abs(value / limit - 1) < 0.5 ? value : null)) },
        ],
        bands: null,
        python: `import numpy as np
from scipy.integrate import solve_ivp
from yzflow_joma.formulas import delay, late_ratio

mu = np.array([${mu1}, ${mu2}])
times = np.geomspace(0.01, ${end}, ${N})
rates = lambda t, x: np.exp((mu * (1 - np.exp(-x))) ** 2 / 2)
x = solve_ivp(rates, (0, ${end}), [0, 0], t_eval=times, rtol=1e-10, atol=1e-13, method="LSODA").y
limit = late_ratio(*mu)
late = limit * (1 + (delay(mu[1]) - delay(mu[0])) / times)
curves = {"ratio": x[0] / x[1], "limit": np.full(${N}, limit), "late": np.where(abs(late / limit - 1) < 0.5, late, np.nan)}
print({name: float(curve[-1]) for name, curve in curves.items()})
`,
      };
    },
  };
})();
