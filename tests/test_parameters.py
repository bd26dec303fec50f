"""Parameters: converted where they can be used, refused in one sentence where they cannot."""

from fractions import Fraction

import pytest

from bnlib import parameters
from bnlib.parameters import ParameterError, check, folder_name, integer, integers, number, numbers, one_of, rationals

COMMON = {"device": "cpu", "seed": 0}


@pytest.fixture
def common(tmp_path):
    return {**COMMON, "results_dir": str(tmp_path / "results")}


def test_lists_come_as_yaml_or_as_text(common):
    for given in ([4, 8], "[4, 8]", (4, 8)):
        assert check({**common, "batch_sizes": given}, batch_sizes=integers(minimum=2)).batch_sizes == [4, 8]


def test_session_names_and_modules_are_no_parameters(common):
    namespace = {**common, "width": 3, "In": [], "Out": {}, "_hidden": 1, "check": check, "parameters": parameters}
    assert check(namespace, width=integer()).width == 3


def test_results_folder_is_made_and_only_for_a_call_that_is_good(common, tmp_path):
    with pytest.raises(ParameterError):
        check({**common, "width": 0}, width=integer(minimum=1))
    assert not (tmp_path / "results").exists()
    assert check({**common, "width": 1}, width=integer(minimum=1)).results_dir.is_dir()


@pytest.mark.parametrize(
    ("name", "value", "kind", "sentence"),
    [
        ("width", 0, integer(minimum=1), "parameter width is 0, but it must be a whole number of at least 1"),
        ("width", True, integer(minimum=1), "parameter width is True, but it must be a whole number of at least 1"),
        ("width", 2.0, integer(minimum=1), "parameter width is 2.0, but it must be a whole number of at least 1"),
        ("width", "wide", integer(1, 9), "parameter width is 'wide', but it must be a whole number from 1 to 9"),
        ("sizes", [], integers(2), "parameter sizes is [], but it must be a list of different whole numbers"),
        ("sizes", "[]", integers(2), "parameter sizes is '[]', but it must be a list of different whole numbers"),
        ("sizes", "[4", integers(2), "parameter sizes is '[4', but it must be a list"),
        ("sizes", 8, integers(2), "parameter sizes is 8, but it must be a list"),
        (
            "sizes",
            [4, 1],
            integers(2),
            "parameter sizes is [4, 1], but it must be a list of different whole numbers of",
        ),
        ("sizes", [4, 4], integers(2), "parameter sizes is [4, 4], but it must be a list of different"),
        ("sizes", [4, "8"], integers(2), "parameter sizes is [4, '8'], but it must be a list"),
        (
            "variance",
            float("nan"),
            number(0),
            "parameter variance is nan, but it must be a finite number of at least 0",
        ),
        ("variance", "2", number(0), "parameter variance is '2', but it must be a finite number"),
        ("batch", [1], rationals(), "parameter batch is [1], but it must be a list of at least 2 numbers"),
        ("batch", [1, "1/0"], rationals(), "parameter batch is [1, '1/0'], but it must be a list"),
        ("batch", [1, float("inf")], rationals(), "parameter batch is [1, inf], but it must be a list"),
        ("batch", [1, "1e999999999"], rationals(), "parameter batch is [1, '1e999999999'], but it must be a list"),
        ("batch", [1, None], rationals(), "parameter batch is [1, None], but it must be a list"),
        ("draw", "fast", one_of("dense", "gram_root"), "parameter draw is 'fast', but it must be one of dense, gram"),
    ],
)
def test_what_cannot_be_used_is_refused_in_one_sentence(common, name, value, kind, sentence):
    with pytest.raises(ParameterError) as refused:
        check({**common, name: value}, **{name: kind})
    assert str(refused.value).startswith(sentence)
    assert "\n" not in str(refused.value)


def test_an_unknown_name_is_refused_with_the_likely_one(common):
    with pytest.raises(ParameterError, match=r"parameter widht \(value 64\) is not known; did you mean width\?"):
        check({**common, "width": 8, "widht": 64}, width=integer())
    with pytest.raises(ParameterError, match="the known ones are device, results_dir, seed, width"):
        check({**common, "width": 8, "zzz": 64}, width=integer())


def test_a_missing_name_is_refused(common):
    with pytest.raises(ParameterError, match="parameter width is None"):
        check(common, width=integer())


def test_a_device_that_is_not_there_is_refused(common):
    with pytest.raises(ParameterError, match=r"parameter device is 'cuda:99', but it must be auto, cpu, or a GPU"):
        check({**common, "device": "cuda:99"})
    assert check({**common, "device": "auto"}).device in ("cpu", "cuda")


def test_a_folder_that_cannot_be_written_is_refused(common, tmp_path):
    blocker = tmp_path / "file"
    blocker.write_text("")
    for folder in (str(blocker / "below"), "", 3):
        with pytest.raises(ParameterError, match="it must be a folder that can be written"):
            check({**common, "results_dir": folder})


def test_rationals_are_exact():
    assert rationals()("batch", [0, 0.1, "7/2", " -3 ", "1e-3"]) == [
        Fraction(0),
        Fraction(1, 10),
        Fraction(7, 2),
        Fraction(-3),
        Fraction(1, 1000),
    ]


def test_the_message_takes_the_place_of_a_traceback():
    assert ParameterError("parameter a is 1")._render_traceback_() == ["ParameterError: parameter a is 1"]


def test_a_list_that_must_not_be_short():
    assert integers(at_least=3)("widths", "[1, 2, 3]") == [1, 2, 3]
    with pytest.raises(
        ParameterError, match=r"must be a list of 3 or more different whole numbers, such as \[8, 16, 32\]"
    ):
        integers(at_least=3)("widths", "[1, 2]")


def test_lists_of_numbers_and_names_of_folders():
    for call, message in (
        (lambda: numbers(0, 1)("f", [2]), "from 0 to 1"),
        (lambda: numbers(0, 1)("f", []), "must be a list of numbers from 0 to 1"),
        (lambda: numbers(0, 1)("f", "[0.5"), "must be a list of numbers from 0 to 1"),
        (lambda: folder_name("t", ""), "name of a folder"),
    ):
        with pytest.raises(ParameterError, match=message):
            call()
