"""The checker: what it verifies, and that it refuses every certificate that was tampered with, in one sentence."""

import ast
import copy
import json
import math
import random
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from flint import arb

from bnlib import proof_check, proof_check_enclosures, proof_check_larger
from bnlib.proof_check import CertificateError

ROOT = Path(__file__).parents[1]
FILE = ROOT / "results" / "proof" / "theorem_14.json"
CHECKER = ("proof_check", "proof_check_enclosures", "proof_check_larger", "proof_check_reading")
PROVER = ("proof", "proof_angles", "proof_larger")


@pytest.fixture(scope="module")
def certificate():
    return json.loads(FILE.read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def verified(certificate):
    """Some batch sizes; the whole certificate is checked from the command line, without the tests' run-time checks."""
    sizes = (3, 4, 5, 6, 7, 8, 16, 32, 64)
    return {n: proof_check.check_single(certificate["single"][n - 3], n) for n in sizes}


@pytest.fixture
def tampered(certificate):
    return copy.deepcopy(certificate)


def entry(certificate, n):
    return certificate["single"][n - 3]


def root(certificate, n, name):
    return next(one for one in entry(certificate, n)["roots"] if one["name"] == name)


def refuse(certificate, pattern, n=None):
    """The certificate is refused; with n, by its part for this n alone ("larger": for all n from 65 on)."""
    parts = {
        None: lambda: proof_check.check(certificate),
        "larger": lambda: proof_check_larger.check_larger(certificate["larger"], 64),
    }
    part = parts.get(n, lambda: proof_check.check_single(entry(certificate, n), n))
    with pytest.raises(CertificateError, match=pattern) as caught:
        part()
    sentence = str(caught.value)
    assert sentence.endswith(".")
    assert "\n" not in sentence


# ------------------------------------------------------------------------------ what is verified


def test_what_is_verified_for_one_batch_size(verified):
    for n, case in verified.items():
        assert case.n == n
        names = [one.name for one in case.roots]
        assert names == (["symmetric"] if n <= 6 else ["symmetric", "separatrix", "outlier"])
        for one in case.roots:
            assert one.norm_ratio[1] - one.norm_ratio[0] < Fraction(1, 2**40)
            assert (one.radius is None) == (one.name == "separatrix")
            assert one.radius is None or 0 < one.radius < 1
            assert (one.multiplier[0] > 1) == (one.name == "separatrix")
            assert (one.pairs is None) == (n < 5)


def test_what_is_verified_for_all_larger_batch_sizes(certificate):
    larger = proof_check_larger.check_larger(certificate["larger"], 64)
    assert larger.first == 65
    assert 0 < larger.gap < 1
    assert larger.deficit[0] < 3 * math.pi / math.sqrt(2) < larger.deficit[1]  # the limit of z as n grows


def test_the_whole(certificate, monkeypatch):
    """`check` goes through all parts: each n once, with its own entry."""
    seen = []

    def single(entry, n):
        seen.append((entry["n"], n))
        return proof_check.BatchSize(n, 2, ())

    def larger(entry, last):
        seen.append((entry["first_n"], last))
        return proof_check_larger.AllLarger(last + 1, 3, (Fraction(6), Fraction(7)), Fraction(1, 2), Fraction(4))

    monkeypatch.setattr(proof_check, "check_single", single)
    monkeypatch.setattr(proof_check, "check_larger", larger)
    result = proof_check.check(certificate)
    assert [case.n for case in result.single] == list(range(3, 65))
    assert result.boxes == 2 * 62 + 3
    assert sorted(seen) == [(n, n) for n in range(3, 65)] + [(65, 64)]


def test_known_values(verified):
    known = {7: (3.849, 0.945), 8: (5.105, 0.931), 16: (13.896, 0.943), 32: (30.385, None), 64: (62.674, None)}
    for n, (ratio, radius) in known.items():
        outlier = verified[n].roots[2]
        assert float(outlier.norm_ratio[0]) == pytest.approx(ratio, abs=6e-4)
        assert radius is None or float(outlier.radius) == pytest.approx(radius, abs=6e-4)
    for n, leading in {8: 0.956, 64: 0.9957}.items():
        cosine = -1 / (n - 1)
        j = (math.sqrt(1 - cosine**2) + (math.pi - math.acos(cosine)) * cosine) / math.pi
        slope = 1 - math.acos(cosine) / math.pi
        expected = (n - 2) / (n - 1) + n * slope / ((n - 1) ** 2 * (1 - j))
        symmetric = verified[n].roots[0]
        assert float(symmetric.radius) == pytest.approx(expected, abs=2e-9)
        assert expected == pytest.approx(leading, abs=6e-4)


def test_command_line(tmp_path, capsys):
    done = subprocess.run(
        [sys.executable, "-m", "bnlib.proof_check", str(FILE)], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(f"VERIFIED: {proof_check.STATEMENT}")
    assert len(done.stdout.splitlines()) < 10
    broken = tmp_path / "broken.json"
    broken.write_text(FILE.read_text().replace('"n": 12,', '"n": 13,'))
    assert proof_check.main([str(broken)]) == 1
    assert capsys.readouterr().err == "NOT VERIFIED. n = 12: the entry is for n = 13 instead.\n"


def test_checker_and_prover_share_no_code():
    def imported(module):
        tree = ast.parse((ROOT / "bnlib" / f"{module}.py").read_text())
        names = set()
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                names |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom):
                names |= {node.module} | {f"{node.module}.{alias.name}" for alias in node.names}
        return {name.split(".")[1] if name.startswith("bnlib.") else name.split(".")[0] for name in names} - {"bnlib"}

    allowed = set(sys.stdlib_module_names) | {"flint"}
    for module in CHECKER:
        assert imported(module) - allowed <= set(CHECKER), module
    for module in PROVER:
        assert not imported(module) & set(CHECKER), module


# ------------------------------------------------------------------------------ tampering


def test_moved_end_point(tampered):
    box = entry(tampered, 20)["boxes"][3]
    box[1] = str(Fraction(box[1]) + Fraction(1, 10**6))
    refuse(tampered, r"^n = 20, box 5: it begins at .*, not where the one before ends, .*\.$", 20)


def test_moved_end_point_on_both_sides(tampered):
    boxes = entry(tampered, 20)["boxes"]
    place = next(i for i, box in enumerate(boxes) if box[2] == "root")
    name = entry(tampered, 20)["roots"][0]["name"]
    boxes[place][1] = boxes[place + 1][0] = "1"  # the root at 1 now lies on the edge of a '+' box
    assert name == "symmetric"
    refuse(tampered, rf"^n = 20, box {place + 2}: F does not have the claimed sign '\+'\.$", 20)


def test_removed_box(tampered):
    del entry(tampered, 9)["boxes"][2]
    refuse(tampered, r"^n = 9, box 3: it begins at .*, not where the one before ends, .*\.$", 9)


@pytest.mark.parametrize(("which", "where"), [(0, "box 1: it begins at"), (-1, "the boxes end at")])
def test_removed_end_box(tampered, which, where):
    del entry(tampered, 9)["boxes"][which]
    refuse(tampered, rf"^n = 9(, |: ){where}", 9)


def test_removed_root(tampered):
    """No outlier at n = 8: the root's box is renamed, its root deleted."""
    boxes = entry(tampered, 8)["boxes"]
    last = max(i for i, box in enumerate(boxes) if box[2] == "root")
    boxes[last][2] = "-"
    del entry(tampered, 8)["roots"][2]
    refuse(tampered, r"^n = 8, box \d+: F does not have the claimed sign '-'\.$", 8)


def test_swapped_sign(tampered):
    boxes = entry(tampered, 30)["boxes"]
    boxes[-2][2] = "-"
    refuse(tampered, r"^n = 30, box \d+: the sign changes without a root's box\.$", 30)


def test_wide_local_zones(tampered):
    boxes = entry(tampered, 10)["boxes"]
    boxes[0][1] = boxes[1][0] = "1/2"
    refuse(tampered, r"^n = 10: the inequality of the local zone at p = 0 does not hold up to 1/2\.$", 10)


def test_wide_local_zone_at_the_collapsed_cluster(tampered):
    boxes = entry(tampered, 10)["boxes"]
    low = str(Fraction(boxes[-2][0]) + Fraction(1, 1000))
    boxes[-2][1] = boxes[-1][0] = low
    refuse(tampered, r"^n = 10: the inequality of the local zone at p = m does not hold from ", 10)


def test_shrunk_radius(tampered):
    one = root(tampered, 12, "outlier")
    low, high = (Fraction(end) for end in one["norm_ratio"])
    one["norm_ratio"] = [str(high - (high - low) / 2**12), str(high)]
    refuse(
        tampered, r"^n = 12, outlier state: F does not change its sign between the ends of the root's enclosure\.$", 12
    )


def test_root_outside_its_box(tampered):
    root(tampered, 12, "outlier")["norm_ratio"] = ["2", "21/10"]
    refuse(tampered, r"^n = 12, outlier state: the root's enclosure lies outside its box\.$", 12)


def test_symmetric_state_elsewhere(tampered):
    root(tampered, 5, "symmetric")["norm_ratio"] = ["99/100", "101/100"]
    refuse(tampered, r"^n = 5, symmetric state: the symmetric state has norm ratio 1 exactly\.$", 5)


def test_root_box_too_wide(tampered):
    """One box around all three roots: the derivative has no single sign there."""
    boxes = entry(tampered, 7)["boxes"]
    places = [i for i, box in enumerate(boxes) if box[2] == "root"]
    boxes[places[0]][1] = boxes[places[-1]][1]
    del boxes[places[0] + 1 : places[-1] + 1]
    refuse(tampered, r"^n = 7, symmetric state: F' does not keep its sign on the root's box, so the root may not be", 7)


@pytest.mark.parametrize(
    ("n", "name", "key", "value", "sentence"),
    [
        (9, "outlier", "multiplier", ["0.5", "0.6"], "the claimed interval does not contain the checker's enclosure"),
        (9, "outlier", "pairs", ["0.5", "0.6"], "the claimed interval does not contain the checker's enclosure"),
        (9, "symmetric", "growth", ["0.5", "0.6"], "the claimed interval does not contain the checker's enclosure"),
        (9, "outlier", "growth", ["0.9", "0.6"], "the interval's ends are in the wrong order"),
        (9, "outlier", "standard", "0.5", "the standard block's multipliers are not within the claimed bound 1/2"),
        (9, "outlier", "standard", "1.5", "the standard block's multipliers are not within the claimed bound 3/2"),
        (9, "outlier", "spectral_radius", "0.9", "the spectral radius is not shown to be at most 9/10"),
        (9, "outlier", "spectral_radius", "1", "the spectral radius is not shown to be at most 1 and below 1"),
        (9, "separatrix", "multiplier", ["0.9", "1.1"], "the multiplier is not shown to exceed 1"),
        (9, "outlier", "name", "separatrix", "F' does not keep its sign"),
        (9, "outlier", "name", "winner", "the roots must be"),
        (9, "outlier", "standard", 0.9, "the field 'standard' must be of type str, got float"),
        (9, "outlier", "standard", "nan", "expected an exact number as text, such as '13/8' or '0.75', got 'nan'"),
        (9, "outlier", "standard", "1e-3", "expected an exact number as text"),
        (9, "outlier", "standard", "1/0", "expected an exact number as text"),
        (9, "outlier", "norm_ratio", ["1"], "expected a list of 2 exact numbers"),
        (9, "outlier", "norm_ratio", [6.0, 6.1], "expected an exact number as text"),
    ],
)
def test_enlarged_claims(tampered, n, name, key, value, sentence):
    root(tampered, n, name)[key] = value
    refuse(tampered, sentence, n)


@pytest.mark.parametrize("key", ["name", "norm_ratio", "multiplier", "growth", "pairs", "standard", "spectral_radius"])
def test_missing_field(tampered, key):
    del root(tampered, 9, "outlier")[key]
    refuse(tampered, rf"^n = 9.*: the field '{key}' is missing\.$", 9)


def test_wrong_n(tampered):
    entry(tampered, 8)["n"] = 9
    refuse(tampered, r"^n = 8: the entry is for n = 9 instead\.$", 8)


def test_right_label_on_another_entry(tampered):
    tampered["single"][5] = {**copy.deepcopy(entry(tampered, 9)), "n": 8}
    refuse(tampered, r"^n = 8", 8)


def test_an_outlier_is_not_found_below_seven(tampered):
    tampered["single"][3] = {**copy.deepcopy(entry(tampered, 7)), "n": 6}
    refuse(tampered, r"^n = 6", 6)


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("schema", "another", r"^The certificate's schema must be '.*', got 'another'\.$"),
        ("schema", None, r"^The certificate: the field 'schema' must be of type str, got NoneType\.$"),
        ("statement", "For every n >= 5.", r"^The certificate's statement is not the theorem that this checker verif"),
        ("single", [], r"^The certificate must treat n = 3 to 64 one by one, got 0 entries\.$"),
        ("larger", [], r"^The certificate: the field 'larger' must be of type dict, got list\.$"),
    ],
)
def test_wrong_top_level(tampered, key, value, sentence):
    tampered[key] = value
    refuse(tampered, sentence)


@pytest.mark.parametrize("value", [[], None, "text", 7])
def test_not_a_certificate_at_all(value):
    refuse(value, r"^The certificate: the field 'schema' is missing\.$")


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("first_n", 60, "the uniform part must begin at n = 65, got 60"),
        ("first_n", True, "the field 'first_n' must be of type int, got bool"),
        ("gap", "1", "the gap must lie between 0 and 1, got 1"),
        ("gap", "99/100", "the bound on the multipliers is not shown for"),
        ("ratio_split", "100", "a split lies outside its range"),
        ("ratio_split", "11/10", "F < 0 at the split' is not shown"),
        ("ratio_split", "5", "the boxes do not tile the region exactly"),
        ("deficit_split", "33", "a split lies outside its range"),
        ("deficit_split", "9", "the boxes do not tile the region exactly"),
        ("deficit_split", "13/2", "the boxes do not tile the region exactly|the enclosure of z"),
    ],
)
def test_uniform_part(tampered, key, value, sentence):
    tampered["larger"][key] = value
    refuse(tampered, rf"^n >= 65.*{sentence}", "larger")


@pytest.mark.parametrize("zone", ["middle_by_ratio", "middle_by_deficit"])
def test_uniform_boxes(tampered, zone):
    whole = copy.deepcopy(tampered)
    del tampered["larger"][zone][3]
    refuse(tampered, rf"^n >= 65, {zone}: the boxes do not tile the region exactly\.$", "larger")
    doubled = copy.deepcopy(whole)
    doubled["larger"][zone][3] = doubled["larger"][zone][2]
    refuse(doubled, rf"^n >= 65, {zone}: the boxes do not tile the region exactly\.$", "larger")


def test_uniform_middle_is_really_evaluated(tampered):
    """With the split at p = 1.02, between 1 and the separatrix for n near 65, the middle holds a root."""
    larger = tampered["larger"]
    larger["ratio_split"] = "51/50"
    larger["middle_by_ratio"] = [["0", "1/2", "0", "50/51"]]
    refuse(tampered, r"^n >= 65: 'F < 0 at the split' is not shown\.$", "larger")
    box = [Fraction(0), Fraction(1, 2), Fraction(0), Fraction(1)]
    assert not proof_check_larger._bisected(proof_check_larger._middle_by_ratio, box, 5)


def test_uniform_outlier_boxes(tampered):
    rows = tampered["larger"]["outlier"]
    whole = copy.deepcopy(rows)
    del rows[5]
    refuse(tampered, r"^n >= 65, outlier, box 6: it begins at .*, not where the one before ends, .*\.$", "larger")
    tampered["larger"]["outlier"] = whole[:-1]
    refuse(tampered, r"^n >= 65, outlier: the boxes end at .*, not at 1/\(n - 1\)\.$", "larger")
    shrunk = copy.deepcopy(whole)
    shrunk[5][2] = str(Fraction(shrunk[5][3]) - Fraction(1, 10**6))
    tampered["larger"]["outlier"] = shrunk
    refuse(tampered, r"^n >= 65, outlier, box 6: F does not change its sign between the ends of z\.$", "larger")


@pytest.mark.parametrize(
    ("damage", "sentence"),
    [
        (lambda text: text[: len(text) // 2], r"is not complete JSON: "),
        (lambda text: "", r"is not complete JSON: "),
        (lambda text: text.replace('"19/20"', "NaN"), r"^The certificate holds NaN, which is not an exact number\.$"),
        (lambda text: text.replace('"19/20"', "-Infinity"), r"holds -Infinity, which is not an exact number\.$"),
        (lambda text: "[" * 200_000, r"is not complete JSON: "),
        (lambda text: text.replace('"19/20"', "9" * 5000), r"is not complete JSON: "),
    ],
)
def test_damaged_file(tmp_path, damage, sentence):
    path = tmp_path / "damaged.json"
    path.write_text(damage(FILE.read_text()))
    with pytest.raises(CertificateError, match=sentence):
        proof_check.check_file(path)


def test_missing_file_and_wrong_encoding(tmp_path):
    with pytest.raises(CertificateError, match=r"cannot be read: "):
        proof_check.check_file(tmp_path / "none.json")
    (tmp_path / "bytes.json").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(CertificateError, match=r"cannot be read: "):
        proof_check.check_file(tmp_path / "bytes.json")


def test_any_number_moved_by_a_millionth_is_refused(certificate, seed):
    """A number anywhere in a random entry, moved against its claim, spoils it."""
    chance = random.Random(seed)
    for _ in range(12):
        n = chance.randrange(3, 33)
        one = copy.deepcopy(entry(certificate, n))
        if chance.random() < 0.5:
            box = chance.choice(one["boxes"])
            side = chance.randrange(2)
            box[side] = str(Fraction(box[side]) + chance.choice((-1, 1)) * Fraction(1, 10**6))
        else:
            claim = chance.choice(one["roots"])
            key = chance.choice(sorted(set(claim) - {"name"}))
            if isinstance(claim[key], list):
                side = chance.randrange(2)  # lower end up or upper end down: a sharper claim
                claim[key][side] = str(Fraction(claim[key][side]) + (1 - 2 * side) * Fraction(1, 10**6))
            else:
                claim[key] = str(Fraction(claim[key]) - Fraction(1, 10**6))
        with pytest.raises(CertificateError):
            proof_check.check_single(one, n)


# ------------------------------------------------------------------------------ enclosures


def test_enclosures_contain_the_values(seed):
    def cosine(c):
        return (np.sqrt(1 - c * c) + (np.pi - np.arccos(c)) * c) / np.pi

    exact = {
        proof_check_enclosures.relu_cosine: cosine,
        proof_check_enclosures.slope: lambda c: 1 - np.arccos(c) / np.pi,
        proof_check_enclosures.secant: lambda c: (1 - cosine(c)) / (1 - c),
        proof_check_enclosures.kappa: lambda c: (cosine(c) - c) / (1 - c) ** 1.5,
    }
    generator = np.random.default_rng(seed)
    for function, reference in exact.items():
        for _ in range(20):
            low, high = np.sort(generator.uniform(-1, 0.99, 2))
            enclosure = function(arb(low).union(arb(high)))
            values = reference(np.linspace(low, high, 11))
            assert float(enclosure.lower()) - 1e-9 < values.min()
            assert values.max() < float(enclosure.upper()) + 1e-9
            width = float(enclosure.upper()) - float(enclosure.lower())
            assert width == pytest.approx(values.max() - values.min(), abs=1e-6)  # and they are sharp


def test_enclosures_at_and_beyond_the_ends():
    one = proof_check_enclosures.secant(arb(1))
    assert bool(one == 1)
    assert bool(proof_check_enclosures.relu_cosine(arb(1, 1e-9)).contains(1))
    limit = 2 * arb(2).sqrt() / (3 * arb.pi())
    assert bool(proof_check_enclosures.kappa(arb(1, 1e-9)).contains(limit))
    near = proof_check_enclosures.kappa(1 - arb(2) ** -100)  # cancellation: wide, but still an enclosure
    assert bool(near.overlaps(limit))
    for function in (proof_check_enclosures.relu_cosine, proof_check_enclosures.secant, proof_check_enclosures.kappa):
        assert not bool(function(arb.nan()) < 10)  # what is not a number proves nothing
    assert proof_check_larger._arc(arb(0)) == 1
    assert bool(proof_check_larger._arc(arb(0, 0.1)).contains(1))


def test_no_sign_is_claimed_without_a_number():
    assert not proof_check._within_radius(arb.nan(), arb(0), Fraction(1, 2))
    assert not proof_check._within_radius(arb(0), arb.nan(), Fraction(1, 2))
    assert proof_check._within_radius(arb(0), arb("-0.2"), Fraction(1, 2))  # roots +-0.447
    assert not proof_check._within_radius(arb(0), arb("-0.26"), Fraction(1, 2))
    assert not proof_check._within_radius(arb("0.8"), arb("0.1"), Fraction(1, 2))  # roots 0.645 and 0.155
    assert proof_check._within_radius(arb("0.5"), arb("0.2"), Fraction(1, 2))  # a complex pair of modulus 0.447


def test_tilings():
    def boxes(*rows):
        return [[Fraction(x) for x in row] for row in rows]

    one = Fraction(1)
    assert proof_check_larger._covers(boxes((0, "1/2", 0, 1), ("1/2", 1, 0, "1/3"), ("1/2", 1, "1/3", 1)), one, one)
    assert not proof_check_larger._covers(boxes((0, "1/2", 0, 1)), one, one)
    assert not proof_check_larger._covers(boxes((0, "3/4", 0, 1), ("1/2", "3/4", 0, 1)), one, one)
    assert not proof_check_larger._covers(boxes((0, 2, 0, "1/2")), one, one)
    assert not proof_check_larger._covers([], one, one)


def test_the_certificate_is_of_this_map_and_no_other(certificate, monkeypatch):
    """With a kernel that is larger by a millionth, the same certificate is refused, in both parts."""
    true = proof_check_enclosures.relu_cosine

    def other(c):
        return true(c) * (1 + arb("1e-6"))

    monkeypatch.setattr(proof_check, "relu_cosine", other)
    with pytest.raises(CertificateError, match=r"^n = 7, "):
        proof_check.check_single(entry(certificate, 7), 7)
    monkeypatch.setattr(proof_check_larger, "relu_cosine", lambda c: true(c) * arb("1.5"))
    with pytest.raises(CertificateError, match=r"^n >= 65"):
        proof_check_larger.check_larger(certificate["larger"], 64)


def test_what_nobody_checks_is_not_carried_along(tampered):
    places = {
        "The certificate": tampered,
        "n = 4": tampered["single"][1],
        "n = 7, separatrix state": tampered["single"][4]["roots"][1],
        "n >= 65": tampered["larger"],
    }
    for where, entry in places.items():
        entry["spectral radius, by the way"] = "0.5"
        with pytest.raises(CertificateError) as refusal:
            proof_check.check(tampered)
        assert str(refusal.value).startswith(where)
        assert "is not one that the checker verifies" in str(refusal.value)
        del entry["spectral radius, by the way"]


def test_a_field_stands_once(tmp_path):
    text = FILE.read_text(encoding="utf-8")
    (tmp_path / "c.json").write_text(text.replace('"n": 3,', '"n": 99, "n": 3,', 1), encoding="utf-8")
    with pytest.raises(CertificateError, match="repeats a field"):
        proof_check.check_file(tmp_path / "c.json")


def test_bounds_are_shown_rounded_outward():
    shown = proof_check._shown
    assert shown(Fraction("0.9842824"), 6) == "0.984283"
    assert shown(Fraction("0.94999999999999999999999"), 4, down=True) == "0.9499"
    assert shown(Fraction(13111, 2048), 3, down=True) == "6.401"
    assert shown(Fraction("-0.0005"), 3) == "0.000"
    assert shown(Fraction("-1.25"), 1) == "-1.2"
