"""Results whose class is known: of MCP, LangChain, LangGraph and ``subprocess``.

One table holds for each class how its content and its stated failure are read. The classes are known
by their names, because their values are read as plain data. Objects of data and image libraries are
in ``libraries.py``.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from agenttool_otel.names import ContentType
from agenttool_otel.records.base import JsonObject
from agenttool_otel.results.content.blocks import Block, MappedContent, foreign_block
from agenttool_otel.results.content.json_stream import plain_json
from agenttool_otel.results.content.shown import shown_json
from agenttool_otel.results.errors.native_errors import peek
from agenttool_otel.values.conversion import to_json_value
from agenttool_otel.values.inspection import Kind, class_name, kind_of, mapping_items, mro_names

_C = ContentType
_MAX_FIELDS: Final = 50
PLAIN_TYPES: Final = frozenset(
    {str, int, float, bool, bytes, list, tuple, set, frozenset, type(None)}
)


class ResultType(NamedTuple):
    """How results of one class are read; what a class does not have is ``None``."""

    # the content that a framework's result is
    content: Callable[[Any], MappedContent | None] | None = None
    failure: Callable[[Any], str | None] | None = None  # a reference to the failure that it states


def native_content(value: Any) -> MappedContent | None:
    """Return the blocks of a framework's result; ``None`` for anything else."""
    if type(value) is dict:
        return _mcp_blocks(value) if _is_mcp_result(value) else None
    found = result_type(value)
    if found is None or found.content is None:
        return None
    return found.content(value)


def _is_mcp_result(value: dict[Any, Any]) -> bool:
    # {"content": [...], "isError": false}; with "content" alone it may be anything
    if not isinstance(value.get("content"), list) or len(value) == 1:
        return False
    return _MCP_MEMBERS.issuperset(value)


def native_failure(value: Any) -> str | None:
    """Return a reference to the failure that a result states: MCP ``isError``, LangChain's status,
    an exit code.
    """
    cls = type(value)
    if cls in PLAIN_TYPES:
        return None
    if cls is dict:
        if type(value.get("content")) is not list:
            return None
        if value.get("isError") is True or value.get("is_error") is True:
            return "mcp:isError"
        return None
    found = result_type(value)
    if found is None or found.failure is None:
        return None
    return found.failure(value)


def native_meta(value: Any) -> JsonObject | None:
    """Return the ``_meta`` of an MCP result as JSON data; ``None`` where there is none."""
    if type(value) is dict:
        fields = value if _is_mcp_result(value) else {}
    elif result_type(value) is _MCP_RESULT:
        fields = _fields(value)
    else:
        return None
    # the classes of MCP's packages call the field "meta"
    given = fields.get("_meta", fields.get("meta"))
    if not given:
        return None
    # mostly {"io.modelcontextprotocol/serverInfo": {...}}, the same of each call
    text = plain_json(given)
    meta = shown_json(given) if text is None else json.loads(text)
    return meta if isinstance(meta, dict) and meta else None


def result_type(value: Any) -> ResultType | None:
    """Return how a value of a known class is read; ``None`` for any other."""
    cls = type(value)
    try:
        if cls not in _known:
            _known[cls] = _find_type(cls)
        return _known[cls]
    except Exception:  # a metaclass may make its classes unhashable
        return _find_type(cls)


def _find_type(cls: type) -> ResultType | None:
    if cls is CompletedProcess:
        return _PROCESS
    for name in mro_names(cls):
        # langchain_core.messages.tool.ToolMessage: the modules between move from release to release
        package = name.partition(".")[0]
        found = _BY_NAME.get((package, name.rpartition(".")[2]))
        if found is not None:
            return found
    return None


_known: WeakKeyDictionary[type, ResultType | None] = WeakKeyDictionary()


def _fields(value: Any) -> dict[str, Any]:
    kind = kind_of(value)
    if kind is Kind.OPAQUE:
        # fastmcp 2's ToolResult is a plain class
        return {
            "content": peek(value, "content"),
            "structured_content": peek(value, "structured_content"),
            "meta": peek(value, "meta"),
        }
    return dict(mapping_items(value, kind, _MAX_FIELDS))


# --- frameworks -----------------------------------------------------------------------------------

_MCP_MEMBERS: Final = frozenset(
    {
        "content",
        "isError",
        "is_error",
        "structuredContent",
        "structured_content",
        "_meta",
        "meta",
        "result_type",
    }
)


def _mcp_blocks(fields: dict[str, Any]) -> MappedContent | None:
    items = fields.get("content")
    if not isinstance(items, list):
        items = []
    blocks: list[JsonObject] = []
    for item in items:
        block = foreign_block(item)
        if block is None:
            return None
        blocks.append(block)
    mapped = MappedContent(blocks)
    stated = fields.get("structuredContent", fields.get("structured_content"))
    if stated is not None:
        mapped.structured_content = shown_json(stated)
    mapped.is_error = (fields.get("isError") or fields.get("is_error")) is True
    return mapped


def _mcp_failure(value: Any) -> str | None:
    if peek(value, "isError") is True or peek(value, "is_error") is True:
        return "mcp:isError"
    return None


def _message_blocks(value: Any) -> MappedContent:
    fields = _fields(value)
    content = fields.get("content")
    if not isinstance(content, list):
        content = [content]
    blocks: list[JsonObject] = []
    for item in content:
        if type(item) is str:
            blocks.append(Block.text(item).to_block())
            continue
        block = foreign_block(item)
        if block is None:
            block = {"type": _C.STRUCTURED_CONTENT.value, "data": shown_json(item)}
        blocks.append(block)
    artifact = fields.get("artifact")
    if artifact is not None:
        # ToolMessage.artifact is not for the model, so its content is not shown: a reference is
        identity = str(fields.get("tool_call_id") or "artifact")
        block = Block.artifact(identity, native_type=class_name(type(artifact))).to_block()
        blocks.append(block)
    return MappedContent(blocks, is_error=fields.get("status") == "error")


def _message_failure(value: Any) -> str | None:
    if peek(value, "status") == "error":
        return "langchain:error"
    return None


def _document_blocks(value: Any) -> MappedContent:
    fields = _fields(value)
    metadata = shown_json(fields.get("metadata"))
    source: Any = None
    if isinstance(metadata, dict):
        source = metadata.get("source")
    uri = str(source or fields.get("id") or "")
    block = Block.embedded_resource(uri, str(fields.get("page_content") or "")).to_block()
    block["_meta"] = metadata
    return MappedContent([block])


def _command_blocks(value: Any) -> MappedContent | None:
    fields = _fields(value)
    goto = to_json_value(fields.get("goto"))
    update = shown_json(fields.get("update"))
    blocks: list[JsonObject] = []
    if goto:
        # Command(goto="review") and Command(goto=[Send(...), "review"])
        targets = goto if isinstance(goto, list) else [goto]
        for target in targets:
            name = target if isinstance(target, str) else "send"
            blocks.append(Block.handoff(name).to_block())
    if not blocks and update is None:
        return None
    if update is not None:
        blocks.append({"type": _C.STRUCTURED_CONTENT.value, "data": update})
    return MappedContent(blocks, update)


def _process_blocks(value: CompletedProcess[Any]) -> MappedContent:
    blocks: list[JsonObject] = []
    if value.stdout:
        text = _process_text(value.stdout)
        blocks.append({"type": _C.TEXT.value, "text": text, "stream": "stdout"})
    if value.stderr:
        text = _process_text(value.stderr)
        blocks.append({"type": _C.LOG.value, "text": text, "stream": "stderr"})
    exit_code = {"exit_code": to_json_value(value.returncode)}
    return MappedContent(blocks, exit_code, is_error=value.returncode != 0)


def _process_text(output: Any) -> str:
    if type(output) is str:
        return output
    return bytes(output).decode("utf-8", "backslashreplace")


def _process_failure(value: CompletedProcess[Any]) -> str | None:
    if not value.returncode:
        return None
    return f"exit:{value.returncode}"


# --- the table ------------------------------------------------------------------------------------

_PROCESS: Final = ResultType(_process_blocks, _process_failure)
_MCP_RESULT: Final = ResultType(lambda value: _mcp_blocks(_fields(value)), _mcp_failure)
# by package and class
_BY_NAME: Final[dict[tuple[str, str], ResultType]] = {
    ("mcp", "CallToolResult"): _MCP_RESULT,
    ("mcp", "ToolResult"): _MCP_RESULT,
    ("mcp_types", "CallToolResult"): _MCP_RESULT,
    ("mcp_types", "ToolResult"): _MCP_RESULT,
    ("fastmcp", "CallToolResult"): _MCP_RESULT,
    ("fastmcp", "ToolResult"): _MCP_RESULT,
    ("langchain_core", "ToolMessage"): ResultType(_message_blocks, _message_failure),
    ("langchain_core", "Document"): ResultType(_document_blocks),
    ("langgraph", "Command"): ResultType(_command_blocks),
}
