"""Reading a certificate of Theorem 14' (chapter 7): exact numbers, and one sentence for whatever is wrong."""

import re
from fractions import Fraction

_NUMBER = re.compile(r"-?\d+(/[1-9]\d*|\.\d+)?", re.ASCII)

Interval = tuple[Fraction, Fraction]


class CertificateError(ValueError):
    """The certificate is damaged, or claims more than the checker can verify."""


def require(condition: bool, sentence: str) -> None:
    """Refuse the certificate with this sentence unless the condition holds.

    Example:
        >>> require(True, "never seen")
    """
    if not condition:
        raise CertificateError(sentence)


def field(entry: object, name: str, kind: type, where: str):
    """A field of one entry, of the right type.

    Example:
        >>> field({"n": 7}, "n", int, "n = 7")
        7
    """
    require(isinstance(entry, dict) and name in entry, f"{where}: the field '{name}' is missing.")
    value = entry[name]
    valid = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    require(valid, f"{where}: the field '{name}' must be of type {kind.__name__}, got {type(value).__name__}.")
    return value


def only_fields(entry: object, names: tuple[str, ...], where: str) -> None:
    """Refuse an entry with a field that the checker does not read: a reader would take it for verified.

    Example:
        >>> only_fields({"n": 7}, ("n", "boxes"), "n = 7")
    """
    extra = sorted(str(name) for name in entry if name not in names) if isinstance(entry, dict) else []
    require(not extra, f"{where}: the field {extra[0]!r} is not one that the checker verifies." if extra else "")


def unrepeated(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """The fields of one JSON object, each of which may stand only once.

    Example:
        >>> unrepeated([("n", 7)])
        {'n': 7}
    """
    fields = dict(pairs)
    require(len(fields) == len(pairs), f"The certificate repeats a field in one entry, among {sorted(fields)[:3]}.")
    return fields


def exact(text: object, where: str) -> Fraction:
    """An exact number from its text.

    Example:
        >>> exact("13/8", "here")
        Fraction(13, 8)
    """
    valid = isinstance(text, str) and len(text) < 200 and _NUMBER.fullmatch(text) is not None
    require(valid, f"{where}: expected an exact number as text, such as '13/8' or '0.75', got {text!r}.")
    return Fraction(text)


def numbers(values: object, count: int, where: str) -> list[Fraction]:
    """A list of `count` exact numbers.

    Example:
        >>> numbers(["1", "0.5"], 2, "here")
        [Fraction(1, 1), Fraction(1, 2)]
    """
    valid = isinstance(values, list) and len(values) == count
    require(valid, f"{where}: expected a list of {count} exact numbers, got {values!r}.")
    return [exact(value, where) for value in values]


def interval(values: object, where: str) -> Interval:
    """Two exact numbers in rising order.

    Example:
        >>> interval(["1/2", "1"], "here")
        (Fraction(1, 2), Fraction(1, 1))
    """
    lower, upper = numbers(values, 2, where)
    require(lower <= upper, f"{where}: the interval's ends are in the wrong order, {values!r}.")
    return lower, upper
