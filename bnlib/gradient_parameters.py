"""Kinds of parameters (see `bnlib.parameters`) of the chapter on gradients."""

import json

from bnlib.gradient_theory import parsed_activation
from bnlib.mean_field import GRADIENT_MINIMUM
from bnlib.parameters import Kind, ParameterError, integers, number


def _listed(name: str, value: object, valid: str) -> list:
    found = value
    if isinstance(value, str):
        try:
            found = json.loads(value)
        except json.JSONDecodeError:
            found = None
    if not isinstance(found, list | tuple) or not found:
        raise ParameterError(f"parameter {name} is {value!r}, but it must be a list of {valid}")
    return list(found)


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
    valid = 'different activations such as ["relu", "tanh 0.5"]'
    found = _listed(name, value, valid)
    if len({str(one) for one in found}) < len(found):
        raise ParameterError(f"parameter {name} is {value!r}, but it must be a list of {valid}")
    for one in found:
        try:
            parsed_activation(one)
        except (ValueError, AttributeError):
            raise ParameterError(f"parameter {name} is {value!r}, but {one!r} is no activation that is known") from None
    return found


def numbers(minimum: float | int, maximum: float | int) -> Kind:
    """A list of finite numbers between two bounds, both included.

    Args:
        minimum: the least allowed.
        maximum: the greatest allowed.

    Example:
        >>> numbers(0, 1)("fractions", "[0.5, 1]")
        [0.5, 1.0]
    """

    def convert(name: str, value: object) -> list[float]:
        found = _listed(name, value, f"numbers from {minimum} to {maximum}")
        return [number(minimum, maximum)(name, one) for one in found]

    return convert


def text(name: str, value: object) -> str:
    """A string that is not empty.

    Args:
        name: of the parameter.
        value: as given.

    Raises:
        ParameterError: anything else.

    Example:
        >>> text("data_folder", "data")
        'data'
    """
    if not isinstance(value, str) or not value.strip():
        raise ParameterError(f"parameter {name} is {value!r}, but it must be the name of a folder")
    return value
