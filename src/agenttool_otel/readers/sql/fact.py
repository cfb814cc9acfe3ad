"""What an SQL query means: facts that never guess.

The grammar is sqlglot's, imported on first use. Two things can make a parser and a database read
different text: where strings and comments end differs between databases, and parsers keep what they
do not understand. So ``read_only`` needs a text whose strings and comments end at the same place
for everybody (or a stated dialect), and a tree that is made of known parts only
(``data/sql.toml``): a whitelist, for databases grow functions with side effects faster than lists.
"""

from __future__ import annotations

import logging
import re
from contextvars import ContextVar
from functools import cache
from itertools import accumulate, islice
from typing import Any

from agenttool_otel.readers.sql.bounds import climb_ends, is_small, sql_table, table_ends
from agenttool_otel.readers.types import SqlFact, unestablished
from agenttool_otel.values.tables import load_table

MAX_LENGTH = 16384
"""Characters; a longer text is not parsed."""

_MAX_DEPTH = 12
_MAX_REREAD = 4096
_MAX_STATEMENTS = 50
_MAX_TABLES = 200
# MySQL and MariaDB run the text of these comments; a quote behind a backslash ends a string for
# some databases only.
_COMMENT = re.compile(r"--|/\*|#")
_FIRST_WORD = re.compile(r"(?:^|;)[\s(]*([A-Za-z]{2,30})")
_DDL_WORD = re.compile(r"(?i)\b(?:create|alter|drop|truncate|grant|revoke|rename|reindex|vacuum)\b")
_EXPLAIN = re.compile(
    r"(?i)\s*explain\s+(?:(?:query\s+plan|analyze|verbose|extended|formatted|format\s*=\s*\w+)\s+|\([\w\s,]*\)\s*)*"
)
_PRAGMA = re.compile(
    r"(?i)\s*pragma\s+(?:\w+\s*\.\s*)?(\w+)\s*(?:\(\s*['\"]?[\w.]+['\"]?\s*\)\s*)?;?\s*\Z"
)
_FILE_ENDING = r"\.(?:csv|tsv|parquet|jsonl?|ndjson|xlsx|txt|db|gz|zst)"
_SHOW = re.compile(
    rf"(?is)\s*(?=(show|summarize)\s)(?!.*(?:{_FILE_ENDING}\b|\b(?:into|drop|delete|update|insert|truncate|alter|merge|exec\w*|"
    r"shutdown|kill|set)\b))(?:show\s+[\w\s.%*'`\"<>=!]*|summarize\s+\w+);?\s*\Z"
)
_HINT = re.compile(r"(?<!\w)(\w+)\s*\(")
_SECRET_COLUMN = re.compile(
    r"(?!(?:has|is|needs|requires?|must|uses?|force|allows?|no|num|can|should|reset|change|show|enables?|supports?)_)"
    r"\w+_(?:secret|passw(?:or)?d|(?:private|api)_key|(?:access|refresh)_token)|\w+password_?hash"
)
_FILE_TABLE = re.compile(rf"(?i)[/\\:@?]|\*(?!\Z)|(?<!\w)\*|{_FILE_ENDING}\*?\Z")
# A name or a list in brackets, and a name in backticks, that hold nothing that could end elsewhere
# for some database.
_PLAIN_BRACKET = re.compile(
    r"\[(?:(?i:(?:safe_)?(?:offset|ordinal))\(\w{1,20}\)|(?:[\w\s.,:+()]|'(?:[\w :./]|-(?!-))*')*)\]"
)
_PLAIN_BACKTICKS = re.compile(r"`(?:[\w .]|-(?!-)|\*(?=`))*`")
_Q_QUOTE = re.compile(r"(?:\A|[^A-Za-z0-9_])[nN]?[qQ]\Z")
_DOLLAR_QUOTE = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*)?\$")

_logger = logging.getLogger("agenttool_otel.readers.sql")
_parsing: ContextVar[bool] = ContextVar("agenttool_sql_parsing", default=False)


class _Quiet(logging.Filter):
    """Drops what sqlglot logs while this module parses: its warnings hold parts of the query."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not _parsing.get()


class _Unproven(Exception):
    """The text could not be read in one way only; the message is the construct."""


@cache
def _glot() -> Any:
    import sqlglot

    logging.getLogger("sqlglot").addFilter(_Quiet())
    return sqlglot


@cache
def _warn_of_missing_parser() -> None:
    """Name the extra, once in a process: without it each SQL argument is a question."""
    _logger.warning(
        "SQL arguments are not read, so that each of them is asked about: "
        "sqlglot is missing, install agenttool-otel[sql]"
    )


@cache
def _refused() -> dict[str, re.Pattern[str]]:
    table = load_table(__package__, "data/sql.toml")
    return {name: re.compile(pattern) for name, pattern in table["refused"].items()}


def sql_fact(query: object, *, argument: str, dialect: str = "", inferred: bool = False) -> SqlFact:
    """Says what an SQL text means. Pure, never raises, bounded work on any input."""
    fact: SqlFact = unestablished(
        "sql", argument, inferred=inferred, dialect=dialect if isinstance(dialect, str) else ""
    )
    if not isinstance(query, str):
        fact["unparsed"] = "not_text"
        return fact
    token = _parsing.set(True)
    try:
        _fill(fact, query, fact["dialect"].lower())
    except _Unproven as unproven:
        _unparsed(fact, query, str(unproven))
    except ModuleNotFoundError:
        _warn_of_missing_parser()
        _unparsed(fact, query, "parser_not_installed")
    except Exception as error:
        # a parser's bug must read as "not proven", never as an error in a tool call
        _unparsed(fact, query, "too_deep" if isinstance(error, RecursionError) else "syntax")
    finally:
        _parsing.reset(token)
    return fact


def _unparsed(fact: SqlFact, query: str, construct: str) -> None:
    """The facts of text that is not understood: what its words show, for warnings only."""
    head = query[:MAX_LENGTH]
    fact["parsed"] = fact["read_only"] = False
    fact["unparsed"] = construct
    fact["statements"] = [word.lower() for word in _FIRST_WORD.findall(head)[:_MAX_STATEMENTS]]
    fact["multiple"] = ";" in head.rstrip().rstrip(";")
    fact["ddl"] = _DDL_WORD.search(head) is not None
    fact["comments"] = _COMMENT.search(head) is not None


def _fill(fact: SqlFact, query: str, dialect: str) -> None:
    if not query.strip() or len(query) > MAX_LENGTH:
        raise _Unproven("too_long" if query.strip() else "empty")
    if construct := next(
        (name for name, pattern in _refused().items() if pattern.search(query)), ""
    ):
        raise _Unproven(construct)
    plain, fact["comments"] = _scan(query, dialect)
    glot = _glot()
    if dialect and glot.Dialect.get(dialect) is None:
        raise _Unproven("unknown_dialect")
    if (
        _depth(plain) > _MAX_DEPTH
        or plain.lower().count("case") > 64
        or plain.lower().count("select") > 100
    ):
        raise _Unproven("too_deep")
    explain = _EXPLAIN.match(query)
    if explain and explain.end() < len(query):
        _fill_explained(fact, query[explain.end() :], dialect, "analy" in explain[0].lower())
        return
    pragma = _PRAGMA.match(query)
    if pragma and dialect in ("", "sqlite", "duckdb"):
        fact["parsed"], fact["statements"] = True, ["pragma"]
        fact["read_only"] = (
            pragma[1].lower() in sql_table()["pragmas"] and pragma[1].lower() != "writable_schema"
        )
        return
    if shown := _SHOW.match(query):
        fact["parsed"], fact["statements"], fact["read_only"] = True, [shown[1].lower()], True
        return
    _read(fact, query, dialect, glot)


def _read(fact: SqlFact, query: str, dialect: str, glot: Any) -> None:
    """Judges the text as the common dialect reads it; where that does not, as each does that can
    read it.
    """
    readings: list[SqlFact] = []
    for name in (
        (dialect,)
        if dialect or len(query) > _MAX_REREAD
        else ("", *sorted(sql_table()["dialects"]))
    ):
        try:
            found = glot.parse(query, read=name or None, error_level=glot.ErrorLevel.RAISE)
        except glot.errors.SqlglotError:
            continue
        # a comment behind the last is a tree of its own
        trees = [tree for tree in found if tree and not isinstance(tree, glot.exp.Semicolon)]
        if not trees:
            raise _Unproven("empty")
        if len(trees) > _MAX_STATEMENTS:
            raise _Unproven("too_many_statements")
        readings.append({**fact, "statements": []})
        _judge(readings[-1], trees, glot.exp)
        if not name:
            break
    if not readings:
        raise _Unproven("syntax")
    fact.update(min(readings, key=lambda reading: reading["read_only"]))


def _fill_explained(fact: SqlFact, rest: str, dialect: str, runs: bool) -> None:
    """EXPLAIN may run its statement (ANALYZE), and is as read-only as that is then."""
    if _EXPLAIN.match(rest):
        raise _Unproven("syntax")
    comments = fact["comments"]
    _fill(fact, rest, dialect)
    fact["comments"] |= comments
    fact["statements"].insert(0, "explain")
    if fact["parsed"] and not (fact["read_only"] or fact["multiple"] or runs):
        exp, tree = _glot().exp, _glot().parse_one(rest, read=dialect or None)
        nodes = [node for node in islice(tree.walk(), 1, None) if not isinstance(node, exp.Schema)]
        if isinstance(tree, (exp.Insert, exp.Update, exp.Delete)) and all(
            _harmless(node, exp) for node in nodes
        ):
            fact["read_only"], fact["unbounded_write"] = True, False
            fact["tables_read"], fact["tables_written"] = (
                fact["tables_read"] + fact["tables_written"],
                [],
            )


def _scan(query: str, dialect: str) -> tuple[str, bool]:
    """Returns the text without what stands in quotes and comments, and whether there are
    comments.
    """
    out: list[str] = []
    comments = False
    pos, size = 0, len(query)
    mysql = dialect in ("", "mysql", "mariadb", "doris", "starrocks", "singlestore", "tidb")
    while pos < size:
        char = query[pos]
        two = query[pos : pos + 2]
        known = (
            None
            if dialect
            else _PLAIN_BRACKET.match(query, pos) or _PLAIN_BACKTICKS.match(query, pos)
        )
        if known:
            pos = known.end()
            out.append(known[0] if known[0][0] == "[" else "''")  # its depth counts
        elif char in "'\"`":
            if char == "`" and dialect in (
                "",
                "postgres",
                "oracle",
                "tsql",
                "snowflake",
                "redshift",
            ):
                raise _Unproven("ambiguous_quote")
            if char == "'" and _Q_QUOTE.search(query[max(0, pos - 3) : pos]):
                raise _Unproven("ambiguous_quote")  # Oracle's q'[ ]' ends elsewhere
            if not dialect and query.startswith(char * 3, pos):
                # three quotes open a string of their own in BigQuery
                raise _Unproven("ambiguous_quote")
            end = query.find(char, pos + 1)
            if end < 0:
                raise _Unproven("syntax")
            pos = end + 1
            out.append("''")
        elif two == "--":
            if mysql and query[pos + 2 : pos + 3] not in ("", " ", "\t", "\n", "\r"):
                raise _Unproven("ambiguous_comment")
            end = query.find("\n", pos)
            pos = size if end < 0 else end
            comments = True
            out.append(" ")
        elif two == "/*":
            end = query.find("*/", pos + 2)
            if end < 0 or "/*" in query[pos + 2 : end]:
                raise _Unproven("ambiguous_comment")
            pos = end + 2
            comments = True
            out.append(" ")
        elif char == "#" and mysql and (dialect or two != "#>" or "\n" in query[pos:]):
            if not dialect:
                raise _Unproven("ambiguous_comment")
            end = query.find("\n", pos)
            pos = size if end < 0 else end
            comments = True
        elif char == "$" and _DOLLAR_QUOTE.match(query, pos):
            raise _Unproven("dollar_quote")
        elif not dialect and char in "[]{}\\":
            raise _Unproven("ambiguous_quote")
        elif char in "{}\\":
            raise _Unproven("template" if char != "\\" else "backslash")
        else:
            out.append(char)
            pos += 1
    return "".join(out), comments


def _depth(plain: str) -> int:
    brackets = (char in "([" or -1 for char in plain if char in "([])")
    return max(accumulate(brackets), default=0)


def _judge(fact: SqlFact, trees: list[Any], exp: Any) -> None:
    fact["parsed"] = True
    fact["multiple"] = len(trees) > 1
    read: dict[str, None] = {}
    written: dict[str, None] = {}
    read_only = True
    for tree in trees:
        kind = _kind(tree, exp)
        fact["statements"].append(kind)
        fact["ddl"] = fact["ddl"] or kind in sql_table()["ddl_kinds"]
        _tables(tree, exp, read, written)
        nodes = list(tree.walk())
        for node in nodes:
            if isinstance(node, exp.Command):
                fact["parsed"], fact["unparsed"] = False, "command"
            if isinstance(node, (exp.Update, exp.Delete)) and not _bounded(node, exp):
                fact["unbounded_write"] = True
            if isinstance(node, (exp.Create, exp.Drop, exp.Alter, exp.TruncateTable, exp.Into)):
                fact["ddl"] = True
        if isinstance(tree, exp.Describe):
            target = tree.this
            nodes = list(target.walk()) if isinstance(target, exp.Expression) else []
            read_only = read_only and bool(nodes) and isinstance(target, (exp.Table, exp.Query))
        elif not isinstance(tree, (exp.Select, exp.SetOperation, exp.Subquery, exp.Values)):
            read_only = False
        read_only = read_only and all(_harmless(node, exp) for node in nodes)
    fact["read_only"] = read_only and fact["parsed"] and not written
    fact["tables_read"] = list(read)[:_MAX_TABLES]
    fact["tables_written"] = list(written)[:_MAX_TABLES]


def _kind(tree: Any, exp: Any) -> str:
    if isinstance(tree, exp.Command):
        return str(tree.this).lower()[:40]
    if isinstance(tree, (exp.Query, exp.Subquery)):
        return "select"
    return "truncate" if isinstance(tree, exp.TruncateTable) else str(tree.key).lower()[:40]


def _harmless(node: Any, exp: Any) -> bool:
    table = sql_table()
    name = type(node).__name__
    alias = isinstance(node, exp.Identifier) and isinstance(
        node.parent, (exp.Alias, exp.TableAlias)
    )
    if alias and not node.args.get("quoted") and node.name.lower() in table["statement_words"]:
        return False  # "SELECT 1 SHUTDOWN" is one statement with an alias, or two in T-SQL
    if isinstance(node, exp.PropertyEQ):  # outside of a structure it assigns: SELECT @a := 1
        return isinstance(node.parent, exp.Struct) and isinstance(node.this, exp.Identifier)
    if isinstance(node, exp.WithTableHint):
        return all(hint.name.lower() in table["hints"] for hint in node.expressions)
    if isinstance(node, (exp.CTE, exp.Func)) and not (
        table_ends if isinstance(node, exp.CTE) else is_small
    )(node, exp):
        return False
    if isinstance(node, exp.Connect):
        return climb_ends(node, exp)
    if isinstance(node, (exp.Anonymous, exp.AnonymousAggFunc)):
        hint = isinstance(node.parent, exp.Hint)
        return hint or (isinstance(node.this, str) and node.this.lower() in table["names"])
    if isinstance(node, exp.Hint):
        return table["plan_hints"].issuperset(_HINT.findall(str(node).lower()))
    if isinstance(node, exp.WithFill):
        step = node.args.get("step")  # as many rows as the data has whole steps
        return not (
            node.args.get("from_")
            or node.args.get("to")
            or (isinstance(step, exp.Literal) and not step.is_int)
        )
    if isinstance(
        node, (exp.JSONExtract, exp.JSONExtractScalar, exp.JSONBExtract, exp.JSONBExtractScalar)
    ):
        return (
            not any(map(_is_secret, re.findall(r"\w+", str(node.expression))))
            and name in table["functions"]
        )
    if isinstance(node, exp.Column) and _is_secret(node.name):
        missing = isinstance(node.parent, exp.Is) and isinstance(node.parent.expression, exp.Null)
        # whether there is one, or how many, is no secret
        return missing or isinstance(node.parent, exp.Count)
    if isinstance(node, exp.Column) and node.table and node.name.lower() == "nextval":
        return False  # Oracle and Snowflake move a sequence by it
    if isinstance(node, exp.Dot) and isinstance(node.expression, exp.Func):
        return False  # a function of some schema: anybody may have defined it
    if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
        if (given := node.args.get("alias")) is not None and given.this is None:
            # columns without a name before them are the arguments of a function:
            # file('/etc/passwd')
            return False
        # several databases read files and URLs by such names
        return _FILE_TABLE.search(_name(node)) is None and _last_names(node).isdisjoint(
            table["credentials"] | table["endless"]
        )
    if isinstance(node, exp.Table) and not isinstance(node.this, exp.Func):
        return False
    return name in table["parts"] or name in table["functions"]


def _is_secret(column: str) -> bool:
    return (
        column.lower() in sql_table()["secret_columns"]
        or _SECRET_COLUMN.fullmatch(column.lower()) is not None
    )


def _bounded(node: Any, exp: Any) -> bool:
    """Whether a condition on some column limits the write; ``OR`` with a constant does not."""
    where = node.args.get("where")
    alternatives = [where.this] if where is not None else []
    for part in alternatives:
        if isinstance(part, exp.Paren):
            alternatives.append(part.this)
        elif isinstance(part, exp.Or):
            alternatives += [part.this, part.expression]
        elif part.find(exp.Column) is None:
            return False
    return bool(alternatives)


def _name(node: Any) -> str:
    return ".".join(part.name for part in node.parts if part.name)[:256]


def _last_names(node: Any) -> set[str]:
    parts = _name(node).lower().split(".")
    return {parts[-1], ".".join(parts[-2:])}


def _tables(tree: Any, exp: Any, read: dict[str, None], written: dict[str, None]) -> None:
    ctes = {cte.alias for cte in tree.find_all(exp.CTE)}
    targets: set[int] = set()
    writers: list[Any] = [
        exp.Insert,
        exp.Update,
        exp.Delete,
        exp.Merge,
        exp.Create,
        exp.Drop,
        exp.Alter,
        exp.Into,
    ]
    writers += [
        exp.Copy,
        exp.TruncateTable,
        exp.Comment,
        exp.LoadData,
        exp.Cache,
        exp.Uncache,
        exp.Refresh,
    ]
    for node in tree.find_all(*writers):
        heads = [node.this] if isinstance(node.this, exp.Expression) else []
        heads += [
            item for item in (node.args.get("tables") or []) if isinstance(item, exp.Expression)
        ]
        if isinstance(node, (exp.TruncateTable, exp.Drop)):
            heads += [item for item in node.expressions if isinstance(item, exp.Expression)]
        for head in heads:
            target = head if isinstance(head, exp.Table) else head.find(exp.Table)
            if target is not None and not isinstance(head, exp.Query):
                targets.add(id(target))
                written.setdefault(_name(target))
    for table in tree.find_all(exp.Table):
        name = _name(table)
        if id(table) in targets or not name or (name in ctes and "." not in name):
            continue
        read.setdefault(name)
