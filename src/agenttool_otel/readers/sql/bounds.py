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
    tables = cte.this.find_all(exp.Table)
    return any(table.name.lower() == name for table in tables)


def is_small(call: exp.Func) -> bool:
    """Return whether a function that makes a text or rows of a given size makes few."""
    name = _function_name(call)
    literals = list(call.find_all(exp.Literal))
    if name in ("printf", "format"):
        return not any(map(_is_wide, literals))
    if name not in sql_table()["makes"]:
        return True
    # repeat('x', 10000 * 10000)
    product = call.find(exp.Mul, exp.Pow, exp.BitwiseLeftShift)
    if product is not None:
        return False
    return all(map(_is_short, literals))


def _function_name(call: exp.Func) -> str:
    if isinstance(call, exp.Anonymous):
        return call.name.lower()  # sqlglot does not model it
    name = type(call).__name__
    return name.lower()


def _is_wide(literal: exp.Literal) -> bool:
    """Return whether a text is a format with a wide conversion."""
    if not literal.is_string:
        return False
    return _WIDE.search(literal.name) is not None


def _is_short(literal: exp.Literal) -> bool:
    """Return whether a literal is no large number."""
    if literal.is_string:
        return True
    digits = literal.name
    if len(digits) > _MAX_DIGITS:
        return False
    return digits.isdecimal()
