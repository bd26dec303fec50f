"""Staging: only what belongs together reaches the book."""

import json

import pytest
import yaml

from tools.paths import ROOT, Refusal
from tools.stage import (
    configuration,
    figure_bytes,
    gather,
    point_to_claims_page,
    tell_unmeasured,
    unmeasured,
    wanted_figures,
)

from .chapters import executed, results


@pytest.fixture
def folders(tmp_path):
    (tmp_path / "tiny.ipynb").write_text(json.dumps(executed()))
    (tmp_path / "tiny.json").write_text(json.dumps(results()))
    return tmp_path


def test_a_good_pair_is_gathered(folders):
    notebooks, records = gather(["tiny"], folders, folders)
    assert list(notebooks) == list(records) == ["tiny"]


def test_another_run_is_refused(folders):
    (folders / "tiny.json").write_text(json.dumps(results(run_id="xyz")))
    with pytest.raises(Refusal, match="its results file is of run xyz"):
        gather(["tiny"], folders, folders)


def test_a_chapter_that_was_not_executed_is_refused(folders):
    with pytest.raises(Refusal, match="other has not been executed"):
        gather(["tiny", "other"], folders, folders)


def test_a_corrupt_results_file_is_refused(folders):
    (folders / "tiny.json").write_text('{"schema": 1,')
    with pytest.raises(Refusal, match="is corrupt"):
        gather(["tiny"], folders, folders)


def test_a_file_that_is_no_notebook_is_refused(folders):
    (folders / "tiny.ipynb").write_text("{}")
    with pytest.raises(Refusal, match=r"tiny\.ipynb is not a notebook"):
        gather(["tiny"], folders, folders)


def test_buttons_appear_only_with_a_public_address():
    text = (ROOT / "_config.yml").read_text()
    plain = yaml.safe_load(configuration(text, ""))
    assert "url" not in plain["repository"]
    assert not plain["sphinx"]["config"]["html_theme_options"]["use_repository_button"]
    assert not plain["sphinx"]["config"]["html_theme_options"]["launch_buttons"]["binderhub_url"]
    public = yaml.safe_load(configuration(text, "https://example.org/a/b"))
    assert public["repository"]["url"] == "https://example.org/a/b"
    assert public["sphinx"]["config"]["html_theme_options"]["use_repository_button"]
    assert public["sphinx"]["config"]["html_theme_options"]["launch_buttons"]["binderhub_url"]


def test_a_prose_page_shows_a_chapters_figure_again():
    text = "```{figure} figures/fig-01-x.png\n:name: a\n```\n"
    assert wanted_figures(text) == ["fig-01-x"]
    cell = {
        "metadata": {"mystnb": {"figure": {"name": "fig-01-x"}}},
        "outputs": [{"data": {"text/html": "-"}}, {"data": {"image/png": ["aGVs", "bG8=\n"]}}],
    }
    assert figure_bytes({"01": {"cells": [{"metadata": {}}, cell]}}, "fig-01-x") == b"hello"
    with pytest.raises(Refusal, match="fig-01-y, which no chapter draws"):
        figure_bytes({"01": {"cells": [cell]}}, "fig-01-y")


def test_a_claim_in_a_chapter_leads_to_its_entry():
    shown = '<a href="../book/claims.yml#a">a</a> and <code>../book/claims.yml#a</code>'
    notebook = {"cells": [{"outputs": [{"data": {"text/html": [shown]}}, {"text": "x"}]}, {"source": ""}]}
    html = point_to_claims_page(notebook)["cells"][0]["outputs"][0]["data"]["text/html"]
    assert html == '<a href="../book/claims.html#a">a</a> and <code>../book/claims.yml#a</code>'


def test_an_optional_number_that_was_not_measured_is_said_to_be_so():
    source = 'run.glue("there", "x", optional=True)\nrun.glue("gone", "y", optional=True)\nrun.glue("needed", "z")\n'
    outputs = [{"metadata": {"scrapbook": {"name": "there"}}}]
    notebook = {"cells": [{"cell_type": "code", "source": [source], "outputs": outputs}]}
    assert unmeasured(notebook) == {"gone"}
    text = "{glue:text}`there:.2f` {glue:text}`gone:.0%` {glue:text}`gone` {glue:text}`gone-too:.1f`"
    told = "{glue:text}`there:.2f` *not measured* *not measured* {glue:text}`gone-too:.1f`"
    assert tell_unmeasured(text, {"gone"}) == told
    assert tell_unmeasured(text, set()) == text
    page = "{glue:text}`../notebooks/01_tiny.ipynb::gone:.0%` {glue:text}`../notebooks/02_tiny.ipynb::gone:.0%`"
    told = "*not measured* {glue:text}`../notebooks/02_tiny.ipynb::gone:.0%`"
    assert tell_unmeasured(page, {"gone"}, "../notebooks/01_tiny.ipynb") == told
