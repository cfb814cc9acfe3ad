"""What an SQL query means: facts that never guess.

``read_only`` needs a text whose strings and comments end at the same place for every database
(``text.py``), and a tree that is made of known parts only (``statements.py``). The grammar is
sqlglot's, which is imported with the first query; it comes with the extra ``sql``.
"""

from __future__ import annotations

import logging
import re
from functools import cache
from typing import Final

from agenttool_otel.readers.sql.names import FILE_ENDING
from agenttool_otel.readers.sql.tables import sql_table
from agenttool_otel.readers.sql.text import MAX_LENGTH, Unproven, check_depth, scan
from agenttool_otel.readers.types import SqlFact, unestablished

__all__ = ["MAX_LENGTH", "sql_fact"]

_MAX_WORDS: Final = 50
_COMMENT: Final = re.compile(r"--|/\*|#")
_FIRST_WORD: Final = re.compile(r"(?:^|;)[\s(]*([A-Za-z]{2,30})")
_DDL_WORD: Final = re.compile(
    r"(?i)\b(?:create|alter|drop|truncate|grant|revoke|rename|reindex|vacuum)\b"
)

# explain query plan select ..., explain format = json select ...
_EXPLAIN_WORD: Final = r"query\s+plan|analyze|verbose|extended|formatted|format\s*=\s*\w+"
# explain (analyze, buffers) select ...
_EXPLAIN_LIST: Final = r"\([\w\s,]*\)\s*"
_EXPLAIN: Final = re.compile(rf"(?i)\s*explain\s+(?:(?:{_EXPLAIN_WORD})\s+|{_EXPLAIN_LIST})*")

# table_info(t), table_info('t')
_PRAGMA_VALUE: Final = r"(?:\(\s*['\"]?[\w.]+['\"]?\s*\)\s*)?"
_PRAGMA: Final = re.compile(rf"(?i)\s*pragma\s+(?:\w+\s*\.\s*)?(\w+)\s*{_PRAGMA_VALUE};?\s*\Z")

# show tables into outfile 'a.csv', and a second statement behind a line's end
_SHOW_MORE: Final = (
    r"\b(?:into|drop|delete|update|insert|truncate|alter|merge|exec\w*|shutdown|kill|set)\b"
)
_SHOWN: Final = r"show\s+[\w\s.%*'`\"<>=!]*|summarize\s+\w+"
_SHOW: Final = re.compile(
    rf"(?is)\s*(?=(show|summarize)\s)(?!.*(?:{FILE_ENDING}\b|{_SHOW_MORE}))(?:{_SHOWN});?\s*\Z"
)

_logger = logging.getLogger("agenttool_otel.readers.sql")


def sql_fact(
    query: object,
    argument: str = "",
    *,
    dialect: str = "",
    inferred: bool = False,
) -> SqlFact:
    """Return what an SQL text means; never raises, and takes bounded time on any value.

    Args:
        query: one statement, or several with semicolons between them.
        argument: the JSON pointer of the query, which the fact repeats.
        dialect: the database's, by the name that sqlglot has for it, such as ``postgres``. Where
            it is not given, only what all databases read alike is proven.
        inferred: whether no declaration names this text as SQL; the fact repeats it.

    Returns:
        What is uncertain is dangerous: a text that could not be read in one way has ``parsed``
        false and the construct in ``unparsed``, and its other members are what its words show.
        ``read_only`` is true only where every part of the query is known to read. A query that
        names itself (``with recursive``) or may do work without a bound is not proven.
    """
    stated = dialect if isinstance(dialect, str) else ""
    fact: SqlFact = unestablished("sql", argument, inferred=inferred, dialect=stated)
    if not isinstance(query, str):
        fact["unparsed"] = "not_text"
        return fact
    try:
        _fill(fact, query, stated.lower())
    except Unproven as unproven:
        _leave_unparsed(fact, query, str(unproven))
    except ModuleNotFoundError:
        _warn_of_missing_parser()
        _leave_unparsed(fact, query, "parser_not_installed")
    except RecursionError:
        _leave_unparsed(fact, query, "too_deep")
    except Exception:  # a parser's fault must read as "not proven", never fail a tool call
        _leave_unparsed(fact, query, "syntax")
    return fact


@cache
def _warn_of_missing_parser() -> None:
    """Name the extra, once in a process: without it each SQL argument is a question."""
    _logger.warning(
        "SQL arguments are not read, so that each of them is asked about: "
        "sqlglot is missing, install agenttool-otel[sql]"
    )


def _leave_unparsed(fact: SqlFact, query: str, construct: str) -> None:
    """Give the fact of a text that is not understood: what its words show, for warnings only."""
    head = query[:MAX_LENGTH]
    fact["parsed"] = fact["read_only"] = False
    fact["unparsed"] = construct
    fact["statements"] = [word.lower() for word in _FIRST_WORD.findall(head)[:_MAX_WORDS]]
    fact["multiple"] = ";" in head.rstrip().rstrip(";")
    fact["ddl"] = _DDL_WORD.search(head) is not None
    fact["comments"] = _COMMENT.search(head) is not None


def _fill(fact: SqlFact, query: str, dialect: str) -> None:
    plain, fact["comments"] = scan(query, dialect)
    from agenttool_otel.readers.sql.statements import fill_fact, is_dialect  # needs the extra

    if dialect and not is_dialect(dialect):
        raise Unproven("unknown_dialect")
    check_depth(plain)
    explain = _EXPLAIN.match(query)
    if explain is not None and explain.end() < len(query):
        _fill_explained(fact, query[explain.end() :], dialect, explain[0])
        return
    pragma = _PRAGMA.match(query)
    if pragma is not None and dialect in ("", "sqlite", "duckdb"):
        fact["parsed"] = True
        fact["statements"] = ["pragma"]
        fact["read_only"] = pragma[1].lower() in sql_table()["pragmas"]
        return
    # sqlglot keeps these as commands, without parsing them
    if shown := _SHOW.match(query):
        fact["parsed"] = fact["read_only"] = True
        fact["statements"] = [shown[1].lower()]
        return
    fill_fact(fact, query, dialect)


def _fill_explained(fact: SqlFact, rest: str, dialect: str, explain: str) -> None:
    """Give the fact of what EXPLAIN is about; with ANALYZE (or ANALYSE) that is run."""
    from agenttool_otel.readers.sql.statements import explains_only

    if _EXPLAIN.match(rest):
        raise Unproven("syntax")
    comments = fact["comments"]
    _fill(fact, rest, dialect)
    fact["comments"] = fact["comments"] or comments
    fact["statements"].insert(0, "explain")
    if not fact["parsed"] or fact["read_only"] or fact["multiple"] or "analy" in explain.lower():
        return
    if explains_only(rest, dialect):
        fact["read_only"] = True
        fact["unbounded_write"] = False
        fact["tables_read"] = fact["tables_read"] + fact["tables_written"]
        fact["tables_written"] = []
