"""A call on the straight way: it is decided, its span has begun, and its body is to be run.

It holds what differs from call to call. Whoever looks closer (its body, by its handle; a request to
stop it) gets the whole Invocation, and then the pipeline settles the call. So it does where the body
raises, or gives anything but a small plain value.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, cast

from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.trace import INVALID_SPAN, Span

from agenttool_otel.call.binding import PlainArguments, bind_python, rebind_python
from agenttool_otel.call.drivers import Steps, arun, await_here, deliver, run, run_here
from agenttool_otel.call.invocation import Decided, Invocation
from agenttool_otel.call.phases.execute import guarded, is_remembered, take_result
from agenttool_otel.call.phases.permission import now_text
from agenttool_otel.call.phases.provenance import record_output
from agenttool_otel.call.running.handle import CallHandle, progress_listeners
from agenttool_otel.call.scheduling.modifiers import ContextModifier
from agenttool_otel.call.steps import Attempt
from agenttool_otel.call.straight.plan import NO_TARGET, DecidedCall, Plan
from agenttool_otel.call.target import Target
from agenttool_otel.catalog.spec import ToolSpec
from agenttool_otel.context.context import AgentContext
from agenttool_otel.context.sessions import Session
from agenttool_otel.facts.types import Facts
from agenttool_otel.names import Attr, Event, GenAI, InvocationStatus, Outcome
from agenttool_otel.policy.cache import PreparedKey, cached_copy
from agenttool_otel.policy.types import PolicyInput
from agenttool_otel.records.external_mapping import ExternalMapping, mapped
from agenttool_otel.results.content.json_stream import plain_json
from agenttool_otel.results.content.native import native_failure, native_meta
from agenttool_otel.results.content.size import size_of, text_bytes
from agenttool_otel.telemetry.telemetry import without_surrogates
from agenttool_otel.values.forks import new_lock
from agenttool_otel.values.ids import new_id

_MEASURED: Final = frozenset({str, int, float, bool, bytes, type(None)})
"""Classes of results that are measured without code of theirs, or of what is in them."""

ENDED: Final[Any] = object()
"""Stands for the Invocation of a call that ended without one."""

# held while a call that was made whole becomes the one there is, or it ends without that
_closing: Final = new_lock()


@dataclass(frozen=True, slots=True)
class FrameworkCall:
    """What a call of a framework's tool is, beside what runs."""

    given: PlainArguments  # as the model gave them
    arguments: dict[str, Any]  # as the framework read them
    native_call_id: str | None
    unwrap: Callable[[Any], Any]  # takes what a model sees out of a value
    deliver: Callable[[Invocation], Any]  # returns or raises what the framework gets
    context: AgentContext | None = None  # who calls, where that is not what is in force
    validated: bool = True  # whether the framework has validated the arguments
    attributes: Mapping[str, Any] | None = None  # of its span, redacted
    mappings: Sequence[ExternalMapping] = ()  # its native ids


@dataclass(slots=True, eq=False, repr=False)
class StraightCall:
    """One call on the straight way."""

    plan: Plan
    session: Session
    prepared: PreparedKey
    decided: DecidedCall
    decision_s: float  # seconds that the decision took
    function: Callable[..., Any]  # bound to its instance
    is_async: bool
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    bound: dict[str, Any]  # the arguments by name
    model_input: dict[str, Any]
    permission_input: dict[str, Any]
    facts: Facts
    native_call_id: str | None
    created_ns: int
    t0: float
    foreign: FrameworkCall | None = None  # of a framework's tool

    id: str = field(default_factory=partial(new_id, "inv"))
    decision_id: str = ""  # of a call whose span is not recorded, made when somebody looks closer
    handle: CallHandle | None = None  # what its body sees of it, while it goes on
    span: Span = INVALID_SPAN
    owned: bool = False
    started_ns: int = 0  # when its body began
    run_from: float = 0.0  # the same by the clock that measures it
    run_s: float = 0.0  # how long the body took
    ended_ns: int = 0  # when it ended, where it did so without an Invocation
    value: Any = None  # what its body returned, of such a call
    seen: Attempt | None = None  # what ``unwrap`` came to
    made: Invocation | None = None
    executor: None = None

    @property
    def spec(self) -> ToolSpec:
        """Its tool."""
        return self.plan.spec

    def begin(self) -> None:
        """Count the call in its session, and begin its span."""
        plan, session = self.plan, self.session
        decisions = plan.runtime.pipeline.decisions
        counters = self._admit(recorded=decisions is not None)
        try:
            self._begin_span()
            if decisions is not None:
                document = self._policy_input(counters)
                decisions.record(plan.runtime.decider, document, self.decided.kept, self.span)
        except BaseException:
            session.give_back(plan.spec.tool_id)
            self._give_up()
            raise

    def _admit(self, *, recorded: bool) -> dict[str, int]:
        """Count the call in its session; return what a record has of the counters before it."""
        tool_id = self.plan.spec.tool_id
        if not recorded:
            self.session.admit_unread(tool_id)
            return {}
        self.session.begin(None)
        return self.session.admit(tool_id)

    def _policy_input(self, counters: dict[str, int]) -> PolicyInput:
        """Return the policy's input of the call: what it shares with the calls that its key was
        prepared for, and its own.
        """
        shared = self.prepared.document
        mappings = () if self.foreign is None else self.foreign.mappings
        ids = {"id": self.id, "native_call_id": self.native_call_id, **mapped(mappings)}
        own = {
            "time": now_text(),
            "invocation": {**shared["invocation"], **ids},
            "input": self.permission_input,
            "facts": self.facts,
            "session": {**shared["session"], "counters": counters},
        }
        return cast("PolicyInput", {**shared, **own})

    def _give_up(self) -> None:
        """Let nothing of the call go on that could not be recorded."""
        runtime = self.plan.runtime
        runtime.pipeline.running.pop(self.id, None)
        self.handle = None
        runtime.telemetry.end(self.span, owned=self.owned, attributes={})

    def _begin_span(self) -> None:
        plan = self.plan
        pipeline, telemetry = plan.runtime.pipeline, plan.runtime.telemetry
        attributes = {**plan.start, Attr.INVOCATION_ID: self.id}
        own: dict[str, Any] = {}
        if self.native_call_id:
            own[GenAI.TOOL_CALL_ID] = self.native_call_id
        if self.foreign is not None and self.foreign.attributes:
            own.update(self.foreign.attributes)
        if own:
            attributes.update(without_surrogates(own))
        self.span, self.owned = telemetry.start_own(
            plan.spec.span_name, attributes, start_time=self.created_ns
        )
        if telemetry.events.wanted(self.span):
            self.decision_id = new_id("perm")
            telemetry.events.add(self.span, Event.PERMISSION_DECIDED, dict(self.decided.event))
        self.handle = handle = CallHandle(self, pipeline.reporter)
        handle.inside = pipeline.inside(self, NO_TARGET, self.session)
        self.started_ns = max(time.time_ns(), self.created_ns)  # the clock may be set back
        pipeline.running[self.id] = handle

    def run(self) -> Any:
        """Run the body of a plain callable, and deliver."""
        token = otel_context.attach(trace.set_span_in_context(self.span))
        try:
            self.run_from = time.perf_counter()
            attempt = run_here(self.handle, self.function, self.args, self.kwargs)
            if self._ends(attempt):
                return attempt.value
            call = run(*self._rest(attempt))
        finally:
            otel_context.detach(token)
        return self._deliver(call)

    async def arun(self) -> Any:
        """The same for a coroutine function."""
        token = otel_context.attach(trace.set_span_in_context(self.span))
        try:
            self.run_from = time.perf_counter()
            try:
                attempt = await await_here(self.handle, self.function, self.args, self.kwargs)
            except BaseException as closed:
                # the coroutine was closed where its body waits: nothing can be awaited any more
                run(*self._rest(Attempt(exception=closed)))
                raise
            if self._ends(attempt):
                return attempt.value
            call = await arun(*self._rest(attempt))
        finally:
            otel_context.detach(token)
        return self._deliver(call)

    # --- a plain value ----------------------------------------------------------------------------

    def _ends(self, attempt: Attempt) -> bool:
        """End the call where its body gave a plain value and nobody looked closer; return whether
        that is so.
        """
        self.run_s = time.perf_counter() - self.run_from
        try:
            size = self._plain_size(attempt)
        except Exception:
            return False  # the pipeline reports it
        if size is None:
            return False
        self.value = attempt.value  # for another thread, which may look as soon as it has ended
        with _closing:
            if self.made is not None:
                return False
            self.made = ENDED
        try:
            self._record(attempt.value, size)
        except BaseException as error:
            self._give_up()
            self.plan.runtime.telemetry.losses.note("end", error)
        return True

    def _plain_size(self, attempt: Attempt) -> int | None:
        """Return the size of a value that is delivered as it is; ``None`` for any other outcome."""
        value = attempt.value
        if attempt.exception is not None or progress_listeners.get():
            return None
        if self.foreign is not None and type(value) is not ContextModifier:
            seen = self._look(self.foreign, value)
            if seen.exception is not None:
                return None
            value = seen.value
            if value is not attempt.value and native_failure(attempt.value) is not None:
                return None
        size = _size_of_plain(value)
        if size is None or size > self.plan.runtime.results.max_inline_chars:
            return None
        return size

    def _look(self, foreign: FrameworkCall, value: Any) -> Attempt:
        """Take what a model sees out of a value, once: for that a door may read a stream to its end, and
        may raise anything.
        """
        if self.seen is None:
            try:
                self.seen = Attempt(foreign.unwrap(value))
            except BaseException as error:
                self.seen = Attempt(exception=error)
        return self.seen

    def _unwrap(self, foreign: FrameworkCall, value: Any) -> Any:
        """The same for the pipeline."""
        seen = self._look(foreign, value)
        if seen.exception is not None:
            raise seen.exception
        return seen.value

    def _record(self, value: Any, size: int) -> None:
        """Record the end of a call that succeeded, as its span, events and metrics."""
        plan, decided, spec = self.plan, self.decided, self.plan.spec
        pipeline, telemetry = plan.runtime.pipeline, plan.runtime.telemetry
        pipeline.running.pop(self.id, None)
        # the handle refers to the call, and would be garbage only the collector finds
        handle, self.handle = self.handle, None
        if handle is not None and handle.parent is not None:
            handle.leave_parent()
        pipeline.note_end(self.id, spec.tool_id)
        self.session.returned(spec.tool_id, size)
        if plan.context.session_id and is_remembered(spec, self.session, failed=False):
            self._remember(value)
        self.ended_ns = max(time.time_ns(), self.started_ns)
        duration = time.perf_counter() - self.t0
        attributes: dict[str, Any] = {}
        if telemetry.events.wanted(self.span):
            created = {**decided.created, Attr.RESULT_SIZE_BYTES: size}
            telemetry.events.add(self.span, Event.RESULT_CREATED, created)
            telemetry.events.add(self.span, Event.INVOCATION_SUCCEEDED, dict(decided.ended))
            attributes = {
                **decided.final,
                Attr.INVOCATION_RUN_SECONDS: self.run_s,
                Attr.RESULT_SIZE_BYTES: size,
                Attr.PERMISSION_DURATION: self.decision_s,
                Attr.PERMISSION_DECISION_ID: self.decision_id,
            }
        telemetry.end_plain(self.span, owned=self.owned, attributes=attributes)
        instruments = telemetry.instruments
        telemetry.measure(instruments.duration, duration, decided.duration_labels)
        instruments.decided(*decided.tally)
        telemetry.measure(instruments.result_size, size, decided.size_labels)

    def _remember(self, value: Any) -> None:
        """Remember in the session which texts the call gave."""
        try:
            guarded(record_output, self.plan.spec, self.permission_input, self.session, value)
        except Exception as bug:
            self.plan.runtime.telemetry.losses.note("result", bug)

    # --- anything else ----------------------------------------------------------------------------

    def _rest(self, attempt: Attempt) -> tuple[Invocation, Steps]:
        """Return the whole call, and the steps by which the pipeline settles it."""
        call = self.whole
        self.handle = None
        call.outcome.run_seconds = self.run_s
        target = Target(self.function, bind_python, rebind_python, is_async=self.is_async)
        if self.foreign is not None:
            target.unwrap = partial(self._unwrap, self.foreign)
        pipeline = self.plan.runtime.pipeline
        return call, pipeline.conclude(call, target, self.session, attempt)

    def _deliver(self, call: Invocation) -> Any:
        return deliver(call) if self.foreign is None else self.foreign.deliver(call)

    @property
    def whole(self) -> Invocation:
        """The call as it would be if the pipeline had brought it to its body."""
        if self.made is not None and self.made is not ENDED:
            return self.made
        # not under the lock: what it runs may wait for another call, or close one, as the collector does
        call = self._make()
        with _closing:
            if self.made is None:
                self.made = call
            # it ended meanwhile: whoever looks now can change nothing
            return call if self.made is ENDED else self.made

    @property
    def has_ended(self) -> bool:
        """Whether it ended without an Invocation."""
        return self.made is ENDED

    def ended(self) -> Invocation:
        """Return what the pipeline would have left of a call that has ended without an Invocation."""
        call = self._make()
        outcome = call.outcome
        outcome.attempts, outcome.run_seconds = 1, self.run_s
        target = Target(self.function, bind_python, rebind_python, is_async=self.is_async)
        if self.foreign is not None:
            target.unwrap = partial(self._unwrap, self.foreign)
        attempt = Attempt(self.value)
        self.plan.runtime.pipeline.take_outcome(call, attempt)
        take_result(call, target, attempt)
        outcome.transitions[-1] = (outcome.status, self.ended_ns)
        outcome.ended_ns = self.ended_ns
        return call

    def _make(self) -> Invocation:
        plan = self.plan
        call = Invocation(
            plan.spec,
            plan.context,
            native_call_id=self.native_call_id,
            id=self.id,
            created_ns=self.created_ns,
            t0=self.t0,
        )
        call.services, call.handle = plan.runtime, self.handle
        call.span, call.owned = self.span, self.owned
        call.call_args, call.call_kwargs = self.args, self.kwargs
        inputs = call.inputs
        inputs.model_input, inputs.bound = self.model_input, self.bound
        inputs.observable_input = inputs.permission_input = self.permission_input
        foreign = self.foreign
        inputs.validated = foreign is not None and foreign.validated
        inputs.unchecked = foreign is None
        if foreign is not None:
            call.native_attributes = None if foreign.attributes is None else {**foreign.attributes}
            plan.runtime.pipeline.reporter.map(call, foreign.mappings)
        verdict = cached_copy(self.decided.kept)
        verdict.duration = self.decision_s
        call.decision.facts = self.facts
        call.decision.verdict = verdict
        self.decision_id = self.decision_id or new_id("perm")
        call.decision.in_force = Decided(self.decision_id, verdict, self.started_ns)
        call.decision.decisions.append(call.decision.in_force)
        outcome = call.outcome
        outcome.status, outcome.execution = InvocationStatus.RUNNING, Outcome.EXECUTED
        outcome.started_ns = self.started_ns
        outcome.transitions += [
            (InvocationStatus.PLANNED, self.created_ns),
            (InvocationStatus.SELECTED, self.created_ns),
            (InvocationStatus.ARGUMENTS_READY, self.started_ns),
            (InvocationStatus.RUNNING, self.started_ns),
        ]
        return call


def _size_of_plain(value: Any) -> int | None:
    """Return the size of a value of builtins alone; ``None`` for any other, or one that states a
    failure.
    """
    if type(value) in _MEASURED:
        return size_of(value)
    text = plain_json(value)
    if text is None or native_failure(value) is not None or native_meta(value) is not None:
        return None
    return text_bytes(text)
