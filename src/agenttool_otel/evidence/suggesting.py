"""An extension made of records, tried on them before anybody is shown it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from agenttool_otel.evidence.extension import RULE_PREFIX, extension_files
from agenttool_otel.evidence.suggest import Agreed, Answers, Learnt, Unlearnt, learn
from agenttool_otel.evidence.words import unmarked
from agenttool_otel.names import Behavior
from agenttool_otel.policy.bundles.bundle import Bundle, bundle_from_files
from agenttool_otel.policy.bundles.overlay import overlay
from agenttool_otel.policy.decider import Decider
from agenttool_otel.policy.engines.embedded import EmbeddedEngine
from agenttool_otel.policy.types import Verdict
from agenttool_otel.records.base import JsonObject

_NO_STEP: Final = 1_000_000_000  # so many different values are never seen


class Suggestion(NamedTuple):
    """An extension, and what it was made of."""

    files: dict[str, str]  # by their paths in the extension's folder; none where nothing was learnt
    learnt: list[Learnt]
    unlearnt: list[Unlearnt]
    refused: int  # different calls that were denied or rejected; it allows none of them


class _Tried(NamedTuple):
    """What a suggestion does to the records that it was made of."""

    widened: set[str]  # rules of it by which a refused call would run
    uncovered: list[Agreed]  # calls that would still be asked about


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
    learnt, unlearnt = _without_refused(base, learnt, unlearnt, refused)
    files = extension_files(learnt, unlearnt, refused) if learnt else {}
    return Suggestion(files, learnt, unlearnt, len(refused))


def _without_refused(
    base: Bundle, learnt: list[Learnt], unlearnt: list[Unlearnt], refused: list[Any]
) -> tuple[list[Learnt], list[Unlearnt]]:
    """Take back each step, and then each rule, by which a refused call would run."""
    fine, wide = _parted(base, learnt, unlearnt, refused)
    exact: list[Learnt] = []
    for one in wide:
        found, hidden = learn(one.calls, _NO_STEP)
        for each in found:
            each.name = one.name
        exact += found
        unlearnt += hidden
    fine, wide = _parted(base, [*fine, *exact], unlearnt, refused)
    reason = "equal calls were denied or rejected"
    unlearnt += [Unlearnt(one.tool, reason, len(one.calls), []) for one in wide]
    return fine, unlearnt


def _parted(
    base: Bundle, learnt: list[Learnt], unlearnt: list[Unlearnt], refused: list[Any]
) -> tuple[list[Learnt], list[Learnt]]:
    """Return what permits no refused call, and what does."""
    if not learnt:
        return [], []
    tried = _tried(base, learnt, refused)
    unlearnt += _still_asked(tried.uncovered)
    for one in learnt:
        one.calls = [call for call in one.calls if not _is_among(call, tried.uncovered)]
    left = [one for one in learnt if one.calls]
    wide = [one for one in left if RULE_PREFIX + one.name in tried.widened]
    return [one for one in left if one not in wide], wide


def _is_among(call: Agreed, calls: list[Agreed]) -> bool:
    return any(call is each for each in calls)


def _still_asked(calls: list[Agreed]) -> list[Unlearnt]:
    tools = [call.tool for call in calls]
    reason = "its facts are not certain, or sensitive"
    return [Unlearnt(tool, reason, tools.count(tool), []) for tool in sorted(set(tools))]


def _tried(base: Bundle, learnt: list[Learnt], refused: list[Any]) -> _Tried:
    files = {path: text.encode() for path, text in extension_files(learnt, (), ()).items()}
    extension = bundle_from_files(files, origin="the suggestion")
    decider = Decider((EmbeddedEngine(overlay(base, extension=extension)),), timeout=10.0)
    widened: set[str] = set()
    for document in refused:
        verdict = decider.decide(unmarked(document))
        if verdict.behavior is Behavior.ALLOW:
            widened.update(_own_rules(verdict))
    uncovered = [
        call
        for one in learnt
        for call in one.calls
        if decider.decide(unmarked(call.document)).behavior is not Behavior.ALLOW
    ]
    return _Tried(widened, uncovered)


def _own_rules(verdict: Verdict) -> list[str]:
    return [rule for rule in verdict.rule_refs if rule.startswith(RULE_PREFIX)]
