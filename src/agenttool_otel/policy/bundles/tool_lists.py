"""Settings that name tools, compared with the tools that there are: a slip in a list that restricts
would go unnoticed.

Which members name tools stands in ``settings.schema.json``: ``#/$defs/tool`` where any name of a
tool counts, ``#/$defs/exact_tool`` where only its id and ``namespace.name`` do.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

from agenttool_otel.context.validate import did_you_mean
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.bundles.settings_schema import (
    EXACT_TOOL,
    TOOL,
    member_place,
    settings_schema,
)

_logger = logging.getLogger("agenttool_otel.policy")
_PLACE: Final = "data.agenttool.settings"
_CHOICE: Final = re.compile(r"\{([^{}]*)\}")
_MAX_CHOICES: Final = 64


class ToolNames(NamedTuple):
    """What one tool is called."""

    exact: tuple[str, ...]  # its id and its full name
    others: tuple[str, ...]  # its short name and its aliases


_Part = tuple[Any, Mapping[str, Any], str]
"""A part of the settings, its schema, and where it stands."""


class _Entry(NamedTuple):
    """One glob of tools in the settings."""

    place: str  # where it stands
    glob: str  # the glob
    exact: bool  # whether short names and aliases don't count


class ToolLists:
    """Warns once of each entry that fits no tool, when the tools are known; and of each sandbox
    that is believed.

    Args:
        bundle: the policy with its settings.
        more: globs beside the settings, by where they stand.
    """

    def __init__(self, bundle: Bundle | None, more: Mapping[str, Iterable[str]]) -> None:
        self._entries: list[_Entry] = []
        self._warned: set[str] = set()
        for place, globs in more.items():
            for glob in globs:
                # "!fs.delete" takes fs.delete out again
                tool = glob.removeprefix("!")
                self._entries.append(_Entry(place, tool, exact=True))
        settings = _settings_of(bundle)
        if settings is None:
            return
        self._entries += _entries(settings, settings_schema(()))

    def warn_of_entries(self, tools: Iterable[ToolNames]) -> None:
        """Warn of each entry that fits none of the tools which are known by now."""
        if not self._entries:
            return
        known = list(tools)
        names: set[str] = set()
        for tool in known:
            names.update(tool.exact)
            names.update(tool.others)
        for entry in self._entries:
            if entry.place in self._warned or any(_fits(entry, tool) for tool in known):
                continue
            self._warned.add(entry.place)
            what = "id or namespace.name" if entry.exact else "name"
            _logger.warning(
                "%s: %r fits the %s of no tool that is known so far%s",
                entry.place,
                entry.glob,
                what,
                did_you_mean(entry.glob, names),
            )


def fits_a_tool(glob: str, tools: Iterable[ToolNames]) -> bool:
    """Return whether a glob fits any name of some tool."""
    entry = _Entry("", glob, exact=False)
    return any(_fits(entry, tool) for tool in tools)


def unfitting_entries(bundle: Bundle, tools: Iterable[ToolNames]) -> Iterator[str]:
    """Yield the entries of settings that fit no tool, one sentence each.

    Args:
        bundle: the policy with its settings.
        tools: all tools.
    """
    settings = _settings_of(bundle)
    if settings is None:
        return
    known = list(tools)
    names: set[str] = set()
    for tool in known:
        names.update(tool.exact, tool.others)
    for entry in _entries(settings, settings_schema(())):
        if not any(_fits(entry, tool) for tool in known):
            yield f"{entry.place}: {entry.glob!r} fits no tool{did_you_mean(entry.glob, names)}"


def _settings_of(bundle: Bundle | None) -> Mapping[str, Any] | None:
    if bundle is None:
        return None
    ours = bundle.data.get("agenttool")
    settings = ours.get("settings") if isinstance(ours, Mapping) else None
    return settings if isinstance(settings, Mapping) else None


def _entries(settings: Any, schema: Mapping[str, Any]) -> Iterator[_Entry]:
    definitions = schema["$defs"]
    waiting: list[_Part] = [(settings, schema, _PLACE)]
    while waiting:
        value, node, place = waiting.pop()
        reference = node.get("$ref")
        if reference in (TOOL, EXACT_TOOL) and isinstance(value, str):
            yield _Entry(place, value, exact=reference == EXACT_TOOL)
        elif reference is not None:
            name = reference.rpartition("/")[2]
            definition = definitions.get(name, {})
            waiting.append((value, definition, place))
        else:
            waiting += _parts(value, node, place)


def _parts(value: Any, schema: Mapping[str, Any], place: str) -> Iterator[_Part]:
    """Yield what is to be looked at next: branches of the schema, members, or items."""
    if "anyOf" in schema:
        for branch in schema["anyOf"]:
            yield value, branch, place
    elif isinstance(value, Mapping):
        yield from _members(value, schema, place)
    elif isinstance(value, (list, tuple)):
        items = schema.get("items", {})
        for number, item in enumerate(value):
            yield item, items, f"{place}[{number}]"


def _members(value: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> Iterator[_Part]:
    """Yield the names and the values of an object, each with its schema."""
    named = schema.get("properties", {})
    names = schema.get("propertyNames", {})
    others = schema.get("additionalProperties")
    for name, item in value.items():
        inner = member_place(place, str(name))
        yield name, names, inner
        member = named.get(name, others)
        if not isinstance(member, Mapping):
            member = {}
        yield item, member, inner


def _fits(entry: _Entry, tool: ToolNames) -> bool:
    names = tool.exact
    if not entry.exact:
        names += tool.others
    globs = _choices(entry.glob)
    return any(fnmatchcase(name, glob) for name in names for glob in globs)


def _choices(glob: str) -> list[str]:
    """Write ``{a,b}`` out, which Rego's globs have and Python's lack."""
    found = [glob]
    done: list[str] = []
    while found and len(found) + len(done) < _MAX_CHOICES:
        pattern = found.pop()
        choice = _CHOICE.search(pattern)
        if choice is None:
            done.append(pattern)
            continue
        before = pattern[: choice.start()]
        after = pattern[choice.end() :]
        for part in choice[1].split(","):
            found.append(before + part + after)
    return done + found
