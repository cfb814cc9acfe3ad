"""The file of decision records, and its key."""

from __future__ import annotations

import base64
import os
import secrets
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.evidence.accounts import Account, GoneAccount, gone_accounts, open_account
from agenttool_otel.evidence.chain import PREVIOUS, chain_key, link
from agenttool_otel.names import LOSS_RECORD
from agenttool_otel.records.base import JsonObject
from agenttool_otel.telemetry.sinks import (
    DEFAULT_QUEUE,
    EXIT_LIMIT_S,
    WRITTEN,
    Build,
    JsonlSink,
    LinesLost,
    encoded_line,
    rfc3339,
)
from agenttool_otel.values.canonical import stated_digest_key

_MAX_BYTES: Final = 64 * 2**20
_BACKUPS: Final = 30
_KEY_BYTES: Final = 32
_LOOK_S: Final = 60.0  # between looks for processes that were killed


class DecisionFile(JsonlSink):
    """Appends decision records to a file, each line with a digest of the one before it.

    Args:
        path: the file; its directory has to be there.
        key: of the words and of the chain.
        queue: most records that wait.
        max_bytes: size at which the file becomes ``<path>.1.xz`` and a new one begins.
        backups: how many of the older files are kept.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        key: bytes,
        *,
        queue: int = DEFAULT_QUEUE,
        max_bytes: int | None = _MAX_BYTES,
        backups: int = _BACKUPS,
    ) -> None:
        self._path = Path(path)
        self._key = chain_key(key)
        self._account: Account | None = None
        self._has_no_accounts = False  # the file system lets none be kept
        super().__init__(path, queue=queue, max_bytes=max_bytes, backups=backups, compress=True)

    def _reset(self) -> None:
        super()._reset()
        # of this producer; a forked child is another one, and the account is its parent's
        self._previous = ""
        if self._account is not None:
            self._account.close()
        self._account = None
        self._looks_at = 0.0

    def put(self, build: Build) -> None:
        """Take what makes a record, and note in the account that it was given; never raises."""
        with self._lock:
            super().put(build)
            if self._account is not None:
                self._account.note(self._numbers)

    def _queued(self, build: Build) -> bool:
        if self._account is None and not self._has_no_accounts:
            self._open_account()
        return super()._queued(build)

    def _open_account(self) -> None:
        self._account = open_account(self._path, self._producer, self._numbers)
        self._has_no_accounts = self._account is None

    def close(self, timeout_s: float = EXIT_LIMIT_S) -> None:
        """Write what waits, within a limit, and end; what comes later is lost, and counted."""
        super().close(timeout_s)
        with self._lock:
            if self._account is not None and self._account.settle(self._numbers):
                self._account = None

    def write(self, lines: list[JsonObject]) -> None:
        """Append the lines, behind what killed processes lost; the file is locked."""
        if time.monotonic() < self._looks_at:
            self._append(lines)
            return
        with gone_accounts(self._path) as gone:
            try:
                self._append([*map(self._loss, gone), *lines])
            except LinesLost as lost:
                # the lines of losses are none: they come again
                raise LinesLost(min(lost.count, len(lines)), lost.cause) from lost
        self._looks_at = time.monotonic() + _LOOK_S

    def _loss(self, account: GoneAccount) -> JsonObject:
        """Return the line of a loss. It is no record of this producer, and has no number of its
        own: that of the record before it is repeated.
        """
        return {
            "producer": self._producer,
            "sequence": self._numbers[WRITTEN],
            "time": rfc3339(time.time_ns()),
            "object": LOSS_RECORD,
            "record": account.record(),
        }

    def _append(self, lines: list[JsonObject]) -> None:
        links = [self._previous]
        encoded = []
        for line in lines:
            content = encoded_line({**line, PREVIOUS: links[-1]})
            encoded.append(content)
            links.append(link(content, self._key))
        try:
            self.append(encoded)
        except LinesLost as lost:
            self._note_written(lines, links, len(lines) - lost.count)
            raise
        self._note_written(lines, links, len(lines))

    def _note_written(self, lines: list[JsonObject], links: list[str], count: int) -> None:
        if not count:
            return
        self._previous = links[count]
        with self._lock:  # an older number must not be noted behind a newer one
            self._numbers[WRITTEN] = lines[count - 1]["sequence"]
            if self._account is not None:
                self._account.note(self._numbers)


def key_of(path: Path, *, make: bool = False) -> bytes:
    """Return the key of a file's records: ``AGENTTOOL_DIGEST_KEY``, or the one beside the file.

    Args:
        path: the file.
        make: make the one beside it where there is none.

    Raises:
        ConfigurationError: there is no key, or it can't be read.
    """
    stated = stated_digest_key()
    if stated:
        return stated
    beside = Path(f"{path}.key")
    try:
        if make and not beside.exists():
            _make_key(beside)
        key = base64.b64decode(beside.read_bytes(), validate=False)
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"the key {beside} can't be read: {type(error).__name__}"
        ) from None
    if len(key) != _KEY_BYTES:
        raise ConfigurationError(f"{beside} is no key of decision records")
    return key


def _make_key(path: Path) -> None:
    """Make a key for its owner alone; that of a process that was faster stays."""
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL
    with os.fdopen(os.open(temporary, flags, 0o600), "wb") as file:
        file.write(base64.b64encode(secrets.token_bytes(_KEY_BYTES)) + b"\n")
    try:
        with suppress(FileExistsError):
            os.link(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)
