"""Content blocks: the standard's content classes as JSON objects, made by tools or recognised in
foreign shapes.

A tool that wants to say more than its return value does returns ``Block``s. MCP content, LangChain
content blocks and plain dicts of those shapes are brought to the same form: ``media_type``,
``data`` (base64), ``uri``, ``text``.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass, field
from typing import Any, Final

from agenttool_otel.names import ContentType
from agenttool_otel.records.base import JsonObject
from agenttool_otel.values.conversion import JsonLike, to_json_value
from agenttool_otel.values.inspection import Kind, kind_of, mapping_items, mro_names
from agenttool_otel.values.tables import load_table

_C = ContentType
TEXTUAL: Final = frozenset({_C.TEXT.value, _C.LOG.value, _C.DIFF.value})
"""Content classes whose blocks hold a ``text``."""


@dataclass(frozen=True, slots=True)
class Block:
    """One content block that a tool returns on purpose, alone or in a list."""

    type: ContentType  # content class
    fields: JsonObject = field(default_factory=dict)  # the block's members beside its type

    @classmethod
    def text(cls, text: str) -> Block:
        """Text for the model."""
        return cls(_C.TEXT, {"text": text})

    @classmethod
    def log(cls, text: str, *, level: str = "info") -> Block:
        """Log lines: in the envelope and the transcript, not in the model's content."""
        return cls(_C.LOG, {"text": text, "level": level})

    @classmethod
    def diff(cls, text: str) -> Block:
        """A unified diff."""
        return cls(_C.DIFF, {"text": text, "media_type": "text/x-diff"})

    @classmethod
    def media(cls, data: bytes, media_type: str) -> Block:
        """An image, audio or video by its media type; anything else is a file."""
        family = media_type.partition("/")[0]
        kind = _C(family) if family in ("image", "audio", "video") else _C.FILE
        encoded = base64.b64encode(data).decode("ascii")
        return cls(kind, {"data": encoded, "media_type": media_type, "size_bytes": len(data)})

    @classmethod
    def resource_link(cls, uri: str, *, name: str = "", media_type: str = "", **more: Any) -> Block:
        """A resource that a protocol can fetch (``digest``, ``access`` and ``relation``
        where known).
        """
        return cls(_C.RESOURCE_LINK, _present(uri=uri, name=name, media_type=media_type, **more))

    @classmethod
    def embedded_resource(cls, uri: str, text: str, *, media_type: str = "text/plain") -> Block:
        """A resource with its text."""
        return cls(
            _C.EMBEDDED_RESOURCE, {"resource": {"uri": uri, "text": text, "media_type": media_type}}
        )

    @classmethod
    def artifact(
        cls, artifact_id: str, *, uri: str = "", media_type: str = "", digest: str = "", **more: Any
    ) -> Block:
        """A durable deliverable with an identity of its own."""
        return cls(
            _C.ARTIFACT_REF,
            _present(
                artifact_id=artifact_id, uri=uri, media_type=media_type, digest=digest, **more
            ),
        )

    @classmethod
    def handoff(cls, target: str, *, reason: str = "", **more: Any) -> Block:
        """Control passes to another agent, node or person."""
        return cls(_C.HANDOFF_REF, _present(target=target, reason=reason, **more))

    def to_block(self) -> JsonObject:
        """Return the block as JSON."""
        fields = to_json_value(self.fields)
        return {"type": self.type.value, **(fields if isinstance(fields, dict) else {})}


def _present(**fields: Any) -> JsonObject:
    return {name: value for name, value in fields.items() if value not in ("", None)}


@dataclass(slots=True)
class MappedContent:
    """The representations of one result."""

    content: list[JsonObject] = field(default_factory=list)  # content blocks of the envelope
    structured_content: JsonLike = None  # machine-readable form, where the result has one
    model_facing: list[JsonObject] = field(default_factory=list)  # content blocks for the model
    ui_summary: str = ""  # one line that says what it is; it holds no content
    transcript_text: str = ""  # text meant to be found in a transcript
    # fetchable resources among the content
    resource_refs: list[JsonObject] = field(default_factory=list)
    # durable deliverables among the content
    artifact_refs: list[JsonObject] = field(default_factory=list)
    # the native result says that the call failed (MCP ``isError``, LangChain ``status="error"``)
    is_error: bool = False
    schema_errors: list[str] = field(default_factory=list)  # why the value could not be mapped


_TABLE: Final[dict[str, dict[str, Any]]] = load_table(__package__, "blocks.toml")
_REQUIRED, _RENAMED, _TYPES = _TABLE["required"], _TABLE["renamed"], _TABLE["types"]
_MEMBERS: Final = frozenset(_TABLE["members"]["allowed"])


def foreign_block(value: Any) -> JsonObject | None:
    """Return a value as a normal block if it is one: a Block, an MCP or LangChain block, or a dict
    of such a shape.
    """
    if type(value) is Block:
        return value.to_block()
    kind = kind_of(value)
    if kind is Kind.MODEL or kind is Kind.DATACLASS:
        if not any(
            name.partition(".")[0] in ("mcp", "mcp_types", "fastmcp")
            for name in mro_names(type(value))
        ):
            return None
        data = {
            name: item
            for name, item in mapping_items(value, kind, len(_MEMBERS))
            if item is not None
        }
    elif type(value) is dict and len(value) <= len(_MEMBERS):
        data = value
    else:
        return None
    word = data.get("type")
    if type(word) is not str or word not in _REQUIRED:
        return None
    if not any(name in data for name in _REQUIRED[word]) or not _MEMBERS.issuperset(data):
        return None
    return normal_block(data)


def normal_block(data: dict[str, Any]) -> JsonObject:
    """Return a recognised block with the standard's class and member names."""
    plain = to_json_value(data)
    if not isinstance(plain, dict):
        return {"type": _C.TEXT.value, "text": ""}
    block: JsonObject = {}
    for name, item in plain.items():
        block.setdefault(_RENAMED.get(name, name), item)
    word = str(block["type"])
    block["type"] = _TYPES.get(word, word)
    nested = (
        block.pop("image_url", None) or block.pop("input_audio", None) or block.pop("source", None)
    )
    if isinstance(nested, str):
        block["uri"] = nested
    elif isinstance(nested, dict):
        for name in ("url", "uri", "data", "media_type", "format"):
            if isinstance(nested.get(name), str):
                block.setdefault(_RENAMED.get(name, name), nested[name])
    if isinstance(block.get("uri"), str) and block["uri"].startswith("data:"):
        _unpack_data_uri(block)
    resource = block.get("resource")
    if isinstance(resource, dict):
        block["resource"] = {
            (
                "media_type"
                if name in ("mimeType", "mime_type")
                else "data"
                if name == "blob"
                else name
            ): item
            for name, item in resource.items()
        }
    if block["type"] == _C.TEXT.value and "text" not in block:
        block["type"] = _C.FILE.value
    return block


def _unpack_data_uri(block: JsonObject) -> None:
    head, _, data = block.pop("uri")[5:].partition(",")
    block["data"] = data
    block["media_type"] = head.partition(";")[0] or "text/plain"
