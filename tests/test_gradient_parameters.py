"""Parameter kinds of the chapter on gradients: one sentence for every kind of bad input."""

import pytest

from bnlib import gradient_parameters
from bnlib.parameters import ParameterError


def test_parameter_kinds():
    for call, message in (
        (lambda: gradient_parameters.moment_batch_sizes("b", [8, 3]), "infinite at 3 and gradients vanish at 2"),
        (lambda: gradient_parameters.moment_batch_sizes("b", [1]), "whole numbers of at least 2"),
        (lambda: gradient_parameters.activation_names("a", ["relu", "sigh"]), "'sigh' is no activation"),
        (lambda: gradient_parameters.activation_names("a", ["relu", "relu"]), "different activations"),
        (lambda: gradient_parameters.activation_names("a", 3), "must be a list"),
    ):
        with pytest.raises(ParameterError, match=message):
            call()
