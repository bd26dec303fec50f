"""The stages against naive loops, against torch's own batch norm, and at the edges of the number range."""

import math

import pytest
import torch

from bnlib.layers import Stages, apply_stages, check_batch, recenter, relu, rescale

AFTER_NAMES = ["NL+RC", "NL+RMS", "NL+STD", "NL+RC+RS"]
ALL_NAMES = ["none", "NL", "RC", "RMS", "STD", "RC+NL", "RC+RS", "RMS+NL", "STD+NL", "RC+RS+NL", *AFTER_NAMES]


def batch(generator, *shape, scale=1.0, shift=0.0):
    return torch.randn(shape, generator=generator, dtype=torch.float64) * scale + shift


def batch_norm(d, dtype=torch.float64):
    """torch's own layer, in training mode. torch 2.13 refuses eps = 0 there, so eps is the smallest normal number:
    added to any variance above 1e-290 (float64) or 1e-30 (float32) it changes no bit.
    """
    return torch.nn.BatchNorm1d(d, eps=torch.finfo(dtype).tiny, affine=False).to(dtype).train()


def naive_column(column, stages):
    """The stages on one neuron's list of values, in plain arithmetic."""
    n = len(column)
    if stages.norm_after:
        column = [max(v, 0.0) for v in column]
    mean = math.fsum(column) / n
    values = [v - mean for v in column] if stages.recentering else list(column)
    if stages.rescaling == "rms":
        scale = math.sqrt(math.fsum(v * v for v in values) / n)
        values = [v / scale if scale else 0.0 for v in values]
    if stages.rescaling == "std":
        mean = math.fsum(values) / n
        scale = math.sqrt(math.fsum((v - mean) ** 2 for v in values) / n)
        values = [v / scale if scale else 0.0 for v in values]
    last = stages.nonlinearity == "relu" and not stages.norm_after
    return [max(v, 0.0) for v in values] if last else values


@pytest.mark.parametrize("name", ALL_NAMES)
@pytest.mark.parametrize("n", [2, 3, 8])
def test_stages_equal_the_naive_loop(generator, name, n):
    stages = Stages.parse(name)
    x = batch(generator, n, 5, shift=0.7)
    expected = torch.tensor([naive_column(c, stages) for c in x.T.tolist()], dtype=torch.float64).T
    torch.testing.assert_close(apply_stages(x, stages), expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ALL_NAMES)
def test_leading_dimensions_are_independent_draws(generator, name):
    x = batch(generator, 2, 3, 6, 4)
    together = apply_stages(x, Stages.parse(name))
    for a in range(2):
        for b in range(3):
            torch.testing.assert_close(together[a, b], apply_stages(x[a, b], Stages.parse(name)))


@pytest.mark.parametrize(("n", "d"), [(2, 3), (8, 16), (64, 1000)])
@pytest.mark.parametrize(("dtype", "tolerance"), [(torch.float64, 1e-12), (torch.float32, 2e-5)])
def test_rc_then_rs_is_torch_batch_norm(generator, n, d, dtype, tolerance):
    x = batch(generator, n, d, scale=3.0, shift=1.0).to(dtype)
    layer = batch_norm(d, dtype)
    ours = apply_stages(x, Stages.parse("RC+RS"))
    torch.testing.assert_close(ours, layer(x), rtol=tolerance, atol=tolerance)
    functional = torch.native_batch_norm(x, None, None, None, None, True, 0.1, 0.0)[0]  # eps = 0 without the check
    torch.testing.assert_close(ours, functional, rtol=tolerance, atol=tolerance)
    # The same comparison tells the stages apart: neither alone, nor the n - 1 divisor, nor torch's own epsilon.
    for other in ("RC", "STD", "RMS"):
        assert (apply_stages(x, Stages.parse(other)) - layer(x)).abs().max() > 0.01
    assert (ours * math.sqrt((n - 1) / n) - layer(x)).abs().max() > 100 * tolerance


def test_torch_batch_norm_with_its_default_epsilon_is_another_map(generator):
    x = batch(generator, 8, 16, scale=0.01)
    with_epsilon = torch.nn.BatchNorm1d(16, affine=False).double()(x)
    assert (apply_stages(x, Stages.parse("RC+RS")) - with_epsilon).abs().max() > 1e-3


def test_gradient_through_rc_and_rs_is_the_one_of_torch(generator):
    x = batch(generator, 6, 4).requires_grad_()
    weight = batch(generator, 6, 4)
    (ours,) = torch.autograd.grad((apply_stages(x, Stages.parse("RC+RS+NL")) * weight).sum(), x)
    layer = batch_norm(4)
    (theirs,) = torch.autograd.grad((torch.relu(layer(x)) * weight).sum(), x)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-10)


def test_recentering_commutes_with_the_weights(generator):
    x, w = batch(generator, 8, 20), batch(generator, 20, 30)
    torch.testing.assert_close(recenter(x @ w), recenter(x) @ w, rtol=1e-12, atol=1e-12)
    # Rescaling and the non-linearity do not.
    assert (rescale(x @ w, by="rms") - rescale(x, by="rms") @ w).abs().max() > 0.1
    assert (relu(x @ w) - relu(x) @ w).abs().max() > 0.1


def test_recentering_twice_is_recentering_once(generator):
    x = batch(generator, 7, 5, shift=10)
    once = recenter(x)
    torch.testing.assert_close(recenter(once), once, rtol=0, atol=1e-14)
    torch.testing.assert_close(once.sum(dim=0), torch.zeros(5, dtype=torch.float64), rtol=0, atol=1e-13)


def test_rms_and_std_agree_after_recentering_only(generator):
    x = batch(generator, 9, 6, shift=0.5)
    torch.testing.assert_close(rescale(recenter(x), by="rms"), rescale(recenter(x), by="std"))
    assert (rescale(x, by="rms") - rescale(x, by="std")).abs().max() > 0.01


def test_rescale_known_values():
    x = torch.tensor([[3.0], [4.0]], dtype=torch.float64)
    assert rescale(x, by="rms").flatten().tolist() == pytest.approx(
        [3 / math.sqrt(12.5), 4 / math.sqrt(12.5)], rel=1e-15
    )
    assert rescale(x, by="std").tolist() == [[6.0], [8.0]]


@pytest.mark.parametrize("value", [0.0, 0.1, 1 / 3, 1e17])
@pytest.mark.parametrize("n", [3, 7, 10])
def test_a_constant_column_becomes_exactly_zero(value, n):
    x = torch.full((n, 2), value, dtype=torch.float64)
    assert recenter(x).eq(0).all()
    for name in ("RC+RS", "STD"):
        assert apply_stages(x, Stages.parse(name)).eq(0).all()


def test_a_zero_column_stays_zero_and_leaves_its_neighbor_alone():
    x = torch.tensor([[0.0, 1.0], [0.0, -1.0]], dtype=torch.float64)
    for name in ("RMS", "STD", "RC+RS"):
        assert apply_stages(x, Stages.parse(name)).tolist() == x.tolist()
    assert batch_norm(2)(x).tolist() == x.tolist()


@pytest.mark.parametrize("size", [1e-200, 1e-155, 1e155, 1e200])
@pytest.mark.parametrize("name", ["RMS", "STD", "RC+RS"])
def test_rescaling_ignores_the_scale_over_the_whole_number_range(generator, size, name):
    x = batch(generator, 5, 4)
    stages = Stages.parse(name)
    torch.testing.assert_close(apply_stages(x * size, stages), apply_stages(x, stages), rtol=1e-12, atol=1e-13)


def test_tied_samples_stay_tied(generator):
    x = batch(generator, 4, 6)[[0, 0, 1, 2]]
    for name in ALL_NAMES:
        y = apply_stages(x, Stages.parse(name))
        assert torch.equal(y[0], y[1])


def test_nan_is_not_swallowed():
    x = torch.tensor([[math.nan], [1.0]], dtype=torch.float64)
    for name in ALL_NAMES:
        assert apply_stages(x, Stages.parse(name)).isnan().any()


def test_the_input_is_not_changed(generator):
    x = batch(generator, 4, 3)
    before = x.clone()
    for name in ALL_NAMES:
        apply_stages(x, Stages.parse(name))
    assert torch.equal(x, before)


@pytest.mark.parametrize("name", ALL_NAMES)
def test_names_survive_a_round_trip(name):
    assert Stages.parse(name).name == name


def test_parse_reads_variants():
    assert Stages.parse("") == Stages.parse("none") == Stages()
    assert Stages.parse(" rc + nl ") == Stages(True, "none", "relu")
    assert Stages.parse("NL") == Stages(False, "none", "relu")  # one side empty: no order to speak of
    assert Stages.parse("NL+RC") == Stages(True, "none", "relu", norm_after=True) != Stages.parse("RC+NL")
    assert Stages.parse("NL+RC+RMS") == Stages.parse("NL+RC+STD") == Stages.parse("NL+RC+RS")
    assert Stages.parse("RC+RMS") == Stages.parse("RC+STD") == Stages.parse("RC+RS")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("RC+BN", r"stages contain 'BN' in 'RC\+BN'; valid are RC, RS, RMS, STD and NL\."),
        ("RC+NL+RS", "must name each stage once, in the order RC, RS, NL or NL, RC, RS"),
        ("NL+RS", "without RC choose RMS"),
        ("NL+RC+NL", "must name each stage once"),
        ("NL+RS+RC", "must name each stage once"),
        ("RC+RC", "must name each stage once"),
        ("RMS+STD", "must name each stage once"),
        ("RS+NL", "without RC choose RMS"),
    ],
)
def test_parse_refuses(text, message):
    with pytest.raises(ValueError, match=message):
        Stages.parse(text)


def test_stages_refuse_unknown_values(unchecked):
    with pytest.raises(ValueError, match='rescaling must be "none", "rms" or "std", not \'l1\''):
        Stages(False, "l1", "relu")
    with pytest.raises(ValueError, match='nonlinearity must be "identity" or "relu", not \'tanh\''):
        Stages(False, "none", "tanh")
    for empty in ((True, "none", "identity"), (False, "none", "relu")):
        with pytest.raises(
            ValueError, match="norm_after needs a non-linearity and a normalization whose order it says"
        ):
            Stages(*empty, norm_after=True)


@pytest.mark.parametrize(
    ("x", "message"),
    [
        (torch.zeros(1, 3), r"x has 1 samples \(shape \(1, 3\)\); valid is a batch"),
        (torch.zeros(3), "x has 1 dimensions"),
        (torch.zeros(3, 0), "x has no features"),
        (torch.zeros(3, 2, dtype=torch.int64), "x has dtype torch.int64"),
    ],
)
def test_what_is_not_a_batch_is_refused(x, message):
    with pytest.raises(ValueError, match=message):
        check_batch(x)


def test_functions_check_their_batch(unchecked):
    one = torch.zeros(1, 3, dtype=torch.float64)
    for call in (recenter, rescale, lambda x: apply_stages(x, Stages())):
        with pytest.raises(ValueError, match="x has 1 samples"):
            call(one)
    with pytest.raises(ValueError, match='by must be "rms" or "std", not \'max\''):
        rescale(torch.zeros(2, 3), by="max")
