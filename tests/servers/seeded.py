"""A seeded run of real governed calls of every outcome, exported over OTLP, and what must be found
of it afterwards.

What is expected is known from the plan and from what the calls returned, never from the telemetry
itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
import string
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest.mock import patch

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import (
    InMemoryMetricReader,
    MetricReader,
    PeriodicExportingMetricReader,
)
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from servers_run import free_ports

from agenttool_otel import ApprovalRequest, Governor, TelemetrySettings, ToolResult, agent_context
from agenttool_otel.approvals.types import ApprovalAnswer
from agenttool_otel.names import Attr, ErrorClass, Event, GenAI, Label
from agenttool_otel.redaction import RedactionSettings, Redactor

SERVICE = "agenttool-tests"
SESSIONS = tuple(f"s-{number}" for number in range(6))
AGENTS = ("agent:support", "agent:research")
READ = "agenttool.rules.paths.read_inside"
SENSITIVE = "agenttool.rules.paths.sensitive"
REQUIRED = "agenttool.rules.approval.required"
APPROVED = "agenttool.rules.approval.approved"


@dataclass(frozen=True)
class Planned:
    """What one call must be found as."""

    kind: str
    invocation_id: str
    tool: str
    session: str
    behavior: str
    status: str
    rule: str = ""
    size: int = 0


@dataclass
class Person:
    """An approver whose answers are planned; remembers which request was about which call."""

    yes: bool
    asked: dict[str, str] = field(default_factory=dict)

    def ask(self, request: ApprovalRequest) -> ApprovalAnswer:
        """Answer after a moment."""
        self.asked[request.request_id] = request.invocation_id
        time.sleep(0.005)
        return ApprovalAnswer(
            approved=self.yes, answered_by="user:ann", roles=("approver",), reason="as planned"
        )


class Breaks:
    """A detector with a bug."""

    name = "breaks"

    def find(self, data: bytes, lowered: bytes) -> Iterable[Any]:
        """Raise on a word that only the planned calls use."""
        if b"confuse-the-detector" in data:
            raise RuntimeError("a bug")
        return ()


def counted_processor(
    url: str, meters: MeterProvider, *, timeout: float = 10, **options: int
) -> BatchSpanProcessor:
    """The SDK's processor and OTLP exporter, counting what they could not deliver."""
    with patch.dict(os.environ, OTEL_PYTHON_SDK_INTERNAL_METRICS_ENABLED="true"):
        exporter = OTLPSpanExporter(url, timeout=timeout, meter_provider=meters)
        return BatchSpanProcessor(
            exporter, schedule_delay_millis=50, meter_provider=meters, **options
        )


class Run:
    """Governors of every configuration that the outcomes need, with one SDK.

    Args:
        folder: the root that file tools may read, and a place for what goes wrong.
        otlp: base URL of an OTLP/HTTP receiver, or an empty string for telemetry in memory only.
    """

    def __init__(self, folder: Path, otlp: str = "") -> None:
        self.root = folder / "root"
        self.root.mkdir()
        self.spans = InMemorySpanExporter()
        self.reader = InMemoryMetricReader()
        resource = Resource({"service.name": SERVICE})
        readers: list[MetricReader] = [self.reader]
        if otlp:
            exporter = OTLPMetricExporter(f"{otlp}/v1/metrics")
            readers.append(PeriodicExportingMetricReader(exporter, export_interval_millis=400))
        self.meters = MeterProvider(readers, resource=resource)
        self.traces = TracerProvider(resource=resource)
        self.traces.add_span_processor(SimpleSpanProcessor(self.spans))
        self.unheard: TracerProvider | None = None
        if otlp:
            self.traces.add_span_processor(counted_processor(f"{otlp}/v1/traces", self.meters))
            (closed,) = free_ports(1)
            self.unheard = TracerProvider(resource=resource)
            # a closed port is tried again until the time is over; an answer of 404 is final, and
            # may come late
            for wrong, timeout in (
                (f"http://127.0.0.1:{closed}/v1/traces", 0.3),
                (f"{otlp}/v1/unknown", 30),
            ):
                options = {"max_queue_size": 4, "max_export_batch_size": 4}
                self.unheard.add_span_processor(
                    counted_processor(wrong, self.meters, timeout=timeout, **options)
                )
        blocked = folder / "not-a-folder"
        blocked.write_text("results can't be stored below a file")
        self.yes, self.no = Person(True), Person(False)
        # a canceled call gives no result that could name it, its events do
        self.heard: list[str] = []
        self.begun = 0  # how many bodies were begun
        self.governors = {
            "plain": self._governor(folder),
            "yes": self._governor(folder, approver=self.yes),
            "no": self._governor(folder, approver=self.no),
            "captures": self._governor(
                folder,
                capture="SPAN_ONLY",
                redactor=Redactor(RedactionSettings(extra_detectors=(Breaks(),))),
            ),
            "unreachable": self._governor(
                folder, policy_engine="opa_server", opa_url="http://127.0.0.1:9"
            ),
            "shadow": self._governor(folder, shadow_packages=["agenttool.rules.paths"]),
            "unstored": self._governor(folder, results_dir=str(blocked / "results")),
        }
        self.tools = {name: self._tools(governor) for name, governor in self.governors.items()}
        self.planned: list[Planned] = []

    def _governor(self, folder: Path, capture: Any = "NO_CONTENT", **options: Any) -> Governor:
        telemetry = TelemetrySettings(
            tracer_provider=self.traces,
            meter_provider=self.meters,
            capture=capture,
            verbose=True,
            subscribers=(self._hear,),
        )
        options.setdefault("results_dir", str(folder / "results"))
        return Governor(telemetry=telemetry, **options)

    def _hear(self, event: Any) -> None:
        self.heard.append(event.invocation_id or "")
        self.begun += event.event_type == Event.INVOCATION_STARTED

    def _tools(self, governor: Governor) -> dict[str, Any]:
        files: dict[str, Any] = {
            "namespace": "local.files",
            "tool_kind": "file_operation",
            "access_kinds": ["file_read"],
            "read_only": True,
            "path_args": ["path"],
        }

        def read_file(path: str, text: str = "", size: int = 0) -> str:
            """Give text, or so many characters."""
            return text or "x" * size

        def parse_file(path: str) -> str:
            """Fail."""
            raise ValueError("the file is malformed")

        def scan_files(path: str) -> str:
            """Take too long."""
            time.sleep(0.15)
            return "late"

        async def watch_file(path: str) -> str:
            """Wait until somebody stops it."""
            await asyncio.sleep(60)
            return "never"

        def send_mail(to: str) -> str:
            """Send."""
            return "sent"

        return {
            "read_file": governor.govern(read_file, **files),
            "parse_file": governor.govern(parse_file, **files),
            "scan_files": governor.govern(scan_files, timeout_ms=20, **files),
            "watch_file": governor.govern(watch_file, **files),
            "send_mail": governor.govern(
                send_mail,
                namespace="mail",
                approval_required=True,
                access_kinds=["external_send"],
                write_effects=["remote_mutation"],
            ),
        }

    # --- the calls --------------------------------------------------------------------------------

    def make(self, *, seed: int, rounds: int, pause: float = 0.0) -> list[Planned]:
        """Make ``rounds`` times every kind of call, in a seeded order, sessions and agents mixed.

        Args:
            seed: seed of the order.
            rounds: how often each kind is made.
            pause: seconds between rounds, so that a scraper sees the counters grow.

        Returns:
            What must be found.
        """
        random_ = random.Random(seed)
        for number in range(rounds):
            kinds = [kind for kind, (count, *_) in KINDS.items() for _ in range(count)]
            random_.shuffle(kinds)
            for kind in kinds:
                self._call(
                    kind,
                    random_.choice(SESSIONS),
                    random_.choice(AGENTS),
                    random_.randrange(1, 1000),
                    number,
                )
            if pause:
                time.sleep(pause)
        return self.planned

    def _call(self, kind: str, session: str, agent: str, salt: int, number: int) -> None:
        _, governor, tool, arguments, behavior, status, rule = KINDS[kind]
        given = {
            key: value(salt) if callable(value) else str(value).replace("ROOT", str(self.root))
            for key, value in arguments.items()
        }
        # counters of a session are a rule's input: one session a round keeps the plan independent
        # of budgets
        session = f"{session}-{number}"
        with agent_context(
            actor=agent, tenant="acme", roles=["reader"], session_id=session, roots=[str(self.root)]
        ):
            governed = self.tools[governor][tool].tool
            if kind == "canceled":
                invocation_id = self._canceled(governed, given)
            else:
                result: ToolResult = governed.invoke(given)
                assert result.status.value == status, (kind, result.status, result.error)
                invocation_id = result.invocation_id
        size = 0
        if status in {"succeeded", "too_large"}:
            size = (
                4
                if tool == "send_mail"
                else len(given.get("text", "")) or int(given.get("size", 0))
            )
        self.planned.append(
            Planned(kind, invocation_id, tool, session, behavior, status, rule, size)
        )

    def _canceled(self, governed: Any, given: dict[str, Any]) -> str:
        begun = self.begun

        async def stop() -> None:
            task = asyncio.ensure_future(governed.ainvoke(given))
            for _ in range(6_000):  # canceled while it is decided, it would be denied
                if self.begun > begun:
                    break
                await asyncio.sleep(0.01)
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

        asyncio.run(stop())
        return self.heard[-1]

    def health(self) -> None:
        """Record what only something broken, or a changed bundle, causes; lose spans of another
        program.
        """
        telemetry = self.governors["plain"].telemetry
        for result, count in (("succeeded", 2), ("failed", 1)):
            telemetry.count(
                telemetry.instruments.policy_reloads, count, {Label.RELOAD_RESULT: result}
            )
        telemetry.count(telemetry.instruments.approvals_unstored, 1, {})
        self._sandboxes()
        telemetry.losses.note("span", RuntimeError("a provider that raises"))
        if self.unheard is not None:
            for _ in range(30):
                self.unheard.get_tracer("t").start_span("s").end()
            self.unheard.force_flush()

    def _sandboxes(self) -> None:
        """Record what calls record that a sandbox holds, which not every kernel can hold."""
        telemetry = self.governors["plain"].telemetry
        held = {GenAI.TOOL_NAME: "read_file", Attr.SANDBOX_PROFILE: "read"}
        for labels in (
            {**held, Attr.SANDBOX_ENFORCED: True},
            {
                **held,
                Attr.SANDBOX_ENFORCED: True,
                GenAI.ERROR_TYPE: ErrorClass.SANDBOX_VIOLATION.value,
            },
        ):
            telemetry.count(telemetry.instruments.sandbox_invocations, 1, labels)
        effects = {
            GenAI.TOOL_NAME: "read_file",
            Label.EFFECTS_KIND: "created",
            Label.EFFECTS_OUTCOME: "committed",
        }
        telemetry.count(telemetry.instruments.effects_settled, 3, effects)

    def flush(self) -> None:
        """Export all."""
        self.traces.force_flush()
        self.meters.force_flush()

    def close(self) -> None:
        """End governors and SDK."""
        for governor in self.governors.values():
            governor.close()
        self.traces.shutdown()
        if self.unheard is not None:
            self.unheard.shutdown()
        self.meters.shutdown()

    # --- what must be found -----------------------------------------------------------------------

    def ids(self, wanted: Callable[[Planned], bool]) -> Counter[str]:
        """Invocation ids of planned calls."""
        return Counter(call.invocation_id for call in self.planned if wanted(call))


def _secret(salt: int) -> str:
    letters = "".join(random.Random(salt).choices(string.ascii_letters + string.digits, k=36))
    return "the key is " + "gh" + "p_" + letters


KINDS: dict[str, tuple[int, str, str, dict[str, Any], str, str, str]] = {
    # kind: times a round, governor, tool, arguments, behavior, result status, rule
    "allowed": (14, "plain", "read_file", {"path": "ROOT/a", "size": lambda n: n}, "allow", "succeeded", READ),
    "denied": (8, "plain", "read_file", {"path": "/etc/shadow"}, "deny", "denied", SENSITIVE),
    "large": (2, "plain", "read_file", {"path": "ROOT/a", "size": lambda n: 120_000 + n}, "allow", "succeeded", READ),
    "failed": (3, "plain", "parse_file", {"path": "ROOT/a"}, "allow", "failed", READ),
    "timed out": (1, "plain", "scan_files", {"path": "ROOT/a"}, "allow", "timed_out", READ),
    "invalid": (2, "plain", "read_file", {"pth": "ROOT/a"}, "", "failed", ""),
    "pending": (3, "plain", "send_mail", {"to": "ann@example.org"}, "ask", "pending", REQUIRED),
    "approved": (4, "yes", "send_mail", {"to": "ann@example.org"}, "allow", "succeeded", APPROVED),
    "rejected": (3, "no", "send_mail", {"to": "ann@example.org"}, "ask", "rejected", REQUIRED),
    "redacted": (4, "captures", "read_file", {"path": "ROOT/a", "text": _secret}, "allow", "succeeded", READ),
    "unredactable": (
        1, "captures", "read_file", {"path": "ROOT/a", "text": "confuse-the-detector"}, "allow", "succeeded", READ,
    ),
    "failed closed": (3, "unreachable", "read_file", {"path": "ROOT/a"}, "deny", "denied", ""),
    "shadowed": (3, "shadow", "read_file", {"path": "/etc/shadow"}, "allow", "succeeded", ""),
    "unstored": (
        1, "unstored", "read_file", {"path": "ROOT/a", "size": lambda n: 90_000 + n}, "allow", "too_large", READ,
    ),
    "canceled": (1, "plain", "watch_file", {"path": "ROOT/a"}, "allow", "canceled", READ),
}  # fmt: skip

PER_ROUND = sum(count for count, *_ in KINDS.values())

__all__ = ["KINDS", "PER_ROUND", "SERVICE", "Attr", "Planned", "Run"]
