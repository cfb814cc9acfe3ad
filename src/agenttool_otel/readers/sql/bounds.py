"""Whether a query ends: recursive tables, CONNECT BY, functions that make texts and rows of a given
size.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Any

from agenttool_otel.values.tables import load_table

_WIDE = re.compile(r"%[^a-zA-Z%]*(?:\*|[0-9]{6})")
_INDENT = re.compile(r"(?i)(?:[0-9]{1,2} \* )?\(?level(?: - 1)?\)?(?: \* [0-9]{1,2})?")
_MAX_DIGITS = 6
_SMALL = re.compile(r"[0-9]{1,7}(?:\.[0-9]{1,9})?")
_STEP = re.compile(r"[1-9][0-9]{0,6}(?: ?[A-Za-z]{1,9})?")
_MODIFIER = re.compile(r"[+-][1-9][0-9]{0,6} [A-Za-z]{1,9}")


@cache
def sql_table() -> dict[str, frozenset[str]]:
    table = load_table(__package__, "data/sql.toml")
    return {key: frozenset(value) for key, value in table.items()}


def table_ends(cte: Any, exp: Any) -> bool:
    """Whether something bounds a common table that names itself: a limit, what it counts to,
    another table's rows.
    """
    name, limit = cte.alias.lower(), cte.this.args.get("limit")
    steps = [
        step
        for step in cte.this.find_all(exp.Select)
        if any(t.name.lower() == name for t in step.find_all(exp.Table))
    ]
    if any(_doubles(step, cte, exp) for step in steps):
        return False
    if (
        limit is not None
        and isinstance(limit.expression, exp.Literal)
        and _SMALL.fullmatch(limit.expression.name)
    ):
        return True
    counts = len(steps) == 1 and _stops(steps[0].args.get("where"), _made(steps[0], cte), exp)
    return counts or all(_follows(step, name, exp) for step in steps)


def _made(step: Any, cte: Any) -> dict[str, Any]:
    """What a step makes of each column."""
    names = cte.alias_column_names or [one.alias_or_name for one in cte.this.selects]
    return {name.lower(): one.unalias() for name, one in zip(names, step.selects, strict=False)}


def _follows(step: Any, name: str, exp: Any) -> bool:
    """Whether a step goes on to rows of another table, by a column of both."""
    tables = list(step.find_all(exp.Table))
    own = {table.alias_or_name.lower() for table in tables if table.name.lower() == name}
    others = {table.alias_or_name.lower() for table in tables} - own
    goes_on = any(
        column.table.lower() not in own
        for one in step.selects
        for column in one.find_all(exp.Column)
    )
    sides = [
        {one.this.table.lower(), one.expression.table.lower()}
        for one in step.find_all(exp.EQ)
        if isinstance(one.this, exp.Column) and isinstance(one.expression, exp.Column)
    ]
    by_column = any(side & own and side - own <= others | {""} and side - own for side in sides)
    return (
        bool(others)
        and goes_on
        and (by_column or any(join.args.get("using") for join in step.find_all(exp.Join)))
    )


def _stops(condition: Any, made: dict[str, Any], exp: Any) -> bool:
    """Whether a condition ends what a step counts: a column that each row raises has to stay below
    something that does not move, or one that it lowers above.
    """
    if isinstance(condition, (exp.Where, exp.Paren)):
        return _stops(condition.this, made, exp)
    if isinstance(condition, (exp.And, exp.Or)):
        both = [_stops(one, made, exp) for one in (condition.this, condition.expression)]
        return all(both) if isinstance(condition, exp.Or) else any(both)
    if isinstance(condition, exp.Between):
        ends = {"raises": condition.args["high"], "lowers": condition.args["low"]}
        return (way := _way(condition.this, made, exp)) in ends and _stays(ends[way], made, exp)
    if not isinstance(condition, (exp.LT, exp.LTE, exp.GT, exp.GTE, exp.NEQ)):
        return False
    for side, other, below in (
        (condition.this, condition.expression, True),
        (condition.expression, condition.this, False),
    ):
        way, less = _way(side, made, exp), isinstance(condition, (exp.LT, exp.LTE)) == below
        if isinstance(condition, exp.NEQ):
            if way == "shortens" and other.is_string and not other.name:
                return True
        elif way == ("raises" if less else "lowers") and _stays(other, made, exp):
            return True
        elif not less and any(
            _way(one, made, exp) == "shortens" for one in side.find_all(exp.Column)
        ):
            return bool(other.is_int)
    return False


def _stays(bound: Any, made: dict[str, Any], exp: Any) -> bool:
    """Whether a bound is near, and the same in each row."""
    moved = any(column.name.lower() in made for column in bound.find_all(exp.Column))
    numbers = [number.name for number in bound.find_all(exp.Literal) if not number.is_string]
    return not moved and all(map(_SMALL.fullmatch, numbers))


def _way(side: Any, made: dict[str, Any], exp: Any) -> str:
    """What a step does to the column that one side of a comparison is, perhaps with a
    number added.
    """
    side = _bare(side, exp)
    if isinstance(side, (exp.Add, exp.Sub)) and isinstance(
        side.expression, (exp.Literal, exp.Interval)
    ):
        side = _bare(side.this, exp)
    step: Any = _bare(made.get(side.name.lower()), exp) if isinstance(side, exp.Column) else None
    if step is None or all(
        column.name.lower() != side.name.lower() for column in step.find_all(exp.Column)
    ):
        return ""
    if isinstance(step, exp.Substring) and isinstance(_bare(step.this, exp), exp.Column):
        start = step.args.get("start")
        later = (
            start is not None and start.name not in ("0", "1") and not isinstance(start, exp.Neg)
        )
        return "shortens" if later and step.this.name.lower() == side.name.lower() else ""
    if isinstance(step, exp.Date):  # SQLite's date(x, '+1 day')
        text = " ".join(one.name for one in step.find_all(exp.Literal))
        return {"+": "raises", "-": "lowers"}[text[0]] if _MODIFIER.fullmatch(text) else ""
    name = step.name.lower() if isinstance(step, exp.Anonymous) else type(step).__name__
    kind = next((kind for kind in ("raises", "lowers") if name in sql_table()[kind]), "")
    given = (step.this, step.args.get("expression"), step.args.get("unit"), *step.expressions)
    parts = [_bare(part, exp) for part in given]
    own = [
        part
        for part in parts
        if isinstance(part, exp.Column) and part.name.lower() == side.name.lower()
    ]
    by = [part.this if isinstance(part, exp.Interval) else part for part in parts]
    far = any(isinstance(part, exp.Literal) and _STEP.fullmatch(part.name) for part in by)
    return kind if own and far and (not isinstance(step, exp.Sub) or own[0] is parts[0]) else ""


def _bare(node: Any, exp: Any) -> Any:
    while isinstance(node, (exp.Cast, exp.Paren)):
        node = node.this
    return node


def _doubles(step: Any, cte: Any, exp: Any) -> bool:
    """Whether a step makes texts of its own texts that may be twice as long with each row."""
    joins = (exp.DPipe, exp.Concat, exp.ConcatWs)
    growing = {name for name, one in _made(step, cte).items() if one.find(*joins) is not None}
    used = [
        [column for column in one.find_all(exp.Column) if column.name.lower() in growing]
        for one in step.selects
    ]
    return any(len(one) > 1 for one in used) or any(
        type(node).__name__ in sql_table()["grows"] for node in step.walk()
    )


def climb_ends(node: Any, exp: Any) -> bool:
    """Whether what CONNECT BY asks comes to an end: each row a child of the one before it, or so
    many rows of one.
    """
    condition, others = node.args["connect"], (exp.Join, exp.Subquery, exp.Values, exp.Unnest)
    counted = isinstance(condition, (exp.LT, exp.LTE)) and condition.this.name.lower() in (
        "level",
        "rownum",
    )
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
        return not any(
            _WIDE.search(str(one.this)) for one in call.find_all(exp.Literal) if one.is_string
        )
    if name not in sql_table()["makes"]:
        return True
    sizes = [one.name for one in call.find_all(exp.Literal) if not one.is_string]
    select = call.find_ancestor(exp.Select)
    climbs = select is not None and select.args.get("connect") is not None
    counted = all(
        climbs and _INDENT.fullmatch(str(n))
        for n in call.find_all(exp.Mul, exp.Pow, exp.BitwiseLeftShift)
    )
    return counted and all(len(size) <= _MAX_DIGITS and size.isdecimal() for size in sizes)
