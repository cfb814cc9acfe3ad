"""From an ask to the request that a person answers: bound to the bytes that will run, and shown
without secrets.

Recipients and accounts are in clear, as they are what is approved: the request lies sealed in the
store, and is shown to whoever may answer. What telemetry gets of a call is redacted elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from datetime import timedelta
from functools import lru_cache
from typing import Any, Final

from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.call.effects import effects_shown
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.question import question_of, same_target, user_words
from agenttool_otel.call.recording.argument_secrets import (
    mask_of,
    new_mask,
    redacted_input,
    secret_pointers,
)
from agenttool_otel.context.context import AgentContext
from agenttool_otel.facts.classified import IntentQuestion
from agenttool_otel.facts.origins import origins_of
from agenttool_otel.facts.types import Facts
from agenttool_otel.names import RedactionState
from agenttool_otel.policy.types import Verdict
from agenttool_otel.readers.types import PathFact, UrlFact
from agenttool_otel.records import utc_now
from agenttool_otel.redaction import Redacted, Redactor
from agenttool_otel.values.canonical import digest
from agenttool_otel.values.forks import cached_property
from agenttool_otel.values.ids import new_id
from agenttool_otel.values.pointers import overlap

_REVIEWED: Final = {"risk_level", "access_kinds", "write_effects", "data_sensitivity"}
"""What of a tool's permission profile a person who is asked is shown."""


_REACHED: Final = frozenset({"email", "phone", "iban"})
"""Kinds of personal data by which somebody is reached, which a person who decides has to see."""


class Questions:
    """Makes approval requests."""

    def __init__(self, redactor: Redactor, ttl: float) -> None:
        self._recorded = redactor
        self._ttl = ttl
        self._description = lru_cache(maxsize=512)(lambda text: redactor.redact(text).value)

    @cached_property
    def _redactor(self) -> Redactor:
        """What takes secrets out, and leaves whom a call reaches."""
        # a class of the host's own finds what settings do not state
        if type(self._recorded) is not Redactor:
            return self._recorded
        return self._recorded.keeping(_REACHED)

    def make(self, call: Invocation, verdict: Verdict) -> ApprovalRequest:
        """Build the request of one ask."""
        spec, context = call.spec, call.context
        now = utc_now()
        pointers = secret_pointers(call)
        preview = self._preview(call)
        mask = new_mask(call, self._redactor, preview)
        arguments = preview.value
        if not isinstance(arguments, dict):
            arguments = {"arguments": "[redacted]"}
        places, surroundings = bound_places(context, call.decision.facts)
        reason = self._description(spec.permission.approval_reason or "")
        effects = call.effects or call.reported_effects

        def shown(offers: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
            if not offers:
                return []
            # safer calls, changes and places repeat the arguments, and the request is kept
            masked = (
                [dict(offer) for offer in offers]
                if mask is None
                else mask.value([dict(o) for o in offers])
            )
            value = self._redactor.redact(masked, pointers=pointers).value
            return value if isinstance(value, list) else []

        return ApprovalRequest(
            event_id=new_id("evt"),
            invocation_id=call.id,
            tool_id=spec.tool_id,
            tool_name=spec.name,
            declaration_digest=spec.digest,
            args_digest=digest(call.inputs.permission_input),
            actor_id=context.actor,
            tenant=context.tenant,
            session_id=context.session_id,
            policy_revision=verdict.revision,
            rule_ref=verdict.rule_ref,
            rule_refs=list(verdict.rule_refs),
            open_questions=list(verdict.open_questions),
            answered_questions=[
                {"question": question, "by": by} for question, by in verdict.answered_questions
            ],
            message=verdict.message or reason,
            approval_reason=reason,
            profile=spec.permission.model_dump(
                mode="json", exclude_defaults=True, include=_REVIEWED
            ),
            question=question_of(spec.name, call.decision.facts, arguments),
            user_words=user_words(context.user_text, self._redactor),
            arguments_preview=arguments,
            tool_description=self._description(spec.declaration.description),
            cwd=context.cwd,
            roots=list(context.roots),
            places_digest=places,
            surroundings_digest=surroundings,
            places=shown(
                _places(call.decision.facts, [found.pointer for found in preview.redactions])
            ),
            effects=effects_shown(effects.fact) if effects is not None else None,
            diff=effects.diff if effects is not None else "",
            input_schema=spec.check.schema,
            alternatives=shown(verdict.alternatives),
            suggested_updates=shown(self._offers(call, verdict, arguments)),
            approver_roles=list(verdict.approver_roles),
            approvals_needed=verdict.approvals_needed,
            required_roles=list(verdict.required_roles),
            created_at=now,
            expires_at=now + timedelta(seconds=self._ttl),
        )

    def _preview(self, call: Invocation) -> Redacted:
        """Return the arguments as a person is shown them."""
        recorded = redacted_input(call, self._recorded)
        # what a record may show as it is, a person may see
        if recorded.state is RedactionState.NONE:
            return recorded
        return self._redactor.redact(call.inputs.permission_input, pointers=secret_pointers(call))

    def intent(self, call: Invocation) -> IntentQuestion:
        """Return what a classifier is asked, redacted as for telemetry: it may be another host's.

        Args:
            call: the call.
        """
        arguments = redacted_input(call, self._recorded).value
        mask = mask_of(call, self._recorded)
        if mask is not None:
            arguments = mask.value(arguments)
        words = tuple(
            str(self._recorded.redact_text(text).value) for text in call.context.user_text
        )
        return IntentQuestion(
            tool=call.spec.name,
            description=self._description(call.spec.declaration.description),
            arguments=arguments if isinstance(arguments, dict) else {},
            user_words=words,
        )

    def _offers(
        self, call: Invocation, verdict: Verdict, shown: Mapping[str, Any]
    ) -> list[Mapping[str, Any]]:
        """Return what may be accepted with the answer, each with what it would cover."""
        offers: list[Mapping[str, Any]] = []
        for update in verdict.suggested_updates:
            if not _acceptable(update, call.context):
                continue
            if update.get("type") != "grant" or update.get("args") != "target":
                offers.append(update)
                continue
            matcher = same_target(call.decision.facts, call.inputs.permission_input, shown)
            if matcher:
                offers.append({**update, "args": matcher})
        return offers


def bound_places(context: AgentContext, facts: Facts) -> tuple[str, str]:
    """Return digests of where paths and commands lead (empty where there are none), and of
    directory and roots.
    """
    try:
        directory = os.path.realpath(context.cwd or os.getcwd())
    except OSError:  # it was removed
        directory = ""
    surroundings = _digest(
        [directory, [os.path.realpath(os.path.join(directory, root)) for root in context.roots]]
    )
    effects = facts.get("effects")
    if not facts["paths"] and not facts["shell"] and effects is None:
        return "", surroundings
    paths = [
        [
            path["argument"],
            path["access"],
            path["resolved"] or path["lexical"],
            path["inside"],
            path["roots"],
        ]
        for path in facts["paths"]
    ]
    bound = [paths, surroundings if facts["shell"] else ""]
    if effects is not None:
        bound.append(effects["digest"])  # what was shown is what is committed
    return _digest(bound), surroundings


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value).encode("ascii")).hexdigest()


def _places(facts: Facts, redacted: Sequence[str]) -> list[dict[str, Any]]:
    """Return what the arguments were found to mean, without what comes from an argument that is
    redacted.
    """
    places = [
        *map(_path_place, facts["paths"]),
        *map(_url_place, facts["urls"]),
        *_tables(facts),
    ]
    shown = []
    for place in places:
        if not any(overlap(place["argument"], pointer) for pointer in redacted):
            shown.append(place)
    # they hold nothing of the value, and what lies below an argument may be made up
    for origin in origins_of(facts):
        argument = "/".join(origin.argument.split("/")[:2]) if redacted else origin.argument
        shown.append(_place(argument, "", origin.sentence, origin.seen_in))
    return shown


def _place(argument: str, access: str, place: str, note: str) -> dict[str, Any]:
    return {"argument": argument, "access": access, "place": place, "note": note}


def _path_place(path: PathFact) -> dict[str, Any]:
    if path["rejected"]:
        note = "unusable path"
    elif path["inside"]:
        note = "inside the roots"
    else:
        note = "outside the roots"
    return _place(path["argument"], path["access"], path["resolved"] or path["lexical"], note)


def _url_place(url: UrlFact) -> dict[str, Any]:
    address = f"{url['scheme']}://{url['host']}"
    if url["port"] is not None:
        address += f":{url['port']}"
    return _place(url["argument"], "network", address, url["rejected"] or url["address_class"])


def _tables(facts: Facts) -> Iterator[dict[str, Any]]:
    for sql in facts["sql"]:
        for table in sql["tables_read"]:
            yield _place(sql["argument"], "read", table, "table")
        for table in sql["tables_written"]:
            yield _place(sql["argument"], "write", table, "table")


def _acceptable(suggestion: Mapping[str, Any], context: AgentContext) -> bool:
    """Return whether a call has the scope of a grant: without a session, nothing can be remembered
    for it.
    """
    if suggestion.get("type") != "grant":
        return True
    scope = suggestion.get("scope", "session")
    named = {"session": context.session_id, "actor": context.actor, "tenant": context.tenant}
    return scope not in named or bool(named[scope])
