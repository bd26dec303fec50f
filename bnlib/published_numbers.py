"""Printed numbers beside ours: does a value, rounded as a source rounds, give what the source prints?"""

from collections.abc import Sequence


def agrees(printed: str, value: float | int) -> bool:
    """Whether a value rounds to a printed decimal number.

    Args:
        printed: a decimal number as a source prints it, e.g. "1.467".
        value: ours.

    Raises:
        ValueError: printed is no decimal number.

    Example:
        >>> import math
        >>> agrees("1.467", math.pi / (math.pi - 1)), agrees("1.13", 1.136)
        (True, False)
    """
    try:
        number = float(printed)
    except ValueError:
        raise ValueError(f"printed must be a decimal number such as 1.467, got {printed!r}.") from None
    digits = len(printed.partition(".")[2])
    # Half a unit of the last printed digit, and the rounding of the comparison itself.
    return abs(value - number) <= 0.5 * 10.0**-digits * (1 + 1e-9)


def comparison(rows: Sequence[tuple[str, str, str, float | int]]) -> list[dict[str, str | float | bool]]:
    """Rows of a table of printed numbers.

    Args:
        rows: (source, quantity, printed number, ours).

    Returns:
        Dictionaries with "source", "quantity", "printed", "ours" and "agrees".

    Raises:
        ValueError: a printed number is no decimal number.

    Example:
        >>> comparison([("a map", "ReLU, large batches", "1.467", 1.46694)])[0]["agrees"]
        True
    """
    return [
        {
            "source": source,
            "quantity": quantity,
            "printed": printed,
            "ours": float(ours),
            "agrees": agrees(printed, ours),
        }
        for source, quantity, printed, ours in rows
    ]
