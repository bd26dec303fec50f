"""Progress lines: seen in a terminal, marked so that the page can leave them out."""

from bnlib.progress import MARK, progress


def test_items_pass_through_and_lines_are_marked(capsys):
    assert list(progress([3, 4, 5], "cells", every=0)) == [3, 4, 5]
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" after")[0] for line in lines] == [f"{MARK}cells 1 of 3", f"{MARK}cells 2 of 3"]


def test_a_stream_without_length_is_counted(capsys):
    assert list(progress(iter("ab"), "letters", every=0)) == ["a", "b"]
    assert "letters 1 after" in capsys.readouterr().err


def test_nothing_is_printed_when_it_is_quick(capsys):
    assert list(progress([], "cells")) == []
    list(progress(range(100), "cells", every=60))
    assert capsys.readouterr().err == ""
