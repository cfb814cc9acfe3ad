"""The story of one decision: what its span records, in plain sentences.

``agenttool trace --why SPAN`` prints it. Each of the functions in ``_PARTS`` yields the sentences on
one subject, or none where the span has nothing on it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from agenttool_otel.cli.plain_text import (
    clean,
    counted,
    duration_text,
    full_stop,
    joined,
    size_text,
)
from agenttool_otel.cli.spans import EventView, SpanView
from agenttool_otel.names import (
    ApprovalStatus,
    Attr,
    Behavior,
    DecisionSource,
    Event,
    FailClosedCause,
    GenAI,
    Outcome,
    PersistenceStrategy,
    PolicyMode,
    Recoverability,
    RedactionState,
    SandboxScope,
)
from agenttool_otel.names.advice import would_answer

CAUSES: Final[dict[str, str]] = {
    FailClosedCause.UNDEFINED: "the policy had no answer for this input",
    FailClosedCause.MALFORMED: "the policy's answer was not a decision",
    FailClosedCause.UNKNOWN_BEHAVIOR: "the policy's answer was none of allow, ask and deny",
    FailClosedCause.ENGINE_ERROR: "the policy engine failed",
    FailClosedCause.ENGINE_PANIC: "the policy engine crashed",
    FailClosedCause.TIMEOUT: "the policy engine did not answer in time",
    FailClosedCause.UNAVAILABLE: "the policy engine could not be reached",
    FailClosedCause.CIRCUIT_OPEN: "the policy engine failed so often that it is not asked for a while",
    FailClosedCause.BUNDLE_MISSING: "no policy bundle was loaded",
    FailClosedCause.INPUT_INVALID: "the input for the policy did not fit its schema",
    FailClosedCause.NO_DECISION: "no engine decided",
    FailClosedCause.STORE_UNAVAILABLE: "the store of approvals or sessions could not be used",
    FailClosedCause.SANDBOX_UNAVAILABLE: "nothing on that host could hold it as the policy obliges",
    FailClosedCause.INTERNAL: "something broke inside the permission check",
}
_EFFECTS: Final[dict[str, str]] = {
    Attr.EFFECTS_CREATED: "created",
    Attr.EFFECTS_CHANGED: "changed",
    Attr.EFFECTS_DELETED: "deleted",
}
ADVICE: Final[dict[str, str]] = {
    Recoverability.RETRY_SAFE: "The same call may be sent again.",
    Recoverability.RETRY_LATER: "The same call may succeed later.",
    Recoverability.CHANGE_ARGUMENTS: "A retry needs other arguments.",
    Recoverability.CHANGE_ARGUMENTS_OR_POLICY: "A retry needs other arguments or another policy.",
    Recoverability.DISCOVER_FIRST: "The tool's schema has to be discovered first.",
    Recoverability.APPROVAL_NEEDED: "It needs an approval.",
    Recoverability.SETUP_NEEDED: "Something has to be set up first.",
    Recoverability.SIBLING_CAUSED: (
        "Another call of its batch caused this; the call itself may be sent again."
    ),
    Recoverability.NOT_RECOVERABLE: "A retry does not help.",
}
VERBS: Final[dict[str, str]] = {
    Behavior.ALLOW: "allowed it",
    Behavior.ASK: "asked for an approval",
    Behavior.DENY: "denied it",
}
DECIDERS: Final[dict[str, str]] = {
    DecisionSource.USER: "A person",
    DecisionSource.HOOK: "A hook",
    DecisionSource.TIMEOUT: "A passed deadline",
    DecisionSource.ERROR: "The fail-closed rule",
    DecisionSource.DEFAULT: "The default",
}
KEPT: Final[dict[str, str]] = {
    PersistenceStrategy.INLINE: ", given whole",
    PersistenceStrategy.PREVIEW_AND_PERSIST: ", stored, with a preview given",
    PersistenceStrategy.REF_ONLY: ", stored, with a reference given",
    PersistenceStrategy.REDACT: ", redacted",
    PersistenceStrategy.DROP_WITH_REASON: ", dropped",
    PersistenceStrategy.NEVER_PERSIST: ", not stored",
}


def why(span: SpanView) -> str:
    """Return the story of one call, a sentence a line.

    It answers who called what, who decided, why, what happened, and what would help. A span that is
    no governed tool call has one sentence, which states that.
    """
    if not span.is_tool_call:
        name = f"{clean(span.span_id)} ({clean(span.name)})"
        return f"The span {name} is not a governed tool call: nothing was decided."
    sentences: list[str] = []
    for part in _PARTS:
        sentences.extend(part(span))
    return "\n".join(sentences)


def _text(span: SpanView, name: str) -> str:
    """The value of an attribute as safe text, empty where the span has none."""
    return clean(span.text(name))


def _call(span: SpanView) -> Iterator[str]:
    caller = _text(span, Attr.ACTOR_ID) or _text(span, GenAI.AGENT_NAME) or "An unnamed actor"
    if tenant := _text(span, Attr.TENANT_ID):
        caller += f" of tenant {tenant}"
    verb = "called"
    if span.get(Attr.INVOCATION_RESUMED) is True:
        verb = "continued the call of"
    tool = _text(span, GenAI.TOOL_NAME) or clean(span.name)
    risk = _text(span, Attr.TOOL_RISK_LEVEL)
    facts = joined(
        [
            _text(span, Attr.TOOL_NAMESPACE),
            _text(span, Attr.TOOL_KIND),
            f"risk {risk}" if risk else "",
        ]
    )
    if facts:
        tool += f" ({facts})"
    if session := _text(span, Attr.SESSION_ID):
        tool += f" in session {session}"
    yield f"{caller} {verb} the tool {tool}."
    if invocation := _text(span, Attr.INVOCATION_ID):
        yield f"The invocation is {invocation}."


def _decision(span: SpanView) -> Iterator[str]:
    behavior = span.get(Attr.PERMISSION_BEHAVIOR)
    if behavior is None:
        # an unknown tool, arguments that fit no schema: the policy was never asked
        if error := _text(span, GenAI.ERROR_TYPE):
            yield f"It ended before anything was decided: {error}."
        else:
            yield "No decision is recorded."
        return
    decision = VERBS.get(str(behavior), f"answered {clean(behavior)}")
    took = span.number(Attr.PERMISSION_DURATION)
    if took is not None:
        decision += f" in {duration_text(took)}"
    if span.get(Attr.POLICY_CACHED) is True:
        decision += ", from the decision cache"
    yield f"{_decider(span)} {decision}."
    yield from _reason(span)
    yield from _mode(span)


def _decider(span: SpanView) -> str:
    source = str(span.get(Attr.PERMISSION_SOURCE))
    if source in DECIDERS:
        return DECIDERS[source]
    engine = _text(span, Attr.POLICY_ENGINE)
    revision = _text(span, Attr.POLICY_REVISION)
    policy = joined(
        [
            f"engine {engine}" if engine else "",
            f"revision {revision}" if revision else "",
        ]
    )
    return f"The policy ({policy})" if policy else "The policy"


def _reason(span: SpanView) -> Iterator[str]:
    rule = _text(span, Attr.PERMISSION_RULE)
    message = _text(span, Attr.PERMISSION_REASON_MESSAGE)
    if rule and message:
        yield full_stop(f"The deciding rule was {rule}: {message}")
    elif rule:
        yield f"The deciding rule was {rule}."
    elif message:
        yield full_stop(f"The reason given: {message}")
    if argument := _text(span, Attr.PERMISSION_BLOCKED_ARGUMENT):
        path = _text(span, Attr.PERMISSION_BLOCKED_PATH)
        names = f", which names {path}" if path else ""
        yield f"It is about the argument {argument}{names}."
    yield from _rules(span)
    if cause := span.get(Attr.PERMISSION_FAIL_CLOSED):
        because = CAUSES.get(str(cause), clean(cause))
        yield f"It was denied because {because}: without a decision nothing runs."


def _rules(span: SpanView) -> Iterator[str]:
    """Yield the questions that nothing had answered, and then the other rules."""
    asking = _names(span, Attr.PERMISSION_OPEN_QUESTIONS)
    for name in asking:
        yield f"The open question was {clean(name)}; it would be answered by {would_answer(name)}."
    shown = {_text(span, Attr.PERMISSION_RULE), *asking}
    others = [name for name in _names(span, Attr.PERMISSION_RULES) if name not in shown]
    if others:
        yield f"Other rules that fired: {clean(others)}."


def _names(span: SpanView, attribute: str) -> list[str]:
    value = span.get(attribute)
    return [str(name) for name in value] if isinstance(value, (list, tuple)) else []


def _mode(span: SpanView) -> Iterator[str]:
    if span.get(Attr.PERMISSION_MODE) == PolicyMode.SHADOW:
        yield "The policy ran in shadow mode: the decision was recorded and did not bind."
    if behavior := _text(span, Attr.PERMISSION_SHADOW_BEHAVIOR):
        rule = _text(span, Attr.PERMISSION_SHADOW_RULE)
        by_rule = f" by rule {rule}" if rule else ""
        yield f"The shadow policy, which does not bind, would have decided {behavior}{by_rule}."


def _approval(span: SpanView) -> Iterator[str]:
    status = span.get(Attr.APPROVAL_STATUS)
    if not status:
        return
    request = "The request"
    if request_id := _text(span, Attr.APPROVAL_ID):
        request += f" {request_id}"
    yield f"{request} {_approval_state(span, str(status))}."


def _approval_state(span: SpanView, status: str) -> str:
    wait = span.approval_wait
    after = f" after {duration_text(wait)}" if wait is not None else ""
    match status:
        case ApprovalStatus.PENDING:
            return "waits for an answer"
        case ApprovalStatus.APPROVED:
            return f"was approved{after}"
        case ApprovalStatus.CONSUMED:
            # a second call behind a used approval is denied: its own span has the same status
            if span.get(Attr.PERMISSION_OUTCOME) == Outcome.NOT_EXECUTED:
                return f"was approved{after} and is used up: it covers one run"
            return f"was approved{after} and used for this run"
        case ApprovalStatus.REJECTED:
            return f"was rejected{after}"
        case ApprovalStatus.EXPIRED:
            return f"expired{after}, which is nobody's refusal"
        case ApprovalStatus.CANCELED:
            return f"was withdrawn{after}"
        case ApprovalStatus.INTERRUPTED:
            return "was used for a run that was interrupted"
    return f"is in state {clean(status)}"


def _run(span: SpanView) -> Iterator[str]:
    match span.get(Attr.PERMISSION_OUTCOME):
        case Outcome.EXECUTED:
            yield _ran(span)
            yield from _times(span)
        case Outcome.NOT_EXECUTED:
            yield "The tool did not run."
        case Outcome.PENDING:
            yield "The tool has not run: the call is paused and keeps its invocation id."
    for event in span.events:
        if event.name == Event.INPUT_MUTATED:
            yield _mutation(event)


def _ran(span: SpanView) -> str:
    sentence = "The tool ran"
    run = span.number(Attr.INVOCATION_RUN_SECONDS)
    if run is not None:
        sentence += f" for {duration_text(run)}"
    if status := _text(span, Attr.INVOCATION_STATUS):
        sentence += f", ending with status {status}"
    return f"{sentence}."


def _mutation(event: EventView) -> str:
    source = clean(event.attributes.get(Attr.MUTATION_SOURCE, "something"))
    fields = clean(event.attributes.get(Attr.MUTATION_CHANGED_FIELDS) or "its arguments")
    return f"On the way its input was changed by {source}: {fields}."


def _times(span: SpanView) -> Iterator[str]:
    """The time of the whole call, apart from those of its parts."""
    if span.seconds is None:
        return
    parts: list[str] = []
    decision = span.number(Attr.PERMISSION_DURATION)
    if decision is not None:
        parts.append(f"{duration_text(decision)} for the decision")
    wait = span.approval_wait
    # the person answered before a resumed call's span began: 2 hours of waiting, 30 ms of span
    if wait is not None and span.get(Attr.INVOCATION_RESUMED) is not True:
        parts.append(f"{duration_text(wait)} for the answer")
    run = span.number(Attr.INVOCATION_RUN_SECONDS)
    if run is not None:
        parts.append(f"{duration_text(run)} for the tool")
    whole = f"The whole call took {duration_text(span.seconds)}"
    if parts:
        whole += f": {joined(parts)}"
    yield f"{whole}."


def _sandbox(span: SpanView) -> Iterator[str]:
    yield from _reported(span)
    profile = _text(span, Attr.SANDBOX_PROFILE)
    if not profile:
        return
    if span.get(Attr.SANDBOX_ENFORCED) is not True:
        yield f"The decision obliges the sandbox {profile}, and nothing ran inside of it."
        return
    mechanism = _text(span, Attr.SANDBOX_MECHANISM)
    by = f", held by {mechanism}" if mechanism else ""
    what = "It"
    if span.get(Attr.SANDBOX_SCOPE) == SandboxScope.COMMAND:
        what = "Each command of its"
    yield f"{what} ran inside the sandbox {profile}{by}."
    refused = span.get(Attr.SANDBOX_VIOLATIONS)
    if isinstance(refused, int) and refused:
        times = "once" if refused == 1 else f"{refused} times"
        yield f"The sandbox refused {times} what it tried."
    yield from _effects(span)


def _effects(span: SpanView) -> Iterator[str]:
    """Yield what a rehearsed body would change, and what became of it."""
    if span.get(Attr.EFFECTS_CREATED) is None:
        return
    names = {event.name for event in span.events}
    found = []
    for name, word in _EFFECTS.items():
        count = span.get(name)
        if isinstance(count, int) and count:
            found.append(f"{word} {counted(count, 'path')}")
    tried = span.get(Attr.EFFECTS_CONNECTIONS)
    if isinstance(tried, int) and tried:
        found.append(f"tried {counted(tried, 'connection')}")
    if not found and Event.EFFECTS_COMMITTED not in names:
        yield "Its commands ran on a layer and changed nothing that counts."
        return
    yield f"Its commands ran on a layer, where they {joined(found) or 'changed little'}."
    if Event.EFFECTS_COMMITTED in names:
        yield "That was decided a second time, and committed."
    elif Event.EFFECTS_DISCARDED in names:
        yield "That was not allowed, or could not be committed; it was thrown away."
    else:
        yield "That waits on the layer for an answer."


def _reported(span: SpanView) -> Iterator[str]:
    """Yield what a body reported of itself, and whether it went on."""
    count = span.get(Attr.EFFECTS_REPORTED)
    if count is None:
        return
    yield f"It reported to change {count}, before it committed; that was decided a second time."
    names = {event.name for event in span.events}
    if Event.EFFECTS_UNHEEDED in names:
        yield "It was refused, and went on nevertheless: what it reported may have happened."
    elif Event.EFFECTS_COMMITTED in names:
        yield "It was allowed, and the tool ended."
    elif Event.EFFECTS_DISCARDED in names:
        yield "The tool ended with an error, which rolls its own transaction back."
    else:
        yield "Nothing is known of what became of it."


def _result(span: SpanView) -> Iterator[str]:
    size = span.get(Attr.RESULT_SIZE_BYTES)
    if isinstance(size, int):
        kept = KEPT.get(str(span.get(Attr.RESULT_PERSISTENCE)), "")
        yield f"The result has {size_text(size)}{kept}."
    state = span.get(Attr.REDACTION_STATE)
    if not state or state == RedactionState.NONE:
        return
    if state == RedactionState.FAILED:
        yield "Redaction failed, so what it could not clear was withheld."
        return
    count = span.get(Attr.REDACTION_COUNT)
    content = "Sensitive content was"
    if isinstance(count, int) and count:
        content = counted(count, "finding") + (" was" if count == 1 else " were")
    yield f"{content} {clean(state)} before anything left the process."


def _end(span: SpanView) -> Iterator[str]:
    error = _text(span, GenAI.ERROR_TYPE)
    if not error or span.status != "error":
        return
    if code := _text(span, Attr.ERROR_CODE):
        error += f" ({code})"
    sentence = f"The caller received {error}."
    if advice := ADVICE.get(str(span.get(Attr.ERROR_RECOVERABILITY))):
        sentence += f" {advice}"
    yield sentence


_PARTS: Final = (_call, _decision, _approval, _run, _sandbox, _result, _end)
