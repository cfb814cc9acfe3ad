"""The seeded run and the servers that received it, as the tests see them."""

from __future__ import annotations

import json
import time
import urllib.parse
import urllib.request
from collections import Counter
from dataclasses import dataclass
from typing import Any

import seeded
import servers_run

from agenttool_otel.names import Attr, Label

_CALL = "execute_tool "
_ANSWER = "answer_approval "


@dataclass
class World:
    """The seeded run, and the servers that received it."""

    run: seeded.Run
    stack: servers_run.Stack
    started: float
    ended: float = 0.0

    def jaeger(self, **tags: str) -> list[dict[str, Any]]:
        """Search the calls by span attributes through Jaeger's API; gives their spans."""
        return [span for span in self._spans(**tags) if span["operationName"].startswith(_CALL)]

    def answers(self, **tags: str) -> list[dict[str, Any]]:
        """Search people's answers by span attributes through Jaeger's API; gives their spans."""
        return [span for span in self._spans(**tags) if span["operationName"].startswith(_ANSWER)]

    def _spans(self, **tags: str) -> list[dict[str, Any]]:
        query = {"service": seeded.SERVICE, "limit": "1500", "lookback": "custom"}
        query["start"] = str(int((self.started - 60) * 1e6))
        query["end"] = str(int((time.time() + 60) * 1e6))
        if tags:
            query["tags"] = json.dumps(tags)
        answer = get_json(f"{self.stack.jaeger}/api/traces?{urllib.parse.urlencode(query)}")
        return [span for trace in answer["data"] for span in trace["spans"]]

    def found(self, **tags: str) -> Counter[str]:
        """Invocation ids that such a search finds."""
        return Counter(tag(span, "agenttool.invocation.id") for span in self.jaeger(**tags))

    def prometheus(self, path: str, **query: str) -> Any:
        """Ask Prometheus; gives the answer's data."""
        answer = get_json(f"{self.stack.prometheus}/api/v1/{path}?{urllib.parse.urlencode(query)}")
        assert answer["status"] == "success"
        return answer["data"]

    def count_failures(self) -> None:
        """Count what alerts look at once more: other files' tests may stand between the run and
        those of the alerts.
        """
        telemetry = self.run.governors["unreachable"].telemetry
        made = telemetry.instruments
        cause = {Attr.PERMISSION_FAIL_CLOSED: "unavailable", Attr.POLICY_ENGINE: "opa_server"}
        telemetry.count(made.fail_closed, 1, cause)
        telemetry.count(made.redaction_failures, 1, {Attr.REDACTION_TARGET: "result"})
        telemetry.count(made.policy_reloads, 1, {Label.RELOAD_RESULT: "failed"})
        self.run.meters.force_flush()

    def last_counted(self) -> bool:
        """Whether the last of the run's counters has grown in Prometheus: each counts at the begin
        and at the end.
        """
        grown = (
            "changes(agenttool_telemetry_dropped_total[5m])",
            'changes(otel_sdk_exporter_span_exported_total{error_type!=""}[5m])',
            'changes(otel_sdk_processor_span_processed_total{error_type!=""}[5m])',
            'changes(otel_sdk_exporter_operation_duration_seconds_count{http_response_status_code!=""}[5m])',
        )
        return all(
            any(
                float(item["value"][1]) > 0
                for item in self.prometheus("query", query=query)["result"]
            )
            for query in grown
        )


def get_json(url: str) -> Any:
    """Get and parse."""
    with urllib.request.urlopen(url, timeout=20) as answer:
        return json.load(answer)


def tag(span: dict[str, Any], name: str) -> Any:
    """Value of a Jaeger span's tag."""
    return next((item["value"] for item in span["tags"] if item["key"] == name), None)
