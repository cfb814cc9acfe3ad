"""The door of agent-hooks 0.1: an interceptor that decides the tool calls of whatever host emits them.

A host asks at ``pre_tool_call``, runs a call that is allowed, and hands its result in at
``post_tool_call``. So each call is one of a custom tool (docs/asks.md): permitted here, run there.
A call that a person is asked about is a liftable denial; the same object is the resolver that lifts
it, once the approval store has an answer.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Final, NoReturn, cast

from agent_hooks import (
    ApprovalOutcome,
    ApprovalRequest,
    ApprovalResolution,
    Decision,
    Evidence,
    InterceptionPoint,
    Transform,
    Verdict,
)
from opentelemetry.context import attach, detach
from opentelemetry.trace import (
    NonRecordingSpan,
    SpanContext,
    TraceFlags,
    get_current_span,
    set_span_in_context,
)

from agenttool_otel.approvals.types import ApprovalAnswer, StoredCall
from agenttool_otel.call.runtime import default_runtime
from agenttool_otel.call.tool import GovernedTool, unknown_tool
from agenttool_otel.catalog import GovernOptions
from agenttool_otel.context.context import agent_context, native_call
from agenttool_otel.errors import ApprovalError
from agenttool_otel.govern.governor import Governor
from agenttool_otel.integrations.facts import options_for
from agenttool_otel.integrations.foreign import ForeignTool, foreign_tool
from agenttool_otel.names import ApprovalStatus, Ownership
from agenttool_otel.records import ToolResult

_SOURCE: Final = "agent_hooks"
_LIFTED_BY: Final = "agent_hooks:host"
"""Who answered a call that another resolver of the host's lifted: no name comes with it."""
_POLL_SECONDS: Final = 0.1
_MOST_TOOLS: Final = 1_000
_MOST_OPEN: Final = 10_000
_MOST_REQUESTS: Final = 1_000
_WITHHELD: Final = "[withheld]"
_ACTORS: Final = {"human": "user", "service": "service", "agent": "agent"}


class HookReason(StrEnum):
    """Why this door itself blocks, without a decision of the policy."""

    BUSY = "agenttool:too_many_open_calls"
    """Too many calls were permitted of which no result came."""
    REPEATED = "agenttool:call_id_in_use"
    """A call of this id was permitted, and its result has not come."""
    NOT_PERMITTED = "agenttool:not_permitted"
    """A result came of a call that was not permitted."""
    OTHER_ARGUMENTS = "agenttool:arguments_changed"
    """A call ran with other arguments than those that were permitted."""


@dataclass(slots=True)
class _Open:
    """A call that was permitted or is asked about, and has not ended.

    Attributes:
        invocation_id: its id here.
        given: the arguments that the host emitted.
        permitted: the arguments that may run; ``None`` while a person is asked.
    """

    invocation_id: str
    given: dict[str, Any]
    permitted: dict[str, Any] | None = None


Key = tuple[str, str]
"""The host's session and its id of the call."""


class AgentToolInterceptor:
    """An interceptor and an approval resolver: register it as both with a host's emitter.

    Args:
        governor: who decides; ``None`` for the default Governor.
        tools: JSON Schemas of the host's tools, by name. What the host states itself at
            ``agent_startup`` and ``pre_model_call`` is added; a call of any other name is denied.
        facts: facts of its tools, by name or glob.
        wait_seconds: how long the resolver waits for a person's answer. A host gives up after five
            seconds, unless it was configured otherwise.
    """

    def __init__(
        self,
        governor: Governor | None = None,
        *,
        tools: Mapping[str, Mapping[str, Any]] | None = None,
        facts: Mapping[str, GovernOptions] | None = None,
        wait_seconds: float = 4.0,
    ) -> None:
        self._given = governor
        self._facts = facts or {}
        self._wait_seconds = wait_seconds
        self._tools: dict[str, ForeignTool] = {}
        # names that were stated without a schema, which may still come
        self._bare: set[str] = set()
        self._open: dict[Key, _Open] = {}
        for name, schema in (tools or {}).items():
            self._declare(name, schema)

    @property
    def _governor(self) -> Governor:
        return self._given or cast(Governor, default_runtime())

    async def intercept(self, context: Mapping[str, Any], /) -> Verdict:
        """Decide a tool call, or take its result; other points are allowed.

        Args:
            context: what the host emits.
        """
        match context["interception_point"]:
            case InterceptionPoint.AGENT_STARTUP:
                for name in context["agent_init"]["tools_registered"]:
                    self._learn(name, None)
            case InterceptionPoint.PRE_MODEL_CALL:
                for stated in context.get("tools") or ():
                    self._learn(stated["name"], stated.get("schema"))
            case InterceptionPoint.PRE_TOOL_CALL:
                with _caller(context):
                    return await self._before(context)
            case InterceptionPoint.POST_TOOL_CALL:
                with _caller(context):
                    return await self._after(context)
            case InterceptionPoint.AGENT_SHUTDOWN:
                await self._end(context["session"]["id"])
        return Verdict.allow()

    # --- the host's tools -------------------------------------------------------------------------

    def _learn(self, name: str, schema: Mapping[str, Any] | None) -> None:
        if name in self._tools and (schema is None or name not in self._bare):
            return
        if len(self._tools) >= _MOST_TOOLS and name not in self._tools:
            return
        if schema is None:
            self._bare.add(name)
        else:
            self._bare.discard(name)
        self._declare(name, schema or {"type": "object"})

    def _declare(self, name: str, schema: Mapping[str, Any]) -> None:
        options = {**options_for(self._facts, name), "ownership": Ownership.CUSTOM.value}
        tool = foreign_tool(
            name,
            schema,
            source=_SOURCE,
            facts={name: cast(GovernOptions, options)},
            body=_runs_elsewhere,
            governor=self._governor,
        )
        tool.register()
        self._tools[name] = tool

    # --- before a call ----------------------------------------------------------------------------

    async def _before(self, context: Mapping[str, Any]) -> Verdict:
        key, given = _key(context), context["tool_call"]["args"]
        known = self._open.get(key)
        if known is None and len(self._open) >= _MOST_OPEN:
            return _blocked(HookReason.BUSY)
        if known is not None and known.permitted is not None:
            return _blocked(HookReason.REPEATED)
        name = context["tool_call"]["name"]
        tool = self._tools.get(name) or unknown_tool(name, self._governor, _SOURCE)
        if known is None:
            known = await asyncio.to_thread(self._asked_elsewhere, tool, key, given)
        if known is not None and known.given == given:
            return await self._go_on(key, known)
        with native_call(key[1]):
            result = await tool.ainvoke(given)
        return self._verdict(key, _Open(result.invocation_id, given), result)

    def _asked_elsewhere(self, tool: GovernedTool, key: Key, given: dict[str, Any]) -> _Open | None:
        """Return a call that another process asked about, by the host's id of it."""
        store = self._governor.approvals.store
        for status in (ApprovalStatus.PENDING, ApprovalStatus.APPROVED):
            for request in store.list(status, limit=_MOST_REQUESTS):
                if request.tool_id != tool.spec.tool_id:
                    continue
                if _is_same(store.stored_call(request.invocation_id), key, given):
                    return _Open(request.invocation_id, given)
        return None

    async def _go_on(self, key: Key, known: _Open) -> Verdict:
        """Decide a call again that was asked about."""
        result = await self._governor.aresume(known.invocation_id)
        return self._verdict(key, known, result)

    def _verdict(self, key: Key, call: _Open, result: ToolResult) -> Verdict:
        """Return what the host may do, and keep the call where it goes on."""
        action = result.requires_action or {}
        evidence = Evidence(verification_pointers={"agenttool.invocation.id": call.invocation_id})
        if action.get("type") == "tool_result":
            call.permitted = dict(action["arguments"])
            self._open[key] = call
            return _permit(call.given, call.permitted, evidence)
        self._open.pop(key, None)
        approval = None
        if action.get("type") == "tool_confirmation":
            self._open[key] = call
            approval = {"request_id": action["request_id"], "invocation_id": call.invocation_id}
        return Verdict(
            Decision.DENY,
            reason=_rule(result),
            message=result.summary,
            approval=approval,
            evidence=evidence,
        )

    # --- a person's answer ------------------------------------------------------------------------

    async def resolve(self, request: ApprovalRequest, /) -> ApprovalResolution:
        """Return a person's answer to a call that this interceptor asked about.

        Args:
            request: what the host asks.
        """
        identity = request.context_identity
        verdict = None
        if request.interception_point is InterceptionPoint.PRE_TOOL_CALL:
            with _caller(request.context):
                verdict = await self._answered(_key(request.context))
        if verdict is None:
            return ApprovalResolution(ApprovalOutcome.UNRESOLVED, identity)
        if verdict.decision.permits:
            return ApprovalResolution(ApprovalOutcome.APPROVE, identity, verdict)
        return ApprovalResolution(ApprovalOutcome.REJECT, identity, verdict)

    async def _answered(self, key: Key) -> Verdict | None:
        until = time.monotonic() + self._wait_seconds
        while (known := self._open.get(key)) is not None and known.permitted is None:
            stored = await asyncio.to_thread(self._stored, known.invocation_id)
            if stored is not None and stored.request.status is not ApprovalStatus.PENDING:
                verdict = await self._go_on(key, known)
                return None if verdict.is_liftable else verdict
            if time.monotonic() >= until:
                return None
            await asyncio.sleep(_POLL_SECONDS)
        return None

    def _stored(self, invocation_id: str) -> StoredCall | None:
        try:
            return self._governor.approvals.store.stored_call(invocation_id)
        except ApprovalError:
            # it expired and was cleared: nobody will answer
            return None

    # --- after a call -----------------------------------------------------------------------------

    async def _after(self, context: Mapping[str, Any]) -> Verdict:
        key = _key(context)
        call = self._open.get(key)
        if call is not None and call.permitted is None:
            await self._take_lifted(key, call)
        call = self._open.pop(key, None)
        if call is None or call.permitted is None:
            return _blocked(HookReason.NOT_PERMITTED)
        governor, given = self._governor, context["tool_result"]
        if context["tool_call"]["args"] != call.permitted:
            # {"path": "a"} was permitted, and an interceptor after this one made {"path": "/"} of it
            await governor.acomplete(call.invocation_id, error="it ran with other arguments")
            return _blocked(HookReason.OTHER_ARGUMENTS)
        value = given["value"]
        if given["is_error"]:
            await governor.acomplete(call.invocation_id, error=_text(value))
            return _shown(value, governor.clean(_text(value)))
        ended = await governor.acomplete(call.invocation_id, value)
        return _shown(value, ended.value)

    async def _take_lifted(self, key: Key, call: _Open) -> None:
        """Record that the host ran a call which a resolver of its own lifted."""
        stored = await asyncio.to_thread(self._stored, call.invocation_id)
        if stored is None:
            return
        if stored.request.status is ApprovalStatus.PENDING:
            answer = ApprovalAnswer(approved=True, answered_by=_LIFTED_BY)
            store = self._governor.approvals.store
            await asyncio.to_thread(store.answer, stored.request.request_id, answer)
        await self._go_on(key, call)

    async def _end(self, session: str) -> None:
        """End the calls of a session that were permitted and did not run."""
        for key in [key for key in self._open if key[0] == session]:
            call = self._open.pop(key)
            # what a person is asked about waits on, for a later process of the same session
            if call.permitted is not None:
                await self._governor.ainterrupt(call.invocation_id, "the host did not run it")


def _runs_elsewhere(arguments: Any) -> NoReturn:
    raise TypeError("the host runs this tool")


def _key(context: Mapping[str, Any]) -> Key:
    return context["session"]["id"], context["tool_call"]["id"]


def _is_same(stored: StoredCall, key: Key, given: dict[str, Any]) -> bool:
    if stored.original_arguments != given:
        return False
    return key == (stored.context.get("session_id"), stored.context.get("native_call_id"))


def _blocked(reason: HookReason) -> Verdict:
    return Verdict.deny(reason=reason.value)


def _permit(given: Any, permitted: Any, evidence: Evidence) -> Verdict:
    if given == permitted:
        return Verdict(Decision.ALLOW, evidence=evidence)
    changed = Transform("$target", permitted)
    return Verdict(Decision.TRANSFORM, transform=changed, evidence=evidence)


def _shown(value: Any, shown: Any) -> Verdict:
    """Return a verdict on a result, of which a policy may have withheld a part."""
    if value == shown or (shown is None and value in ("", None)):
        return Verdict.allow()
    # the SDK drops a transform to null
    replaced = _WITHHELD if shown is None else shown
    return Verdict(Decision.TRANSFORM, transform=Transform("$target", replaced))


def _rule(result: ToolResult) -> str:
    reason = (result.permission or {}).get("reason") or {}
    rule = str(reason.get("rule_ref") or "")
    if rule and not rule.startswith("host_error:"):
        return rule
    return f"agenttool:{result.error.error_class if result.error else result.status}"


def _text(value: Any) -> str:
    return value if isinstance(value, str) else str(value)


@contextmanager
def _caller(context: Mapping[str, Any]) -> Iterator[None]:
    """Set who calls, and the host's span where none is current."""
    agent, actor = context["agent"], context.get("actor") or {}
    who = actor.get("id")
    if who is not None and actor.get("kind") in _ACTORS:
        who = f"{_ACTORS[actor['kind']]}:{who}"
    token = attach(_parent(context.get("trace") or {}))
    try:
        with agent_context(
            session_id=context["session"]["id"],
            agent_name=agent.get("name") or agent["id"],
            actor=who,
            tenant=(context.get("tenant") or {}).get("id"),
        ):
            yield
    finally:
        detach(token)


def _parent(trace: Mapping[str, Any]) -> Any:
    current = get_current_span()
    if current.get_span_context().is_valid:
        return set_span_in_context(current)
    try:
        ids = int(str(trace.get("trace_id")), 16), int(str(trace.get("span_id")), 16)
    except ValueError:
        # a host with ids of its own form
        return set_span_in_context(current)
    remote = SpanContext(*ids, is_remote=True, trace_flags=TraceFlags(TraceFlags.SAMPLED))
    return set_span_in_context(NonRecordingSpan(remote))
