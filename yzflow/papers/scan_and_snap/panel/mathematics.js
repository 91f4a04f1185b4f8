// What is solved and integrated in the page; formulas are those of yzflow.claims, which Python writes.
yzflow.decoder = (() => {
  const { claims } = yzflow;

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
    for (let s = 1; s <= n; s++) steps.push(claims.step(M, steps[s - 1], etaY));
    return steps;
  }

  const gamma = (t, setting) => claims.gamma(setting.M, h(t / setting.K, setting));
  const gammaIntegral = (t, setting) => claims.accumulated(setting.M, setting.K, setting.etaY, setting.etaZ, h(t / setting.K, setting));
  const transitionTime = ({ M, K, etaY }) => claims.peakTime(M, K, etaY, lambertW((M - 1) / Math.E));
  const scanningTime = ({ M, K, etaY }) => (K * Math.log(M)) / etaY;
  const snappingTime = (setting) => 2 * scanningTime(setting);

  // 2 (1 + omega_1) K ln M/eta_Y of Lemma 9, by the upper crossing x = (1 + omega_1) ln M of exp(x) and (M - 1) x, M >= 4.
  function secondStage({ M, K, etaY }) {
    if (M < 4) return Infinity;
    let x = Math.log(M) + Math.log(Math.log(M) + 1);
    for (let i = 0; i < 300; i++) x = Math.log((M - 1) * x);
    return (2 * x * K) / etaY;
  }

  return { wrightOmega, h, hSteps, secondStage, gamma, gammaIntegral, transitionTime, scanningTime, snappingTime };
})();

yzflow.attention = (() => {
  const { claims, solve, sum } = yzflow;

  // rho = f_n . f_n' at the start, with one common token; only ratios of the probabilities matter.
  const overlap = ({ common, distinct }) => (common * common) / (common * common + sum(distinct.map((p) => p * p)));

  const growthExponent = (t, setting, c0) => claims.exponent(yzflow.decoder.gammaIntegral(t, setting), c0);

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

  // xi/gamma of the first class by (9), for the overlaps G of the features, positive definite.
  function xiOverGamma(G, M) {
    const [beta] = solve(G, [G.map((_, n) => (n ? M / (M - 1) / (M - 1) : -M / (M - 1)))]);
    return sum(beta.map((value, n) => (n ? value * G[0][n] : 0)));
  }

  return { overlap, growthExponent, distinctGrowth, xiOverGamma };
})();

// The gradient flow of one class among K exchangeable ones: logits z, of the common tokens first (setting.commons, or one
// of them), then of the distinct ones.
yzflow.flow = (() => {
  const { sum, shares, integrate } = yzflow;
  const PRECISE = { rtol: 1e-9, atol: 1e-14 }; // logits stay below 1e-6 where attention is slow
  const commons = (setting) => setting.commons ?? 1;

  function feature(p, z) {
    const c = shares(p, z);
    const norm = Math.sqrt(sum(c.map((value) => value * value)));
    return c.map((value) => value / norm);
  }

  // The overlap rho of two classes, and 1 - rho without its cancellation.
  function overlaps(setting, f) {
    const squares = f.map((value) => value * value);
    return { rho: sum(squares.slice(0, commons(setting))), apart: sum(squares.slice(commons(setting))) };
  }

  // xi_n of Theorem 1 by (9) at the features f, for equal overlaps: its ratio to gamma is exact.
  function pull(setting, f, t) {
    const { M, K } = setting;
    const { rho, apart } = overlaps(setting, f);
    return (K - 1) * rho * yzflow.claims.beta(M, K, rho) * ((1 - rho) / apart) * yzflow.decoder.gamma(t, setting);
  }

  // Theorems 1 and 2: gamma is known, and with it xi. The state is z, then the integral of xi.
  function theory(setting, p) {
    const { K, etaZ } = setting;
    return {
      start: [...p.map(() => 0), 0],
      derivative(t, state) {
        const f = feature(p, state.slice(0, p.length));
        const { rho, apart } = overlaps(setting, f);
        const xi = pull(setting, f, t);
        return [...f.map((value, l) => (l < commons(setting) ? (-etaZ * apart * value * value * xi) / rho : (etaZ / K) * value * value * xi)), xi];
      },
    };
  }

  // Lemma 1. A row of Y has three different entries: at its own next token, at the K - 1 others that occur, and at the
  // M - K that never do. The state is z, then these three for each token; own and other agree for a common one.
  // Modified: the decoder's gradient of Lemma 3, F (F^T F)^{-1} in place of F. For equal overlaps rho the inverse is
  // (I - rho / (1 + (K - 1) rho) 1 1^T) / (1 - rho).
  function trained(setting, p, modified) {
    const { M, K, etaY, etaZ } = setting;
    const D = p.length;
    const counts = [1, K - 1, M - K];
    const Y = (state, l, j) => state[D + 3 * l + j];
    const logits = (state, f) => [0, 1, 2].map((j) => sum(f.map((value, l) => value * Y(state, l, j))));
    const odds = (u) => {
      const top = Math.max(...u);
      return u.map((value, j) => counts[j] * Math.exp(value - top));
    };
    return {
      start: new Array(4 * D).fill(0),
      derivative(t, state) {
        const f = feature(p, state.slice(0, D));
        const e = odds(logits(state, f));
        const total = sum(e);
        const other = counts.map((count, j) => (count ? -e[j] / count / total : 0));
        const r = [(e[1] + e[2]) / total, other[1], other[2]]; // 1 - alpha without its cancellation
        const g = f.map((_, l) => sum(counts.map((count, j) => count * Y(state, l, j) * r[j])));
        const along = sum(f.map((value, l) => value * g[l]));
        // Sums of the residuals over the classes, and what a distinct and the common token's row take of them.
        const all = [r[0] + (K - 1) * r[1], r[0] + (K - 1) * r[1], K * r[2]];
        let own = r.map((value) => value / K);
        let shared = all.map((value) => value / K);
        if (modified) {
          const { rho, apart } = overlaps(setting, f);
          const every = 1 + (K - 1) * rho;
          own = r.map((value, j) => (value - (rho / every) * all[j]) / (K * apart));
          shared = all.map((value) => value / (K * every));
        }
        const rate = new Array(4 * D);
        for (let l = 0; l < D; l++) {
          const common = l < commons(setting);
          rate[l] = etaZ * (common ? 1 : 1 / K) * f[l] * (g[l] - f[l] * along); // all classes move a common token
          for (let j = 0; j < 3; j++) rate[D + 3 * l + j] = etaY * f[l] * (common ? shared : own)[j];
        }
        return rate;
      },
      // ln 1/alpha_n, and by how much the logit of the own next token leads that of another that occurs, M h in (31).
      decoded(state, f) {
        const u = logits(state, f);
        const e = odds(u);
        return { loss: Math.log1p((e[1] + e[2]) / e[0]), lead: u[0] - u[1] };
      },
    };
  }

  function solved(level, setting, p, times, options) {
    const problem = level === "theory" ? theory(setting, p) : trained(setting, p, level === "modified");
    return { problem, states: integrate(problem, times, options) };
  }

  // Logits z at `times` for the level "theory", "modified" or "full".
  function logits(level, setting, p, times) {
    return solved(level, setting, p, times, PRECISE).states.map((state) => state && state.slice(0, p.length));
  }

  // The same with features f, speeds dz/dt, loss, lead M h, and of the theory flow the integral of xi; null where the
  // integration stopped.
  function observe(level, setting, p, times) {
    const { problem, states } = solved(level, setting, p, times, PRECISE);
    return states.map((state, i) => {
      if (!state) return null;
      const z = state.slice(0, p.length);
      const f = feature(p, z);
      const speed = problem.derivative(times[i], state).slice(0, p.length);
      if (level !== "theory") {
        const Y = p.map((_, l) => state.slice(p.length + 3 * l, p.length + 3 * l + 3));
        return { z, f, speed, Y, ...problem.decoded(state, f) };
      }
      const lead = setting.M * yzflow.decoder.h(times[i] / setting.K, setting);
      const loss = Math.log1p((setting.M - 1) * Math.exp(-lead));
      return { z, f, speed, Y: decoded(setting, f, lead), integral: state[p.length], lead, loss };
    });
  }

  // Theorem 5: F (I - E') W at the features f, W of the rows M h (e_n - 1/M); of each token's row of Y the entries at its
  // own next token, at another that occurs, and at one that never does.
  function decoded(setting, f, lead) {
    const { M, K } = setting;
    const { rho, apart } = overlaps(setting, f);
    const every = 1 + (K - 1) * rho;
    const row = [1, 0, 0].map((own, j) => (lead / apart) * (own - 1 / M - (rho / every) * ((j < 2 ? 1 : 0) - K / M)));
    const shared = [1, 1, 0].map((occurs) => (lead / every) * (occurs - K / M));
    return f.map((value, l) => (l < commons(setting) ? shared : row).map((entry) => value * entry));
  }

  return { logits, observe, pull, feature, decoded };
})();
