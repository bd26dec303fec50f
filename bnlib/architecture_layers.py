"""One layer or block of any architecture of `bnlib.architectures`, for many independent draws at once.

A representation has the shape (draws, n, p, d): n samples of p places with d channels each; p is 1 in dense layers, the
number of pixels in convolutions, the number of tokens in attention. Recentering and rescaling go over samples and
places, channel by channel; layer norm and RMS norm go over one sample (one token, in attention). Weights are fresh in
every draw and every layer, and drawn by the cheapest exact way: with Gaussian, orthogonal or standardized weights the
layer depends on its input through the Gram matrix of the rows alone.
"""

import math
from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional

from bnlib.architectures import Architecture, nonlinearity
from bnlib.ensembles import choose_draw, gaussian, gram_root

_SAFE = 1e-60  # entries between this and its inverse have squares, and sums of squares, in the number range

Representation = Float[Tensor, "draws n p d"]


def activate(x: Float[Tensor, "..."], name: str) -> Float[Tensor, "..."]:
    """An activation of `bnlib.architectures`, entry by entry; the counterpart of `nonlinearity` for tensors.

    Args:
        x: any array.
        name: as in a spec.

    Returns:
        The activation's values, same shape.

    Raises:
        ValueError: an unknown name.

    Example:
        >>> activate(torch.tensor([-2.0, 3.0]), "leaky:0.5").tolist()
        [-1.0, 3.0]
    """
    named: dict[str, Callable[[Tensor], Tensor]] = {
        "relu": torch.relu,
        "gelu": functional.gelu,
        "silu": functional.silu,
        "tanh": torch.tanh,
        "abs": torch.abs,
        "square": torch.square,
        "identity": lambda values: values,
    }
    if name in named:
        return named[name](x)
    nonlinearity(name)  # refuses what is not an activation
    return functional.leaky_relu(x, float(name.partition(":")[2]))


def linear(
    x: Float[Tensor, "draws rows d"],
    width: int,
    *,
    generator: torch.Generator,
    weights: str = "gaussian",
    weight_variance: int | float = 2.0,
    recenter: bool = False,
) -> Float[Tensor, "draws rows width"]:
    """Rows times a fresh weight matrix a draw.

    Args:
        x: rows, shape (draws, rows, d), finite.
        width: number of columns of the weights.
        generator: source of the weights.
        weights: `gaussian`, entries N(0, weight_variance/d); `orthogonal`, that variance on average, W' W or W W' a
            multiple of the identity, Haar distributed; `standardized`, every column of a Gaussian matrix with its mean
            subtracted and its length set to sqrt(weight_variance), that is, variance weight_variance/d.
        weight_variance: sigma^2.
        recenter: subtract the mean of the rows first (which then is done with less rounding than afterwards).

    Returns:
        The product, shape (draws, rows, width).

    Raises:
        ValueError: an unknown kind of weights; or fewer than two rows.

    Example:
        >>> x = torch.eye(3, dtype=torch.float64)[None]
        >>> h = linear(x, 3, generator=torch.Generator().manual_seed(0), weights="orthogonal", weight_variance=1.0)
        >>> torch.allclose(h @ h.mT, x)
        True
    """
    rows, d = x.shape[-2:]
    if weights == "gaussian":
        std = math.sqrt(weight_variance / d)
        if rows < d and choose_draw(max(rows, 2), d, width) == "gram_root":
            root = gram_root(x, recenter=recenter)
            return root @ (std * gaussian(len(x), root.shape[-1], width, generator=generator, dtype=x.dtype))
        if recenter:
            x = x - x.mean(dim=-2, keepdim=True)
        return x @ (std * gaussian(len(x), d, width, generator=generator, dtype=x.dtype))
    if weights not in ("orthogonal", "standardized"):
        raise ValueError(f"weights are {weights!r}; valid are gaussian, orthogonal and standardized.")
    if recenter:
        x = x - x.mean(dim=-2, keepdim=True)
    if weights == "orthogonal":
        return _orthogonal(x, width, generator) * math.sqrt(weight_variance)
    x = x - x.mean(dim=-1, keepdim=True)  # a column of mean zero sees no more of a row than this
    std = math.sqrt(weight_variance)
    if rows >= d:
        w = gaussian(len(x), d, width, generator=generator, dtype=x.dtype)
        w = w - w.mean(dim=-2, keepdim=True)
        return x @ (std * w / torch.linalg.vector_norm(w, dim=-2, keepdim=True))
    # A recentered Gaussian column has d - 1 free directions: the rows see `rows` of them, of the others the length.
    g = gaussian(len(x), rows, width, generator=generator, dtype=x.dtype)
    unseen = g.new_full((len(x), 1, width), (d - 1 - rows) / 2)
    squares = g.square().sum(dim=-2, keepdim=True)
    if d - 1 > rows:
        squares = squares + 2 * torch._standard_gamma(unseen, generator=generator)
    return gram_root(x) @ (std * g / squares.sqrt())


def _orthogonal(x: Tensor, width: int, generator: torch.Generator) -> Tensor:
    """Rows times sqrt(max(d, width)/d) times a uniformly random matrix with orthonormal rows or columns."""
    rows, d = x.shape[-2:]
    if width == d and rows < d:
        # The rows lie in a space of dimension `rows`, which a random rotation takes to a uniformly random frame.
        return gram_root(x) @ _frame(len(x), d, rows, generator, x.dtype).mT
    tall, wide = max(d, width), min(d, width)
    frame = _frame(len(x), tall, wide, generator, x.dtype)
    return math.sqrt(tall / d) * (x @ (frame if d == tall else frame.mT))


def _frame(draws: int, d: int, count: int, generator: torch.Generator, dtype: torch.dtype) -> Tensor:
    """`count` orthonormal columns in dimension d, uniformly distributed."""
    q, r = torch.linalg.qr(gaussian(draws, d, count, generator=generator, dtype=dtype))
    return q * r.diagonal(dim1=-2, dim2=-1).sign()[:, None, :]  # without the signs it would not be uniform


def neighborhoods(x: Representation) -> Float[Tensor, "draws n p nine"]:
    """The 3 x 3 neighborhood of every pixel of square images, on a torus: 9 d channels a place.

    Args:
        x: images, pixels along the third dimension row by row, shape (draws, n, side^2, d).

    Returns:
        Shape (draws, n, side^2, 9 d).

    Raises:
        ValueError: the number of places is no square.

    Example:
        >>> x = torch.arange(9.0, dtype=torch.float64).reshape(1, 1, 9, 1)
        >>> neighborhoods(x)[0, 0, 4].tolist()
        [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    """
    draws, n, p, d = x.shape
    side = math.isqrt(p)
    if side * side != p:
        raise ValueError(f"x has {p} places; valid is a square number of pixels.")
    place = torch.arange(p, device=x.device)
    move = torch.arange(-1, 2, device=x.device)
    row = (place[:, None] // side + move) % side
    column = (place[:, None] % side + move) % side
    beside = (row[:, :, None] * side + column[:, None, :]).reshape(-1)  # nine places for every place
    return x.index_select(2, beside).reshape(draws, n, p, 9 * d)


def stage(h: Representation, token: str, spec: Architecture) -> Representation:
    """Apply one stage of an architecture.

    Args:
        h: representation, shape (draws, n, p, d).
        token: one of `bnlib.architectures.STAGES`.
        spec: says the activation, epsilon, and whether layer norm goes over a sample or a token.

    Returns:
        The representation behind the stage; zero where the scale to divide by is exactly zero (as in `layers.rescale`).

    Example:
        >>> h = torch.tensor([1.0, 3.0], dtype=torch.float64).reshape(1, 2, 1, 1)
        >>> stage(h, "RC", Architecture()).flatten().tolist()
        [-1.0, 1.0]
    """
    if token == "NL":
        return activate(h, spec.activation)
    over_batch = (1, 2)
    over_sample = (3,) if spec.layout == "attention" else (2, 3)
    dims = over_sample if token in ("LN", "RN") else over_batch
    if token in ("RC", "LN"):
        h = h - h.mean(dim=dims, keepdim=True)
        if token == "RC":
            return h
    # RMS and RN divide by the root mean square, RS and LN by that of what was recentered just now.
    about = h - h.mean(dim=dims, keepdim=True) if token == "STD" else h
    scale = (about.square().mean(dim=dims, keepdim=True) + spec.epsilon).sqrt()
    return torch.where(scale == 0, torch.zeros_like(h), h / torch.where(scale == 0, 1.0, scale))


def stages(
    h: Representation, spec: Architecture, *, generator: torch.Generator, tokens: tuple[str, ...] | None = None
) -> Representation:
    """Apply the stages in their order, with factor and shift behind the last normalization, and dropout at the end.

    Args:
        h: preactivation, shape (draws, n, p, d).
        spec: the architecture.
        generator: source of shifts and dropped entries.
        tokens: the stages to apply; all of the architecture's without.

    Returns:
        The representation behind them.

    Example:
        >>> h = torch.tensor([1.0, 3.0], dtype=torch.float64).reshape(1, 2, 1, 1)
        >>> stages(h, Architecture.parse("RC+NL"), generator=torch.Generator()).flatten().tolist()
        [0.0, 1.0]
    """
    tokens = spec.tokens if tokens is None else tokens
    norms = [i for i, token in enumerate(tokens) if token != "NL"]
    for i, token in enumerate(tokens):
        h = stage(h, token, spec)
        if norms and i == norms[-1]:
            h = h * spec.gamma
            if spec.beta:
                h = h + spec.beta * gaussian(len(h), 1, 1, h.shape[-1], generator=generator, dtype=h.dtype)
    if spec.dropout:
        kept = torch.rand(h.shape, generator=generator, dtype=h.dtype, device=h.device) >= spec.dropout
        h = h * kept / (1 - spec.dropout)
    return h


def layer(
    x: Representation, spec: Architecture, width: int, *, generator: torch.Generator
) -> Float[Tensor, "draws n p width"]:
    """One layer or block.

    Dense and convolution: the linear map, the stages; with a skip connection x + s * (one more linear map of these).
    Attention: x + s * attention(norm(x)), then the same with a two-layer perceptron, whose activation is NL;
    with stages such as NL+LN the norm comes behind the addition instead (and applies to the sum).

    Args:
        x: representation, shape (draws, n, p, d), finite; d is width in attention and with a skip connection.
        spec: the architecture.
        width: number of channels behind the layer.
        generator: source of all randomness.

    Returns:
        Shape (draws, n, p, width).

    Raises:
        ValueError: a skip connection between different widths.

    Example:
        >>> x = torch.ones(2, 3, 1, 5, dtype=torch.float64)
        >>> layer(x, Architecture.parse("NL"), 7, generator=torch.Generator().manual_seed(0)).shape
        torch.Size([2, 3, 1, 7])
    """
    if spec.residual is not None and x.shape[-1] != width:
        raise ValueError(f"x has {x.shape[-1]} channels; valid beside a skip connection is width, {width}.")
    if spec.layout == "attention":
        return _attention_block(x, spec, generator)
    # Recentering commutes with the linear map: done first, it also saves rounding.
    first = spec.tokens[:1] == ("RC",)
    h = _map(x, spec, width, generator, recenter=first)
    if spec.bias and not first:  # recentering takes it away again, exactly
        h = h + spec.bias * gaussian(len(h), 1, 1, width, generator=generator, dtype=h.dtype)
    h = stages(h, spec, generator=generator)
    return h if spec.residual is None else x + spec.residual * _map(h, spec, width, generator, weight_variance=1.0)


def _map(
    x: Tensor,
    spec: Architecture,
    width: int,
    generator: torch.Generator,
    *,
    recenter: bool = False,
    weight_variance: float | None = None,
) -> Tensor:
    """The linear map of a layout, for inputs of any size: the scale is taken out before squares are formed."""
    if recenter:  # before every channel is there nine times
        x, recenter = x - x.mean(dim=(1, 2), keepdim=True), x.shape[2] == 1
    rows = neighborhoods(x) if spec.layout == "convolution" else x
    draws, n, p, d = rows.shape
    rows = rows.reshape(draws, n * p, d)
    largest = float(x.abs().max())
    size = None if _SAFE < largest < 1 / _SAFE or largest == 0 else rows.abs().amax(dim=(1, 2), keepdim=True)
    if size is not None:
        size = torch.where(size > 0, size, 1.0)
        rows = rows / size
    h = linear(
        rows,
        width,
        generator=generator,
        weights=spec.weights,
        weight_variance=spec.weight_variance if weight_variance is None else weight_variance,
        recenter=recenter,
    )
    return (h if size is None else h * size).reshape(draws, n, p, width)


def _attention_block(x: Tensor, spec: Architecture, generator: torch.Generator) -> Tensor:
    width = x.shape[-1]
    norms = tuple(token for token in spec.tokens if token != "NL")
    after = spec.tokens[:1] == ("NL",) and bool(norms)
    strength = 1.0 if spec.residual is None else spec.residual

    def norm(values: Tensor, here: bool) -> Tensor:
        return stages(values, spec, generator=generator, tokens=norms) if here and norms else values

    y = norm(x, not after)
    queries, keys, values = _map(y, spec, 3 * width, generator, weight_variance=1.0).split(width, dim=-1)
    scores = torch.softmax(queries @ keys.mT / math.sqrt(width), dim=-1)
    x = norm(x + strength * _map(scores @ values, spec, width, generator, weight_variance=1.0), after)
    h = _map(norm(x, not after), spec, width, generator)
    if "NL" in spec.tokens:
        h = activate(h, spec.activation)
    return norm(x + strength * _map(h, spec, width, generator, weight_variance=1.0), after)
