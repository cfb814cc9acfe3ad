"""The story of one decision, told from its span in plain sentences."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from agenttool_otel.cli.spans import SpanView
from agenttool_otel.names import Attr, Event, GenAI, Outcome, PolicyMode, RedactionState
from agenttool_otel.values.tables import load_table


@cache
def words() -> dict[str, dict[str, str]]:
    """Return the sentences, by what they are about."""
    table: dict[str, dict[str, str]] = load_table(__package__, "story.toml")
    return table


def clean(value: Any, *, limit: int = 400) -> str:
    """Make foreign text safe to print: control, format and surrogate characters become visible
    escapes.
    """
    text = ", ".join(str(item) for item in value) if isinstance(value, list | tuple) else str(value)
    if len(text) > limit:
        text = text[: limit - 1] + "…"
    hidden = {
        char
        for char in text
        if unicodedata.category(char) in {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    }
    return "".join(
        char.encode("unicode_escape").decode("ascii") if char in hidden else char for char in text
    )


def duration_text(seconds: float) -> str:
    """A duration for people: ``850 µs``, ``12.3 ms``, ``4.2 s``, ``3 min 20 s``, ``2 h 5 min``."""
    if seconds < 0.001:
        return f"{seconds * 1e6:.0f} µs"
    if seconds < 1:
        return f"{seconds * 1e3:.1f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def size_text(size: int) -> str:
    """A size for people: ``200 B``, ``1.2 kB``, ``5.0 MB``."""
    number = float(size)
    for unit in ("B", "kB", "MB", "GB"):
        if number < 1000 or unit == "GB":
            return f"{size} B" if unit == "B" else f"{number:.1f} {unit}"
        number /= 1000
    raise AssertionError("unreachable")  # pragma: no cover


def waited(span: SpanView) -> float | None:
    """Seconds between the question and its answer, ``None`` when there was no answer within
    this span.
    """
    if (stated := _seconds(span, Attr.APPROVAL_WAIT)) is not None:
        return stated
    asked, answered = (
        span.first_event(Event.APPROVAL_REQUESTED),
        span.first_event(Event.APPROVAL_ANSWERED),
    )
    return (
        None
        if asked is None or answered is None
        else max(0, answered.time_ns - asked.time_ns) / 1e9
    )


def why(span: SpanView) -> str:
    """Tell the story of one decision: who called what, who decided, why, what happened, what would
    help.
    """
    if not span.is_tool_call:
        return f"The span {clean(span.span_id)} ({clean(span.name)}) is not a governed tool call: nothing was decided."
    return "\n".join(sentence for part in _STORY for sentence in part(span))


def _call(span: SpanView) -> Iterator[str]:
    who = clean(span.get(Attr.ACTOR_ID) or span.get(GenAI.AGENT_NAME) or "An unnamed actor")
    tool = clean(span.get(GenAI.TOOL_NAME) or span.name)
    facts = []
    for label, name in (
        ("", Attr.TOOL_NAMESPACE),
        ("", Attr.TOOL_KIND),
        ("risk ", Attr.TOOL_RISK_LEVEL),
    ):
        if span.get(name):
            facts.append(label + clean(span.get(name)))
    described = f" ({', '.join(facts)})" if facts else ""
    session = f" in session {clean(span.get(Attr.SESSION_ID))}" if span.get(Attr.SESSION_ID) else ""
    tenant = f" of tenant {clean(span.get(Attr.TENANT_ID))}" if span.get(Attr.TENANT_ID) else ""
    verb = "continued the call of" if span.get(Attr.INVOCATION_RESUMED) is True else "called"
    yield f"{who}{tenant} {verb} the tool {tool}{described}{session}."
    if span.get(Attr.INVOCATION_ID):
        yield f"The invocation is {clean(span.get(Attr.INVOCATION_ID))}."


def _decision(span: SpanView) -> Iterator[str]:
    if (behavior := span.get(Attr.PERMISSION_BEHAVIOR)) is None:
        error = span.get(GenAI.ERROR_TYPE)
        yield (
            f"It ended before anything was decided: {clean(error)}."
            if error
            else "No decision is recorded."
        )
        return
    verb = words()["verbs"].get(str(behavior), f"answered {clean(behavior)}")
    subject = _decider(span)
    took = _seconds(span, Attr.PERMISSION_DURATION)
    time = f" in {duration_text(took)}" if took is not None else ""
    cached = ", from the decision cache" if span.get(Attr.POLICY_CACHED) is True else ""
    yield f"{subject} {verb}{time}{cached}."
    rule, message = span.get(Attr.PERMISSION_RULE), span.get(Attr.PERMISSION_REASON_MESSAGE)
    if rule:
        yield (
            f"The deciding rule was {clean(rule)}"
            + (f": {clean(message)}" if message else "")
            + _stop(message)
        )
    elif message:
        yield f"The reason given: {clean(message)}" + _stop(message)
    argument, path = (
        span.get(Attr.PERMISSION_BLOCKED_ARGUMENT),
        span.get(Attr.PERMISSION_BLOCKED_PATH),
    )
    if argument:
        yield f"It is about the argument {clean(argument)}" + (
            f", which names {clean(path)}." if path else "."
        )
    others = [item for item in _listed(span.get(Attr.PERMISSION_RULES)) if item != rule]
    if others:
        yield f"These rules said something too: {clean(others)}."
    if cause := span.get(Attr.PERMISSION_FAIL_CLOSED):
        why_not = words()["causes"].get(str(cause), clean(cause))
        yield f"It was denied because {why_not}: without a decision nothing runs."
    if span.get(Attr.PERMISSION_MODE) == PolicyMode.SHADOW:
        yield "The policy ran in shadow mode: the decision was recorded and did not bind."
    if shadow := span.get(Attr.PERMISSION_SHADOW_BEHAVIOR):
        rule = span.get(Attr.PERMISSION_SHADOW_RULE)
        by = f" by rule {clean(rule)}" if rule else ""
        yield f"The shadow policy, which binds nobody, would have said {clean(shadow)}{by}."


def _decider(span: SpanView) -> str:
    decider = words()["deciders"].get(str(span.get(Attr.PERMISSION_SOURCE)))
    if decider is not None:
        return decider
    engine, revision = span.get(Attr.POLICY_ENGINE), span.get(Attr.POLICY_REVISION)
    known = [
        part
        for part in (
            engine and f"engine {clean(engine)}",
            revision and f"revision {clean(revision)}",
        )
        if part
    ]
    return "The policy" + (f" ({', '.join(known)})" if known else "")


def _approval(span: SpanView) -> Iterator[str]:
    if not (status := span.get(Attr.APPROVAL_STATUS)):
        return
    request = f" {clean(span.get(Attr.APPROVAL_ID))}" if span.get(Attr.APPROVAL_ID) else ""
    wait = waited(span)
    after = f" after {duration_text(wait)}" if wait is not None else ""
    ran = span.get(Attr.PERMISSION_OUTCOME) != Outcome.NOT_EXECUTED
    used = "used for this run" if ran else "is used up: it covers one run"
    told = words()["approvals"].get(str(status), "The request{request} is in state {state}.")
    yield told.format(request=request, after=after, used=used, state=clean(status))


def _effect(span: SpanView) -> Iterator[str]:
    outcome = span.get(Attr.PERMISSION_OUTCOME)
    ran = _seconds(span, Attr.INVOCATION_RUN_SECONDS)
    time = f" for {duration_text(ran)}" if ran is not None else ""
    status = (
        f" with status {clean(span.get(Attr.INVOCATION_STATUS))}"
        if span.get(Attr.INVOCATION_STATUS)
        else ""
    )
    if outcome == Outcome.EXECUTED:
        yield f"The tool ran{time}{status and ', ending' + status}."
        yield from _times(span, ran)
    elif outcome == Outcome.NOT_EXECUTED:
        yield "The tool did not run."
    elif outcome == Outcome.PENDING:
        yield "The tool has not run: the call is paused and keeps its invocation id."
    changed = [event for event in span.events if event.name == Event.INPUT_MUTATED]
    for event in changed:
        source = clean(event.attributes.get(Attr.MUTATION_SOURCE, "something"))
        fields = clean(event.attributes.get(Attr.MUTATION_CHANGED_FIELDS) or "its arguments")
        yield f"On the way its input was changed by {source}: {fields}."


def _times(span: SpanView, ran: float | None) -> Iterator[str]:
    """Tell the time of the whole call apart from those of its parts."""
    if span.seconds is None:
        return
    parts = [
        (_seconds(span, Attr.PERMISSION_DURATION), "for the decision"),
        # else before it
        (None if span.get(Attr.INVOCATION_RESUMED) is True else waited(span), "for the answer"),
        (ran, "for the tool"),
    ]
    known = ", ".join(
        f"{duration_text(seconds)} {what}" for seconds, what in parts if seconds is not None
    )
    yield f"The whole call took {duration_text(span.seconds)}" + (f": {known}." if known else ".")


def _seconds(span: SpanView, name: str) -> float | None:
    value = span.get(name)
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None


def _result(span: SpanView) -> Iterator[str]:
    size = span.get(Attr.RESULT_SIZE_BYTES)
    if isinstance(size, int):
        kept = span.get(Attr.RESULT_PERSISTENCE)
        how = words()["kept"].get(str(kept), "")
        yield f"The result has {size_text(size)}{how}."
    state, count = span.get(Attr.REDACTION_STATE), span.get(Attr.REDACTION_COUNT)
    if state == RedactionState.FAILED:
        yield "Redaction failed, so what it could not clear was withheld."
    elif state and state != RedactionState.NONE:
        what = (
            f"{clean(count)} finding{'' if count == 1 else 's'}" if count else "Sensitive content"
        )
        yield f"{what} {'was' if count in (None, 1) else 'were'} {clean(state)} before anything left the process."


def _end(span: SpanView) -> Iterator[str]:
    error = span.get(GenAI.ERROR_TYPE)
    if error and span.status == "error":
        code = f" ({clean(span.get(Attr.ERROR_CODE))})" if span.get(Attr.ERROR_CODE) else ""
        advice = words()["advice"].get(str(span.get(Attr.ERROR_RECOVERABILITY)), "")
        yield f"The caller was told {clean(error)}{code}. {advice}".rstrip()


def _stop(text: Any) -> str:
    return "" if str(text or "").endswith((".", "!", "?")) else "."


def _listed(value: Any) -> list[str]:
    return [str(item) for item in value] if isinstance(value, list | tuple) else []


_STORY: Final = (_call, _decision, _approval, _effect, _result, _end)
