// The panel of the balance condition.
yzflow.panels.dyck = ({ presets, language, layer, pattern }) => {
  const w = yzflow.widgets;
  const { dyck } = yzflow;
  const SYMBOLS = [...dyck.BRACKETS.slice(0, 2 * language.k)];
  const STYLES = [["c0", "solid"], ["c1", "dashed"], ["c3", "solid"], ["c4", "dashed"]];
  const plot = w.plot("insertions", "Next bracket against inserted pairs");
  const attended = w.plot("attended", "Attention of the last bracket on what was read");
  let bench;
  let valid = null; // the text that is shown
  const update = () => bench.draw();

  const field = w.element("input", { type: "text", id: "brackets", autocomplete: "off", spellcheck: "false", "aria-describedby": "dyck-note" });
  const buttons = w.element("div", { class: "keys" });
  w.byId("dyck-text").append(w.element("label", { for: "brackets" }, "brackets read so far "), field, buttons);
  const edit = (name, label, change) => {
    const button = w.element("button", { type: "button", "aria-label": label }, name);
    button.addEventListener("click", () => {
      field.value = change(field.value);
      update();
    });
    buttons.append(button, " ");
  };
  for (const symbol of SYMBOLS) edit(symbol, `add ${symbol}`, (text) => text + symbol);
  edit("⌫", "delete the last bracket", (text) => text.slice(0, -1));
  field.addEventListener("input", update);

  const insert = w.byId("dyck-insert");
  const controls = {
    text: {
      get value() { return field.value; },
      set(value) { field.value = value; },
      parse(text) {
        try { dyck.parse(text, language); } catch { return undefined; }
        return text;
      },
    },
    type: w.choices(insert, "pair", [{ value: "0", label: "round pairs ( )" }, { value: "1", label: "square pairs [ ]" }], update),
    level: w.slider(insert, { id: "level", label: "level of the pairs", min: 1, max: language.D, integer: true }, update),
    pairs: w.slider(insert, { id: "pairs", label: "number of pairs", min: 0, max: 100, integer: true }, update),
    violation: w.slider(insert, { id: "violation", label: "how far off balance", min: 0, max: 1, step: 0.01 }, update),
  };
  const { type, level, pairs, violation } = controls;
  const show = w.readouts("dyck", {
    residual: "residual of the balance condition",
    share: "what one pair adds, over what is there",
    correct: "probability of the right closing bracket",
    before: "the same without inserted pairs",
    moved: "how far the output moved (total variation)",
  });

  // Prediction for the text with n more pairs: only how often each state occurs matters.
  function predict(weights, states, open, n) {
    const counts = new Array(2 * language.k * language.D + 1).fill(0);
    for (const state of states) counts[state] += 1;
    counts[open] += n;
    counts[dyck.partner(open, language)] += n;
    return { counts, output: dyck.predict(weights, states.at(-1), counts) };
  }

  // Where the pairs go: the first place before the text's last bracket where they have the level; null without one.
  function placeOf(text, levelOfPairs) {
    let depth = 0;
    for (let place = 0; place < Math.max(text.length, 1); place++) {
      if (depth === levelOfPairs - 1) return place;
      depth += SYMBOLS.indexOf(text[place]) % 2 === 0 ? 1 : -1;
    }
    return null;
  }

  const pairOf = () => SYMBOLS.slice(2 * Number(type.value), 2 * Number(type.value) + 2).join("");

  function draw() {
    const note = w.byId("dyck-note");
    const pair = pairOf();
    let parsed;
    try {
      parsed = dyck.parse(field.value, language);
    } catch (error) {
      return refuse(`Not a beginning of a bracket text: ${error.message}. The plots show the last valid text.`);
    }
    const place = placeOf(field.value, level.value);
    if (place === null) return refuse(`The text never stands at level ${level.value - 1} before its last bracket: choose another level for the pairs.`);
    field.removeAttribute("aria-invalid");
    const text = field.value;
    valid = { text, place, pair };
    const { states, stack } = parsed;
    const closing = text && SYMBOLS.indexOf(text.at(-1)) % 2 === 1 && stack.length > 0;
    note.textContent = closing ? "" : "The balance condition speaks of texts that end in a closing bracket with another still open, such as ([]. The layer guesses here too.";
    const n = pairs.value;
    w.byId("dyck-result").textContent = text.slice(0, place) + (n > 12 ? ` ${pair} × ${n} ` : pair.repeat(n)) + text.slice(place) || "(empty)";
    const Z = layer.Z.map((row, q) => row.map((value, s) => value + violation.value * pattern[q][s]));
    const weights = { ...layer, Z };
    const open = dyck.openState(Number(type.value), level.value, language);
    const numbers = Array.from({ length: 101 }, (_, i) => i);
    const outputs = numbers.map((i) => predict(weights, states, open, i).output);
    valid.outputs = outputs;
    const now = outputs[n];
    const right = stack.length ? 2 * stack.at(-1) + 1 : null;
    const lines = SYMBOLS.map((symbol, b) => ({
      label: `${symbol}${b === right ? " (right)" : ""}`, color: STYLES[b][0], dash: STYLES[b][1], x: numbers, y: outputs.map((row) => row[b]), width: b === right ? 4 : 2,
    }));
    const points = SYMBOLS.map((_, b) => ({ x: n, y: now[b], color: STYLES[b][0] }));
    plot.draw({ x: { label: "inserted pairs", min: 0, max: 100 }, y: { label: "probability", min: 0, max: 1 }, lines, points });
    plot.key(lines);
    plot.text("Balanced: every line is flat. Off balance: the lines bend, and in the end they no longer depend on the text. Equal probabilities lie on one line. The dots are at the chosen number of pairs.");
    plot.table("Probability of each next bracket", ["pairs", ...SYMBOLS], w.sample(101, 10).map((i) => [i, ...outputs[i]]));
    const moved = now.reduce((total, value, b) => total + Math.abs(value - outputs[0][b]) / 2, 0);
    const { counts } = predict(weights, states, open, 0);
    const correct = right === null ? NaN : now[right];
    show({
      residual: dyck.residual(Z, language), share: dyck.pairShare(weights, states.at(-1), counts, open, language),
      correct, before: right === null ? NaN : outputs[0][right], moved,
    });
    const best = SYMBOLS[now.indexOf(Math.max(...now))];
    w.byId("dyck-summary").textContent =
      `${moved < 1e-9 ? "The output did not move" : `The output moved by ${w.short(moved)}`} when ${n} pairs were inserted. The likeliest next bracket is ${best}` +
      `${right === null ? "; nothing is open, so that no closing bracket is right." : best === SYMBOLS[right] ? ", which is right." : `, but ${SYMBOLS[right]} would be right.`}`;
    drawAttention(Z, states, open, text, place, n);
  }

  // Attention of the last bracket: on the start and each bracket of the text, and on the inserted ones together.
  function drawAttention(Z, states, open, text, place, n) {
    const [query, pair] = [states.at(-1), pairOf()];
    const read = [{ name: "start", state: states[0], count: 1, color: "c5" }, ...[...text].map((symbol, i) => ({ name: symbol, state: states[i + 1], count: 1, color: "c1" }))];
    const inserted = [open, dyck.partner(open, language)].map((state, i) => ({ name: `${pair[i]}×${n}`, state, count: n, color: "c3" }));
    read.splice(1 + place, 0, ...inserted);
    const weights = dyck.attend(Z, query, read.map(({ state }) => state), read.map(({ count }) => count));
    const ticks = read.map(({ name }, at) => ({ at, text: name }));
    attended.scope("with the inserted pairs");
    attended.draw({
      x: { label: "what was read, in order", min: -0.6, max: Math.max(read.length, 6) - 0.4, ticks, slanted: read.length > 12 },
      y: { label: "share of attention", min: 0, max: 1 }, bars: read.map(({ color }, x) => ({ x, top: weights[x], color })),
    });
    attended.key([{ label: "start of the text", color: "c5" }, { label: "brackets of the text", color: "c1" }, { label: `inserted, all ${n} together`, color: "c3" }]);
    attended.text("Any pattern may be balanced: what counts is that the two brackets of a pair cancel in what they add, not where attention goes.");
    attended.table("Attention of the last bracket", ["read", "share of attention"], read.map(({ name }, i) => [name, weights[i]]));
  }

  function refuse(message) {
    field.setAttribute("aria-invalid", "true");
    w.byId("dyck-note").textContent = message;
  }

  const quoted = (text) => `"${text}"`;
  function python() {
    const { text, place, pair } = valid;
    return `import numpy as np
from dynamics import Layer
from yzflow_bounded_dyck import DyckLanguage, balance

language = DyckLanguage(n_types=${language.k}, max_depth=${language.D})
layer = balance.balanced_layer(language, rng=2, scale=0.3)
opens = balance.pairs(language)[0].ravel()
noise = np.random.default_rng(4).normal(size=(language.n_states, opens.size)).round(6)
Z = layer.Z.copy()
Z[:, opens] -= ${violation.value} * noise
levels = np.arange(len(layer.Y)) % language.max_depth  # a level deeper weighs eight times as much
layer = Layer(Z, 200 * 8.0 ** (levels[:, None] - language.max_depth + 1) * (layer.Y > 0), layer.V)
bags = language.bags([${quoted(text.slice(0, place))} + ${quoted(pair)} * ${pairs.value} + ${quoted(text.slice(place))}])
print("probability of ${SYMBOLS.join(" ")}:", layer.predict(bags)[0])
print("residual of the balance condition:", balance.residual(layer.Z, language))
`;
  }

  bench = yzflow.bench.build("dyck", {
    presets, controls, draw, python,
    start: ({ setting }) => ({ ...setting, type: String(setting.type) }),
    data: () => ({ columns: ["pairs", ...SYMBOLS.map((symbol) => `probability of ${symbol}`)], rows: valid.outputs.map((row, n) => [n, ...row]) }),
  });
  bench.start();
};
