"""The papers' definitions by another route: plain NumPy, dense, one bag after another, to check the packages against.

They work on explicit dense counts and matrices and accept complex numbers, so that derivatives follow from a complex
step. Nothing here imports what it is the reference for.
"""

import numpy as np
import scipy


def dense_counts(data):
    """The counts of the bags as a dense (bags, tokens) array."""
    counts = np.zeros((len(data), data.n_tokens))
    for b in range(len(data)):
        for i in range(data.indptr[b], data.indptr[b + 1]):
            counts[b, data.token[i]] = data.count[i]
    return counts


def dense_targets(data):
    """The next-token distributions of the bags over all M next tokens."""
    targets = np.zeros((len(data), data.vocab_size))
    for b in range(len(data)):
        if data.hard:
            targets[b, data.target[b]] = 1
        else:
            targets[b, : data.target.shape[1]] = data.target[b]
    return targets


def attend(counts, logits):
    """Attention c = N exp(z) / sum of one bag."""
    c = counts * np.exp(np.where(counts > 0, logits - logits[counts > 0].real.max(), 0))
    return c / c.sum()


def normalise(v):
    """LN(v) = v / ||v||_2, without the complex modulus, so that it stays differentiable in the complex sense."""
    return v / np.sqrt((v * v).sum())


def log_softmax(u):
    u = u - u.real.max()
    return u - np.log(np.exp(u).sum())


def softmax(u):
    """exp(u_i) / sum_j exp(u_j)."""
    return np.exp(log_softmax(u))


def loss(data, Z, Y, V=None):
    """-J by (2), for Y with a column for each of the M next tokens."""
    total = 0
    for b, (counts, target) in enumerate(zip(dense_counts(data), dense_targets(data), strict=True)):
        c = attend(counts, Z[data.query[b]])
        f = normalise(c if V is None else V.T @ c)
        total = total - data.weight[b] * (target @ log_softmax(Y.T @ f))
    return total


def features(data, Z):
    """F = [f_1 .. f_K], (tokens, bags)."""
    return np.array(
        [normalise(attend(counts, Z[q])) for counts, q in zip(dense_counts(data), data.query, strict=True)]
    ).T


def residuals(data, F, Y):
    """The columns e_n - alpha_n, (M, bags)."""
    alpha = np.array([softmax(u) for u in (Y.T @ F).T]).T
    return dense_targets(data).T - alpha


def pull_back(data, Z, F, G):
    """dZ/dt per unit of eta_Z: Lemma 1 (3) with matrices, for the backpropagated gradients G = [g_1 .. g_K]."""
    out = np.zeros_like(Z)
    for n, counts in enumerate(dense_counts(data)):
        b = attend(counts, Z[data.query[n]])
        projection = np.eye(b.size) - np.outer(F[:, n], F[:, n])
        out[data.query[n]] += data.weight[n] * (np.diag(b) @ projection @ G[:, n]) / np.linalg.norm(b)
    return out


def full_flow(data, Z, Y):
    """(dZ/dt per eta_Z, dY/dt per eta_Y) by Lemma 1 (3)."""
    F = features(data, Z)
    R = residuals(data, F, Y)
    return pull_back(data, Z, F, Y @ R), F @ np.diag(data.weight) @ R.T


def modified_flow(data, Z, Y):
    """(dZ/dt per eta_Z, dY/dt per eta_Y) with the decoder gradient (f_n - F E' e_n)(e_n - alpha_n)^T of Lemma 3."""
    F = features(data, Z)
    R = residuals(data, F, Y)
    n = len(data)
    E = np.linalg.inv(np.linalg.inv(F.T @ F)) - np.eye(n)
    correction = np.eye(n) - np.linalg.inv(np.eye(n) + E)
    dY = sum(data.weight[k] * np.outer(F[:, k] - F @ correction[:, k], R[:, k]) for k in range(n))
    return pull_back(data, Z, F, Y @ R), dY


def xi(data, Z, h):
    """(xi_n, gamma beta_{nn'}) of Theorem 1 for K equally likely classes that all have decoder growth h."""
    F = features(data, Z)
    K, M = len(data), data.vocab_size
    gamma = (M - 1) ** 2 * h / (M - 1 + np.exp(M * h))
    U = np.full((K, K), -M / (M - 1) ** 2)
    np.fill_diagonal(U, M / (M - 1))
    beta = -(np.linalg.inv(F.T @ F) @ U).T
    np.fill_diagonal(beta, 0)
    return gamma * (beta * (F.T @ F)).sum(axis=1), gamma * beta


def theory_flow(data, Z, h):
    """(dZ/dt per eta_Z, dh/dt per eta_Y) by (10), with gamma and beta of Theorem 1 and p_n = 1/K."""
    F = features(data, Z)
    K, M = len(data), data.vocab_size
    weighted_beta = xi(data, Z, h)[1]
    dZ = np.zeros_like(Z)
    for n in range(K):
        inner = (np.outer(F[:, n], F[:, n]) - np.eye(len(F))) @ F @ weighted_beta[n]
        dZ[data.query[n]] += F[:, n] * inner / K
    return dZ, 1 / (K * (M - 1 + np.exp(M * h)))


def integrated_full_flow(data, times, eta_y, eta_z):
    """Z of `full_flow` from zero at these times, (times, queries, tokens)."""
    shape = (data.query.max() + 1, data.n_tokens)
    size = shape[0] * shape[1]

    def rate(t, state):
        dZ, dY = full_flow(data, state[:size].reshape(shape), state[size:].reshape(data.n_tokens, data.vocab_size))
        return np.concatenate([eta_z * dZ.ravel(), eta_y * dY.ravel()])

    options = {"method": "DOP853", "t_eval": times, "rtol": 1e-10, "atol": 1e-13}
    start = np.zeros(size + data.n_tokens * data.vocab_size)
    return scipy.integrate.solve_ivp(rate, (0, times[-1]), start, **options).y[:size].T.reshape(-1, *shape)


def scaled_difference(actual, expected):
    """Largest difference, in units of the largest expected entry; of 0.001 where all are smaller, or only round-off."""
    actual, expected = np.asarray(actual), np.asarray(expected)
    assert actual.shape == expected.shape
    return np.abs(actual - expected).max() / max(1e-3, np.abs(expected).max())


def arrays(layer):
    """The weights of a layer in the order in which `loss` takes them."""
    return [array for array in (layer.Z, layer.Y, layer.V) if array is not None]


def complex_step(function, parameters):
    """Derivative of a real function of arrays by every entry of each: no derivative by hand, and no cancellation."""
    out = [np.zeros(array.shape) for array in parameters]
    for which, array in enumerate(parameters):
        for at in np.ndindex(array.shape):
            moved = [np.array(other, dtype=complex) for other in parameters]
            moved[which][at] += 1e-40j
            out[which][at] = function(*moved).imag / 1e-40
    return out


def complex_step_gradient(data, parameters):
    """The gradient of J from the loss (2) written with dense matrices."""
    return complex_step(lambda *moved: -loss(data, *moved), parameters)


def lemma1(data, parameters):
    return full_flow(data, *parameters)


def momentum_loop(gradient, parameters, etas, steps, mu):
    velocity = [np.zeros_like(array) for array in parameters]
    for _ in range(steps):
        slopes = gradient(parameters)
        velocity = [mu * v + g for v, g in zip(velocity, slopes, strict=True)]
        parameters = [x + eta * v for x, eta, v in zip(parameters, etas, velocity, strict=True)]
    return parameters


def adam_loop(gradient, parameters, etas, steps):
    """Algorithm 1 of Kingma and Ba (2015) with its default constants, upwards."""
    beta1, beta2, epsilon = 0.9, 0.999, 1e-8
    m = [np.zeros_like(array) for array in parameters]
    v = [np.zeros_like(array) for array in parameters]
    for t in range(1, steps + 1):
        slopes = gradient(parameters)
        m = [beta1 * a + (1 - beta1) * g for a, g in zip(m, slopes, strict=True)]
        v = [beta2 * a + (1 - beta2) * g**2 for a, g in zip(v, slopes, strict=True)]
        parameters = [
            x + eta * (a / (1 - beta1**t)) / (np.sqrt(b / (1 - beta2**t)) + epsilon)
            for x, eta, a, b in zip(parameters, etas, m, v, strict=True)
        ]
    return parameters
