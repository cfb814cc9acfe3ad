"""``agenttool trace``: what was decided, waited for, redacted and returned, drawn in the
terminal.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.console import Console

from agenttool_otel.cli.plain_text import clean, counted
from agenttool_otel.cli.rendering import out, render_summary, render_tree
from agenttool_otel.cli.spans import SpanView, TraceFormatError
from agenttool_otel.cli.story import why
from agenttool_otel.cli.trace_sources import (
    Backend,
    Question,
    TraceUnavailable,
    read_file,
    read_url,
)
from agenttool_otel.cli.would_have import render_would_have
from agenttool_otel.names import Attr, Behavior, GenAI

EXIT_CODES: Final = {"ok": 0, "not_found": 1, "usage": 2, "unreadable": 2}
"""What the exit codes of this command mean."""

app = typer.Typer(add_completion=False, no_args_is_help=True)


@app.command("trace")
def trace(
    source: Annotated[
        str, typer.Argument(help="OTLP JSON file, - for standard input, or URL of Jaeger or Tempo.")
    ],
    trace_id: Annotated[str, typer.Option("--trace", help="Show one trace.")] = "",
    story: Annotated[
        str, typer.Option("--why", metavar="SPAN", help="One call's story: span or invocation id.")
    ] = "",
    service: Annotated[str, typer.Option(help="Service to search in.")] = "",
    session: Annotated[str, typer.Option(help="Only calls of this session.")] = "",
    tool: Annotated[str, typer.Option(help="Only calls of this tool.")] = "",
    rule: Annotated[str, typer.Option(help="Only calls that this rule decided.")] = "",
    behavior: Annotated[Behavior | None, typer.Option(help="Only calls so decided.")] = None,
    approval: Annotated[str, typer.Option(help="Only calls behind this approval request.")] = "",
    hours: Annotated[float, typer.Option(min=0.01, help="How far back to search.")] = 24.0,
    limit: Annotated[int, typer.Option(min=1, max=1500, help="Most traces to fetch.")] = 20,
    backend: Annotated[Backend, typer.Option(help="API that the URL has.")] = "auto",
    header: Annotated[
        list[str] | None, typer.Option(help="HTTP header, NAME:VALUE; may be repeated.")
    ] = None,
    events: Annotated[bool, typer.Option("--events", help="List each span's events.")] = False,
    whole: Annotated[
        bool, typer.Option("--whole", help="Show the other calls of the traces found, too.")
    ] = False,
    would_have: Annotated[
        bool, typer.Option("--would-have", help="What shadow mode would have asked or denied.")
    ] = False,
    summary: Annotated[
        bool, typer.Option("--summary", help="Count calls per tool instead of drawing trees.")
    ] = False,
) -> None:
    """Show traces of governed tool calls: decisions, waits, sizes, redactions."""
    console = out()
    errors = Console(stderr=True)
    question = Question(
        trace_id=trace_id.lower(),
        service=service,
        tags=_tags(
            {
                Attr.SESSION_ID: session,
                GenAI.TOOL_NAME: tool,
                Attr.PERMISSION_RULE: rule,
                Attr.PERMISSION_BEHAVIOR: behavior.value if behavior else "",
                Attr.APPROVAL_ID: approval,
            }
        ),
        hours=hours,
        limit=limit,
        headers=_headers(header or []),
    )
    try:
        found = _spans(source, question, backend)
        spans = _selected(found, question, whole=whole or bool(story))
    except (TraceUnavailable, TraceFormatError) as error:
        errors.print(clean(error), style="red", markup=False, highlight=False)
        raise typer.Exit(EXIT_CODES["unreadable"]) from error
    if not spans:
        errors.print("no such spans", style="yellow")
        raise typer.Exit(EXIT_CODES["not_found"])
    if story:
        span = _chosen_span(spans, story, errors)
        console.print(why(span), markup=False, highlight=False)
    elif would_have:
        console.print(render_would_have(spans))
    elif summary:
        console.print(render_summary(spans))
    else:
        console.print(render_tree(spans, events=events))
        console.print(render_summary(spans))


def _tags(options: dict[str, str]) -> dict[str, str]:
    return {name: value for name, value in options.items() if value}


def _headers(pairs: list[str]) -> dict[str, str]:
    headers = {}
    for pair in pairs:
        name, colon, value = pair.partition(":")
        if not colon or not name.strip() or "\n" in pair or "\r" in pair:
            raise typer.BadParameter("a header is NAME:VALUE", param_hint="--header")
        headers[name.strip()] = value.strip()
    return headers


def _spans(source: str, question: Question, backend: Backend) -> list[SpanView]:
    if source == "-":
        return read_file(sys.stdin)
    if source.startswith(("http://", "https://")):
        return read_url(source, question, backend)
    return read_file(Path(source))


def _selected(spans: list[SpanView], question: Question, *, whole: bool) -> list[SpanView]:
    """The spans that meet the filters and their ancestors, or with ``whole`` their whole traces.

    A server filters traces, never calls: Jaeger returns a trace of forty calls for one that fits.
    """
    found = [span for span in spans if _fits(span, question)]
    if whole or not question.tags:
        traces = {span.trace_id for span in found}
        return [span for span in spans if span.trace_id in traces]
    by_id = {_key(span): span for span in spans}
    kept: set[tuple[str, str]] = set()
    for span in found:
        above: SpanView | None = span
        while above is not None and _key(above) not in kept:
            kept.add(_key(above))
            above = by_id.get((above.trace_id, above.parent_id or ""))
    return [span for span in spans if _key(span) in kept]


def _key(span: SpanView) -> tuple[str, str]:
    return span.trace_id, span.span_id


def _fits(span: SpanView, question: Question) -> bool:
    # Jaeger and Tempo drop leading zeros of a trace id
    if question.trace_id and span.trace_id != question.trace_id.zfill(32):
        return False
    if question.service and span.resource.get("service.name") != question.service:
        return False
    return all(str(span.get(name)) == value for name, value in question.tags.items())


def _chosen_span(spans: list[SpanView], wanted: str, errors: Console) -> SpanView:
    """The span that is meant: by the start of its id, or the last span of an invocation."""
    found = [span for span in spans if span.span_id.startswith(wanted.lower())]
    if len(found) == 1:
        return found[0]
    if found:
        problem = f"{counted(len(found), 'span')} begin with {clean(wanted)}"
    else:
        # a call that waited for an approval has two spans: the second has the whole story
        of_call = [span for span in spans if span.get(Attr.INVOCATION_ID) == wanted]
        if of_call:
            return max(of_call, key=lambda span: span.start_ns)
        problem = f"no span or call {clean(wanted)}"
    errors.print(problem, style="red", markup=False, highlight=False)
    raise typer.Exit(EXIT_CODES["usage"])
