"""The three stages of batch normalization as separate switches: recentering, rescaling, non-linearity.

Notation of the whole package: a batch is a matrix with one sample a row, ``(..., n, d)``, and every leading
dimension is an independent draw. A layer is ``x @ W`` followed by the stages that are switched on: RC, RS, NL (the
normalization before the activation, as batch norm is defined), or NL, RC, RS (after it).
"""

from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Float
from torch import Tensor

Rescaling = Literal["none", "rms", "std"]
Nonlinearity = Literal["identity", "relu"]

_TOKENS = ("RC", "RS", "RMS", "STD", "NL")


@dataclass(frozen=True)
class Stages:
    """Which stages follow the linear map, and in which order: RC, RS, NL, or NL, RC, RS.

    Attributes:
        recentering: RC, subtract each neuron's mean over the batch (known in the field as mean-only batch norm).
        rescaling: RS, divide each neuron by its root mean square over the batch (``"rms"``) or by its standard
            deviation (``"std"``); the two are the same after RC and differ without it.
        nonlinearity: NL, ``"relu"`` or ``"identity"``.
        norm_after: whether RC and RS come after NL; false where one of the two sides is empty, so that equal layers
            are equal objects.

    Raises:
        ValueError: an unknown value, or ``norm_after`` without NL or without RC and RS.

    Example:
        >>> Stages.parse("RC+NL")
        Stages(recentering=True, rescaling='none', nonlinearity='relu', norm_after=False)
        >>> Stages(True, "std", "relu").name, Stages(True, "std", "relu", norm_after=True).name
        ('RC+RS+NL', 'NL+RC+RS')
    """

    recentering: bool = False
    rescaling: Rescaling = "none"
    nonlinearity: Nonlinearity = "identity"
    norm_after: bool = False

    def __post_init__(self):
        if self.rescaling not in ("none", "rms", "std"):
            raise ValueError(f'rescaling must be "none", "rms" or "std", not {self.rescaling!r}.')
        if self.nonlinearity not in ("identity", "relu"):
            raise ValueError(f'nonlinearity must be "identity" or "relu", not {self.nonlinearity!r}.')
        if self.norm_after and (self.nonlinearity == "identity" or not (self.recentering or self.rescaling != "none")):
            raise ValueError("norm_after needs a non-linearity and a normalization whose order it says.")

    @classmethod
    def parse(cls, text: str) -> "Stages":
        """Read a name such as ``"RC+RS+NL"``.

        Args:
            text: tokens joined by ``+`` in the order of the layer: ``RC``; then one of ``RS`` (only after RC),
                ``RMS``, ``STD``; with ``NL`` behind them or before them. The empty string or ``"none"`` is the linear
                layer.

        Returns:
            The stages. After RC the three rescalings are one and the same, and all are read as ``"std"``.

        Raises:
            ValueError: an unknown, repeated or misplaced token, or RS without RC.

        Example:
            >>> Stages.parse("RMS").rescaling, Stages.parse("NL+RMS").norm_after
            ('rms', True)
        """
        tokens = [] if text.strip().lower() in ("", "none") else [t.strip().upper() for t in text.split("+")]
        for token in tokens:
            if token not in _TOKENS:
                raise ValueError(f"stages contain {token!r} in {text!r}; valid are RC, RS, RMS, STD and NL.")
        after = tokens[:1] == ["NL"]
        position = {"RC": 0, "RS": 1, "RMS": 1, "STD": 1, "NL": -1 if after else 2}
        places = [position[token] for token in tokens]
        if sorted(set(places)) != places:
            raise ValueError(f"stages {text!r} must name each stage once, in the order RC, RS, NL or NL, RC, RS.")
        recentering = "RC" in tokens
        if "RS" in tokens and not recentering:
            raise ValueError(
                f"stages {text!r} leave open what RS divides by: without RC choose RMS (root mean square) or STD "
                "(standard deviation)."
            )
        if 1 not in places:
            rescaling: Rescaling = "none"
        else:
            rescaling = "rms" if "RMS" in tokens and not recentering else "std"
        return cls(recentering, rescaling, "relu" if "NL" in tokens else "identity", after and len(tokens) > 1)

    @property
    def name(self) -> str:
        """The canonical name: ``"RC+RS+NL"``, ``"NL+RMS"``, ..., and ``"none"`` for the linear layer."""
        tokens = ["RC"] if self.recentering else []
        if self.rescaling != "none":
            tokens.append("RS" if self.recentering else self.rescaling.upper())
        if self.nonlinearity == "relu":
            tokens.insert(0 if self.norm_after else len(tokens), "NL")
        return "+".join(tokens) or "none"


def recenter(x: Float[Tensor, "*draws n d"]) -> Float[Tensor, "*draws n d"]:
    """RC: subtract from each neuron its mean over the batch, ``x -> G x`` with ``G = I - 11'/n``.

    The field knows the stage as mean-only batch normalization (Salimans & Kingma, arXiv 1602.07868, section 4).
    A constant column comes out as exactly zero, whatever the rounding of its mean.

    Args:
        x: batch, samples in rows, shape (..., n, d).

    Returns:
        The recentered batch, same shape.

    Raises:
        ValueError: fewer than two dimensions, or n < 2.

    Example:
        >>> recenter(torch.tensor([[1.0], [3.0]], dtype=torch.float64)).tolist()
        [[-1.0], [1.0]]
    """
    check_batch(x)
    # Differences to the first sample are exact where samples nearly agree, so that RS after RC divides no noise.
    shifted = x - x[..., :1, :]
    return shifted.sub_(shifted.mean(dim=-2, keepdim=True))


def rescale(x: Float[Tensor, "*draws n d"], by: Rescaling = "std") -> Float[Tensor, "*draws n d"]:
    """RS: divide each neuron by its scale over the batch, with no epsilon.

    Args:
        x: batch, shape (..., n, d).
        by: ``"std"``, the standard deviation about the mean with divisor n, or ``"rms"``, the root mean square.

    Returns:
        The rescaled batch, same shape. A column whose scale is exactly zero stays as it is under ``"rms"`` (it is
        zero) and becomes zero under ``"std"``.

    Raises:
        ValueError: fewer than two dimensions, n < 2, or an unknown ``by``.

    Example:
        >>> rescale(torch.tensor([[3.0], [4.0]], dtype=torch.float64), by="std").tolist()
        [[6.0], [8.0]]
    """
    check_batch(x)
    if by not in ("rms", "std"):
        raise ValueError(f'by must be "rms" or "std", not {by!r}.')
    scale = _column_scale(x if by == "rms" else recenter(x))
    return torch.where(scale == 0, torch.zeros_like(x), x / torch.where(scale == 0, 1.0, scale))


def relu(x: Float[Tensor, "..."]) -> Float[Tensor, "..."]:
    """NL: the positive part, entry by entry.

    Args:
        x: any array.

    Returns:
        ``max(x, 0)``; NaN stays NaN.

    Example:
        >>> relu(torch.tensor([-1.0, 2.0])).tolist()
        [0.0, 2.0]
    """
    return torch.relu(x)


def apply_stages(x: Float[Tensor, "*draws n d"], stages: Stages) -> Float[Tensor, "*draws n d"]:
    """Apply the stages that are switched on to a preactivation, in their order.

    Args:
        x: preactivation, shape (..., n, d).
        stages: which stages are on.

    Returns:
        The representation after the last stage, same shape.

    Raises:
        ValueError: fewer than two dimensions, or n < 2.

    Example:
        >>> apply_stages(torch.tensor([[1.0], [3.0]], dtype=torch.float64), Stages.parse("RC+RS+NL")).tolist()
        [[0.0], [1.0]]
        >>> apply_stages(torch.tensor([[-1.0], [3.0]], dtype=torch.float64), Stages.parse("NL+RC")).tolist()
        [[-1.5], [1.5]]
    """
    check_batch(x)
    if stages.norm_after:
        x = relu(x)
    if stages.recentering:
        x = recenter(x)
    if stages.rescaling != "none":
        # After RC the two scales agree, and the root mean square needs no second recentering.
        x = rescale(x, by="rms" if stages.recentering else stages.rescaling)
    return x if stages.norm_after or stages.nonlinearity == "identity" else relu(x)


def _column_scale(x: Float[Tensor, "*draws n d"]) -> Float[Tensor, "*draws 1 d"]:
    """Root mean square of each column, also where squares leave the number range."""
    size = x.shape[-2] ** 0.5
    scale = torch.linalg.vector_norm(x, dim=-2, keepdim=True) / size
    in_range = (scale > torch.finfo(x.dtype).tiny ** 0.5) & scale.isfinite()
    if bool(in_range.all()):
        return scale
    largest = x.abs().amax(dim=-2, keepdim=True)
    unit = x / torch.where(largest > 0, largest, 1.0)
    return largest * (torch.linalg.vector_norm(unit, dim=-2, keepdim=True) / size)


def check_batch(x: Tensor, minimum: int = 2, name: str = "x") -> None:
    """Refuse what is not a batch of floating-point samples.

    Args:
        x: the candidate.
        minimum: the smallest admissible number of samples.
        name: the argument's name in the message.

    Raises:
        ValueError: wrong type, fewer than two dimensions, fewer than ``minimum`` samples, or no features.

    Example:
        >>> check_batch(torch.zeros(1, 3))
        Traceback (most recent call last):
        ...
        ValueError: x has 1 samples (shape (1, 3)); valid is a batch (..., n, d) with n >= 2.
    """
    if not torch.is_floating_point(x):
        raise ValueError(f"{name} has dtype {x.dtype}; valid is a floating-point tensor.")
    if x.ndim < 2:
        raise ValueError(f"{name} has {x.ndim} dimensions; valid is a batch (..., n, d).")
    if x.shape[-2] < minimum:
        raise ValueError(
            f"{name} has {x.shape[-2]} samples (shape {tuple(x.shape)}); valid is a batch (..., n, d) with "
            f"n >= {minimum}."
        )
    if x.shape[-1] < 1:
        raise ValueError(f"{name} has no features (shape {tuple(x.shape)}); valid is a batch (..., n, d), d >= 1.")
