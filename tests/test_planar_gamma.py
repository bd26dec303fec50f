"""Exact γ of planar batches against the enumeration of all sets of silent sectors."""

import itertools
import math

import numpy as np
import pytest

from bnlib.collinear import attainable_rank
from bnlib.planar_gamma import gamma_planar, nonzero_probability, sectors, small_gamma_probability
from tests.gamma_oracle import antipodal_pairs, least_nonzero_probability, planar_cones


def on_circle(angles, lengths=1.0) -> np.ndarray:
    angles = np.asarray(angles, dtype=float)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1) * np.broadcast_to(lengths, angles.shape)[:, None]


def random_batch(rng: np.random.Generator) -> np.ndarray:
    """Spread, clustered, mixed-sign and antipodal batches, two to six samples."""
    n = int(rng.integers(2, 7))
    kind = rng.integers(4)
    if kind == 0:
        angles = rng.uniform(0, 2 * np.pi, n)
    elif kind == 1:
        angles = rng.uniform(0, 0.5, n) + np.pi * rng.integers(0, 2, n)
    elif kind == 2:
        angles = rng.choice([0.3, 1.5], n) + rng.normal(0, 0.05, n) + np.pi * rng.integers(0, 2, n)
    else:
        angles = np.sort(rng.uniform(0, np.pi, n)) + np.pi * (np.arange(n) % 2)
    x = on_circle(angles, rng.uniform(0.5, 2, n))
    for pair in range(int(rng.choice([0, 0, 1, 2, 3]))):
        if 2 * pair + 1 < n:
            x[2 * pair + 1] = -2 * x[2 * pair]
    return x


def assert_certified(x: np.ndarray, expected: float) -> None:
    """γ equals the oracle's, and the witness attains it exactly."""
    found = gamma_planar(x)
    assert found.gamma == pytest.approx(expected, abs=1e-12), (x, found)
    assert any(found.witness)
    assert nonzero_probability(x, found.witness) == pytest.approx(found.gamma, abs=1e-14)
    assert (found.gamma == 0) == (attainable_rank(x) < len(x))


def test_gamma_equals_the_enumeration(seed):
    rng = np.random.default_rng(seed)
    for _ in range(60):
        x = random_batch(rng)
        assert_certified(x, least_nonzero_probability(x, *planar_cones(x)))


@pytest.mark.parametrize(
    ("pattern", "blocks"),
    [
        ("++-- ++-", 2),  # a block of four and one of three
        ("+-+- -++-", 2),  # two blocks of four
        ("+-+ ++- -+-", 3),  # three blocks of three
    ],
)
def test_combinations_of_runs(pattern, blocks, seed):
    rng = np.random.default_rng(seed)
    angles = []
    for index, cluster in enumerate(pattern.split()):
        spread = np.cumsum(rng.uniform(0.005, 0.01, len(cluster)))
        angles += [0.2 + index + a + (np.pi if side == "-" else 0) for a, side in zip(spread, cluster, strict=True)]
    x = on_circle(angles)
    assert len(gamma_planar(x).blocks) == blocks
    # Everything below 1/2 has m = 0, so sectors are silent in antipodal pairs.
    pairs = antipodal_pairs(*planar_cones(x))
    assert_certified(x, min(0.5, least_nonzero_probability(x, *pairs)))


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([[1, 0], [0, 1]], 0.5),  # independent
        ([[1, 0], [-1, 0]], 0.5),  # one antipodal pair
        ([[1, 0], [1, 1], [0, 1]], 0.5),  # three samples over 90 degrees: both candidates are 1/2
        ([[1, 0], [1, 1], [1, -1]], 0.5),
        ([[1, 0], [-1, 1], [-1, -1]], 0.5),  # not in a half-plane: no silent sectors
        ([[1, 0], [0, 1], [1, 1], [-1, 0], [0, -1], [-1, -1]], 0.0),  # three antipodal pairs
        ([[1, 1], [2, 2], [0, 1]], 0.0),  # positively collinear
        ([[0, 0], [0, 1]], 0.0),  # a zero sample
    ],
)
def test_known_values(x, expected):
    assert gamma_planar(np.array(x, dtype=float)).gamma == expected


def test_three_close_samples():
    for spread in (1e-1, 1e-6, 1e-12):
        x = np.array([[1.0, 0.0], [1.0, spread / 3], [1.0, spread]])
        assert gamma_planar(x).gamma == pytest.approx(math.atan(spread) / math.pi, rel=1e-14)


def test_vertical_and_huge_samples():
    x = np.array([[0.0, 1e300], [1e-300, 1e300], [1e290, 1e300]])
    assert gamma_planar(x).gamma == pytest.approx(math.atan(1e-10) / math.pi, rel=1e-14)


def test_rotation_scale_and_order_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    angles = rng.uniform(0, 2 * np.pi, 12)
    expected = gamma_planar(on_circle(angles)).gamma
    turned = on_circle(angles + 1.0, rng.uniform(0.1, 10, 12))[rng.permutation(12)]
    assert gamma_planar(turned).gamma == pytest.approx(expected, rel=1e-9)


def test_more_samples_never_raise_gamma(seed):
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((20, 2))
    found = [gamma_planar(x[:n]).gamma for n in range(1, 21)]
    assert all(b <= a * (1 + 1e-12) for a, b in itertools.pairwise(found))


def test_nonzero_probability_by_sampling(seed):
    rng = np.random.default_rng(seed)
    x = on_circle([0.1, 0.15, 0.2, 2.0, 4.0])
    witness = gamma_planar(x).witness
    w = rng.standard_normal((100_000, 2))
    values = np.maximum(w @ x.T, 0) @ np.array([float(v) for v in witness])
    expected = nonzero_probability(x, witness)
    five_errors = 5 * math.sqrt(expected * (1 - expected) / len(w))
    measured = float((np.abs(values) > 1e-9 * max(abs(float(v)) for v in witness)).mean())
    assert abs(measured - expected) < five_errors
    # A formula that forgets half of the sectors is told apart.
    assert abs(measured - expected / 2) > five_errors


def test_sectors_go_round_the_circle_and_are_silent_where_the_function_is(seed):
    rng = np.random.default_rng(seed)
    x = np.vstack([on_circle(rng.uniform(0, 2 * np.pi, 4)), [[0.0, 1.0]]])
    witness = gamma_planar(x).witness
    found = sorted(sectors(x, witness), key=lambda sector: sector.begin)
    for one, following in itertools.pairwise(found):
        assert one.begin + one.width == pytest.approx(following.begin)
    assert sum(sector.width for sector in found) == pytest.approx(2 * math.pi)
    middle = np.array([sector.begin + sector.width / 2 for sector in found])
    values = np.maximum(on_circle(middle) @ x.T, 0) @ np.array([float(v) for v in witness])
    assert [abs(value) < 1e-12 for value in values] == [sector.silent for sector in found]


def test_law_of_gamma_for_three_samples_is_exact(seed):
    rng = np.random.default_rng(seed)
    found = np.array([gamma_planar(x).gamma for x in rng.standard_normal((1500, 3, 2))])
    for level in (0.2, 0.45):
        expected = 0.75 * level**2  # exact for three samples
        error = math.sqrt(expected * (1 - expected) / len(found))
        assert abs((found < level).mean() - expected) < 5 * error
        assert abs((found < level).mean() - 3 * level**2) > 5 * error  # the same without the condition on sides
        assert small_gamma_probability(3, level) == pytest.approx(expected, rel=0.1)


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: gamma_planar(np.eye(3)), r"x must be a batch in the plane, shape \(n, 2\), got shape \(3, 3\)\."),
        (lambda: gamma_planar(np.array([[np.nan, 1.0]])), r"x must hold finite numbers, got nan\."),
        (lambda: nonzero_probability(np.eye(2), [1]), r"v length n, got shape \(2, 2\) and length 1\."),
        (lambda: sectors(np.zeros((1, 2)), [1]), r"x must have a sample that is not zero\."),
        (lambda: small_gamma_probability(1, 0.1), r"n must be a batch size of at least 2, got 1\."),
        (lambda: small_gamma_probability(3, 0.6), r"gamma must be from 0 to 1/2, got 0\.6\."),
    ],
)
def test_bad_arguments_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()
