"""The standard's error classes and what each means for a retry, as one table."""

from __future__ import annotations

from typing import Final, NamedTuple

from agenttool_otel.names import ErrorClass, Recoverability
from agenttool_otel.values.tables import load_table


class ErrorSpec(NamedTuple):
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


TAXONOMY: Final[dict[ErrorClass, ErrorSpec]] = {
    ErrorClass(name): ErrorSpec(
        ErrorClass(name), code, Recoverability(word), **dict.fromkeys(facts, True)
    )
    for name, (code, word, *facts) in load_table(__package__, "taxonomy.json").items()
}
"""One row for each error class of the standard; a test keeps the table complete and the
codes unique.
"""
