"""The redaction of what a call shows of itself: captured content, texts, and the decision."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import lru_cache
from typing import Any, Final

from agenttool_otel.call.argument_mask import MIN_CHARS
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.recording.argument_secrets import cleaner_of, mask_of, redacted_input
from agenttool_otel.call.recording.edit_note import edit_note
from agenttool_otel.names import Attr, Behavior
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.rule_words import OwnTexts, texts_of, verdict_without_arguments
from agenttool_otel.policy.types import Verdict
from agenttool_otel.readers.types import PathFact
from agenttool_otel.redaction import Redacted, Redactor
from agenttool_otel.results.content.shown import captured_json
from agenttool_otel.telemetry import Telemetry
from agenttool_otel.values.pointers import overlap

_FAILED: Final = "[redaction failed]"
_MAX_LOOKED: Final = 64
_MAX_KEPT_CHARS: Final = 1_000
_WORDS: Final = re.compile(rf"\w{{{MIN_CHARS},}}")


class CallRedaction:
    """Redacts what calls show; whatever fails costs the content, never the call."""

    def __init__(self, telemetry: Telemetry, redactor: Redactor) -> None:
        self._losses = telemetry.losses
        self._events = telemetry.events
        self._redactor = redactor
        capture = telemetry.settings.capture
        self.captures = capture != "NO_CONTENT"  # whether redacted content is recorded anywhere
        self.on_span = capture in ("SPAN_ONLY", "SPAN_AND_EVENT")
        self.on_event = capture in ("EVENT_ONLY", "SPAN_AND_EVENT")
        self._max_chars = telemetry.settings.max_attribute_chars
        # rules give the same few reasons over and over
        self.redact_reason = lru_cache(maxsize=2048)(self._redact_reason)
        # the ids of one connection are those of each of its calls
        self._redact_json = lru_cache(maxsize=256)(self._redacted_json)
        self._own_texts: tuple[Bundle | None, OwnTexts] | None = None

    # --- content ----------------------------------------------------------------------------------

    def redact_content(self, value: Any, pointers: tuple[str, ...]) -> Any:
        """Return a value redacted, for a record that may show content; ``None`` where content is
        not captured.
        """
        if not self.captures:
            return None
        try:
            return self._redactor.redact(
                captured_json(value), pointers=pointers, budget_bytes=self._max_chars
            ).value
        except Exception as error:
            self._losses.note("capture", error)
            return _FAILED

    def captured_arguments(
        self, call: Invocation, pointers: tuple[str, ...]
    ) -> tuple[str, Redacted | None]:
        """Return the arguments as the text of an attribute, and what was redacted of them."""
        try:
            redacted = self._redactor.redact(
                call.inputs.observable_input, pointers=pointers, budget_bytes=self._max_chars
            )
            shown = redacted.value
            # one argument may repeat another: {"password": "p4ss", "command": "login p4ss"}
            mask = mask_of(call, self._redactor)
            if mask is not None:
                shown = mask.value(shown)
            return _text_of(shown), redacted
        except Exception as error:
            self._losses.note("capture", error)
            return _FAILED, None

    def captured_result(
        self, call: Invocation, value: Any, pointers: tuple[str, ...]
    ) -> tuple[str, Redacted | None]:
        """Return a result as the text of an attribute, and what was redacted of it."""
        try:
            data = value if type(value) is str else captured_json(value)
            mask = mask_of(call, self._redactor)
            masked = data if mask is None else mask.value(data)
            redacted = self._redactor.redact(
                masked, pointers=pointers, budget_bytes=self._max_chars
            )
            if mask is not None and masked != data:
                found = (*redacted.redactions, mask.redaction)
                redacted = redacted._replace(redactions=found)
            return _text_of(redacted.value), redacted
        except Exception as error:
            self._losses.note("capture", error)
            return _FAILED, None

    def redact_object(self, value: dict[str, Any]) -> dict[str, Any]:
        """Return plain data redacted; nothing of it where that fails."""
        try:
            text = json.dumps(value)
        except (TypeError, ValueError, RecursionError):
            return self._redact_object(value)
        if len(text) > _MAX_KEPT_CHARS:
            return self._redact_object(value)
        shown: dict[str, Any] = json.loads(self._redact_json(text))
        return shown

    def _redacted_json(self, text: str) -> str:
        return json.dumps(self._redact_object(json.loads(text)))

    def _redact_object(self, value: dict[str, Any]) -> dict[str, Any]:
        try:
            shown = self._redactor.redact(value).value
        except Exception as error:
            self._losses.note("capture", error)
            return {}
        return shown if isinstance(shown, dict) else {}

    # --- texts ------------------------------------------------------------------------------------

    def text_redactor(self, call: Invocation, clean: Callable[[str], str]) -> Callable[[str], str]:
        """Return what redacts a text of a call: the call's own secrets, then those that detectors
        find.
        """
        return cleaner_of(call, self._redactor, clean)

    def redact_text(self, call: Invocation, text: str) -> str:
        """Return a text of a call redacted."""
        return self.text_redactor(call, self.redact_reason)(text)

    def _redact_reason(self, text: str) -> str:
        try:
            value = self._redactor.redact_text(text).value
        except Exception as error:
            self._losses.note("capture", error)
            return ""  # a broken redactor costs the words, not the decision
        return value if type(value) is str else ""

    def add_edit_note(self, call: Invocation) -> None:
        """Add the sentence about a person's changes, once the decision in force names the
        arguments that are secret.
        """
        try:
            call.inputs.edit_note = edit_note(call, self._redactor)
        except Exception as error:
            self._losses.note("result", error)

    # --- the decision -----------------------------------------------------------------------------

    def redact_verdict(self, call: Invocation, verdict: Verdict) -> Verdict:
        """Redact the texts of a verdict, which a policy may have made of the arguments."""
        bundle = _bundle_of(call)
        if not self.captures:
            verdict = self._without_arguments(call, bundle, verdict)
        message = verdict.message
        if message and self._may_repeat_arguments(call, bundle, verdict):
            mask = mask_of(call, self._redactor)
            if mask is not None:
                message = mask.text(message)
        message = self.redact_reason(message)
        path = self._redacted_path(call, verdict.blocked_path)
        rule_ref = self.redact_reason(verdict.rule_ref)
        rule_refs = tuple(map(self.redact_reason, verdict.rule_refs))
        if (
            message == verdict.message
            and path == verdict.blocked_path
            and rule_ref == verdict.rule_ref
            and rule_refs == verdict.rule_refs
        ):
            return verdict  # nearly always: most messages are constants
        return replace(
            verdict, message=message, blocked_path=path, rule_ref=rule_ref, rule_refs=rule_refs
        )

    def _may_repeat_arguments(
        self, call: Invocation, bundle: Bundle | None, verdict: Verdict
    ) -> bool:
        """Return whether a message may be shown that repeats an argument."""
        if self._texts_of(bundle).has(verdict.message):
            return False  # "the path is a sensitive place"
        if verdict.behavior is not Behavior.ALLOW:
            return True
        if not self._events.wanted(call.span):
            return False
        return quotes(verdict.message, call.inputs.permission_input)

    def _redacted_path(self, call: Invocation, path: str | None) -> str | None:
        if not path:
            return path
        if call.redacted_input is not None:
            shown = call.redacted_input[2].value
            # an argument that was redacted, and came out as it is, is not redacted again
            if type(shown) is dict and path in shown.values():
                return path
        return self.redact_reason(path)

    def _without_arguments(
        self, call: Invocation, bundle: Bundle | None, verdict: Verdict
    ) -> Verdict:
        """Take the call's arguments out of the texts of a verdict.

        What a safer call, a change or a place repeats is for the model, which wrote the arguments,
        and for the person who answers: neither the span nor a sink gets it.
        """
        if self._is_constant(bundle, verdict):
            return verdict  # most calls are answered by constant texts
        fixed = frozenset[str]()
        for engine in getattr(call.in_charge.decider, "engines", ()):
            fixed |= getattr(engine, "fixed_texts", frozenset())
        inputs = (
            call.inputs.permission_input,
            call.inputs.model_input,
            call.inputs.observable_input,
        )
        arguments = [given for given in inputs if isinstance(given, dict)]
        return verdict_without_arguments(verdict, bundle, arguments, fixed)

    def _texts_of(self, bundle: Bundle | None) -> OwnTexts:
        known = self._own_texts
        if known is None or known[0] is not bundle:
            known = self._own_texts = (bundle, texts_of(bundle))
        return known[1]

    def _is_constant(self, bundle: Bundle | None, verdict: Verdict) -> bool:
        """Return whether all texts of a verdict are the policy's own."""
        if verdict.shadow is not None or verdict.alternatives or verdict.suggested_updates:
            return False
        own = self._texts_of(bundle)
        return all(map(own.has, (verdict.message, verdict.rule_ref, *verdict.rule_refs)))

    def is_shown_as_it_is(self, bundle: Bundle | None, verdict: Verdict) -> bool:
        """Return whether nothing is redacted in a verdict, whatever the arguments are, unless its
        message quotes one of them.
        """
        if self.captures or verdict.blocked_path or not self._is_constant(bundle, verdict):
            return False
        texts = (verdict.message, verdict.rule_ref, *verdict.rule_refs)
        return all(self.redact_reason(text) == text for text in texts)

    def blocked_attributes(self, call: Invocation, path: str) -> dict[str, Any]:
        """Return the argument whose place a decision names, and the place where content is
        captured.
        """
        for fact in call.decision.facts["paths"]:
            if not self._is_place(fact, path):
                continue
            argument = fact["argument"]
            attributes = {Attr.PERMISSION_BLOCKED_ARGUMENT: self.redact_reason(argument)}
            if self.on_span:
                redactions = redacted_input(call, self._redactor).redactions
                if not any(overlap(argument, each.pointer) for each in redactions):
                    attributes[Attr.PERMISSION_BLOCKED_PATH] = path
            return attributes
        return {}

    def _is_place(self, fact: PathFact, path: str) -> bool:
        readings = [fact["resolved"], fact["lexical"], fact["raw"]]
        if path in readings:
            return True
        return any(path == self.redact_reason(reading) for reading in readings if reading)


def _bundle_of(call: Invocation) -> Bundle | None:
    """Return the policy that decides a call, where one of its engines has one."""
    for engine in getattr(call.in_charge.decider, "engines", ()):
        bundle: Bundle | None = getattr(engine, "bundle", None)
        if bundle is not None:
            return bundle
    return None


def _text_of(shown: Any) -> str:
    if isinstance(shown, str):
        return shown
    return json.dumps(shown, ensure_ascii=False, default=lambda _: "[unserializable]")


def quotes(message: str, arguments: Mapping[str, Any]) -> bool:
    """Return at little cost whether a text may repeat something of the arguments."""
    stack: list[Any] = list(arguments.values())
    for _ in range(_MAX_LOOKED):
        if not stack:
            return False
        value = stack.pop()
        cls = type(value)
        if cls is dict:
            stack += value.values()
        elif cls is list:
            stack += value
        elif cls is str and _shares_word(message, value):
            return True
        elif cls in (int, float):
            number = str(value)
            if len(number) >= MIN_CHARS and number in message:
                return True
    return True


def _shares_word(message: str, value: str) -> bool:
    # "may not write /etc/shadow" shares "shadow" with the argument "/etc//shadow"
    if len(value) < MIN_CHARS:
        return False
    return value in message or any(word in message for word in _WORDS.findall(value))
