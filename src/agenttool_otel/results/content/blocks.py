"""Content blocks: the standard's content classes as JSON objects, made by tools or recognised in
foreign shapes.

A tool that has more to give than its return value returns ``Block``s. MCP content, LangChain
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
        kind = _C.FILE
        family = media_type.partition("/")[0]
        if family in ("image", "audio", "video"):
            kind = _C(family)
        fields: JsonObject = {
            "data": base64.b64encode(data).decode("ascii"),
            "media_type": media_type,
            "size_bytes": len(data),
        }
        return cls(kind, fields)

    @classmethod
    def resource_link(cls, uri: str, *, name: str = "", media_type: str = "", **more: Any) -> Block:
        """A resource that a protocol can fetch (``digest``, ``access`` and ``relation``
        where known).
        """
        fields = _present(
            uri=uri,
            name=name,
            media_type=media_type,
            **more,
        )
        return cls(_C.RESOURCE_LINK, fields)

    @classmethod
    def embedded_resource(cls, uri: str, text: str, *, media_type: str = "text/plain") -> Block:
        """A resource with its text."""
        resource = {
            "uri": uri,
            "text": text,
            "media_type": media_type,
        }
        return cls(_C.EMBEDDED_RESOURCE, {"resource": resource})

    @classmethod
    def artifact(
        cls, artifact_id: str, *, uri: str = "", media_type: str = "", digest: str = "", **more: Any
    ) -> Block:
        """A durable deliverable with an identity of its own."""
        fields = _present(
            artifact_id=artifact_id,
            uri=uri,
            media_type=media_type,
            digest=digest,
            **more,
        )
        return cls(_C.ARTIFACT_REF, fields)

    @classmethod
    def handoff(cls, target: str, *, reason: str = "", **more: Any) -> Block:
        """Control passes to another agent, node or person."""
        fields = _present(target=target, reason=reason, **more)
        return cls(_C.HANDOFF_REF, fields)

    def to_block(self) -> JsonObject:
        """Return the block as JSON."""
        block: JsonObject = {"type": self.type.value}
        fields = to_json_value(self.fields)
        if isinstance(fields, dict):
            block.update(fields)
        return block


def _present(**fields: Any) -> JsonObject:
    return {name: value for name, value in fields.items() if value not in ("", None)}


@dataclass(slots=True)
class MappedContent:
    """The representations of one result."""

    content: list[JsonObject] = field(default_factory=list)  # content blocks of the envelope
    structured_content: JsonLike = None  # machine-readable form, where the result has one
    model_facing: list[JsonObject] = field(default_factory=list)  # content blocks for the model
    ui_summary: str = ""  # one line about what it is; it holds no content
    transcript_text: str = ""  # text meant to be found in a transcript
    # fetchable resources among the content
    resource_refs: list[JsonObject] = field(default_factory=list)
    # durable deliverables among the content
    artifact_refs: list[JsonObject] = field(default_factory=list)
    # whether the native result states a failure (MCP ``isError``, LangChain ``status="error"``)
    is_error: bool = False
    schema_errors: list[str] = field(default_factory=list)  # why the value could not be mapped


_TABLE: Final[dict[str, dict[str, Any]]] = load_table(__package__, "blocks.toml")
_REQUIRED: Final[dict[str, list[str]]] = _TABLE["required"]
_RENAMED: Final[dict[str, str]] = _TABLE["renamed"]
_TYPES: Final[dict[str, str]] = _TABLE["types"]
_MEMBERS: Final = frozenset(_TABLE["members"]["allowed"])
_MCP_PACKAGES: Final = frozenset({"mcp", "mcp_types", "fastmcp"})
_NESTED: Final = ("image_url", "input_audio", "source")
"""Members in which LangChain and model providers hold a block's payload: ``{"image_url":
{"url": "https://..."}}``.
"""

_NESTED_FACTS: Final = ("url", "uri", "data", "media_type", "format")


def foreign_block(value: Any) -> JsonObject | None:
    """Return a value as a normal block if it is a Block, an MCP or LangChain block, or a dict of
    such a shape; ``None`` for anything else.
    """
    if type(value) is Block:
        return value.to_block()
    data = _block_members(value)
    if data is None or not _has_shape(data):
        return None
    return normal_block(data)


def _block_members(value: Any) -> dict[str, Any] | None:
    """Return the members of what may be a block."""
    if type(value) is dict:
        return value if len(value) <= len(_MEMBERS) else None
    kind = kind_of(value)
    if kind is not Kind.MODEL and kind is not Kind.DATACLASS:
        return None
    packages = {name.partition(".")[0] for name in mro_names(type(value))}
    if packages.isdisjoint(_MCP_PACKAGES):
        return None
    members: dict[str, Any] = {}
    for name, item in mapping_items(value, kind, len(_MEMBERS)):
        # a pydantic model has all optional members, as None
        if item is not None:
            members[name] = item
    return members


def _has_shape(data: dict[str, Any]) -> bool:
    word = data.get("type")
    if type(word) is not str or word not in _REQUIRED:
        return False
    # {"type": "image", "breed": "cat"} is a tool's own data
    if not _MEMBERS.issuperset(data):
        return False
    return any(name in data for name in _REQUIRED[word])


def normal_block(data: dict[str, Any]) -> JsonObject:
    """Return a recognised block with the standard's class and member names."""
    plain = to_json_value(data)
    if not isinstance(plain, dict):
        return {"type": _C.TEXT.value, "text": ""}
    block: JsonObject = {}
    for name, item in plain.items():
        # {"mime_type": "image/png"} of LangChain, {"mimeType": "image/png"} of MCP
        standard_name = _RENAMED.get(name, name)
        block.setdefault(standard_name, item)
    word = str(block["type"])
    block["type"] = _TYPES.get(word, word)
    _unpack_nested(block)
    uri = block.get("uri")
    if isinstance(uri, str) and uri.startswith("data:"):
        _unpack_data_uri(block, uri)
    resource = block.get("resource")
    if isinstance(resource, dict):
        renamed = {}
        for name, item in resource.items():
            renamed[_resource_name(name)] = item
        block["resource"] = renamed
    # LangChain's text-plain with a file_id or data is a file
    if block["type"] == _C.TEXT.value and "text" not in block:
        block["type"] = _C.FILE.value
    return block


def _unpack_nested(block: JsonObject) -> None:
    """Bring ``{"image_url": {"url": ...}}`` and ``{"image_url": "https://..."}`` to a ``uri``."""
    nested: Any = None
    for name in _NESTED:
        # all three are taken out only as far as the first that holds something
        nested = block.pop(name, None)
        if nested:
            break
    if isinstance(nested, str):
        block["uri"] = nested
        return
    if not isinstance(nested, dict):
        return
    for name in _NESTED_FACTS:
        item = nested.get(name)
        if isinstance(item, str):
            standard_name = _RENAMED.get(name, name)
            block.setdefault(standard_name, item)


def _unpack_data_uri(block: JsonObject, uri: str) -> None:
    # data:image/png;base64,iVBORw0KGgo=
    head, _, data = uri.removeprefix("data:").partition(",")
    del block["uri"]
    block["data"] = data
    block["media_type"] = head.partition(";")[0] or "text/plain"


def _resource_name(name: str) -> str:
    """Return the standard's name of a member of an MCP resource."""
    if name in ("mimeType", "mime_type"):
        return "media_type"
    if name == "blob":
        return "data"
    return name
