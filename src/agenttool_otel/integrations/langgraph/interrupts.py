"""Asking inside LangGraph: an ask pauses the graph, the answer comes with ``Command(resume=...)``
or from the store.

LangGraph runs a paused node again from its top, so a call is met again and has to be known again:
its invocation id is derived from the thread, the task, the tool call id and the arguments. What was
asked stays asked (a policy that allows the second time lifts nothing), a deny still wins, other
arguments are another invocation, and the store lets an approved call run once. The interrupt is
LangChain's ``tool_approval``; it is answered with ``Command(resume={"type": "approve"})``,
``{"type": "reject", "message": ...}``, ``{"type": "edit", "edited_action": {"name": ..., "args":
{...}}}`` or ``{"type": "respond", "message": ...}``, by interrupt id where several wait; with
``"remember": n``, an approval or edit accepts a suggested update with it. Any other value answers
nothing: then the answer in the store counts, if there is one.

Who answers is what the host puts into ``config["configurable"]``: ``agenttool_answered_by`` and
``agenttool_answerer_roles``. A host that lets clients fill ``configurable`` has to overwrite these
two.

Without a checkpointer nothing can be waited for: the model learns that an approval is needed, and
the request stays in the store, where ``resume(invocation_id)`` of this process can still use it.

A call runs once in its task. LangGraph runs a whole task again when it goes on from a pause. The
results of other calls of the task from before the pause are kept, in this process and with the
checkpoint, and are returned again instead of running them; and while a call asks, no other call of its task
begins.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import logging
import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.types import Interrupt

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
from agenttool_otel.call.invocation import CallOutcome, Invocation
from agenttool_otel.call.pending.serialized import asked_context, replay
from agenttool_otel.call.phases.refusals import fail_closed
from agenttool_otel.call.resume import continue_stored
from agenttool_otel.call.services import Asks, Decides
from agenttool_otel.call.target import Target
from agenttool_otel.errors import ApprovalError, ApprovalNotFound
from agenttool_otel.integrations.langgraph.checkpoints import (
    APPROVAL_TYPE,
    kept_result,
    result_writes,
)
from agenttool_otel.integrations.langgraph.executions import inside
from agenttool_otel.integrations.langgraph.tasks import GraphTask
from agenttool_otel.names import (
    AnswerWay,
    ApprovalStatus,
    FailClosedCause,
    Outcome,
    ResultStatus,
)
from agenttool_otel.policy.types import PolicyInput, Verdict
from agenttool_otel.telemetry.telemetry import asking_span
from agenttool_otel.values.canonical import digest
from agenttool_otel.values.forks import new_rlock

if TYPE_CHECKING:
    from agenttool_otel.call.runtime import Runtime


ANSWERED_BY: Final = "agenttool_answered_by"
"""Key of ``config["configurable"]``: id of the authenticated person whose answer
``Command(resume=...)`` carries.
"""

ANSWERER_ROLES: Final = "agenttool_answerer_roles"
"""Key of ``config["configurable"]``: that person's roles."""

_ANSWERER: Final = "langgraph:resume"
_TASK: Final = "langgraph_task"
_PAUSED: Final = "paused:"
_MAX_FINISHED_CALLS: Final = 256
_SETTINGS: Final = (
    "set AGENTTOOL_APPROVALS_URL and AGENTTOOL_APPROVALS_KEY to the same values in every process"
    " that asks or resumes"
)
_CANT_BE_RESUMED_ELSEWHERE: Final = (
    "a graph with a lasting checkpointer asks for an approval, which this process keeps in memory: no other process, "
    f"nor this one after a restart, can take the answer; {_SETTINGS}"
)
_ASKED_ELSEWHERE: Final = (
    "the answer for %s is not taken: its question was asked by another process, or before a restart, and this process "
    f"can't see that request; {_SETTINGS}"
)
_logger = logging.getLogger("agenttool_otel.langgraph")


def run_call(
    call: Invocation, target: Target, runtime: Runtime, deliver: Callable[[str | None], Any]
) -> str | None:
    """Run a framework's call; inside a graph that can wait, an ask pauses the graph.

    Args:
        call: the call.
        target: what it runs.
        runtime: its Governor.
        deliver: makes what the framework gets of the ended call, as in an Adapter.

    Returns:
        The text that a person gave in place of the result, if one did.
    """
    graph = _GraphCall.open(call, target, runtime, deliver)
    if graph is None:
        run(call, runtime.pipeline.run(call, target))
        return None
    with graph.in_progress():
        graph.take_answer()
        if not graph.continue_earlier():
            run(call, runtime.pipeline.run(call, graph.target, graph.links, services=graph))
            ask = graph.question()
            if ask is not None:
                graph.pause(graph.task.execution.stop(graph, ask))
            graph.finish()
            graph.keep_results()
    return graph.response


async def arun_call(
    call: Invocation, target: Target, runtime: Runtime, deliver: Callable[[str | None], Any]
) -> str | None:
    """The same without blocking the event loop."""
    graph = _GraphCall.open(call, target, runtime, deliver)
    if graph is None:
        await arun(call, runtime.pipeline.run(call, target))
        return None
    with graph.in_progress():
        await graph.atake_answer()
        if not await asyncio.to_thread(graph.continue_earlier):
            await arun(call, runtime.pipeline.run(call, graph.target, graph.links, services=graph))
            ask = graph.question()
            if ask is not None:
                graph.pause(await graph.task.execution.astop(graph, ask))
            graph.finish()
            await graph.akeep_results()
    return graph.response


class _EndedCall(NamedTuple):
    """The parts of an ended call that make up its result."""

    value: Any
    delivered: Any
    preview: Any
    exception: BaseException | None
    verdict: Verdict | None
    outcome: CallOutcome
    edit_note: str | None

    @classmethod
    def of(cls, call: Invocation) -> _EndedCall:
        return cls(
            value=call.value,
            delivered=call.delivered,
            preview=call.preview,
            exception=call.exception,
            verdict=call.decision.verdict,
            outcome=call.outcome,
            edit_note=call.inputs.edit_note,
        )

    def put_into(self, call: Invocation) -> None:
        """Let a call end as this one did."""
        call.value = self.value
        call.delivered = self.delivered
        call.preview = self.preview
        call.exception = self.exception
        call.decision.verdict = self.verdict
        call.outcome = self.outcome
        call.inputs.edit_note = self.edit_note


class _FinishedCalls:
    """The results of ended calls of this process, of one Governor; a lost one costs a repetition,
    never a decision.
    """

    def __init__(self) -> None:
        self.lock = new_rlock()
        self.has_warned = False  # that a question can't be answered elsewhere
        self._entries: OrderedDict[str, Any] = OrderedDict()

    def put(self, key: str, value: Any) -> None:
        with self.lock:
            self._entries[key] = value
            if len(self._entries) > _MAX_FINISHED_CALLS:
                self._entries.popitem(last=False)

    def get(self, key: str) -> Any:
        with self.lock:
            return self._entries.get(key)


_finished_calls: weakref.WeakKeyDictionary[Runtime, _FinishedCalls] = weakref.WeakKeyDictionary()


class _GraphCall:
    """One call inside a graph that can wait. It is also what the call's effects are
    performed with.
    """

    __slots__ = (
        "_asked",
        "_began",
        "_bind_given",
        "_deliver",
        "_is_open",
        "_place",
        "_rebind",
        "_stored",
        "_tries",
        "approvals",
        "call",
        "decider",
        "finished",
        "layers",
        "links",
        "response",
        "runtime",
        "target",
        "task",
    )

    def __init__(
        self,
        call: Invocation,
        target: Target,
        runtime: Runtime,
        task: GraphTask,
        deliver: Callable[[str | None], Any],
    ) -> None:
        self.call = call
        self.runtime = runtime
        self.task = task
        self.target = replace(target, function=self._body_of(target))
        self.links: tuple[Any, ...] = ()
        self.response: str | None = None
        self.finished = _finished_calls.setdefault(runtime, _FinishedCalls())
        self.decider: Decides = runtime.decider
        self.layers = runtime.layers
        self.approvals: Asks = _GraphApprovals(runtime, call, _task_digest(task), self._begin)
        self._stored: StoredCall | None = None
        self._place: list[Any] = []  # what its id is made of
        self._tries = 0  # how many calls of its ids have ended
        self._deliver = deliver
        self._bind_given = target.bind
        self._rebind = target.rebind
        self._is_open = False  # between the begin and the end of the call in its task
        self._began = False  # the body has begun
        self._asked = False  # the call ends with a question

    @classmethod
    def open(
        cls,
        call: Invocation,
        target: Target,
        runtime: Runtime,
        deliver: Callable[[str | None], Any],
    ) -> _GraphCall | None:
        """Give a call whose ask could be waited for its invocation id; ``None`` where none
        could.
        """
        task = GraphTask.current()
        if task is None:
            return None
        try:
            target.bind(call)
            arguments = digest(
                call.inputs.observable_input if call.inputs.validated else call.inputs.model_input
            )
        except Exception:
            # the pipeline binds them again, and refuses them with the reason
            return None
        alike = json.dumps([call.native_call_id, call.spec.tool_id, arguments])
        place = [task.thread_id, task.namespace, alike, task.execution.occurrence(alike)]
        call.id = _id_of(place)
        graph = cls(call, target, runtime, task, deliver)
        graph._place = place
        return graph

    @contextmanager
    def in_progress(self) -> Iterator[None]:
        """Let the call's body run only while no other call of the task pauses it."""
        self.task.execution.refuse_if_paused()
        self._is_open = True
        try:
            yield
        finally:
            # resume(invocation_id) may run the call later, outside of the graph
            self._is_open = False
            self.task.execution.leave(self)

    def _body_of(self, target: Target) -> Callable[..., Any]:
        function = target.function

        def body(*args: Any, **kwargs: Any) -> Any:
            with self._running():
                return function(*args, **kwargs)

        async def abody(*args: Any, **kwargs: Any) -> Any:
            with self._running():
                return await function(*args, **kwargs)

        if target.is_async and not target.in_thread:
            return abody
        return body

    @contextmanager
    def _running(self) -> Iterator[None]:
        if not self._is_open:
            yield
            return
        self.task.execution.begin(self)
        self._began = True
        with inside(self):
            yield

    def _begin(self) -> None:
        if self._is_open:
            self.task.execution.begin(self)

    # --- the answer -------------------------------------------------------------------------------

    def take_answer(self) -> None:
        """Take the answer that came with the resume, if this task asked the question."""
        if not self.task.is_resumed:
            return
        try:
            self.task.read_interrupt()
            question = self._own_question()
            if question is None:
                return
            self.task.clear_resume_value()
        except Exception as error:
            self._note_unreadable(error)
            return
        self._store_answer(question)

    async def atake_answer(self) -> None:
        """The same without blocking the event loop."""
        if not self.task.is_resumed:
            return
        try:
            await self.task.aread_interrupt()
            question = await asyncio.to_thread(self._own_question)
            if question is None:
                return
            await self.task.aclear_resume_value()
        except Exception as error:
            self._note_unreadable(error)
            return
        await asyncio.to_thread(self._store_answer, question)

    def _note_unreadable(self, error: Exception) -> None:
        _logger.warning(
            "the checkpoint could not be read: %s; nothing is approved by this",
            type(error).__name__,
        )

    def _own_question(self) -> Interrupt | None:
        """Return the answered question if the stored request is of this task; nothing is taken by
        looking.
        """
        question = self.task.answered_question()
        if question is None:
            return None
        try:
            stored = self.runtime.approvals.store.stored_call(str(question.value["request_id"]))
        except ApprovalNotFound:
            if question.value.get("invocation_id") == self.call.id:
                _logger.warning(_ASKED_ELSEWHERE, self.call.spec.name)
            return None
        # two tasks of one run may each have asked: each takes the answer to its own question
        if stored.context.get(_TASK) != _task_digest(self.task):
            return None
        return question

    def _store_answer(self, question: Interrupt) -> None:
        """Put the answer into the store, once for the whole task."""
        with self.finished.lock:
            if self.task.execution.answer_taken:
                return
            value = self.task.take_resume_value(question)
            shown: dict[str, Any] = question.value
            answer, response = _answer_of(value, str(shown.get("name")), self.task.configurable)
            if answer is None:
                return
            try:
                self.runtime.approvals.store.answer(shown["request_id"], answer)
            except ApprovalError as error:
                _logger.warning("the answer could not be taken: %s", type(error).__name__)
                return
            if response is not None:
                self.finished.put(shown["request_id"], response)

    def continue_earlier(self) -> bool:
        """Look whether this invocation was met before, and prepare the call to go on with it."""
        call = self.call
        store = self.runtime.approvals.store
        if self._repeat():
            return True
        try:
            request = store.by_invocation(call.id)
            while request is None and self._is_tried_again():
                if self._repeat():
                    return True
                request = store.by_invocation(call.id)
            if request is None:
                self._recall()
                return False
            if request.status is ApprovalStatus.CONSUMED and request.outcome is None:
                # killed between claim and end: if its process is gone, the question is asked again
                store.recover()
            self._continue(store.stored_call(call.id))
        except ApprovalError as error:
            self._recall()
            # a person may have been asked before: a policy that allows now must not answer in
            # their place
            self.decider = _DenyingDecider(
                f"the approval store can't be read: {type(error).__name__}"
            )
        return False

    def _repeat(self) -> bool:
        """Take the result of the call from its run before the pause."""
        call = self.call
        ended: _EndedCall | None = self.finished.get(call.id)
        if ended is not None:
            ended.put_into(call)
            return True
        pause = self.task.execution.pause
        if pause is None or call.id not in pause.results:
            return False
        kept = pause.results[call.id]
        result = kept_result(kept)
        if isinstance(result, Exception):
            call.exception = result
            return True
        call.value = result
        call.delivered = result
        if self.target.unwrap is not None:
            call.delivered = self.target.unwrap(result)
        return True

    def _continue(self, stored: StoredCall) -> None:
        request = stored.request
        continue_stored(self.call, stored)
        self.links = asking_span(stored.context)
        self._recall()
        self._stored = stored
        self.target = replace(self.target, bind=self._bind)
        if request.status is ApprovalStatus.REJECTED:
            self.response = self.finished.get(request.request_id)

    def _is_tried_again(self) -> bool:
        """Whether a call of this id has ended here; then the call gets the id of another one: LangGraph
        tries a node again that failed.
        """
        if self.runtime.pipeline.ended_tool(self.call.id) is None:
            return False
        self._tries += 1
        self.call.id = _id_of([*self._place, self._tries])
        return True

    def _recall(self) -> None:
        """Give the call its past up to its last pause, where that was in this process."""
        paused: dict[str, Any] | None = self.finished.get(_PAUSED + self.call.id)
        if paused is not None:
            replay(self.call, paused)

    def _bind(self, call: Invocation) -> None:
        """Bind what was asked about: a hook may have changed it before the question."""
        self._bind_given(call)
        asked = self._stored.original_arguments if self._stored is not None else {}
        seen = call.inputs.observable_input if call.inputs.validated else call.inputs.model_input
        if asked == seen:
            return
        self._rebind(call, seen, asked)
        if call.inputs.validated:
            call.inputs.observable_input = asked
        else:
            call.inputs.model_input = asked

    # --- the end ----------------------------------------------------------------------------------

    def question(self) -> Callable[[], tuple[Interrupt, ...]] | None:
        """Return what makes the interrupt that the call ends its task's execution with, if
        it does.
        """
        call = self.call
        signal = call.exception
        # interrupt() of the tool itself, or of a graph that it runs
        if isinstance(signal, GraphInterrupt):
            return lambda: tuple(signal.args[0])
        request = call.decision.request
        if call.outcome.execution is not Outcome.PENDING or signal is not None or request is None:
            return None
        self._asked = True
        self._note_first_question()
        return lambda: self.task.ask(_interrupt_value(call, request))

    def pause(self, interrupts: tuple[Interrupt, ...]) -> None:
        """Pause the graph; whichever call of a task LangGraph sees first, it shows the same
        question.
        """
        if self._asked:
            self.call.exception = GraphInterrupt(interrupts)

    def finish(self) -> None:
        """Keep the result of the call for a repetition of its task."""
        call = self.call
        if self._began and (call.exception is None or _is_own_failure(call.exception)):
            self.task.execution.finished[call.id] = self._remember
            # its approval is used up, also where LangGraph retries the node
            if call.claim is not None and call.ran:
                self._remember()
        if call.outcome.execution is Outcome.PENDING:
            self.finished.put(_PAUSED + call.id, asked_context(call))
        else:
            self.runtime.pipeline.paused.take(call.id)

    def _remember(self) -> Any:
        """Keep the ended call in this process, and return its result."""
        self.finished.put(self.call.id, _EndedCall.of(self.call))
        try:
            return self._deliver(self.response)
        except Exception as error:
            return error

    def _note_first_question(self) -> None:
        lasting = self.runtime.approvals.lasting() is not None
        if lasting or isinstance(self.task.saver, InMemorySaver) or self.finished.has_warned:
            return
        self.finished.has_warned = True
        _logger.warning(_CANT_BE_RESUMED_ELSEWHERE)

    def keep_results(self) -> None:
        """Where the task pauses, store the results of its ended calls."""
        if self._asked:
            try:
                # it is older than the question, so it is no answer to it
                self.task.clear_resume_value()
            except Exception as error:
                _note_not_stored(error)
        for invocation_id, remember in self.task.execution.take_finished().items():
            result = remember()
            try:
                self.task.keep(*result_writes(invocation_id, result))
            except Exception as error:
                _note_not_stored(error)

    async def akeep_results(self) -> None:
        """The same without blocking the event loop."""
        if self._asked:
            try:
                await self.task.aclear_resume_value()
            except Exception as error:
                _note_not_stored(error)
        for invocation_id, remember in self.task.execution.take_finished().items():
            result = remember()
            try:
                await self.task.akeep(*result_writes(invocation_id, result))
            except Exception as error:
                _note_not_stored(error)


def _is_own_failure(error: BaseException) -> bool:
    """Whether an exception is a tool's own, and not LangGraph's signal or a cancellation."""
    return isinstance(error, Exception) and not isinstance(error, GraphBubbleUp)


def _note_not_stored(error: Exception) -> None:
    _logger.warning(
        "the checkpoint could not be written: %s; results from before this pause are kept in this process only",
        type(error).__name__,
    )


def _id_of(place: list[Any]) -> str:
    return "inv_" + hashlib.sha256(json.dumps(place).encode()).hexdigest()[:32]


class _GraphApprovals:
    """The Runtime's way of a question, for a call that LangGraph may run again."""

    __slots__ = ("_begin", "_call", "_inner", "_task")

    def __init__(
        self, runtime: Runtime, call: Invocation, task: str, begin: Callable[[], None]
    ) -> None:
        self._inner = runtime.approvals
        self._call = call
        self._task = task
        self._begin = begin

    def ask(
        self, request: ApprovalRequest, arguments: dict[str, Any], context: dict[str, Any]
    ) -> ApprovalAnswer | None:
        """Store the request with the task that it belongs to, and ask in place if there is an
        approver.
        """
        return self._inner.ask(request, arguments, {**context, _TASK: self._task})

    async def aask(
        self, request: ApprovalRequest, arguments: dict[str, Any], context: dict[str, Any]
    ) -> ApprovalAnswer | None:
        """The same without blocking the event loop."""
        return await self._inner.aask(request, arguments, {**context, _TASK: self._task})

    def find_grant(self, wanted: GrantQuery) -> Grant | None:
        """Find a remembered approval."""
        return self._inner.find_grant(wanted)

    def use_grant(
        self, grant: Grant, wanted: GrantQuery, *, invocation_id: str, policy_revision: str
    ) -> bool:
        """Record that it is used."""
        return self._inner.use_grant(
            grant, wanted, invocation_id=invocation_id, policy_revision=policy_revision
        )

    def claim(self, request_id: str, binding: ClaimBinding) -> Claim:
        """Take the right to run, unless the task pauses."""
        self._begin()
        return self._inner.claim(request_id, binding)

    async def aclaim(self, request_id: str, binding: ClaimBinding) -> Claim:
        """Take the right to run without blocking the event loop."""
        self._begin()
        return await self._inner.aclaim(request_id, binding)

    def finish(self, claim: Claim, outcome: ResultStatus) -> None:
        """Record how the run ended; a tool that paused itself has not ended, and its approval waits
        with it.
        """
        signal = self._call.exception
        if isinstance(signal, GraphInterrupt):
            try:
                self._inner.store.release(claim)
            except ApprovalError as error:
                _logger.warning("a paused run could not be given back: %s", type(error).__name__)
            return
        self._inner.finish(
            claim, ResultStatus.SUCCEEDED if isinstance(signal, GraphBubbleUp) else outcome
        )


class _DenyingDecider:
    """Denies a call of which it is not known whether a person was asked already."""

    def __init__(self, message: str) -> None:
        self._message = message

    def decide(self, document: PolicyInput) -> Verdict:
        """Deny."""
        return fail_closed(self._message, FailClosedCause.UNAVAILABLE)

    def wants(self, path: tuple[str, ...], mode: str, kind: str) -> bool:
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
    """Make the interrupt value: LangChain's form, with the fields of our request beside it; no
    secret.
    """
    expires_at = None
    if request.expires_at is not None:
        expires_at = request.expires_at.isoformat()
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
        "expires_at": expires_at,
    }


def _answer_of(
    value: Any, tool: str, configurable: dict[str, Any]
) -> tuple[ApprovalAnswer | None, str | None]:
    """Read a resume value; return the answer, and the text that takes the place of the result.

    Args:
        value: the value of ``Command(resume=...)``.
        tool: name of the tool that was asked about.
        configurable: in which the host names who answers.

    Returns:
        ``None`` twice for a value that is not plainly an answer: nothing is approved by it.
    """
    decision = _single_decision(value)
    if not isinstance(decision, dict):
        return None, None
    remember = decision.get("remember")
    # True is an int for Python, and no number of an update
    if remember is not None and type(remember) is not int:
        return None, None
    message = decision.get("message")
    reason = message if isinstance(message, str) else ""
    answered_by, roles = _answerer(configurable)
    approval = ApprovalAnswer(
        approved=True,
        answered_by=answered_by,
        roles=roles,
        reason=reason,
        remember=remember,
        way=AnswerWay.GRAPH,
    )
    refusal = ApprovalAnswer(
        approved=False,
        answered_by=answered_by,
        roles=roles,
        reason=reason,
        way=AnswerWay.GRAPH,
    )
    match decision.get("type"):
        case "approve":
            return approval, None
        case "reject":
            return refusal, None
        case "respond" if reason:
            return refusal, reason
        case "edit":
            edited = _edited_arguments(decision.get("edited_action"), tool)
            if edited is not None:
                return replace(approval, edited_input=edited), None
    return None, None


def _single_decision(value: Any) -> Any:
    # LangChain's middleware answers {"decisions": [{"type": "approve"}]}, one for each call
    if isinstance(value, dict):
        decisions = value.get("decisions")
        if isinstance(decisions, list) and len(decisions) == 1:
            return decisions[0]
    return value


def _answerer(configurable: dict[str, Any]) -> tuple[str, tuple[str, ...]]:
    """Id and roles of the person who answers, as the host has put them into the configuration."""
    person = configurable.get(ANSWERED_BY)
    if not isinstance(person, str) or not person:
        person = _ANSWERER
    roles = configurable.get(ANSWERER_ROLES)
    if not isinstance(roles, (list, tuple)):
        return person, ()
    return person, tuple(role for role in roles if isinstance(role, str))


def _edited_arguments(action: Any, tool: str) -> dict[str, Any] | None:
    # another tool's name in an edit would run what was not asked about
    if not isinstance(action, dict) or action.get("name") != tool:
        return None
    arguments = action.get("args")
    return dict(arguments) if isinstance(arguments, dict) else None
