"""The book's generated tables of claims: verdicts, counts, criteria.

Every row comes from `book/claims.yml` and from what the chapters recorded; nothing is typed.
"""

import html
import re
from collections import Counter
from typing import Any
from urllib.parse import urlencode

import yaml

from bnlib.criteria import VERDICTS
from bnlib.records import told

SOURCES = {
    "paper": "the paper",
    "review": "its review",
    "essay": "the essay on it",
    "key_facts": "its key facts",
    "mean_field": "the mean-field summary",
    "ours": "this book",
}
SHORT = {
    "paper": "paper",
    "review": "review",
    "essay": "essay",
    "key_facts": "key facts",
    "mean_field": "mean field",
    "ours": "ours",
}


def verdict_rows(claims: dict[str, dict[str, Any]], records: dict[str, dict[str, Any]]) -> list[dict[str, str]]:
    """Every claim with its verdict, as computed by its chapter; in the chapters' order, untested ones last."""
    rows = []
    for key, claim in claims.items():
        outcome = records.get(claim.get("notebook"), {}).get("claims", {}).get(key)
        rows.append(
            {
                "id": key,
                "source": claim["source"],
                "where": claim["where"],
                "statement": claim["statement"],
                "notebook": claim.get("notebook", ""),
                "reason": claim.get("reason", ""),
                "measured": told(outcome["measured"]) if outcome else "",
                "verdict": outcome["verdict"] if outcome else "not tested",
            }
        )
    return sorted(rows, key=lambda row: row["notebook"] or "~")


def verdict_counts(rows: list[dict[str, str]]) -> str:
    """How many claims of each source came out how, as a table whose counts lead to the claims."""
    sources = [source for source in SOURCES if any(row["source"] == source for row in rows)]
    verdicts = [verdict for verdict in VERDICTS if any(row["verdict"] == verdict for row in rows)]
    counts = Counter((row["source"], row["verdict"]) for row in rows)
    lines = ["| verdict | " + " | ".join(SHORT[source] for source in sources) + " | all |"]
    lines.append("|---|" + "---:|" * (len(sources) + 1))
    for verdict in verdicts:
        row = [_counted(counts[source, verdict], source, verdict) for source in sources]
        total = _counted(sum(counts[source, verdict] for source in sources), "", verdict)
        lines.append(f"| {verdict} | " + " | ".join([*row, total]) + " |")
    totals = [_counted(sum(counts[source, verdict] for verdict in verdicts), source, "") for source in sources]
    lines.append("| **all** | " + " | ".join([*totals, f"**{len(rows)}**"]) + " |")
    return "\n".join(lines)


def _counted(count: int, source: str, verdict: str) -> str:
    """A count, linked to the claims that it counts."""
    if not count:
        return "–"
    asked = urlencode({name: value for name, value in (("source", source), ("verdict", verdict)) if value})
    return f'<a href="verdicts.html?{html.escape(asked)}">{count}</a>'


def _choice(name: str, label: str, options: dict[str, str]) -> str:
    entries = "".join(
        f'<option value="{html.escape(key)}">{html.escape(text)}</option>' for key, text in options.items()
    )
    return f'<label>{label} <select name="{name}"><option value="">all</option>{entries}</select></label>'


def _filter_form(rows: list[dict[str, str]], source: str) -> str:
    """The controls above the table; they stay hidden where no script shows them."""
    sources = {source: text for source, text in SOURCES.items() if any(row["source"] == source for row in rows)}
    verdicts = {verdict: verdict for verdict in VERDICTS if any(row["verdict"] == verdict for row in rows)}
    chapters = {name: str(int(name[:2])) for name in sorted({row["notebook"] for row in rows if row["notebook"]})}
    return (
        f'<form id="verdict-filter" data-source="{source}" hidden>'
        + _choice("source", "Claimed by", sources)
        + _choice("verdict", "Verdict", verdicts)
        + _choice("chapter", "Chapter", chapters)
        + '<label>Words <input name="words" type="search" autocomplete="off"></label>'
        + '<button type="reset">Show all</button></form>'
        + '<p id="verdict-shown" role="status"></p>'
    )


def _decided_by(row: dict[str, str]) -> str:
    """The numbers that decided a claim, linked to their place; or why there are none."""
    if not row["notebook"]:
        return f"<small>{html.escape(row['reason'])}</small>"
    name = row["notebook"]
    link = f'<a href="../notebooks/{name}.html#claim-{html.escape(row["id"])}">chapter {int(name[:2])}</a>'
    return f"{html.escape(row['measured'])} <small>({link})</small>"


def verdict_page(rows: list[dict[str, str]]) -> str:
    """The page of verdicts: counts, a filter, then one row a claim, linked to the place that decides it."""
    lines = [
        "# Verdicts",
        "",
        f"{len(rows)} claims are listed. A tested claim has its criterion in `book/claims.yml`, "
        "written down before the run of record, though after pilots were known; the chapter computes the verdict "
        "from what it measures. Each claim is linked to the place in its chapter that shows the numbers, and to its "
        "criterion.",
        "",
        verdict_counts(rows),
        "",
        verdict_table(rows),
    ]
    return "\n".join(lines) + "\n"


def verdict_table(rows: list[dict[str, str]], source: str = "") -> str:
    """One row a claim below a filter, which begins with the claims of `source`; without scripts all are shown."""
    lines = [
        _filter_form(rows, source),
        '<div class="verdicts"><table id="verdict-table">'
        "<thead><tr><th>claim</th><th>decided by</th><th>verdict</th></tr></thead><tbody>",
    ]
    for row in rows:
        lines.append(
            f'<tr data-source="{row["source"]}" data-verdict="{row["verdict"]}" data-chapter="{row["notebook"]}">'
            f"<td>{html.escape(row['statement'])} "
            f"<small>({html.escape(row['source'].replace('_', ' '))}: {html.escape(row['where'])})</small></td>"
            f"<td>{_decided_by(row)}</td>"
            f'<td class="verdict">{html.escape(row["verdict"])}<br>'
            f'<small><a href="claims.html#{html.escape(row["id"])}">criterion</a></small></td></tr>'
        )
    lines.append("</tbody></table></div>")
    lines.append('<script src="../_static/verdicts.js"></script>')
    return "\n".join(lines)


def claims_page(text: str) -> str:
    """The page that shows `book/claims.yml` as it is, one block an entry, each with an anchor of its own."""
    lines = [
        "# The claims file",
        "",
        "Every claim with its criterion, as `book/claims.yml` holds it. A criterion is an expression over the values "
        "that the chapter records; a single one means confirmed where true and refuted where false; of several the "
        "first true one decides, and where none is true the verdict is inconclusive. The language is documented in "
        "`bnlib/criteria.py`.",
        "",
    ]
    for entry in re.findall(r"^- id:.*?(?=^(?:- id:|# )|\Z)", text, re.M | re.S):
        name = yaml.safe_load(entry)[0]["id"]
        lines.append(f'<pre class="claim" id="{html.escape(name)}">{html.escape(entry.strip())}</pre>')
        lines.append("")
    return "\n".join(lines)
