"""One call that passes several guards is decided, asked and recorded by the first of them.

A guard states what it decided (the tools that this very call goes on through, and the arguments)
while the call's body runs. A guard behind it that meets one of these tools with these arguments
lets the call through, once each. A second call of the tool, or one with other arguments, is a call
of its own.
"""

from __future__ import annotations

import contextvars
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

from agenttool_otel.values.canonical import digest

_decided: contextvars.ContextVar[DecidedCall | None] = contextvars.ContextVar(
    "agenttool_decided_call", default=None
)
in_progress: Final = _decided.get
"""Returns the decided call whose body runs; ``None`` where there is none, as in most calls."""


class DecidedCall:
    """A call whose body runs, and the tools behind its guard that it may reach as itself.

    Args:
        tools: the tools, compared by identity.
        arguments: what was decided, as JSON data.
        hidden: names of arguments that no model gives, and that were not decided on.
    """

    __slots__ = ("_arguments", "_hidden", "_tools")

    def __init__(
        self, tools: Iterable[object], arguments: Mapping[str, Any], hidden: Iterable[str] = ()
    ) -> None:
        self._tools = {id(tool): tool for tool in tools}
        self._arguments = arguments
        self._hidden = frozenset(hidden)

    def covers(self, tool: object) -> bool:
        """Return whether the call has yet to reach a tool."""
        return id(tool) in self._tools

    def take(self, tool: object, arguments: Mapping[str, Any], defaults: Mapping[str, Any]) -> bool:
        """Return whether a call of a tool is this one, which it is once.

        Args:
            tool: the tool.
            arguments: what would be decided of it.
            defaults: values of arguments that the first guard need not have seen.
        """
        if not _same(
            self._arguments, {n: v for n, v in arguments.items() if n not in self._hidden}, defaults
        ):
            return False
        return self._tools.pop(id(tool), None) is not None

    def end(self) -> None:
        """Let nothing more through: the body has ended."""
        self._tools = {}


@contextmanager
def decided(call: DecidedCall) -> Iterator[None]:
    """Show the guards behind this one a call that is decided, while its body runs."""
    token = _decided.set(call)
    try:
        yield
    finally:
        _decided.reset(token)
        call.end()


def decided_call(tool: object) -> DecidedCall | None:
    """Return the decided call in progress that goes on through a tool; ``None`` where there
    is none.
    """
    call = _decided.get()
    return call if call is not None and call.covers(tool) else None


def _same(
    decided: Mapping[str, Any], arguments: Mapping[str, Any], defaults: Mapping[str, Any]
) -> bool:
    shown = {
        name: value
        for name, value in arguments.items()
        if name in decided or not _is_default(name, value, defaults)
    }
    if digest(dict(decided)) == digest(shown):
        return True
    # a tool of one argument may name it otherwise than its function does
    return len(decided) == len(shown) == 1 and digest(list(decided.values())) == digest(
        list(shown.values())
    )


def _is_default(name: str, value: Any, defaults: Mapping[str, Any]) -> bool:
    return name in defaults and digest([defaults[name]]) == digest([value])
