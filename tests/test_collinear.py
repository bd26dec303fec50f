"""Lines through the origin and the attainable rank, against naive references and hand-made batches."""

from fractions import Fraction

import numpy as np
import pytest

from bnlib.collinear import (
    attainable_rank,
    clearly_on_different_lines,
    exact_rank,
    lines_through_origin,
    null_vector,
    pairwise_angles,
)


def naive_function_rank(x: np.ndarray, rng: np.random.Generator) -> int:
    """Rank of the activations of many neurons with integer weights: exact integers, so no tolerance is in play."""
    weights = rng.integers(-50, 51, size=(x.shape[1], 40 * len(x)))
    return exact_rank(np.maximum(x @ weights, 0.0))


def random_degenerate_batch(rng: np.random.Generator) -> np.ndarray:
    """Small integers, with repeated, antipodal, collinear and zero samples on purpose."""
    d = int(rng.integers(1, 4))
    x = rng.integers(-2, 3, size=(rng.integers(2, 5), d)).astype(float)
    copies = [x[rng.integers(len(x))] * rng.choice([-2.0, -1.0, 1.0, 3.0]) for _ in range(rng.integers(0, 4))]
    return np.vstack([x, *copies])


def test_attainable_rank_is_the_rank_of_many_neurons(seed):
    rng = np.random.default_rng(seed)
    for _ in range(40):
        x = random_degenerate_batch(rng)
        assert attainable_rank(x) == naive_function_rank(x, rng), x


@pytest.mark.parametrize(
    ("x", "expected"),
    [
        ([[1, 0], [0, 1], [1, 1], [-1, 0], [0, -1], [-1, -1]], 5),  # three antipodal pairs in the plane
        ([[1, 0], [0, 1], [-1, 0], [0, -1]], 4),  # two pairs on independent lines
        ([[1, 2, 3], [-1, -2, -3]], 2),  # one pair
        ([[1, 2], [2, 4]], 1),  # positively collinear
        ([[1, 2], [0, 0]], 1),  # a zero sample
        ([[0, 0], [0, 0]], 0),
        ([[1.0], [-2.0], [3.0]], 2),  # one dimension: never more than two
        ([[1, 0], [1, 1e-300]], 2),  # far below any tolerance, and yet two lines
    ],
)
def test_attainable_rank_known(x, expected):
    assert attainable_rank(np.array(x, dtype=float)) == expected


def test_floats_are_exact_binary_fractions():
    tenth = np.array([[0.1, 0.3], [0.2, 0.6], [0.3, 0.9]])
    # 0.2 and 0.6 are exactly twice 0.1 and 0.3; 0.3 and 0.9 are not exactly three times that.
    assert [sorted(line.length) for line in lines_through_origin(tenth)] in ([[0, 1], [2]], [[2], [0, 1]])


def test_lines_know_sides_and_lengths():
    (line,) = lines_through_origin(np.array([[0.0, -2.0], [0.0, 4.0]]))
    assert (line.direction, line.positive, line.negative, line.sign) == ((0, 1), (1,), (0,), 0)
    assert line.length == {0: 2, 1: 4}


def test_pairwise_angles_keep_tiny_angles(seed):
    rng = np.random.default_rng(seed)
    base = rng.uniform(0, 2 * np.pi)
    tiny = 1e-9
    x = np.array([[np.cos(base), np.sin(base)], [np.cos(base + tiny), np.sin(base + tiny)]])
    # The rounding of the entries themselves moves the angle by about 1e-16.
    assert pairwise_angles(x)[0, 1] == pytest.approx(tiny, abs=1e-15)
    assert np.arccos(np.clip(x[0] @ x[1], -1, 1)) != pytest.approx(tiny, rel=0.1)
    assert pairwise_angles(np.array([[1e300, 0.0], [0.0, 1e-300]]))[0, 1] == pytest.approx(np.pi / 2)


def test_exact_rank_beats_rounding():
    near = np.array([[1.0, 1.0], [1.0, 1.0 + 2.0**-52]])
    assert exact_rank(near) == 2
    assert np.linalg.matrix_rank(near) == 1
    assert exact_rank(np.array([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0], [7.0, 8.0, 9.0]])) == 2
    assert exact_rank(np.zeros((2, 2))) == 0


def test_null_vector_solves_the_system(seed):
    rng = np.random.default_rng(seed)
    rows = [[Fraction(int(entry)) for entry in row] for row in rng.integers(-5, 6, size=(3, 5))]
    solution = null_vector(rows, 5)
    assert any(solution)
    assert all(sum(a * b for a, b in zip(row, solution, strict=True)) == 0 for row in rows)
    assert null_vector([[Fraction(1), Fraction(0)], [Fraction(0), Fraction(3)]], 2) is None


def test_clearly_on_different_lines_is_cautious():
    assert clearly_on_different_lines(np.eye(3))
    assert not clearly_on_different_lines(np.array([[1.0, 0.0], [1.0, 1e-13]]))
    assert not clearly_on_different_lines(np.array([[1.0, 0.0], [-1.0, 1e-13]]))
    assert not clearly_on_different_lines(np.array([[1.0, 0.0], [0.0, 0.0]]))


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("x", "message"),
    [
        (np.zeros(3), r"x must be a batch of shape \(n, d\) with n and d at least 1, got shape \(3,\)\."),
        (np.zeros((0, 2)), r"got shape \(0, 2\)\."),
        (np.array([[1.0, np.nan]]), r"x must hold finite numbers, got nan\."),
        (np.array([[1.0, np.inf]]), r"x must hold finite numbers, got inf\."),
    ],
)
def test_bad_batches_are_refused(x, message):
    for function in (attainable_rank, exact_rank, lines_through_origin):
        with pytest.raises(ValueError, match=message):
            function(x)


def test_pairwise_angles_refuse_a_zero_sample():
    with pytest.raises(ValueError, match=r"x must have no zero sample, got one in row 1\."):
        pairwise_angles(np.array([[1.0, 0.0], [0.0, 0.0]]))
