"""Whether the work of a query is bounded by its data: what names itself, and functions that make
texts and rows of a given size, may be without an end.
"""

from __future__ import annotations

import re
from typing import Final

from sqlglot import exp

from agenttool_otel.readers.sql.tables import sql_table

_WIDE: Final = re.compile(r"%[^a-zA-Z%]*(?:\*|[0-9]{6})")
"""A conversion whose width is an argument or has six digits: ``%.*c``, ``%1000000000d``."""

_MAX_DIGITS: Final = 6


def names_itself(cte: exp.CTE) -> bool:
    """Return whether a common table is made of its own rows, so that it may never end."""
    # PostgreSQL folds names: with recursive t as (... from T)
    name = cte.alias.lower()
    return any(table.name.lower() == name for table in cte.this.find_all(exp.Table))


def is_small(call: exp.Func) -> bool:
    """Return whether a function that makes a text or rows of a given size makes few."""
    name = _function_name(call)
    if name in ("printf", "format"):
        return not any(_is_wide(literal) for literal in call.find_all(exp.Literal))
    if name not in sql_table()["makes"]:
        return True
    # repeat('x', 10000 * 10000)
    if call.find(exp.Mul, exp.Pow, exp.BitwiseLeftShift) is not None:
        return False
    return all(literal.is_string or _is_short(literal) for literal in call.find_all(exp.Literal))


def _function_name(call: exp.Func) -> str:
    if isinstance(call, exp.Anonymous):
        return call.name.lower()  # one that sqlglot does not model
    return type(call).__name__.lower()


def _is_wide(literal: exp.Literal) -> bool:
    return literal.is_string and _WIDE.search(str(literal.this)) is not None


def _is_short(number: exp.Literal) -> bool:
    return len(number.name) <= _MAX_DIGITS and number.name.isdecimal()
