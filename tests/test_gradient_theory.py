"""Gradient theory: epsilon against a naive Monte Carlo, exact limits, heavy tails, messages."""

import itertools
import math

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import chi2

from bnlib import gradient_theory as theory
from bnlib.activations import activation
from bnlib.kernels import relu_cosine_derivative
from bnlib.mean_field import gradient_growth, linear_gradient_growth, relu_gradient_growth

RELU = activation("relu")


def naive_growth(phi, n, mu, epsilon, variance, draws, generator):
    """Backward matrices written out: variance / (n-1) E tr(G D J^T J D), J = derivative of batch norm, one by one."""
    centering = np.eye(n) - 1 / n
    values = []
    for _ in range(draws):
        h = centering @ generator.standard_normal(n) * math.sqrt(mu)
        s = math.sqrt(h @ h / n + epsilon)
        jacobian = (centering - np.outer(h, h) / (n * s**2)) / s
        backward = jacobian @ np.diag(phi.derivative(h / s))
        values.append(variance / (n - 1) * np.trace(backward @ centering @ backward.T))
    return np.array(values)


@pytest.mark.parametrize(("name", "epsilon"), [("relu", 0.0), ("relu", 0.2), ("tanh", 0.2), ("gelu", 0.0)])
def test_growth_is_the_mean_of_the_matrices_written_out(name, epsilon, seed):
    phi = activation(name)
    state = theory.epsilon_state(phi, 12, epsilon)
    generator = np.random.default_rng(seed)
    values = naive_growth(phi, 12, state.centered, epsilon, 2.0, 3000, generator)
    error = values.std(ddof=1) / math.sqrt(len(values))
    assert abs(values.mean() - state.gradient) < 5 * error
    # Power: without the factor that removes the component along v the same test fails.
    wrong = state.gradient * 12 / 10
    assert abs(values.mean() - wrong) > 5 * error


@pytest.mark.parametrize("name", ["relu", "identity", "tanh", "abs"])
@pytest.mark.parametrize("n", [4, 8, 64])
def test_without_epsilon_it_is_the_plain_growth(name, n):
    phi = activation(name)
    for variance in (0.5, 2.0):
        assert theory.epsilon_state(phi, n, 0.0, variance).gradient == pytest.approx(gradient_growth(phi, n), rel=1e-9)
    if phi.degree == 1:  # for others the search for the fixed point takes seconds
        assert theory.epsilon_state(phi, n, 1e-9).gradient == pytest.approx(
            gradient_growth(phi, n), rel=1e-3 if n > 4 else 2e-2
        )


def test_fixed_point_reproduces_itself_and_dies_at_the_critical_epsilon():
    critical = theory.critical_epsilon(RELU, 16)
    below = theory.epsilon_state(RELU, 16, 0.9 * critical)
    above = theory.epsilon_state(RELU, 16, 1.1 * critical)
    square, weights = theory.radial_rule(16)
    mu_1 = critical / 2 * 16 / 15
    again = 2 * mu_1 * float(weights @ (below.centered * square / (below.centered * square + 16 * below.epsilon)))
    assert below.centered > 0
    assert again == pytest.approx(below.centered, rel=1e-12)
    assert above.centered == 0
    assert above.signal == pytest.approx(1 / 1.1, rel=1e-9)


def test_epsilon_scales_with_the_weight_variance():
    one = theory.epsilon_state(RELU, 8, 0.1, 1.0)
    four = theory.epsilon_state(RELU, 8, 0.4, 4.0)
    assert four.centered == pytest.approx(4 * one.centered)
    assert four.gradient == pytest.approx(one.gradient)


@pytest.mark.parametrize("n", [4, 5, 16])
def test_floor_by_the_identity_of_its_proof(n):
    """lambda(eps) / lambda_0 - 1 as one average over a chi-square number, positive because k Q <= T."""
    c, k = -1 / (n - 1), n - 1
    l1_squared = 1 + k * (2 / math.pi) * (math.sqrt(1 - c * c) + c * math.asin(c))
    trace, form = k * (k + relu_cosine_derivative(c)) / (2 * n), 0.5 - l1_squared / (4 * n)
    assert l1_squared >= 2
    assert k * form < trace
    critical, law = theory.critical_epsilon(RELU, n), chi2(k)
    above = theory.epsilon_state(RELU, n, 2 * critical)
    for fraction in (0.1, 0.5, 0.9):
        state = theory.epsilon_state(RELU, n, fraction * critical)
        rho = n * state.epsilon / state.centered

        def excess(x, rho=rho):
            r = x / (x + rho)
            return (2 * r - k * form / trace * (2 * r - r * r)) / (x + rho)

        integral = [
            quad(lambda x, f=f: f(x) * law.pdf(x), 0, np.inf)[0] for f in (excess, lambda x, rho=rho: x / (x + rho))
        ]
        margin = state.gradient * above.signal / above.gradient - 1
        assert margin == pytest.approx(integral[0] / integral[1], rel=1e-5)
        assert margin > 0


def test_large_batches_do_not_see_epsilon():
    for fraction in (0.1, 0.5, 0.9):
        epsilon = fraction * theory.critical_epsilon(RELU, 4096)
        assert theory.epsilon_state(RELU, 4096, epsilon).gradient == pytest.approx(math.pi / (math.pi - 1), rel=2e-3)


def test_near_linear_activations_approach_the_linear_growth():
    gains = [1.0, 0.5, 0.2, 0.05]
    found = [gradient_growth(theory.parsed_activation(f"tanh {gain}"), 16) for gain in gains]
    assert all(a > b for a, b in itertools.pairwise(found))
    assert found[-1] == pytest.approx(linear_gradient_growth(16), rel=1e-3)


def test_neuron_factors_have_the_growth_as_mean(seed):
    generator = np.random.default_rng(seed)
    for n, rate in ((8, relu_gradient_growth(8)), (32, relu_gradient_growth(32))):
        values = theory.neuron_factors(RELU, n, 40000, generator)
        error = values.std(ddof=1) / math.sqrt(len(values))
        assert abs(values.mean() - rate) < 5 * error
        assert abs(values.mean() - rate * (n - 3) / (n - 1)) > 5 * error  # E[1/chi^2] replaced by 1/E[chi^2]


def test_independent_growth_is_unbiased_at_large_width(seed):
    factors = theory.independent_growth(RELU, 16, 1024, 4, 12, np.random.default_rng(seed))
    products = factors.prod(axis=1)
    error = products.std(ddof=1) / math.sqrt(len(products))
    assert abs(products.mean() - relu_gradient_growth(16) ** 4) < 5 * error + 0.01 * products.mean()


def test_tail_at_three_samples_has_the_constant_of_the_width_law(seed):
    values = theory.neuron_factors(RELU, 3, 100000, np.random.default_rng(seed))
    a = theory.growth_per_width_doubling(RELU) / math.log(2)
    threshold = 50.0
    share = (values > threshold).mean()
    assert abs(share * threshold - a) < 5 * math.sqrt(share / len(values)) * threshold + 0.02 * a
    assert abs(share * threshold - 2 * a) > 5 * math.sqrt(share / len(values)) * threshold


def test_sample_means_lie_below_their_expectation_at_four_samples(seed):
    rows = theory.sample_mean_convergence(RELU, 4, (10, 300), 30000, np.random.default_rng(seed))
    assert rows[0]["median"] < rows[1]["median"] < relu_gradient_growth(4)
    assert rows[0]["samples"] == 3000
    assert rows[1]["low"] < rows[1]["median"] < rows[1]["high"]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: theory.epsilon_state(RELU, 3, 0.0), "n must be at least 4 at epsilon 0"),
        (lambda: theory.epsilon_state(RELU, 8, -1.0), "epsilon must be at least 0 and finite, got -1.0"),
        (lambda: theory.epsilon_state(RELU, 8, math.nan), "epsilon must be at least 0"),
        (lambda: theory.epsilon_state(RELU, 8, 0.1, 0.0), "weight_variance must be positive"),
        (lambda: theory.epsilon_state(RELU, 1, 0.1), "n must be a whole batch size of at least 2, got 1"),
        (lambda: theory.critical_epsilon(activation("tanh"), 8), "degree one, got tanh"),
        (lambda: theory.scaled(RELU, 0.0), "gain must be positive and finite, got 0.0"),
        (lambda: theory.parsed_activation("tanh x"), "name must end in a number"),
        (lambda: theory.parsed_activation("sigh"), "activation is 'sigh'; valid are"),
        (lambda: theory.tail_index(2), "at least 3, got 2"),
        (lambda: theory.growth_per_width_doubling(RELU, 4), "n must be 3"),
        (lambda: theory.neuron_factors(RELU, 8, 0, np.random.default_rng(0)), "draws must be at least 1"),
        (lambda: theory.independent_growth(RELU, 8, 0, 1, 1, np.random.default_rng(0)), "at least 1, got 0, 1 and 1"),
        (
            lambda: theory.sample_mean_convergence(RELU, 4, (10,), 20, np.random.default_rng(0)),
            "draws must be at least four times the largest size 10, got 20",
        ),
    ],
)
def test_messages(call, message):
    with pytest.raises(ValueError, match=message):
        call()
