"""Grants: an approval that a person asked to be remembered, kept narrow (docs/approvals.md,
"Remember").

A suggested update that a store accepts looks like this; anything else is refused when it is
accepted, not guessed::

    {"type": "grant", "scope": "session", "args": "exact", "expires_in": 3600, "label": "for this session"}
    {"type": "grant", "scope": "actor", "args": {"path": {"equals": "notes.txt"}, "limit": {"any": true}}}

    {"type": "grant", "scope": "root", "args": "facts", "facts": [{"does": "write", "what": "", "inside": "/src"}]}

``tool`` may be given and must then be the request's own. There is no prefix, glob or pattern of
texts on purpose: that is how other systems' "always allow" was bypassed. A grant by facts covers a
call all of whose needs (approvals/needs.py) it states; a policy offers it without ``facts``, which are
filled in from the call.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

from agenttool_otel.approvals.identity import args_digest, is_same_identity
from agenttool_otel.approvals.needs import SENTENCES, meets, sentence
from agenttool_otel.approvals.types import ApprovalRequest, Grant, GrantQuery
from agenttool_otel.errors import ApprovalConflict, ApprovalError
from agenttool_otel.names import ApprovalConflictReason

SCOPES: Final = frozenset({"session", "actor", "tenant", "root"})
DEFAULT_GRANT_SECONDS: Final = 3600
MAX_GRANT_SECONDS: Final = 30 * 24 * 3600
_NO_TIME: Final = datetime.fromtimestamp(0, UTC)
_KEYS: Final = frozenset(
    {"type", "scope", "tool", "args", "facts", "expires_in", "label", "message"}
)


def grant_from_suggestion(
    request: ApprovalRequest,
    suggestion: Any,
    *,
    granted_by: str,
    approved_digest: str,
    now: datetime,
    granter_roles: Iterable[str] = (),
) -> Grant:
    """Return the grant that accepting a suggested update makes."""
    if not isinstance(suggestion, dict) or suggestion.get("type") != "grant":
        raise _bad("it is not a grant")
    unknown = sorted(str(key) for key in suggestion.keys() - _KEYS)
    if unknown:
        raise _bad(f"it has unknown members: {', '.join(unknown)[:100]}")
    scope = suggestion.get("scope", "session")
    _check_scope(scope, request)
    if suggestion.get("tool", request.tool_id) != request.tool_id:
        raise _bad("it is about another tool")
    seconds = suggestion.get("expires_in", DEFAULT_GRANT_SECONDS)
    if type(seconds) not in {int, float} or not 0 < seconds <= MAX_GRANT_SECONDS:
        raise _bad("its time is not between 0 s and 30 days")
    args = suggestion.get("args", "exact")
    facts = suggestion.get("facts")
    if (args == "facts") != bool(facts):
        raise _bad("its facts and its args do not go together")
    if facts:
        _check_facts(facts)
    elif args != "exact":
        _check_matcher(args)
    return Grant(
        tool_id=request.tool_id,
        declaration_digest=request.declaration_digest,
        scope=scope,
        actor_id=request.actor_id,
        tenant=request.tenant,
        session_id=request.session_id,
        args_digest=approved_digest if args == "exact" else None,
        args=args if isinstance(args, dict) else None,
        facts=facts or None,
        roots=sorted(request.roots),
        granted_by=granted_by,
        granter_roles=sorted(granter_roles),
        rule_refs=sorted(questions_of(request.rule_ref, request.rule_refs)),
        request_id=request.request_id,
        created_at=now,
        expires_at=now + timedelta(seconds=seconds),
    )


def _check_scope(scope: Any, request: ApprovalRequest) -> None:
    if not isinstance(scope, str) or scope not in SCOPES:
        raise _bad("its scope is not session, actor, tenant or root")
    bound_to = {
        "session": request.session_id,
        "actor": request.actor_id,
        "tenant": request.tenant,
        "root": request.roots,
    }
    if not bound_to[scope]:
        raise _bad(f"the request has no {scope}")


def acceptable(request: ApprovalRequest, suggestion: Any) -> bool:
    """Return whether accepting a suggested update would make a grant; only then should a person be
    offered to.
    """
    try:
        grant_from_suggestion(request, suggestion, granted_by="", approved_digest="", now=_NO_TIME)
    except ApprovalError:
        return False
    return True


def questions_of(rule_ref: str, rule_refs: Iterable[str]) -> frozenset[str]:
    """Return the rules that decided about a call."""
    return frozenset((rule_ref, *rule_refs)) - {""}


def grant_covers(grant: Grant, wanted: GrantQuery, digest: str) -> bool:
    """Return whether a live grant answers all that is asked about a call; what is not understood does
    not match.
    """
    if grant.facts is None and not wanted.rule_refs <= set(grant.rule_refs):
        return False  # another rule asks, which the grant's author has not answered
    if wanted.approver_roles and not wanted.approver_roles & set(grant.granter_roles):
        return False
    if not _is_for_tool(grant, wanted) or not _is_in_scope(grant, wanted):
        return False
    if grant.facts is not None:
        return bool(wanted.facts) and all(meets(grant.facts, need) for need in wanted.facts)
    if grant.args is None:
        return grant.args_digest is not None and grant.args_digest == digest
    if set(wanted.arguments) != set(grant.args):
        return False
    return all(
        _value_matches(matcher, wanted.arguments[name]) for name, matcher in grant.args.items()
    )


def _is_for_tool(grant: Grant, wanted: GrantQuery) -> bool:
    return (
        grant.tool_id == wanted.tool_id
        and grant.declaration_digest == wanted.declaration_digest
        and grant.tenant == wanted.tenant
    )


def _is_in_scope(grant: Grant, wanted: GrantQuery) -> bool:
    if grant.scope not in SCOPES:
        return False
    if grant.scope == "tenant":
        if not wanted.tenant:
            return False
        # a tenant's grant must not let the person who gave it approve their own calls
        own = grant.actor_id == wanted.actor_id
        return own or not is_same_identity(grant.granted_by, wanted.actor_id)
    if grant.actor_id != wanted.actor_id:
        return False
    if grant.scope == "session":
        return bool(wanted.session_id) and grant.session_id == wanted.session_id
    if grant.scope == "root":
        return bool(wanted.roots) and sorted(wanted.roots) == grant.roots
    return True


def described(grant: Grant) -> str:
    """Return what a grant covers, in words."""
    if grant.facts is not None:
        return sentence(grant.facts)
    return "exactly these arguments" if grant.args is None else "arguments that match"


def _value_matches(matcher: Any, value: Any) -> bool:
    if not isinstance(matcher, dict) or len(matcher) != 1:
        return False
    if matcher.get("any") is True:
        return True
    wanted = [matcher["equals"]] if "equals" in matcher else matcher.get("one_of")
    if not isinstance(wanted, list):
        return False
    try:
        found = args_digest(value)  # by canonical form: True is not 1, and 1.0 is 1 as in JSON
        return any(args_digest(accepted) == found for accepted in wanted)
    except ApprovalError:
        return False


def _check_facts(facts: Any) -> None:
    if not isinstance(facts, list) or not all(map(_is_need, facts)):
        raise _bad("its facts are no list of needs")
    for need in facts:
        if need["does"] not in SENTENCES or not need["inside"]:
            raise _bad("its facts name a need that is not known")


def _is_need(value: Any) -> bool:
    """Return whether a value has the form ``{"does": "run", "what": "", "inside": "/srv/app"}``."""
    if not isinstance(value, dict) or value.keys() != {"does", "what", "inside"}:
        return False
    return all(isinstance(text, str) for text in value.values())


def _check_matcher(args: Any) -> None:
    if not isinstance(args, dict):
        raise _bad('its args are neither "exact" nor a matcher')
    for name, matcher in args.items():
        fits = isinstance(name, str) and isinstance(matcher, dict) and len(matcher) == 1
        if not fits or not (
            "equals" in matcher
            or matcher.get("any") is True
            or isinstance(matcher.get("one_of"), list)
        ):
            raise _bad("a matcher has exactly one of equals, one_of (a list) or any: true")
    args_digest(args)


def _bad(why: str) -> ApprovalConflict:
    return ApprovalConflict(
        f"this suggested update can't be remembered: {why}",
        reason=ApprovalConflictReason.INVALID_ANSWER,
    )
