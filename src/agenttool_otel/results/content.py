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
from pathlib import PurePath
from typing import Any, Final

from agenttool_otel.names import ContentType, RedactionState
from agenttool_otel.records.base import JsonObject
from agenttool_otel.records.conversion import JsonLike, to_json_value
from agenttool_otel.records.inspection import Kind, class_name, kind_of
from agenttool_otel.results.blocks import foreign_block
from agenttool_otel.results.content_views import (
    EMPTY_BLOCK,
    EMPTY_TEXT,
    MAX_MODEL_CHARS,
    TEXTUAL,
    MappedContent,
    add_views,
)
from agenttool_otel.results.libraries import encode_image, library_content, library_type
from agenttool_otel.results.media import content_class, sniff
from agenttool_otel.results.native_results import native_content
from agenttool_otel.results.transform import Transform
from agenttool_otel.results.validation import OutputValidator

__all__ = ["EMPTY_TEXT", "MappedContent", "content_types_of", "map_content"]

_C = ContentType
_MAX_INLINE_BYTES: Final = 1 << 18
_MAX_BLOCKS: Final = 1000


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
        native = native_content(value)
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
    add_views(mapped)
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
            return MappedContent([dict(EMPTY_BLOCK)])
        if kind is Kind.TEXT:
            return MappedContent([self._text(value if type(value) is str else str.__str__(value))])
        if kind is Kind.BYTES:
            view = memoryview(value)
            return MappedContent([self._payload(view) if view.nbytes else dict(EMPTY_BLOCK)])
        if kind is Kind.PATH:
            return MappedContent([_file_block(value)])
        if isinstance(value, BaseException):
            return MappedContent([{"type": _C.LOG.value, "level": "error", "text": class_name(type(value))}])
        block = foreign_block(value)
        if block is not None:
            return self._blocks([block])
        native = native_content(value)
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
            if block["type"] in TEXTUAL and isinstance(block.get("text"), str):
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
        if kind in (_C.TEXT, _C.DIFF) and flat.nbytes <= MAX_MODEL_CHARS:
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
    native = native_content(item)
    if native is not None and len(native.content) == 1:
        return native.content[0]
    return None
