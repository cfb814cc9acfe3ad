"""What can go wrong with a rehearsal, as types."""

from __future__ import annotations

from collections.abc import Sequence


class RehearsalError(Exception):
    """Base of every exception of a rehearsal."""


class RehearsalUnavailable(RehearsalError):
    """This host, or this directory, can't have a rehearsal; nothing ran.

    Attributes:
        reason: why, in a sentence without a full stop.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class UnknownLayer(RehearsalError, LookupError):
    """No sealed layer has this id: it was committed, discarded, has expired, or never was."""


class LayerBusy(RehearsalError):
    """Another process commits or discards this layer just now."""


class CommitRefused(RehearsalError):
    """The layer can't be committed as asked: another digest, incomplete effects, or another content
    than was sealed. Nothing was changed.
    """


class CommitConflict(CommitRefused):
    """What the layer was rehearsed on has changed meanwhile. Nothing was changed.

    Attributes:
        paths: the places that are others by now.
    """

    def __init__(self, paths: Sequence[str]) -> None:
        shown = ", ".join(paths[:3])
        if len(paths) > 3:
            shown = f"{shown} and {len(paths) - 3} more"
        super().__init__(f"changed since the rehearsal: {shown}")
        self.paths = tuple(paths)
