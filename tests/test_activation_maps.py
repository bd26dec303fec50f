"""Infinite width: kernels against quadrature and closed forms, stages against matrices, layers against networks."""

import math

import numpy as np
import pytest
import torch

from bnlib.activation_maps import (
    ClassGram,
    activation_kernel,
    activation_mean,
    applies,
    limit_gram,
    near_symmetric,
    next_gram,
    with_outlier,
)
from bnlib.architecture_layers import layer
from bnlib.architectures import Architecture, nonlinearity
from bnlib.leaky import leaky_cosine, outlier_state

NAMES = ["relu", "leaky:0.3", "leaky:-0.6", "abs", "square", "identity", "gelu", "silu", "tanh"]
SIGMAS = [(1.0, 1.0, 0.3), (1.0, 1.0, -0.8), (2.0, 0.5, 0.6), (0.1, 3.0, 0.2), (1.5, 1.5, 1.5)]


def reference(phi, p, q, r, nodes=4000):
    """E phi(u) phi(v): outer integral over u, inner one over v given u; kinks lie on the borders of cells."""
    z = (np.arange(nodes) + 0.5) / nodes * 18 - 9
    w = np.exp(-z * z / 2) * 18 / nodes / math.sqrt(2 * math.pi)
    rest = max(q - r * r / p, 0.0)
    u = math.sqrt(p) * z[::20]
    outer = np.exp(-(z[::20] ** 2) / 2)
    outer /= outer.sum()
    inner = phi(r / p * u[:, None] + math.sqrt(rest) * z[None, :]) @ w
    return float(outer @ (phi(u) * inner))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("p", "q", "r"), SIGMAS)
def test_kernels_against_quadrature(name, p, q, r):
    phi = nonlinearity(name)
    assert activation_kernel(name, p, q, r) == pytest.approx(reference(phi, p, q, r), rel=2e-3, abs=2e-4)


@pytest.mark.parametrize("slope", [0.0, 0.3, -0.6, 0.99])
def test_leaky_kernels_against_the_cosine_map(slope):
    for c in (-1.0, -0.4, 0.0, 0.7, 1.0):
        wanted = (1 + slope**2) / 2 * math.sqrt(6) * leaky_cosine(c, slope)
        assert activation_kernel(f"leaky:{slope}", 2, 3, c * math.sqrt(6)) == pytest.approx(wanted, abs=1e-12)


def test_gelu_between_its_limits():
    for c in (-0.5, 0.2, 1.0):
        large = activation_kernel("gelu", 1e12, 1e12, c * 1e12) / 1e12
        assert large == pytest.approx(activation_kernel("relu", 1, 1, c), rel=1e-5)
        small = activation_kernel("gelu", 1e-12, 1e-12, c * 1e-12) / 1e-12
        assert small == pytest.approx(c / 4, rel=1e-5)
    assert activation_kernel("gelu", 1.3, 0.4, 0.5) == activation_kernel("gelu", 0.4, 1.3, 0.5)


def test_silu_where_it_is_taken_for_relu():
    """The two sides of the switch differ by little, and by a small power of the width of the kink."""
    below, above = (activation_kernel("silu", s * s, s * s, 0.3 * s * s) / s**2 for s in (11.9, 12.1))
    assert abs(below / above - 1) < 0.02


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("variance", [0.0, 0.2, 1.0, 5.0])
def test_means(name, variance):
    z = np.linspace(-9, 9, 20001)
    w = np.exp(-z * z / 2)
    wanted = float(nonlinearity(name)(math.sqrt(variance) * z) @ w / w.sum())
    assert activation_mean(name, variance) == pytest.approx(wanted, abs=1e-6)


def rows_of(k, n, width, generator):
    """A batch with these inner products and means, per neuron, exactly."""
    gram = torch.from_numpy(k.matrix(n))
    root = torch.linalg.cholesky(gram)
    q = torch.linalg.qr(torch.randn(width, n + 1, generator=generator, dtype=torch.float64)).Q
    ones = torch.ones(width, dtype=torch.float64) / math.sqrt(width)
    q = torch.linalg.qr(torch.cat([ones[:, None], q], dim=1)).Q[:, 1 : n + 1]  # orthogonal to the ones: means are zero
    return root @ q.mT * math.sqrt(width)


@pytest.mark.parametrize(
    "line",
    [
        "NL",
        "RC+NL activation=gelu",
        "RC+NL activation=silu",
        "NL activation=tanh",
        "NL+RC activation=leaky:0.3",
        "LN+NL",
        "RN+NL activation=gelu",
        "NL+LN",
        "NL+RN epsilon=0.5",
        "LN+NL epsilon=0.5 gamma=0.7 beta=0.4",
        "RC+NL beta=0.3 gamma=2",
        "NL bias=0.5",
        "RC+NL bias=0.5",
        "NL dropout=0.3",
        "RC+NL residual=0.6",
        "NL weights=standardized",
        "NL weights=standardized residual=0.5",
        "NL activation=square",
        "NL weight_variance=0.7 activation=abs",
    ],
)
def test_layers_against_wide_networks(line, seed):
    """Two layers, so that means over the neurons matter: every entry within 5 standard errors, a wrong n is not."""
    n, width, draws = 4, 400, 60
    spec = Architecture.parse(line)
    start = ClassGram(2.0, 1.0, 0.3, 0.1)
    generator = torch.Generator().manual_seed(seed)
    x = rows_of(start, n, width, generator)[None, :, None, :].expand(draws, n, 1, width)
    for _ in range(2):
        x = layer(x, spec, width, generator=generator)
    flat = x.flatten(2)
    gram = flat @ flat.mT / width
    measured = torch.stack(
        [gram[:, 0, 0], gram[:, 1, 1], gram[:, 1, 2], gram[:, 0, 1], flat[:, 0].mean(dim=-1), flat[:, 1].mean(dim=-1)]
    )
    error = measured.std(dim=1) / math.sqrt(draws)
    k = next_gram(next_gram(start, n, spec), n, spec)
    wanted = torch.tensor([k.odd, k.own, k.pair, k.cross, k.odd_mean, k.mean], dtype=torch.float64)
    # Finite width moves the mean by a relative order 1/width as well.
    allowed = 5 * error + 6 / width * wanted.abs().clamp(min=float(wanted[:2].abs().max()) / 4)
    assert ((measured.mean(dim=1) - wanted).abs() <= allowed).all(), (measured.mean(dim=1), wanted, error)
    wrong = next_gram(next_gram(ClassGram(1.0, 2.0, 0.3, 0.1), n, spec), n, spec)
    other = torch.tensor([wrong.odd, wrong.own, wrong.pair, wrong.cross], dtype=torch.float64)
    if not {"LN", "RN"} & set(spec.tokens):  # these take the difference away
        assert ((measured[:4].mean(dim=1) - other).abs() > allowed[:4]).any()


@pytest.mark.parametrize("slope", [0.0, 0.4, -0.5])
def test_the_outlier_state_is_found_again(slope):
    found = limit_gram(with_outlier(16), 16, Architecture.parse(f"RC+NL activation=leaky:{slope}"), layers=3000)
    state = outlier_state(16, slope)
    assert math.sqrt(found.odd / found.own) == pytest.approx(state.norm_ratio, rel=1e-5)
    assert found.pair / found.own == pytest.approx(math.cos(state.cluster_angle), rel=1e-5)
    if slope == 0.0:
        small = limit_gram(with_outlier(6), 6, Architecture.parse("RC+NL"), layers=3000)
        assert math.sqrt(small.odd / small.own) == pytest.approx(1.0, abs=1e-3)  # none for n <= 6


def test_a_symmetric_batch_stays_symmetric():
    for line in ("RC+NL activation=gelu weight_variance=3", "NL activation=tanh", "LN+NL residual=1"):
        k = next_gram(near_symmetric(0.0), 8, Architecture.parse(line))
        assert k.odd == pytest.approx(k.own, rel=1e-12)
        assert k.cross == pytest.approx(k.pair, rel=1e-9)


def test_scales_out_of_range_are_put_back():
    for variance in (0.1, 50.0):
        spec = Architecture.parse(f"RC+NL activation=gelu weight_variance={variance}")
        k = limit_gram(near_symmetric(), 8, spec, layers=1500)
        assert 0 < k.own < math.inf


def test_recentering_is_the_matrix_product():
    n, k = 7, ClassGram(3.0, 1.2, 0.4, -0.2, 0.5, 0.1)
    g = np.eye(n) - 1 / n
    found = next_gram(k, n, Architecture.parse("RC weight_variance=1"))
    assert np.allclose(found.matrix(n), g @ k.matrix(n) @ g)


def test_where_it_applies():
    for line in ("RC+RS+NL", "RMS+NL", "RC+NL weights=orthogonal", "convolution RC+NL", "attention LN+NL residual=1"):
        spec = Architecture.parse(line)
        assert not applies(spec)
        with pytest.raises(ValueError, match="valid is a dense architecture"):
            next_gram(near_symmetric(), 8, spec)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: activation_kernel("swish", 1, 1, 0), "valid are relu"),
        (lambda: activation_kernel("relu", -1, 1, 0), "valid are finite variances"),
        (lambda: activation_kernel("relu", 1, 1, 2), "valid is a covariance of at most 1.0"),
        (lambda: activation_mean("relu", -1), "valid is a finite number from 0 on"),
        (lambda: next_gram(near_symmetric(), 2, Architecture()), "at least 3"),
        (lambda: next_gram(near_symmetric(), 4.5, Architecture()), "whole batch size"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
