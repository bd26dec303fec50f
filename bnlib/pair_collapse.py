"""Two nearby samples in a ReLU network of finite width: how the angle between them moves in one layer, exactly.

A layer of d neurons with He weights keeps k of them active, k binomial with d trials of 1/2. An infinitesimal angle is
multiplied by chi_{k-1}/chi_k, numerator and denominator independent. Natural logarithms; no torch.
"""

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import digamma, gammaln, polygamma


@dataclass(frozen=True)
class PairStep:
    """One layer's multiplier of an infinitesimal angle, given that at least two neurons are active.

    Attributes:
        drift: mean of its natural logarithm, a layer; about -1/width.
        variance: variance of its natural logarithm, a layer; about 2/width.
        lost: probability that fewer than two neurons are active, where the angle becomes 0 or has no meaning.
    """

    drift: float
    variance: float
    lost: float


def pair_step(width: int) -> PairStep:
    """The law of one layer's multiplier of an infinitesimal angle.

    Given k active neurons: drift (psi((k-1)/2) - psi(k/2))/2, variance (psi'((k-1)/2) + psi'(k/2))/4, and
    the multiplier itself has mean E[chi_{k-1}] E[1/chi_k] = 1 exactly.

    Args:
        width: number of neurons of the layer, at least 2.

    Returns:
        The moments, averaged over the binomial number of active neurons.

    Raises:
        ValueError: width < 2.

    Example:
        >>> step = pair_step(100)
        >>> round(step.drift * 100, 2), round(step.variance * 100, 2)
        (-1.04, 2.08)
    """
    if not width >= 2:
        raise ValueError(f"width must be at least 2, got {width}.")
    k = np.arange(2, width + 1, dtype=float)
    log_share = gammaln(width + 1) - gammaln(k + 1) - gammaln(width - k + 1) - width * math.log(2.0)
    lost = (width + 1) * 2.0**-width
    share = np.exp(log_share) / (1.0 - lost)
    drift = 0.5 * (digamma((k - 1) / 2) - digamma(k / 2))
    spread = 0.25 * (polygamma(1, (k - 1) / 2) + polygamma(1, k / 2))
    mean = float(share @ drift)
    return PairStep(mean, float(share @ (spread + drift**2)) - mean**2, lost)
