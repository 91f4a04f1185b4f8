"""Effective rates of Y and Z, against what one small plain step on a model's own weights moves."""

import functools

import numpy as np
import pytest
from yzflow_watch.kinds_of_models import adapter_of
from yzflow_watch.rates import induced

import yzflow as yz

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.slow

# Tokens 0 to 2 and their twins 3 to 5 have the same embeddings, so that all pairs of one with another are of two
# weights; token 6 is a zero that stands still, beside which an attention logit is seen alone.
FIRST, TWINS, NOTHING, WIDTH = [0, 1, 2], [3, 4, 5], 6, 8
STEP = 1e-7


def twinned(rng):
    rows = rng.normal(size=(3, WIDTH))
    return np.concatenate([rows, rows, np.zeros((1, WIDTH))])


class Model(torch.nn.Module):
    """Attention of the last position and a decoder, nothing else."""

    def __init__(self, *, heads, tied=False, frozen=(), positions=False):
        super().__init__()
        rng = np.random.default_rng(1)
        self.embedding = torch.nn.Embedding(7, WIDTH, padding_idx=NOTHING)
        self.embedding.weight.data = torch.as_tensor(twinned(rng))
        self.place = torch.nn.Embedding(9, WIDTH) if positions else None
        self.attention = torch.nn.MultiheadAttention(WIDTH, heads, bias=False, batch_first=True, dtype=torch.float64)
        self.decoder = None if tied else torch.nn.Linear(WIDTH, 7, bias=False, dtype=torch.float64)
        if not tied:
            self.decoder.weight.data = torch.as_tensor(twinned(rng))
        for name in frozen:
            self.get_parameter(name).requires_grad_(False)

    def forward(self, tokens):
        x = self.embedding(tokens)
        if self.place is not None:
            x = x + self.place(torch.arange(tokens.shape[1]))
        out = self.attention(x, x, x, need_weights=False)[0]
        return out @ self.embedding.weight.T if self.decoder is None else self.decoder(out)


def moved(model, quantity):
    """Change of a quantity by one plain step on its own gradient, over the step's size; the model is put back."""
    before = {name: one.clone() for name, one in model.state_dict().items()}
    first = quantity(model)
    (-first).backward()
    torch.optim.SGD(model.parameters(), lr=STEP).step()
    change = float((quantity(model) - first).detach()) / STEP
    model.load_state_dict(before)
    model.zero_grad()
    return change


def logit(head, query, token):
    """z of a pair: ln attention on the token, less that on the token whose logit is zero."""

    def found(model):
        x = model.embedding(torch.tensor([[token, NOTHING, query]]))
        logs = model.attention(x, x, x, average_attn_weights=False)[1][0, head, -1].log()
        return logs[0] - logs[1]

    return found


def entry(token, following):
    """Y of a pair: the logit of a next token where all attention is on one token."""
    return lambda model: model(torch.tensor([[token]]))[0, 0, following]


@pytest.mark.parametrize("frozen", [(), ("embedding.weight",), ("attention.in_proj_weight",)])
def test_eta_z_of_multihead_attention_is_what_a_step_moves(frozen):
    model = Model(heads=2, frozen=frozen)
    for head, matrices in enumerate(adapter_of(model).matrices(model, np.array([[0, 1, 2], [1, 3, 2]]))[0]):
        found = np.mean([moved(model, logit(head, i, j)) for i in FIRST for j in TWINS])
        assert induced(matrices, 1.0, np.array(FIRST), np.array(FIRST))[1] == pytest.approx(found, rel=1e-5)


@pytest.mark.parametrize(
    ("tied", "frozen"),
    [(False, ()), (True, ()), (False, ("decoder.weight",)), (False, ("embedding.weight", "attention.out_proj.weight"))],
)
def test_eta_y_of_multihead_attention_is_what_a_step_moves(tied, frozen):
    model = Model(heads=1, tied=tied, frozen=frozen)
    [[matrices]] = adapter_of(model).matrices(model, np.array([[0, 1, 2], [1, 3, 2]]))
    found = np.mean([moved(model, entry(i, n)) for i in FIRST for n in TWINS])
    assert induced(matrices, 1.0, np.array(FIRST), np.array(TWINS))[0] == pytest.approx(found, rel=1e-5)


def test_logits_of_the_module_are_those_of_its_matrices():
    model = Model(heads=2, positions=True)  # another embedding, which the tokens do not go through
    tokens = np.array([[0, 1, 2], [1, 3, 2]])
    for head, of in enumerate(adapter_of(model).matrices(model, tokens)[0]):
        z = (of.embedding[1] @ of.query) @ (of.embedding[5] @ of.key) / of.scale
        assert float(logit(head, 1, 5)(model).detach()) == pytest.approx(z, rel=1e-12)


def test_rates_are_not_known_where_no_decoder_is_found():
    class Odd(Model):
        def forward(self, tokens):
            return super().forward(tokens) @ torch.ones(7, 3, dtype=torch.float64)

    model = Odd(heads=1)
    assert adapter_of(model).matrices(model, np.array([[0, 1, 2]])) == []
    tokens = np.random.default_rng(0).integers(0, 3, (12, 6))
    data = yz.watch(model, tokens, optimizer=torch.optim.SGD(model.parameters(), lr=0.3)).recording.dataset
    assert data["eta_y"].isnull().all() and data["eta_z"].isnull().all()


# Ours


VARIANTS = [
    {},
    {"factored": False, "values": False, "train_embedding": False},  # the layer of the paper
    {"tied": False, "n_outputs": 7, "temperature": 2.0},
]


@pytest.mark.parametrize("variant", VARIANTS, ids=str)
def test_rates_of_our_transformers_are_what_a_step_moves(variant):
    jax = pytest.importorskip("jax")
    equinox = pytest.importorskip("equinox")
    import yzflow_deep as deep

    with jax.enable_x64(True):
        a = deep.Architecture(7, width=WIDTH, mlp_width=0, norm="none", residual=False, **variant)
        model = deep.Transformer(a, 0, dtype="float64")
        rng = np.random.default_rng(1)
        model = equinox.tree_at(lambda one: one.embedding, model, twinned(rng))
        if not a.tied:
            model = equinox.tree_at(lambda one: one.decoder, model, twinned(rng).T)
        [[matrices]] = adapter_of(model).matrices(model, np.array([[0, 1, 2]]))

        @functools.partial(jax.jit, static_argnums=0)
        def change(quantity, first, second):
            slopes = jax.grad(quantity)(model, first, second)
            still = np.zeros((7, 1)) if not a.train_embedding else (np.arange(7) != NOTHING)[:, None]
            slopes = equinox.tree_at(lambda one: one.embedding, slopes, slopes.embedding * still)
            after = jax.tree.map(lambda one, slope: one + STEP * slope, model, slopes)
            return (quantity(after, first, second) - quantity(model, first, second)) / STEP

        def z(model, query, token):
            logs = jax.numpy.log(model.hidden(jax.numpy.stack([token, NOTHING, query]))[1][0, 0, -1])
            return logs[0] - logs[1]

        def y(model, token, following):
            return model(token[None])[0, following]

        of_z, of_y = (np.mean([float(change(one, i, j)) for i in FIRST for j in TWINS]) for one in (z, y))
    assert induced(matrices, 1.0, np.array(FIRST), np.array(FIRST))[1] == pytest.approx(of_z, rel=1e-5)
    assert induced(matrices, 1.0, np.array(FIRST), np.array(TWINS))[0] == pytest.approx(of_y, rel=1e-5)


def test_the_rate_of_a_loop_without_an_optimizer_is_given():
    pytest.importorskip("equinox")
    import yzflow_deep as deep

    model = deep.Transformer(deep.Architecture(7, width=WIDTH, mlp_width=0), 0)
    tokens = np.random.default_rng(0).integers(0, 7, (12, 6))
    data, half = (yz.watch(model, tokens, learning_rate=one).recording.dataset for one in (0.2, 0.1))
    assert (data["eta_z"] > 0).all() and data["learning_rate"].values.tolist() == [0.2]
    np.testing.assert_allclose(data["eta_y"], 2 * half["eta_y"], rtol=1e-12)
    with pytest.raises(ValueError, match="`learning_rate` must be positive"):
        yz.watch(model, tokens, learning_rate=-1.0)
