"use strict";
// What the panels share of mathematics. A panel puts its own into yzflow, and its builder into yzflow.panels. Time is in
// SGD steps and learning rates are per step.
const yzflow = { panels: {} };

yzflow.sum = (values) => values.reduce((total, value) => total + value, 0);

// Attention on the tokens of a bag: share of p exp(z).
yzflow.shares = (p, z) => {
  const top = Math.max(...z);
  const weights = p.map((value, l) => value * Math.exp(z[l] - top));
  const total = yzflow.sum(weights);
  return weights.map((weight) => weight / total);
};

// Solves G x = b for each b of `columns` by Cholesky's factors; not-a-number where a pivot is not above `least`.
yzflow.solve = (G, columns, least = 0) => {
  const K = G.length;
  const L = G.map((row) => [...row]);
  for (let i = 0; i < K; i++) {
    for (let j = 0; j <= i; j++) {
      let total = G[i][j];
      for (let l = 0; l < j; l++) total -= L[i][l] * L[j][l];
      L[i][j] = i === j ? Math.sqrt(total > least ? total : NaN) : total / L[j][j];
    }
  }
  return columns.map((right) => {
    const x = [...right];
    for (let i = 0; i < K; i++) {
      for (let j = 0; j < i; j++) x[i] -= L[i][j] * x[j];
      x[i] /= L[i][i];
    }
    for (let i = K - 1; i >= 0; i--) {
      for (let j = i + 1; j < K; j++) x[i] -= L[j][i] * x[j];
      x[i] /= L[i][i];
    }
    return x;
  });
};

yzflow.integrate = (() => {
  // Dormand and Prince's method of order 5 (1980) in s = ln(1 + t), with its error estimate of order 4.
  const A = [
    [],
    [1 / 5],
    [3 / 40, 9 / 40],
    [44 / 45, -56 / 15, 32 / 9],
    [19372 / 6561, -25360 / 2187, 64448 / 6561, -212 / 729],
    [9017 / 3168, -355 / 33, 46732 / 5247, 49 / 176, -5103 / 18656],
    [35 / 384, 0, 500 / 1113, 125 / 192, -2187 / 6784, 11 / 84],
  ];
  const C = [0, 1 / 5, 3 / 10, 4 / 5, 8 / 9, 1, 1];
  const ERROR = [71 / 57600, 0, -71 / 16695, 71 / 1920, -17253 / 339200, 22 / 525, -1 / 40];

  // start + size sum_j weights[j] k[j]; loops over entries, since a page waits for them at every change.
  function moved(start, size, weights, k) {
    const out = [...start];
    for (let j = 0; j < weights.length; j++) {
      const [by, slope] = [size * weights[j], k[j]];
      if (by) for (let n = 0; n < out.length; n++) out[n] += by * slope[n];
    }
    return out;
  }

  // The largest error of an entry, over its tolerance.
  function excess(size, k, y, next, rtol, atol) {
    const estimate = moved(y.map(() => 0), size, ERROR, k);
    let most = 0;
    for (let n = 0; n < y.length; n++) {
      const error = Math.abs(estimate[n]) / (atol + rtol * Math.max(Math.abs(y[n]), Math.abs(next[n])));
      most = Math.max(most, error);
    }
    return most;
  }

  // States at `times` (rising, from 0); null from where the work exceeds `maximum` steps. With `from` times rise from
  // there, and steps are taken in time itself.
  function integrate({ start, derivative, from }, times, { rtol = 1e-9, atol = 1e-12, maximum = 20000 } = {}) {
    const plain = from !== undefined;
    const slope = plain ? derivative : (s, y) => derivative(Math.expm1(s), y).map((value) => value * Math.exp(s));
    const out = [];
    let [s, y, step, taken] = [plain ? from : 0, start, 1e-3, 0];
    let first = slope(s, y);
    for (const time of times) {
      const end = plain ? time : Math.log1p(time);
      while (s < end) {
        if (++taken > maximum) return times.map((_, i) => out[i] ?? null);
        const last = s + step >= end;
        const size = last ? end - s : step;
        const k = [first];
        let next = y;
        for (let i = 1; i < 7; i++) {
          next = moved(y, size, A[i], k);
          k.push(slope(s + C[i] * size, next));
        }
        const error = excess(size, k, y, next, rtol, atol);
        if (!(error <= 1)) {
          step = size * (Number.isFinite(error) ? Math.max(0.2, 0.9 * error ** -0.2) : 0.2);
          continue;
        }
        [s, y, first] = [last ? end : s + size, next, k[6]];
        const wish = size * Math.min(5, 0.9 * Math.max(error, 1e-10) ** -0.2);
        step = last ? Math.max(step, wish) : wish; // a step cut short by an output time says little about the next
      }
      out.push(y);
    }
    return out;
  }

  return integrate;
})();
