"""Whether a query ends: recursive tables, CONNECT BY, functions that make texts and rows of a given size."""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from agenttool_otel.values.tables import load_table

_WIDE = re.compile(r"%[^a-zA-Z%]*(?:\*|[0-9]{6})")
_INDENT = re.compile(r"(?i)(?:[0-9]{1,2} \* )?\(?level(?: - 1)?\)?(?: \* [0-9]{1,2})?")
_MAX_DIGITS = 6


@cache
def sql_table() -> dict[str, frozenset[str]]:
    table = load_table("agenttool_otel.facts", "data/sql.toml")
    return {key: frozenset(value) for key, value in table.items()}


def table_ends(cte: Any, exp: Any) -> bool:
    """Whether something bounds a common table that names itself: a limit, what it counts to, another table's rows."""
    steps = [
        step for step in cte.this.find_all(exp.Select) if any(t.name == cte.alias for t in step.find_all(exp.Table))
    ]
    if any(_doubles(step, cte, exp) for step in steps):
        return False
    return any(cte.this.find_all(exp.Limit)) or all(
        _stops(step.args.get("where"), _made(step, cte), exp) or _follows(step, cte, exp) for step in steps
    )


def _made(step: Any, cte: Any) -> dict[str, Any]:
    """What a step makes of each column."""
    names = cte.alias_column_names or [one.alias_or_name for one in cte.this.selects]
    return dict(zip(names, (one.unalias() for one in step.selects), strict=False))


def _follows(step: Any, cte: Any, exp: Any) -> bool:
    """Whether a step goes on to rows of another table, by a column of both."""
    others = any(table.name != cte.alias for table in step.find_all(exp.Table))
    pairs = any(
        isinstance(one.this, exp.Column) and isinstance(one.expression, exp.Column) for one in step.find_all(exp.EQ)
    )
    return others and (pairs or any(join.args.get("using") for join in step.find_all(exp.Join)))


def _stops(condition: Any, made: dict[str, Any], exp: Any) -> bool:
    """Whether a condition ends what a step counts: a column that each row raises stays below something, or what it
    lowers above."""
    if condition is None:
        return False
    if isinstance(condition, (exp.Where, exp.Paren)):
        return _stops(condition.this, made, exp)
    if isinstance(condition, (exp.And, exp.Or)):
        both = [_stops(one, made, exp) for one in (condition.this, condition.expression)]
        return all(both) if isinstance(condition, exp.Or) else any(both)
    below, above = (exp.LT, exp.LTE), (exp.GT, exp.GTE)
    moves = _moves(condition.this, made, exp)
    if isinstance(condition, exp.Between):
        return bool(moves)
    other = _moves(condition.expression, made, exp)
    up = (isinstance(condition, below) and "raises" in moves) or (isinstance(condition, above) and "raises" in other)
    down = (isinstance(condition, above) and "lowers" in moves) or (isinstance(condition, below) and "lowers" in other)
    return up or down or "shortens" in moves


def _moves(side: Any, made: dict[str, Any], exp: Any) -> set[str]:
    """What a step does to the columns of one side of a comparison, by the kind of its expression (data/sql.toml)."""
    found: set[str] = set()
    for column in side.find_all(exp.Column) if isinstance(side, exp.Expression) else ():
        step = made.get(column.name)
        while isinstance(step, (exp.Cast, exp.Paren)):
            step = step.this
        parts = list(step.flatten() if isinstance(step, exp.Binary) else step.find_all(exp.Column) if step else ())
        own = any(isinstance(one, exp.Column) and one.name == column.name for one in parts)
        if own and not any(one.name == "0" for one in parts):
            found |= {kind for kind in ("raises", "lowers", "shortens") if type(step).__name__ in sql_table()[kind]}
    return found


def _doubles(step: Any, cte: Any, exp: Any) -> bool:
    """Whether a step makes texts of its own texts that may be twice as long with each row."""
    joins = (exp.DPipe, exp.Concat, exp.ConcatWs)
    growing = {name for name, one in _made(step, cte).items() if one.find(*joins) is not None}
    used = [[column.name for column in one.find_all(exp.Column) if column.name in growing] for one in step.selects]
    return any(len(one) > 1 for one in used) or any(type(node).__name__ in sql_table()["grows"] for node in step.walk())


def climb_ends(node: Any, exp: Any) -> bool:
    """Whether what CONNECT BY asks comes to an end: each row a child of the one before it, or so many rows of one."""
    condition, others = node.args["connect"], (exp.Join, exp.Subquery, exp.Values, exp.Unnest)
    counted = isinstance(condition, (exp.LT, exp.LTE)) and condition.this.name.lower() in ("level", "rownum")
    if counted and condition.expression.is_int and len(condition.expression.name) <= _MAX_DIGITS:
        names = [table.name.lower() for table in node.parent.find_all(exp.Table)]
        return names == ["dual"] and not any(node.parent.find_all(*others))
    return condition.find(exp.Or, exp.Not) is None and any(
        {isinstance(step.this, exp.Prior), isinstance(step.expression, exp.Prior)} == {True, False}
        and len({column.name.lower() for column in step.find_all(exp.Column)}) > 1
        for step in condition.find_all(exp.EQ)
    )


def is_small(call: Any, exp: Any) -> bool:
    """Whether a function that makes a text or rows of a given size makes a small one."""
    name = call.name.lower() if isinstance(call, exp.Anonymous) else type(call).__name__.lower()
    if name in ("printf", "format"):
        return not any(_WIDE.search(str(one.this)) for one in call.find_all(exp.Literal) if one.is_string)
    if name not in sql_table()["makes"]:
        return True
    sizes = [one.name for one in call.find_all(exp.Literal) if not one.is_string]
    select = call.find_ancestor(exp.Select)
    climbs = select is not None and select.args.get("connect") is not None
    counted = all(climbs and _INDENT.fullmatch(str(n)) for n in call.find_all(exp.Mul, exp.Pow, exp.BitwiseLeftShift))
    return counted and all(len(size) <= _MAX_DIGITS and size.isdecimal() for size in sizes)
