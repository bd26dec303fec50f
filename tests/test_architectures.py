"""Architectures as lines of text: read and written back, with their degree, and refused with what would be valid."""

import numpy as np
import pytest

from bnlib.architectures import (
    ACTIVATIONS,
    ARCHITECTURES,
    STAGES,
    Architecture,
    activation_names,
    chosen,
    nonlinearity,
    specs,
)
from bnlib.parameters import ParameterError


def test_every_row_of_the_table_reads_back():
    rows = chosen(["all"])
    assert list(rows) == list(ARCHITECTURES)
    for row in rows.values():
        for spec in row:
            assert Architecture.parse(spec.name) == spec
    names = [spec.name for row in rows.values() for spec in row]
    assert len(names) == len(set(names))


def test_the_table_holds_what_the_chapter_promises():
    every = [spec for row in chosen(["all"]).values() for spec in row]
    assert {spec.layout for spec in every} == {"dense", "convolution", "attention"}
    wanted = {"relu", "leaky:0.5", "gelu", "silu", "tanh", "abs", "square", "identity"} - {"identity"}
    assert wanted <= {spec.activation for spec in every}
    assert {spec.weights for spec in every} == {"gaussian", "orthogonal", "standardized"}
    assert {"LN", "RN", "RC", "RS"} <= {token for spec in every for token in spec.tokens}
    assert len({spec.residual for spec in every} - {None}) >= 3
    for field in ("bias", "beta", "epsilon", "dropout"):
        assert any(getattr(spec, field) for spec in every)
    assert any(spec.gamma != 1 for spec in every)
    assert any(spec.tokens[:1] == ("NL",) and spec.normalized for spec in every)


def test_words_and_their_order():
    one = Architecture.parse("convolution RC+RS+NL activation=gelu residual=0.5")
    assert one == Architecture.parse("residual=0.5 activation=gelu rc+rs+nl CONVOLUTION")
    assert one.tokens == ("RC", "RS", "NL")
    assert Architecture.parse("").name == "dense RC+NL"
    assert Architecture.parse("none").tokens == ()


@pytest.mark.parametrize(
    ("text", "degree"),
    [
        ("RC+NL", 1),
        ("none", 1),
        ("NL activation=square", 2),
        ("NL activation=leaky:-0.3", 1),
        ("RC+NL activation=gelu", None),
        ("RC+RS+NL activation=gelu", 0),
        ("LN+NL activation=tanh", 0),
        ("NL+LN activation=tanh", None),
        ("NL+LN activation=square", 0),
        ("RC+NL residual=1", 1),
        ("RC+RS+NL residual=1", None),
        ("NL activation=square residual=1", None),
        ("NL bias=1", None),
        ("RC+NL bias=1", 1),
        ("RC+NL beta=1", None),
        ("LN+NL beta=1", 0),
        ("RC+NL gamma=3", 1),
        ("RC+RS+NL epsilon=0.1", None),
        ("NL dropout=0.5", 1),
        ("attention LN+NL residual=1", None),
    ],
)
def test_degree_of_homogeneity(text, degree):
    assert Architecture.parse(text).degree == degree


@pytest.mark.parametrize("name", ["relu", "leaky:0.5", "leaky:-0.5", "abs", "square", "identity"])
def test_degrees_of_activations(name):
    phi = nonlinearity(name)
    x = np.linspace(-2, 2, 9)
    assert np.allclose(phi(3 * x), 3**phi.degree * phi(x))


@pytest.mark.parametrize("name", ["gelu", "silu", "tanh"])
def test_the_others_have_none(name):
    phi = nonlinearity(name)
    assert phi.degree is None
    x = np.linspace(0.5, 2, 4)
    assert not np.allclose(phi(3 * x), 3 * phi(x), rtol=1e-3)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("RC+BN+NL", "stages contain 'BN'.*valid are RC, RS, RMS, STD, LN, RN, NL"),
        ("RC+RC+NL", "at most once"),
        ("RS+NL", "valid is RS behind RC"),
        ("NL activation=swish", r"activation is 'swish'; valid are relu, leaky:<slope>, gelu"),
        ("NL activation=leaky", "valid are relu"),
        ("NL activation=leaky:x", "valid are relu"),
        ("NL activation=leaky:inf", "valid are relu"),
        ("NL weights=sparse", "valid are gaussian, orthogonal, standardized"),
        ("NL weight_variance=0", "valid is a positive number"),
        ("NL weight_variance=nan", "valid is a positive number"),
        ("NL bias=-1", "valid is a number from 0 on"),
        ("NL dropout=1", "valid is a probability"),
        ("NL residual=0", "valid is a positive strength"),
        ("attention LN+NL", "valid is a positive strength"),
        ("attention LN+NL residual=1 bias=1", "knows neither bias nor dropout"),
        ("NL beta=1", "need a normalization"),
        ("NL color=red", "sets 'color'; valid are layout, stages, activation"),
        ("NL residual=much", "sets residual to 'much'; valid is a number"),
        ("NL RC+NL", "says its stages twice"),
    ],
)
def test_bad_lines(text, message):
    with pytest.raises(ValueError, match=message):
        Architecture.parse(text)


def test_unknown_layout():
    with pytest.raises(ValueError, match="valid are dense, convolution, attention"):
        Architecture(layout="recurrent")


def test_choosing_rows_and_lines():
    found = chosen(["tanh", "RC+NL residual=3"])
    assert list(found) == ["tanh", "RC+NL residual=3"]
    assert len(found["tanh"]) == 4
    with pytest.raises(ValueError, match=r"stages contain 'TANHH'.*rows of the table are: ReLU; "):
        chosen(["tanhh"])
    with pytest.raises(ValueError, match="names is empty"):
        chosen([])


def test_kinds_of_parameters():
    assert specs("architectures", ["all"]) == ["all"]
    with pytest.raises(
        ParameterError,
        match=r"cannot be used: architecture .no such row. says its stages twice.*rows of the table",
    ):
        specs("architectures", ["no such row"])
    with pytest.raises(ParameterError, match="must be a list of rows"):
        specs("architectures", [3])
    assert activation_names("a", '["gelu", "leaky:0.2"]') == ["gelu", "leaky:0.2"]
    for wrong in (["swish"], [3]):
        with pytest.raises(ParameterError, match="valid activations are relu, leaky:<slope>, gelu"):
            activation_names("a", wrong)


def test_names_in_messages_are_complete():
    assert set(STAGES) == {"RC", "RS", "RMS", "STD", "LN", "RN", "NL"}
    for name in ACTIVATIONS:
        nonlinearity(name.replace("<slope>", "0.3"))
