"""The door of deepagents, with scripted models and real back ends."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("deepagents", reason="deepagents is not installed: tools/frameworks.py")

from deep_driver import DeepDriver
from deepagents import (
    FilesystemMiddleware,
    HarnessProfile,
    SubAgentMiddleware,
    register_harness_profile,
)
from deepagents.backends import CompositeBackend, FilesystemBackend, StateBackend, StoreBackend
from graph_agents import Scripted
from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agenttool_otel import ConfigurationError
from agenttool_otel.integrations.coverage import require_governed
from agenttool_otel.integrations.deep_agents import create_governed_agent, file_facts
from agenttool_otel.testing import Capture, StaticEngine, capture, decision
from agenttool_otel.testing.doors import DOOR_CHECKS

RAN: list[str] = []
WRITE = ("write_file", {"file_path": "/notes/a.txt", "content": "a tree"})
TASK = {"description": "do it", "subagent_type": "writer"}

GENERAL = {"description": "do it", "subagent_type": "general-purpose"}


class Both(Scripted):
    """Follows another script where ``task`` started it."""

    inner: list[Any]

    def _generate(self, messages: Any, *rest: Any, **options: Any) -> Any:
        inside = any("do it" in str(message.content) for message in messages)
        script = Scripted(calls=self.inner if inside else self.calls)
        return script._generate(messages, *rest, **options)


class OfWords(Scripted):
    """A model of a provider that has a profile."""

    def _get_ls_params(self, **options: Any) -> Any:
        return {"ls_provider": "words"}


@tool
def publish(text: str) -> str:
    """Publish a text."""
    RAN.append(text)
    return f"published {text}"


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


def agent_of(captured: Capture, *calls: Any, **options: Any) -> Any:
    return create_governed_agent(
        Scripted(calls=list(calls)), [publish], governor=captured.governor, **options
    )


def sub_agent(*calls: Any) -> dict[str, Any]:
    return {
        "name": "writer",
        "description": "Writes.",
        "system_prompt": "Write.",
        "model": Scripted(calls=list(calls)),
    }


def run(agent: Any, given: Any = None, **config: Any) -> Any:
    state = given or {"messages": [HumanMessage("go")]}
    return agent.invoke(state, {"configurable": config})


def texts(state: Any) -> list[str]:
    return [str(message.content) for message in state["messages"]]


def decided(engine: StaticEngine) -> list[str]:
    return [document["tool"]["name"] for document in engine.documents]


@pytest.mark.parametrize("check", DOOR_CHECKS, ids=lambda check: check.__name__)
def test_the_door_passes(check: Any) -> None:
    check(DeepDriver())


def test_a_sub_agents_calls_are_decided() -> None:
    engine = StaticEngine({"task": decision("allow"), "publish": decision("deny")})
    with capture(policy=engine) as captured:
        writer = sub_agent(("publish", {"text": "a"}))
        run(agent_of(captured, ("task", TASK), subagents=[writer]))
    assert decided(engine) == ["task", "publish"]
    assert RAN == []


def test_the_general_purpose_agents_calls_are_decided() -> None:
    engine = StaticEngine({"task": decision("allow"), "publish": decision("deny")})
    with capture(policy=engine) as captured:
        model = Both(calls=[("task", GENERAL)], inner=[("publish", {"text": "a"})])
        run(create_governed_agent(model, [publish], governor=captured.governor))
    assert decided(engine) == ["task", "publish"]
    assert RAN == []


def test_a_sub_agents_span_is_inside_of_its_task() -> None:
    with capture(policy=StaticEngine("allow")) as captured:
        writer = sub_agent(("publish", {"text": "a"}))
        run(agent_of(captured, ("task", TASK), subagents=[writer]))
        spans = {span.name: span for span in captured.spans}
    inner, outer = spans["execute_tool publish"], spans["execute_tool task"]
    assert inner.context.trace_id == outer.context.trace_id
    assert RAN == ["a"]


def test_an_answer_reaches_a_call_of_a_sub_agent() -> None:
    engine = StaticEngine({"task": decision("allow"), "publish": decision("ask")})
    with capture(policy=engine) as captured:
        writer = sub_agent(("publish", {"text": "a"}))
        agent = agent_of(captured, ("task", TASK), subagents=[writer], checkpointer=InMemorySaver())
        run(agent, thread_id="t")
        assert RAN == []
        run(agent, Command(resume={"type": "approve"}), thread_id="t")
    assert RAN == ["a"]


def test_a_compiled_sub_agent_needs_a_guard() -> None:
    plain = create_agent(Scripted(calls=[]), [publish])
    compiled = {"name": "writer", "description": "Writes.", "runnable": plain}
    with (
        capture(policy=StaticEngine("allow")) as captured,
        pytest.raises(ConfigurationError, match="publish"),
    ):
        agent_of(captured, subagents=[compiled])


def test_a_guarded_agent_may_be_a_sub_agent() -> None:
    engine = StaticEngine({"task": decision("allow"), "publish": decision("deny")})
    with capture(policy=engine) as captured:
        inner = agent_of(captured, ("publish", {"text": "a"}))
        compiled = {"name": "writer", "description": "Writes.", "runnable": inner}
        outer = agent_of(captured, ("task", TASK), subagents=[compiled])
        require_governed(outer)
        run(outer)
    assert decided(engine) == ["task", "publish"]
    assert RAN == []


def test_a_forked_sub_agents_calls_are_decided() -> None:
    engine = StaticEngine({"task": decision("allow"), "publish": decision("deny")})
    with capture(policy=engine) as captured:
        forked = {**sub_agent(("publish", {"text": "a"})), "mode": "fork"}
        run(agent_of(captured, ("task", TASK), subagents=[forked]))
    assert decided(engine) == ["task", "publish"]
    assert RAN == []


def test_sub_agents_at_the_same_time_are_decided() -> None:
    engine = StaticEngine({"task": decision("allow"), "publish": decision("deny")})
    with capture(policy=engine) as captured:
        writer = sub_agent(("publish", {"text": "a"}))
        agent = agent_of(captured, [("task", TASK), ("task", TASK)], subagents=[writer])
        asyncio.run(agent.ainvoke({"messages": [HumanMessage("go")]}))
    assert sorted(decided(engine)) == ["publish", "publish", "task", "task"]
    assert RAN == []


def test_sub_agents_of_the_programs_own_need_a_guard() -> None:
    writer = {**sub_agent(), "tools": [publish]}
    own = SubAgentMiddleware(backend=StateBackend(), subagents=[writer])
    with (
        capture(policy=StaticEngine("allow")) as captured,
        pytest.raises(ConfigurationError, match="publish"),
    ):
        agent_of(captured, middleware=[own])


def test_a_profile_can_not_take_the_guard_away() -> None:
    profile = HarnessProfile(excluded_middleware=frozenset({"AgentToolMiddleware"}))
    register_harness_profile("words", profile)
    with (
        capture(policy=StaticEngine("allow")) as captured,
        pytest.raises(ConfigurationError, match="publish"),
    ):
        create_governed_agent(OfWords(calls=[]), [publish], governor=captured.governor)


def test_a_file_on_disk_is_decided_where_it_is(tmp_path: Path) -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        run(agent_of(captured, WRITE, backend=FilesystemBackend(tmp_path)))
    (fact,) = engine.documents[0]["facts"]["paths"]
    assert fact["resolved"] == str(tmp_path / "notes" / "a.txt")
    assert (tmp_path / "notes" / "a.txt").read_text("utf-8") == "a tree"


def test_a_file_in_the_state_is_no_file_of_the_machine() -> None:
    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        state = run(agent_of(captured, WRITE))
    assert engine.documents[0]["facts"]["paths"] == []
    assert list(state["files"]) == ["/notes/a.txt"]


def test_each_route_has_its_own_directory(tmp_path: Path) -> None:
    notes = StoreBackend(namespace=lambda runtime: ("notes",))
    backend = CompositeBackend(FilesystemBackend(tmp_path), {"/notes/": notes})
    base = file_facts(backend)["read_file"]["path_base"]
    assert base == {"/": str(tmp_path), "/notes/": "nowhere"}


def test_a_search_across_routes_on_disk_has_no_facts(tmp_path: Path) -> None:
    backend = CompositeBackend(StateBackend(), {"/docs/": FilesystemBackend(tmp_path)})
    assert file_facts(backend).keys().isdisjoint({"grep", "glob", "delete"})


@pytest.mark.parametrize("path", ["//docs/a", "/./docs/a", "/docs/./a", "\\docs\\a", "/x/../a"])
def test_a_path_that_could_be_another_is_refused(path: str, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a tree", "utf-8")
    backend = CompositeBackend(StateBackend(), {"/docs/": FilesystemBackend(tmp_path)})
    with capture(policy=StaticEngine("allow")) as captured:
        state = run(agent_of(captured, ("read_file", {"file_path": path}), backend=backend))
        assert captured.span.attributes["error.type"]
    assert not any("a tree" in text for text in texts(state))


def test_the_back_end_of_a_middleware_counts(tmp_path: Path) -> None:
    engine = StaticEngine("allow")
    files = FilesystemMiddleware(backend=FilesystemBackend(tmp_path))
    with capture(policy=engine) as captured:
        run(agent_of(captured, WRITE, middleware=[files]))
    (fact,) = engine.documents[0]["facts"]["paths"]
    assert fact["resolved"] == str(tmp_path / "notes" / "a.txt")


def test_the_general_purpose_agent_has_the_same_files(tmp_path: Path) -> None:
    engine = StaticEngine("allow")
    files = FilesystemMiddleware(backend=FilesystemBackend(tmp_path))
    with capture(policy=engine) as captured:
        model = Both(calls=[("task", GENERAL)], inner=[WRITE])
        run(create_governed_agent(model, governor=captured.governor, middleware=[files]))
    assert (tmp_path / "notes" / "a.txt").read_text("utf-8") == "a tree"


def test_a_tool_of_the_programs_own_has_no_reviewed_facts() -> None:
    @tool
    def read_file(file_path: str) -> str:
        """Send a file away."""
        return "sent"

    engine = StaticEngine("allow")
    with capture(policy=engine) as captured:
        model = Scripted(calls=[("read_file", {"file_path": "/a"})])
        run(create_governed_agent(model, [read_file], governor=captured.governor))
    assert engine.documents[0]["tool"]["read_only"] is False


def test_the_stock_policy_allows_reading_in_the_state() -> None:
    backend = CompositeBackend(StateBackend(), {"/site/": FilesystemBackend(Path(__file__).parent)})
    with capture() as captured:
        calls = [("read_file", {"file_path": "/notes/a"}), ("ls", {"path": "/notes"})]
        run(agent_of(captured, calls, backend=backend))
        statuses = {span.attributes["agenttool.permission.behavior"] for span in captured.spans}
    assert statuses == {"allow"}


def test_files_of_a_store_last() -> None:
    store = StoreBackend(namespace=lambda runtime: ("notes",))
    assert file_facts(store)["write_file"]["write_effects"] == ["local_persistent"]
    assert file_facts(StateBackend())["write_file"]["write_effects"] == ["local_draft"]


def test_a_back_end_of_another_class_has_no_facts() -> None:
    class Elsewhere(StateBackend):
        pass

    assert list(file_facts(Elsewhere())) == ["task"]


def test_a_search_states_where_it_looks(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("a tree", "utf-8")
    with capture(policy=StaticEngine("allow")) as captured:
        search = ("grep", {"pattern": "tree"})
        state = run(agent_of(captured, search, backend=FilesystemBackend(tmp_path)))
    assert not any("a.txt" in text for text in texts(state))


def test_stated_facts_come_before_the_reviewed_ones() -> None:
    engine = StaticEngine("allow")
    facts = {"write_file": {"path_args": ["file_path"]}}
    with capture(policy=engine) as captured:
        run(agent_of(captured, WRITE, facts=facts))
    (fact,) = engine.documents[0]["facts"]["paths"]
    assert fact["resolved"] == "/notes/a.txt"


def test_the_pages_example_runs() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "doors.md").read_text("utf-8")
    section = page.split("## deepagents")[1].split("\n## ")[0]
    (block,) = re.findall(r"```py\n(.*?)```", section, re.DOTALL)
    exec(block, {"model": Scripted(calls=[("ls", {"path": "/"})])})
