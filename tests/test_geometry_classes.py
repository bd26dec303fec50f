"""Classes of geometry: against a naive reference, on batches whose class is plain, at degenerate ones, and in words."""

import math

import numpy as np
import pytest
import torch

from bnlib.geometry_classes import (
    BROKEN,
    CLASSES,
    COLLAPSE,
    LINE,
    OUTLIER,
    SYMMETRIC,
    Rule,
    classify,
    settled_from,
    shape_of,
)
from bnlib.outlier_states import outlier_state
from bnlib.records import load_claims


def gaussian(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


def of(x):
    return shape_of(x @ x.mT)


def word(x, rule=None):
    return CLASSES[classify(of(x), rule)]


def naive(x):
    """Straight from the definitions, one batch."""
    n = len(x)
    angle = [
        math.acos(max(-1.0, min(1.0, float(x[i] @ x[j] / (x[i].norm() * x[j].norm())))))
        for i in range(n)
        for j in range(i)
    ]
    center = x.mean(dim=0)
    odd = max(range(n), key=lambda i: float((x[i] - center).norm()))
    others = torch.stack([x[i] for i in range(n) if i != odd])
    nu = others.mean(dim=0)
    within = (others - nu).norm(dim=1)
    far = float((x[odd] - nu).norm())
    norms = x.norm(dim=1)
    return {
        "smallest_angle": min(angle),
        "mean_angle": sum(angle) / len(angle),
        "largest_angle": max(angle),
        "line_angle": max(min(a, math.pi - a) for a in angle),
        "norm_spread": float(norms.max() / norms.min()),
        "index": odd,
        "separation": far / float(within.square().mean().sqrt()),
        "lead": far / float(within.max()),
        "odd_angle": math.acos(float(x[odd] @ nu / (x[odd].norm() * nu.norm()))),
    }


@pytest.mark.parametrize("n", [3, 4, 9])
def test_against_the_definitions(n, seed):
    x = gaussian(5, n, 6, seed=seed)
    found = of(x)
    for draw in range(5):
        for name, value in naive(x[draw]).items():
            assert float(getattr(found, name)[draw]) == pytest.approx(value, rel=1e-9, abs=1e-9), name


@pytest.mark.parametrize("n", [3, 4, 8, 64])
def test_equal_distances_have_the_separation_of_the_formula(n):
    assert float(of(torch.eye(n, dtype=torch.float64)).separation) ** 2 == pytest.approx(n / (n - 2))


@pytest.mark.parametrize("n", [8, 16, 32])
def test_the_outlier_state_of_infinite_width(n):
    """Its separation from the state's angles and norms, and its class."""
    state = outlier_state(n)
    cosine, top = math.cos(state.cluster_angle), state.top_over_second
    mean_square = 1 - (1 - cosine) * (n - 2) / (n - 1)
    cross = math.cos(state.angle) * top * math.sqrt(mean_square)
    gram = torch.full((n, n), cosine, dtype=torch.float64)
    gram.fill_diagonal_(1.0)
    gram[0, :] = gram[:, 0] = cross
    gram[0, 0] = top**2
    found = shape_of(gram)
    far = top**2 - 2 * cross + mean_square
    assert float(found.separation) == pytest.approx(math.sqrt(far / (1 - mean_square)), rel=1e-9)
    assert float(found.odd_angle) == pytest.approx(state.angle, rel=1e-9)
    assert classify(found) == OUTLIER
    # A common shift moves no distance: an activation that adds one leaves separation and class alone.
    shifted = shape_of(gram + 5.0)
    assert float(shifted.separation) == pytest.approx(float(found.separation), rel=1e-9)
    assert classify(shifted) == OUTLIER


def test_plain_batches_have_plain_classes(seed):
    d = 400
    assert word(gaussian(8, d, seed=seed)) == "symmetric"
    ray = gaussian(1, d, seed=seed) * torch.linspace(1, 3, 8, dtype=torch.float64)[:, None]
    assert word(ray + 1e-3 * gaussian(8, d, seed=seed + 1)) == "collapse"
    signs = torch.tensor([1.0, -1, 1.2, -1.1, 1.3, -0.9, 0.8, -1.2], dtype=torch.float64)[:, None]
    assert word(gaussian(1, d, seed=seed) * signs + 1e-3 * gaussian(8, d, seed=seed + 1)) == "line"
    cluster = gaussian(1, d, seed=seed) + 0.3 * gaussian(8, d, seed=seed + 1)
    cluster[3] = 9 * gaussian(d, seed=seed + 2)
    assert word(cluster) == "outlier"
    assert int(of(cluster).index) == 3
    cluster[5] = 8 * gaussian(d, seed=seed + 3)
    assert word(cluster) == "other"  # two that stand out are not one


def test_scale_and_order_do_not_matter(seed):
    x = gaussian(6, 8, 5, seed=seed) * torch.logspace(0, 2, 6, dtype=torch.float64)[:, None, None]
    found = classify(of(x))
    gram = x @ x.mT
    assert classify(shape_of(gram * 1e-30)).equal(found)
    order = torch.randperm(8, generator=torch.Generator().manual_seed(seed))
    assert classify(of(x[:, order])).equal(found)


def test_degenerate_batches():
    ones = torch.ones(4, 3, dtype=torch.float64)
    assert classify(of(ones)) == COLLAPSE  # nobody is odd where all coincide
    one = torch.zeros(4, 3, dtype=torch.float64)
    one[2] = 1.0
    found = of(one)  # all but one are zero: an outlier beside coinciding others, whose directions do not exist
    assert classify(found) == OUTLIER
    assert math.isinf(float(found.separation))
    assert math.isnan(float(found.mean_angle))
    assert classify(of(torch.zeros(4, 3, dtype=torch.float64))) == BROKEN
    bad = torch.eye(4, dtype=torch.float64)
    bad[0, 0] = math.nan
    assert classify(shape_of(bad)) == BROKEN
    bad[0, 0] = math.inf
    assert classify(shape_of(bad)) == BROKEN
    opposite = torch.tensor([[1.0], [-1.0], [1.0], [-1.0]], dtype=torch.float64)
    assert classify(of(opposite)) == LINE


def test_every_number_of_the_rule_matters():
    x = torch.eye(8, dtype=torch.float64)
    assert classify(of(x)) == SYMMETRIC
    assert word(x, Rule(separation=1.1)) == "other"  # its separation is 1.15, its lead below 2
    assert word(x, Rule(separation=1.1, lead=1.01)) == "outlier"
    uneven = x.clone()
    uneven[1] *= 0.5
    assert word(uneven, Rule(norm_spread=1.5)) == "other"
    assert word(uneven, Rule(norm_spread=2.5)) == "symmetric"
    near = x.clone()
    near[1] = near[0] + 0.1 * near[1]
    assert word(near, Rule(least_angle=0.5)) == "other"
    assert word(near, Rule(least_angle=0.01)) == "symmetric"
    assert word(1 + 0.2 * x, Rule(collapse_deg=20.0)) == "collapse"
    assert word(1 + 0.2 * x, Rule(collapse_deg=1.0)) == "symmetric"


def test_the_books_rule_is_the_default():
    assert Rule.of_claim(load_claims()["three-words"]) == Rule()


def test_settled_against_a_loop(seed):
    table = np.random.default_rng(seed).integers(0, 2, size=(7, 40))
    for draw, first in enumerate(settled_from(table)):
        column = table[:, draw]
        assert all(column[first - 1 :] == column[-1])
        assert first == 1 or column[first - 2] != column[-1]


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: shape_of(torch.eye(2)), "n >= 3"),
        (lambda: shape_of(torch.ones(3, 4)), "valid is a Gram matrix"),
        (lambda: settled_from(np.zeros((0, 3), dtype=int)), "valid is at least one"),
        (lambda: Rule(collapse_deg=0), "between 0 and 90 degrees"),
        (lambda: Rule(separation=math.inf), "valid are positive numbers"),
        (lambda: Rule(lead=0), "valid are positive numbers"),
        (lambda: Rule(least_angle=1.5), "a share of the mean angle"),
        (lambda: Rule(norm_spread=0.5), "a ratio of norms"),
        (lambda: Rule.of_claim({}), "valid is a mapping of collapse_deg"),
        (lambda: Rule.of_claim({"thresholds": {"separation": 3}}), "valid is a mapping of collapse_deg"),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ValueError, match=message):
        call()
