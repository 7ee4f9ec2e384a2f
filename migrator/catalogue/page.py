"""The catalogue as Markdown: one symbol, or all of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from migrator.catalogue.rows import Form, Row

_MEASURED = Path(__file__).with_name("measured.json")
_EXPLAINED = """
Made by `make docs`. A row is one call of a TensorFlow 1 symbol and what it becomes. "Apart" is the largest difference
of what both compute, relative to max(1, |old|): outputs and gradients of layers with the same weights, weights through
30 steps of an optimizer, rates, values of metrics; of random initializers the mean, the deviation and two quantiles of
120,000 draws, which are apart by chance. `python benchmarks/catalogue.py` measures them, against TensorFlow 1.15.5 or
2.15.1 as the last column says; every run of the tests computes all rows that 2.15.1 has. Where no difference stands,
"proofs" are the tests and fixtures that run the symbol. What is refused with a code names its way out there
(`tf-migrate rules CODE`); what only the native form refuses, the bridge still carries over.
"""


@cache
def measured() -> Mapping[str, Mapping[str, Any]]:
    """What benchmarks/catalogue.py found, by symbol: "keras2" and "keras3" (differences), "tensorflow" (version)."""
    found: Mapping[str, Mapping[str, Any]] = json.loads(_MEASURED.read_text(encoding="utf-8"))
    return found


def page(row: Row) -> str:
    """What becomes of one symbol."""
    found = measured().get(row.symbol, {})
    parts = [f"# {row.symbol}", f"```python\n{row.call}\n```"]
    for number, form in ((2, row.keras2), (3, row.keras3)):
        title = "Keras 2 (tf_keras)" if number == 2 else "Keras 3"
        if form.text is None:
            parts.append(f"{title}: refused with {', '.join(form.codes)}.")
            continue
        if number == 3 and form == row.keras2:
            parts.append(f"{title}: the same{_apart(found.get('keras3'))}.")
            continue
        parts.append(f"{title}{_apart(found.get(f'keras{number}'))}:")
        parts.append(
            "```python\n" + "\n\n\n".join([text.strip() for text in form.classes.values()] + [form.text]) + "\n```"
        )
    if found:
        parts.append(f"Compared with TensorFlow {found['tensorflow']}.")
    if row.codes:
        parts.append(f"More: {', '.join(f'`tf-migrate rules {code}`' for code in row.codes)}.")
    return "\n\n".join(parts) + "\n"


def _apart(number: float | None) -> str:
    return "" if number is None else f", {number:.0e} apart"


def table(rows: Sequence[Row], proofs: Mapping[str, Sequence[str]]) -> str:
    """All rows, with the tests and fixtures that run each symbol."""
    kept = [row for row in rows if row.keras2.text is not None]
    computed = [row for row in kept if row.symbol in measured()]
    named = [row for row in kept if row.symbol not in measured() and proofs.get(row.symbol)]
    left = len(kept) - len(computed) - len(named)
    counts = (
        f"{len(rows)} symbols, {len(kept)} of them carried over: {len(computed)} are computed on both sides and "
        f"compared, {len(named)} more run in proofs of whole programs, {left} in none."
    )
    lines = ["# Catalogue", counts, _EXPLAINED.strip(), ""]
    lines.append("| TensorFlow 1 | Keras 2 (tf_keras) | Keras 3 | pages | apart (2, 3) | TensorFlow |")
    lines.append("|---|---|---|---|---|---|")
    for row in rows:
        found = measured().get(row.symbol, {})
        apart = ", ".join(f"{found[key]:.0e}" for key in ("keras2", "keras3") if key in found)
        where = str(found.get("tensorflow", "")) or ", ".join(proofs.get(row.symbol, ())[:2])
        same = row.keras3 == row.keras2 and row.keras2.text is not None
        keras3 = "the same" if same else _cell(row.keras3)
        pages = ", ".join(f"[{code}]({code}.md)" for code in row.codes)
        lines.append(f"| `{_escaped(row.call)}` | {_cell(row.keras2)} | {keras3} | {pages} | {apart} | {where} |")
    return "\n".join(["\n\n".join(lines[:3]), *lines[3:]]) + "\n"


def _cell(form: Form) -> str:
    if form.text is None:
        return f"refused ({', '.join(form.codes)})"
    note = f" with a class `{next(iter(form.classes))}` in the file" if form.classes else ""
    return f"`{_escaped(form.text)}`{note}"


def _escaped(code: str) -> str:
    return " ".join(code.split()).replace("|", "\\|")
