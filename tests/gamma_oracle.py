"""A slow oracle for γ(X): enumerate which sets of cones a function f_v can vanish on, by exact linear algebra."""

from fractions import Fraction

import numpy as np

_PRIME = 1_000_000_007


def _residue(value: float) -> int:
    exact = Fraction(float(value))
    return exact.numerator * pow(exact.denominator, -1, _PRIME) % _PRIME


def _reduced(rows: list[list[int]]) -> list[list[int]]:
    """Row echelon form modulo the prime, without zero rows."""
    echelon: list[tuple[int, list[int]]] = []
    for row in rows:
        for pivot, other in echelon:
            if row[pivot]:
                factor = row[pivot]
                row = [(a - factor * b) % _PRIME for a, b in zip(row, other, strict=True)]
        pivot = next((index for index, entry in enumerate(row) if entry), None)
        if pivot is not None:
            inverse = pow(row[pivot], -1, _PRIME)
            echelon.append((pivot, [entry * inverse % _PRIME for entry in row]))
    return [row for _, row in echelon]


def least_nonzero_probability(x: np.ndarray, active: np.ndarray, probability: np.ndarray) -> float:
    """Minimum over v != 0 of the probability of the cones on which f_v does not vanish.

    `active` is (cones, n): which samples are active on each cone; `probability` is (cones,). With shape (cones, k, n)
    an entry stands for k cones on which f_v has to vanish together.
    """
    n, d = x.shape
    entries = [[_residue(value) for value in row] for row in x]
    together = active if active.ndim == 3 else active[:, None, :]
    equations = [
        [[entries[j][axis] if on[j] else 0 for j in range(n)] for on in cone for axis in range(d)] for cone in together
    ]

    def closure(cones: frozenset) -> frozenset | None:
        """All cones on which every f_v vanishes that vanishes on these; None if only v = 0 does."""
        known = _reduced([row for cone in cones for row in equations[cone]])
        if len(known) == n:
            return None
        return frozenset(
            cone for cone in range(len(active)) if cone in cones or len(_reduced(known + equations[cone])) == len(known)
        )

    root = closure(frozenset())
    seen, waiting, least = {root}, [root], 1.0
    while waiting:
        silent = waiting.pop()
        least = min(least, 1 - float(sum(probability[cone] for cone in silent)))
        for cone in range(len(active)):
            larger = None if cone in silent else closure(silent | {cone})
            if larger is not None and larger not in seen:
                seen.add(larger)
                waiting.append(larger)
    return least


def planar_cones(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Active samples and probability of each sector of the circle."""
    direction = np.arctan2(x[:, 1], x[:, 0])
    rays = np.sort(np.concatenate([direction + np.pi / 2, direction - np.pi / 2]) % (2 * np.pi))
    width = np.diff(rays, append=rays[0] + 2 * np.pi)
    middle = (rays + width / 2)[width > 1e-12]
    w = np.stack([np.cos(middle), np.sin(middle)], axis=1)
    return w @ x.T > 0, width[width > 1e-12] / (2 * np.pi)


def antipodal_pairs(active: np.ndarray, probability: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Join each sector with its antipode: the minimum over the v that vanish on both, which is all of them if m = 0."""
    half = len(active) // 2
    assert (active[:half] == ~active[half:]).all()
    return np.stack([active[:half], active[half:]], axis=1), probability[:half] + probability[half:]


def sampled_cones(x: np.ndarray, count: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Active samples and frequency of the cones that `count` Gaussian neurons fall into."""
    patterns, hits = np.unique(rng.standard_normal((count, x.shape[1])) @ x.T > 0, axis=0, return_counts=True)
    return patterns, hits / count
