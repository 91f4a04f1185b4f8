// The panel of Scan and Snap: every level is computed at every change, so that no axis moves when another is chosen.
yzflow.panels.transition = ({ presets, sgd: runs }) => {
  const w = yzflow.widgets;
  const { claims, decoder, margins, sum } = yzflow;
  const { swatch } = yzflow.plots;
  const { LEVELS, FLOWS, TIME, SLIDERS, INFINITE, compute } = yzflow.levels;
  const COMPARED = [["c3", "dashed"], ["c2", "dotdash"], ["c4", "dotted"]];
  const TOKENS = ["common", "distinct 1", "distinct 2", "distinct 3", "distinct 4", "distinct 5"];

  const AXIS = "t* is where the theory’s speed γ peaks; t₀′ and t₀ are the paper’s estimates of it. Time has a logarithmic axis, the same for all levels: equal distances are equal factors.";
  const VIEWS = {
    share: { label: "attention", title: "Attention on two tokens" },
    speed: { label: "its speed", title: "Speed of attention, over its largest" },
    change: { label: "its change", title: "How much of its change is done" },
  };

  const FREE = ["level", "view", "sequences", "time"]; // what is shown, and not of what

  const plots = {};
  for (const [id, title] of Object.entries({
    share: VIEWS.share.title,
    heat: "Attention over training",
    now: "Attention now",
    growth: "Growth of a token’s attention",
    exponent: "Fall of the common token’s logit",
    gamma: "Speed γ of attention",
    decoder: "What the decoder has learnt",
  })) plots[id] = w.plot(id, title);
  const timed = ["share", "heat", "growth", "exponent", "gamma"].map((id) => plots[id]);

  let computed;
  let bench;
  const player = w.player("play", () => clock, () => drawNow());
  const update = () => bench.draw();
  const done = Object.fromEntries(Object.keys(LEVELS).map((value) => [value, w.element("output", { id: `done-${value}`, class: "done" })]));
  const options = Object.entries(LEVELS).map(([value, { label, color }]) => ({ value, label, before: [swatch(color, "solid", 5)], after: [done[value]] }));
  const level = w.choices(w.byId("transition-level"), "level", options, update);
  const lengths = Object.keys(runs.find(Boolean));
  const sequences = w.select({ id: "sequences", label: "T, tokens in each of SGD’s sequences", options: lengths.map((value) => ({ value, label: w.lengthOf(value) })) }, update);
  const ofSgd = w.byId("level-sgd").closest("label");
  const beside = w.element("div", { class: "beside" });
  ofSgd.replaceWith(beside);
  beside.append(ofSgd, sequences.node);
  const view = w.choices(w.byId("transition-view"), "view", Object.entries(VIEWS).map(([value, { label }]) => ({ value, label })), update);
  const rates = w.byId("transition-rates");
  const add = (parent, more) => w.slider(parent, more, update);
  const controls = {
    level,
    view,
    sequences,
    etaY: add(rates, { id: "eta-y", ...SLIDERS.etaY }),
    etaZ: add(rates, { id: "eta-z", ...SLIDERS.etaZ }),
    K: add(rates, { id: "n-classes", ...SLIDERS.K }),
    M: add(rates, { id: "vocab-size", ...SLIDERS.M }),
    end: add(rates, { id: "t-end", ...SLIDERS.end }),
    unitConstant: w.checkbox(w.byId("transition-constant"), "unit-constant", "leave out Theorem 4’s constant C₀, as the paper’s Fig. 9 does (closed form)", update),
  };
  const tokens = w.byId("transition-tokens");
  TOKENS.forEach((name, i) => {
    controls[i ? `distinct${i}` : "common"] = add(tokens, { id: `token-${i}`, label: `${name} token`, min: 0.01, max: 3, step: 0.01 });
  });
  const clock = w.slider(w.byId("transition-time"), { id: "time", label: "time", min: 0, max: 100, step: 0.5, exact: false }, () => { drawNow(); bench.note(); });
  controls.time = clock;
  const label = w.byId("transition-time").querySelector("label");
  const show = w.readouts("transition", {
    overlap: "overlap of two classes at the start, ρ",
    peak: "peak of the speed γ, t* (SGD steps)",
    scanning: "the paper’s t₀′ = K ln M/η_Y",
    snapping: "the paper’s t₀ = 2 K ln M/η_Y",
    exponent: "growth exponent B of the closed form at the end",
    common: "logit of the common token at the end",
    growth: "growth χ of the most frequent distinct token at the end",
    lower: "Theorem 3, with the closed form’s B: this χ is at least",
    upper: "and at most",
    slowdown: "slow-down s of the full flow, early on",
  });

  const start = ({ setting: { distinct, level: chosen = "closed", view: shown = "share", ...setting } }) => ({
    ...setting, ...Object.fromEntries(distinct.map((value, i) => [`distinct${i + 1}`, value])), level: chosen, view: shown, sequences: lengths[0], time: 0,
  });

  function read() {
    const setting = {};
    for (const name of ["etaY", "etaZ", "K", "M", "end", "unitConstant", "common"]) setting[name] = controls[name].value;
    setting.distinct = TOKENS.slice(1).map((_, i) => controls[`distinct${i + 1}`].value);
    return setting;
  }

  function draw() {
    if (controls.M.value < controls.K.value) controls.M.set(controls.K.value);
    const chosen = bench.preset();
    const wanted = start(chosen);
    const same = Object.entries(wanted).every(([name, value]) => FREE.includes(name) || controls[name].value === value);
    const run = same ? runs[presets.indexOf(chosen)] : null; // by T
    const setting = read();
    const notes = [];
    level.enable("sgd", run !== null);
    sequences.enable(run !== null);
    view.enable("speed", level.value !== "sgd" || run === null); // SGD's noise has no speed
    if (level.value === "sgd" && run !== null && view.value === "speed") view.set("share");
    if (level.value === "sgd" && run === null) {
      level.set("full");
      notes.push("No SGD run was computed for these settings, so that the full flow is shown.");
    }
    if (setting.K === 1) {
      controls.unitConstant.set(setting.unitConstant = true);
      if (level.value !== "closed") level.set("closed");
      notes.push("With one class there is nothing to tell apart: only the closed form with C₀ = 1 is shown, as in the paper’s Fig. 9.");
    }
    for (const name of FLOWS) level.enable(name, setting.K > 1);
    computed = compute(setting, run, sequences.value);
    Object.assign(computed, { run, length: sequences.value, how: level.value });
    w.byId("transition-sequences").textContent = run ? run[sequences.value].told : "";
    computed.own = computed.levels[level.value];
    computed.compared = (same ? chosen.compare : []).map((change) => ({ change, ...compute({ ...setting, ...change }) }));
    const stopped = Object.keys(computed.levels).filter((name) => computed.levels[name].z.includes(null));
    if (stopped.length) notes.push(`The integration took too many steps and stops early (${stopped.map((name) => LEVELS[name].name).join(", ")}): try smaller rates or a shorter training.`);
    if (setting.unitConstant && FLOWS.includes(level.value)) notes.push("C₀ changes only the closed form; a flow needs no C₀.");
    w.byId("transition-note").textContent = notes.join(" ");
    for (const [name, output] of Object.entries(done)) {
      const value = computed.levels[name]?.done ?? NaN;
      output.textContent = Number.isNaN(value) ? "–" : `${Math.round(100 * value)}%`;
      output.dataset.value = String(value);
    }
    drawLevels();
    drawTheory();
    drawEnd();
    drawHeat();
    drawNow();
  }

  const axis = () => ({ label: TIME, min: computed.first, max: computed.setting.end, log: true });
  const marks = (scale = 1) => yzflow.levels.marks(computed.setting, scale);
  const named = (change) => Object.entries(change).map(([key, value]) => `${{ etaY: "η_Y", etaZ: "η_Z" }[key]} = ${value}`).join(", ");
  const own = () => `η_Y = ${w.short(computed.setting.etaY)}, η_Z = ${w.short(computed.setting.etaZ)}`;
  const top = () => 1 + computed.setting.distinct.indexOf(Math.max(...computed.setting.distinct));
  const others = () => computed.compared.map((one, i) => ({ ...one, color: COMPARED[i][0], dash: COMPARED[i][1], label: named(one.change), width: 2 }));
  const nameOf = (how) => (how === "sgd" ? `SGD, ${w.lengthOf(computed.length)}` : LEVELS[how].name);
  // Levels as lines of `pick` of a level's index; the chosen one is thick and on top.
  function byLevel(pick, dash = "solid") {
    const names = Object.keys(computed.levels).sort((a, b) => (a === computed.how) - (b === computed.how));
    return names.map((name) => {
      const one = computed.levels[name];
      return { level: name, label: nameOf(name), color: LEVELS[name].color, dash, x: one.times, y: one.times.map((_, i) => pick(one, i)), width: name === computed.how ? 4.5 : 1.7 };
    });
  }

  // Where SGD's seeds lie, at the preset's settings alone: for the sliders there is no run. Those of each T make the axis.
  const allBands = (pick) => Object.entries(computed.run ?? {}).map(([length, run]) => ({ length, ...yzflow.levels.band(run, computed.seeds[length], pick) }));
  const band = (pick) => allBands(pick).filter(({ length }) => length === computed.length && computed.seeds[length].length > 1);
  const bandKey = () => band(() => 0).map(({ length }) => ({ label: `SGD, ${w.lengthOf(length)}, ${computed.seeds[length].length} seeds`, color: LEVELS.sgd.color, band: true }));
  // Every level, and SGD at each T: axes hold all of them, so that none moves.
  const everyRun = () => [...Object.values(computed.levels), ...Object.values(computed.seeds).map(([first]) => first)];
  // SGD with T = infinity, beside that with the T chosen.
  const limit = (pick, dash = "solid") => allBands(pick).filter(({ length }) => length === INFINITE && length !== computed.length)
    .map(({ x, low }) => ({ level: INFINITE, label: `SGD, ${w.lengthOf(INFINITE)}`, color: "c5", dash, x, y: low, width: 1.7 }));

  // Until attention is fastest at the chosen level it scans, from then on it snaps.
  const fastest = () => computed.own.speed?.fastest ?? NaN;
  const spans = () => (Number.isFinite(fastest()) ? [{ from: computed.first, to: fastest(), label: "scanning" }, { from: fastest(), to: computed.setting.end, label: "snapping" }] : []);

  // What differs from level to level: shares of attention, growth, the common token's logit.
  function drawLevels() {
    const { how, own: chosen, setting, exponent, times } = computed;
    const name = nameOf(how);
    const token = top();
    const pick = (l) => (one, i) => one.shares[i] && one.shares[i][l];
    plots.share.title(VIEWS[view.value].title);
    if (view.value === "share") drawShares(pick, token);
    else drawPace(view.value);

    const chi = (row, l) => row && Math.exp(2 * row[l]);
    const compared = others();
    const distinct = setting.distinct.map((_, i) => ({
      label: TOKENS[i + 1], color: i ? `c${i}` : "c0", dash: ["solid", "dashed", "dotdash", "dotted", "dashed"][i], x: chosen.times,
      y: chosen.z.map((row) => chi(row, i + 1)), width: i ? 2 : 3.5,
    }));
    const curves = compared.length
      ? [{ ...distinct[0], label: `distinct 1: ${own()}` }, ...compared.filter((one) => one.levels[how]).map((one) => ({ ...one, label: `distinct 1: ${one.label}`, x: one.times, y: one.levels[how].z.map((row) => chi(row, 1)) }))]
      : distinct;
    const high = yzflow.plots.upTo([...everyRun(), ...compared.flatMap((one) => Object.values(one.levels))].map((one) => one.z.map((row) => row && Math.max(...row.slice(1).map((value) => Math.exp(2 * value))))), 1);
    if (high.max > 50) Object.assign(high, { log: true });
    plots.growth.scope(`the chosen level: ${name}`);
    plots.growth.draw({ x: axis(), y: { label: "growth factor χ", ...high }, lines: curves, marks: marks() });
    plots.growth.key(curves);
    plots.growth.text("χ says by what factor the squared weight of a token has grown: 1 at the start. The axis holds all levels.");
    const table = w.sample(chosen.times.length, 10);
    plots.growth.table(`Growth factor χ of the distinct tokens, ${name}`, ["t", ...TOKENS.slice(1)], table.map((i) => [chosen.times[i], ...TOKENS.slice(1).map((_, l) => chi(chosen.z[i], l + 1))]));

    const fallen = (one, i) => one.z[i] && -one.z[i][0];
    const fall = [...limit(fallen), ...byLevel(fallen)];
    const exponents = [...fall, ...compared.map((one) => ({ ...one, label: `closed form: ${one.label}`, x: one.times, y: one.exponent }))];
    const falls = allBands(fallen);
    plots.exponent.scope("all levels; the chosen one is thick");
    plots.exponent.draw({ x: axis(), y: { label: "−(logit of the common token)", ...yzflow.plots.upTo([...exponents.map((line) => line.y), ...falls.flatMap((one) => [one.low, one.high])]) }, lines: exponents, bands: band(fallen), marks: marks() });
    plots.exponent.key([...fall].reverse().concat(exponents.slice(fall.length), bandKey()));
    plots.exponent.text("By the closed form this is the growth exponent B. Where the lines part, it does not describe the level.");
    plots.exponent.table(`Growth exponent B, closed form, and the logit of the common token, ${name}`, ["t", "B", "logit"], table.map((i) => [chosen.times[i], how === "sgd" ? computed.exponentAt(chosen.times[i]) : exponent[i], chosen.z[i] && chosen.z[i][0]]));
  }

  function drawShares(pick, token) {
    const both = [0, token].flatMap((l) => [...limit(pick(l), l ? "solid" : "dashed"), ...byLevel(pick(l), l ? "solid" : "dashed")]);
    const [bands, every] = [band, allBands].map((of) => [0, token].flatMap((l) => of(pick(l))));
    both.sort((a, b) => a.width - b.width);
    plots.share.scope("all levels; the chosen one is thick");
    plots.share.draw({ x: axis(), y: { label: "share of attention", ...yzflow.plots.upTo([...both.map((line) => line.y), ...every.flatMap((one) => [one.low, one.high])]) }, lines: both, bands, marks: marks(), spans: spans() });
    plots.share.key([{ label: `distinct ${token}: solid`, color: "soft", dash: "solid" }, { label: "common: dashed", color: "soft", dash: "dashed" }, ...[...limit(pick(0)), ...byLevel(pick(0))].reverse().map((line) => ({ ...line, dash: "solid" })), ...bandKey()]);
    plots.share.text(`The common token, and the distinct one that occurs most often. ${AXIS}`);
    const { times, levels } = computed;
    const shown = Object.keys(levels).filter((key) => key !== "sgd");
    plots.share.table("Share of attention by level", ["t", ...shown.flatMap((key) => [`common, ${LEVELS[key].name}`, `distinct ${token}, ${LEVELS[key].name}`])],
      w.sample(times.length, 10).map((i) => [times[i], ...shown.flatMap((key) => [0, token].map((l) => pick(l)(levels[key], i)))]));
  }

  // The speed of attention over its largest, or the share of its change up to the end, of every level but SGD.
  function drawPace(what) {
    const pace = what === "speed";
    const lines = byLevel((one, i) => one.part[i]).filter(({ level: name }) => name !== "sgd" || computed.how === "sgd");
    for (const line of pace ? lines : []) {
      const { x, y, most } = computed.levels[line.level].speed;
      Object.assign(line, { x, y: y.map((value) => value / most) });
    }
    plots.share.scope("each level over its own; the chosen one is thick");
    plots.share.draw({ x: axis(), y: { label: pace ? "speed / its largest" : "share of the change", min: 0, max: 1.25 }, lines, marks: marks(), spans: spans() });
    lines.reverse();
    plots.share.key(lines);
    const meaning = pace
      ? "How fast attention moves, half the sum over tokens of |change| in a step, over the largest of the same level."
      : "How far attention has moved from where it began, over how far it has at the end.";
    plots.share.text(`${meaning} ${AXIS}`);
    const listed = lines.filter(({ level: name }) => name !== "sgd"); // which have the same times
    plots.share.table(VIEWS[what].title, ["t", ...listed.map(({ label }) => label)],
      w.sample(listed[0].x.length, 10).map((i) => [listed[0].x[i], ...listed.map(({ y }) => y[i] ?? null)]));
  }

  // What is the same at every level, since it stands for the theory's decoder alone: gamma and h.
  function drawTheory() {
    const { setting, times, gamma } = computed;
    const compared = others();
    const rows = w.sample(times.length, 10);
    const speeds = [{ label: own(), color: "c0", dash: "solid", x: times, y: gamma, width: 3 }, ...compared.map((one) => ({ ...one, x: one.times, y: one.gamma }))];
    plots.gamma.scope("the theory’s: the same at every level");
    plots.gamma.draw({ x: axis(), y: { label: "speed γ", ...yzflow.plots.upTo(speeds.map((line) => line.y)) }, lines: speeds, marks: marks() });
    plots.gamma.key(speeds);
    plots.gamma.text("γ is how strong a gradient the theory’s decoder sends back to attention. It rises while the decoder learns and dies when it has learnt.");
    plots.gamma.table("Speed γ", ["t", "γ"], rows.map((i) => [times[i], gamma[i]]));

    const visits = Math.max(1, Math.min(200, Math.floor(setting.end / setting.K)));
    const s = Array.from({ length: visits + 1 }, (_, i) => i);
    const continuous = s.map((value) => decoder.h(value, setting));
    const steps = decoder.hSteps(visits, setting);
    const pair = [
      { label: "h*(s), step by step", color: "c1", dash: "solid", x: s, y: steps },
      { label: "h(s), smooth", color: "c0", dash: "dashed", x: s, y: continuous },
      ...compared.filter((one) => one.change.etaY).map((one) => ({ ...one, label: `h: ${one.label}`, x: s, y: s.map((value) => decoder.h(value, one.setting)) })),
    ];
    plots.decoder.scope("the theory’s: the same at every level");
    plots.decoder.draw({ x: { label: "visits of a class, s = t/K", min: 0, max: visits }, y: { label: "decoder growth h", ...yzflow.plots.upTo(pair.map((line) => line.y)) }, lines: pair, marks: marks(setting.K) });
    plots.decoder.key(pair);
    plots.decoder.text(`Over the first ${visits} visits of a class the two differ by at most ${w.short(Math.max(...s.map((i) => Math.abs(steps[i] - continuous[i]))))}. The marks are t*/K, t₀′/K and t₀/K.`);
    plots.decoder.table("Decoder growth", ["s", "h", "h*"], w.sample(visits + 1, 10).map((i) => [i, continuous[i], steps[i]]));
  }

  // Readouts, the sentence and the regime.
  function drawEnd() {
    const { setting, how, own: chosen, peak, rho, exponent } = computed;
    const { K, M, etaY, etaZ } = setting;
    const last = chosen.z.at(-1);
    const token = top();
    const own2 = setting.distinct[token - 1] ** 2;
    const f0 = own2 / (setting.common ** 2 + sum(setting.distinct.map((p) => p * p)));
    const [lower, upper] = claims.growthBounds(f0, exponent.at(-1) / K);
    const slowdown = K > 1 ? claims.slowdown(M, K, rho) : NaN;
    show({
      peak, scanning: decoder.scanningTime(setting), snapping: decoder.snappingTime(setting), overlap: rho, exponent: exponent.at(-1),
      common: last ? last[0] : NaN, growth: last ? Math.exp(2 * last[token]) : NaN, lower, upper, slowdown,
    });
    const percent = (one) => `${Math.round(100 * one.done)}%`;
    const [first, end] = [chosen.shares[0], chosen.shares.at(-1)];
    const level = how === "sgd" ? nameOf(how).replace(",", " with") : `the ${LEVELS[how].name}`;
    const sentences = end ? [`${w.brief(chosen.change)} of all attention has moved in ${level}.`] : [];
    // A share and where it goes, or by how much where three digits do not show it.
    const goes = (l) => {
      const [a, b] = [w.brief(first[l]), w.brief(end[l])];
      const way = end[l] < first[l] ? "falls" : "rises";
      return a === b ? `${way} by ${w.brief(Math.abs(end[l] - first[l]))} from ${a}` : `${way} from ${a} to ${b}`;
    };
    w.byId("transition-see").textContent = end
      ? `What you see: in ${level} the common token’s share of attention ${goes(0)} and that of distinct ${token} ${goes(token)} in ${chosen.times.at(-1).toLocaleString("en-US")} steps${Number.isFinite(fastest()) ? `, fastest at t = ${w.short(Number(fastest().toPrecision(2)))}` : ""}.`
      : "The integration has stopped early.";
    const told = Object.entries(computed.levels).filter(([, one]) => !Number.isNaN(one.done));
    if (told.length) sentences.push(`At t* = ${w.brief(peak)} the share of the change up to t = ${w.brief(setting.end)} that is done is ${told.map(([name, one]) => `${percent(one)} (${LEVELS[name].name})`).join(", ")}.`);
    else sentences.push(`The speed γ peaks at t* = ${w.brief(peak)}${peak > setting.end ? ", after the end" : ""}.`);
    w.byId("transition-summary").textContent = sentences.join(" ");
    const regime = w.byId("transition-regime");
    if (K === 1) {
      regime.textContent = "Assumption 2 needs at least two classes.";
      return;
    }
    const at = (name) => margins[name](M, K, etaY, etaZ, rho);
    const side = (name, text, holds = (value) => value >= 1) => `${text} ${holds(at(name)) ? "✓ holds" : "✗ fails"} (margin ${w.short(at(name), holds)})`;
    regime.replaceChildren(...w.rich(
      `Assumption 2 ${at("upper") > 1 && at("lower") >= 1 ? "holds" : "does not hold"}: ${side("upper", "largest |eigenvalue| below 1/K", (value) => value > 1)}, ${side("lower", "smallest |eigenvalue| at least 6/√M")}. ` +
      `Assumption 1(c): ${side("fast", "η_Y at least 100 η_Z")}. Small overlap, as Theorem 4’s estimates need it: ${side("weak", "K ρ at most 0.1")}, ${side("close", "M ρ at least 8")}. A margin above 1 is inside. ` +
      `The true gradient moves attention ${w.short(1 / slowdown)} times slower than the theory at first.`,
    ));
  }

  const brightest = () => Math.max(0.05, ...everyRun().flatMap(({ shares }) => shares.flatMap((row) => row ?? [])));

  function drawHeat() {
    const { how, own: { times, shares }, first } = computed;
    const shown = w.sample(times.length, 80);
    const most = brightest();
    const x = axis();
    const middle = (i, j) => Math.sqrt(Math.max(times[shown[i]], first) * times[shown[j]]);
    const cells = shown.flatMap((i, place) => {
      if (!shares[i] || times[i] < first && place + 1 < shown.length && times[shown[place + 1]] < first) return [];
      const left = place ? middle(place - 1, place) : first;
      const right = place + 1 < shown.length ? middle(place, place + 1) : times[i];
      return shares[i].map((share, token) => ({ left, right, y: token, share: share / most }));
    });
    plots.heat.scope(`the chosen level: ${nameOf(how)}`);
    plots.heat.draw({ x, y: { label: "", min: -0.5, max: TOKENS.length - 0.5, ticks: TOKENS.map((text, at) => ({ at, text })) }, cells, marks: marks() });
    plots.heat.text(`Dark: no attention; bright: ${w.brief(most)}, the most that a token gets at any level. The thick line is the time shown.`);
    plots.heat.table(`Share of attention of each token, ${nameOf(how)}`, ["t", ...TOKENS], w.sample(times.length, 10).map((i) => [times[i], ...(shares[i] || TOKENS.map(() => null))]));
  }

  function drawNow() {
    const { own: chosen, how } = computed;
    const index = Math.round((clock.value / 100) * (chosen.times.length - 1));
    const time = chosen.times[index];
    const now = chosen.shares[index] || TOKENS.map(() => NaN);
    const playing = player.isOn() || (clock.value > 0 && clock.value < 100);
    for (const plot of timed) plot.now(Math.max(time, computed.first), playing);
    const part = Number.isFinite(fastest()) ? (time < fastest() ? ": scanning" : ": snapping") : "";
    label.textContent = `time t = ${w.brief(time)} steps${clock.value > 0 ? part : ""}`;
    plots.now.scope(nameOf(how));
    const x = { label: "token", min: -0.6, max: TOKENS.length - 0.4, ticks: TOKENS.map((_, at) => ({ at, text: at ? String(at) : "c" })) };
    const colored = (tops) => TOKENS.map((_, i) => ({ x: i, top: tops[i], color: i ? "c1" : "c3" }));
    if (view.value === "share" || !chosen.shares.at(-1)) {
      plots.now.title("Attention now");
      plots.now.draw({ x, y: { label: "share of attention", min: 0, max: 1.06 * brightest() }, bars: colored(now) });
    } else {
      // Beside a plot of the pace, which is over its largest, too: small changes move the bars as large ones do.
      const most = Math.max(...TOKENS.map((_, i) => Math.abs(chosen.shares.at(-1)[i] - chosen.shares[0][i])));
      const changes = TOKENS.map((_, i) => (now[i] - chosen.shares[0][i]) / most);
      plots.now.title("Change so far");
      plots.now.draw({ x, y: { label: "change / largest", min: -1.1, max: 1.1 }, bars: colored(changes) });
    }
    plots.now.text(`c is the common token, 1 to 5 are the distinct ones. At t = ${w.brief(chosen.times[index])}: ${TOKENS.map((name, i) => `${name} ${w.brief(now[i])}`).join(", ")}.`);
    plots.now.table(`Share of attention at t = ${w.short(chosen.times[index])}, ${nameOf(how)}`, ["token", "share"], TOKENS.map((name, i) => [name, now[i]]));
  }

  function python() {
    const { setting, how, c0 } = computed;
    const { K, M, etaY, etaZ, end, common, distinct } = setting;
    if (how === "closed") {
      return `import numpy as np
from theory import attention

times = np.geomspace(${computed.first}, ${end}, 200)
B = attention.growth_exponent(times, vocab_size=${M}, n_classes=${K}, eta_y=${etaY}, eta_z=${etaZ}, c0=${c0})
growth = attention.distinct_growth(B / ${K}, np.array([${distinct.join(", ")}]))
print("logit of the common token:", -B[-1])
print("growth of the distinct tokens:", growth[-1])
`;
    }
    return `${yzflow.levels.simulated(setting, how, computed.own.times.at(-1), computed.length)}run = flow.dataset.isel(time=-1, next_token=0)
print("share of attention:", run["attention"].values[:6])
print("logit of the common token:", float(run["z"].values[0, 0]))
`;
  }

  const limitLevel = () => (computed.run ? { "sgd, T = infinity": { times: computed.run[INFINITE].t, ...computed.seeds[INFINITE][0] } } : {});
  const data = () => ({
    columns: ["level", "t", ...TOKENS.map((name) => `logit ${name}`), ...TOKENS.map((name) => `attention ${name}`)],
    rows: Object.entries({ ...computed.levels, ...limitLevel() }).flatMap(([name, { times, z, shares }]) => times.map((t, i) => [name, t, ...(z[i] ?? TOKENS.map(() => null)), ...(shares[i] ?? TOKENS.map(() => null))])),
  });

  bench = yzflow.bench.build("transition", { presets, controls, start, draw, python, data, free: FREE });
  bench.start();
};
