"""Loads the command tables that ship with the package, once, on first use."""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass, field
from functools import cache
from importlib.resources import files
from typing import Any


@dataclass(frozen=True, slots=True)
class Spec:
    """How one command's words may look for the command to only read (data/read_only.toml explains the keys)."""

    short: frozenset[str] = frozenset()
    value: frozenset[str] = frozenset()
    optional: frozenset[str] = frozenset()
    long: frozenset[str] = frozenset()
    long_value: dict[str, bool] = field(default_factory=dict)  # name -> its value can only be attached
    unsafe_long: tuple[str, ...] = ()
    operands: str = "none"
    pattern_options: frozenset[str] = frozenset()
    path_options: frozenset[str] = frozenset()
    operand_pattern: re.Pattern[str] | None = None
    max_operands: int | None = None
    number: bool = False
    glob_first: bool = False
    permute: bool = True
    cluster: bool = True
    value_apart: bool = False
    recursive: frozenset[str] = frozenset()
    name_options: frozenset[str] = frozenset()
    suffix_options: frozenset[str] = frozenset()
    describes: bool = False
    long_pair: frozenset[str] = frozenset()
    pattern_optional: bool = False
    sensitive_value: re.Pattern[str] | None = None
    sensitive: bool = False
    builtin: bool = False
    program: str = ""
    lists_current: bool = False
    skips_hidden: frozenset[str] = frozenset()
    follows: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Wrapper:
    """How to find the command that another command runs."""

    value: frozenset[str] = frozenset()
    skip: int = 0
    assignments: bool = False


@dataclass(frozen=True, slots=True)
class Effects:
    """What commands do that are not proven to only read (data/effects.toml)."""

    destructive: frozenset[str]
    network: frozenset[str]
    executes: frozenset[str]
    known: frozenset[str]
    destructive_words: dict[str, tuple[str, ...]]
    wrappers: dict[str, Wrapper]
    shells: frozenset[str]
    foreign: frozenset[str]
    prints_environment: frozenset[str]
    sends: frozenset[str]
    fetchers: frozenset[str]
    interpreters: frozenset[str]
    powershell_verbs: frozenset[str]
    harmless_variables: frozenset[str]
    network_words: dict[str, re.Pattern[str]]
    sensitive_words: dict[str, re.Pattern[str]]


@dataclass(frozen=True, slots=True)
class Sensitive:
    """Which names hold credentials (data/sensitive.toml)."""

    path: re.Pattern[str]
    wide_roots: tuple[str, ...]
    samples: tuple[tuple[bool, tuple[str, ...]], ...]  # whether from the root, and the components
    searched: re.Pattern[str]
    fields: re.Pattern[str]
    listed: re.Pattern[str]


def load_table(name: str) -> dict[str, Any]:
    """One of the data files."""
    return tomllib.loads((files(__package__) / "data" / name).read_text(encoding="utf-8"))


@cache
def read_only() -> dict[str, Spec]:
    """The commands that can be proven to only read, by name."""
    raw = load_table("read_only.toml")
    return {name: spec_of(raw[row["same_as"]] if "same_as" in row else row) for name, row in raw.items()}


def spec_of(row: dict[str, Any]) -> Spec:
    """The options and operands of one row."""
    pattern = row.get("operand_pattern")
    return Spec(
        short=frozenset(row.get("short", "")),
        value=frozenset(row.get("value", "")),
        optional=frozenset(row.get("optional", "")),
        long=frozenset(row.get("long", ())),
        long_value={name.rstrip("?"): name.endswith("?") for name in row.get("long_value", ())},
        unsafe_long=tuple(row.get("unsafe_long", ())),
        operands=row.get("operands", "none"),
        pattern_options=frozenset(row.get("pattern_options", ())),
        path_options=frozenset(row.get("path_options", ())),
        operand_pattern=re.compile(pattern) if pattern else None,
        max_operands=row.get("max_operands"),
        number=row.get("number", False),
        glob_first=row.get("glob_first", False),
        permute=row.get("permute", True),
        cluster=row.get("cluster", True),
        value_apart=row.get("value_apart", False),
        recursive=frozenset(row.get("recursive", ())),
        name_options=frozenset(row.get("name_options", ())),
        suffix_options=frozenset(row.get("suffix_options", ())),
        describes=row.get("describes", False),
        long_pair=frozenset(row.get("long_pair", ())),
        pattern_optional=row.get("pattern_optional", False),
        sensitive_value=re.compile(row["sensitive_value"]) if "sensitive_value" in row else None,
        sensitive=row.get("sensitive", False),
        builtin=row.get("builtin", False),
        program=row.get("program", ""),
        lists_current=row.get("lists_current", False),
        skips_hidden=frozenset(row.get("skips_hidden", ())),
        follows=frozenset(row.get("follows", ())),
    )


@cache
def programs() -> dict[str, dict[str, frozenset[str]]]:
    """The words of the small languages (data/programs.toml), by language and group."""
    return {
        language: {group: frozenset(words) for group, words in groups.items()}
        for language, groups in load_table("programs.toml").items()
    }


@cache
def effects() -> Effects:
    """What the other commands are known to do."""
    raw = load_table("effects.toml")
    groups = {key: frozenset(raw[key]) for key in ("destructive", "network", "executes", "plain")}
    lists = {key: frozenset(value) for key, value in raw["lists"].items()}
    return Effects(
        destructive=groups["destructive"],
        network=groups["network"],
        executes=groups["executes"],
        known=groups["network"] | groups["executes"] | groups["plain"] | frozenset(read_only()),
        destructive_words={name: tuple(words) for name, words in raw["destructive_words"].items()},
        wrappers={
            name: Wrapper(frozenset(row.get("value", "")), row.get("skip", 0), row.get("assignments", False))
            for name, row in raw["wrapper"].items()
        },
        shells=lists["shells"],
        foreign=lists["foreign"],
        prints_environment=lists["prints_environment"],
        sends=lists["sends"],
        fetchers=lists["fetchers"],
        interpreters=lists["interpreters"],
        powershell_verbs=lists["powershell_verbs"],
        harmless_variables=lists["harmless_variables"],
        network_words={name: re.compile(pattern) for name, pattern in raw["network_words"].items()},
        sensitive_words={name: re.compile(pattern) for name, pattern in raw["sensitive_words"].items()},
    )


@cache
def sensitive() -> Sensitive:
    """Which names hold credentials."""
    raw = load_table("sensitive.toml")
    return Sensitive(
        path=re.compile("|".join(f"(?:{p})" for p in raw["patterns"]), re.IGNORECASE),
        wide_roots=tuple(raw["wide_roots"]),
        samples=tuple((sample[0] == "/", tuple(sample.strip("/").split("/"))) for sample in raw["samples"]),
        searched=re.compile("|".join(raw["searched"]), re.IGNORECASE),
        fields=re.compile("|".join(raw["fields"]), re.IGNORECASE),
        listed=re.compile("|".join(raw["listed"])),
    )
