"""Batches and data sets: Gaussian, symmetric and tied batches, scikit-learn's digits, and readers for image files.

Nothing is downloaded. The readers take the files of MNIST, Fashion-MNIST (idx, plain or gzip) and CIFAR-10 (binary
version) as their authors publish them.
"""

import gzip
import math
import struct
import zlib
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

Split = Literal["train", "test"]

_IDX_TYPES = {0x08: ">u1", 0x09: ">i1", 0x0B: ">i2", 0x0C: ">i4", 0x0D: ">f4", 0x0E: ">f8"}
_IDX_PREFIX = {"train": "train", "test": "t10k"}
_CIFAR_FILES = {"train": [f"data_batch_{i}.bin" for i in range(1, 6)], "test": ["test_batch.bin"]}
_CIFAR_RECORD = 1 + 3 * 32 * 32  # a label byte, then the red, green and blue planes


class DataFileError(ValueError):
    """A data file that is missing, truncated or not in the published format."""


class LabeledData(NamedTuple):
    """Samples with their classes.

    Attributes:
        features: shape (samples, features), float64 in [0, 1].
        labels: shape (samples,), integers from 0.
    """

    features: Float[Tensor, "samples features"]
    labels: Int[Tensor, "samples"]


def gaussian_batch(
    n: int, d: int, *, generator: torch.Generator, draws: int | None = None
) -> Float[Tensor, "*draws n d"]:
    """Independent standard Gaussian entries.

    Args:
        n: batch size.
        d: dimension.
        generator: source of randomness; the batch lies on its device.
        draws: number of independent batches, or None for a single one without a leading dimension.

    Returns:
        Float64, shape (n, d) or (draws, n, d).

    Raises:
        ValueError: n < 2, d < 1 or draws < 1.

    Example:
        >>> gaussian_batch(3, 5, generator=torch.Generator().manual_seed(0), draws=7).shape
        torch.Size([7, 3, 5])
    """
    _check_sizes(n, d, draws)
    shape = (n, d) if draws is None else (draws, n, d)
    return torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device)


def symmetric_batch(
    n: int,
    d: int,
    *,
    cosine: float = 0.0,
    generator: torch.Generator | None = None,
    draws: int | None = None,
) -> Float[Tensor, "*draws n d"]:
    """Unit vectors whose pairwise cosines are all the same.

    Args:
        n: batch size.
        d: dimension: at least n, or n - 1 for the smallest cosine, which is the regular simplex.
        cosine: common cosine, in [-1/(n-1), 1].
        generator: where given, each batch is turned by a random rotation; without it the batch is a fixed one.
        draws: number of batches, or None for a single one without a leading dimension.

    Returns:
        Float64, shape (n, d) or (draws, n, d).

    Raises:
        ValueError: n < 2, d or draws < 1, a cosine that no n vectors share, or too small a dimension for it.

    Example:
        >>> x = symmetric_batch(3, 4, cosine=-0.5)
        >>> (x @ x.mT).round(decimals=9).tolist()[0]
        [1.0, -0.5, -0.5]
    """
    _check_sizes(n, d, draws)
    lowest = -1 / (n - 1)
    if not lowest - 1e-12 <= cosine <= 1:
        raise ValueError(f"cosine is {cosine}; valid is a number in [-1/(n-1), 1] = [{lowest:.6g}, 1] for n = {n}.")
    common = max(1 + (n - 1) * cosine, 0.0)
    if common < 1e-12:
        common = 0.0  # the rounding of -1/(n-1) must not cost a dimension
    coordinates = _simplex(n) * math.sqrt(1 - cosine)
    if cosine == 1:
        coordinates = coordinates[:, :0]
    if common > 0:
        along = torch.full((n, 1), math.sqrt(common / n), dtype=torch.float64)
        coordinates = torch.cat([along, coordinates], dim=1)
    needed = coordinates.shape[1]
    if d < needed:
        raise ValueError(f"d is {d}; {n} samples with common cosine {cosine:.6g} need d >= {needed}.")
    if generator is None:
        x = torch.nn.functional.pad(coordinates, (0, d - needed))
        return x if draws is None else x.repeat(draws, 1, 1)
    shape = (d, needed) if draws is None else (draws, d, needed)
    frame = torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device)
    q, r = torch.linalg.qr(frame)
    # The signs make the frame uniformly distributed; LAPACK's choice of signs does not.
    q = q * r.diagonal(dim1=-2, dim2=-1).sign()[..., None, :]
    return coordinates.to(q.device) @ q.mT


def tied_batch(
    n: int, d: int, ties: int | Sequence[int], *, generator: torch.Generator, draws: int | None = None
) -> Float[Tensor, "*draws n d"]:
    """A Gaussian batch in which some samples are exactly equal.

    Args:
        n: batch size.
        d: dimension.
        ties: sizes of the groups of equal samples, one number or several; the groups come first, in this order, and
            the remaining samples are distinct.
        generator: source of randomness.
        draws: number of batches, or None for a single one without a leading dimension.

    Returns:
        Float64, shape (n, d) or (draws, n, d).

    Raises:
        ValueError: n < 2, d or draws < 1, a group of fewer than one sample, or groups of more than n in all.

    Example:
        >>> x = tied_batch(4, 2, [2, 2], generator=torch.Generator().manual_seed(0))
        >>> torch.equal(x[0], x[1]), torch.equal(x[2], x[3]), torch.equal(x[1], x[2])
        (True, True, False)
    """
    _check_sizes(n, d, draws)
    sizes = [ties] if isinstance(ties, int) else list(ties)
    if any(size < 1 for size in sizes) or sum(sizes) > n:
        raise ValueError(f"ties is {ties}; valid are group sizes >= 1 that sum to at most n = {n}.")
    sizes += [1] * (n - sum(sizes))
    which = torch.repeat_interleave(torch.arange(len(sizes)), torch.tensor(sizes))
    shape = (len(sizes), d) if draws is None else (draws, len(sizes), d)
    distinct = torch.randn(shape, generator=generator, dtype=torch.float64, device=generator.device)
    return distinct[..., which.to(distinct.device), :]


def digits() -> LabeledData:
    """The 1797 handwritten digits that come with scikit-learn, 8 x 8 pixels, the data set of record.

    Returns:
        Features of shape (1797, 64), the sixteen gray levels scaled to [0, 1], and labels 0..9.

    Example:
        >>> data = digits()
        >>> data.features.shape, data.features.max().item(), data.labels[:4].tolist()
        (torch.Size([1797, 64]), 1.0, [0, 1, 2, 3])
    """
    from sklearn.datasets import load_digits  # here: the import takes a second that most users need not spend

    pixels, labels = load_digits(return_X_y=True)
    return LabeledData(torch.from_numpy(pixels) / 16, torch.from_numpy(labels).long())


def read_idx(path: str | Path) -> Tensor:
    """Read an array in the idx format of MNIST, plain or gzip.

    The file has two zero bytes, a byte for the type, a byte for the number of dimensions, each dimension as a
    big-endian 32-bit integer, and the entries, big-endian.

    Args:
        path: the file; gzip is told by its first two bytes, not by its name.

    Returns:
        The array, in the file's type and shape.

    Raises:
        DataFileError: the file is missing, unreadable, not an idx file, or longer or shorter than its header says.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "labels"
        >>> _ = path.write_bytes(bytes([0, 0, 8, 1, 0, 0, 0, 3, 7, 2, 1]))
        >>> read_idx(path).tolist()
        [7, 2, 1]
    """
    path = Path(path)
    content = _read_bytes(path)
    if len(content) < 4 or content[:2] != b"\0\0" or content[2] not in _IDX_TYPES or content[3] == 0:
        raise DataFileError(
            f"{path} starts with {content[:4].hex() or 'nothing'}; an idx file starts with 0000, a type byte "
            "(08 to 0e) and the number of dimensions."
        )
    dimensions = content[3]
    start = 4 + 4 * dimensions
    if len(content) < start:
        raise DataFileError(f"{path} is truncated inside its header of {start} bytes.")
    shape = struct.unpack(f">{dimensions}I", content[4:start])
    dtype = np.dtype(_IDX_TYPES[content[2]])
    expected = start + math.prod(shape) * dtype.itemsize
    if len(content) != expected:
        raise DataFileError(f"{path} has {len(content)} bytes, but its header (shape {shape}) asks for {expected}.")
    entries = np.frombuffer(content, dtype, offset=start).astype(dtype.newbyteorder("="))
    return torch.from_numpy(entries.reshape(shape))


def mnist(folder: str | Path, split: Split = "train") -> LabeledData:
    """Read MNIST from the four files that its authors publish.

    Args:
        folder: folder with ``train-images-idx3-ubyte``, ``train-labels-idx1-ubyte``, ``t10k-images-idx3-ubyte`` and
            ``t10k-labels-idx1-ubyte``, each plain or with ``.gz``.
        split: ``"train"`` or ``"test"``.

    Returns:
        Features of shape (samples, 784), pixels scaled to [0, 1], and labels 0..9.

    Raises:
        DataFileError: a file is missing or corrupt, or the two do not belong together.
        ValueError: an unknown split.

    Example:
        >>> mnist("no_such_folder")
        Traceback (most recent call last):
        ...
        bnlib.data.DataFileError: MNIST needs the file train-images-idx3-ubyte (or .gz) in the folder no_such_folder.
    """
    return _read_idx_pair(folder, split, "MNIST")


def fashion_mnist(folder: str | Path, split: Split = "train") -> LabeledData:
    """Read Fashion-MNIST, whose files have the names and the format of MNIST's.

    Args:
        folder: folder with the four files, see :func:`mnist`.
        split: ``"train"`` or ``"test"``.

    Returns:
        Features of shape (samples, 784), pixels scaled to [0, 1], and labels 0..9.

    Raises:
        DataFileError: a file is missing or corrupt, or the two do not belong together.
        ValueError: an unknown split.

    Example:
        >>> fashion_mnist("no_such_folder")  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        DataFileError: Fashion-MNIST needs the file train-images-idx3-ubyte (or .gz) in the folder no_such_folder.
    """
    return _read_idx_pair(folder, split, "Fashion-MNIST")


def cifar10(folder: str | Path, split: Split = "train") -> LabeledData:
    """Read CIFAR-10 from the files of its binary version.

    A record is one label byte and 3072 bytes: the red, the green and the blue plane of 32 x 32 pixels, row by row.

    Args:
        folder: folder with ``data_batch_1.bin`` to ``data_batch_5.bin`` and ``test_batch.bin``, or the one that
            holds their folder ``cifar-10-batches-bin``.
        split: ``"train"`` or ``"test"``.

    Returns:
        Features of shape (samples, 3072) in the order of the file, scaled to [0, 1], and labels 0..9.

    Raises:
        DataFileError: a file is missing or corrupt.
        ValueError: an unknown split.

    Example:
        >>> cifar10("no_such_folder")  # doctest: +IGNORE_EXCEPTION_DETAIL
        Traceback (most recent call last):
        DataFileError: CIFAR-10 needs the file data_batch_1.bin in the folder no_such_folder.
    """
    _check_split(split)
    folder = Path(folder)
    inner = folder / "cifar-10-batches-bin"
    if inner.is_dir():
        folder = inner
    parts = []
    for name in _CIFAR_FILES[split]:
        path = folder / name
        if not path.is_file():
            raise DataFileError(f"CIFAR-10 needs the file {name} in the folder {folder}.")
        content = _read_bytes(path)
        if len(content) == 0 or len(content) % _CIFAR_RECORD:
            raise DataFileError(
                f"{path} has {len(content)} bytes; a CIFAR-10 file has a positive multiple of {_CIFAR_RECORD}."
            )
        parts.append(np.frombuffer(content, np.uint8).reshape(-1, _CIFAR_RECORD))
    records = np.concatenate(parts)
    labels = torch.from_numpy(records[:, 0].astype(np.int64))
    _check_labels(labels, folder)
    return LabeledData(torch.from_numpy(records[:, 1:] / 255.0), labels)


def _simplex(n: int) -> Float[Tensor, "n m"]:
    """Rows: n vectors in n - 1 dimensions, inner products 1 - 1/n and -1/n (columns of Helmert's matrix)."""
    k = torch.arange(1, n, dtype=torch.float64)
    below = torch.ones(n, n - 1, dtype=torch.float64).triu()
    below[range(1, n), range(n - 1)] = -k
    return below / torch.sqrt(k * (k + 1))


def _read_idx_pair(folder: str | Path, split: Split, name: str) -> LabeledData:
    """Images and labels of one split in the layout of MNIST."""
    _check_split(split)
    prefix = _IDX_PREFIX[split]
    image_path = _find_idx(Path(folder), f"{prefix}-images-idx3-ubyte", name)
    label_path = _find_idx(Path(folder), f"{prefix}-labels-idx1-ubyte", name)
    images, labels = read_idx(image_path), read_idx(label_path)
    if images.dtype != torch.uint8 or images.shape[1:] != (28, 28):
        raise DataFileError(
            f"{image_path} holds {images.dtype} of shape {tuple(images.shape)}; {name} has bytes of shape "
            "(samples, 28, 28)."
        )
    if labels.dtype != torch.uint8 or labels.ndim != 1 or len(labels) != len(images):
        raise DataFileError(
            f"{label_path} holds {labels.dtype} of shape {tuple(labels.shape)}; the {len(images)} images of "
            f"{name} need as many label bytes."
        )
    labels = labels.long()
    _check_labels(labels, label_path)
    return LabeledData(images.reshape(len(images), -1).double() / 255, labels)


def _find_idx(folder: Path, name: str, data_set: str) -> Path:
    """The file of that name, plain or gzip."""
    for candidate in (folder / name, folder / f"{name}.gz"):
        if candidate.is_file():
            return candidate
    raise DataFileError(f"{data_set} needs the file {name} (or .gz) in the folder {folder}.")


def _read_bytes(path: Path) -> bytes:
    """The content of a file, unpacked if it is gzip."""
    try:
        content = path.read_bytes()
        return gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    except FileNotFoundError:
        raise DataFileError(f"{path} is missing; valid is the path of a data file.") from None
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise DataFileError(f"{path} is a truncated or corrupt gzip file ({error}).") from None
    except OSError as error:
        raise DataFileError(f"{path} cannot be read ({error.strerror or error}).") from None


def _check_labels(labels: Tensor, path: Path) -> None:
    if len(labels) and int(labels.max()) > 9:
        raise DataFileError(f"{path} holds the label {int(labels.max())}; valid are the ten classes 0 to 9.")


def _check_split(split: str) -> None:
    if split not in ("train", "test"):
        raise ValueError(f'split must be "train" or "test", not {split!r}.')


def _check_sizes(n: int, d: int, draws: int | None) -> None:
    for name, value, least in (("n", n, 2), ("d", d, 1), ("draws", 1 if draws is None else draws, 1)):
        if isinstance(value, bool) or not isinstance(value, int) or value < least:
            raise ValueError(f"{name} is {value!r}; valid is an integer >= {least}.")
