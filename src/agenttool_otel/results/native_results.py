"""Results that are content already: of MCP, LangChain, LangGraph and ``subprocess``, known by their class names."""

from __future__ import annotations

from subprocess import CompletedProcess
from typing import Any, Final

from agenttool_otel.names import ContentType
from agenttool_otel.records.base import JsonObject
from agenttool_otel.records.conversion import to_json_value
from agenttool_otel.records.inspection import Kind, class_name, kind_of, mapping_items, mro_names
from agenttool_otel.results.blocks import Block, foreign_block
from agenttool_otel.results.content_views import MappedContent

__all__ = ["native_content"]

_C = ContentType


def native_content(value: Any) -> MappedContent | None:
    """Return the blocks of a native result; ``None`` for anything else.

    Args:
        value: what a tool returned.
    """
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
