"""JSON in and out of the policy layer: fast where it may be, strict where it must be.

An engine must decide on exactly what will run. So tool arguments are encoded by the standard
library's encoder, which refuses NaN, infinities, bytes and foreign objects where orjson writes
``null`` or guesses; the rest of the document, already typed by its schema, goes through orjson, ten
times faster. What comes back from another process is decoded with duplicate keys, NaN, great depth
and great size refused.
"""

from __future__ import annotations

import json
from typing import Any, Final

import orjson

from agenttool_otel.errors import PolicyEvaluationError
from agenttool_otel.names import FailClosedCause
from agenttool_otel.policy.types import PolicyInput
from agenttool_otel.values.conversion import loads_unique
from agenttool_otel.values.pointers import surrogate_place

MAX_INPUT_BYTES: Final = 16 * 1024 * 1024
"""Default limit of an encoded policy input, in bytes."""

MAX_ANSWER_BYTES: Final = 1024 * 1024
"""Default limit of an engine's answer, in bytes."""

MAX_DEPTH: Final = 100
"""Levels of nesting that are accepted in arguments and answers; engines themselves give up at about
128.
"""

ENCODE_STRICT: Final = json.JSONEncoder(
    allow_nan=False, check_circular=True, ensure_ascii=False, separators=(",", ":")
).encode
_DOCUMENT_OPTIONS: Final = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME


def _invalid(what: str) -> PolicyEvaluationError:
    return PolicyEvaluationError(f"policy input: {what}", cause=FailClosedCause.INPUT_INVALID)


def encode_arguments(arguments: Any) -> bytes:
    """Encode tool arguments as JSON, refusing whatever has no exact JSON form."""
    try:
        return ENCODE_STRICT(arguments).encode("utf-8")
    except RecursionError:
        raise _invalid("the arguments are nested too deeply") from None
    except UnicodeEncodeError:
        raise _invalid("the arguments hold text that is not Unicode") from None
    except ValueError as error:
        circular = "ircular" in str(error)
        raise _invalid(
            "the arguments hold " + ("a cycle" if circular else "a number that JSON lacks")
        ) from None
    except TypeError:
        raise _invalid("the arguments hold a value that JSON lacks") from None


def encode_document(document: PolicyInput, *, limit: int = MAX_INPUT_BYTES) -> bytes:
    """Encode a policy input for an engine."""
    try:
        arguments = encode_arguments(document["input"])
        resources = encode_arguments(document["resources"])
    except KeyError:
        raise _invalid("the document has no member input or resources") from None
    if len(arguments) > limit:
        raise _invalid(f"the arguments take {len(arguments)} bytes, more than the limit of {limit}")
    try:
        free = {"input": orjson.Fragment(arguments), "resources": orjson.Fragment(resources)}
        encoded = orjson.dumps({**document, **free}, option=_DOCUMENT_OPTIONS)
    except (TypeError, ValueError, RecursionError):
        place = surrogate_place(document)
        if place is None:
            raise _invalid("the document holds a value that JSON lacks") from None
        raise _invalid(f"the document holds text that is not UTF-8, at {place}") from None
    if len(encoded) > limit:
        raise _invalid(f"the document takes {len(encoded)} bytes, more than the limit of {limit}")
    return encoded


def _depth(value: Any, limit: int) -> bool:
    """Return whether a value is nested at most ``limit`` levels deep."""
    level = [value]
    for _ in range(limit + 1):
        level = [
            child
            for item in level
            if isinstance(item, (dict, list))
            for child in (item.values() if isinstance(item, dict) else item)
            if isinstance(child, (dict, list))
        ]
        if not level:
            return True
    return False


def decode_strict(text: bytes | str, *, what: str = "answer", limit: int = MAX_ANSWER_BYTES) -> Any:
    """Decode JSON that another program wrote."""
    if len(text) > limit:
        raise PolicyEvaluationError(
            f"the {what} is larger than {limit} bytes", cause=FailClosedCause.MALFORMED
        )
    try:
        value = loads_unique(text if isinstance(text, str) else text.decode("utf-8"))
    except RecursionError:
        raise PolicyEvaluationError(
            f"the {what} is nested too deeply", cause=FailClosedCause.MALFORMED
        ) from None
    except ValueError as error:
        # the decoder's own messages quote no content, only positions
        raise PolicyEvaluationError(
            f"the {what} is not JSON: {error}", cause=FailClosedCause.MALFORMED
        ) from None
    if not _depth(value, MAX_DEPTH):
        raise PolicyEvaluationError(
            f"the {what} is nested too deeply", cause=FailClosedCause.MALFORMED
        )
    return value
