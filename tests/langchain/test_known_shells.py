"""Shell tools of other packages: held where a policy obliges it, or they run nothing."""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from langchain.agents.middleware import ShellToolMiddleware
from langchain_core.messages import AIMessage
from langchain_core.tools import BaseTool
from langgraph.graph import START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from rehearsed_calls import REHEARSE
from shell_packages import BASH, EXECUTE, LOCAL, SHELL, stand_ins

from agenttool_otel import GovernedOutcome, agent_context, enforcement
from agenttool_otel.enforcement.rehearsal import rehearsal_failure
from agenttool_otel.errors import SandboxUnavailable
from agenttool_otel.integrations.langchain.agents import ToolNodeGuard
from agenttool_otel.integrations.langchain.known_shells import holding_facts
from agenttool_otel.names import Attr, FailClosedCause
from agenttool_otel.testing import Capture, StaticEngine, capture, decision
from function_engine import FunctionEngine

READ = {"sandbox": {"profile": "read"}}
FACTS: dict[str, Any] = {"read_only": False, "access_kinds": ["code_execution"]}
COMMANDS = {"runs_commands": True}
ELSEWHERE = {"runs_elsewhere": True}


@pytest.fixture
def modules(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    return stand_ins(monkeypatch)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root; skips where this host can rehearse nothing."""
    failure = rehearsal_failure(tmp_path / "state") or enforcement.available()["read"].reason
    if failure:
        pytest.skip(f"nothing is held here: {failure}")
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


def shell_tool(modules: dict[str, Any]) -> BaseTool:
    tool: BaseTool = modules[SHELL].ShellTool(process=modules[BASH].BashProcess())
    return tool


def execute_tool(modules: dict[str, Any], root: Path) -> BaseTool:
    backend = modules[LOCAL].LocalShellBackend(root)
    tool: BaseTool = modules[EXECUTE].FilesystemMiddleware(backend).tool()
    return tool


def guarded(captured: Capture, tool: BaseTool) -> Any:
    guard = ToolNodeGuard(captured.governor, {tool.name: FACTS})
    node = ToolNode(
        [tool], wrap_tool_call=guard, awrap_tool_call=guard.acall, handle_tool_errors=False
    )
    return StateGraph(MessagesState).add_node("tools", node).add_edge(START, "tools").compile()


def asked_of(tool: BaseTool, line: str) -> dict[str, Any]:
    [argument] = tool.args
    return {argument: line}


def message(tool: BaseTool, line: str) -> dict[str, Any]:
    call = {"name": tool.name, "args": asked_of(tool, line), "id": "1", "type": "tool_call"}
    return {"messages": [AIMessage("", tool_calls=[call])]}


Way = Callable[[Capture, BaseTool, str], Any]
WAYS: dict[str, Way] = {
    "invoke": lambda captured, tool, line: captured.governor.govern(tool, **FACTS).invoke(
        asked_of(tool, line)
    ),
    "ainvoke": lambda captured, tool, line: asyncio.run(
        captured.governor.govern(tool, **FACTS).ainvoke(asked_of(tool, line))
    ),
    "guard": lambda captured, tool, line: guarded(captured, tool).invoke(message(tool, line)),
    "guard, awaited": lambda captured, tool, line: asyncio.run(
        guarded(captured, tool).ainvoke(message(tool, line))
    ),
}
TOOLS: dict[str, Callable[[dict[str, Any], Path], BaseTool]] = {
    "community": lambda modules, root: shell_tool(modules),
    "deepagents": execute_tool,
}


@pytest.fixture(params=TOOLS.values(), ids=TOOLS.keys())
def tool(request: pytest.FixtureRequest, modules: dict[str, Any], root: Path) -> BaseTool:
    made: BaseTool = request.param(modules, root)
    return made


@pytest.fixture
def context(root: Path) -> Iterator[None]:
    with agent_context(actor="agent:a", session_id="s", roots=[str(root)], cwd=str(root)):
        yield


def rehearsing(on_effects: str) -> FunctionEngine:
    return FunctionEngine(
        lambda document: (
            decision(on_effects)
            if "effects" in document["facts"]
            else decision("allow", obligations=REHEARSE)
        )
    )


def run_by(way: Way, captured: Capture, tool: BaseTool, line: str) -> None:
    try:
        way(captured, tool, line)
    except (GovernedOutcome, SandboxUnavailable):
        return


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_a_command_that_is_held_writes_nothing(way: Way, tool: BaseTool, root: Path) -> None:
    with capture(policy=StaticEngine(decision("allow", obligations=READ))) as captured:
        run_by(way, captured, tool, f"echo x > {root}/out")
        assert captured.span.attributes[Attr.SANDBOX_ENFORCED] is True
    assert list(root.iterdir()) == []


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
@pytest.mark.parametrize(("answer", "there"), [("allow", ["out"]), ("deny", [])])
def test_what_a_rehearsed_command_would_write_is_decided(
    way: Way, answer: str, there: list[str], tool: BaseTool, root: Path, tmp_path: Path
) -> None:
    state = str(tmp_path / "state")
    with capture(policy=rehearsing(answer), rehearsals_dir=state) as captured:
        run_by(way, captured, tool, f"echo x > {root}/out")
    assert [path.name for path in root.iterdir()] == there


@pytest.mark.usefixtures("context")
@pytest.mark.parametrize("way", WAYS.values(), ids=WAYS.keys())
def test_without_an_obligation_a_command_runs_as_before(
    way: Way, tool: BaseTool, root: Path
) -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        run_by(way, captured, tool, f"echo x > {root}/out")
    assert (root / "out").exists()


@pytest.mark.usefixtures("context")
def test_a_held_command_gives_what_it_gave(modules: dict[str, Any], root: Path) -> None:
    lines = ["echo out", "echo err >&2", "exit 3"]
    plain = shell_tool(modules).invoke({"commands": lines})
    with capture(policy=StaticEngine(decision("allow", obligations=READ))) as captured:
        held = captured.governor.govern(shell_tool(modules), **FACTS).invoke({"commands": lines})
    assert held == plain == "out\nerr\n"


@pytest.mark.usefixtures("context")
def test_a_refusal_that_the_tool_catches_ends_the_call(
    modules: dict[str, Any], root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agenttool_otel.enforcement.rehearsal import OpenLayer, RehearsalError

    def fail(*args: Any, **kwargs: Any) -> Any:
        raise RehearsalError("no sandbox in this test")

    monkeypatch.setattr(OpenLayer, "run", fail)
    state = str(tmp_path / "state")
    with capture(policy=rehearsing("allow"), rehearsals_dir=state) as captured:
        run_by(WAYS["invoke"], captured, shell_tool(modules), "true")
        assert captured.span.attributes["error.type"] == "policy_blocked"


class Remote:
    """A backend on another host, and a process of which nobody knows where it is."""

    def execute(self, command: str) -> str:
        raise AssertionError("it was reached")

    def run(self, commands: Any) -> str:
        raise AssertionError("it was reached")


def elsewhere(modules: dict[str, Any]) -> dict[str, BaseTool]:
    """Shells that no profile holds."""
    [session] = ShellToolMiddleware().tools
    return {
        "open bash": modules[SHELL].ShellTool(process=modules[BASH].BashProcess(persistent=True)),
        "own process": modules[SHELL].ShellTool(process=Remote()),
        "remote": modules[EXECUTE].FilesystemMiddleware(Remote()).tool(),
        "session": session,
    }


@pytest.mark.parametrize("kind", ["open bash", "own process", "remote", "session"])
@pytest.mark.parametrize("profile", ["read", "rehearse"])
def test_a_shell_that_no_profile_holds_is_refused(
    kind: str, profile: str, modules: dict[str, Any]
) -> None:
    tool = elsewhere(modules)[kind]
    obliges = decision("allow", obligations={"sandbox": {"profile": profile}})
    with capture(policy=StaticEngine(obliges)) as captured:
        line = {name: "true" for name in tool.args if name in ("command", "commands")}
        call = {"name": tool.name, "args": line, "id": "1", "type": "tool_call"}
        answer = captured.governor.govern(tool, **FACTS).invoke(call)
        attributes = captured.span.attributes
    assert "a tool that runs elsewhere" in answer.content
    assert attributes[Attr.PERMISSION_FAIL_CLOSED] == FailClosedCause.SANDBOX_UNAVAILABLE


def test_a_backend_behind_routes_is_found(modules: dict[str, Any], root: Path) -> None:
    class CompositeBackend:
        default = modules[LOCAL].LocalShellBackend(root)

    CompositeBackend.__module__ = "deepagents.backends.composite"
    CompositeBackend.__qualname__ = "CompositeBackend"
    tool = modules[EXECUTE].FilesystemMiddleware(CompositeBackend()).tool()
    assert holding_facts(tool) == COMMANDS


@pytest.mark.parametrize("changed", ["version", "subclass", "subprocess"])
def test_what_was_not_reviewed_has_no_commands_to_hold(
    changed: str, modules: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    backend = modules[LOCAL].LocalShellBackend
    if changed == "version":
        from agenttool_otel.integrations.langchain import known_tools

        monkeypatch.setattr(known_tools, "is_reviewed", lambda package: False)
    if changed == "subclass":
        backend = type("Mine", (backend,), {"__module__": __name__})
    if changed == "subprocess":
        modules[LOCAL].subprocess = object()
    assert holding_facts(modules[EXECUTE].FilesystemMiddleware(backend(".")).tool()) == ELSEWHERE


def test_a_module_keeps_the_rest_of_subprocess(modules: dict[str, Any], root: Path) -> None:
    holding_facts(execute_tool(modules, root))
    diverted = modules[LOCAL].subprocess
    assert diverted.Popen is subprocess.Popen
    assert diverted.run(["true"], check=True).returncode == 0


@pytest.mark.parametrize("name", [f"{BASH}.BashProcess", f"{LOCAL}.LocalShellBackend"])
def test_the_reviewed_classes_start_programs_so(name: str) -> None:
    module, _, cls = name.rpartition(".")
    real = pytest.importorskip(module)
    from agenttool_otel.integrations.langchain import known_shells

    assert known_shells._is_diverted(getattr(real, cls))
