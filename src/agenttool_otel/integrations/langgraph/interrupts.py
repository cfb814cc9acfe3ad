"""Asking inside LangGraph: an ask pauses the graph, the answer comes with ``Command(resume=...)`` or from the store.

LangGraph runs a paused node again from its top, so a call is met again and has to be known again: its invocation id is
derived from the thread, the task, the tool call id and the arguments. What was asked stays asked (a policy that says
allow the second time lifts nothing), a deny still wins, other arguments are another invocation, and the store lets an
approved call run once. The interrupt is LangChain's ``tool_approval``; it is answered with
``Command(resume={"type": "approve"})``, ``{"type": "reject", "message": ...}``,
``{"type": "edit", "edited_action": {"name": ..., "args": {...}}}`` or ``{"type": "respond", "message": ...}``, by
interrupt id where several wait; with ``"remember": n``, an approval or edit accepts a
suggested update with it. Any other value answers nothing: then the answer in the store counts, if there is one.

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
from agenttool_otel.call.drivers import arun, run
from agenttool_otel.call.effects import Asks, Decides
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.phases.refusals import fail_closed
from agenttool_otel.call.resume import asking_span, continue_stored
from agenttool_otel.call.target import Target
from agenttool_otel.errors import ApprovalError
from agenttool_otel.integrations.langgraph.tasks import APPROVAL_TYPE, GraphTask
from agenttool_otel.names import ApprovalStatus, FailClosedCause, Outcome, ResultStatus
from agenttool_otel.policy.types import PolicyInput, Verdict
from agenttool_otel.values.canonical import digest
from agenttool_otel.values.forks import new_lock

if TYPE_CHECKING:
    from agenttool_otel.call.runtime import Runtime


ANSWERED_BY: Final = "agenttool_answered_by"
"""Key of ``config["configurable"]``: id of the authenticated person whose answer ``Command(resume=...)`` carries."""

ANSWERER_ROLES: Final = "agenttool_answerer_roles"
"""Key of ``config["configurable"]``: that person's roles."""

_ANSWERER: Final = "langgraph:resume"
_TASK: Final = "langgraph_task"
_MAX_FINISHED_CALLS: Final = 256
_logger = logging.getLogger("agenttool_otel.langgraph")


def run_call(call: Invocation, target: Target, runtime: Runtime) -> str | None:
    """Run a framework's call; inside a graph that can wait, an ask pauses the graph."""
    if (waiting := _GraphCall.open(call, target, runtime)) is None:
        run(call, runtime.pipeline.run(call, target))
        return None
    with waiting.task.in_progress():
        if waiting.has_new_answer:
            try:
                waiting.task.read_interrupt()
                waiting.task.clear_resume_value()
            except Exception as error:
                waiting.ignore_answer(error)
            waiting.store_answer()
        if not waiting.continue_earlier():
            run(call, runtime.pipeline.run(call, waiting.target, waiting.links, services=waiting))
            if waiting.pauses:
                waiting.task.wait()
            waiting.finish_or_pause()
    return waiting.response


async def arun_call(call: Invocation, target: Target, runtime: Runtime) -> str | None:
    """The same without blocking the event loop."""
    if (waiting := _GraphCall.open(call, target, runtime)) is None:
        await arun(call, runtime.pipeline.run(call, target))
        return None
    with waiting.task.in_progress():
        if waiting.has_new_answer:
            try:
                await waiting.task.aread_interrupt()
                await waiting.task.aclear_resume_value()
            except Exception as error:
                waiting.ignore_answer(error)
            await asyncio.to_thread(waiting.store_answer)
        if not await asyncio.to_thread(waiting.continue_earlier):
            await arun(call, runtime.pipeline.run(call, waiting.target, waiting.links, services=waiting))
            if waiting.pauses:
                await waiting.task.await_others()
            waiting.finish_or_pause()
    return waiting.response


class _FinishedCalls:
    """What one Governor remembers of the calls of this process; forgetting it costs a repetition, never a decision."""

    def __init__(self) -> None:
        self._lock = new_lock()
        self._entries: OrderedDict[str, Any] = OrderedDict()

    def put(self, key: str, value: Any) -> None:
        with self._lock:
            self._entries[key] = value
            if len(self._entries) > _MAX_FINISHED_CALLS:
                self._entries.popitem(last=False)

    def get(self, key: str) -> Any:
        with self._lock:
            return self._entries.get(key)


_finished_calls: weakref.WeakKeyDictionary[Runtime, _FinishedCalls] = weakref.WeakKeyDictionary()


class _GraphCall:
    """One call inside a graph that can wait. It is also what the call's effects are performed with."""

    __slots__ = (
        "_bind_given", "_rebind", "_stored", "approvals", "call", "decider", "finished", "links", "response",
        "runtime", "target", "task",
    )  # fmt: skip

    def __init__(self, call: Invocation, target: Target, runtime: Runtime, task: GraphTask) -> None:
        self.call = call
        self.runtime = runtime
        self.task = task
        self.target = target
        self.links: tuple[Any, ...] = ()
        self.response: str | None = None
        self.finished = _finished_calls.setdefault(runtime, _FinishedCalls())
        self.decider: Decides = runtime.decider
        self.approvals: Asks = _GraphApprovals(runtime, call, _task_digest(task))
        self._stored: StoredCall | None = None
        self._bind_given, self._rebind = target.bind, target.rebind

    @classmethod
    def open(cls, call: Invocation, target: Target, runtime: Runtime) -> _GraphCall | None:
        """Give a call whose ask could be waited for its invocation id; ``None`` where none could."""
        if (task := GraphTask.current()) is None:
            return None
        try:
            target.bind(call)
            arguments = digest(call.observable_input if call.validated else call.model_input)
        except Exception:
            return None  # the pipeline says what is wrong with the arguments
        alike = json.dumps([call.native_call_id, call.spec.tool_id, arguments])
        place = [task.thread_id, task.namespace, alike, task.occurrence(alike)]
        call.id = "inv_" + hashlib.sha256(json.dumps(place).encode()).hexdigest()[:32]
        return cls(call, target, runtime, task)

    # --- the answer --------------------------------------------------------------------------------------------------

    @property
    def has_new_answer(self) -> bool:
        """Whether an answer may have come with the resume that nobody has looked at."""
        return not self.task.state.answer_taken and self.task.answered

    def ignore_answer(self, error: Exception) -> None:
        """Leave a resume value alone when it can't be told whose it is: what was asked is asked again."""
        self.task.state.shown = None
        _logger.warning("the checkpoint could not be read: %s; nothing is approved by this", type(error).__name__)

    def store_answer(self) -> None:
        """Put the answer that came with the resume into the store, once for the whole task."""
        state = self.task.state
        with state.lock:
            if state.answer_taken:
                return
            state.answer_taken = True
            if (taken := self.task.take_resume_value()) is None:
                return
            shown, value = taken
            request_id = str(shown["request_id"])
            answer, response = _answer_of(value, str(shown.get("name")), self.task.configurable)
            if answer is None:
                return
            store = self.runtime.approvals.store
            try:
                if store.stored_call(request_id).context.get(_TASK) != _task_digest(self.task):
                    _logger.warning("an answer was given to a request of another task; it is not taken")
                    return
                store.answer(request_id, answer)
            except ApprovalError as error:
                _logger.warning("the answer could not be taken: %s", type(error).__name__)
                return
            if response is not None:
                self.finished.put(request_id, response)

    def continue_earlier(self) -> bool:
        """Look whether this invocation was met before, and prepare the call to go on with it."""
        call, store = self.call, self.runtime.approvals.store
        try:
            if (request := store.by_invocation(call.id)) is None:
                return False
            if request.status is ApprovalStatus.CONSUMED:
                if self._repeat():
                    return True
                if request.outcome is None:
                    store.recover()  # if its process is gone, the question is asked again
            self._continue(store.stored_call(call.id))
        except ApprovalError as error:
            # whether somebody was asked before can't be told, so nobody's policy may answer in their place
            self.decider = _DenyingDecider(f"the approval store can't be read: {type(error).__name__}")
        return False

    def _repeat(self) -> bool:
        if (done := self.finished.get(self.call.id)) is None:
            return False
        call = self.call
        call.value, call.delivered, call.preview, call.verdict = done
        return True

    def _continue(self, stored: StoredCall) -> None:
        request = stored.request
        continue_stored(self.call, stored)
        self.links = asking_span(stored.context)
        self._stored = stored
        self.target = replace(self.target, bind=self._bind)
        if request.status is ApprovalStatus.REJECTED:
            self.response = self.finished.get(request.request_id)

    def _bind(self, call: Invocation) -> None:
        """Bind what was asked about: a hook may have changed it before the question."""
        self._bind_given(call)
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

    def finish_or_pause(self) -> None:
        """Pause the graph if the call waits; keep the result of an approved run for a repetition of its task."""
        call = self.call
        if self.pauses and call.request is not None:
            call.exception = self.task.pause(_interrupt_value(call, call.request))
        elif call.claim is not None and call.ran:
            self.finished.put(call.id, (call.value, call.delivered, call.preview, call.verdict))
        if call.outcome is not Outcome.PENDING:
            self.runtime.pipeline.paused.take(call.id)


class _GraphApprovals:
    """The Runtime's way of a question, for a call that LangGraph may run again."""

    __slots__ = ("_call", "_inner", "_task")

    def __init__(self, runtime: Runtime, call: Invocation, task: str) -> None:
        self._inner = runtime.approvals
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

    def claim(self, request_id: str, binding: ClaimBinding) -> Claim:
        """Take the right to run."""
        return self._inner.claim(request_id, binding)

    async def aclaim(self, request_id: str, binding: ClaimBinding) -> Claim:
        """Take the right to run without blocking the event loop."""
        return await self._inner.aclaim(request_id, binding)

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


class _DenyingDecider:
    """A decider for a call of which it can't be told whether somebody was asked already."""

    def __init__(self, message: str) -> None:
        self._message = message

    def decide(self, document: PolicyInput) -> Verdict:
        """Deny."""
        return fail_closed(self._message, FailClosedCause.UNAVAILABLE)

    def wants(self, path: tuple[str, ...], mode: str) -> bool:
        """Read nothing."""
        return False

    async def adecide(self, document: PolicyInput) -> Verdict:
        """Deny."""
        return self.decide(document)

    def visible(self, document: PolicyInput) -> bool:
        """Hide."""
        return False


def _task_digest(task: GraphTask) -> str:
    return digest([task.thread_id, task.namespace])


def _interrupt_value(call: Invocation, request: ApprovalRequest) -> dict[str, Any]:
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
        "suggested_updates": list(request.suggested_updates),
        "expires_at": request.expires_at.isoformat() if request.expires_at is not None else None,
    }


def _answer_of(value: Any, tool: str, configurable: dict[str, Any]) -> tuple[ApprovalAnswer | None, str | None]:
    """Read a resume value; only what is plainly an answer is one."""
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
    remember = value.get("remember")
    if remember is not None and type(remember) is not int:
        return None, None
    message = value.get("message")
    reason = message if isinstance(message, str) else ""
    match value.get("type"):
        case "approve":
            return ApprovalAnswer(approved=True, reason=reason, remember=remember, **who), None
        case "reject":
            return ApprovalAnswer(approved=False, reason=reason, **who), None
        case "respond" if reason:
            return ApprovalAnswer(approved=False, reason=reason, **who), reason
        case "edit":
            action = value.get("edited_action")
            if isinstance(action, dict) and action.get("name") == tool and isinstance(action.get("args"), dict):
                edited = dict(action["args"])
                return ApprovalAnswer(True, reason=reason, edited_input=edited, remember=remember, **who), None
    return None, None
