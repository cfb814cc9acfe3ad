"""OPA's decision log as decision records, so that what an OPA server decided can be replayed, too."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from opentelemetry.trace import INVALID_SPAN

from agenttool_otel.evidence.opa_log import DECISION_PATH, EVENT_TYPE, EXPORTED_APP
from agenttool_otel.evidence.record import MADE_ON_DEMAND, Made, decision_record
from agenttool_otel.evidence.words import Words
from agenttool_otel.names import Behavior, EngineName, ReasonType
from agenttool_otel.policy.types import PolicyInput, Verdict
from agenttool_otel.records.base import JsonObject

_NEEDED: Final = PolicyInput.__required_keys__ - {"resources"}
_LEFT_OUT: Final = frozenset(
    f"/input/{'/'.join(path)}" for path in (("resources",), *MADE_ON_DEMAND)
)
"""Members that a record may do without."""


@dataclass(slots=True)
class Imported:
    """What was found in a log."""

    decisions: int = 0
    passed_over: Counter[str] = field(default_factory=Counter)  # events, by what they lack


class _Logged:
    """Stands for who decided an event: what is not erased, the rules may have read."""

    def __init__(self, erased: Iterable[str]) -> None:
        self._erased = frozenset(erased)

    def wants(self, path: tuple[str, ...], mode: str, kind: str) -> bool:
        """Return whether a part of the input was logged."""
        return f"/input/{'/'.join(path)}" not in self._erased


def records_of(lines: Iterable[str], words: Words, found: Imported) -> Iterator[JsonObject]:
    """Yield the decisions of a log as records, their words hidden.

    Args:
        lines: what OPA's console prints; lines that are no events are left out.
        words: hides words.
        found: takes what is found.
    """
    for line in lines:
        event = _event(line)
        if event is None:
            continue
        lack = _lack(event)
        if lack:
            found.passed_over[lack] += 1
            continue
        found.decisions += 1
        yield _record(event, words)


def _event(line: str) -> JsonObject | None:
    """Return the event of a line; ``None`` where OPA printed something else there."""
    try:
        event = json.loads(line)
    except ValueError:
        return None
    is_event = isinstance(event, dict) and event.get("type") == EVENT_TYPE
    return event if is_event else None


def _lack(event: JsonObject) -> str:
    """Return why an event can't be decided again; empty where it can."""
    if event.get("path") != DECISION_PATH:
        return "another rule was asked"
    if _object(event.get("labels")).get("app") == EXPORTED_APP:
        return "its words are digests; replay the records that it was exported from"
    document = _object(event.get("input"))
    if not document.keys() >= _NEEDED:
        return "its input is not whole"
    if event.get("masked") or set(event.get("erased") or ()) - _LEFT_OUT:
        return "parts of its input were erased"
    if _object(event.get("result")).get("behavior") not in set(Behavior):
        return "it has no decision"
    return ""


def _object(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _record(event: JsonObject, words: Words) -> JsonObject:
    document = event["input"]
    made = Made(document, document["hooks"], _verdict(event), INVALID_SPAN, None)
    return decision_record(made, _Logged(event.get("erased") or ()), words)


def _verdict(event: JsonObject) -> Verdict:
    result = event["result"]
    reason = _object(result.get("reason"))
    kind = reason.get("type")
    return Verdict(
        Behavior(result["behavior"]),
        reason_type=ReasonType(kind) if kind in set(ReasonType) else ReasonType.RULE,
        rule_ref=str(reason.get("rule_ref", "")),
        rule_refs=tuple(map(str, result.get("rule_refs") or ())),
        engine=EngineName.OPA_SERVER,
        revision=_revision(_object(event.get("bundles"))),
    )


def _revision(bundles: Mapping[str, Any]) -> str:
    revisions = (str(_object(bundle).get("revision", "")) for bundle in bundles.values())
    return ",".join(filter(None, revisions))
