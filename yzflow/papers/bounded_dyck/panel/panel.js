// The panel of the balance condition.
yzflow.panels.dyck = async ({ presets, language, layer, pattern }, items) => {
  const w = yzflow.widgets;
  const { dyck } = yzflow;
  const SYMBOLS = [...dyck.BRACKETS.slice(0, 2 * language.k)];
  const STYLES = [["c0", "solid"], ["c1", "dashed"], ["c3", "solid"], ["c4", "dashed"]];
  const plot = await w.plot("insertions", "Next bracket against inserted pairs", items.insertions);
  const update = w.later(draw);

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
  w.byId("dyck-controls").addEventListener("submit", (event) => event.preventDefault());

  const insert = w.byId("dyck-insert");
  const type = w.choices(insert, "pair", [{ value: "0", label: "round pairs ( )" }, { value: "1", label: "square pairs [ ]" }], update);
  const level = w.slider(insert, { id: "level", label: "nesting level of the pairs", min: 1, max: language.D, integer: true }, update);
  const pairs = w.slider(insert, { id: "pairs", label: "number of pairs", min: 0, max: 100, integer: true }, update);
  const violation = w.slider(insert, { id: "violation", label: "how far the layer is off balance (0: balanced)", min: 0, max: 1, step: 0.01 }, update);
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

  // The text with the pairs in it: at the first place before its last bracket where they have the level.
  function inserted(text, levelOfPairs, pair, n) {
    let depth = 0;
    for (let place = 0; place < Math.max(text.length, 1); place++) {
      if (depth === levelOfPairs - 1) return text.slice(0, place) + (n > 12 ? ` ${pair} × ${n} ` : pair.repeat(n)) + text.slice(place);
      depth += SYMBOLS.indexOf(text[place]) % 2 === 0 ? 1 : -1;
    }
    return null;
  }

  function draw() {
    const note = w.byId("dyck-note");
    const pair = SYMBOLS.slice(2 * Number(type.value), 2 * Number(type.value) + 2).join("");
    let parsed;
    try {
      parsed = dyck.parse(field.value, language);
    } catch (error) {
      return refuse(`Not a beginning of a bracket text: ${error.message}. The plot shows the last valid text.`);
    }
    const result = inserted(field.value, level.value, pair, pairs.value);
    if (result === null) return refuse(`The text never stands at level ${level.value - 1} before its last bracket: choose another level for the pairs.`);
    field.removeAttribute("aria-invalid");
    const { states, stack } = parsed;
    const closing = field.value && SYMBOLS.indexOf(field.value.at(-1)) % 2 === 1 && stack.length > 0;
    note.textContent = closing ? "" : "The balance condition speaks of texts that end in a closing bracket with another still open, such as ([]. The layer guesses here too.";
    w.byId("dyck-result").textContent = result || "(empty)";
    const Z = layer.Z.map((row, q) => row.map((value, s) => value + violation.value * pattern[q][s]));
    const weights = { ...layer, Z };
    const open = dyck.openState(Number(type.value), level.value, language);
    const numbers = Array.from({ length: 101 }, (_, n) => n);
    const outputs = numbers.map((n) => predict(weights, states, open, n).output);
    const now = outputs[pairs.value];
    const right = stack.length ? 2 * stack.at(-1) + 1 : null;
    const lines = SYMBOLS.map((symbol, b) => ({
      label: `${symbol}${b === right ? " (right)" : ""}`, color: STYLES[b][0], dash: STYLES[b][1], x: numbers, y: outputs.map((row) => row[b]), width: b === right ? 4 : 2,
    }));
    plot.lines(lines, SYMBOLS.map((_, b) => ({ x: pairs.value, y: now[b], color: STYLES[b][0] })));
    plot.range(100);
    plot.key(lines);
    plot.text("Balanced: every line is flat. Off balance: the lines bend, and in the end they no longer depend on the text. Equal probabilities lie on one line. The dots are at the chosen number of pairs.");
    plot.table("Probability of each next bracket", ["pairs", ...SYMBOLS], w.sample(101, 10).map((n) => [n, ...outputs[n]]));
    const moved = now.reduce((total, value, b) => total + Math.abs(value - outputs[0][b]) / 2, 0);
    const { counts } = predict(weights, states, open, 0);
    const correct = right === null ? NaN : now[right];
    show({
      residual: dyck.residual(Z, language), share: dyck.pairShare(weights, states.at(-1), counts, open, language),
      correct, before: right === null ? NaN : outputs[0][right], moved,
    });
    const best = SYMBOLS[now.indexOf(Math.max(...now))];
    w.byId("dyck-summary").textContent =
      `${moved < 1e-9 ? "The output did not move" : `The output moved by ${w.short(moved)}`} when ${pairs.value} pairs were inserted. The likeliest next bracket is ${best}` +
      `${right === null ? "; nothing is open, so that no closing bracket is right." : best === SYMBOLS[right] ? ", which is right." : `, but ${SYMBOLS[right]} would be right.`}`;
  }

  function refuse(message) {
    field.setAttribute("aria-invalid", "true");
    w.byId("dyck-note").textContent = message;
  }

  w.presets("dyck", presets, ({ setting }) => {
    field.value = setting.text;
    type.set(String(setting.type));
    level.set(setting.level);
    pairs.set(setting.pairs);
    violation.set(setting.violation);
    draw();
  })();
  return { recolour() { plot.recolour(); draw(); } };
};
