// Layers of yzflow_bounded_dyck.balance and what they make of texts with inserted pairs; the states have the order of
// DyckLanguage. A layer is {k, D, query, Z, values}: Z the query's row of logits, and of each state the
// coordinate of its value and the value there.
yzflow.balance = (() => {
  const open = (type, level, { D }) => type * D + level - 1;
  const closing = (type, depth, { k, D }) => k * D + type * D + depth;
  const start = ({ k, D }) => 2 * k * D;

  // The balanced layer whose logits have the standard deviation `scale`, at the query close (0, D - 1).
  function balanced({ layers }, { k, D, scale }) {
    const { Z, logs } = layers[`${k},${D}`];
    const sign = (state) => (state < k * D ? 1 : -1);
    const values = logs.map((log, state) => ({ at: state % (k * D), value: sign(state) * Math.exp(scale * log) }));
    values.push({ at: k * D, value: 1 });
    return { k, D, query: closing(0, D - 1, { k, D }), rows: Z.map((row) => row.map((value) => scale * value)), values };
  }

  // The same with the pair (1, level) off balance at the query: its logit by `off`, the value of its closing bracket by
  // a `factor`, both values by `live`.
  function changed(layer, { level, off, factor = 1, live = 1 }) {
    const pair = [open(1, level, layer), closing(1, level - 1, layer)];
    const rows = layer.rows.map((row, q) => (q === layer.query ? row.map((value, s) => value + (s === pair[0] ? off : 0)) : row));
    const values = layer.values.map(({ at, value }, s) => ({ at, value: value * (pair.includes(s) ? live : 1) * (s === pair[1] ? factor : 1) }));
    return { ...layer, rows, values, pair };
  }

  // Counts of the states after the types w, an open bracket and its closing one.
  function countsOf(layer, types) {
    const counts = new Array(start(layer) + 1).fill(0);
    counts[start(layer)] = 1;
    types.forEach((type, level) => { counts[open(type, level + 1, layer)] += 1; });
    counts[open(0, types.length + 1, layer)] += 1;
    counts[closing(0, types.length, layer)] += 1;
    return counts;
  }

  const inserted = (counts, states, n) => counts.map((count, s) => count + (states.includes(s) ? n : 0));

  // sum_s c_s V_s with attention c; `whole`: weights exp(Z) that are not divided by their sum.
  function gathered(layer, counts, whole = false) {
    const row = layer.rows[layer.query];
    const top = whole ? 0 : Math.max(...row.filter((_, s) => counts[s] > 0));
    const sums = new Array(layer.k * layer.D + 1).fill(0);
    let total = 0;
    counts.forEach((count, s) => {
      const weight = count > 0 ? count * Math.exp(row[s] - top) : 0;
      total += weight;
      sums[layer.values[s].at] += weight * layer.values[s].value;
    });
    return whole ? sums : sums.map((value) => value / total);
  }

  const norm = (x) => Math.hypot(...x);
  const minus = (x, y) => x.map((value, i) => value - y[i]);
  const normalised = (x, floor = 0) => {
    const size = Math.max(norm(x), floor);
    return size > 0 ? x.map((value) => value / size) : x;
  };
  const features = (layer, counts, floor) => normalised(gathered(layer, counts), floor);

  // delta of (14) for the layer's pair.
  const added = (layer) => gathered(layer, new Array(start(layer) + 1).fill(0).map((_, s) => (layer.pair.includes(s) ? 1 : 0)), true);

  // Smallest feature of an unmatched bracket of a balanced layer, over all queries and stacks: that of exact_head.
  function smallest(layer) {
    const { k, D, rows, values } = layer;
    let least = Infinity;
    rows.forEach((row, query) => {
      if (query === start(layer)) return;
      const isOpen = query < k * D;
      const depth = isOpen ? (query % D) + 1 : query % D;
      if (depth === 0) return;
      const square = (type, level) => (Math.exp(row[open(type, level, layer)]) * values[open(type, level, layer)].value) ** 2;
      const choices = Array.from({ length: depth }, (_, l) => Array.from({ length: k }, (_, type) => square(isOpen && l === depth - 1 ? Math.floor(query / D) : type, l + 1)));
      const tops = choices.map((level) => Math.max(...level));
      const all = yzflow.sum(tops) + Math.exp(2 * row[start(layer)]);
      choices.forEach((level, l) => level.forEach((value) => { least = Math.min(least, value / (value + all - tops[l])); }));
    });
    return Math.sqrt(least);
  }

  // The distribution of the next bracket after a stack of types, a chance of one half for an open one.
  function target(types, { k, D }) {
    const out = new Array(2 * k).fill(0);
    const depth = types.length;
    const chance = depth === 0 ? 1 : depth === D ? 0 : 0.5;
    for (let type = 0; type < k; type++) out[2 * type] = chance / k;
    if (depth) out[2 * types.at(-1) + 1] = 1 - chance;
    return out;
  }

  // What exact_head makes of features: three layers of weights, `least` from the balanced layer.
  function head(f, least, language) {
    const { k, D } = language;
    const relu = (value) => Math.max(value, 0);
    const h = f.slice(0, k * D).map((value) => relu((2 / least) * value - 1) - relu((2 / least) * value - 2));
    const level = (l) => (l < D ? yzflow.sum(h.filter((_, il) => il % D === l)) : 0);
    const out = new Array(2 * k).fill(0);
    const add = (share, distribution) => distribution.forEach((value, b) => { out[b] += share * value; });
    for (let type = 0; type < k; type++) {
      for (let l = 0; l < D; l++) {
        const stack = [...new Array(l).fill(0), type];
        add(relu(h[type * D + l] - level(l + 1)), target(stack, language));
      }
    }
    add(relu(1 - level(0)), target([], language));
    return out;
  }

  // All stacks of d types.
  const stacks = (k, d) => (d === 0 ? [[]] : stacks(k, d - 1).flatMap((types) => Array.from({ length: k }, (_, type) => [...types, type])));

  return { balanced, changed, countsOf, inserted, gathered, features, added, smallest, target, head, stacks, norm, minus, normalised };
})();
