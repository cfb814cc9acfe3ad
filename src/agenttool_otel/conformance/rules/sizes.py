"""What is inline fits the limit, and a preview is no larger than the whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, Final

from agenttool_otel.conformance.rules.journal import (
    CallRecords,
    Journal,
    Record,
    Violation,
    texts_of,
)

_BYTES_A_CHARACTER: Final = 4  # at most, in UTF-8
_REFERENCE_CHARS: Final = 400  # of the line that names where the whole is
_CONTENT: Final = ("content", "model_facing_content", "structured_content")
_NOT_INLINE: Final = {"preview_and_persist", "ref_only", "drop_with_reason"}


def previews_are_smaller(journal: Journal) -> Iterator[Violation]:
    """A preview is no larger than the whole, nor than the limit; what is inline fits the limit."""
    for entry in journal.of("tool_result_persistence"):
        for message in _persistence_faults(entry.record):
            yield Violation("size.preview", message, (entry.id,))


def _persistence_faults(record: Record) -> Iterator[str]:
    whole = record.get("original_size_bytes")
    preview = record.get("preview_size_bytes")
    limit = (record.get("threshold") or {}).get("max_inline_chars")
    if whole is not None and preview is not None and preview > max(whole, _REFERENCE_CHARS):
        yield f"a preview of {preview} bytes is larger than the whole of {whole}"
    if limit is None:
        return
    allowed = _BYTES_A_CHARACTER * limit
    # 10 characters hold no "Full output saved to agent-runtime://...": the line stands alone
    if preview is not None and preview > max(allowed, _REFERENCE_CHARS):
        yield f"a preview of {preview} bytes is larger than the limit of {limit} characters"
    is_inline = record["strategy"] == "inline"
    if is_inline and whole is not None and whole > allowed:
        yield f"{whole} bytes are inline, where the limit is {limit} characters"


def inline_content_fits(journal: Journal) -> Iterator[Violation]:
    """No content of a result is longer than the tool's limit, or than the line that names where the
    whole is.
    """
    limits = _limits(journal)
    for call in journal.calls.values():
        limit = _limit_of(call, limits)
        if limit is None:
            continue
        for result in call.of("tool_result"):
            for message in _content_faults(call, result, limit):
                yield Violation("size.inline", message, (call.id, result["result_id"]))


def _content_faults(call: CallRecords, result: Record, limit: int) -> Iterator[str]:
    strategies = {
        record["decision_id"]: record["strategy"] for record in call.of("tool_result_persistence")
    }
    refs = result.get("persistence_refs") or ()
    is_elsewhere = any(strategies.get(ref) in _NOT_INLINE for ref in refs)
    allowed = max(limit, _REFERENCE_CHARS) if is_elsewhere else limit
    for name in _CONTENT:
        size = _chars(result.get(name))
        if size > allowed:
            yield f"{name} of {size} characters, where the limit is {limit}"


def _limits(journal: Journal) -> dict[str, int]:
    """The limits of the tools, by their ids."""
    limits = {}
    for entry in journal.of("tool_interface"):
        limit = entry.record.get("max_inline_chars")
        if limit is not None:
            limits[entry.record["tool_id"]] = limit
    return limits


def _limit_of(call: CallRecords, limits: dict[str, int]) -> int | None:
    """The least of the tool's limit and of what decisions oblige to."""
    known = []
    invocation = call.invocation
    if invocation is not None:
        known.append(limits.get(invocation["tool_id"]))
    for decision in call.of("tool_permission_decision"):
        obligations = decision.get("obligations") or {}
        known.append(obligations.get("max_inline_chars"))
    stated = [limit for limit in known if limit is not None]
    return min(stated, default=None)


def _chars(content: Any) -> int:
    """How long a content is: the texts of its blocks, or its JSON."""
    if content is None:
        return 0
    if not isinstance(content, list):
        return len(json.dumps(content, ensure_ascii=False))
    total = 0
    for block in content:
        shown = block
        if isinstance(block, dict):
            shown = dict(block)
            # "text" of {"type": "text"} is no text of the result
            shown.pop("type", None)
        for text in texts_of(shown):
            total += len(text)
    return total
