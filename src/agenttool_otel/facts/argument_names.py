"""Which names and schema formats tell what an argument is."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from agenttool_otel.names import AccessKind, ArgumentRole, PathAccess, WriteEffect
from agenttool_otel.values.tables import load_table, row_of


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
_SQL_WORD: Final = re.compile(
    r"\bSQL\b|\b(?:postgres|postgresql|mysql|sqlite|mariadb|duckdb|snowflake|bigquery)\b", re.I
)
_MAX_NAME: Final = 128


class _Names(NamedTuple):
    formats: dict[str, FactKind]
    names: dict[str, FactKind]
    suffixes: tuple[tuple[str, FactKind], ...]
    words: dict[str, frozenset[str]]  # the other lists, by name


@cache
def _names() -> _Names:
    data = load_table("agenttool_otel.facts", "data/argument_names.json")
    suffixes = tuple(_by_entry(data["suffixes"]).items())
    kinds = {
        "formats": _by_entry(data["formats"]),
        "names": _by_entry(data["names"]),
        "suffixes": suffixes,
    }
    words = {name: entries for name, entries in data.items() if isinstance(entries, list)}
    return row_of(_Names, {**kinds, "words": words})


def _by_entry(groups: Mapping[str, list[str]]) -> dict[str, FactKind]:
    return {entry: FactKind(kind) for kind, entries in groups.items() for entry in entries}


@lru_cache(maxsize=4096)
def snake(name: str) -> str:
    """Return an argument's name in snake case, without trailing digits: ``sourceFile2`` as
    ``source_file``.
    """
    text = (
        _HUMPS.sub("_", name[:_MAX_NAME])
        .replace("-", "_")
        .replace(" ", "_")
        .replace(".", "_")
        .lower()
    )
    return text.rstrip("0123456789_").lstrip("_")


def kind_of_format(schema: Mapping[str, Any]) -> FactKind | None:
    """Return what a schema's ``format`` says."""
    found = schema.get("format")
    return _names().formats.get(found.lower().replace("_", "-")) if isinstance(found, str) else None


def is_content(schema: Mapping[str, Any]) -> bool:
    """Return whether a schema says that its text is encoded content rather than a name of
    something.
    """
    found = schema.get("format")
    return "contentEncoding" in schema or (
        isinstance(found, str) and found.lower() in _names().words["content_formats"]
    )


def kind_of_name(name: str, *, sql: bool) -> FactKind | None:
    """Return what an argument's name says."""
    names = _names()
    folded = snake(name)
    if (kind := names.names.get(folded)) is not None:
        return kind
    if sql and folded in names.words["sql_with_hints"]:
        return FactKind.SQL
    return next((kind for suffix, kind in names.suffixes if folded.endswith(suffix)), None)


@lru_cache(maxsize=4096)
def names_content(name: str) -> bool:
    """Return whether an argument's name says that its text is content and names nothing: ``body``,
    ``new_text``.
    """
    words = snake(name).split("_")
    return words[-1] in _names().words["content_names"]


@lru_cache(maxsize=4096)
def role_of_name(name: str) -> ArgumentRole:
    """Return what a value of this name does in a call: it decides what is reached, unless its name
    is known not to.
    """
    word = snake(name).split("_")[-1]
    if names_content(name) or word in _names().words["shown_names"]:
        return ArgumentRole.CONTENT
    return ArgumentRole.BOUNDED if word in _names().words["bounded_names"] else ArgumentRole.TARGET


@lru_cache(maxsize=4096)
def tier_of_name(name: str) -> int:
    """Return when a value that is no target becomes one, for lack of any: the lowest of a call's
    tiers does.

    A title names what is meant before a date or an amount does, and these before a text.
    """
    word = snake(name).split("_")[-1]
    words = _names().words
    if word in words["naming_names"]:
        return 0
    return (
        1
        if word in words["shown_names"] or word in words["bounded_names"] or not names_content(name)
        else 2
    )


def is_paging(name: str, value: Any) -> bool:
    """Return whether an argument only says which part of an answer is wanted: a small number called
    ``limit``.
    """
    if isinstance(value, bool) or not isinstance(value, int) or abs(value) > 99:
        return False
    words = _names().words
    word = snake(name).split("_")[-1]
    return word in words["bounded_names"] or word in words["paging_names"]


@lru_cache(maxsize=4096)
def is_one_line(name: str) -> bool:
    """Return whether an argument's name says that its text is one line: a title, an address, a
    path, an id, a time.
    """
    folded = snake(name)
    words = _names().words
    lists = ("line_names", "shown_names", "identity_names")
    if any(folded.split("_")[-1] in words[list_name] for list_name in lists):
        return True
    return kind_of_name(name, sql=False) in (FactKind.PATH, FactKind.URL)


@lru_cache(maxsize=4096)
def is_command_word(name: str) -> bool:
    """Return whether the texts of an argument are appended to a command that stands beside it."""
    return snake(name) in _names().words["command_words"]


@lru_cache(maxsize=4096)
def names_identity(name: str) -> bool:
    """Return whether a field of a record says by its name that it identifies: ``sender``,
    ``file_id``.
    """
    return snake(name).rstrip("_").split("_")[-1] in _names().words["identity_names"]


def speaks_of_sql(schema: Mapping[str, Any]) -> bool:
    """Return whether the texts or the other arguments of a schema say that SQL is about."""
    properties = schema.get("properties")
    properties = properties if isinstance(properties, Mapping) else {}
    texts = [schema.get("title"), schema.get("description")]
    texts += [
        entry.get("description") for entry in properties.values() if isinstance(entry, Mapping)
    ]
    if any(_SQL_WORD.search(text) for text in texts if isinstance(text, str)):
        return True
    folded = {snake(name) for name in properties if isinstance(name, str)}
    return bool(folded & _names().words["sql_hints"]) or any(
        name == "sql" or name.endswith("_sql") for name in folded
    )


def path_access(
    name: str, *, write_effects: tuple[str, ...], access_kinds: tuple[str, ...], read_only: bool
) -> PathAccess:
    """Return what a tool does with a path argument, the worse of what could be meant."""
    writes = AccessKind.FILE_WRITE in access_kinds or any(
        effect != WriteEffect.NONE for effect in write_effects
    )
    reads = AccessKind.FILE_READ in access_kinds
    if not writes:
        return PathAccess.READ if read_only or reads else PathAccess.UNKNOWN
    words = set(snake(name).split("_"))
    names = _names()
    if reads and words & names.words["read_names"] and not words & names.words["write_names"]:
        return PathAccess.READ
    return PathAccess.WRITE
