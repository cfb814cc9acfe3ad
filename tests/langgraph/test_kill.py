"""A LangGraph agent pauses, its process is killed, and another one goes on: one invocation, linked
spans, one run.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langgraph.checkpoint.sqlite", reason="needs langgraph-checkpoint-sqlite")

PROGRAM = '''
import json, os, sys, time
sys.path.insert(0, os.environ["TEST_FOLDER"])
from graph_agents import Scripted, interrupts, results
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.types import Command
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import ConsoleSpanExporter, SimpleSpanProcessor
from agenttool_otel import Governor, agent_context
from agenttool_otel.telemetry import TelemetrySettings

folder, action = sys.argv[1], sys.argv[2]
spans = open(folder + "/spans.jsonl", "a")
provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(ConsoleSpanExporter(
    out=spans, formatter=lambda span: json.dumps(json.loads(span.to_json())) + os.linesep)))
governor = Governor(
    approvals=f"sqlite:///{folder}/approvals.db", telemetry=TelemetrySettings(tracer_provider=provider)
)

@tool
def deploy(target: str) -> str:
    """Deploy a service."""
    with open(folder + "/ran", "a") as ran:
        ran.write(target + os.linesep)
    if action == "die-inside":
        print("INSIDE", flush=True)
        time.sleep(60)
    return "deployed " + target

governed = governor.govern(deploy, namespace="ops", read_only=False, destructive=True, risk_level="high")
with SqliteSaver.from_conn_string(folder + "/checkpoints.db") as saver, agent_context(
    actor="agent:ops", session_id="s-1", tenant="acme"
):
    agent = create_agent(Scripted(calls=[("deploy", {"target": "blue"})]), [governed], checkpointer=saver)
    config = {"configurable": {"thread_id": "t-1"}}
    if action == "start":
        state = agent.invoke({"messages": [HumanMessage("go")]}, config)
    elif action == "nudge":
        state = agent.invoke(Command(resume={"type": "resume"}), config)
    else:
        state = agent.invoke(Command(resume={"type": "approve"}), config)
    said = {"waits": [entry.value for entry in interrupts(state)], "results": results(state)}
    print("SAID" + json.dumps(said), flush=True)
    if action == "start":
        time.sleep(60)
'''


class World:
    """A folder in which processes start, are killed and go on."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
        self.environment = {**os.environ, "TEST_FOLDER": str(Path(__file__).parent)}

    def begin(self, action: str) -> subprocess.Popen[str]:
        """Start a process."""
        return subprocess.Popen(
            [sys.executable, "program.py", str(self.folder), action],
            cwd=self.folder,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def killed_at(self, action: str, mark: str) -> str:
        """Start a process and kill it when it prints the mark.

        Returns:
            The line with the mark.
        """
        process = self.begin(action)
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(line)
            if line.startswith(mark):
                process.send_signal(signal.SIGKILL)
                process.wait(30)
                process.stdout.close()
                return line
        raise AssertionError("".join(lines))

    def whole(self, action: str) -> dict[str, Any]:
        """Run a process to its end and return what it said."""
        process = self.begin(action)
        output, _ = process.communicate(timeout=100)
        for line in output.splitlines():
            if line.startswith("SAID"):
                return json.loads(line[4:])
        raise AssertionError(output)

    @property
    def ran(self) -> list[str]:
        """What was really deployed."""
        path = self.folder / "ran"
        return path.read_text(encoding="utf-8").split() if path.exists() else []

    @property
    def spans(self) -> list[dict[str, Any]]:
        """The exported tool spans of all processes."""
        lines = (self.folder / "spans.jsonl").read_text(encoding="utf-8").splitlines()
        return [span for span in map(json.loads, lines) if span["name"].startswith("execute_tool")]


@pytest.mark.slow
def test_a_new_process_goes_on_with_what_a_killed_one_asked(tmp_path: Path) -> None:
    world = World(tmp_path)
    asked = json.loads(world.killed_at("start", "SAID")[4:])["waits"][0]
    assert world.ran == []
    assert world.whole("approve")["results"] == [["success", "deployed blue"]]
    assert world.ran == ["blue"]
    first, last = world.spans
    ids = {span["attributes"]["agenttool.invocation.id"] for span in world.spans}
    assert ids == {asked["invocation_id"]}
    assert [span["attributes"]["agenttool.permission.outcome"] for span in world.spans] == [
        "pending",
        "executed",
    ]
    [link] = last["links"]
    assert link["context"]["span_id"] == first["context"]["span_id"]
    assert link["context"]["trace_id"] == first["context"]["trace_id"]


@pytest.mark.slow
def test_a_run_killed_inside_the_tool_is_asked_and_not_rerun(tmp_path: Path) -> None:
    world = World(tmp_path)
    asked = json.loads(world.killed_at("start", "SAID")[4:])["waits"][0]
    world.killed_at("die-inside", "INSIDE")
    assert world.ran == ["blue"]
    time.sleep(0.1)
    [again] = world.whole("nudge")["waits"]
    assert again["invocation_id"] == asked["invocation_id"]
    assert again["request_id"] != asked["request_id"]
    assert "interrupted" in again["description"]
    assert world.ran == ["blue"]
    assert world.whole("approve")["results"] == [["success", "deployed blue"]]
    assert world.ran == ["blue", "blue"]  # a person has decided that it may run again


@pytest.mark.slow
def test_the_resumed_graph_uses_the_command_lines_answer(tmp_path: Path) -> None:
    world = World(tmp_path)
    asked = json.loads(world.killed_at("start", "SAID")[4:])["waits"][0]
    assert world.whole("nudge")["waits"][0]["request_id"] == asked["request_id"]
    from agenttool_otel import ApprovalAnswer
    from agenttool_otel.approvals.store.store import ApprovalStore

    store = ApprovalStore(f"sqlite:///{tmp_path}/approvals.db")
    store.answer(
        asked["request_id"],
        ApprovalAnswer(approved=False, answered_by="user:alice", reason="frozen"),
    )
    store.close()
    [[status, content]] = world.whole("nudge")["results"]
    assert status == "error"
    assert "frozen" in content
    assert world.ran == []
    assert world.spans[-1]["attributes"]["error.type"] == "approval_rejected"
