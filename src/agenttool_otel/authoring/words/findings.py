"""What rules put into ``deny``, ``ask`` and ``allow``: each member has a meaning, or none."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, Final

from agenttool_otel.authoring.words.comparing import described, kinds_named
from agenttool_otel.authoring.words.schemas import obligations_shape
from agenttool_otel.authoring.words.shapes import (
    LIST,
    NULL,
    NUMBER,
    OBJECT,
    SET,
    TEXT,
    Shape,
    elements,
)
from agenttool_otel.authoring.words.slips import Slip
from agenttool_otel.context.validate import did_you_mean
from agenttool_otel.names import PersistenceStrategy, ReasonType, SandboxNetwork, SandboxProfile
from agenttool_otel.policy.bundles.own_rules import CUSTOM, KINDS
from agenttool_otel.policy.rego.syntax import Rule
from agenttool_otel.policy.rego.tree import only
from agenttool_otel.redaction.types import DETECTED

_ALWAYS: Final = frozenset({"rule", "message", "type", "source", "obligations", "alternatives"})
_RESTRICTING: Final = _ALWAYS | {"blocked_path"}
_MEMBERS: Final[Mapping[str, frozenset[str]]] = {
    "deny": _RESTRICTING,
    "ask": _RESTRICTING | {"suggested_updates", "approvals_needed", "required_roles"},
    "allow": _ALWAYS | {"waives", "updated_input", "expires_at"},
}
"""By set, the members of a finding that the stock decision reads."""

_KINDS: Final[Mapping[str, str]] = {
    "rule": TEXT,
    "message": TEXT,
    "type": TEXT,
    "source": TEXT,
    "blocked_path": TEXT,
    "expires_at": TEXT,
    "obligations": OBJECT,
    "updated_input": OBJECT,
    "alternatives": LIST,
    "suggested_updates": LIST,
    "waives": LIST,
    "required_roles": LIST,
    "approvals_needed": NUMBER,
}
"""By member, the type that it has to have."""

_POINTER: Final = re.compile(r"(?:/(?:[^/~]|~[01])*)*")


def _constants(shape: Shape | None) -> list[str]:
    """Return the texts that a value is, where they are written out."""
    if shape is None or shape.words is None or not shape.words.stated:
        return []
    return sorted(shape.words.known)


@dataclass(frozen=True, slots=True)
class Finding:
    """A finding of one rule, as far as it is written out."""

    rule: Rule  # the rule that has it
    kind: str  # ``deny``, ``ask`` or ``allow``
    shape: Shape  # what it is

    @property
    def members(self) -> Mapping[str, Shape]:
        """Its members, as far as they are known."""
        return self.shape.members or {}

    @property
    def name(self) -> str:
        """The name that it gives itself, where that is written out."""
        names = _constants(self.members.get("rule"))
        return names[0] if len(names) == 1 else ""

    def slip(self, message: str, *, at: Shape | None = None, certain: bool = True) -> Slip:
        """Return a slip in it."""
        place = None if at is None else at.place
        if place is None or place.file != self.rule.file:
            return Slip(self.rule.file, self.rule.line, message, certain)
        return Slip(place.file, place.line, message, certain)


def kind_of(rule: Rule) -> str:
    """Return the set of findings that a rule belongs to, where the decision asks it; else an empty
    text.
    """
    if rule.path[: len(CUSTOM)] != CUSTOM:
        return ""
    inner = rule.path[len(CUSTOM) :]
    if len(inner) > 2 or not inner or inner[-1] not in KINDS:
        return ""
    return inner[-1]


def finding_slips(
    rule: Rule, value: Shape, answered: Callable[[str], Iterable[str]]
) -> Iterator[Slip]:
    """Yield what is wrong with the findings of one rule.

    Args:
        rule: the rule.
        value: what it gives.
        answered: yields why waiving a rule has no effect.
    """
    kind = kind_of(rule)
    if not kind:
        return
    node_kind, definition = only(rule.node)
    if node_kind == "Default":
        yield _default(rule, kind)
        return
    if "Set" not in definition["head"]:
        yield from _no_set(rule, kind, value)
        return
    finding = Finding(rule, kind, value.items or Shape())
    if not finding.shape.kinds <= {OBJECT}:
        if finding.shape.known:
            yield finding.slip(
                f"{kind} holds {kinds_named(finding.shape)}: a finding is an object with rule and message",
                certain=kind == "allow",
            )
        return
    if finding.shape.members is None:
        return
    yield from _members(finding)
    for name in _constants(elements(finding.members.get("waives", Shape()))):
        for message in answered(name):
            yield finding.slip(message, at=finding.members["waives"])


def _default(rule: Rule, kind: str) -> Slip:
    effect = "allow alone allows nothing" if kind == "allow" else f"{kind} is a set of findings"
    return Slip(
        rule.file, rule.line, f"default {kind} has no effect: {effect}; write {kind} contains"
    )


def _no_set(rule: Rule, kind: str, value: Shape) -> Iterator[Slip]:
    write = f"write {kind} contains {{...}}"
    if kind == "allow":
        message = f"allow is no set of findings, so it has no effect: {write}"
        yield Slip(rule.file, rule.line, message, value.kinds != {SET})
        return
    message = f"{kind} is no set of findings, so its name and message are lost: {write}"
    if value.kinds != {SET}:
        yield Slip(rule.file, rule.line, message, certain=False)


def _members(finding: Finding) -> Iterator[Slip]:
    known = _MEMBERS[finding.kind]
    for name, member in finding.members.items():
        if name not in known:
            yield _unknown(finding, name, member, known)
        elif member.kinds and not member.could_be({_KINDS[name], NULL}):
            yield finding.slip(_wrong_type(name, member), at=member)
        else:
            check = _CHECKS.get(name)
            if check is not None:
                yield from check(finding, member)
    for name in ("rule", "message"):
        if name not in finding.members:
            yield finding.slip(_without(name, finding.kind), certain=finding.kind == "allow")
    if finding.kind == "allow" and "waives" not in finding.members and _only_waives(finding):
        yield finding.slip('an allow without "waives" answers no question', certain=False)


def _without(name: str, kind: str) -> str:
    if kind == "allow":
        return f"the finding has no {name}, so it has no effect"
    return f"the finding has no {name}, so it counts as agenttool.custom.{kind}"


def _only_waives(finding: Finding) -> bool:
    return not {"obligations", "updated_input", "expires_at"} & finding.members.keys()


def _wrong_type(name: str, member: Shape) -> str:
    wanted = kinds_named(Shape(frozenset({_KINDS[name]})))
    message = f"{name} has to be {wanted}, not {described(member.called(''))}"
    if name == "waives" and member.kinds <= {SET}:
        message += ": a set is not looked at; write [...]"
    return message


def _unknown(finding: Finding, name: str, member: Shape, known: frozenset[str]) -> Slip:
    elsewhere = [kind for kind, members in _MEMBERS.items() if name in members]
    near = did_you_mean(name, known)
    if elsewhere:
        message = f"{name} has an effect in {' and '.join(elsewhere)}, and none in {finding.kind}"
    else:
        message = f"a finding has no member {name!r}{near or '; nothing reads it'}"
    return finding.slip(message, at=member)


# --- members --------------------------------------------------------------------------------------


def _rule_name(finding: Finding, member: Shape) -> Iterator[Slip]:
    for name in _constants(member):
        if name.startswith("agenttool.") and not name.startswith("agenttool.custom."):
            yield finding.slip(
                f"the name {name!r} belongs to the stock rules: use a prefix of your own", at=member
            )
    if member.words is None:
        yield finding.slip(
            "the rule's name is not constant, so nobody can waive it or count it", certain=False
        )


def _message(finding: Finding, member: Shape) -> Iterator[Slip]:
    if member.words is None:
        yield finding.slip(
            "the message is not constant: values of arguments in it would reach telemetry, so they are"
            " taken out of it",
            certain=False,
        )
    elif "" in member.words.known:
        yield finding.slip("the message is empty", at=member, certain=False)


def _type(finding: Finding, member: Shape) -> Iterator[Slip]:
    known = [str(word) for word in ReasonType]
    for word in _constants(member):
        if word not in known:
            yield finding.slip(f"there is no type {word!r}{did_you_mean(word, known)}", at=member)


_SANDBOX: Final = ("profile", "network")


def _waives(finding: Finding, member: Shape) -> Iterator[Slip]:
    if member.size == 0:
        yield finding.slip('an empty "waives" answers no question', at=member, certain=False)
    items = elements(member)
    for name in _constants(items):
        if "*" in name:
            yield finding.slip(f"waives takes names of rules, not the glob {name!r}", at=member)


def _obligations(finding: Finding, member: Shape) -> Iterator[Slip]:
    known = obligations_shape().members or {}
    for name, value in (member.members or {}).items():
        if name not in known:
            near = did_you_mean(name, known)
            listed = ", ".join(sorted(known))
            message = f"there is no obligation {name!r}{near}; it is one of {listed}"
            yield finding.slip(message, at=value)
        elif value.kinds and not value.could_be(known[name].kinds):
            wanted = kinds_named(Shape(known[name].kinds - {NULL}))
            message = f"obligations.{name} has to be {wanted}, not {described(value.called(''))}"
            yield finding.slip(message, at=value)
        else:
            yield from _obligation(finding, name, value)


def _obligation(finding: Finding, name: str, value: Shape) -> Iterator[Slip]:
    if name in ("redact_input", "redact_result"):
        yield from _pointers(finding, name, value)
    elif name == "persistence":
        yield from _word(finding, "persistence", value, PersistenceStrategy)
    elif name == "sandbox":
        yield from _sandbox(finding, value)
    elif value.kinds <= {NUMBER} and _is_no_count(value.value):
        yield finding.slip("max_inline_chars is a whole number of characters", at=value)


def _word(finding: Finding, name: str, value: Shape, words: type[StrEnum]) -> Iterator[Slip]:
    known = [str(word) for word in words]
    for word in _constants(value):
        if word not in known:
            near = did_you_mean(word, known)
            listed = ", ".join(known)
            message = f"there is no {name} {word!r}{near}; it is one of {listed}"
            yield finding.slip(message, at=value)


def _sandbox(finding: Finding, sandbox: Shape) -> Iterator[Slip]:
    for name, value in (sandbox.members or {}).items():
        if name not in _SANDBOX:
            near = did_you_mean(name, _SANDBOX)
            yield finding.slip(f"a sandbox has no {name!r}{near}", at=value)
        elif name == "profile":
            yield from _profile(finding, value)
        else:
            yield from _word(finding, f"{name} of a sandbox", value, SandboxNetwork)


def _profile(finding: Finding, value: Shape) -> Iterator[Slip]:
    """Yield a name that is no stock profile's; where the rules run it may be one of one's own."""
    known = [str(word) for word in SandboxProfile]
    for word in _constants(value):
        if word not in known:
            near = did_you_mean(word, known)
            message = (
                f"there is no stock profile {word!r}{near}; a profile of your own has to be in the"
                " file of AGENTTOOL_SANDBOX_PROFILES, or the call is denied"
            )
            yield finding.slip(message, at=value, certain=False)


def _is_no_count(value: Any) -> bool:
    if not isinstance(value, (int, float)):
        return False
    return value < 0 or value != int(value)


def _pointers(finding: Finding, name: str, value: Shape) -> Iterator[Slip]:
    for pointer in _constants(elements(value)):
        if name == "redact_result" and pointer in ("*", DETECTED):
            continue
        if not _POINTER.fullmatch(pointer):
            message = f"{name}: {pointer!r} is no JSON pointer; write '/{pointer}'"
            yield finding.slip(message, at=value)


def _alternatives(finding: Finding, member: Shape) -> Iterator[Slip]:
    items = elements(member)
    if not items.kinds <= {OBJECT}:
        if items.known and member.size:
            message = f"alternatives holds {kinds_named(items)}: an offer is an object with tool"
            yield finding.slip(message, at=member)
        return
    known = ("tool", "arguments", "reason")
    for name, value in (items.members or {}).items():
        if name not in known:
            message = f"an offer has no member {name!r}{did_you_mean(name, known)}"
            yield finding.slip(message, at=value)
    if items.members is not None and "tool" not in items.members:
        yield finding.slip("an offer without tool offers nothing", at=member)


def _expiry(finding: Finding, member: Shape) -> Iterator[Slip]:
    for text in _constants(member):
        try:
            moment = datetime.fromisoformat(text)
        except ValueError:
            moment = None
        if moment is None or moment.tzinfo is None:
            yield finding.slip(f"expires_at: {text!r} is no RFC 3339 time with a zone", at=member)


def _people(finding: Finding, member: Shape) -> Iterator[Slip]:
    if member.value is not None and (_is_no_count(member.value) or member.value < 1):
        yield finding.slip("approvals_needed is a number of people, 1 or more", at=member)


_CHECKS: Final[Mapping[str, Callable[[Finding, Shape], Iterator[Slip]]]] = {
    "rule": _rule_name,
    "message": _message,
    "type": _type,
    "waives": _waives,
    "obligations": _obligations,
    "alternatives": _alternatives,
    "expires_at": _expiry,
    "approvals_needed": _people,
}


# --- names ----------------------------------------------------------------------------------------


def double_names(findings: list[Finding]) -> Iterator[Slip]:
    """Yield the names that two rules have which differ in more than their conditions."""
    first: dict[str, Finding] = {}
    for finding in findings:
        name = finding.name
        if not name:
            continue
        other = first.setdefault(name, finding)
        if other is finding or _is_same(finding, other):
            continue
        where = f"{other.rule.file}:{other.rule.line}"
        yield finding.slip(f"the name {name!r} is that of another rule, too: {where}")


def _is_same(finding: Finding, other: Finding) -> bool:
    """Return whether two rules are two ways to one finding."""
    if finding.rule.path != other.rule.path:
        return False
    first = _constants(finding.members.get("message"))
    second = _constants(other.members.get("message"))
    return first == second
