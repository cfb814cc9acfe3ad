"""What a result looks like to a model, in an interface and to a transcript search: three texts of one content."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from agenttool_otel.names import ContentType, RedactionState
from agenttool_otel.records.base import JsonObject
from agenttool_otel.records.conversion import JsonLike
from agenttool_otel.results.json_stream import json_text
from agenttool_otel.results.preview import preview

__all__ = ["EMPTY_BLOCK", "EMPTY_TEXT", "MAX_MODEL_CHARS", "TEXTUAL", "MappedContent", "add_views"]

EMPTY_TEXT: Final = "(no output)"
"""What stands for a tool that returned nothing, so that nobody takes it for output that was lost."""

_C = ContentType
EMPTY_BLOCK: Final = {"type": ContentType.TEXT.value, "text": EMPTY_TEXT, "empty": True}
TEXTUAL: Final = frozenset({_C.TEXT.value, _C.LOG.value, _C.DIFF.value})
"""Content classes whose blocks hold a ``text``."""

MAX_MODEL_CHARS: Final = 1_000_000
"""Longest text that is shown to a model where no limit was stated."""

_MAX_TRANSCRIPT: Final = 20_000
_INLINE_FOR_MODEL: Final = frozenset(
    {_C.TEXT.value, _C.IMAGE.value, _C.RESOURCE_LINK.value, _C.EMBEDDED_RESOURCE.value}
)


@dataclass(slots=True)
class MappedContent:
    """The representations of one result.

    Attributes:
        content: content blocks of the envelope.
        structured_content: machine-readable form, where the result has one.
        model_facing: content blocks for the model.
        ui_summary: one line that says what it is; it holds no content.
        transcript_text: text meant to be found in a transcript.
        resource_refs: fetchable resources among the content.
        artifact_refs: durable deliverables among the content.
        is_error: the native result says that the call failed (MCP ``isError``, LangChain ``status="error"``).
        redaction_state: what the transform did.
        schema_errors: where the structured content does not fit the output schema, as pointer and keyword.
    """

    content: list[JsonObject] = field(default_factory=list)
    structured_content: JsonLike = None
    model_facing: list[JsonObject] = field(default_factory=list)
    ui_summary: str = ""
    transcript_text: str = ""
    resource_refs: list[JsonObject] = field(default_factory=list)
    artifact_refs: list[JsonObject] = field(default_factory=list)
    is_error: bool = False
    redaction_state: RedactionState = RedactionState.NONE
    schema_errors: list[str] = field(default_factory=list)


def add_views(mapped: MappedContent) -> None:
    """Make the model's, the interface's and the transcript's views from the (redacted) content.

    Args:
        mapped: a result of which the content is there.
    """
    if not mapped.content:
        mapped.content = [dict(EMPTY_BLOCK)]
    searchable: list[str] = []
    for block in mapped.content:
        word = block["type"]
        text = block.get("text")
        if word in TEXTUAL and isinstance(text, str):
            if not block.get("empty"):
                searchable.append(text[: _MAX_TRANSCRIPT * 2])
            if word != _C.LOG.value:
                mapped.model_facing.append({"type": _C.TEXT.value, "text": text})
        elif word == _C.STRUCTURED_CONTENT.value:
            shown = json_text(block.get("data"), max_chars=MAX_MODEL_CHARS)
            text = shown if shown is not None else "[structured content too large to show]"
            searchable.append(text[: _MAX_TRANSCRIPT * 2])
            mapped.model_facing.append({"type": _C.TEXT.value, "text": text})
        elif word in _INLINE_FOR_MODEL and "omitted" not in block:
            mapped.model_facing.append(block)
            resource = block.get("resource")
            if isinstance(resource, dict) and isinstance(resource.get("text"), str):
                searchable.append(resource["text"][: _MAX_TRANSCRIPT * 2])
        elif word not in (_C.ARTIFACT_REF.value, _C.HANDOFF_REF.value):
            mapped.model_facing.append({"type": _C.TEXT.value, "text": f"[{_describe(block)}]"})
        if word in (_C.RESOURCE_LINK.value, _C.PERSISTED_OUTPUT_REF.value):
            mapped.resource_refs.append({name: item for name, item in block.items() if name != "type"})
        elif word == _C.ARTIFACT_REF.value:
            mapped.artifact_refs.append({name: item for name, item in block.items() if name != "type"})
    if not mapped.model_facing:
        mapped.model_facing = [{"type": _C.TEXT.value, "text": EMPTY_TEXT}]
    mapped.transcript_text = preview("\n".join(searchable), _MAX_TRANSCRIPT).text
    described = [_describe(block) for block in mapped.content[:5]]
    more = len(mapped.content) - len(described)
    mapped.ui_summary = "; ".join(described) + (f"; and {more} more" if more else "")


def _describe(block: JsonObject) -> str:
    """Say what a block is, in a few words without content."""
    word = str(block["type"])
    if block.get("empty"):
        return "no output"
    text = block.get("text")
    if isinstance(text, str):
        return f"{word}, {len(text):,} characters, {text.count(chr(10)) + 1:,} lines"
    if word == _C.STRUCTURED_CONTENT.value:
        data = block.get("data")
        if isinstance(data, dict):
            return f"object, {len(data):,} members"
        return f"list, {len(data):,} items" if isinstance(data, list) else type(data).__name__
    facts = [word]
    if isinstance(block.get("media_type"), str):
        facts.append(block["media_type"])
    if isinstance(block.get("size_bytes"), int):
        facts.append(f"{block['size_bytes']:,} bytes")
    return ", ".join(facts)
