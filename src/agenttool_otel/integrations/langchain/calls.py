"""One call of a governed LangChain tool: what LangChain's outer methods got, its arguments, and its
run.
"""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import sys
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Final, cast

import wrapt
from langchain_core.callbacks import BaseCallbackManager
from langchain_core.callbacks.manager import BaseRunManager
from langchain_core.runnables.config import var_child_runnable_config
from langchain_core.tools import BaseTool, StructuredTool, Tool
from opentelemetry import trace

from agenttool_otel.call.binding import bind_json, rebind_python
from agenttool_otel.call.invocation import NOT_READ, Established, Invocation
from agenttool_otel.call.resume import continue_stored
from agenttool_otel.call.running.once import DecidedCall, decided, decided_call
from agenttool_otel.call.running.progress import progress_to
from agenttool_otel.call.target import Target
from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.errors import ApprovalError
from agenttool_otel.integrations.foreign import Adapter
from agenttool_otel.integrations.langchain.arguments import injected_names, json_object, use_reading
from agenttool_otel.integrations.langchain.results import content_and_artifact, content_of, deliver
from agenttool_otel.names import Outcome
from agenttool_otel.records import ToolProgress
from agenttool_otel.telemetry.telemetry import context_of
from agenttool_otel.values.canonical import digest
from agenttool_otel.values.conversion import to_json_value
from agenttool_otel.values.snapshot import snapshot


class LangChainHandle(GovernedTool):
    """The handle of a LangChain tool: it checks calls, and leaves running them to the tool object.

    LangChain's validation, injection and callbacks are on the way to the tool's body, so a call of
    JSON arguments that starts here would either go round them or be governed a second time on its
    way.

    Attributes:
        inside: the governed functions that are the tool's body, decided with it as one call.
        automatic: whether an instrumentor governs the tool; facts that are stated for it elsewhere
          come first.
    """

    __slots__ = ("automatic", "inside")

    inside: tuple[GovernedTool, ...]
    automatic: bool

    def json_target(self, *, preflight: bool = False) -> Target:
        """Return the target of a JSON call, which may only be checked: one that would run is refused
        before anything is decided or claimed.
        """
        return Target(self.function, _bind, rebind_python, is_async=self.is_async)


def _bind(call: Invocation) -> None:
    if not call.preflight:
        raise TypeError(
            f"{call.spec.name} is a LangChain tool: call the tool object; an approved call of it goes on in the "
            "process that asked, or in its LangGraph thread"
        )
    bind_json(call)


def _watch_graph_tasks(runner: Any) -> None:
    from agenttool_otel.integrations.langgraph.caught import watch_tasks

    watch_tasks(runner)


# before any task runs
wrapt.register_post_import_hook(_watch_graph_tasks, "langgraph.pregel._runner")


@dataclass(slots=True)
class Entry:
    """What LangChain gives to ``run`` and not to ``_run``."""

    tool: BaseTool  # the tool object that was called
    call_id: str | None  # id of the model's tool call
    raw: Any  # the input before LangChain's validation
    config: Any  # the RunnableConfig of the call
    reached: bool = False  # whether ``_run`` was
    passed: bool = False  # whether a guard in front has decided the call


_entry: contextvars.ContextVar[Entry | None] = contextvars.ContextVar(
    "agenttool_langchain_entry", default=None
)


OPENINFERENCE: Final = "openinference.instrumentation.langchain"
"""The module of another instrumentation, which has spans of its own."""

current_entry: Final = _entry.get
"""Returns what LangChain gave to the ``run`` that is in progress; ``None`` outside of one."""

_POSITIONAL: Final = (
    inspect.Parameter.POSITIONAL_ONLY,
    inspect.Parameter.POSITIONAL_OR_KEYWORD,
)
_MAX_ASKED: Final = 256
_asked: OrderedDict[tuple[Any, ...], str] = OrderedDict()
"""The invocations that wait, by the run that called the tool, the tool and its input."""


@contextmanager
def entered(
    handle: GovernedTool, tool: BaseTool, raw: Any, known: Mapping[str, Any]
) -> Iterator[None]:
    """Note what ``_run`` can't see, and leave a span even when LangChain refuses the arguments
    before it.
    """
    entry = Entry(
        tool=tool,
        call_id=known.get("tool_call_id"),
        raw=raw,
        config=known.get("config"),
        passed=decided_call(tool) is not None,
    )
    token = _entry.set(entry)
    try:
        yield
    finally:
        _entry.reset(token)
        if not entry.reached and not entry.passed:
            InvalidCall(handle, entry).run(_unreachable)


class LangChainAdapter(Adapter):
    """A call that LangChain makes; inside a LangGraph run with a checkpointer an ask pauses
    the graph.
    """

    _entry: Entry | None = None

    def perform(self, target: Target) -> str | None:
        """Run the call; return the text that a person gave in place of its result."""
        with _parent_found(), progress_to(write_progress, steps=False):
            if not in_graph():
                if self._is_again:
                    self._go_on()
                response = super().perform(target)
                self._note_question()
                return response
            from agenttool_otel.integrations.langgraph.caught import note_pause
            from agenttool_otel.integrations.langgraph.interrupts import run_call

            response = run_call(self.call, target, self.runtime, self.deliver)
            note_pause(self.call.exception)
            return response

    async def aperform(self, target: Target) -> str | None:
        """The same without blocking the event loop."""
        with _parent_found(), progress_to(write_progress, steps=False):
            if not in_graph():
                if self._is_again:
                    await asyncio.to_thread(self._go_on)
                response = await super().aperform(target)
                self._note_question()
                return response
            from agenttool_otel.integrations.langgraph.caught import note_pause
            from agenttool_otel.integrations.langgraph.interrupts import arun_call

            response = await arun_call(self.call, target, self.runtime, self.deliver)
            note_pause(self.call.exception)
            return response

    @property
    def _caller(self) -> Any:
        """The callback manager of the run that calls the tool; ``None`` without one."""
        if self._entry is None or not isinstance(self._entry.config, dict):
            return None
        return self._entry.config.get("callbacks")

    @property
    def _is_again(self) -> bool:
        """Whether ``with_retry`` makes this call once more."""
        return is_again(self._caller)

    def _question(self) -> tuple[Any, ...]:
        """The key of a question: the run, the tool and its input; empty outside of a run."""
        run_id = getattr(self._caller, "parent_run_id", None)
        if run_id is None or self._entry is None:
            return ()
        return run_id, self.call.spec.tool_id, digest(self._entry.raw)

    def _go_on(self) -> None:
        """Take up the request of the attempt before, instead of asking a second time."""
        with suppress(KeyError, ApprovalError):
            continue_stored(self.call, self.runtime.approvals.waiting(_asked[self._question()]))

    def _note_question(self) -> None:
        if self.call.outcome.execution is not Outcome.PENDING:
            return
        question = self._question()
        if question:
            _asked[question] = self.call.id
            if len(_asked) > _MAX_ASKED:
                _asked.popitem(last=False)


def is_again(caller: Any) -> bool:
    """Return whether ``with_retry`` makes a call once more.

    Args:
        caller: the callback manager of the run that calls the tool; ``None`` without one.
    """
    tags = getattr(caller, "tags", ())
    return any(str(tag).startswith("retry:attempt:") for tag in tags)


@contextmanager
def _parent_found() -> Iterator[None]:
    """Make OpenInference's span current for a call, where no span is: it never makes its
    own current.
    """
    other = sys.modules.get(OPENINFERENCE)
    outer = None
    if other is not None and not context_of(trace.get_current_span()).is_valid:
        with suppress(Exception):
            outer = other.get_current_span()
    if outer is None:
        yield
        return
    # it belongs to OpenInference: nothing is recorded in it here
    with trace.use_span(
        outer,
        end_on_exit=False,
        record_exception=False,
        set_status_on_exception=False,
    ):
        yield


def write_progress(progress: ToolProgress) -> None:
    """Write progress into the graph's stream, for ``stream_mode="custom"``."""
    if not in_graph():
        return
    from langgraph.config import get_stream_writer

    get_stream_writer()({"type": "tool_progress", **progress.to_json_object()})


def in_graph() -> bool:
    config = var_child_runnable_config.get()
    if config is None:
        return False
    return "__pregel_scratchpad" in (config.get("configurable") or ())


class ToolCall(LangChainAdapter):
    """One call of a tool's ``_run`` or ``_arun``, which LangChain has validated already.

    Everything that reaches the tool is decided on, except LangChain's own objects (recognised by
    their type, never by a name, which a model may choose as well) and what the tool's author marked
    as injected.
    """

    def __init__(
        self,
        handle: LangChainHandle,
        tool: BaseTool,
        body: Callable[..., Any],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        *,
        by_call: bool = False,
        established: Established | None = None,
    ) -> None:
        entry = current_entry()
        # the body of another tool calls this one's _run directly: the entry is the other's
        if entry is not None and entry.tool is not tool:
            entry = None
        super().__init__(handle, entry.call_id if entry is not None else None)
        self._entry = entry
        self._handle = handle
        self._by_call = by_call
        self._spec = handle.spec
        self._tool = tool
        self._body = body
        self._args = args
        self._kwargs = kwargs
        self.call.call_args = args
        self.call.call_kwargs = kwargs
        self.call.established = established
        self._raw: Any = None
        if entry is not None:
            # an _arun that calls the own _run gives it arguments of its own, not what the model sent
            if not entry.reached:
                self._raw = entry.raw
            entry.reached = True
        self._injected = injected_names(tool)
        self._hidden: set[str] = set()
        for name, value in kwargs.items():
            if name in self._injected or is_plumbing(name, value, entry, self._raw):
                self._hidden.add(name)

    def run(self, body: Callable[..., Any]) -> Any:
        """Decide the call and run the body if it may run; a call that a guard in front decided runs
        as it is.
        """
        if self._is_decided():
            return body(*self._args, **self._kwargs)
        return super().run(self._marked(body))

    async def arun(self, body: Callable[..., Any]) -> Any:
        """The same for a body that returns an awaitable."""
        if self._is_decided():
            return await body(*self._args, **self._kwargs)
        return await super().arun(self._amarked(body))

    def _is_decided(self) -> bool:
        passing = decided_call(self._tool)
        if passing is None:
            return False
        try:
            self.bind(self.call)
        except Exception:
            # it is decided on its own, and refused with the reason
            return False
        return passing.take(self._tool, _shown(self.call), {})

    def _decided(self) -> DecidedCall:
        """The call as it is decided, which the guards behind this one need not decide again."""
        inside = self._handle.inside
        tools: tuple[Any, ...] = inside
        if self._by_call:
            # def __call__(self, path): return self.invoke({"path": path})
            tools = (self._tool, *inside)
        return DecidedCall(tools, self.call.inputs.permission_input, self._hidden)

    def _marked(self, body: Callable[..., Any]) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            with decided(self._decided()):
                return body(*args, **kwargs)

        return run

    def _amarked(self, body: Callable[..., Any]) -> Callable[..., Any]:
        async def run(*args: Any, **kwargs: Any) -> Any:
            with decided(self._decided()):
                return await body(*args, **kwargs)

        return run

    def unwrap(self, value: Any) -> Any:
        """Return the content of a message, and of a content-and-artifact pair."""
        pair = content_and_artifact(self._tool, value)
        if pair is None:
            return content_of(value)
        content, _ = pair
        return content_of(content)

    def deliver(self, response: str | None) -> Any:
        """Return what LangChain takes as the return value of the body."""
        return deliver(self.call, self._tool, self.runtime, response)

    def bind(self, call: Invocation) -> None:
        """Take what the model sent and what LangChain made of it; what runs is a copy of that."""
        by_name = {}
        for name, value in self._kwargs.items():
            if name not in self._hidden:
                by_name[name] = snapshot(value)
        by_position = tuple(snapshot(value) for value in self._args)
        call.call_args = by_position
        call.call_kwargs = {**self._kwargs, **by_name}
        call.inputs.bound = call.call_kwargs
        read = json_object({**by_name, **self._named(by_position, by_name)})
        sent = read
        if isinstance(self._raw, dict):
            sent = json_object(without(self._raw, self._injected))
        call.inputs.model_input = sent
        if isinstance(self._tool.args_schema, dict):
            # LangChain does not validate by a JSON schema: the pipeline refuses what does not fit
            for shown in (sent, read):
                if not self._spec.check.is_valid(shown):
                    call.inputs.model_input = shown
                    return
        call.inputs.observable_input = read
        # LangChain has just validated, with injection and coercion that a schema can't express
        call.inputs.validated = True

    def _named(self, by_position: tuple[Any, ...], by_name: dict[str, Any]) -> dict[str, Any]:
        """The positional arguments by their names."""
        names = self._names()
        if len(names) < len(by_position):
            raise ValueError("positional arguments that have no name")
        named = dict(zip(names, by_position, strict=False))
        if not by_name.keys().isdisjoint(named):
            raise ValueError("positional arguments that have no name")
        return named

    def rebind(self, call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Put changed arguments into the call as LangChain reads them, and decide on that
        reading.
        """
        kept = {}
        injected = {}
        for name in self._hidden:
            kept[name] = self._kwargs[name]
            if name in self._injected:
                injected[name] = self._kwargs[name]
        parsed: dict[str, Any] = dict(after)
        # tool.run("query"): LangChain validates a text and passes it on as it is
        if not isinstance(self._raw, str):
            given = {**injected, **snapshot(after)}
            made = cast("dict[str, Any]", self._tool._parse_input(given, call.native_call_id))
            parsed = without(made, self._injected)
        shown = json_object(parsed)
        for name in self._spec.declaration.input_contract.internal_only_fields:
            shown.pop(name, None)
        if self._args:
            call.call_args = self._positional(parsed)
            parsed = {}
        call.call_kwargs = {**parsed, **kept}
        call.inputs.bound = call.call_kwargs
        use_reading(call, after, shown)

    def _positional(self, parsed: dict[str, Any]) -> tuple[Any, ...]:
        names = self._names()[: len(self._args)]
        if parsed.keys() != set(names):
            raise ValueError("this tool takes its arguments by position, each of them")
        return tuple(parsed[name] for name in names)

    def _names(self) -> list[str]:
        """Return the names of positional arguments: those of the function that gets them, else the
        schema's.
        """
        properties = list(self._spec.check.schema.get("properties", {}))
        if not self._args or isinstance(self._tool, Tool):
            return properties
        function: Any = self._body
        if isinstance(self._tool, StructuredTool):
            # its _run takes *args and **kwargs, and passes them on
            function = self._tool.func
            if inspect.iscoroutinefunction(self._body):
                function = self._tool.coroutine
        try:
            parameters = inspect.signature(function).parameters.values()
        except (TypeError, ValueError):
            return properties
        names = [parameter.name for parameter in parameters if parameter.kind in _POSITIONAL]
        return names or properties


def is_plumbing(name: str, value: Any, entry: Entry | None, raw: Any) -> bool:
    """Return whether a value is LangChain's own object, and not an argument of the same name.

    Args:
        name: the argument's name.
        value: the value.
        entry: what LangChain gave to ``run``.
        raw: the input before LangChain's validation.
    """
    if isinstance(value, (BaseRunManager, BaseCallbackManager)):
        return True
    if entry is None or value is not entry.config:
        return False
    if value is not None:
        return True
    # the call has no config, and "config": null of the model is an argument
    return not isinstance(raw, dict) or name not in raw


def without(values: Mapping[str, Any], names: Collection[str]) -> dict[str, Any]:
    return {name: value for name, value in values.items() if name not in names}


def _shown(call: Invocation) -> dict[str, Any]:
    if call.inputs.observable_input is NOT_READ:
        return call.inputs.model_input
    return call.inputs.observable_input


class InvalidCall(Adapter):
    """A call whose arguments LangChain refused before it came to a decision: it leaves a span."""

    def __init__(self, handle: GovernedTool, entry: Entry) -> None:
        super().__init__(handle, entry.call_id)
        self._raw = entry.raw

    def bind(self, call: Invocation) -> None:
        """Record the arguments that were refused."""
        raw = to_json_value(self._raw)
        # tool.run("a text") has no object of arguments
        call.inputs.model_input = raw if isinstance(raw, dict) else {}
        raise ValueError("LangChain's own validation refused the arguments")

    def rebind(self, call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Refuse: there is nothing to change."""
        raise ValueError("nothing to change")

    def deliver(self, response: str | None) -> None:
        """Deliver nothing: LangChain raises its own error."""


def _unreachable(*args: Any, **kwargs: Any) -> Any:
    raise RuntimeError("arguments were refused before the decision")
