"""Where the value of an argument may come from, as the author of its tool stated it:
``sources={"to": ["user", "contacts.*"]}``.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.facts.accounting import covers, place_of, pointer_tokens
from agenttool_otel.names import StatedWord

_ANY_TOOL: Final = re.compile(r"[*?.\[\]!]*")
"""``*`` or ``*.*``: a glob that every tool fits states nothing."""


class ArgumentSources(NamedTuple):
    """Where the value of one argument may come from."""

    tokens: tuple[str, ...]  # keys from the top; ``*`` for any
    words: tuple[str, ...]  # ``user``, ``counterparties``, and globs of tool ids

    @property
    def by_user(self) -> bool:
        """Whether the user may name it."""
        return StatedWord.USER in self.words

    @property
    def tools(self) -> tuple[str, ...]:
        """Return the globs of the tools that may name it."""
        return tuple(word for word in self.words if word not in _WORDS)


_WORDS: Final = frozenset(map(str, StatedWord))


class StatedSources:
    """The sources of a tool's arguments; made once, at decoration, and never changed."""

    __slots__ = ("_arguments",)

    def __init__(self, arguments: Iterable[ArgumentSources]) -> None:
        self._arguments = tuple(arguments)

    @property
    def tools(self) -> list[str]:
        """Return the globs of all tools that some argument may come from."""
        globs: list[str] = []
        for argument in self._arguments:
            globs += argument.tools
        return globs

    def of(self, pointer: str) -> list[ArgumentSources]:
        """Return what is stated of a value: all of it has to hold.

        Args:
            pointer: the value's JSON pointer.
        """
        place = place_of(pointer)
        return [argument for argument in self._arguments if covers(argument.tokens, place)]


def read_sources(stated: Mapping[str, Sequence[str]], namespace: str) -> StatedSources | None:
    """Return the stated sources of a tool's arguments, ``None`` where there are none.

    Args:
        stated: names or JSON pointers of arguments, each with its words.
        namespace: the tool's own, in which a glob without a dot names its neighbours.

    Raises:
        ConfigurationError: an entry that names no argument, no source, or every tool.
    """
    arguments: list[ArgumentSources] = []
    for name, words in stated.items():
        tokens = pointer_tokens(name)
        if not tokens:
            raise ConfigurationError(f"sources: {name!r} names no argument")
        if not _are_words(words):
            raise ConfigurationError(
                f"sources: {name!r} takes a list of user, counterparties and globs of tools"
            )
        globs = tuple(_glob(name, word, namespace) for word in words)
        arguments.append(ArgumentSources(tokens, globs))
    return StatedSources(arguments) if arguments else None


def _are_words(words: object) -> bool:
    if isinstance(words, str) or not isinstance(words, Iterable):
        return False
    given = list(words)
    if not given:
        return False
    return all(isinstance(word, str) for word in given)


def _glob(name: str, word: str, namespace: str) -> str:
    if word in _WORDS:
        return word
    if _ANY_TOOL.fullmatch(word):
        raise ConfigurationError(f"sources: {name!r}: {word!r} would be every tool")
    return word if "." in word or not namespace else f"{namespace}.{word}"


def names_tool(globs: Iterable[str], tool_id: str) -> bool:
    """Return whether one of some globs fits a tool's id; a star stands for any characters."""
    return any(fnmatchcase(tool_id, glob) for glob in globs)
