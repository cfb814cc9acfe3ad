"""A governed tool: what ``fn.tool`` is, and the doors of a call that never raise for a governed
outcome.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from agenttool_otel.call.binding import bind_json, rebind_python
from agenttool_otel.call.drivers import aresult, arun, run
from agenttool_otel.call.envelope import to_result
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.preflight import Preflight, preflight_of
from agenttool_otel.call.runtime import DEFAULT_TOOLS, Runtime, default_runtime, state_channel
from agenttool_otel.call.target import Target
from agenttool_otel.catalog import ToolSource, ToolSpec, declare
from agenttool_otel.catalog.reader import below_reader
from agenttool_otel.catalog.signature import without_partial
from agenttool_otel.context.context import current_context, current_mappings, current_native_call
from agenttool_otel.errors import InstanceMissing
from agenttool_otel.names import Attr
from agenttool_otel.records import (
    ExecutionProfile,
    PermissionProfile,
    ToolDeclaration,
    ToolInterface,
    ToolResult,
)


class GovernedTool:
    """One tool under governance.

    Attributes:
        spec: the resolved declaration.
        function: the callable that runs, bound to its instance.
        is_async: whether calling it gives an awaitable.
        streams: whether calling it gives an iterator of results.
    """

    __slots__ = ("__weakref__", "_governor", "function", "is_async", "spec", "streams")

    def __init__(
        self,
        spec: ToolSpec,
        function: Callable[..., Any],
        *,
        governor: Runtime | None,
        is_async: bool,
        streams: bool,
    ) -> None:
        self.spec = spec
        self.function = function
        self.is_async = is_async
        self.streams = streams
        self._governor = governor

    @property
    def governor(self) -> Runtime:
        """The Governor in charge: the given one, or the default one as it is now."""
        return default_runtime() if self._governor is None else self._governor

    @property
    def declaration(self) -> ToolDeclaration:
        """The tool_declaration record."""
        return self.spec.declaration

    @property
    def interface(self) -> ToolInterface:
        """The tool_interface record."""
        return self.spec.interface

    @property
    def execution_profile(self) -> ExecutionProfile:
        """The execution profile record."""
        return self.spec.execution

    @property
    def permission_profile(self) -> PermissionProfile:
        """The permission profile record."""
        return self.spec.permission

    def register(self) -> None:
        """Make the tool known to its Governor's registry."""
        state_channel(self.spec, self._governor)
        if self._governor is None:
            DEFAULT_TOOLS.add(self)
            return
        self._governor.registry.add(self)
        self._governor.tool_added(self.spec)

    def of(self, instance: object, function: Callable[..., Any]) -> GovernedTool:
        """Return the same tool bound to an instance.

        Args:
            instance: the instance; kept only through the bound callable.
            function: the bound callable.
        """
        del instance
        return GovernedTool(
            self.spec,
            function,
            governor=self._governor,
            is_async=self.is_async,
            streams=self.streams,
        )

    # --- doors that never raise for a governed outcome --------------------------------------------

    def invoke(self, arguments: Mapping[str, Any] | None = None, /, **named: Any) -> ToolResult:
        """Run the call a model asked for; denial, ask, failure and success all come back as an
        envelope.

        A stream is collected; a coroutine function needs ``ainvoke``.

        Args:
            arguments: JSON arguments as an object.
            named: the same as keywords; they win.

        Returns:
            The tool_result; ``result.value`` is the native return value.

        Raises:
            TypeError: the tool is asynchronous.
            InstanceMissing: it is a method, taken from the class instead of from an instance.
        """
        if self.is_async:
            raise TypeError(f"{self.spec.name} is asynchronous: use ainvoke")
        call = self.plan({**(arguments or {}), **named})
        governor = self.governor
        return to_result(run(call, governor.pipeline.run(call, self.json_target())))

    async def ainvoke(
        self, arguments: Mapping[str, Any] | None = None, /, **named: Any
    ) -> ToolResult:
        """The same without blocking the event loop; a plain function runs in a worker thread.

        Args:
            arguments: JSON arguments as an object.
            named: the same as keywords; they win.

        Returns:
            The tool_result.

        Raises:
            InstanceMissing: it is a method, taken from the class instead of from an instance.
        """
        call = self.plan({**(arguments or {}), **named})
        governor, target = self.governor, self.json_target()
        if not target.is_async:
            target.is_async = target.in_thread = True
        return await aresult(call, governor.pipeline.run(call, target))

    def check(self, arguments: Mapping[str, Any] | None = None, /, **named: Any) -> Preflight:
        """Return what would be decided and what to call instead; runs nothing and spends nothing.

        Args:
            arguments: JSON arguments as an object.
            named: the same as keywords; they win.
        """
        governor = self.governor
        call = self.plan({**(arguments or {}), **named}, preflight=True)
        return preflight_of(
            run(call, governor.pipeline.preflight(call, self.json_target(preflight=True)))
        )

    async def acheck(
        self, arguments: Mapping[str, Any] | None = None, /, **named: Any
    ) -> Preflight:
        """The same without blocking the event loop.

        Args:
            arguments: JSON arguments as an object.
            named: the same as keywords; they win.
        """
        governor = self.governor
        call = self.plan({**(arguments or {}), **named}, preflight=True)
        return preflight_of(
            await arun(call, governor.pipeline.preflight(call, self.json_target(preflight=True)))
        )

    # --- what the wrappers and the framework doors use --------------------------------------------

    def plan(self, arguments: Mapping[str, Any], *, preflight: bool = False) -> Invocation:
        """Make the invocation of a JSON call.

        Args:
            arguments: JSON arguments.
            preflight: nobody will run it.
        """
        context = self.governor.effective(current_context())
        call = Invocation(
            self.spec, context, native_call_id=current_native_call(), preflight=preflight
        )
        call.call_kwargs = dict(arguments)
        call.mappings = current_mappings()
        return call

    def json_target(self, *, preflight: bool = False) -> Target:
        """Return what a JSON call of this tool runs.

        Args:
            preflight: nobody will run it, so that a method needs no instance.

        Raises:
            InstanceMissing: it is a method without its instance.
        """
        parameters = self.spec.parameters
        if (
            parameters is not None
            and parameters.receiver
            and not preflight
            and not inspect.ismethod(self.function)
        ):
            raise InstanceMissing(
                f"{self.spec.name} is a method: it can't run without its instance"
            )
        body = (
            below_reader(self.function)
            if parameters is not None and parameters.reader
            else self.function
        )
        return Target(body, bind_json, rebind_python, is_async=self.is_async, collects=self.streams)

    def __repr__(self) -> str:
        return f"<GovernedTool {self.spec.tool_id}>"


def unknown_tool(name: str, governor: Runtime | None, namespace: str = "unknown") -> GovernedTool:
    """Return what stands for a name that no tool has: its calls are refused, and leave a span.

    Args:
        name: the name.
        governor: the Governor that refuses; ``None`` for the default one.
        namespace: where the name comes from.
    """
    tool = _stand_in(name, governor, namespace, f"unknown tool {name}")
    tool.spec.unknown = True
    # records name what was asked for; an id would look as if a tool were declared
    tool.spec.declaration.tool_id = tool.spec.tool_id = name
    tool.spec.start_attributes[Attr.TOOL_ID] = name
    return tool


def refused_tool(name: str, governor: Runtime | None, why: str, namespace: str) -> GovernedTool:
    """Return what stands for a tool that can't be governed: its calls are refused, and leave a span.

    Args:
        name: the tool's name.
        governor: the Governor that refuses; ``None`` for the default one.
        why: what keeps it from being governed, for people and models.
        namespace: where the tool comes from.
    """
    tool = _stand_in(name, governor, namespace, f"refused tool {name}")
    tool.spec.refusal = why
    return tool


def _stand_in(
    name: str, governor: Runtime | None, namespace: str, description: str
) -> GovernedTool:
    source = ToolSource(name, namespace, description, schema={"type": "object"}, is_refused=True)
    return GovernedTool(
        declare({}, source), _no_tool, governor=governor, is_async=False, streams=False
    )


def _no_tool(**arguments: Any) -> Any:
    raise RuntimeError("no tool of this name exists")


def shape_of(function: Any) -> tuple[bool, bool]:
    """Return whether a callable is asynchronous, and whether it streams.

    Args:
        function: function, method, partial or callable object.
    """
    target = without_partial(function)
    if isinstance(target, (classmethod, staticmethod)):
        target = target.__func__
    if not inspect.isroutine(target) and not inspect.isclass(target) and callable(target):
        target = type(target).__call__
    asynchronous_stream = inspect.isasyncgenfunction(target)
    streams = asynchronous_stream or inspect.isgeneratorfunction(target)
    return asynchronous_stream or inspect.iscoroutinefunction(target), streams
