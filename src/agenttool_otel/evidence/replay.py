"""Recorded decisions, decided again on another policy."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from fnmatch import fnmatchcase
from typing import Any, Final, NamedTuple

import orjson

from agenttool_otel.evidence.new_rules import arguments_read, names_read, new_rules, new_texts
from agenttool_otel.evidence.record import OBJECT
from agenttool_otel.evidence.spelling import spelling_calls
from agenttool_otel.evidence.spread import PackedBundle, Work, packed, spread
from agenttool_otel.evidence.words import Words, texts_in
from agenttool_otel.names import Behavior, EntryPoint
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.cache import DecisionCache
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.rule_words import own_texts
from agenttool_otel.policy.types import Verdict
from agenttool_otel.records.base import JsonObject

STRICTEST_FIRST: Final = (Behavior.DENY.value, Behavior.ASK.value, Behavior.ALLOW.value)
_TIMEOUT: Final = 10.0
_EXAMPLES: Final = 3
_MAX_KNOWN: Final = 16_384


class Replayed(NamedTuple):
    """A recorded decision, and what the candidate decides."""

    tool: str  # the tool's id
    before: str  # allow, ask or deny
    rule_before: str  # the rule that decided it
    after: str
    rule_after: str
    invocation: str  # id of the call
    time: str  # when it was decided
    unsure: str  # why the candidate may decide otherwise; empty where it would not
    condition: str = ""  # of a made-up input: the members that were set to come near a condition

    @property
    def same(self) -> bool:
        """Whether behavior and rule are what they were."""
        return (self.before, self.rule_before) == (self.after, self.rule_after)

    @property
    def widens(self) -> bool:
        """Whether the candidate permits more."""
        return STRICTEST_FIRST.index(self.after) > STRICTEST_FIRST.index(self.before)


class Candidate:
    """A policy that recorded decisions are tried on.

    Args:
        bundle: the policy.
        key: of the records' words.
        words: further texts whose words are looked up in the records.

    Raises:
        PolicyLoadError: the policy can't be used.
    """

    def __init__(self, bundle: Bundle, key: bytes, words: Iterable[str] = ()) -> None:
        self._engine = EmbeddedEngine(bundle)
        # traffic repeats itself, and a cached verdict is a proven one
        self._decider = Decider((self._engine,), timeout=_TIMEOUT, cache=DecisionCache(_MAX_KNOWN))
        rules = new_rules(bundle)
        texts = [*own_texts(bundle), *texts_in(bundle.data), *names_read(rules), *words]
        hider = Words(key)
        self._finder = hider.finder(texts)
        self._own = hider.finder(new_texts(bundle))
        self.looks_inside = spelling_calls(rules)
        self._known_reads: dict[tuple[str, bytes], bool] = {}
        self._arguments_read = arguments_read(rules)

    def replay(self, line: JsonObject) -> Replayed:
        """Decide a recorded decision again.

        Args:
            line: a line of a file of records.
        """
        record = line["record"]
        document = self.document(record)
        verdict = self.decide(document)
        decision = record["decision"]
        unsure = self._unsure(record, document)
        if verdict.fail_closed is not None and "fail_closed" not in decision:
            unsure = unsure or f"the candidate could not decide: {verdict.fail_closed.value}"
        return Replayed(
            document["tool"]["id"],
            decision["behavior"],
            self.reveal(decision["rule"]),
            verdict.behavior.value,
            verdict.rule_ref,
            document["invocation"]["id"],
            document["time"],
            unsure,
        )

    def document(self, record: JsonObject) -> Any:
        """Return the policy's input of a record: the policy's own words in clear, and names in the
        place of others, so that the cache finds a call that differs in those alone.

        Args:
            record: of a decision.
        """
        return {**self._finder.reveal_alike(record["input"]), "resources": {}}

    def decide(self, document: Any) -> Verdict:
        """Decide an input.

        Args:
            document: the policy's input.
        """
        return self._decider.decide(document)

    def reveal(self, value: Any) -> Any:
        """Return plain data with the policy's own words in clear.

        Args:
            value: plain JSON data of a record.
        """
        return self._finder.reveal(value)

    def reveal_known(self, value: Any) -> Any:
        """Return plain data with the policy's own words in clear, and other digests marked as such.

        Args:
            value: plain JSON data of a record.
        """
        return self._finder.reveal_known(value)

    def _unsure(self, record: JsonObject, document: Any) -> str:
        """Return why the record may not hold what the candidate looks at."""
        for name in record["left_out"]:
            if self._reads(name, document):
                return f"the candidate reads {name}, which was not recorded"
        if self._reads_shortened(record.get("shortened", ())):
            return "the candidate reads arguments that were not recorded whole"
        if self.looks_inside and self._finder.has_unknown(record["input"]):
            return f"{self.looks_inside[0]} looks inside of words"
        if self._own.has_folded(record["input"]):
            return "a word of the candidate is there in large and small letters mixed"
        return ""

    def _reads_shortened(self, pointers: Iterable[str]) -> bool:
        """Return whether a rule reads an argument of which a part was not recorded."""
        if "" in self._arguments_read:
            return bool(list(pointers))
        names = {self.reveal(pointer).split("/")[1] for pointer in pointers}
        return bool(names & self._arguments_read)

    def _reads(self, name: str, document: Any) -> bool:
        """Return whether the policy may read a member: known by what its guards may read."""
        guarded = [document["session"]["mode"], document["tool"], document["permission_profile"]]
        key = name, orjson.dumps([*guarded, sorted(document["input"])])
        if key not in self._known_reads:
            if len(self._known_reads) >= _MAX_KNOWN:
                self._known_reads.clear()
            self._known_reads[key] = self._may_read(tuple(name.split(".")), document)
        return self._known_reads[key]

    def _may_read(self, path: tuple[str, ...], document: Any) -> bool:
        proven = self._engine.reads(EntryPoint.DECISION, document)
        if proven is None:
            return True
        return any(other[: len(path)] == path[: len(other)] for other in proven[1].paths)


class Replay:
    """What became of recorded decisions on a candidate.

    Args:
        approved: globs of tool ids for which the candidate may permit more.
    """

    def __init__(self, approved: Iterable[str] = ()) -> None:
        self._approved = tuple(approved)
        self.decisions = 0
        self.same = 0
        self.unsure: Counter[str] = Counter()
        self.widened = 0  # without those that were approved
        self._changes: dict[tuple[str, ...], list[Replayed]] = {}
        self._counts: Counter[tuple[str, ...]] = Counter()

    def add(self, replayed: Replayed) -> None:
        """Count a decision.

        Args:
            replayed: the decision.
        """
        self.decisions += 1
        if replayed.unsure:
            self.unsure[replayed.unsure] += 1
        if replayed.same:
            self.same += 1
            return
        if replayed.widens and not self._is_approved(replayed.tool):
            self.widened += 1
        key = tuple(replayed[:5])
        self._counts[key] += 1
        examples = self._changes.setdefault(key, [])
        if len(examples) < _EXAMPLES:
            examples.append(replayed)
        elif replayed.condition and not examples[0].condition:
            examples[0] = replayed

    def _is_approved(self, tool: str) -> bool:
        return any(fnmatchcase(tool, glob) for glob in self._approved)

    @property
    def changes(self) -> list[JsonObject]:
        """The transitions, from a denial to an allow first, and the most frequent of each kind
        first.
        """
        found = []
        for key in sorted(self._counts, key=self._order):
            tool, before, rule_before, after, rule_after = key
            examples = self._changes[key]
            found.append(
                {
                    "before": before,
                    "after": after,
                    "count": self._counts[key],
                    "tool": tool,
                    "rule_before": rule_before,
                    "rule_after": rule_after,
                    "widens": examples[0].widens,
                    "approved": examples[0].widens and self._is_approved(tool),
                    "examples": [_example(each) for each in examples],
                }
            )
        return found

    def report(self) -> JsonObject:
        """Return what was counted as plain data."""
        return {
            "decisions": self.decisions,
            "same": self.same,
            "widened": self.widened,
            "unsure": dict(self.unsure),
            "changes": self.changes,
        }

    def _order(self, key: tuple[str, ...]) -> tuple[Any, ...]:
        first = self._changes[key][0]
        distance = STRICTEST_FIRST.index(first.before) - STRICTEST_FIRST.index(first.after)
        return (distance, -self._counts[key], key)


def _example(replayed: Replayed) -> JsonObject:
    found = {
        "invocation_id": replayed.invocation,
        "time": replayed.time,
        "unsure": replayed.unsure,
    }
    if replayed.condition:
        found["condition"] = replayed.condition
    return found


def replay(
    lines: Iterable[JsonObject], bundle: Bundle, key: bytes, jobs: int = 0
) -> Iterator[Replayed]:
    """Decide records on a policy, in parallel where there are many.

    Args:
        lines: of files of records; those of answers are passed over.
        bundle: the policy.
        key: of the records' words.
        jobs: processes; as many as there are processors where 0.
    """
    decisions = (line for line in lines if line["object"] == OBJECT)
    return spread(decisions, _replayer, (packed(bundle), key), jobs)


def _replayer(bundle: PackedBundle, key: bytes) -> Work[Replayed]:
    return Candidate(bundle.unpacked(), key).replay
