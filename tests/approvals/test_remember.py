"""Approve and remember, from the question to the next call, with the policy that ships and with
others.
"""

from __future__ import annotations

import asyncio
import http.client
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from approval_helpers import ARGS, FakeClock, a_request, yes
from opentelemetry.sdk.trace import Span
from rich.console import Console
from typer.testing import CliRunner

from agenttool_otel import ApprovalAnswer, ApprovalRequired, ToolDenied, agent_context
from agenttool_otel.approvals import console as console_module
from agenttool_otel.approvals.console import ConsoleApprover
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.types import Approver
from agenttool_otel.approvals.web.server import ApprovalsServer
from agenttool_otel.cli.approvals import app
from agenttool_otel.errors import ApprovalNotFound, ApprovalStoreError
from agenttool_otel.hooks import Hooks, PermissionResult
from agenttool_otel.names import ApprovalLogKind, ApprovalStatus, Attr, Behavior
from agenttool_otel.testing import Capture, FixedApprover, StaticEngine, capture, decision

WHO: dict[str, Any] = {"actor": "agent:support", "tenant": "acme", "session_id": "s-1"}
GRANT = {"type": "grant", "scope": "session", "args": "exact", "expires_in": 600}
REMEMBER = ApprovalAnswer(approved=True, answered_by="user:ada", roles=("operator",), remember=0)
FORM = {"Content-Type": "application/x-www-form-urlencoded"}


class Tool:
    """A governed tool that counts its runs, and who was asked about it."""

    def __init__(self, captured: Capture, **facts: Any) -> None:
        self.ran: list[str] = []
        self.captured = captured

        def send(text: str) -> str:
            self.ran.append(text)
            return text

        stated: dict[str, Any] = {
            "name": "send",
            "namespace": "acme",
            "risk_level": "high",
            "read_only": False,
        }
        self.call = captured.governor.govern(
            send, **{**stated, "destructive": False, "open_world": False, **facts}
        )

    @property
    def store(self) -> ApprovalStore:
        return self.captured.governor.approvals.store

    def used(self) -> list[dict[str, Any]]:
        return [e.data for e in self.store.log_entries() if e.kind is ApprovalLogKind.GRANT_USED]


@pytest.fixture
def opened(tmp_path: Path, clock: FakeClock) -> Iterator[Callable[..., Tool]]:
    """Governs the tool over one approval store, as often as wanted."""
    open_ones: list[AbstractContextManager[Capture]] = []

    def one(
        approver: Approver | None = None,
        facts: Mapping[str, Any] | None = None,
        real: bool = False,
        **options: Any,
    ) -> Tool:
        times: dict[str, Any] = {} if real else {"clock": clock, "ticks": clock.ticks}
        store = ApprovalStore(tmp_path / "approvals.db", **times)
        context = capture(approver=approver, approvals=store, **options)
        open_ones.append(context)
        return Tool(context.__enter__(), **(facts or {}))

    yield one
    for context in reversed(open_ones):
        context.__exit__(None, None, None)


def paused(tool: Tool, text: str = "hello", **context: Any) -> ApprovalRequired:
    with agent_context(**{**WHO, **context}), pytest.raises(ApprovalRequired) as asked:
        tool.call(text)
    return asked.value


def run(tool: Tool, text: str = "hello", **context: Any) -> Any:
    with agent_context(**{**WHO, **context}):
        return tool.call(text)


# --- the doors of people, with the stock bundle ---------------------------------------------------


def test_an_approver_is_asked_once_for_three_equal_calls(opened: Callable[..., Tool]) -> None:
    approver = FixedApprover(REMEMBER)
    tool = opened(approver)
    assert [run(tool) for _ in range(3)] == ["hello"] * 3
    assert tool.ran == ["hello"] * 3
    (request,) = approver.asked
    assert request.suggested_updates == [{**GRANT, "expires_in": 3600}]
    (grant,) = tool.store.list_grants()
    assert (grant.granted_by, grant.granter_roles, grant.scope) == (
        "user:ada",
        ["operator"],
        "session",
    )
    assert [entry["grant"] for entry in tool.used()] == [grant.grant_id] * 2
    assert tool.store.verify_chain().ok
    assert len(tool.store.list()) == 1
    first, *later = tool.captured.spans
    assert first.attributes is not None
    assert Attr.APPROVAL_GRANT_ID not in first.attributes
    for span in later:
        assert span.attributes is not None
        assert span.attributes[Attr.APPROVAL_GRANT_ID] == grant.grant_id
        assert span.attributes[Attr.APPROVAL_STATUS] == "approved"
        assert span.attributes[Attr.PERMISSION_RULE] == "agenttool.rules.approval.remembered"
        assert span.attributes[Attr.PERMISSION_BEHAVIOR] == "allow"
    asks = [
        event for event in tool.captured.events if event.event_type == "tool.approval.requested"
    ]
    assert len(asks) == 1


def test_the_console_remembers(
    opened: Callable[..., Tool], monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = iter(["r1"])
    console = Console(force_terminal=True, width=120, quiet=True)
    monkeypatch.setattr(console, "input", lambda *_: next(typed))
    monkeypatch.setattr(console_module.sys.stdin, "isatty", lambda: True, raising=False)
    tool = opened(ConsoleApprover(answered_by="user:tty", console=console))
    assert [run(tool), run(tool)] == ["hello", "hello"]
    assert [grant.granted_by for grant in tool.store.list_grants()] == ["user:tty"]


def test_the_command_line_remembers_lists_and_revokes(
    opened: Callable[..., Tool], tmp_path: Path
) -> None:
    tool = opened(real=True)
    first = paused(tool)
    url = ["--url", str(tmp_path / "approvals.db")]
    done = CliRunner().invoke(
        app, ["approve", first.request_id, *url, "--yes", "--remember", "1", "--as", "user:ada"]
    )
    assert done.exit_code == 0, done.output
    assert run(tool) == "hello"
    (grant,) = tool.store.list_grants()
    listed = CliRunner().invoke(app, ["grants", *url])
    assert grant.grant_id in listed.output.replace("\n", "")
    revoked = CliRunner().invoke(app, ["revoke", grant.grant_id, *url])
    assert revoked.exit_code == 0, revoked.output
    paused(tool)
    assert tool.ran == ["hello"]


def _fetch(
    server: ApprovalsServer,
    method: str,
    path: str,
    form: dict[str, str] | None = None,
    cookie: str = "",
) -> tuple[Any, str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=60)
    headers = {**FORM, **({"Cookie": cookie} if cookie else {})}
    connection.request(method, path, body=urlencode(form or {}).encode(), headers=headers)
    answer = connection.getresponse()
    return answer, answer.read().decode()


def _signed_in_page(server: ApprovalsServer, path: str) -> tuple[str, str]:
    login, _ = _fetch(server, "POST", "/login", {"token": server.token})
    cookie = login.headers["set-cookie"].split(";")[0]
    return cookie, _fetch(server, "GET", path, cookie=cookie)[1]


def test_the_page_remembers(opened: Callable[..., Tool], tmp_path: Path) -> None:
    tool = opened()
    first = paused(tool)
    with ApprovalsServer(tool.store, answered_by="user:ada", interval=0.05) as server:
        cookie, page = _signed_in_page(server, f"/requests/{first.request_id}")
        assert 'name="remember" value="0"' in page
        token = server.page.sessions.form_token(
            cookie.split("=", 1)[1], f"answer {first.request_id}"
        )
        form = {"csrf": token, "remember": "0"}
        answered, _ = _fetch(server, "POST", f"/requests/{first.request_id}/approve", form, cookie)
        assert answered.status == 303
    assert run(tool) == "hello"
    assert len(tool.store.list_grants()) == 1


def test_nothing_that_can_not_be_remembered_is_offered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = ApprovalStore(tmp_path / "approvals.db")
    odd = [
        {"type": "acme_grant"},
        {"type": "grant", "scope": "world"},
        {"type": "grant", "scope": "session"},
    ]
    request = store.create(a_request(suggested_updates=odd), ARGS)
    with ApprovalsServer(store, answered_by="user:ada") as server:
        _, page = _signed_in_page(server, f"/requests/{request.request_id}")
    assert 'value="2"' in page
    assert 'value="0"' not in page and 'value="1"' not in page  # noqa: PT018
    console = Console(force_terminal=True, width=120, record=True)
    typed = iter(["r1", "r3"])
    monkeypatch.setattr(console, "input", lambda *_: next(typed))
    monkeypatch.setattr(console_module.sys.stdin, "isatty", lambda: True, raising=False)
    answer = ConsoleApprover(answered_by="user:tty", console=console).ask(request)
    assert answer is not None
    assert answer.remember == 2
    assert "remember 1," not in console.export_text()
    store.close()


# --- what a grant does not cover ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "context"),
    [
        ("other", {}),
        ("hello", {"actor": "agent:other"}),
        ("hello", {"tenant": "globex"}),
        ("hello", {"session_id": "s-2"}),
    ],
    ids=["arguments", "actor", "tenant", "session"],
)
def test_another_call_is_asked_about(
    opened: Callable[..., Tool], text: str, context: dict[str, Any]
) -> None:
    run(opened(FixedApprover(REMEMBER)))
    tool = opened()
    paused(tool, text, **context)
    assert tool.ran == []
    assert run(tool) == "hello"


def test_another_tool_and_a_changed_declaration_are_asked_about(
    opened: Callable[..., Tool],
) -> None:
    run(opened(FixedApprover(REMEMBER)))
    paused(opened(facts={"namespace": "globex"}))
    paused(opened(facts={"description": "Sends something else."}))


def test_a_grant_ends_with_its_time_and_when_it_is_revoked(
    opened: Callable[..., Tool], clock: FakeClock
) -> None:
    approver = FixedApprover(REMEMBER)
    tool = opened(approver)
    run(tool)
    clock.move(3599)
    run(tool)
    assert len(approver.asked) == 1
    clock.move(2)
    run(tool)
    assert len(approver.asked) == 2
    tool.store.revoke(tool.store.list_grants()[0].grant_id)
    run(tool)
    assert len(approver.asked) == 3


def test_another_question_about_the_same_call_is_asked(
    opened: Callable[..., Tool], tmp_path: Path
) -> None:
    """The file that was written inside the roots is a link to the outside now: nobody has said yes
    to that.
    """
    inside, outside = tmp_path / "inside", tmp_path / "outside.txt"
    inside.mkdir()
    approver = FixedApprover(REMEMBER)
    governor = opened(approver).captured.governor
    written: list[str] = []
    write = governor.govern(
        lambda path: written.append(path),
        name="write",
        read_only=False,
        destructive=False,
        open_world=False,
        tool_kind="file_operation",
        access_kinds=["file_write"],
        write_effects=["local_persistent"],
        path_args=["path"],
    )
    with agent_context(**WHO, roots=[str(inside)]):
        write(str(inside / "a.txt"))
        write(str(inside / "a.txt"))
        assert len(approver.asked) == 1, [one.rule_refs for one in approver.asked]
        outside.write_text("x")
        (inside / "a.txt").symlink_to(outside)
        approver.answer = None
        with pytest.raises((ApprovalRequired, ToolDenied)):
            write(str(inside / "a.txt"))
    assert len(written) == 2


def test_a_tenants_grant_does_not_let_its_giver_approve_himself(
    opened: Callable[..., Tool],
) -> None:
    offer = decision("ask", suggested_updates=[{**GRANT, "scope": "tenant"}])
    tool = opened(FixedApprover(REMEMBER), policy=StaticEngine(offer))
    run(tool)
    run(tool, actor="agent:other", session_id="s-9")
    tool.captured.governor.approvals.approver = None
    assert len(tool.ran) == 2
    paused(tool, actor="user:Ada")


def test_a_span_that_cannot_take_the_grant_stops_no_call(
    opened: Callable[..., Tool], monkeypatch: pytest.MonkeyPatch
) -> None:
    original = Span.set_attribute

    def refuse(self: Span, key: str, value: Any) -> None:
        if key == Attr.APPROVAL_GRANT_ID:
            raise RuntimeError("no such attribute")
        original(self, key, value)

    tool = opened(FixedApprover(REMEMBER))
    run(tool)
    monkeypatch.setattr(Span, "set_attribute", refuse)
    run(tool)
    assert len(tool.ran) == 2
    assert len(tool.captured.governor.approvals.approver.asked) == 1


@pytest.mark.parametrize("actor", ["user:ada\u200b", "user:\u00ada da", "user:\u0430d\u0430"])
def test_nor_does_it_for_a_name_that_only_looks_different(
    opened: Callable[..., Tool], actor: str
) -> None:
    offer = decision("ask", suggested_updates=[{**GRANT, "scope": "tenant"}])
    tool = opened(FixedApprover(REMEMBER), policy=StaticEngine(offer))
    run(tool)
    tool.captured.governor.approvals.approver = None
    paused(tool, actor=actor)


# --- what else has a say --------------------------------------------------------------------------


class Deciding(StaticEngine):
    """A policy that answers a call with a grant otherwise than one without."""

    def __init__(self, granted: Mapping[str, Any], **ask: Any) -> None:
        super().__init__("ask")
        self._ask = decision("ask", suggested_updates=[GRANT], **ask)
        self._granted = granted

    def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> Any:
        approval = document["approval"]
        self._answers = self._granted if approval is not None and approval["granted"] else self._ask
        return super().evaluate(entry_point, document, timeout=timeout)


def test_the_call_is_decided_again_with_the_grant(opened: Callable[..., Tool]) -> None:
    engine = Deciding(decision("allow"))
    tool = opened(FixedApprover(REMEMBER), policy=engine)
    run(tool)
    run(tool)
    assert engine.documents[-1]["approval"] == {
        "request_id": tool.store.list_grants()[0].request_id,
        "status": "approved",
        "answered_by": "user:ada",
        "roles": ["operator"],
        "granted": True,
    }
    assert engine.documents[-2]["approval"] is None


def test_a_check_knows_what_was_granted_and_uses_nothing(opened: Callable[..., Tool]) -> None:
    tool = opened(FixedApprover(REMEMBER))
    with agent_context(**WHO):
        assert tool.call.tool.check(text="hello").behavior is Behavior.ASK
        tool.call("hello")
        uses = tool.used()
        found = tool.call.tool.check(text="hello")
        assert (found.behavior, found.next_step) == (Behavior.ALLOW, "call it")
        assert asyncio.run(tool.call.tool.acheck(text="hello")).allowed
        assert tool.call.tool.check(text="another").behavior is Behavior.ASK
    with agent_context(**{**WHO, "session_id": "s-2"}):
        assert tool.call.tool.check(text="hello").behavior is Behavior.ASK
    assert tool.used() == uses
    assert tool.ran == ["hello"]


def test_a_check_says_that_a_deny_wins_over_a_grant(opened: Callable[..., Tool]) -> None:
    tool = opened(FixedApprover(REMEMBER), policy=Deciding(decision("deny")))
    run(tool)
    with agent_context(**WHO):
        assert tool.call.tool.check(text="hello").behavior is Behavior.DENY


def test_a_deny_wins_over_a_grant(opened: Callable[..., Tool]) -> None:
    tool = opened(FixedApprover(REMEMBER), policy=Deciding(decision("deny")))
    run(tool)
    with pytest.raises(ToolDenied):
        run(tool)
    assert (tool.ran, tool.used()) == (["hello"], [])


@pytest.mark.parametrize(
    "fields", [{}, {"suggested_updates": [GRANT], "rule_refs": ["test.ask", "test.new"]}]
)
def test_a_policy_may_refuse_a_grant(opened: Callable[..., Tool], fields: dict[str, Any]) -> None:
    approver = FixedApprover(REMEMBER)
    tool = opened(approver, policy=Deciding(decision("ask", **fields)))
    run(tool)
    run(tool)
    assert len(approver.asked) == 2
    assert tool.used() == []
    approver.answer = None
    paused(tool)
    assert tool.captured.spans[-1].attributes is not None
    assert tool.captured.spans[-1].attributes[Attr.PERMISSION_BEHAVIOR] == "ask"


def test_a_policy_that_knows_nothing_of_grants_asks_once(opened: Callable[..., Tool]) -> None:
    approver = FixedApprover(REMEMBER)
    tool = opened(approver, policy=StaticEngine(decision("ask", suggested_updates=[GRANT])))
    assert [run(tool) for _ in range(3)] == ["hello"] * 3
    assert len(approver.asked) == 1
    assert tool.captured.spans[-1].attributes is not None
    assert tool.captured.spans[-1].attributes[Attr.PERMISSION_SOURCE] == "user"


def test_an_ask_that_offers_no_grant_is_always_asked(opened: Callable[..., Tool]) -> None:
    run(
        opened(
            FixedApprover(REMEMBER), policy=StaticEngine(decision("ask", suggested_updates=[GRANT]))
        )
    )
    paused(opened(policy=StaticEngine("ask")))


def test_a_hooks_ask_is_not_answered_by_a_grant(opened: Callable[..., Tool]) -> None:
    hooks = Hooks()
    asking: list[bool] = []

    @hooks.on("permission_decision")
    def cautious(context: Any) -> Any:
        return PermissionResult(Behavior.ASK, "look again") if asking else None

    approver = FixedApprover(REMEMBER)
    tool = opened(approver, policy=Deciding(decision("allow")), hooks=hooks)
    run(tool)
    run(tool)
    assert len(approver.asked) == 1
    asking.append(True)
    # what a hook asks offers no grant
    approver.answer = ApprovalAnswer(approved=True, answered_by="user:ada")
    run(tool)
    assert approver.asked[-1].suggested_updates == []
    assert len(approver.asked) == 2


def test_the_granter_needs_a_role_that_the_policy_wants_now(opened: Callable[..., Tool]) -> None:
    offer: dict[str, Any] = {"suggested_updates": [GRANT]}
    run(opened(FixedApprover(REMEMBER), policy=StaticEngine(decision("ask", **offer))))
    paused(opened(policy=StaticEngine(decision("ask", **offer, approver_roles=["security"]))))
    paused(opened(policy=Deciding(decision("allow", approver_roles=["security"]))))
    assert (
        run(opened(policy=StaticEngine(decision("ask", **offer, approver_roles=["operator"]))))
        == "hello"
    )


@pytest.mark.parametrize(
    "facts",
    [{"risk_level": "critical"}, {"access_kinds": ["payment"]}, {"approval_required": True}],
    ids=["critical", "payment", "required"],
)
def test_some_calls_are_asked_about_each_time(
    opened: Callable[..., Tool], facts: dict[str, Any]
) -> None:
    approver = FixedApprover(ApprovalAnswer(approved=True, answered_by="user:ada"))
    tool = opened(approver, facts=facts)
    run(tool)
    run(tool)
    assert [request.suggested_updates for request in approver.asked] == [[], []]


def test_a_gate_and_a_budget_still_deny(opened: Callable[..., Tool]) -> None:
    passing = {"status": "pass", "trend": "improving"}
    settings = {
        "agenttool": {
            "settings": {"evaluation": {"gates": ["send"]}, "budgets": {"session": {"calls": 3}}}
        }
    }
    tool = opened(FixedApprover(REMEMBER), policy_data=settings)
    run(tool, evaluation=passing)
    run(tool, evaluation=passing)
    with pytest.raises(ToolDenied):
        run(tool)
    assert len(tool.ran) == 2
    run(tool, evaluation=passing)
    with pytest.raises(ToolDenied):
        run(tool, evaluation=passing)


def test_what_shadow_mode_only_records_uses_no_grant(opened: Callable[..., Tool]) -> None:
    run(opened(FixedApprover(REMEMBER)))
    tool = opened(policy_mode="shadow")
    assert run(tool) == "hello"
    assert tool.used() == []


def test_a_grant_counts_for_the_arguments_it_was_found_for(opened: Callable[..., Tool]) -> None:
    class Changing(Deciding):
        def evaluate(self, entry_point: str, document: Any, *, timeout: float) -> Any:
            if document["approval"] is None and document["input"]["text"] == "changed":
                self.documents.append(document)
                return type(super().evaluate(entry_point, document, timeout=timeout))(
                    self._ask, self._revision
                )
            return super().evaluate(entry_point, document, timeout=timeout)

    run(opened(FixedApprover(REMEMBER), policy=Deciding(decision("allow"))))
    engine = Changing(decision("allow", updated_input={"text": "changed"}))
    tool = opened(policy=engine)
    paused(tool)
    assert tool.ran == []
    last = engine.documents[-1]
    assert (last["input"], last["approval"]) == ({"text": "changed"}, None)


# --- failures, other doors, other processes -------------------------------------------------------


def test_a_store_that_fails_grants_nothing(
    opened: Callable[..., Tool], monkeypatch: pytest.MonkeyPatch
) -> None:
    approver = FixedApprover(REMEMBER)
    tool = opened(approver)
    run(tool)

    def broken(*_: Any, **__: Any) -> Any:
        raise ApprovalStoreError("gone")

    with monkeypatch.context() as patch:
        patch.setattr(tool.store, "find_grant", broken)
        run(tool)
    assert len(approver.asked) == 2
    with monkeypatch.context() as patch:
        patch.setattr(tool.store, "use_grant", broken)
        run(tool)
    assert len(approver.asked) == 3
    assert tool.captured.spans[-1].attributes is not None
    assert Attr.APPROVAL_GRANT_ID not in tool.captured.spans[-1].attributes


def test_a_grant_revoked_before_the_run_is_of_no_use(opened: Callable[..., Tool]) -> None:
    tool = opened(FixedApprover(REMEMBER))
    run(tool)
    store = tool.store
    real = store.use_grant

    def late(grant_id: str, *args: Any, **kwargs: Any) -> None:
        store.revoke(grant_id)
        real(grant_id, *args, **kwargs)

    store.use_grant = late  # type: ignore[method-assign]
    tool.captured.governor.approvals.approver = None
    paused(tool)
    assert tool.used() == []
    assert tool.captured.spans[-1].attributes is not None
    assert tool.captured.spans[-1].attributes[Attr.PERMISSION_BEHAVIOR] == "ask"


async def test_asynchronous_callers_look_off_the_event_loop(opened: Callable[..., Tool]) -> None:
    tool = opened(FixedApprover(REMEMBER))
    threads: list[int] = []
    for name in ("find_grant", "use_grant"):
        real = getattr(tool.store, name)

        def seen(*args: Any, _real: Any = real, **kwargs: Any) -> Any:
            threads.append(threading.get_ident())
            return _real(*args, **kwargs)

        setattr(tool.store, name, seen)
    with agent_context(**WHO):
        for _ in range(2):
            assert (await tool.call.tool.ainvoke(text="hello")).status.value == "succeeded"
    assert len(threads) == 3
    assert threading.get_ident() not in threads
    await asyncio.sleep(0)


ELSEWHERE = """
import sys
from agenttool_otel import agent_context
from agenttool_otel.testing import capture
with capture(approvals=sys.argv[1]) as captured:
    def send(text: str) -> str:
        return text
    facts = dict(risk_level="high", read_only=False, destructive=False, open_world=False)
    send.__qualname__ = sys.argv[2]
    tool = captured.governor.govern(send, name="send", namespace="acme", **facts)
    for session in ("s-1", "s-2"):
        with agent_context(actor="agent:support", tenant="acme", session_id=session):
            print(tool.tool.invoke(text="hello").status.value)
"""


def test_a_grant_holds_in_another_process(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'approvals.db'}"
    with capture(approvals=url, approver=FixedApprover(REMEMBER)) as captured:
        tool = Tool(captured)
        run(tool)
        command = [sys.executable, "-c", ELSEWHERE, url, "send"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
        assert done.returncode == 0, done.stderr
        assert done.stdout.split() == ["succeeded", "pending"]
        assert len(tool.used()) == 1


def test_the_store_uses_no_grant_that_does_not_cover_the_call(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "approvals.db")
    request = store.create(a_request(suggested_updates=[GRANT]), ARGS)
    store.answer(request.request_id, yes(remember=0))
    (grant,) = store.list_grants()
    from agenttool_otel.approvals.types import GrantQuery

    fits: dict[str, Any] = {
        "tool_id": request.tool_id,
        "declaration_digest": request.declaration_digest,
        "actor_id": request.actor_id,
        "tenant": request.tenant,
        "session_id": request.session_id,
        "arguments": ARGS,
        "rule_refs": frozenset({request.rule_ref}),
        "approver_roles": frozenset({"operator"}),
    }
    found = store.find_grant(GrantQuery(**fits))
    assert found is not None
    assert found.grant_id == grant.grant_id
    others = {
        "rule_refs": frozenset({"a.rule"}),
        "approver_roles": frozenset({"lead"}),
        "session_id": None,
    }
    for name, value in {
        **others,
        "arguments": {},
        "tenant": None,
        "declaration_digest": "",
    }.items():
        wanted = GrantQuery(**{**fits, name: value})
        assert store.find_grant(wanted) is None
        with pytest.raises(ApprovalNotFound):
            store.use_grant(grant.grant_id, wanted, invocation_id="inv_1", policy_revision="rev-1")
    with pytest.raises(ApprovalNotFound):
        store.use_grant(
            "grant_none", GrantQuery(**fits), invocation_id="inv_1", policy_revision="rev-1"
        )
    assert [entry.kind for entry in store.log_entries()][-1] is ApprovalLogKind.GRANTED
    assert store.get(request.request_id).status is ApprovalStatus.APPROVED
    store.close()
