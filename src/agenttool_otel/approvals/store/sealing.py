"""Sealing of what the store keeps: AES-256-GCM, bound to the row that holds it (docs/approvals.md,
"What is readable").

A database file travels: backups, support bundles, a shared server. Arguments, answers and grants
are therefore stored as ciphertext whose additional data names row and purpose, so that nobody can
read a secret, swap two rows, or turn a ``pending`` into an ``approved`` by editing a column.
"""

from __future__ import annotations

import base64
import binascii
import contextlib
import hashlib
import hmac
import json
import os
import secrets
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Final

from agenttool_otel.errors import ApprovalStoreError, ConfigurationError

KEY_BYTES: Final = 32
MAC_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_FORMAT: Final = b"\x01"


def generate_key() -> str:
    """Return a new key in the text form that ``AGENTTOOL_APPROVALS_KEY`` takes (URL-safe base64, 32
    bytes).
    """
    return base64.urlsafe_b64encode(secrets.token_bytes(KEY_BYTES)).decode("ascii")


def parse_key(key: str | bytes) -> bytes:
    """Return the 32 key bytes."""
    if isinstance(key, bytes) and len(key) == KEY_BYTES:
        return key
    text = key.decode("ascii", "replace") if isinstance(key, bytes) else key
    text = text.strip()
    if len(text) == 2 * KEY_BYTES:
        with contextlib.suppress(ValueError):
            return bytes.fromhex(text)
    # URL-safe letters and missing padding are taken, too
    standard = text.replace("-", "+").replace("_", "/")
    padding = "=" * (-len(text) % 4)
    try:
        raw = base64.b64decode(standard + padding, validate=True)
    except (binascii.Error, ValueError):
        raw = b""
    if len(raw) != KEY_BYTES:
        raise ConfigurationError("the approvals key must be 32 bytes, in base64 or hexadecimal")
    return raw


def load_or_create_key_file(path: Path, key_id: str) -> bytes:
    """Return the key beside a SQLite store that the key of that id sealed, making one for a
    new store.
    """
    if not key_id and not path.exists():
        temporary = _write_key(path, generate_key())
        try:
            os.link(temporary, path)  # atomic, and leaves another process's key alone
        except FileExistsError:
            pass
        except OSError:  # a file system without hard links
            if not path.exists():
                os.replace(temporary, path)
        finally:
            temporary.unlink(missing_ok=True)
    successor = _successor(path)
    if successor.exists() and Sealer(_read_key(successor)).key_id == key_id:
        os.replace(successor, path)  # the process that changed the key did not come to that
    return _read_key(path)


@contextlib.contextmanager
def replacing_key_file(path: Path, key: str) -> Iterator[None]:
    """Replace the key file once the block has put the key to use; the new one is on disk
    before that.
    """
    os.replace(_write_key(path, key), _successor(path))
    yield
    os.replace(_successor(path), path)


def _successor(path: Path) -> Path:
    return path.with_name(f"{path.name}.next")


def _write_key(path: Path, key: str) -> Path:
    temporary = path.with_name(f"{path.name}.{os.getpid()}.{secrets.token_hex(4)}")
    with os.fdopen(
        os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii"
    ) as file:
        file.write(key + "\n")
        file.flush()
        os.fsync(file.fileno())
    return temporary


def _read_key(path: Path) -> bytes:
    try:
        status = path.stat()
        text = path.read_text("ascii")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"the approvals key file {path.name} can't be read ({type(error).__name__}); "
            "without it the stored approvals can't be opened"
        ) from None
    if os.name == "posix" and stat.S_IMODE(status.st_mode) & 0o077:
        raise ConfigurationError(
            f"the approvals key file {path.name} is open to others; run: chmod 600"
        )
    return parse_key(text)


class Sealer:
    """Seals and opens JSON values under one key."""

    def __init__(self, key: bytes) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._cipher = AESGCM(key)
        self._mac_key = hmac.new(key, b"agenttool/approvals/evidence/v1", hashlib.sha256).digest()
        key_mac = hmac.new(key, b"agenttool/approvals/key-id/v1", hashlib.sha256)
        self.key_id = key_mac.hexdigest()[:16]

    def seal(self, value: Any, *, purpose: str, row: str) -> bytes:
        """Return the ciphertext of a JSON value."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        plain = json.dumps(value, allow_nan=False, separators=(",", ":")).encode("ascii")
        return _FORMAT + nonce + self._cipher.encrypt(nonce, plain, _associated(purpose, row))

    def open(self, data: bytes, *, purpose: str, row: str) -> Any:
        """Return the JSON value of a ciphertext."""
        from cryptography.exceptions import InvalidTag

        data = bytes(data)
        if data[:1] != _FORMAT or len(data) < 1 + _NONCE_BYTES + 16:
            raise ApprovalStoreError(f"the stored {purpose} is not in a known format")
        nonce = data[1 : 1 + _NONCE_BYTES]
        body = data[1 + _NONCE_BYTES :]
        try:
            return json.loads(self._cipher.decrypt(nonce, body, _associated(purpose, row)))
        except (InvalidTag, ValueError, RecursionError):
            raise ApprovalStoreError(
                f"the stored {purpose} was changed or sealed under another key"
            ) from None

    def mac(self, purpose: str, values: Sequence[Any]) -> bytes:
        """Return the MAC of plain values; bytes stand for their SHA-256."""
        text = _plain([purpose, *values])
        return hmac.digest(self._mac_key, text.encode("ascii"), "sha256")

    @staticmethod
    def equal(mac: Any, other: Any) -> bool:
        """Compare two MACs in constant time; a changed database may hold values of other types."""
        return type(mac) is type(other) and hmac.compare_digest(mac, other)


def _sha256(value: Any) -> str:
    if not isinstance(value, (bytes, memoryview)):
        raise TypeError("no plain value")
    return hashlib.sha256(value).hexdigest()


_plain = json.JSONEncoder(default=_sha256, allow_nan=False, separators=(",", ":")).encode


def _associated(purpose: str, row: str) -> bytes:
    return json.dumps(["agenttool/approvals/v1", purpose, row]).encode("utf-8")
