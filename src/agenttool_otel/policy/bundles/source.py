"""BundleSource: the bundle in use, renewed while calls run; a broken new one is reported and never
used.

An engine swaps one immutable compiled bundle for another, so a decision sees the old or the new
one, never half of both. What can't be loaded, verified or compiled leaves the last good bundle
where it is.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final, Protocol

from agenttool_otel.errors import PolicyError, PolicyLoadError
from agenttool_otel.policy.bundles.bundle import Bundle
from agenttool_otel.policy.bundles.bundle_files import directory_stamp
from agenttool_otel.policy.bundles.bundle_signature import BundleVerification
from agenttool_otel.policy.bundles.load import (
    HttpFetch,
    Token,
    bundle_of_archive,
    is_url,
    load_bundle,
)
from agenttool_otel.values.forks import new_lock

_log: Final = logging.getLogger(__name__)


class Swappable(Protocol):
    """An engine that can change its bundle."""

    def swap(self, bundle: Bundle) -> None:
        """Use another bundle from now on, or raise PolicyLoadError and keep the old one."""


@dataclass(frozen=True, slots=True)
class ReloadResult:
    """What became of one look at the source."""

    status: str  # ``activated``, ``unchanged`` or ``failed``
    revision: str  # revision that is in use afterwards
    previous: str  # revision that was in use before
    error: str = ""  # why the new bundle was refused
    at: float = field(default_factory=time.time)  # wall-clock time, in seconds since 1970


class BundleSource:
    """Watches where a bundle comes from.

    Args:
        source: a directory, a file, or the URL of an archive.
        verification: keys, when the bundle must be signed.
        token: bearer token for a URL, or what gives the one of now.
        on_reload: called with what became of each change.
        http_timeout: seconds that one fetch may take.
        tls: TLS settings for a URL.
        load: reads a path; a bundle's files where not given.

    Raises:
        PolicyLoadError: there is no bundle to begin with.
    """

    def __init__(
        self,
        source: str | Path,
        *,
        verification: BundleVerification | None = None,
        token: Token = None,
        on_reload: Callable[[ReloadResult], None] | None = None,
        http_timeout: float = 30.0,
        tls: Any = None,
        load: Callable[[Path], Bundle] | None = None,
    ) -> None:
        self._source = source
        self._load_path = load or partial(load_bundle, verification=verification)
        self._verification = verification
        self._on_reload = on_reload
        self._fetch = (
            HttpFetch(str(source), token=token, timeout=http_timeout, tls=tls)
            if is_url(source)
            else None
        )
        self._stamp: object = None
        self._candidate: object = None
        self._refused: object = None
        self._engines: list[Swappable] = []
        self._lock = new_lock()
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self.last_error = ""  # why the newest bundle is not in use
        if (first := self._load()) is None:
            raise PolicyLoadError(f"{source}: the server gave no bundle")
        self._bundle, self._pending = first
        self._accept()

    @property
    def bundle(self) -> Bundle:
        """The last good bundle."""
        return self._bundle

    def attach(self, engine: Swappable) -> None:
        """Let an engine follow the source."""
        with self._lock:
            self._engines.append(engine)

    def reload(self) -> ReloadResult:
        """Look at the source once, and activate what is new."""
        with self._lock:
            result = self._reload()
        changed = result.status == "activated" or (
            result.status == "failed" and result.error != self.last_error
        )
        self.last_error = result.error
        if changed:
            self._report(result)
        return result

    def _reload(self) -> ReloadResult:
        previous = self._bundle.revision
        swapped: list[Swappable] = []
        try:
            if (loaded := self._load()) is None:
                return ReloadResult(
                    "failed" if self.last_error else "unchanged",
                    previous,
                    previous,
                    self.last_error,
                )
            bundle, self._pending = loaded
            if bundle.digest == self._bundle.digest:
                self._accept()
                return ReloadResult("unchanged", previous, previous)
            for engine in self._engines:
                engine.swap(bundle)
                swapped.append(engine)
        except PolicyError as error:
            for engine in swapped:
                # all engines of one source decide by the same bundle
                engine.swap(self._bundle)
            # the same files would be refused again
            self._refused = self._candidate
            return ReloadResult("failed", previous, previous, str(error))
        self._bundle = bundle
        self._accept()
        return ReloadResult("activated", bundle.revision, previous)

    def _load(self) -> tuple[Bundle, object] | None:
        """Load the bundle if it may have changed, with what marks it as seen."""
        if self._fetch is not None:
            if (fetched := self._fetch.fetch()) is None:
                return None
            bundle = bundle_of_archive(
                fetched[0], origin=str(self._source), verification=self._verification
            )
            return bundle, fetched[1]
        path = Path(self._source)
        stamp = directory_stamp(path) if path.exists() else ()
        if stamp and (stamp == self._stamp or stamp == self._refused):
            return None
        self._candidate = None
        bundle = self._load_path(path)
        self._candidate = stamp
        if path.exists() and directory_stamp(path) != stamp:
            # the directory is being written: what was read may be half of the old and half of the new
            self._candidate = None
            raise PolicyLoadError(f"policy bundle {path} changed while it was read")
        return bundle, stamp

    def _accept(self) -> None:
        if self._fetch is not None:
            self._fetch.etag = self._pending if isinstance(self._pending, str) else None
        else:
            self._stamp, self._refused = self._pending, None

    def _report(self, result: ReloadResult) -> None:
        if result.status == "failed":
            _log.error(
                "policy bundle not activated, %s stays in use: %s", result.revision, result.error
            )
        if self._on_reload is None:
            return
        try:
            self._on_reload(result)
        except Exception:
            _log.exception("the callback for policy reloads failed")

    def watch(self, interval: float = 5.0) -> None:
        """Look at the source again and again in a background thread, until ``close``."""
        if self._thread is not None:
            return
        self._thread = threading.Thread(
            target=self._run, args=(interval,), name="agenttool-policy", daemon=True
        )
        self._thread.start()

    def _run(self, interval: float) -> None:
        while not self._stop.wait(interval):
            try:
                self.reload()
            except Exception:
                # whatever it was: the last good bundle decides, and the next look may succeed
                _log.exception("looking for a new policy bundle failed")

    def close(self) -> None:
        """Stop watching."""
        self._stop.set()
        if self._thread is not None and self._thread is not threading.current_thread():
            self._thread.join(timeout=5.0)
