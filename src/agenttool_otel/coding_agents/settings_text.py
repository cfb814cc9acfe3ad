"""Hooks in the text of a JSON settings file: put in and taken out without a change of any other byte.

A hook's command ends with a comment that is its mark, and states what had to be made for it
(``made=file,hooks,event``). What was made is taken out again with the last hook in it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final, NoReturn

from agenttool_otel.errors import ConfigurationError

MARK: Final = "# agenttool-hook made="
"""What the command of a hook of ours has in it."""
NEW_FILE: Final = "{\n}\n"
"""What a settings file is made as."""
_UNKNOWN_FORM: Final = "the settings have hooks in a form that is not known"
_SPACE: Final = re.compile(r"[ \t\r\n]*")
_LINE: Final = re.compile(r"\r?\n[ \t]*\Z")
_MADE: Final = re.compile(re.escape(MARK) + r"([a-z,]*)")
_DECODER: Final = json.JSONDecoder()

GroupOf = Callable[[str], dict[str, Any]]
"""A hook's entry, given what was made for it."""
IsOurs = Callable[[Any], bool]
"""Whether an entry of an event's list is a hook of ours."""


@dataclass
class _Node:
    """A value in a text."""

    start: int
    end: int
    value: Any = None
    # of an object by name, of a list by position; a member of an object begins at its name
    children: dict[Any, _Node] = field(default_factory=dict)
    begins: dict[Any, int] = field(default_factory=dict)

    @property
    def spans(self) -> list[tuple[int, int]]:
        """Where the children stand, names included."""
        found = []
        for key, child in self.children.items():
            found.append((self.begins[key], child.end))
        return found


def read_settings(text: str) -> dict[str, Any]:
    """Return the content of a settings file.

    Args:
        text: the file's text.

    Raises:
        ConfigurationError: it is no JSON object, has a name twice, or ``hooks`` in another form.
    """
    try:
        found = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"the settings can't be read as JSON: {error}") from None
    if not isinstance(found, dict):
        raise ConfigurationError("the settings are no JSON object")
    hooks = found.get("hooks", {})
    if not isinstance(hooks, dict):
        raise ConfigurationError(_UNKNOWN_FORM)
    for groups in hooks.values():
        if not isinstance(groups, list):
            raise ConfigurationError(_UNKNOWN_FORM)
    return found


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise ValueError("a name stands twice")
    return made


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def with_hook(text: str, event: str, group_of: GroupOf, made: str = "") -> str:
    """Return a settings file with a hook at the end of those of an event.

    Args:
        text: the file's text.
        event: the event.
        group_of: makes the hook's entry of the comma-separated words of what was made for it.
        made: ``file`` where the file was made for it.

    Raises:
        ConfigurationError: the text can't be read.
    """
    read_settings(text)
    root = _parse(text)
    words = [made] if made else []
    hooks = root.children.get("hooks")
    if hooks is None:
        words += ["hooks", "event"]
        group = group_of(",".join(words))
        return _inserted(text, root, {event: [group]}, "hooks")
    groups = hooks.children.get(event)
    if groups is None:
        words.append("event")
        group = group_of(",".join(words))
        return _inserted(text, hooks, [group], event)
    group = group_of(",".join(words))
    return _inserted(text, groups, group)


def without_hooks(text: str, is_ours: IsOurs) -> tuple[str, bool]:
    """Return a settings file without our hooks, and whether the file was made for them and is empty.

    Args:
        text: the file's text.
        is_ours: whether an entry of an event's list is ours.

    Raises:
        ConfigurationError: the text can't be read.
    """
    settings = read_settings(text)
    made: set[str] = set()
    # the last one first, which is the reverse of how they were put in
    for event in reversed(settings.get("hooks", {})):
        text = _without_hook(text, event, is_ours, made)
    hooks = _parse(text).children.get("hooks")
    if "hooks" in made and hooks is not None and not hooks.children:
        text = _removed(text, _parse(text), "hooks")
    return text, "file" in made and text == NEW_FILE


def _without_hook(text: str, event: str, is_ours: IsOurs, made: set[str]) -> str:
    groups = read_settings(text)["hooks"][event]
    own: set[str] = set()
    for index in reversed(range(len(groups))):
        if is_ours(groups[index]):
            own |= _made_for(groups[index])
            hooks = _parse(text).children["hooks"]
            text = _removed(text, hooks.children[event], index)
    made |= own
    hooks = _parse(text).children["hooks"]
    if "event" in own and not hooks.children[event].children:
        text = _removed(text, hooks, event)
    return text


def _made_for(group: Any) -> set[str]:
    found = _MADE.search(json.dumps(group))
    if found is None:
        return set()
    words = found[1].split(",")
    return set(words)


# --- the text -------------------------------------------------------------------------------------


def _inserted(text: str, container: _Node, value: Any, name: str | None = None) -> str:
    """Return the text with one more child, behind those that are there."""
    place = container.start + 1
    line = _line_start(_space_at(text, place), text, container)
    comma = ""
    if container.children:
        _, place = container.spans[-1]
        comma = "," if line is not None else ", "
    key = "" if name is None else f"{json.dumps(name)}: "
    if line is None:
        shown = json.dumps(value)
    else:
        shown = json.dumps(value, indent=2)
        shown = shown.replace("\n", line)
    added = "".join((comma, line or "", key, shown))
    return text[:place] + added + text[place:]


def _line_start(space: str, text: str, container: _Node) -> str | None:
    """Return what begins a line of a container's children; ``None`` where all is on one line."""
    line = _LINE.search(space)
    if line is None:
        return None
    if container.children:
        return line[0]
    # "{\n}": one step further in than the line of the brace
    begins = text.rfind("\n", 0, container.start) + 1
    return f"\n{_space_at(text, begins)}  "


def _removed(text: str, container: _Node, key: Any) -> str:
    """Return the text without a child: the reverse of ``_inserted``."""
    keys = list(container.children)
    spans = container.spans
    position = keys.index(key)
    start, end = spans[position]
    if position > 0:
        _, start = spans[position - 1]
    elif len(keys) > 1:
        end, _ = spans[1]
    else:
        start = container.start + 1
    return text[:start] + text[end:]


def _space_at(text: str, place: int) -> str:
    found = _SPACE.match(text, place)
    return found[0] if found else ""


def _parse(text: str) -> _Node:
    """Return where everything in a JSON text stands; ``read_settings`` has read it before."""
    return _node(text, len(_space_at(text, 0)))


def _node(text: str, start: int) -> _Node:
    if text[start] not in "{[":
        value, end = _DECODER.raw_decode(text, start)
        return _Node(start, end, value)
    node = _Node(start, start)
    place = _skipped(text, start + 1)
    while text[place] not in "}]":
        begins, key = place, len(node.children)
        if text[start] == "{":
            key, place = _DECODER.raw_decode(text, place)
            colon = _skipped(text, place)
            place = _skipped(text, colon + 1)
        child = _node(text, place)
        node.children[key] = child
        node.begins[key] = begins
        place = _skipped(text, child.end)
        if text[place] == ",":
            place = _skipped(text, place + 1)
    node.end = place + 1
    return node


def _skipped(text: str, place: int) -> int:
    return place + len(_space_at(text, place))
