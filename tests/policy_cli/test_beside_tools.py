"""``policy check --tools``: names of tools, globs and arguments, compared with a program's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import pytest
from policy_project import run_json, write

from agenttool_otel import Governor
from agenttool_otel.authoring.project import load_project
from agenttool_otel.authoring.words.tools import slips_beside_tools
from agenttool_otel.catalog import ToolSpec
from agenttool_otel.preflight.posture import described_tools

FILE: Final = "agenttool/custom/x/x.rego"
PROGRAM: Final = '''
from agenttool_otel import Governor

governor = Governor()


@governor.govern(namespace="shop", read_only=False)
def refund(amount: int, currency: str = "EUR") -> str:
    """Refund."""
    return "refunded"
'''


def _specs() -> list[ToolSpec]:
    governor = Governor()

    @governor.govern(namespace="shop", read_only=False)
    def refund(amount: int, currency: str = "EUR") -> str:
        """Refund."""
        return f"{amount} {currency}"

    @governor.govern(namespace="shop", read_only=True)
    def find_order(number: int) -> str:
        """Find an order."""
        return str(number)

    return [tool.spec for tool in described_tools(governor)]


def _found(folder: Path, condition: str, files: dict[str, str] | None = None) -> list[str]:
    rule = f'package agenttool.custom.x\n\ndeny contains {{"rule": "acme.x", "message": "no"}} if {condition}\n'
    project = load_project(write(folder, {FILE: rule, **(files or {})}))
    return [slip.message for slip in slips_beside_tools(project, _specs())]


@pytest.mark.parametrize(
    ("condition", "words"),
    [
        ('input.tool.name == "refnud"', ["refnud", "refund"]),
        ('input.tool.id in {"shop.refund", "shop.find_ordr"}', ["shop.find_ordr", "find_order"]),
        ('data.agenttool.lib.is_called("shop.refnd")', ["shop.refnd", "shop.refund"]),
        ('glob.match("shops.*", null, input.tool.id)', ["shops.*", "fits no tool"]),
        ("input.input.ammount > 5", ["ammount", "amount"]),
        ('input.input.amount == "5"', ["amount", "never equals"]),
        ("input.input.currency > 5", ["currency", "different types"]),
    ],
)
def test_a_slip_is_named_once_tools_are_known(
    condition: str, words: list[str], tmp_path: Path
) -> None:
    found = _found(tmp_path, condition)
    assert any(all(word in message for word in words) for message in found), found


@pytest.mark.parametrize(
    "condition",
    [
        'input.tool.name == "refund"',
        'input.tool.id in {"shop.refund", "shop.find_order"}',
        'data.agenttool.lib.is_called("shop.*")',
        "input.input.amount > 5",
        'input.input.currency == "EUR"',
        'object.get(input.input, "number", 0) > 5',
    ],
)
def test_what_tools_have_is_right(condition: str, tmp_path: Path) -> None:
    assert _found(tmp_path, condition) == []


def test_a_glob_in_data_is_compared(tmp_path: Path) -> None:
    condition = (
        "{\n\tsome glob in data.agenttool.custom.x.tools\n\tdata.agenttool.lib.is_called(glob)\n}"
    )
    data = {"agenttool/custom/x/data.json": '{"tools": ["shop.refund_all", "shop.find_*"]}'}
    (message,) = _found(tmp_path, condition, data)
    assert "'shop.refund_all' fits no tool" in message


def test_a_glob_in_settings_is_compared(tmp_path: Path) -> None:
    settings = {"agenttool/settings/data.json": '{"budgets": {"tools": {"shop.refnud": 5}}}'}
    (message,) = _found(tmp_path, 'input.tool.name == "refund"', settings)
    assert "data.agenttool.settings.budgets.tools['shop.refnud']" in message


@pytest.mark.usefixtures("no_opa")
def test_the_command_takes_a_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(tmp_path, {"shop_of_this_test.py": PROGRAM})
    monkeypatch.syspath_prepend(str(tmp_path))
    finding = '{"rule": "acme.x", "message": "no"}'
    rule = f"package agenttool.custom.x\n\ndeny contains {finding} if input.input.ammount > 5\n"
    project = write(tmp_path / "p", {FILE: rule})
    status, report = run_json("check", project, "--tools", "shop_of_this_test:governor", "--json")
    assert status == 1
    check: Any = next(check for check in report["checks"] if check["name"] == "tools")
    assert check["status"] == "failed"
    assert "did you mean 'amount'" in check["problems"][0]["message"]
