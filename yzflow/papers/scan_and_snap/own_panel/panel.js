// The panel for a reader's own classes: a table, the flow of it, and what attention does in each class.
yzflow.panels.own = ({ presets, limits }) => {
  const w = yzflow.widgets;
  const { own } = yzflow;
  const N = 120; // output times
  const LEVELS = { full: "full flow (Lemma 1, the true gradient)", modified: "modified flow (Lemma 3)" };
  const NAMES = { full: "full flow", modified: "modified flow" };
  const DASHES = ["solid", "dashed", "dotted"];
  const MARGINS = {
    fast: "Assumption 1(c): η_Y at least 100 η_Z",
    many: "Assumption 2: M at least 10 K²",
    upper: "Assumption 2: largest |λ(E)| below 1/K",
    lower: "Assumption 2: smallest |λ(E)| at least 6/√M",
    uniform: "classes drawn equally often",
    equal: "equal overlaps of all classes",
    common: "one common token",
    query: "one query",
  };
  const plots = {};
  for (const [id, title] of Object.entries({
    share: "Attention of a class on its tokens",
    now: "The class now",
    all: "Attention of all classes at the time shown",
    right: "Probability of the right next token",
  })) plots[id] = w.plot(`own-${id}`, title);

  let computed;
  let bench;
  const player = w.player("own-play", () => clock, () => drawNow());
  const update = () => bench.draw();
  const table = yzflow.classTable(w.byId("own-table"), { id: "own", limits, changed: update, say: (text) => { w.byId("own-wrong").textContent = text; } });
  const select = w.element("select", { id: "own-shown", "aria-label": "class shown" });
  select.addEventListener("change", update);
  w.byId("own-class").append(select);
  const rates = w.byId("own-rates");
  const add = (more) => w.slider(rates, more, update);
  const controls = {
    table,
    shown: {
      get value() { return select.value; },
      set(value) { offer(value); },
      parse: (text) => (/^\d+$/.test(text) && Number(text) < table.table.rows.length ? String(Number(text)) : undefined),
    },
    level: w.choices(w.byId("own-level"), "own-level", Object.entries(LEVELS).map(([value, label]) => ({ value, label })), update),
    etaY: add({ id: "own-eta-y", label: "η_Y, decoder’s rate", min: 0.01, max: 50, step: 0.05, log: true }),
    etaZ: add({ id: "own-eta-z", label: "η_Z, attention’s rate", min: 0.001, max: 50, step: 0.05, log: true }),
    M: add({ id: "own-vocab-size", label: "M, next tokens in all", min: 2, max: limits.vocabulary, step: 0.05, log: true, integer: true }),
    end: add({ id: "own-end", label: "length of training", min: 1, max: 1e5, step: 0.05, log: true, unit: "SGD steps" }),
  };
  const clock = w.slider(w.byId("own-clock"), { id: "own-time", label: "time", min: 0, max: 100, step: 0.5, exact: false }, () => { drawNow(); bench.note(); });
  controls.time = clock;
  const label = w.byId("own-clock").querySelector("label");
  const holds = (key, margin) => (key === "upper" ? margin > 1 : margin >= 1 - 1e-9);
  const show = w.readouts("own", MARGINS, holds);

  const start = ({ setting: { tokens, rows, ...setting } }) => ({
    table: table.written({ tokens, rows: rows.map(([name, query, weight, ...counts]) => ({ name, query, weight, counts })) }),
    ...setting, time: 100,
  });

  // The classes to choose from, as they are called now.
  function offer(value) {
    const { rows } = table.table;
    select.replaceChildren(...rows.map(({ name }, n) => w.element("option", { value: n }, name)));
    select.value = String(Math.min(Number(value), rows.length - 1));
  }

  // Both ends of a long name, since names often differ in the last letters.
  function clip(name, letters = 14) {
    const all = [...name];
    const end = Math.floor(letters / 3);
    return all.length > letters ? `${all.slice(0, letters - end - 1).join("")}…${all.slice(-end).join("")}` : name;
  }
  const quoted = (name) => `“${clip(name, 40)}”`;

  function draw() {
    const notes = [];
    offer(select.value || 0);
    const { tokens, rows } = table.table;
    const queries = [...new Set(rows.map(({ query }) => query))];
    const further = queries.filter((query) => !tokens.includes(query));
    const least = Math.max(rows.length, further.length ? tokens.length + further.length : 0);
    if (controls.M.value < least) {
      controls.M.set(least);
      notes.push(`M is ${least}: it must count all classes${further.length ? " and all tokens" : ""}.`);
    }
    const given = { M: controls.M.value, queries: rows.map(({ query }) => queries.indexOf(query)), counts: rows.map(({ counts }) => counts), weights: rows.map(({ weight }) => weight) };
    const independent = own.independent(given);
    controls.level.enable("modified", independent);
    if (!independent) {
      notes.push("The modified flow inverts the overlaps of the classes, which cannot be done here: rows depend on each other.");
      controls.level.set("full");
    }
    const training = { etaY: controls.etaY.value, etaZ: controls.etaZ.value };
    const end = controls.end.value;
    const first = end > 10 ? 0.1 : end / 1000;
    const times = [0, ...Array.from({ length: N }, (_, i) => first * (end / first) ** (i / (N - 1)))];
    times[N] = end;
    const level = controls.level.value;
    const flow = own.flow(level, given, training, times);
    if (flow.includes(null)) notes.push("The integration took too many steps and stops early: try smaller rates or a shorter training, or the program in Python.");
    computed = { tokens, rows, further, given, training, times, first, end, level, flow, n: Number(select.value), margins: own.margins(given, training) };
    w.byId("own-note").textContent = notes.join(" ");
    drawShares();
    drawEnd();
    drawNow();
  }

  const axis = () => ({ label: "time t, SGD steps", min: computed.first, max: computed.end, log: true });
  const scope = () => `class ${quoted(computed.rows[computed.n].name)}, ${NAMES[computed.level]}`;
  const share = (i, n, l) => computed.flow[i]?.attention[n][l] ?? NaN;
  const occurs = (n) => computed.tokens.flatMap((_, l) => (computed.rows[n].counts[l] > 0 ? [l] : []));
  const color = (l) => `c${l % 6}`;
  const last = () => computed.flow.findLastIndex((state) => state !== null);

  function drawShares() {
    const { tokens, times, flow, rows, n } = computed;
    const samples = w.sample(times.length, 10);
    const lines = occurs(n).map((l) => ({ label: clip(tokens[l]), color: color(l), dash: DASHES[Math.floor(l / 6)], x: times, y: flow.map((_, i) => share(i, n, l)), width: 3 }));
    plots.share.scope(scope());
    plots.share.draw({ x: axis(), y: { label: "share of attention", min: 0, max: 1.02 }, lines });
    plots.share.key(lines);
    plots.share.text("Each line is a token that occurs in this class; together they always hold all attention.");
    plots.share.table(`Share of attention, class ${rows[n].name}`, ["t", ...occurs(n).map((l) => tokens[l])], samples.map((i) => [times[i], ...occurs(n).map((l) => share(i, n, l))]));
    const right = rows.map(({ name }, k) => ({ label: clip(name), color: color(k), dash: DASHES[Math.floor(k / 6)], x: times, y: flow.map((state) => (state ? state.right[k] : null)), width: k === n ? 4.5 : 2 }));
    plots.right.scope("all classes; the one shown is thick");
    plots.right.draw({ x: axis(), y: { label: "probability", min: 0, max: 1.02 }, lines: right });
    plots.right.key(right);
    plots.right.text("What the decoder gives to the next token that is right, after reading a sequence of the class.");
    plots.right.table("Probability of the right next token", ["t", ...rows.map(({ name }) => name)], samples.map((i) => [times[i], ...right.map(({ y }) => y[i])]));
  }

  // The sentence, and the margins.
  function drawEnd() {
    const { tokens, rows, n, times, level, margins } = computed;
    const i = last();
    const moves = occurs(n).map((l) => ({ name: quoted(tokens[l]), from: share(0, n, l), to: share(i, n, l) })).sort((a, b) => a.to - a.from - (b.to - b.from));
    const [low, high] = [moves[0], moves.at(-1)];
    const two = (value) => w.brief(Number(value.toPrecision(value > 0.995 ? 3 : 2)));
    const where = `(${NAMES[level]}, t up to ${w.brief(times[i])})`;
    const name = quoted(rows[n].name);
    const sentence = moves.length === 1
      ? `for class ${name} attention stays on ${low.name}, the only token that occurs ${where}.`
      : high.to - high.from < 5e-4
        ? `for class ${name} attention hardly moves: no share changes by more than ${w.brief(Math.max(high.to - high.from, low.from - low.to))} ${where}.`
        : `for class ${name} attention on ${low.name} falls most, from ${two(low.from)} to ${two(low.to)}; ${high.name} gains most, from ${two(high.from)} to ${two(high.to)} ${where}.`;
    w.byId("own-summary").textContent = `What you see: ${sentence}`;
    show(margins);
    const kept = Object.keys(MARGINS).filter((key) => holds(key, margins[key]));
    w.byId("own-verdict").replaceChildren(...w.rich(
      `${kept.length} of the ${Object.keys(MARGINS).length} assumptions below hold for this table${kept.length ? `: ${kept.map((key) => MARGINS[key]).join("; ")}` : ""}. E holds the overlaps of different classes at the start.`,
    ));
  }

  function drawNow() {
    const { tokens, rows, n, times, flow } = computed;
    const i = Math.min(Math.round((clock.value / 100) * (times.length - 1)), last());
    const playing = player.isOn() || (clock.value > 0 && clock.value < 100);
    for (const plot of [plots.share, plots.right]) plot.now(Math.max(times[i], computed.first), playing);
    label.textContent = `time t = ${w.brief(times[i])} steps`;
    const x = (list, letters) => ({ label: "", min: -0.6, max: list.length - 0.4, ticks: list.map((l, at) => ({ at, text: clip(tokens[l], letters) })), slanted: true });
    const mine = occurs(n);
    plots.now.scope(`class ${quoted(rows[n].name)}`);
    plots.now.draw({
      x: x(mine, 7), y: { label: "share of attention", min: 0, max: 1.02 }, bars: mine.map((l, at) => ({ x: at, top: share(i, n, l), color: color(l) })),
      points: mine.map((l, at) => ({ x: at, y: share(0, n, l), color: "mark" })),
    });
    plots.now.key([{ label: "dots: at the start", color: "mark" }]);
    plots.now.text(`At t = ${w.brief(times[i])}: ${mine.map((l) => `${clip(tokens[l], 40)} ${w.brief(share(i, n, l))}`).join(", ")}.`);
    plots.now.table(`Share of attention at t = ${w.short(times[i])}, class ${rows[n].name}`, ["token", "share", "at the start"], mine.map((l) => [tokens[l], share(i, n, l), share(0, n, l)]));
    const names = rows.map(({ name }) => clip(name, 10));
    const cells = rows.flatMap((_, k) => occurs(k).map((l) => ({ left: l - 0.5, right: l + 0.5, y: k, share: share(i, k, l) })));
    plots.all.scope(NAMES[computed.level]);
    plots.all.draw({ x: x(tokens.map((_, l) => l), 10), y: { label: "", min: -0.5, max: rows.length - 0.5, ticks: names.map((text, at) => ({ at, text })) }, cells });
    plots.all.text("Dark: no attention; bright: all of it. Blank: a token that does not occur in the class.");
    plots.all.table(`Share of attention at t = ${w.short(times[i])}`, ["class", ...tokens], rows.map(({ name }, k) => [name, ...tokens.map((_, l) => flow[i].attention[k][l])]));
  }

  function python() {
    const { tokens, rows, further, given, training, end, level, n } = computed;
    const list = (names) => `[${names.map((name) => JSON.stringify(name)).join(", ")}]`;
    const all = [...tokens, ...further];
    const counts = given.counts.map((row) => `        [${row.join(", ")}],\n`).join("");
    const weights = given.weights.some((value) => value !== given.weights[0]) ? `weights = np.array([${given.weights.join(", ")}])\n` : "";
    return `import numpy as np
import yzflow as yz

counts = np.array(
    [
${counts}    ]
)
${weights}classes = yz.SequenceClasses(
    counts / counts.sum(axis=1, keepdims=True),
    query=[${rows.map(({ query }) => all.indexOf(query)).join(", ")}],
    vocab_size=${given.M},
${weights ? "    class_weights=weights / weights.sum(),\n" : ""}    token_names=${list(all)},
    class_names=${list(rows.map(({ name }) => name))},
)
flow = yz.gradient_flow(
    classes, eta_y=${training.etaY}, eta_z=${training.etaZ}, t_end=${end}, decoder="${level}", solver=yz.Solver(time_scale="log")
)
shares = flow.named["attention"].isel(time=-1).sel(next_token=${JSON.stringify(rows[n].name)})
print(shares.to_series().round(4))
`;
  }

  const data = () => {
    const { tokens, rows, times, flow } = computed;
    const pairs = rows.flatMap((_, n) => occurs(n).map((l) => [n, l]));
    return {
      columns: ["t", ...pairs.map(([n, l]) => `attention of ${rows[n].name} on ${tokens[l]}`), ...rows.map(({ name }) => `probability of ${name}`)],
      rows: times.map((t, i) => [t, ...pairs.map(([n, l]) => share(i, n, l)), ...rows.map((_, n) => flow[i]?.right[n] ?? null)]),
    };
  };

  bench = yzflow.bench.build("own", { presets, controls, start, draw, python, data, free: ["shown", "level", "time"] });
  bench.start();
};
