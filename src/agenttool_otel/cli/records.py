"""``agenttool records``: the calls that a sink's file tells of, how each was decided and
how it ended.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from agenttool_otel.cli.rendering import BEHAVIOR_STYLE, out
from agenttool_otel.cli.story import clean

app = typer.Typer(add_completion=False, no_args_is_help=True)


@dataclass(slots=True)
class CallView:
    """What the records say of one call; later ones replace earlier ones, as a paused call
    ends twice.
    """

    invocation: dict[str, Any] = field(default_factory=dict)
    result: dict[str, Any] = field(default_factory=dict)
    decisions: dict[str, dict[str, Any]] = field(default_factory=dict)  # by id, oldest first
    lines: list[dict[str, Any]] = field(default_factory=list)

    @property
    def decision(self) -> dict[str, Any]:
        """The decision in force."""
        return list(self.decisions.values())[-1] if self.decisions else {}


@dataclass(slots=True)
class RecordsView:
    """All that a file tells."""

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
    """Show the calls that a file of records tells of: decision, end, result, and what was lost."""
    console, errors = out(), Console(stderr=True)
    try:
        if source == "-":
            view = read_records(sys.stdin)
        else:
            with Path(source).open(encoding="utf-8", errors="replace") as file:
                view = read_records(file)
    except OSError as error:
        errors.print(f"the file can't be read: {type(error).__name__}", style="red", markup=False)
        raise typer.Exit(2) from error
    if invocation:
        if invocation not in view.calls:
            errors.print("no such call", style="yellow")
            raise typer.Exit(1)
        for line in view.calls[invocation].lines:
            typer.echo(json.dumps(line))
        return
    shown = {
        key: call
        for key, call in view.calls.items()
        if (not tool or call.invocation.get("tool_id") == tool)
        and (not status or call.result.get("status") == status)
    }
    console.print(_table(shown))
    counted = ", ".join(f"{count:,} {clean(kind)}" for kind, count in sorted(view.kinds.items()))
    console.print(Text(f"{len(shown):,} calls; {counted or 'no records'}", style="dim"))
    if view.missing or view.unreadable:
        lost = f"{view.missing:,} numbers are missing, {view.unreadable:,} lines can't be read"
        console.print(Text(lost, style="bold yellow"))


def read_records(lines: Iterable[str]) -> RecordsView:
    """Read the lines of a sink, of one producer or of several."""
    view = RecordsView()
    last: dict[str, int] = {}
    for line in lines:
        if not line.strip():
            continue
        if (read := _read(line)) is None:
            view.unreadable += 1
            continue
        producer, sequence, kind, record = read
        view.missing += max(0, sequence - last.get(producer, 0) - 1)
        last[producer] = max(sequence, last.get(producer, 0))
        view.kinds[kind] += 1
        key = record.get("invocation_id")
        if isinstance(key, str):
            _add(view.calls.setdefault(key, CallView()), kind, record)
    return view


def _read(line: str) -> tuple[str, int, str, dict[str, Any]] | None:
    try:
        found = json.loads(line)
        record = found["data"] if "specversion" in found else found["record"]
        kind = "tool_event" if "event_type" in record else str(found.get("object") or found["type"])
        return str(found["producer"]), int(found["sequence"]), kind, {**record}
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
    behavior = str(call.decision.get("behavior") or "")
    error = call.result.get("error")
    reason = call.decision.get("reason")
    ended = str(call.invocation.get("ended_at") or "")[:19].replace("T", " ")
    yield Text(clean(ended))
    yield Text(clean(call.invocation.get("tool_id") or ""), style="bold")
    yield Text(clean(behavior), style=BEHAVIOR_STYLE.get(behavior, ("", ""))[1])
    yield Text(
        clean(reason.get("rule_ref") or "") if isinstance(reason, dict) else "", style="cyan"
    )
    yield Text(clean(call.invocation.get("status") or ""))
    yield Text(clean(call.result.get("status") or ""))
    yield Text(
        clean(error.get("error_class") or "") if isinstance(error, dict) else "", style="red"
    )
    yield Text(clean(key), style="dim")
