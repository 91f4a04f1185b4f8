// Plots of attention over training: Theorems 2, 3 and 4, Lemma 4, Remark 1, Corollaries 1 and 2.
(() => {
  const { attention, claims, decoder, flow, apart } = yzflow;
  const { PRINTED, CORRECTED, ALL, OWN, adjust, margins, clock, tokens, flows, stopped, banded, program } = yzflow.views.shared;

  // Theorem 4: how far the common token has fallen.
  yzflow.views.exponent = {
    title: "Fall of the common token’s logit",
    sliders: ALL,
    adjust,
    compute(values, runs) {
      const setting = tokens(values);
      const { K, rho, etaZ } = setting;
      const { times, x, marks } = clock(setting);
      const [right, wrong] = [claims.speedConstant(K, rho), 1 / K / rho / rho];
      const B = times.map((t) => attention.growthExponent(t, setting, right));
      const printed = times.map((t) => 0.25 * Math.log(wrong + 4 * decoder.gammaIntegral(t, setting)));
      const { lines } = flows(setting, times, (row) => -row.z[0]);
      return {
        x, y: { label: "−z, common token" }, marks, margins: margins(setting), note: stopped(lines),
        reference: "against B, corrected",
        lines: [
          { ...CORRECTED, label: "B, corrected", x: times, y: B },
          { ...PRINTED, label: "B, as printed", x: times, y: printed, off: apart(printed, B) },
          ...lines.map((line) => ({ ...line, off: apart(line.y, B) })),
        ],
        bands: banded(runs, (one, i) => -one.z[i][0]),
        python: program(setting, {
          closed: [
            ["corrected", `attention.growth_exponent(times, **sizes, eta_z=${etaZ}, c0=${right})`],
            ["printed", `attention.printed_growth_exponent(times, **sizes, eta_z=${etaZ}, c0=${wrong})`],
          ],
          quantity: '-run["z"].values[:, 0, 0]',
        }),
      };
    },
  };

  // Theorem 2: the theory flow is the corrected form; as printed all classes act at each step, with K times the rate.
  function moved(title, label, sign, token) {
    const pick = (row) => sign * row.z[token];
    return {
      title,
      sliders: ALL,
      adjust,
      compute(values, runs) {
        const setting = tokens(values);
        const { times, x, marks } = clock(setting);
        const printed = flow.observe("theory", { ...setting, etaZ: setting.K * setting.etaZ }, setting.p, times).map((row) => row && pick(row));
        const { lines } = flows(setting, times, pick);
        const theory = lines[0].y;
        const all = [{ ...PRINTED, label: "as printed, K times the rate", x: times, y: printed, off: apart(printed, theory) }, { ...lines[0], label: "corrected = theory flow" }, ...lines.slice(1).map((line) => ({ ...line, off: apart(line.y, theory) }))];
        return {
          x, y: { label }, marks, margins: margins(setting), note: stopped(all), lines: all,
          reference: "against the corrected form",
          bands: banded(runs, (one, i) => sign * one.z[i][token]),
          python: program(setting, {
            closed: [["printed", `${sign < 0 ? "-" : ""}flow("theory", ${setting.K} * ${setting.etaZ})["z"].values[:, 0, ${token}]`]],
            quantity: `${sign < 0 ? "-" : ""}run["z"].values[:, 0, ${token}]`,
          }),
        };
      },
    };
  }
  yzflow.views.distinct = moved("Logit of the most frequent distinct token", "z, distinct token", 1, 1);
  yzflow.views.common = moved("Fall of the common token’s logit", "−z, common token", -1, 0);

  // Corollary 2: two common tokens, the second less frequent.
  yzflow.views.commons = {
    title: "Fall of two common tokens’ logits",
    sliders: ALL,
    adjust,
    compute(values) {
      const { K, M, rho } = values;
      const scale = Math.sqrt((rho / (1 - rho)) * (0.74 / 1.64));
      const setting = { ...values, commons: 2, p: [scale, 0.8 * scale, 0.7, 0.5], classes: `two_common_tokens(${K}, ${M}, ${rho})` };
      const { times, x, marks } = clock(setting);
      const { rows, lines } = flows(setting, times, (row) => -row.z[0]);
      const rarer = lines.map((line) => ({ ...line, id: `${line.id} 2`, dash: "dotted", label: `${line.label}, the rarer one`, y: rows[line.id].map((row) => row && -row.z[1]) }));
      const off = (line, i) => (i ? { ...line, off: apart(line.y, lines[0].y) } : line);
      return {
        x, y: { label: "−z" }, marks, margins: margins(setting),
        note: stopped(lines), reference: "against the theory flow, the more frequent token",
        lines: [...lines.map(off), ...rarer],
        bands: null,
        python: program(setting, {
          before: "from yzflow.papers.scan_and_snap.settings import two_common_tokens\n",
          quantity: '-run["z"].values[:, 0, 0]',
        }).replace("print(", 'curves |= {f"{level} 2": -run["z"].values[:, 0, 1] for level, run in runs.items()}\nprint('),
      };
    },
  };

  // Theorem 3: growth of the dominant distinct token between its bounds, with B_n of the theory flow.
  yzflow.views.growth = {
    title: "Growth χ of the most frequent distinct token",
    sliders: ALL,
    adjust,
    compute(values, runs) {
      const setting = tokens(values);
      const { K, etaZ, p } = setting;
      const { times, x, marks } = clock(setting);
      const chi = (row) => Math.exp(2 * row.z[1]);
      const gain = (row) => (row.f[1] / row.f[2]) ** 2 - 1;
      const { rows, lines } = flows(setting, times, chi);
      const first = (p[1] / p[2]) ** 2 - 1;
      // (11): r(t) against r(0) chi(t).
      const identity = (name) => apart(rows[name].map((row) => row && gain(row)), rows[name].map((row) => row && first * chi(row)));
      const f0 = flow.feature(p, p.map(() => 0))[1] ** 2;
      const bound = (factor, end) => rows.theory.map((row) => row && claims.growthBounds(f0, factor * etaZ * row.integral)[end]);
      const bounds = [
        { ...CORRECTED, id: "lower", label: "lower bound, corrected", width: 2.5, dash: "dotted", y: bound(1 / K, 0) },
        { ...CORRECTED, id: "upper", label: "upper bound, corrected", width: 2.5, y: bound(1 / K, 1) },
        { ...PRINTED, id: "printed lower", label: "lower bound, as printed", dash: "dotted", y: bound(1, 0) },
        { ...PRINTED, id: "printed upper", label: "upper bound, as printed", y: bound(1, 1) },
      ].map((line) => ({ ...line, x: times }));
      return {
        x, y: { label: "growth factor χ", log: true, decades: 3 }, marks, margins: margins(setting), note: stopped(lines),
        reference: "of (11): r(t) against r(0) χ(t), at each level",
        lines: [...bounds, ...lines.map((line) => ({ ...line, off: identity(line.id) }))],
        bands: banded(runs, (one, i) => Math.exp(2 * one.z[i][1])),
        python: program(setting, {
          before: "from yzflow.papers.scan_and_snap.views import integral_of_xi\n",
          quantity: 'np.exp(2 * run["z"].values[:, 0, 1])',
        }).replace("print(", `B = ${etaZ} * integral_of_xi(classes, times, eta_y=${setting.etaY}, eta_z=${etaZ})
for name, exponent in {"": B / ${K}, "printed ": B}.items():
    curves[f"{name}lower"], curves[f"{name}upper"] = attention.growth_bounds(exponent, ${Math.sqrt(f0)})
print(`),
      };
    },
  };

  // Theorem 1: xi_n as the motion of the common token implies it, against (9).
  const implied = ({ etaZ }) => (row) => -row.speed[0] / etaZ / (1 - row.f[0] ** 2);
  yzflow.views.pull = {
    title: "ξₙ, how strongly a class is pushed away from the others",
    sliders: ALL,
    adjust,
    compute(values) {
      const setting = tokens(values);
      const { times, x, marks } = clock(setting);
      const start = flow.feature(setting.p, setting.p.map(() => 0));
      const { lines } = flows(setting, times, implied(setting), (row, t) => flow.pull(setting, row.f, t));
      return {
        x, y: { label: "ξₙ" }, marks, margins: margins(setting), note: stopped(lines), reference: OWN,
        lines: [{ ...CORRECTED, id: "formula", label: "(9), features as at the start", x: times, y: times.map((t) => flow.pull(setting, start, t)) }, ...lines],
        bands: null,
        python: program(setting, {
          before: `from theory.scan_and_snap.bounds import xi_over_gamma\n\ngram = np.full((${setting.K}, ${setting.K}), ${setting.rho}) + (1 - ${setting.rho}) * np.eye(${setting.K})`,
          closed: [["formula", `xi_over_gamma(gram, ${setting.M})[0] * decoder.gamma(times, **sizes)`]],
          quantity: '-run["z_velocity"].values[:, 0, 0] / ' + setting.etaZ + ' / (1 - run["attention"].values[:, 0, 0] ** 2 / (run["attention"].values[:, 0] ** 2).sum(axis=1))',
        }),
      };
    },
  };

  // Lemma 4: the speed of the common token.
  yzflow.views.speed = {
    title: "Speed at which the common token’s logit falls",
    sliders: ALL,
    adjust,
    compute(values) {
      const setting = tokens(values);
      const { times, x, marks } = clock(setting);
      const formula = (row, t) => setting.etaZ * (1 - row.f[0] ** 2) * flow.pull(setting, row.f, t);
      const { lines } = flows(setting, times, (row) => -row.speed[0], formula);
      const printed = lines[0].y.map((value) => value && setting.K * value);
      return {
        x, y: { label: "−dz/dt", log: true, decades: 6 }, marks, margins: margins(setting), note: stopped(lines), reference: OWN,
        lines: [{ ...PRINTED, label: "(10) as printed", x: times, y: printed, off: apart(printed, lines[0].y) }, { ...lines[0], off: undefined, label: "(10) corrected = theory flow" }, ...lines.slice(1)],
        bands: null,
        python: program(setting, { quantity: '-run["z_velocity"].values[:, 0, 0]' }).replace("print(", `curves["printed"] = ${setting.K} * curves["theory"]\nprint(`),
      };
    },
  };

  // Remark 1: how far the full flow has come, in units of the modified flow.
  yzflow.views.slowdown = {
    title: "Full flow over modified flow, the common token’s logit",
    sliders: ALL,
    adjust,
    compute(values) {
      const setting = tokens(values);
      const { K, M, rho } = setting;
      const { times, x, marks } = clock(setting);
      const { rows } = flows(setting, times, (row) => row.z[0]);
      const ratio = times.map((_, i) => (rows.full[i] && rows.modified[i] ? rows.full[i].z[0] / rows.modified[i].z[0] : null));
      const s = claims.slowdown(M, K, rho);
      const flat = (value) => times.map(() => value);
      const lines = [
        { ...CORRECTED, label: "s, corrected, early", x: times, y: flat(s) },
        { ...PRINTED, label: "1 − ρ, as printed", x: times, y: flat(1 - rho), off: apart(flat(1 - rho), ratio) },
        { id: "ratio", label: "full flow over modified flow", color: "c0", width: 3, x: times, y: ratio, off: undefined },
      ];
      lines[0].off = apart(lines[0].y, ratio);
      return {
        x, y: { label: "ratio of the logits" }, marks, margins: margins(setting), lines, note: stopped(lines),
        reference: "of the two forms, against the ratio of the flows",
        bands: null,
        python: program(setting, {
          closed: [
            ["corrected", `np.full_like(times, attention.full_flow_slowdown(vocab_size=${M}, n_classes=${K}, overlap=${rho}))`],
            ["printed", `np.full_like(times, 1 - ${rho})`],
            ["ratio", 'runs["full"]["z"].values[:, 0, 0] / runs["modified"]["z"].values[:, 0, 0]'],
          ],
          quantity: 'run["z"].values[:, 0, 0]',
          names: ["modified", "full"],
        }),
      };
    },
  };

  // Corollary 1: the loss.
  yzflow.views.loss = {
    title: "Loss",
    sliders: ALL,
    adjust,
    compute(values, runs) {
      const setting = tokens(values);
      const { K, M, etaY } = setting;
      const { times, x, marks } = clock(setting);
      const closed = times.map((t) => Math.log1p((M - 1) * Math.exp(-M * decoder.h(t / K, setting))));
      const late = times.map((t) => K / etaY / t);
      const { lines } = flows(setting, times, (row) => row.loss);
      return {
        x, y: { label: "loss, nats", log: true, decades: 5 }, marks, margins: margins(setting), note: stopped(lines), reference: "against the closed form",
        lines: [
          { ...CORRECTED, id: "closed", label: "by h in closed form", x: times, y: closed },
          { ...PRINTED, id: "late", label: "K/(η_Y t), its late form", x: times, y: late, off: apart(late, closed) },
          ...lines.map((line) => ({ ...line, off: apart(line.y, closed) })),
        ],
        bands: banded(runs, (one, i) => one.loss[i]),
        python: program(setting, {
          closed: [
            ["closed", `np.log1p(${M - 1} * np.exp(-${M} * decoder.h(times / ${K}, vocab_size=${M}, eta_y=${etaY})))`],
            ["late", `${K} / ${etaY} / times`],
          ],
          quantity: 'run["loss"].values',
        }),
      };
    },
  };
})();
