"""The parts of a call that name whom or what it reaches: places, hosts, receivers, and the programs of
commands.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from agenttool_otel.facts.argument_names import names_identity

RECEIVER: Final = "argument "
"""Begins the kind of a part that is a receiver's argument: ``argument recipient``."""

_ONE_TASK: Final = frozenset({"writer", "deleter", "tree_deleter", "tester"})
_STEPPED: Final = _ONE_TASK | {"builder", "vcs_local"}


class Part(NamedTuple):
    """A part of a call that names whom or what it reaches."""

    kind: str  # places, hosts, commands, or the argument that names a receiver
    exact: Any  # as it was seen, plain JSON data
    wider: Any = None  # after one step: a folder, a domain, a program with its sub-command


def parts_of(document: Any) -> Iterator[Part]:
    """Yield the parts of a call that name whom or what it reaches.

    Args:
        document: the policy's input.
    """
    facts = document["facts"]
    for fact in facts["paths"]:
        yield _place(fact)
    for fact in facts["urls"]:
        yield Part("hosts", fact["host"])
    for fact in facts["shell"]:
        for command in fact["commands"]:
            yield from _parts_of_command(command)
    if not facts["shell"]:
        yield from _receivers(document)


def _place(fact: Any) -> Part:
    """Return the part that a path is; its step is the folder that it lies in."""
    steps = (fact["resolved"] or "").split("/")
    exact = [fact["access"], steps]
    # "/etc/x": all of /etc is no folder that a few files speak for
    if len(steps) <= 3:
        return Part("places", exact)
    return Part("places", exact, [fact["access"], steps[:-1]])


def _parts_of_command(command: Any) -> Iterator[Part]:
    for place in command["places"]:
        fact = place["path"]
        if fact and not _is_read_inside(fact):
            yield _place(fact)
    if not command["read_only"]:
        yield Part("commands", command["plain"], _program(command))


def _is_read_inside(fact: Any) -> bool:
    """Return whether a path is one that no question is about: read, and inside of the roots."""
    return bool(fact["inside"]) and fact["access"] == "read"


def _program(command: Any) -> list[Any] | None:
    """Return a command's kind with its program and sub-command; ``None`` where a word of it is not
    reviewed.
    """
    category, words = command["category"], command["plain"]
    if not words or category not in _STEPPED:
        return None
    if not command["complete"] or command["unreviewed"]:
        return None
    if _has_sub_command(command):
        return [category, words[:2]]
    # "touch a": the program does one thing, whatever its operands are
    if category in _ONE_TASK:
        return [category, words[:1]]
    # "git -C x push", "make -j8": without its sub-command, that may be anything
    return None


def _has_sub_command(command: Any) -> bool:
    """Return whether a command's second word is neither an option nor an operand."""
    words = command["plain"]
    if len(words) < 2 or words[1].startswith("-"):
        return False
    return all(place["word"] != words[1] for place in command["places"])


def _receivers(document: Any) -> Iterator[Part]:
    """Yield the arguments that name receivers, where no path and no URL is made of them."""
    facts = document["facts"]
    pointers = {fact["argument"] for fact in (*facts["paths"], *facts["urls"])}
    for name, value in document["input"].items():
        if not names_identity(name) or f"/{name}" in pointers:
            continue
        values = value if isinstance(value, list) else [value]
        for each in values:
            if each is not None:
                yield _receiver(name, each)


def _receiver(name: str, value: Any) -> Part:
    """Return the part that a receiver is; the step of ``ann@example.org`` is ``example.org``."""
    kind = f"{RECEIVER}{name}"
    if not isinstance(value, str):
        return Part(kind, value)
    before, _, domain = value.rpartition("@")
    return Part(kind, value, domain if before else None)
