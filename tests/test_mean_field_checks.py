"""Single statements: each check is small where it should be, and can be large."""

import numpy as np
import pytest

from bnlib import mean_field_checks as checks
from bnlib.mean_field import relu_forward_multipliers


@pytest.mark.parametrize("n", [4, 7])
def test_spectrum(n):
    found = checks.relu_spectrum(n)
    assert (found["average_norm"], found["norms"], found["covariances"]) == (1, n - 1, n * (n - 3) // 2)
    assert found["error"] < 1e-7


def test_ultrasymmetric_formula():
    found = checks.ultrasymmetric_covariances(7)
    assert found == pytest.approx(relu_forward_multipliers(7).covariances, abs=1e-8)
    assert found != pytest.approx(relu_forward_multipliers(7).norms, abs=1e-3)


def test_exact_statements(seed):
    assert checks.one_step_error(6) < 1e-11
    assert checks.identity_factor_error(6) < 1e-11
    assert checks.symmetric_eigenvalue_error(9) < 1e-12
    assert checks.slope_identity_error() < 1e-7
    assert checks.diagonal_factor_error(np.random.default_rng(seed)) < 1e-12
    assert checks.cross_slope_error(8) < 1e-12


def test_rank_one_repels():
    for alpha in (1, 4):
        found = checks.rank_one(8, alpha)
        assert found["error"] < 1e-12
        assert found["drift"] > 1
        assert found["exponent"] == pytest.approx(0.5, abs=0.01)


def test_the_odd_point():
    found = checks.outlier_is_a_block_state(16)
    assert found["fixed"] < 1e-8
    assert found["pattern"] < 1e-12
    assert found["drift"] > 0  # with rescaling it is no fixed point


def test_places(seed):
    places = checks.winner_positions(6, 3, 60, 15, 12, np.random.default_rng(seed))
    assert set(places) <= set(range(6))
    assert len(set(places)) > 1


def test_errors(unchecked):
    with pytest.raises(ValueError, match="at least 4, got 3"):
        checks.relu_spectrum(3)
    with pytest.raises(ValueError, match="at least 4, got 2"):
        checks.ultrasymmetric_covariances(2)


def test_plane_integrals_and_blocks(seed):
    assert checks.kernel_quadrature_error() < 1e-10
    assert checks.derivative_identities_error() < 1e-6
    assert checks.block_spectrum_error(6, np.random.default_rng(seed)) < 1e-12
    assert checks.linear_limit_error(5, [2], 40, np.random.default_rng(seed)) < 1e-8
    assert checks.linear_limit_error(5, [3], 2, np.random.default_rng(seed)) > 1e-6  # it can be large


def test_rank_one_eigenvalues():
    rows = checks.rank_one_eigenvalues(7, ["relu^3", "tanh", "sigmoid"])
    for row in rows:
        assert row["value"] == pytest.approx(row["formula"], rel=1e-12)
        assert row["value"] != pytest.approx(row["printed"], rel=0.1)
        assert row["error"] < 1e-12
    assert rows[0]["value"] == pytest.approx(6 / 14 * (6**3 + 6**-3))


def test_locality():
    found = checks.nonlocality(6)
    assert found["with_norm"] > 0.01
    assert found["without"] == 0


def test_concentration(seed):
    found = checks.concentration([64, 1024], 3, 100, np.random.default_rng(seed))
    ratio = found["deviation"][0] / found["deviation"][1]
    assert abs(ratio / 4 - 1) < 5 * np.hypot(*found["error"]) + 0.1
    assert ratio > 2.2  # power: a fall like the fourth root would give 2
