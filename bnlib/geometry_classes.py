"""Which geometry a batch shows: symmetric, one outlier, collapse on a ray, a line, or another; by one rule.

The rule looks at directions and at distances. Directions are angles between samples. Distances do not move with a
common shift, so that a layer whose activation adds one (abs, a leaky ReLU of any slope) is judged as ReLU is: the odd
sample is the one farthest from the mean of the batch, and its *separation* is its distance from the mean of the others
over the root mean squared distance of these from their mean. Both come from the Gram matrix.
"""

import math
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

CLASSES = ("symmetric", "outlier", "collapse", "line", "other", "broken")
SYMMETRIC, OUTLIER, COLLAPSE, LINE, OTHER, BROKEN = range(len(CLASSES))


@dataclass(frozen=True)
class Rule:
    """The numbers of the rule; the book's stand in `book/claims.yml`.

    Attributes:
        collapse_deg: largest angle of a collapsed batch, and largest angle to a common line, degrees.
        separation: least separation of an outlier, and bound of everybody's in a symmetric batch. It lies between the
            sqrt(n/(n-2)) of equal distances, at most 1.42 from n = 4 on, and the 5.8 and more of the outlier states.
        lead: least distance of an outlier from the mean of the others over that of any other.
        least_angle: least angle between two samples over the mean angle in a symmetric batch.
        norm_spread: largest over smallest norm in a symmetric batch.
    """

    collapse_deg: float = 10.0
    separation: float = 3.0
    lead: float = 2.0
    least_angle: float = 0.1
    norm_spread: float = 4.0

    def __post_init__(self):
        if not 0 < self.collapse_deg < 90:
            raise ValueError(f"collapse_deg is {self.collapse_deg}; valid is an angle between 0 and 90 degrees.")
        if not (0 < self.separation < math.inf and 0 < self.lead < math.inf):
            raise ValueError(f"separation and lead are {self.separation} and {self.lead}; valid are positive numbers.")
        if not 0 < self.least_angle <= 1:
            raise ValueError(f"least_angle is {self.least_angle}; valid is a share of the mean angle, up to 1.")
        if not 1 <= self.norm_spread < math.inf:
            raise ValueError(f"norm_spread is {self.norm_spread}; valid is a ratio of norms, from 1 on.")

    @classmethod
    def of_claim(cls, claim: dict[str, Any]) -> "Rule":
        """The rule that an entry of `book/claims.yml` holds in its field `thresholds`.

        Args:
            claim: the entry.

        Raises:
            ValueError: the entry has no such field, or one that does not name exactly the rule's numbers.

        Example:
            >>> Rule.of_claim({"thresholds": vars(Rule())}) == Rule()
            True
        """
        found = claim.get("thresholds")
        names = [field.name for field in fields(cls)]
        if not isinstance(found, dict) or sorted(found) != sorted(names):
            raise ValueError(f"thresholds are {found!r}; valid is a mapping of {', '.join(names)}.")
        return cls(**{name: float(found[name]) for name in names})


@dataclass(frozen=True)
class Shape:
    """What the rule looks at; one number a draw. Samples that are zero have no direction: their angles do not count.

    Attributes:
        smallest_angle: between two samples, radians, shape (...); NaN where fewer than two samples have a direction.
        mean_angle: over all pairs, radians, shape (...).
        largest_angle: between two samples, radians, shape (...).
        line_angle: largest angle between the lines of two samples, min(angle, pi - angle), radians, shape (...).
        norm_spread: largest over smallest norm, shape (...); infinite where a sample is zero.
        index: the odd sample, farthest from the mean of the batch, shape (...).
        separation: its distance from the mean of the others over their root mean squared distance from it, shape (...);
            infinite where the others coincide, NaN where all do.
        lead: that distance over the largest of another sample from the same mean, shape (...); likewise.
        odd_angle: between the odd sample and the mean of the others, radians, shape (...).
    """

    smallest_angle: Float[Tensor, "*draws"]
    mean_angle: Float[Tensor, "*draws"]
    largest_angle: Float[Tensor, "*draws"]
    line_angle: Float[Tensor, "*draws"]
    norm_spread: Float[Tensor, "*draws"]
    index: Int[Tensor, "*draws"]
    separation: Float[Tensor, "*draws"]
    lead: Float[Tensor, "*draws"]
    odd_angle: Float[Tensor, "*draws"]


def shape_of(gram: Float[Tensor, "*draws n n"]) -> Shape:
    """Angles, norms and the separation of the odd sample, from the Gram matrix.

    Angles below about 1e-8 are lost in the Gram matrix, which is far below every angle of the rule.

    Args:
        gram: inner products of the samples, shape (..., n, n), n at least 3; its scale does not matter.

    Returns:
        The numbers.

    Raises:
        ValueError: not a stack of square matrices of size three or more.

    Example:
        >>> found = shape_of(torch.eye(4, dtype=torch.float64))
        >>> round(math.degrees(found.mean_angle), 9), round(found.separation.item() ** 2, 9)  # 4/(4-2)
        (90.0, 2.0)
    """
    if gram.ndim < 2 or gram.shape[-1] != gram.shape[-2] or gram.shape[-1] < 3:
        raise ValueError(f"gram has shape {tuple(gram.shape)}; valid is a Gram matrix (..., n, n) with n >= 3.")
    n = gram.shape[-1]
    squares = gram.diagonal(dim1=-2, dim2=-1)
    norms = squares.sqrt()
    first, second = torch.triu_indices(n, n, 1, device=gram.device)  # every pair once
    products = gram.flatten(-2).index_select(-1, first * n + second)
    angles = torch.acos((products / norms[..., first] / norms[..., second]).clamp(-1, 1))
    known = ~angles.isnan()
    least = torch.where(known, angles, math.inf).amin(dim=-1)
    largest = torch.where(known, angles, -math.inf).amax(dim=-1)
    lines = torch.where(known, torch.minimum(angles, math.pi - angles), -math.inf).amax(dim=-1)
    nothing = ~known.any(dim=-1)
    everybody = torch.ones_like(squares)
    centered = _squared_distances(gram, everybody)
    farthest, index = centered.max(dim=-1)
    # Total squared distance = that of the others to their mean + n/(n-1) times that of the odd one to the mean of all.
    within = (centered.sum(dim=-1) - n / (n - 1) * farthest).clamp(min=0) / (n - 1)
    others = everybody.scatter(-1, index[..., None], 0.0)
    odd = squares.gather(-1, index[..., None]).squeeze(-1)
    to_others = (gram.gather(-2, index[..., None, None].expand(*index.shape, 1, n)).squeeze(-2) * others).sum(dim=-1)
    sum_square = ((gram @ others[..., None]).squeeze(-1) * others).sum(dim=-1).clamp(min=0)
    return Shape(
        least.masked_fill(nothing, math.nan),
        angles.nanmean(dim=-1),
        largest.masked_fill(nothing, math.nan),
        lines.masked_fill(nothing, math.nan),
        norms.amax(dim=-1) / norms.amin(dim=-1),
        index,
        n / (n - 1) * (farthest / within).sqrt(),
        n / (n - 1) * (farthest / _squared_distances(gram, others).amax(dim=-1)).sqrt(),
        torch.acos((to_others / (odd * sum_square).sqrt()).clamp(-1, 1)),
    )


def _squared_distances(gram: Tensor, present: Tensor) -> Tensor:
    """Squared distances of the samples that are present (weights 0 or 1) from their mean; zero for the others."""
    count = present.sum(dim=-1, keepdim=True)
    rows = (gram @ present[..., None]).squeeze(-1) / count
    total = (rows * present).sum(dim=-1, keepdim=True) / count
    return (gram.diagonal(dim1=-2, dim2=-1) - 2 * rows + total).clamp(min=0) * present


def classify(shape: Shape, rule: Rule | None = None) -> Int[Tensor, "*draws"]:
    """The class of each draw: the first that applies of broken, collapse, line, outlier, symmetric; else other.

    * broken: a norm or a separation is not a number, as after an overflow;
    * collapse: all samples within `collapse_deg` of each other;
    * line: all samples within `collapse_deg` of one line, on both sides of the origin;
    * outlier: the odd sample's separation is at least `separation`, and its lead at least `lead`;
    * symmetric: nobody is special: separation below that, smallest angle and norms within their bounds.

    Args:
        shape: what `shape_of` returned.
        rule: its numbers; the defaults without.

    Returns:
        Positions in `CLASSES`, shape (...).

    Example:
        >>> CLASSES[classify(shape_of(torch.eye(5, dtype=torch.float64)))]
        'symmetric'
        >>> CLASSES[classify(shape_of(torch.ones(5, 5, dtype=torch.float64)))]
        'collapse'
    """
    rule = rule or Rule()
    near = math.radians(rule.collapse_deg)
    found = torch.full_like(shape.index, OTHER)
    stands_out = shape.separation >= rule.separation
    even = (shape.smallest_angle >= rule.least_angle * shape.mean_angle) & (shape.norm_spread <= rule.norm_spread)
    found[~stands_out & even] = SYMMETRIC
    found[stands_out & ~(shape.lead < rule.lead)] = OUTLIER
    found[shape.line_angle <= near] = LINE
    found[shape.largest_angle <= near] = COLLAPSE
    # Where all samples coincide nobody is odd, which is a collapse and no error.
    number = ~(shape.separation.isnan() | shape.norm_spread.isnan()) | (shape.largest_angle <= near)
    found[~number] = BROKEN
    return found


def settled_from(classes: Int[np.ndarray, "depth draws"]) -> Int[np.ndarray, "draws"]:
    """First layer, counted from 1, from which on a draw keeps the class that it has in the last layer.

    Args:
        classes: positions in `CLASSES`, row t after layer t + 1.

    Returns:
        Layers, shape (draws,).

    Raises:
        ValueError: no layers.

    Example:
        >>> settled_from(np.array([[0, 1], [1, 1], [1, 1]])).tolist()
        [2, 1]
    """
    if len(classes) == 0:
        raise ValueError("classes has no layers; valid is at least one.")
    differs: Bool[np.ndarray, "depth draws"] = classes != classes[-1]
    last = len(classes) - np.argmax(differs[::-1], axis=0)
    return np.where(differs.any(axis=0), last + 1, 1)
