"""The standard's error classes and what each means for a retry, as one table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from agenttool_otel.names import ErrorClass, Recoverability


@dataclass(frozen=True, slots=True)
class ErrorSpec:
    """What the standard's retry guidance says of one error class ("Errors and Retries").

    Attributes:
        error_class: the class that the row describes.
        code: stable code, ``AT-`` and a number, that logs and people can quote.
        recoverability: what has to happen before a retry can succeed.
        retry_safe: whether the same call may be sent again without a new side effect.
        arguments_must_change: whether the same arguments would fail again.
        discovery_required: whether the tool's schema has to be discovered first.
        approval_required: whether a new approval is needed.
        sibling_caused: whether another call of the batch caused it.
    """

    error_class: ErrorClass
    code: str
    recoverability: Recoverability
    retry_safe: bool = False
    arguments_must_change: bool = False
    discovery_required: bool = False
    approval_required: bool = False
    sibling_caused: bool = False


_E, _R = ErrorClass, Recoverability

TAXONOMY: Final[dict[ErrorClass, ErrorSpec]] = {
    spec.error_class: spec
    for spec in (
        ErrorSpec(_E.UNKNOWN_TOOL, "AT-101", _R.DISCOVER_FIRST, retry_safe=True, discovery_required=True),
        ErrorSpec(_E.BLOCKED_TOOL, "AT-102", _R.CHANGE_ARGUMENTS_OR_POLICY, retry_safe=True),
        ErrorSpec(_E.SCHEMA_NOT_LOADED, "AT-103", _R.DISCOVER_FIRST, retry_safe=True, discovery_required=True),
        ErrorSpec(_E.SCHEMA_VALIDATION_FAILED, "AT-201", _R.CHANGE_ARGUMENTS, True, True),
        ErrorSpec(_E.INVALID_ARGUMENTS, "AT-202", _R.CHANGE_ARGUMENTS, True, True),
        ErrorSpec(_E.INPUT_MUTATION_FAILED, "AT-203", _R.CHANGE_ARGUMENTS, True, True),
        ErrorSpec(_E.PERMISSION_DENIED, "AT-301", _R.CHANGE_ARGUMENTS_OR_POLICY, True, True),
        ErrorSpec(_E.APPROVAL_REJECTED, "AT-302", _R.APPROVAL_NEEDED, True, approval_required=True),
        ErrorSpec(_E.POLICY_BLOCKED, "AT-303", _R.CHANGE_ARGUMENTS_OR_POLICY, True),
        ErrorSpec(_E.HOOK_BLOCKED, "AT-304", _R.CHANGE_ARGUMENTS_OR_POLICY, True, True),
        ErrorSpec(_E.HOOK_FAILED, "AT-305", _R.RETRY_LATER, True),
        ErrorSpec(_E.CAPABILITY_GAP, "AT-401", _R.NOT_RECOVERABLE),
        ErrorSpec(_E.SETUP_REQUIRED, "AT-402", _R.SETUP_NEEDED, True),
        ErrorSpec(_E.CREDENTIAL_MISSING, "AT-403", _R.SETUP_NEEDED, True),
        ErrorSpec(_E.SANDBOX_VIOLATION, "AT-501", _R.CHANGE_ARGUMENTS, False, True),
        ErrorSpec(_E.EXECUTION_FAILED, "AT-502", _R.UNKNOWN),
        ErrorSpec(_E.PARTIAL_FAILURE, "AT-503", _R.UNKNOWN),
        ErrorSpec(_E.TIMEOUT, "AT-504", _R.RETRY_LATER),
        ErrorSpec(_E.RATE_LIMITED, "AT-505", _R.RETRY_LATER, True),
        ErrorSpec(_E.DEPENDENCY_UNAVAILABLE, "AT-506", _R.RETRY_LATER, True),
        ErrorSpec(_E.CANCELED, "AT-507", _R.RETRY_SAFE),
        ErrorSpec(_E.SIBLING_CANCELED, "AT-508", _R.SIBLING_CAUSED, sibling_caused=True),
        ErrorSpec(_E.STREAMING_FALLBACK_DISCARDED, "AT-509", _R.RETRY_SAFE),
        ErrorSpec(_E.RESULT_MAPPING_FAILED, "AT-601", _R.NOT_RECOVERABLE),
        ErrorSpec(_E.POST_HOOK_FAILED, "AT-602", _R.NOT_RECOVERABLE),
        ErrorSpec(_E.RESULT_TOO_LARGE, "AT-603", _R.CHANGE_ARGUMENTS, False, True),
        ErrorSpec(_E.RESULT_REDACTED, "AT-604", _R.NOT_RECOVERABLE),
    )
}
"""One row for each error class of the standard; a test keeps the table complete and the codes unique."""
