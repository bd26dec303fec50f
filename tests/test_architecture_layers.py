"""Layers of every architecture: stages against naive loops, cheap draws against dense weights, in law."""

import math

import numpy as np
import pytest
import torch

from bnlib.architecture_layers import activate, layer, linear, neighborhoods, stage, stages
from bnlib.architectures import Architecture, nonlinearity


def stream(seed=0):
    return torch.Generator().manual_seed(seed)


def gaussian(*shape, seed=0):
    return torch.randn(*shape, generator=stream(seed), dtype=torch.float64)


@pytest.mark.parametrize(
    "name", ["relu", "leaky:0.3", "leaky:-0.7", "gelu", "silu", "tanh", "abs", "square", "identity"]
)
def test_activations_agree_with_the_numpy_ones(name):
    x = gaussian(50)
    assert np.allclose(activate(x, name).numpy(), nonlinearity(name)(x.numpy()), atol=1e-14)


def test_an_unknown_activation():
    with pytest.raises(ValueError, match="valid are relu"):
        activate(torch.zeros(1), "swish")


LAYOUTS = {"dense": (2, 5, 1, 7), "convolution": (2, 3, 9, 4), "attention": (2, 3, 4, 5)}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("token", ["RC", "RS", "RMS", "STD", "LN", "RN"])
@pytest.mark.parametrize("epsilon", [0.0, 0.7])
def test_stages_against_loops(layout, token, epsilon, seed):
    h = gaussian(*LAYOUTS[layout], seed=seed) + 1.0
    spec = Architecture(layout=layout, stages="LN+NL", epsilon=epsilon, residual=1.0)
    found = stage(h, token, spec)
    draws, n, p, d = h.shape
    for b in range(draws):
        if token in ("LN", "RN"):
            groups = [(i, j) for i in range(n) for j in range(p)] if layout == "attention" else [(i,) for i in range(n)]
            pairs = [(h[b][g], found[b][g]) for g in groups]
        else:
            pairs = [(h[b, :, :, k], found[b, :, :, k]) for k in range(d)]
        for before, after in pairs:
            mean = before.mean()
            wanted = {
                "RC": before - mean,
                "RS": before / (before.square().mean() + epsilon).sqrt(),
                "RMS": before / (before.square().mean() + epsilon).sqrt(),
                "RN": before / (before.square().mean() + epsilon).sqrt(),
                "STD": before / ((before - mean).square().mean() + epsilon).sqrt(),
                "LN": (before - mean) / ((before - mean).square().mean() + epsilon).sqrt(),
            }[token]
            assert torch.allclose(after, wanted, atol=1e-12)


def test_a_column_without_scale_becomes_zero():
    h = torch.ones(1, 3, 1, 2, dtype=torch.float64)
    h[0, :, 0, 1] = torch.tensor([1.0, 2.0, 3.0])
    found = stages(h, Architecture.parse("RC+RS"), generator=stream())
    assert (found[..., 0] == 0).all()
    assert found.isfinite().all()


def test_neighborhoods_against_a_loop():
    x = gaussian(2, 3, 9, 2)
    found = neighborhoods(x).reshape(2, 3, 3, 3, 9, 2)
    image = x.reshape(2, 3, 3, 3, 2)
    for row in range(3):
        for column in range(3):
            wanted = [image[:, :, (row + a) % 3, (column + b) % 3] for a in (-1, 0, 1) for b in (-1, 0, 1)]
            assert torch.equal(found[:, :, row, column], torch.stack(wanted, dim=2))
    with pytest.raises(ValueError, match="8 places; valid is a square number"):
        neighborhoods(gaussian(1, 1, 8, 2))


def dense_product(x, width, kind, variance, seed):
    """Weights written down, entry by entry: the law that `linear` promises."""
    d = x.shape[-1]
    w = gaussian(len(x), d, width, seed=seed)
    if kind == "standardized":
        w = w - w.mean(dim=1, keepdim=True)
        return x @ (math.sqrt(variance) * w / w.norm(dim=1, keepdim=True))
    if kind == "orthogonal":
        q, r = torch.linalg.qr(w if d >= width else w.mT)
        q = q * r.diagonal(dim1=-2, dim2=-1).sign()[:, None, :]
        return math.sqrt(variance * max(d, width) / d) * (x @ (q if d >= width else q.mT))
    return math.sqrt(variance / d) * (x @ w)


def statistics(h):
    """Numbers of the product whose means tell the law: second and fourth moments, across rows and neurons."""
    first, second = h[:, 0], h[:, -1]
    return torch.stack(
        [
            h[:, :, 0].square().mean(dim=1),
            (first * second).sum(dim=-1),
            first.square().sum(dim=-1).square(),
            (first[:, 0] * first[:, 1] * second[:, 0] * second[:, 1]),
            h[:, 0, 0] ** 4,
        ]
    )


def far_apart(one, other):
    """Largest difference of the means, in standard errors."""
    a, b = statistics(one), statistics(other)
    error = (a.var(dim=1) / a.shape[1] + b.var(dim=1) / b.shape[1]).sqrt()
    return float(((a.mean(dim=1) - b.mean(dim=1)).abs() / (error + 1e-12 * b.mean(dim=1).abs())).max())


@pytest.mark.parametrize("kind", ["gaussian", "orthogonal", "standardized"])
@pytest.mark.parametrize(("rows", "d", "width"), [(3, 6, 6), (4, 12, 12), (8, 6, 6), (3, 6, 4), (3, 5, 8), (5, 6, 6)])
def test_cheap_draws_have_the_law_of_written_weights(kind, rows, d, width, seed):
    x = gaussian(rows, d, seed=7).expand(6000, rows, d)
    found = linear(x, width, generator=stream(seed), weights=kind, weight_variance=1.5)
    assert found.shape == (6000, rows, width)
    assert far_apart(found, dense_product(x, width, kind, 1.5, seed + 1000)) < 5
    wrong = {"gaussian": "standardized", "orthogonal": "gaussian", "standardized": "gaussian"}[kind]
    assert far_apart(found, dense_product(x, width, wrong, 1.5, seed + 1000)) > 5


def test_exact_properties_of_the_weights(seed):
    eye = torch.eye(6, dtype=torch.float64)[None]
    w = linear(eye, 6, generator=stream(seed), weights="standardized", weight_variance=2.0)[0]
    assert torch.allclose(w.sum(dim=0), torch.zeros(6, dtype=torch.float64), atol=1e-12)
    assert torch.allclose(w.square().sum(dim=0), torch.full((6,), 2.0, dtype=torch.float64))
    w = linear(eye, 6, generator=stream(seed), weights="orthogonal", weight_variance=2.0)[0]
    assert torch.allclose(w @ w.mT, 2 * eye[0], atol=1e-12)
    with pytest.raises(ValueError, match="valid are gaussian, orthogonal and standardized"):
        linear(eye, 6, generator=stream(), weights="sparse")


@pytest.mark.parametrize("line", ["RC+NL", "RC+NL weights=orthogonal", "convolution RC+NL", "RC+NL bias=3"])
def test_recentering_first_is_recentering(line, seed):
    spec = Architecture.parse(line.replace("+NL", ""))
    x = gaussian(2, 4, 9 if spec.layout == "convolution" else 1, 8, seed=seed)
    h = layer(x, spec, 8, generator=stream(seed))
    assert torch.allclose(h.mean(dim=(1, 2)), torch.zeros(2, 8, dtype=torch.float64), atol=1e-12)


@pytest.mark.parametrize(
    ("line", "degree"),
    [("RC+NL", 1), ("NL activation=square", 2), ("LN+NL", 0), ("convolution RC+RS+NL", 0), ("RC+NL residual=0.3", 1)],
)
@pytest.mark.parametrize("scale", [1e-90, 1e90])
def test_homogeneity_at_any_scale(line, degree, scale):
    spec = Architecture.parse(line)
    assert spec.degree == degree
    x = gaussian(2, 3, 9 if spec.layout == "convolution" else 1, 6)
    one, other = (layer(factor * x, spec, 6, generator=stream(3)) for factor in (1.0, scale))
    assert torch.allclose(other / scale**degree, one, rtol=1e-9)


def test_blocks_with_skip_connections(seed):
    x = gaussian(2, 3, 1, 6, seed=seed)
    small = layer(x, Architecture.parse("RC+NL residual=1e-9"), 6, generator=stream())
    assert torch.allclose(small, x, atol=1e-7)
    assert not torch.equal(small, x)
    with pytest.raises(ValueError, match="valid beside a skip connection is width, 5"):
        layer(x, Architecture.parse("RC+NL residual=1"), 5, generator=stream())


def test_attention_blocks(seed):
    x = gaussian(2, 3, 4, 8, seed=seed)
    before = layer(x, Architecture.parse("attention LN+NL residual=1"), 8, generator=stream(seed))
    assert before.shape == x.shape
    small = layer(x, Architecture.parse("attention LN+NL residual=1e-9"), 8, generator=stream(seed))
    assert torch.allclose(small, x, atol=1e-7)
    after = layer(x, Architecture.parse("attention NL+LN residual=1"), 8, generator=stream(seed))
    assert torch.allclose(after.square().mean(dim=-1), torch.ones(2, 3, 4, dtype=torch.float64))
    # Without a norm over the batch a sample does not see its companions; with one it does.
    for line, alone in (("attention LN+NL residual=1", True), ("attention RC+NL residual=1", False)):
        spec = Architecture.parse(line)
        changed = torch.cat([x[:, :2], x[:, 2:] + 1.0], dim=1)
        pair = [layer(batch, spec, 8, generator=stream(5)) for batch in (x, changed)]
        assert torch.allclose(pair[0][:, :2], pair[1][:, :2]) == alone


def test_shift_factor_and_dropout(seed):
    h = gaussian(3, 4, 1, 5000, seed=seed)
    spec = Architecture.parse("RC gamma=3")
    assert torch.allclose(stages(h, spec, generator=stream()), 3 * stage(h, "RC", spec))
    shifted = stages(h, Architecture.parse("RC beta=0.5"), generator=stream(seed)) - stage(h, "RC", spec)
    assert torch.allclose(shifted, shifted[:, :1].expand_as(shifted))  # one number a neuron
    assert float(shifted[:, 0].square().mean()) == pytest.approx(0.25, rel=0.1)
    dropped = stages(h, Architecture.parse("none dropout=0.2"), generator=stream(seed))
    kept = dropped != 0
    assert torch.allclose(dropped[kept], h[kept] / 0.8)
    error = math.sqrt(0.2 * 0.8 / h.numel())
    assert abs(float(kept.double().mean()) - 0.8) < 5 * error
    assert abs(float(kept.double().mean()) - 0.85) > 5 * error
