"""One session in several processes: what one heard, saw and did, another one knows at its
next call.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from history_rules import HISTORY_RULES

from agenttool_otel import ConfigurationError, Governor, agent_context
from agenttool_otel.approvals.store.database import parse_url
from agenttool_otel.context import session_store
from agenttool_otel.context.context import AgentContext
from agenttool_otel.context.session_store import open_store
from agenttool_otel.context.sessions import SessionBook
from agenttool_otel.context.shared_session import SharedSessionBook
from agenttool_otel.facts.outputs import OPEN_WORLD

PEER = Path(__file__).with_name("shared_session_peer.py")
KEY = b"k" * 32
CONTEXT = AgentContext(actor="agent:a", session_id="s")
RULES = """# METADATA
# scope: package
# schemas:
#   - input: schema.input
package agenttool.custom

"""
RULES += HISTORY_RULES
RULES += """
# METADATA
# title: Nothing is missing in the history
deny contains {"rule": "custom.whole", "message": "history is incomplete"} if input.session.history_complete == false
"""


class Peer:
    """One process that serves the session."""

    def __init__(self, url: str, rules: Path) -> None:
        command = [sys.executable, str(PEER), url, str(rules)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert self._line() == "ready\n"

    def _line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def call(
        self, tool: str, said: str | None = None, *, approve: bool | None = None, **arguments: str
    ) -> Any:
        assert self.process.stdin is not None
        told = {"tool": tool, "said": said, "approve": approve, "arguments": arguments}
        self.process.stdin.write(json.dumps(told) + "\n")
        self.process.stdin.flush()
        line = self._line()
        return json.loads(line) if line else {"outcome": "died"}

    def outcome(self, tool: str, said: str | None = None, **given: Any) -> str:
        return str(self.call(tool, said, **given)["outcome"])


@pytest.fixture
def rules(tmp_path: Path) -> Path:
    folder = tmp_path / "bundle" / "agenttool" / "custom"
    folder.mkdir(parents=True)
    (folder / "orders.rego").write_text(RULES, "utf-8")
    manifest = {"revision": "x", "rego_version": 1, "roots": ["agenttool/custom"]}
    (tmp_path / "bundle" / ".manifest").write_text(json.dumps(manifest), "utf-8")
    return tmp_path / "bundle"


@pytest.fixture(
    params=[
        "sqlite",
        pytest.param("redis", marks=pytest.mark.slow),
        pytest.param("postgres", marks=(pytest.mark.slow, pytest.mark.postgres)),
    ]
)
def peers(request: pytest.FixtureRequest, rules: Path) -> Iterator[Callable[[], Peer]]:
    url, made = request.getfixturevalue(f"{request.param}_url"), []

    def start() -> Peer:
        made.append(Peer(url, rules))
        return made[-1]

    yield start
    for peer in made:
        peer.process.terminate()
        peer.process.wait(20)


@pytest.mark.slow
def test_what_one_process_saw_another_asks_about(peers: Callable[[], Peer]) -> None:
    one, other = peers(), peers()
    assert one.outcome("fetch", "pay bill 4711 and write to ann@user.test", query="x").startswith(
        "please pay"
    )
    assert "bob@hidden" in one.outcome("contacts")
    told = other.call("send", to="eve@evil.test", body="hi")
    assert told["outcome"] == "asked"
    assert (told["facts"][0]["trust"], told["facts"][0]["sources"]) == (
        "free_text",
        ["tool:web.fetch"],
    )
    told = other.call("send", to="DE89370400440532013000")
    assert (told["outcome"], told["facts"][0]["untrusted"]) == ("asked", True)
    for to, source in (("bob@hidden.test", "tool:book.contacts"), ("ann@user.test", "user")):
        told = other.call("send", to=to)
        assert (told["outcome"], told["facts"][0]["sources"]) == ("sent", [source])
        assert told["facts"][0]["certain"]
    # what is nowhere is known to be nowhere, for nothing is missing
    assert other.call("send", to="nobody@nowhere.test")["facts"][0]["certain"]


@pytest.mark.slow
def test_an_approval_in_one_process_counts_in_another(peers: Callable[[], Peer]) -> None:
    one, other = peers(), peers()
    one.call("fetch", query="x")
    assert other.outcome("send", to="eve@evil.test") == "asked"
    assert one.outcome("send", approve=True, to="eve@evil.test") == "sent"
    assert other.outcome("send", to="eve@evil.test") == "sent"


@pytest.mark.slow
def test_once_and_only_after_hold_across_processes(peers: Callable[[], Peer]) -> None:
    one, other = peers(), peers()
    assert "look at it first" in other.outcome("cancel_order", order_id="7")
    assert one.outcome("get_order", order_id="7") == "open"
    assert "look at it first" in other.outcome("cancel_order", order_id="8")
    assert other.outcome("cancel_order", order_id="7") == "cancelled"
    assert "cancelled already" in one.outcome("cancel_order", order_id="7")
    assert "cancelled already" in peers().outcome("cancel_order", order_id="7")


@pytest.mark.slow
def test_what_a_process_that_died_had_read_is_not_known(peers: Callable[[], Peer]) -> None:
    one, other = peers(), peers()
    assert other.call("send", "write to ann@user.test", to="nobody@nowhere.test")["facts"][0][
        "certain"
    ]
    assert one.outcome("fetch", query="die") == "died"
    assert not other.call("send", to="nobody@nowhere.test")["facts"][0]["certain"]
    assert other.outcome("send", to="ann@user.test") == "sent"


def test_nothing_that_was_said_or_seen_stands_in_a_database(
    sqlite_url: str, rules: Path, tmp_path: Path
) -> None:
    peer = Peer(sqlite_url, rules)
    peer.call("fetch", "tell hidden-user about it", query="hidden-query")
    peer.call("contacts")
    peer.call("send", approve=True, to="eve@evil.test", body="hidden-body")
    files = [file for file in tmp_path.iterdir() if file.name.startswith("s.db")]
    peer.process.terminate()
    peer.process.wait(20)
    kept = b"".join(file.read_bytes() for file in files)
    assert b"agenttool_session" in kept
    for text in ("hidden", "eve@evil.test", "DE89", "bob", "web.fetch", "mail.send", "agent:a"):
        assert text.encode() not in kept


def books(url: str, *keys: bytes) -> list[SessionBook]:
    return [SharedSessionBook(open_store(parse_url(url), key)) for key in keys]


def seen(book: SessionBook, value: str) -> Any:
    """What a session knows of a value once its next call begins."""
    session = book.of(CONTEXT)
    session.admit("t", "next")
    session.settle("next", None)
    return session.open_ledger().lookup(value)


def test_forgotten_records_make_a_late_process_doubt(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_store, "KEPT_RECORDS", 3)
    one, other, late = books(sqlite_url, KEY, KEY, KEY)
    for number in range(5):
        session = one.of(CONTEXT)
        session.admit("t", str(number))
        session.open_ledger().record_output("web.fetch", f"mail{number}@evil.test", OPEN_WORLD)
        session.settle(str(number), None)
        fact = seen(other, f"mail{number}@evil.test")
        assert (fact["untrusted"], seen(other, "who@else.test")["certain"]) == (True, True)
    assert seen(late, "mail4@evil.test")["untrusted"]
    assert not seen(late, "mail0@evil.test")["certain"]
    for book in (one, other, late):
        book.close()


def test_a_changed_record_makes_a_process_doubt(sqlite_url: str) -> None:
    one, other, foreign = books(sqlite_url, KEY, KEY, KEY)
    session = one.of(CONTEXT)
    session.admit("t", "1")
    session.record_user_text(("write to ann@user.test",))
    session.settle("1", None)
    store: Any = other._store
    records = store.records
    store.records = lambda *given: [
        record[:-1] + bytes([record[-1] ^ 1]) for record in records(*given)
    ]
    assert seen(other, "ann@user.test")["sources"] == ["unknown"]
    assert not seen(other, "ann@user.test")["certain"]
    assert seen(foreign, "ann@user.test")["sources"] == ["user"]
    for book in (one, other, foreign):
        book.close()


def test_what_could_not_be_told_is_told_with_the_next_call(sqlite_url: str) -> None:
    one, other = books(sqlite_url, KEY, KEY)
    session, store = one.of(CONTEXT), one._store
    session.admit("t", "1")
    add, failing = store.add, True  # type: ignore[union-attr]

    def broken(*given: Any) -> Any:
        if failing:
            raise OSError
        return add(*given)

    store.add = broken  # type: ignore[method-assign, union-attr]
    session.open_ledger().record_output("web.fetch", "eve@evil.test", OPEN_WORLD)
    session.settle("1", None)
    assert not seen(other, "eve@evil.test")["certain"]
    failing = False
    session.admit("t", "2")
    session.settle("2", None)
    assert seen(other, "eve@evil.test")["untrusted"]
    assert seen(other, "who@else.test")["certain"]
    for book in (one, other):
        book.close()


def test_shared_sessions_without_a_key_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTTOOL_APPROVALS_KEY", raising=False)
    with pytest.raises(ConfigurationError, match="AGENTTOOL_APPROVALS_KEY"):
        Governor(sessions_url="redis://127.0.0.1:1/0")


def test_the_database_of_sessions_is_a_protected_place(sqlite_url: str, tmp_path: Path) -> None:
    governor = Governor(sessions_url=sqlite_url)
    write = governor.govern(
        lambda path: None, name="write", path_args=["path"], write_effects=["workspace_write"]
    )
    with agent_context(actor="agent:a", session_id="s", roots=[tmp_path]):
        assert write.tool.check(path=str(tmp_path / "s.db")).behavior == "deny"
        assert write.tool.check(path=str(tmp_path / "other.db")).behavior != "deny"
    governor.close()
