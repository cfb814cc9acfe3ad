"""Ordinary calls of a governed LangChain tool, which go straight: outside of a graph, by name, with
values that can't change, and with a result of one part.

What runs and what is shown of it are those of ``ToolCall``, which takes any other call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from langchain_core.tools import BaseTool

from agenttool_otel.call.binding import PlainArguments, plain_values
from agenttool_otel.call.running.once import DecidedCall, decided, in_progress
from agenttool_otel.call.running.progress import progress_to
from agenttool_otel.call.scheduling.gate import next_place
from agenttool_otel.call.straight.way import NOT_BEGUN, Begun, StraightWay
from agenttool_otel.integrations.langchain.arguments import injected_by_schema
from agenttool_otel.integrations.langchain.calls import (
    OPENINFERENCE,
    Entry,
    LangChainHandle,
    current_entry,
    in_graph,
    is_again,
    is_plumbing,
    without,
    write_progress,
)
from agenttool_otel.integrations.langchain.results import content_of, deliver

if TYPE_CHECKING:  # loaded with the first call that may be an ordinary one
    from agenttool_otel.call.straight.call import FrameworkCall

_NO_SCHEMA: Final = object()


class StraightTool:
    """The straight way of one tool's ``_run``, or of its ``_arun``.

    Args:
        handle: the tool's handle.
        is_async: whether it is that of ``_arun``.
    """

    __slots__ = ("_by_schema", "_handle", "_is_async", "_schema", "_way")

    def __init__(self, handle: LangChainHandle, *, is_async: bool) -> None:
        self._handle = handle
        self._is_async = is_async
        self._way = StraightWay(handle.spec, is_async=is_async)
        self._schema: Any = _NO_SCHEMA  # what the injected names were last looked for in
        self._by_schema = frozenset[str]()

    def begin(
        self,
        tool: BaseTool,
        body: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
    ) -> Begun:
        """Begin a call, if it goes straight; of any other the facts are returned, if they were looked
        at.

        Args:
            tool: the tool object.
            body: what runs.
            args: the positional arguments of ``_run``.
            kwargs: the named ones.
        """
        entry = current_entry()
        if args or entry is None or entry.tool is not tool or not _is_ordinary(tool, entry):
            return NOT_BEGUN
        try:
            foreign, hidden = self._read(tool, entry, kwargs)
        except Exception:
            return NOT_BEGUN  # what is wrong with the arguments is the pipeline's to report
        if foreign is None:
            return NOT_BEGUN
        found = DecidedCall(self._handle.inside, foreign.arguments, hidden)
        run = partial(_arun if self._is_async else _run, body, found)
        begun = self._way.begin(self._handle.governor, run, (), kwargs, foreign)
        if begun.call is not None:
            entry.reached = True
        return begun

    def _read(
        self, tool: BaseTool, entry: Entry, kwargs: dict[str, Any]
    ) -> tuple[FrameworkCall | None, set[str]]:
        """Return what the model gave and what LangChain made of it, and the names that are hidden."""
        from agenttool_otel.call.straight.call import FrameworkCall

        injected = self._injected_of(tool)
        hidden: set[str] = set()
        for name, value in kwargs.items():
            if name in injected or is_plumbing(name, value, entry, entry.raw):
                hidden.add(name)
        read = plain_values(without(kwargs, hidden))
        sent = plain_values(without(entry.raw, injected))
        if read is None or sent is None:
            return None, hidden
        if isinstance(tool.args_schema, dict):
            check = self._handle.spec.check
            # LangChain does not validate by a JSON schema
            if not (check.is_valid(sent.shown) and check.is_valid(read.shown)):
                return None, hidden
        # injected values are no part of what is decided, and may be secret
        given = PlainArguments(kwargs, sent.shown, small=read.small and sent.small)
        unwrap, delivers = content_of, partial(_delivered, tool, self._handle)
        return FrameworkCall(given, read.shown, entry.call_id, unwrap, delivers), hidden

    def _injected_of(self, tool: BaseTool) -> frozenset[str]:
        # what a model is shown of a schema is worked out anew each time that LangChain is asked
        schema = tool.args_schema
        if schema is not self._schema:
            self._by_schema = injected_by_schema(tool)
            self._schema = schema
        return tool._injected_args_keys | self._by_schema


def _is_ordinary(tool: BaseTool, entry: Entry) -> bool:
    """Return whether a call is the first one of its own, outside of graphs and of other guards."""
    if entry.reached or entry.passed or type(entry.raw) is not dict:
        return False
    if tool.response_format != "content" or in_progress() is not None:
        return False
    if next_place.get() is not None or in_graph() or OPENINFERENCE in sys.modules:
        return False
    return not isinstance(entry.config, dict) or not is_again(entry.config.get("callbacks"))


def _run(body: Callable[..., Any], call: DecidedCall, **kwargs: Any) -> Any:
    with progress_to(write_progress, steps=False), decided(call):
        return body(**kwargs)


async def _arun(body: Callable[..., Any], call: DecidedCall, **kwargs: Any) -> Any:
    with progress_to(write_progress, steps=False), decided(call):
        return await body(**kwargs)


def _delivered(tool: BaseTool, handle: LangChainHandle, call: Any) -> Any:
    return deliver(call, tool, handle.governor, None)
