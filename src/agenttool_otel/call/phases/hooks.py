"""Hooks in the pipeline: what they are given, what their outputs may do, and what is recorded of them.

Two rules hold whatever a hook does. Before the tool's body a hook can only make a decision
stricter, and a hook that fails blocks unless it was registered otherwise. From the body on it can
break nothing.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import replace
from functools import partial
from typing import Any, Final

from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.phases.inputs import Inputs
from agenttool_otel.call.phases.refusals import HOOK_FAILED, Refusals
from agenttool_otel.call.recording.span import CallSpan
from agenttool_otel.call.steps import Call
from agenttool_otel.call.target import Target
from agenttool_otel.context.sessions import Session
from agenttool_otel.errors import ConfigurationError
from agenttool_otel.hooks import (
    AdditionalContext,
    Hook,
    HookContext,
    Hooks,
    Message,
    PermissionResult,
    Progress,
    Resources,
    Stop,
    UpdatedInput,
    UpdatedOutput,
)
from agenttool_otel.hooks.context import HookState
from agenttool_otel.hooks.matching import ToolFacts
from agenttool_otel.hooks.registry import BEFORE
from agenttool_otel.hooks.running import HookRun, arun_hook, run_hook
from agenttool_otel.names import (
    ApprovalStatus,
    Behavior,
    DecisionSource,
    ErrorClass,
    HookEvent,
    InvocationStatus,
    MutationSource,
    Ownership,
    PolicyMode,
    ReasonType,
    ResultStatus,
    ToolKind,
)
from agenttool_otel.policy.normalise import STRICTNESS
from agenttool_otel.policy.types import Verdict
from agenttool_otel.records import HookRecord, ToolError, utc_now
from agenttool_otel.results.content.size import size_of
from agenttool_otel.results.errors.control_flow import control_flow
from agenttool_otel.values.canonical import digest, keyed_digest
from agenttool_otel.values.inspection import error_name
from agenttool_otel.values.snapshot import snapshot

_MAX_ROUNDS: Final = 4
"""How often pre hooks may answer each other's changes before the call is denied."""

_REMOTE_KINDS: Final = frozenset(
    {ToolKind.MCP_TOOL, ToolKind.OPENAPI_OPERATION, ToolKind.PEER_AGENT_TOOL}
)
"""Kinds whose output comes through a protocol, which a post hook may update (standard, "Hook
outputs").
"""

_ATOMS: Final = frozenset({str, int, bool, float, type(None), bytes})

Run = Generator[Any, Any, tuple[HookRun, HookRecord]]
Phase = Generator[Any, Any, None]


class HookRunner:
    """Runs the hooks of calls."""

    __slots__ = ("_hooks", "_inputs", "_refusals", "_span")

    def __init__(self, hooks: Hooks, span: CallSpan, refusals: Refusals, inputs: Inputs) -> None:
        # found out at the first call, it would be a denial of every call
        if not isinstance(hooks, Hooks):
            raise ConfigurationError(f"hooks is a Hooks registry, not {type(hooks).__name__}")
        self._hooks = hooks
        self._span = span
        self._refusals = refusals
        self._inputs = inputs

    # --- before the body: only stricter, and a failure blocks -------------------------------------

    def before(self, call: Invocation, target: Target, session: Session) -> Phase:
        """Run the pre_tool_use hooks that have not seen the present input, until every one of them
        has.

        A change by one hook is shown to the others again, so that none has judged an input that
        does not run. Called before each decision: what an approver or the policy changed is shown
        as well.
        """
        if not (hooks := self._of(HookEvent.PRE_TOOL_USE, call)):
            return
        seen = _state(call).seen
        for _ in range(_MAX_ROUNDS):
            # by identity: each change makes a new dictionary, also one that equals an earlier one
            waiting = [
                hook for hook in hooks if seen.get(hook.hook_id) is not call.inputs.permission_input
            ]
            if not waiting:
                return
            call.enter(InvocationStatus.PRE_HOOKS_RUNNING)
            for hook in waiting:
                yield from self._pre(call, target, session, hook)
        if any(seen.get(hook.hook_id) is not call.inputs.permission_input for hook in hooks):
            self._block(call, session, hooks[-1], "the hooks keep changing each other's input")

    def _pre(self, call: Invocation, target: Target, session: Session, hook: Hook) -> Phase:
        run, record = yield from self._run(call, hook)
        seen = _state(call).seen
        seen[hook.hook_id] = call.inputs.permission_input
        call.resources.pop(hook.hook_id, None)  # looked up for another input
        if (refusal := self._refusal(call, hook, run)) is not None:
            self._block(call, session, hook, refusal, failed=run.failed)
        if run.failed:
            return  # its answer about an earlier input stands
        call.decision.hints = [
            hint for hint in call.decision.hints if hint["hook_id"] != hook.hook_id
        ]
        for output, entry in zip(run.outputs, record.outputs, strict=True):
            if isinstance(output, PermissionResult):
                message = self._refusals.redact(output.message, call)
                call.decision.hints.append(
                    {"hook_id": hook.hook_id, "behavior": str(output.behavior), "message": message}
                )
            elif isinstance(output, Resources):
                call.resources[hook.hook_id] = {
                    **call.resources.get(hook.hook_id, {}),
                    **output.values,
                }
            elif isinstance(output, UpdatedInput):
                self._change(call, target, hook, output, entry)
                seen[hook.hook_id] = call.inputs.permission_input  # its own change is no news to it

    def decided(
        self, call: Invocation, target: Target, verdict: Verdict
    ) -> Generator[Any, Any, Verdict]:
        """Join a decision with the hooks' answers: deny over ask over allow, so that a hook can only
        make it stricter.
        """
        for hint in call.decision.hints:
            if hint["behavior"] in (Behavior.ASK, Behavior.DENY):
                verdict = _stricter(
                    verdict, hint["hook_id"], Behavior(hint["behavior"]), hint["message"]
                )
        for hook in self._of(HookEvent.PERMISSION_DECISION, call):
            run, record = yield from self._run(
                call,
                hook,
                decision=verdict.behavior,
                rule=verdict.rule_ref,
                message=verdict.message,
            )
            if (refusal := self._refusal(call, hook, run)) is not None:
                verdict = _stricter(verdict, hook.hook_id, Behavior.DENY, refusal)
                verdict.extra = {**verdict.extra, HOOK_FAILED: run.failed}
            for output, entry in zip(run.outputs, record.outputs, strict=True):
                verdict = self._with_output(call, target, verdict, hook, output, entry)
        return verdict

    def _with_output(
        self,
        call: Invocation,
        target: Target,
        verdict: Verdict,
        hook: Hook,
        output: Any,
        entry: dict[str, Any],
    ) -> Verdict:
        """Return a verdict joined with one output of a permission_decision hook."""
        if isinstance(output, PermissionResult):
            # "A hook `allow` should not automatically bypass higher-priority deny or ask rules"
            # (standard, "Permission hook invariant")
            if output.behavior not in (Behavior.ASK, Behavior.DENY):
                return verdict
            message = self._refusals.redact(output.message, call)
            return _stricter(verdict, hook.hook_id, Behavior(output.behavior), message)
        if isinstance(output, UpdatedInput) and verdict.behavior is not Behavior.DENY:
            return self._propose(call, target, verdict, hook, output, entry)
        return verdict

    def _propose(
        self,
        call: Invocation,
        target: Target,
        verdict: Verdict,
        hook: Hook,
        output: UpdatedInput,
        entry: dict[str, Any],
    ) -> Verdict:
        """Let a permission_decision hook's input be the decision's, which is decided again like the
        policy's own.
        """
        visible, internal = self._inputs.split(call, output.arguments)
        if internal:
            self._inputs.inject(
                call, internal, hook.hook_id, self._refusals.redact(output.reason, call)
            )
            entry["applied"] = True
        if not self._inputs.is_new(call, visible):
            return verdict
        if _approved(call) or verdict.updated_input is not None:
            entry["ignored"] = "approved" if _approved(call) else "another change is decided first"
            return verdict
        entry["applied"] = True
        proposal = snapshot(visible)
        _state(call).proposal = (proposal, hook.hook_id, self._refusals.redact(output.reason, call))
        return replace(verdict, updated_input=proposal)

    def author(self, call: Invocation, verdict: Verdict) -> tuple[MutationSource, str, str]:
        """Return who wants a decision's updated input: a hook, or the policy itself."""
        proposal = _state(call).proposal
        if proposal is not None and proposal[0] is verdict.updated_input:
            return MutationSource.HOOK, proposal[1], proposal[2]
        return MutationSource.RUNTIME, verdict.rule_ref, "policy"

    def asking(self, call: Invocation, request: Any, session: Session) -> Phase:
        """Run the permission_request hooks before anybody is asked; they may still deny."""
        for hook in self._of(HookEvent.PERMISSION_REQUEST, call):
            run, _ = yield from self._run(
                call,
                hook,
                decision=Behavior.ASK,
                rule=request.rule_ref,
                message=request.message,
                request=request.model_dump(mode="json"),
            )
            if (refusal := self._refusal(call, hook, run)) is not None:
                call.decision.request = None  # it was never stored
                self._block(call, session, hook, refusal, failed=run.failed)

    def _refusal(self, call: Invocation, hook: Hook, run: HookRun) -> str | None:
        """Return why a hook before the body keeps the call from running, or ``None``."""
        if run.failed:
            if hook.on_failure != "block":
                return None
            if run.no_turn:
                return f"the hook {hook.hook_id} got no turn: the process is too busy"
            what = "took too long" if run.timed_out else f"failed: {_failure(run)}"
            return f"the hook {hook.hook_id} {what}"
        for output in run.outputs:
            if isinstance(output, Stop):
                return (
                    self._refusals.redact(output.reason, call)
                    or f"the hook {hook.hook_id} stopped the call"
                )
            if isinstance(output, PermissionResult) and output.behavior is Behavior.DENY:
                return (
                    self._refusals.redact(output.message, call)
                    or f"the hook {hook.hook_id} denies the call"
                )
        return None

    def _block(
        self, call: Invocation, session: Session, hook: Hook, message: str, *, failed: bool = False
    ) -> None:
        verdict = Verdict(
            Behavior.DENY,
            source=DecisionSource.HOOK,
            reason_type=ReasonType.HOOK,
            rule_ref=_ref(hook.hook_id),
            rule_refs=(_ref(hook.hook_id),),
            message=message,
            extra={HOOK_FAILED: failed},
        )
        self._refusals.decide(call, verdict)
        self._refusals.deny(call, verdict, session)

    def _change(
        self,
        call: Invocation,
        target: Target,
        hook: Hook,
        output: UpdatedInput,
        entry: dict[str, Any],
    ) -> None:
        visible, internal = self._inputs.split(call, output.arguments)
        reason = self._refusals.redact(output.reason, call)
        if internal:
            self._inputs.inject(call, internal, hook.hook_id, reason)
            entry["applied"] = True
        if digest(visible) == digest(call.inputs.permission_input):
            return
        if _approved(call):
            # what a person approved runs exactly as they saw it, or not at all
            entry["ignored"] = "approved"
            return
        self._inputs.mutate(call, target, visible, MutationSource.HOOK, hook.hook_id, reason)
        entry["applied"] = True

    # --- after the body: nothing breaks -----------------------------------------------------------

    def after(self, call: Invocation) -> Phase:
        """Run the hooks of a tool that returned or failed; a pause or a cancellation is neither."""
        if call.outcome.error is not None and call.outcome.result_status in (
            ResultStatus.FAILED,
            ResultStatus.TIMED_OUT,
        ):
            # also of a tool that returned its failure as a value
            event = HookEvent.POST_TOOL_USE_FAILURE
        elif call.ran:
            event = HookEvent.POST_TOOL_USE
        else:
            return
        if not (hooks := self._of(event, call)):
            return
        status, at = call.outcome.transitions.pop()
        call.enter(InvocationStatus.POST_HOOKS_RUNNING)
        try:
            for hook in hooks:
                yield from self._post(call, hook)
        finally:
            # the end of the tool stays the last state: a call that ends with post_hooks_running
            # would read as one that never ended
            call.outcome.status = status
            call.outcome.transitions.append((status, max(at, call.outcome.transitions[-1][1])))

    def _post(self, call: Invocation, hook: Hook) -> Phase:
        try:
            run, record = yield from self._run(
                call,
                hook,
                decision=call.decision.verdict.behavior
                if call.decision.verdict is not None
                else None,
                status=call.outcome.result_status.value,
                result=_copied(call.delivered) if call.ran else None,
                size=call.outcome.size,
                items=call.outcome.items,
                error=call.outcome.error.model_dump(mode="json")
                if call.outcome.error is not None
                else None,
            )
            if run.failed and call.outcome.result_error is None:
                call.outcome.result_error = ToolError.of(
                    ErrorClass.POST_HOOK_FAILED, f"the hook {hook.hook_id} failed: {_failure(run)}"
                )
            for output, entry in zip(run.outputs, record.outputs, strict=True):
                if isinstance(output, UpdatedOutput):
                    self._replace(call, hook, output, entry)
        except Exception as bug:
            self._span.telemetry.losses.note("hook", bug)

    def _replace(
        self, call: Invocation, hook: Hook, output: UpdatedOutput, entry: dict[str, Any]
    ) -> None:
        spec = call.spec
        remote = spec.ownership == Ownership.MCP or spec.declaration.tool_kind in _REMOTE_KINDS
        if (
            not call.ran
            or call.outcome.error is not None
            or call.outcome.items is not None
            or call.tap is not None
        ):
            entry["ignored"] = "there is no output that could still be replaced"
        # "If a protocol-specific post hook owns output mutation, record that mutation and remap
        # after the hook" (standard, "Result mapping once")
        elif not remote and not hook.owns_output:
            entry["ignored"] = "the hook does not own this tool's output"
        else:
            entry["from"], entry["to"] = keyed_digest(call.delivered), keyed_digest(output.value)
            size = size_of(output.value)
            call.delivered, call.outcome.size = snapshot(output.value), size
            entry["applied"] = True

    def persisted(self, call: Invocation) -> Phase:
        """Run the result_persistence hooks with how the result was kept."""
        if call.outcome.persistence is None:
            return
        for hook in self._of(HookEvent.RESULT_PERSISTENCE, call):
            kept = call.outcome.persistence.to_json_object()
            try:
                yield from self._run(
                    call,
                    hook,
                    status=call.outcome.result_status.value,
                    size=call.outcome.size,
                    persistence=kept,
                )
            except Exception as bug:
                self._span.telemetry.losses.note("hook", bug)

    # --- one run ----------------------------------------------------------------------------------

    def _of(self, event: HookEvent, call: Invocation) -> tuple[Hook, ...]:
        if not len(self._hooks):
            return ()
        declaration = call.spec.declaration
        names = (declaration.name, *declaration.aliases)
        facts = ToolFacts(
            declaration.tool_id, names, declaration.namespace, str(declaration.tool_kind)
        )
        return self._hooks.matching(event, facts)

    def _run(self, call: Invocation, hook: Hook, **facts: Any) -> Run:
        """Run one hook, and record its outputs."""
        record = HookRecord(
            hook_id=hook.hook_id,
            hook_event=hook.event,
            invocation_id=call.id,
            tool_id=call.spec.tool_id,
            matcher=hook.matcher.to_json_object() or None,
            started_at=utc_now(),
        )
        self._span.record_hook_started(call, record)
        # from here on there is a record: whoever cancels the call cancels its hook
        call.decision.hook_records.append(record)
        try:
            run: HookRun = yield Call(run_hook, arun_hook, (hook, _context(call, hook, facts)))
        except BaseException as error:
            self._interrupted(call, record, error)
            raise
        record.ended_at = utc_now()
        try:
            self._note(call, hook, run, record)
        finally:
            self._span.record_hook_completed(call, record)
        if run.exception is not None and hook.event in BEFORE and control_flow(run.exception):
            raise run.exception  # a framework's own pause: the call waits, it does not run
        return run, record

    def _interrupted(self, call: Invocation, record: HookRecord, error: BaseException) -> None:
        """Record that a hook had no time to end."""
        record.ended_at = utc_now()
        record.failure = {
            "error_type": error_name(error),
            "timed_out": False,
            "effect": "canceled",
        }
        self._span.record_hook_completed(call, record)

    def _note(self, call: Invocation, hook: Hook, run: HookRun, record: HookRecord) -> None:
        """Write the outputs into the record, and pass on what has no effect on the call itself."""
        state, clean = _state(call), partial(self._refusals.redact, call=call)
        if run.failed:
            record.failure = {
                "error_type": _failure(run),
                "timed_out": run.timed_out,
                "effect": hook.on_failure,
            }
            if run.no_turn:
                record.failure["no_turn"] = True
        for output in run.outputs:
            entry: dict[str, Any] = {"kind": output.kind}
            record.outputs.append(entry)
            match output:
                case Message():
                    entry["level"] = output.level[:32]
                    state.messages.append(
                        {
                            "hook_id": hook.hook_id,
                            "level": output.level[:32],
                            "text": clean(output.text),
                        }
                    )
                case Progress():
                    self._span.record_hook_progress(call, state.steps, output.percent)
                    entry.update(
                        sequence=state.steps, percent=output.percent, message=clean(output.message)
                    )
                    state.steps += 1
                case AdditionalContext():
                    added = {
                        "hook_id": hook.hook_id,
                        "text": clean(output.text),
                        "source": clean(output.source),
                    }
                    record.additional_context.append(added)
                    call.decision.hook_context.append(added)
                case PermissionResult():
                    record.permission_result = {
                        "behavior": str(output.behavior),
                        "message": clean(output.message),
                    }
                case Stop():
                    _note_stop(state, record, clean(output.reason))
                case Resources():
                    entry["names"] = sorted(output.values)
                    if hook.event is not HookEvent.PRE_TOOL_USE:
                        entry["ignored"] = "too late for the decision"
                case UpdatedInput():
                    entry.update(applied=False, reason=clean(output.reason))
                    if hook.event not in (HookEvent.PRE_TOOL_USE, HookEvent.PERMISSION_DECISION):
                        entry["ignored"] = "too late to change the input"
                    visible, _ = self._inputs.split(call, output.arguments)
                    record.updated_input = self._span.redaction.redact_content(
                        visible, call.spec.sensitive
                    )
                case UpdatedOutput():
                    entry.update(applied=False, reason=clean(output.reason))
                    if hook.event is not HookEvent.POST_TOOL_USE:
                        entry["ignored"] = "there is no output that could still be replaced"
                    record.updated_output = self._span.redaction.redact_content(
                        output.value, call.spec.redact_result
                    )


def _note_stop(state: HookState, record: HookRecord, reason: str) -> None:
    if record.hook_event in BEFORE:
        record.stop = {"effect": "blocked", "reason": reason}
        return
    record.stop = {"effect": "passed_on", "reason": reason}
    if state.stop is None:
        state.stop = {"hook_id": record.hook_id, "reason": reason}


def _state(call: Invocation) -> HookState:
    if call.decision.hook_state is None:
        call.decision.hook_state = HookState()
    state: HookState = call.decision.hook_state
    return state


def _context(call: Invocation, hook: Hook, facts: dict[str, Any]) -> HookContext:
    declaration, context = call.spec.declaration, call.context
    return HookContext(
        event=hook.event,
        hook_id=hook.hook_id,
        invocation_id=call.id,
        native_call_id=call.native_call_id,
        tool_id=declaration.tool_id,
        tool_name=declaration.name,
        namespace=declaration.namespace,
        tool_kind=str(declaration.tool_kind),
        ownership=call.spec.ownership,
        risk_level=call.spec.permission.risk_level.value,
        actor=context.actor,
        tenant=context.tenant,
        roles=tuple(context.roles),
        session_id=context.session_id,
        mode=context.mode,
        labels=dict(context.labels),
        resumed=call.resumed,
        model_input=snapshot(call.inputs.model_input),
        arguments=snapshot(call.inputs.permission_input),
        **facts,
    )


def _copied(value: Any) -> Any:
    """Return a result as a hook may have it: never the object that the caller gets."""
    from agenttool_otel.results.content.shown import shown_json

    return value if type(value) in _ATOMS else shown_json(value)


def _approved(call: Invocation) -> bool:
    return (
        call.decision.approval is not None
        and call.decision.approval["status"] == ApprovalStatus.APPROVED
    )


def _failure(run: HookRun) -> str:
    return "TimeoutError" if run.exception is None else error_name(run.exception)


def _ref(hook_id: str) -> str:
    return f"hook:{hook_id}"


def _stricter(verdict: Verdict, hook_id: str, behavior: Behavior, message: str) -> Verdict:
    """Return the stricter of a decision and a hook's opinion.

    A decision in shadow mode blocks nothing, so a hook's opinion is compared with an allow; hooks
    are no policy, and their answers are never shadowed.
    """
    shadowed = verdict.mode is PolicyMode.SHADOW
    if behavior is Behavior.ASK and verdict.suggested_updates:
        # what a hook asks, no remembered approval answers
        verdict = replace(verdict, suggested_updates=())
    if STRICTNESS[behavior] <= STRICTNESS[Behavior.ALLOW if shadowed else verdict.behavior]:
        return verdict
    return replace(
        verdict,
        behavior=behavior,
        source=DecisionSource.HOOK,
        mode=PolicyMode.ENFORCE,
        reason_type=ReasonType.HOOK,
        rule_ref=_ref(hook_id),
        rule_refs=(_ref(hook_id), *verdict.rule_refs),
        message=message or f"the hook {hook_id} answers {behavior.value}",
        fail_closed=None,
        updated_input=None if behavior is Behavior.DENY else verdict.updated_input,
        shadow=verdict if shadowed else verdict.shadow,
    )
