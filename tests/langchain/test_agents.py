"""Whole agents: middleware, ToolNode, and programs that never heard of this package."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from scripted_model import Scripted

from agenttool_otel.integrations.langchain.agents import AgentToolMiddleware, ToolNodeGuard
from agenttool_otel.testing import StaticEngine, capture, decision
from samples import one_in


@tool
def reader(path: str) -> str:
    """Read."""
    return f"content of {path}"


@tool
def remover(path: str) -> str:
    """Remove."""
    raise AssertionError("ran")


ANSWERS = {"reader": decision("allow"), "remover": decision("deny")}
SCRIPT = [
    ("reader", {"path": "a"}),
    ("remover", {"path": "b"}),
    ("unknown_tool", {}),
    ("reader", {"wrong": 1}),
]


def results(state: dict[str, Any]) -> list[tuple[str | None, str]]:
    return [
        (message.name, message.status)
        for message in state["messages"]
        if isinstance(message, ToolMessage)
    ]


@pytest.mark.parametrize("is_async", [False, True])
def test_the_middleware_governs_every_tool_of_an_agent(is_async: bool) -> None:
    with capture(policy=StaticEngine(ANSWERS)) as captured:
        middleware = AgentToolMiddleware(captured.governor, {"reader": {"read_only": True}})
        agent = create_agent(Scripted(calls=SCRIPT), [reader, remover], middleware=[middleware])
        question: Any = {"messages": [HumanMessage("go")]}
        state = asyncio.run(agent.ainvoke(question)) if is_async else agent.invoke(question)
        statuses = results(state)
        assert statuses[0] == ("reader", "success")
        assert statuses[1] == ("remover", "error")
        assert statuses[2] == ("unknown_tool", "error")
        spans = {span.attributes["gen_ai.tool.call.id"]: span for span in captured.spans}
        assert spans["call-2-0"].attributes["error.type"] == "permission_denied"
        assert spans["call-3-0"].attributes["error.type"] == "unknown_tool"
        assert state["messages"][-1].content == "done"


def test_a_governed_tool_is_decided_once_under_the_middleware() -> None:
    engine = StaticEngine(ANSWERS)
    with capture(policy=engine) as captured:
        tools = [captured.governor.govern(reader)]
        agent = create_agent(
            Scripted(calls=[("reader", {"path": "a"})]),
            tools,
            middleware=[AgentToolMiddleware(captured.governor)],
        )
        agent.invoke({"messages": [HumanMessage("go")]})
        assert len(engine.documents) == 1
        assert len(captured.spans) == 1


@pytest.mark.parametrize("is_async", [False, True])
def test_a_tool_node_is_governed_by_its_wrapper(is_async: bool) -> None:
    with capture(policy=StaticEngine(ANSWERS)) as captured:
        guard = ToolNodeGuard(captured.governor)
        node = ToolNode([reader, remover], wrap_tool_call=guard, awrap_tool_call=guard.acall)
        graph = StateGraph(MessagesState)
        graph.add_node("tools", node)
        graph.add_edge(START, "tools")
        graph.add_edge("tools", END)
        compiled = graph.compile()
        calls = [
            {"name": "reader", "args": {"path": "a"}, "id": "1", "type": "tool_call"},
            {"name": "remover", "args": {"path": "b"}, "id": "2", "type": "tool_call"},
        ]
        question: Any = {"messages": [AIMessage(content="", tool_calls=calls)]}
        state = asyncio.run(compiled.ainvoke(question)) if is_async else compiled.invoke(question)
        assert sorted(results(state)) == [("reader", "success"), ("remover", "error")]
        assert len(captured.spans) == 2


APP = """
from langchain_core.tools import tool

@tool
def read_file(path: str) -> str:
    "Read a file."
    print("RAN", path)
    return open(path).read()

for path in ("notes.txt", "/etc/shadow"):
    message = read_file.invoke({"type": "tool_call", "name": "read_file", "args": {"path": path}, "id": "c"})
    print("STATUS", path, message.status)
"""


def run_program(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    (folder / "app.py").write_text(textwrap.dedent(APP), encoding="utf-8")
    (folder / "notes.txt").write_text("hello", encoding="utf-8")
    facts = {
        "read_*": {"read_only": True, "access_kinds": ["file_read"], "tool_kind": "file_operation"}
    }
    (folder / "facts.json").write_text(json.dumps(facts), encoding="utf-8")
    environment = {
        **os.environ,
        "OTEL_TRACES_EXPORTER": "console",
        "OTEL_METRICS_EXPORTER": "none",
        "OTEL_LOGS_EXPORTER": "none",
        "AGENTTOOL_TOOLS": str(folder / "facts.json"),
        "AGENTTOOL_ROOTS": str(folder),
        **variables,
    }
    launcher = Path(sys.executable).parent / "opentelemetry-instrument"
    return subprocess.run(
        [str(launcher), sys.executable, "app.py"],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


@pytest.mark.slow
def test_an_uninstrumented_program_is_governed(tmp_path: Path) -> None:
    done = run_program(tmp_path)
    assert "RAN notes.txt" in done.stdout, done.stderr
    assert "RAN /etc/shadow" not in done.stdout
    assert "STATUS notes.txt success" in done.stdout
    assert "STATUS /etc/shadow error" in done.stdout
    assert done.stdout.count('"name": "execute_tool read_file"') == 2
    assert '"agenttool.permission.behavior": "deny"' in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("broken", one_in(2, ["missing", "syntax"]))
def test_a_program_with_a_broken_bundle_refuses_to_run_tools(tmp_path: Path, broken: str) -> None:
    bundle = tmp_path / "bundle"
    if broken == "syntax":
        bundle.mkdir()
        (bundle / "policy.rego").write_text(
            "package agenttool.permission\ndecision := {", encoding="utf-8"
        )
    done = run_program(tmp_path, AGENTTOOL_POLICY_BUNDLE=str(bundle))
    assert "RAN" not in done.stdout, done.stdout
    assert done.stdout.count("STATUS") == 2, done.stderr
    assert "error" in done.stdout
    assert "bundle_missing" in done.stdout


def test_an_instrumented_tool_is_released_again() -> None:
    from agenttool_otel import configure
    from agenttool_otel.call.runtime import replace_default
    from agenttool_otel.integrations.instrumentor import AgentToolInstrumentor
    from agenttool_otel.integrations.langchain.govern import is_governed

    @tool
    def echo(text: str) -> str:
        """Echo."""
        return text

    instrumentor = AgentToolInstrumentor()
    old = replace_default(None)
    try:
        engine = StaticEngine("allow")
        configure(policy=engine)
        instrumentor.instrument(facts={})
        assert echo.invoke({"text": "a"}) == "a"
        assert is_governed(echo)
        assert len(engine.documents) == 1
        instrumentor.uninstrument()
        assert not is_governed(echo)
        assert echo.invoke({"text": "a"}) == "a"
        assert len(engine.documents) == 1
    finally:
        replace_default(old)
