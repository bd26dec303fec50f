"""Monte Carlo and networks: unbiased where they should be, and able to reject a wrong theory."""

import numpy as np
import pytest

from bnlib.activations import activation, leaky_relu
from bnlib.mean_field_survey import (
    QUANTITIES,
    Measured,
    dense_share_path,
    extrapolated,
    jackknife,
    monte_carlo,
    network_covariances,
    network_quantities,
    norm_shares,
    norm_spread,
    normalize,
    share_path,
    theory,
)
from bnlib.v_transform import batch_norm_relu_transform


@pytest.mark.parametrize("name", ["relu", "gelu"])
def test_monte_carlo_meets_the_theory(name, seed):
    phi = activation(name)
    found, known = monte_carlo(phi, 7, 20_000, np.random.default_rng(seed)), theory(phi, 7)
    for quantity in QUANTITIES:
        assert abs(found[quantity].mean - known[quantity]) < 5 * found[quantity].error, quantity
    # Power: the multipliers of another activation are rejected.
    other = theory(activation("tanh"), 7)
    for quantity in ("off_diagonal", "lambda_L", "lambda_M"):
        assert abs(found[quantity].mean - other[quantity]) > 5 * found[quantity].error, quantity


def test_networks_meet_the_theory(seed):
    phi = activation("gelu")
    generator = np.random.default_rng(seed)
    narrow, wide = (network_quantities(phi, 6, width, 50, 20, generator) for width in (128, 256))
    known = theory(phi, 6)
    for quantity in QUANTITIES:
        found = extrapolated(narrow[quantity], wide[quantity])
        assert abs(found.mean - known[quantity]) < 5.5 * found.error, quantity
    wrong = theory(activation("tanh"), 6)
    assert abs(wide["lambda_M"].mean - wrong["lambda_M"]) > 5 * wide["lambda_M"].error
    assert abs(wide["cross_batch_decay"].mean - wrong["cross_batch_decay"]) > 5 * wide["cross_batch_decay"].error


def test_one_layer_of_networks_is_the_transform_on_average(seed):
    generator = np.random.default_rng(seed)
    x = generator.standard_normal((5, 7)) * np.array([[1, 2, 1, 3, 1]]).T
    start = np.tile(x @ x.T, (400, 1, 1))
    (layer,) = network_covariances(leaky_relu(0.2), start, 50, 1, generator)
    error = layer.std(axis=0, ddof=1) / 20
    assert (abs(layer.mean(axis=0) - batch_norm_relu_transform(x @ x.T, 0.2)) < 5 * error).all()
    assert (abs(layer.mean(axis=0) - batch_norm_relu_transform(np.eye(5), 0.2)) > 5 * error).any()


def test_dense_networks_have_the_same_law(seed):
    generator = np.random.default_rng(seed)
    phi = activation("relu")
    dense = np.array([dense_share_path(phi, 6, 40, 6, generator)[-1] for _ in range(60)])
    drawn = share_path(phi, 6, 40, 6, 60, generator)[-1]
    error = np.hypot(dense.std(ddof=1), drawn.std(ddof=1)) / np.sqrt(60)
    assert abs(dense.mean() - drawn.mean()) < 5 * error
    wide = share_path(phi, 6, 4000, 6, 60, generator)[-1]
    assert abs(dense.mean() - wide.mean()) > 5 * error  # power: the width matters


def test_two_batches_are_normalized_apart():
    start = np.random.default_rng(0).standard_normal((3, 8, 20))
    start = start @ start.transpose(0, 2, 1)
    for k in network_covariances(activation("identity"), start, 64, 2, np.random.default_rng(1), 2):
        assert np.abs(k[:, :4, :4].sum(axis=2)).max() < 1e-12
        assert np.abs(k[:, :4, 4:].sum(axis=2)).max() < 1e-12
        assert np.trace(k[:, 4:, 4:], axis1=1, axis2=2) == pytest.approx(4)


def test_jackknife_of_a_square(seed):
    # The mean of x^2 of a mean is biased by variance / n; the jackknife removes it.
    generator = np.random.default_rng(seed)
    estimates = [jackknife(generator.standard_normal((10, 1)), lambda s: float(s[0] ** 2)).mean for _ in range(2000)]
    assert abs(np.mean(estimates)) < 5 * np.std(estimates) / np.sqrt(2000)
    assert abs(np.mean(estimates) - 0.1) > 5 * np.std(estimates) / np.sqrt(2000)


def test_small_functions():
    assert normalize(np.array([[1.0, 5.0], [3.0, 5.0]])).tolist() == [[-1.0, 0.0], [1.0, 0.0]]
    q = np.r_[1.0, -np.ones(3) / 3]
    assert norm_shares(np.outer(q, q)[None])[0] == pytest.approx(0.75)
    squares = np.array([1.0, 1 / 9, 1 / 9, 1 / 9])
    assert norm_spread(np.outer(q, q)[None])[0] == pytest.approx(squares.var() / squares.mean() ** 2)
    assert extrapolated(Measured(2.0, 0.3), Measured(1.5, 0.2)).error == pytest.approx(0.5)


def test_errors(unchecked):
    generator, relu = np.random.default_rng(0), activation("relu")
    with pytest.raises(ValueError, match="draws must be at least 50, got 3"):
        monte_carlo(relu, 8, 3, generator)
    with pytest.raises(ValueError, match="at least 4, got 3"):
        monte_carlo(relu, 3, 100, generator)
    with pytest.raises(ValueError, match="depth must be above 11, got 5"):
        network_quantities(relu, 8, 16, 5, 4, generator)
    with pytest.raises(ValueError, match="draws must be at least 2, got 1"):
        network_quantities(relu, 8, 16, 15, 1, generator)
    with pytest.raises(ValueError, match="parts must be at least 2"):
        jackknife(np.ones((1, 1)), lambda s: 0.0)
    for bad, sentence in ((np.ones((4, 4)), "must have shape"), (np.full((1, 4, 4), np.nan), "must be finite")):
        with pytest.raises(ValueError, match=sentence):
            next(network_covariances(relu, bad, 8, 1, generator))
    with pytest.raises(ValueError, match="width and depth must be at least 1, got 0 and 1"):
        next(network_covariances(relu, np.eye(4)[None], 0, 1, generator))
    with pytest.raises(ValueError, match="draws must be at least 1"):
        share_path(relu, 5, 8, 1, 0, generator)
    with pytest.raises(ValueError, match="width and depth must be at least 1"):
        dense_share_path(relu, 5, 0, 1, generator)
