// The panel of sparse averaging.
yzflow.panels.averaging = ({ presets, signs: rows }) => {
  const w = yzflow.widgets;
  const { averaging } = yzflow;
  const signs = rows.map((row) => [...row].map((sign) => (sign === "+" ? 1 : -1)));
  const [N, MAX] = [signs.length, signs[0].length];
  const coherence = w.plot("coherence", "The largest wrong score falls with m");
  const weights = w.plot("weights", "Attention on all tokens");
  let bench;
  let shown = null; // what the plots show
  const update = () => bench.draw();
  const sizes = w.byId("averaging-sizes");
  const q = w.slider(sizes, { id: "q", label: "q, chosen tokens", min: 1, max: 12, integer: true }, update);
  const m = w.slider(sizes, { id: "m", label: "m, size of a key", min: 1, max: MAX, integer: true }, update);
  const error = w.slider(sizes, { id: "error", label: "error aimed at", min: 0.001, max: 1, step: 0.05, log: true }, update);
  const kind = w.choices(w.byId("averaging-set"), "set", [
    { value: "first", label: "the first q tokens (a random set, since keys are random)" },
    { value: "hard", label: "the q tokens closest to token 1 (a hard set)" },
  ], update);
  const show = w.readouts("averaging", {
    rho: "largest wrong score ρ at this m",
    smallest: "smallest m from which on ρ ≤ 1/2, up to 256: this set",
    other: "the same for the other kind of set",
    temperature: "temperature τ",
    distance: "error of the attention (L1 distance)",
    exact: "dimensions of moment-curve keys, 2q: enough for every set, but with large numbers in the queries",
  });

  const subset = (how, dimension) =>
    how === "hard" ? averaging.closest(signs, dimension, 0, q.value) : Array.from({ length: q.value }, (_, i) => i);

  // rho for every m, once for each q and kind of set.
  const known = new Map();
  function curve(how) {
    const key = `${how} ${q.value}`;
    if (!known.has(key)) {
      const rho = [];
      for (let dimension = 1; dimension <= MAX; dimension++) rho.push(averaging.certificate(signs, dimension, subset(how, dimension)).rho);
      const last = rho.findLastIndex((value) => value > 0.5); // the curve is not monotone
      known.set(key, { rho, smallest: last + 1 === MAX ? NaN : last + 2 });
    }
    return known.get(key);
  }

  function draw() {
    const chosen = subset(kind.value, m.value);
    const { scores, rho } = averaging.certificate(signs, m.value, chosen);
    const { rho: all, smallest } = curve(kind.value);
    const other = curve(kind.value === "hard" ? "first" : "hard").smallest;
    const tau = averaging.temperature(N, q.value, error.value);
    const attention = scores && averaging.attend(scores, tau);
    const distance = attention ? averaging.distance(attention, chosen) : NaN;
    shown = { chosen, scores, attention };
    show({ rho, smallest, other, temperature: tau, distance, exact: 2 * q.value });

    const dimensions = all.map((_, i) => i + 1);
    const clipped = all.map((value) => (value <= 2 ? value : NaN));
    const lines = [
      { label: "largest |score| of a wrong token", color: "c1", dash: "solid", x: dimensions, y: clipped },
      { label: "1/2: what the construction needs", color: "c3", dash: "dashed", x: [1, MAX], y: [0.5, 0.5] },
    ];
    coherence.scope(`this set, for every m up to ${MAX}`);
    coherence.draw({
      x: { label: "dimensions m", min: 0, max: MAX }, y: { label: "largest wrong score ρ", min: 0, max: 2 },
      lines, points: rho <= 2 ? [{ x: m.value, y: rho, color: "mark" }] : [],
    });
    coherence.key(lines);
    coherence.text("Below the dashed line every wrong token is told apart from the chosen ones. The dot is the chosen m; values above 2 are left out.");
    coherence.table("Largest wrong score", ["m", "ρ"], w.sample(MAX, 16).map((i) => [i + 1, all[i]]));

    const tokens = signs.map((_, i) => i + 1);
    const top = Math.max(1 / q.value, ...(attention || []));
    weights.draw({
      x: { label: "token", min: 0, max: N + 1 }, y: { label: "share of attention", min: 0, max: 1.08 * top },
      bars: tokens.map((x, i) => ({ x, top: attention ? attention[i] : NaN, color: chosen.includes(i) ? "c1" : "c3" })),
      lines: [{ x: [0, N + 1], y: [1 / q.value, 1 / q.value], color: "ink", dash: "dashed", width: 1.5 }],
    });
    weights.key([{ label: "chosen tokens", color: "c1" }, { label: "wrong tokens", color: "c3" }, { label: "1/q", color: "ink", dash: "dashed" }]);
    weights.text(`Each chosen token should have 1/q = ${w.short(1 / q.value)}, and every other token nothing.`);
    weights.table("Attention and score", ["token", "chosen", "score", "attention"], tokens.map((token, i) => [token, chosen.includes(i) ? "yes" : "no", scores ? scores[i] : null, attention ? attention[i] : null]));

    const verdict = w.byId("averaging-verdict");
    if (!attention) verdict.textContent = `No query exists: the keys of ${q.value} tokens are linearly dependent in ${m.value} dimensions, so that they cannot all score 1.`;
    else if (rho <= 0.5) verdict.textContent = `✓ The unit works: every wrong token scores at most ${w.short(rho)}, and the error ${w.short(distance)} is below the ${w.short(error.value)} aimed at.`;
    else {
      const worst = scores.map((score, i) => (chosen.includes(i) ? -Infinity : score));
      const token = worst.indexOf(Math.max(...worst));
      verdict.textContent = `✗ The guarantee is lost: a wrong token has a score of size ${w.short(rho)}, above 1/2. The strongest wrong token, ${token + 1}, gets ${w.short(attention[token])} of the attention; the error is ${w.short(distance)}.`;
    }
    w.byId("averaging-summary").textContent = `With q = ${q.value} and m = ${m.value} the largest wrong score is ${w.short(rho)}; this set needs ${Number.isNaN(smallest) ? `more than ${MAX}` : smallest} dimensions. Chosen tokens: ${chosen.map((i) => i + 1).join(", ")}.`;
    w.byId("averaging-summary").dataset.chosen = JSON.stringify(chosen);
  }

  function python() {
    return `import numpy as np
from yzflow_sparse_averaging import averaging

signs = np.random.default_rng(1).choice(np.array([-1, 1]), size=(${N}, ${MAX}))
keys = signs[:, :${m.value}] / np.sqrt(${m.value})
chosen = np.array([${shown.chosen.join(", ")}])
found = averaging.certificate(keys, chosen, method="minimum norm", rho=0.999, throw=False)
temperature = averaging.temperature(n_tokens=${N}, q=${q.value}, error=${error.value})
print("largest wrong score:", found.rho)
if found.query is not None:
    weights = np.exp(temperature * (keys @ found.query - 1.0))
    weights /= weights.sum()
    print("error:", np.abs(weights - np.isin(np.arange(${N}), chosen) / ${q.value}).sum())
`;
  }

  bench = yzflow.bench.build("averaging", {
    presets, draw, python,
    controls: { q, m, error, set: kind },
    start: ({ setting: { hard, ...sizes } }) => ({ ...sizes, set: hard ? "hard" : "first" }),
    data: () => ({
      columns: ["token", "chosen", "score", "attention"],
      rows: signs.map((_, i) => [i + 1, shown.chosen.includes(i), shown.scores && shown.scores[i], shown.attention && shown.attention[i]]),
    }),
  });
  bench.start();
};
