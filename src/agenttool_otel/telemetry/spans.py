"""Questions to a span, which may be anybody's: whatever it raises is an answer of its own, never the tool's concern."""

from __future__ import annotations

from opentelemetry.trace import INVALID_SPAN_CONTEXT, Span, SpanContext


def context_of(span: Span) -> SpanContext:
    """Return a span's context, an invalid one where the span can't tell."""
    try:
        return span.get_span_context()
    except Exception:
        return INVALID_SPAN_CONTEXT
