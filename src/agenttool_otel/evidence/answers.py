"""What people agreed to in recorded decisions, and what was denied or rejected in them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final, NamedTuple

import orjson

from agenttool_otel.evidence.parts import Part, parts_of
from agenttool_otel.evidence.record import ANSWER, OBJECT
from agenttool_otel.evidence.replay import Candidate
from agenttool_otel.evidence.words import Words, unmarked
from agenttool_otel.facts.argument_names import identity_words
from agenttool_otel.names import ApprovalStatus, Behavior
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.bundles.settings_schema import rule_kinds
from agenttool_otel.policy.types import Verdict
from agenttool_otel.records.base import JsonObject

_UNANSWERABLE: Final = (".unproven", ".uncertain")
_MAX_REFUSED: Final = 2_000


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
        kinds = {part.kind for part in self.parts}
        return self.tool, self.questions, tuple(sorted(kinds))


class Answers:
    """Collects what people agreed to, and what was denied or rejected.

    Args:
        base: the policy that is to be extended.
        key: of the records' words.
        words: texts whose words are looked up in the records.
    """

    def __init__(self, base: Bundle, key: bytes, words: Iterable[str] = ()) -> None:
        words = list(words)
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
            # a remembered yes: no person answers this call
            person = approval["answered_by"] or ""
            self._agreed[invocation] = (self._asked[invocation], person)

    def _answer(self, record: JsonObject) -> None:
        asked = self._asked.get(record["invocation_id"])
        if asked is None:
            return
        if record["answer"] != ApprovalStatus.APPROVED.value:
            self._refuse(asked)
        # the yes to other arguments is none to those that were asked about
        elif not record["edited"]:
            self._agreed[record["invocation_id"]] = (asked, record["answered_by"])

    def _refuse(self, record: JsonObject) -> None:
        document = record["input"]
        compared = [document["tool"]["id"], document["input"], document["facts"]]
        if len(self._refused) < _MAX_REFUSED:
            self._refused.setdefault(orjson.dumps(compared), record)

    def refused(self) -> list[Any]:
        """Return the inputs of what was denied or rejected, and that the policy does not allow;
        digests with their marks.
        """
        found = []
        for record in self._refused.values():
            document = self._document(record)
            if self._decided(document).behavior is not Behavior.ALLOW:
                found.append(document)
        return found

    def agreed(self) -> Iterator[Agreed]:
        """Yield the calls that people agreed to and that the policy still asks about."""
        for record, person in self._agreed.values():
            document = self._document(record)
            verdict = self._decided(document)
            if verdict.behavior is Behavior.ASK:
                yield self._agreed_call(document, verdict, person)

    def _agreed_call(self, document: Any, verdict: Verdict, person: str) -> Agreed:
        questions = self._questions(verdict)
        parts = _each_once(parts_of(document))
        reason = self._reason(questions, document)
        if not reason and not parts:
            reason = "no argument names whom or what it reaches"
        return Agreed(document["tool"]["id"], questions, parts, document, person, reason)

    def _questions(self, verdict: Verdict) -> tuple[str, ...]:
        """Return the rules that asked, without those that allow."""
        rules = {verdict.rule_ref, *verdict.rule_refs}
        asking = [rule for rule in rules if "allow" not in self._kinds.get(rule, ())]
        return tuple(sorted(asking))

    def _reason(self, questions: Iterable[str], document: Any) -> str:
        for rule in questions:
            if rule.endswith(_UNANSWERABLE) or self._unwaivable.get(rule):
                return f"only a person can answer {rule}"
        if document["facts"]["sql"]:
            return "SQL is not learnt"
        if "effects" in document["facts"]:
            return "what a rehearsal changed is not learnt"
        return ""

    def _decided(self, document: Any) -> Verdict:
        return self._candidate.decide(unmarked(document))

    def _document(self, record: JsonObject) -> Any:
        """Return an input with the known words in clear; of the arguments' names those that name
        receivers, too.
        """
        document = self._candidate.reveal_known(record["input"])
        arguments: JsonObject = {}
        for name, value in document["input"].items():
            arguments[self._names.reveal_known(name)] = value
        return {**document, "input": arguments, "resources": {}}


def _each_once(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return parts without repeated ones; their data have no hash of their own."""
    found = {orjson.dumps(list(part)): part for part in parts}
    return tuple(found.values())
