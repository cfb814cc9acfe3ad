"""The command tables that ship with the package, loaded once, on first use."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import Any, NamedTuple

from agenttool_otel.readers.shell.secret_patterns import secret_path_pattern
from agenttool_otel.values.tables import load_table, row_of


@dataclass(frozen=True, slots=True)
class OptionSyntax:
    """Which options a command has, and how their values are written."""

    short: frozenset[str] = frozenset()
    """Letters without a value."""
    value: frozenset[str] = frozenset()
    """Letters with a value, attached or as the next word."""
    optional: frozenset[str] = frozenset()
    """Letters whose value, if any, is attached."""
    long: frozenset[str] = frozenset()
    """Long options without a value."""
    long_value: dict[str, bool] = field(default_factory=dict)
    """Long options with a value, and whether it can only be attached."""
    long_pair: frozenset[str] = frozenset()
    """Long options with two values, in the next words."""
    unsafe_long: tuple[str, ...] = ()
    """Long options known to write or run something."""
    number: bool = False
    """``-5`` is an option."""
    cluster: bool = True
    """Several letters may stand behind one dash."""
    value_apart: bool = False
    """A letter's value is the next word even where more letters follow it."""


@dataclass(frozen=True, slots=True)
class Spec:
    """How one command's words may look for the command to only read.

    ``data/read_only.toml`` explains the keys.
    """

    syntax: OptionSyntax = field(default_factory=OptionSyntax)
    operands: str = "none"
    pattern_options: frozenset[str] = frozenset()
    path_options: frozenset[str] = frozenset()
    name_options: frozenset[str] = frozenset()
    suffix_options: frozenset[str] = frozenset()
    operand_pattern: re.Pattern[str] | None = None
    narrows: re.Pattern[str] | None = None
    max_operands: int | None = None
    glob_first: bool = False
    permute: bool | str = True
    splits: bool = False
    recursive: frozenset[str] = frozenset()
    response_files: bool = False
    describes: bool = False
    opens: bool = False
    pattern_optional: bool = False
    sensitive_value: re.Pattern[str] | None = None
    sensitive: bool = False
    builtin: bool = False
    program: str = ""
    lists_current: bool = False
    skips_hidden: frozenset[str] = frozenset()
    follows: frozenset[str] = frozenset()

    @property
    def takes_files(self) -> bool:
        """Whether it takes any number of files in the same way.

        No name of a file is taken for an option then.
        """
        if self.glob_first:
            return True
        return self.max_operands is None and self.operands in ("paths", "pattern")

    @property
    def always_recursive(self) -> bool:
        """Whether directories are read with all that lies below them, without any option."""
        return "always" in self.recursive


class Wrapper(NamedTuple):
    """How to find the command that another command runs."""

    value: frozenset[str] = frozenset()
    skip: int = 0
    assignments: bool = False


class Effects(NamedTuple):
    """What commands do that are not proven to only read (data/effects.toml)."""

    lists: dict[str, frozenset[str]]
    destructive_words: dict[str, tuple[str, ...]]
    wrappers: dict[str, Wrapper]
    program_variables: re.Pattern[str]
    network_words: dict[str, re.Pattern[str]]
    sensitive_words: dict[str, re.Pattern[str]]


class Sensitive(NamedTuple):
    """Which names hold credentials (data/sensitive.toml)."""

    path: re.Pattern[str]
    wide_roots: tuple[str, ...]
    ordinary: frozenset[str]
    samples: tuple[tuple[bool, tuple[str, ...]], ...]
    """Whether a name begins at the root, and its components."""
    searched: re.Pattern[str]
    fields: re.Pattern[str]
    listed: re.Pattern[str]


@cache
def read_only() -> dict[str, Spec]:
    """Return the commands that can be proven to only read, by name."""
    raw = load_table(__package__, "data/read_only.toml")
    rows: dict[str, dict[str, Any]] = {}
    for names, row in raw.items():
        for name in names.split("|"):
            rows[name] = row
    found = {}
    for name, row in rows.items():
        found[name] = spec_of(rows[row["same_as"]] if "same_as" in row else row)
    return found


@cache
def with_commands() -> frozenset[str]:
    """Return the programs whose sub-commands have rows of their own."""
    return frozenset(name.partition(" ")[0] for name in read_only() if " " in name)


def spec_of(row: dict[str, Any]) -> Spec:
    """Return the options and operands of one row."""
    attached = {}
    for name in row.get("long_value", ()):
        attached[name.rstrip("?")] = name.endswith("?")
    syntax = row_of(OptionSyntax, {**row, "long_value": attached})
    return row_of(Spec, {**row, "syntax": syntax})


@cache
def programs() -> dict[str, dict[str, frozenset[str]]]:
    """Return the words of the small languages (data/programs.toml), by language and group."""
    found = {}
    for language, groups in load_table(__package__, "data/programs.toml").items():
        found[language] = {group: frozenset(words) for group, words in groups.items()}
    return found


@cache
def effects() -> Effects:
    """Return what the other commands are known to do."""
    raw = load_table(__package__, "data/effects.toml")
    wrappers = {name: row_of(Wrapper, row) for name, row in raw["wrapper"].items()}
    lists = {}
    for name, words in {**raw, **raw["lists"]}.items():
        if isinstance(words, list):
            lists[name] = words
    lists["known"] = [*raw["network"], *raw["executes"], *raw["plain"], *read_only()]
    return row_of(Effects, {**raw, **raw["lists"], "lists": lists, "wrappers": wrappers})


@cache
def sensitive() -> Sensitive:
    """Return which names hold credentials."""
    raw = load_table(__package__, "data/sensitive.toml")
    samples = []
    for sample in raw["samples"]:
        samples.append((sample[0] == "/", tuple(sample.strip("/").split("/"))))
    patterns = {
        "path": secret_path_pattern(raw["words"]),
        "searched": _any_of(raw["searched"]),
        "fields": _any_of(raw["fields"]),
        "listed": "|".join(raw["listed"]),
    }
    return row_of(Sensitive, {**raw, **patterns, "samples": tuple(samples)})


def _any_of(patterns: Iterable[str]) -> str:
    return "(?i)" + "|".join(f"(?:{pattern})" for pattern in patterns)
