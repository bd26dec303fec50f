"""The prover against brute force in floating point, against the checker's other forms, and against known values."""

import functools
import json
import math
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from flint import arb, ctx

from bnlib import proof, proof_angles, proof_check, proof_check_larger, proof_larger
from bnlib.outlier_fixed_points import outlier_state
from bnlib.proof_angles import ball

FILE = Path(__file__).parents[1] / "results" / "proof" / "theorem_14.json"


# ------------------------------------------------------------------------------ naive reference, numpy only


def relu_cosine(c):
    c = np.clip(c, -1, 1)
    return (np.sqrt(1 - c * c) + (np.pi - np.arccos(c)) * c) / np.pi


def layer(gram, kernel=relu_cosine):
    """S -> V(G S G), as the theorem states it."""
    n = len(gram)
    center = np.eye(n) - 1 / n
    k = center @ gram @ center
    scale = np.sqrt(np.outer(np.diag(k), np.diag(k)))
    return scale * kernel(k / scale)


def centered_gram(p, n):
    """The centered Gram matrix of norm ratio p, from its two invariant parts, not from the formula under test."""
    m = n - 1
    axis = np.full(n, -1.0)
    axis[0] = m
    axis /= np.linalg.norm(axis)
    rest = np.eye(n) - 1 / n - np.outer(axis, axis)

    def ratio(b):
        k = np.outer(axis, axis) + b * rest
        return math.sqrt(k[0, 0] / k[1, 1])

    low, high = 0.0, 1e9
    for _ in range(200):
        middle = (low + high) / 2
        low, high = (middle, high) if ratio(middle) > p else (low, middle)
    k = np.outer(axis, axis) + low * rest
    return k / k[1, 1]


def spread(gram):
    """u = (x_i.x_i - x_i.x_j)/|x_1 - mean of the others|^2."""
    n = len(gram)
    contrast = np.full(n, -1 / (n - 1))
    contrast[0] = 1
    return (gram[1, 1] - gram[1, 2]) / (contrast @ gram @ contrast)


def all_multipliers(gram, step=1e-6):
    """Eigenvalues of the Jacobian on symmetric matrices, divided by the growth, largest first; by differences."""
    n = len(gram)
    places = [(i, j) for i in range(n) for j in range(i, n)]
    columns = []
    for i, j in places:
        bump = np.zeros((n, n))
        bump[i, j] = bump[j, i] = step
        change = (layer(gram + bump) - layer(gram - bump)) / (2 * step)
        columns.append([change[place] for place in places])
    growth = layer(gram)[1, 1] / gram[1, 1]
    return growth, np.sort(np.linalg.eigvals(np.array(columns).T).real)[::-1] / growth


@functools.cache
def roots_of(n):
    entry = proof.prove_single(n)
    return {root["name"]: float(Fraction(root["norm_ratio"][0])) for root in entry["roots"]}


# ------------------------------------------------------------------------------ the map


@pytest.mark.parametrize("n", [3, 4, 7, 12, 40])
def test_both_forms_have_the_sign_of_the_brute_force_map(n, seed):
    m = n - 1
    random = np.random.default_rng(seed)
    for p in random.uniform(0.05, 0.999, 12) * m:
        k = centered_gram(p, n)
        after = layer(k)
        change = spread(after) / spread(k) - 1
        contrast = np.full(n, -1 / m)
        contrast[0] = 1
        shrink = (contrast @ after @ contrast) / (contrast @ k @ contrast)
        expected = change * shrink * (n / m) ** 2 * p * p
        exact = Fraction(p)
        mine = proof_angles.balance((ball(exact) / m).acos(), m)
        other = proof_check._value(ball(exact), m)
        assert float(mine) == pytest.approx(expected, rel=1e-6, abs=1e-7 * m * m)
        assert bool((mine - other).contains(0))


@pytest.mark.parametrize("n", [3, 7, 30])
def test_derivatives_agree_with_differences_and_with_each_other(n, seed):
    m, step = n - 1, Fraction(1, 2**40)
    with ctx.workprec(256):
        for p in np.random.default_rng(seed).uniform(0.05, 0.95, 8) * m:
            exact = Fraction(p)
            difference = proof_check._value(ball(exact + step), m) - proof_check._value(ball(exact - step), m)
            slope = float(difference / (2 * ball(step)))
            assert float(proof_check._derivative(ball(exact), m)) == pytest.approx(slope, rel=1e-9, abs=1e-9)
            phi = (ball(exact) / m).acos()
            mine = -proof_angles.balance_rate(phi, m) / (m * phi.sin())
            assert float(mine) == pytest.approx(slope, rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("n", [3, 5, 7, 11])
def test_enclosures_over_a_box_contain_the_values_in_it(n, seed):
    m = n - 1
    random = np.random.default_rng(seed)
    for _ in range(20):
        low, high = (Fraction(float(x)) for x in np.sort(random.uniform(0.05, 0.95, 2)) * m)
        phi = proof._angle((low, high), m)
        inside = low + (high - low) * Fraction(random.uniform())
        point = (ball(inside) / m).acos()
        assert bool(proof_angles.balance(phi, m).overlaps(proof_angles.balance(point, m)))
        assert bool(proof_angles.balance_rate(phi, m).overlaps(proof_angles.balance_rate(point, m)))
        assert bool(proof_check._value(ball(low, high), m).contains(proof_check._value(ball(inside), m)))
        assert bool(proof_check._derivative(ball(low, high), m).contains(proof_check._derivative(ball(inside), m)))


def test_series_are_the_functions_that_they_stand_for():
    for x in ("0", "1e-30", "0.001", "1", "3.14"):
        t = arb(x)
        if x != "0":
            assert bool(proof_angles.sinc(t).overlaps(t.sin() / t))
            assert bool(proof_angles.hump(t).overlaps(t.sin() - t * t.cos()))
    t = arb("1.3")
    loss = (t.sin() - t * t.cos()) / (arb.pi() * (1 - t.cos()))
    rate = t.sin() * (t - t.sin()) / (arb.pi() * (1 - t.cos()) ** 2)
    assert bool((t * proof_angles.loss_per_angle(t)).overlaps(loss))
    assert bool(proof_angles.loss_rate(t).overlaps(rate))
    tiny = arb.pi() - arb.pi()  # a ball about 0, not exactly 0
    assert proof_angles.hump(tiny).is_finite()
    assert not proof_angles.sinc(arb(5)).is_finite()  # outside the series' domain nothing is claimed


# ------------------------------------------------------------------------------ multipliers


@pytest.mark.parametrize("n", [3, 4, 5, 6, 7, 8, 10])
def test_blocks_are_the_whole_spectrum_of_the_brute_force_jacobian(n):
    m = n - 1
    for name, p in roots_of(n).items():
        gram = layer(centered_gram(p, n))
        growth, brute = all_multipliers(gram / gram[1, 1])
        exact = ball(Fraction(p))
        h, along, standard, pairs = proof_angles.multipliers((exact / m).acos(), m)
        other_h, other_along, (trace, determinant), other_pairs = proof_check._blocks(exact, m)
        assert float(h) == pytest.approx(growth, rel=1e-7)
        assert float(other_h) == pytest.approx(growth, rel=1e-7)
        root = math.sqrt(float(trace) ** 2 - 4 * float(determinant))
        pair = [(float(trace) + root) / 2, (float(trace) - root) / 2]
        assert float(standard) == pytest.approx(max(pair), abs=1e-9)
        assert float(along) == pytest.approx(float(other_along), abs=1e-9)
        expected = [1.0, float(other_along)]
        expected += pair[: 1 if m == 2 else 2] * (m - 1)
        if m > 3:
            assert float(pairs) == pytest.approx(float(other_pairs), abs=1e-12)
            expected += [float(other_pairs)] * (m * (m - 3) // 2)
        expected += [0.0] * (n * (n + 1) // 2 - len(expected))
        assert len(expected) == len(brute), name
        np.testing.assert_allclose(np.sort(expected)[::-1], brute, atol=2e-6)
        wrong = np.array(expected) + 1e-4  # the comparison would see an error of this size
        assert np.abs(np.sort(wrong)[::-1] - brute).max() > 2e-6


def test_roots_by_value_and_number():
    known = {7: 3.849, 8: 5.105, 16: 13.896, 64: 62.674}
    for n, ratio in known.items():
        assert roots_of(n)["outlier"] == pytest.approx(ratio, abs=5e-3)
    for n in (3, 4, 5, 6):
        assert list(roots_of(n)) == ["symmetric"]


@pytest.mark.parametrize("n", [5, 7, 12])
def test_iterating_the_map_ends_where_the_proof_says(n):
    p_values = roots_of(n)
    for start in (0.3, 0.9, 1.2 if n == 7 else 1.05, 0.8 * (n - 1), 0.999 * (n - 1)):
        gram = centered_gram(start, n)
        for _ in range(1500):
            gram = layer(gram)
            gram /= gram[1, 1]
        end = math.sqrt(gram[0, 0])
        escapes = "outlier" in p_values and start > p_values["separatrix"]
        assert end == pytest.approx(p_values["outlier" if escapes else "symmetric"], abs=1e-6)


# ------------------------------------------------------------------------------ all larger n


@pytest.mark.parametrize("n", [65, 66, 200, 2000])
def test_uniform_forms_are_the_same_functions(n, seed):
    m = n - 1
    e = 1 / arb(m)
    for p in np.random.default_rng(seed).uniform(0.1, 0.999, 6) * m:
        exact = ball(Fraction(p))
        q = exact / m
        s = (1 - q * q).sqrt()
        f = proof_check._value(exact, m) * (1 + e) ** 2
        checks = [
            (proof_check_larger._middle_by_ratio(q, 1 / exact), f / exact**2 / (1 + e) ** 2),
            (proof_check_larger._scaled(s, e / s, e), f / exact**2 / s / (1 + e) ** 2),
            (proof_check_larger._outlier_sign(s / e, e), f / exact**2 / e / (1 + e) ** 2),
            (proof_larger.middle_by_ratio(q, 1 / exact), f / exact**2 / (1 + e) ** 2),
            (proof_larger.middle_by_deficit(s, e / s), f / exact**2 / s / (1 + e) ** 2),
            (proof_larger.outlier_balance(s / e, e), f / exact**2 / e / (1 + e) ** 2),
        ]
        for value, expected in checks:
            assert float(value) == pytest.approx(float(expected), rel=1e-8, abs=1e-9)


@pytest.mark.parametrize("n", [65, 150, 1000, 10**4])
def test_uniform_conditions_are_the_blocks_of_a_single_n(n):
    with ctx.workprec(200):  # at n = 10^4 the conditions are small differences
        m = n - 1
        p = ball(Fraction(outlier_state(n).norm_ratio))  # the prover's search for roots takes minutes at n = 10^4
        for _ in range(3):  # Newton's method, to the digits that the conditions need
            p = arb((p - proof_check._value(p, m) / proof_check._derivative(p, m)).mid())
        z, e, gap = (m * m - p * p).sqrt(), 1 / arb(m), arb("0.9")
        assert 6.4 < float(z) < 6.67
        radius = 1 - gap * e
        growth, along, (trace, determinant), pairs = proof_check._blocks(p, m)
        conditions = proof_check_larger._outlier_conditions(z, e, gap)
        expected = {
            "the class, upper bound": (1 - along) / e - gap,
            "the class, lower bound": along,
            "the pairs": (radius - pairs) * growth / e,
            "the standard block at the radius": (radius * radius - trace * radius + determinant) * growth**2 / e,
            "the standard block at minus the radius": (radius * radius + trace * radius + determinant) * growth**2,
            "the standard block's determinant": (radius * radius - abs(determinant)) * growth**2,
        }
        assert conditions.keys() == expected.keys()
        for name, value in conditions.items():
            assert float(value.mid()) == pytest.approx(float(expected[name]), rel=1e-6, abs=1e-9), name
        mine = proof_larger._gaps(z, e)
        shift = float(gap) - float(proof_larger.GAP)
        assert float(mine[0]) == pytest.approx(float(expected["the class, upper bound"]) + shift, abs=1e-6)
        radius = 1 - ball(proof_larger.GAP) * e
        polynomial = (radius * radius - trace * radius + determinant) * growth**2 / e
        assert float(mine[2]) == pytest.approx(float(polynomial), abs=1e-6)


def test_concavity_is_that_of_a_single_n():
    n = 65
    m, step = n - 1, Fraction(1, 2**30)
    with ctx.workprec(256):
        worst = max(
            float(
                (proof_check._derivative(ball(p + step), m) - proof_check._derivative(ball(p - step), m))
                / (2 * ball(step))
            )
            for p in (Fraction(i, 8) for i in range(1, 32))
        )
        bound = -proof_check_larger._near_symmetric(1 / arb(m), arb(4))["F is concave"]
    assert worst <= float(bound.upper()) < 0


# ------------------------------------------------------------------------------ the certificate


def test_the_certificate_is_reproduced_to_the_letter(tmp_path):
    output = tmp_path / "theorem_14.json"
    command = [sys.executable, "-m", "bnlib.proof", "--output", str(output)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)  # without the tests' run-time checks
    assert "kB" in done.stdout
    assert output.read_bytes() == FILE.read_bytes()
    assert proof.STATEMENT == proof_check.STATEMENT


def test_main_writes_a_file_and_says_when_a_box_stays_open(tmp_path, monkeypatch, capsys):
    def small(first_n=65):
        return {"schema": "s", "statement": "t", "single": [], "larger": {}}

    monkeypatch.setattr(proof, "prove", small)
    assert proof.main(["--output", str(tmp_path / "new" / "file.json")]) == 0
    assert json.loads((tmp_path / "new" / "file.json").read_text())["schema"] == "s"

    def fails():
        raise proof.ProofError("n = 7: the box from 1 to 2 cannot be closed.")

    monkeypatch.setattr(proof, "prove", fails)
    assert proof.main(["--output", str(tmp_path / "no.json")]) == 1
    assert "NOT PROVED. n = 7: the box from 1 to 2 cannot be closed." in capsys.readouterr().err
    assert not (tmp_path / "no.json").exists()


def test_a_box_with_a_root_is_named():
    with pytest.raises(proof.ProofError, match=r"n = 8: the box from 5\.10\d* to 5\.10\d* cannot be closed\."):
        proof._cover(Fraction(5), Fraction(21, 4), 7, [])


@pytest.mark.parametrize("n", [2, 0, -7, 7.0, math.nan, True, "8"])
def test_only_whole_numbers_from_three_on(n, unchecked):
    with pytest.raises(ValueError, match="n must be a whole number of samples, 3 or more, got"):
        proof.prove_single(n)
