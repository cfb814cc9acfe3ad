"""Asking inside LangGraph: an ask pauses the graph, the answer comes with ``Command(resume=...)`` or from the store.

LangGraph runs a paused node again from its top, so a call is met again and has to be known again: its invocation id is
derived from the thread, the task, the tool call id and the arguments. What was asked stays asked (a policy that says
allow the second time lifts nothing), a deny still wins, other arguments are another invocation, and the store lets an
approved call run once. The interrupt is LangChain's ``tool_approval``; it is answered with
``Command(resume={"type": "approve"})``, ``{"type": "reject", "message": ...}``,
``{"type": "edit", "edited_action": {"name": ..., "args": {...}}}`` or ``{"type": "respond", "message": ...}``, by
interrupt id where several wait. Any other value answers nothing: then the answer in the store counts, if there is one.

Who answers is what the host says in ``config["configurable"]``: ``agenttool_answered_by`` and
``agenttool_answerer_roles``. A host that lets clients fill ``configurable`` has to overwrite these two.

Without a checkpointer nothing can be waited for: the model is told that an approval was needed, and the request stays
in the store, where ``resume(invocation_id)`` of this process can still use it.

A call runs once in its task. Where LangGraph runs a whole task again after one of its calls was approved and ran (a
ToolNode that gets several calls at once, without ``Send``), this process repeats that call's result instead of running
it; another process refuses it.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import threading
import weakref
from collections import OrderedDict
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from langgraph.errors import GraphBubbleUp, GraphInterrupt

from agenttool_otel.approvals.types import (
    ApprovalAnswer,
    ApprovalRequest,
    Claim,
    ClaimBinding,
    Grant,
    GrantQuery,
    StoredCall,
)
from agenttool_otel.drivers import arun, run
from agenttool_otel.effects import Asks, Decides
from agenttool_otel.errors import ApprovalError
from agenttool_otel.integrations.langgraph_task import APPROVAL_TYPE, GraphTask
from agenttool_otel.invocation import Invocation
from agenttool_otel.names import (
    ApprovalStatus,
    FailClosedCause,
    Outcome,
    ResultStatus,
)
from agenttool_otel.pipeline import Target
from agenttool_otel.pipeline.endings import fail_closed
from agenttool_otel.policy.types import PolicyInput, Verdict
from agenttool_otel.records.values import digest
from agenttool_otel.resume import asking_context, asking_span

if TYPE_CHECKING:
    from agenttool_otel.governor import Governor

__all__ = ["ANSWERED_BY", "ANSWERER_ROLES", "arun_call", "run_call"]

ANSWERED_BY: Final = "agenttool_answered_by"
"""Key of ``config["configurable"]``: id of the authenticated person whose answer ``Command(resume=...)`` carries."""

ANSWERER_ROLES: Final = "agenttool_answerer_roles"
"""Key of ``config["configurable"]``: that person's roles."""

_ANSWERER: Final = "langgraph:resume"
_TASK: Final = "langgraph_task"
_MAX_KEPT: Final = 256
_logger = logging.getLogger("agenttool_otel.langgraph")


def run_call(call: Invocation, target: Target, governor: Governor) -> str | None:
    """Run a framework's call; inside a graph that can wait, an ask pauses the graph.

    Args:
        call: the call, planned.
        target: what it runs.
        governor: the Governor.

    Returns:
        What the answerer said to give the model instead of a result, if anything; the call says everything else.
    """
    door = _Door.open(call, target, governor)
    if door is None:
        run(call, governor.pipeline.run(call, target), governor)
        return None
    with door.task.inside():
        if door.unsettled:
            try:
                door.task.look()
                door.task.strike()
            except Exception as error:
                door.unread(error)
            door.settle()
        if not door.find():
            run(call, governor.pipeline.run(call, door.target, door.links), door)
            if door.pauses:
                door.task.wait()
            door.leave()
    return door.said


async def arun_call(call: Invocation, target: Target, governor: Governor) -> str | None:
    """The same without blocking the event loop.

    Args:
        call: the call, planned.
        target: what it runs.
        governor: the Governor.

    Returns:
        What the answerer said to give the model instead of a result, if anything.
    """
    door = _Door.open(call, target, governor)
    if door is None:
        await arun(call, governor.pipeline.run(call, target), governor)
        return None
    with door.task.inside():
        if door.unsettled:
            try:
                await door.task.alook()
                await door.task.astrike()
            except Exception as error:
                door.unread(error)
            await asyncio.to_thread(door.settle)
        if not await asyncio.to_thread(door.find):
            await arun(call, governor.pipeline.run(call, door.target, door.links), door)
            if door.pauses:
                await door.task.await_others()
            door.leave()
    return door.said


class _Kept:
    """What one Governor remembers of the calls of this process; forgetting it costs a repetition, never a decision."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[str, Any] = OrderedDict()

    def put(self, key: str, value: Any) -> None:
        with self._lock:
            self._entries[key] = value
            if len(self._entries) > _MAX_KEPT:
                self._entries.popitem(last=False)

    def get(self, key: str) -> Any:
        with self._lock:
            return self._entries.get(key)


_kept: weakref.WeakKeyDictionary[Governor, _Kept] = weakref.WeakKeyDictionary()


class _Door:
    """One call inside a graph that can wait. It is also what the call's effects are performed with."""

    __slots__ = ("_given", "_rebind", "_stored", "approvals", "call", "decider", "governor", "kept", "links",
                 "said", "target", "task")  # fmt: skip

    def __init__(self, call: Invocation, target: Target, governor: Governor, task: GraphTask) -> None:
        self.call = call
        self.governor = governor
        self.task = task
        self.target = target
        self.links: tuple[Any, ...] = ()
        self.said: str | None = None
        self.kept = _kept.setdefault(governor, _Kept())
        self.decider: Decides = governor.decider
        self.approvals: Asks = _GraphApprovals(governor, call, _task_digest(task))
        self._stored: StoredCall | None = None
        self._given, self._rebind = target.bind, target.rebind

    @classmethod
    def open(cls, call: Invocation, target: Target, governor: Governor) -> _Door | None:
        """Return the door of a call whose ask could be waited for, with its invocation id; else ``None``."""
        task = GraphTask.current()
        if task is None:
            return None
        try:
            target.bind(call)
            arguments = digest(call.observable_input if call.validated else call.model_input)
        except Exception:
            return None  # the pipeline says what is wrong with the arguments
        alike = json.dumps([call.native_call_id, call.spec.tool_id, arguments])
        place = [task.thread_id, task.namespace, alike, task.occurrence(alike)]
        call.id = "inv_" + hashlib.sha256(json.dumps(place).encode()).hexdigest()[:32]
        return cls(call, target, governor, task)

    # --- the answer --------------------------------------------------------------------------------------------------

    @property
    def unsettled(self) -> bool:
        """Whether an answer may have come with the resume that nobody has looked at."""
        return not self.task.state.settled and self.task.answered

    def unread(self, error: Exception) -> None:
        """Leave a resume value alone when it can't be told whose it is: what was asked is asked again."""
        self.task.state.shown = None
        _logger.warning("the checkpoint could not be read: %s; nothing is approved by this", type(error).__name__)

    def settle(self) -> None:
        """Put the answer that came with the resume into the store, once for the whole task."""
        state = self.task.state
        with state.lock:
            if state.settled:
                return
            state.settled = True
            taken = self.task.take()
            if taken is None:
                return
            shown, value = taken
            request_id = str(shown["request_id"])
            answer, said = _answer_of(value, str(shown.get("name")), self.task.configurable)
            if answer is None:
                return
            store = self.governor.approvals.store
            try:
                if store.stored_call(request_id).context.get(_TASK) != _task_digest(self.task):
                    _logger.warning("an answer was given to a request of another task; it is not taken")
                    return
                store.answer(request_id, answer)
            except ApprovalError as error:
                _logger.warning("the answer could not be taken: %s", type(error).__name__)
                return
            if said is not None:
                self.kept.put(request_id, said)

    def find(self) -> bool:
        """Look whether this invocation was met before, and prepare the call to go on with it.

        Returns:
            Whether the call is over already, because it has run and its result is at hand.
        """
        call, store = self.call, self.governor.approvals.store
        try:
            request = store.by_invocation(call.id)
            if request is None:
                return False
            if request.status is ApprovalStatus.CONSUMED:
                if self._repeat():
                    return True
                if request.outcome is None:
                    store.recover()  # if its process is gone, the question is asked again
            self._go_on(store.stored_call(call.id))
        except ApprovalError as error:
            # whether somebody was asked before can't be told, so nobody's policy may answer in their place
            self.decider = _Refusing(f"the approval store can't be read: {type(error).__name__}")
        return False

    def _repeat(self) -> bool:
        done = self.kept.get(self.call.id)
        if done is None:
            return False
        call = self.call
        call.value, call.delivered, call.preview, call.verdict = done
        return True

    def _go_on(self, stored: StoredCall) -> None:
        call, request = self.call, stored.request
        call.context = asking_context(stored.context)
        call.resumed = True
        call.request, call.ticket = request, stored
        self.links = asking_span(stored.context)
        self._stored = stored
        self.target = replace(self.target, bind=self._bind)
        if request.status is ApprovalStatus.REJECTED:
            self.said = self.kept.get(request.request_id)

    def _bind(self, call: Invocation) -> None:
        """Bind what was asked about: a hook may have changed it before the question."""
        self._given(call)
        asked = self._stored.original_arguments if self._stored is not None else {}
        seen = call.observable_input if call.validated else call.model_input
        if asked == seen:
            return
        self._rebind(call, seen, asked)
        if call.validated:
            call.observable_input = asked
        else:
            call.model_input = asked

    # --- the end -----------------------------------------------------------------------------------------------------

    @property
    def pauses(self) -> bool:
        """Whether the call waits for an answer, and not for one of the tool's own."""
        call = self.call
        return call.outcome is Outcome.PENDING and call.exception is None and call.request is not None

    def leave(self) -> None:
        """Pause the graph if the call waits; keep the result of an approved run for a repetition of its task."""
        call = self.call
        if self.pauses and call.request is not None:
            call.exception = self.task.pause(_question(call, call.request))
        elif call.claim is not None and call.ran:
            self.kept.put(call.id, (call.value, call.delivered, call.preview, call.verdict))
        if call.outcome is not Outcome.PENDING:
            self.governor.pipeline.paused.take(call.id)


class _GraphApprovals:
    """The Governor's way of a question, for a call that LangGraph may run again."""

    __slots__ = ("_call", "_inner", "_task")

    def __init__(self, governor: Governor, call: Invocation, task: str) -> None:
        self._inner = governor.approvals
        self._call = call
        self._task = task

    def ask(
        self, request: ApprovalRequest, arguments: dict[str, Any], context: dict[str, Any]
    ) -> ApprovalAnswer | None:
        """Store the request with the task it belongs to, and ask in place if somebody can be asked."""
        return self._inner.ask(request, arguments, {**context, _TASK: self._task})

    async def aask(
        self, request: ApprovalRequest, arguments: dict[str, Any], context: dict[str, Any]
    ) -> ApprovalAnswer | None:
        """The same without blocking the event loop."""
        return await self._inner.aask(request, arguments, {**context, _TASK: self._task})

    def find_grant(self, wanted: GrantQuery) -> Grant | None:
        """Find a remembered approval."""
        return self._inner.find_grant(wanted)

    def use_grant(self, grant: Grant, wanted: GrantQuery, *, invocation_id: str, policy_revision: str) -> bool:
        """Record that it is used."""
        return self._inner.use_grant(grant, wanted, invocation_id=invocation_id, policy_revision=policy_revision)

    def claim(
        self, request_id: str, binding: ClaimBinding, *, args_digest: str, revision: str, declaration_digest: str
    ) -> Claim:
        """Take the right to run."""
        return self._inner.claim(
            request_id, binding, args_digest=args_digest, revision=revision, declaration_digest=declaration_digest
        )

    async def aclaim(
        self, request_id: str, binding: ClaimBinding, *, args_digest: str, revision: str, declaration_digest: str
    ) -> Claim:
        """Take the right to run without blocking the event loop."""
        return await self._inner.aclaim(
            request_id, binding, args_digest=args_digest, revision=revision, declaration_digest=declaration_digest
        )

    def finish(self, claim: Claim, outcome: ResultStatus) -> None:
        """Record how the run ended; a tool that paused itself has not ended, and its approval waits with it."""
        signal = self._call.exception
        if isinstance(signal, GraphInterrupt):
            try:
                self._inner.store.release(claim)
            except ApprovalError as error:
                _logger.warning("a paused run could not be given back: %s", type(error).__name__)
            return
        self._inner.finish(claim, ResultStatus.SUCCEEDED if isinstance(signal, GraphBubbleUp) else outcome)


class _Refusing:
    """A decider for a call of which it can't be told whether somebody was asked already."""

    def __init__(self, message: str) -> None:
        self._message = message

    def decide(self, document: PolicyInput) -> Verdict:
        """Deny."""
        return fail_closed(self._message, FailClosedCause.UNAVAILABLE)

    async def adecide(self, document: PolicyInput) -> Verdict:
        """Deny."""
        return self.decide(document)


def _task_digest(task: GraphTask) -> str:
    return digest([task.thread_id, task.namespace])


def _question(call: Invocation, request: ApprovalRequest) -> dict[str, Any]:
    """Make the interrupt value: LangChain's shape, with what our store and page know beside it; nothing unredacted."""
    return {
        "type": APPROVAL_TYPE,
        "tool_call_id": call.native_call_id or "",
        "name": request.tool_name,
        "args": request.arguments_preview,
        "description": request.message or f"{request.tool_name} needs an approval",
        "request_id": request.request_id,
        "invocation_id": request.invocation_id,
        "rule": request.rule_ref,
        "alternatives": list(request.alternatives),
        "expires_at": request.expires_at.isoformat() if request.expires_at is not None else None,
    }


def _answer_of(value: Any, tool: str, configurable: dict[str, Any]) -> tuple[ApprovalAnswer | None, str | None]:
    """Read a resume value; only what is plainly an answer is one.

    Returns:
        The answer, and what the answerer wants the model to be given instead of a result.
    """
    if isinstance(value, dict) and isinstance(value.get("decisions"), list) and len(value["decisions"]) == 1:
        value = value["decisions"][0]
    if not isinstance(value, dict):
        return None, None
    by = configurable.get(ANSWERED_BY)
    roles = configurable.get(ANSWERER_ROLES)
    who: dict[str, Any] = {
        "answered_by": by if isinstance(by, str) and by else _ANSWERER,
        "roles": tuple(role for role in roles if isinstance(role, str)) if isinstance(roles, (list, tuple)) else (),
    }
    message = value.get("message")
    reason = message if isinstance(message, str) else ""
    match value.get("type"):
        case "approve":
            return ApprovalAnswer(approved=True, reason=reason, **who), None
        case "reject":
            return ApprovalAnswer(approved=False, reason=reason, **who), None
        case "respond" if reason:
            return ApprovalAnswer(approved=False, reason=reason, **who), reason
        case "edit":
            action = value.get("edited_action")
            if isinstance(action, dict) and action.get("name") == tool and isinstance(action.get("args"), dict):
                return ApprovalAnswer(approved=True, reason=reason, edited_input=dict(action["args"]), **who), None
    return None, None
