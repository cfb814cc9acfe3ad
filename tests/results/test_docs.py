"""What docs/results.md says is so: its table of errors is the taxonomy, its Python runs, its
strategies exist.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from agenttool_otel.errors import TAXONOMY
from agenttool_otel.names import PersistenceStrategy

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "results.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)


def test_the_table_of_errors_is_the_taxonomy() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (AT-\d+) \| (\w+) \|(.*)\|$", PAGE, re.MULTILINE)
    stated = {
        name: (code, how, [cell.strip() == "yes" for cell in rest.split("|")])
        for name, code, how, rest in rows
    }
    assert stated == {
        spec.error_class.value: (
            spec.code,
            spec.recoverability.value,
            [
                spec.retry_safe,
                spec.arguments_must_change,
                spec.discovery_required,
                spec.approval_required,
                spec.sibling_caused,
            ],
        )
        for spec in TAXONOMY.values()
    }


def test_every_strategy_is_described() -> None:
    assert {f"| `{strategy.value}` |" for strategy in PersistenceStrategy} <= set(
        re.findall(r"\| `\w+` \|", PAGE)
    )


@pytest.mark.parametrize("number", range(len(BLOCKS)))
def test_its_python_runs(number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "page"}
    exec(compile(BLOCKS[number], f"docs/results.md block {number}", "exec"), names)
    names["governor"].close()
