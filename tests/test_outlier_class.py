"""The reduced map: against the textbook form in cosines, the full map, and its own derivative by differences."""

import math

import numpy as np
import pytest

from bnlib import kernels, leaky
from bnlib.outlier_class import (
    class_geometry,
    class_jacobian,
    cluster_angle_after,
    next_class_state,
    next_products,
    next_state,
    next_state_slope,
    scale_growth,
    state_of_products,
)
from bnlib.state_stability import class_distances

SIZES = [3, 3.5, 7, 8.25, 16, 64, 1000]


def products_of(u, n):
    """Four inner products with the state u, centered: lengths in units of the distance to the mean of the others."""
    m = n - 1.0
    return np.array([m * m / n**2, u * (m - 1) / m + 1 / n**2, 1 / n**2 - u / m, -m / n**2])


@pytest.mark.parametrize("n", SIZES)
@pytest.mark.parametrize("u", [1e-3, 0.05, 0.7, 3.0])
def test_the_line_is_the_map_of_four_numbers(n, u):
    after = next_products(products_of(u, n), n)
    assert state_of_products(after, n) == pytest.approx(next_state(u, n), rel=1e-9)
    m = n - 1.0
    distance = after[0] - 2 * after[3] + (after[1] + (m - 1) * after[2]) / m
    assert distance == pytest.approx(scale_growth(u, n), rel=1e-12)


@pytest.mark.parametrize(("n", "k"), [(5, 1), (9, 1), (9, 2), (9, 4), (12, 5), (3, 1)])
def test_reduced_map_is_the_full_map(n, k):
    p, u = 0.3, 0.8
    squared = class_distances(p, u, n, k)
    center = np.eye(n) - 1.0 / n
    gram = kernels.recentered_relu_kernel(-center @ squared @ center / 2)
    new_p, new_u, growth = next_class_state(p, u, n, k)
    within_o = (gram[0, 0] - gram[0, 1]) if k > 1 else 0.0
    within_c = gram[k, k] - gram[k, k + 1]
    contrast = np.r_[np.full(k, 1 / k), np.full(n - k, -1 / (n - k))]
    distance = contrast @ gram @ contrast
    assert (within_o / distance, within_c / distance, distance) == pytest.approx((new_p, new_u, growth), rel=1e-12)


def test_agrees_with_the_map_of_leaky_slopes_at_slope_zero():
    """Written apart from this one, in cosines and without the second kind of sample."""
    u = np.geomspace(1e-12, 10, 40)
    for n in SIZES:
        np.testing.assert_allclose(next_state(u, n), leaky.next_state(u, n), rtol=1e-9)
        np.testing.assert_allclose(cluster_angle_after(u, n), leaky.cluster_angle(u, n), rtol=1e-12)


@pytest.mark.parametrize("n", SIZES)
def test_slope_is_the_derivative(n):
    for u in (1e-6, 0.02, (n - 1) / n, 2.0):
        step = 1e-5 * u
        difference = (next_state(u + step, n) - next_state(u - step, n)) / (2 * step)
        assert next_state_slope(u, n) == pytest.approx(difference, rel=1e-7)
    assert next_state_slope(0.0, n) == pytest.approx(n * n / (n * n - 2 * n + 2), rel=1e-12)


@pytest.mark.parametrize(("n", "k"), [(9, 2), (9, 4), (20.5, 3.5), (64, 32)])
def test_jacobian_is_the_derivative(n, k):
    x = np.array([0.7, 0.2])
    numeric = np.empty((2, 2))
    for column in range(2):
        step = np.zeros(2)
        step[column] = 1e-6
        up, down = (np.array(next_class_state(*(x + s * step), n, k)[:2]) for s in (1, -1))
        numeric[:, column] = (up - down) / 2e-6
    np.testing.assert_allclose(class_jacobian(*x, n, k), numeric, rtol=1e-6)
    # exchanging the kinds exchanges the rows and columns
    np.testing.assert_allclose(class_jacobian(*x, n, k)[::-1, ::-1], class_jacobian(*x[::-1], n, n - k), rtol=1e-12)


@pytest.mark.parametrize("n", [3, 8, 64, 1e4])
def test_no_digits_are_lost_near_the_collapsed_cluster(n):
    """u'/u = alpha (1 - 2 psi/(3 pi)), psi = n sqrt(2u): the textbook form has no digit left at u = 1e-16."""
    alpha = n * n / (n * n - 2 * n + 2)
    for u in (1e-20, 1e-14):
        psi = n * math.sqrt(2 * u)
        assert next_state(u / n**2, n) * n**2 / u == pytest.approx(alpha * (1 - 2 * psi / n / (3 * math.pi)), rel=1e-12)
    tiny = 1e-17 / n**2
    assert abs(state_of_products(next_products(products_of(tiny, n), n), n) / tiny - alpha) > 1e-3


def test_geometry_of_equivalent_samples():
    for n, k in ((8, 1), (9, 3)):
        g = class_geometry(k * (n - k) / n, k * (n - k) / n, n, k)
        assert float(g.outlier_square) == pytest.approx(float(g.cluster_square), rel=1e-14)
        for angle in (g.cluster_pair_angle, math.pi - g.supplement, *([g.outlier_pair_angle] if k > 1 else [])):
            assert math.cos(angle) == pytest.approx(-1 / (n - 1), abs=1e-14)


def test_every_argument_may_be_an_array():
    u = np.array([[0.1, 0.2], [0.3, 0.4]])
    assert next_state(u, 8).shape == (2, 2)
    assert class_jacobian(u, u, 8, 2).shape == (2, 2, 2, 2)
    assert next_state(0.2, 8) == next_state(u, 8)[0, 1]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: next_state(0.1, 2), "n must be a batch size of at least 3, got 2"),
        (lambda: next_state(0.1, math.nan), "n must be a batch size of at least 3, got nan"),
        (lambda: next_state(0.1, math.inf), "n must be a finite batch size, got inf"),
        (lambda: next_state(-0.1, 8), "u must be a ratio of squared distances, between 0 and 1e100, got -0.1"),
        (lambda: next_state(math.nan, 8), "u must be a ratio of squared distances, between 0 and 1e100, got nan"),
        (lambda: next_class_state(-1.0, 0.1, 8, 2), "p must be a ratio of squared distances"),
        (
            lambda: next_class_state(0.1, 0.1, 8, 7),
            "k must be 1 or a number of distinguished samples between 2 and n - 2",
        ),
        (lambda: next_class_state(0.1, 0.1, 8, 1.5), "k must be 1 or a number of distinguished samples"),
        (lambda: next_products(np.array([1.0, 1.0, math.nan, 0.0]), 8), "products must be four finite numbers"),
        (lambda: state_of_products(np.ones(4), 8), "products must have x_1 apart from the mean"),
    ],
)
def test_refusals(call, message):
    with pytest.raises(ValueError, match=message):
        call()
