"""What people agreed to in recorded decisions, as the least that would answer their questions.

Only arguments that name whom or what a call reaches are learnt: places, hosts, receivers, and the
programs of commands. A value is generalised by one step, where enough different values were seen.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple

import orjson

from agenttool_otel.evidence.record import ANSWER, OBJECT
from agenttool_otel.evidence.replay import Candidate
from agenttool_otel.evidence.words import Words, hidden_words, unmarked
from agenttool_otel.facts.argument_names import identity_words, names_identity
from agenttool_otel.names import ApprovalStatus, Behavior
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.bundles.settings_schema import rule_kinds
from agenttool_otel.records.base import JsonObject

_UNANSWERABLE: Final = (".unproven", ".uncertain")
_ONE_TASK: Final = frozenset({"writer", "deleter", "tree_deleter", "tester"})
STEPPED: Final = _ONE_TASK | {"builder", "vcs_local"}
"""Kinds of commands of which a program and its sub-command may be learnt."""

RECEIVER: Final = "argument "
"""Begins the kind of a part that is a receiver's argument: ``argument recipient``."""

_MAX_REFUSED: Final = 2_000
_SLUG: Final = re.compile(r"[^a-z0-9]+")


class Part(NamedTuple):
    """A part of a call that names whom or what it reaches."""

    kind: str  # places, hosts, commands, or the argument that names a receiver
    exact: Any  # as it was seen, plain JSON data
    wider: Any = None  # after one step: a folder, a domain, a program with its sub-command


class Agreed(NamedTuple):
    """A call that a person agreed to."""

    tool: str  # the tool's id
    questions: tuple[str, ...]  # rules that asked
    parts: tuple[Part, ...]  # what it reaches; digests with their marks
    document: Any  # the policy's input, digests with their marks
    person: str  # who answered, as a digest
    reason: str = ""  # why nothing can be learnt of it; empty where something can

    @property
    def group(self) -> tuple[Any, ...]:
        """What calls have in common that one rule is for."""
        kinds = tuple(sorted({part.kind for part in self.parts}))
        return self.tool, self.questions, kinds


@dataclass
class Learnt:
    """What one rule of the extension permits."""

    name: str  # the last part of the rule's name, and of its data
    tool: str  # the tool's id
    questions: tuple[str, ...]  # what it answers
    calls: list[Agreed]  # what it was made of
    exact: dict[str, list[Any]] = field(default_factory=dict)  # values as seen, by kind
    wider: dict[str, list[Any]] = field(default_factory=dict)  # values after a step, by kind

    @property
    def kinds(self) -> list[str]:
        """The kinds of its values."""
        return sorted({*self.exact, *self.wider})


class Unlearnt(NamedTuple):
    """Calls that people agreed to, of which no rule was made."""

    tool: str  # the tool's id
    reason: str  # why
    calls: int  # how many
    hidden: list[str]  # digests of words that would have to be known


class Answers:
    """Collects what people agreed to, and what was denied or rejected.

    Args:
        base: the policy that is to be extended.
        key: of the records' words.
        words: texts whose words are looked up in the records.
    """

    def __init__(self, base: Bundle, key: bytes, words: Iterable[str] = ()) -> None:
        self._candidate = Candidate(base, key, words)
        self._names = Words(key).finder([*identity_words(), *words])
        self._kinds = rule_kinds(base.modules)
        approval = base.data["agenttool"]["defaults"]["approval"]
        self._unwaivable = approval["unwaivable"]
        self._asked: dict[str, JsonObject] = {}
        self._agreed: dict[str, tuple[JsonObject, str]] = {}
        self._refused: dict[bytes, JsonObject] = {}
        self.decisions = 0

    def read(self, lines: Iterable[JsonObject]) -> None:
        """Read records.

        Args:
            lines: of files of records.
        """
        for line in lines:
            if line["object"] == OBJECT:
                self._decision(line["record"])
            elif line["object"] == ANSWER:
                self._answer(line["record"])

    def _decision(self, record: JsonObject) -> None:
        self.decisions += 1
        document, behavior = record["input"], record["decision"]["behavior"]
        invocation, approval = document["invocation"]["id"], document["approval"]
        if behavior == Behavior.DENY.value:
            self._refuse(record)
        elif behavior == Behavior.ASK.value and not approval:
            self._asked[invocation] = record
        elif approval and approval["granted"] and invocation in self._asked:
            self._agreed[invocation] = (self._asked[invocation], approval["answered_by"] or "")

    def _answer(self, record: JsonObject) -> None:
        asked = self._asked.get(record["invocation_id"])
        if asked is None:
            return
        if record["answer"] != ApprovalStatus.APPROVED.value:
            self._refuse(asked)
        elif not record["edited"]:
            self._agreed[record["invocation_id"]] = (asked, record["answered_by"])

    def _refuse(self, record: JsonObject) -> None:
        document = record["input"]
        what = orjson.dumps([document["tool"]["id"], document["input"], document["facts"]])
        if len(self._refused) < _MAX_REFUSED:
            self._refused.setdefault(what, record)

    def refused(self) -> list[Any]:
        """Return the inputs of what was denied or rejected, and that the policy does not allow;
        digests with their marks.
        """
        documents = map(self._document, self._refused.values())
        return [each for each in documents if not self._is_allowed(each)]

    def _is_allowed(self, document: Any) -> bool:
        return self._candidate.decide(unmarked(document)).behavior is Behavior.ALLOW

    def agreed(self) -> Iterator[Agreed]:
        """Yield the calls that people agreed to and that the policy still asks about."""
        for record, person in self._agreed.values():
            document = self._document(record)
            verdict = self._candidate.decide(unmarked(document))
            if verdict.behavior is not Behavior.ASK:
                continue
            rules = (verdict.rule_ref, *verdict.rule_refs)
            questions = sorted({rule for rule in rules if "allow" not in self._kinds.get(rule, ())})
            parts = tuple(dict.fromkeys(map(_hashable, parts_of(document))))
            reason = self._reason(questions, document) or ("" if parts else _NO_PART)
            whole = tuple(Part(kind, *map(orjson.loads, values)) for kind, *values in parts)
            yield Agreed(document["tool"]["id"], tuple(questions), whole, document, person, reason)

    def _reason(self, questions: list[str], document: Any) -> str:
        for rule in questions:
            if rule.endswith(_UNANSWERABLE) or self._unwaivable.get(rule):
                return f"only a person can answer {rule}"
        if document["facts"]["sql"]:
            return "SQL is not learnt"
        if "effects" in document["facts"]:
            return "what a rehearsal changed is not learnt"
        return ""

    def _document(self, record: JsonObject) -> Any:
        """Return an input with the known words in clear; of the arguments' names those that name
        receivers, too.
        """
        document = {**self._candidate.reveal_known(record["input"]), "resources": {}}
        document["input"] = {
            self._names.reveal_known(name): value for name, value in document["input"].items()
        }
        return document


_NO_PART: Final = "no argument names whom or what it reaches"


def _hashable(part: Part) -> tuple[str, bytes, bytes]:
    return part.kind, orjson.dumps(part.exact), orjson.dumps(part.wider)


def parts_of(document: Any) -> Iterator[Part]:
    """Yield the parts of a call that name whom or what it reaches.

    Args:
        document: the policy's input.
    """
    facts = document["facts"]
    for fact in facts["paths"]:
        yield _place(fact)
    for fact in facts["urls"]:
        yield Part("hosts", fact["host"])
    for fact in facts["shell"]:
        for command in fact["commands"]:
            yield from _parts_of_command(command)
    if not facts["shell"]:
        yield from _receivers(document)


def _place(fact: Any) -> Part:
    steps = (fact["resolved"] or "").split("/")
    # "/etc/x": all of /etc is no folder that a few files speak for
    wider = [fact["access"], steps[:-1]] if len(steps) > 3 else None
    return Part("places", [fact["access"], steps], wider)


def _parts_of_command(command: Any) -> Iterator[Part]:
    for place in command["places"]:
        fact = place["path"]
        if fact and not (fact["inside"] and fact["access"] == "read"):
            yield _place(fact)
    if not command["read_only"]:
        yield Part("commands", command["plain"], _program(command))


def _program(command: Any) -> list[Any] | None:
    """Return a command's kind with its program and sub-command, where all its words are reviewed."""
    words = command["plain"]
    known = command["category"] in STEPPED and command["complete"] and not command["unreviewed"]
    if not words or not known:
        return None
    operands = {place["word"] for place in command["places"]}
    second = words[1] if len(words) > 1 else "-"
    if not second.startswith("-") and second not in operands:
        return [command["category"], words[:2]]
    # "git -C x push", "make -j8": without its sub-command, that may be anything
    return [command["category"], words[:1]] if command["category"] in _ONE_TASK else None


def _receivers(document: Any) -> Iterator[Part]:
    pointers = {fact["argument"] for kind in ("paths", "urls") for fact in document["facts"][kind]}
    for name, value in document["input"].items():
        if not names_identity(name) or f"/{name}" in pointers:
            continue
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, str):
                before, _, domain = each.rpartition("@")
                yield Part(f"{RECEIVER}{name}", each, domain if before else None)
            elif each is not None:
                yield Part(f"{RECEIVER}{name}", each)


def learn(calls: Iterable[Agreed], least: int) -> tuple[list[Learnt], list[Unlearnt]]:
    """Return what one rule each permits, and what none is made of.

    Args:
        calls: what people agreed to.
        least: how many different values have to be seen before a step is taken.
    """
    groups: dict[tuple[Any, ...], list[Agreed]] = {}
    aside: list[tuple[Agreed, str, list[str]]] = []
    for call in calls:
        if call.reason:
            aside.append((call, call.reason, []))
        else:
            groups.setdefault(call.group, []).append(call)
    learnt: list[Learnt] = []
    for key in sorted(groups):
        one = Learnt(_slug(key[0], len(learnt) + 1), key[0], key[1], [])
        for call, hidden in _chosen(one, groups[key], least):
            if hidden:
                aside.append((call, "words of it are hidden", hidden))
            else:
                one.calls.append(call)
        if one.calls:
            learnt.append(one)
    return learnt, _unlearnt(aside)


def _chosen(learnt: Learnt, calls: list[Agreed], least: int) -> Iterator[tuple[Agreed, list[str]]]:
    """Choose exact values, or those of a step; yield each call with the words that it would take."""
    stepped = _stepped(calls, least)
    for call in calls:
        hidden: list[str] = []
        for part in call.parts:
            value = part.wider if _step_of(part) in stepped else part.exact
            hidden += [*hidden_words(part.kind), *hidden_words(value)]
        if not hidden:
            _hold(learnt, call, stepped)
        yield call, hidden


_Step = tuple[str, bytes]
"""A kind of values, and what a step makes of some of them."""


def _step_of(part: Part) -> _Step:
    return part.kind, orjson.dumps(part.wider)


def _stepped(calls: list[Agreed], least: int) -> set[_Step]:
    """Return the steps for which enough different values were seen."""
    seen: dict[_Step, set[bytes]] = {}
    for part in (part for call in calls for part in call.parts if part.wider is not None):
        seen.setdefault(_step_of(part), set()).add(orjson.dumps(part.exact))
    return {step for step, values in seen.items() if len(values) >= least}


def _hold(learnt: Learnt, call: Agreed, stepped: set[_Step]) -> None:
    for part in call.parts:
        is_wider = _step_of(part) in stepped
        values = (learnt.wider if is_wider else learnt.exact).setdefault(part.kind, [])
        value = part.wider if is_wider else part.exact
        if value not in values:
            values.append(value)


def _slug(tool: str, number: int) -> str:
    """Return a name for a rule and its data: a word of Rego, which begins with a letter."""
    words = _SLUG.sub("_", tool.rpartition(".")[2].lower()).strip("_")
    return f"{words}_{number}" if words[:1].isalpha() else f"tool_{words}_{number}"


def _unlearnt(aside: list[tuple[Agreed, str, list[str]]]) -> list[Unlearnt]:
    found: dict[tuple[str, str], list[list[str]]] = {}
    for call, reason, hidden in aside:
        found.setdefault((call.tool, reason), []).append(hidden)
    return [
        Unlearnt(tool, reason, len(each), sorted({word for words in each for word in words}))
        for (tool, reason), each in sorted(found.items())
    ]
