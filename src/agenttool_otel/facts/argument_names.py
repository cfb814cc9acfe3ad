"""What an argument is by its name and its schema's format."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from agenttool_otel.names import AccessKind, ArgumentRole, PathAccess, WriteEffect
from agenttool_otel.values.tables import load_table


class FactKind(StrEnum):
    """What an argument can be."""

    PATH = "path"
    """A path of a file or folder."""
    URL = "url"
    """A URL or host."""
    COMMAND = "command"
    """A command line for a shell."""
    SQL = "sql"
    """An SQL statement."""


_HUMPS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_DATABASES: Final = "postgres|postgresql|mysql|sqlite|mariadb|duckdb|snowflake|bigquery"
_SQL_WORD: Final = re.compile(rf"\b(?:SQL|{_DATABASES})\b", re.I)
_MAX_NAME: Final = 128


class _Names(NamedTuple):
    formats: dict[str, FactKind]
    names: dict[str, FactKind]
    suffixes: tuple[tuple[str, FactKind], ...]
    words: dict[str, frozenset[str]]  # the other lists, by name


@cache
def _names() -> _Names:
    data = load_table("agenttool_otel.facts", "data/argument_names.json")
    words: dict[str, frozenset[str]] = {}
    for name, entries in data.items():
        if isinstance(entries, list):
            words[name] = frozenset(entries)
    return _Names(
        formats=_by_entry(data["formats"]),
        names=_by_entry(data["names"]),
        suffixes=tuple(_by_entry(data["suffixes"]).items()),
        words=words,
    )


def _by_entry(groups: Mapping[str, list[str]]) -> dict[str, FactKind]:
    found: dict[str, FactKind] = {}
    for kind, entries in groups.items():
        for entry in entries:
            found[entry] = FactKind(kind)
    return found


@lru_cache(maxsize=4096)
def snake(name: str) -> str:
    """Return an argument's name in snake case, without trailing digits: ``sourceFile2`` as
    ``source_file``.
    """
    humps = _HUMPS.sub("_", name[:_MAX_NAME])
    text = humps.translate(_SEPARATORS).lower()
    return text.rstrip("0123456789_").lstrip("_")


_SEPARATORS: Final = str.maketrans("- .", "___")


def _last_word(name: str) -> str:
    """Return the last word of a name, which names what it is: ``id`` of ``file_id``."""
    return snake(name).split("_")[-1]


def kind_of_format(schema: Mapping[str, Any]) -> FactKind | None:
    """Return what a value is by its schema's ``format``."""
    found = schema.get("format")
    if not isinstance(found, str):
        return None
    spelling = found.lower().replace("_", "-")
    return _names().formats.get(spelling)


def is_content(schema: Mapping[str, Any]) -> bool:
    """Return whether the text of a schema is encoded content rather than a name of something."""
    if "contentEncoding" in schema:
        return True
    found = schema.get("format")
    return isinstance(found, str) and found.lower() in _names().words["content_formats"]


def kind_of_name(name: str, *, sql: bool) -> FactKind | None:
    """Return what an argument is by its name.

    Args:
        name: the argument's name.
        sql: whether the tool is about SQL, so that ``query`` is a statement and no search.
    """
    names = _names()
    folded = snake(name)
    kind = names.names.get(folded)
    if kind is not None:
        return kind
    if sql and folded in names.words["sql_with_hints"]:
        return FactKind.SQL
    for suffix, suffix_kind in names.suffixes:
        if folded.endswith(suffix):
            return suffix_kind
    return None


@lru_cache(maxsize=4096)
def names_content(name: str) -> bool:
    """Return whether an argument's name is of content, which names nothing: ``body``,
    ``new_text``.
    """
    return _last_word(name) in _names().words["content_names"]


@lru_cache(maxsize=4096)
def role_of_name(name: str) -> ArgumentRole:
    """Return what a value of this name does in a call: it is a target, unless the name is of
    content or of a bound.
    """
    word = _last_word(name)
    words = _names().words
    if names_content(name) or word in words["shown_names"]:
        return ArgumentRole.CONTENT
    if word in words["bounded_names"]:
        return ArgumentRole.BOUNDED
    return ArgumentRole.TARGET


@lru_cache(maxsize=4096)
def tier_of_name(name: str) -> int:
    """Return the tier of a value that is no target: where a call has none, the lowest tier becomes
    its target.

    A title names what is meant before a date or an amount does, and these before a text.
    """
    word = _last_word(name)
    words = _names().words
    if word in words["naming_names"]:
        return 0
    if word in words["shown_names"] or word in words["bounded_names"]:
        return 1
    return 2 if names_content(name) else 1


def is_paging(name: str, value: Any) -> bool:
    """Return whether an argument only chooses a part of an answer: a small number called ``limit``."""
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 99:
        return False
    words = _names().words
    word = _last_word(name)
    return word in words["bounded_names"] or word in words["paging_names"]


@lru_cache(maxsize=4096)
def is_single_line(name: str) -> bool:
    """Return whether an argument of this name holds a single line: a title, an address, a path, an
    id, a time.
    """
    word = _last_word(name)
    words = _names().words
    for list_name in ("line_names", "shown_names", "identity_names"):
        if word in words[list_name]:
            return True
    return kind_of_name(name, sql=False) in (FactKind.PATH, FactKind.URL)


@lru_cache(maxsize=4096)
def is_command_word(name: str) -> bool:
    """Return whether the texts of an argument are appended to a command that stands beside it."""
    return snake(name) in _names().words["command_words"]


@lru_cache(maxsize=4096)
def names_identity(name: str) -> bool:
    """Return whether a field of a record identifies by its name: ``sender``, ``file_id``."""
    word = snake(name).rstrip("_").split("_")[-1]
    return word in _names().words["identity_names"]


def identity_words() -> frozenset[str]:
    """Return the words by which names identify: ``recipient``, ``account``."""
    return _names().words["identity_names"]


def is_about_sql(schema: Mapping[str, Any]) -> bool:
    """Return whether the texts or the other arguments of a schema are about SQL."""
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        properties = {}
    texts = [schema.get("title"), schema.get("description")]
    for entry in properties.values():
        if isinstance(entry, Mapping):
            texts.append(entry.get("description"))
    for text in texts:
        if isinstance(text, str) and _SQL_WORD.search(text):
            return True
    folded = {snake(name) for name in properties if isinstance(name, str)}
    if folded & _names().words["sql_hints"]:
        return True
    return any(name == "sql" or name.endswith("_sql") for name in folded)


def path_access(
    name: str,
    *,
    write_effects: tuple[str, ...],
    access_kinds: tuple[str, ...],
    read_only: bool,
) -> PathAccess:
    """Return what a tool does with a path argument, the worst of what could be meant.

    Args:
        name: the argument's name.
        write_effects: of the declaration.
        access_kinds: of the declaration.
        read_only: whether the tool is declared to change nothing.
    """
    changes = any(effect != WriteEffect.NONE for effect in write_effects)
    writes = changes or AccessKind.FILE_WRITE in access_kinds
    reads = AccessKind.FILE_READ in access_kinds
    if not writes:
        return PathAccess.READ if read_only or reads else PathAccess.UNKNOWN
    words = set(snake(name).split("_"))
    named = _names().words
    if reads and words & named["read_names"] and not words & named["write_names"]:
        return PathAccess.READ
    return PathAccess.WRITE
