"""A seeded run over OTLP into the real servers: every question is answered, with exactly the
expected invocations.
"""

from __future__ import annotations

import json
import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import seeded
import semconv_check
from typer.testing import CliRunner
from world_of_servers import World, get_json, tag

from agenttool_otel.cli.trace import app
from agenttool_otel.names import Attr, GenAI
from agenttool_otel.values.canonical import keyed_digest

pytestmark = [pytest.mark.slow, pytest.mark.servers]

BOARDS = Path(__file__).resolve().parents[2] / "dashboards" / "grafana" / "boards"


def panels(kind: str) -> list[Any]:
    found = []
    for path in sorted(BOARDS.glob("*.json")):
        for panel in json.loads(path.read_text("utf-8"))["panels"]:
            for target in panel.get("targets", []):
                if target["datasource"]["type"] == kind:
                    found.append(
                        pytest.param(
                            panel, target, id=f"{path.stem}-{panel['title']}-{target['refId']}"
                        )
                    )
    return found


@pytest.mark.parametrize(("panel", "target"), panels("jaeger"))
def test_jaegers_board_finds_the_calls_of_a_session(world: World, panel: Any, target: Any) -> None:
    tags = dict(re.findall(r'([\w.]+)="([^"]*)"', target["tags"]))
    assert tags.pop(Attr.SESSION_ID) == "$session"
    made = [dict(span.attributes or {}) for span in world.run.spans.get_finished_spans()]
    fitting = [call for call in made if all(call.get(name) == tags[name] for name in tags)]
    sessions = sorted({str(call[Attr.SESSION_ID]) for call in fitting if Attr.SESSION_ID in call})
    assert sessions
    for session in sessions[:10]:
        own = [call for call in made if call.get(Attr.SESSION_ID) == session]
        wanted = {call[Attr.INVOCATION_ID] for call in own if call in fitting}
        found = set(world.found(**tags, **{Attr.SESSION_ID: session}))
        # Jaeger searches events, too: a call that was denied when it went on was asked about before
        assert wanted <= found <= {call[Attr.INVOCATION_ID] for call in own}


# --- everything arrived ---------------------------------------------------------------------------


def test_at_least_300_calls_of_every_outcome_were_made(world: World) -> None:
    assert len(world.run.planned) >= 300
    assert {call.kind for call in world.run.planned} == set(seeded.KINDS)


def test_every_call_arrived_once_and_nothing_was_lost(world: World) -> None:
    assert world.found() == world.run.ids(lambda call: True)
    noted = world.run.governors["plain"].telemetry.losses
    assert noted.total == 2, "only the two that the run itself notes"


def test_the_whole_run_is_in_the_registry_by_name_and_type(world: World) -> None:
    assert semconv_check.check_spans(world.run.spans.get_finished_spans()) == []
    assert semconv_check.check_metrics(world.run.reader.get_metrics_data()) == []


# --- trace questions ------------------------------------------------------------------------------


def test_the_denied_calls_of_a_session(world: World) -> None:
    # by the policy, or by a person: Jaeger looks at event attributes too, and an answer is a
    # decision
    denied = world.run.ids(lambda call: call.behavior == "deny" or call.kind == "rejected")
    answered: Counter[str] = Counter()
    for session in {call.session for call in world.run.planned}:
        found = world.found(**{Attr.SESSION_ID: session, Attr.PERMISSION_BEHAVIOR: "deny"})
        assert found <= world.run.ids(lambda call, session=session: call.session == session)
        answered += found
    assert answered == denied
    assert len(denied) > 50


def test_the_call_behind_an_approval(world: World) -> None:
    asked = {**world.run.yes.asked, **world.run.no.asked}
    assert len(asked) == 6 * (4 + 3)
    for request_id, invocation_id in asked.items():
        assert world.found(**{Attr.APPROVAL_ID: request_id}) == Counter([invocation_id])


def test_who_rejected_and_which_call_it_was(world: World) -> None:
    answers = world.answers(**{Attr.APPROVAL_STATUS: "rejected"})
    assert {tag(span, Attr.INVOCATION_ID) for span in answers} == set(world.run.no.asked.values())
    assert {tag(span, Attr.APPROVAL_ANSWERED_BY) for span in answers} == {keyed_digest("user:ann")}
    for span in answers:
        (link,) = span["references"]
        (asked,) = world.jaeger(**{Attr.APPROVAL_ID: tag(span, Attr.APPROVAL_ID)})
        assert (link["refType"], link["spanID"]) == ("FOLLOWS_FROM", asked["spanID"])


def test_the_calls_that_wait_for_an_approval(world: World) -> None:
    assert world.found(**{Attr.PERMISSION_OUTCOME: "pending"}) == world.run.ids(
        lambda call: call.kind == "pending"
    )


@pytest.mark.parametrize("rule", [seeded.SENSITIVE, seeded.REQUIRED, seeded.APPROVED])
def test_the_calls_that_a_rule_decided(world: World, rule: str) -> None:
    found = world.jaeger(**{Attr.PERMISSION_RULE: rule})
    finally_by_it = Counter(
        tag(s, Attr.INVOCATION_ID) for s in found if tag(s, Attr.PERMISSION_RULE) == rule
    )
    assert finally_by_it == world.run.ids(lambda call: call.rule == rule)
    assert len(finally_by_it) > 10


def test_a_search_by_rule_finds_calls_asked_before_approval(world: World) -> None:
    # Jaeger looks at event attributes too, and each decision of a call is an event of its span
    asked = world.run.ids(lambda call: call.kind in {"pending", "rejected", "approved"})
    assert world.found(**{Attr.PERMISSION_RULE: seeded.REQUIRED}) == asked


def test_the_largest_results(world: World) -> None:
    spans = [span for span in world.jaeger() if tag(span, Attr.RESULT_SIZE_BYTES)]
    ordered = sorted(spans, key=lambda span: -tag(span, Attr.RESULT_SIZE_BYTES))[:10]
    expected = sorted(world.run.planned, key=lambda call: -call.size)[:10]
    assert [tag(span, Attr.RESULT_SIZE_BYTES) for span in ordered] == [
        call.size for call in expected
    ]
    assert {tag(span, Attr.INVOCATION_ID) for span in ordered} == {
        call.invocation_id for call in expected
    }


def test_the_calls_that_failed_closed_and_why(world: World) -> None:
    expected = world.run.ids(lambda call: call.kind == "failed closed")
    assert world.found(**{Attr.PERMISSION_SOURCE: "error"}) == expected
    causes = {
        tag(span, Attr.PERMISSION_FAIL_CLOSED)
        for span in world.jaeger(**{Attr.PERMISSION_SOURCE: "error"})
    }
    assert causes <= {"unavailable", "circuit_open"}


@pytest.mark.parametrize(("state", "kind"), [("redacted", "redacted"), ("failed", "unredactable")])
def test_the_calls_in_which_something_was_redacted(world: World, state: str, kind: str) -> None:
    assert world.found(**{Attr.REDACTION_STATE: state}) == world.run.ids(
        lambda call: call.kind == kind
    )


def test_what_a_shadow_policy_would_have_denied(world: World) -> None:
    expected = world.run.ids(lambda call: call.kind == "shadowed")
    assert world.found(**{Attr.PERMISSION_SHADOW_BEHAVIOR: "deny"}) == expected


@pytest.mark.parametrize(
    ("error", "kinds"),
    [
        ("execution_failed", {"failed"}),
        ("timeout", {"timed out"}),
        ("schema_validation_failed", {"invalid"}),
        ("approval_rejected", {"rejected"}),
        ("policy_blocked", {"failed closed"}),
        ("permission_denied", {"denied"}),
    ],
)
def test_the_calls_of_an_error_class(world: World, error: str, kinds: set[str]) -> None:
    assert world.found(**{GenAI.ERROR_TYPE: error}) == world.run.ids(
        lambda call: call.kind in kinds
    )


def test_no_secret_of_a_result_reached_the_store(world: World) -> None:
    stored = json.dumps(world.jaeger(**{Attr.REDACTION_STATE: "redacted"}))
    assert "the key is" in stored, "content was captured"
    assert "gh" + "p_" not in stored


def test_the_terminal_tells_the_same_from_jaeger(world: World) -> None:
    denied = next(call for call in world.run.planned if call.kind == "denied")
    runner = CliRunner(env={"COLUMNS": "200"})
    options = ["--session", denied.session, "--service", seeded.SERVICE, "--limit", "500"]
    drawn = runner.invoke(app, [world.stack.jaeger, *options])
    assert drawn.exit_code == 0, drawn.output
    expected = Counter(
        call.behavior
        for call in world.run.planned
        if call.session == denied.session and call.behavior
    )
    shown = Counter(re.findall(r"execute_tool \w+ +(allow|ask|deny) ·", drawn.output))
    assert shown == expected
    story = runner.invoke(app, [world.stack.jaeger, *options, "--why", denied.invocation_id])
    assert "The policy (engine embedded" in story.output
    assert (
        f"The deciding rule was {seeded.SENSITIVE}: the path is a sensitive place." in story.output
    )
    assert "The tool did not run." in story.output


def test_the_only_service_of_jaeger_needs_no_name(world: World) -> None:
    result = CliRunner(env={"COLUMNS": "200"}).invoke(
        app, [world.stack.jaeger, "--limit", "2", "--summary"]
    )
    assert result.exit_code == 0, result.output
    assert "Tool calls" in result.output


# --- metric questions -----------------------------------------------------------------------------


def filled(text: str) -> str:
    """A panel's query as Grafana would send it."""
    for variable, value in (
        ("$__rate_interval", "30s"),
        ("$__range", "2m"),
        ("$job", seeded.SERVICE),
        ("$instance", ".+"),
        ("$agent", ".*"),
        ("$tool", ".*"),
    ):
        text = text.replace(variable, value)
    assert "$" not in text
    return text


@pytest.mark.parametrize(("panel", "target"), panels("prometheus"))
def test_each_panel_of_prometheus_has_data(
    world: World, panel: dict[str, Any], target: dict[str, Any]
) -> None:
    query = filled(target["expr"])
    if target["instant"]:
        series = world.prometheus("query", query=query, time=str(world.ended))["result"]
        values = [float(item["value"][1]) for item in series]
    else:
        start, end = str(world.ended - 120), str(world.ended)
        series = world.prometheus("query_range", query=query, start=start, end=end, step="1")[
            "result"
        ]
        values = [float(value) for item in series for _, value in item["values"]]
    assert any(value > 0 for value in values), f"no data for {query}"
    legend = re.findall(r"{{(\w+)}}", target["legendFormat"])
    for label in legend:
        assert any(label in item["metric"] for item in series), (
            f"the legend names {label}, which no series has"
        )


def test_the_figures_are_those_of_the_plan(world: World) -> None:
    def value(query: str) -> float:
        return float(
            world.prometheus("query", query=query, time=str(world.ended))["result"][0]["value"][1]
        )

    planned = world.run.planned
    assert value("sum(gen_ai_execute_tool_duration_seconds_count)") == len(planned)
    for behavior in ("allow", "ask", "deny"):
        expected = sum(call.behavior == behavior for call in planned)
        assert (
            value(
                f'sum(agenttool_permission_decisions_total{{agenttool_permission_behavior="{behavior}"}})'
            )
            == expected
        )
    pending = sum(call.kind == "pending" for call in planned)
    assert value("sum(agenttool_approvals_pending)") == pending
    rejected = 'agenttool_approvals_answered_total{agenttool_approval_status="rejected"}'
    assert value(f"sum({rejected})") == len(world.run.no.asked)
    assert value("sum(agenttool_permission_fail_closed_total)") == sum(
        call.kind == "failed closed" for call in planned
    )
    assert value("sum(agenttool_redaction_failures_total)") >= sum(
        call.kind == "unredactable" for call in planned
    )
    assert value("sum(agenttool_persistence_failures_total)") == sum(
        call.kind == "unstored" for call in planned
    )
    assert value("sum(agenttool_permission_shadow_differences_total)") == sum(
        c.kind == "shadowed" for c in planned
    )
    assert value("sum(agenttool_result_size_bytes_sum)") >= sum(call.size for call in planned)


def test_the_template_variables_have_the_values_of_the_run(world: World) -> None:
    series = world.prometheus("series", **{"match[]": "gen_ai_execute_tool_duration_seconds_count"})
    assert {item["job"] for item in series} == {seeded.SERVICE}
    assert {item[GenAI.AGENT_NAME.replace(".", "_")] for item in series} == {"support", "research"}
    tools = {tool for _, _, tool, *_ in seeded.KINDS.values()}
    assert {item[GenAI.TOOL_NAME.replace(".", "_")] for item in series} == tools


def test_the_collector_counts_decisions_and_redactions(world: World) -> None:
    query = 'sum by (agenttool_permission_behavior) (agenttool_spans_calls_total{agenttool_permission_behavior!=""})'
    counted = {
        item["metric"]["agenttool_permission_behavior"]: int(item["value"][1])
        for item in world.prometheus("query", query=query, time=str(world.ended))["result"]
    }
    assert counted == Counter(call.behavior for call in world.run.planned if call.behavior)
    events = world.prometheus(
        "query",
        query="sum by (agenttool_redaction_target) (agenttool_spans_events_total)",
        time=str(world.ended),
    )
    redactions = {
        item["metric"]["agenttool_redaction_target"]: int(item["value"][1])
        for item in events["result"]
        if item["metric"]
    }
    made = [event for span in world.run.spans.get_finished_spans() for event in span.events]
    assert redactions == Counter(
        (event.attributes or {})[Attr.REDACTION_TARGET]
        for event in made
        if Attr.REDACTION_TARGET in event.attributes
    )


# --- alerts ---------------------------------------------------------------------------------------


def test_alerts_fire_for_what_the_run_did(world: World) -> None:
    world.count_failures()
    deadline = time.monotonic() + 60
    expected = {"AgentToolFailedClosed", "AgentToolRedactionFailed", "AgentToolPolicyReloadFailed"}
    firing: set[str] = set()
    while time.monotonic() < deadline and not expected <= firing:
        alerts = world.prometheus("alerts")["alerts"]
        firing = {alert["labels"]["alertname"] for alert in alerts if alert["state"] == "firing"}
        time.sleep(0.5)
    assert expected <= firing
    (told,) = {
        alert["annotations"]["summary"]
        for alert in world.prometheus("alerts")["alerts"]
        if alert["labels"]["alertname"] == "AgentToolRedactionFailed"
    }
    assert told == f"Redaction fails in {seeded.SERVICE}"


# --- the programs' own view of their configuration ------------------------------------------------


def test_jaeger_serves_the_ui_configuration(world: World) -> None:
    import urllib.request

    with urllib.request.urlopen(f"{world.stack.jaeger}/search", timeout=60) as answer:
        page = answer.read().decode()
    shipped = json.loads((BOARDS.parents[1] / "jaeger" / "ui-config.json").read_text("utf-8"))
    served = json.loads(re.search(r"JAEGER_CONFIG = (\{.*?\});\n", page, re.S)[1])  # type: ignore[index]
    assert served == shipped


def test_the_collector_masks_what_another_library_let_through(world: World) -> None:
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import SimpleSpanProcessor

    token = "gh" + "p_" + "Ab3" * 12
    provider = TracerProvider(resource=Resource({"service.name": "careless"}))
    provider.add_span_processor(
        SimpleSpanProcessor(OTLPSpanExporter(f"{world.stack.otlp_http}/v1/traces"))
    )
    span = provider.get_tracer("t").start_span(
        "s", attributes={"note": f"use {token} today", "db.password": "hunter2"}
    )
    span.add_event("e", {"text": token})
    span.end()
    provider.shutdown()
    url = f"{world.stack.jaeger}/api/traces?service=careless"
    deadline = time.monotonic() + 20
    while not (stored := get_json(url)["data"]):
        assert time.monotonic() < deadline
        time.sleep(0.2)
    text = json.dumps(stored)
    assert token not in text
    assert "hunter2" not in text
    assert "use **** today" in text
