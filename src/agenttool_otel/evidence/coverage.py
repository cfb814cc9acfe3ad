"""Which rules of a policy recorded traffic reached, how people answered their questions, and which
settings never mattered.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final, NamedTuple

from agenttool_otel.errors import PolicyError
from agenttool_otel.evidence.record import ANSWER, OBJECT
from agenttool_otel.evidence.replay import Candidate
from agenttool_otel.evidence.spread import PackedBundle, Work, packed, spread
from agenttool_otel.evidence.without import without_each_part
from agenttool_otel.names import ApprovalStatus, Behavior
from agenttool_otel.policy.bundles.bundle import Bundle, default_bundle_path
from agenttool_otel.policy.bundles.load import load_bundle
from agenttool_otel.policy.bundles.own_rules import KINDS
from agenttool_otel.policy.bundles.settings_schema import rule_kinds, rule_names
from agenttool_otel.policy.types import Verdict
from agenttool_otel.records.base import JsonObject

_STOCK_PREFIX: Final = "agenttool."


class Covered(NamedTuple):
    """A recorded decision, and what a policy says of it."""

    invocation: str  # id of the call
    behavior_before: str  # what was decided then
    rules_before: tuple[str, ...]  # rules that contributed then
    rules: tuple[str, ...]  # rules that contribute on the policy, the deciding one first
    mattered: frozenset[str]  # parts without which it would be decided otherwise


class Covering:
    """Decides records on a policy, and on it without each part that has not mattered yet.

    Args:
        bundle: the policy.
        key: of the records' words.
    """

    def __init__(self, bundle: Bundle, key: bytes) -> None:
        self._whole = Candidate(bundle, key)
        self._without: dict[str, Candidate | None] = {}
        for part, reduced in without_each_part(bundle):
            try:
                self._without[part] = Candidate(reduced, key)
            except PolicyError:
                self._without[part] = None  # "preset": "mine" needs "presets": nothing loads

    def cover(self, line: JsonObject) -> Covered:
        """Decide a record.

        Args:
            line: a line of a decision.
        """
        record = line["record"]
        document = self._whole.document(record)
        verdict = self._whole.decide(document)
        decision = record["decision"]
        return Covered(
            document["invocation"]["id"],
            decision["behavior"],
            tuple(self._whole.reveal(decision["rules"])),
            verdict.rule_refs or (verdict.rule_ref,),
            self._mattered(document, verdict),
        )

    def _mattered(self, document: Any, verdict: Verdict) -> frozenset[str]:
        found = frozenset(
            part
            for part, candidate in self._without.items()
            if candidate is None or _differ(candidate.decide(document), verdict)
        )
        for part in found:
            del self._without[part]
        return found


def _differ(first: Verdict, second: Verdict) -> bool:
    """Return whether two verdicts are two decisions; what only names more rules is none."""
    aside: dict[str, Any] = {"revision": "", "duration": 0.0, "rule_refs": (), "message": ""}
    aside |= {"bundle_digest": "", "cached": False}
    return replace(first, **aside) != replace(second, **aside)


def _coverer(bundle: PackedBundle, key: bytes) -> Work[Covered]:
    return Covering(bundle.unpacked(), key).cover


class RuleTraffic:
    """What happened to one rule."""

    def __init__(self) -> None:
        self.found = 0  # decisions to which it contributed
        self.decided = 0  # those that it decided
        self.answers: Counter[str] = Counter()  # of people, to questions that it asked


class Coverage:
    """Collects what traffic showed of a policy.

    Args:
        bundle: the policy.
    """

    def __init__(self, bundle: Bundle) -> None:
        stock = load_bundle(default_bundle_path()).modules
        own = {file: text for file, text in bundle.modules.items() if stock.get(file) != text}
        self._own = rule_names(own)
        self._kinds = rule_kinds(bundle.modules)
        self._rules = {name: RuleTraffic() for name in rule_names(bundle.modules)}
        self._parts = {part: False for part, _ in without_each_part(bundle)}
        self._asked: dict[str, list[tuple[int, tuple[str, ...]]]] = {}
        self._answers: dict[tuple[str, str], tuple[int, str]] = {}
        self.decisions = 0

    def decisions_of(self, lines: Iterable[JsonObject]) -> Iterator[JsonObject]:
        """Yield the lines of decisions, and keep those of answers.

        Args:
            lines: of files of records.
        """
        count = 0
        for line in lines:
            record = line["record"]
            if line["object"] == OBJECT:
                count += 1
                yield line
            elif line["object"] == ANSWER:
                # a call that goes on in a third process takes the same answer again
                key = (record["invocation_id"], record["request_id"])
                self._answers.setdefault(key, (count, record["answer"]))

    def add(self, covered: Covered) -> None:
        """Count a decision.

        Args:
            covered: the decision.
        """
        self.decisions += 1
        for rule in dict.fromkeys(covered.rules):
            self._rules.setdefault(rule, RuleTraffic()).found += 1
        self._rules[covered.rules[0]].decided += 1
        for part in covered.mattered:
            self._parts[part] = True
        if covered.behavior_before == Behavior.ASK.value:
            asked = (self.decisions, covered.rules_before)
            self._asked.setdefault(covered.invocation, []).append(asked)

    def report(self) -> JsonObject:
        """Return what was found as plain data."""
        self._count_answers()
        rules = [self._rule(name) for name in sorted(self._rules)]
        asking = [rule for rule in rules if rule["approved"] or rule["rejected"]]
        return {
            "decisions": self.decisions,
            "rules": rules,
            "never_reached": [rule["rule"] for rule in rules if not rule["found"]],
            "always_approved": [rule["rule"] for rule in asking if not rule["rejected"]],
            "always_rejected": [rule["rule"] for rule in asking if not rule["approved"]],
            "never_mattered": [part for part, mattered in self._parts.items() if not mattered],
        }

    def _count_answers(self) -> None:
        for (invocation, _), (position, answer) in self._answers.items():
            asked = [rules for at, rules in self._asked.get(invocation, ()) if at <= position]
            for rule in dict.fromkeys(asked[-1] if asked else ()):
                if "allow" not in self._kinds.get(rule, ()):
                    self._rules.setdefault(rule, RuleTraffic()).answers[answer] += 1
        self._answers.clear()

    def _rule(self, name: str) -> dict[str, Any]:
        traffic = self._rules[name]
        return {
            "rule": name,
            "sets": [kind for kind in KINDS if kind in self._kinds.get(name, ())],
            "own": name in self._own or not name.startswith(_STOCK_PREFIX),
            "found": traffic.found,
            "decided": traffic.decided,
            "approved": traffic.answers[ApprovalStatus.APPROVED.value],
            "rejected": traffic.answers[ApprovalStatus.REJECTED.value],
        }


def cover(lines: Iterable[JsonObject], bundle: Bundle, key: bytes, jobs: int = 0) -> Coverage:
    """Return what recorded traffic shows of a policy.

    Args:
        lines: of files of records.
        bundle: the policy.
        key: of the records' words.
        jobs: processes; as many as there are processors where 0.
    """
    coverage = Coverage(bundle)
    for covered in spread(coverage.decisions_of(lines), _coverer, (packed(bundle), key), jobs):
        coverage.add(covered)
    return coverage
