"""The contract between this package and a framework: one call of a framework's tool, governed.

What brings calls from a framework or protocol into this package is a door. A door is one file, here
or in a distribution of its own: ``foreign_tool`` declares each tool, and the place where the
framework runs a tool's body makes a ``ForeignCall`` and calls ``run`` or ``arun``. The entry point
group ``agenttool_otel.doors`` lets ``govern(tool)`` find a door by the class of the tool object, as
a line in ``OBJECT_DOORS`` (``govern/governed.py``) does for a door in this package. docs/doors.md
is the guide, ``agenttool_otel.testing.doors`` the test of a door.

``Adapter`` is for a framework that does not call tools with one object of JSON arguments.
"""

from __future__ import annotations

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NoReturn, Self, cast

from agenttool_otel.call.binding import PlainArguments, json_values
from agenttool_otel.call.drivers import arun, run
from agenttool_otel.call.envelope import outcome_of, to_result
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.resume import continue_stored
from agenttool_otel.call.runtime import Runtime, state_channel
from agenttool_otel.call.scheduling.gate import take_place
from agenttool_otel.call.straight.way import StraightWay
from agenttool_otel.call.target import Target
from agenttool_otel.call.tool import GovernedTool, refused_tool
from agenttool_otel.catalog import GovernOptions, ToolSource, declare
from agenttool_otel.catalog.identity import spelt
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.context.context import current_context, current_mappings
from agenttool_otel.errors import ApprovalConflict, ConfigurationError
from agenttool_otel.integrations.facts import options_for
from agenttool_otel.records import ExternalMapping, ToolResult
from agenttool_otel.redaction import Redactor
from agenttool_otel.telemetry.telemetry import asking_span
from agenttool_otel.values.policy_value import to_policy_value
from agenttool_otel.values.snapshot import snapshot

if TYPE_CHECKING:
    from opentelemetry.trace import Link

    from agenttool_otel.approvals.types import ApprovalAnswer
    from agenttool_otel.call.straight.call import FrameworkCall, StraightCall

_logger = logging.getLogger("agenttool_otel.doors")

_SHORT: Final = 64
_OWN_ATTRIBUTES: Final = ("agenttool.", "gen_ai.", "error.")
"""Beginnings of the names of span attributes that are this package's to set."""


def foreign_tool(
    name: str,
    schema: Mapping[str, Any],
    *,
    source: str,
    server: str = "",
    description: str = "",
    facts: Mapping[str, GovernOptions] | None = None,
    body: Callable[..., Any] | None = None,
    is_async: bool = False,
    governor: Runtime | None = None,
) -> ForeignTool:
    """Declare a tool of a framework or protocol, one of a list perhaps.

    A tool that can't be declared, because its schema is none or the facts stated of it contradict
    it, is refused: each of its calls is denied with the reason, and the other tools of the list are
    not affected.

    Args:
        name: The tool's name for the model.
        schema: JSON Schema of its arguments.
        source: Name of the framework or protocol, such as ``mcp``; the tool's namespace.
        server: The server that the tool is from; a part of its namespace.
        description: Its description for the model; its name where not given.
        facts: Facts of tools by name or glob: ``{"read_*": {"read_only": True}}``.
        body: What ``tool.invoke``, a batch and a resume in another process run, with one object of
            arguments. Without it only a ``ForeignCall`` runs the tool.
        is_async: Whether ``body`` returns an awaitable.
        governor: The Governor; ``None`` for the default one.
    """
    namespace = f"{spelt(source)}.{spelt(server)}" if server else spelt(source)
    try:
        return declare_foreign(
            source,
            name,
            description=description or name,
            schema=schema,
            body=body or _no_body,
            is_async=is_async,
            governor=governor,
            options=cast(GovernOptions, {"namespace": namespace, **options_for(facts or {}, name)}),
        )
    except ConfigurationError as error:
        _logger.error("every call of the tool %s of %s is refused: %s", name, namespace, error)
        stand_in = refused_tool(name, governor, str(error), namespace)
        return ForeignTool(
            stand_in.spec, stand_in.function, governor=governor, is_async=is_async, streams=False
        )


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
) -> ForeignTool:
    """Declare a tool of a framework, or raise: what ``govern(tool)`` of a single tool does.

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
    return ForeignTool(spec, body, governor=governor, is_async=is_async, streams=False)


class ForeignTool(GovernedTool):
    """A tool of a framework: its body takes one object of JSON arguments."""

    __slots__ = ("_ways",)

    def __init__(
        self,
        spec: ToolSpec,
        function: Callable[..., Any],
        *,
        governor: Runtime | None,
        is_async: bool,
        streams: bool,
    ) -> None:
        super().__init__(spec, function, governor=governor, is_async=is_async, streams=streams)
        # whichever way the tool is declared, a door may await a call's body or run it
        self._ways = {each: StraightWay(spec, is_async=each) for each in (False, True)}

    def straight_way(self, *, is_async: bool) -> StraightWay:
        """Return the straight way of its ordinary calls.

        Args:
            is_async: Whether their bodies return an awaitable.
        """
        return self._ways[is_async]

    def json_target(self, *, preflight: bool = False) -> Target:
        """Return what a call runs that no ``ForeignCall`` makes: of a batch, or resumed elsewhere."""
        bind = _bind_object
        if self.function is _no_body and not preflight:
            bind = _refuse_to_bind
        return Target(self.function, bind, _use_changed, is_async=self.is_async)

    def register(self) -> None:
        """Make the tool known to its Governor; one that is refused is in no catalog."""
        if not self.spec.refusal:
            super().register()

    def visible(self) -> bool:
        """Return whether a model may be shown the tool: whether it is on the surface in force, or
        without one on that of the whole catalog.

        A tool that is refused, or that is not registered, is on none.
        """
        from agenttool_otel.govern.discovery import Discovery

        governor = self.governor
        if not isinstance(governor, Discovery):
            return False
        return governor.surfaces.in_force().holds(self.spec.tool_id)

    def answer(self, ref: str, answer: ApprovalAnswer) -> ToolResult | None:
        """Store a person's answer to a call that waits, given in the framework's own dialog.

        Args:
            ref: The invocation id of the call.
            answer: The answer.

        Returns:
            The result of a rejected call, which ends here: a framework does not make it again.
            ``None`` of an approved one, which ``ForeignCall.resume`` goes on with.

        Raises:
            ApprovalError: No such call waits, or it can't be answered any more.
        """
        stored = self.governor.approvals.waiting(ref)
        self.governor.approvals.store.answer(stored.request.request_id, answer)
        if answer.approved:
            return None
        rejected = ForeignCall(self, None).resume(ref)
        rejected.perform(Target(_no_body, rejected.bind, rejected.rebind))
        return rejected.result


def _no_body(arguments: Any) -> NoReturn:
    """Stand for the body of a tool that only its framework can run."""
    raise TypeError("only the framework of this tool can run it")


def _refuse_to_bind(call: Invocation) -> None:
    # before anything is decided or claimed: an approval stays unused
    raise TypeError(f"{call.spec.name} runs only where its framework calls it")


def _bind_object(call: Invocation) -> None:
    # an approval is for the arguments that were asked about, in whatever process
    given = call.call_kwargs if call.ticket is None else call.ticket.original_arguments
    _show(call, given)


def _show(call: Invocation, arguments: Any) -> None:
    """Show the policy a copy of the arguments; the body gets another copy of the same."""
    shown = to_policy_value(arguments)
    if not isinstance(shown, dict):
        raise TypeError("the arguments are no JSON object")
    call.inputs.model_input = shown
    _use(call, shown)


def _use(call: Invocation, arguments: dict[str, Any]) -> None:
    # a copy: a body that changes its arguments must not change the record of them
    copied = snapshot(arguments)
    call.inputs.bound = copied
    call.call_args = (copied,)
    call.call_kwargs = {}


def _use_changed(call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
    _use(call, after)


def read_arguments(text: str) -> dict[str, Any]:
    """Read arguments as a model writes them; an empty text stands for no arguments.

    Args:
        text: JSON.

    Raises:
        TypeError: It is no JSON object; the message holds nothing of the text.
    """
    if not text.strip():
        return {}
    try:
        read = json.loads(text, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise TypeError(
            f"the arguments are no JSON: {error.msg} at character {error.pos}"
        ) from None
    except (ValueError, RecursionError):
        raise TypeError("the arguments are no JSON that can be read") from None
    if not isinstance(read, dict):
        raise TypeError("the arguments are no JSON object")
    return read


def _refuse_constant(word: str) -> NoReturn:
    # NaN and Infinity, which Python reads and JSON does not have
    raise ValueError(word)


class Adapter(ABC):
    """One call of a framework's tool: binds its arguments, runs it if it may run, and returns what
    the framework expects.

    Args:
        tool: The tool, as it is declared.
        native_call_id: Id of the model's tool call; ``None`` for a call that no model made.
    """

    def __init__(self, tool: GovernedTool, native_call_id: str | None) -> None:
        self.runtime = tool.governor
        self.spec = tool.spec
        self.context = self.runtime.effective(current_context())
        self.native_call_id = native_call_id
        self.mappings = current_mappings()
        # among the calls of the same message of a model
        self.place = take_place()
        self._made: Invocation | None = None

    @property
    def call(self) -> Invocation:
        """The call as data, made when it is first looked at."""
        if self._made is None:
            self._made = self._make()
        return self._made

    def _make(self) -> Invocation:
        return Invocation(
            self.spec,
            self.context,
            native_call_id=self.native_call_id,
            mappings=self.mappings,
            place=self.place,
        )

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
        self._arguments: Any = arguments

    def bind(self, call: Invocation) -> None:
        """Show the policy a copy of the arguments; the body gets the same copy."""
        _show(call, dict(self._arguments))

    def rebind(self, call: Invocation, before: dict[str, Any], after: dict[str, Any]) -> None:
        """Give the body a copy of the changed arguments."""
        _use(call, after)

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


def _reads_as_it_binds(door: type[ForeignCall]) -> bool:
    """Return whether a door that binds in a way of its own has ``plain_arguments`` of its own, too."""
    for kind in door.__mro__:
        if "plain_arguments" in vars(kind):
            return True
        if "bind" in vars(kind):
            return False
    return False


class ForeignCall(JsonCall):
    """One call that a framework or protocol makes: what a door subclasses.

    A door whose results are objects of its framework overrides ``unwrap`` and ``put``, which take
    out of a result what a model sees and put it back; one that answers a model with refusals, and
    does not raise them, overrides ``refusal``.

    Args:
        tool: The tool, from ``foreign_tool``.
        arguments: What the model sent, as an object or as its JSON text. Text that is no JSON
            object ends the call with a span and ``ToolInputInvalid``. ``None`` for a call that is
            resumed with the arguments that were asked about.
        native_call_id: Id of the model's tool call; ``None`` for a call that no model made.
        attributes: Span attributes of the door, such as ``{"mcp.method.name": "tools/call"}``: on
            the spans of denied and asked calls, too. Texts are redacted; names that begin with
            ``agenttool.``, ``gen_ai.`` or ``error.`` are left out.
    """

    def __init__(
        self,
        tool: GovernedTool,
        arguments: Mapping[str, Any] | str | None,
        native_call_id: str | None = None,
        *,
        attributes: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(tool, {}, native_call_id)
        self._arguments = arguments
        self._asked_in: tuple[Link, ...] = ()
        self._seen: Any = None
        self._attributes = _clean(attributes, self.runtime) if attributes else None
        self._straight_way = tool.straight_way if isinstance(tool, ForeignTool) else None
        self._straight: StraightCall | None = None

    def _make(self) -> Invocation:
        if self._straight is None:
            call = super()._make()
            call.native_attributes = self._attributes
            return call
        if self._straight.has_ended:
            return self._straight.ended()
        return self._straight.whole

    @property
    def went_straight(self) -> bool:
        """Whether it ran as it was given, and its result is what the body returned."""
        return self._straight is not None and self._straight.has_ended

    @property
    def result(self) -> ToolResult:
        """The call's envelope, once it ended or waits."""
        return to_result(self.call)

    def put(self, value: Any, shown: Any) -> Any:
        """Return the body's return value with another content in it: what a policy obliged to
        redact, or a preview of what is too large. Only called where the content is another.

        Args:
            value: What the body returned.
            shown: What takes the place of what ``unwrap`` took out of it.
        """
        return shown

    def resume(self, ref: str) -> Self:
        """Go on with a call that was asked about, in this process or another, instead of asking
        again; then ``run`` it. Reads the approval store, which may block.

        Arguments other than those that were approved are refused when it runs.

        Args:
            ref: Its invocation id.

        Raises:
            ApprovalNotFound: No such call waits.
            ApprovalConflict: It is a call of another tool.
            ApprovalStoreError: The store can't be read.
        """
        stored = self.runtime.approvals.waiting(ref)
        if stored.request.tool_id != self.call.spec.tool_id:
            raise ApprovalConflict(f"{ref} is no call of {self.call.spec.name}")
        if self._arguments is None:
            self._arguments = stored.original_arguments
        if self.call.native_call_id is None:
            self.call.native_call_id = stored.context.get("native_call_id")
        continue_stored(self.call, stored)
        self.call.is_attempt = True
        self._asked_in = asking_span(stored.context)
        return self

    def bind(self, call: Invocation) -> None:
        """Read the arguments, and show the policy a copy of them."""
        _show(call, self._read())

    def perform(self, target: Target) -> str | None:
        """Run the call; return the text that a person gave in place of its result."""
        begun = self._begin(target)
        if begun is not None:
            begun.run()
            return None
        target.unwrap = self._take_out
        run(self.call, self.runtime.pipeline.run(self.call, target, self._asked_in))
        return None

    async def aperform(self, target: Target) -> str | None:
        """The same without blocking the event loop."""
        begun = self._begin(target)
        if begun is not None:
            await begun.arun()
            return None
        target.unwrap = self._take_out
        await arun(self.call, self.runtime.pipeline.run(self.call, target, self._asked_in))
        return None

    def _begin(self, target: Target) -> StraightCall | None:
        """Begin an ordinary call that goes straight; ``None`` for any other, and for one that its door
        has looked at: it may have changed it.
        """
        self._straight = None  # of an earlier run
        if self._made is not None or self.place is not None or self._straight_way is None:
            return None
        if not _reads_as_it_binds(type(self)):
            return None
        if target.streams or target.collects or target.in_thread:
            return None
        way = self._straight_way(is_async=target.is_async)
        if not way.is_open(self.runtime, self.context):
            return None
        foreign = self._framework_call()
        if foreign is None:
            return None
        begun, established = way.begin(
            self.runtime, target.function, (foreign.given.bound,), {}, foreign
        )
        if established is not None:
            self.call.established = established
        self._straight = begun
        if begun is not None:
            self._made = None  # another thread has looked at it while it was decided
        return begun

    def _framework_call(self) -> FrameworkCall | None:
        from agenttool_otel.call.straight.call import FrameworkCall

        try:
            given = self.plain_arguments()
            if given is None or not self.spec.check.is_valid(given.shown):
                return None
        except Exception:
            return None  # what is wrong with the arguments is the pipeline's to report
        return FrameworkCall(
            given,
            given.shown,
            self.native_call_id,
            self._take_out,
            self._take_whole,
            context=self.context,
            validated=False,
            attributes=self._attributes,
            mappings=self.mappings,
        )

    def plain_arguments(self) -> PlainArguments | None:
        """Return what ``bind`` would show, and what it would give to the body; ``None`` where not all
        of it can be shown, and the call takes the longer way.

        A subclass that binds in a way of its own overrides this, too, or none of its calls goes
        straight.
        """
        return json_values(self._read())

    def _read(self) -> dict[str, Any]:
        given = self._arguments
        if isinstance(given, str):
            given = read_arguments(given)
        if not isinstance(given, Mapping):
            raise TypeError("the arguments are no JSON object")
        return dict(given)

    def _take_whole(self, call: Invocation) -> None:
        # the pipeline has settled it
        self._made = call

    def _take_out(self, value: Any) -> Any:
        # kept: unwrap may make another object each time that it is called
        self._seen = self.unwrap(value)
        return self._seen

    def deliver(self, response: str | None) -> Any:
        """Return the result in the framework's form, with what the policy obliged in it; raise
        what the body raised.
        """
        if self._straight is not None and self._straight.has_ended:
            return self._straight.value
        if self.call.exception is not None:
            raise self.call.exception
        if not self.call.ran:
            return self.refusal()
        shown = self.call.model_value
        return self.call.value if shown is self._seen else self.put(self.call.value, shown)


def _clean_text(text: str, runtime: Runtime) -> str:
    return runtime.clean(text) if len(text) > _SHORT else _clean_short(runtime.redactor, text)


@lru_cache(maxsize=256)
def _clean_short(redactor: Redactor, text: str) -> str:
    # "tools/call", "2025-11-25": the same in each call of a connection
    value = redactor.redact_text(text).value
    return value if isinstance(value, str) else ""


def _clean(attributes: Mapping[str, Any], runtime: Runtime) -> dict[str, Any]:
    """Return the attributes of a door that may be on a span, their texts redacted."""
    clean: dict[str, Any] = {}
    for name, value in attributes.items():
        if name.startswith(_OWN_ATTRIBUTES):
            continue
        if isinstance(value, str):
            clean[name] = _clean_text(value, runtime)[
                : runtime.telemetry.settings.max_attribute_chars
            ]
        elif isinstance(value, (bool, int, float)):
            clean[name] = value
        elif isinstance(value, Sequence) and all(isinstance(part, str) for part in value):
            clean[name] = [runtime.clean(part) for part in value]
    return clean
