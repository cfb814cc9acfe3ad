"""The decision record: what a policy was given, without the texts of arguments, and what it
decided.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Final, NamedTuple, Protocol

from opentelemetry.trace import Span

from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.evidence.words import Words
from agenttool_otel.names import ApprovalStatus, Event, PolicyMode
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.rego.syntax import Path
from agenttool_otel.policy.rule_words import own_texts
from agenttool_otel.policy.types import PolicyInput, Verdict
from agenttool_otel.records.base import JsonObject
from agenttool_otel.telemetry.sinks import Sink
from agenttool_otel.values.pointers import escape_token

OBJECT: Final = Event.DECISION_RECORD
"""The name of the record's kind."""

ANSWER: Final = Event.ANSWER_RECORD
"""The name of the kind of record that holds a person's answer."""

MADE_ON_DEMAND: Final[tuple[Path, ...]] = (("session", "history"), ("execution",))
"""Members of the input that are made only where a rule reads them."""

_DECLARED: Final = ("tool", "permission_profile")  # a developer's words, which spans hold too
_HIDDEN: Final = ("actor", "session", "facts", "approval", "hooks", "evaluation", "execution")
_EXACT: Final = 100  # numbers of arguments below it stay
_MAX_TEXT: Final = 2_000
_MAX_NODES: Final = 2_000


class Decides(Protocol):
    """The part of a Decider that a record asks."""

    def wants(self, path: Path, mode: str, kind: str) -> bool:
        """Return whether a decision may depend on a part of the input."""


class Made(NamedTuple):
    """A decision on its way to the sink's thread."""

    document: PolicyInput
    hooks: Sequence[Any]  # what they are now: the call adds to its own list
    verdict: Verdict
    span: Span
    bundle: Bundle | None


class DecisionRecorder:
    """Records decisions, outside of the calls' own time.

    Args:
        sinks: where they go.
        words: hides words.
    """

    def __init__(self, sinks: Sequence[Sink], words: Words) -> None:
        self.sinks = tuple(sinks)
        self._words = words
        self._build = self._built  # bound once

    def record(self, decider: Decides, document: PolicyInput, verdict: Verdict, span: Span) -> None:
        """Record a decision; never raises.

        Args:
            decider: who decided.
            document: the policy's input.
            verdict: the decision, as the policy made it.
            span: the call's span.
        """
        try:
            # the call adds to its own list of hooks; what can wait is done in the sink's thread
            hooks = tuple(document["hooks"])
            # now: another bundle may be in use before that thread runs. A remote engine has none
            engines = getattr(decider, "engines", ())
            bundle = getattr(engines[0], "bundle", None) if engines else None
            build = partial(self._build, decider, Made(document, hooks, verdict, span, bundle))
            for sink in self.sinks:
                sink.put(build)
        except Exception:
            self._count_loss()

    def answer(
        self, invocation: str, request: str, answer: ApprovalAnswer, waited: float, span: Span
    ) -> None:
        """Record a person's answer, without its reason and its arguments; never raises.

        Args:
            invocation: id of the call.
            request: id of the approval request.
            answer: the answer, as the call takes it.
            waited: seconds since the question.
            span: the call's span.
        """
        try:
            given = {
                "invocation_id": invocation,
                "request_id": request,
                "answer": _status(answer),
                "way": answer.way.value,
                "waited_s": round(waited, 3),
                "edited": answer.edited_input is not None,
                **_ids(span),
            }
            build = partial(self._built_answer, given, answer.answered_by, answer.roles)
            for sink in self.sinks:
                sink.put(build)
        except Exception:
            self._count_loss()

    def close(self) -> None:
        """Write what waits."""
        for sink in self.sinks:
            sink.close()

    def _count_loss(self) -> None:
        for sink in self.sinks:
            sink.lost += 1

    def _built_answer(
        self, given: JsonObject, person: str, roles: tuple[str, ...]
    ) -> Iterator[tuple[str, JsonObject]]:
        hide = self._words.hide
        yield (
            ANSWER,
            {**given, "answered_by": hide(person), "roles": [hide(each) for each in roles]},
        )

    def _built(self, decider: Decides, made: Made) -> Iterator[tuple[str, JsonObject]]:
        yield OBJECT, decision_record(made, decider, self._words)


def decision_record(made: Made, decider: Decides, words: Words) -> JsonObject:
    """Return the record of a decision as plain JSON data."""
    document = made.document
    hider = _Hider(words)
    kept: JsonObject = {"schema_version": document["schema_version"], "time": document["time"]}
    members: Any = {**document, "hooks": made.hooks}
    for name in _DECLARED:
        kept[name] = members[name]
    for name in _HIDDEN:
        kept[name] = hider.hide(members[name])
    invocation = document["invocation"]
    kept["invocation"] = {**hider.hide(invocation), "id": invocation["id"]}
    kept["input"] = hider.arguments(document["input"], "")
    mode, kind = document["session"]["mode"], document["tool"]["kind"]
    left_out = [".".join(path) for path in MADE_ON_DEMAND if not decider.wants(path, mode, kind)]
    record: JsonObject = {"input": kept, "decision": _decision(made, hider)}
    record["left_out"] = ["resources", *left_out]
    if hider.shortened:
        record["shortened"] = hider.shortened
    return {**record, **_ids(made.span)}


def _ids(span: Span) -> JsonObject:
    context = span.get_span_context()
    if not context.is_valid:
        return {}
    return {"trace_id": f"{context.trace_id:032x}", "span_id": f"{context.span_id:016x}"}


def _status(answer: ApprovalAnswer) -> str:
    status = ApprovalStatus.APPROVED if answer.approved else ApprovalStatus.REJECTED
    return status.value


def _decision(made: Made, hider: _Hider) -> JsonObject:
    """Return what the policy decided, also where a governor in shadow mode only observes it."""
    verdict = made.verdict
    if verdict.mode is PolicyMode.SHADOW and verdict.shadow is not None:
        verdict = verdict.shadow
    # not the one that decided: its own texts are not known
    decided = made.bundle if made.bundle and made.bundle.digest == verdict.bundle_digest else None
    own = own_texts(decided)

    def named(rule: str) -> str:
        return rule if rule in own else str(hider.hide(rule))

    found: JsonObject = {
        "behavior": verdict.behavior.value,
        "rule": named(verdict.rule_ref),
        "rules": [named(rule) for rule in verdict.rule_refs],
        "reason_type": verdict.reason_type.value,
        "engine": verdict.engine,
        "revision": verdict.revision,
    }
    if verdict.open_questions:
        found["open_questions"] = [named(rule) for rule in verdict.open_questions]
    if verdict.answered_questions:
        found["answered_questions"] = [
            {"question": named(rule), "by": named(by)} for rule, by in verdict.answered_questions
        ]
    if made.verdict.mode is PolicyMode.SHADOW:
        found["mode"] = PolicyMode.SHADOW.value
    if verdict.bundle_digest:
        found["bundle"] = verdict.bundle_digest
    if verdict.fail_closed is not None:
        found["fail_closed"] = verdict.fail_closed.value
    return found


class _Hider:
    """Hides the words of one record, and notes which arguments it could not keep whole."""

    def __init__(self, words: Words) -> None:
        self._words = words
        self._nodes = 0
        self.shortened: list[str] = []

    def hide(self, value: Any) -> Any:
        """Return data with its words hidden, its names too: a pointer is a name."""
        if isinstance(value, str):
            return self._words.hide(value)
        if isinstance(value, (list, tuple)):
            return [self.hide(item) for item in value]
        if isinstance(value, dict):
            return {self.hide(name): self.hide(item) for name, item in value.items()}
        return value

    def arguments(self, value: Any, pointer: str) -> Any:
        """Return arguments with their words hidden, and without their numbers from 100 on."""
        self._nodes += 1
        if self._nodes > _MAX_NODES:
            self.shortened.append(pointer)
            return None
        if isinstance(value, str):
            if len(value) > _MAX_TEXT:
                self.shortened.append(pointer)
            return self._words.hide(value)
        if isinstance(value, dict):
            return {
                self.hide(name): self.arguments(item, f"{pointer}/{self.hide(escape_token(name))}")
                for name, item in value.items()
            }
        if isinstance(value, (list, tuple)):
            return [self.arguments(item, f"{pointer}/{index}") for index, item in enumerate(value)]
        if value is None or isinstance(value, bool):
            return value
        if isinstance(value, int) and 0 <= value < _EXACT:
            return value
        self.shortened.append(pointer)
        return _EXACT
