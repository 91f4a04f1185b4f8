// The flow of any classes from Y = Z = 0, in the limit of long sequences (T -> infinity), and margins of the assumptions.
// The tests compare it with `dynamics.gradient_flow` and `theory`.
yzflow.own = (() => {
  const { sum, shares, solve, integrate } = yzflow;

  // Classes {M, queries, counts, weights}: `queries` names for each class the row of Z, from 0 on; counts are ratios.
  // Of each class the tokens that occur, with probabilities p; class weights sum to one.
  function prepared({ M, queries, counts, weights }) {
    const total = sum(weights);
    const classes = counts.map((row, n) => {
      const most = Math.max(...row); // so that no sum of huge ratios overflows
      const scale = sum(row.map((value) => value / most));
      const tokens = row.flatMap((value, l) => (value > 0 ? [l] : []));
      return { tokens, p: tokens.map((l) => row[l] / most / scale), query: queries[n], weight: weights[n] / total };
    });
    return { classes, M, K: counts.length, S: counts[0].length, Q: Math.max(...queries) + 1 };
  }

  const unit = (c) => {
    const norm = Math.sqrt(sum(c.map((value) => value * value)));
    return c.map((value) => value / norm);
  };

  // Attention of each class on its tokens at logits z, (Q, S) in one list.
  const attend = ({ classes, S }, z) => classes.map(({ tokens, p, query }) => shares(p, tokens.map((l) => z[query * S + l])));

  // F^T F of features that are lists aligned with the tokens of their classes.
  function gram({ classes, S }, features) {
    const dense = classes.map(({ tokens }, n) => {
      const row = new Array(S).fill(0);
      tokens.forEach((l, i) => { row[l] = features[n][i]; });
      return row;
    });
    return dense.map((one) => dense.map((other) => sum(one.map((value, l) => value * other[l]))));
  }

  // Lemma 1; modified: the decoder's gradient of Lemma 3, F (F^T F)^{-1} in place of F. The state is z, (Q, S), then Y,
  // (S, K + 1): its last column stands for each of the M - K next tokens that never occur.
  function problem(data, { etaY, etaZ }, modified) {
    const { classes, M, K, S, Q } = data;
    const wide = K + 1;
    const many = (k) => (k < K ? 1 : M - K);
    const place = (l) => Q * S + l * wide;

    // Of class n: feature f, residuals r of each column (of one next token), the probability of the right one.
    function predicted(state, n, c) {
      const { tokens } = classes[n];
      const f = unit(c);
      const u = new Array(wide).fill(0);
      for (let i = 0; i < tokens.length; i++) {
        const at = place(tokens[i]);
        for (let k = 0; k < wide; k++) u[k] += f[i] * state[at + k];
      }
      const top = Math.max(...u);
      const e = u.map((value, k) => (k < K || M > K ? Math.exp(value - top) : 0));
      let others = 0; // all but the right one, so that 1 - alpha has no cancellation
      for (let k = 0; k < wide; k++) if (k !== n) others += many(k) * e[k];
      const total = e[n] + others;
      return { f, r: e.map((value, k) => (k === n ? others : -value) / total), right: e[n] / total };
    }

    function derivative(_, state) {
      const rate = new Array(state.length).fill(0);
      const all = attend(data, state).map((c, n) => predicted(state, n, c));
      classes.forEach(({ tokens, query, weight }, n) => {
        const { f, r } = all[n];
        const g = tokens.map((l) => {
          let value = 0;
          for (let k = 0; k < wide; k++) value += many(k) * state[place(l) + k] * r[k];
          return value;
        });
        const along = sum(f.map((value, i) => value * g[i]));
        tokens.forEach((l, i) => { rate[query * S + l] += etaZ * weight * f[i] * (g[i] - f[i] * along); });
      });
      let back = all.map(({ r }, n) => r.map((value) => classes[n].weight * value)); // by class, then by column
      if (modified) {
        const columns = Array.from({ length: wide }, (_, k) => back.map((row) => row[k]));
        const solved = solve(gram(data, all.map(({ f }) => f)), columns);
        back = back.map((row, n) => row.map((_, k) => solved[k][n]));
      }
      classes.forEach(({ tokens }, n) => {
        for (let i = 0; i < tokens.length; i++) {
          const [at, by] = [place(tokens[i]), etaY * all[n].f[i]];
          for (let k = 0; k < wide; k++) rate[at + k] += by * back[n][k];
        }
      });
      return rate;
    }

    return { start: new Array(Q * S + S * wide).fill(0), derivative, predicted };
  }

  // At each of the times (rising, from 0): logits z (Q, S), attention of each class on its tokens, the probability of the
  // right next token of each class; null from where the integration took too many steps.
  function flow(level, given, rates, times, options = { rtol: 1e-7, atol: 1e-11, maximum: 3000 }) {
    const data = prepared(given);
    const own = problem(data, rates, level === "modified");
    return integrate(own, times, options).map((state) => {
      if (!state) return null;
      const attention = attend(data, state);
      return {
        z: Array.from({ length: data.Q }, (_, q) => state.slice(q * data.S, (q + 1) * data.S)),
        attention: attention.map((c, n) => spread(data, n, c)),
        right: attention.map((c, n) => own.predicted(state, n, c).right),
      };
    });
  }

  // A list aligned with the tokens of class n as one of all tokens; null where one does not occur.
  function spread({ classes, S }, n, values) {
    const out = new Array(S).fill(null);
    classes[n].tokens.forEach((l, i) => { out[l] = values[i]; });
    return out;
  }

  // F^T F at the start, of all classes.
  function overlaps(given) {
    const data = prepared(given);
    return gram(data, data.classes.map(({ p }) => unit(p)));
  }

  // Eigenvalues of a symmetric matrix by Jacobi's rotations, rising.
  function eigenvalues(matrix) {
    const A = matrix.map((row) => [...row]);
    const n = A.length;
    for (let sweep = 0; sweep < 60; sweep++) {
      let off = 0;
      for (let i = 0; i < n; i++) for (let j = 0; j < i; j++) off += A[i][j] ** 2;
      if (off < 1e-32) break;
      for (let i = 0; i < n; i++) {
        for (let j = i + 1; j < n; j++) {
          if (Math.abs(A[i][j]) < 1e-300) continue;
          const theta = (A[j][j] - A[i][i]) / 2 / A[i][j];
          const t = (theta < 0 ? -1 : 1) / (Math.abs(theta) + Math.hypot(theta, 1));
          const c = 1 / Math.hypot(t, 1);
          const s = t * c;
          for (let k = 0; k < n; k++) [A[k][i], A[k][j]] = [c * A[k][i] - s * A[k][j], s * A[k][i] + c * A[k][j]];
          for (let k = 0; k < n; k++) [A[i][k], A[j][k]] = [c * A[i][k] - s * A[j][k], s * A[i][k] + c * A[j][k]];
        }
      }
    }
    return A.map((row, i) => row[i]).sort((a, b) => a - b);
  }

  const alike = (values) => (Math.max(...values) > 0 ? Math.min(...values) / Math.max(...values) : 1);

  // How far inside an assumption the classes and rates are: from 1 on it holds, as in the register.
  function margins(given, { etaY, etaZ }) {
    const { M, queries, counts, weights } = given;
    const K = counts.length;
    const F = overlaps(given);
    const sizes = eigenvalues(F.map((row, i) => row.map((value, j) => (i === j ? 0 : value)))).map(Math.abs);
    const common = counts[0].filter((_, l) => counts.filter((row) => row[l] > 0).length > 1).length;
    return {
      fast: etaY / etaZ / 100,
      many: M / K / K / 10,
      upper: 1 / K / Math.max(...sizes),
      lower: (Math.min(...sizes) * Math.sqrt(M)) / 6,
      uniform: alike(weights),
      equal: alike(F.flatMap((row, i) => row.filter((_, j) => j < i))),
      common: common ? 1 / common : 0,
      query: 1 / new Set(queries).size,
    };
  }

  // The smallest eigenvalue of F^T F at the start: the modified flow needs one above 1e-12, as in Python.
  const independent = (given) => eigenvalues(overlaps(given))[0] > 1e-12;

  return { flow, overlaps, eigenvalues, margins, independent };
})();
