"""Remembered approvals in the permission phase: a grant answers an ask that offers to be
remembered, and nothing else.

It is looked for before anybody is asked. Then the call is decided again with it in the input, so
that a deny still wins and the policy may refuse it; it counts for the arguments that it was found
for; and its use is in the evidence before the call runs. A failure on the way means that a person
is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from agenttool_otel.approvals.grants import questions_of
from agenttool_otel.approvals.needs import Need, needs_of, widened
from agenttool_otel.approvals.types import Grant, GrantQuery
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.recording.span import CallSpan
from agenttool_otel.call.steps import Call
from agenttool_otel.names import ApprovalStatus, Behavior, DecisionSource, PolicyMode, ReasonType
from agenttool_otel.policy.types import Verdict
from agenttool_otel.values.canonical import digest

_PLAIN_ACCESS: Final = frozenset({"file_read", "file_write", "network"})
"""Accesses of a tool without commands that its paths and URLs show in full."""


class _Found(NamedTuple):
    """A grant that was found for a call."""

    grant: Grant  # the grant
    wanted: GrantQuery  # the call as it was asked about
    args: str  # digest of its arguments
    asked: Verdict  # the verdict that asks, without the grant


class GrantUse:
    """What one call makes of remembered approvals, from decision to decision."""

    __slots__ = ("_found", "_refused", "_span")

    def __init__(self, span: CallSpan) -> None:
        self._span = span
        self._found: _Found | None = None
        self._refused = False

    @property
    def found(self) -> bool:
        """Whether the present decision is made with a grant."""
        return self._found is not None

    def find(self, call: Invocation, verdict: Verdict) -> Generator[Any, Any, bool]:
        """Look for a grant that answers an ask, and put it into the next decision."""
        if (
            self._refused
            # it was asked about already: the answer of that person is what counts
            or call.resumed
            or call.decision.approval is not None
            or not _offers(verdict)
        ):
            return False
        context, spec = call.context, call.spec
        wanted = GrantQuery(
            tool_id=spec.tool_id,
            declaration_digest=spec.digest,
            actor_id=context.actor,
            tenant=context.tenant,
            session_id=context.session_id,
            arguments=call.inputs.permission_input,
            rule_refs=questions_of(verdict.rule_ref, verdict.rule_refs),
            facts=tuple(needs_of_call(call) or ()) if _offers(verdict, "facts") else (),
            roots=context.roots,
            approver_roles=_roles(verdict),
        )
        grant: Grant | None = yield Call(call.in_charge.approvals.find_grant, None, (wanted,))
        if grant is None:
            return False
        self._found = _Found(grant, wanted, digest(call.inputs.permission_input), verdict)
        call.decision.approval = {
            "request_id": grant.request_id,
            "status": ApprovalStatus.APPROVED.value,
            "answered_by": grant.granted_by,
            "roles": list(grant.granter_roles),
            "granted": True,
        }
        return True

    def forget_if_changed(self, call: Invocation) -> None:
        """Forget the grant if the arguments changed since it was found: it is not theirs."""
        if self._found is not None and digest(call.inputs.permission_input) != self._found.args:
            self._forget(call)

    def apply(self, verdict: Verdict) -> Verdict:
        """Return the policy's verdict, as an allow of the person who granted if it asks only what
        the grant answers.

        A policy without rules about grants asks the same again, and offers again to have the
        answer remembered. One that does not offer that any more refuses the grant.
        """
        found = self._found
        if found is None or not _offers(verdict):
            return verdict
        # granted: an ask of {files.write}; asked now: {files.write, net.send}
        if not questions_of(verdict.rule_ref, verdict.rule_refs) <= found.wanted.rule_refs:
            return verdict
        if found.grant.facts is not None and not _offers(verdict, "facts"):
            return verdict
        return replace(
            verdict,
            behavior=Behavior.ALLOW,
            source=DecisionSource.USER,
            reason_type=ReasonType.PERMISSION_PROMPT_TOOL,
            message="a person approved such calls for a while",
            suggested_updates=(),
        )

    def allows(self, verdict: Verdict) -> bool:
        """Return whether the decision with the grant lets the call run, and the granter has a
        role that may give it.
        """
        needed = _roles(verdict)
        roles = self._found.grant.granter_roles if self._found is not None else ()
        return verdict.behavior is Behavior.ALLOW and (not needed or bool(needed & set(roles)))

    def use(self, call: Invocation, verdict: Verdict) -> Generator[Any, Any, Verdict | None]:
        """Use the grant where the decision with it lets the call run."""
        if (found := self._found) is None:
            return verdict
        terms = {"invocation_id": call.id, "policy_revision": verdict.revision}
        used: bool = self.allows(verdict) and (
            yield Call(call.in_charge.approvals.use_grant, None, (found.grant, found.wanted), terms)
        )
        if not used:
            self._forget(call)
            self._refused = True
            return found.asked
        call.decision.approval_status = ApprovalStatus.APPROVED.value
        self._span.record_grant(call, found.grant.grant_id)
        return None

    def _forget(self, call: Invocation) -> None:
        self._found = None
        call.decision.approval = None


def needs_of_call(call: Invocation) -> list[Need] | None:
    """Return what a grant by facts has to state for a call, ``None`` where none can."""
    tool = call.policy_tool
    kinds = call.spec.policy_profile["access_kinds"]
    stated = not any(
        word in guess
        for guess in tool["inferred"]
        for word in ("read_only", "destructive", "access")
    )
    harmless = (
        stated and tool["destructive"] is False and bool(kinds) and _PLAIN_ACCESS.issuperset(kinds)
    )
    return needs_of(
        call.decision.facts, call.inputs.permission_input, call.context.roots, harmless=harmless
    )


def fill_in(call: Invocation, verdict: Verdict, redact: Callable[[str], str]) -> None:
    """Put the call's facts into the grants by facts that the policy offers: once as narrow, once as
    wide as can be.

    None is offered where ``redact`` would change a word of it: an offer is shown and recorded.
    """
    if not _offers(verdict, "facts"):
        return
    needs = needs_of_call(call) or []
    if any(redact(need["what"]) != need["what"] for need in needs):
        needs = []
    forms = []
    if needs:
        forms.append(needs)
        wide = widened(needs, call.context.roots)
        if wide and wide != needs:
            forms.append(wide)
    offers: list[dict[str, Any]] = []
    for update in verdict.suggested_updates:
        # {"type": "grant", "args": "facts", "ttl_s": 3600}
        if _is_grant(update, "facts"):
            offers += [{**update, "facts": form} for form in forms]
        else:
            offers.append(update)
    verdict.suggested_updates = tuple(offers)


def _offers(verdict: Verdict, args: str = "") -> bool:
    """Return whether a verdict that asks offers to remember the answer, by these arguments."""
    if verdict.behavior is not Behavior.ASK or verdict.mode is not PolicyMode.ENFORCE:
        return False
    # a remembered answer is one person's
    if verdict.approvals_needed > 1 or verdict.required_roles:
        return False
    return any(_is_grant(update, args) for update in verdict.suggested_updates)


def _is_grant(update: dict[str, Any], args: str) -> bool:
    if update.get("type") != "grant":
        return False
    return args in ("", update.get("args"))


def _roles(verdict: Verdict) -> frozenset[str]:
    return frozenset(verdict.approver_roles)
