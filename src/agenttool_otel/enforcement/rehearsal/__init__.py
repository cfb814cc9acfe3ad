"""Rehearsals: a command runs on a layer over directories, and what it would change is a list of effects.

The layer is then committed, kept for an answer, or thrown away. It needs Linux with overlay mounts, and the extra
``sandbox``; elsewhere ``Rehearsals.open`` raises ``RehearsalUnavailable`` with the reason.

    rehearsals = Rehearsals(Path("~/.local/state/agenttool/rehearsals").expanduser())
    layer = rehearsals.open([Path("checkout")])
    layer.run(["make", "format"], cwd=Path("checkout"))
    sealed = layer.finish()
    if all(change.path.endswith(".py") for change in sealed.effects.changes):
        sealed.commit(sealed.digest)
    else:
        sealed.discard()
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenttool_otel.values.lazy import lazy_attributes

if TYPE_CHECKING:
    from agenttool_otel.enforcement.rehearsal.diff import layer_diff
    from agenttool_otel.enforcement.rehearsal.failures import (
        CommitConflict,
        CommitRefused,
        LayerBusy,
        RehearsalError,
        RehearsalUnavailable,
        UnknownLayer,
    )
    from agenttool_otel.enforcement.rehearsal.proof import rehearsal_failure
    from agenttool_otel.enforcement.rehearsal.rehearsals import OpenLayer, Rehearsals, SealedLayer
    from agenttool_otel.enforcement.rehearsal.state import default_directory
    from agenttool_otel.enforcement.rehearsal.types import (
        Change,
        Committed,
        Connection,
        Effects,
        Kind,
        Operation,
        RehearsedRun,
        Swept,
        Unfinished,
    )

__all__ = [
    "Change",
    "CommitConflict",
    "CommitRefused",
    "Committed",
    "Connection",
    "Effects",
    "Kind",
    "LayerBusy",
    "OpenLayer",
    "Operation",
    "RehearsalError",
    "RehearsalUnavailable",
    "Rehearsals",
    "RehearsedRun",
    "SealedLayer",
    "Swept",
    "Unfinished",
    "UnknownLayer",
    "default_directory",
    "layer_diff",
    "rehearsal_failure",
]

_FAILURES = (
    "CommitConflict",
    "CommitRefused",
    "LayerBusy",
    "RehearsalError",
    "RehearsalUnavailable",
    "UnknownLayer",
)
_HOMES = (
    dict.fromkeys(__all__, "types")
    | dict.fromkeys(_FAILURES, "failures")
    | dict.fromkeys(("OpenLayer", "Rehearsals", "SealedLayer"), "rehearsals")
    | {
        "default_directory": "state",
        "layer_diff": "diff",
        "rehearsal_failure": "proof",
    }
)

__getattr__ = lazy_attributes(__name__, _HOMES)
