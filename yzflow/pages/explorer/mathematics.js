"use strict";
// What the Python packages theory and dynamics compute, for the settings of this page. The names are theirs, and the
// tests compare each function with its namesake. Time is in SGD steps and learning rates are per step.
const yzflow = {};

yzflow.decoder = (() => {
  // Wright's omega for a real argument, w + ln w = z: Newton in ln w, which is convex and never leaves its branch.
  function wrightOmega(z) {
    let log = z > 1 ? Math.log(z) : z; // ln w, a start on either side is well behaved
    for (let i = 0; i < 60; i++) {
      const w = Math.exp(log);
      const step = (w + log - z) / (w + 1);
      log -= step;
      if (Math.abs(step) <= 1e-16 * Math.max(1, Math.abs(log))) break;
    }
    return Math.exp(log);
  }

  // Lambert's W for a positive argument.
  const lambertW = (x) => wrightOmega(Math.log(x));

  // Root x = M h of (45), expm1(x) + (M - 1) x = tau with tau = M eta_Y t. The same start and polish as in Python.
  function margin(t, M, etaY) {
    const tau = M * etaY * t;
    let x = tau < 1e-3 * M ? tau / M : Math.log((M - 1) * wrightOmega((tau + 1) / (M - 1) - Math.log(M - 1)));
    for (let i = 0; i < 3; i++) x -= (Math.expm1(x) + (M - 1) * x - tau) / (Math.exp(x) + M - 1);
    return x;
  }

  const h = (t, { M, etaY }) => margin(t, M, etaY) / M;

  function hSteps(n, { M, etaY }) {
    const steps = [0];
    for (let s = 1; s <= n; s++) {
      const decay = Math.exp(-M * steps[s - 1]);
      steps.push(steps[s - 1] + (etaY * decay) / (1 + (M - 1) * decay));
    }
    return steps;
  }

  function gamma(t, { M, K, etaY }) {
    const x = margin(t / K, M, etaY);
    return ((M - 1) * (M - 1) * (x / M)) / (M * etaY * (t / K) + M - (M - 1) * x);
  }

  function gammaIntegral(t, { M, K, etaY, etaZ }) {
    const growth = ((M - 1) * margin(t / K, M, etaY)) / M;
    return (growth / etaY) * growth * (K / 2) * etaZ;
  }

  function transitionTime({ M, K, etaY }) {
    const w = lambertW((M - 1) / Math.E);
    return (K * ((M - 1) / w + (M - 1) * (1 + w) - 1)) / M / etaY;
  }

  const scanningTime = ({ M, K, etaY }) => (K * Math.log(M)) / etaY;
  const snappingTime = (setting) => 2 * scanningTime(setting);

  return { wrightOmega, h, hSteps, gamma, gammaIntegral, transitionTime, scanningTime, snappingTime };
})();

yzflow.attention = (() => {
  const sum = (values) => values.reduce((total, value) => total + value, 0);

  // rho = f_n . f_n' at the start, with one common token; only ratios of the probabilities matter.
  const overlap = ({ common, distinct }) => (common * common) / (common * common + sum(distinct.map((p) => p * p)));

  const speedConstant = (K, rho) => 1 / (K - 1) / rho / rho;

  const growthExponent = (t, setting, c0) => 0.25 * Math.log1p((4 * yzflow.decoder.gammaIntegral(t, setting)) / c0);

  const fullFlowSlowdown = (M, K, rho) => ((1 - rho) * (1 + (K - 1) * rho)) / (1 + (M - 1) * rho);

  // Margins of Assumption 2 for equal overlaps, at least one inside: E has the eigenvalues (K - 1) rho and -rho.
  const assumption2 = (M, K, rho) => ({
    upper: 1 / (K * Math.max((K - 1) * rho, rho)),
    lower: (Math.min((K - 1) * rho, rho) * Math.sqrt(M)) / 6,
  });

  // ln chi_l of the distinct tokens of a class: chi_l = 1/(1 - s p_l^2) with product exp(2 exponent). Newton on
  // v = ln chi of the largest token: the sum of the ln chi_l is concave in v, so that it climbs from a lower bound.
  function distinctGrowth(exponent, p) {
    const top = Math.max(...p);
    const logQ = p.map((value) => 2 * Math.log(value / top));
    const rest = p.map((value) => Math.log((top - value) / top) + Math.log1p(value / top));
    const grow = (v, l) => {
      const near = Math.exp(logQ[l]) * Math.expm1(-v);
      if (near > -0.5) return -Math.log1p(near);
      const [a, b] = [rest[l], logQ[l] - v];
      const larger = Math.max(a, b);
      return -(larger + Math.log1p(Math.exp(Math.min(a, b) - larger)));
    };
    const limits = rest.filter(Number.isFinite);
    const target = 2 * exponent;
    let v = Math.max(target / sum(logQ.map(Math.exp)), (target + sum(limits)) / (p.length - limits.length));
    for (let i = 0; i < 200; i++) {
      const growth = p.map((_, l) => grow(v, l));
      const slope = sum(growth.map((value, l) => Math.exp(logQ[l] - v + value)));
      const step = (target - sum(growth)) / slope;
      v += Math.max(step, 0);
      if (step <= 1e-15 * (v + target / slope)) break;
    }
    return p.map((_, l) => grow(v, l));
  }

  // Attention c on the tokens of one class: share of p exp(z).
  function shares(p, z) {
    const top = Math.max(...z);
    const weights = p.map((value, l) => value * Math.exp(z[l] - top));
    const total = sum(weights);
    return weights.map((weight) => weight / total);
  }

  return { overlap, speedConstant, growthExponent, fullFlowSlowdown, assumption2, distinctGrowth, shares, sum };
})();

// The gradient flow of one class among K exchangeable ones: logits z (token 0 is common, then the distinct ones).
yzflow.flow = (() => {
  const { sum, shares } = yzflow.attention;

  function feature(p, z) {
    const c = shares(p, z);
    const norm = Math.sqrt(sum(c.map((value) => value * value)));
    return c.map((value) => value / norm);
  }

  // Theorems 1 and 2: gamma is known, and xi/gamma is exact for equal overlaps rho = f_common^2.
  function theory(setting, p) {
    const { M, K, etaZ } = setting;
    return {
      start: p.map(() => 0),
      derivative(t, z) {
        const f = feature(p, z);
        const rho = f[0] * f[0];
        const distinct = sum(f.slice(1).map((value) => value * value)); // 1 - rho, without its cancellation
        const ratio =
          ((K - 1) * rho * M * (1 + (M - 1) * rho)) / ((M - 1) * (M - 1) * distinct * (1 + (K - 1) * rho));
        const xi = ratio * yzflow.decoder.gamma(t, setting);
        return f.map((value, l) => (l === 0 ? -etaZ * distinct * xi : (etaZ / K) * value * value * xi));
      },
    };
  }

  // Lemma 1. A row of Y has three different entries: at its own next token, at the K - 1 others that occur, and at the
  // M - K that never do. The state is z, then these three for each token; own and other agree for the common one.
  function full(setting, p) {
    const { M, K, etaY, etaZ } = setting;
    const D = p.length;
    const counts = [1, K - 1, M - K];
    return {
      start: new Array(4 * D).fill(0),
      derivative(t, state) {
        const f = feature(p, state.slice(0, D));
        const Y = (l, j) => state[D + 3 * l + j];
        const u = [0, 1, 2].map((j) => sum(f.map((value, l) => value * Y(l, j))));
        const top = Math.max(...u);
        const e = u.map((value, j) => counts[j] * Math.exp(value - top));
        const total = sum(e);
        const other = counts.map((count, j) => (count ? -e[j] / count / total : 0));
        const r = [(e[1] + e[2]) / total, other[1], other[2]]; // 1 - alpha without its cancellation
        const g = f.map((_, l) => sum(counts.map((count, j) => count * Y(l, j) * r[j])));
        const along = sum(f.map((value, l) => value * g[l]));
        const rate = new Array(4 * D);
        for (let l = 0; l < D; l++) {
          const weight = l === 0 ? 1 : 1 / K; // the common token moves at the steps of every class
          rate[l] = etaZ * weight * f[l] * (g[l] - f[l] * along);
          const occurring = (r[0] + (K - 1) * r[1]) / K;
          for (let j = 0; j < 3; j++) {
            const residual = l === 0 && j < 2 ? occurring : r[j];
            rate[D + 3 * l + j] = etaY * weight * f[l] * residual;
          }
        }
        return rate;
      },
    };
  }

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

  // States at `times` (rising, from 0); null from where the work exceeds `maximum` steps.
  function integrate({ start, derivative }, times, { rtol = 1e-9, atol = 1e-12, maximum = 20000 } = {}) {
    const slope = (s, y) => derivative(Math.expm1(s), y).map((value) => value * Math.exp(s));
    const out = [];
    let [s, y, step, taken] = [0, start, 1e-3, 0];
    let first = slope(s, y);
    for (const time of times) {
      const end = Math.log1p(time);
      while (s < end) {
        if (++taken > maximum) return times.map((_, i) => out[i] ?? null);
        const last = s + step >= end;
        const size = last ? end - s : step;
        const k = [first];
        let next = y;
        for (let i = 1; i < 7; i++) {
          next = y.map((value, n) => value + size * A[i].reduce((total, a, j) => total + a * k[j][n], 0));
          k.push(slope(s + C[i] * size, next));
        }
        let error = 0;
        for (let n = 0; n < y.length; n++) {
          const estimate = size * ERROR.reduce((total, b, i) => total + b * k[i][n], 0);
          const scale = atol + rtol * Math.max(Math.abs(y[n]), Math.abs(next[n]));
          error = Math.max(error, Math.abs(estimate) / scale);
        }
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

  // Logits z at `times` for the level "theory" or "full".
  function logits(level, setting, p, times) {
    const states = integrate((level === "full" ? full : theory)(setting, p), times);
    return states.map((state) => state && state.slice(0, p.length));
  }

  return { logits, integrate, feature };
})();

// Bounded Dyck languages and the balance condition, with the states in the order of dynamics.DyckLanguage.
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

  return { BRACKETS, parse, openState, partner, predict, residual, pairShare };
})();

// One attention unit for q-sparse averaging: keys, a dual certificate, a temperature.
yzflow.averaging = (() => {
  const dot = (a, b, m) => {
    let total = 0;
    for (let i = 0; i < m; i++) total += a[i] * b[i];
    return total;
  };

  // Solve G x = (1, .., 1) by Cholesky; null where the keys are dependent.
  function solveOnes(G) {
    const n = G.length;
    const L = G.map((row) => [...row]);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j <= i; j++) {
        let total = G[i][j];
        for (let l = 0; l < j; l++) total -= L[i][l] * L[j][l];
        if (i !== j) L[i][j] = total / L[j][j];
        else if (total > 1e-12) L[i][i] = Math.sqrt(total);
        else return null;
      }
    }
    const x = new Array(n).fill(1);
    for (let i = 0; i < n; i++) {
      for (let j = 0; j < i; j++) x[i] -= L[i][j] * x[j];
      x[i] /= L[i][i];
    }
    for (let i = n - 1; i >= 0; i--) {
      for (let j = i + 1; j < n; j++) x[i] -= L[j][i] * x[j];
      x[i] /= L[i][i];
    }
    return x;
  }

  // Shortest w with <w, u_j> = 1 on the subset: scores <w, u_i> of all tokens, and rho, the largest size off it. The
  // keys are the first m of `signs`, over sqrt(m).
  function certificate(signs, m, subset) {
    const gram = subset.map((i) => subset.map((j) => dot(signs[i], signs[j], m) / m));
    const coefficients = solveOnes(gram);
    if (coefficients === null) return { scores: null, rho: Infinity };
    const scores = signs.map((key) =>
      subset.reduce((total, j, place) => total + (coefficients[place] * dot(key, signs[j], m)) / m, 0),
    );
    const rho = Math.max(...scores.map((score, i) => (subset.includes(i) ? 0 : Math.abs(score))));
    return { scores, rho };
  }

  function temperature(N, q, error, rho = 0.5) {
    const odds = (2 * (N - q)) / (q * error);
    return odds > 1 ? Math.log(odds) / (1 - rho) : 0;
  }

  function attend(scores, tau) {
    const top = Math.max(...scores);
    const weights = scores.map((score) => Math.exp(tau * (score - top)));
    const total = weights.reduce((a, b) => a + b);
    return weights.map((weight) => weight / total);
  }

  // ||attention - 1_y/q||_1
  const distance = (weights, subset) =>
    weights.reduce((total, w, i) => total + Math.abs(w - (subset.includes(i) ? 1 / subset.length : 0)), 0);

  // The q tokens whose keys are closest to that of `token`: the set that is hard for these keys.
  function closest(signs, m, token, q) {
    const order = signs.map((_, i) => i).filter((i) => i !== token);
    const product = signs.map((key) => dot(key, signs[token], m));
    return order.sort((a, b) => product[b] - product[a] || a - b).slice(0, q).sort((a, b) => a - b);
  }

  return { certificate, temperature, attend, distance, closest };
})();
