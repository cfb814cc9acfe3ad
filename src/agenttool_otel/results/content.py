"""Any return value as the standard's content, once (standard, "Result envelope", "Result mapping once").

Nothing here runs for a plain decorated call; an envelope is built when somebody asks for one. What the model gets, what
an interface says in one line and what a transcript search finds are three texts, not one.
"""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import os
import stat
from dataclasses import dataclass, field
from pathlib import PurePath
from subprocess import CompletedProcess
from typing import Any, Final

from agenttool_otel.names import ContentType, RedactionState
from agenttool_otel.records.base import JsonObject
from agenttool_otel.records.conversion import JsonLike, to_json_value
from agenttool_otel.records.inspection import Kind, class_name, kind_of, mapping_items, mro_names
from agenttool_otel.results.blocks import Block, foreign_block
from agenttool_otel.results.json_stream import json_text
from agenttool_otel.results.libraries import encode_image, library_content, library_type
from agenttool_otel.results.media import content_class, sniff
from agenttool_otel.results.preview import preview
from agenttool_otel.results.transform import Transform
from agenttool_otel.results.validation import OutputValidator

__all__ = ["EMPTY_TEXT", "MappedContent", "content_types_of", "map_content"]

EMPTY_TEXT: Final = "(no output)"
"""What stands for a tool that returned nothing, so that nobody takes it for output that was lost."""

_C = ContentType
_EMPTY: Final = {"type": ContentType.TEXT.value, "text": EMPTY_TEXT, "empty": True}
_MAX_INLINE_BYTES: Final = 1 << 18
_MAX_MODEL_CHARS: Final = 1_000_000
_MAX_TRANSCRIPT: Final = 20_000
_MAX_BLOCKS: Final = 1000
_TEXTUAL: Final = frozenset({_C.TEXT.value, _C.LOG.value, _C.DIFF.value})
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


def content_types_of(value: Any) -> tuple[ContentType, ...]:
    """Return the content classes that ``map_content`` would give, without mapping anything large.

    Args:
        value: what a tool returned.
    """
    kind = kind_of(value)
    if kind in (Kind.NONE, Kind.TEXT):
        return (_C.TEXT,)
    if kind is Kind.BYTES:
        return (content_class(sniff(bytes(memoryview(value).cast("B")[:512]))),) if _is_flat(value) else (_C.FILE,)
    if kind is Kind.PATH:
        return (_C.FILE,)
    if kind is Kind.OPAQUE:
        return (_C.IMAGE,) if library_type(value) == "image" else (_C.STRUCTURED_CONTENT,)
    if type(value) is list and 0 < len(value) <= _MAX_BLOCKS:
        found = [foreign_block(item) for item in value[:20]]
        if all(block is not None for block in found):
            return tuple(dict.fromkeys(_C(block["type"]) for block in found if block is not None))
    if kind in (Kind.MAPPING, Kind.MODEL, Kind.DATACLASS):
        native = _native(value)
        if native is not None:
            return tuple(dict.fromkeys(_C(block["type"]) for block in native.content)) or (_C.TEXT,)
    return (_C.STRUCTURED_CONTENT,)


def _is_flat(value: Any) -> bool:
    return type(value) is not memoryview or value.contiguous


def map_content(
    value: Any,
    *,
    transform: Transform | None = None,
    validator: OutputValidator | None = None,
    max_inline_bytes: int = _MAX_INLINE_BYTES,
) -> MappedContent:
    """Map a return value to content; never raises, and never reads an iterator or a file.

    Args:
        value: what a tool returned.
        transform: redaction; every text and value passes it before anything is made of it.
        validator: checks the structured content against the output contract's schema.
        max_inline_bytes: largest binary payload that is put into a block; a larger one is named by digest and size.
    """
    mapper = _Mapper(transform, max_inline_bytes)
    try:
        mapped = mapper.map(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a subclass's own methods may raise anything
        mapped = MappedContent([{"type": _C.TEXT.value, "text": f"[result of {class_name(type(value))} not shown]"}])
        mapped.redaction_state = RedactionState.FAILED if mapper.redaction_failed else RedactionState.NONE
        mapped.schema_errors = [f"mapping: {class_name(type(error))}"]
    if mapper.changed and mapped.redaction_state is RedactionState.NONE:
        mapped.redaction_state = RedactionState.REDACTED
    if validator is not None:
        mapped.schema_errors += validator.check(mapped.structured_content)
    _derive(mapped)
    return mapped


class _Mapper:
    """One mapping, with its redaction."""

    def __init__(self, transform: Transform | None, max_inline_bytes: int) -> None:
        self._transform = transform
        self._max_bytes = max_inline_bytes
        self.changed = False
        self.redaction_failed = False

    def map(self, value: Any) -> MappedContent:
        kind = kind_of(value)
        if kind is Kind.NONE or (kind is Kind.TEXT and not value):
            return MappedContent([dict(_EMPTY)])
        if kind is Kind.TEXT:
            return MappedContent([self._text(value if type(value) is str else str.__str__(value))])
        if kind is Kind.BYTES:
            view = memoryview(value)
            return MappedContent([self._payload(view) if view.nbytes else dict(_EMPTY)])
        if kind is Kind.PATH:
            return MappedContent([_file_block(value)])
        if isinstance(value, BaseException):
            return MappedContent([{"type": _C.LOG.value, "level": "error", "text": class_name(type(value))}])
        block = foreign_block(value)
        if block is not None:
            return self._blocks([block])
        native = _native(value)
        if native is not None:
            return self._native(native)
        if kind is Kind.SEQUENCE and 0 < len(value) <= _MAX_BLOCKS:
            blocks = [_listed_block(item) for item in list(value)]
            if all(found is not None for found in blocks):
                return self._blocks([found for found in blocks if found is not None])
        if kind is Kind.OPAQUE:
            return self._opaque(value)
        return self._structured(to_json_value(value))

    def _opaque(self, value: Any) -> MappedContent:
        known = library_content(value)
        if known is None:
            return self._structured(to_json_value(value))
        kind, data = known
        if kind is not _C.IMAGE:
            return self._structured(data)
        encoded = encode_image(value)
        block = self._payload(memoryview(encoded)) if encoded else {"type": kind.value, "omitted": "not_encoded"}
        return MappedContent([{**block, **data}])

    def _native(self, native: MappedContent) -> MappedContent:
        mapped = self._blocks(native.content)
        mapped.is_error = native.is_error
        if native.structured_content is not None:
            mapped.structured_content = self._clean(native.structured_content)
        return mapped

    def _structured(self, data: JsonLike) -> MappedContent:
        cleaned = self._clean(data)
        return MappedContent([{"type": _C.STRUCTURED_CONTENT.value, "data": cleaned}], cleaned)

    def _blocks(self, blocks: list[JsonObject]) -> MappedContent:
        kept: list[JsonObject] = []
        for block in blocks:
            if block["type"] in _TEXTUAL and isinstance(block.get("text"), str):
                kept.append({**block, "text": self._clean_text(block["text"])})
            elif "data" in block and isinstance(block["data"], str):
                # Encoded bytes are not text; what surrounds them is.
                rest = self._clean({name: item for name, item in block.items() if name != "data"})
                kept.append({**(rest if isinstance(rest, dict) else {}), "data": block["data"]})
            else:
                cleaned = self._clean(block)
                kept.append(cleaned if isinstance(cleaned, dict) else {"type": block["type"]})
            kept[-1]["type"] = block["type"]
        return MappedContent(kept, _single_structured(kept))

    def _text(self, text: str) -> JsonObject:
        cleaned = self._clean_text(text)
        if text.startswith(("diff --git ", "--- ")) and "\n@@ " in text[:4096]:
            return {"type": _C.DIFF.value, "text": cleaned, "media_type": "text/x-diff"}
        return {"type": _C.TEXT.value, "text": cleaned}

    def _payload(self, view: memoryview) -> JsonObject:
        flat = view.cast("B") if view.contiguous else memoryview(view.tobytes())
        media_type = sniff(flat)
        kind = content_class(media_type)
        if kind in (_C.TEXT, _C.DIFF) and flat.nbytes <= _MAX_MODEL_CHARS:
            text = bytes(flat).decode("utf-8", "backslashreplace")
            return {"type": kind.value, "text": self._clean_text(text), "media_type": media_type}
        block: JsonObject = {
            "type": (_C.FILE if kind is _C.TEXT else kind).value,
            "media_type": media_type,
            "size_bytes": flat.nbytes,
            "digest": f"sha256:{hashlib.sha256(flat).hexdigest()}",
        }
        if flat.nbytes <= self._max_bytes:
            block["data"] = base64.b64encode(flat).decode("ascii")
        else:
            block["omitted"] = "too_large"
        return block

    def _clean_text(self, text: str) -> str:
        if self._transform is None:
            return text
        self.redaction_failed = True
        cleaned = self._transform.text(text)
        if type(cleaned) is not str:
            raise TypeError("redaction gave no text")
        self.redaction_failed = False
        self.changed = self.changed or cleaned != text
        return cleaned

    def _clean(self, data: JsonLike) -> JsonLike:
        if self._transform is None:
            return data
        self.redaction_failed = True
        cleaned = to_json_value(self._transform.value(data, ""))
        self.redaction_failed = False
        self.changed = self.changed or cleaned != data
        return cleaned


def _single_structured(blocks: list[JsonObject]) -> JsonLike:
    found = [block.get("data") for block in blocks if block["type"] == _C.STRUCTURED_CONTENT.value]
    return found[0] if len(found) == 1 else None


def _file_block(path: Any) -> JsonObject:
    text = PurePath.__str__(path)
    block: JsonObject = {
        "type": _C.FILE.value,
        "path": to_json_value(text),
        "name": to_json_value(os.path.basename(text)),
    }
    guessed = mimetypes.guess_type(text)[0]
    if guessed:
        block["media_type"] = guessed
    try:
        status = os.stat(text)
    except (OSError, ValueError):
        block["omitted"] = "not_found"
        return block
    if stat.S_ISREG(status.st_mode):
        block["size_bytes"] = status.st_size
    return block


def _listed_block(item: Any) -> JsonObject | None:
    """Return an item of a list as a block: blocks, LangChain documents, images and binary payloads."""
    block = foreign_block(item)
    if block is not None:
        return block
    native = _native(item)
    if native is not None and len(native.content) == 1:
        return native.content[0]
    return None


def _native(value: Any) -> MappedContent | None:
    """Return the blocks of a native result: MCP, LangChain, LangGraph, subprocess; ``None`` for anything else."""
    kind = kind_of(value)
    if type(value) is CompletedProcess:
        return _process(value)
    if type(value) is dict:
        if isinstance(value.get("content"), list) and _MCP_MEMBERS.issuperset(value) and len(value) > 1:
            return _mcp(value)
        return None
    if kind not in (Kind.MODEL, Kind.DATACLASS) and kind is not Kind.OPAQUE:
        return None
    for name in mro_names(type(value)):
        package, _, _ = name.partition(".")
        word = name.rpartition(".")[2]
        if package in ("mcp", "mcp_types", "fastmcp") and word in ("CallToolResult", "ToolResult"):
            fields = dict(mapping_items(value, kind, 50)) if kind is not Kind.OPAQUE else _opaque_fields(value)
            return _mcp(fields)
        if package == "langchain_core" and word == "ToolMessage":
            return _tool_message(dict(mapping_items(value, kind, 50)))
        if package == "langchain_core" and word == "Document":
            return _document(dict(mapping_items(value, kind, 50)))
        if package == "langgraph" and word == "Command":
            return _command(dict(mapping_items(value, kind, 50)))
    return None


_MCP_MEMBERS: Final = frozenset(
    {"content", "isError", "is_error", "structuredContent", "structured_content", "_meta", "meta", "result_type"}
)


def _opaque_fields(value: Any) -> dict[str, Any]:
    return {name: getattr(value, name, None) for name in ("content", "structured_content", "meta")}


def _mcp(fields: dict[str, Any]) -> MappedContent | None:
    items = fields.get("content") or []
    blocks = [foreign_block(item) for item in items] if isinstance(items, list) else []
    if any(block is None for block in blocks):
        return None
    stated = fields.get("structuredContent", fields.get("structured_content"))
    return MappedContent(
        [block for block in blocks if block is not None],
        None if stated is None else to_json_value(stated),
        is_error=(fields.get("isError") or fields.get("is_error")) is True,
    )


def _tool_message(fields: dict[str, Any]) -> MappedContent:
    content = fields.get("content")
    blocks: list[JsonObject] = []
    for item in content if isinstance(content, list) else [content]:
        if type(item) is str:
            blocks.append(Block.text(item).to_block())
        else:
            blocks.append(foreign_block(item) or {"type": _C.STRUCTURED_CONTENT.value, "data": to_json_value(item)})
    artifact = fields.get("artifact")
    if artifact is not None:
        # The model does not see an artifact, so neither do its content blocks: a reference says that there is one.
        reference = Block.artifact(
            str(fields.get("tool_call_id") or "artifact"), native_type=class_name(type(artifact))
        )
        blocks.append(reference.to_block())
    return MappedContent(blocks, is_error=fields.get("status") == "error")


def _document(fields: dict[str, Any]) -> MappedContent:
    metadata = to_json_value(fields.get("metadata"))
    source = metadata.get("source") if isinstance(metadata, dict) else None
    block = Block.embedded_resource(str(source or fields.get("id") or ""), str(fields.get("page_content") or ""))
    return MappedContent([{**block.to_block(), "_meta": metadata}])


def _command(fields: dict[str, Any]) -> MappedContent | None:
    goto = to_json_value(fields.get("goto"))
    update = to_json_value(fields.get("update"))
    targets = goto if isinstance(goto, list) else [goto] if goto else []
    blocks = [Block.handoff(item if isinstance(item, str) else "send").to_block() for item in targets]
    if not blocks and update is None:
        return None
    if update is not None:
        blocks.append({"type": _C.STRUCTURED_CONTENT.value, "data": update})
    return MappedContent(blocks, update)


def _process(value: CompletedProcess[Any]) -> MappedContent:
    code = value.returncode
    blocks: list[JsonObject] = []
    for name, output in (("stdout", value.stdout), ("stderr", value.stderr)):
        if output:
            text = output if type(output) is str else bytes(output).decode("utf-8", "backslashreplace")
            kind = _C.TEXT if name == "stdout" else _C.LOG
            blocks.append({"type": kind.value, "text": text, "stream": name})
    return MappedContent(blocks, {"exit_code": to_json_value(code)}, is_error=code != 0)


def _derive(mapped: MappedContent) -> None:
    """Make the model's, the interface's and the transcript's views from the (redacted) content."""
    if not mapped.content:
        mapped.content = [dict(_EMPTY)]
    searchable: list[str] = []
    for block in mapped.content:
        word = block["type"]
        text = block.get("text")
        if word in _TEXTUAL and isinstance(text, str):
            if not block.get("empty"):
                searchable.append(text[: _MAX_TRANSCRIPT * 2])
            if word != _C.LOG.value:
                mapped.model_facing.append({"type": _C.TEXT.value, "text": text})
        elif word == _C.STRUCTURED_CONTENT.value:
            shown = json_text(block.get("data"), max_chars=_MAX_MODEL_CHARS)
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
