"""The effects of a rehearsed call: as facts of its second decision, and what becomes of them."""

from __future__ import annotations

import stat
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agenttool_otel.facts.types import EffectCounts, EffectPath, EffectsFact, Facts
from agenttool_otel.names import EffectKind, EffectOperation
from agenttool_otel.readers.types import PathFact, Surroundings
from agenttool_otel.readers.vocabulary import PathAccess, PathClass

if TYPE_CHECKING:
    from agenttool_otel.call.steps import Attempt
    from agenttool_otel.enforcement.rehearsal import Change, Effects, RehearsedRun, SealedLayer

MOST_PATHS: Final = 2_000
"""How many paths are facts; with more, the effects are incomplete."""
_MOST_CONNECTIONS: Final = 200
_WRITABLE: Final = frozenset({None, PathClass.DOTFILE, PathClass.CONTENT})
"""Classes of places that the profile ``write`` lets a command change."""


@dataclass(slots=True, eq=False)
class CallEffects:
    """What a call would change, until that is committed or discarded."""

    layer: SealedLayer  # the sealed layer
    fact: EffectsFact  # its effects as the policy sees them
    attempt: Attempt  # what the body came to
    diff: str = ""  # what a person who is asked is shown, redacted
    settled: bool = False  # whether the layer was committed or thrown away


def effects_fact(
    layer: SealedLayer,
    runs: Iterable[RehearsedRun],
    surroundings: Surroundings,
    argument: str = "",
) -> EffectsFact:
    """Return the effects of a layer as facts.

    Args:
        layer: the sealed layer.
        runs: how the commands on it ended.
        surroundings: the call's roots and protected places.
        argument: the JSON pointer that each path fact repeats.
    """
    effects = layer.effects
    # what matters first is not cut: a cache is only named where there is room
    changes = sorted(effects.changes, key=lambda change: change.noise)
    paths = [_path(change, surroundings, argument) for change in changes[:MOST_PATHS]]
    reasons = list(effects.reasons)
    if len(changes) > MOST_PATHS:
        reasons.append(f"only {MOST_PATHS:,} of {len(changes):,} paths are listed")
    if len(effects.connections) > _MOST_CONNECTIONS:
        reasons.append(f"only {_MOST_CONNECTIONS} attempts to connect are listed")
    return {
        "counts": _counts(effects),
        "paths": paths,
        "connections": [
            {
                "host": attempt.host,
                "port": attempt.port,
                "family": attempt.family,
                "attempts": attempt.attempts,
            }
            for attempt in effects.connections[:_MOST_CONNECTIONS]
        ],
        "changes": [],
        "complete": effects.complete and not reasons,
        "reasons": reasons,
        "commands": [{"exit_code": run.exit_code, "timed_out": run.timed_out} for run in runs],
        "digest": layer.digest,
    }


def protected_changes(layer: SealedLayer, surroundings: Surroundings) -> Iterator[str]:
    """Yield the paths of a layer that the profile ``write`` does not let a command change.

    Args:
        layer: the sealed layer.
        surroundings: the call's roots and protected places.
    """
    from agenttool_otel.readers.paths import path_fact  # most calls have no effects

    for change in layer.effects.changes:
        fact = path_fact(change.path, "", surroundings, access=PathAccess.WRITE.value)
        is_protected = not fact["inside"] or fact["sensitive"] not in _WRITABLE
        if is_protected or _gives_rights(change):
            yield change.path


def _gives_rights(change: Change) -> bool:
    """Return whether a file would run as its owner, or belong to another user."""
    if change.operation is EffectOperation.DELETED:
        return False
    is_set = change.kind is EffectKind.FILE and bool(change.mode & (stat.S_ISUID | stat.S_ISGID))
    return is_set or change.operation is EffectOperation.OWNER


def rehearsed_facts(facts: Facts, effects: EffectsFact) -> Facts:
    """Return the facts of the second decision: what was guessed from words gives way to what was seen.

    Args:
        facts: those of the first decision.
        effects: what the rehearsal has shown.
    """
    return {**facts, "paths": list(_judged(effects["paths"])), "shell": [], "effects": effects}


def effects_shown(effects: EffectsFact) -> dict[str, Any]:
    """Return what a request has of effects beside the diff and the places.

    Args:
        effects: the facts.
    """
    return {
        "counts": effects["counts"],
        "complete": effects["complete"],
        "commands": effects["commands"],
        "digest": effects["digest"],
    }


def _path(change: Change, surroundings: Surroundings, argument: str) -> EffectPath:
    from agenttool_otel.readers.paths import path_fact  # most calls have no effects

    # all that a layer lists is a change, also that of a mode
    fact = path_fact(change.path, argument, surroundings, access=PathAccess.WRITE.value)
    return {
        **fact,
        "operation": change.operation.value,
        "kind": change.kind.value,
        "executable": change.executable,
        "noise": change.noise,
        "below": change.below,
    }


def _judged(paths: Sequence[EffectPath]) -> Iterator[PathFact]:
    """Yield the paths that the rules on paths judge: all but caches in ordinary places."""
    for path in paths:
        if not path["noise"] or path["sensitive"] or not path["inside"]:
            members: dict[str, Any] = {**path}
            own: Any = {name: members[name] for name in PathFact.__annotations__}
            yield own


def _counts(effects: Effects) -> EffectCounts:
    found = Counter(change.operation for change in effects.changes if not change.noise)
    counts: dict[str, Any] = {operation.value: found[operation] for operation in EffectOperation}
    counts["connections"] = sum(attempt.attempts for attempt in effects.connections)
    counts["reported"] = 0
    return counts  # type: ignore[return-value]
