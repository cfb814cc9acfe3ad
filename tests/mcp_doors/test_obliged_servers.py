"""A call that a policy obliges to a profile runs in a server that is held by one as strict, or not at
all.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from agenttool_otel import agent_context
from agenttool_otel.enforcement import available, own, proofs
from agenttool_otel.enforcement.own import OwnProfile, define_profiles
from agenttool_otel.integrations.mcp.held import held_server
from agenttool_otel.integrations.mcp.listing import ServerTools
from agenttool_otel.integrations.mcp.proxy import governed_proxy
from agenttool_otel.integrations.mcp.upstream import Upstream, server_process
from agenttool_otel.names import Attr, SandboxProfile
from agenttool_otel.testing import capture, decision
from function_engine import FunctionEngine

COMMAND = (sys.executable, "-S", "-E", str(Path(__file__).with_name("held_server.py")))
READ: Any = {"read": {"read_only": True}}


@pytest.fixture(autouse=True)
def readable() -> None:
    proof = available()["read"]
    if not proof.proven:
        pytest.skip(f"the profile read can't be had here: {proof.reason}")


@pytest.fixture
def careful(tmp_path: Path) -> Iterator[str]:
    """A profile that hides one more place."""
    define_profiles({"careful": OwnProfile(SandboxProfile.READ, masked=(tmp_path / "diary",))})
    yield "careful"
    proofs._proofs.pop("careful", None)
    own._own.clear()


class Obliged:
    """Calls of a real server behind the proxy's own parts, under a policy that obliges a sandbox.

    Args:
        root: the session's root, which has a file ``notes.txt``.
        held: the profile of the server's process; none where it is empty.
        roots: what the server is started with.
    """

    def __init__(self, root: Path, held: str = "read", roots: list[Path] | None = None) -> None:
        self.root = root
        self.inputs: list[Any] = []
        (root / "notes.txt").write_text("the notes", "utf-8")
        process = server_process(COMMAND)
        self._server = held_server(process, held, roots or [root]) if held else process

    def call(self, between: Any = None, **sandbox: str) -> Any:
        """Return the span's attributes of the last of two calls, and the text of its result."""

        def decide(document: Any) -> Any:
            self.inputs.append(document)
            return decision("allow", obligations={"sandbox": sandbox})

        with capture(policy=FunctionEngine(decide)) as captured:
            text = asyncio.run(self._call(captured.governor, between))
            return captured.spans[-1].attributes, text

    async def _call(self, governor: Any, between: Any) -> str:
        path = {"path": str(self.root / "notes.txt")}
        async with Upstream(self._server, timeout=60) as upstream:
            tools = ServerTools(governor, "files", facts=READ)
            proxy = governed_proxy(upstream, tools)
            with agent_context(session_id="s", roots=(str(self.root),)):
                async with Client(proxy, mode="legacy") as client:
                    await client.call_tool("read", path)
                    if between is not None:
                        between()
                    result: Any = await client.call_tool("read", path)
        return str(result.content[0].text)


def is_denied(attributes: Any) -> bool:
    return (
        attributes[Attr.PERMISSION_FAIL_CLOSED] == "sandbox_unavailable"
        and attributes[Attr.PERMISSION_OUTCOME] == "not_executed"
        and attributes[Attr.SANDBOX_ENFORCED] is False
    )


@pytest.mark.parametrize("sandbox", [{}, {"network": "none"}], ids=["alone", "without network"])
def test_a_held_server_meets_the_obligation(tmp_path: Path, sandbox: dict[str, str]) -> None:
    attributes, text = Obliged(tmp_path).call(profile="read", **sandbox)
    assert text == "the notes"
    assert attributes[Attr.SANDBOX_PROFILE] == "read"
    assert attributes[Attr.SANDBOX_SCOPE] == "process"
    assert attributes[Attr.SANDBOX_ENFORCED] is True


def test_a_free_server_does_not_meet_it(tmp_path: Path) -> None:
    attributes, text = Obliged(tmp_path, held="").call(profile="read")
    assert is_denied(attributes)
    assert "the notes" not in text


def test_a_stricter_server_meets_it(tmp_path: Path, careful: str) -> None:
    assert Obliged(tmp_path, held=careful).call(profile="read")[1] == "the notes"
    assert Obliged(tmp_path).call(profile="write")[1] == "the notes"


def test_a_less_strict_server_does_not(tmp_path: Path, careful: str) -> None:
    attributes, text = Obliged(tmp_path).call(profile=careful)
    assert is_denied(attributes)
    assert "allows more" in text


def test_no_server_meets_an_obliged_rehearsal(tmp_path: Path) -> None:
    assert is_denied(Obliged(tmp_path).call(profile="rehearse")[0])


def test_a_server_with_other_roots_does_not(tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    attributes, text = Obliged(tmp_path, roots=[other]).call(profile="read")
    assert is_denied(attributes)
    assert "other roots" in text


def test_a_server_older_than_a_secret_does_not(tmp_path: Path) -> None:
    def make() -> None:
        below = tmp_path / "app"
        below.mkdir()
        (below / ".env").write_text("KEY=1", "utf-8")

    attributes, text = Obliged(tmp_path).call(make, profile="read")
    assert is_denied(attributes)
    assert "older than" in text


def test_the_policy_sees_what_holds_the_server(tmp_path: Path, careful: str) -> None:
    held, free = Obliged(tmp_path), Obliged(tmp_path, held="")
    held.call(profile="read")
    free.call(profile="read")
    assert held.inputs[0]["execution"] == {
        "sandboxes": ["read", "write"],
        "scope": "process",
        "refused": [],
    }
    assert free.inputs[0]["execution"]["sandboxes"] == []
    assert free.inputs[0]["execution"]["scope"] == "none"
