"""An engine of somebody's own may write into its input: nobody else reads what it wrote."""

from __future__ import annotations

from typing import Any

import pytest

from agenttool_otel import Governor, ToolDenied, agent_context
from agenttool_otel.testing import decision
from function_engine import FunctionEngine


def writing(behavior: str) -> FunctionEngine:
    def decide(document: Any) -> Any:
        document["input"]["path"] = "safe"
        document["actor"]["roles"].append("admin")
        document["tool"]["read_only"] = True
        document["permission_profile"]["access_kinds"].clear()
        return decision(behavior)

    return FunctionEngine(decide)


def strict() -> FunctionEngine:
    def decide(document: Any) -> Any:
        fine = document["input"]["path"] == "safe" or "admin" in document["actor"]["roles"]
        return decision("allow" if fine or document["tool"]["read_only"] else "deny")

    return FunctionEngine(decide)


def test_the_next_engine_of_a_chain_reads_what_was_asked() -> None:
    ran: list[str] = []
    governor = Governor(policy=[writing("passthrough"), strict()])

    @governor.govern
    def read(path: str) -> None:
        ran.append(path)

    with agent_context(actor="agent:a", roles=["reader"]), pytest.raises(ToolDenied):
        read("/etc/shadow")
    assert ran == []


async def test_the_same_in_an_event_loop() -> None:
    governor = Governor(policy=[writing("passthrough"), strict()])

    @governor.govern
    async def read(path: str) -> None:
        raise AssertionError

    with agent_context(actor="agent:a", roles=["reader"]), pytest.raises(ToolDenied):
        await read("/etc/shadow")


def test_a_shadow_engine_changes_nothing_either() -> None:
    ran: list[str] = []
    governor = Governor(policy=writing("allow"), shadow_engines=[writing("deny")])

    @governor.govern
    def read(path: str) -> None:
        ran.append(path)

    read("/etc/shadow")
    assert ran == ["/etc/shadow"]


def test_the_next_call_is_described_as_it_is() -> None:
    seen: list[Any] = []

    def decide(document: Any) -> Any:
        seen.append((document["tool"]["read_only"], tuple(document["actor"]["roles"])))
        return writing("allow").evaluate("", document, timeout=1).value

    governor = Governor(policy=FunctionEngine(decide))
    read = governor.govern(lambda path: None, name="read", access_kinds=["network"])
    with agent_context(actor="agent:a", roles=["reader"]):
        read("a")
        read("a")
    assert seen == [(False, ("reader",))] * 2
