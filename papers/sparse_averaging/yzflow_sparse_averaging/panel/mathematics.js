// One attention unit for q-sparse averaging: keys, a dual certificate, a temperature.
yzflow.averaging = (() => {
  const dot = (a, b, m) => {
    let total = 0;
    for (let i = 0; i < m; i++) total += a[i] * b[i];
    return total;
  };

  // Shortest w with <w, u_j> = 1 on the subset: scores <w, u_i> of all tokens, and rho, the largest size off it. The
  // keys are the first m of `signs`, over sqrt(m).
  function certificate(signs, m, subset) {
    const gram = subset.map((i) => subset.map((j) => dot(signs[i], signs[j], m) / m));
    const [coefficients] = yzflow.solve(gram, [subset.map(() => 1)], 1e-12);
    if (coefficients.some(Number.isNaN)) return { scores: null, rho: Infinity };
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

  const attend = (scores, tau) => yzflow.shares(scores.map(() => 1), scores.map((score) => tau * score));

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

