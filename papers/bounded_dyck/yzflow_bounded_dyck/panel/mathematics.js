// Bounded Dyck languages and the balance condition, with the states in the order of DyckLanguage.
yzflow.dyck = (() => {
  const BRACKETS = "()[]{}";

  // States of a prefix, START first, and its stack of types; an error for what is no prefix.
  function parse(text, { k, D }) {
    const [states, stack] = [[2 * k * D], []];
    for (const [place, symbol] of [...text].entries()) {
      const bracket = BRACKETS.slice(0, 2 * k).indexOf(symbol);
      const where = `bracket ${place + 1}, “${symbol}”,`;
      if (bracket < 0) throw new Error(`${where} is not one of ${BRACKETS.slice(0, 2 * k)}`);
      const type = bracket >> 1;
      if (bracket % 2 === 0) {
        if (stack.length === D) throw new Error(`${where} would be nested deeper than ${D}`);
        stack.push(type);
        states.push(type * D + stack.length - 1);
      } else {
        if (stack.pop() !== type) throw new Error(`${where} does not close the last open bracket`);
        states.push(k * D + type * D + stack.length);
      }
    }
    return { states, stack };
  }

  const openState = (type, level, { D }) => type * D + level - 1;
  const partner = (state, { k, D }) => state + k * D;

  // LN of sum_s count_s V_s exp(Z[q, s]) and softmax of what Y reads from it.
  function predict({ Z, V, Y }, query, counts) {
    const top = Math.max(...Z[query].filter((_, s) => counts[s] > 0));
    const weight = counts.map((count, s) => (count > 0 ? count * Math.exp(Z[query][s] - top) : 0));
    const u = V[0].map((_, c) => weight.reduce((total, w, s) => total + w * V[s][c], 0));
    const norm = Math.hypot(...u);
    const logits = Y[0].map((_, b) => u.reduce((total, value, c) => total + (value / norm) * Y[c][b], 0));
    const largest = Math.max(...logits);
    const e = logits.map((value) => Math.exp(value - largest));
    const sum = e.reduce((a, b) => a + b);
    return e.map((value) => value / sum);
  }

  // Attention of a query on states that occur `counts` times.
  function attend(Z, query, states, counts) {
    return yzflow.shares(counts, states.map((state) => Z[query][state]));
  }

  // Largest spread over the closing queries of Z[q, open] - Z[q, close]: the residual of (11).
  function residual(Z, language) {
    const { k, D } = language;
    const queries = [];
    for (let j = 0; j < k; j++) for (let d = 1; d < D; d++) queries.push(k * D + j * D + d);
    let worst = 0;
    for (let open = 0; open < k * D; open++) {
      const differences = queries.map((q) => Z[q][open] - Z[q][partner(open, language)]);
      worst = Math.max(worst, Math.max(...differences) - Math.min(...differences));
    }
    return worst;
  }

  // Norm of what one pair adds before LN, over the norm of what is there: ||delta|| / ||u||.
  function pairShare({ Z, V }, query, counts, open, language) {
    const u = (s) => V[s].map((value) => value * Math.exp(Z[query][s]));
    const [a, b] = [u(open), u(partner(open, language))];
    const there = V[0].map((_, c) => counts.reduce((total, n, s) => total + n * Math.exp(Z[query][s]) * V[s][c], 0));
    return Math.hypot(...a.map((value, c) => value + b[c])) / Math.hypot(...there);
  }

  return { BRACKETS, parse, openState, partner, predict, attend, residual, pairShare };
})();
