"""Tests of bnlib.collapsed_cluster: chi-squares drawn by hand, exact values, the proof's inequality, messages."""

import math

import numpy as np
import pytest
from scipy import integrate, stats

from bnlib import collapsed_cluster as collapsed
from bnlib import invariant_geometry
from bnlib.cluster_growth import growth_rate

DRAWS = 100_000


def chi_squares(width: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """m, B and C of many layers; a chi-square of no degrees of freedom is zero."""
    random = np.random.default_rng(seed)
    m = random.binomial(width, 0.5, DRAWS)
    z = random.standard_normal((2, DRAWS, width))
    seen = np.arange(width) < m[:, None]
    return m, (z[0] ** 2 * seen).sum(axis=1), (z[1] ** 2 * ~seen).sum(axis=1)


def in_errors(sample: np.ndarray, expected: float) -> float:
    return abs(sample.mean() - expected) / (sample.std(ddof=1) / math.sqrt(len(sample)))


# ---------------------------------------------------------------- naive references


@pytest.mark.parametrize(("n", "width"), [(2, 1), (3, 2), (8, 5), (64, 16)])
def test_scale_step_against_chi_squares(n, width, seed):
    _, b, c = chi_squares(width, seed)
    step = collapsed.scale_step(n, width, 2.5)
    logs = np.log(2.5 / width * ((n - 1) ** 2 * c + b) / n**2)
    assert in_errors(logs, step.mean) < 5
    assert in_errors((logs - step.mean) ** 2, step.variance) < 5
    jensen = math.log(1.25 * ((n - 1) ** 2 + 1) / n**2)  # the log of the mean is another number
    assert in_errors(logs, jensen) > 5


@pytest.mark.parametrize("width", [2, 3, 16])
def test_ratio_law_against_chi_squares(width, seed):
    m, b, c = chi_squares(width, seed)
    mixed = (m > 0) & (m < width)
    ratio = np.sqrt(c[mixed] / b[mixed])
    for q in (0.3, 1.0, 1.5):
        assert in_errors((ratio <= q).astype(float), collapsed.ratio_distribution(q, width)) < 5
    assert in_errors(np.log(ratio) ** 2, collapsed.log_ratio_variance(width)) < 5
    wrong = collapsed.ratio_distribution(1.5, width + 2)
    assert in_errors((ratio <= 1.5).astype(float), wrong) > 5


@pytest.mark.parametrize("width", [3, 4, 7, 20])
def test_density_ratio_against_beta_densities(width):
    phi = np.linspace(0.05, 1.5, 30)
    x = np.sin(phi) ** 2
    weights = stats.binom.pmf(np.arange(1, width), width, 0.5) / (1 - 2.0 ** (1 - width))
    density = sum(w * stats.beta.pdf(x, m / 2, (width - m) / 2) for m, w in enumerate(weights, start=1))
    arcsine = 1 / (math.pi * np.sqrt(x * (1 - x)))
    np.testing.assert_allclose(collapsed.density_ratio(phi, width), density / arcsine, rtol=1e-12)


# ---------------------------------------------------------------- the theorem on positive growth, independently


@pytest.mark.parametrize("width", [3, 4, 5, 8, 30, 100, 400])
def test_density_ratio_rises_to_the_middle_and_is_symmetric(width):
    phi = np.linspace(0.0, math.pi / 4, 300)
    ratio = collapsed.density_ratio(phi, width)
    np.testing.assert_allclose(ratio, collapsed.density_ratio(math.pi / 2 - phi, width), rtol=1e-9, atol=1e-300)
    assert (np.diff(ratio) >= 0).all()
    assert ratio[0] < 1 < ratio[-1]


@pytest.mark.parametrize(("n", "width"), [(3, 2), (3, 3), (8, 4), (8, 16), (64, 5)])
def test_growth_rate_is_the_mean_over_the_angle(n, width):
    """lambda = -1/2 E log(1 - 4v + 4 v^2 / sin^2(2 phi)), v = (n-1)/n^2, phi of the density of `density_ratio`."""
    v = (n - 1) / n**2

    def integrand(phi: float) -> float:
        return math.log(1 - 4 * v + 4 * v * v / math.sin(2 * phi) ** 2) * collapsed.density_ratio(phi, width)

    mean = integrate.quad(integrand, 0, math.pi / 4, epsabs=1e-12, limit=200)[0] * 4 / math.pi
    assert -mean / 2 == pytest.approx(growth_rate(n, width), abs=1e-9)


def test_growth_rate_lies_between_zero_and_its_limit():
    for n in (3, 4, 8, 33, 128, 1000):
        rates = [growth_rate(n, width) for width in (3, 4, 5, 6, 8, 16, 64, 256, 1024)]
        assert rates[0] > 0
        assert rates[-1] < growth_rate(n)
        assert (np.diff(rates) > 0).all()


# ---------------------------------------------------------------- known values


def test_scale_of_theorem_13_falls_at_every_width():
    for n in (2, 3, 8, 64):
        alpha = float(invariant_geometry.alpha_invariance(n))
        drifts = [collapsed.scale_step(n, width, 2 * alpha).mean for width in (1, 2, 4, 16, 64, 1000)]
        assert max(drifts) < 0
        assert (np.diff(drifts) > 0).all()
    a = 63.0**2
    relative_variance = 6 * (a * a + 1) / (a + 1) ** 2 - 1
    step = collapsed.scale_step(64, 4000, 2 * float(invariant_geometry.alpha_invariance(64)))
    assert step.mean * 4000 == pytest.approx(-relative_variance / 2, rel=5e-3)
    assert step.variance * 4000 == pytest.approx(relative_variance, rel=5e-3)


def test_scale_step_of_one_neuron():
    """n = 2: the two sides are alike, log R'^2 = log(sigma^2 chi^2_1 / 4), of variance pi^2 / 2."""
    step = collapsed.scale_step(2, 1, 2.0)
    assert step.mean == pytest.approx(math.log(2 / 4) - math.log(2) - np.euler_gamma, abs=1e-10)
    assert step.variance == pytest.approx(math.pi**2 / 2, abs=1e-8)


def test_ratio_law_is_symmetric():
    q = np.array([0.1, 0.5, 3.0])
    for width in (2, 5, 64):
        np.testing.assert_allclose(
            collapsed.ratio_distribution(q, width) + collapsed.ratio_distribution(1 / q, width), 1.0, rtol=1e-12
        )
    assert collapsed.ratio_distribution(1.0, 2) == pytest.approx(0.5)
    assert collapsed.ratio_distribution(np.tan(np.pi / 8), 2) == pytest.approx(0.25)  # a half-Cauchy variable
    assert collapsed.ratio_distribution(np.zeros((2, 3)), 4).shape == (2, 3)


def test_one_infinite_layer_makes_definition_12(seed):
    random = np.random.default_rng(seed)
    for n in (2, 3, 9, 64):
        x = np.repeat(random.standard_normal((2, 7)), [1, n - 1], axis=0)
        expected = np.full((n, n), 1 / (n - 1) ** 2)
        expected[0] = expected[:, 0] = 0.0
        expected[0, 0] = 1.0
        np.testing.assert_allclose(collapsed.after_infinite_layer(x), expected, atol=1e-12)
    x[1] += 0.5
    assert abs(collapsed.after_infinite_layer(x) - expected).max() > 1e-3  # an open cluster does not become one


def test_open_cluster_moments_against_layers_drawn_by_hand(seed):
    random = np.random.default_rng(seed)
    n, width, alpha, draws = 5, 4, 0.7, 40_000
    x = random.standard_normal((n, width))
    moments = collapsed.open_cluster_moments(x, alpha)
    h = x @ random.standard_normal((draws, width, width)) * math.sqrt(2 * alpha / width)
    h = h - h.mean(axis=1, keepdims=True)
    y = np.maximum(h, 0)
    images = y[:, 1:].mean(axis=1)
    image = np.maximum(h[:, 1:].mean(axis=1), 0)
    assert in_errors((y[:, 0] ** 2).sum(axis=1), moments.outlier) < 5
    assert in_errors((images**2).sum(axis=1), moments.mean_of_images) < 5
    assert in_errors((image**2).sum(axis=1), moments.image_of_mean) < 5
    assert in_errors((images * y[:, 0]).sum(axis=1), moments.inner_mean_of_images) < 5
    assert moments.mean_of_images > moments.image_of_mean
    assert in_errors((image**2).sum(axis=1), moments.mean_of_images) > 5
    squared = invariant_geometry.squared_distance_to_cluster(x)
    assert moments.outlier == pytest.approx(alpha * squared * ((n - 1) / n) ** 2, rel=1e-12)


def test_readings_of_the_second_moment():
    import sympy

    readings = collapsed.second_moment_readings()
    n, big, r = sympy.symbols("n R r", positive=True)
    assert readings["same"] == readings["definition"] == 1
    assert sympy.simplify(readings["free"] - r**2 / big**2) == 0
    for value in (2, 3, 8):
        threshold = sympy.Rational(value, value - 1)
        at_threshold = readings["review"].subs({n: value, big: threshold})
        assert at_threshold == 1 / sympy.Rational(invariant_geometry.alpha_invariance(value))
        assert readings["batch mean"].subs(n, value) == threshold**2


# ---------------------------------------------------------------- messages


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: collapsed.scale_step(1, 4), "n must be a batch size of at least 2, got 1."),
        (lambda: collapsed.scale_step(8, 0), "width must be a whole number of neurons of at least 1, got 0."),
        (lambda: collapsed.scale_step(8, 4, math.nan), "weight_variance must be positive and finite, got nan."),
        (
            lambda: collapsed.ratio_distribution(-1.0, 4),
            "factor must be a ratio of norms, between 0 and 1e150, got -1.0.",
        ),
        (lambda: collapsed.ratio_distribution(1.0, 1), "width must be a whole number of neurons of at least 2, got 1."),
        (lambda: collapsed.log_ratio_variance(True), "width must be a whole number of neurons of at least 2, got True"),
        (lambda: collapsed.density_ratio(2.0, 4), "angle must be between 0 and pi/2 radians, got 2.0."),
        (lambda: collapsed.density_ratio(0.5, 901), "width must be a whole number of neurons of at most 900, got 901."),
        (lambda: collapsed.after_infinite_layer(np.ones((3, 2))), "x must have a row 0 that differs from the mean of"),
        (lambda: collapsed.after_infinite_layer(np.ones((1, 3))), "x must be a finite batch of shape"),
        (lambda: collapsed.open_cluster_moments(np.eye(3), 0.0), "alpha must be positive and finite, got 0.0."),
        (lambda: collapsed.open_cluster_moments(np.full((3, 2), np.nan), 1.0), "x must be a finite batch of shape"),
    ],
)
def test_messages(call, sentence):
    with pytest.raises(ValueError, match="^" + sentence) as caught:
        call()
    assert "\n" not in str(caught.value)
