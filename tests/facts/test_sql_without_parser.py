"""A base install has no SQL parser: each SQL argument is a question then, and nothing fails."""

from __future__ import annotations

import builtins
import logging
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from agenttool_otel import ApprovalRequired, Governor, ToolDenied
from agenttool_otel.readers.sql import fact as sql_reader
from agenttool_otel.readers.sql import sql_fact


@pytest.fixture(autouse=True)
def without_sqlglot(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Import as a process does in which sqlglot is not installed."""
    real_import = builtins.__import__

    def import_without(name: str, *args: Any, **kwargs: Any) -> Any:
        if name.partition(".")[0] == "sqlglot":
            raise ModuleNotFoundError("No module named 'sqlglot'", name="sqlglot")
        return real_import(name, *args, **kwargs)

    for name in ("bounds", "statements"):
        monkeypatch.delitem(sys.modules, f"agenttool_otel.readers.sql.{name}", raising=False)
    sql_reader._warn_of_missing_parser.cache_clear()
    monkeypatch.setattr(builtins, "__import__", import_without)
    yield
    sql_reader._warn_of_missing_parser.cache_clear()


def test_a_query_is_unparsed() -> None:
    fact = sql_fact("select 1", argument="/query")
    assert (fact["parsed"], fact["read_only"]) == (False, False)
    assert fact["unparsed"] == "parser_not_installed"


def test_the_words_of_a_query_still_reach_rules() -> None:
    fact = sql_fact("select 1; drop table t", argument="/query")
    assert fact["statements"] == ["select", "drop"]
    assert fact["multiple"]
    assert fact["ddl"]


def test_one_warning_names_the_extra(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING, "agenttool_otel.readers.sql"):
        sql_fact("select 1", argument="/query")
        sql_fact("select 2", argument="/query")
    assert [record.getMessage() for record in caplog.records] == [
        "SQL arguments are not read, so that each of them is asked about: "
        "sqlglot is missing, install agenttool-otel[sql]"
    ]


def _query_tool(governor: Governor) -> Any:
    def query(sql: str) -> str:
        return "rows"

    return governor.govern(
        query, read_only=True, destructive=False, sql_args=["sql"], access_kinds=["database_read"]
    )


def test_a_reading_query_is_asked_about() -> None:
    with pytest.raises(ApprovalRequired):
        _query_tool(Governor())("select 1 from t")


def test_a_preset_that_denies_unread_sql_denies() -> None:
    with pytest.raises(ToolDenied):
        _query_tool(Governor(policy_preset="strict"))("select 1 from t")


def test_warming_up_needs_no_parser() -> None:
    governor = Governor()
    _query_tool(governor)
    governor.warm()
