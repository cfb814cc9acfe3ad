"""Settings that name tools, compared with the tools that there are: a slip in a list that restricts
says nothing.

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
from agenttool_otel.policy.bundles.settings_schema import EXACT_TOOL, TOOL, settings_schema

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
        ours = (bundle.data if bundle is not None else {}).get("agenttool")
        ours = ours if isinstance(ours, Mapping) else {}
        settings = ours.get("settings")
        self._entries = [
            _Entry(place, glob.removeprefix("!"), True)
            for place, globs in more.items()
            for glob in globs
        ]
        self._sandboxes: set[str] = set()
        if isinstance(settings, Mapping):
            self._entries += _entries(settings, settings_schema(()))
            sandboxes = (settings.get("shell") or {}).get("sandboxes") or {}
            self._sandboxes = {name for name, believed in sandboxes.items() if believed is True}
        self._warned: set[str] = set()

    def warn_of_entries(self, tools: Iterable[ToolNames]) -> None:
        """Warn of each entry that fits none of the tools which are known by now."""
        if not self._entries:
            return
        known = list(tools)
        for entry in self._entries:
            if entry.place in self._warned or any(_fits(entry, tool) for tool in known):
                continue
            self._warned.add(entry.place)
            near = did_you_mean(
                entry.glob, {name for tool in known for name in (*tool.exact, *tool.others)}
            )
            what = "id or namespace.name" if entry.exact else "name"
            _logger.warning(
                "%s: %r fits the %s of no tool that is known so far%s",
                entry.place,
                entry.glob,
                what,
                near,
            )

    def warn_of_sandbox(self, tool: str, profile: str | None) -> None:
        """Warn where settings let a tool's own word about a sandbox answer questions."""
        if profile not in self._sandboxes or tool in self._warned:
            return
        self._warned.add(tool)
        _logger.warning(
            "%s states the sandbox %r, and shell.sandboxes believes it: nothing here checks that there is one",
            tool,
            profile,
        )


def _entries(settings: Any, schema: Mapping[str, Any]) -> Iterator[_Entry]:
    definitions = schema["$defs"]
    waiting: list[_Part] = [(settings, schema, _PLACE)]
    while waiting:
        value, node, place = waiting.pop()
        reference = node.get("$ref")
        if reference in (TOOL, EXACT_TOOL) and isinstance(value, str):
            yield _Entry(place, value, reference == EXACT_TOOL)
        elif reference is not None:
            definition = definitions.get(reference.rpartition("/")[2], {})
            waiting.append((value, definition, place))
        elif "anyOf" in node:
            for branch in node["anyOf"]:
                waiting.append((value, branch, place))
        elif isinstance(value, Mapping):
            waiting += _members(value, node, place)
        elif isinstance(value, (list, tuple)):
            for number, item in enumerate(value):
                waiting.append((item, node.get("items", {}), f"{place}[{number}]"))


def _members(value: Mapping[str, Any], schema: Mapping[str, Any], place: str) -> Iterator[_Part]:
    """Yield the names and the values of an object, each with its schema."""
    named = schema.get("properties", {})
    for name, item in value.items():
        if re.fullmatch(r"\w+", str(name)):
            inner = f"{place}.{name}"
        else:
            inner = f"{place}[{name!r}]"
        member = named.get(name, schema.get("additionalProperties"))
        yield name, schema.get("propertyNames", {}), inner
        yield item, member if isinstance(member, Mapping) else {}, inner


def _fits(entry: _Entry, tool: ToolNames) -> bool:
    names = tool.exact if entry.exact else (*tool.exact, *tool.others)
    return any(fnmatchcase(name, glob) for glob in _choices(entry.glob) for name in names)


def _choices(glob: str) -> list[str]:
    """Write ``{a,b}`` out, which Rego's globs have and Python's lack."""
    found, done = [glob], list[str]()
    while found and len(found) + len(done) < _MAX_CHOICES:
        pattern = found.pop()
        choice = _CHOICE.search(pattern)
        if choice is None:
            done.append(pattern)
            continue
        found += [
            pattern[: choice.start()] + part + pattern[choice.end() :]
            for part in choice[1].split(",")
        ]
    return done + found
