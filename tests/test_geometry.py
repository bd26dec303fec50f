"""Geometry against loops in plain arithmetic and fifty-digit arithmetic, known values, and degenerate batches."""

import itertools
import math

import mpmath
import pytest
import torch

from bnlib import geometry as geo

PI = math.pi


def batch(generator, *shape, scale=1.0):
    return torch.randn(shape, generator=generator, dtype=torch.float64) * scale


def exact_angle(u, v):
    """The angle between two lists of floats, in fifty digits."""
    with mpmath.workdps(50):
        u, v = [mpmath.mpf(a) for a in u], [mpmath.mpf(b) for b in v]
        inner = mpmath.fdot(u, v)
        sine_square = mpmath.fdot(u, u) * mpmath.fdot(v, v) - inner**2
        return float(mpmath.atan2(mpmath.sqrt(max(sine_square, 0)), inner))


# --- angles -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("n", "d"), [(2, 1), (2, 3), (5, 4), (9, 30)])
def test_pairwise_angles_equal_fifty_digits(generator, n, d):
    x = batch(generator, n, d)
    angles = geo.pairwise_angles(x)
    for i, j in itertools.product(range(n), repeat=2):
        expected = 0.0 if i == j else exact_angle(x[i].tolist(), x[j].tolist())
        assert angles[i, j].item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize("small", [1e-2, 1e-3, 1e-5, 1e-7, 1e-9, 1e-12])
@pytest.mark.parametrize("opposite", [False, True])
def test_angles_near_the_ends_keep_their_digits(generator, small, opposite):
    direction, across = batch(generator, 2, 40)
    partner = direction * 3.7 + across * small
    x = torch.stack([direction, -partner if opposite else partner, across])
    measured = geo.pairwise_angles(x)[0, 1].item()
    expected = exact_angle(direction.tolist(), partner.tolist())
    if opposite:
        # The distance from pi is what survives in float64, to one unit in the last place of pi.
        assert PI - measured == pytest.approx(expected, rel=1e-6, abs=1e-15)
    else:
        assert measured == pytest.approx(expected, rel=1e-3 if small < 1e-10 else 1e-6)
        # The textbook formula is the wrong variant: it is off where this test is strict.
        unit = x / x.norm(dim=-1, keepdim=True)
        textbook = torch.arccos((unit[0] @ unit[1]).clamp(-1, 1)).item()
        if small <= 1e-9:
            assert abs(textbook / expected - 1) > 1e-3


def test_tied_samples_have_angle_zero_and_opposite_ones_pi(generator):
    x = batch(generator, 3, 7)
    x = torch.cat([x, x[:1], -x[:1] * 2, x[:1] * 1024])
    angles = geo.pairwise_angles(x)
    assert angles[0, 3].item() == 0
    assert angles[0, 5].item() == 0
    assert angles[0, 4].item() == pytest.approx(PI, abs=1e-15)


def test_angles_with_a_given_gram_are_the_same(generator):
    x = batch(generator, 4, 6, 20)
    x[..., 1, :] = x[..., 0, :] * (1 + 1e-9) + batch(generator, 4, 20) * 1e-7
    torch.testing.assert_close(geo.pairwise_angles(x, gram=x @ x.mT), geo.pairwise_angles(x), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("scale", [1e-200, 1e-90, 1e90, 1e200])
def test_angles_ignore_the_scale_over_the_whole_number_range(generator, scale):
    x = batch(generator, 4, 10)
    torch.testing.assert_close(geo.pairwise_angles(x * scale), geo.pairwise_angles(x), rtol=1e-12, atol=1e-13)
    mixed = x * torch.tensor([scale, 1.0, 1.0, 2.0], dtype=torch.float64)[:, None]
    torch.testing.assert_close(geo.pairwise_angles(mixed), geo.pairwise_angles(x), rtol=1e-12, atol=1e-13)


def test_a_zero_sample_has_no_angle(generator):
    x = batch(generator, 4, 5)
    x[2] = 0
    nan = geo.pairwise_angles(x).isnan()
    expected = torch.zeros(4, 4, dtype=torch.bool)
    expected[2] = expected[:, 2] = True
    assert torch.equal(nan, expected)
    assert geo.mean_pairwise_angle(x).isnan()


def test_angles_in_float32_keep_their_dtype_and_small_angles(generator):
    x = batch(generator, 2, 30).float()
    x[1] = x[0] + 1e-4 * x[1]
    angles = geo.pairwise_angles(x)
    assert angles.dtype == torch.float32
    assert angles[0, 1].item() == pytest.approx(exact_angle(x[0].tolist(), x[1].tolist()), rel=1e-2)


def test_mean_pairwise_angle_is_the_mean_of_angles_not_the_angle_of_the_mean(generator):
    x = batch(generator, 6, 3)
    pairs = [exact_angle(x[i].tolist(), x[j].tolist()) for i, j in itertools.combinations(range(6), 2)]
    assert geo.mean_pairwise_angle(x).item() == pytest.approx(sum(pairs) / 15, rel=1e-12)
    wrong = math.acos(sum(map(math.cos, pairs)) / 15)
    assert abs(wrong - sum(pairs) / 15) > 1e-4


def test_many_close_pairs_are_gathered_in_parts(generator, monkeypatch):
    x = torch.ones(3, 6, 50, dtype=torch.float64) + 1e-8 * batch(generator, 3, 6, 50)
    whole = geo.pairwise_angles(x)
    monkeypatch.setattr(geo, "_GATHERED_ENTRIES", 120)
    assert torch.equal(geo.pairwise_angles(x), whole)
    assert whole[0, 0, 1].item() == pytest.approx(exact_angle(x[0, 0].tolist(), x[0, 1].tolist()), rel=1e-6)


def test_angle_between_draws(generator):
    u, v = batch(generator, 5, 8), batch(generator, 5, 8)
    expected = [exact_angle(a.tolist(), b.tolist()) for a, b in zip(u, v, strict=True)]
    assert geo.angle_between(u, v).tolist() == pytest.approx(expected, rel=1e-12)
    assert geo.angle_between(u, 0 * v).isnan().all()


# --- the outlier ------------------------------------------------------------------------------------------------


def naive_outlier(x):
    """Index, angle, norm ratio and top over second from lists."""
    rows = x.tolist()
    norms = [math.hypot(*row) for row in rows]
    index = max(range(len(rows)), key=norms.__getitem__)
    others = [row for i, row in enumerate(rows) if i != index]
    mean = [math.fsum(column) / len(others) for column in zip(*others, strict=True)]
    second = max(norm for i, norm in enumerate(norms) if i != index)
    return index, exact_angle(rows[index], mean), norms[index] / math.hypot(*mean), norms[index] / second


@pytest.mark.parametrize("n", [2, 3, 10])
def test_outlier_summary_equals_the_naive_one(generator, n):
    x = batch(generator, 4, n, 12) * torch.rand(4, n, 1, generator=generator, dtype=torch.float64)
    direct, from_gram = geo.outlier_summary(x), geo.outlier_summary_from_gram(x @ x.mT)
    for draw in range(4):
        expected = naive_outlier(x[draw])
        for summary in (direct, from_gram):
            assert summary.index[draw].item() == expected[0]
            assert summary.angle[draw].item() == pytest.approx(expected[1], rel=1e-9)
            assert summary.norm_ratio[draw].item() == pytest.approx(expected[2], rel=1e-9)
            assert summary.top_over_second[draw].item() == pytest.approx(expected[3], rel=1e-9)


def test_outlier_of_definition_12():
    n = 7
    x = torch.zeros(n, 3, dtype=torch.float64)
    x[4, 0] = 1
    x[[0, 1, 2, 3, 5, 6], 1] = 1 / (n - 1)
    summary = geo.outlier_summary(x)
    assert summary.index.item() == 4
    assert summary.angle.item() == pytest.approx(PI / 2, abs=1e-15)
    assert summary.norm_ratio.item() == pytest.approx(n - 1)
    assert summary.top_over_second.item() == pytest.approx(n - 1)
    assert geo.cluster_angle(x).item() == 0


def test_outlier_summary_is_scale_free_and_does_not_lose_a_small_cluster(generator):
    x = batch(generator, 5, 9)
    x[0] *= 1e12  # the mean of the others must not be formed by subtracting the outlier from the sum
    expected = naive_outlier(x)
    assert geo.outlier_summary(x).norm_ratio.item() == pytest.approx(expected[2], rel=1e-12)
    assert geo.outlier_summary(x).angle.item() == pytest.approx(expected[1], rel=1e-12)


def test_outlier_of_a_recentered_pair_is_opposite(generator):
    x = batch(generator, 1, 6)
    assert geo.outlier_summary(torch.cat([x, -x])).angle.item() == pytest.approx(PI)


def test_cluster_angle_leaves_the_largest_out(generator):
    x = batch(generator, 3, 5, 8)
    x[:, 3] *= 100
    rest = x[:, [0, 1, 2, 4]]
    torch.testing.assert_close(geo.cluster_angle(x), geo.mean_pairwise_angle(rest), rtol=1e-12, atol=0)
    torch.testing.assert_close(geo.cluster_angle(x, gram=x @ x.mT), geo.cluster_angle(x), rtol=1e-12, atol=0)
    assert (geo.cluster_angle(x) - geo.mean_pairwise_angle(x)).abs().max() > 1e-3


def test_collapsed_and_zero_batches_do_not_raise():
    collapsed = torch.ones(4, 5, dtype=torch.float64)
    summary = geo.outlier_summary(collapsed)
    assert (summary.angle.item(), summary.norm_ratio.item(), summary.top_over_second.item()) == (0, 1, 1)
    assert geo.mean_pairwise_angle(collapsed).item() == 0
    zero = torch.zeros(4, 5, dtype=torch.float64)
    assert geo.outlier_summary(zero).angle.isnan()
    assert geo.outlier_summary_from_gram(zero @ zero.mT).angle.isnan()
    assert geo.numerical_rank(zero, 1e-3).item() == 0
    assert geo.effective_rank(zero).isnan()
    assert geo.orthogonality_gap(zero).isnan()


# --- ranks and gaps ---------------------------------------------------------------------------------------------


def with_singular_values(generator, values, n=6, d=9):
    u = torch.linalg.qr(batch(generator, n, n)).Q
    v = torch.linalg.qr(batch(generator, d, n)).Q
    s = torch.zeros(n, dtype=torch.float64)
    s[: len(values)] = torch.tensor(values, dtype=torch.float64)
    return u @ torch.diag(s) @ v.T


def test_ranks_of_chosen_singular_values(generator):
    values = [3.0, 1.0, 0.5, 1e-4]
    x = with_singular_values(generator, values)
    assert [geo.numerical_rank(x, t).item() for t in (0.9, 0.2, 1e-3, 1e-5, 1e-10)] == [1, 2, 3, 4, 4]
    squares = [v * v for v in values]
    shares = [v / sum(values) for v in values]
    expected = {
        "participation": sum(squares) ** 2 / sum(v * v for v in squares),
        "participation_singular": sum(values) ** 2 / sum(squares),
        "entropy": math.exp(-sum(p * math.log(p) for p in shares)),
    }
    for kind, value in expected.items():
        assert geo.effective_rank(x, kind).item() == pytest.approx(value, rel=1e-9)
    assert geo.effective_rank(x, gram=x @ x.mT).item() == pytest.approx(expected["participation"], rel=1e-12)
    assert expected["participation"] < expected["participation_singular"] < expected["entropy"]


@pytest.mark.parametrize("kind", ["participation", "participation_singular", "entropy"])
def test_effective_rank_of_orthogonal_and_equal_samples(kind):
    assert geo.effective_rank(torch.eye(5, 8, dtype=torch.float64), kind).item() == pytest.approx(5)
    assert geo.effective_rank(torch.ones(5, 8, dtype=torch.float64), kind).item() == pytest.approx(1, abs=1e-6)


def test_gaps_at_both_ends(generator):
    n = 6
    frame = torch.linalg.qr(batch(generator, 9, n)).Q.T * 3
    assert geo.orthogonality_gap(frame).item() == pytest.approx(0, abs=1e-14)
    assert geo.isometry_gap(frame).item() == pytest.approx(0, abs=1e-14)
    collapsed = torch.ones(n, 9, dtype=torch.float64)
    assert geo.orthogonality_gap(collapsed).item() == pytest.approx(math.sqrt(1 - 1 / n), rel=1e-12)
    assert geo.isometry_gap(collapsed).item() == math.inf
    assert geo.isometry_gap(batch(generator, 9, 6)).item() == math.inf  # more samples than dimensions
    assert geo.isometry_gap(torch.zeros(2, 3)).item() == math.inf


def test_gaps_equal_their_definitions(generator):
    x = batch(generator, 5, 8)
    k = x @ x.mT
    expected = math.sqrt(
        sum(
            (k[i, j].item() / torch.trace(k).item() - (i == j) / 5) ** 2
            for i, j in itertools.product(range(5), repeat=2)
        )
    )
    assert geo.orthogonality_gap(x).item() == pytest.approx(expected, rel=1e-12)
    assert geo.orthogonality_gap(x, gram=k).item() == pytest.approx(expected, rel=1e-12)
    eigenvalues = torch.linalg.eigvalsh(k)
    expected = math.log(eigenvalues.mean()) - eigenvalues.log().mean().item()
    assert geo.isometry_gap(x).item() == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize("scale", [1e-70, 1e70])
def test_ranks_and_gaps_ignore_the_scale(generator, scale):
    x = batch(generator, 5, 8)
    for measure in (geo.effective_rank, geo.orthogonality_gap, geo.isometry_gap):
        assert measure(x * scale).item() == pytest.approx(measure(x).item(), rel=1e-10)
    assert geo.numerical_rank(x * scale, 1e-3).item() == 5


def test_rank_of_a_gaussian_batch_is_at_most_its_dimension(generator):
    assert geo.numerical_rank(batch(generator, 9, 4), 1e-10).item() == 4


# --- activities -------------------------------------------------------------------------------------------------


def test_shares():
    x = torch.tensor([[0.0, 2.0, 0.0, -1.0], [1.0, 1.0, 1.0, 1.0]], dtype=torch.float64)
    assert geo.active_fraction(x).tolist() == [0.25, 1.0]
    assert geo.energy_share(x).tolist() == pytest.approx([5 / 9, 4 / 9])
    assert geo.zero_fraction(x).tolist() == [0.5, 0.0]


def test_skewness_equals_its_definition_and_known_values(generator):
    x = batch(generator, 3, 50).exp()
    for row, value in zip(x.tolist(), geo.skewness(x).tolist(), strict=True):
        mean = math.fsum(row) / 50
        second = math.fsum((v - mean) ** 2 for v in row) / 50
        third = math.fsum((v - mean) ** 3 for v in row) / 50
        assert value == pytest.approx(third / second**1.5, rel=1e-10)
    assert geo.skewness(torch.tensor([0.0, 0.0, 0.0, 1.0], dtype=torch.float64)).item() == pytest.approx(2 / 3**0.5)
    assert geo.skewness(torch.full((4,), 0.1)).isnan()


def test_gram_is_exactly_symmetric(generator):
    k = geo.gram(batch(generator, 2, 33, 257))
    assert torch.equal(k, k.mT)


def test_leading_dimensions_are_independent_draws(generator):
    x = batch(generator, 2, 3, 5, 9)
    functions = [
        geo.gram,
        geo.pairwise_angles,
        geo.mean_pairwise_angle,
        geo.cluster_angle,
        geo.effective_rank,
        geo.orthogonality_gap,
        geo.isometry_gap,
        geo.active_fraction,
        geo.energy_share,
        lambda x: geo.numerical_rank(x, 0.5),
        lambda x: geo.outlier_summary(x).angle,
        lambda x: geo.outlier_summary(x).index,
        lambda x: geo.outlier_summary_from_gram(x @ x.mT).norm_ratio,
    ]
    for function in functions:
        together = function(x)
        for a, b in itertools.product(range(2), range(3)):
            torch.testing.assert_close(together[a, b], function(x[a, b]), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: geo.gram(torch.zeros(1, 3)), "x has 1 samples"),
        (lambda: geo.pairwise_angles(torch.zeros(3)), "x has 1 dimensions"),
        (lambda: geo.mean_pairwise_angle(torch.zeros(1, 3)), "x has 1 samples"),
        (lambda: geo.outlier_summary(torch.zeros(1, 3)), "x has 1 samples"),
        (lambda: geo.cluster_angle(torch.zeros(2, 3)), r"x has 2 samples .* n >= 3"),
        (lambda: geo.outlier_summary_from_gram(torch.zeros(2, 3)), r"k has shape \(2, 3\)"),
        (lambda: geo.numerical_rank(torch.zeros(2, 3), 1.0), r"relative_tolerance is 1.0; valid is a number in \[0"),
        (lambda: geo.numerical_rank(torch.zeros(2, 3), math.nan), "relative_tolerance is nan"),
        (lambda: geo.effective_rank(torch.eye(3), "stable"), 'kind must be "participation"'),
        (lambda: geo.isometry_gap(torch.zeros(1, 3)), "x has 1 samples"),
    ],
)
def test_bad_arguments_are_named(unchecked, call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU")
def test_gpu_agrees_with_cpu(generator):
    """Float64 on both; tolerance 1e-9 relative (products are summed in another order)."""
    x = batch(generator, 6, 9, 200)
    x[:, 1] = x[:, 0] + 1e-9 * batch(generator, 6, 200)
    there = x.to("cuda")
    for function in (
        geo.pairwise_angles,
        geo.mean_pairwise_angle,
        geo.cluster_angle,
        geo.effective_rank,
        lambda x: geo.effective_rank(x, "entropy"),
        lambda x: geo.outlier_summary(x).angle,
        lambda x: geo.outlier_summary(x).norm_ratio,
        geo.orthogonality_gap,
        geo.isometry_gap,
    ):
        # The angle of 1e-9 rad itself carries a relative rounding error of 1e-7.
        torch.testing.assert_close(function(there).cpu(), function(x), rtol=1e-6, atol=1e-9)
