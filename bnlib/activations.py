"""Activations by name, each with its derivative: the non-linearities of the mean-field theory and of chapter 11.

NumPy float64; this module does not import torch.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, ndtr

Function = Callable[[np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Activation:
    """One non-linearity, entry by entry.

    Attributes:
        name: as `activation` reads it.
        function: phi, on arrays of any shape.
        derivative: phi', where it exists; at a kink (only at 0) either one-sided value.
        degree: of positive homogeneity, phi(t x) = t^degree phi(x) for t > 0; None without it.
    """

    name: str
    function: Function
    derivative: Function
    degree: float | int | None = None

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """phi(x)."""
        return self.function(np.asarray(x, dtype=np.float64))


def leaky_relu(slope: float | int) -> Activation:
    """Leaky ReLU: x above 0 and slope * x below, of degree one; slope 0 is ReLU, 1 the identity, -1 the absolute value.

    Args:
        slope: any finite number.

    Raises:
        ValueError: slope is not finite.

    Example:
        >>> leaky_relu(0.1)(np.array([-2.0, 3.0]))
        array([-0.2,  3. ])
    """
    if not np.isfinite(slope):
        raise ValueError(f"slope must be finite, got {slope}.")
    return Activation(
        f"leaky relu {slope:g}",
        lambda x: np.where(x > 0, x, slope * x),
        lambda x: np.where(x > 0, 1.0, float(slope)),
        degree=1,
    )


def power_relu(exponent: float | int) -> Activation:
    """ReLU(x)^exponent, the alpha-ReLU of arXiv 1902.08129, section E.1.1.

    Args:
        exponent: positive.

    Raises:
        ValueError: exponent is not positive and finite.

    Example:
        >>> power_relu(2)(np.array([-2.0, 3.0]))
        array([0., 9.])
    """
    if not 0 < exponent < np.inf:
        raise ValueError(f"exponent must be positive and finite, got {exponent}.")

    def derivative(x: np.ndarray) -> np.ndarray:
        positive = np.where(x > 0, x, 1.0)
        return np.where(x > 0, exponent * positive ** (exponent - 1), 0.0)

    return Activation(f"relu^{exponent:g}", lambda x: np.maximum(x, 0.0) ** exponent, derivative, degree=exponent)


def _gaussian_density(x: np.ndarray) -> np.ndarray:
    return np.exp(-(x**2) / 2) / np.sqrt(2 * np.pi)


_NAMED = {
    "identity": Activation("identity", lambda x: x, np.ones_like, degree=1),
    "relu": Activation("relu", lambda x: np.maximum(x, 0.0), lambda x: (x > 0).astype(float), degree=1),
    "abs": Activation("abs", np.abs, np.sign, degree=1),
    "square": Activation("square", np.square, lambda x: 2 * x, degree=2),
    "tanh": Activation("tanh", np.tanh, lambda x: 1 / np.cosh(x) ** 2),
    "sigmoid": Activation("sigmoid", expit, lambda x: expit(x) * expit(-x)),
    "gelu": Activation("gelu", lambda x: x * ndtr(x), lambda x: ndtr(x) + x * _gaussian_density(x)),
    "silu": Activation("silu", lambda x: x * expit(x), lambda x: expit(x) * (1 + x * expit(-x))),
    "sin": Activation("sin", np.sin, np.cos),
    "erf-like": Activation("erf-like", lambda x: 2 * ndtr(x) - 1, lambda x: 2 * _gaussian_density(x)),
}


def activation(name: str) -> Activation:
    """An activation by name.

    Args:
        name: one of identity, relu, abs, square, tanh, sigmoid, gelu, silu, sin, erf-like. `leaky_relu` and
            `power_relu` make the families with a parameter.

    Raises:
        ValueError: an unknown name; the message lists the known ones.

    Example:
        >>> activation("relu")(np.array([-1.0, 2.0]))
        array([0., 2.])
    """
    if name not in _NAMED:
        raise ValueError(f"activation is {name!r}; valid are {', '.join(_NAMED)}.")
    return _NAMED[name]
