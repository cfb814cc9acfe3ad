"""The standard's error classes and what each means for a retry, as one table."""

from __future__ import annotations

from typing import Final, NamedTuple

from agenttool_otel.names import ErrorClass, Recoverability


class ErrorSpec(NamedTuple):
    """The standard's retry guidance on one error class ("Errors and Retries").

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


_SPECS: Final = (
    # AT-1xx: finding the tool
    ErrorSpec(
        ErrorClass.UNKNOWN_TOOL,
        "AT-101",
        Recoverability.DISCOVER_FIRST,
        retry_safe=True,
        discovery_required=True,
    ),
    ErrorSpec(
        ErrorClass.BLOCKED_TOOL,
        "AT-102",
        Recoverability.CHANGE_ARGUMENTS_OR_POLICY,
        retry_safe=True,
    ),
    ErrorSpec(
        ErrorClass.SCHEMA_NOT_LOADED,
        "AT-103",
        Recoverability.DISCOVER_FIRST,
        retry_safe=True,
        discovery_required=True,
    ),
    # AT-2xx: its arguments
    ErrorSpec(
        ErrorClass.SCHEMA_VALIDATION_FAILED,
        "AT-201",
        Recoverability.CHANGE_ARGUMENTS,
        retry_safe=True,
        arguments_must_change=True,
    ),
    ErrorSpec(
        ErrorClass.INVALID_ARGUMENTS,
        "AT-202",
        Recoverability.CHANGE_ARGUMENTS,
        retry_safe=True,
        arguments_must_change=True,
    ),
    ErrorSpec(
        ErrorClass.INPUT_MUTATION_FAILED,
        "AT-203",
        Recoverability.CHANGE_ARGUMENTS,
        retry_safe=True,
        arguments_must_change=True,
    ),
    # AT-3xx: decisions
    ErrorSpec(
        ErrorClass.PERMISSION_DENIED,
        "AT-301",
        Recoverability.CHANGE_ARGUMENTS_OR_POLICY,
        retry_safe=True,
        arguments_must_change=True,
    ),
    ErrorSpec(
        ErrorClass.APPROVAL_REJECTED,
        "AT-302",
        Recoverability.APPROVAL_NEEDED,
        retry_safe=True,
        approval_required=True,
    ),
    ErrorSpec(
        ErrorClass.POLICY_BLOCKED,
        "AT-303",
        Recoverability.CHANGE_ARGUMENTS_OR_POLICY,
        retry_safe=True,
    ),
    ErrorSpec(
        ErrorClass.HOOK_BLOCKED,
        "AT-304",
        Recoverability.CHANGE_ARGUMENTS_OR_POLICY,
        retry_safe=True,
        arguments_must_change=True,
    ),
    ErrorSpec(
        ErrorClass.HOOK_FAILED,
        "AT-305",
        Recoverability.RETRY_LATER,
        retry_safe=True,
    ),
    # AT-4xx: what the runtime lacks
    ErrorSpec(
        ErrorClass.CAPABILITY_GAP,
        "AT-401",
        Recoverability.NOT_RECOVERABLE,
    ),
    ErrorSpec(
        ErrorClass.SETUP_REQUIRED,
        "AT-402",
        Recoverability.SETUP_NEEDED,
        retry_safe=True,
    ),
    ErrorSpec(
        ErrorClass.CREDENTIAL_MISSING,
        "AT-403",
        Recoverability.SETUP_NEEDED,
        retry_safe=True,
    ),
    # AT-5xx: running
    ErrorSpec(
        ErrorClass.SANDBOX_VIOLATION,
        "AT-501",
        Recoverability.CHANGE_ARGUMENTS,
        arguments_must_change=True,
    ),
    ErrorSpec(
        ErrorClass.EXECUTION_FAILED,
        "AT-502",
        Recoverability.UNKNOWN,
    ),
    ErrorSpec(
        ErrorClass.PARTIAL_FAILURE,
        "AT-503",
        Recoverability.UNKNOWN,
    ),
    ErrorSpec(
        ErrorClass.TIMEOUT,
        "AT-504",
        Recoverability.RETRY_LATER,
    ),
    ErrorSpec(
        ErrorClass.RATE_LIMITED,
        "AT-505",
        Recoverability.RETRY_LATER,
        retry_safe=True,
    ),
    ErrorSpec(
        ErrorClass.DEPENDENCY_UNAVAILABLE,
        "AT-506",
        Recoverability.RETRY_LATER,
        retry_safe=True,
    ),
    ErrorSpec(
        ErrorClass.CANCELED,
        "AT-507",
        Recoverability.RETRY_SAFE,
    ),
    ErrorSpec(
        ErrorClass.SIBLING_CANCELED,
        "AT-508",
        Recoverability.SIBLING_CAUSED,
        sibling_caused=True,
    ),
    ErrorSpec(
        ErrorClass.STREAMING_FALLBACK_DISCARDED,
        "AT-509",
        Recoverability.RETRY_SAFE,
    ),
    # AT-6xx: the result
    ErrorSpec(
        ErrorClass.RESULT_MAPPING_FAILED,
        "AT-601",
        Recoverability.NOT_RECOVERABLE,
    ),
    ErrorSpec(
        ErrorClass.POST_HOOK_FAILED,
        "AT-602",
        Recoverability.NOT_RECOVERABLE,
    ),
    ErrorSpec(
        ErrorClass.RESULT_TOO_LARGE,
        "AT-603",
        Recoverability.CHANGE_ARGUMENTS,
        arguments_must_change=True,
    ),
    ErrorSpec(
        ErrorClass.RESULT_REDACTED,
        "AT-604",
        Recoverability.NOT_RECOVERABLE,
    ),
)

TAXONOMY: Final[dict[ErrorClass, ErrorSpec]] = {spec.error_class: spec for spec in _SPECS}
"""One row for each error class of the standard; a test keeps the table complete and the
codes unique.
"""
