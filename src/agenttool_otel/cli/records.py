"""``agenttool records``: the calls in a sink's file, how each was decided and how it ended."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Final, NamedTuple

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agenttool_otel.cli.plain_text import clean
from agenttool_otel.cli.rendering import out, style_of

EXIT_CODES: Final = {"ok": 0, "not_found": 1, "usage": 2, "unreadable": 2}
"""What the exit codes of this command mean."""

app = typer.Typer(add_completion=False, no_args_is_help=True)


@dataclass(slots=True)
class CallView:
    """The records of one call; later ones replace earlier ones, as a paused call ends twice."""

    invocation: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] = field(default_factory=dict)
    decisions: dict[str, dict[str, Any]] = field(default_factory=dict)  # by id, oldest first
    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def decision(self) -> dict[str, Any]:
        """The decision in force."""
        if not self.decisions:
            return {}
        return list(self.decisions.values())[-1]


@dataclass(slots=True)
class RecordsView:
    """All that a file holds."""

    calls: dict[str, CallView] = field(default_factory=dict)
    kinds: Counter[str] = field(default_factory=Counter)
    missing: int = 0  # numbers that no line has: records that were lost
    unreadable: int = 0  # lines that are no records


@app.command("records")
def records(
    source: Annotated[
        str, typer.Argument(help="File of a JsonlSink or CloudEventsSink, or - for standard input.")
    ],
    invocation: Annotated[
        str, typer.Option("--invocation", help="Print all records of this call, one a line.")
    ] = "",
    tool: Annotated[str, typer.Option(help="Only calls of this tool.")] = "",
    status: Annotated[str, typer.Option(help="Only calls whose result has this status.")] = "",
) -> None:
    """Show the calls in a file of records: decision, end, result, what was lost."""
    console = out()
    errors = Console(stderr=True)
    try:
        view = _read_source(source)
    except OSError as error:
        errors.print(f"the file can't be read: {type(error).__name__}", style="red", markup=False)
        raise typer.Exit(EXIT_CODES["unreadable"]) from error
    if invocation:
        if invocation not in view.calls:
            errors.print("no such call", style="yellow")
            raise typer.Exit(EXIT_CODES["not_found"])
        for line in view.calls[invocation].lines:
            typer.echo(json.dumps(line))
        return
    chosen = _chosen(view, tool, status)
    console.print(_table(chosen))
    kinds = [f"{count:,} {clean(kind)}" for kind, count in sorted(view.kinds.items())]
    counts = ", ".join(kinds) or "no records"
    console.print(Text(f"{len(chosen):,} calls; {counts}", style="dim"))
    if view.missing or view.unreadable:
        lost = f"{view.missing:,} numbers are missing, {view.unreadable:,} lines can't be read"
        console.print(Text(lost, style="bold yellow"))


def _read_source(source: str) -> RecordsView:
    if source == "-":
        return read_records(sys.stdin)
    # a crash may have left half a character at the end: its line counts as unreadable
    with Path(source).open(encoding="utf-8", errors="replace") as file:
        return read_records(file)


def _chosen(view: RecordsView, tool: str, status: str) -> dict[str, CallView]:
    chosen = {}
    for key, call in view.calls.items():
        if tool and call.invocation.get("tool_id") != tool:
            continue
        if status and call.result.get("status") != status:
            continue
        chosen[key] = call
    return chosen


def read_records(lines: Iterable[str]) -> RecordsView:
    """Read the lines of a sink, of one producer or of several.

    Each producer numbers its records from 1, without gaps: 1, 2, 5 are two lost records.
    """
    view = RecordsView()
    last: dict[str, int] = {}
    for line in lines:
        if not line.strip():
            continue
        record = _read(line)
        if record is None:
            view.unreadable += 1
            continue
        before = last.get(record.producer, 0)
        view.missing += max(0, record.sequence - before - 1)
        last[record.producer] = max(record.sequence, before)
        view.kinds[record.kind] += 1
        invocation = record.fields.get("invocation_id")
        if isinstance(invocation, str):
            call = view.calls.setdefault(invocation, CallView())
            _add(call, record.kind, record.fields)
    return view


class _Record(NamedTuple):
    """One line of a sink's file."""

    producer: str  # the process that wrote it
    sequence: int  # its number among the producer's records, from 1
    kind: str  # tool_event, or the object's type, as tool_result
    fields: dict[str, Any]  # the standard's record


def _read(line: str) -> _Record | None:
    """Read a line of a JsonlSink or a CloudEventsSink, ``None`` where it is neither."""
    try:
        document = json.loads(line)
        # a CloudEvent has its record in "data" and its type in "type"
        fields = document["data"] if "specversion" in document else document["record"]
        kind = "tool_event"
        if "event_type" not in fields:
            kind = str(document.get("object") or document["type"])
        return _Record(
            producer=str(document["producer"]),
            sequence=int(document["sequence"]),
            kind=kind,
            fields=dict(fields),
        )
    except (ValueError, KeyError, TypeError, RecursionError):
        return None


def _add(call: CallView, kind: str, record: dict[str, Any]) -> None:
    call.lines.append({"object": kind, "record": record})
    if kind == "tool_invocation":
        call.invocation = record
    elif kind == "tool_result":
        call.result = record
    elif kind == "tool_permission_decision":
        call.decisions[str(record.get("decision_id"))] = record


def _table(calls: dict[str, CallView]) -> Table:
    table = Table(box=None, pad_edge=False)
    for title in ("ended", "tool", "decision", "rule", "status", "result", "error", "invocation"):
        table.add_column(title, overflow="fold")
    for key, call in calls.items():
        table.add_row(*_cells(key, call))
    return table


def _cells(key: str, call: CallView) -> Iterator[Text]:
    """Yield the cells of one row, in the order of the titles."""
    # 2026-11-27T09:41:06.123456Z
    ended = _text(call.invocation, "ended_at")[:19].replace("T", " ")
    behavior = _text(call.decision, "behavior")
    yield Text(ended)
    yield Text(_text(call.invocation, "tool_id"), style="bold")
    yield Text(behavior, style=style_of(behavior))
    yield Text(_text(call.decision.get("reason"), "rule_ref"), style="cyan")
    yield Text(_text(call.invocation, "status"))
    yield Text(_text(call.result, "status"))
    yield Text(_text(call.result.get("error"), "error_class"), style="red")
    yield Text(clean(key), style="dim")


def _text(record: object, name: str) -> str:
    """A field as safe text; empty where there is no such record or no such field."""
    if not isinstance(record, dict):
        return ""
    return clean(record.get(name) or "")
