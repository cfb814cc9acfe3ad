"""Approvers: an error, a wrong type, a timeout or no terminal is never a yes and never a
person's no.
"""

from __future__ import annotations

import asyncio
import contextvars
import os
import pty
import select
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from approval_helpers import ARGS, a_request, no, yes
from hypothesis import given, settings
from hypothesis import strategies as st

from agenttool_otel import ConfigurationError, Governor
from agenttool_otel.approvals.approvers import (
    CallbackApprover,
    QueueApprover,
    RateLimitedApprover,
    StoreWaitingApprover,
)
from agenttool_otel.approvals.console import ConsoleApprover
from agenttool_otel.approvals.display import (
    arguments_text,
    describe_arguments,
    merge_edit,
    parse_edit,
    visible,
)
from agenttool_otel.approvals.store.store import ApprovalStore
from agenttool_otel.approvals.types import (
    ApprovalAnswer,
    ApprovalRequest,
    Approver,
    AskLimit,
    AsyncApprover,
)
from agenttool_otel.errors import ApprovalConflict
from agenttool_otel.testing import FixedApprover, StaticEngine, capture

REQUEST = a_request()


def raises(_: ApprovalRequest) -> bool:
    raise RuntimeError("the secret text of an error")


async def araises(_: ApprovalRequest) -> bool:
    raise RuntimeError("the secret text of an error")


async def says_yes(_: ApprovalRequest) -> bool:
    await asyncio.sleep(0)
    return True


class Odd:
    """Truthy, and neither an answer nor a bool."""

    approved = True


NO_ANSWER = [
    raises,
    araises,
    lambda _: "yes",
    lambda _: 1,
    lambda _: Odd(),
    lambda _: yes(approved="true"),
    lambda: True,
]


@pytest.mark.parametrize("callback", NO_ANSWER)
async def test_a_failing_or_confused_callback_approves_nothing(
    callback: Any, caplog: pytest.LogCaptureFixture
) -> None:
    approver = CallbackApprover(callback)
    assert approver.ask(REQUEST) is None
    assert await approver.aask(REQUEST) is None
    assert approver.failures == 2
    assert approver.last_failure in {"RuntimeError", "TypeError"}
    assert "secret text" not in caplog.text


@pytest.mark.parametrize("callback", [says_yes, lambda _: True])
async def test_a_callback_may_be_synchronous_or_not(callback: Any) -> None:
    approver = CallbackApprover(callback, answered_by="bot:reviewer", roles=("operator",))
    expected = ApprovalAnswer(approved=True, answered_by="bot:reviewer", roles=("operator",))
    assert approver.ask(REQUEST) == expected
    assert await approver.aask(REQUEST) == expected


def test_a_callback_says_who_it_is_when_nothing_else_is_said() -> None:
    answer = CallbackApprover(says_yes).ask(REQUEST)
    assert answer is not None
    assert answer.answered_by == "callback:says_yes"


async def test_a_callback_that_hangs_is_left_behind() -> None:
    release = threading.Event()
    approver = CallbackApprover(lambda _: release.wait(20), timeout=0.1)
    started = time.monotonic()
    assert approver.ask(REQUEST) is None
    assert time.monotonic() - started < 15
    assert approver.last_failure == "TimeoutError"
    release.set()

    async def forever(_: ApprovalRequest) -> bool:
        await asyncio.sleep(60)
        return True

    assert await CallbackApprover(forever, timeout=0.1).aask(REQUEST) is None
    assert await asyncio.to_thread(CallbackApprover(forever, timeout=0.1).ask, REQUEST) is None


def test_a_callback_sees_the_context_of_its_caller() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")
    variable.set("caller")
    seen: list[str] = []

    async def look(_: ApprovalRequest) -> None:
        seen.append(variable.get())

    CallbackApprover(look).ask(REQUEST)
    assert seen == ["caller"]


async def test_a_queue_tells_and_leaves_the_request_pending() -> None:
    told: list[str] = []
    queue = QueueApprover(lambda request: told.append(request.request_id))
    assert queue.ask(REQUEST) is None
    assert await queue.aask(REQUEST) is None
    assert told == [REQUEST.request_id] * 2
    assert QueueApprover(raises).ask(REQUEST) is None


@pytest.mark.parametrize("given", [yes(), no(), yes(edited_input={"path": "x"})])
async def test_waiting_at_the_store_returns_anothers_answer(tmp_path: Path, given: Any) -> None:
    store = ApprovalStore(tmp_path / "a.db")
    request = store.create(a_request(), ARGS)
    threading.Timer(0.1, store.answer, (request.request_id, given)).start()
    answer = await StoreWaitingApprover(store, timeout=60, interval=0.02).aask(request)
    assert answer is not None
    assert (answer.approved, answer.edited_input, answer.stored) == (
        given.approved,
        given.edited_input,
        True,
    )
    again = StoreWaitingApprover(store, timeout=0).ask(request)
    assert again == answer


def test_waiting_ends_with_time_request_or_cancellation(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "a.db")
    waiting = StoreWaitingApprover(store, timeout=0.1, interval=0.02)
    assert waiting.ask(store.create(a_request(), ARGS)) is None
    short = store.create(a_request(ttl=0.1), ARGS)
    started = time.monotonic()
    assert StoreWaitingApprover(store, timeout=60, interval=0.02).ask(short) is None
    canceled = store.create(a_request(), ARGS)
    store.cancel(canceled.request_id, "user_interruption")
    assert StoreWaitingApprover(store, timeout=60, interval=0.02).ask(canceled) is None
    assert time.monotonic() - started < 30
    assert waiting.ask(a_request()) is None  # never stored


async def test_an_actor_that_asks_too_often_stays_pending_alone() -> None:
    now = [0.0]
    asked: list[str] = []

    def inner(request: ApprovalRequest) -> bool:
        asked.append(request.actor_id)
        return True

    approver = RateLimitedApprover(CallbackApprover(inner), AskLimit(2, 60), now=lambda: now[0])
    assert [approver.ask(a_request()) is not None for _ in range(3)] == [True, True, False]
    assert await approver.aask(a_request()) is None
    assert await approver.aask(a_request(actor_id="agent:other")) is not None
    now[0] = 60.5
    assert approver.ask(a_request()) is not None
    assert asked == ["agent:support", "agent:support", "agent:other", "agent:support"]
    assert RateLimitedApprover(CallbackApprover(inner), AskLimit(0)).ask(a_request()) is None


def test_every_approver_fits_both_protocols(tmp_path: Path) -> None:
    store = ApprovalStore(tmp_path / "a.db")
    callback = CallbackApprover(says_yes)
    limited = RateLimitedApprover(callback, AskLimit(1))
    for approver in (
        callback,
        QueueApprover(),
        StoreWaitingApprover(store),
        ConsoleApprover(),
        limited,
    ):
        assert isinstance(approver, Approver)
        assert isinstance(approver, AsyncApprover)


# --- the console, in a real terminal --------------------------------------------------------------

CONSOLE = """
import sys
sys.path.insert(0, {folder!r})
from approval_helpers import ARGS, a_request
from agenttool_otel.approvals.approvers import ConsoleApprover
request = a_request(
    {{"path": "a\\u202eb", "note": "[bold]markup[/bold]"}},
    message="Really?\\x1b[2J",
    suggested_updates=[{{"type": "grant", "scope": "session"}}],
    alternatives=[{{"tool": "safer_tool", "arguments": {{}}}}],
)
answer = ConsoleApprover(answered_by="user:tty", roles=("operator",)).ask(request)
print("ANSWER", answer)
"""


def on_a_terminal(typed: str, environment: dict[str, str] | None = None) -> str:
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", CONSOLE.format(folder=str(Path(__file__).parent))],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={
            **os.environ,
            "TERM": "xterm",
            "COLUMNS": "100",
            "EDITOR": "",
            "VISUAL": "",
            **(environment or {}),
        },
        close_fds=True,
        start_new_session=True,
    )
    os.close(terminal)
    os.write(controller, typed.encode())
    output = b""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        if select.select([controller], [], [], 0.2)[0]:
            try:
                output += os.read(controller, 65536)
            except OSError:
                break
        elif process.poll() is not None:
            break
    process.wait(10)
    os.close(controller)
    return output.decode("utf-8", "replace")


def test_the_console_shows_everything_and_takes_a_yes() -> None:
    output = on_a_terminal("maybe\ny\n")
    assert "approved=True" in output
    assert "answered_by='user:tty'" in output
    assert "Please answer" in output
    for shown in (
        "Really?",
        r"\u{202e}",
        "[bold]markup[/bold]",
        "safer_tool",
        "Remember 1",
        "characters",
        "sha256:",
    ):
        assert shown in output, shown
    assert "\u202e" not in output
    assert "\x1b[2J" not in output


@pytest.mark.parametrize(
    ("typed", "expected"),
    [
        (
            "n\nnot now\n",
            "approved=False, answered_by='user:tty', roles=('operator',), reason='not now'",
        ),
        ("r1\n", "remember=0"),
        ("r9\nl\n", "ANSWER None"),
        ("\x04", "ANSWER None"),
        ('e\n{"path": "safe.txt"}\ny\n', "edited_input={'path': 'safe.txt'}"),
        ('e\n{"path": \nl\n', "ANSWER None"),
        ('e\n{"path": "safe.txt"}\nn\nl\n', "ANSWER None"),
    ],
)
@pytest.mark.slow
def test_the_console_takes_each_answer(typed: str, expected: str) -> None:
    assert expected in on_a_terminal(typed)


@pytest.mark.slow
def test_the_console_edits_in_the_persons_editor(tmp_path: Path) -> None:
    editor = tmp_path / "editor"
    editor.write_text('#!/bin/sh\nprintf \'{"path": "edited.txt"}\' > "$1"\n')
    editor.chmod(0o755)
    assert "edited_input={'path': 'edited.txt'}" in on_a_terminal("e\ny\n", {"EDITOR": str(editor)})


def test_without_a_terminal_the_console_stays_silent(capfd: pytest.CaptureFixture[str]) -> None:
    assert ConsoleApprover().ask(REQUEST) is None
    assert capfd.readouterr() == ("", "")


# --- showing and editing --------------------------------------------------------------------------

HIDDEN = [
    "\u202e",
    "\u200b",
    "\u2066",
    "\x1b",
    "\x07",
    "\x85",
    "\u00ad",
    "\u2028",
    "\ufeff",
    "\u3164",
    "\U000e0041",
    "\ufe0f",
]


@pytest.mark.parametrize("char", HIDDEN, ids=lambda char: f"U+{ord(char):04X}")
def test_a_character_that_hides_or_reorders_is_spelt_out(char: str) -> None:
    assert visible(f"a{char}b") == f"a\\u{{{ord(char):x}}}b"
    request = a_request({"x": f"a{char}b"})
    assert char not in arguments_text(request.arguments_preview)


@settings(max_examples=200)
@given(st.text())
def test_what_is_shown_is_visible_and_loses_no_character(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    assert all(char == " " or char.isprintable() for char in shown)
    assert len(shown) >= len(text)


def test_length_digest_and_warnings_stand_beside_the_arguments() -> None:
    request = a_request({"x": "е\u200b"}, arguments_preview={"x": "е\u200b", "y": "[redacted]"})
    line = describe_arguments(request)
    for part in ("characters", request.args_digest, "redacted", "beyond ASCII", "hidden"):
        assert part in line


def test_long_arguments_are_shown_in_full() -> None:
    text = arguments_text({"command": "x" * 300_000 + "; rm -rf /"})
    assert text.count("x") == 300_000
    assert "; rm -rf /" in text


ORIGINAL = {"user": "ada", "token": "r" + "eal", "list": [{"k": "r" + "eal2"}, 2], "n": 1}
PREVIEW = {"user": "ada", "token": "[redacted]", "list": [{"k": "[redacted]"}, 2], "n": 1}


@pytest.mark.parametrize(
    ("edited", "expected"),
    [
        (PREVIEW, ORIGINAL),
        ({**PREVIEW, "user": "bob"}, {**ORIGINAL, "user": "bob"}),
        ({**PREVIEW, "n": True}, {**ORIGINAL, "n": True}),
        (
            {**PREVIEW, "list": [{"k": "[redacted]"}, 3]},
            {**ORIGINAL, "list": [ORIGINAL["list"][0], 3]},
        ),
        ({"user": "ada"}, {"user": "ada"}),
        ({**PREVIEW, "token": "typed"}, {**ORIGINAL, "token": "typed"}),
    ],
)
def test_what_is_left_as_shown_keeps_its_real_value(
    edited: dict[str, Any], expected: dict[str, Any]
) -> None:
    merged = merge_edit(PREVIEW, edited, ORIGINAL)
    assert merged == expected
    assert type(merged.get("n")) is type(expected.get("n"))


@pytest.mark.parametrize(
    "edited", [{"user": "[redacted]"}, {"new": ["[redacted]"]}, {"list": [1, {"k": "[redacted]"}]}]
)
def test_a_redacted_value_can_not_be_moved_elsewhere(edited: dict[str, Any]) -> None:
    with pytest.raises(ApprovalConflict, match="moved"):
        merge_edit(PREVIEW, edited, ORIGINAL)


@settings(max_examples=150)
@given(
    st.dictionaries(
        st.text(max_size=5),
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3)
                | st.dictionaries(st.text(max_size=3), inner, max_size=3)
            ),
            max_leaves=8,
        ),
        max_size=4,
    )
)
def test_an_edit_of_an_unredacted_preview_is_what_was_typed(value: dict[str, Any]) -> None:
    assert merge_edit(value, value, value) == value
    assert merge_edit({}, value, {}) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"a": 1, "a": 2}',
        "{" * 100_000,
        '{"a":' * 60_000,
        "x" * 2_000_000,
    ],
)
def test_an_edit_that_is_no_plain_json_object_is_refused(text: str) -> None:
    with pytest.raises(ApprovalConflict):
        parse_edit(text)


def test_a_function_is_an_approver() -> None:
    asked: list[str] = []

    def agree(request: ApprovalRequest) -> bool:
        asked.append(request.tool_name)
        return True

    with capture(policy=StaticEngine("ask"), approver=agree) as captured:
        assert captured.governor.govern(lambda: "ran", name="f")() == "ran"
    assert asked == ["f"]


@pytest.mark.parametrize("approver", [42, "me", FixedApprover, [lambda request: True]])
def test_what_could_never_be_asked_is_no_approver(approver: Any) -> None:
    with pytest.raises(ConfigurationError, match="approver"):
        Governor(policy=StaticEngine("ask"), approver=approver)
