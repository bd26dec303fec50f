"""γ in any dimension: bounds against the enumeration of silent cones, exact cases, hypotheses."""

import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import erf

from bnlib.collinear import pairwise_angles
from bnlib.gamma import gamma_bounds, gamma_lower_acute, gamma_lower_counting, gamma_upper
from bnlib.planar_gamma import gamma_planar
from tests.gamma_oracle import least_nonzero_probability, sampled_cones


def naive_counting(x: np.ndarray, spark: int) -> float:
    """The integral of the counting bound by adaptive quadrature, not a lower bound of itself."""
    angles = pairwise_angles(x)
    found = []
    for j in range(len(x)):
        slopes = 1 / np.abs(np.tan(np.delete(angles[j], j)))

        def share(s, slopes=slopes):
            density = math.exp(-s * s / 2) / math.sqrt(2 * math.pi)
            return density * max(0.0, 1 - erf(s * slopes / math.sqrt(2)).sum() / (spark - 1))

        found.append(quad(share, 0, 10, limit=500, epsabs=1e-12)[0])
    return min(0.5, *found)


def test_bounds_hold_in_three_dimensions(seed):
    rng = np.random.default_rng(seed)
    for n, spread in ((4, 1.0), (4, 0.1), (5, 0.3), (5, 0.05)):
        x = rng.standard_normal((n, 3)) * spread + (np.array([1.0, 0.0, 0.0]) if spread < 1 else 0.0)
        count = 50_000
        measured = least_nonzero_probability(x, *sampled_cones(x, count, rng))
        error = math.sqrt(measured * (1 - measured) / count)
        found = gamma_bounds(x, spark_at_least=4)
        assert found.lower - 5 * error <= measured <= found.upper + 5 * error, (x, found, measured)
        assert gamma_lower_counting(x, spark_at_least=4) <= measured + 5 * error
        assert gamma_lower_counting(x) <= gamma_lower_counting(x, spark_at_least=4)


def test_the_oracle_would_catch_a_bound_that_is_too_high(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((4, 3)) * 0.1 + np.array([1.0, 0.0, 0.0])
    measured = least_nonzero_probability(x, *sampled_cones(x, 50_000, rng))
    # The tree bound is the largest number that could be mistaken for a lower bound: three times it is refuted.
    assert 3 * gamma_upper(x) > measured + 5 * math.sqrt(measured / 50_000)


def test_counting_and_tree_enclose_the_exact_planar_value(seed):
    rng = np.random.default_rng(seed)
    for n in (3, 6, 12, 40):
        for x in rng.standard_normal((4, n, 2)):
            exact = gamma_planar(x).gamma
            assert gamma_lower_counting(x) <= exact <= gamma_upper(x)
            assert gamma_lower_acute(x) <= exact


def test_counting_equals_naive_quadrature_from_below(seed):
    rng = np.random.default_rng(seed)
    for n, d, spark in ((5, 3, 3), (12, 4, 5), (20, 8, 9)):
        x = rng.standard_normal((n, d))
        expected = naive_counting(x, spark)
        found = gamma_lower_counting(x, spark_at_least=spark)
        assert found <= expected + 1e-10
        assert found == pytest.approx(expected, rel=3e-3)


def test_counting_scales_with_tiny_angles():
    for angle in (1e-3, 1e-8, 1e-13):
        x = np.array([[1.0, 0.0, 0.0], [1.0, angle, 0.0], [1.0, 0.0, angle], [1.0, -angle, -angle]])
        assert 0.01 * angle < gamma_lower_counting(x) < angle


def test_orthogonal_samples_and_more_of_the_same():
    assert gamma_lower_counting(np.eye(5)) == pytest.approx(0.5, abs=1e-8)
    # Each hyperplane is crossed at infinity by all others: nothing is lost by the antipodal copies.
    assert gamma_lower_counting(np.vstack([np.eye(3), -np.eye(3)])) == pytest.approx(0.5, abs=1e-8)


def test_exact_cases(seed):
    rng = np.random.default_rng(seed)
    independent = rng.standard_normal((6, 9))
    assert gamma_bounds(independent).exact
    assert gamma_bounds(independent) == gamma_bounds(np.vstack([independent, -independent[:1]]))
    planar = rng.standard_normal((9, 2))
    assert gamma_bounds(planar).lower == gamma_bounds(planar).upper == gamma_planar(planar).gamma
    assert gamma_bounds(np.vstack([planar, planar[:1]])).upper == 0
    assert gamma_bounds(np.array([[1.0], [-1.0]])).lower == 0.5
    assert gamma_bounds(np.array([[1.0], [-1.0], [2.0]])).reason == "out of reach"


def test_too_few_acute_pairs_make_gamma_exactly_half():
    simplex = np.vstack([np.eye(4), -np.ones(4)])
    found = gamma_bounds(simplex, spark_at_least=5)
    assert (found.lower, found.upper, found.reason) == (0.5, 0.5, "acute sets")
    # Nine samples in general position; without that hypothesis they are only bracketed.
    nine = np.random.default_rng(0).standard_normal((9, 4))
    assert gamma_bounds(nine, spark_at_least=5).lower == 0.5
    assert gamma_bounds(nine).lower < 0.5


def test_acute_bound_is_the_widest_pair_of_the_tightest_dependent_set():
    cone = np.array([[1.0, 0.1, 0.0], [1.0, -0.1, 0.0], [1.0, 0.0, 0.1], [1.0, 0.0, -0.1]])
    widest = 2 * math.atan(0.1)
    assert gamma_lower_acute(cone, spark_at_least=4) == pytest.approx(widest / math.pi, abs=1e-12)
    with_far = np.vstack([cone, [[-1.0, 5.0, 2.0]]])
    assert gamma_lower_acute(with_far, spark_at_least=4) == pytest.approx(widest / math.pi, abs=1e-12)


def test_acute_bound_knows_its_hypotheses(seed):
    rng = np.random.default_rng(seed)
    assert gamma_lower_acute(rng.standard_normal((8, 3)), spark_at_least=4) == 0.0  # too many samples
    pair = np.array([[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    assert gamma_lower_acute(pair, spark_at_least=4) == 0.0  # an antipodal pair
    assert gamma_lower_acute(np.zeros((2, 3))) == 0.0


def test_dense_acute_batches_stay_fast_and_sound():
    # Every pair is acute, so a clique exists; the search must see that at once.
    x = np.abs(np.random.default_rng(0).standard_normal((40, 30)))
    found = gamma_bounds(x, spark_at_least=31)
    assert 0 < found.lower <= found.upper <= 0.5


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gamma_bounds(np.eye(3), spark_at_least=2), r"spark_at_least must be from 3 to d \+ 1 = 4, got 2:"),
        (lambda: gamma_bounds(np.eye(3), spark_at_least=5), r"spark_at_least must be from 3 to d \+ 1 = 4, got 5:"),
        (lambda: gamma_upper(np.array([[np.inf, 1.0]])), r"x must hold finite numbers, got inf\."),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
