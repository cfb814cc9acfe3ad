"""The tool that pages through a persisted result: governed like any other, and exempt from
persistence itself.

Its pages are bounded, so that its output never becomes a payload that it would have to read again
(standard, "Circular result guard"). A reference is no permission: who may read is checked against
the payload's owner on every page.
"""

from __future__ import annotations

import base64
import codecs
from collections.abc import Callable
from typing import Final

from agenttool_otel.records.base import JsonObject
from agenttool_otel.results.persistence.upload import call_with_deadline
from agenttool_otel.results.stores.types import (
    PayloadExpired,
    PayloadNotFound,
    PayloadStore,
    PersistedRef,
)

DEFAULT_PAGE: Final = 8_192
MAX_PAGE: Final = 32_768
_SPARE: Final = 3  # bytes that a UTF-8 character may reach past a page
_TEXTUAL: Final = frozenset(
    {"application/json", "application/x-ndjson", "image/svg+xml", "application/xml"}
)
_OWNED_BY: Final = ("tenant", "session_id")

Identity = Callable[[], dict[str, str]]
"""Returns who asks: ``tenant`` and ``session_id`` of the current context, where known."""


def make_read_result(
    store: PayloadStore | Callable[[], PayloadStore],
    identity: Identity,
    *,
    max_page: int = MAX_PAGE,
    deadline_s: float = 10.0,
) -> Callable[..., JsonObject]:
    """Make the function that is governed and given to agents as ``read_result``."""

    def read_result(reference: str, offset: int = 0, limit: int = DEFAULT_PAGE) -> JsonObject:
        """Read one page of a result that was too large to show."""
        return read_page(
            store() if not isinstance(store, PayloadStore) else store,
            reference,
            offset,
            min(limit, max_page),
            identity=identity(),
            deadline_s=deadline_s,
        )

    return read_result


def read_page(
    store: PayloadStore,
    uri: str,
    offset: int = 0,
    limit: int = DEFAULT_PAGE,
    *,
    identity: dict[str, str],
    deadline_s: float = 10.0,
) -> JsonObject:
    """Return one page of a persisted result.

    The page of a text begins and ends between characters, and at a line's end where there is one in
    its last quarter. A payload that is gone or never was is an answer, not an error: ``status``
    is ``expired`` or ``not_found``. Another tenant's payload is ``not_found`` too, so that the
    answer does not reveal that it exists.
    """
    if (
        not isinstance(uri, str)
        or isinstance(offset, bool)
        or not isinstance(offset, int)
        or offset < 0
    ):
        raise ValueError("uri must be text and offset a whole number from 0")
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise ValueError("limit must be a whole number from 1")
    size = min(limit, MAX_PAGE)

    def fetch() -> JsonObject:
        try:
            ref = store.resolve(uri)
        except PayloadNotFound:
            return {"status": "not_found", "uri": uri}
        if not _may_read(ref, identity):
            return {"status": "not_found", "uri": uri}
        try:
            data = store.read(uri, offset, size + _SPARE)
        except PayloadExpired:
            return {"status": "expired", **_facts(ref)}
        except PayloadNotFound:
            return {"status": "not_found", "uri": uri}
        return _page(ref, data, offset, size)

    return call_with_deadline(fetch, deadline_s)


def _may_read(ref: PersistedRef, identity: dict[str, str]) -> bool:
    # A payload without an owner has nobody who could be kept out; one with an owner is for that
    # owner alone.
    return all(identity.get(name) == ref.owner[name] for name in _OWNED_BY if name in ref.owner)


def _facts(ref: PersistedRef) -> JsonObject:
    known = ref.to_json()
    facts = {name: known.get(name) for name in ("uri", "media_type", "digest", "expires_at")}
    return {**facts, "total_bytes": ref.size_bytes}


def _page(ref: PersistedRef, data: bytes, offset: int, size: int) -> JsonObject:
    page: JsonObject = {"status": "ok", **_facts(ref), "offset": offset}
    base = ref.media_type.partition(";")[0]
    if base.startswith("text/") or base in _TEXTUAL:
        skipped, text, used = _text_page(data, size, at_end=offset + len(data) >= ref.size_bytes)
        page["offset"] = offset + skipped
        page["text"] = text
    else:
        used = min(len(data), size)
        page["data"] = base64.b64encode(data[:used]).decode("ascii")
    following = offset + used
    page["next_offset"] = following if used and following < ref.size_bytes else None
    return page


def _text_page(data: bytes, size: int, *, at_end: bool) -> tuple[int, str, int]:
    """Return how many bytes were skipped, the text, and how many bytes it and they take."""
    skipped = 0
    while skipped < min(_SPARE, len(data)) and data[skipped] & 0xC0 == 0x80:
        skipped += 1  # the middle of a character: a model may ask for any offset
    # A page holds at least one character, however small the limit.
    end = max(min(len(data), size), skipped + 1)
    if end < len(data) or not at_end:
        while end < len(data) and data[end] & 0xC0 == 0x80:
            end += 1
        line = data.rfind(b"\n", skipped + (end - skipped) * 3 // 4, end)
        if line >= 0 and size >= 256:
            end = line + 1
    decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")
    return skipped, decoder.decode(data[skipped:end], True), end
