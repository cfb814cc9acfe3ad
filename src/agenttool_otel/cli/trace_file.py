"""Spans as lines of OTLP JSON, which ``agenttool trace`` and the Collector's file receiver read.

Source: https://opentelemetry.io/docs/specs/otel/protocol/file-exporter/
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

_IDS = ("traceId", "spanId", "parentSpanId")


def otlp_document(spans: Sequence[ReadableSpan]) -> dict[str, Any]:
    """Return spans as an OTLP document, whose JSON form has ids in hexadecimal and enumerations as
    numbers.

    Args:
        spans: ended spans.
    """
    document: dict[str, Any] = MessageToDict(encode_spans(spans), use_integers_for_enums=True)
    for resource in document.get("resourceSpans", ()):
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                for holder in (span, *span.get("links", ())):
                    _write_ids_in_hexadecimal(holder)
    return document


def _write_ids_in_hexadecimal(holder: dict[str, Any]) -> None:
    for name in _IDS:
        if name in holder:
            # protobuf's own JSON has base64
            holder[name] = base64.b64decode(holder[name]).hex()


class TraceFile(SpanExporter):
    """Writes a line for each batch of spans.

    Args:
        path: the file, which only this user may read; what it held is gone.

    Raises:
        OSError: it can't be written, or is a link.
    """

    def __init__(self, path: Path) -> None:
        # a checkout may hold a link of this name to any file of the user's
        flags = os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | getattr(os, "O_NOFOLLOW", 0)
        descriptor = os.open(path, flags, 0o600)
        os.fchmod(descriptor, 0o600)
        os.ftruncate(descriptor, 0)
        self._file = os.fdopen(descriptor, "w", encoding="utf-8")

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Write a line."""
        try:
            self._file.write(json.dumps(otlp_document(spans)) + "\n")
            self._file.flush()
        except (OSError, ValueError):  # the disk is full, or the file is closed
            return SpanExportResult.FAILURE
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        """Close the file."""
        self._file.close()
