"""The file of decision records, and its key."""

from __future__ import annotations

import base64
import os
import secrets
from contextlib import suppress
from pathlib import Path
from typing import Final

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.evidence.chain import PREVIOUS, chain_key, link
from agenttool_otel.records.base import JsonObject
from agenttool_otel.telemetry.sinks import DEFAULT_QUEUE, JsonlSink, LinesLost, encoded_line
from agenttool_otel.values.canonical import stated_digest_key

_MAX_BYTES: Final = 64 * 2**20
_BACKUPS: Final = 30
_KEY_BYTES: Final = 32


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
        self._key = chain_key(key)
        super().__init__(path, queue=queue, max_bytes=max_bytes, backups=backups, compress=True)

    def _reset(self) -> None:
        super()._reset()
        self._previous = ""  # of this producer; a forked child is another one

    def write(self, lines: list[JsonObject]) -> None:
        """Append the lines; the file is locked."""
        links = [self._previous]
        encoded = []
        for line in lines:
            content = encoded_line({**line, PREVIOUS: links[-1]})
            encoded.append(content)
            links.append(link(content, self._key))
        try:
            self.append(encoded)
        except LinesLost as lost:
            self._previous = links[len(lines) - lost.count]
            raise
        self._previous = links[-1]


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
