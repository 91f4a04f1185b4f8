// The panel of Scan and Snap.
yzflow.panels.transition = async ({ presets, sgd }, items) => {
  const w = yzflow.widgets;
  const { attention, decoder, flow } = yzflow;
  const N = 200; // output times
  const LEVELS = {
    closed: "closed form: Theorem 4, corrected",
    theory: "theory flow: Theorems 1 and 2, integrated here",
    full: "full flow: the true gradient (Lemma 1), integrated here",
    sgd: "SGD: computed before, for unchanged presets",
  };
  const TIMES = [
    { name: "peak", label: "peak of γ, t*", color: "mark", dash: "solid" },
    { name: "scanning", label: "the paper’s t₀′", color: "mark", dash: "dashed" },
    { name: "snapping", label: "the paper’s t₀", color: "mark", dash: "dotted" },
  ];
  const COMPARED = [["c3", "dashed"], ["c2", "dotdash"], ["c4", "dotted"]];
  const TOKENS = ["common", "distinct 1", "distinct 2", "distinct 3", "distinct 4", "distinct 5"];

  const plots = {};
  for (const [id, title] of Object.entries({
    heat: "Attention over training",
    now: "Attention at the chosen time",
    growth: "Growth of a token’s attention",
    exponent: "Growth exponent",
    gamma: "Speed of attention",
    decoder: "What the decoder has learnt",
  })) plots[id] = await w.plot(id, title, items[id]);

  let preset, compared, computed;
  const update = w.later(draw);
  const level = w.choices(w.byId("transition-level"), "level", Object.entries(LEVELS).map(([value, label]) => ({ value, label })), update);
  const rates = w.byId("transition-rates");
  const add = (options) => w.slider(rates, options, update);
  const controls = {
    etaY: add({ id: "eta-y", label: "learning rate of the decoder, η_Y", min: 0.01, max: 50, step: 0.05, log: true }),
    etaZ: add({ id: "eta-z", label: "learning rate of attention, η_Z", min: 0.001, max: 50, step: 0.05, log: true }),
    K: add({ id: "n-classes", label: "next tokens that occur, K", min: 1, max: 50, integer: true }),
    M: add({ id: "vocab-size", label: "next tokens in the vocabulary, M", min: 2, max: 1e6, step: 0.05, log: true, integer: true }),
    end: add({ id: "t-end", label: "length of training", min: 1, max: 1e5, step: 0.05, log: true, unit: "SGD steps" }),
  };
  const unitConstant = w.checkbox(rates, "unit-constant", "set the speed constant C₀ to 1, as the paper’s Fig. 9 does (closed form)", update);
  const tokens = w.byId("transition-tokens");
  const probabilities = TOKENS.map((name, i) =>
    w.slider(tokens, { id: `token-${i}`, label: `${name} token`, min: 0.01, max: 3, step: 0.01 }, update),
  );
  const clock = w.slider(w.byId("transition-time"), { id: "time", label: "time shown, in % of the training", min: 0, max: 100, step: 0.5 }, drawNow);
  const show = w.readouts("transition", {
    overlap: "overlap of two classes at the start, ρ",
    peak: "peak of the speed, t* (SGD steps)",
    scanning: "the paper’s t₀′ = K ln M/η_Y",
    snapping: "the paper’s t₀ = 2 K ln M/η_Y",
    exponent: "growth exponent B at the end",
    common: "logit of the common token at the end",
    growth: "growth χ of the most frequent distinct token at the end",
    lower: "Theorem 3, with the closed form’s B: this χ is at least",
    upper: "and at most",
    slowdown: "slow-down s of the full flow, early on",
  });

  function read() {
    const setting = {};
    for (const [name, control] of Object.entries(controls)) setting[name] = control.value;
    setting.unitConstant = unitConstant.checked;
    [setting.common, ...setting.distinct] = probabilities.map((control) => control.value);
    return setting;
  }

  // Of a setting: times, B, gamma, and logits of the level that was asked for (null where there are none).
  function compute(setting, how, sgd) {
    const times = how === "sgd" ? sgd.t : Array.from({ length: N + 1 }, (_, i) => (setting.end * i) / N);
    const rho = attention.overlap(setting);
    const c0 = setting.unitConstant ? 1 : attention.speedConstant(setting.K, rho);
    const exponent = times.map((t) => attention.growthExponent(t, setting, c0));
    const p = [setting.common, ...setting.distinct];
    let z;
    if (how === "sgd") z = sgd.z;
    else if (how === "closed") {
      z = exponent.map((B) => [-B, ...attention.distinctGrowth(B / setting.K, setting.distinct).map((v) => v / 2)]);
    } else z = flow.logits(how, setting, p, times);
    const shares = z.map((row) => row && yzflow.shares(p, row));
    return { times, rho, c0, exponent, p, z, shares, gamma: times.map((t) => decoder.gamma(t, setting)) };
  }

  function draw() {
    if (controls.M.value < controls.K.value) controls.M.set(controls.K.value);
    const setting = read();
    const same = JSON.stringify(setting) === JSON.stringify(preset.ordered);
    const notes = [];
    level.enable("sgd", same && preset.sgd !== null);
    if (level.value === "sgd" && !(same && preset.sgd)) {
      level.set("full");
      notes.push("No SGD run was computed for these settings, so that this is the full flow.");
    }
    if (setting.K === 1) {
      unitConstant.checked = setting.unitConstant = true;
      if (level.value !== "closed") level.set("closed");
      notes.push("With one class there is nothing to tell apart: only the closed form with C₀ = 1 is shown, as in the paper’s Fig. 9.");
    }
    for (const name of ["theory", "full"]) level.enable(name, setting.K > 1);
    const how = level.value;
    computed = { setting, how, ...compute(setting, how, preset.sgd) };
    compared = (same ? preset.compare : []).map((change) => {
      const other = { ...setting, ...change };
      return { change, setting: other, ...compute(other, how === "sgd" ? "closed" : how, null) };
    });
    if (how === "sgd") compared = [];
    if (computed.z.includes(null)) notes.push("The integration took too many steps and stops early: try smaller rates or a shorter training.");
    if (setting.unitConstant && (how === "theory" || how === "full")) notes.push("C₀ = 1 changes only the closed form; a flow needs no C₀.");
    if (how === "sgd") notes.push("SGD: batches of 128 sequences of 128 tokens, no momentum, one seed; logits are means over the classes.");
    w.byId("transition-note").textContent = notes.join(" ");
    drawCurves();
    drawRegime();
    drawHeat();
    drawNow();
  }

  const named = (change) =>
    Object.entries(change).map(([key, value]) => `${{ etaY: "η_Y", etaZ: "η_Z" }[key]} = ${value}`).join(", ");

  function drawCurves() {
    const { setting, times, exponent, gamma, z } = computed;
    const spans = {
      peak: decoder.transitionTime(setting), scanning: decoder.scanningTime(setting), snapping: decoder.snappingTime(setting),
    };
    const others = compared.map((one, i) => ({ ...one, color: COMPARED[i][0], dash: COMPARED[i][1], label: named(one.change), width: 2 }));
    const visible = TIMES.filter(({ name }) => spans[name] <= setting.end);
    const chi = z.map((row) => row && row.slice(1).map((value) => Math.exp(2 * value)));
    const rows = w.sample(times.length, 10);
    const own = `η_Y = ${w.short(setting.etaY)}, η_Z = ${w.short(setting.etaZ)}`;
    for (const name of ["growth", "exponent", "gamma"]) {
      plots[name].spans(spans);
      plots[name].range(setting.end);
    }

    const distinct = setting.distinct.map((_, i) => ({
      label: TOKENS[i + 1], color: i ? `c${i}` : "c0", dash: ["solid", "dashed", "dotdash", "dotted", "dashed"][i], x: times,
      y: chi.map((row) => row && row[i]), width: i ? 2 : 3.5,
    }));
    const curves = others.length
      ? [{ ...distinct[0], label: `distinct 1: ${own}` }, ...others.map((one) => ({ ...one, label: `distinct 1: ${one.label}`, x: one.times, y: one.z.map((row) => row && Math.exp(2 * row[1])) }))]
      : distinct;
    plots.growth.lines(curves);
    plots.growth.key([...curves, ...visible]);
    plots.growth.text("χ says by what factor the squared weight of a token has grown: 1 at the start. The token that occurs most often wins.");
    plots.growth.table("Growth factor χ of the distinct tokens", ["t", ...TOKENS.slice(1)], rows.map((i) => [times[i], ...(chi[i] || TOKENS.slice(1).map(() => null))]));

    const moved = { label: `−(logit of the common token), ${LEVELS[computed.how].split(":")[0]}`, color: "c1", dash: "solid", x: times, y: z.map((row) => row && -row[0]), width: 3 };
    const closed = { label: `B, closed form: ${own}`, color: "c0", dash: computed.how === "closed" ? "solid" : "dashed", x: times, y: exponent, width: 3 };
    const exponents = [closed, ...(computed.how === "closed" ? [] : [moved]), ...others.map((one) => ({ ...one, x: one.times, y: one.exponent }))];
    plots.exponent.lines(exponents);
    plots.exponent.key([...exponents, ...visible]);
    plots.exponent.text("B is how far the common token’s logit has fallen. Where the two lines part, the closed form does not describe this level.");
    plots.exponent.table("Growth exponent B, closed form, and the logit of the common token", ["t", "B", "logit"], rows.map((i) => [times[i], exponent[i], z[i] && z[i][0]]));

    const speeds = [{ label: own, color: "c0", dash: "solid", x: times, y: gamma, width: 3 }, ...others.map((one) => ({ ...one, x: one.times, y: one.gamma }))];
    plots.gamma.lines(speeds);
    plots.gamma.key([...speeds, ...visible]);
    plots.gamma.text("γ is how strong a gradient the decoder sends back to attention. It rises while the decoder learns and dies when it has learnt.");
    plots.gamma.table("Speed γ", ["t", "γ"], rows.map((i) => [times[i], gamma[i]]));

    const visits = Math.max(1, Math.min(200, Math.floor(setting.end / setting.K)));
    const s = Array.from({ length: visits + 1 }, (_, i) => i);
    const continuous = s.map((value) => decoder.h(value, setting));
    const steps = decoder.hSteps(visits, setting);
    const pair = [
      { label: "h*(s), step by step", color: "c1", dash: "solid", x: s, y: steps },
      { label: "h(s), smooth", color: "c0", dash: "dashed", x: s, y: continuous },
      ...others.filter((one) => one.change.etaY).map((one) => ({ ...one, label: `h: ${one.label}`, x: s, y: s.map((value) => decoder.h(value, one.setting)) })),
    ];
    plots.decoder.lines(pair);
    plots.decoder.range(visits);
    plots.decoder.key(pair);
    plots.decoder.text(`Over the first ${visits} visits of a class the two differ by at most ${w.short(Math.max(...s.map((i) => Math.abs(steps[i] - continuous[i]))))}.`);
    plots.decoder.table("Decoder growth", ["s", "h", "h*"], w.sample(visits + 1, 10).map((i) => [i, continuous[i], steps[i]]));

    const last = z.at(-1);
    const first = setting.distinct.indexOf(Math.max(...setting.distinct));
    const own2 = setting.distinct[first] ** 2;
    const f0 = own2 / (setting.common ** 2 + yzflow.sum(setting.distinct.map((p) => p * p)));
    const Bn = exponent.at(-1) / setting.K;
    show({
      ...spans, overlap: computed.rho, exponent: exponent.at(-1), common: last && last[0], growth: last && Math.exp(2 * last[first + 1]),
      lower: Math.exp(2 * f0 * Bn), upper: Math.exp(2 * Bn),
    });
    const grown = last ? `the most frequent distinct token has grown by a factor χ = ${w.short(Math.exp(2 * last[first + 1]))}. Its share of attention went from ${w.short(computed.shares[0][first + 1])} to ${w.short(computed.shares.at(-1)[first + 1])}, that of the common token from ${w.short(computed.shares[0][0])} to ${w.short(computed.shares.at(-1)[0])}` : "the integration has stopped early";
    w.byId("transition-summary").textContent = `After ${w.short(times.at(-1))} steps, ${grown}. The speed peaks at t* = ${w.short(spans.peak)}.`;
  }

  function drawRegime() {
    const { K, M, etaY, etaZ } = computed.setting;
    if (K === 1) {
      show({ slowdown: NaN });
      w.byId("transition-regime").textContent = "Assumption 2 needs at least two classes.";
      return;
    }
    const slowdown = attention.fullFlowSlowdown(M, K, computed.rho);
    const { upper, lower } = attention.assumption2(M, K, computed.rho);
    show({ slowdown });
    const side = (holds, text) => `${text} ${holds ? "✓ holds" : "✗ fails"}`;
    const both = upper > 1 && lower >= 1;
    w.byId("transition-regime").replaceChildren(...w.rich(
      `Assumption 2 ${both ? "holds" : "does not hold"}: ${side(upper > 1, "largest |eigenvalue| below 1/K")} (margin ${w.short(upper)}), ` +
      `${side(lower >= 1, "smallest |eigenvalue| at least 6/√M")} (margin ${w.short(lower)}); a margin above 1 is inside. ` +
      `The true gradient moves attention ${w.short(1 / slowdown)} times slower than the theory at first` +
      `${etaY < 100 * etaZ ? `; attention is not slow beside the decoder here (η_Y/η_Z = ${w.short(etaY / etaZ)}, the theory asks for 100 or more)` : ""}.`,
    ));
  }

  function drawHeat() {
    const { times, shares, setting } = computed;
    const shown = w.sample(times.length, 66);
    const cells = { x: [], y: [], width: [], c: [] };
    shown.forEach((i, place) => {
      if (!shares[i]) return;
      const left = place ? (times[shown[place - 1]] + times[i]) / 2 : times[i];
      const right = place + 1 < shown.length ? (times[shown[place + 1]] + times[i]) / 2 : times[i];
      shares[i].forEach((share, token) => {
        cells.x.push((left + right) / 2);
        cells.y.push(token);
        cells.width.push(right - left);
        cells.c.push(share);
      });
    });
    plots.heat.get("cells").data = cells;
    const most = Math.max(0.05, ...cells.c);
    plots.heat.get("mapper").high = most;
    plots.now.get("y").end = 1.08 * most;
    plots.heat.range(times.at(-1) || setting.end);
    plots.heat.text("Bright means much attention. The vertical line is the time of the slider.");
    plots.heat.table("Share of attention of each token", ["t", ...TOKENS], w.sample(times.length, 10).map((i) => [times[i], ...(shares[i] || TOKENS.map(() => null))]));
  }

  function drawNow() {
    const { times, shares } = computed;
    const index = Math.round((clock.value / 100) * (times.length - 1));
    const now = shares[index] || TOKENS.map(() => NaN);
    plots.heat.spans({ now: times[index] });
    plots.now.get("bars").data = { x: TOKENS.map((_, i) => i), top: now, color: TOKENS.map((_, i) => w.colour(i ? "c1" : "c3")) };
    plots.now.text(`At t = ${w.short(times[index])}: ${TOKENS.map((name, i) => `${name} ${w.short(now[i])}`).join(", ")}.`);
    plots.now.table(`Share of attention at t = ${w.short(times[index])}`, ["token", "share"], TOKENS.map((name, i) => [name, now[i]]));
  }

  let timer = null;
  const button = w.byId("play");
  function play(on) {
    clearInterval(timer);
    timer = on ? setInterval(() => {
      clock.set(Math.min(100, clock.value + 1));
      drawNow();
      if (clock.value >= 100) play(false);
    }, 80) : null;
    button.textContent = on ? "Pause" : "Play";
    button.setAttribute("aria-pressed", String(on));
  }
  button.addEventListener("click", () => {
    if (timer === null && clock.value >= 100) clock.set(0);
    play(timer === null);
  });

  w.presets("transition", presets, (chosen) => {
    play(false);
    const { setting } = chosen;
    for (const [name, control] of Object.entries(controls)) control.set(setting[name]);
    [setting.common, ...setting.distinct].forEach((value, i) => probabilities[i].set(value));
    unitConstant.checked = setting.unitConstant;
    level.set("closed");
    clock.set(0);
    preset = { ...chosen, sgd: sgd[presets.indexOf(chosen)], ordered: read() };
    draw();
  })();
  return { recolour() { for (const plot of Object.values(plots)) plot.recolour(); draw(); } };
};
