"""What a large result and a large stream have in common: bytes to a store, a preview, a count, and
what is shown.

A store that fails or hangs costs the stored copy; what is written goes on into the preview and the
count.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from agenttool_otel.errors import PersistenceError
from agenttool_otel.names import ContentType, RedactionState
from agenttool_otel.records.base import JsonObject
from agenttool_otel.results.content.preview import PreviewBuilder
from agenttool_otel.results.content.size import text_bytes
from agenttool_otel.results.persistence.upload import StoreTimeout, Upload
from agenttool_otel.results.stores.types import PayloadStore, PersistedRef
from agenttool_otel.values.inspection import error_name

SMALLEST_PREVIEW_CHARS: Final = 100
"""A preview below it would be little more than the line about what it leaves out."""


class PayloadWriter:
    """Takes the pieces of one payload, in order."""

    def __init__(
        self,
        invocation_id: str,
        store: PayloadStore | Callable[[], PayloadStore | None] | None,
        view: PreviewBuilder | None,
        *,
        deadline_s: float,
        owner: dict[str, str] | None,
        ttl_s: float | None,
        redacted: bool,
        holds: bool = False,
    ) -> None:
        self._store = store
        self._deadline_s = deadline_s
        self._options: dict[str, Any] = {
            "name": invocation_id,
            "owner": {"invocation_id": invocation_id, **(owner or {})},
            "ttl_s": ttl_s,
            "redaction_state": (RedactionState.REDACTED if redacted else RedactionState.NONE).value,
        }
        self._upload: Upload | None = None
        self._held: list[bytes] | None = [] if holds else None
        self.view = view
        self.chars = 0
        self.total_bytes = 0
        self.failure: str | None = None  # why there is no stored copy; no content in it

    @property
    def uploading(self) -> bool:
        """Whether the payload is on its way to the store, so that writing may have to wait
        for it.
        """
        return self._upload is not None

    def start(self, media_type: str) -> None:
        """Open the store; what is held goes there first."""
        held, self._held = self._held or (), None
        try:
            store = self._store() if callable(self._store) else self._store
            if store is None:
                raise PersistenceError("no store is configured")
            self._upload = Upload(store, media_type, deadline_s=self._deadline_s, **self._options)
            for data in held:
                self._upload.write(data)
        except Exception as error:
            self.fail(error)

    def write(self, piece: str | bytes) -> None:
        """Take the next piece of text or bytes."""
        if isinstance(piece, str):
            self.chars += len(piece)
            if self.view is not None:
                self.view.add(piece)
            if self._upload is None and self._held is None:
                self.total_bytes += text_bytes(piece)
                return
            piece = piece.encode("utf-8", "backslashreplace")
        self.total_bytes += len(piece)
        if self._held is not None:
            self._held.append(piece)
        if self._upload is not None:
            try:
                self._upload.write(piece)
            except Exception as error:
                self.fail(error)

    def commit(self) -> PersistedRef | None:
        """End the payload, and return the reference to it if it was stored."""
        try:
            return None if self._upload is None else self._upload.commit()
        except Exception as error:
            self.fail(error)
            return None

    def fail(self, error: BaseException) -> None:
        """Do without the store from here on."""
        self.discard()
        if isinstance(error, StoreTimeout):
            self.failure = "deadline"
        else:
            known = isinstance(error, PersistenceError)
            self.failure = str(error) if known else f"internal: {error_name(error)}"

    def discard(self) -> None:
        """Let the store forget what it has; what is held goes, too."""
        if self._upload is not None:
            self._upload.abort()
        self._upload = self._held = None


def stand_in(
    what: str, ref: PersistedRef | None, view: PreviewBuilder | None, max_chars: int
) -> str:
    """Return the text that takes a result's place: what it was, where it is, and a preview.

    Args:
        what: size and kind of the result.
        ref: reference to the stored payload, if it was stored.
        view: makes the preview; ``None`` where nothing of the result may be shown.
        max_chars: most characters of the text. A line that names the result is returned where no
            preview fits behind it, even if the line itself is longer.
    """
    place = "The rest was not kept."
    if ref is not None:
        place = f"Full output saved to {ref.uri}."
    head = f"Output too large ({what}). {place}"
    if view is None:
        return head
    opening = f"{head} Preview:\n"
    room = max_chars - len(opening)
    if room < SMALLEST_PREVIEW_CHARS:
        return head
    return opening + view.build(room).text


def text_block(text: str) -> JsonObject:
    """Return a text as a content block."""
    return {"type": ContentType.TEXT.value, "text": text}


def ref_block(ref: PersistedRef) -> JsonObject:
    """Return the reference to a stored payload as a content block."""
    return {"type": ContentType.PERSISTED_OUTPUT_REF.value, **ref.to_json()}
