"""tool_error: a machine-readable failure with retry guidance (standard, "Errors and Retries")."""

from __future__ import annotations

from typing import Annotated, Self

from pydantic import Field

from agenttool_otel.names import ErrorClass, Recoverability
from agenttool_otel.records.base import OPEN, Part
from agenttool_otel.records.taxonomy import TAXONOMY


class RetryGuidance(Part):
    """Whether and how a retry can succeed.

    Attributes:
        retry_safe: the same call may be sent again without a new side effect.
        arguments_must_change: the same arguments would fail again.
        discovery_required: discover the tool's schema first.
        approval_required: a new approval is needed.
        sibling_caused: another call of the batch caused the failure.
    """

    retry_safe: bool = False
    arguments_must_change: bool = False
    discovery_required: bool = False
    approval_required: bool = False
    sibling_caused: bool = False


class ToolError(Part):
    """Structured failure.

    Attributes:
        error_class: class of the standard's taxonomy.
        error_code: stable code, see errors.TAXONOMY.
        message: for people and models; redacted, and without argument content.
        recoverability: what must happen before a retry.
        retry_after: seconds to wait, when known.
        native_error_ref: the native error's type, for example ``builtins.FileNotFoundError`` or
          ``http:503``.
        retry: the guidance in single facts.
        policy_refs: policies behind it.
        evidence_refs: evidence rows behind it.
    """

    error_class: Annotated[ErrorClass, OPEN] = ErrorClass.EXECUTION_FAILED
    error_code: str = ""
    message: str = ""
    recoverability: Annotated[Recoverability, OPEN] = Recoverability.UNKNOWN
    retry_after: float | None = None
    native_error_ref: str | None = None
    retry: RetryGuidance = Field(default_factory=RetryGuidance)
    policy_refs: list[str] = Field(default_factory=list)
    evidence_refs: list[str] = Field(default_factory=list)

    @classmethod
    def of(
        cls,
        error_class: ErrorClass,
        message: str = "",
        *,
        native_error_ref: str | None = None,
        retry_after: float | None = None,
        policy_refs: list[str] | None = None,
    ) -> Self:
        """Build the error of a class with that class's code, recoverability and guidance.

        Args:
            error_class: class of the taxonomy.
            message: for people, already redacted.
            native_error_ref: type of the native error.
            retry_after: seconds to wait.
            policy_refs: policies behind it.
        """
        spec = TAXONOMY[error_class]
        # RetryGuidance(retry_safe=spec.retry_safe, ...) for each of its fields
        guidance = {name: getattr(spec, name) for name in RetryGuidance.model_fields}
        return cls(
            error_class=error_class,
            error_code=spec.code,
            message=message,
            recoverability=spec.recoverability,
            retry_after=retry_after,
            native_error_ref=native_error_ref,
            retry=RetryGuidance(**guidance),
            policy_refs=policy_refs or [],
        )
