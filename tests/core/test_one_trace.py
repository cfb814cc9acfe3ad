"""One trace beside other instrumentations: one decision, one span for the tool, one measurement.

The others are the dependency group ``peers``; each is a program of its own here, as it patches
LangChain for good.
"""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from typing import Any

import pytest

from agenttool_otel.testing import StaticEngine, capture

PEERS = {
    "openinference": ("openinference.instrumentation.langchain", "LangChainInstrumentor"),
    "traceloop": ("opentelemetry.instrumentation.langchain", "LangchainInstrumentor"),
    "official": ("opentelemetry.instrumentation.genai.langchain", "LangChainInstrumentor"),
}
PROGRAM = """
import asyncio, importlib, json, sys
from langchain.agents import create_agent
from langchain_core.language_models.fake_chat_models import GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.tools import tool
from agenttool_otel import AgentToolMiddleware
from agenttool_otel.testing import capture, StaticEngine

with capture(policy=StaticEngine(sys.argv[4])) as seen:
    provider = seen.tracer_provider
    meters = seen.governor.telemetry.settings.meter_provider
    peer = getattr(importlib.import_module(sys.argv[1]), sys.argv[2])()
    peer.instrument(tracer_provider=provider, meter_provider=meters)

    @tool
    def look(x: int) -> str:
        "Look."
        return "seen"

    facts = dict(read_only=True, destructive=False, open_world=False, access_kinds=[])
    how = sys.argv[3]
    if how == "agent":
        class Model(GenericFakeChatModel):
            def bind_tools(self, tools, **kwargs):
                return self
        wanted = AIMessage("", tool_calls=[{"name": "look", "args": {"x": 1}, "id": "c"}])
        guard = AgentToolMiddleware(seen.governor, {"look": facts})
        agent = create_agent(Model(messages=iter([wanted, AIMessage("done")])), [look], middleware=[guard])
        agent.invoke({"messages": ["go"]})
    else:
        governed = seen.governor.govern(look, **facts)
        if how == "sync":
            governed.invoke({"x": 1})
        else:
            asyncio.run(governed.ainvoke({"x": 1}))
    spans = [{"name": s.name, "scope": s.instrumentation_scope.name, "trace": s.context.trace_id,
              "id": s.context.span_id, "parent": s.parent.span_id if s.parent else None,
              "ours": "agenttool.permission.behavior" in s.attributes,
              "tool": s.attributes.get("gen_ai.operation.name") == "execute_tool"} for s in seen.spans]
    measured = sum(point.count for point in seen.points("gen_ai.execute_tool.duration"))
    print(json.dumps([spans, measured, len(seen.points("agenttool.permission.decisions"))]))
"""


def seen_beside(module: str, name: str, how: str, behavior: str) -> list[Any]:
    try:
        found = importlib.util.find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is None:
        pytest.skip(f"{module} is not installed: pip install --group peers")
    words = [sys.executable, "-c", PROGRAM, module, name, how, behavior]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    seen: list[Any] = json.loads(done.stdout.splitlines()[-1])
    return seen


@pytest.mark.parametrize("how", ["sync", "async", "agent"])
@pytest.mark.parametrize("peer", PEERS)
def test_a_call_beside_another_instrumentation_is_one_trace(peer: str, how: str) -> None:
    module, name = PEERS[peer]
    spans, measured, decisions = seen_beside(module, name, how, "allow")
    assert len({span["trace"] for span in spans}) == 1, spans
    assert len([span for span in spans if span["ours"]]) == 1, spans
    assert (measured, decisions) == (1, 1)
    [ours] = [span for span in spans if span["ours"]]
    if ours["scope"] == "agenttool_otel":
        assert ours["parent"] in {span["id"] for span in spans}
    if how != "agent":  # there the tool's own span begins after the decision
        assert len([span for span in spans if span["tool"]]) == 1, spans


@pytest.mark.parametrize("peer", PEERS)
def test_a_denied_call_of_an_agent_is_measured_once_too(peer: str) -> None:
    spans, measured, decisions = seen_beside(*PEERS[peer], "agent", "deny")
    assert (measured, decisions, len([span for span in spans if span["ours"]])) == (1, 1, 1)


def started(captured: Any, **attributes: Any) -> Any:
    tracer = captured.tracer_provider.get_tracer("framework")
    return tracer.start_as_current_span("execute_tool t", attributes=attributes)


def test_auto_enriches_the_span_of_this_very_tool_once() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        governed = captured.governor.govern(lambda: 1, name="t")
        other = captured.governor.govern(lambda: governed(), name="other")
        with started(
            captured, **{"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "t"}
        ):
            other()
            governed()
            governed()
        names = [(span.name, span.instrumentation_scope.name) for span in captured.spans]
        assert names == [
            ("execute_tool t", "agenttool_otel"),  # below "other", which is ours
            ("execute_tool other", "agenttool_otel"),
            ("execute_tool t", "agenttool_otel"),  # the second call beside the one that is enriched
            ("execute_tool t", "framework"),
        ]
        assert "agenttool.permission.behavior" in captured.spans[-1].attributes


def test_a_tool_that_calls_itself_has_a_span_for_each_call() -> None:
    with capture(policy=StaticEngine("allow")) as captured:

        @captured.governor.govern(name="t")
        def down(n: int) -> int:
            return down(n - 1) if n else 0

        down(2)
        assert len({span.context.span_id for span in captured.spans}) == 3


def test_a_measurement_is_left_to_who_makes_it() -> None:
    for scope, ours in (("opentelemetry.instrumentation.genai.langchain", 0), ("framework", 1)):
        with capture(policy=StaticEngine("allow")) as captured:
            governed = captured.governor.govern(lambda: 1, name="t")
            tracer = captured.tracer_provider.get_tracer(scope)
            with tracer.start_as_current_span("execute_tool t"):
                governed()
            assert len(captured.points("gen_ai.execute_tool.duration")) == ours
            assert captured.span.attributes["agenttool.permission.behavior"] == "allow"


def test_every_call_has_its_tools_description_redacted() -> None:
    secret = "AKIA" + "Z7QK3M5N6P2RXWVT"
    with capture(policy=StaticEngine("deny")) as captured:
        captured.governor.govern(lambda: 1, name="t", description=f"Use {secret}.").tool.invoke()
        description = captured.span.attributes["gen_ai.tool.description"]
        assert description.startswith("Use ")
        assert secret not in description
