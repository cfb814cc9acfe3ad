"""The rehearsal of one call's body: a layer for each attempt, and the effects of the last one."""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenttool_otel.call.services import LayerPlace
from agenttool_otel.enforcement.own import masked_by
from agenttool_otel.enforcement.rehearsal import RehearsalError, Rehearsals, default_directory
from agenttool_otel.enforcement.rehearsing import Rehearsal, current_rehearsal
from agenttool_otel.enforcement.thread import confined
from agenttool_otel.errors import ResultInvalid, SandboxUnavailable
from agenttool_otel.names import SandboxProfile
from agenttool_otel.values.forks import new_lock

if TYPE_CHECKING:
    from agenttool_otel.enforcement.rehearsal import RehearsedRun, SealedLayer


def directory_of(place: LayerPlace) -> Path:
    """Return the state directory of layers.

    Args:
        place: what the settings have.
    """
    return Path(place.directory) if place.directory else default_directory()


@lru_cache(maxsize=16)
def rehearsals_at(place: LayerPlace, pid: int) -> Rehearsals:
    """Return the layers of a place; what earlier processes left there is finished or removed first.

    Args:
        place: what the settings have.
        pid: this process: a forked child looks anew.

    Raises:
        RehearsalUnavailable: the directory can't be used.
    """
    rehearsals = Rehearsals(directory_of(place), keep_seconds=place.keep_seconds)
    rehearsals.sweep()
    return rehearsals


def layer_failure(place: LayerPlace, roots: tuple[Path, ...]) -> str:
    """Return why there can't be a layer over roots; empty where there can.

    Args:
        place: what the settings have.
        roots: what it would be over.
    """
    try:
        rehearsals_at(place, os.getpid()).check(roots)
    except (RehearsalError, OSError) as error:
        return str(error) or type(error).__name__
    return ""


def body_elsewhere(
    place: LayerPlace,
    roots: tuple[Path, ...],
    layer_id: str,
    digest: str,
    run: RehearsedRun,
) -> RehearsedBody:
    """Return the rehearsal of a body that another process of this user has run.

    Args:
        place: what the settings have.
        roots: what the layer may be over: the roots of the decision.
        layer_id: the layer that the process has sealed.
        digest: the layer's digest, as the process knows it.
        run: how its command ended.

    Raises:
        ResultInvalid: there is no such layer, or it is over other directories.
    """
    try:
        sealed = rehearsals_at(place, os.getpid()).kept(layer_id)
    except (RehearsalError, OSError) as error:
        raise ResultInvalid(f"the layer can't be read: {error}") from None
    if sealed.digest != digest:
        raise ResultInvalid("another digest than that of the sealed layer")
    decided = {os.path.realpath(root) for root in roots}
    if not decided.issuperset(sealed.manifest.roots):
        raise ResultInvalid("the layer is over other directories than those of the decision")
    body = RehearsedBody(place, roots)
    body.sealed, body.runs = sealed, [run]
    return body


def result_beside(place: LayerPlace, layer_id: str) -> Any:
    """Return the result that is kept beside a sealed layer; ``None`` where there is none.

    Args:
        place: what the settings have.
        layer_id: the layer.
    """
    from agenttool_otel.call.kept_result import result_value

    try:
        kept = rehearsals_at(place, os.getpid()).kept(layer_id).what_was_kept() or {}
        return result_value(kept.get("result"))
    except (RehearsalError, OSError, ValueError):
        return None


class RehearsedBody:
    """The layers of one call's attempts.

    Args:
        place: where layers are.
        roots: what they are over.
        profile: the profile that their commands run under.

    Attributes:
        current: the layer of the attempt that runs.
        sealed: the layer of the last attempt, if its body returned.
        runs: how the commands on it ended.
    """

    def __init__(
        self,
        place: LayerPlace,
        roots: tuple[Path, ...],
        profile: str = SandboxProfile.REHEARSE.value,
    ) -> None:
        self.current: Rehearsal | None = None
        self.sealed: SealedLayer | None = None
        self.runs: list[RehearsedRun] = []
        self._place = place
        self._roots = roots
        self._profile = profile
        self._over = False
        self._lock = new_lock()

    def check_free(self) -> None:
        """Refuse a body that is started by a body that is held: its effects would not be decided.

        Raises:
            SandboxUnavailable: it is.
        """
        if confined() is not None or current_rehearsal() is not None:
            raise self._unavailable("the call was made inside of another sandbox")

    def open(self) -> None:
        """Open the layer of an attempt.

        Raises:
            SandboxUnavailable: it can't be had.
        """
        try:
            rehearsals = rehearsals_at(self._place, os.getpid())
            layer = rehearsals.open(self._roots, masked=sorted(masked_by(self._profile)))
            rehearsal = Rehearsal(layer, self._profile)
        except (RehearsalError, OSError, RuntimeError) as error:
            raise self._unavailable(str(error)) from error
        with self._lock:
            self.current = rehearsal
            over = self._over
        if over:
            self.discard()
            raise self._unavailable("the call has ended")

    def seal(self) -> None:
        """Find the effects of an attempt whose body returned.

        Raises:
            SandboxUnavailable: they can't be found, and are thrown away.
        """
        rehearsal = self.current
        try:
            if rehearsal is None:
                raise RehearsalError("there is no layer")
            if rehearsal.failure is not None:
                raise RehearsalError(f"a command did not run: {rehearsal.failure}")
            sealed = rehearsal.seal()
        except BaseException as error:
            self.discard()
            if isinstance(error, Exception):
                raise self._unavailable(f"the effects can't be found: {error}") from error
            raise
        with self._lock:
            self.current, self.runs = None, list(rehearsal.runs)
            if not self._over:
                self.sealed = sealed
                return
        # the call's time was over before, and it has ended without these effects
        sealed.discard()

    def discard(self) -> None:
        """Throw away the layer of an attempt whose body raised."""
        with self._lock:
            rehearsal, self.current = self.current, None
        if rehearsal is not None:
            rehearsal.discard()

    def end(self) -> None:
        """Throw away what there is: the call has ended without its effects."""
        with self._lock:
            self._over = True
            sealed, self.sealed = self.sealed, None
        if sealed is not None:
            sealed.discard()
        self.discard()

    def _unavailable(self, reason: str) -> SandboxUnavailable:
        return SandboxUnavailable(reason, profile=self._profile)
