"""The contract between this package and a framework: one call of a framework's tool, governed.

A framework is one file beside this one: a subclass of ``JsonCall``, where its tools take one object
of JSON arguments, or else of ``Adapter``; and the place where the framework runs a tool's body,
which makes the adapter and calls ``run`` or ``arun``. ``declare_foreign`` makes the declaration.
A line in ``OBJECT_DOORS`` (``govern/governed.py``) lets ``govern(tool)`` find the file by the
class of the tool object.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from agenttool_otel.call.drivers import arun, run
from agenttool_otel.call.envelope import outcome_of
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.runtime import Runtime, state_channel
from agenttool_otel.call.scheduling.gate import take_place
from agenttool_otel.call.target import Target
from agenttool_otel.call.tool import GovernedTool
from agenttool_otel.catalog import GovernOptions, ToolSource, declare
from agenttool_otel.context.context import current_context, current_mappings
from agenttool_otel.records import ExternalMapping
from agenttool_otel.values.policy_value import to_policy_value
from agenttool_otel.values.snapshot import snapshot


def declare_foreign(
    framework: str,
    name: str,
    *,
    description: str,
    schema: Mapping[str, Any],
    body: Callable[..., Any],
    is_async: bool = False,
    governor: Runtime | None = None,
    options: GovernOptions | None = None,
) -> GovernedTool:
    """Declare a tool of a framework.

    Args:
        framework: Name of the framework; the tool's namespace where ``options`` has none.
        name: The tool's name for the model.
        description: Its description for the model.
        schema: JSON Schema of its arguments.
        body: What runs when the tool is called.
        is_async: Whether ``body`` returns an awaitable.
        governor: The Governor; ``None`` for the default one.
        options: Facts of the tool, as the keywords of ``govern``.

    Raises:
        ConfigurationError: The facts contradict each other, or the schema is not one.
    """
    source = ToolSource(
        name=name,
        namespace=framework,
        description=description,
        schema=schema,
        is_async=is_async,
        mappings=(ExternalMapping(source=framework, tool_name=name),),
    )
    spec = declare(options or GovernOptions(), source)
    state_channel(spec, governor)
    return GovernedTool(spec, body, governor=governor, is_async=is_async, streams=False)


class Adapter(ABC):
    """One call of a framework's tool: binds its arguments, runs it if it may run, and returns what
    the framework expects.

    Args:
        tool: The tool, as it is declared.
        native_call_id: Id of the model's tool call; ``None`` for a call that no model made.
    """

    def __init__(self, tool: GovernedTool, native_call_id: str | None) -> None:
        self.runtime = tool.governor
        context = self.runtime.effective(current_context())
        self.call = Invocation(tool.spec, context, native_call_id=native_call_id)
        self.call.mappings = current_mappings()
        # among the calls of the same message of a model
        self.call.place = take_place()

    @abstractmethod
    def bind(self, call: Invocation) -> None:
        """Fill ``model_input``, ``bound``, ``call_args`` and ``call_kwargs`` from the arguments.

        Raises:
            TypeError, ValueError: The arguments don't fit; the call fails, and nothing runs.
        """

    @abstractmethod
    def rebind(self, call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Put arguments into the call that a hook, a policy or a person changed.

        Args:
            call: The call.
            before: The JSON arguments as they were.
            after: The JSON arguments that run.

        Raises:
            ValueError: The tool can't be called with them; the call fails, and nothing runs.
        """

    @abstractmethod
    def deliver(self, response: str | None) -> Any:
        """Return the outcome in the framework's form, or raise it.

        Args:
            response: A text that a person gave in place of the result; ``None`` without one.
        """

    def unwrap(self, value: Any) -> Any:
        """Return what a model sees of a return value: a message's content, of a message."""
        return value

    def run(self, body: Callable[..., Any]) -> Any:
        """Decide the call, run the body if it may run, and deliver."""
        target = Target(body, self.bind, self.rebind, unwrap=self.unwrap)
        return self.deliver(self.perform(target))

    async def arun(self, body: Callable[..., Any]) -> Any:
        """The same for a body that returns an awaitable."""
        target = Target(body, self.bind, self.rebind, is_async=True, unwrap=self.unwrap)
        return self.deliver(await self.aperform(target))

    def perform(self, target: Target) -> str | None:
        """Run the call; return the text that a person gave in place of its result."""
        run(self.call, self.runtime.pipeline.run(self.call, target))
        return None

    async def aperform(self, target: Target) -> str | None:
        """The same without blocking the event loop."""
        await arun(self.call, self.runtime.pipeline.run(self.call, target))
        return None


class JsonCall(Adapter):
    """One call of a tool whose body takes one object of JSON arguments: ``body({"path": "a"})``.

    A subclass that overrides nothing returns what the body returned, and raises ``ToolDenied`` and
    the other outcomes where it did not run. A framework with a refusal of its own overrides
    ``refusal``.

    Args:
        tool: The tool, as it is declared.
        arguments: What the model sent.
        native_call_id: Id of the model's tool call; ``None`` for a call that no model made.
    """

    def __init__(
        self,
        tool: GovernedTool,
        arguments: Mapping[str, Any],
        native_call_id: str | None = None,
    ) -> None:
        super().__init__(tool, native_call_id)
        self._arguments = arguments

    def bind(self, call: Invocation) -> None:
        """Show the policy a copy of the arguments; the body gets the same copy."""
        shown = to_policy_value(dict(self._arguments))
        if not isinstance(shown, dict):
            raise ValueError("the arguments are not an object")
        call.inputs.model_input = shown
        self._use(call, shown)

    def rebind(self, call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Give the body a copy of the changed arguments."""
        self._use(call, after)

    def _use(self, call: Invocation, arguments: dict[str, Any]) -> None:
        # a copy: a body that changes its arguments must not change the record of them
        copied = snapshot(arguments)
        call.inputs.bound = copied
        call.call_args = (copied,)

    def deliver(self, response: str | None) -> Any:
        """Return the result, redacted where the policy obliges to; raise what the body raised."""
        if self.call.exception is not None:
            raise self.call.exception
        if not self.call.ran:
            return self.refusal()
        return self.call.delivered

    def refusal(self) -> Any:
        """Return what the framework's model gets of a call that did not run; raised here."""
        raise outcome_of(self.call)
