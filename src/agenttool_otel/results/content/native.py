"""Results whose class says what they are: of MCP, LangChain, LangGraph and ``subprocess``.

One table says for each class how its content and its stated failure are read. The classes are known
by their names, because their values are read as plain data. Objects of data and image libraries are
in ``libraries.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from subprocess import CompletedProcess
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from agenttool_otel.names import ContentType
from agenttool_otel.records.base import JsonObject
from agenttool_otel.results.content.blocks import Block, MappedContent, foreign_block
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
        is_mcp = (
            isinstance(value.get("content"), list)
            and _MCP_MEMBERS.issuperset(value)
            and len(value) > 1
        )
        return _mcp_blocks(value) if is_mcp else None
    found = result_type(value)
    return None if found is None or found.content is None else found.content(value)


def native_failure(value: Any) -> str | None:
    """Return a reference to the failure that a result states: MCP ``isError``, LangChain's status,
    an exit code.
    """
    cls = type(value)
    if cls in PLAIN_TYPES:
        return None
    if cls is dict:
        stated = value.get("isError") is True or value.get("is_error") is True
        return "mcp:isError" if stated and type(value.get("content")) is list else None
    found = result_type(value)
    return None if found is None or found.failure is None else found.failure(value)


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
        if (named := _BY_NAME.get((name.partition(".")[0], name.rpartition(".")[2]))) is not None:
            return named
    return None


_known: WeakKeyDictionary[type, ResultType | None] = WeakKeyDictionary()


def _fields(value: Any) -> dict[str, Any]:
    kind = kind_of(value)
    if kind is Kind.OPAQUE:
        return {name: peek(value, name) for name in ("content", "structured_content", "meta")}
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
    items = fields.get("content") or []
    blocks = [foreign_block(item) for item in items] if isinstance(items, list) else []
    if any(block is None for block in blocks):
        return None
    stated = fields.get("structuredContent", fields.get("structured_content"))
    return MappedContent(
        [block for block in blocks if block is not None],
        None if stated is None else shown_json(stated),
        is_error=(fields.get("isError") or fields.get("is_error")) is True,
    )


def _mcp_failure(value: Any) -> str | None:
    return (
        "mcp:isError" if peek(value, "isError") is True or peek(value, "is_error") is True else None
    )


def _message_blocks(value: Any) -> MappedContent:
    fields = _fields(value)
    content = fields.get("content")
    blocks: list[JsonObject] = []
    for item in content if isinstance(content, list) else [content]:
        if type(item) is str:
            blocks.append(Block.text(item).to_block())
        else:
            blocks.append(
                foreign_block(item)
                or {"type": _C.STRUCTURED_CONTENT.value, "data": shown_json(item)}
            )
    if (artifact := fields.get("artifact")) is not None:
        # The model does not see an artifact, so neither do its content blocks: a reference says
        # that there is one.
        identity = str(fields.get("tool_call_id") or "artifact")
        blocks.append(Block.artifact(identity, native_type=class_name(type(artifact))).to_block())
    return MappedContent(blocks, is_error=fields.get("status") == "error")


def _document_blocks(value: Any) -> MappedContent:
    fields = _fields(value)
    metadata = shown_json(fields.get("metadata"))
    source = metadata.get("source") if isinstance(metadata, dict) else None
    block = Block.embedded_resource(
        str(source or fields.get("id") or ""), str(fields.get("page_content") or "")
    )
    return MappedContent([{**block.to_block(), "_meta": metadata}])


def _command_blocks(value: Any) -> MappedContent | None:
    fields = _fields(value)
    goto = to_json_value(fields.get("goto"))
    update = shown_json(fields.get("update"))
    targets = goto if isinstance(goto, list) else [goto] if goto else []
    blocks = [
        Block.handoff(item if isinstance(item, str) else "send").to_block() for item in targets
    ]
    if not blocks and update is None:
        return None
    if update is not None:
        blocks.append({"type": _C.STRUCTURED_CONTENT.value, "data": update})
    return MappedContent(blocks, update)


def _process_blocks(value: CompletedProcess[Any]) -> MappedContent:
    blocks: list[JsonObject] = []
    for name, kind, output in (("stdout", _C.TEXT, value.stdout), ("stderr", _C.LOG, value.stderr)):
        if output:
            text = (
                output if type(output) is str else bytes(output).decode("utf-8", "backslashreplace")
            )
            blocks.append({"type": kind.value, "text": text, "stream": name})
    return MappedContent(
        blocks, {"exit_code": to_json_value(value.returncode)}, is_error=value.returncode != 0
    )


# --- the table ------------------------------------------------------------------------------------

_PROCESS: Final = ResultType(
    _process_blocks, lambda process: f"exit:{process.returncode}" if process.returncode else None
)
_MCP_RESULT: Final = ResultType(lambda value: _mcp_blocks(_fields(value)), _mcp_failure)
_BY_NAME: Final[dict[tuple[str, str], ResultType]] = {
    **{
        (package, name): _MCP_RESULT
        for package in ("mcp", "mcp_types", "fastmcp")
        for name in ("CallToolResult", "ToolResult")
    },
    ("langchain_core", "ToolMessage"): ResultType(
        _message_blocks,
        lambda message: "langchain:error" if peek(message, "status") == "error" else None,
    ),
    ("langchain_core", "Document"): ResultType(_document_blocks),
    ("langgraph", "Command"): ResultType(_command_blocks),
}
