"""What a stream gave, bounded: partial results in order, the head and the tail, the whole in a store if it grows.

The collector sees each item once, on its way to the consumer, and never changes or delays it: a store that fails or
hangs costs the stored copy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final

from agenttool_otel.errors import PersistenceError
from agenttool_otel.names import AbortReason, ContentType, PersistenceStrategy, RedactionState
from agenttool_otel.records.base import JsonObject
from agenttool_otel.records.persistence import ResultPersistence
from agenttool_otel.results.json_stream import json_pieces
from agenttool_otel.results.preview import PreviewBuilder
from agenttool_otel.results.size import size_of, text_bytes
from agenttool_otel.results.stores.types import PayloadStore, PersistedRef
from agenttool_otel.results.strategy import StrategyChoice
from agenttool_otel.results.transform import CleanText, RedactionFailed, Transform
from agenttool_otel.results.upload import StoreTimeout, Upload

__all__ = ["Partial", "StreamCollector", "StreamOutcome"]

_MAX_UNSENT: Final = 1 << 16


class _Form(Enum):
    """How items are written one after the other; the first item chooses."""

    TEXT = "text/plain"
    BYTES = "application/octet-stream"
    LINES = "application/x-ndjson"


@dataclass(frozen=True, slots=True)
class Partial:
    """One item of a stream.

    Attributes:
        sequence: 0, 1, 2 ...
        size_bytes: its size, where known.
        total_bytes: bytes of the stream so far, as they are written.
    """

    sequence: int
    size_bytes: int | None
    total_bytes: int


@dataclass(frozen=True, slots=True)
class StreamOutcome:
    """What became of a stream.

    Attributes:
        items: how many items there were.
        total_bytes: their bytes, as they are written.
        complete: whether the stream ran to its end.
        abort_reason: why not.
        preview: text for the model: all of it, or head and tail.
        truncated: whether ``preview`` leaves something out.
        decision: the persistence record; ``None`` for a small stream that nobody wanted to keep.
        ref: reference to the whole, if it was stored.
        failure: why it could not be stored.
        redaction_state: what redaction did.
        model_facing: content blocks for the model.
        content: content blocks of the envelope.
    """

    items: int
    total_bytes: int
    complete: bool
    abort_reason: AbortReason | None
    preview: str
    truncated: bool
    decision: ResultPersistence | None
    ref: PersistedRef | None
    failure: str | None
    redaction_state: RedactionState
    model_facing: list[JsonObject]
    content: list[JsonObject]


class StreamCollector:
    """Collects one stream.

    Args:
        invocation_id: the call.
        choice: the strategy, chosen before anything was known of the size: its limit decides when the stream is large,
            and its strategy whether it may then be stored.
        store: where a large stream goes; ``None``: nowhere. A function is called when it is needed.
        preview_chars: most characters of the preview of a large stream.
        deadline_s: seconds that the stream may wait for the store in all.
        transform: redaction of what is stored and previewed.
        owner: ``session_id`` and ``tenant``.
        ttl_s: seconds to keep the payload.
    """

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
        self._store = store
        self._preview_chars = preview_chars
        self._deadline_s = deadline_s
        self._transform = transform
        self._owner = owner or {}
        self._ttl_s = ttl_s
        self._form: _Form | None = None
        self._cleaner = CleanText(transform.text) if transform is not None else None
        self._items = 0
        self._total = 0
        self._changed = False
        self._view = PreviewBuilder(max(preview_chars, choice.max_inline_chars))
        self._chars = 0
        self._kept: list[bytes] = []  # what a store would get, until it is known whether it gets it
        self._upload: Upload | None = None
        self._failure: str | None = None
        self._redaction_failed = False
        self._closed = False

    @property
    def uploading(self) -> bool:
        """Whether the stream is on its way to the store, so that the next item may have to wait for it."""
        return self._upload is not None

    @property
    def total_bytes(self) -> int:
        """Bytes of the stream so far, as they are written."""
        return self._total

    def add(self, item: Any) -> Partial:
        """Take the next item; never raises.

        Args:
            item: what the generator yielded; it is not changed.
        """
        sequence = self._items
        self._items += 1
        try:
            if not self._redaction_failed and not self._closed:
                self._write(item)
        except RedactionFailed:
            self._fail_redaction()
        except Exception as error:
            self._fail_store(error)
        try:
            size = size_of(item)
        except Exception:
            size = None
        return Partial(sequence, size, self._total)

    def finish(self, *, abort_reason: AbortReason | None = None, failed: bool = False) -> StreamOutcome:
        """End the stream; never raises.

        Args:
            abort_reason: why it ended early: abandoned, cancelled, timed out.
            failed: the generator raised. What it gave before is kept: partial results are results.
        """
        if not self._closed:
            self._closed = True
            try:
                if self._cleaner is not None and not self._redaction_failed:
                    for piece in self._cleaner.finish():
                        self._out(piece)
            except RedactionFailed:
                self._fail_redaction()
            except Exception as error:
                self._fail_store(error)
        return self._outcome(abort_reason, complete=abort_reason is None and not failed)

    def _write(self, item: Any) -> None:
        if self._form is None:
            cls = type(item)
            self._form = _Form.TEXT if cls is str else _Form.BYTES if cls in (bytes, bytearray) else _Form.LINES
        if self._form is _Form.BYTES and type(item) in (bytes, bytearray):
            self._send(bytes(item))
        elif self._form is _Form.TEXT and type(item) is str:
            for start in range(0, len(item), _MAX_UNSENT):
                self._text(item[start : start + _MAX_UNSENT])
        else:
            # A line of JSON, also for the odd item in a stream of another form.
            for piece in json_pieces(item, None if self._transform is None else self._clean_value):
                self._out(piece)
            self._out("\n")

    def _clean_value(self, value: Any, pointer: str) -> Any:
        if self._transform is None:
            return value
        try:
            cleaned = self._transform.value(value, f"/{self._items - 1}{pointer}")
        except Exception as error:
            raise RedactionFailed(f"redaction failed: {type(error).__name__}") from None
        self._changed = self._changed or cleaned != value
        return cleaned

    def _text(self, text: str) -> None:
        if self._cleaner is None:
            self._out(text)
        else:
            for piece in self._cleaner.feed(text):
                self._out(piece)

    def _out(self, text: str) -> None:
        self._view.add(text)
        self._chars += len(text)
        self._send(text.encode("utf-8", "backslashreplace"))

    def _send(self, data: bytes) -> None:
        self._total += len(data)
        if self._upload is not None:
            self._upload.write(data)
            return
        if self._failure is not None or not self._may_persist():
            self._kept.clear()
            return
        self._kept.append(data)
        if self._is_large():
            self._start()

    def _may_persist(self) -> bool:
        allowed = (PersistenceStrategy.INLINE, PersistenceStrategy.REDACT)
        return self._store is not None and (self._choice.persists or self._choice.strategy in allowed)

    def _is_large(self) -> bool:
        length = self._total if self._form is _Form.BYTES else self._chars
        return length > self._choice.max_inline_chars

    def _start(self) -> None:
        store = self._store if not callable(self._store) else self._store()
        if store is None:
            raise PersistenceError("no store is configured")
        media_type = (self._form or _Form.LINES).value
        self._upload = Upload(
            store,
            media_type,
            deadline_s=self._deadline_s,
            name=self._invocation_id,
            owner={"invocation_id": self._invocation_id, **self._owner},
            ttl_s=self._ttl_s,
            redaction_state=(RedactionState.NONE if self._transform is None else RedactionState.REDACTED).value,
        )
        kept, self._kept = self._kept, []
        for data in kept:
            self._upload.write(data)

    def _fail_store(self, error: BaseException) -> None:
        if self._upload is not None:
            self._upload.abort()
            self._upload = None
        self._kept.clear()
        if isinstance(error, StoreTimeout):
            self._failure = "deadline"
        else:
            self._failure = str(error) if isinstance(error, PersistenceError) else f"internal: {type(error).__name__}"

    def _fail_redaction(self) -> None:
        self._fail_store(PersistenceError("redaction failed"))
        self._redaction_failed = True

    def _outcome(self, abort_reason: AbortReason | None, *, complete: bool) -> StreamOutcome:
        ref = self._commit()
        large = self._is_large()
        state = RedactionState.NONE
        if self._redaction_failed:
            state = RedactionState.FAILED
        elif self._changed or (self._cleaner is not None and self._cleaner.changed):
            state = RedactionState.REDACTED
        strategy, reason = self._strategy(ref, large=large)
        text = self._shown(strategy, ref, large=large)
        decision = None
        if strategy is not PersistenceStrategy.INLINE:
            decision = ResultPersistence(
                invocation_id=self._invocation_id,
                strategy=strategy,
                threshold=self._choice.threshold(),
                original_size_bytes=self._total,
                preview_size_bytes=text_bytes(text),
                persisted_ref=None if ref is None else {**ref.to_json(), "redaction_state": state.value},
                redaction_state=state,
                reason=reason,
            )
        block: JsonObject = {"type": ContentType.TEXT.value, "text": text}
        stored = [] if ref is None else [{"type": ContentType.PERSISTED_OUTPUT_REF.value, **ref.to_json()}]
        return StreamOutcome(
            items=self._items,
            total_bytes=self._total,
            complete=complete,
            abort_reason=abort_reason,
            preview=text,
            truncated=large or strategy is not PersistenceStrategy.INLINE,
            decision=decision,
            ref=ref,
            failure=self._failure,
            redaction_state=state,
            model_facing=[block],
            content=[block, *stored],
        )

    def _commit(self) -> PersistedRef | None:
        wanted = self._choice.strategy in (PersistenceStrategy.PREVIEW_AND_PERSIST, PersistenceStrategy.REF_ONLY)
        try:
            if self._upload is None and wanted and self._failure is None and self._store is not None and self._items:
                self._start()
            return self._upload.commit() if self._upload is not None else None
        except Exception as error:
            self._fail_store(error)
            return None

    def _strategy(self, ref: PersistedRef | None, *, large: bool) -> tuple[PersistenceStrategy, str]:
        chosen = self._choice.strategy
        if self._redaction_failed:
            return PersistenceStrategy.DROP_WITH_REASON, "redaction_failed"
        if chosen is PersistenceStrategy.DROP_WITH_REASON:
            return chosen, self._choice.reason
        if ref is not None:
            kept = chosen if chosen is PersistenceStrategy.REF_ONLY else PersistenceStrategy.PREVIEW_AND_PERSIST
            return kept, "result_exceeded_inline_limit" if large else self._choice.reason
        if self._failure is not None:
            return PersistenceStrategy.DROP_WITH_REASON, "store_failed"
        if chosen is PersistenceStrategy.REF_ONLY:
            return PersistenceStrategy.DROP_WITH_REASON, "no_store"
        if large:
            return PersistenceStrategy.NEVER_PERSIST, "no_store" if self._store is None else self._choice.reason
        return PersistenceStrategy.INLINE, self._choice.reason

    def _shown(self, strategy: PersistenceStrategy, ref: PersistedRef | None, *, large: bool) -> str:
        hidden = self._redaction_failed or self._choice.strategy is PersistenceStrategy.DROP_WITH_REASON
        if hidden or (self._choice.strategy is PersistenceStrategy.REF_ONLY and ref is None):
            return f"[stream of {self._items} items dropped: {self._strategy(ref, large=large)[1]}]"
        what = f"{self._items} items, {self._total} bytes"
        if self._choice.strategy is PersistenceStrategy.REF_ONLY and ref is not None:
            return f"Stream ended ({what}). Output saved to {ref.uri}."
        if not large:
            return self._view.build().text if self._form is not _Form.BYTES else f"[{what}]"
        where = f"Full output saved to {ref.uri}." if ref is not None else "The rest was not kept."
        head = f"Output too large ({what}). {where}"
        if self._form is _Form.BYTES:
            return head
        head += " Preview:\n"
        return head + self._view.build(max(0, self._preview_chars - len(head))).text
