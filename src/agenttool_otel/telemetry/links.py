"""Links from a span to the one of the call that it is about, by the ids that a store keeps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opentelemetry.trace import Link, SpanContext, TraceFlags


def asking_span(stored: Mapping[str, Any]) -> tuple[Link, ...]:
    """Return the link to the span of a call that asked; none where its ids can't be read.

    Args:
        stored: the context that the asking process stored, with ``trace_id`` and ``span_id`` in
            hexadecimal.
    """
    try:
        trace_id, span_id = int(stored["trace_id"], 16), int(stored["span_id"], 16)
    except (KeyError, TypeError, ValueError):
        return ()
    flags = TraceFlags(TraceFlags.SAMPLED)
    return (Link(SpanContext(trace_id, span_id, is_remote=True, trace_flags=flags)),)
