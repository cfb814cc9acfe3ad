"""What of a result reaches the caller, the model and the store: obligations are met, and sizes are facts.

A plain call gets exactly what the function returned, unless policy or contract oblige otherwise: redaction and
persistence obligations bind at every door, and one that can't be met withholds the result rather than leak it. What is
stored or previewed is redacted always.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from agenttool_otel.invocation import Invocation
from agenttool_otel.names import PersistenceStrategy, RedactionState, ResultStatus
from agenttool_otel.recorder import Recorder
from agenttool_otel.records.values import to_json_value
from agenttool_otel.redaction import Redactor
from agenttool_otel.results.persistence import ResultKeeper
from agenttool_otel.results.size import size_of
from agenttool_otel.results.transform import Transform

__all__ = ["Delivery"]

_WITHHELD = "[result withheld: an obligation of the policy could not be met]"


class Delivery:
    """Redacts and persists results.

    Args:
        redactor: cleans what has to be cleaned.
        keeper: chooses strategies and keeps payloads.
        transform: redacts what is stored or previewed, piece by piece.
    """

    def __init__(self, redactor: Redactor, keeper: ResultKeeper, transform: Transform | None) -> None:
        self._redactor = redactor
        self._transform = transform
        self.keeper = keeper

    def size(self, value: Any) -> int | None:
        """Return the size of a value in bytes where it is known without much work.

        Args:
            value: what a tool returned.
        """
        return size_of(value)

    def obliged(self, call: Invocation) -> bool:
        """Tell whether contract or policy demand that the result is changed before anyone sees it.

        Args:
            call: the call.
        """
        verdict = call.verdict
        if self._must_redact(call):
            return True
        return verdict is not None and (verdict.persistence is not None or verdict.max_inline_chars is not None)

    def _must_redact(self, call: Invocation) -> bool:
        spec, verdict = call.spec, call.verdict
        if spec.redact_result or spec.permission.redaction_required:
            return True
        return verdict is not None and bool(verdict.redact_result)

    def withhold(self, call: Invocation) -> None:
        """Replace the result because an obligation failed.

        Args:
            call: the call.
        """
        call.delivered = _WITHHELD
        call.redaction_state = RedactionState.FAILED
        call.result_status = ResultStatus.REDACTED

    def prepare(self, call: Invocation, recorder: Recorder) -> Callable[[], None] | None:
        """Meet the obligations of a result; what has to be stored is returned as work that may block.

        Args:
            call: the call, executed.
            recorder: telemetry.

        Returns:
            A function that persists the result, or ``None`` when nothing has to be stored.
        """
        spec, verdict = call.spec, call.verdict
        if self._must_redact(call):
            self._redact(call, recorder)
        obliged_limit = verdict.max_inline_chars if verdict is not None else None
        obliged_strategy = verdict.persistence if verdict is not None else None
        choice = self.keeper.choose(
            call.delivered,
            size=call.size,
            obliged_limit=obliged_limit,
            contract_limit=spec.max_inline_chars,
            strategy=obliged_strategy,
            contract_strategy=spec.persistence,
            sensitivity=spec.permission.data_sensitivity,
            supports_persistence=spec.execution.supports_persistence,
            exempt=spec.exempt,
        )
        if choice is None:
            return None
        binding = obliged_limit is not None or obliged_strategy is not None
        context = call.context

        def store() -> None:
            kept = self.keeper.keep(
                call.delivered,
                choice,
                invocation_id=call.id,
                result_id=call.result_id,
                size=call.size,
                transform=self._transform,
                owner={"session_id": context.session_id or "", "tenant": context.tenant or ""},
            )
            call.persistence = kept.decision
            if choice.strategy is not PersistenceStrategy.INLINE or kept.decision.strategy != choice.strategy:
                call.preview = kept.preview
                if binding:
                    call.delivered = kept.preview
            if kept.decision.strategy is PersistenceStrategy.DROP_WITH_REASON:
                call.result_status = ResultStatus.TOO_LARGE
            recorder.persisted(call, failure=kept.failure, store=self._store_name())

        return store

    def _store_name(self) -> str:
        try:
            return self.keeper.store.name if self.keeper.store is not None else "none"
        except Exception:
            return "none"

    def _redact(self, call: Invocation, recorder: Recorder) -> None:
        spec, verdict = call.spec, call.verdict
        pointers = (*spec.redact_result, *(verdict.redact_result if verdict is not None else ()))
        plain = call.delivered if type(call.delivered) is str else to_json_value(call.delivered)
        redacted = self._redactor.redact(plain, pointers=pointers)
        recorder.redacted(call, "result", redacted.redactions, redacted.state)
        if redacted.redactions or redacted.state is not RedactionState.NONE:
            call.delivered = redacted.value
