"""The registry, the generated names, the docs page and the checker agree."""

from __future__ import annotations

from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any

import make_names
import pytest
import semconv_check
import yaml
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import InMemoryLogRecordExporter, SimpleLogRecordProcessor
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

import semconv
from agenttool_otel import names
from agenttool_otel.names import INSTRUMENTATION_NAME, Attr, Event, Exc, GenAI, Label, Mcp, Metric
from agenttool_otel.telemetry.stores import StoreLevels


@pytest.fixture(scope="module")
def registry() -> semconv.Registry:
    return semconv.load()


def words(holder: type) -> set[str]:
    return {value for key, value in vars(holder).items() if key.isupper()}


VOCABULARIES: dict[str, type[StrEnum]] = {
    Attr.TOOL_KIND: names.ToolKind,
    Attr.TOOL_RISK_LEVEL: names.RiskLevel,
    Attr.INVOCATION_STATUS: names.InvocationStatus,
    Attr.ABORT_REASON: names.AbortReason,
    Attr.PHASE: names.Phase,
    Attr.PROGRESS_STATUS: names.ProgressStatus,
    Attr.PERMISSION_BEHAVIOR: names.Behavior,
    Attr.PERMISSION_SHADOW_BEHAVIOR: names.Behavior,
    Attr.PERMISSION_OUTCOME: names.Outcome,
    Attr.PERMISSION_MODE: names.PolicyMode,
    Attr.PERMISSION_SOURCE: names.DecisionSource,
    Attr.PERMISSION_REASON_TYPE: names.ReasonType,
    Attr.PERMISSION_FAIL_CLOSED: names.FailClosedCause,
    Attr.POLICY_ENGINE: names.EngineName,
    Attr.APPROVAL_STATUS: names.ApprovalStatus,
    Attr.REDACTION_STATE: names.RedactionState,
    Attr.RESULT_STATUS: names.ResultStatus,
    Attr.RESULT_PERSISTENCE: names.PersistenceStrategy,
    Attr.ERROR_RECOVERABILITY: names.Recoverability,
    Attr.HOOK_EVENT: names.HookEvent,
    Attr.MUTATION_SOURCE: names.MutationSource,
    GenAI.GUARDRAIL_VERDICT_TYPE: names.GuardrailVerdict,
    GenAI.GUARDRAIL_ACTION_TYPE: names.GuardrailAction,
}


def test_names_has_what_the_registry_gives(registry: semconv.Registry) -> None:
    text = make_names.TARGET.read_text("utf-8")
    assert make_names.module(registry) == text, "run make docs"


def test_names_has_a_constant_for_each_registered_name(registry: semconv.Registry) -> None:
    assert set(registry.attributes) == {
        *words(Attr),
        *words(Label),
        *words(GenAI),
        *words(Mcp),
        Exc.TYPE,
        Exc.MESSAGE,
    }
    assert set(registry.events) == {*words(Event), Exc.EVENT}
    assert set(registry.metrics) == words(Metric)


def test_two_names_of_one_constant_are_refused(registry: semconv.Registry) -> None:
    twin = replace(registry.metrics[Metric.DURATION], name="agenttool.duration", python="")
    with pytest.raises(semconv.RegistryError, match="both"):
        make_names.constants(replace(registry, metrics={**registry.metrics, twin.name: twin}))


def test_enumerations_list_exactly_the_words_of_names(registry: semconv.Registry) -> None:
    for name, vocabulary in VOCABULARIES.items():
        assert set(registry.attributes[name].members) == {str(member) for member in vocabulary}, (
            name
        )


def test_every_attribute_is_used_by_a_span_an_event_or_a_metric(registry: semconv.Registry) -> None:
    signals = [*registry.spans.values(), *registry.events.values(), *registry.metrics.values()]
    used = {name for signal in signals for name in signal.attributes}
    assert set(registry.attributes) - used == set()


def test_metrics_never_carry_an_id_a_digest_or_a_message(registry: semconv.Registry) -> None:
    for metric in registry.metrics.values():
        for name in metric.attributes:
            assert not name.endswith(
                ("_id", ".id", ".digest", ".message", ".ref", "arguments", "result.")
            ), name
            assert registry.attributes[name].type in {"string", "boolean"}, name


class _Store:
    def levels(self) -> StoreLevels:
        return StoreLevels("memory", 1, 2.0, {("pay", "approved"): 3})


def test_instruments_have_the_registered_kind_and_unit(registry: semconv.Registry) -> None:
    from agenttool_otel.telemetry.instruments import Instruments

    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    instruments = Instruments(provider.get_meter(INSTRUMENTATION_NAME), provider)
    instruments.observe_cache(reader, lambda: [(1, {})])
    store = _Store()
    instruments.observe_store(store, store.levels)
    instruments.decided("tool", "allow", "executed", "policy", "enforce", "rule")
    for slot in Instruments.__slots__:
        if slot.startswith("_") or slot == "decided":  # a tally's, counted above
            continue
        instrument = getattr(instruments, slot)
        (instrument.record if hasattr(instrument, "record") else instrument.add)(1, {})
    exported = reader.get_metrics_data()
    assert exported is not None
    seen = {metric.name for metric in exported.resource_metrics[0].scope_metrics[0].metrics}
    assert seen == set(registry.metrics)
    found = semconv_check.check_metrics(exported, registry)
    assert [item for item in found if "is missing" not in item] == []


def test_the_docs_page_is_what_the_registry_gives(registry: semconv.Registry) -> None:
    assert semconv.PAGE.read_text("utf-8") == semconv.page(registry)


# --- the format -----------------------------------------------------------------------------------


def attribute(**changes: Any) -> dict[str, Any]:
    return {
        "id": "a.b",
        "type": "string",
        "stability": "development",
        "brief": "B.",
        "examples": ["x"],
        **changes,
    }


def group(**changes: Any) -> dict[str, Any]:
    return {
        "id": "registry.a",
        "type": "attribute_group",
        "brief": "A.",
        "attributes": [attribute()],
        **changes,
    }


@pytest.mark.parametrize(
    ("groups", "problem"),
    [
        ([group(), group(id="registry.b")], "defined twice"),
        ([group(attributes=[attribute(type="text")])], "unknown type"),
        ([group(attributes=[attribute(stability="new")])], "unknown stability"),
        ([group(attributes=[attribute(colour="red")])], "unknown keys"),
        ([group(attributes=[attribute(examples=[])])], "no examples"),
        ([group(brief="")], "no brief"),
        (
            [group(), {"id": "event.e", "type": "event", "name": "e", "stability": "stable", "brief": "E.",
                       "attributes": [{"ref": "a.c"}]}],
            "nobody defines",
        ),
        (
            [{"id": "metric.m", "type": "metric", "metric_name": "m", "instrument": "gong", "unit": "s",
              "stability": "stable", "brief": "M."}],
            "unknown instrument",
        ),
        ([{"id": "x", "type": "riddle", "stability": "stable", "brief": "X."}], "unknown type"),
    ],
)  # fmt: skip
def test_a_registry_that_is_not_in_the_format_is_refused(
    tmp_path: Path, groups: list[dict[str, Any]], problem: str
) -> None:
    (tmp_path / "manifest.yaml").write_text("name: t\nschema_url: https://example.invalid/1\n")
    (tmp_path / "t.yaml").write_text(yaml.safe_dump({"groups": groups}))
    with pytest.raises(semconv.RegistryError, match=problem):
        semconv.load(tmp_path)


# --- the checker finds what it is for -------------------------------------------------------------

FINE = {
    GenAI.OPERATION_NAME: "execute_tool",
    GenAI.TOOL_NAME: "t",
    Attr.SCHEMA_VERSION: "0.2.0",
    Attr.TOOL_ID: "ns.t",
    Attr.INVOCATION_ID: "inv_1",
    Attr.INVOCATION_STATUS: "succeeded",
}


def span_problems(
    attributes: dict[str, Any], name: str = "execute_tool t", event: tuple[str, dict] | None = None
):  # type: ignore[no-untyped-def]
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    span = provider.get_tracer(INSTRUMENTATION_NAME).start_span(
        name, kind=SpanKind.INTERNAL, attributes=attributes
    )
    if event:
        span.add_event(*event)
    span.end()
    return semconv_check.check_spans(exporter.get_finished_spans())


def test_a_span_as_the_registry_describes_it_passes() -> None:
    event = (
        Event.PERMISSION_DECIDED,
        {Attr.PERMISSION_BEHAVIOR: "deny", Attr.PERMISSION_RULES: ["a", "b"]},
    )
    assert (
        span_problems(
            {**FINE, Attr.RESULT_SIZE_BYTES: 3, Attr.PERMISSION_DURATION: 0.1}, event=event
        )
        == []
    )


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"agenttool.tool.colour": "red"}, "not in the registry"),
        ({Attr.RESULT_SIZE_BYTES: "3"}, "is str, the registry says int"),
        ({Attr.RESULT_SIZE_BYTES: True}, "is bool, the registry says int"),
        ({Attr.POLICY_CACHED: 1}, "is int, the registry says boolean"),
        ({Attr.PERMISSION_BEHAVIOR: "maybe"}, "does not list"),
        ({Label.STORE: "file"}, "does not give it"),
    ],
)
def test_the_checker_finds_a_wrong_attribute(change: dict[str, Any], problem: str) -> None:
    (found,) = span_problems({**FINE, **change})
    assert problem in found


def test_the_checker_finds_what_is_missing_and_misnamed() -> None:
    short = {key: value for key, value in FINE.items() if key != Attr.INVOCATION_STATUS}
    assert any(
        "required agenttool.invocation.status is missing" in item for item in span_problems(short)
    )
    assert any(
        "the name should be 'execute_tool t'" in item
        for item in span_problems(FINE, name="execute_tool other")
    )
    assert any(
        "the registry knows no such span" in item for item in span_problems(FINE, name="tool t")
    )
    assert any(
        "knows no such event" in item for item in span_problems(FINE, event=("tool.lost", {}))
    )


def test_the_checker_reads_log_events() -> None:
    exporter = InMemoryLogRecordExporter()
    provider = LoggerProvider()
    provider.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    logger = provider.get_logger(INSTRUMENTATION_NAME)
    logger.emit(event_name=Event.RESULT_CREATED, attributes={Attr.RESULT_ITEMS: 1})
    logger.emit(event_name=Event.RESULT_CREATED, attributes={Attr.RESULT_ITEMS: "1"})
    logger.emit(event_name="tool.result.lost", attributes={})
    found = semconv_check.check_logs(exporter.get_finished_logs())
    assert len(found) == 2
    assert "the registry says int" in found[0]
    assert "no such event" in found[1]


def test_the_checker_finds_a_wrong_metric() -> None:
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader]).get_meter(INSTRUMENTATION_NAME)
    meter.create_counter(Metric.REDACTIONS, "{thing}").add(
        1, {GenAI.TOOL_NAME: "t", Attr.SESSION_ID: "s"}
    )
    meter.create_counter(Metric.RESULT_SIZE, "By").add(1, {GenAI.TOOL_NAME: "t"})
    meter.create_counter("agenttool.colours").add(1)
    found = "\n".join(semconv_check.check_metrics(reader.get_metrics_data()))
    assert "unit '{thing}'" in found
    assert f"does not give it {Attr.SESSION_ID}" in found
    assert f"required {Label.REDACTION_KIND} is missing" in found
    assert "a counter, the registry says histogram" in found
    assert "agenttool.colours: not in the registry" in found
