"""Results whose class says what they are: of MCP, LangChain, LangGraph, ``subprocess``, data and image libraries.

One table says for each class how its content, its stated failure, its lines and its size are read. Frameworks' classes
are known by their names, because their values are read as plain data. Methods of library objects are run, so these
classes are known by identity, found in ``sys.modules`` and never imported.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable, Iterator
from subprocess import CompletedProcess
from typing import Any, Final, NamedTuple
from weakref import WeakKeyDictionary

from agenttool_otel.names import ContentType
from agenttool_otel.records.base import JsonObject
from agenttool_otel.results.content.blocks import Block, MappedContent, foreign_block
from agenttool_otel.results.errors.native_errors import peek
from agenttool_otel.values.conversion import to_json_value
from agenttool_otel.values.inspection import Kind, class_name, kind_of, mapping_items, mro_names

_C = ContentType
_BATCH_ROWS: Final = 1000
_PREVIEW_ROWS: Final = 20
_MAX_ITEMS: Final = 1000
_MAX_PIXELS: Final = 1 << 24
_MAX_FIELDS: Final = 50
PLAIN_TYPES: Final = frozenset({str, int, float, bool, bytes, list, tuple, set, frozenset, type(None)})


class ResultType(NamedTuple):
    """How results of one class are read; what a class does not have is ``None``."""

    content: Callable[[Any], MappedContent | None] | None = None  # the content that a framework's result is
    failure: Callable[[Any], str | None] | None = None  # a reference to the failure that it states
    data: Callable[[Any], JsonObject] | None = None  # shape and first rows of a library's object
    lines: Callable[[Any], Iterator[str]] | None = None  # all of it as lines of JSON, in pieces
    held_bytes: Callable[[Any], int] | None = None  # bytes in memory


def native_content(value: Any) -> MappedContent | None:
    """Return the blocks of a framework's result; ``None`` for anything else."""
    if type(value) is dict:
        is_mcp = isinstance(value.get("content"), list) and _MCP_MEMBERS.issuperset(value) and len(value) > 1
        return _mcp_blocks(value) if is_mcp else None
    found = result_type(value)
    return None if found is None or found.content is None else found.content(value)


def native_failure(value: Any) -> str | None:
    """Return a reference to the failure that a result states: MCP ``isError``, LangChain's status, an exit code."""
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
    for module, class_, known in _BY_IDENTITY:
        loaded = getattr(sys.modules.get(module), class_, None)
        if isinstance(loaded, type) and issubclass(cls, loaded):
            return known
    return None


_known: WeakKeyDictionary[type, ResultType | None] = WeakKeyDictionary()


def _fields(value: Any) -> dict[str, Any]:
    kind = kind_of(value)
    if kind is Kind.OPAQUE:
        return {name: peek(value, name) for name in ("content", "structured_content", "meta")}
    return dict(mapping_items(value, kind, _MAX_FIELDS))


# --- frameworks ------------------------------------------------------------------------------------------------------

_MCP_MEMBERS: Final = frozenset(
    {"content", "isError", "is_error", "structuredContent", "structured_content", "_meta", "meta", "result_type"}
)


def _mcp_blocks(fields: dict[str, Any]) -> MappedContent | None:
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


def _mcp_failure(value: Any) -> str | None:
    return "mcp:isError" if peek(value, "isError") is True or peek(value, "is_error") is True else None


def _message_blocks(value: Any) -> MappedContent:
    fields = _fields(value)
    content = fields.get("content")
    blocks: list[JsonObject] = []
    for item in content if isinstance(content, list) else [content]:
        if type(item) is str:
            blocks.append(Block.text(item).to_block())
        else:
            blocks.append(foreign_block(item) or {"type": _C.STRUCTURED_CONTENT.value, "data": to_json_value(item)})
    if (artifact := fields.get("artifact")) is not None:
        # The model does not see an artifact, so neither do its content blocks: a reference says that there is one.
        identity = str(fields.get("tool_call_id") or "artifact")
        blocks.append(Block.artifact(identity, native_type=class_name(type(artifact))).to_block())
    return MappedContent(blocks, is_error=fields.get("status") == "error")


def _document_blocks(value: Any) -> MappedContent:
    fields = _fields(value)
    metadata = to_json_value(fields.get("metadata"))
    source = metadata.get("source") if isinstance(metadata, dict) else None
    block = Block.embedded_resource(str(source or fields.get("id") or ""), str(fields.get("page_content") or ""))
    return MappedContent([{**block.to_block(), "_meta": metadata}])


def _command_blocks(value: Any) -> MappedContent | None:
    fields = _fields(value)
    goto = to_json_value(fields.get("goto"))
    update = to_json_value(fields.get("update"))
    targets = goto if isinstance(goto, list) else [goto] if goto else []
    blocks = [Block.handoff(item if isinstance(item, str) else "send").to_block() for item in targets]
    if not blocks and update is None:
        return None
    if update is not None:
        blocks.append({"type": _C.STRUCTURED_CONTENT.value, "data": update})
    return MappedContent(blocks, update)


def _process_blocks(value: CompletedProcess[Any]) -> MappedContent:
    blocks: list[JsonObject] = []
    for name, kind, output in (("stdout", _C.TEXT, value.stdout), ("stderr", _C.LOG, value.stderr)):
        if output:
            text = output if type(output) is str else bytes(output).decode("utf-8", "backslashreplace")
            blocks.append({"type": kind.value, "text": text, "stream": name})
    return MappedContent(blocks, {"exit_code": to_json_value(value.returncode)}, is_error=value.returncode != 0)


# --- libraries -------------------------------------------------------------------------------------------------------


def _frame_data(frame: Any) -> JsonObject:
    rows = frame.head(_PREVIEW_ROWS).itertuples(index=False, name=None)
    return {
        "kind": "dataframe",
        "columns": [str(name) for name in frame.columns[:_MAX_ITEMS]],
        "rows": [to_json_value(list(row)) for row in rows],
        "total_rows": len(frame),
    }


def _frame_lines(frame: Any) -> Iterator[str]:
    columns = [str(name) for name in frame.columns]
    for start in range(0, len(frame), _BATCH_ROWS):
        rows = frame.iloc[start : start + _BATCH_ROWS].itertuples(index=False, name=None)
        yield "".join(_line(dict(zip(columns, row, strict=True))) for row in rows)


def _table_data(table: Any) -> JsonObject:
    rows = [to_json_value(list(row.values())) for row in table.slice(0, _PREVIEW_ROWS).to_pylist()]
    return {"kind": "table", "columns": list(table.schema.names), "rows": rows, "total_rows": table.num_rows}


def _table_lines(table: Any) -> Iterator[str]:
    for start in range(0, table.num_rows, _BATCH_ROWS):
        yield "".join(_line(row) for row in table.slice(start, _BATCH_ROWS).to_pylist())


def _ndarray_data(array: Any) -> JsonObject:
    items = array.reshape(-1)[:_MAX_ITEMS] if array.size > _MAX_ITEMS else array
    return _items_data("ndarray", array.dtype, list(array.shape), items.tolist())


def _series_data(series: Any) -> JsonObject:
    return _items_data("series", series.dtype, [len(series)], series[:_MAX_ITEMS].tolist())


def _arrow_array_data(array: Any) -> JsonObject:
    return _items_data("arrow_array", array.type, [len(array)], array[:_MAX_ITEMS].to_pylist())


def _items_data(kind: str, dtype: Any, shape: list[int], items: Any) -> JsonObject:
    return {"kind": kind, "dtype": str(dtype), "shape": shape, "data": to_json_value(items)}


def _item_lines(values: Any) -> Iterator[str]:
    for start in range(0, len(values), _BATCH_ROWS):
        batch = values[start : start + _BATCH_ROWS]
        yield "".join(_line(item) for item in (batch.to_pylist() if hasattr(batch, "to_pylist") else batch.tolist()))


def _line(item: Any) -> str:
    return json.dumps(to_json_value(item), ensure_ascii=False, separators=(",", ":")) + "\n"


def encode_image(image: Any) -> bytes | None:
    """Return a Pillow image as PNG, or ``None`` for one that is too large or can't be encoded so."""
    if image.width * image.height > _MAX_PIXELS:
        return None
    target = io.BytesIO()
    try:
        image.save(target, format="PNG")
    except (OSError, ValueError):
        return None
    return target.getvalue()


def _ndarray_lines(array: Any) -> Iterator[str]:
    return _item_lines(array if array.ndim else array.reshape(1))


def _nbytes(value: Any) -> int:
    return int(value.nbytes)


def _memory_usage(values: Any) -> int:
    return int(values.memory_usage(deep=False))


def _frame_bytes(frame: Any) -> int:
    return int(frame.memory_usage(index=False, deep=False).sum())


# --- the table -------------------------------------------------------------------------------------------------------

IMAGE: Final = ResultType(held_bytes=lambda image: int(image.width * image.height * len(image.getbands())))
"""Images of Pillow: shown and stored as PNG."""

_PROCESS: Final = ResultType(
    _process_blocks, lambda process: f"exit:{process.returncode}" if process.returncode else None
)
_MCP_RESULT: Final = ResultType(lambda value: _mcp_blocks(_fields(value)), _mcp_failure)
_ARROW_TABLE: Final = ResultType(data=_table_data, lines=_table_lines, held_bytes=_nbytes)
_ARROW_ARRAY: Final = ResultType(data=_arrow_array_data, lines=_item_lines, held_bytes=_nbytes)
_BY_NAME: Final[dict[tuple[str, str], ResultType]] = {
    **{
        (package, name): _MCP_RESULT
        for package in ("mcp", "mcp_types", "fastmcp")
        for name in ("CallToolResult", "ToolResult")
    },
    ("langchain_core", "ToolMessage"): ResultType(
        _message_blocks, lambda message: "langchain:error" if peek(message, "status") == "error" else None
    ),
    ("langchain_core", "Document"): ResultType(_document_blocks),
    ("langgraph", "Command"): ResultType(_command_blocks),
}
_BY_IDENTITY: Final[tuple[tuple[str, str, ResultType], ...]] = (
    ("pandas", "DataFrame", ResultType(data=_frame_data, lines=_frame_lines, held_bytes=_frame_bytes)),
    ("pandas", "Series", ResultType(data=_series_data, lines=_item_lines, held_bytes=_memory_usage)),
    ("pandas", "Index", ResultType(held_bytes=_memory_usage)),
    ("numpy", "ndarray", ResultType(data=_ndarray_data, lines=_ndarray_lines, held_bytes=_nbytes)),
    ("pyarrow", "Table", _ARROW_TABLE),
    ("pyarrow", "RecordBatch", _ARROW_TABLE),
    ("pyarrow", "ChunkedArray", _ARROW_ARRAY),
    ("pyarrow", "Array", _ARROW_ARRAY),
    ("PIL.Image", "Image", IMAGE),
)
