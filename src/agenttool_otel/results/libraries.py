"""Results of data and image libraries: pandas, NumPy, PyArrow and Pillow, found in ``sys.modules``, never imported."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from agenttool_otel.names import ContentType
from agenttool_otel.records.base import JsonObject
from agenttool_otel.records.conversion import to_json_value

__all__ = ["LibraryPieces", "library_content", "library_pieces", "library_type"]

_ROWS: Final = 1000
_PREVIEW_ROWS: Final = 20
_MAX_ITEMS: Final = 1000
_MAX_PIXELS: Final = 1 << 24


@dataclass(frozen=True, slots=True)
class LibraryPieces:
    """A library's object as a stream.

    Attributes:
        media_type: of the whole.
        text: text in pieces; empty for an image.
        data: an image's encoded bytes.
    """

    media_type: str
    text: Iterator[str] = field(default_factory=lambda: iter(()))
    data: bytes | None = None


def library_type(value: Any) -> str | None:
    """Return ``dataframe``, ``series``, ``ndarray``, ``table``, ``arrow_array`` or ``image``, or ``None``."""
    cls = type(value)
    for module, name, word in _CLASSES:
        loaded = sys.modules.get(module)
        known = getattr(loaded, name, None) if loaded is not None else None
        if isinstance(known, type) and issubclass(cls, known):
            return word
    return None


_CLASSES: Final = (
    ("pandas", "DataFrame", "dataframe"),
    ("pandas", "Series", "series"),
    ("numpy", "ndarray", "ndarray"),
    ("pyarrow", "Table", "table"),
    ("pyarrow", "RecordBatch", "table"),
    ("pyarrow", "ChunkedArray", "arrow_array"),
    ("pyarrow", "Array", "arrow_array"),
    ("PIL.Image", "Image", "image"),
)


def library_content(value: Any) -> tuple[ContentType, JsonObject] | None:
    """Return the content class and the description of a library's object: its shape and its first rows.

    Args:
        value: any object; ``None`` is returned for one of no known library.
    """
    word = library_type(value)
    if word is None:
        return None
    if word == "image":
        return ContentType.IMAGE, {"width": value.width, "height": value.height, "mode": str(value.mode)}
    if word == "dataframe":
        head = value.head(_PREVIEW_ROWS)
        columns = [str(name) for name in value.columns[:_MAX_ITEMS]]
        rows = [to_json_value(list(row)) for row in head.itertuples(index=False, name=None)]
        return _table(word, columns, rows, len(value))
    if word == "table":
        rows = [to_json_value(list(row.values())) for row in value.slice(0, _PREVIEW_ROWS).to_pylist()]
        return _table(word, list(value.schema.names), rows, value.num_rows)
    if word == "ndarray":
        items = value.reshape(-1)[:_MAX_ITEMS].tolist() if value.size > _MAX_ITEMS else value.tolist()
        data: JsonObject = {"dtype": str(value.dtype), "shape": list(value.shape), "data": to_json_value(items)}
    else:
        items = value[:_MAX_ITEMS]
        listed = items.to_pylist() if word == "arrow_array" else items.tolist()
        data = {
            "dtype": str(value.type if word == "arrow_array" else value.dtype),
            "shape": [len(value)],
            "data": to_json_value(listed),
        }
    return ContentType.STRUCTURED_CONTENT, {"kind": word, **data}


def _table(word: str, columns: list[str], rows: list[Any], total: int) -> tuple[ContentType, JsonObject]:
    data: JsonObject = {"kind": word, "columns": columns, "rows": rows, "total_rows": total}
    return ContentType.STRUCTURED_CONTENT, data


def library_pieces(value: Any) -> LibraryPieces | None:
    """Return the stream of a library's object: rows as JSON lines, images as PNG."""
    word = library_type(value)
    if word == "image":
        return LibraryPieces("image/png", data=encode_image(value) or b"")
    if word == "dataframe":
        return LibraryPieces("application/x-ndjson", _frame_lines(value))
    if word == "table":
        return LibraryPieces("application/x-ndjson", _arrow_lines(value))
    if word == "ndarray":
        return LibraryPieces("application/x-ndjson", _item_lines(value if value.ndim else value.reshape(1)))
    if word in ("series", "arrow_array"):
        return LibraryPieces("application/x-ndjson", _item_lines(value))
    return None


def encode_image(value: Any) -> bytes | None:
    """Return an image as PNG, or ``None`` for one that is too large or can't be encoded so."""
    if value.width * value.height > _MAX_PIXELS:
        return None
    target = io.BytesIO()
    try:
        value.save(target, format="PNG")
    except (OSError, ValueError):
        return None
    return target.getvalue()


def _line(item: Any) -> str:
    return json.dumps(to_json_value(item), ensure_ascii=False, separators=(",", ":")) + "\n"


def _frame_lines(frame: Any) -> Iterator[str]:
    columns = [str(name) for name in frame.columns]
    for start in range(0, len(frame), _ROWS):
        block = frame.iloc[start : start + _ROWS]
        yield "".join(_line(dict(zip(columns, row, strict=True))) for row in block.itertuples(index=False, name=None))


def _arrow_lines(table: Any) -> Iterator[str]:
    for start in range(0, table.num_rows, _ROWS):
        yield "".join(_line(row) for row in table.slice(start, _ROWS).to_pylist())


def _item_lines(values: Any) -> Iterator[str]:
    for start in range(0, len(values), _ROWS):
        block = values[start : start + _ROWS]
        yield "".join(_line(item) for item in (block.to_pylist() if hasattr(block, "to_pylist") else block.tolist()))
