"""An extension made of records, tried on them before anybody is shown it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from agenttool_otel.evidence.answers import Agreed, Answers
from agenttool_otel.evidence.extension import RULE_PREFIX, extension_files
from agenttool_otel.evidence.suggest import Learnt, Unlearnt, learn
from agenttool_otel.evidence.words import unmarked
from agenttool_otel.names import Behavior
from agenttool_otel.policy.bundles.bundle import Bundle, bundle_from_files
from agenttool_otel.policy.bundles.overlay import overlay
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.records.base import JsonObject

_NO_STEP: Final = 1_000_000_000  # so many different values are never seen


class Suggestion(NamedTuple):
    """An extension, and what it was made of."""

    files: dict[str, str]  # by their paths in the extension's folder; none where nothing was learnt
    learnt: list[Learnt]
    unlearnt: list[Unlearnt]
    refused: int  # different calls that were denied or rejected; it allows none of them


def suggest(
    lines: Iterable[JsonObject], base: Bundle, key: bytes, words: Iterable[str] = (), least: int = 2
) -> Suggestion:
    """Return an extension that answers the questions which people answered with yes.

    Args:
        lines: of files of records.
        base: the policy that it extends.
        key: of the records' words.
        words: texts whose words may stand in it in clear, beside those of the policy and of the
            vocabulary.
        least: how many different values have to be seen before a step is taken.
    """
    answers = Answers(base, key, words)
    answers.read(lines)
    refused = answers.refused()
    learnt, unlearnt = learn(answers.agreed(), least)
    trial = _Trial(base, refused)
    learnt, aside = trial.without_refused(learnt)
    unlearnt += aside
    files = extension_files(learnt, unlearnt, refused) if learnt else {}
    return Suggestion(files, learnt, unlearnt, len(refused))


class _Tried(NamedTuple):
    """What became of rules that were tried."""

    fine: list[Learnt]
    wide: list[Learnt]  # those by which a refused call would run
    unlearnt: list[Unlearnt]  # calls that would still be asked about


class _Trial:
    """Tries rules on the calls that they were made of, and on those that were refused."""

    def __init__(self, base: Bundle, refused: list[Any]) -> None:
        self._base = base
        self._refused = refused

    def without_refused(self, learnt: list[Learnt]) -> tuple[list[Learnt], list[Unlearnt]]:
        """Return rules without the steps, and then without the rules, by which a refused call would
        run; and what is no longer learnt.
        """
        first = self._tried(learnt)
        again = list(first.fine)
        unlearnt = list(first.unlearnt)
        for rule in first.wide:
            exact, aside = learn(rule.calls, _NO_STEP)
            for each in exact:
                each.name = rule.name
            again += exact
            unlearnt += aside
        second = self._tried(again)
        unlearnt += second.unlearnt
        reason = "equal calls were denied or rejected"
        unlearnt += [Unlearnt(rule.tool, reason, len(rule.calls), []) for rule in second.wide]
        return second.fine, unlearnt

    def _tried(self, learnt: list[Learnt]) -> _Tried:
        if not learnt:
            return _Tried([], [], [])
        decider = self._decider(learnt)
        widening = self._widening(decider)
        tried = _Tried([], [], [])
        for rule in learnt:
            asked = _still_asked(rule, decider)
            if asked:
                reason = "its facts are not certain, or sensitive"
                tried.unlearnt.append(Unlearnt(rule.tool, reason, asked, []))
            if not rule.calls:
                continue
            is_wide = RULE_PREFIX + rule.name in widening
            (tried.wide if is_wide else tried.fine).append(rule)
        return tried

    def _decider(self, learnt: list[Learnt]) -> Decider:
        """Return what decides on the policy with these rules."""
        files = extension_files(learnt, (), ())
        content = {path: text.encode() for path, text in files.items()}
        extension = bundle_from_files(content, origin="the suggestion")
        whole = overlay(self._base, extension=extension)
        return Decider((EmbeddedEngine(whole),), timeout=10.0)

    def _widening(self, decider: Decider) -> set[str]:
        """Return the rules by which a refused call would run."""
        found: set[str] = set()
        for document in self._refused:
            verdict = decider.decide(unmarked(document))
            if verdict.behavior is Behavior.ALLOW:
                found.update(verdict.rule_refs)
        return found


def _still_asked(rule: Learnt, decider: Decider) -> int:
    """Take the calls out of a rule that it would still ask about, and return how many."""
    before = len(rule.calls)
    rule.calls = [call for call in rule.calls if _is_allowed(call, decider)]
    return before - len(rule.calls)


def _is_allowed(call: Agreed, decider: Decider) -> bool:
    return decider.decide(unmarked(call.document)).behavior is Behavior.ALLOW
