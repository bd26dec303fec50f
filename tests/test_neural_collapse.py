"""Neural collapse: naive reference, exact simplex, invariances, balanced batches, a run."""

import math

import numpy as np
import pytest
import torch

from bnlib.data import symmetric_batch
from bnlib.neural_collapse import CollapseSpec, balanced, class_means, collapse, run_collapse


def naive(h, labels, classes):
    """All four measures by plain numpy for one network."""
    h, labels = h.numpy(), labels.numpy()
    means = np.array([h[labels == k].mean(axis=0) for k in range(classes)])
    centered = means - means.mean(axis=0)
    within = np.mean([np.outer(row, row) for row in h - means[labels]], axis=0)
    between = centered.T @ centered / classes
    norms = np.linalg.norm(centered, axis=1)
    cosines = [
        centered[a] @ centered[b] / norms[a] / norms[b] for a in range(classes) for b in range(classes) if a != b
    ]
    gap = np.mean([abs(c + 1 / (classes - 1)) for c in cosines])
    nc1 = np.trace(within @ np.linalg.pinv(between, rcond=1e-12)) / classes
    return nc1, norms.std() / norms.mean(), np.mean(cosines), gap


def test_against_the_naive_reference(generator):
    h = torch.randn(3, 20, 12, generator=generator, dtype=torch.float64)
    labels = (torch.arange(20) % 5).expand(3, 20)
    found = collapse(h, labels, 5)
    for network in range(3):
        expected = naive(h[network], labels[network], 5)
        assert [one[network].item() for one in found] == pytest.approx(expected, rel=1e-8)


def test_simplex_with_little_noise(generator):
    means = symmetric_batch(6, 20, cosine=-1 / 5, generator=generator)
    labels = torch.arange(24) % 6
    h = means[labels] + 1e-4 * torch.randn(24, 20, generator=generator, dtype=torch.float64)
    found = collapse(3 + h[None], labels[None], 6)
    assert found.within.item() < 1e-5
    assert found.norm_spread.item() < 1e-3
    assert found.simplex_gap.item() < 1e-3
    # Means on a line are as far from the simplex as Definition 12's outlier puts them.
    line = torch.zeros(1, 24, 20, dtype=torch.float64)
    line[0, labels == 0, 0] = 1
    line += 1e-9 * torch.randn(1, 24, 20, generator=generator, dtype=torch.float64)
    gap = collapse(line, labels[None], 6).simplex_gap.item()
    assert gap == pytest.approx((6 - 2) * (6 + 2) / (6 * 5), abs=1e-5)


def test_scale_shift_and_rotation_change_nothing(generator):
    h = torch.randn(1, 12, 8, generator=generator, dtype=torch.float64)
    labels = (torch.arange(12) % 3)[None]
    turn = torch.linalg.qr(torch.randn(8, 8, generator=generator, dtype=torch.float64)).Q
    for one, two in zip(collapse(h, labels, 3), collapse(7 * h @ turn + 5, labels, 3), strict=True):
        torch.testing.assert_close(one, two)


def test_mean_cosine_is_no_evidence(generator):
    # Centered means of equal norm: a square in the plane has the mean cosine -1/3, and is no simplex.
    square = torch.tensor([[1.0, 0], [0, 1], [-1, 0], [0, -1]], dtype=torch.float64)
    found = collapse(square.repeat(2, 1)[None], (torch.arange(8) % 4)[None], 4)
    assert found.cosine.item() == pytest.approx(-1 / 3)
    assert found.simplex_gap.item() == pytest.approx(4 / 9)


def test_balanced(generator):
    labels = torch.randint(10, (500,), generator=generator)
    which = balanced(labels, 3, networks=4, generator=generator)
    assert which.shape == (4, 30)
    assert (labels[which] == torch.arange(10).repeat_interleave(3)).all()
    assert all(len(set(row.tolist())) == 30 for row in which)
    with pytest.raises(ValueError, match="per_class is 3, but class 7 has 0 samples"):
        balanced(torch.tensor([0, 1, 2, 3, 4, 5, 6] * 3), 3, networks=1, generator=generator)


def test_run(seed):
    spec = CollapseSpec("small", stages="RC+RS+NL", depth=2, width=32, steps=60, networks=3, seed=seed)
    found = run_collapse(spec)
    assert found["rows"][0]["step"] == 0
    assert found["rows"][-1]["step"] == 60
    assert found["diverged"] == 0
    assert found["rows"][-1]["within"] < found["rows"][0]["within"]
    assert found == run_collapse(spec)
    bad = run_collapse(CollapseSpec("bad", stages="NL", depth=2, width=8, steps=40, networks=2, learning_rate=1e6))
    assert bad["diverged"] == 2
    assert bad["rows"][-1]["within"] is None
    assert bad["end"]["within"] == [None, None]


def test_errors(unchecked):
    labels = torch.tensor([[0, 0, 1]])
    with pytest.raises(ValueError, match="labels hold classes of different sizes"):
        collapse(torch.zeros(1, 3, 2), labels, 2)
    assert math.isnan(class_means(torch.zeros(1, 3, 2), labels, 3)[0, 2, 0])
    with pytest.raises(ValueError, match=r"data must be one of random labels, digits, mnist.*got 'gaussian'"):
        CollapseSpec("x", data="gaussian")
    with pytest.raises(ValueError, match="stages contain 'XX'"):
        CollapseSpec("x", stages="XX")
