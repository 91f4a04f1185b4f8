// What the explorer's panel and the statements' pages share: the levels, their curves over time, and a program in Python.
yzflow.levels = (() => {
  const { attention, claims, decoder, flow, shares: attend, sum } = yzflow;
  const N = 160; // output times
  const LEVELS = {
    closed: { label: "closed form (corrected)", name: "closed form", color: "c3" },
    theory: { label: "theory flow (Theorems 1, 2)", name: "theory flow", color: "c1" },
    modified: { label: "modified flow (Lemma 3)", name: "modified flow", color: "c2" },
    full: { label: "full flow (the true gradient)", name: "full flow", color: "c0" },
    sgd: { label: "SGD (presets)", name: "SGD", color: "c4" },
  };
  const INFINITE = "infinity"; // T of SGD in the limit, which is drawn beside every other
  const FLOWS = ["theory", "modified", "full"];
  const TIME = "time t, SGD steps";

  // Sliders that both have; a page adds its own and leaves out what it does not need.
  const SLIDERS = {
    etaY: { label: "η_Y, decoder’s rate", min: 0.01, max: 50, step: 0.05, log: true },
    etaZ: { label: "η_Z, attention’s rate", min: 0.001, max: 50, step: 0.05, log: true },
    K: { label: "K, next tokens seen", min: 1, max: 50, integer: true },
    M: { label: "M, next tokens in all", min: 2, max: 1e6, step: 0.05, log: true, integer: true },
    end: { label: "length of training", min: 1, max: 1e5, step: 0.05, log: true, unit: "SGD steps" },
  };

  // 0, then equal steps of ln t from `first` on, by default from well before t*, with t* among them.
  function timesOf(setting, first) {
    const peak = decoder.transitionTime(setting);
    first ??= 10 ** Math.floor(Math.log10(Math.min(peak, setting.end) / 20));
    const times = Array.from({ length: N }, (_, i) => first * (setting.end / first) ** (i / (N - 1)));
    if (peak > first && peak < setting.end && !times.includes(peak)) times.push(peak);
    times[N - 1] = setting.end;
    return { first, peak, times: [0, ...times.sort((a, b) => a - b)] };
  }

  // How fast attention moves between neighbouring times, half the sum of |change| over a step, at their geometric mean; and
  // when that is largest, by a parabola in ln t. t* is left out: a short interval beside it would show rounding.
  function speedOf(times, shares, peak) {
    const kept = times.map((t, i) => [t, shares[i]]).filter(([t, row]) => row && t > 0 && t !== peak);
    const pairs = kept.slice(1).map(([t, row], i) => [kept[i], [t, row]]);
    const x = pairs.map(([[a], [b]]) => Math.sqrt(a * b));
    const y = pairs.map(([[a, old], [b, row]]) => sum(row.map((c, l) => Math.abs(c - old[l]))) / 2 / (b - a));
    const most = Math.max(...y);
    const top = y.indexOf(most);
    if (top < 1 || top > y.length - 2) return { x, y, most, fastest: NaN };
    const [a, b, c] = [y[top - 1], y[top], y[top + 1]];
    const step = Math.log(x[top + 1] / x[top - 1]) / 2; // the times are equal steps of ln t, but around t*
    return { x, y, most, fastest: x[top] * Math.exp((step * (a - c)) / 2 / (a - 2 * b + c)) };
  }

  // Of a setting: times, B, gamma, and of each level its logits, attention, how far it has moved, its speed, and the share
  // of the change done at t*. Of SGD, `runs` has by T a run with times t and for each seed the logits z; the level is the
  // first seed at `length`, and its noise has no speed. `seeds` are those of all runs, by T.
  function compute(setting, runs, length) {
    const run = runs?.[length];
    const { first, peak, times } = timesOf(setting);
    const rho = attention.overlap(setting);
    const c0 = setting.unitConstant ? 1 : claims.speedConstant(setting.K, rho);
    const p = [setting.common, ...setting.distinct];
    const exponentAt = (t) => attention.growthExponent(t, setting, c0);
    const exponent = times.map(exponentAt);
    const z = { closed: exponent.map((B) => [-B, ...attention.distinctGrowth(B / setting.K, setting.distinct).map((v) => v / 2)]) };
    if (setting.K > 1) for (const name of FLOWS) z[name] = flow.logits(name, setting, p, times);
    if (run) z.sgd = run.z[0];
    const levels = {};
    for (const [name, logits] of Object.entries(z)) {
      const shares = logits.map((row) => row && attend(p, row));
      const moved = (row) => sum(row.map((c, l) => Math.abs(c - shares[0][l])));
      const own = name === "sgd" ? run.t : times;
      const [at, last] = [own.indexOf(peak), shares.at(-1)];
      levels[name] = {
        times: own, z: logits, shares,
        part: shares.map((row) => (row && last ? moved(row) / moved(last) : null)),
        speed: name === "sgd" ? null : speedOf(own, shares, peak),
        change: last ? moved(last) / 2 : NaN,
        done: last && at > 0 ? moved(shares[at]) / moved(last) : NaN,
      };
    }
    const gamma = times.map((t) => decoder.gamma(t, setting));
    const seeds = Object.fromEntries(Object.entries(runs ?? {}).map(([name, { z: all }]) => [name, all.map((logits) => ({ z: logits, shares: logits.map((row) => attend(p, row)) }))]));
    return { setting, first, peak, times, rho, c0, exponent, exponentAt, levels, gamma, seeds };
  }

  // The smallest and the largest of `pick(one, i)` over SGD's seeds, at the times of its records.
  function band(run, seeds, pick) {
    const all = run.t.map((_, i) => seeds.map((one) => pick(one, i)));
    return { x: run.t, low: all.map((values) => Math.min(...values)), high: all.map((values) => Math.max(...values)), color: LEVELS.sgd.color };
  }

  const marks = (setting, scale = 1) => [
    { x: decoder.transitionTime(setting) / scale, label: "t*", title: "t*: where the theory’s speed γ peaks", color: "mark", dash: "solid" },
    { x: decoder.scanningTime(setting) / scale, label: "t₀′", title: "t₀′ = K ln M/η_Y: the paper’s estimate of the end of scanning", color: "mark", dash: "dashed" },
    { x: decoder.snappingTime(setting) / scale, label: "t₀", title: "t₀ = 2 K ln M/η_Y: from here on the paper calls it snapping", color: "mark", dash: "dotted" },
  ];

  // The classes of a setting, and the call that simulates a level, as Python.
  const classes = ({ K, M, common, distinct }) => `SequenceClasses.single_common_token(${K}, ${M}, common=${common}, distinct=[${distinct.join(", ")}])`;
  function simulated(setting, how, steps, length) {
    const { etaY, etaZ, end } = setting;
    if (how === "sgd") {
      const drawn = length === INFINITE ? "batch_size=None, length=None" : `batch_size=128, length=${length}`;
      return `from dynamics import SequenceClasses, sgd

classes = ${classes(setting)}
flow = sgd(
    classes, eta_y=${etaY}, eta_z=${etaZ}, steps=${steps}, ${drawn}, momentum=0.0, seed=0
)
`;
    }
    return `from dynamics import SequenceClasses, Solver, gradient_flow

classes = ${classes(setting)}
flow = gradient_flow(
    classes, eta_y=${etaY}, eta_z=${etaZ}, t_end=${end}, decoder="${how}", solver=Solver(time_scale="log")
)
`;
  }

  return { LEVELS, FLOWS, TIME, SLIDERS, INFINITE, timesOf, compute, band, marks, classes, simulated };
})();
