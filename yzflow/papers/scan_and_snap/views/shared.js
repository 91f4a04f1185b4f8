// What the plots of Scan and Snap's statements share, in Theorem 4's setting: exchangeable classes with one common token.
yzflow.views.shared = (() => {
  const { flow, levels, apart, sum } = yzflow;
  const { LEVELS, FLOWS, SLIDERS, TIME } = levels;
  const DISTINCT = [1, 0.8, 0.6, 0.4, 0.2];
  const SQUARES = sum(DISTINCT.map((p) => p * p));
  const PRINTED = { id: "printed", label: "as printed", color: "c5", dash: "dashed", width: 2.5 };
  const CORRECTED = { id: "corrected", label: "corrected", color: "c3", width: 6 };
  const STYLES = { theory: { width: 2.2 }, modified: { dash: "dotdash", width: 2.2 }, full: { width: 3 } };

  const RHO = { label: "ρ, overlap of classes", min: 0.001, max: 0.9, step: 0.05, log: true };
  const of = (...names) => Object.fromEntries(names.map((name) => [name, { ...SLIDERS, rho: RHO }[name]]));
  const ALL = of("etaY", "etaZ", "K", "M", "rho", "end");
  ALL.K = { ...ALL.K, min: 2 };
  const STILL = of("etaY", "K", "M", "end");
  const adjust = ({ K, M }) => { if (K && M.value < K.value) M.set(K.value); };

  // The margins of the assumptions that the sliders move, by their texts in the register.
  function margins({ M, K, etaY, etaZ, rho }) {
    const found = Object.entries(yzflow.margins).map(([name, margin]) => [yzflow.assumptions[name], margin(M, K, etaY, etaZ, rho)]);
    return Object.fromEntries(found.filter(([, margin]) => !Number.isNaN(margin)));
  }

  const firstOf = ({ end }) => (end > 10 ? 0.1 : end / 1000); // the same axis whatever t* is
  function clock(setting) {
    const first = firstOf(setting);
    const { times } = levels.timesOf(setting, first);
    return { first, times: times.slice(1), x: { label: TIME, symbol: "t", min: first, max: setting.end, log: true }, marks: levels.marks(setting) };
  }

  // Tokens of a class: their frequencies give the overlap rho.
  function tokens(setting) {
    const common = Math.sqrt((setting.rho / (1 - setting.rho)) * SQUARES);
    return { ...setting, common, distinct: DISTINCT, p: [common, ...DISTINCT] };
  }

  // The flows as lines; pick(row, t) gives the value, against(row, t) what it is compared with.
  function flows(setting, times, pick, against = null) {
    const rows = Object.fromEntries(FLOWS.map((name) => [name, flow.observe(name, setting, setting.p, times)]));
    const list = (name, get) => rows[name].map((row, i) => (row ? get(row, times[i]) : null));
    const lines = FLOWS.map((name) => {
      const y = list(name, pick);
      const line = { id: name, label: LEVELS[name].name, color: LEVELS[name].color, ...STYLES[name], x: times, y };
      return against ? { ...line, off: apart(y, list(name, against)) } : line;
    });
    return { rows, lines };
  }

  const stopped = (lines) => (lines.some((line) => line.y.includes(null)) ? "The integration of a flow took too many steps and stops early: try smaller rates or a shorter training." : "");

  // A band of SGD for each length T of its sequences.
  function banded(runs, pick) {
    const band = (run) => ({ ...levels.band(run, run.z.map((z, seed) => ({ z, loss: run.loss[seed] })), pick), seeds: run.z.length });
    return runs && Object.fromEntries(Object.entries(runs).map(([length, run]) => [length, band(run)]));
  }

  // A program that leaves `times` and `curves`: the closed forms' lines, then what `quantity` takes of each flow.
  function program(setting, { closed = [], quantity = null, before = "", names = FLOWS }) {
    const { K, M, etaY, etaZ, end } = setting;
    const lines = [
      "import numpy as np",
      quantity ? "from dynamics import SequenceClasses, Solver, gradient_flow" : null,
      "from theory import attention, decoder",
      "",
      `times = np.geomspace(${firstOf(setting)}, ${end}, 160)`,
      `sizes = {"vocab_size": ${M}, "n_classes": ${K}, "eta_y": ${etaY}}`,
      before,
      ...(quantity ? [
        `classes = ${setting.classes ?? levels.classes(setting)}`,
        `accuracy = {"rtol": 1e-10, "atol": 1e-14, "solver": Solver(time_scale="log")}`,
        "", "",
        `def flow(level, eta_z=${etaZ}):`,
        `    start = np.concatenate([[0.0], times])`,
        `    run = gradient_flow(classes, eta_y=${etaY}, eta_z=eta_z, t_end=${end}, times=start, decoder=level, **accuracy)`,
        `    return run.dataset.isel(time=slice(1, None))`,
        "", "",
        `runs = {level: flow(level) for level in ${JSON.stringify(names)}}`,
      ] : []),
      "curves = {",
      ...closed.map(([name, text]) => `    "${name}": ${text},`),
      quantity ? `    **{level: ${quantity} for level, run in runs.items()},` : null,
      "}",
      `print({name: float(curve[-1]) for name, curve in curves.items()})`,
    ];
    return `${lines.filter((line) => line !== null && line !== undefined).join("\n").replace(/\n{4,}/g, "\n\n\n")}\n`;
  }

  const OWN = "each level against the formula at its own features";

  return { SLIDERS, PRINTED, CORRECTED, ALL, STILL, OWN, adjust, margins, clock, tokens, flows, stopped, banded, program };
})();
