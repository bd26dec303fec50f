"""Architectures as small named specs: one line of text each, so that a reader adds one in a line.

A spec is a layout (dense, convolution, attention), the stages of its layers in their order, and settings that differ
from the usual ones: `"convolution RC+NL activation=gelu residual=0.5"`. `ARCHITECTURES` holds the chapter's.
"""

import functools
import math
from dataclasses import dataclass, fields
from typing import Any

from bnlib.activations import Activation, activation, leaky_relu
from bnlib.parameters import ParameterError, listed

LAYOUTS = ("dense", "convolution", "attention")
STAGES = ("RC", "RS", "RMS", "STD", "LN", "RN", "NL")
WEIGHTS = ("gaussian", "orthogonal", "standardized")
ACTIVATIONS = ("relu", "leaky:<slope>", "gelu", "silu", "tanh", "abs", "square", "identity")
_NORMS = frozenset(STAGES) - {"NL"}


@dataclass(frozen=True)
class Architecture:
    """One architecture.

    Attributes:
        layout: `dense` layers; `convolution` (3 x 3, circular), normalized per channel over batch and space; or
            `attention`, blocks of self-attention and a two-layer perceptron on short sequences, with skip connections.
        stages: joined by `+`, in their order: RC, recentering over the batch; RS (after RC) or RMS or STD, rescaling
            over the batch; LN, layer norm; RN, RMS norm of each sample; NL, the activation. `none` is the linear layer.
        activation: what NL is; `leaky:0.1` is a leaky ReLU of slope 0.1.
        weights: `gaussian` of independent entries; `orthogonal` (Haar); `standardized`, Gaussian with each neuron's
            weights recentered and rescaled (weight standardization).
        weight_variance: sigma^2, entries of variance sigma^2 / inputs.
        residual: strength s of x + s * branch(x), the branch ending in one more linear map; None without skip
            connection.
        bias: standard deviation of Gaussian biases behind the linear map.
        gamma: factor behind the last normalization.
        beta: standard deviation of Gaussian shifts behind the last normalization, one a neuron.
        epsilon: added to the variance in every rescaling.
        dropout: probability that an entry is dropped behind the layer, the others divided by one minus it.
    """

    layout: str = "dense"
    stages: str = "RC+NL"
    activation: str = "relu"
    weights: str = "gaussian"
    weight_variance: float = 2.0
    residual: float | None = None
    bias: float = 0.0
    gamma: float = 1.0
    beta: float = 0.0
    epsilon: float = 0.0
    dropout: float = 0.0

    def __post_init__(self):
        if self.layout not in LAYOUTS:
            raise ValueError(f"layout is {self.layout!r}; valid are {', '.join(LAYOUTS)}.")
        for token in self.tokens:
            if token not in STAGES:
                raise ValueError(f"stages contain {token!r} in {self.stages!r}; valid are {', '.join(STAGES)}.")
        if len(set(self.tokens)) < len(self.tokens):
            raise ValueError(f"stages are {self.stages!r}; valid is each of {', '.join(STAGES)} at most once.")
        if "RS" in self.tokens and "RC" not in self.tokens[: self.tokens.index("RS")]:
            raise ValueError(f"stages are {self.stages!r}; valid is RS behind RC, or RMS or STD without it.")
        nonlinearity(self.activation)
        if self.weights not in WEIGHTS:
            raise ValueError(f"weights are {self.weights!r}; valid are {', '.join(WEIGHTS)}.")
        for name, least in (("weight_variance", 0.0), ("gamma", 0.0)):
            if not least < getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; valid is a positive number.")
        for name in ("bias", "beta", "epsilon"):
            if not 0 <= getattr(self, name) < math.inf:
                raise ValueError(f"{name} is {getattr(self, name)}; valid is a number from 0 on.")
        if not 0 <= self.dropout < 1:
            raise ValueError(f"dropout is {self.dropout}; valid is a probability from 0 to below 1.")
        if self.residual is not None and not 0 < self.residual < math.inf:
            raise ValueError(f"residual is {self.residual}; valid is a positive strength.")
        if self.layout == "attention" and self.residual is None:
            raise ValueError("layout attention needs residual; valid is a positive strength, as in residual=1.")
        if self.layout == "attention" and (self.bias or self.dropout):
            raise ValueError("layout attention knows neither bias nor dropout; valid is 0 for both.")
        if (self.gamma != 1 or self.beta) and not self.normalized:
            raise ValueError(f"gamma and beta need a normalization, and stages are {self.stages!r}.")

    @classmethod
    def parse(cls, text: str) -> "Architecture":
        """Read a line such as `"convolution RC+NL activation=gelu residual=0.5"`.

        Args:
            text: words: a layout (dense without one), stages, and settings as `name=value`.

        Raises:
            ValueError: a word that is nothing of these; the message names what would be valid.

        Example:
            >>> Architecture.parse("RC+NL activation=leaky:0.1").name
            'dense RC+NL activation=leaky:0.1'
        """
        given: dict[str, Any] = {}
        kinds = {field.name: field.type for field in fields(cls)}
        for word in text.split():
            name, equals, value = word.partition("=")
            if not equals:
                name, value = ("layout", word) if word.lower() in LAYOUTS else ("stages", word)
                value = value.lower() if name == "layout" else "+".join(t.upper() for t in word.split("+"))
            if name not in kinds:
                raise ValueError(f"architecture {text!r} sets {name!r}; valid are {', '.join(kinds)}.")
            if name in given:
                raise ValueError(f"architecture {text!r} says its {name} twice; valid is once.")
            given[name] = value if kinds[name] is str else _number(text, name, value)
        if given.get("stages") == "NONE":
            given["stages"] = "none"
        return cls(**given)

    @property
    def tokens(self) -> tuple[str, ...]:
        """The stages one by one."""
        return () if self.stages == "none" else tuple(self.stages.split("+"))

    @property
    def normalized(self) -> bool:
        """Whether there is a normalization of any kind."""
        return bool(_NORMS & set(self.tokens))

    @property
    def name(self) -> str:
        """The line that `parse` reads, without what is as usual."""
        words = [self.layout, self.stages]
        for field in fields(self)[2:]:
            value = getattr(self, field.name)
            if value != field.default:
                words.append(f"{field.name}={value if isinstance(value, str) else format(value, 'g')}")
        return " ".join(words)

    @property
    def degree(self) -> float | None:
        """The degree q of homogeneity: an input scaled by t > 0 gives t^q times the output; None without one.

        Only then may the scale be divided out, layer by layer, without changing the network's geometry.

        Example:
            >>> Architecture.parse("RC+NL").degree, Architecture.parse("RC+NL activation=gelu").degree
            (1.0, None)
            >>> Architecture.parse("RC+RS+NL activation=gelu").degree
            0.0
        """
        if self.layout == "attention":
            return None  # the softmax has a scale, and the skip connection compares the branch with it
        degree: float | None = None if self.bias and self.tokens[:1] != ("RC",) else 1.0
        last_norm = max((i for i, token in enumerate(self.tokens) if token in _NORMS), default=-1)
        for i, token in enumerate(self.tokens):
            if token in ("RS", "RMS", "STD", "LN", "RN"):
                # A scale that an epsilon compares with is seen; else it is lost here, whatever came before it.
                degree = None if self.epsilon or degree is None else 0.0
            elif token == "NL" and degree != 0:
                own = nonlinearity(self.activation).degree
                degree = None if degree is None or own is None else degree * own
            if i == last_norm and self.beta and degree != 0:
                degree = None
        if self.residual is not None and degree != 1:
            return None
        return degree


@functools.lru_cache(maxsize=256)
def nonlinearity(name: str) -> Activation:
    """The activation of a spec.

    Args:
        name: one of `ACTIVATIONS`, with a number in place of `<slope>`.

    Returns:
        The activation as a NumPy function, with its degree of homogeneity.

    Raises:
        ValueError: an unknown name; the message lists the known ones.

    Example:
        >>> nonlinearity("leaky:0.5").degree
        1
    """
    kind, colon, slope = name.partition(":")
    if kind == "leaky" and colon:
        try:
            return leaky_relu(float(slope))
        except ValueError:
            pass  # told below, with what would be valid
    elif name in ACTIVATIONS:
        return activation(name)
    raise ValueError(f"activation is {name!r}; valid are {', '.join(ACTIVATIONS)}.")


def _number(text: str, name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise ValueError(f"architecture {text!r} sets {name} to {value!r}; valid is a number.") from None


_PLAIN = ("NL", "RC+NL", "RC+RS+NL", "LN+NL")

ARCHITECTURES: dict[str, tuple[str, ...]] = {
    "ReLU": (*_PLAIN, "RN+NL"),
    **{
        row: tuple(f"{stages} activation={name}" for stages in _PLAIN)
        for row, name in (
            ("leaky ReLU, slope 0.5", "leaky:0.5"),
            ("absolute value", "abs"),
            ("GELU", "gelu"),
            ("SiLU", "silu"),
            ("tanh", "tanh"),
            ("square", "square"),
        )
    },
    "identity": ("none", "RC", "RC+RS", "LN"),
    "ReLU, norm after": ("NL+RC", "NL+RC+RS", "NL+LN", "NL+RN"),
    "GELU, norm after": tuple(f"NL+{norm} activation=gelu" for norm in ("RC", "RC+RS", "LN", "RN")),
    "orthogonal weights": tuple(f"{stages} weights=orthogonal" for stages in _PLAIN[:3]),
    "standardized weights": tuple(f"{stages} weights=standardized" for stages in _PLAIN[:3]),
    "residual, strength 0.2": tuple(f"{stages} residual=0.2" for stages in _PLAIN),
    "residual, strength 0.5": tuple(f"{stages} residual=0.5" for stages in _PLAIN[1:3]),
    "residual, strength 1": tuple(f"{stages} residual=1" for stages in _PLAIN),
    "residual, standardized": tuple(f"{stages} weights=standardized residual=0.5" for stages in _PLAIN[:2]),
    "bias 0.1": tuple(f"{stages} bias=0.1" for stages in _PLAIN),
    "shift β = 0.1": tuple(f"{stages} beta=0.1" for stages in _PLAIN[1:]),
    "factor γ = 0.5, shift β = 0.5": tuple(f"{stages} gamma=0.5 beta=0.5" for stages in _PLAIN[1:]),
    "ε = 1e-5": ("RC+RS+NL epsilon=1e-5",),
    "ε = 1": ("RC+RS+NL epsilon=1", "LN+NL epsilon=1"),
    "dropout 0.1": tuple(f"{stages} dropout=0.1" for stages in _PLAIN),
    "convolution": tuple(f"convolution {stages}" for stages in _PLAIN),
    "convolution, residual 0.5": tuple(f"convolution {stages} residual=0.5" for stages in _PLAIN[1:3]),
    "attention": tuple(f"attention {stages} residual=1" for stages in (*_PLAIN, "RN+NL")),
    "attention, norm after": ("attention NL+RC residual=1", "attention NL+LN residual=1"),
}


def chosen(names: list[str]) -> dict[str, tuple[Architecture, ...]]:
    """Rows of the chapter's table, by name or by line.

    Args:
        names: `all`; names of rows of `ARCHITECTURES`; or lines for `Architecture.parse`, each a row of its own.

    Returns:
        Name of the row to its architectures.

    Raises:
        ValueError: no rows, or a line that is neither a row nor an architecture; the message names what would be valid.

    Example:
        >>> [[spec.name for spec in row] for row in chosen(["RC+NL activation=gelu residual=0.5"]).values()]
        [['dense RC+NL activation=gelu residual=0.5']]
    """
    if not names:
        raise ValueError("names is empty; valid are `all`, rows of the table and lines that describe architectures.")
    rows: dict[str, tuple[Architecture, ...]] = {}
    for name in names:
        if name == "all":
            rows |= {row: tuple(Architecture.parse(line) for line in lines) for row, lines in ARCHITECTURES.items()}
        elif name in ARCHITECTURES:
            rows[name] = tuple(Architecture.parse(line) for line in ARCHITECTURES[name])
        else:
            rows[name] = (_parsed(name),)
    return rows


def _parsed(name: str) -> Architecture:
    try:
        return Architecture.parse(name)
    except ValueError as problem:
        rows = "; ".join(ARCHITECTURES)
        raise ValueError(f"{str(problem).rstrip('.')}; and the rows of the table are: {rows}.") from None


def specs(name: str, value: Any) -> list[str]:
    """A kind for `bnlib.parameters.check`: a list of rows and lines for `chosen`, or a string that holds one in JSON.

    Args:
        name: of the parameter.
        value: as it was given.

    Returns:
        The list.

    Raises:
        ParameterError: not a list of strings, or one that `chosen` refuses.

    Example:
        >>> specs("architectures", '["ReLU", "RC+NL residual=2"]')
        ['ReLU', 'RC+NL residual=2']
    """
    valid = "it must be a list of rows of the table and lines that describe architectures"
    lines = listed(name, value, valid)
    if not all(isinstance(line, str) for line in lines):
        raise ParameterError(f"parameter {name} is {value!r}, but {valid}")
    try:
        chosen(list(lines))
    except ValueError as problem:
        raise ParameterError(f"parameter {name} cannot be used: {problem}") from None
    return list(lines)


def activation_names(name: str, value: Any) -> list[str]:
    """A kind for `bnlib.parameters.check`: a list of activations, or a string that holds one in JSON.

    Args:
        name: of the parameter.
        value: as it was given.

    Raises:
        ParameterError: not such a list; the message names the known ones.

    Example:
        >>> activation_names("activations", ["gelu", "tanh"])
        ['gelu', 'tanh']
    """
    lines = listed(name, value, f"it must be a list of activations: {', '.join(ACTIVATIONS)}")
    for line in lines:
        try:
            nonlinearity(line)
        except (ValueError, AttributeError, TypeError):
            raise ParameterError(
                f"parameter {name} holds {line!r}, but valid activations are {', '.join(ACTIVATIONS)}"
            ) from None
    return list(lines)
