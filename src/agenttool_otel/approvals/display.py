"""How a request is shown to the person who answers it: all of it, with nothing that hides.

An approver who sees less than what runs approves something else. So nothing is cut, every character
that a terminal or browser would not show, or would use to reorder text, is spelt out, and length
and digest stand beside.
"""

from __future__ import annotations

import json
import unicodedata
from datetime import datetime, timedelta
from typing import Any, Final

from agenttool_otel.approvals.identity import args_digest
from agenttool_otel.approvals.needs import sentence
from agenttool_otel.approvals.people import people_text
from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.errors import ApprovalConflict, ApprovalError
from agenttool_otel.names import ApprovalConflictReason, ApprovalStatus
from agenttool_otel.names.advice import would_answer
from agenttool_otel.values.conversion import loads_unique

_HIDDEN: Final = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})
_BLANK_LETTERS: Final = frozenset(
    "\u115f\u1160\u2800\u3164\uffa0\u034f\u17b4\u17b5\u180b\u180c\u180d\u180f"
)
MAX_EDIT_CHARS: Final = 1_000_000
"""Longest edited arguments that are read, in characters."""


def visible(text: str, *, keep: str = "") -> str:
    """Return a text in which every invisible, control or reordering character is written as
    ``\\u{hex}``.
    """
    shown: list[str] = []
    for char in str(text):
        if char in keep or not _is_hidden(char):
            shown.append(char)
        else:
            shown.append(f"\\u{{{ord(char):x}}}")
    return "".join(shown)


def _is_hidden(char: str) -> bool:
    if char == " " or "!" <= char <= "~":
        return False
    category = unicodedata.category(char)
    if category in _HIDDEN or category == "Zs" or char in _BLANK_LETTERS:
        return True
    # variation selectors, which can carry a hidden text behind one visible letter
    return 0xFE00 <= ord(char) <= 0xFE0F or 0xE0100 <= ord(char) <= 0xE01EF


def request_facts(request: ApprovalRequest) -> list[tuple[str, str]]:
    """Return what a person needs to answer, as label and text; what a request does not state is
    left out.

    The question comes first; ids and rules are in ``request_details``.
    """
    facts = [
        ("Question", request.question),
        ("The user wrote", request.user_words),
        *(("Open question", _question_text(rule)) for rule in request.open_questions),
        ("Tool", f"{request.tool_name} ({request.tool_id})"),
        ("Description", request.tool_description),
        ("For", request.actor_id or "unknown"),
        ("Tenant", request.tenant),
        ("Reason", request.message),
        ("Declared reason", _declared_reason(request)),
        *_profile_facts(request),
        *(
            (
                f"{'Place' if place.get('access') else 'Origin'} of {place.get('argument')}",
                _place_text(place),
            )
            for place in request.places
        ),
        ("Directory", request.cwd),
        *(("Root", root) for root in request.roots),
        ("May answer", ", ".join(request.approver_roles) or "anybody who is identified"),
        *_people_facts(request),
        ("Answered by", request.answered_by),
        ("Answer's reason", request.answer_reason),
        ("Closed because", request.closed_reason),
        ("Asks again for", request.supersedes),
    ]
    return [(label, text) for label, text in facts if text]


def question_facts(request: ApprovalRequest) -> list[tuple[str, str]]:
    """Return what is asked, and what an answer to it depends on most, as label and text."""
    return [fact for fact in request_facts(request) if _is_question(fact[0])]


def other_facts(request: ApprovalRequest) -> list[tuple[str, str]]:
    """Return the facts that are not in ``question_facts``."""
    return [fact for fact in request_facts(request) if not _is_question(fact[0])]


def _is_question(label: str) -> bool:
    # "Place of path": what the argument means, with links followed
    return label in _QUESTION_LABELS or label.startswith(("Place of ", "Origin of "))


_QUESTION_LABELS: Final = frozenset(
    {
        "Question",
        "The user wrote",
        "Open question",
        "Reason",
        "Declared reason",
        "Agreed",
        "Still needed",
        "Answered by",
        "Answer's reason",
        "Closed because",
    }
)


def _question_text(rule: str) -> str:
    return f"{rule}; would be answered by: {would_answer(rule)}"


def _rule_facts(request: ApprovalRequest) -> list[tuple[str, str]]:
    """Return the rules that are no open question: what is answered already, and what answers it."""
    answered = [
        ("Answered", f"{pair.get('question')}, by {pair.get('by')}")
        for pair in request.answered_questions
    ]
    shown = {*request.open_questions, request.rule_ref}
    for pair in request.answered_questions:
        shown |= {str(pair.get("question")), str(pair.get("by"))}
    others = [("Rule too", rule) for rule in request.rule_refs if rule not in shown]
    return [("Rule", request.rule_ref), *answered, *others]


def _people_facts(request: ApprovalRequest) -> list[tuple[str, str]]:
    if not request.needs_several:
        return []
    agreed = [
        ("Agreed", f"{each['answered_by']} ({', '.join(each['roles']) or 'no role'})")
        for each in request.agreed
    ]
    needed = f"{request.approvals_needed} different people"
    if request.required_roles:
        needed += f", one of each role: {', '.join(request.required_roles)}"
    return [("Have to agree", needed), *agreed, ("Still needed", open_people(request))]


def open_people(request: ApprovalRequest) -> str:
    """Return who still has to agree to a request that waits for several people; empty for others."""
    if request.status is not ApprovalStatus.PENDING or not request.needs_several:
        return ""
    return people_text(request.still_needed)


def request_details(request: ApprovalRequest) -> list[tuple[str, str]]:
    """Return what names a request in logs and policies, as label and text: rules and ids."""
    details = [
        *_rule_facts(request),
        ("Policy", request.policy_revision),
        ("Session", request.session_id),
        ("Invocation", request.invocation_id),
    ]
    return [(label, text) for label, text in details if text]


def _declared_reason(request: ApprovalRequest) -> str:
    # it stands in the place of the reason where the policy gives none
    if request.approval_reason == request.message:
        return ""
    return request.approval_reason


def _profile_facts(request: ApprovalRequest) -> list[tuple[str, str]]:
    profile = request.profile
    return [
        ("Risk", str(profile.get("risk_level", ""))),
        ("Accesses", ", ".join(map(str, profile.get("access_kinds", ())))),
        ("Effects", ", ".join(map(str, profile.get("write_effects", ())))),
        ("Data", str(profile.get("data_sensitivity", ""))),
    ]


def _place_text(place: dict[str, Any]) -> str:
    note = f" ({place['note']})" if place.get("note") else ""
    return f"{place.get('access')} {place.get('place')}{note}".strip()


def editable_arguments(request: ApprovalRequest) -> str:
    """Return the arguments for an editor, as plain ASCII JSON: a hidden character is an escape that
    one can edit.
    """
    return json.dumps(request.arguments_preview, indent=2, ensure_ascii=True)


def arguments_text(value: Any) -> str:
    """Return JSON arguments as indented text, complete, with nothing hidden."""
    try:
        text = json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False)
    except (ValueError, TypeError, RecursionError):
        return "(these arguments can't be shown; do not approve them)"
    return visible(text, keep="\n")


def describe_arguments(request: ApprovalRequest) -> str:
    """Return length, digest and whether something was redacted or is easily confused, in
    one line.
    """
    text = arguments_text(request.arguments_preview)
    parts = [f"{len(text)} characters", request.args_digest or "no digest"]
    if is_redacted(request):
        parts.append("parts are redacted")
    if not text.isascii():
        parts.append("contains characters beyond ASCII")
    if "\\u{" in text:
        parts.append("contains hidden characters, spelt out as \\u{...}")
    return " · ".join(parts)


def effects_text(request: ApprovalRequest) -> str:
    """Return the diff of a rehearsed call, with nothing hidden.

    Args:
        request: a request with effects.
    """
    return visible(request.diff, keep="\n") or "(no text file would change)"


def describe_effects(request: ApprovalRequest) -> str:
    """Return how much a rehearsed call would change, in one line.

    Args:
        request: a request with effects.
    """
    effects = request.effects or {}
    counts = effects.get("counts") or {}
    parts = [f"{count} {visible(str(name))}" for name, count in counts.items() if count]
    if effects.get("complete") is not True:
        parts.append("not all of it is known")
    failed = [ended for ended in effects.get("commands") or () if ended.get("exit_code")]
    if failed:
        parts.append(f"{len(failed)} failed commands")
    return " · ".join(parts) or "nothing that is counted"


def is_redacted(request: ApprovalRequest) -> bool:
    """Return whether the preview is not what will run; then an edit needs the sealed arguments."""
    try:
        return args_digest(request.arguments_preview) != request.args_digest
    except ApprovalError:
        return True


def remaining(request: ApprovalRequest, now: datetime) -> str:
    """Return how long a request may still be answered, for people."""
    if request.expires_at is None:
        return "no limit"
    left = request.expires_at - now
    return "expired" if left <= timedelta(0) else duration(int(left.total_seconds()))


def duration(seconds: int) -> str:
    """Return a time in its two largest units, for people.

    Args:
        seconds: the time.
    """
    days, seconds = divmod(seconds, 86_400)
    hours, seconds = divmod(seconds, 3600)
    minutes, seconds = divmod(seconds, 60)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {seconds:02d} s" if minutes else f"{seconds} s"


def describe_suggestion(suggestion: Any) -> str:
    """Return what accepting a suggested update would allow, in words; the suggestion itself is
    shown beside it.
    """
    if not isinstance(suggestion, dict) or suggestion.get("type") != "grant":
        return "Not a grant: it can't be remembered"
    scope = suggestion.get("scope", "session")
    whom = "an unknown scope"
    if isinstance(scope, str):
        whom = _SCOPE_WORDS.get(scope, whom)
    args = suggestion.get("args", "exact")
    if args == "facts":
        which = sentence(suggestion.get("facts") or ())
    elif args == "exact":
        which = "exactly these arguments"
    elif isinstance(args, dict):
        which = _matcher_words(args)
    else:
        which = "arguments that match"
    seconds = suggestion.get("expires_in", 3600)
    time = "an unknown time"
    if type(seconds) in {int, float}:
        time = f"{seconds / 3600:.4g} h"
    return f"Also {which} for {whom}, for {time}"


def _matcher_words(args: dict[str, Any]) -> str:
    """Return what a matcher covers: ``to = "bob@example.org" with any body``."""
    fixed: list[str] = []
    free: list[str] = []
    for name, matcher in args.items():
        if not isinstance(matcher, dict):
            return "arguments that match"
        if matcher.get("any") is True:
            free.append(str(name))
            continue
        wanted = matcher.get("equals", matcher.get("one_of"))
        fixed.append(f"{name} = {json.dumps(wanted, ensure_ascii=False)}")
    words = ", ".join(fixed) or "calls"
    return f"{words} with any {', '.join(free)}" if free else words


_SCOPE_WORDS: Final = {
    "session": "this session",
    "actor": "this actor",
    "tenant": "everybody in this tenant",
    "root": "this actor in these roots, in any session",
}


def parse_edit(text: str) -> dict[str, Any]:
    """Return edited arguments from JSON text."""
    if len(text) > MAX_EDIT_CHARS:
        raise _bad("the edited arguments are too long")
    try:
        value = loads_unique(text)
    except RecursionError:
        raise _bad("the edited arguments are nested too deeply") from None
    except ValueError as error:
        raise _bad(f"the edited arguments are no JSON: {visible(str(error))[:120]}") from None
    if not isinstance(value, dict):
        raise _bad("the edited arguments must be a JSON object")
    return value


def merge_edit(
    preview: dict[str, Any], edited: dict[str, Any], original: dict[str, Any]
) -> dict[str, Any]:
    """Return edited arguments in which what was left as shown keeps its real value.

    The person edits the redacted preview, so a field that they did not change may hold a replacement
    text there.
    """
    placeholders: set[str] = set()
    _collect(preview, original, placeholders)
    merged = _merge(preview, edited, original, placeholders)
    if not isinstance(merged, dict):
        raise _bad("the edited arguments must be a JSON object")
    return merged


_ABSENT: Final = object()


def _merge(shown: Any, edited: Any, real: Any, placeholders: set[str]) -> Any:
    if real is not _ABSENT and _same(shown, edited):
        return real
    if isinstance(edited, dict):
        return _merge_object(shown, edited, real, placeholders)
    if isinstance(edited, list):
        return _merge_list(shown, edited, real, placeholders)
    if isinstance(edited, str) and edited in placeholders:
        raise _bad("a redacted value was moved; type the real value, or leave it where it was")
    return edited


def _merge_object(
    shown: Any,
    edited: dict[str, Any],
    real: Any,
    placeholders: set[str],
) -> dict[str, Any]:
    before = shown if isinstance(shown, dict) else {}
    truth = real if isinstance(real, dict) else {}
    merged: dict[str, Any] = {}
    for key, value in truth.items():
        # what was never shown was not taken away by the person
        if key not in before and key not in edited:
            merged[key] = value
    for key, value in edited.items():
        shown_value = before.get(key, _ABSENT)
        merged[key] = _merge(shown_value, value, truth.get(key, _ABSENT), placeholders)
    return merged


def _merge_list(
    shown: Any,
    edited: list[Any],
    real: Any,
    placeholders: set[str],
) -> list[Any]:
    before = shown if isinstance(shown, list) else []
    truth: list[Any] = []
    if isinstance(real, list) and len(real) == len(before):
        truth = real
    merged: list[Any] = []
    for at, item in enumerate(edited):
        shown_item = before[at] if at < len(before) else _ABSENT
        real_item = truth[at] if at < len(truth) else _ABSENT
        merged.append(_merge(shown_item, item, real_item, placeholders))
    return merged


def _same(left: Any, right: Any) -> bool:
    # True == 1 and 1 == 1.0, but each is another value of JSON
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        if left.keys() != right.keys():
            return False
        return all(_same(left[key], right[key]) for key in left)
    if isinstance(left, list):
        if len(left) != len(right):
            return False
        return all(map(_same, left, right))
    return bool(left == right)


def _collect(shown: Any, real: Any, found: set[str]) -> None:
    """Collect the texts that stand for a redacted value."""
    if isinstance(shown, dict):
        values = real if isinstance(real, dict) else {}
        for key, value in shown.items():
            _collect(value, values.get(key, _ABSENT), found)
    elif isinstance(shown, list):
        items = real if isinstance(real, list) else []
        for at, value in enumerate(shown):
            _collect(value, items[at] if at < len(items) else _ABSENT, found)
    elif isinstance(shown, str) and not _same(shown, real):
        found.add(shown)


def _bad(message: str) -> ApprovalConflict:
    return ApprovalConflict(message, reason=ApprovalConflictReason.INVALID_ANSWER)
