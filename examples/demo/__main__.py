"""A scripted agent does a small job with real tools: each call as it ends, the figures, whether all
went as expected.

``agenttool demo``, or ``python examples/demo``; it needs the extras cli and langchain, but no key
and no network.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path

from demo_script import FACTS, ScriptedModel, Step, steps_for
from demo_workspace import World, make_tools, open_world
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider
from rich.console import Console
from rich.markup import escape
from rich.padding import Padding
from rich.text import Text

from agenttool_otel.approvals.console import ConsoleApprover
from agenttool_otel.approvals.display import describe_effects, effects_text
from agenttool_otel.approvals.types import ApprovalAnswer, ApprovalRequest
from agenttool_otel.cli.rendering import render_span, render_summary
from agenttool_otel.cli.spans import SpanView
from agenttool_otel.context.context import agent_context
from agenttool_otel.enforcement.rehearsal import rehearsal_failure
from agenttool_otel.govern.governor import Governor
from agenttool_otel.names import Attr, GenAI
from agenttool_otel.telemetry import TelemetrySettings

_ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"


class _Live(SpanProcessor):
    """Prints each tool call as it ends, and keeps it."""

    def __init__(self, console: Console, steps: Sequence[Step]) -> None:
        self.views: list[SpanView] = []
        self.spans: list[ReadableSpan] = []
        self._console = console
        self._why = {f"call-{number:02d}": step.why for number, step in enumerate(steps, 1)}

    def on_end(self, span: ReadableSpan) -> None:
        self.spans.append(span)
        view = SpanView.from_sdk(span)
        if not view.is_tool_call:
            return
        self.views.append(view)
        why = self._why.get(str(view.get(GenAI.TOOL_CALL_ID)), "")
        self._console.print(Padding(Text(why, style="italic dim"), (1, 0, 0, 2)))
        self._console.print(Padding(render_span(view), (0, 0, 0, 2)))


class _ScriptedApprover:
    """Answers as the script needs it: writing the summary is fine, everything else is not."""

    def __init__(self, console: Console) -> None:
        self._console = console

    def ask(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Answer at once and say so."""
        approved = request.tool_name == "write_file"
        word = "approves" if approved else "rejects"
        self._console.print(
            f"  [yellow]?[/] {request.tool_name}: {request.message} [dim]-- the scripted approver {word}[/]"
        )
        if request.effects is not None:
            self._console.print(f"    [dim]It was tried: {describe_effects(request)}.[/]")
            self._console.print(Padding(Text(effects_text(request), style="dim"), (0, 0, 0, 4)))
        return ApprovalAnswer(
            approved, answered_by="user:demo", reason="" if approved else "not part of the job"
        )


def run_demo(console: Console, *, interactive: bool, save: Path | None = None) -> bool:
    """Run the demo."""
    with ExitStack() as stack:
        folder = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="agenttool-demo-"))
        ).resolve()
        root = folder / "workspace"
        root.mkdir()
        world = stack.enter_context(open_world(root))
        layers = folder / "layers"  # what a command would change, until that is decided
        failure = rehearsal_failure(layers)
        steps = steps_for(world, rehearses=not failure)
        live = _Live(console, steps)
        tracer, meter = _providers(live)
        stack.callback(tracer.shutdown)
        stack.callback(meter.shutdown)
        governor = Governor(
            approver=ConsoleApprover(console=console)
            if interactive
            else _ScriptedApprover(console),
            policy_data={"agenttool": {"settings": {"network": {"allowed_hosts": ["127.0.0.1"]}}}},
            telemetry=TelemetrySettings(
                tracer_provider=tracer, meter_provider=meter, capture="SPAN_ONLY"
            ),
            results_dir=str(folder / "results"),
            rehearsals_dir=str(layers),
        )
        stack.callback(governor.close)
        console.rule(
            "[bold]agenttool demo[/]: an agent's tools, decided by Rego, traced by OpenTelemetry"
        )
        console.print(
            f"[dim]workspace {root.name}, policy {governor.decider.revision}, no key, no network[/]"
        )
        if failure:
            console.print(
                f"[dim]No command can be tried before it runs on this host: {escape(failure)}[/]"
            )
        tools = [governor.govern(tool, **FACTS[tool.name]) for tool in make_tools(root)]
        agent = create_agent(ScriptedModel(steps=steps), tools)
        with (
            agent_context(
                actor="agent:demo", tenant="demo", roles=["analyst"], session_id="demo-1", interactive=True,
                roots=[str(root)], cwd=str(root), user_text="Compare the prices, then write summary.md.",
            ),
            tracer.get_tracer("agenttool-demo").start_as_current_span("invoke_agent demo"),
        ):  # fmt: skip
            agent.invoke(
                {"messages": [HumanMessage("Do what the notes say.")]}, {"recursion_limit": 100}
            )
        tracer.force_flush()
        problems = [] if interactive else _problems(live.views, steps, world)
        console.print()
        console.print(render_summary(live.views))
        if save is not None:
            from agenttool_otel.cli.trace_file import otlp_document

            save.write_text(
                json.dumps(otlp_document(live.spans), indent=1) + "\n", encoding="utf-8"
            )
            console.print(f"[dim]The trace is in {save}: agenttool trace {save}[/]", soft_wrap=True)
        _farewell(console, problems, interactive=interactive)
        return not problems


def _providers(live: _Live) -> tuple[TracerProvider, MeterProvider]:
    resource = Resource.create({"service.name": "agenttool-demo"})
    tracer = TracerProvider(resource=resource)
    tracer.add_span_processor(live)
    readers: list[MetricReader] = []
    if os.environ.get(_ENDPOINT):
        from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
        from opentelemetry.sdk.trace.export import BatchSpanProcessor

        tracer.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
        readers.append(PeriodicExportingMetricReader(OTLPMetricExporter()))
    return tracer, MeterProvider(metric_readers=readers, resource=resource)


def _problems(views: Sequence[SpanView], steps: Sequence[Step], world: World) -> list[str]:
    """Compare what happened with the script; also look for the secret in every span, and for the
    written file.
    """
    found: list[str] = []
    by_call = {str(view.get(GenAI.TOOL_CALL_ID)): view for view in views}
    for number, step in enumerate(steps, 1):
        view = by_call.get(f"call-{number:02d}")
        name = f"call {number} ({step.tool})"
        if view is None:
            found.append(f"{name} left no span")
            continue
        seen = (str(view.get(Attr.PERMISSION_BEHAVIOR) or ""), str(view.get(Attr.RESULT_STATUS)))
        # an ask that was answered is decided again with the answer; its last word is in the events
        asked = any(event.name == "tool.approval.requested" for event in view.events)
        behavior = "ask" if asked else seen[0]
        if (behavior, seen[1]) != (step.behavior, step.status):
            found.append(
                f"{name}: expected {step.behavior or 'no decision'}, {step.status}; got {behavior}, {seen[1]}"
            )
        if step.persisted and view.get(Attr.RESULT_PERSISTENCE) != "preview_and_persist":
            found.append(f"{name}: the large result was not kept outside")
        if step.redacted and not view.get(Attr.REDACTION_COUNT):
            found.append(f"{name}: nothing was redacted")
    if any(world.secret in repr(view) for view in views):
        found.append("a secret reached a span")
    if not (world.root / "summary.md").exists():
        found.append("the approved change was not made")
    if "TODO" not in (world.root / "notes.txt").read_text(encoding="utf-8"):
        found.append("a rejected change was made")
    return found


def _farewell(console: Console, problems: Sequence[str], *, interactive: bool) -> None:
    if problems:
        console.print("[bold red]Not as expected:[/]")
        for problem in problems:
            console.print(f"  [red]-[/] {problem}")
    elif not interactive:
        console.print(
            "[bold green]Every call ended as expected.[/] The secret is in no span; the rejected changes were not made."
        )
    if os.environ.get(_ENDPOINT):
        console.print(f"[dim]The same run went to {os.environ[_ENDPOINT]}.[/]")
    else:
        console.print(
            f"[dim]To see it in Jaeger or Grafana: start dashboards/compose.yaml, then run again with"
            f" {_ENDPOINT}=http://localhost:4318[/]"
        )


if __name__ == "__main__":
    sys.exit(0 if run_demo(Console(), interactive="--interactive" in sys.argv) else 1)
