"""Ids of actors, sessions and tenants: what looks like a token leaves nowhere, and what leaves
still correlates.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agenttool_otel import GovernedOutcome, Governor, TelemetrySettings, agent_context
from agenttool_otel.redaction.ids import OTHER, agent_label, shown_id
from agenttool_otel.telemetry.sinks import CallbackSink
from agenttool_otel.testing import StaticEngine, capture

TOKENS = {
    "github": "ghp_" + "Zt4mLx7Vw2Rk9Py3Nd6Hf1Jb5Gc0Sa8Ue7Qq",
    "slack": "xoxb-" + "263594206564-2343594206574-FGqddMF8t08v8N7Oq4i57vs1",
    "aws": "AKIA" + "Q3EGRZ7VXN5TWLKP",
    "jwt": "eyJhbGciOiJIUzI1NiJ9."
    + "eyJzdWIiOiIxMjM0NTY3ODkwIn0."
    + "dozjgNryP4J3jVmNHl0w5N_XgL0n3I9PlFUP0THsR8U",
}
PLAIN = [
    "agent:planner",
    "user:ada@analytical-engines.net",
    "7f9c24e8-3b12-4fef-91e0-000000000001",
    "session-20260102-42",
    "acme-gmbh",
    "0123456789abcdef0123456789abcdef",
    "user:dürer",
]


@contextmanager
def watched(
    told: list[Any],
) -> Iterator[tuple[Governor, InMemorySpanExporter, InMemoryMetricReader]]:
    """A Governor whose spans, metrics, events and records are all looked at."""
    spans, reader, tracer = InMemorySpanExporter(), InMemoryMetricReader(), TracerProvider()
    tracer.add_span_processor(SimpleSpanProcessor(spans))
    telemetry = TelemetrySettings(
        tracer_provider=tracer,
        meter_provider=MeterProvider([reader]),
        sinks=(CallbackSink(told.append),),
        subscribers=(told.append,),
        capture="SPAN_AND_EVENT",
        verbose=True,
    )
    governor = Governor(policy=StaticEngine("allow"), telemetry=telemetry)
    yield governor, spans, reader
    governor.close()


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
@pytest.mark.parametrize("member", ["actor", "session_id", "tenant", "agent_name"])
def test_a_token_in_an_id_leaves_nowhere(
    token: str, member: str, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Any] = []
    with watched(told) as (governor, spans, reader):

        @governor.govern(read_only=True, access_kinds=[])
        def echo(text: str) -> str:
            logging.getLogger("agenttool_otel.x").warning("session %s", token)
            return "ok"

        ids = {
            "actor": "agent:a",
            "session_id": "s",
            member: f"agent:{token}" if member == "actor" else token,
        }
        with agent_context(**ids):
            echo("x")
    metrics = reader.get_metrics_data()
    everything = [
        *(span.to_json() for span in spans.get_finished_spans()),
        *map(str, told),
        caplog.text,
    ]
    everything.append("" if metrics is None else metrics.to_json())
    assert told
    assert not any(token in text for text in everything)
    assert any("[redacted:" in text for text in everything)


@pytest.mark.parametrize("token", TOKENS.values(), ids=TOKENS)
def test_one_id_reads_the_same_wherever_it_leaves(token: str) -> None:
    assert (
        shown_id(token)
        == shown_id(token)
        != shown_id(token[:-1] + ("x" if token[-1] != "x" else "y"))
    )
    assert shown_id(f"agent:{token}").startswith("agent:[redacted:")


@pytest.mark.parametrize("plain", PLAIN)
def test_an_ordinary_id_stays_as_it_is(plain: str) -> None:
    assert shown_id(plain) == plain


def test_names_of_agents_on_metrics_are_bounded() -> None:
    labels = {agent_label(f"session-{number}") for number in range(1000)}
    assert OTHER in labels
    assert len(labels) <= 201
    assert agent_label(TOKENS["github"]) == OTHER


@pytest.mark.parametrize("text", ["caf\udce9.txt", "half \ud83d", "\udfff"])
def test_what_utf8_cannot_say_is_escaped_in_what_leaves(text: str) -> None:
    told: list[Any] = []
    with watched(told) as (governor, spans, _):

        @governor.govern(read_only=True, access_kinds=[])
        def names() -> Any:
            return text

        with agent_context(actor=f"agent:{text}", session_id=text):
            assert names() == text
    sent = encode_spans(spans.get_finished_spans()).resource_spans[0].scope_spans[0].spans[0]
    found = {pair.key: pair.value.string_value for pair in sent.attributes}
    assert "\\ud" in found["gen_ai.tool.call.result"]
    assert "\\ud" in found["agenttool.session.id"]
    for record in told:
        data = record if isinstance(record, dict) else record.to_json_object()
        json.dumps(data, ensure_ascii=False).encode()


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ("caf\udce9", ("text", "not UTF-8")),
        ({"a": ["x\ud83d"]}, ("text.a.0", "not UTF-8")),
        ("x" * 3_000_000, ("text", "3,000,000 characters", "1,000,000")),
        ([0] * 200_000, ("text", "100,000 values")),
        (10**400, ("text", "number")),
    ],
    ids=["surrogate", "inside", "long", "many", "digits"],
)
def test_a_refusal_names_the_argument_and_the_limit(given: Any, words: tuple[str, ...]) -> None:
    with capture() as captured:

        @captured.governor.govern(read_only=True, access_kinds=[])
        def note(text: Any) -> str:
            return "noted"

        with pytest.raises(GovernedOutcome) as refused:
            note(given)
        assert all(word in str(refused.value) for word in words), str(refused.value)


@pytest.mark.parametrize(
    ("member", "place"), [("actor", "/actor/id"), ("session_id", "/session/id")]
)
def test_an_id_that_is_not_utf8_is_named(member: str, place: str) -> None:
    governor = Governor(telemetry=TelemetrySettings())

    @governor.govern(read_only=True, access_kinds=[])
    def note(text: str) -> str:
        return "noted"

    ids = {"actor": "agent:a", "session_id": "s", member: "agent:\ud83d"}
    with agent_context(**ids), pytest.raises(GovernedOutcome, match=f"not UTF-8, at {place}"):
        note("x")
