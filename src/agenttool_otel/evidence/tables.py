"""Decision records as a table in Parquet, for DuckDB and for data frames."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import datetime
from itertools import islice
from pathlib import Path
from typing import Any, Final

from agenttool_otel.errors import ConfigurationError
from agenttool_otel.evidence.record import ANSWER, OBJECT
from agenttool_otel.records.base import JsonObject

_ROWS: Final = 5_000  # of a group: as many are held in memory
_TEXTS: Final = (
    "producer",
    "invocation_id",
    "actor",
    "session_id",
    "tool_id",
    "tool_kind",
    "behavior",
    "rule",
    "reason_type",
    "mode",
    "engine",
    "revision",
    "bundle",
    "answer",
    "answered_by",
    "trace_id",
    "span_id",
    "record",
)


def write_parquet(lines: Iterable[JsonObject], path: Path) -> int:
    """Write decisions and people's answers as one table, and return how many rows it has.

    A column is null where a row has no such member. ``record`` is the whole record as JSON, its hidden
    words with their marks.

    Args:
        lines: of files of records.
        path: the file.

    Raises:
        ConfigurationError: the extra ``parquet`` is not installed.
        OSError: the file can't be written.
    """
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigurationError("Parquet needs the extra agenttool-otel[parquet]") from error
    schema = _schema(pyarrow)
    rows = (_row(line) for line in lines if line["object"] in (OBJECT, ANSWER))
    count = 0
    with pyarrow.parquet.ParquetWriter(path, schema, compression="zstd") as writer:
        while group := list(islice(rows, _ROWS)):
            writer.write_table(pyarrow.Table.from_pylist(group, schema=schema))
            count += len(group)
    return count


def _schema(arrow: Any) -> Any:
    times = arrow.timestamp("us", tz="UTC")
    names = arrow.list_(arrow.string())
    return arrow.schema(
        [
            ("time", times),
            ("object", arrow.string()),
            ("sequence", arrow.int64()),
            ("waited_s", arrow.float64()),
            ("rules", names),
            ("open_questions", names),
            *((name, arrow.string()) for name in _TEXTS),
        ]
    )


def _row(line: JsonObject) -> JsonObject:
    record = line["record"]
    members = _decided(record) if line["object"] == OBJECT else record
    return {
        **members,
        "time": datetime.fromisoformat(line["time"]),
        "object": line["object"],
        "producer": line["producer"],
        "sequence": line["sequence"],
        "record": json.dumps(record, separators=(",", ":")),
    }


def _decided(record: JsonObject) -> JsonObject:
    document = record["input"]
    return {
        **record["decision"],
        "invocation_id": document["invocation"]["id"],
        "actor": document["actor"]["id"],
        "session_id": document["session"]["id"],
        "tool_id": document["tool"]["id"],
        "tool_kind": document["tool"]["kind"],
        **{name: record.get(name) for name in ("trace_id", "span_id")},
    }
