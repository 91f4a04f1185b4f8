"""The Y/Z layer, trained step by step by `yzflow.sgd`, as a model that two functions look at."""

import numpy as np

import yzflow as yz

RATES = (1.0, 1e-3)
PLAIN = yz.Optimizer(momentum=0.0)


class Trained:
    """Logits Z and decoder Y, and what a test changes in the layer: a bias by position, or a part besides."""

    def __init__(self, classes, *, rates=RATES, length=None, bias=0.0, start=0.0):
        self.classes, self.rates, self.length, self.bias = classes, rates, length, bias
        size = (classes.probabilities.shape[1], classes.vocab_size)
        queries = int(classes.query.max()) + 1
        self.layer = yz.Layer(np.zeros((queries, size[0])), start * np.eye(*size))

    def step(self, number, **training):
        """One step of SGD: by default plain, on the whole population of infinite sequences."""
        given = {"batch_size": None, "optimizer": PLAIN, "length": self.length} | training
        run = yz.sgd(
            self.classes, eta_y=self.rates[0], eta_z=self.rates[1], steps=1, init=self.layer, seed=number, **given
        )
        self.layer = run.final


def attention(model, sequences):
    """(n, 1, T) of the last query, none on itself."""
    context = sequences[:, :-1]
    query = sequences[:, -1] - model.classes.probabilities.shape[1]
    logits = np.asarray(model.layer.Z)[query[:, None], context] + model.bias * np.arange(context.shape[1])
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    return np.concatenate([weights, np.zeros((len(sequences), 1))], axis=1)[:, None]


def logits(model, sequences):
    """(n, M)."""
    shape = (len(sequences), model.classes.probabilities.shape[1])
    places = np.arange(shape[0])[:, None] * shape[1] + sequences[:, :-1]
    weights = attention(model, sequences)[:, 0, :-1]
    rows = np.bincount(places.ravel(), weights.ravel(), minlength=shape[0] * shape[1]).reshape(shape)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True) @ np.asarray(model.layer.Y)


def classes_inside(n_classes=3, vocab_size=4000, common=0.6):
    """Classes with one common token, inside the assumptions of Theorems 2 and 3."""
    distinct = [1.0, 0.8, 0.6, 0.4, 0.2]
    return yz.SequenceClasses.single_common_token(n_classes, vocab_size, common=common, distinct=distinct)


def draw(classes, n, length, rng):
    """Sequences of the classes, each with its query, numbered after all tokens, and its next token."""
    shares = classes.probabilities.toarray()
    which = rng.integers(0, classes.n_classes, n)
    rows = [rng.choice(shares.shape[1], length, p=shares[k]) for k in which]
    return np.column_stack([np.stack(rows), shares.shape[1] + classes.query[which], which])


def watched(model, *, length=6000, n=24, seed=0, optimizer=PLAIN, steps=20, training=None, **options):
    """A recorder of a training of so many steps."""
    tokens = draw(model.classes, n, length, np.random.default_rng(seed))
    looks = {"attention": attention, "logits": logits, "rates": model.rates, "optimizer": optimizer, "batch_size": 100}
    looks["parts"] = ()
    recorder = yz.watch(model, tokens, **looks | options)
    for number in range(steps):
        model.step(number, **(training or {}))
        recorder.step()
    return recorder
