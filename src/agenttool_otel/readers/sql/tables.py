"""The words that queries which only read are made of (``data/sql.toml``)."""

from __future__ import annotations

from functools import cache

from agenttool_otel.values.tables import load_table


@cache
def sql_table() -> dict[str, frozenset[str]]:
    """Return the lists of the table, by name."""
    lists = {}
    for name, words in load_table(__package__, "data/sql.toml").items():
        lists[name] = frozenset(words)
    return lists
