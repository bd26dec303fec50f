"""Criteria: what must be seen for a verdict, in a small language that is read and never executed.

An expression may use the names of measured values, subscripts, numbers, strings, lists, comparisons, `and`, `or`,
`not`, `+ - * / **`, `… if … else …`, one `for … in … if …` over a list, and a few functions. Nothing else.
"""

import ast
import math
import operator
import statistics
from collections.abc import Mapping
from typing import Any

VERDICTS = (
    "confirmed",
    "confirmed under conditions",
    "refuted",
    "vacuous",
    "repaired",
    "open",
    "inconclusive",
    "not tested",
)

_FUNCTIONS = {
    "abs": abs,
    "all": all,
    "any": any,
    "len": len,
    "log": math.log,
    "max": max,
    "median": statistics.median,
    "min": min,
    "sqrt": math.sqrt,
    "sum": sum,
}
_BINARY = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_COMPARE = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}


class CriterionError(ValueError):
    """A criterion that is not in the language, or that cannot be evaluated over the values."""


class NotMeasured(CriterionError):
    """A criterion that asks for a value which this run did not measure."""


def evaluate(expression: str, values: Mapping[str, Any]) -> Any:
    """Evaluate an expression over measured values.

    Args:
        expression: a criterion, e.g. `"min(angles) > 85"`.
        values: name to number, string, list or dictionary.

    Returns:
        The value of the expression.

    Raises:
        CriterionError: the expression is not in the language, or its types do not fit.
        NotMeasured: a name or key is not among the values, or a value is null.

    Example:
        >>> cells = [{"n": 4, "angle": 61.0}, {"n": 32, "angle": 89.5}]
        >>> evaluate("all(c['angle'] > 85 for c in cells if c['n'] >= 12)", {"cells": cells})
        True
    """
    try:
        tree = ast.parse(expression.strip(), mode="eval").body
    except SyntaxError as problem:
        raise CriterionError(f"criterion {expression!r} is not an expression: {problem.msg}") from None
    try:
        return _value(tree, dict(values), expression)
    except CriterionError:
        raise
    except (TypeError, ValueError, statistics.StatisticsError) as problem:
        raise CriterionError(f"criterion {expression!r} cannot be evaluated: {problem}") from None


def _value(node: ast.expr, names: dict[str, Any], expression: str) -> Any:
    match node:
        case ast.Constant(value=bool() | int() | float() | str() as constant):
            return constant
        case ast.Name(id=name):
            if name not in names:
                raise NotMeasured(f"criterion {expression!r} asks for {name}, which was not measured")
            return _present(names[name], name, expression)
        case ast.Subscript(value=inner, slice=key_node):
            container, key = _value(inner, names, expression), _value(key_node, names, expression)
            try:
                return _present(container[key], repr(key), expression)
            except (KeyError, IndexError):
                raise NotMeasured(f"criterion {expression!r} asks for {key!r}, which was not measured") from None
        case ast.List(elts=entries) | ast.Tuple(elts=entries):
            return [_value(entry, names, expression) for entry in entries]
        case ast.UnaryOp(op=ast.Not(), operand=inner):
            return not _value(inner, names, expression)
        case ast.UnaryOp(op=ast.USub(), operand=inner):
            return -_value(inner, names, expression)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _BINARY:
            try:
                return _BINARY[type(op)](_value(left, names, expression), _value(right, names, expression))
            except ZeroDivisionError:
                # A share of nothing: the runs that it speaks of did not occur at this size.
                raise NotMeasured(f"criterion {expression!r} divides by zero: nothing was measured") from None
        case ast.BoolOp(op=op, values=parts):
            combine = all if isinstance(op, ast.And) else any
            return combine(bool(_value(part, names, expression)) for part in parts)
        case ast.IfExp(test=test, body=body, orelse=orelse):
            return _value(body if _value(test, names, expression) else orelse, names, expression)
        case ast.Compare(left=left, ops=ops, comparators=rights):
            operands = [_value(part, names, expression) for part in (left, *rights)]
            if any(type(op) not in _COMPARE for op in ops):
                raise CriterionError(f"criterion {expression!r} uses a comparison outside the language")
            return all(_COMPARE[type(op)](a, b) for op, a, b in zip(ops, operands[:-1], operands[1:], strict=True))
        case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]) if name in _FUNCTIONS:
            return _FUNCTIONS[name](*[_value(argument, names, expression) for argument in arguments])
        case ast.GeneratorExp(elt=element, generators=[loop]) | ast.ListComp(elt=element, generators=[loop]):
            return _comprehension(element, loop, names, expression)
    raise CriterionError(f"criterion {expression!r} uses {ast.unparse(node)!r}, which is outside the language")


def _present(value: Any, name: str, expression: str) -> Any:
    if value is None:
        raise NotMeasured(f"criterion {expression!r} asks for {name}, which is null")
    return value


def _comprehension(element: ast.expr, loop: ast.comprehension, names: dict[str, Any], expression: str) -> list:
    if not isinstance(loop.target, ast.Name) or loop.is_async:
        raise CriterionError(f"criterion {expression!r} loops over something other than one name")
    collected = []
    for item in _value(loop.iter, names, expression):
        inner = {**names, loop.target.id: item}
        if all(_value(condition, inner, expression) for condition in loop.ifs):
            collected.append(_value(element, inner, expression))
    if not collected:
        # `all` of nothing is true: a criterion must not be met by measuring nothing.
        raise NotMeasured(f"criterion {expression!r} finds nothing measured that it speaks of")
    return collected


def decide(criterion: str | Mapping[str, str], values: Mapping[str, Any]) -> str:
    """The verdict that a criterion gives over measured values.

    Args:
        criterion: one expression (true: confirmed; false: refuted), or an ordered mapping from verdict to expression,
            of which the first true one decides; none true is inconclusive.
        values: the measured values.

    Returns:
        One of `VERDICTS`; `inconclusive` when a value that decides was not measured.

    Raises:
        CriterionError: an expression outside the language, or a verdict that does not exist.

    Example:
        >>> decide({"refuted": "share < 0.5", "confirmed": "share > 0.9"}, {"share": 0.7})
        'inconclusive'
    """
    rules = {"confirmed": criterion} if isinstance(criterion, str) else dict(criterion)
    for verdict in rules:
        if verdict not in VERDICTS:
            raise CriterionError(f"verdict {verdict!r} does not exist; valid are {', '.join(VERDICTS)}")
    try:
        for verdict, expression in rules.items():
            if evaluate(expression, values):
                return verdict
    except NotMeasured:
        return "inconclusive"
    return "refuted" if isinstance(criterion, str) else "inconclusive"
