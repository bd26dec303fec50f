"""Cells: networks whose class is known, broken draws that disturb nobody, scales by logarithms, seeds by content."""

import math

import pytest
import torch

from bnlib.architecture_layers import layer
from bnlib.architecture_survey import PLACES, make_cell, run_cell
from bnlib.architectures import Architecture
from bnlib.ensembles import gaussian
from bnlib.geometry_classes import CLASSES, Rule, classify, settled_from, shape_of
from bnlib.seeds import generator


def cell(line, n=8, width=32, depth=40, draws=4, seed=0, **options):
    return make_cell(Architecture.parse(line), n, width, depth=depth, draws=draws, seed=seed, **options)


@pytest.mark.parametrize(
    "line", ["RC+NL", "RC+RS+NL activation=gelu", "convolution LN+NL", "attention RC+NL residual=1"]
)
def test_against_a_plain_loop(line, seed):
    """The same stream through the same layers, everything else done plainly."""
    spec = Architecture.parse(line)
    one = cell(line, n=5, width=8, depth=12, draws=3, seed=seed)
    found = run_cell(one)
    stream = generator(seed, one.architecture, 5, 8)
    x = gaussian(3, 5, PLACES[spec.layout], 8, generator=stream)
    x = x / x.square().mean(dim=(1, 2, 3), keepdim=True).sqrt()
    classes = []
    for _ in range(12):
        x = layer(x, spec, 8, generator=stream)
        flat = x.flatten(2)
        shape = shape_of(flat @ flat.mT)
        classes.append(classify(shape))
    assert found["classes"] == [CLASSES[k] for k in classes[-1]]
    assert found["settled"] == settled_from(torch.stack(classes).numpy()).tolist()
    assert found["separation"] == pytest.approx(shape.separation.tolist(), rel=1e-4)
    norm = (flat.square().sum(dim=-1).mean(dim=-1).sqrt()).log10()
    assert found["log10_norm"] == pytest.approx(norm.tolist(), abs=1e-4)


def test_known_fates():
    assert run_cell(cell("NL", depth=120))["classes"] == ["collapse"] * 4
    assert run_cell(cell("RC+RS+NL", n=4, width=64))["classes"] == ["symmetric"] * 4
    assert run_cell(cell("RC+NL", n=32, width=64, depth=80))["classes"].count("outlier") >= 3


def test_a_square_network_keeps_its_scale_as_a_logarithm():
    found = run_cell(cell("NL activation=square", depth=60))
    assert found["classes"] == ["outlier"] * 4  # one sample holds everything
    assert found["broken_at"] == [None] * 4
    assert all(abs(value) > 1e10 for value in found["log10_norm"])  # of the norm: no floating-point number is so large


def test_a_draw_that_overflows_is_reported_and_disturbs_nobody():
    """Where the scale is not divided out it may leave the number range."""
    large = run_cell(cell("NL activation=gelu weight_variance=1e9", depth=120, draws=3))
    assert large["classes"] == ["broken"] * 3
    assert all(word == "overflow" and 60 < depth < 80 for depth, word in large["broken_at"])
    assert large["log10_norm"] == large["separation"] == [None] * 3


@pytest.mark.parametrize(("value", "word"), [(math.nan, "overflow"), (math.inf, "overflow"), (0.0, "zero")])
def test_one_draw_breaks_and_the_others_go_on(monkeypatch, value, word):
    calls = []

    def breaking(x, spec, width, *, generator):
        calls.append(bool(x.isfinite().all()))
        h = layer(x, spec, width, generator=generator)
        if len(calls) == 5:
            h[1] = value
        return h

    monkeypatch.setattr("bnlib.architecture_survey.layer", breaking)
    for line in ("RC+RS+NL", "RC+RS+NL epsilon=1e-5"):  # the scale is divided out, and is not
        calls.clear()
        mixed = run_cell(cell(line, n=4, width=64, draws=3))
        assert mixed["classes"] == ["symmetric", "broken", "symmetric"]
        assert mixed["broken_at"] == [None, [5, word], None]
        assert mixed["settled"][1] == 5
        assert mixed["separation"][1] is None
        assert all(calls)  # the broken draw is put aside: no layer is ever given it


def test_a_representation_that_becomes_zero():
    found = run_cell(cell("NL", n=3, width=2, depth=60, draws=20))
    assert [1 for entry in found["broken_at"] if entry is not None and entry[1] == "zero"]
    assert found["classes"].count("broken") == sum(entry is not None for entry in found["broken_at"])


def test_a_cell_is_a_function_of_its_spec(seed):
    one = run_cell(cell("RC+NL", seed=seed))
    assert one == run_cell(cell("RC+NL", seed=seed))
    assert one["separation"] != run_cell(cell("RC+NL", seed=seed + 1))["separation"]
    strict = run_cell(cell("RC+NL", seed=seed, rule=Rule(separation=1.01, lead=1.0)))
    assert strict["separation"] == one["separation"]
    assert strict["classes"] != one["classes"] or set(one["classes"]) == {"outlier"}


def test_many_layers_in_pieces(monkeypatch):
    """Layers are classified in lots; the lots change nothing."""
    whole = run_cell(cell("RC+NL"))
    monkeypatch.setattr("bnlib.architecture_survey._ENTRIES", 1)
    assert run_cell(cell("RC+NL")) == whole


@pytest.mark.usefixtures("unchecked")
@pytest.mark.parametrize(
    ("name", "value"), [("n", 2), ("width", 1), ("depth", 0), ("draws", 0), ("draws", True), ("n", 4.0)]
)
def test_bad_sizes(name, value):
    sizes = {"n": 8, "width": 32, "depth": 4, "draws": 2, name: value}
    with pytest.raises(ValueError, match=f"{name} is .*valid is a whole number of at least"):
        make_cell(Architecture(), sizes.pop("n"), sizes.pop("width"), seed=0, **sizes)
