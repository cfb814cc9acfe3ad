"""Any return value as the standard's content, once (standard, "Result envelope", "Result mapping
once").

Nothing here runs for a plain decorated call; an envelope is built when somebody asks for one. What
the model gets, what an interface says in one line and what a transcript search finds are three
texts, not one.
"""

from __future__ import annotations

import base64
import hashlib
import mimetypes
import os
import stat
from pathlib import PurePath
from typing import Any, Final

from agenttool_otel.names import ContentType
from agenttool_otel.records.base import JsonObject
from agenttool_otel.results.content.blocks import TEXTUAL, MappedContent, foreign_block
from agenttool_otel.results.content.json_stream import json_text
from agenttool_otel.results.content.libraries import IMAGE, encode_image, library_type
from agenttool_otel.results.content.media import content_class, sniff
from agenttool_otel.results.content.native import native_content
from agenttool_otel.results.content.preview import preview
from agenttool_otel.results.content.shown import shown_with_images
from agenttool_otel.values.conversion import JsonLike, to_json_value
from agenttool_otel.values.inspection import Kind, class_name, kind_of

_C = ContentType
EMPTY_TEXT: Final = "(no output)"
"""What stands for a tool that returned nothing, so that nobody takes it for output that was lost.
"""

_EMPTY_BLOCK: Final[JsonObject] = {"type": _C.TEXT.value, "text": EMPTY_TEXT, "empty": True}
_MAX_MODEL_CHARS: Final = 1_000_000
_MAX_TRANSCRIPT_CHARS: Final = 20_000
_INLINE_FOR_MODEL: Final = frozenset(
    {_C.TEXT.value, _C.IMAGE.value, _C.RESOURCE_LINK.value, _C.EMBEDDED_RESOURCE.value}
)
_MAX_INLINE_BYTES: Final = 1 << 18
_MAX_BLOCKS: Final = 1000


def map_content(value: Any) -> MappedContent:
    """Map a return value, redacted where that is due, to content; never raises, never reads an
    iterator or a file.
    """
    try:
        mapped = _map(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a subclass's own methods may raise anything
        mapped = MappedContent(
            [{"type": _C.TEXT.value, "text": f"[result of {class_name(type(value))} not shown]"}]
        )
        mapped.schema_errors = [f"mapping: {class_name(type(error))}"]
    _add_views(mapped)
    return mapped


def _map(value: Any) -> MappedContent:
    kind = kind_of(value)
    if kind is Kind.NONE or (kind is Kind.TEXT and not value):
        return MappedContent([dict(_EMPTY_BLOCK)])
    if kind is Kind.TEXT:
        return MappedContent([_text_block(value if type(value) is str else str.__str__(value))])
    if kind is Kind.BYTES:
        view = memoryview(value)
        return MappedContent([_bytes_block(view) if view.nbytes else dict(_EMPTY_BLOCK)])
    if kind is Kind.PATH:
        return MappedContent([_file_block(value)])
    if isinstance(value, BaseException):
        return MappedContent(
            [{"type": _C.LOG.value, "level": "error", "text": class_name(type(value))}]
        )
    if (block := foreign_block(value)) is not None:
        return _from_blocks([block])
    if (native := native_content(value)) is not None:
        if native.structured_content is None:
            native.structured_content = _single_structured(native.content)
        return native
    if kind is Kind.SEQUENCE and 0 < len(value) <= _MAX_BLOCKS:
        blocks = [_listed_block(item) for item in list(value)]
        if all(found is not None for found in blocks):
            return _from_blocks([found for found in blocks if found is not None])
    if library_type(value) is IMAGE:
        return MappedContent([_image_block(value)])
    return _structured(*shown_with_images(value))


def _structured(data: JsonLike, images: list[Any]) -> MappedContent:
    """Return data as content, and the images that are in it: the data holds only how large
    they are.
    """
    return MappedContent(
        [{"type": _C.STRUCTURED_CONTENT.value, "data": data}, *map(_image_block, images)], data
    )


def _from_blocks(blocks: list[JsonObject]) -> MappedContent:
    return MappedContent(blocks, _single_structured(blocks))


def _single_structured(blocks: list[JsonObject]) -> JsonLike:
    found = [block.get("data") for block in blocks if block["type"] == _C.STRUCTURED_CONTENT.value]
    return found[0] if len(found) == 1 else None


def _text_block(text: str) -> JsonObject:
    if text.startswith(("diff --git ", "--- ")) and "\n@@ " in text[:4096]:
        return {"type": _C.DIFF.value, "text": text, "media_type": "text/x-diff"}
    return {"type": _C.TEXT.value, "text": text}


def _bytes_block(view: memoryview) -> JsonObject:
    flat = view.cast("B") if view.contiguous else memoryview(view.tobytes())
    media_type = sniff(flat)
    kind = content_class(media_type)
    if kind in (_C.TEXT, _C.DIFF) and flat.nbytes <= _MAX_MODEL_CHARS:
        return {
            "type": kind.value,
            "text": bytes(flat).decode("utf-8", "backslashreplace"),
            "media_type": media_type,
        }
    block: JsonObject = {
        "type": (_C.FILE if kind is _C.TEXT else kind).value,
        "media_type": media_type,
        "size_bytes": flat.nbytes,
        "digest": f"sha256:{hashlib.sha256(flat).hexdigest()}",
    }
    if flat.nbytes <= _MAX_INLINE_BYTES:
        block["data"] = base64.b64encode(flat).decode("ascii")
    else:
        block["omitted"] = "too_large"
    return block


def _image_block(image: Any) -> JsonObject:
    encoded = encode_image(image)
    block = (
        _bytes_block(memoryview(encoded))
        if encoded
        else {"type": _C.IMAGE.value, "omitted": "not_encoded"}
    )
    return {**block, "width": image.width, "height": image.height, "mode": str(image.mode)}


def _file_block(path: Any) -> JsonObject:
    text = PurePath.__str__(path)
    block: JsonObject = {
        "type": _C.FILE.value,
        "path": to_json_value(text),
        "name": to_json_value(os.path.basename(text)),
    }
    if guessed := mimetypes.guess_type(text)[0]:
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
    """Return an item of a list as a block: blocks, LangChain documents, images and binary
    payloads.
    """
    if (block := foreign_block(item)) is not None:
        return block
    native = native_content(item)
    return native.content[0] if native is not None and len(native.content) == 1 else None


def _add_views(mapped: MappedContent) -> None:
    """Make the model's, the interface's and the transcript's views from the content."""
    if not mapped.content:
        mapped.content = [dict(_EMPTY_BLOCK)]
    searchable: list[str] = []
    for block in mapped.content:
        word = block["type"]
        text = block.get("text")
        if word in TEXTUAL and isinstance(text, str):
            if not block.get("empty"):
                searchable.append(text[: _MAX_TRANSCRIPT_CHARS * 2])
            if word != _C.LOG.value:
                mapped.model_facing.append({"type": _C.TEXT.value, "text": text})
        elif word == _C.STRUCTURED_CONTENT.value:
            shown = json_text(block.get("data"), max_chars=_MAX_MODEL_CHARS)
            text = shown if shown is not None else "[structured content too large to show]"
            searchable.append(text[: _MAX_TRANSCRIPT_CHARS * 2])
            mapped.model_facing.append({"type": _C.TEXT.value, "text": text})
        elif word in _INLINE_FOR_MODEL and "omitted" not in block:
            mapped.model_facing.append(block)
            resource = block.get("resource")
            if isinstance(resource, dict) and isinstance(resource.get("text"), str):
                searchable.append(resource["text"][: _MAX_TRANSCRIPT_CHARS * 2])
        elif word not in (_C.ARTIFACT_REF.value, _C.HANDOFF_REF.value):
            mapped.model_facing.append({"type": _C.TEXT.value, "text": f"[{_describe(block)}]"})
        if word in (_C.RESOURCE_LINK.value, _C.PERSISTED_OUTPUT_REF.value):
            mapped.resource_refs.append(
                {name: item for name, item in block.items() if name != "type"}
            )
        elif word == _C.ARTIFACT_REF.value:
            mapped.artifact_refs.append(
                {name: item for name, item in block.items() if name != "type"}
            )
    if not mapped.model_facing:
        mapped.model_facing = [{"type": _C.TEXT.value, "text": EMPTY_TEXT}]
    mapped.transcript_text = preview("\n".join(searchable), _MAX_TRANSCRIPT_CHARS).text
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
