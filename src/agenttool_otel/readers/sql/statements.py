"""What the statements of a query do, judged by the trees that sqlglot makes of them.

A parser keeps what it does not understand. So ``read_only`` needs a tree that is made of known
parts only (``data/sql.toml``): databases grow functions with side effects faster than lists.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from itertools import islice
from typing import Any, Final

import sqlglot
from sqlglot import exp
from sqlglot.errors import ErrorLevel, SqlglotError

from agenttool_otel.readers.sql.bounds import is_small, names_itself
from agenttool_otel.readers.sql.names import is_secret_column, names_file
from agenttool_otel.readers.sql.tables import sql_table
from agenttool_otel.readers.sql.text import Unproven
from agenttool_otel.readers.types import SqlFact

_MAX_STATEMENTS: Final = 50
_MAX_TABLES: Final = 200
_MAX_NAME: Final = 256
_MAX_REREAD: Final = 4096
"""Characters; a longer text is read in the common dialect alone."""

_HINT: Final = re.compile(r"(?<!\w)(\w+)\s*\(")
_QUERIES: Final = (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)
_DEFINITIONS: Final = (exp.Create, exp.Drop, exp.Alter, exp.TruncateTable, exp.Into)
_WRITES: Final = (
    exp.Insert,
    exp.Update,
    exp.Delete,
    exp.Merge,
    exp.Create,
    exp.Drop,
    exp.Alter,
    exp.Into,
    exp.Copy,
    exp.TruncateTable,
    exp.Comment,
    exp.LoadData,
    exp.Cache,
    exp.Uncache,
    exp.Refresh,
)

_parsing: ContextVar[bool] = ContextVar("agenttool_sql_parsing", default=False)


class _Quiet(logging.Filter):
    """Drops what sqlglot logs while this module parses: its warnings hold parts of the query."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not _parsing.get()


logging.getLogger("sqlglot").addFilter(_Quiet())


def is_dialect(name: str) -> bool:
    """Return whether sqlglot has a dialect of this name."""
    return sqlglot.Dialect.get(name) is not None


@contextmanager
def _quiet() -> Iterator[None]:
    token = _parsing.set(True)
    try:
        yield
    finally:
        _parsing.reset(token)


def fill_fact(fact: SqlFact, query: str, dialect: str) -> None:
    """Judge a text as the common dialect reads it; where that does not, as each does that can."""
    with _quiet():
        _fill_fact(fact, query, dialect)


def _fill_fact(fact: SqlFact, query: str, dialect: str) -> None:
    names = [dialect]
    if not dialect and len(query) <= _MAX_REREAD:
        names += sorted(sql_table()["dialects"])
    readings: list[SqlFact] = []
    for name in names:
        trees = _parse(query, name)
        if trees is None:
            continue
        reading: SqlFact = {**fact, "statements": []}
        _judge(reading, trees)
        readings.append(reading)
        if not name:
            break
    if not readings:
        raise Unproven("syntax")
    # of several readings, one that is not proven counts
    fact.update(min(readings, key=lambda reading: reading["read_only"]))


def explains_only(query: str, dialect: str) -> bool:
    """Return whether a statement does nothing where it is explained and not run."""
    with _quiet():
        (tree,) = _parsed(query, dialect)
    if not isinstance(tree, (exp.Insert, exp.Update, exp.Delete)):
        return False
    for node in islice(tree.walk(), 1, None):
        if not isinstance(node, exp.Schema) and not _is_harmless(node):
            return False
    return True


def _parsed(query: str, dialect: str) -> list[exp.Expr]:
    """Return the trees of a text, without those of comments."""
    found = sqlglot.parse(query, read=dialect or None, error_level=ErrorLevel.RAISE)
    # a comment behind the last statement is a tree of its own
    return [tree for tree in found if tree is not None and not isinstance(tree, exp.Semicolon)]


def _parse(query: str, dialect: str) -> list[exp.Expr] | None:
    """Return the statements of a text, ``None`` where a dialect can't read it."""
    try:
        trees = _parsed(query, dialect)
    except SqlglotError:
        return None
    if not trees:
        raise Unproven("empty")
    if len(trees) > _MAX_STATEMENTS:
        raise Unproven("too_many_statements")
    return trees


def _judge(fact: SqlFact, trees: list[exp.Expr]) -> None:
    fact["parsed"] = True
    fact["multiple"] = len(trees) > 1
    read: dict[str, None] = {}
    written: dict[str, None] = {}
    read_only = True
    for tree in trees:
        kind = _kind(tree)
        fact["statements"].append(kind)
        if kind in sql_table()["ddl_kinds"]:
            fact["ddl"] = True
        nodes = list(tree.walk())
        targets = list(_targets(nodes))
        written.update(dict.fromkeys(_name(table) for table in targets))
        read.update(dict.fromkeys(_tables_read(nodes, targets)))
        for node in nodes:
            _note_kind(fact, node)
        read_only = read_only and _only_reads(tree, nodes)
    fact["read_only"] = read_only and fact["parsed"] and not written
    fact["tables_read"] = list(read)[:_MAX_TABLES]
    fact["tables_written"] = list(written)[:_MAX_TABLES]


def _kind(tree: exp.Expr) -> str:
    if isinstance(tree, exp.Command):
        return str(tree.this).lower()[:40]
    if isinstance(tree, (exp.Query, exp.Subquery)):
        return "select"
    if isinstance(tree, exp.TruncateTable):
        return "truncate"
    return str(tree.key).lower()[:40]


def _note_kind(fact: SqlFact, node: exp.Expr) -> None:
    """Note what a part of a statement is, wherever it stands."""
    if isinstance(node, exp.Command):
        fact["parsed"] = False
        fact["unparsed"] = "command"
    if isinstance(node, (exp.Update, exp.Delete)) and not _is_limited(node):
        fact["unbounded_write"] = True
    if isinstance(node, _DEFINITIONS):
        fact["ddl"] = True


def _is_limited(write: exp.Update | exp.Delete) -> bool:
    """Return whether a condition on some column limits a write; ``or 1 = 1`` does not."""
    where = write.args.get("where")
    if where is None:
        return False
    conditions: list[exp.Expr] = [where.this]
    for condition in conditions:
        if isinstance(condition, exp.Paren):
            conditions.append(condition.this)
        elif isinstance(condition, exp.Or):
            conditions.append(condition.this)
            conditions.append(condition.expression)
        elif condition.find(exp.Column) is None:
            return False
    return True


def _only_reads(tree: exp.Expr, nodes: list[exp.Expr]) -> bool:
    """Return whether a statement is a query, or describes one or a table, of known parts only."""
    if isinstance(tree, exp.Describe):
        described = tree.this
        if not isinstance(described, (exp.Table, exp.Query)):
            return False
        return all(_is_harmless(node) for node in described.walk())
    if not isinstance(tree, _QUERIES):
        return False
    return all(map(_is_harmless, nodes))


def _is_harmless(node: exp.Expr) -> bool:
    """Return whether one part of a query is known, and does nothing but read or compute."""
    if isinstance(node, exp.CTE) and names_itself(node):
        return False
    if isinstance(node, exp.Func) and not is_small(node):
        return False
    for kind, check in _CHECKS:
        if isinstance(node, kind):
            return check(node)
    return _is_known(node)


def _is_known(node: exp.Expr) -> bool:
    name = type(node).__name__
    return name in sql_table()["parts"] or name in sql_table()["functions"]


def _check_identifier(node: exp.Identifier) -> bool:
    # "SELECT 1 SHUTDOWN" is one statement with an alias, or two in T-SQL
    if not isinstance(node.parent, (exp.Alias, exp.TableAlias)) or node.args.get("quoted"):
        return True
    return node.name.lower() not in sql_table()["statement_words"]


def _check_assignment(node: exp.PropertyEQ) -> bool:
    # outside of a structure it assigns: SELECT @a := 1
    return isinstance(node.parent, exp.Struct) and isinstance(node.this, exp.Identifier)


def _check_table_hint(node: exp.WithTableHint) -> bool:
    return all(hint.name.lower() in sql_table()["hints"] for hint in node.expressions)


def _check_unknown_function(node: exp.Anonymous | exp.AnonymousAggFunc) -> bool:
    if isinstance(node.parent, exp.Hint):
        return True  # the hint has a check of its own
    return isinstance(node.this, str) and node.this.lower() in sql_table()["names"]


def _check_hint(node: exp.Hint) -> bool:
    return sql_table()["plan_hints"].issuperset(_HINT.findall(str(node).lower()))


def _check_json(node: exp.Expr) -> bool:
    keys = re.findall(r"\w+", str(node.expression))
    return not any(map(is_secret_column, keys)) and _is_known(node)


def _check_column(node: exp.Column) -> bool:
    if is_secret_column(node.name):
        # whether there is one, or how many, is no secret
        return isinstance(node.parent, exp.Count) or _is_null_test(node.parent)
    # Oracle and Snowflake move a sequence by order_seq.nextval
    return not (node.table and node.name.lower() == "nextval")


def _is_null_test(node: exp.Expr | None) -> bool:
    return isinstance(node, exp.Is) and isinstance(node.expression, exp.Null)


def _check_dot(node: exp.Dot) -> bool:
    # a function of some schema: anybody may have defined it
    return not isinstance(node.expression, exp.Func)


def _check_table(node: exp.Table) -> bool:
    if not isinstance(node.this, exp.Identifier):
        return isinstance(node.this, exp.Func)
    alias = node.args.get("alias")
    if alias is not None and alias.this is None:
        # columns without a name before them are a function's arguments: file('/etc/passwd')
        return False
    name = _name(node)
    if names_file(name):
        return False
    parts = name.lower().split(".")
    names = {parts[-1], ".".join(parts[-2:])}
    return names.isdisjoint(sql_table()["credentials"] | sql_table()["endless"])


_CHECKS: Final[tuple[tuple[Any, Callable[[Any], bool]], ...]] = (
    (exp.Identifier, _check_identifier),
    (exp.PropertyEQ, _check_assignment),
    (exp.WithTableHint, _check_table_hint),
    ((exp.Anonymous, exp.AnonymousAggFunc), _check_unknown_function),
    (exp.Hint, _check_hint),
    (
        (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar),
        _check_json,
    ),
    (exp.Column, _check_column),
    (exp.Dot, _check_dot),
    (exp.Table, _check_table),
)
"""What has to be true of a part beside its kind being known."""


def _name(table: exp.Table) -> str:
    return ".".join(part.name for part in table.parts if part.name)[:_MAX_NAME]


def _targets(nodes: list[exp.Expr]) -> Iterator[exp.Table]:
    """Return the tables that a statement of these parts changes."""
    for node in nodes:
        if not isinstance(node, _WRITES):
            continue
        for head in _heads(node):
            table = head if isinstance(head, exp.Table) else head.find(exp.Table)
            if table is not None:
                yield table


def _heads(write: exp.Expr) -> Iterator[exp.Expression]:
    """Return the parts of a statement that name what it changes: of INSERT not its query."""
    heads = [write.this, *(write.args.get("tables") or ())]
    if isinstance(write, (exp.TruncateTable, exp.Drop)):
        heads += write.expressions
    for head in heads:
        if isinstance(head, exp.Expression) and not isinstance(head, exp.Query):
            yield head


def _tables_read(nodes: list[exp.Expr], targets: list[exp.Table]) -> Iterator[str]:
    common = {node.alias for node in nodes if isinstance(node, exp.CTE)}
    changed = {id(table) for table in targets}
    for table in nodes:
        if not isinstance(table, exp.Table):
            continue
        name = _name(table)
        if name and name not in common and id(table) not in changed:
            yield name
