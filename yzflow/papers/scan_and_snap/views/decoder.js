// Plots of the decoder: gamma and its stages, h and its steps, and what is built from Gamma.
(() => {
  const { claims, decoder, flow, apart } = yzflow;
  const { PRINTED, CORRECTED, ALL, STILL, adjust, margins, clock, tokens, flows, stopped, program } = yzflow.views.shared;

  // Theorem 1(b), Lemma 9 and the transition time: gamma, the two stages' bounds, and gamma as the flows imply it.
  const stages = (bounded) => ({
    title: "Speed γ of attention",
    sliders: ALL,
    adjust,
    compute(values) {
      const setting = tokens(values);
      const { K, M, etaY, etaZ } = setting;
      const { times, x, marks } = clock(setting);
      const gamma = times.map((t) => decoder.gamma(t, setting));
      const { lines } = flows(setting, times, (row, t) => (-row.speed[0] / etaZ / (1 - row.f[0] ** 2) / flow.pull(setting, row.f, t)) * decoder.gamma(t, setting));
      const [scan, second] = [decoder.scanningTime(setting), decoder.secondStage(setting)];
      const early = times.map((t) => (t <= scan ? (etaY * t) / K : null));
      const late = (bound) => times.map((t) => (t >= second ? bound(t) : null));
      const printed = late((t) => (2 * K * Math.log((etaY * t) / K)) / (etaY * t));
      const sharper = late((t) => claims.lateBound(M, K, etaY, t));
      const over = (bound) => bound.map((value, i) => value && Math.max(gamma[i] / value - 1, 0));
      const bounds = [
        { ...PRINTED, id: "early", label: "η_Y t/K, first stage", color: "c3", width: 2.5, x: times, y: early, off: undefined },
        { ...PRINTED, id: "printed", label: "second stage as printed, constant 2", x: times, y: printed, off: over(printed) },
        { ...CORRECTED, id: "corrected", label: "second stage with M, constant 2", width: 2.5, x: times, y: sharper, off: undefined },
      ];
      const sample = `K, M, eta_y = ${K}, ${M}, ${etaY}`;
      return {
        x, y: { label: "γ" }, marks, margins: margins(setting), note: stopped(lines),
        reference: bounded ? "of the flows; by how much γ exceeds the printed bound" : "of the flows, against γ",
        lines: [
          { ...CORRECTED, id: "gamma", label: "γ in closed form", color: "c1", x: times, y: gamma },
          ...(bounded ? bounds : []),
          ...lines.slice(1).map((line) => ({ ...line, label: `implied by the ${line.label}`, off: apart(line.y, gamma) })),
        ],
        bands: null,
        python: program(setting, {
          before: `from theory.scan_and_snap.bounds import crossings, xi_over_gamma\n\n${sample}\ngamma = decoder.gamma(times, **sizes)
scan, second = decoder.scanning_time(**sizes), 2 * crossings(M)[1] * K / eta_y`,
          closed: [
            ["gamma", "gamma"],
            ...(bounded ? [
              ["early", "np.where(times <= scan, eta_y * times / K, np.nan)"],
              ["printed", "np.where(times >= second, 2 * K * np.log(eta_y * times / K) / (eta_y * times), np.nan)"],
              ["corrected", "np.where(times >= second, 2 * ((M - 1) / M) ** 2 * K * np.log(M * eta_y * times / K) / (eta_y * times), np.nan)"],
            ] : []),
          ],
          quantity: "implied(run)",
          names: ["modified", "full"],
        }).replace("runs = {", `def implied(run):
    shares = run["attention"].values
    f = shares / np.linalg.norm(shares, axis=2, keepdims=True)
    ratio = xi_over_gamma(f @ f.transpose(0, 2, 1), M)[:, 0]
    return -run["z_velocity"].values[:, 0, 0] / ${etaZ} / (1 - f[:, 0, 0] ** 2) / ratio


runs = {`),
      };
    },
  });
  yzflow.views.stages = stages(true);
  yzflow.views.peak = stages(false);

  // Lemma 6: h over training, and what the flows have of it.
  yzflow.views.margin = {
    title: "Lead M h of the right next token’s logit",
    sliders: ALL,
    adjust,
    compute(values) {
      const setting = tokens(values);
      const { K, M, etaY } = setting;
      const { times, x, marks } = clock(setting);
      const closed = times.map((t) => M * decoder.h(t / K, setting));
      const { lines } = flows(setting, times, (row) => row.lead);
      return {
        x, y: { label: "M h" }, marks, margins: margins(setting), note: stopped(lines), reference: "of the flows, against (45)",
        lines: [{ ...CORRECTED, id: "closed", label: "(45), as printed", x: times, y: closed }, ...lines.slice(1).map((line) => ({ ...line, off: apart(line.y, closed) }))],
        bands: null,
        python: program(setting, {
          closed: [["closed", `${M} * decoder.h(times / ${K}, vocab_size=${M}, eta_y=${etaY})`]],
          quantity: "lead(run)",
          names: ["modified", "full"],
        }).replace("runs = {", `def lead(run):
    shares, Y = run["attention"].values[:, 0], run["y"].values
    f = shares / np.linalg.norm(shares, axis=1, keepdims=True)
    logits = np.einsum("tl,tlj->tj", f, Y)
    return logits[:, 0] - logits[:, 1]


runs = {`),
      };
    },
  };

  // Visits of a class, s = 1, 2, .., as a logarithmic axis.
  const VISITS = { etaY: { ...STILL.etaY, max: 20 }, M: STILL.M, end: { ...STILL.end, label: "visits of a class, s", min: 10, max: 20000, integer: true, unit: "visits" } };
  function visited(setting) {
    const s = [...new Set(Array.from({ length: 160 }, (_, i) => Math.round(setting.end ** (i / 159))))];
    const steps = decoder.hSteps(setting.end, setting);
    const x = { label: "visits of a class, s", symbol: "s", min: 1, max: setting.end, log: true };
    const crossing = Math.log(setting.M) / setting.etaY;
    const marks = [
      { x: decoder.transitionTime({ ...setting, K: 1 }), label: "t*/K", color: "mark", dash: "solid" },
      { x: crossing, label: "t₀′/K", color: "mark", dash: "dashed" }, { x: 2 * crossing, label: "t₀/K", color: "mark", dash: "dotted" },
    ];
    return { s, x, marks, exact: s.map((i) => steps[i]) };
  }
  const stepped = (setting, curves) => `import numpy as np
from theory import decoder

M, eta_y = ${setting.M}, ${setting.etaY}
steps = decoder.h_steps(${setting.end}, vocab_size=M, eta_y=eta_y)
times = np.arange(1.0, ${setting.end + 1})
curves = {
${curves.map(([name, text]) => `    "${name}": ${text},`).join("\n")}
}
print({name: float(curve[-1]) for name, curve in curves.items()})
`;

  // Lemma 7: how far the steps are ahead of the smooth formula.
  yzflow.views.steps = {
    title: "Gap h* − h between steps and flow",
    sliders: VISITS,
    compute(setting) {
      const { s, x, marks, exact } = visited(setting);
      const smooth = s.map((i) => decoder.h(i, setting));
      const gap = s.map((_, i) => Math.max(exact[i] - smooth[i], 0));
      const flat = (factor) => s.map(() => factor * claims.stepGap(setting.M, setting.etaY));
      return {
        x, y: { label: "h* − h" }, marks, margins: margins(setting), reference: "of h* and h",
        lines: [
          { ...PRINTED, label: "2 η_Y/M, as printed", x: s, y: flat(2) },
          { ...CORRECTED, id: "half", label: "η_Y/M, enough", width: 2.5, x: s, y: flat(1) },
          { id: "gap", label: "h*(s) − h(s)", color: "c0", width: 3, x: s, y: gap, off: apart(exact, smooth) },
        ],
        bands: null,
        python: stepped(setting, [
          ["printed", "np.full_like(times, 2 * eta_y / M)"], ["half", "np.full_like(times, eta_y / M)"],
          ["gap", "steps[1:] - decoder.h(times, vocab_size=M, eta_y=eta_y)"],
        ]),
      };
    },
  };

  // Remark 2: the time by which the steps run ahead.
  yzflow.views.lag = {
    title: "Time by which the steps run ahead of the flow",
    sliders: VISITS,
    compute(setting) {
      const { M, etaY } = setting;
      const { s, x, marks, exact } = visited(setting);
      const lag = s.map((i, n) => (Math.expm1(M * exact[n]) + (M - 1) * M * exact[n]) / (M * etaY) - i);
      const grown = s.map((i) => (i * etaY > 1 ? 0.5 * Math.log(etaY * i) : null));
      return {
        x, y: { label: "lag, visits" }, marks, margins: margins(setting), reference: "of the two forms, against the lag",
        lines: [
          { ...PRINTED, label: "a constant of ln M, as printed", x: s, y: s.map(() => Math.log(M)), off: apart(s.map(() => Math.log(M)), lag) },
          { ...CORRECTED, label: "½ ln(η_Y s), corrected", x: s, y: grown, off: apart(grown, lag) },
          { id: "lag", label: "lag of the steps", color: "c0", width: 3, x: s, y: lag },
        ],
        bands: null,
        note: "The lag grows like ½ ln(η_Y s) up to a constant.",
        python: stepped(setting, [
          ["printed", "np.full_like(times, np.log(M))"], ["corrected", "np.where(times * eta_y > 1, 0.5 * np.log(eta_y * times), np.nan)"],
          ["lag", "(np.expm1(M * steps[1:]) + (M - 1) * M * steps[1:]) / (M * eta_y) - times"],
        ]),
      };
    },
  };

  // Theorem 4's branches of 4 Gamma.
  yzflow.views.branches = {
    title: "4 Γ, and its two branches",
    sliders: Object.fromEntries(Object.entries(ALL).filter(([name]) => name !== "rho")),
    adjust,
    compute(setting) {
      const { K, M, etaY, etaZ } = setting;
      const { times, x, marks } = clock(setting);
      const exact = times.map((t) => 4 * decoder.gammaIntegral(t, setting));
      const share = ((M - 1) / M) ** 2;
      const early = times.map((t) => (t <= decoder.scanningTime(setting) ? ((2 * share) / K) * etaY * etaZ * t * t : null));
      const late = times.map((t) => (t >= decoder.snappingTime(setting) ? 2 * K * share * (etaZ / etaY) * Math.log((M * etaY * t) / K) ** 2 : null));
      return {
        x, y: { label: "4 Γ", log: true, decades: 6 }, marks, margins: margins(setting), reference: "of the branches, against (128)",
        lines: [
          { ...CORRECTED, label: "(128), exact", x: times, y: exact },
          { ...PRINTED, id: "early", label: "early branch, as printed", x: times, y: early, off: apart(early, exact) },
          { ...PRINTED, id: "late", label: "late branch, as printed", dash: "dotted", x: times, y: late, off: apart(late, exact) },
        ],
        bands: null,
        python: program(setting, {
          before: `K, M, eta_y, eta_z = ${K}, ${M}, ${etaY}, ${etaZ}\nshare = ((M - 1) / M) ** 2`,
          closed: [
            ["corrected", "4 * decoder.gamma_integral(times, **sizes, eta_z=eta_z)"],
            ["early", "np.where(times <= decoder.scanning_time(**sizes), 2 * share / K * eta_y * eta_z * times**2, np.nan)"],
            ["late", "np.where(times >= decoder.snapping_time(**sizes), 2 * K * share * eta_z / eta_y * np.log(M * eta_y * times / K) ** 2, np.nan)"],
          ],
        }),
      };
    },
  };

  // Theorem 5: the decoder's weight from the most frequent distinct token to its own next token.
  yzflow.views.decoded = {
    title: "Weight in Y from a distinct token to its own next token",
    sliders: ALL,
    adjust,
    compute(values) {
      const setting = tokens(values);
      const { K, M, etaY } = setting;
      const { times, x, marks } = clock(setting);
      const still = flow.feature(setting.p, setting.p.map(() => 0));
      const lead = (t) => M * decoder.h(t / K, setting);
      const { rows, lines } = flows(setting, times, (row) => row.Y[1][0]);
      // The largest error of all entries of Y, in units of its largest, at each level's own features.
      const off = (name) => rows[name].map((row, i) => {
        if (!row) return null;
        const wanted = flow.decoded(setting, row.f, lead(times[i])).flat();
        const found = row.Y.flat();
        return Math.max(...found.map((value, n) => Math.abs(value - wanted[n]))) / Math.max(...wanted.map(Math.abs));
      });
      return {
        x, y: { label: "Y, distinct token" }, marks, margins: margins(setting), note: stopped(lines),
        reference: "of all of Y at each level from (70) at its own features, largest entry",
        lines: [
          { ...CORRECTED, id: "formula", label: "(70), features as at the start", x: times, y: times.map((t) => flow.decoded(setting, still, lead(t))[1][0]) },
          ...lines.map((line) => (line.id === "theory" ? { ...line, label: "(70), theory flow’s features" } : { ...line, off: off(line.id) })),
        ],
        bands: null,
        python: program(setting, {
          before: `x = ${M} * decoder.h(times / ${K}, vocab_size=${M}, eta_y=${etaY})  # M h
inverse = np.linalg.inv(np.full((${K}, ${K}), ${setting.rho}) + (1 - ${setting.rho}) * np.eye(${K}))`,
          closed: [["formula", `x * ${still[1]} * (inverse[0] @ (np.eye(${K})[:, 0] - 1 / ${M}))`]],
          quantity: 'run["y"].values[:, 1, 0]',
        }),
      };
    },
  };

  // (131) to (133): B with C0 = 1, at these rates and others.
  yzflow.views.rates = {
    title: "B, with C₀ = 1, at three pairs of rates",
    sliders: { ...Object.fromEntries(Object.entries(ALL).filter(([name]) => name !== "rho")), factor: { label: "factor of the faster rates", min: 1.1, max: 30, step: 0.02, log: true } },
    adjust,
    compute(setting) {
      const { K, M, etaY, etaZ, factor } = setting;
      const { times, x, marks } = clock(setting);
      const at = (faster, attention) => times.map((t) => yzflow.attention.growthExponent(t, { ...setting, etaY: faster * etaY, etaZ: attention * etaZ }, 1));
      const own = at(1, 1);
      const late = times.map((t) => {
        const log = Math.log((M * etaY * t) / K);
        return log > 1 ? 0.5 * Math.log(log) + 0.25 * Math.log((2 * K * (M - 1) ** 2 * etaZ) / (M * M * etaY)) : null;
      });
      const begins = (K / M / etaY) * Math.exp(claims.lateMargin(K, etaY, etaZ));
      const brief = yzflow.widgets.brief;
      return {
        x, y: { label: "B" }, marks, margins: margins(setting), reference: "of the late form, against B",
        note: `The condition of (132), as corrected, is met long after t = ${brief(begins)}.`,
        lines: [
          { ...CORRECTED, id: "own", label: "B at these rates", width: 4, x: times, y: own },
          { id: "both", label: `both rates × ${brief(factor)}: ν is the same`, color: "c2", dash: "dotdash", width: 2.5, x: times, y: at(factor, factor) },
          { id: "decoder", label: `η_Y × ${brief(factor)} alone`, color: "c0", width: 2.5, x: times, y: at(factor, 1) },
          { ...PRINTED, id: "late", label: "late form (132)", x: times, y: late, off: apart(late, own) },
        ],
        bands: null,
        python: program(setting, {
          before: `K, M, eta_y, eta_z, factor = ${K}, ${M}, ${etaY}, ${etaZ}, ${factor}


def exponent(decoders, attentions):
    rates = {"eta_y": decoders * eta_y, "eta_z": attentions * eta_z}
    return attention.growth_exponent(times, vocab_size=M, n_classes=K, **rates, c0=1.0)


log = np.log(M * eta_y * times / K)`,
          closed: [
            ["own", "exponent(1, 1)"], ["both", "exponent(factor, factor)"], ["decoder", "exponent(factor, 1)"],
            ["late", "np.where(log > 1, np.log(np.maximum(log, 1)) / 2 + np.log(2 * K * (M - 1) ** 2 * eta_z / M**2 / eta_y) / 4, np.nan)"],
          ],
        }),
      };
    },
  };
})();
