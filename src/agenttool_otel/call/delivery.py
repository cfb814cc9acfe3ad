"""What of a result reaches the caller, the model and the store: obligations are met, and sizes are
facts.

A plain call gets exactly what the function returned, unless policy or contract oblige otherwise:
redaction and persistence obligations bind at every door, and one that can't be met withholds the
result rather than leak it. What is stored or previewed is redacted always.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from agenttool_otel.call.argument_mask import ArgumentMask
from agenttool_otel.call.invocation import Invocation
from agenttool_otel.call.recording.argument_secrets import mask_of
from agenttool_otel.call.recording.span import CallSpan
from agenttool_otel.names import (
    Attr,
    ErrorClass,
    Event,
    InvocationStatus,
    PersistenceStrategy,
    RedactionState,
    ResultStatus,
)
from agenttool_otel.records import ToolError
from agenttool_otel.redaction import Redactor
from agenttool_otel.redaction.types import Redacted, Redaction, names_everything
from agenttool_otel.results.content.references import References
from agenttool_otel.results.persistence.keeper import ResultKeeper
from agenttool_otel.results.persistence.strategy import Demand
from agenttool_otel.results.persistence.stream import StreamOutcome
from agenttool_otel.results.stream_tap import StreamTap, aguard, collected, guard
from agenttool_otel.results.transform import ItemCleaner, RedactionFailed, Transform, read

_WITHHELD = "[result withheld: an obligation of the policy could not be met]"
_OMITTED = Redaction("omitted", "", "unreadable", 1)
"""What stands for parts that were left out because nobody can read them, or because there were too
many.
"""


class Delivery:
    """Redacts and persists results."""

    def __init__(
        self, redactor: Redactor, keeper: ResultKeeper, transform: Transform | None
    ) -> None:
        self._redactor = redactor
        self._transform = transform
        self.keeper = keeper

    def obliged(self, call: Invocation) -> bool:
        """Return whether contract or policy demand that the result is changed before anyone
        sees it.
        """
        return call.must_redact or _demand(call).binding

    def withhold(self, call: Invocation) -> None:
        """Replace the result because an obligation failed."""
        call.delivered = _WITHHELD
        call.outcome.redaction_state = RedactionState.FAILED
        call.outcome.result_status = ResultStatus.REDACTED
        call.outcome.result_error = ToolError.of(
            ErrorClass.RESULT_REDACTED, "an obligation could not be met"
        )

    def prepare(self, call: Invocation, span: CallSpan) -> Callable[[], None] | None:
        """Meet the obligations of a result; what has to be stored is returned as work that
        may block.
        """
        if call.must_redact:
            self._redact(call, span)
        demand = _demand(call)
        if (choice := self.keeper.choose(call.delivered, demand, size=call.outcome.size)) is None:
            return None

        def store() -> None:
            kept = self.keeper.keep(
                call.delivered,
                choice,
                invocation_id=call.id,
                result_id=call.outcome.result_id,
                size=call.outcome.size,
                transform=self._transform_of(call),
                owner=_owner(call),
            )
            call.kept = kept
            call.outcome.persistence = kept.decision
            if (
                choice.strategy is not PersistenceStrategy.INLINE
                or kept.decision.strategy != choice.strategy
            ):
                call.preview = kept.preview
                _take_references(call, kept.references)
                if demand.binding:
                    call.delivered = kept.preview
            _mark_dropped(call)
            span.record_persistence(call, failure=kept.failure, store=self._store_name())

        return store

    def _store_name(self) -> str:
        try:
            return self.keeper.store.name if self.keeper.store is not None else "none"
        except Exception:
            return "none"

    def _redact(self, call: Invocation, span: CallSpan) -> None:
        if (cleaned := self._redacted(call, call.delivered, call.result_pointers)) is None:
            span.record_redactions(call, "result", (), RedactionState.FAILED)
            self.withhold(call)
            return
        span.record_redactions(call, "result", cleaned.redactions, cleaned.state)
        call.delivered = cleaned.value

    def _redacted(self, call: Invocation, value: Any, pointers: tuple[str, ...]) -> Redacted | None:
        """Return what may be passed on: the value itself where all of it was read and nothing was
        found.

        ``None`` stands for a value that can't be read; unless all of it has to go anyway, nothing
        is known to be gone.
        """
        # it loads tables that a program may never need
        from agenttool_otel.redaction.pointers import has_paths

        if (reading := read(value, libraries=not has_paths(pointers))) is None:
            return (
                self._redactor.redact("unread", pointers=pointers)
                if names_everything(pointers)
                else None
            )
        mask = mask_of(call, self._redactor)
        masked = reading.data if mask is None else mask.value(reading.data)
        redacted = self._redactor.redact(masked, pointers=pointers)
        redactions = redacted.redactions
        if mask is not None and masked != reading.data:
            redactions = (*redactions, mask.redaction)
        if (
            reading.whole
            and redacted.value == reading.data
            and redacted.state is RedactionState.NONE
        ):
            return Redacted(value, redactions, redacted.state)
        if not redactions:
            redactions = (_OMITTED,)
        state = RedactionState.REDACTED if redacted.state is RedactionState.NONE else redacted.state
        return Redacted(reading.restore(redacted.value), redactions, state)

    def _transform_of(self, call: Invocation) -> Transform | None:
        if self._transform is None:
            return None
        mask = mask_of(call, self._redactor)
        return self._transform if mask is None else _masking(self._transform, mask)

    # --- streams ----------------------------------------------------------------------------------

    def tapped(
        self, call: Invocation, function: Callable[..., Any], span: CallSpan, *, is_async: bool
    ) -> Callable[..., Any]:
        """Return a generator function behind a tap, or as it is when nobody has to see its items:
        the usual case.
        """
        spec = call.spec
        wanted = spec.persistence is not None or spec.max_inline_chars is not None
        if not (wanted or self.obliged(call) or span.telemetry.events.every_class):
            return function
        binding = _demand(call).binding
        tap = call.tap = self._tap(call, span, keep=wanted or binding, binding=binding)
        wrap: Any = aguard if is_async else guard
        return lambda *args, **kwargs: wrap(tap, function(*args, **kwargs))

    def gathered(
        self, call: Invocation, function: Callable[..., Any], span: CallSpan, *, is_async: bool
    ) -> Callable[..., Any]:
        """Return a generator function as one that returns its items, within bounded memory."""

        def open_tap() -> StreamTap:
            tap = call.tap = self._tap(call, span, keep=True, binding=False)
            tap.gathers = True
            return tap

        return collected(open_tap, function, is_async)

    def streamed(self, call: Invocation, span: CallSpan) -> bool:
        """Take over what the tap of a stream found; return whether the result needs no
        further keeping.
        """
        tap, outcome = call.tap, call.kept
        if tap is None:
            return False
        call.outcome.items = tap.items
        if not isinstance(outcome, StreamOutcome):
            return False
        if call.outcome.size is None:
            call.outcome.size = outcome.total_bytes
        if outcome.decision is None and outcome.failure is None:
            call.kept = None
            return False
        if outcome.decision is not None:
            outcome.decision.result_id = call.outcome.result_id
            call.outcome.persistence = outcome.decision
        binding = _demand(call).binding
        if call.ran and outcome.truncated:
            call.preview = outcome.preview
            _take_references(call, outcome.references)
            if binding and tap.gathers:
                call.delivered = call.preview
            if binding or tap.gathers:
                _mark_dropped(call)
        span.record_persistence(call, failure=outcome.failure, store=self._store_name())
        return True

    def _tap(self, call: Invocation, span: CallSpan, *, keep: bool, binding: bool) -> StreamTap:
        collector = None
        limit = None
        if keep:
            collector, choice = self.keeper.collector(
                _demand(call),
                invocation_id=call.id,
                transform=self._transform_of(call),
                owner=_owner(call),
            )
            if binding and choice.strategy in _HIDDEN:
                limit = 0
            elif binding:
                limit = choice.max_inline_chars
        found: list[Redaction] = []

        def emit_item(sequence: int, size: int | None) -> None:
            attributes: dict[str, Any] = {Attr.PROGRESS_SEQUENCE: sequence}
            if size is not None:
                attributes[Attr.RESULT_SIZE_BYTES] = size
            span.emit(call, Event.INVOCATION_PARTIAL_RESULT, attributes)

        def record(failed: bool) -> None:
            state = RedactionState.REDACTED if found else RedactionState.NONE
            if failed:
                state = RedactionState.FAILED
            span.record_redactions(call, "result", _summed(found), state)

        return StreamTap(
            on_first_item=lambda: call.enter(InvocationStatus.PARTIAL_RESULT),
            collector=collector,
            cleaner=self._item_cleaner(call, found) if call.must_redact else None,
            left=limit,
            on_item=emit_item if span.telemetry.events.every_class else None,
            on_redacted=record,
        )

    def _item_cleaner(self, call: Invocation, found: list[Redaction]) -> ItemCleaner:
        """Return what redacts each item of a stream, and adds to ``found`` what it redacts."""
        pointers = _item_pointers(call.result_pointers)

        def clean(item: Any) -> Any:
            cleaned = self._redacted(call, item, pointers)
            if cleaned is None or cleaned.state is RedactionState.FAILED:
                raise RedactionFailed("redaction failed")
            found.extend(cleaned.redactions)
            return cleaned.value

        return ItemCleaner(clean, apart=names_everything(pointers))


_HIDDEN: Final = frozenset({PersistenceStrategy.REF_ONLY, PersistenceStrategy.DROP_WITH_REASON})
"""Strategies that leave nothing of a result inline."""


def _demand(call: Invocation) -> Demand:
    """Return what contract and policy want of the result's size and place; redaction is done before
    and apart.
    """
    spec, verdict = call.spec, call.decision.verdict
    return Demand(
        contract_limit=spec.max_inline_chars,
        obliged_limit=verdict.max_inline_chars if verdict is not None else None,
        contract_strategy=spec.persistence,
        obliged_strategy=verdict.persistence if verdict is not None else None,
        sensitivity=spec.permission.data_sensitivity,
        supports_persistence=spec.execution.supports_persistence,
        exempt=spec.exempt,
    )


def _owner(call: Invocation) -> dict[str, str]:
    return {"session_id": call.context.session_id or "", "tenant": call.context.tenant or ""}


def _take_references(call: Invocation, references: References) -> None:
    call.outcome.resource_refs = references.resources
    call.outcome.artifact_refs = references.artifacts


def _mark_dropped(call: Invocation) -> None:
    decision = call.outcome.persistence
    if (
        decision is not None
        and decision.strategy is PersistenceStrategy.DROP_WITH_REASON
        and call.ran
    ):
        failed = decision.redaction_state is RedactionState.FAILED
        call.outcome.result_status = ResultStatus.REDACTED if failed else ResultStatus.TOO_LARGE
        error_class = ErrorClass.RESULT_REDACTED if failed else ErrorClass.RESULT_TOO_LARGE
        call.outcome.result_error = ToolError.of(error_class, decision.reason or "")
        if failed:
            call.outcome.redaction_state = RedactionState.FAILED


def _masking(transform: Transform, mask: ArgumentMask) -> Transform:
    return Transform(
        lambda text: transform.text(mask.text(text)),
        lambda value, pointer: transform.value(mask.value(value), pointer),
    )


def _item_pointers(pointers: tuple[str, ...]) -> tuple[str, ...]:
    """Return pointers into a list of items as pointers into one item, beside those that mean the
    item already.
    """
    inner = []
    for pointer in pointers:
        first, slash, rest = pointer.removeprefix("#").removeprefix("/").partition("/")
        if pointer.startswith(("/", "#/")) and (first == "*" or first.isdecimal()):
            inner.append(f"/{rest}" if slash else "*")
    return (*pointers, *inner)


def _summed(redactions: list[Redaction]) -> tuple[Redaction, ...]:
    counts: dict[tuple[str, str, str], int] = {}
    for kind, pointer, rule, count in redactions:
        counts[kind, pointer, rule] = counts.get((kind, pointer, rule), 0) + count
    return tuple(Redaction(*key, count) for key, count in counts.items())
