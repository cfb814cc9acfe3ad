"""What a stream gave, bounded: its items in order, the head and the tail, the whole in a store if
it grows.

The collector sees each item once, on its way to the consumer, and never changes or delays it: a
store that fails or hangs costs the stored copy.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from enum import Enum
from typing import Any, Final, NamedTuple

from agenttool_otel.errors import PersistenceError
from agenttool_otel.names import PersistenceStrategy, RedactionState
from agenttool_otel.records.base import JsonObject
from agenttool_otel.records.persistence import ResultPersistence
from agenttool_otel.results.content.json_stream import ValueTransform, json_pieces
from agenttool_otel.results.content.preview import PreviewBuilder
from agenttool_otel.results.content.references import References
from agenttool_otel.results.content.size import size_of, text_bytes
from agenttool_otel.results.persistence.strategy import StrategyChoice
from agenttool_otel.results.persistence.writer import PayloadWriter, ref_block, stand_in, text_block
from agenttool_otel.results.stores.types import PayloadStore, PersistedRef
from agenttool_otel.results.transform import CleanText, CleanValue, RedactionFailed, Transform

_MAX_PIECE_CHARS: Final = 1 << 16
_S = PersistenceStrategy


class _Form(Enum):
    """How items are written one after the other; the first item chooses."""

    TEXT = "text/plain"
    """Text after text."""
    BYTES = "application/octet-stream"
    """Bytes after bytes."""
    LINES = "application/x-ndjson"
    """A JSON value a line."""


def _form_of(item: Any) -> _Form:
    if type(item) is str:
        return _Form.TEXT
    if type(item) in (bytes, bytearray):
        return _Form.BYTES
    return _Form.LINES


class StreamOutcome(NamedTuple):
    """What became of a stream."""

    items: int  # how many items there were
    total_bytes: int  # their bytes, as they are written
    preview: str  # text for the model: all of it, or head and tail
    truncated: bool  # whether ``preview`` leaves something out
    # the persistence record; ``None`` for a small stream that nobody wanted to keep
    decision: ResultPersistence | None
    ref: PersistedRef | None  # reference to the whole, if it was stored
    failure: str | None  # why it could not be stored
    redaction_state: RedactionState  # what redaction did
    model_facing: list[JsonObject]  # content blocks for the model
    content: list[JsonObject]  # content blocks of the envelope
    references: References  # what its items refer to


class StreamCollector:
    """Collects one stream."""

    def __init__(
        self,
        invocation_id: str,
        choice: StrategyChoice,
        store: PayloadStore | Callable[[], PayloadStore | None] | None = None,
        *,
        preview_chars: int = 2048,
        deadline_s: float = 10.0,
        transform: Transform | None = None,
        owner: dict[str, str] | None = None,
        ttl_s: float | None = None,
    ) -> None:
        self._invocation_id = invocation_id
        self._choice = choice
        self._has_store = store is not None
        self._may_store = self._has_store and (
            choice.persists or choice.strategy in (_S.INLINE, _S.REDACT)
        )
        self._preview_chars = preview_chars
        self._view = PreviewBuilder(max(preview_chars, choice.max_inline_chars))
        self._writer = PayloadWriter(
            invocation_id,
            store,
            self._view,
            deadline_s=deadline_s,
            owner=owner,
            ttl_s=ttl_s,
            redacted=transform is not None,
            holds=self._may_store,
        )
        self._cleaner = CleanText(transform.text) if transform is not None else None
        self._values = CleanValue(transform.value) if transform is not None else None
        self._clean = transform.value if transform is not None else None
        self._form: _Form | None = None
        self._references = References()
        self._items = 0
        self._redaction_failed = False
        self._closed = False

    @property
    def uploading(self) -> bool:
        """Whether the stream is on its way to the store, so that the next item may have to wait for
        it.
        """
        return self._writer.uploading

    @property
    def total_bytes(self) -> int:
        """Bytes of the stream so far, as they are written."""
        return self._writer.total_bytes

    def add(self, item: Any) -> int | None:
        """Take the next item, and return its size in bytes where that is known; never raises."""
        self._items += 1
        if not self._redaction_failed and not self._closed:
            self._guarded(lambda: self._write(item))
        with suppress(Exception):
            self._references.add(item)
        try:
            return size_of(item)
        except Exception:
            return None

    def finish(self) -> StreamOutcome:
        """End the stream; never raises."""
        if not self._closed:
            self._closed = True
            if not self._redaction_failed:
                self._guarded(self._write_held_text)
        return self._outcome()

    def _guarded(self, write: Callable[[], None]) -> None:
        try:
            write()
        except RedactionFailed:
            self._redaction_failed = True
            self._writer.fail(PersistenceError("redaction failed"))
        except Exception as error:
            self._writer.fail(error)

    def _write(self, item: Any) -> None:
        form = _form_of(item)
        if self._form is None:
            self._form = form
        if form is not self._form or form is _Form.LINES:
            # a line of JSON, also for the odd item in a stream of another form
            self._write_line(item)
        elif form is _Form.BYTES:
            self._out(bytes(item))
        else:
            self._write_text(item)

    def _write_text(self, text: str) -> None:
        for start in range(0, len(text), _MAX_PIECE_CHARS):
            piece = text[start : start + _MAX_PIECE_CHARS]
            if self._cleaner is None:
                self._out(piece)
                continue
            for ready in self._cleaner.feed(piece):
                self._out(ready)

    def _write_line(self, item: Any) -> None:
        # pointers of a policy's obligations count the items: /0/password
        place = f"/{self._items - 1}"
        clean: ValueTransform | None = None
        values = self._values
        if values is not None:

            def clean_at(value: Any, pointer: str) -> Any:
                return values.at(value, place + pointer)

            clean = clean_at
        for piece in json_pieces(item, clean):
            self._out(piece)
        self._out("\n")

    def _write_held_text(self) -> None:
        if self._cleaner is None:
            return
        for piece in self._cleaner.finish():
            self._out(piece)

    def _out(self, piece: str | bytes) -> None:
        self._writer.write(piece)
        if self._may_store and self._is_large():
            self._start()

    def _start(self) -> None:
        if not self._writer.uploading and self._writer.failure is None:
            self._writer.start((self._form or _Form.LINES).value)

    def _is_large(self) -> bool:
        length = self._writer.total_bytes if self._form is _Form.BYTES else self._writer.chars
        return length > self._choice.max_inline_chars

    def _outcome(self) -> StreamOutcome:
        if (
            self._has_store
            and self._items
            and self._choice.strategy in (_S.PREVIEW_AND_PERSIST, _S.REF_ONLY)
        ):
            self._start()
        ref = self._writer.commit()
        large, size = self._is_large(), self._writer.total_bytes
        state = RedactionState.NONE
        if self._redaction_failed:
            state = RedactionState.FAILED
        elif any(
            cleaner is not None and cleaner.changed for cleaner in (self._cleaner, self._values)
        ):
            state = RedactionState.REDACTED
        strategy, reason = self._strategy(ref, large=large)
        text = self._shown(reason, ref, large=large)
        decision = None
        if strategy is not _S.INLINE:
            decision = self._choice.record(
                self._invocation_id,
                strategy,
                reason,
                state,
                size=size,
                preview_bytes=text_bytes(text),
                ref=ref,
            )
        return StreamOutcome(
            items=self._items,
            total_bytes=size,
            preview=text,
            truncated=large or strategy is not _S.INLINE,
            decision=decision,
            ref=ref,
            failure=self._writer.failure,
            redaction_state=state,
            model_facing=[text_block(text)],
            content=[text_block(text), *([] if ref is None else [ref_block(ref)])],
            references=self._cleaned_references(),
        )

    def _cleaned_references(self) -> References:
        if self._redaction_failed:
            return References()
        try:
            return self._references.cleaned(self._clean)
        except Exception:
            return References()

    def _strategy(
        self, ref: PersistedRef | None, *, large: bool
    ) -> tuple[PersistenceStrategy, str]:
        chosen, reason = self._choice.strategy, self._choice.reason
        if self._redaction_failed:
            return _S.DROP_WITH_REASON, "redaction_failed"
        if chosen is _S.DROP_WITH_REASON:
            return chosen, reason
        if ref is not None:
            kept = chosen if chosen is _S.REF_ONLY else _S.PREVIEW_AND_PERSIST
            return kept, "result_exceeded_inline_limit" if large else reason
        if self._writer.failure is not None:
            return _S.DROP_WITH_REASON, "store_failed"
        if chosen is _S.REF_ONLY:
            return _S.DROP_WITH_REASON, "no_store"
        if large:
            return _S.NEVER_PERSIST, reason if self._has_store else "no_store"
        return _S.INLINE, reason

    def _shown(self, reason: str, ref: PersistedRef | None, *, large: bool) -> str:
        chosen = self._choice.strategy
        if (
            self._redaction_failed
            or chosen is _S.DROP_WITH_REASON
            or (chosen is _S.REF_ONLY and ref is None)
        ):
            return f"[stream of {self._items} items dropped: {reason}]"
        what = f"{self._items} items, {self._writer.total_bytes} bytes"
        if chosen is _S.REF_ONLY and ref is not None:
            return f"Stream ended ({what}). Output saved to {ref.uri}."
        if not large:
            return self._view.build().text if self._form is not _Form.BYTES else f"[{what}]"
        view = None if self._form is _Form.BYTES else self._view
        most = min(self._preview_chars, self._choice.max_inline_chars)
        return stand_in(what, ref, view, most)
