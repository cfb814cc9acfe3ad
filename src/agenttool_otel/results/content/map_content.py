"""Any return value as the standard's content, once (standard, "Result envelope", "Result mapping
once").

Nothing here runs for a plain decorated call; an envelope is built when ``.tool.invoke`` returns it. What
the model gets, what an interface shows in one line and what a transcript search finds are three
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
"""The text for a tool that returned nothing, so that it is not taken for output that was lost
(standard, "Empty output").
"""

_EMPTY_BLOCK: Final[JsonObject] = {"type": _C.TEXT.value, "text": EMPTY_TEXT, "empty": True}
_MAX_MODEL_CHARS: Final = 1_000_000
_MAX_TRANSCRIPT_CHARS: Final = 20_000
_INLINE_FOR_MODEL: Final = frozenset(
    {_C.TEXT.value, _C.IMAGE.value, _C.RESOURCE_LINK.value, _C.EMBEDDED_RESOURCE.value}
)
_REFERENCES_ONLY: Final = frozenset({_C.ARTIFACT_REF.value, _C.HANDOFF_REF.value})
_RESOURCES: Final = frozenset({_C.RESOURCE_LINK.value, _C.PERSISTED_OUTPUT_REF.value})
_MAX_INLINE_BYTES: Final = 1 << 18
_MAX_BLOCKS: Final = 1000
_MAX_DESCRIBED: Final = 5


def map_content(value: Any) -> MappedContent:
    """Map a return value, redacted where that is due, to content; never raises, never reads an
    iterator or a file.
    """
    try:
        mapped = _map(value)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a subclass's own methods may raise anything
        text = f"[result of {class_name(type(value))} not shown]"
        mapped = MappedContent([{"type": _C.TEXT.value, "text": text}])
        mapped.schema_errors = [f"mapping: {class_name(type(error))}"]
    _add_views(mapped)
    return mapped


def _map(value: Any) -> MappedContent:
    block = _block_of(value)
    if block is not None:
        return _from_blocks([block])
    native = native_content(value)
    if native is not None:
        if native.structured_content is None:
            native.structured_content = _single_structured(native.content)
        return native
    if kind_of(value) is Kind.SEQUENCE:
        blocks = _listed_blocks(value)
        if blocks:
            return _from_blocks(blocks)
    if library_type(value) is IMAGE:
        return MappedContent([_image_block(value)])
    data, images = shown_with_images(value)
    # the data holds only how large its images are, so each follows as a block
    content: list[JsonObject] = [{"type": _C.STRUCTURED_CONTENT.value, "data": data}]
    for image in images:
        content.append(_image_block(image))
    return MappedContent(content, data)


def blocks_of(value: Any) -> list[JsonObject]:
    """Return the content blocks that a tool returned as such; none of a text, bytes or data."""
    block = foreign_block(value)
    if block is not None:
        return [block]
    native = native_content(value)
    if native is not None:
        return native.content
    if kind_of(value) is Kind.SEQUENCE:
        return _listed_blocks(value) or []
    return []


def _block_of(value: Any) -> JsonObject | None:
    """Return the block of a value that is a single block: a text, bytes, a path, an exception, or a
    block of another package.
    """
    kind = kind_of(value)
    if kind is Kind.NONE:
        return dict(_EMPTY_BLOCK)
    if kind is Kind.TEXT:
        text = str.__str__(value)
        return _text_block(text) if text else dict(_EMPTY_BLOCK)
    if kind is Kind.BYTES:
        view = memoryview(value)
        return _bytes_block(view) if view.nbytes else dict(_EMPTY_BLOCK)
    if kind is Kind.PATH:
        return _file_block(value)
    if isinstance(value, BaseException):
        return {"type": _C.LOG.value, "level": "error", "text": class_name(type(value))}
    return foreign_block(value)


def _from_blocks(blocks: list[JsonObject]) -> MappedContent:
    return MappedContent(blocks, _single_structured(blocks))


def _single_structured(blocks: list[JsonObject]) -> JsonLike:
    found = [block.get("data") for block in blocks if block["type"] == _C.STRUCTURED_CONTENT]
    if len(found) != 1:
        return None
    return found[0]


def _text_block(text: str) -> JsonObject:
    if text.startswith(("diff --git ", "--- ")) and "\n@@ " in text[:4096]:
        return {"type": _C.DIFF.value, "text": text, "media_type": "text/x-diff"}
    return {"type": _C.TEXT.value, "text": text}


def _bytes_block(view: memoryview) -> JsonObject:
    # memoryview(b"abcdef")[::2] has no single piece of memory
    flat = view.cast("B") if view.contiguous else memoryview(view.tobytes())
    media_type = sniff(flat)
    kind = content_class(media_type)
    if kind in (_C.TEXT, _C.DIFF) and flat.nbytes <= _MAX_MODEL_CHARS:
        text = bytes(flat).decode("utf-8", "backslashreplace")
        return {"type": kind.value, "text": text, "media_type": media_type}
    if kind is _C.TEXT:
        kind = _C.FILE
    block: JsonObject = {
        "type": kind.value,
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
    block: JsonObject = {"type": _C.IMAGE.value, "omitted": "not_encoded"}
    encoded = encode_image(image)
    if encoded:
        block = _bytes_block(memoryview(encoded))
    block["width"] = image.width
    block["height"] = image.height
    block["mode"] = str(image.mode)
    return block


def _file_block(path: Any) -> JsonObject:
    text = PurePath.__str__(path)
    block: JsonObject = {
        "type": _C.FILE.value,
        "path": to_json_value(text),
        "name": to_json_value(os.path.basename(text)),
    }
    media_type, _encoding = mimetypes.guess_type(text)
    if media_type:
        block["media_type"] = media_type
    try:
        status = os.stat(text)
    except (OSError, ValueError):  # ValueError: a NUL in the name
        block["omitted"] = "not_found"
        return block
    if stat.S_ISREG(status.st_mode):
        block["size_bytes"] = status.st_size
    return block


def _listed_blocks(values: Any) -> list[JsonObject] | None:
    """Return the items of a list as blocks, ``None`` where any is no block: then the list is
    data.
    """
    if len(values) > _MAX_BLOCKS:
        return None
    blocks: list[JsonObject] = []
    for item in list(values):
        block = _listed_block(item)
        if block is None:
            return None
        blocks.append(block)
    return blocks


def _listed_block(item: Any) -> JsonObject | None:
    """Return an item of a list as a block: blocks, LangChain documents, images and binary
    payloads.
    """
    block = foreign_block(item)
    if block is not None:
        return block
    native = native_content(item)
    if native is None or len(native.content) != 1:
        return None
    return native.content[0]


def _add_views(mapped: MappedContent) -> None:
    """Make the model's, the interface's and the transcript's views from the content."""
    if not mapped.content:
        mapped.content = [dict(_EMPTY_BLOCK)]
    searchable: list[str] = []
    for block in mapped.content:
        shown = _for_model(block)
        if shown is not None:
            mapped.model_facing.append(shown)
        found = _for_transcript(block, shown)
        if found is not None:
            searchable.append(found[: _MAX_TRANSCRIPT_CHARS * 2])
        _add_reference(mapped, block)
    if not mapped.model_facing:
        mapped.model_facing = [{"type": _C.TEXT.value, "text": EMPTY_TEXT}]
    mapped.transcript_text = preview("\n".join(searchable), _MAX_TRANSCRIPT_CHARS).text
    described = [_describe(block) for block in mapped.content[:_MAX_DESCRIBED]]
    more = len(mapped.content) - len(described)
    if more:
        described.append(f"and {more} more")
    mapped.ui_summary = "; ".join(described)


def _for_model(block: JsonObject) -> JsonObject | None:
    """Return what a model gets of a block, ``None`` for what is not for it: logs and references to
    artifacts and handoffs.
    """
    word = block["type"]
    if word in TEXTUAL and isinstance(block.get("text"), str):
        if word == _C.LOG:
            return None
        return {"type": _C.TEXT.value, "text": block["text"]}
    if word == _C.STRUCTURED_CONTENT:
        text = json_text(block.get("data"), max_chars=_MAX_MODEL_CHARS)
        if text is None:
            text = "[structured content too large to show]"
        return {"type": _C.TEXT.value, "text": text}
    if word in _INLINE_FOR_MODEL and "omitted" not in block:
        return block
    if word in _REFERENCES_ONLY:
        return None
    return {"type": _C.TEXT.value, "text": f"[{_describe(block)}]"}


def _for_transcript(block: JsonObject, shown: JsonObject | None) -> str | None:
    """Return the text of a block that a search of the transcript finds."""
    word = block["type"]
    text: Any = None
    if word in TEXTUAL and isinstance(block.get("text"), str):
        # "(no output)" is not a text of the tool
        text = None if block.get("empty") else block["text"]
    elif word == _C.STRUCTURED_CONTENT:
        text = None if shown is None else shown["text"]
    elif word in _INLINE_FOR_MODEL and "omitted" not in block:
        resource = block.get("resource")
        if isinstance(resource, dict):
            text = resource.get("text")
    return text if isinstance(text, str) else None


def _add_reference(mapped: MappedContent, block: JsonObject) -> None:
    word = block["type"]
    if word in _RESOURCES:
        mapped.resource_refs.append(_reference(block))
    elif word == _C.ARTIFACT_REF:
        mapped.artifact_refs.append(_reference(block))


def _reference(block: JsonObject) -> JsonObject:
    return {name: item for name, item in block.items() if name != "type"}


def reference_kind(block: JsonObject) -> str | None:
    """Return whether a block refers to a ``resource`` or an ``artifact``; ``None`` for others."""
    word = block["type"]
    if word in _RESOURCES:
        return "resource"
    if word == _C.ARTIFACT_REF:
        return "artifact"
    return None


def _describe(block: JsonObject) -> str:
    """Return what a block is, in a few words without content: ``image, image/png, 69 bytes``."""
    word = str(block["type"])
    if block.get("empty"):
        return "no output"
    text = block.get("text")
    if isinstance(text, str):
        lines = text.count("\n") + 1
        return f"{word}, {len(text):,} characters, {lines:,} lines"
    if word == _C.STRUCTURED_CONTENT:
        return _describe_data(block.get("data"))
    facts = [word]
    if isinstance(block.get("media_type"), str):
        facts.append(block["media_type"])
    if isinstance(block.get("size_bytes"), int):
        facts.append(f"{block['size_bytes']:,} bytes")
    return ", ".join(facts)


def _describe_data(data: Any) -> str:
    if isinstance(data, dict):
        return f"object, {len(data):,} members"
    if isinstance(data, list):
        return f"list, {len(data):,} items"
    return type(data).__name__
