"""Kinds of parameters (see `bnlib.parameters`) of the chapter on gradients."""

from bnlib.gradient_theory import parsed_activation
from bnlib.mean_field import GRADIENT_MINIMUM
from bnlib.parameters import ParameterError, integers, listed


def moment_batch_sizes(name: str, value: object) -> list[int]:
    """A parameter kind (`bnlib.parameters`): batch sizes at which the mean squared gradient exists.

    Args:
        name: of the parameter.
        value: as it was given.

    Raises:
        ParameterError: no list of different whole numbers, or one below 4, in one sentence that says why.

    Example:
        >>> moment_batch_sizes("batch_sizes", [4, 8])
        [4, 8]
    """
    sizes = integers(minimum=2)(name, value)
    if min(sizes) < GRADIENT_MINIMUM:
        raise ParameterError(
            f"parameter {name} is {value!r}, but every batch size must be at least {GRADIENT_MINIMUM}, because the "
            "mean squared gradient is infinite at 3 and gradients vanish at 2"
        )
    return sizes


def activation_names(name: str, value: object) -> list[str]:
    """Names of different activations, see `bnlib.gradient_theory.parsed_activation`.

    Args:
        name: of the parameter.
        value: a list, or a string that holds it in JSON.

    Raises:
        ParameterError: no list, a name twice, or an unknown name, in one sentence.

    Example:
        >>> activation_names("activations", '["relu", "tanh 0.5"]')
        ['relu', 'tanh 0.5']
    """
    valid = 'it must be a list of different activations such as ["relu", "tanh 0.5"]'
    found = listed(name, value, valid)
    if len({str(one) for one in found}) < len(found):
        raise ParameterError(f"parameter {name} is {value!r}, but {valid}")
    for one in found:
        try:
            parsed_activation(one)
        except (ValueError, AttributeError):
            raise ParameterError(f"parameter {name} is {value!r}, but {one!r} is no activation that is known") from None
    return found
