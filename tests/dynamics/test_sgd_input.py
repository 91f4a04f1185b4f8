"""Bad input to `sgd` and `sgd_many`: one clear error each."""

import numpy as np
import pytest

from dynamics import Bags, Layer, SequenceClasses, sgd, sgd_many

BAD = [
    ({"steps": 0}, "`steps` must be at least 1, but got 0"),
    ({"steps": -3}, "`steps` must be at least 1, but got -3"),
    ({"steps": 2.0}, "`steps` must be an integer, but got 2.0"),
    ({"batch_size": 0}, "`batch_size` must be at least 1, but got 0"),
    ({"batch_size": -1}, "`batch_size` must be at least 1, but got -1"),
    ({"length": 0}, "`length` must be at least 2, but got 0"),
    ({"length": -5}, "`length` must be at least 2, but got -5"),
    ({"length": 1}, "`length` must be at least 2, but got 1"),
    ({"length": 2.5}, "`length` must be an integer, but got 2.5"),
    ({"optimizer": "rmsprop"}, "`optimizer` must be one of 'sgd', 'adam', 'adamw', 'sign', but got 'rmsprop'"),
    ({"init": "normal"}, "`init` must be 'zero', 'uniform' or a Layer, but got 'normal'"),
    ({"init": None}, "`init` must be 'zero', 'uniform' or a Layer, but got None"),
    ({"dtype": "float16"}, "`dtype` must be one of 'float64', 'float32', but got 'float16'"),
    ({"dtype": np.float32}, "`dtype` must be one of 'float64', 'float32', but got <class 'numpy.float32'>"),
    ({"momentum": 1.0}, "`momentum` must be below 1, but got 1.0"),
    ({"momentum": -0.1}, "`momentum` must be non-negative, but got -0.1"),
    ({"momentum": np.nan}, "`momentum` must be a non-negative finite number, but got nan"),
    ({"eta_y": -1.0}, "`eta_y` must be positive, but got -1.0"),
    ({"eta_z": -0.5}, "`eta_z` must be positive, but got -0.5"),
    ({"eta_z": np.inf}, "`eta_z` must be a positive finite number, but got inf"),
    ({"eta_z": "1"}, "`eta_z` must be a positive finite number, but got '1'"),
    ({"eta_y": 1e300, "dtype": "float32"}, "`eta_y` must be in the range of float32, but got 1e+300"),
    ({"eta_z": 1e-300, "dtype": "float32"}, "`eta_z` must be in the range of float32, but got 1e-300"),
    ({"eta_v": 1.0}, "`eta_v` must be None unless `init` has a value matrix, but got 1.0"),
    ({"record_every": 0}, "`record_every` must be at least 1, but got 0"),
    ({"seed": -1}, "`seed` must be at least 0, but got -1"),
    ({"seed": None}, "`seed` must be an integer, but got None"),
    ({"seed": 0.5}, "`seed` must be an integer, but got 0.5"),
    ({"position_bias": -1}, "`position_bias` must be non-negative, but got -1"),
    (
        {"position_bias": 1.0, "length": None},
        "`position_bias` must be 0 without drawn sequences, for bags have no positions, but got 1.0",
    ),
    ({"batch_size": None}, "`length` must be None when batch_size is None, which takes the whole population, but got"),
    (
        {"init": Layer(np.zeros((2, 29)), np.zeros((29, 34)))},
        "`data` must have at most the 29 tokens of the layer, but got 30",
    ),
    (
        {"init": Layer(np.zeros((1, 30)), np.zeros((30, 34)))},
        "`data` must have at most the 1 queries of the layer, but got 2",
    ),
    (
        {"init": Layer(np.zeros((3, 30)), np.zeros((30, 34)))},
        "`init` must have 2 rows of Z, one a query token, but got 3",
    ),
    (
        {"init": Layer(np.zeros((2, 30)), np.zeros((30, 33)))},
        "`data` must have at most the 33 next tokens of the layer, but got 34",
    ),
    (
        {"init": Layer(np.zeros((2, 30)), np.full((30, 34), 1e300)), "dtype": "float32"},
        "`init` must be in the range of float32, but got 1e+300",
    ),
    (
        {"init": Layer(np.zeros((2, 30)), np.zeros((3, 34)), np.ones((30, 3))), "eta_v": -1.0},
        "`eta_v` must be positive, but got -1.0",
    ),
]


@pytest.mark.parametrize("options, message", BAD, ids=[message[:60] for _, message in BAD])
def test_bad_input_gives_one_clear_error(options, message):
    """Alone and among many runs: the name, the rule and the value."""
    arguments = {"eta_y": 1.0, "eta_z": 1.0, "steps": 1, **options}
    classes = SequenceClasses.syn_small()
    for call in (lambda: sgd(classes, **arguments), lambda: sgd_many([(classes, arguments)])):
        with pytest.raises(ValueError) as caught:
            call()
        assert type(caught.value) is ValueError
        assert str(caught.value).startswith(message)


@pytest.mark.parametrize("data", [None, "text", 3, np.eye(3), [SequenceClasses.syn_small()]])
def test_wrong_data(data):
    message = "`data` must be Bags or offer population\\(\\), but got " + type(data).__name__
    with pytest.raises(ValueError, match=message):
        sgd(data, eta_y=1, eta_z=1, steps=1)
    with pytest.raises(ValueError, match=message):
        sgd_many([(data, {"eta_y": 1, "eta_z": 1, "steps": 1})])


@pytest.mark.parametrize("threads", [0, -1, 1.5])
def test_wrong_threads(threads):
    with pytest.raises(ValueError, match="`threads` must be"):
        sgd_many([], threads=threads)


def test_a_length_that_cannot_hold_a_bag_is_refused():
    bags = Bags.from_dense([0, 0], [0, 1], [[3.0, 1.0], [1.0, 6.0]])
    with pytest.raises(ValueError, match="`length` must hold the query and the 7 tokens of the longest bag, but got 7"):
        sgd(bags, eta_y=1.0, eta_z=1.0, steps=1, length=7)
    sgd(bags, eta_y=1.0, eta_z=1.0, steps=1, length=8)
    with pytest.raises(ValueError, match="`position_bias` must be 0 without drawn sequences"):
        sgd(bags, eta_y=1.0, eta_z=1.0, steps=1, length=8, position_bias=0.1)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"progress": True}, r"`runs` must have arguments of `sgd` \(eta_y, .*\), but got 'progress'"),
        ({"eta_q": 1.0}, "`runs` must have arguments of `sgd` .*, but got 'eta_q'"),
        ({"eta_y": -1.0}, r"`eta_y` must be positive, but got -1\.0"),
        ({"steps": 0}, "`steps` must be at least 1, but got 0"),
    ],
)
def test_sgd_many_checks_every_run_before_the_first(arguments, message):
    good = {"eta_y": 1.0, "eta_z": 1.0, "steps": 1}
    done = []
    with pytest.raises(ValueError, match=message):
        sgd_many(
            [(SequenceClasses.syn_small(), good), (SequenceClasses.syn_small(), good | arguments)],
            observe=done.append,
            threads=1,
        )
    assert not done


@pytest.mark.parametrize("name", ["eta_y", "eta_z", "steps"])
def test_sgd_many_names_a_missing_argument(name):
    arguments = {key: 1 for key in ("eta_y", "eta_z", "steps") if key != name}
    with pytest.raises(
        ValueError, match=f"`runs` must have the arguments eta_y, eta_z, steps, but got none called '{name}'"
    ):
        sgd_many([(SequenceClasses.syn_small(), arguments)])
