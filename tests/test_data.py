"""Batches by their defining equations; readers on small files in the published formats, whole and broken."""

import gzip
import math
import struct

import numpy as np
import pytest
import torch

from bnlib import data

# --- batches ----------------------------------------------------------------------------------------------------


def test_gaussian_batch_has_the_moments_of_its_law(generator):
    draws, n, d = 500, 4, 50
    x = data.gaussian_batch(n, d, generator=generator, draws=draws)
    size = draws * n * d

    def fits(values):
        mean_error = abs(values.mean().item()) * math.sqrt(size)
        square_error = abs(values.square().mean().item() - 1) * math.sqrt(size / 2)
        fourth_error = abs(values.pow(4).mean().item() - 3) * math.sqrt(size / 96)
        return max(mean_error, square_error, fourth_error) < 5

    assert fits(x)
    # Power: 100 000 entries tell a scale that is 4 per cent off, and a law of the same variance, with certainty.
    assert not fits(x * 1.04)
    assert not fits((torch.rand(size, generator=generator, dtype=torch.float64) - 0.5) * math.sqrt(12))


def test_gaussian_batch_is_reproducible_and_takes_its_generator_only(generator, seed):
    state = torch.get_rng_state()
    x = data.gaussian_batch(3, 4, generator=generator)
    again = data.gaussian_batch(3, 4, generator=torch.Generator().manual_seed(seed))
    assert torch.equal(x, again)
    assert torch.equal(state, torch.get_rng_state())
    assert x.shape == (3, 4)
    assert x.dtype == torch.float64


@pytest.mark.parametrize("n", [2, 3, 8])
@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("turned", [False, True])
def test_symmetric_batch_has_one_cosine(generator, n, share, turned):
    lowest = -1 / (n - 1)
    cosine = lowest + share * (1 - lowest)
    d = n - 1 if share == 0 else n + 2
    x = data.symmetric_batch(n, d, cosine=cosine, generator=generator if turned else None, draws=3)
    assert x.shape == (3, n, d)
    expected = torch.full((n, n), cosine, dtype=torch.float64).fill_diagonal_(1)
    torch.testing.assert_close(x @ x.mT, expected.expand(3, n, n), rtol=0, atol=1e-12)
    if d > 1:  # on a line there are two orientations only
        assert turned != torch.equal(x[0], x[1])


def test_symmetric_batch_defaults_to_orthonormal_samples():
    x = data.symmetric_batch(4, 4)
    torch.testing.assert_close(x @ x.T, torch.eye(4, dtype=torch.float64), rtol=0, atol=1e-14)


def test_symmetric_batch_is_turned_uniformly(generator):
    x = data.symmetric_batch(2, 3, cosine=0.5, generator=generator, draws=4000)

    def fits(x):
        """Coordinates of a uniform direction in three dimensions: mean 0, variance 1/3, fourth moment 1/5."""
        first = x[:, 0]
        size = len(first)
        errors = [first.mean(dim=0) * math.sqrt(3 * size)]
        errors += [(first.square().mean(dim=0) - 1 / 3) / math.sqrt((1 / 5 - 1 / 9) / size)]
        return torch.cat(errors).abs().max().item() < 5

    assert fits(x)
    assert not fits(x.abs())  # QR without its signs corrected has a half line missing


@pytest.mark.parametrize("draws", [None, 2])
def test_tied_batch_has_its_groups_and_no_other_ties(generator, draws):
    x = data.tied_batch(7, 3, [3, 2], generator=generator, draws=draws)
    for one in x.reshape(-1, 7, 3):
        groups = [tuple(row) for row in one.tolist()]
        assert groups[0] == groups[1] == groups[2]
        assert groups[3] == groups[4]
        assert len(set(groups)) == 4
    assert len(set(map(tuple, data.tied_batch(5, 2, 5, generator=generator).tolist()))) == 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: data.gaussian_batch(1, 3, generator=g), "n is 1; valid is an integer >= 2"),
        (lambda g: data.gaussian_batch(2, 0, generator=g), "d is 0; valid is an integer >= 1"),
        (lambda g: data.gaussian_batch(2, 3, generator=g, draws=0), "draws is 0; valid is an integer >= 1"),
        (lambda g: data.symmetric_batch(3, 3, cosine=-0.6), r"cosine is -0.6; valid is a number in \[-1/\(n-1\), 1\]"),
        (lambda g: data.symmetric_batch(3, 3, cosine=math.nan), "cosine is nan"),
        (lambda g: data.symmetric_batch(4, 3, cosine=0.0), "d is 3; 4 samples with common cosine 0 need d >= 4"),
        (lambda g: data.symmetric_batch(4, 2, cosine=-1 / 3), "need d >= 3"),
        (lambda g: data.tied_batch(4, 2, [3, 2], generator=g), r"ties is \[3, 2\]; valid are group sizes >= 1"),
        (lambda g: data.tied_batch(4, 2, 0, generator=g), "ties is 0"),
    ],
)
def test_bad_sizes_are_named(generator, call, message):
    with pytest.raises(ValueError, match=message):
        call(generator)


def test_digits():
    features, labels = data.digits()
    assert features.shape == (1797, 64)
    assert (features.dtype, labels.dtype) == (torch.float64, torch.int64)
    assert (features.min().item(), features.max().item()) == (0.0, 1.0)
    assert torch.bincount(labels).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


# --- idx files --------------------------------------------------------------------------------------------------


def idx_bytes(array, code):
    """An array in the idx format."""
    header = bytes([0, 0, code, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
    return header + array.astype(array.dtype.newbyteorder(">")).tobytes()


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("code", "dtype"),
    [(0x08, np.uint8), (0x09, np.int8), (0x0B, np.int16), (0x0C, np.int32), (0x0D, np.float32), (0x0E, np.float64)],
)
def test_read_idx_of_every_type(tmp_path, packed, code, dtype):
    array = (np.arange(24).reshape(2, 3, 4) * 5).astype(dtype)
    content = idx_bytes(array, code)
    path = tmp_path / "array"
    path.write_bytes(gzip.compress(content) if packed else content)
    read = data.read_idx(path)
    assert read.dtype == torch.from_numpy(array).dtype
    assert torch.equal(read, torch.from_numpy(array))


def test_read_idx_of_known_bytes(tmp_path):
    path = tmp_path / "bytes"
    path.write_bytes(bytes.fromhex("00000b02 00000001 00000002 0102 fffe".replace(" ", "")))
    assert data.read_idx(path).tolist() == [[258, -2]]


def test_read_idx_of_no_entries(tmp_path):
    path = tmp_path / "empty"
    path.write_bytes(idx_bytes(np.zeros((0, 28, 28), np.uint8), 0x08))
    assert data.read_idx(path).shape == (0, 28, 28)


WHOLE = idx_bytes(np.arange(6, dtype=np.uint8), 0x08)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "starts with nothing; an idx file starts with 0000"),
        (b"\x00\x00", "starts with 0000; an idx file"),
        (b"\x89PNG" + WHOLE, "starts with 89504e47; an idx file"),
        (b"\x00\x00\x07\x01" + WHOLE[4:], "starts with 00000701"),
        (b"\x00\x00\x08\x00" + WHOLE[4:], "starts with 00000800"),
        (WHOLE[:6], "is truncated inside its header of 8 bytes"),
        (WHOLE[:-1], r"has 13 bytes, but its header \(shape \(6,\)\) asks for 14"),
        (WHOLE + b"\x00", "has 15 bytes, but its header"),
        (gzip.compress(WHOLE, mtime=0)[:-4], "is a truncated or corrupt gzip file"),
        (gzip.compress(WHOLE, mtime=0)[:-8] + b"\x00" * 8, "is a truncated or corrupt gzip file"),
        (b"\x1f\x8b" + b"\xff" * 20, "is a truncated or corrupt gzip file"),
    ],
)
def test_broken_idx_files_are_refused(tmp_path, content, message):
    path = tmp_path / "broken"
    path.write_bytes(content)
    with pytest.raises(data.DataFileError, match=message):
        data.read_idx(path)


def test_missing_and_unreadable_files_are_named(tmp_path):
    with pytest.raises(data.DataFileError, match="nowhere is missing"):
        data.read_idx(tmp_path / "nowhere")
    with pytest.raises(data.DataFileError, match="cannot be read"):
        data.read_idx(tmp_path)


# --- MNIST and Fashion-MNIST ------------------------------------------------------------------------------------


def write_mnist(folder, generator, packed=False, samples=5, split="train"):
    """A small data set in the published layout."""
    images = torch.randint(0, 256, (samples, 28, 28), generator=generator).numpy().astype(np.uint8)
    labels = torch.randint(0, 10, (samples,), generator=generator).numpy().astype(np.uint8)
    prefix = {"train": "train", "test": "t10k"}[split]
    for name, array in ((f"{prefix}-images-idx3-ubyte", images), (f"{prefix}-labels-idx1-ubyte", labels)):
        content = idx_bytes(array, 0x08)
        (folder / (name + ".gz" * packed)).write_bytes(gzip.compress(content) if packed else content)
    return images, labels


@pytest.mark.parametrize("read", [data.mnist, data.fashion_mnist])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("split", ["train", "test"])
def test_mnist_files_are_read(tmp_path, generator, read, packed, split):
    images, labels = write_mnist(tmp_path, generator, packed, split=split)
    features, classes = read(tmp_path, split)
    assert torch.equal(features, torch.from_numpy(images.reshape(5, 784) / 255.0))
    assert classes.tolist() == labels.tolist()
    assert (features.dtype, classes.dtype) == (torch.float64, torch.int64)


@pytest.mark.parametrize(("read", "name"), [(data.mnist, "MNIST"), (data.fashion_mnist, "Fashion-MNIST")])
def test_missing_mnist_files_are_named(tmp_path, generator, read, name):
    with pytest.raises(data.DataFileError, match=f"^{name} needs the file train-images-idx3-ubyte .or .gz. in the"):
        read(tmp_path)
    write_mnist(tmp_path, generator)
    (tmp_path / "train-labels-idx1-ubyte").unlink()
    with pytest.raises(data.DataFileError, match="needs the file train-labels-idx1-ubyte"):
        read(tmp_path)
    with pytest.raises(data.DataFileError, match="needs the file t10k-images-idx3-ubyte"):
        read(tmp_path, "test")


def test_mnist_files_that_do_not_belong_together_are_refused(tmp_path, generator):
    write_mnist(tmp_path, generator)
    labels = tmp_path / "train-labels-idx1-ubyte"
    labels.write_bytes(idx_bytes(np.zeros(4, np.uint8), 0x08))
    with pytest.raises(data.DataFileError, match="the 5 images of MNIST need as many label bytes"):
        data.mnist(tmp_path)
    labels.write_bytes(idx_bytes(np.array([0, 1, 2, 3, 10], np.uint8), 0x08))
    with pytest.raises(data.DataFileError, match="holds the label 10; valid are the ten classes 0 to 9"):
        data.mnist(tmp_path)
    (tmp_path / "train-images-idx3-ubyte").write_bytes(idx_bytes(np.zeros((5, 8, 8), np.uint8), 0x08))
    with pytest.raises(data.DataFileError, match=r"holds torch.uint8 of shape \(5, 8, 8\); MNIST has bytes of shape"):
        data.mnist(tmp_path)


def test_unknown_splits_are_named(tmp_path, unchecked):
    for read in (data.mnist, data.fashion_mnist, data.cifar10):
        with pytest.raises(ValueError, match='split must be "train" or "test", not \'valid\''):
            read(tmp_path, "valid")


# --- CIFAR-10 ---------------------------------------------------------------------------------------------------


def write_cifar(folder, generator, samples=2):
    """A small data set in the published binary layout; returns the records."""
    records = torch.randint(0, 256, (6 * samples, 3073), generator=generator).numpy().astype(np.uint8)
    records[:, 0] %= 10
    names = [f"data_batch_{i}.bin" for i in range(1, 6)] + ["test_batch.bin"]
    for i, name in enumerate(names):
        (folder / name).write_bytes(records[i * samples : (i + 1) * samples].tobytes())
    return records


@pytest.mark.parametrize("inner", [False, True])
def test_cifar_files_are_read(tmp_path, generator, inner):
    folder = tmp_path / "cifar-10-batches-bin" if inner else tmp_path
    folder.mkdir(exist_ok=True)
    records = write_cifar(folder, generator)
    for split, part in (("train", records[:10]), ("test", records[10:])):
        features, labels = data.cifar10(tmp_path, split)
        assert features.dtype == torch.float64
        assert torch.equal(features, torch.from_numpy(part[:, 1:] / 255.0))
        assert labels.tolist() == part[:, 0].tolist()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has 0 bytes; a CIFAR-10 file has a positive multiple of 3073"),
        (b"\x00" * 3072, "has 3072 bytes"),
        (b"\x00" * 3074, "has 3074 bytes"),  # one record of CIFAR-100
        (b"\x0b" + b"\x00" * 3072, "holds the label 11"),
    ],
)
def test_broken_cifar_files_are_refused(tmp_path, generator, content, message):
    write_cifar(tmp_path, generator)
    (tmp_path / "data_batch_3.bin").write_bytes(content)
    with pytest.raises(data.DataFileError, match=message):
        data.cifar10(tmp_path)


def test_missing_cifar_files_are_named(tmp_path, generator):
    with pytest.raises(data.DataFileError, match=r"CIFAR-10 needs the file test_batch\.bin in the folder"):
        data.cifar10(tmp_path, "test")
    write_cifar(tmp_path, generator)
    (tmp_path / "data_batch_4.bin").unlink()
    with pytest.raises(data.DataFileError, match=r"CIFAR-10 needs the file data_batch_4\.bin"):
        data.cifar10(tmp_path)
