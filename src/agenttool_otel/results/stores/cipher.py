"""Encryption at rest: AES-256-GCM in chunks, so that a page of a large payload is read without the
rest.

Layout: a header (magic, key id, random prefix), then chunks of 64 KiB plaintext with their tags. A
chunk's nonce is the prefix, its number and whether it is the last one (the STREAM construction of
Hoang, Reyhanitabar, Rogaway and Vizar, 2015), and the header is authenticated with each chunk:
chunks can't be changed, swapped, dropped or appended unnoticed.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from agenttool_otel.errors import ConfigurationError, PersistenceError

CHUNK_BYTES: Final = 1 << 16
_TAG_BYTES: Final = 16
_MAGIC: Final = b"ATR1"
_PREFIX_BYTES: Final = 7
_ID_BYTES: Final = 8
HEADER_BYTES: Final = len(_MAGIC) + _ID_BYTES + _PREFIX_BYTES
_MAX_CHUNKS: Final = 1 << 32


class Cipher:
    """Encrypts and decrypts payloads."""

    def __init__(self, key: bytes, older_keys: Iterable[bytes] = ()) -> None:
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        self._ciphers: dict[bytes, Any] = {}
        for candidate in (key, *older_keys):
            if len(candidate) != 32:
                raise ConfigurationError("an encryption key must be 32 bytes long")
            self._ciphers.setdefault(_key_id(candidate), AESGCM(candidate))
        self._current = _key_id(key)
        self._name_key = hmac.digest(key, b"agenttool object names", "sha256")

    def object_name(self, digest: str) -> str:
        """Return the name of a payload in the store: a keyed hash, because a plain one shows which
        contents are equal.
        """
        return hmac.digest(self._name_key, digest.encode(), "sha256").hex()

    def encrypt(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        """Yield the header and the encrypted chunks."""
        prefix = os.urandom(_PREFIX_BYTES)
        header = _MAGIC + self._current + prefix
        cipher = self._ciphers[self._current]
        yield header
        number = 0
        held = bytearray()
        for chunk in chunks:
            view = memoryview(chunk)
            for start in range(0, view.nbytes, CHUNK_BYTES):
                held += view[start : start + CHUNK_BYTES]
                # A full chunk waits until it is known not to be the last.
                while len(held) > CHUNK_BYTES:
                    yield cipher.encrypt(
                        _nonce(prefix, number, last=False), bytes(held[:CHUNK_BYTES]), header
                    )
                    del held[:CHUNK_BYTES]
                    number += 1
        yield cipher.encrypt(_nonce(prefix, number, last=True), bytes(held), header)

    def decrypt_range(
        self, read: Callable[[int, int], bytes], plain_size: int, start: int, length: int
    ) -> bytes:
        """Return a range of the plaintext."""
        from cryptography.exceptions import InvalidTag

        end = min(start + length, plain_size)
        if start >= end:
            return b""
        header = read(0, HEADER_BYTES)
        if len(header) != HEADER_BYTES or not header.startswith(_MAGIC):
            raise PersistenceError("the stored payload is not in the expected form")
        if (cipher := self._ciphers.get(header[len(_MAGIC) : len(_MAGIC) + _ID_BYTES])) is None:
            raise PersistenceError("the payload was encrypted with a key that is not configured")
        prefix = header[-_PREFIX_BYTES:]
        last_chunk = max(0, -(-plain_size // CHUNK_BYTES) - 1)
        first, final = start // CHUNK_BYTES, (end - 1) // CHUNK_BYTES
        out = bytearray()
        for number in range(first, final + 1):
            block = read(
                HEADER_BYTES + number * (CHUNK_BYTES + _TAG_BYTES), CHUNK_BYTES + _TAG_BYTES
            )
            try:
                out += cipher.decrypt(
                    _nonce(prefix, number, last=number == last_chunk), block, header
                )
            except InvalidTag as error:
                raise PersistenceError("the stored payload was changed") from error
        skip = start - first * CHUNK_BYTES
        return bytes(out[skip : skip + end - start])


def _key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"agenttool key id" + key).digest()[:_ID_BYTES]


def _nonce(prefix: bytes, number: int, *, last: bool) -> bytes:
    if number >= _MAX_CHUNKS:
        raise PersistenceError("the payload is too large to encrypt")
    return prefix + number.to_bytes(4, "big") + (b"\x01" if last else b"\x00")
