"""Notices of requests to a real HTTP server: who gets which when, what they say, and what fails."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from approval_helpers import FakeClock, a_request, no, yes
from standardwebhooks import Webhook
from typer.testing import CliRunner
from webhook_receiver import Receiver, running_receiver

from agenttool_otel.approvals.notify.notifier import MAX_CARDS, Notifier, only_one
from agenttool_otel.approvals.notify.signatures import Signer, new_secret
from agenttool_otel.approvals.notify.targets import Format, Plan, Target, read_plan
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.types import ApprovalRequest
from agenttool_otel.cli.approvals import EXIT_CODES, app
from agenttool_otel.cli.notifying import answers_address
from agenttool_otel.errors import ConfigurationError

SECRET = new_secret()
PAGE = "https://approvals.example.com"
HOUR = timedelta(hours=1)
VALUE = "IBAN-DE" + "89370400440532013000"
ARGUMENTS = {"to": VALUE, "amount": 31337}


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with running_receiver() as receiver:
        yield receiver


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> Iterator[ApprovalStore]:
    store = ApprovalStore("sqlite://", clock=clock, ticks=clock.ticks)
    yield store
    store.close()


def ask(store: ApprovalStore, **values: Any) -> ApprovalRequest:
    asked = a_request(
        ARGUMENTS,
        **{
            "ttl": 24 * 3600,
            "message": f"No transfer to {VALUE}.",
            "question": f"to is {VALUE}",
            "user_words": f"Send it to {VALUE}",
            "profile": {"risk_level": "high"},
            **values,
        },
    )
    return store.create(asked, ARGUMENTS)


class Desk:
    """A notifier with one target, or some."""

    def __init__(
        self, store: ApprovalStore, receiver: Receiver, folder: Path, *targets: Target, **more: Any
    ) -> None:
        self.receiver = receiver
        self.ticks = 0.0
        self.notifier = Notifier(
            store,
            Plan(targets, PAGE),
            folder / "state.json",
            Signer(SECRET),
            ticks=lambda: self.ticks,
            **more,
        )

    def look(self) -> list[str]:
        """Return the paths and kinds of what arrives at one look."""
        before = len(self.receiver.received)
        self.notifier.look()
        return [
            f"{each.path} {json.loads(each.body).get('type', '').rpartition('.')[2]}"
            for each in self.receiver.received[before:]
        ]


@pytest.fixture
def desk(store: ApprovalStore, receiver: Receiver, tmp_path: Path) -> Desk:
    target = Target("desk", f"{receiver.url}/desk", remind=HOUR, expiring=2 * HOUR)
    return Desk(store, receiver, tmp_path, target)


# --- what is sent when --------------------------------------------------------------------------


def test_a_question_is_sent_once_and_its_answer_once(desk: Desk, store: ApprovalStore) -> None:
    asked = ask(store)
    assert desk.look() == ["/desk asked"]
    assert desk.look() == []
    store.answer(asked.request_id, yes())
    assert desk.look() == ["/desk answered"]
    assert desk.look() == []
    assert desk.notifier.state.read_text() == "{}"


def test_reminders_follow_and_are_made_up_once(
    desk: Desk, store: ApprovalStore, clock: FakeClock
) -> None:
    ask(store)
    desk.look()
    clock.move(3601)
    assert desk.look() == ["/desk reminder"]
    assert desk.look() == []
    # while the notifier was down
    clock.move(3 * 3600)
    assert desk.look() == ["/desk reminder"]
    assert desk.look() == []


def test_the_end_is_announced_and_then_reported(
    desk: Desk, store: ApprovalStore, clock: FakeClock
) -> None:
    ask(store, ttl=3 * 3600)
    desk.look()
    clock.move(3601)
    assert desk.look() == ["/desk expiring"]
    clock.move(2 * 3600)
    assert desk.look() == ["/desk expired"]


def test_another_role_is_asked_when_the_first_does_not_answer(
    store: ApprovalStore, receiver: Receiver, tmp_path: Path, clock: FakeClock
) -> None:
    first = Target("desk", f"{receiver.url}/desk", roles=("operator",), ends=False)
    second = Target("heads", f"{receiver.url}/heads", roles=("manager",), after=HOUR)
    desk = Desk(store, receiver, tmp_path, first, second)
    asked = ask(store, approver_roles=["operator", "manager"])
    ask(store, approver_roles=["operator"])
    assert desk.look() == ["/desk asked", "/desk asked"]
    clock.move(3601)
    assert desk.look() == ["/heads escalated"]
    store.answer(asked.request_id, no())
    assert desk.look() == ["/heads answered"]


def test_a_target_gets_only_the_risks_that_it_wants(
    store: ApprovalStore, receiver: Receiver, tmp_path: Path
) -> None:
    target = Target("desk", f"{receiver.url}/desk", risks=("critical",))
    desk = Desk(store, receiver, tmp_path, target)
    ask(store)
    assert desk.look() == []
    ask(store, profile={"risk_level": "critical"})
    assert desk.look() == ["/desk asked"]


def test_a_second_notifier_sends_nothing_twice(desk: Desk, store: ApprovalStore) -> None:
    ask(store)
    desk.look()
    again = Desk(store, desk.receiver, desk.notifier.state.parent, *desk.notifier.plan.targets)
    assert again.look() == []
    with (
        only_one(desk.notifier.state),
        pytest.raises(ConfigurationError),
        only_one(desk.notifier.state),
    ):
        pass


def test_an_end_while_the_notifier_was_down_is_reported(desk: Desk, store: ApprovalStore) -> None:
    asked = ask(store)
    desk.look()
    store.cancel(asked.request_id, "the user interrupted")
    again = Desk(store, desk.receiver, desk.notifier.state.parent, *desk.notifier.plan.targets)
    assert again.look() == ["/desk withdrawn"]


def test_a_chat_is_not_flooded(store: ApprovalStore, receiver: Receiver, tmp_path: Path) -> None:
    target = Target("chat", f"{receiver.url}/chat", Format.SLACK)
    desk = Desk(store, receiver, tmp_path, target)
    for _ in range(MAX_CARDS + 7):
        ask(store)
    assert len(desk.look()) == MAX_CARDS + 1
    assert "7 more requests" in receiver.received[-1].body.decode()
    assert desk.look() == []


# --- what fails ---------------------------------------------------------------------------------


@pytest.mark.parametrize("status", [500, 429, 404, 307])
def test_what_did_not_arrive_is_sent_again_with_its_id(
    desk: Desk, store: ApprovalStore, receiver: Receiver, status: int
) -> None:
    ask(store)
    receiver.statuses = [status]
    assert desk.look() == ["/desk asked"]
    assert desk.look() == []  # it pauses
    desk.ticks += 6
    assert desk.look() == ["/desk asked"]
    desk.ticks += 600
    assert desk.look() == []
    ids = {each.headers["webhook-id"] for each in receiver.received}
    assert (len(ids), {each.path for each in receiver.received}) == (1, {"/desk"})


def test_a_message_that_is_refused_is_not_sent_again(
    desk: Desk, store: ApprovalStore, receiver: Receiver
) -> None:
    ask(store)
    receiver.statuses = [400]
    desk.look()
    desk.ticks += 600
    assert desk.look() == []


def test_a_target_that_is_gone_keeps_nothing_from_another(
    store: ApprovalStore, receiver: Receiver, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    gone = Target("gone", "http://127.0.0.1:1/credential")
    desk = Desk(store, receiver, tmp_path, gone, Target("desk", f"{receiver.url}/desk"))
    ask(store)
    assert desk.look() == ["/desk asked"]
    assert "target gone was not reached" in caplog.text
    assert "credential" not in caplog.text


def drip(listening: socket.socket, ended: threading.Event) -> None:
    """Answer with a header that never ends, a byte at a time."""
    connection, _ = listening.accept()
    with connection:
        connection.recv(100_000)
        connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
        while not ended.wait(0.05):
            connection.sendall(b"x")
        connection.sendall(b"\r\n\r\n")


def test_a_target_that_drips_holds_up_itself_alone(
    store: ApprovalStore, receiver: Receiver, tmp_path: Path
) -> None:
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        dripping = threading.Thread(target=drip, args=(listening, ended), daemon=True)
        dripping.start()
        slow = Target("slow", f"http://127.0.0.1:{listening.getsockname()[1]}/")
        desk = Desk(store, receiver, tmp_path, slow, Target("desk", f"{receiver.url}/desk"))
        ask(store)
        began = time.monotonic()
        assert desk.notifier.look(0.3) == 1
        ask(store)
        assert desk.notifier.look(0.3) == 1
        assert time.monotonic() - began < 4
        assert len(receiver.received) == 2
        ended.set()
        dripping.join(10)
        [batch] = [place.batch for place in desk.notifier._places if place.batch is not None]
        batch.thread.join(10)
    # what arrived late is not sent again; its place is free for the second question
    assert desk.notifier.look() == 1
    assert [place.failures for place in desk.notifier._places] == [1, 0]


def test_what_a_target_answers_is_not_read(
    store: ApprovalStore, receiver: Receiver, tmp_path: Path
) -> None:
    def answer(listening: socket.socket) -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(100_000)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 60000\r\n\r\nx")
            ended.wait(60)

    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        threading.Thread(target=answer, args=(listening,), daemon=True).start()
        target = Target("desk", f"http://127.0.0.1:{listening.getsockname()[1]}/")
        desk = Desk(store, receiver, tmp_path, target)
        ask(store)
        assert desk.notifier.look() == 1
        ended.set()


def test_what_goes_to_this_machine_goes_through_no_proxy(
    desk: Desk, store: ApprovalStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    with running_receiver() as proxy:
        monkeypatch.setenv("http_proxy", proxy.url)
        ask(store)
        assert desk.look() == ["/desk asked"]
        assert proxy.received == []


class _Breaks(Signer):
    """Signs for one target of two; the other's messages can't be signed."""

    def __init__(self, secret: str) -> None:
        super().__init__(secret)
        self.calls = 0

    def headers(self, message_id: str, body: bytes) -> dict[str, str]:
        self.calls += 1
        if self.calls == 1:
            raise RuntimeError("secret")
        return super().headers(message_id, body)


def test_an_error_at_one_target_keeps_nothing_from_others(
    store: ApprovalStore, receiver: Receiver, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    targets = [Target(name, f"{receiver.url}/{name}") for name in ("first", "second")]
    desk = Desk(store, receiver, tmp_path, *targets)
    desk.notifier.signer = _Breaks(SECRET)
    ask(store)
    assert len(desk.look()) == 1
    assert "RuntimeError" in caplog.text
    assert "secret" not in caplog.text
    desk.ticks += 6
    assert len(desk.look()) == 1


def test_a_look_that_fails_is_followed_by_another(desk: Desk, store: ApprovalStore) -> None:
    ask(store)
    listed, looks = store.listed, iter((True, False))

    def fails_once(*arguments: Any) -> Any:
        if next(looks, False):
            raise RuntimeError
        return listed(*arguments)

    waits = iter((False, True))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store, "listed", fails_once)
        desk.notifier.run(0, lambda _: next(waits))
    assert len(desk.receiver.received) == 1


# --- what a notice says -------------------------------------------------------------------------


@pytest.mark.parametrize("format", list(Format))
def test_a_notice_has_a_link_and_no_argument(
    store: ApprovalStore, receiver: Receiver, tmp_path: Path, format: Format
) -> None:
    target = Target("desk", receiver.url, format)
    desk = Desk(store, receiver, tmp_path, target, tickets=Signer(new_secret()))
    asked = ask(store)
    desk.look()
    store.answer(asked.request_id, no(reason=VALUE))
    desk.look()
    assert len(receiver.received) == 2
    for sent in receiver.received:
        text = f"{sent.headers}{sent.body.decode()}"
        assert f"{PAGE}/requests/{asked.request_id}" in text
        for content in (VALUE, "31337", asked.args_digest.removeprefix("sha256:")):
            assert content not in text


def test_an_event_is_a_signed_cloud_event(desk: Desk, store: ApprovalStore) -> None:
    asked = ask(store)
    desk.look()
    [sent] = desk.receiver.received
    event = Webhook(SECRET).verify(sent.body, sent.headers)
    assert sent.headers["content-type"].startswith("application/cloudevents+json")
    assert (event["specversion"], event["type"]) == ("1.0", "agenttool.approval.asked")
    assert (event["id"], event["subject"]) == (sent.headers["webhook-id"], asked.request_id)
    assert event["data"]["approver_roles"] == ["operator"]


def texts_of(value: Any, key: str) -> Iterator[dict[str, Any]]:
    """Yield the parts of a card that have a key."""
    if isinstance(value, dict):
        if key in value:
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for each in value:
            yield from texts_of(each, key)


@pytest.mark.parametrize("format", [Format.SLACK, Format.TEAMS])
def test_a_name_can_not_call_everybody_or_make_a_link(
    store: ApprovalStore, receiver: Receiver, tmp_path: Path, format: Format
) -> None:
    hostile = "<!channel> [Approve](https://evil.example)\u202e"
    desk = Desk(store, receiver, tmp_path, Target("chat", receiver.url, format))
    ask(store, tool_name=hostile, rule_ref=hostile)
    desk.look()
    card = json.loads(receiver.received[0].body)
    held = [each for each in texts_of(card, "text") if "evil" in str(each["text"])]
    assert len(held) == 2
    # kinds of text in which neither chat reads any markup
    assert {each["type"] for each in held} <= {"plain_text", "TextRun"}
    assert all("\u202e" not in each["text"] for each in held)
    urls = [each["url"] for each in texts_of(card, "url")]
    assert all(url.startswith(PAGE) for url in urls)


# --- settings -----------------------------------------------------------------------------------


def plan(tmp_path: Path, text: str) -> Plan:
    path = tmp_path / "notify.toml"
    path.write_text(text)
    return read_plan(path, "", {"DESK_URL": "https://hooks.example.com/desk"})


def test_a_plan_is_read_from_a_file(tmp_path: Path) -> None:
    text = f"""
        page = "{PAGE}/"
        [targets.desk]
        url_env = "DESK_URL"
        format = "slack"
        roles = ["operator"]
        remind = "30m"
        [targets.heads]
        url = "https://hooks.example.com/heads"
        risks = ["high", "critical"]
        after = "1h"
    """
    read = plan(tmp_path, text)
    assert read.page == PAGE
    desk, heads = read.targets
    assert (desk.url, desk.format) == ("https://hooks.example.com/desk", Format.SLACK)
    assert (heads.after, heads.risks) == (HOUR, ("high", "critical"))
    assert "hooks.example.com" not in repr(read)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[targets]",
        'pgae = "x"\n[targets.a]\nurl = "https://a"',
        '[targets.a]\nurl = "https://a"',
        'page = "p"\n[targets.a]\nurl = "https://a"',
        'page = "https://p"\n[targets.a]\nurl = "http://a"',
        'page = "https://p"\n[targets.a]\nurl_env = "NOT_SET"',
        'page = "https://p"\n[targets.a]\nurl = "https://a"\nremnid = "1h"',
        'page = "https://p"\n[targets.a]\nurl = "https://a"\nremind = "soon"',
        'page = "https://p"\n[targets.a]\nurl = "https://a"\nrisks = ["hihg"]',
        'page = "https://p"\n[targets.a]\nurl = "https://a"\nformat = "email"',
        'page = "https://p"\n[targets.a]\nurl = "https://a"\nroles = "operator"',
        "not toml",
    ],
)
def test_a_plan_with_a_slip_is_refused(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigurationError):
        plan(tmp_path, text)


@pytest.mark.parametrize(
    "address",
    [
        "https://chat.example/hook/ü",
        "https://bücher.example/hook",
        "https://chat.example/a b",
        "https://chat.example/hook\n",
        f"https://{'a' * 70}.example/hook",
        "https://chat..example/hook",
        "https://[chat.example/hook",
        "https://chat.example:99999/hook",
        "https://",
    ],
)
def test_an_address_that_no_request_can_have_is_refused(address: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        Target("chat", address)
    assert "hook" not in str(refused.value)
    with pytest.raises(ConfigurationError):
        Plan((), "https://[page")


def test_answers_from_elsewhere_need_a_tls_proxy() -> None:
    assert answers_address("::1", 0, "") == ("::1", 0)
    assert answers_address("10.0.0.1", 0, "https://answers.example") == ("10.0.0.1", 0)
    for url in ("", "http://answers.example", "https://"):
        with pytest.raises(ConfigurationError):
            answers_address("10.0.0.1", 0, url)


def notify(url: Path, *options: str, **environment: str) -> Any:
    command = ["notify", "-u", str(url), "--page", PAGE, "--state", f"{url}.json", *options]
    return CliRunner().invoke(app, command, env=environment)


def test_the_command_sends_what_is_due_and_ends(receiver: Receiver, tmp_path: Path) -> None:
    path = tmp_path / "approvals.db"
    store = ApprovalStore(path)
    ask(store)
    store.close()
    for sent in (1, 0):
        done = notify(
            path, "--to", receiver.url, "--once", AGENTTOOL_APPROVALS_NOTIFY_SECRET=SECRET
        )
        assert (done.exit_code, done.output) == (0, f"{sent} sent\n")
    Webhook(SECRET).verify(receiver.received[0].body, receiver.received[0].headers)


@pytest.mark.parametrize(
    ("options", "environment"),
    [
        (["--to", "https://a.example"], {}),
        (["--to", "https://a.example"], {"NOTIFY": "short"}),
        (["--to", "https://a.example", "--format", "mail"], {"NOTIFY": SECRET}),
        (["--to", "http://a.example"], {"NOTIFY": SECRET}),
        ([], {"NOTIFY": SECRET}),
        (["--to", "https://a.example", "--answers-port", "0"], {"NOTIFY": SECRET}),
        (
            ["--to", "https://a.example", "--answers-port", "0"],
            {"NOTIFY": SECRET, "ANSWERS": SECRET},
        ),
        (
            ["--to", "https://a.example", "--answers-port", "0", "--answers-host", "10.0.0.1"],
            {"NOTIFY": SECRET, "ANSWERS": new_secret()},
        ),
    ],
)
def test_settings_of_the_command_that_would_leak_are_refused(
    tmp_path: Path, options: list[str], environment: dict[str, str]
) -> None:
    named = {f"AGENTTOOL_APPROVALS_{name}_SECRET": value for name, value in environment.items()}
    done = notify(tmp_path / "a.db", *options, "--once", **named)
    assert done.exit_code == EXIT_CODES["usage"]
