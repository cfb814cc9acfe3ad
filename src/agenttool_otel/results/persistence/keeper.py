"""Keeping results: the chosen strategy carried out, recorded, and survived when the store fails.

Telemetry's rule holds here, not permission's: a failing store never takes a result away from a
caller who may have it. What it costs is the full text behind the preview, and the record names it.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Final, NamedTuple

from agenttool_otel.errors import ConfigurationError, PersistenceError
from agenttool_otel.names import PersistenceStrategy, RedactionState
from agenttool_otel.records.base import JsonObject
from agenttool_otel.records.persistence import ResultPersistence
from agenttool_otel.results.content.preview import PreviewBuilder
from agenttool_otel.results.content.references import References
from agenttool_otel.results.content.shown import redactable_json
from agenttool_otel.results.content.size import is_measured, measure, text_bytes
from agenttool_otel.results.persistence.source import Source, source_of
from agenttool_otel.results.persistence.strategy import (
    NO_DEMAND,
    SENSITIVE,
    Demand,
    StrategyChoice,
    choose_strategy,
)
from agenttool_otel.results.persistence.stream import StreamCollector
from agenttool_otel.results.persistence.writer import PayloadWriter, ref_block, stand_in, text_block
from agenttool_otel.results.stores.types import PayloadStore, PersistedRef
from agenttool_otel.results.transform import RedactionFailed, Transform, redacted
from agenttool_otel.values.inspection import error_name

DEFAULT_MAX_INLINE_CHARS: Final = 50_000
DEFAULT_PREVIEW_CHARS: Final = 2_048
_S = PersistenceStrategy


@dataclass(frozen=True, slots=True)
class Kept:
    """What was done with one result."""

    decision: ResultPersistence  # the record
    # what may be shown in the result's place: the value itself where nothing had to be cut, else a
    # text
    preview: Any
    ref: PersistedRef | None = None  # reference to the payload, if it was stored
    # why the payload could not be stored; no content in it. ``None``: nothing failed
    failure: str | None = None
    model_facing: list[JsonObject] = field(default_factory=list)  # content blocks for the model
    content: list[JsonObject] = field(default_factory=list)  # content blocks of the envelope
    references: References = field(default_factory=References)  # what the result refers to


class ResultKeeper:
    """Chooses a strategy for each result and carries it out.

    Args:
        store: where payloads go; ``None``: nowhere, so that a large result is cut and the rest is
            gone. A function is called once, when the first payload has to be stored.
        max_inline_chars: limit for tools that state none.
        preview_chars: most characters of what takes a large result's place.
        deadline_s: seconds that a call may wait for the store in all.
        ttl_s: seconds to keep payloads; the store's default where ``None``.

    Raises:
        ConfigurationError: the store is none, and no function that opens one.
    """

    def __init__(
        self,
        store: PayloadStore | Callable[[], PayloadStore] | None = None,
        *,
        max_inline_chars: int = DEFAULT_MAX_INLINE_CHARS,
        preview_chars: int = DEFAULT_PREVIEW_CHARS,
        deadline_s: float = 10.0,
        ttl_s: float | None = None,
    ) -> None:
        # ResultKeeper("results"): found out at the first large result, it would be dropped
        if store is not None and not callable(store) and not hasattr(store, "put_stream"):
            raise ConfigurationError(f"store is a PayloadStore, not {type(store).__name__}")
        self._store = store
        self.max_inline_chars = max_inline_chars
        self.preview_chars = preview_chars
        self.deadline_s = deadline_s
        self.ttl_s = ttl_s

    @property
    def store(self) -> PayloadStore | None:
        """The store, made now if it was not yet."""
        if self._store is None or not callable(self._store):
            return self._store
        try:
            self._store = self._store()
        except PersistenceError:
            raise
        except Exception as error:
            raise PersistenceError(f"the store can't be opened: {error_name(error)}") from error
        return self._store

    def choose(
        self, value: Any, demand: Demand = NO_DEMAND, *, size: int | None = None
    ) -> StrategyChoice | None:
        """Choose the strategy of a result; ``None`` when it is small and nothing is demanded: the
        usual case.

        Args:
            value: what the tool returned.
            demand: what the contract and the policy demand.
            size: bytes of the value, where they were measured before.
        """
        limit = demand.obliged_limit
        strategy = demand.obliged_strategy or demand.contract_strategy
        size = _counted(value, size)
        if limit is not None and not is_measured(value, size):
            size = None
        if size is None and strategy is None:
            # An iterator, an open file, an object of the caller's own: it can't be cut or stored
            # without being consumed. Its class name, which is all that is ever shown of it, is
            # small; what its consumer can get of it is not known to be, and a limit of the policy
            # binds that too.
            if limit is not None:
                choice = choose_strategy(demand, size=None, default_limit=self.max_inline_chars)
                return choice._replace(strategy=_S.DROP_WITH_REASON, reason="result_size_unknown")
            size = 0
        if size is not None and not _demands_anything(demand):
            inline = demand.contract_limit
            if inline is None:
                inline = self.max_inline_chars
            if type(inline) is int and size <= inline:
                return None
        has_store = self._store is not None
        choice = choose_strategy(
            demand, size=size, default_limit=self.max_inline_chars, has_store=has_store
        )
        return None if choice.is_plain else choice

    def collector(
        self,
        demand: Demand = NO_DEMAND,
        *,
        invocation_id: str,
        transform: Transform | None = None,
        owner: dict[str, str] | None = None,
    ) -> tuple[StreamCollector, StrategyChoice]:
        """Return the collector of a stream, of whose size nothing is known yet, and what
        was chosen.
        """
        has_store = self._store is not None
        choice = choose_strategy(
            demand, size=0, default_limit=self.max_inline_chars, has_store=has_store
        )
        stores_nothing = demand.exempt or demand.obliged_strategy == _S.INLINE.value
        may_store = demand.supports_persistence and has_store and not stores_nothing
        collector = StreamCollector(
            invocation_id,
            choice,
            (lambda: self.store) if may_store else None,
            preview_chars=self.preview_chars,
            deadline_s=self.deadline_s,
            transform=transform,
            owner=owner,
            ttl_s=self.ttl_s,
        )
        return collector, choice

    def keep(
        self,
        value: Any,
        choice: StrategyChoice,
        *,
        invocation_id: str,
        result_id: str | None = None,
        size: int | None = None,
        transform: Transform | None = None,
        owner: dict[str, str] | None = None,
    ) -> Kept:
        """Carry out a strategy; never raises."""
        job = _Job(self, value, choice, invocation_id, result_id, size, transform, owner)
        kept = self._kept(job)
        # where its texts could not be redacted, neither can what it refers to
        if kept.decision.redaction_state is RedactionState.FAILED:
            return kept
        return replace(kept, references=job.references())

    def _kept(self, job: _Job) -> Kept:
        try:
            return job.run()
        except RedactionFailed as error:
            return job.dropped("redaction_failed", str(error), RedactionState.FAILED)
        except PersistenceError as error:
            return job.dropped("store_failed", str(error), RedactionState.NONE)
        except Exception as error:
            return job.dropped(
                "store_failed", f"internal: {error_name(error)}", RedactionState.NONE
            )


class _Job(NamedTuple):
    """One result on its way."""

    keeper: ResultKeeper
    value: Any
    choice: StrategyChoice
    invocation_id: str
    result_id: str | None
    size: int | None
    transform: Transform | None
    owner: dict[str, str] | None

    def run(self) -> Kept:
        choice = self.choice
        if choice.strategy is _S.DROP_WITH_REASON:
            return self.dropped(choice.reason, None, RedactionState.DROPPED)
        if not choice.persists and not choice.over_limit:
            return self._inline()
        source = source_of(self.value, self.transform)
        writer = PayloadWriter(
            self.invocation_id,
            lambda: self.keeper.store,
            PreviewBuilder(self.keeper.preview_chars) if source.is_text else None,
            deadline_s=self.keeper.deadline_s,
            owner=self.owner,
            ttl_s=self.keeper.ttl_s,
            redacted=self.transform is not None,
        )
        try:
            if choice.persists:
                writer.start(source.media_type)
            for piece in source.pieces:
                writer.write(piece)
            ref = writer.commit()
        except BaseException:
            writer.discard()
            raise
        return self._cut(source, writer, ref)

    def references(self) -> References:
        """Return what the result refers to, redacted; nothing where that can't be found."""
        found = References()
        try:
            found.add(self.value)
            if self.transform is None:
                return found
            return found.cleaned(partial(redacted, self.transform.value))
        except Exception:
            return References()

    def _inline(self) -> Kept:
        value = self._clean_value()
        state = RedactionState.NONE if value is self.value else RedactionState.REDACTED
        return Kept(
            self._record(self.choice.strategy, self.choice.reason, state, size=self.size), value
        )

    def _clean_value(self) -> Any:
        """Redact the value as plain data; where nothing is found, it keeps its own type."""
        value, transform = self.value, self.transform
        if transform is None:
            return value
        plain: Any = value if type(value) is str else redactable_json(value)
        cleaned = (
            redacted(transform.text, plain)
            if type(plain) is str
            else redacted(transform.value, plain, "")
        )
        return value if cleaned == plain else cleaned

    def _cut(self, source: Source, writer: PayloadWriter, ref: PersistedRef | None) -> Kept:
        choice = self.choice
        strategy, reason = choice.strategy, choice.reason
        if choice.persists and ref is None:
            strategy, reason = _S.DROP_WITH_REASON, "store_failed"
        elif strategy is _S.REDACT:
            strategy = _S.PREVIEW_AND_PERSIST
        size = self.size if self.size is not None else writer.total_bytes
        state = RedactionState.REDACTED if source.changed else RedactionState.NONE
        if ref is None and not choice.over_limit and choice.strategy is _S.PREVIEW_AND_PERSIST:
            # A contract wanted it stored although it is small: without the store it is still small.
            decision = self._record(strategy, reason, state, size=size)
            return Kept(decision, self._clean_value(), None, writer.failure)
        view = None if choice.strategy is _S.REF_ONLY else writer.view
        lines = f", {view.build().lines} lines" if view is not None else ""
        most = min(self.keeper.preview_chars, choice.max_inline_chars)
        text = stand_in(f"{size} bytes{lines}, {source.media_type}", ref, view, most)
        decision = self._record(
            strategy, reason, state, size=size, preview_bytes=text_bytes(text), ref=ref
        )
        content = [text_block(text), *([] if ref is None else [ref_block(ref)])]
        return Kept(decision, text, ref, writer.failure, content[:1], content)

    def dropped(self, reason: str, failure: str | None, state: RedactionState) -> Kept:
        """Return the outcome of a result that nobody sees."""
        text = f"[result dropped: {reason}]"
        decision = self._record(
            _S.DROP_WITH_REASON, reason, state, size=self.size, preview_bytes=len(text)
        )
        return Kept(decision, text, None, failure, [text_block(text)], [text_block(text)])

    @property
    def _record(self) -> Callable[..., ResultPersistence]:
        """What makes the record of this result."""
        return partial(self.choice.record, self.invocation_id, result_id=self.result_id)


def _counted(value: Any, size: int | None) -> int | None:
    """Return the size that a limit is compared with: characters of a text, else bytes."""
    if type(value) is str:
        return len(value)
    if value is None:
        return 0
    if size is None:
        return measure(value).bytes
    return size


def _demands_anything(demand: Demand) -> bool:
    if demand.obliged_strategy or demand.contract_strategy or demand.obliged_limit is not None:
        return True
    if demand.redact or demand.exempt:
        return True
    return demand.sensitivity is not None and demand.sensitivity.lower() in SENSITIVE
