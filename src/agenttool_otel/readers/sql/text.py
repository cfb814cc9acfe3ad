"""The text of a query before it is parsed: where its strings and comments end, and what is refused.

Where strings and comments end differs between databases. A text is only parsed where they end at
the same place for every database, or for the dialect that was stated.
"""

from __future__ import annotations

import re
from typing import Final

MAX_LENGTH: Final = 16384
"""Characters; a longer text is not parsed."""

_MAX_DEPTH: Final = 12
_MAX_CASES: Final = 64
_MAX_SELECTS: Final = 100

_CONTROL: Final = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2064\ufeff]"
)
_REFUSED: Final = (
    ("control_character", _CONTROL),
    # MySQL runs the text of /*! */, and MariaDB that of /*M! */
    ("executable_comment", re.compile(r"/\*M?!")),
    # 'a\' , '; drop table x': a quote behind a backslash ends a string for some databases only
    ("escaped_quote", re.compile(r"\\+['\"`]")),
    # select not not not ...: each of them is a level of the parser's recursion
    ("too_deep", re.compile(r"(?i)(?:(?:\bnot\b|[-+~!])\s*){32}")),
)

# a[offset(1)], a[safe_ordinal(n)]: how BigQuery takes an element of an array
_BIGQUERY_INDEX: Final = r"(?i:(?:safe_)?(?:offset|ordinal))\(\w{1,20}\)"
# [Order Id], ['a', 'b']: names, numbers and strings without quotes or comments in them
_BRACKET_ITEM: Final = r"[\w\s.,:+()]|'(?:[\w :./]|-(?!-))*'"
_PLAIN_BRACKET: Final = re.compile(rf"\[(?:{_BIGQUERY_INDEX}|(?:{_BRACKET_ITEM})*)\]")
_PLAIN_BACKTICKS: Final = re.compile(r"`(?:[\w .]|-(?!-)|\*(?=`))*`")
_PLAIN_RUN: Final = re.compile(r"""[^'"`\-/#$\[\]{}\\]+""")
"""Characters that neither quote anything nor begin a comment, in any dialect."""

_Q_QUOTE: Final = re.compile(r"(?:\A|[^A-Za-z0-9_])[nN]?[qQ]\Z")
_DOLLAR_QUOTE: Final = re.compile(r"\$(?:[A-Za-z_][A-Za-z0-9_]*)?\$")

_HASH_COMMENTS: Final = frozenset(
    {"", "mysql", "mariadb", "doris", "starrocks", "singlestore", "tidb"}
)
"""In which a number sign begins a comment, and two hyphens only before a blank."""

_NO_BACKTICKS: Final = frozenset({"", "postgres", "oracle", "tsql", "snowflake", "redshift"})
"""In which a backtick quotes nothing."""


class Unproven(Exception):
    """The text could not be read in one way only; the message is the construct."""


def scan(query: str, dialect: str) -> tuple[str, bool]:
    """Return a text without what stands in quotes and comments, and whether there are comments.

    Raises:
        Unproven: where strings and comments end is not certain, or the text holds what no reading
            is certain of.
    """
    if not query.strip():
        raise Unproven("empty")
    if len(query) > MAX_LENGTH:
        raise Unproven("too_long")
    for construct, pattern in _REFUSED:
        if pattern.search(query):
            raise Unproven(construct)
    scanner = _Scanner(query, dialect)
    while scanner.position < len(query):
        scanner.step()
    return "".join(scanner.plain), scanner.comments


def check_depth(plain: str) -> None:
    """Refuse what would take the parser long, or beyond Python's limit of recursion."""
    depth = 0
    for char in plain:
        if char in "([":
            depth += 1
        elif char in ")]":
            depth -= 1
        if depth > _MAX_DEPTH:
            raise Unproven("too_deep")
    lower = plain.lower()
    if lower.count("case") > _MAX_CASES or lower.count("select") > _MAX_SELECTS:
        raise Unproven("too_deep")


class _Scanner:
    """Walks over a text, from token to token."""

    def __init__(self, query: str, dialect: str) -> None:
        self.position = 0
        self.plain: list[str] = []
        self.comments = False
        self._query = query
        self._dialect = dialect

    def step(self) -> None:
        """Read what begins at the position, and go behind it."""
        query = self._query
        if run := _PLAIN_RUN.match(query, self.position):
            self.plain.append(run[0])
            self.position = run.end()
            return
        char = query[self.position]
        if not self._dialect and self._is_plain_name():
            return
        if char in "'\"`":
            self._quoted(char)
        elif query.startswith("--", self.position):
            self._line_comment()
        elif query.startswith("/*", self.position):
            self._block_comment()
        elif char == "#" and self._is_hash_comment():
            self._hash_comment()
        elif char == "$" and _DOLLAR_QUOTE.match(query, self.position):
            raise Unproven("dollar_quote")
        else:
            self._other(char)

    def _is_plain_name(self) -> bool:
        """Take a name in brackets or backticks that nothing in it could end elsewhere."""
        if bracket := _PLAIN_BRACKET.match(self._query, self.position):
            self.plain.append(bracket[0])  # its depth counts
            self.position = bracket.end()
            return True
        if backticks := _PLAIN_BACKTICKS.match(self._query, self.position):
            self.plain.append("''")
            self.position = backticks.end()
            return True
        return False

    def _quoted(self, quote: str) -> None:
        if quote == "`" and self._dialect in _NO_BACKTICKS:
            raise Unproven("ambiguous_quote")
        before = self._query[max(0, self.position - 3) : self.position]
        if quote == "'" and _Q_QUOTE.search(before):
            raise Unproven("ambiguous_quote")  # Oracle's q'[ ]' ends elsewhere
        if not self._dialect and self._query.startswith(quote * 3, self.position):
            # three quotes open a string of their own in BigQuery
            raise Unproven("ambiguous_quote")
        end = self._query.find(quote, self.position + 1)
        if end < 0:
            raise Unproven("syntax")
        self.position = end + 1
        self.plain.append("''")

    def _line_comment(self) -> None:
        behind = self._query[self.position + 2 : self.position + 3]
        if self._dialect in _HASH_COMMENTS and behind not in ("", " ", "\t", "\n", "\r"):
            raise Unproven("ambiguous_comment")  # MySQL computes 1--1
        self._skip_line()
        self.plain.append(" ")

    def _block_comment(self) -> None:
        end = self._query.find("*/", self.position + 2)
        if end < 0 or "/*" in self._query[self.position + 2 : end]:
            raise Unproven("ambiguous_comment")  # comments nest in PostgreSQL
        self.position = end + 2
        self.comments = True
        self.plain.append(" ")

    def _is_hash_comment(self) -> bool:
        if self._dialect not in _HASH_COMMENTS:
            return False
        # PostgreSQL's data #> '{a,b}', where no line follows that a comment would not reach
        operator = self._query.startswith("#>", self.position)
        return bool(self._dialect) or not operator or "\n" in self._query[self.position :]

    def _hash_comment(self) -> None:
        if not self._dialect:
            raise Unproven("ambiguous_comment")
        self._skip_line()

    def _skip_line(self) -> None:
        end = self._query.find("\n", self.position)
        self.position = len(self._query) if end < 0 else end
        self.comments = True

    def _other(self, char: str) -> None:
        if not self._dialect and char in "[]{}\\":
            raise Unproven("ambiguous_quote")
        if char == "\\":
            raise Unproven("backslash")
        if char in "{}":
            raise Unproven("template")
        self.plain.append(char)
        self.position += 1
